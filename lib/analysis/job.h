/* Many processes as one job: who waited for whom in communication, and why that one was late.
 *
 * A collective's kernel runs on each rank from when that rank's stream reaches it until the last
 * rank has come and the data has moved. One rank's recording tells when its own stream reaches
 * it; how long it then lasted depends on all. So:
 *   scan     one pass per rank yields a row for each kernel of NCCL: when the stream reaches it,
 *            as a function of when earlier collectives ended, and, from blocking calls, when
 *            collectives had ended;
 *   join     across ranks: end = latest arrival + transfer, where no blocking call showed it; the
 *            time that transfers take is fitted to those that were shown;
 *   analyse  each rank's report in full, its NCCL kernels lasting as long as the join says;
 *   look     at what ranks that came late did meanwhile, and what another did instead.
 * Calls are matched by their communicator's identity and their number in it, a send or receive
 * by the two ranks and its number between them.
 *
 * Use: gwa_job_new(), gwa_job_scan() for each, gwa_job_join(), gwa_job_analyse() for each,
 * gwa_job_look() for each of gwa_job_looks(), gwa_job_finish(). Those for different ranks may run
 * in several threads at once. Of each rank only the rows (bounded) and a summary are held.
 */
#ifndef GWA_JOB_H
#define GWA_JOB_H

#include "analysis.h"

/* Rows that are held, of all ranks together; a rank's further collectives are not compared. */
#define GWA_JOB_ROWS 3000000u

/* Why a rank is late: X(id, key, text) */
#define GWA_LATE_CAUSES(X)                                                                         \
    X(HOST, host, "its host submits later")                                                        \
    X(GPU, gpu, "its kernels last longer")                                                         \
    X(WORK, work, "it runs more kernels")                                                          \
    X(COPIES, copies, "its copies last longer")                                                    \
    X(LINK, link, "its part of the collectives ends later")

enum gwa_late_cause {
#define X(id, key, text) GWA_LATE_##id,
    GWA_LATE_CAUSES(X)
#undef X
        GWA_LATE_CAUSE_COUNT
};

/* A rank's summary; percentages of its window's wall time, all devices together. */
struct gwa_job_rank {
    int rank; /* -1: none in its environment */
    uint32_t pid;
    char *host;    /* NULL: unknown */
    bool recorded; /* it has an event */
    double wall_s;
    double compute_pct, exposed_comm_pct, exposed_copy_pct, idle_pct; /* NaN: not sampled */
    double comm_wait_pct; /* of exposed_comm_pct, until the last rank had come; NaN: not matched */
    double idle[GWA_IDLE_CLASS_COUNT];
    size_t steps;
    double step_ms;
    uint64_t launches, kernels;
    uint64_t collectives; /* kernels of NCCL */
    uint64_t matched;     /* of them, those whose partners were found */
    double caused_pct;    /* waiting that it caused, per other rank, of wall time; NaN */
    const char *verdict;  /* id of its first finding; NULL */
    bool outlier;         /* named in `late` */
};

/* Times are sums over the steady window, means over the ranks that take part. */
struct gwa_job_op {
    const char *op;                              /* "AllReduce"; "SendRecv" between two */
    uint32_t ranks;                              /* in each: most */
    uint64_t calls;                              /* of one rank: mean */
    double bytes;                                /* the same, as passed to the calls */
    double transfer_ms;                          /* from the last rank's arrival on */
    double wait_ms;                              /* before that */
    double busy_ms, exposed_ms, exposed_wait_ms; /* of its kernels; while nothing computes */
    double hidden_pct;                           /* of busy_ms, beside computing; NaN */
    double bus_gb_per_s; /* what each link has to carry for it, by transfer time; NaN */
    double latency_us;   /* of a transfer, beside its bytes; NaN: not measured */
    uint64_t measured;   /* collectives whose end a blocking call showed */
};

/* One rank that others wait for. */
struct gwa_job_late {
    size_t rank;       /* index */
    double caused_pct; /* of wall time, that each other rank waits for it, mean */
    uint64_t times;    /* times that it was ready last for what others waited in */
    double share_pct;  /* of all that is waited for */
    uint8_t cause;     /* enum gwa_late_cause: most of it */
    double by_cause[GWA_LATE_CAUSE_COUNT]; /* of caused_pct */
    /* HOST: more than a rank that was not late did, before the same collectives */
    uint8_t class;        /* enum gwa_idle_class */
    double class_pct;     /* of the time by which the host was late */
    bool looked;          /* the two above and the next are known */
    char *python;         /* "train.py:12 function"; NULL */
    char *api;            /* inside this call; NULL: outside calls */
    char *after, *before; /* between these calls; NULL */
    double slower;        /* GPU: by this factor than the median rank, over the same kernels; NaN */
    char *kernel;         /* ... most of it in this one; NULL */
    double copy_gb_per_s, usual_gb_per_s; /* COPIES; NaN */
    double link_us; /* by how much it sees collectives end later than its host's others; NaN */
};

struct gwa_job_host {
    char *host;
    size_t ranks;
    bool aligned;          /* to the first host's clock, or it is that */
    double offset_s;       /* its monotonic clock less the first host's, at the start; NaN */
    double uncertainty_us; /* standard error of that */
    double jitter_us;      /* of one collective's ends around it */
    double drift_ppm;
    uint64_t matches; /* collectives whose end both showed */
};

/* The longest waits, one by one. */
#define GWA_JOB_WORST 20
struct gwa_job_worst {
    const char *op;
    uint64_t communicator; /* identity */
    uint32_t index;        /* in it */
    double bytes;
    double start_s; /* last arrival, since the job's first */
    double wait_ms; /* of the other ranks, mean */
    double transfer_ms;
    size_t late; /* index of the last rank */
};

struct gwa_job_result {
    struct gwa_job_rank *ranks;
    size_t ranks_count;
    struct gwa_job_host *hosts;
    size_t hosts_count;
    bool comparable;         /* all clocks are one, or could be aligned */
    const char *why_not;     /* NULL; else why waiting is not told from transfers */
    bool cut;                /* a rank had more collectives than are compared */
    uint64_t collectives;    /* matched, of all communicators */
    uint64_t unmatched;      /* kernels of NCCL, of all ranks, without a partner */
    double wait_pct;         /* of wall time, exposed, mean over ranks; NaN */
    double exposed_comm_pct; /* mean over ranks; NaN */
    struct gwa_job_op *ops;  /* most exposed first */
    size_t ops_count;
    struct gwa_job_late *late; /* who stands out, most first */
    size_t late_count;
    struct gwa_job_worst worst[GWA_JOB_WORST];
    size_t worst_count;
    size_t speaks; /* index of the rank that the findings but those on communication are of */
    double speaks_share_pct; /* of ranks, those that it speaks for: whose verdict is the same */
    struct gwa_finding *findings; /* the first is the job's verdict */
    size_t findings_count;
};

struct gwa_job;

/* ranks: processes; each is known by its index from now on. */
struct gwa_job *gwa_job_new(size_t ranks);
void gwa_job_free(struct gwa_job *job);

/* post: 0, -ENODATA: nothing was recorded (it is no part of the job then), or as
 *       gwa_analyse(). */
int gwa_job_scan(struct gwa_job *job, size_t index, struct gwt_trace *trace,
                 const struct gwa_options *options, struct gwt_error *error);

/* After all scans. post: 0 or -ENOMEM. */
int gwa_job_join(struct gwa_job *job);

/* As gwa_analyse(), with what the join knows; keeps the summary. */
int gwa_job_analyse(struct gwa_job *job, size_t index, struct gwt_trace *trace,
                    const struct gwa_options *options, struct gwa_process **out,
                    struct gwt_error *error);

/* After all of those: the looks that are left to be taken, and at which rank each. */
size_t gwa_job_looks(struct gwa_job *job);
size_t gwa_job_look_at(const struct gwa_job *job, size_t look);
int gwa_job_look(struct gwa_job *job, size_t look, struct gwt_trace *trace,
                 const struct gwa_options *options, struct gwt_error *error);

/* post: 0 and *out, which lives as long as the job, or -ENOMEM. */
int gwa_job_finish(struct gwa_job *job, const struct gwa_job_result **out);

const char *gwa_late_cause_text(unsigned cause);
const char *gwa_late_cause_key(unsigned cause);

#endif
