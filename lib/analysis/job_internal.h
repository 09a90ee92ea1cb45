/* Between the files of the job: rows of one rank (job_scan.c), collectives over all of them
 * (job_join.c, job_transfer.c, job_clock.c), who was late (job_late.c), results (job.c). */
#ifndef GWA_JOB_INTERNAL_H
#define GWA_JOB_INTERNAL_H

#include "job.h"
#include "ranges.h"

#include <pthread.h>

#define NEVER INT64_MIN

/* What operations carry over each link, in units of what a call passes, on n ranks:
 * X(id, name, factor). NCCL's own convention (its tests' bus bandwidth). */
#define JOB_OPS(X)                                                                                 \
    X(ALL_REDUCE, "AllReduce", 2 * (n - 1) / n)                                                    \
    X(ALL_GATHER, "AllGather", n - 1)                                                              \
    X(REDUCE_SCATTER, "ReduceScatter", n - 1)                                                      \
    X(BROADCAST, "Broadcast", 1)                                                                   \
    X(REDUCE, "Reduce", 1)                                                                         \
    X(ALL_TO_ALL, "AlltoAll", n - 1)                                                               \
    X(GATHER, "Gather", n - 1)                                                                     \
    X(SCATTER, "Scatter", n - 1)                                                                   \
    X(SEND_RECV, "SendRecv", 1)                                                                    \
    X(OTHER, "other", NAN)

enum job_op {
#define X(id, name, factor) JOB_##id,
    JOB_OPS(X)
#undef X
        JOB_OP_COUNT
};

const char *gwa_job_op_name(unsigned op);
double gwa_job_op_factor(unsigned op, double ranks);

/* So long after the end of a row of the rank's, or of one of its `latest` (both numbered from 1; 0:
 * none). */
#define JOB_LATEST 0x80000000u /* with the number of one of those */
struct job_term {
    uint32_t of;
    int64_t after;
};

/* When something is over, by what is known of one rank: no sooner than `host`, which is a time of
 * its clock, and than either of two others. */
struct job_moment {
    int64_t host;  /* NEVER */
    int64_t since; /* `host` less this was modelled: from a submission, or what a call showed */
    struct job_term on[2]; /* the older first */
    uint32_t base;         /* the newest row that it has ever waited for */
};

/* A moment that others go on from. */
struct job_latest {
    int64_t host, since;
    struct job_term on[2]; /* older rows, and older ones of its kind */
    uint32_t newest;       /* row that it waits for */
};

#define JOB_NO_COMM 0xffffu

struct job_row {       /* one kernel of NCCL */
    int64_t submitted; /* entry of the call */
    int64_t host;      /* ready for it: as struct job_moment ... */
    float after[2];
    uint32_t on[2];
    float modelled; /* ns that lead to `host` */
    uint32_t base;
    uint32_t
        before; /* ... and once this row's kernel ended, which is the one before in its stream */
    uint32_t number; /* in its communicator */
    uint16_t comm;   /* index in job_rows.comms; JOB_NO_COMM: not matched */
    uint8_t op;      /* enum job_op */
    uint8_t calls;   /* that it serves; 255: so many or more */
    float bytes;
    /* submitted so far by the process: 100 ns of kernels and of copies, and how many kernels */
    uint32_t compute, copies, kernels;
};

/* A blocking call that waited, and returned so: what it waited for. */
struct job_seen {
    int64_t at; /* the end of it */
    int64_t host;
    struct job_term on[2];
    struct job_term newest; /* row: the collective that it may tell the end of */
    float modelled;         /* as of a row */
    float lasted_ns;        /* the call */
};

/* A call that found the work done lasts for a while too, and may end long after that was: the end
 * was during the call if it was no longer before than so many times as long. */
#define JOB_CAUGHT 20

struct job_comm {      /* of one process */
    uint64_t identity; /* between two: of the pair */
    int ranks, rank;   /* -1: unknown */
    uint32_t id;       /* of the definition */
    int peer;          /* -1: a collective's */
    uint32_t next;     /* number of the next call, of the next kernel between two */
    uint32_t shared;   /* join: index in job.comms */
};

struct job_rows {
    struct job_row *list;
    size_t count, room, most;
    struct job_latest *latest;
    size_t latest_count, latest_room;
    bool cut;  /* there were more */
    bool gaps; /* events are missing, so that its calls are not numbered as the others' */
    struct job_seen *seen;
    size_t seen_count, seen_room;
    struct job_comm *comms;
    size_t comms_count, comms_room;
    uint64_t sampled;              /* 0: nothing was timed, so that no row says anything */
    uint64_t kernels, guessed;     /* of others than NCCL; whose function was never timed */
    double copy_ns, timed_copy_ns; /* of copies; of those whose kind was timed */
    int64_t first, last;           /* first launch, return of the last event */
    int64_t timed;                 /* operation that was sampled first; NEVER */
};

/* NULL: it is a row, or none. */
static inline const struct job_latest *job_latest_of(const struct job_rows *rows, uint32_t of)
{
    return of & JOB_LATEST ? &rows->latest[(of & ~JOB_LATEST) - 1] : NULL;
}

/* job_calls.c */
struct job_calls {
    const struct gwt_trace *trace;
    struct job_rows *rows;
    struct job_thread *threads; /* by id */
    size_t threads_count;
    uint8_t *ops; /* by api; 0: not looked at, else enum job_op + 1, or that it is none */
};
int gwa_job_calls_init(struct job_calls *s, const struct gwt_trace *trace, struct job_rows *rows);
void gwa_job_calls_free(struct job_calls *s);
/* The newest row is of this launch. Each: 0 or -ENOMEM. */
int gwa_job_calls_kernel(struct job_calls *s, const struct gwt_event *e);
int gwa_job_calls_nccl(struct job_calls *s, const struct gwt_event *e);
int gwa_job_calls_group(struct job_calls *s, const struct gwt_event *e);

/* job_scan.c. post: 0, -ENODATA: no event, -ENOMEM, -ECANCELED. */
int gwa_job_rows(struct gwt_trace *trace, const struct gwa_options *options, size_t most,
                 struct job_rows *out);
void gwa_job_rows_free(struct job_rows *rows);

/* ---- over all ranks ------------------------------------------------------------------ */

struct job_clock {         /* of a host: its monotonic clock is the first host's plus this */
    int64_t offset, since; /* at the time `since` of its own */
    double drift;          /* ns per ns after that */
};

static inline int64_t job_common(const struct job_clock *c, int64_t t)
{
    return t == NEVER ? t : t - c->offset - (int64_t)(c->drift * (double)(t - c->since));
}
static inline int64_t job_own(const struct job_clock *c, int64_t common)
{
    /* one more round leaves drift squared */
    int64_t t = common + c->offset;
    return t + (int64_t)(c->drift * (double)(t - c->since));
}

struct job_host {
    char *name;
    uint8_t boot_id[16];
    size_t ranks;
    bool aligned;
    struct job_clock clock;
    double uncertainty_ns, jitter_ns;
    uint64_t matches;
};

struct job_post {       /* a rank's part in a collective */
    uint32_t rank, row; /* indices */
};

/* Kinds of transfers that are told apart: an operation, over so many ranks, within one host or
 * not. The most frequent ones; the rest shares the last, about which nothing is learnt. */
#define JOB_KINDS 7

struct job_kind {
    uint32_t ranks;
    uint8_t op;
    bool hosts; /* between hosts */
    uint64_t count;
    float largest; /* bytes */
    /* A transfer takes a constant and a time per byte. */
    double ns, per_byte;
    uint64_t measured; /* returns of calls that this rests on; 0: a guess */
    bool hidden;       /* beside other work: it stays a guess */
};

struct job_collective {
    int64_t last, end;    /* on the common clock: latest arrival; NEVER: not known yet */
    int64_t shown, bound; /* ends as blocking calls showed it: so, no later; NEVER: none did */
    float bytes;
    uint32_t comm, number;
    uint32_t posts;  /* index of the first in job.posts ... */
    uint32_t count;  /* ... and how many */
    uint32_t posted; /* join: so many have come */
    uint32_t late;   /* index of the rank that came last ... */
    uint32_t blamed; /* ... and of the one that was ready last; job_late.c */
    uint8_t op, kind;
    bool waited_for; /* something else waits for its end: it is not only passed by */
    bool anchored;   /* its end is what was shown, or a bound */
    float modelled;  /* ns of a rank that lead to `last` since what is anchored */
    /* Of transfers that its end rests on since the newest that is anchored: of each kind, how
     * many, and their bytes. */
    struct {
        float calls, bytes;
    } path[JOB_KINDS];
};

struct job_shared { /* a communicator */
    uint64_t identity;
    uint32_t members; /* processes that have it */
    int ranks;        /* as its creation said; -1: not known */
    uint32_t host;    /* of its first member */
    bool hosts;       /* it has members on others */
    bool usable;      /* its members' clocks can be compared, and their calls match */
    bool pair;        /* of two ranks, for messages */
    bool mixed;       /* one number, several operations: calls are missing somewhere */
};

struct job_findings {
    struct gwa_finding *list;
    size_t count;
};

/* One of the latest: its end on the common clock, the row whose end decides that (0: none), and how
 * much was modelled from there. */
struct job_latest_end {
    int64_t end; /* NEVER: not known yet; `row` is then that one of them which asks for it */
    uint32_t row;
    float modelled;
};

struct job_rank {
    struct job_rows rows;
    int64_t *starts; /* by row, common clock: when its stream came to it */
    struct job_latest_end *latest;
    size_t cursor;
    uint32_t host;
    bool known; /* it was scanned */
    bool analysed;
    int64_t from, to; /* what its times are of, own clock; the extremes: all */
    struct gwa_job_rank out;
    double off_pct; /* of wall time, by which blocking calls showed its model to be off */
    struct gwa_comm_use comm[GWA_COMM_OPS];
    struct job_findings findings;
    struct gwa_kernel *kernels; /* by name: mean_us; of those that have one */
    size_t kernels_count;
    double copy_gb_per_s; /* from and to the host, by device time; NaN */
    double link_ns; /* by how much it sees collectives end later than others of its host; NaN */
    /* late: waiting that it caused, ns per other rank */
    double caused, by_cause[GWA_LATE_CAUSE_COUNT];
    uint64_t times;
};

/* A look at one rank in the time before the collectives to which `late` came last. */
#define JOB_LOOKS 8
struct job_look {
    size_t late, rank;
    double idle_ms[GWA_IDLE_CLASS_COUNT];
    /* of each class, where most of it was; the strings are malloc'ed */
    struct {
        double ms;
        char *python, *api, *after, *before;
    } site[GWA_IDLE_CLASS_COUNT];
    bool done;
};

struct gwa_job {
    size_t count;
    struct job_rank *ranks;
    pthread_mutex_t lock; /* of hosts */
    struct job_host *hosts;
    size_t hosts_count, hosts_room;
    struct job_shared *comms;
    size_t comms_count, comms_room;
    struct job_collective *collectives;
    size_t collectives_count;
    struct job_kind kinds[JOB_KINDS];
    double off_share; /* of modelled time, by which that is off; 0: not learnt yet */
    int64_t timed;    /* common clock: all ranks have been sampled since; NEVER */
    struct job_post *posts;
    int64_t from, to; /* common clock: what all times are of */
    struct job_look looks[JOB_LOOKS];
    size_t looks_count;
    struct gwa_job_result result;
};

static inline const struct job_clock *job_clock_of(const struct gwa_job *job, size_t rank)
{
    return &job->hosts[job->ranks[rank].host].clock;
}

/* job_match.c: rows of one collective find together. post: rows' `number` is the index of their
 * collective, their `comm` JOB_NO_COMM where they have no partner. 0 or -ENOMEM. */
int gwa_job_match(struct gwa_job *job);

/* job_clock.c. post: hosts' clocks, and which communicators are usable. 0 or -ENOMEM. */
int gwa_job_align(struct gwa_job *job);

/* job_seen.c. How many calls, of all ranks. */
size_t gwa_job_seen(const struct gwa_job *job);
/* When it should have returned, by all but its newest collective, or by that too; and the modelled
 * time which that rests on. */
struct job_expected {
    int64_t at;
    double modelled;
    const struct job_collective *path; /* whose transfers lead there; NULL: none */
};
struct job_expected gwa_job_without_newest(const struct gwa_job *job, size_t rank,
                                           const struct job_seen *s);
/* pre: run. post: `off_share`, by the ends as they are before anything was learnt, and `timed`. 0
 * or -ENOMEM. */
int gwa_job_learn_share(struct gwa_job *job);
/* pre: run. post: `shown` and `bound` of the collectives, by their ends as they are now. 0 or
 * -ENOMEM. */
int gwa_job_see(struct gwa_job *job);

/* job_transfer.c. post: run, as often as it takes; the kinds' times, and `shown` and `bound`. 0 or
 * -ENOMEM. */
int gwa_job_settle(struct gwa_job *job);
/* One round of it, after a run. 0 or -ENOMEM. */
int gwa_job_learn(struct gwa_job *job);
double gwa_job_transfer_ns(const struct job_kind *k, double calls, double bytes);
/* How far the model may be off where it comes to a collective. */
double gwa_job_doubt_ns(const struct gwa_job *job, const struct job_collective *c);
/* Until more is known, less than any link takes: what ends are shown then is corrected upwards,
 * while a longer guess would explain every wait. */
#define JOB_GUESS_NS       5000
#define JOB_GUESS_PER_BYTE 0.001

/* job_join.c: starts and ends, by what is known of transfers. */
void gwa_job_run(struct gwa_job *job);
/* job.c. NULL, or why nobody can be called late. *told: whether the ends of collectives are known
 * well enough for each rank's own report. */
const char *gwa_job_why_not(const struct gwa_job *job, bool *told);

/* pre: run. When the rank was ready for a row, had its stream been free. */
int64_t gwa_job_row_ready(const struct gwa_job *job, size_t rank, uint32_t row);

/* job_late.c. pre: all were analysed. post: from, to, and who caused how much waiting. 0 or
 * -ENOMEM. */
int gwa_job_blame(struct gwa_job *job);
/* What `look` is at, own clock of its rank: malloc'ed, sorted, disjoint. */
int gwa_job_look_windows(const struct gwa_job *job, const struct job_look *look,
                         struct gwa_interval **out, size_t *count);
/* Who stands out, most first: indices of ranks. post: how many, at most `most`. */
size_t gwa_job_outliers(const struct gwa_job *job, size_t *list, size_t most);
/* Wall time that shares are of, ns; NaN. */
double gwa_job_wall_ns(const struct gwa_job *job);

/* job_result.c. post: all of job->result but the findings. 0 or -ENOMEM. */
int gwa_job_sum_up(struct gwa_job *job);
void gwa_job_result_free(struct gwa_job *job);

/* job_findings.c */
int gwa_job_find(struct gwa_job *job);
int gwa_job_keep_findings(const struct gwa_process *p, struct job_findings *out);
void gwa_job_findings_free(struct job_findings *f);

static inline bool job_inside(const struct gwa_job *job, const struct job_collective *c)
{
    return c->end != NEVER && c->last >= job->from && c->last < job->to &&
           job->comms[c->comm].usable && c->count > 1;
}

/* job_join.c. pre: run. post: NEVER: its collective never came about. */
int64_t gwa_job_row_end(const struct gwa_job *job, size_t rank, uint32_t row);
/* The same of a row or one of the latest; *row: whose end that goes on from, *modelled: and for how
 * long. */
int64_t gwa_job_end_of(const struct gwa_job *job, size_t rank, uint32_t of, uint32_t *row,
                       float *modelled);

#endif
