/* Between timeline.c (operations), timeline_anchor.c (blocking calls) and
 * timeline_finish.c (sums). */
#ifndef GWA_TIMELINE_INTERNAL_H
#define GWA_TIMELINE_INTERNAL_H

#include "timeline.h"

#define STREAMS 65536u
#define DEVICES GWA_TIMELINE_DEVICES
#define EVENTS  65536u /* remembered by a hash of the handle */
#define NEVER   INT64_MIN

#define MEMORIES 3

/* A time by the model, and what it rests on since the host last decided it: how many gaps and
 * hand-overs, and the error (common to all) and variance of durations. */
struct moment {
    int64_t at; /* NEVER: has not come to pass */
    float gaps, handovers, error, variance;
    float beside; /* ns of these durations while other streams were busy too */
};

enum follows { GWA_AT_ONCE, GWA_AFTER_GAP, GWA_AFTER_HANDOVER }; /* of a piece */

enum engine { ENGINE_COMPUTE, ENGINE_H2D, ENGINE_D2H, ENGINE_NONE };

/* An event of another stream that this one waits for, by ordinals of either. */
struct waited_for {
    uint64_t before, ordinal;
    struct moment end; /* of `ordinal` then */
    int32_t stamp;     /* as of struct recorded */
    uint16_t stream;   /* 0: none */
};
#define WAITED_FOR 8 /* newest of as many streams */

struct stream {
    uint16_t id;
    uint8_t type;  /* enum gwt_stream_type */
    bool blocking; /* ordered against the legacy default stream */
    bool dirty;    /* in its device's list of those that the legacy stream has to wait for */
    struct device *device;
    struct moment end;  /* of what was submitted so far */
    struct moment wait; /* the next operation starts no earlier ... */
    uint64_t waiting;   /* ... and the first that had to wait for that was, or will be, this one */
    int64_t last_entry;
    uint64_t ordinal; /* of the newest piece, from 1 */
    struct waited_for waited_for[WAITED_FOR];
    uint64_t legacy_ordinal; /* of the legacy stream, which it was last ordered behind */
    /* ops up to an ordinal had ended by a time, as a blocking call showed */
    uint64_t done_ordinal;
    int64_t done;
    struct gwa_queue queue;
    struct gwa_context context;
    struct gwa_moved (*moved)[MEMORIES]; /* by direction */
    /* operations of which each started because the one before had ended; start of the first */
    size_t run;
    int64_t run_start;
    uint8_t engine; /* of the last operation */
    int32_t behind; /* an event with a time stamp follows that: its successor starts no sooner */
};

/* A copy engine's newest copy. */
struct copying {
    int64_t start;
    struct moment end;
};

struct device {
    uint16_t index;
    struct stream **streams;
    struct gwa_queue **queues; /* of the same */
    size_t streams_count, streams_room;
    struct stream **dirty; /* streams_room of them fit */
    size_t dirty_count;
    struct stream *legacy;
    struct copying copying[ENGINE_NONE]; /* compute's is not used */
    int64_t busy_until;                  /* the latest end of all streams ... */
    const struct stream *busy;           /* ... this one's; and of the others */
    int64_t beside_until;
    int64_t sooner; /* ns that calls have shown it to be ahead of the model, in all */
    size_t queued;
    uint32_t *scratch;
    double copy_error[GWT_SAMPLE_CLASS_COUNT][64]; /* by the logarithm of their bytes */
    double spread2, place;
    struct gwa_timeline_device out;
};

struct recorded { /* the newest record of an event */
    uint64_t handle;
    uint64_t ordinal; /* of its stream then */
    struct moment end;
    int64_t sooner;  /* of its device then */
    int32_t stamp;   /* ns that it ends later than what is before it */
    uint16_t stream; /* 0: none */
};

struct shape { /* of a graph */
    bool known;
    uint8_t activity;
    float hollow, hollow_ns;
    float doubt_ns;    /* what its time may be off, at every launch alike */
    struct moment end; /* of its newest launch */
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
    size_t room; /* bytes that they, and the devices' rows of what ran, may still take */
    bool launches_block;
    double pageable[2]; /* ns per byte that staging takes, to the device and from it; 0: not seen */
    struct gwa_model model;
    int32_t stamp_ns;      /* from an operation's end to that of an event with a time stamp ... */
    int32_t held_ns;       /* ... and to the start of what is behind that */
    int64_t now;           /* return of the event at hand */
    double placed_ns;      /* length of what it submitted */
    struct stream *placed; /* where that is the newest piece; NULL: it submitted nothing */
    gwa_on_idle *on_idle;
    void *on_idle_arg;
    const struct gwa_comm_time *comm;
    size_t comm_count, comm_next;
};

struct recorded *gwa_timeline_recorded(struct gwa_timeline *t, uint64_t handle);
/* The end of what is before it, as far as known by now. */
struct moment gwa_timeline_recorded_end(const struct gwa_timeline *t, const struct recorded *r);

/* Index in the queue of an ordinal; the queue's count where it was swept already. */
static inline size_t gwa_timeline_index_of(const struct stream *s, uint64_t ordinal)
{
    const struct gwa_queue *q = &s->queue;
    uint64_t behind = s->ordinal - ordinal;
    return behind < q->count ? q->count - 1 - (size_t)behind : q->count;
}

static inline int32_t gwa_timeline_gap(const struct gwa_timeline *t, uint8_t follows)
{
    return follows == GWA_AT_ONCE
               ? 0
               : (int32_t)t->model.ns[follows == GWA_AFTER_GAP ? GWA_GAP : GWA_HANDOVER];
}

static inline void gwa_raise_to(int64_t *t, int64_t at_least)
{
    if (*t < at_least)
        *t = at_least;
}

/* No operation is believed to last longer, or to have to wait longer. */
#define GWA_LONGEST_NS ((int64_t)100000 * 1000000000)

/* An operation on its way into its stream. */
struct placing {
    int64_t arrival; /* it cannot start before */
    double ns;       /* its length */
    struct gwa_moved *moved;
    float hollow, hollow_ns;
    uint8_t activity;
    uint8_t engine;
    bool adjoins;   /* it may start where its predecessor ends */
    bool at_return; /* its call blocked: it ended at the return */
    uint8_t timed;  /* enum gwt_timed */
    bool inside;    /* out: submitted in the range */
    /* an operation of NCCL, if that was told: its length is an outcome then */
    const struct gwa_comm_time *comm;
};

/* timeline_place.c. post: 0 or -ENOMEM. */
int gwa_timeline_launch(struct gwa_timeline *t, const struct gwt_event *e, struct stream *s);
int gwa_timeline_place(struct gwa_timeline *t, const struct gwt_event *e, struct stream *s,
                       struct placing *how, const struct gwa_duration *duration);
/* The stream's next operation waits for what the rules of the legacy stream say. */
void gwa_timeline_order(const struct gwa_timeline *t, struct stream *s);
void gwa_timeline_remember_wait(struct stream *s, struct waited_for what); /* `before` is set */
void gwa_timeline_wait_until(struct stream *s, struct moment m);
/* From there to another stream or engine. */
struct moment gwa_timeline_handed_over(const struct gwa_timeline *t, struct moment m);
/* The legacy stream has to wait for it. */
void gwa_timeline_mark_dirty(struct stream *s);

/* timeline_place.c. The stream's end has changed, to later. */
void gwa_timeline_ends(struct stream *s, int64_t end);

/* timeline_anchor.c */
/* A call that blocks has waited for all that the stream was given before, until `by`, when its own
 * operation of `ns` started. */
void gwa_timeline_waited(const struct gwa_timeline *t, const struct gwt_event *e, struct stream *s,
                         int64_t by, int64_t ns);
void gwa_timeline_sync(struct gwa_timeline *t, const struct gwt_event *e);
/* All that the stream was given had ended by `by`. */
void gwa_timeline_ended(const struct gwa_timeline *t, struct stream *s, int64_t by);

/* timeline_learn.c: what is usual, where nothing is set. */
void gwa_model_start(struct gwa_model *m);
/* A call returned `late_ns` after the model's end of what it waited for.
 * alone: nothing ran beside it. post: m->ns has changed. */
void gwa_model_learn(struct gwa_model *m, struct moment end, bool alone, double late_ns);
/* Shares out what gaps are longer than before the run between them and the kernels. */
void gwa_model_share(struct gwa_model *m);
/* Of `late_ns`, the part that is due to the durations being expected values. */
double gwa_model_explained(const struct gwa_model *m, struct moment end, double late_ns);
/* Standard deviation of the durations that a moment rests on: how much sooner it may be ... */
double gwa_model_uncertainty(struct moment m);
/* ... and how much later, since operations that share the device slow each other. */
double gwa_model_uncertainty_above(struct moment m);

/* timeline.c. post: rows[*id] exists; of an id that is not believed *id has become 0. 0 or -ENOMEM
 */
int gwa_timeline_ran(struct gwa_timeline *t, struct gwa_ran **rows, size_t *count, uint32_t *id);

static inline int gwa_timeline_count_ran(struct gwa_timeline *t, struct gwa_ran **rows,
                                         size_t *count, uint32_t id, double ns)
{
    int rc = id < *count ? 0 : gwa_timeline_ran(t, rows, count, &id);
    if (rc)
        return rc;
    (*rows)[id].count++;
    (*rows)[id].ns += ns;
    return 0;
}

/* timeline_finish.c. post: `unknown`, filled in, where there is no place for it. */
struct shape *gwa_timeline_shape(struct gwa_timeline *t, uint32_t graph, struct shape *unknown);

#endif
