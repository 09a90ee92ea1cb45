/* From the operations of one device to its busy and idle time.
 *
 * Operations come stream by stream, each stream's in order; the sweep merges the streams by
 * start and walks over time once: at each moment the device computes, communicates, copies or
 * idles, whichever comes first. Only the newest operations are held, so that a call that
 * returns late can still put its operation where it belongs.
 *
 * What counts is the time inside windows: of each interval of the range asked for, from the
 * first start of an operation submitted in it to the last end of one.
 */
#ifndef GWA_SWEEP_H
#define GWA_SWEEP_H

#include "steps.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gwa_activity { GWA_COMPUTE, GWA_COMM, GWA_COPY, GWA_ACTIVITIES };

/* Gaps by length; a gap of exactly 100 or 10 us counts as 10 to 100 us. */
enum gwa_band { GWA_OVER_100US, GWA_10_TO_100US, GWA_UNDER_10US, GWA_BANDS };

#define GWA_GAPS 10 /* that are kept */

/* Time that copies of one kind took, or one operation of NCCL, in or out of a window. */
struct gwa_moved {
    double busy_ns;
    double exposed_ns; /* while no kernel ran; communication: while none but NCCL's */
    double waited_ns;  /* communication: of that, until the last rank came */
};

struct gwa_piece { /* one operation */
    int64_t start, end;
    int64_t lower;           /* it cannot have started before, whatever its stream did */
    int64_t entry;           /* of the call that submitted it */
    struct gwa_moved *moved; /* COPY, COMM: where its time is added; may be NULL */
    int64_t wait;            /* COMM, with `moved`: from its start, until the last rank came */
    uint32_t interval;       /* of the range, if inside */
    uint8_t activity;        /* enum gwa_activity */
    bool inside;             /* submitted in the range */
    uint8_t follows;         /* how its stream goes on to it; not the sweep's business */
    uint8_t phase;           /* enum gwa_phase, of the call */
    int32_t gap;             /* ns between its predecessor's end and its start, at least ... */
    int32_t timing;          /* ... of that, because one of them was timed */
    float hollow;            /* share of it that is gaps between a graph's nodes ... */
    float hollow_ns;         /* ... each so long */
    uint32_t call_ns;        /* how long the call lasted; UINT32_MAX: so long or longer */
    uint32_t thread, step;   /* of the call; struct gwa_place */
};

/* Return of a call; INT64_MAX: long after the entry. */
static inline int64_t gwa_call_returned(int64_t entry, uint32_t call_ns)
{
    return call_ns == UINT32_MAX ? INT64_MAX : entry + call_ns;
}

static inline int64_t gwa_piece_returned(const struct gwa_piece *p)
{
    return gwa_call_returned(p->entry, p->call_ns);
}

static inline uint32_t gwa_call_ns(int64_t entry, int64_t returned)
{
    return returned - entry < UINT32_MAX ? (uint32_t)(returned - entry) : UINT32_MAX;
}

struct gwa_queue { /* of a stream: those not swept yet */
    struct gwa_piece *ring;
    size_t first, count, room; /* room: a power of two */
};

static inline struct gwa_piece *gwa_queue_at(const struct gwa_queue *q, size_t i)
{
    return &q->ring[(q->first + i) & (q->room - 1)];
}

/* post: a place for one more at the end, NULL without memory. */
struct gwa_piece *gwa_queue_grow(struct gwa_queue *q);

static inline struct gwa_piece *gwa_queue_add(struct gwa_queue *q)
{
    return q->count < q->room ? gwa_queue_at(q, q->count++) : gwa_queue_grow(q);
}

struct gwa_gap {
    int64_t start;
    int64_t ns;
};

/* Idle of a window as it was come upon: nothing ran in [start, end). */
struct gwa_idle_time {
    int64_t start, end;
    /* the call that submitted the operation which started last before it */
    int64_t returned;
    uint32_t thread;
    bool ended;       /* by `next`; false: what did is not known any more */
    struct gwa_next { /* of a piece, as there */
        uint8_t phase;
        uint32_t call_ns, thread, step;
        int64_t lower, entry;
    } next;
};

static inline struct gwa_next gwa_next_of(const struct gwa_piece *p)
{
    return (struct gwa_next){.phase = p->phase,
                             .call_ns = p->call_ns,
                             .thread = p->thread,
                             .step = p->step,
                             .lower = p->lower,
                             .entry = p->entry};
}

typedef void gwa_on_idle(void *arg, unsigned device, const struct gwa_idle_time *idle);

struct gwa_sums {
    double wall;
    double time[GWA_ACTIVITIES]; /* exposed: without what ran beside something named earlier */
    double idle;
    double hollow; /* of that, between the nodes of graphs */
    double busy_in[GWA_PHASE_COUNT], idle_in[GWA_PHASE_COUNT], hollow_in[GWA_PHASE_COUNT];
    double band[GWA_BANDS];
    struct gwa_gap gaps[GWA_GAPS]; /* the longest, longest first */
    size_t gaps_count;
};

struct gwa_cells { /* sixths of a second, as nvidia-smi samples them */
    int64_t last;
    uint64_t count;
};

struct gwa_active { /* a copy under way, or communication */
    int64_t end, come;
    struct gwa_moved *moved;
    uint8_t activity;
};
#define GWA_ACTIVE 16

struct gwa_hollow { /* a graph under way */
    int64_t end;
    float share, ns; /* of gaps */
};
#define GWA_HOLLOWS 8

#define GWA_PENDING 64 /* the rest becomes one, of which only the length is known */

struct gwa_sweep {
    int64_t now; /* everything before is final */
    int64_t end[GWA_ACTIVITIES];
    int64_t solid; /* until then something without gaps runs */
    struct gwa_hollow hollows[GWA_HOLLOWS];
    size_t hollows_count;
    uint8_t phase[GWA_ACTIVITIES];
    struct gwa_active active[GWA_ACTIVE];
    size_t active_count;
    bool begun, open;
    uint32_t interval;
    int64_t first, window_end;
    struct gwa_sums sums;    /* inside windows */
    struct gwa_sums pending; /* since window_end: inside only if the window goes on */
    bool has_pending;
    struct gwa_idle_time
        *idle; /* that waits for the window to go on: GWA_PENDING, if listened to */
    size_t idle_count;
    int64_t idle_rest;    /* ns of those without a place */
    gwa_on_idle *on_idle; /* told of all that is added to sums.idle but hollow; may be NULL */
    void *on_idle_arg;
    unsigned device;
    uint32_t last_thread; /* of the piece taken last */
    int64_t last_returned;
    struct gwa_cells cells, kernel_cells;
    double late_ns; /* of operations that came when their time had been swept */
    uint64_t late;
};

/* Takes the pieces that start before `until` from the queues and sweeps over them.
 * queues: pointers to `count` of them; scratch: room for as many indices. */
void gwa_sweep(struct gwa_sweep *s, struct gwa_queue *const *queues, size_t count,
               uint32_t *scratch, int64_t until);
/* post: 0 or -ENOMEM. */
int gwa_sweep_listen(struct gwa_sweep *s, gwa_on_idle *on_idle, void *arg, unsigned device);
void gwa_sweep_free(struct gwa_sweep *s);
/* What was taken so far has ended by then. */
int64_t gwa_sweep_reach(const struct gwa_sweep *s);
/* After the last piece. */
void gwa_sweep_finish(struct gwa_sweep *s);

#endif
