/* Between timeline.c (operations), timeline_anchor.c (blocking calls) and
 * timeline_finish.c (sums). */
#ifndef GWA_TIMELINE_INTERNAL_H
#define GWA_TIMELINE_INTERNAL_H

#include "timeline.h"

#define STREAMS 65536u
#define DEVICES 256u
#define EVENTS  65536u /* remembered by a hash of the handle */
#define NEVER   INT64_MIN

#define MEMORIES 3

struct device;

struct stream {
    uint16_t id;
    uint8_t type; /* enum gwt_stream_type */
    bool blocking; /* ordered against the legacy default stream */
    bool dirty;    /* in its device's list of those that the legacy stream has to wait for */
    struct device *device;
    int64_t end;  /* of what was submitted so far */
    int64_t wait; /* the next operation starts no earlier */
    int64_t last_entry;
    uint64_t ordinal; /* of the newest piece, from 1 */
    /* ops up to an ordinal had ended by a time, as a blocking call showed */
    uint64_t done_ordinal;
    int64_t done;
    struct gwa_queue queue;
    struct gwa_context context;
    struct gwa_moved (*moved)[MEMORIES]; /* by direction */
    /* operations since the stream last waited for the host or a blocking call for it */
    double chain, chain_error, chain_variance;
    int64_t chain_start;
};

struct device {
    uint16_t index;
    struct stream **streams;
    struct gwa_queue **queues; /* of the same */
    size_t streams_count, streams_room;
    struct stream **dirty; /* streams_room of them fit */
    size_t dirty_count;
    struct stream *legacy;
    int64_t busy_until;
    size_t queued;
    uint32_t *scratch;
    double copy_error[GWT_SAMPLE_CLASS_COUNT], spread2;
    struct gwa_timeline_device out;
};

struct recorded { /* the newest record of an event */
    uint64_t handle;
    uint64_t ordinal; /* of its stream then */
    int64_t end;
    uint16_t stream; /* 0: none */
};

struct shape { /* of a graph */
    bool known;
    uint8_t activity;
    float hollow, hollow_ns;
};

struct gwa_timeline {
    const struct gwt_trace *trace;
    struct gwa_ranges *ranges;
    const struct gwa_durations *durations;
    struct stream **streams;
    struct device *devices[DEVICES];
    struct recorded *events;
    struct shape *shapes;
    size_t shapes_count;
    bool fixed, launches_block;
    double start_ns, gap_ns;
    double wake_ns; /* from the end of the work to the return of the call that waits for it */
    int64_t now;    /* return of the event at hand */
};

struct recorded *gwa_timeline_recorded(struct gwa_timeline *t, uint64_t handle);
/* Its end, as far as known by now. */
int64_t gwa_timeline_recorded_end(const struct gwa_timeline *t, const struct recorded *r);

/* timeline_anchor.c */
void gwa_timeline_sync(struct gwa_timeline *t, const struct gwt_event *e);
/* All that the stream was given had ended by `by`. */
void gwa_timeline_ended(struct gwa_timeline *t, struct stream *s, int64_t by);

/* timeline_finish.c */
struct shape gwa_timeline_shape(struct gwa_timeline *t, uint32_t graph);

#endif
