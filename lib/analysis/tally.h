/* What the pass over the events adds up; results are made from it afterwards. Everything
 * is indexed by small ids, so that an event costs a few additions. */
#ifndef GWA_TALLY_H
#define GWA_TALLY_H

#include "analysis.h"
#include "attribute.h"
#include "hist.h"
#include "idle.h"
#include "memory.h"
#include "ranges.h"
#include "step_calls.h"
#include "steps.h"
#include "timeline.h"

#define GWA_DEVICES    256u /* the last stands for "not known on which" */
#define GWA_NO_DEVICE  0xffu
#define GWA_TALLY_ROOM (32u << 20)
/* What is kept of kernels, graphs and steps in the first pass: all are many in no real recording,
 * and a small file may have been made so. */
#define GWA_LISTS_ROOM (120u << 20)

struct gwa_api_tally {
    uint64_t calls, failed, captured;
    uint64_t bytes;
    uint64_t ns;
    uint8_t kind, level, seen;
    struct gwa_hist *hist; /* launches and graph launches */
};

struct gwa_copy_tally {
    uint64_t calls, bytes;
    uint64_t blocking, blocking_bytes, blocking_ns;
};

struct gwa_stream_tally {
    uint64_t launches, copies, memsets, collectives, syncs;
    uint8_t device, seen;
    /* [direction][memory], made at the first copy */
    struct gwa_copy_tally (*transfers)[GWA_MEM_COUNT];
};

struct gwa_thread_tally {
    uint64_t calls, launches, waited_ns;
    int64_t last_launch; /* entry; INT64_MIN: none, or a blocking call since */
};

struct gwa_graph_tally {
    uint64_t launches, approximate;
};

struct gwa_device_tally {
    uint64_t *signatures; /* executed launches by signature id */
    size_t signatures_count;
    uint64_t unnamed;               /* launches whose signature id is not believed */
    struct gwa_graph_tally *graphs; /* by graph id */
    size_t graphs_count;
    struct gwa_graph_tally lost_graphs; /* whose id is not believed */
    struct gwa_copies memsets, prefetches;
    int64_t first, last; /* entry of the first operation, return of the last */
    bool operated;
    /* PyTorch's allocator */
    bool reported;
    int64_t since; /* the values below hold from then on */
    uint64_t allocated, reserved;
    int64_t peak_allocated, peak_reserved; /* -1: none inside the range yet */
};

struct gwa_tally {
    struct gwt_trace *trace;
    uint64_t events;
    unsigned workers;         /* gwa_options.threads */
    struct gwa_ranges ranges; /* what counts are of */
    struct gwa_ranges window; /* what times are of: part of it, once steps are known */
    bool windowed;            /* it is less */
    struct gwa_idle *idle;    /* of the window, in the last pass */
    struct gwa_durations *durations;
    struct gwa_steps *steps;
    struct gwa_timeline *timeline; /* NULL: the recording holds no samples */
    struct gwa_memory_use *memory;
    struct gwa_step_calls *step_calls;
    struct gwa_attribution *attribution; /* of its idle time */
    struct gwa_api_tally *apis;          /* by id */
    size_t apis_count;
    struct gwa_stream_tally *streams; /* by id */
    size_t streams_count;
    struct gwa_thread_tally *threads; /* by thread id */
    size_t threads_count;
    struct gwa_device_tally *devices[GWA_DEVICES];
    size_t room;             /* bytes that rows of ids may still take */
    struct gwa_hist cadence; /* entry of a launch to entry of the thread's next */
    uint64_t holes, approximate;
    struct gwa_waits syncs, blocking_copies;
    int64_t first_capture, last_capture; /* entries; INT64_MAX: none */
    int64_t end;                         /* return of the last event */
};

/* The first pass. */
int gwa_tally_event(struct gwa_tally *t, const struct gwt_event *e);
/* The last pass, of events in `ranges`, each before t->idle has seen it: an operation of a device,
 * or a wait for one, widens the device's window. */
int gwa_tally_widen(struct gwa_tally *t, const struct gwt_event *e);
/* The device's memory was held as last reported until `until`. */
void gwa_tally_held(struct gwa_tally *t, struct gwa_device_tally *d, int64_t until);
void gwa_tally_free(struct gwa_tally *t);

/* Seconds of the window that counts are of; NaN: none. */
double gwa_counted_s(const struct gwa_process *p);
/* A histogram of ns in us. */
struct gwa_times gwa_times_us(const struct gwa_hist *h);

/* From the tally to the result. Each returns 0 or -ENOMEM. */
int gwa_finish_calls(struct gwa_tally *t, struct gwa_process *p);
int gwa_finish_devices(struct gwa_tally *t, struct gwa_process *p);
void gwa_finish_quality(struct gwa_tally *t, struct gwa_process *p);
int gwa_finish_stuck(struct gwa_tally *t, struct gwa_process *p);

#endif
