/* Training or inference steps, found from the calls.
 *
 * A step is the work that recurs: one optimizer step of a training loop, one token of a
 * generation loop, one replay of a captured step. It begins with the entry of its first
 * submission on the thread that drives it and ends where the next one begins, so the host's
 * time between two steps belongs to the earlier one.
 *
 * Use: every event once through gwa_steps_event(), gwa_steps_find(), then, in the pass that
 * places operations in time, gwa_steps_place() for each event in the same order.
 */
#ifndef GWA_STEPS_H
#define GWA_STEPS_H

#include <gpuwait/trace.h>

#define GWA_STEPS_MAX (1u << 19) /* beyond, steps are no longer listed one by one */

#define GWA_PHASES(X)                                                                              \
    X(OTHER, "other") /* outside steps, or not told apart */                                       \
    X(FORWARD, "forward")                                                                          \
    X(BACKWARD, "backward") /* autograd's threads, what they recompute included */                 \
    X(OPTIMIZER, "optimizer")

enum gwa_phase {
#define X(id, text) GWA_PHASE_##id,
    GWA_PHASES(X)
#undef X
        GWA_PHASE_COUNT
};

enum gwa_step_kind {
    GWA_STEP_WARMUP, /* before the loop ran evenly: excluded from times */
    GWA_STEP_STEADY,
    GWA_STEP_UNUSUAL, /* one of the loop's steps with more work: saving, logging, evaluation */
    GWA_STEP_OTHER,   /* between loops, evaluation phases: work that no step accounts for */
};

struct gwa_step {
    int64_t from, to;     /* half open, CLOCK_MONOTONIC ns; to = from of the next */
    int64_t backward_end; /* return of the last submission of the last backward pass */
    uint16_t backwards;   /* passes */
    uint8_t kind;         /* enum gwa_step_kind */
};

/* Where an event belongs. */
struct gwa_place {
    uint32_t step; /* index; UINT32_MAX: in none */
    uint8_t phase; /* enum gwa_phase */
    /* a launch of the forward pass, repeated during backward: with it, so many of the last */
    uint8_t recompute;
};

struct gwa_steps;

/* range: steps are the ranges of this NVTX name; kernel: a step begins with each launch of a
 * kernel whose demangled name holds this text. NULL: found by themselves. */
struct gwa_steps *gwa_steps_new(const struct gwt_trace *trace, const char *range,
                                const char *kernel);
void gwa_steps_free(struct gwa_steps *s);

/* post: 0 or -ENOMEM. */
int gwa_steps_event(struct gwa_steps *s, const struct gwt_event *e);
/* After the last event. No more steps are listed than fit into `room` bytes.
 * post: 0, whether or not steps were found, or -ENOMEM. */
int gwa_steps_find(struct gwa_steps *s, size_t room);
/* What is kept of one for the second pass, here and in memory.c. */
#define GWA_STEP_BYTES 236u

/* In time order. count 0: none found. */
size_t gwa_steps_count(const struct gwa_steps *s);
const struct gwa_step *gwa_steps_list(const struct gwa_steps *s);
/* From the first step that is not warm-up to the end of the last step.
 * post: false where no steps were found, or too doubtful ones to leave anything out. */
bool gwa_steps_steady(const struct gwa_steps *s, int64_t *from, int64_t *to);

/* The second pass, events in the same order; counts what the result holds per step.
 * post: 0 or -ENOMEM. */
int gwa_steps_place(struct gwa_steps *s, const struct gwt_event *e, struct gwa_place *out);
/* Every event that was placed in a step, in the same order, some time after; another thread may
 * do so.
 * gpu_ns: expected duration on the device of what e submits; 0 for other events, NaN where
 * nothing was sampled. */
void gwa_steps_took(struct gwa_steps *s, const struct gwt_event *e, const struct gwa_place *place,
                    double gpu_ns);

/* After the second pass: everything of struct gwa_step_summary (analysis.h). */
struct gwa_step_summary;
int gwa_steps_summary(struct gwa_steps *s, struct gwa_step_summary *out);

#endif
