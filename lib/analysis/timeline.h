/* When each device was busy: a model of its streams, driven by the host's calls.
 *
 * Per stream in order of submission, an asynchronous operation starts at the latest of: the
 * end of the one before it plus a gap, the ends it waits for through events and the rules of
 * the legacy default stream, and the return of its call plus the time that a submission takes
 * to arrive. Its length is expected from the samples (durations.h). Copies from the host, and
 * copies to it, go one at a time; events with a time stamp hold up what is behind them. Operations
 * whose call blocks end at its return. A blocking call that waited bounds the model: what it waited
 * for had ended when it returned, so operations that the model ends later are cut. Where the model
 * ends them earlier, the last is stretched as far as the durations' own uncertainty explains.
 * What was cut had, in other streams too, what it waited for before it and what waits for it
 * behind it: either moves with it.
 *
 * Not executions, hence not here: calls that failed or were captured.
 * Not modelled: launch queues that fill, contention between kernels, host functions' length,
 * migration of managed memory; NCCL kernels' length, unless told (else a guess, stretched at
 * blocking calls).
 */
#ifndef GWA_TIMELINE_H
#define GWA_TIMELINE_H

#include "analysis.h"
#include "durations.h"
#include "hist.h"
#include "ranges.h"
#include "sweep.h"

/* On an H200 without a profiler; under one, calls last longer and starts follow sooner. */
#define GWA_START_NS 2300
/* From one engine to another, and from a stream to one that waits for it. */
#define GWA_HANDOVER_NS 1400

/* What blocking calls can tell of a run: the time from the end of the work to the return of the
 * call that waits for it, the gap between operations of a stream, and the hand-over. */
enum gwa_unknown { GWA_WAKE, GWA_GAP, GWA_HANDOVER, GWA_UNKNOWNS };

/* What is not known before a run; 0: as usual. */
struct gwa_model {
    double start_ns; /* from a call's return to the start on an idle device */
    double ns[GWA_UNKNOWNS];
    double kernel_ns; /* by how much kernels last longer than their samples say; or shorter, < 0 */
    bool fixed;       /* not to be learnt in the run */
    double gap_ns;    /* the gap before anything was learnt; 0: it was told, and is as it is */
    /* learnt so far: how far waking up scatters, and how well the means are known */
    double wake_spread_ns, wake_weight, wake_sum;
    double variance[GWA_UNKNOWNS][GWA_UNKNOWNS];
};

/* Launches of one signature, or of one graph, inside the range. */
struct gwa_ran {
    uint64_t count;
    double ns;
    /* signatures: of those inside graphs */
    uint64_t graph_count;
    double graph_ns;
};

struct gwa_timeline_device {
    struct gwa_sweep sweep;
    struct gwa_hist queue; /* return to start of launches, ns */
    uint64_t launches, met_idle;
    struct gwa_ran *signatures;
    size_t signatures_count;
    struct gwa_ran *graphs;
    size_t graphs_count;
    double ns, own_ns;           /* of all operations; of those that rest on own samples */
    double kernels;              /* whose duration may be off together */
    double graphs_doubt_ns;      /* the same of graphs, summed */
    double error2;               /* square of the standard error of `ns` */
    double anchors, residual_ns; /* blocking calls that waited; sum of what the model missed */
    double excess_ns;            /* of that, beyond what waking up explains */
    struct gwa_moved comm[GWA_COMM_OPS]; /* NCCL's kernels whose end was told */
};

#define GWA_TIMELINE_DEVICES 256u

struct gwa_timeline;

/* pre: the arguments outlive it. ranges: those of gwa_ranges_find(), or all. */
struct gwa_timeline *gwa_timeline_new(const struct gwt_trace *trace, struct gwa_ranges *ranges,
                                      const struct gwa_durations *durations,
                                      const struct gwa_model *model);
void gwa_timeline_free(struct gwa_timeline *t);

/* Before the first event: how long NCCL's kernels last (analysis.h). */
void gwa_timeline_comm(struct gwa_timeline *t, const struct gwa_comm_time *list, size_t count);
/* Before the first event: who is told of idle time (sweep.h). */
void gwa_timeline_listen(struct gwa_timeline *t, gwa_on_idle *on_idle, void *arg);
/* Sweeps over all that is most likely final. */
void gwa_timeline_settle(struct gwa_timeline *t);
/* All before was swept then. */
int64_t gwa_timeline_settled(const struct gwa_timeline *t);

/* Every event of the trace, in order. place: where it belongs; NULL: in no step.
 * post: 0 or -ENOMEM; *ns: length of the operation that it submitted, 0: none. */
int gwa_timeline_event(struct gwa_timeline *t, const struct gwt_event *e,
                       const struct gwa_place *place, double *ns);
/* After the last. post: 0 or -ENOMEM. */
int gwa_timeline_finish(struct gwa_timeline *t);

/* NULL where nothing ran. */
const struct gwa_timeline_device *gwa_timeline_of(const struct gwa_timeline *t, unsigned device);
/* Copies of a stream by direction and kind of memory; NULL where there were none. memory: 0
 * device, 1 pinned, 2 pageable, as in enum gwa_memory. */
const struct gwa_moved *gwa_timeline_moved(const struct gwa_timeline *t, unsigned stream,
                                           unsigned direction, unsigned memory);
/* Union of its operations, ns. */
static inline double gwa_timeline_busy(const struct gwa_timeline_device *d)
{
    return d->sweep.sums.wall - d->sweep.sums.idle;
}
/* As calibrated at the end, for the timeline that is to count. */
struct gwa_model gwa_timeline_model(const struct gwa_timeline *t);

#endif
