/* From one device's figures to drafts of findings. */
#ifndef GWA_FINDINGS_INTERNAL_H
#define GWA_FINDINGS_INTERNAL_H

#include "findings.h"
#include "steps.h"

enum gwa_finding_id {
#define FINDING(NAME, id, rank, effort, remedy, cannot_know) GWA_FIND_##NAME,
#include "findings.def"
    GWA_FINDING_IDS,
    GWA_FIND_NONE = GWA_FINDING_IDS,
};

/* In this order. DOUBT: an inconclusive recording in which nothing else can be trusted. */
enum gwa_rank { GWA_RANK_RISK, GWA_RANK_DOUBT, GWA_RANK_GAIN, GWA_RANK_STATE, GWA_RANK_HINT };
unsigned gwa_finding_rank(const char *id);
enum gwa_effort { GWA_EFFORT_NONE, GWA_EFFORT_CHEAP, GWA_EFFORT_WORK };

/* ---- thresholds -----------------------------------------------------------------------
 * Shares are of wall time. None rests on the sizes of a program. */

/* Below, idle of one cause is not told from the timeline's own error: single classes of gaps
 * came out within 1.6 points of a full trace. */
#define GWA_MENTION_PCT 2.0
/* Worth changing a program for: twice that error. */
#define GWA_MATERIAL_PCT 3.0
/* From here on the device is used well, and what takes work is not worth it ... */
#define GWA_HEALTHY_PCT 75.0
/* ... and where it has work in its queue for so much of the time it is the limit: what is left
 * between one operation and the next that is there already no host can fill. */
#define GWA_BOUND_PCT 90.0
/* Then one cause comes before that only if it is most of what the device does not compute ... */
#define GWA_MOST (2.0 / 3)
/* ... and twice what is worth a change elsewhere. */
#define GWA_MATERIAL_AT_LIMIT_PCT (2 * GWA_MATERIAL_PCT)
/* Above, a slightly larger batch or a fragmented pool ends the run. */
#define GWA_MEMORY_FULL_PCT 90.0
/* "In every step", with some slack for steps that skip it. */
#define GWA_EVERY_STEP 0.5
/* A loop's own reads (loss, norm, scale, finite, end of text) are a handful per pass; more of
 * them come from a loop over parameters or modules. */
#define GWA_STORM_READS 10.0
/* The same without steps: per launch. A step has hundreds of launches. */
#define GWA_STORM_PER_LAUNCH 0.02
/* Up to here a copy costs its latency, not its bytes (55 GB/s moves 64 KiB in 1.2 us; its pair
 * of events takes 9). */
#define GWA_SMALL_COPY (64.0 * 1024)
/* Workers run in step with periods of their number; nobody has more than a core each. */
#define GWA_WORKERS_MOST 64u
/* Lost events, of those recorded: beyond, gaps may be lost submissions. */
#define GWA_LOST_SHARE 0.01
/* Cores: half of one is more than a pin or logging thread takes. */
#define GWA_BUSY_CORES 0.5
/* ... and more than this is no single thread, so not the holder of a lock. */
#define GWA_ONE_CORE 1.3

/* Idle that one cause accounts for: its sites, added up. */
struct gwa_claim {
    double pct; /* of wall time */
    double idle_ms, host_ms, count, per_step;
    double cpu_ms, cpu_of_ms;   /* CPU time, and the host time that it was measured over */
    double core_ms, core_of_ms; /* the same of the process's other threads */
    double bytes_to_host, bytes_to_device;
    const struct gwa_site *top; /* most idle */
};

/* Blocking calls of one kind. */
struct gwa_reads {
    double pct; /* of wall time: idle that they brought about, see claim_reads() */
    double bound_pct;
    double count, per_step, waited_ms;
    double in_backward;                  /* of `count` */
    double values;                       /* of `count`: that read some bytes */
    const struct gwa_drain *top, *value; /* most idle: of all, of those */
    const char *python;                  /* the line where most of it was, of those that have one */
    double python_ms;
};

static inline double gwa_at_least_0(double x) /* NaN too */
{
    return x > 0 ? x : 0;
}

struct gwa_view {
    const struct gwt_trace *trace;
    const struct gwa_process *p;
    const struct gwa_device *d;
    double wall_ms;
    bool timed;           /* idle and its classes are known */
    bool stepped;         /* steps were found */
    double busy_pct;      /* NaN */
    double work_pct;      /* of that, computing: what well used means; NaN */
    double supplied_pct;  /* busy but with other ranks, or between two operations of which the later
                             was there already; NaN */
    double flow_pct;      /* idle of launches that came late, and of the framework between them */
    double in_graphs_pct; /* idle between the nodes of graphs */
    double passes;        /* micro-batches per step, at least 1 */
    double lost;          /* share of events */
    bool offloading, dumping, churning, pinning, recording;
    struct gwa_claim claims[GWA_FINDING_IDS];
    struct gwa_reads reads[GWA_FINDING_IDS]; /* of SYNC_*, SHAPE_SYNC, DEVICE_SYNC, AUTOTUNE */
    double drained_launch_pct;               /* part of launch and dispatch that `reads` hold */
    bool any_gain;                           /* for states: something is worth a change */
};

/* The device is the limit, not the host. */
static inline bool gwa_at_limit(const struct gwa_view *v)
{
    return v->work_pct >= GWA_HEALTHY_PCT && v->supplied_pct >= GWA_BOUND_PCT;
}

void gwa_view_fill(struct gwa_view *v, const struct gwt_trace *trace, const struct gwa_process *p,
                   const struct gwa_device *d);

/* pre: sections have been claimed. post: `reads` and what they hold of `flow_pct`. */
void gwa_claim_drains(struct gwa_view *v);

/* Every how many steps it is there, or takes long; 0: not regularly. */
static inline unsigned gwa_rhythm(const struct gwa_site *s)
{
    return s->wave ? s->wave : s->period;
}

/* The thread wanted the CPU in this section and was taken off it again and again. */
bool gwa_starved(const struct gwa_site *s);

/* Wall time in which copies of this direction ran and no kernel did. Transfers count over the
 * whole recording, so they only divide what the window has. */
double gwa_exposed_pct(const struct gwa_view *v, unsigned direction, bool pageable_only);

/* ---- writing a finding ---- */

struct gwa_text {
    char *s;
    size_t used, room;
};

struct gwa_draft {
    struct gwa_finding f;
    uint8_t id;            /* enum gwa_finding_id */
    uint8_t rank;          /* enum gwa_rank */
    double weight;         /* where it comes among GAINs: its bound, or less */
    double waits_per_step; /* blocking calls that it is about; 0: none */
    struct gwa_text what, where, remedy;
    size_t evidence_room;
    bool failed; /* out of memory */
};

void gwa_say(struct gwa_draft *d, struct gwa_text *t, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define WHAT(...)   gwa_say(f, &f->what, __VA_ARGS__)
#define REMEDY(...) gwa_say(f, &f->remedy, __VA_ARGS__)
#define WHERE(...)  gwa_say(f, &f->where, __VA_ARGS__)

/* A number that is NaN is not said. */
void gwa_evidence(struct gwa_draft *d, const char *key, double number);
void gwa_evidence_text(struct gwa_draft *d, const char *key, const char *text);

/* For use inside one call of gwa_say(), each on its own buffer. */
#define GWA_NUMBER 32
const char *gwa_pct_text(char buffer[GWA_NUMBER], double pct);
const char *gwa_bytes_text(char buffer[GWA_NUMBER], double bytes);
const char *gwa_ms_text(char buffer[GWA_NUMBER], double ms);
const char *gwa_count_text(char buffer[GWA_NUMBER], double count);
const char *gwa_times_text(char buffer[GWA_NUMBER], double times); /* "once", "3 times" */
#define PCT(v)   gwa_pct_text((char[GWA_NUMBER]){0}, v)
#define BYTES(v) gwa_bytes_text((char[GWA_NUMBER]){0}, v)
#define MS(v)    gwa_ms_text((char[GWA_NUMBER]){0}, v)
#define COUNT(v) gwa_count_text((char[GWA_NUMBER]){0}, v)
#define TIMES(v) gwa_times_text((char[GWA_NUMBER]){0}, v)

/* Evidence and place common to all findings of host sections and of blocking calls. */
void gwa_cite_claim(struct gwa_draft *d, const struct gwa_view *v, const struct gwa_claim *c);
void gwa_cite_reads(struct gwa_draft *d, const struct gwa_view *v, const struct gwa_reads *r);
const char *gwa_phase_text(unsigned phase);

/* pre: d is empty but for its id and rank. post: whether the finding holds; it has evidence. */
#define FINDING(NAME, id, rank, effort, remedy, cannot_know)                                       \
    bool gwa_rule_##NAME(const struct gwa_view *v, struct gwa_draft *f);
#include "findings.def"

#endif
