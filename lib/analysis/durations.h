/* How long operations last on the device, learnt from the recording's samples.
 *
 * A sample is the time between two events around one operation; less what the pair itself
 * adds (a constant per class, measured in the run) it is the operation's duration. Kernel
 * time means what CUPTI means by it: GWA_KERNEL_OFFSET_NS more than a kernel that takes its
 * own time sees, against which the constant is measured.
 *
 * Operations of one signature are not all alike: a matrix product whose operands differ in a
 * size that the launch does not show, for instance. So each sample is also filed under what
 * ran before it in its stream. Where that explains the differences better than chance would,
 * an operation is expected to last as those in the same place did, drawn towards the
 * signature's mean as far as the samples are few (a random-effects estimate).
 *
 * And where the launches of a function take turns, whatever came before, each lasts as its turn
 * does (durations_turns.c). All of them last longer or shorter with the device's clock
 * (durations_drift.c).
 *
 * Use: every event once through gwa_durations_event(), gwa_durations_fit(), then
 * gwa_durations_of() for each operation, in the same order.
 */
#ifndef GWA_DURATIONS_H
#define GWA_DURATIONS_H

#include <gpuwait/trace.h>

/* On sm_90; measured with a self-timing kernel of known length. Elsewhere it is assumed, and
 * the error bound grows by GWA_KERNEL_OFFSET_DOUBT_NS. */
#define GWA_KERNEL_OFFSET_NS       600
#define GWA_KERNEL_OFFSET_DOUBT_NS 500

/* How much later an operation starts and the one behind it, because it was timed. */
struct gwa_delay {
    double events; /* what an event between it and its neighbour adds, gap included */
    double before; /* the same before it: colder, or not, for what was ahead */
    double spacer; /* that comes first */
};

/* Ids of signatures and graphs come from a file: beyond, they are not believed. */
#define GWA_TIMED_MAX (1u << 20)

#define GWA_CONTEXT 8 /* deeper ones told no more apart on real runs */

/* What ran before in a stream; zero at its beginning. */
struct gwa_context {
    uint32_t before[GWA_CONTEXT]; /* a ring */
    uint32_t last, next;
    uint64_t hash; /* of all of them, in order */
};

struct gwa_duration {
    double ns;     /* of a single one: drawn from those like it; of all together: expected */
    double error;  /* standard error of that, common to all operations of one signature */
    double spread; /* standard deviation of a single one around it */
    double place;  /* further error where other places of its signature differ, and of this one
                      there are no samples; else 0 */
    bool own;      /* rests on samples of its own signature, graph, or class of copies */
    bool guessed;  /* rests on no sample of its function at all */
    bool comm;     /* of one launch: as gwa_durations_is_comm() */
};

/* Beyond this share of kernels whose function was never timed, times are not known well enough. */
#define GWA_GUESSED_MOST 0.2

struct gwa_durations;

struct gwa_durations *gwa_durations_new(const struct gwt_trace *trace);
void gwa_durations_free(struct gwa_durations *d);
/* Bytes of tables that grow with the ids in a file. */
size_t gwa_durations_used(const struct gwa_durations *d);

/* post: 0 or -ENOMEM. */
int gwa_durations_event(struct gwa_durations *d, const struct gwt_event *e);
int gwa_durations_fit(struct gwa_durations *d);

/* Valid samples; 0: nothing below says anything. */
uint64_t gwa_durations_samples(const struct gwa_durations *d);

/* Before the events are gone through once more. */
void gwa_durations_restart(const struct gwa_durations *d);

/* pre:  e is an executed launch, graph launch, copy or memset; context is that of its stream.
 * post: the context holds e too. Copies from and to pageable memory: as if pinned. */
void gwa_durations_of(const struct gwa_durations *d, const struct gwt_event *e,
                      struct gwa_context *context, struct gwa_duration *out);

/* The same for all operations of a signature together; context left aside. */
struct gwa_duration gwa_durations_signature(const struct gwa_durations *d, uint32_t signature);
struct gwa_duration gwa_durations_graph(const struct gwa_durations *d, uint32_t graph);
/* in_row: behind one in the same direction, or behind another memset. */
struct gwa_duration gwa_durations_copy(const struct gwa_durations *d, unsigned direction,
                                       uint64_t bytes, uint64_t copies, bool in_row);
struct gwa_duration gwa_durations_memset(const struct gwa_durations *d, uint64_t bytes,
                                         bool in_row);

/* By how much each kernel's duration may be off together with all others': ns below, above. */
struct gwa_delay gwa_durations_delay(const struct gwa_durations *d, enum gwt_timed timed);
void gwa_durations_doubt(const struct gwa_durations *d, double *below, double *above);

/* A kernel of NCCL: communication, and never sampled. */
bool gwa_durations_is_comm(const struct gwa_durations *d, uint32_t signature);

/* Between two kernels of a stream, or two nodes of a graph that wait for each other, where the
 * run did not measure it, ns. */
#define GWA_GAP_NS       700
#define GWA_GRAPH_GAP_NS 900
/* As measured in the run with kernels that take their own time, of which CUPTI counts more as the
 * kernel's. post: false where it was not, *ns as above. error: how far off it may be. */
bool gwa_durations_gap(const struct gwa_durations *d, bool graph, double *ns, double *error);
/* How much slower than usual this device goes on to what comes next, as far as its gap tells. */
double gwa_durations_pace(const struct gwa_durations *d);
/* Between the nodes of one graph, by what its samples make of that. `usual`: between operations
 * of a stream, which are no closer. */
double gwa_durations_graph_gap(const struct gwa_durations *d, uint32_t graph, double usual);

#endif
