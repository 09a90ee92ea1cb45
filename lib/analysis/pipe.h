/* A pass over a trace in stages: each sees all events in order, a batch at a time, and they work
 * side by side, each on a batch of its own, so that a stage finds what those before it noted and
 * what comes out is the same whether they do. */
#ifndef GWA_PIPE_H
#define GWA_PIPE_H

#include "steps.h"
#include "sweep.h"

#define GWA_BATCH       8192u /* what stages know moves from core to core once in so many events */
#define GWA_STAGES_MOST 3u

enum gwa_note_what {
    GWA_NOTE_IDLE,   /* idle time was found */
    GWA_NOTE_PASSED, /* the device's time was swept */
    GWA_NOTE_TRIM,   /* that was all devices */
};

/* What the timeline says to the attribution, before event `at` of the batch. */
struct gwa_note {
    struct gwa_idle_time idle; /* PASSED: `start`, the sweep's reach, and `end`, what was settled */
    uint32_t at;
    uint8_t what; /* enum gwa_note_what */
    uint8_t device;
};

struct gwa_batch {
    size_t count;
    struct gwt_event events[GWA_BATCH];
    struct gwa_place places[GWA_BATCH];
    double ns[GWA_BATCH]; /* length on the device of what an event submits; NaN: not known */
    struct gwa_note *notes;
    size_t notes_count, notes_room;
};

/* post: 0, or negative: the pass ends. */
typedef int gwa_stage(void *arg, struct gwa_batch *batch);

/* Over the first `most` events. So many threads, this one among them (0: as many as there are
 * CPUs), take the stages as they come: each is run by one of them at a time. post: 0, -ENOMEM, or
 * what a stage returned. */
int gwa_pipe(struct gwt_trace *trace, uint64_t most, unsigned threads, gwa_stage *const *stages,
             size_t count, void *arg);

unsigned gwa_cpus(void); /* that this process may run on; at least 1 */

struct gwa_note *gwa_note_room(struct gwa_batch *batch); /* for gwa_note() */

/* post: a place for one more note, or NULL without memory */
static inline struct gwa_note *gwa_note(struct gwa_batch *batch)
{
    if (batch->notes_count == batch->notes_room)
        return gwa_note_room(batch);
    return &batch->notes[batch->notes_count++];
}

#endif
