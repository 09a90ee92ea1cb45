#include "idle.h"
#include "grow.h"
#include "kinds.h"

#include <errno.h>
#include <stdlib.h>

#define DEVICES 256u
#define EVENTS  65536u /* remembered by a hash of the handle; a forgotten one proves nothing */
#define WAITS   4u     /* newest waits for events, per stream */
#define SPANS   1024u  /* newest idle spans that a late submission can trim */
#define NAMED   64u
#define DEPTH   64u /* streams that wait for streams that wait for ... */
#define NEVER   INT64_MIN

struct wait {        /* a stream that waits for an event */
    uint16_t stream; /* in which the event was recorded */
    int64_t covers;  /* work of that stream that had been submitted by then */
    int64_t t1;      /* return of the waiting call */
};

struct stream {
    int64_t last_t0, last_t1; /* of the submission that returned last */
    int64_t done;             /* all that was submitted by then is complete */
    uint16_t device;
    uint8_t known;
    uint8_t type;     /* enum gwt_stream_type */
    uint8_t blocking; /* ordered against the legacy default stream */
    uint8_t waits_next;
    uint32_t position; /* in its device's list of pending streams, plus 1; 0: not in it */
    struct wait waits[WAITS];
};

struct recorded { /* the newest record of an event */
    uint64_t handle;
    uint16_t stream; /* 0: forgotten */
    uint32_t epoch;
    int64_t t0, t1;
};

struct named { /* a stream that an NCCL call of a thread named */
    uint32_t thread;
    uint16_t stream;
};

struct span {
    int64_t from, to;
};

struct device {
    uint16_t *pending; /* streams that may have work */
    size_t pending_count, pending_room;
    uint16_t legacy;    /* its legacy default stream; 0: not seen */
    int64_t synced;     /* entry of the newest call that waited for all of it */
    int64_t empty_from; /* NEVER: it may have work */
    int64_t proven_to;  /* no span that is known of ends later */
    struct span spans[SPANS];
    size_t first, count; /* ring */
    int64_t evicted_to;  /* spans up to here can no longer be trimmed one by one */
    int64_t evicted_ns;
    int64_t void_from, void_to; /* taken back from what was evicted */
};

struct gwa_idle {
    const struct gwt_trace *trace;
    const struct gwa_ranges *ranges;
    struct stream *streams; /* by id */
    size_t streams_count;
    struct recorded *events;
    struct device *devices[DEVICES];
    int64_t unknown_t1; /* return of the newest submission to who knows which stream */
    int64_t now;        /* return of the wait being looked at */
    uint32_t epoch;     /* events recorded in an earlier one are forgotten */
    struct named named[NAMED];
    size_t named_count;
    bool named_full;
};

struct gwa_idle *gwa_idle_new(const struct gwt_trace *trace, const struct gwa_ranges *ranges)
{
    struct gwa_idle *idle = calloc(1, sizeof(*idle));
    if (!idle)
        return NULL;
    idle->trace = trace;
    idle->ranges = ranges;
    idle->unknown_t1 = NEVER;
    idle->events = calloc(EVENTS, sizeof(*idle->events));
    if (!idle->events) {
        gwa_idle_free(idle);
        return NULL;
    }
    return idle;
}

void gwa_idle_free(struct gwa_idle *idle)
{
    if (!idle)
        return;
    for (unsigned i = 0; i < DEVICES; i++) {
        if (idle->devices[i])
            free(idle->devices[i]->pending);
        free(idle->devices[i]);
    }
    free(idle->events);
    free(idle->streams);
    free(idle);
}

static struct device *device_of(struct gwa_idle *idle, unsigned index)
{
    struct device *d = idle->devices[index];
    if (d)
        return d;
    d = idle->devices[index] = calloc(1, sizeof(*d));
    if (d) {
        d->synced = NEVER;
        d->empty_from = NEVER;
        d->proven_to = NEVER;
        d->evicted_to = NEVER;
        d->void_from = d->void_to = NEVER;
    }
    return d;
}

static struct stream *new_stream(struct gwa_idle *idle, const struct gwt_event *e)
{
    struct stream *s = &idle->streams[e->stream];
    struct device *d = device_of(idle, e->device);
    const struct gwt_def_stream *def = gwt_stream(idle->trace, e->stream);
    if (!d || !def)
        return NULL;
    s->known = 1;
    s->device = e->device;
    s->type = def->type;
    s->blocking = (def->type == GWT_STREAM_USER && def->nonblocking == 0) ||
                  def->type == GWT_STREAM_PER_THREAD;
    s->last_t0 = s->last_t1 = s->done = NEVER;
    if (def->type == GWT_STREAM_LEGACY)
        d->legacy = e->stream;
    return s;
}

/* The stream and, through it, its device; NULL for stream 0 and without memory. */
static inline struct stream *stream_of(struct gwa_idle *idle, const struct gwt_event *e)
{
    struct stream *s = &idle->streams[e->stream];
    if (!e->stream || e->device == 0xff)
        return NULL;
    return s->known ? s : new_stream(idle, e);
}

/* ---- idle spans ------------------------------------------------------------- */

static void keep(struct gwa_idle *idle, struct device *d, int64_t from, int64_t to)
{
    if (d->count == SPANS) {
        const struct span *old = &d->spans[d->first];
        d->evicted_ns += gwa_ranges_overlap(idle->ranges, old->from, old->to);
        d->evicted_to = old->to;
        d->first = (d->first + 1) % SPANS;
        d->count--;
    }
    d->spans[(d->first + d->count++) % SPANS] = (struct span){.from = from, .to = to};
}

/* A submission was under way from t0 on: no idle after it is proven. */
static void take_back(struct gwa_idle *idle, struct device *d, int64_t t0)
{
    if (d->empty_from != NEVER && t0 > d->empty_from)
        keep(idle, d, d->empty_from, t0);
    d->empty_from = NEVER;
    if (t0 > d->proven_to)
        d->proven_to = t0;
    for (size_t i = d->count; i-- > 0;) {
        struct span *s = &d->spans[(d->first + i) % SPANS];
        if (s->to <= t0)
            break;
        s->to = s->from > t0 ? s->from : t0;
    }
    if (t0 >= d->evicted_to)
        return;
    /* So long a call that the spans it lies in are summed already: take back all of it. */
    if (d->void_from == NEVER || t0 < d->void_from)
        d->void_from = t0;
    d->void_to = d->evicted_to;
}

static inline void occupied(struct gwa_idle *idle, struct device *d, int64_t t0)
{
    if (d->empty_from != NEVER || t0 < d->proven_to)
        take_back(idle, d, t0);
}

static bool empty(const struct gwa_idle *idle, const struct device *d)
{
    return !d->pending_count && idle->unknown_t1 <= d->synced;
}

static void note_empty(const struct gwa_idle *idle, struct device *d)
{
    if (d->empty_from == NEVER && empty(idle, d))
        d->empty_from = idle->now;
}

/* ---- submitting --------------------------------------------------------------- */

static int add_pending(struct gwa_idle *idle, struct stream *s, uint16_t id)
{
    struct device *d = idle->devices[s->device];
    if (d->pending_count == d->pending_room) {
        size_t room = d->pending_room ? d->pending_room * 2 : 16;
        uint16_t *grown = realloc(d->pending, room * sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        d->pending = grown;
        d->pending_room = room;
    }
    d->pending[d->pending_count++] = id;
    s->position = (uint32_t)d->pending_count;
    return 0;
}

static void unmark(struct gwa_idle *idle, struct stream *s)
{
    struct device *d = idle->devices[s->device];
    uint16_t last = d->pending[--d->pending_count];
    d->pending[s->position - 1] = last;
    idle->streams[last].position = s->position;
    s->position = 0;
    note_empty(idle, d);
}

/* Something may have been submitted that we cannot place, and events recorded. */
static void submit_unknown(struct gwa_idle *idle, int64_t t0, int64_t t1)
{
    for (unsigned i = 0; i < DEVICES; i++)
        if (idle->devices[i])
            occupied(idle, idle->devices[i], t0);
    if (t1 > idle->unknown_t1)
        idle->unknown_t1 = t1;
    idle->epoch++;
}

static inline int submit(struct gwa_idle *idle, const struct gwt_event *e, uint16_t id)
{
    struct stream *s = &idle->streams[id];
    occupied(idle, idle->devices[s->device], e->t0_ns);
    if (e->t1_ns >= s->last_t1) {
        s->last_t0 = e->t0_ns;
        s->last_t1 = e->t1_ns;
    }
    return s->position ? 0 : add_pending(idle, s, id);
}

/* ---- proving ------------------------------------------------------------------- */

static void prove(struct gwa_idle *idle, struct stream *s, int64_t before, int64_t point,
                  unsigned depth);

/* A completed operation of the legacy stream, submitted at `point`, had waited for what
 * blocking streams were given before; and the other way round. */
static void prove_legacy(struct gwa_idle *idle, struct stream *s, int64_t point, unsigned depth)
{
    struct device *d = idle->devices[s->device];
    if (s->type == GWT_STREAM_LEGACY) {
        for (size_t i = d->pending_count; i-- > 0;) {
            if (i >= d->pending_count)
                continue; /* proving one may have proven others */
            struct stream *other = &idle->streams[d->pending[i]];
            if (other->blocking && other->done < point)
                prove(idle, other, point, NEVER, depth + 1);
        }
    } else if (s->blocking && d->legacy) {
        struct stream *legacy = &idle->streams[d->legacy];
        if (legacy->done < point)
            prove(idle, legacy, point, NEVER, depth + 1);
    }
}

/* All that was submitted to s by `before` is complete. `point`: entry of an operation of s
 * known to be complete; NEVER: the last submission serves. */
static void prove(struct gwa_idle *idle, struct stream *s, int64_t before, int64_t point,
                  unsigned depth)
{
    /* `done` only grows, so streams that wait for each other cannot recurse without end. */
    if (depth > DEPTH || (before <= s->done && point == NEVER))
        return;
    if (before > s->done)
        s->done = before;
    if (s->last_t1 != NEVER && s->last_t1 <= s->done) {
        if (point == NEVER || s->last_t0 > point)
            point = s->last_t0;
        if (s->position)
            unmark(idle, s);
    }
    for (unsigned i = 0; i < WAITS; i++) {
        const struct wait w = s->waits[i];
        if (w.stream && w.t1 <= before && idle->streams[w.stream].done < w.covers)
            prove(idle, &idle->streams[w.stream], w.covers, NEVER, depth + 1);
    }
    if (point != NEVER)
        prove_legacy(idle, s, point, depth);
}

static void prove_device(struct gwa_idle *idle, struct device *d, int64_t before)
{
    if (before > d->synced)
        d->synced = before;
    for (size_t i = d->pending_count; i-- > 0;) {
        struct stream *s = &idle->streams[d->pending[i]];
        if (before > s->done)
            s->done = before;
        if (s->last_t1 <= before)
            unmark(idle, s);
    }
    note_empty(idle, d);
}

/* ---- events ----------------------------------------------------------------------- */

static struct recorded *event_slot(struct gwa_idle *idle, uint64_t handle)
{
    return &idle->events[(handle * 0x9e3779b97f4a7c15u) >> 48];
}

static void record_event(struct gwa_idle *idle, const struct gwt_event *e, bool executed)
{
    struct recorded *r = event_slot(idle, e->value);
    *r = (struct recorded){.handle = e->value,
                           .stream = executed ? e->stream : 0,
                           .epoch = idle->epoch,
                           .t0 = e->t0_ns,
                           .t1 = e->t1_ns};
}

/* The record that a call entered at t0 refers to; NULL if that is in doubt. */
static const struct recorded *find_event(struct gwa_idle *idle, uint64_t handle, int64_t t0)
{
    const struct recorded *r = event_slot(idle, handle);
    if (!r->stream || r->handle != handle || r->epoch != idle->epoch || r->t1 > t0 ||
        !idle->streams[r->stream].known)
        return NULL;
    return r;
}

static void stream_waits(struct gwa_idle *idle, const struct gwt_event *e)
{
    struct stream *s = stream_of(idle, e);
    const struct recorded *r = find_event(idle, e->value, e->t0_ns);
    if (!s || !r)
        return;
    struct wait *w = &s->waits[s->waits_next++ % WAITS];
    *w = (struct wait){.stream = r->stream, .covers = r->t0, .t1 = e->t1_ns};
}

static void sync_call(struct gwa_idle *idle, const struct gwt_event *e)
{
    struct stream *s;
    const struct recorded *r;
    idle->now = e->t1_ns;
    switch (GWT_F_SUB(e->flags)) {
    case GWT_SCOPE_DEVICE:
        if (e->device != 0xff) {
            struct device *d = device_of(idle, e->device);
            if (d)
                prove_device(idle, d, e->t0_ns);
        }
        break;
    case GWT_SCOPE_STREAM:
        s = stream_of(idle, e);
        if (s)
            prove(idle, s, e->t0_ns, NEVER, 0);
        break;
    case GWT_SCOPE_EVENT:
        r = find_event(idle, e->value, e->t0_ns);
        if (r)
            prove(idle, &idle->streams[r->stream], r->t0, NEVER, 0);
        break;
    }
}

/* What a blocking copy or memset leaves behind. Copies from pageable memory may return
 * when the data is staged, copies inside the device at once: only the work before them
 * is known to be done. */
static int operation(struct gwa_idle *idle, const struct gwt_event *e)
{
    struct stream *s = stream_of(idle, e);
    if (!s) {
        submit_unknown(idle, e->t0_ns, e->t1_ns);
        return 0;
    }
    bool waits = gwa_waits_for_copy(e);
    unsigned direction = GWT_F_SUB(e->flags);
    bool complete =
        waits && (direction == GWT_D2H || (direction == GWT_H2D && !(e->flags & GWT_F_PAGEABLE)));
    if (!complete)
        return submit(idle, e, e->stream);
    occupied(idle, idle->devices[s->device], e->t0_ns);
    idle->now = e->t1_ns;
    prove(idle, s, e->t0_ns, e->t0_ns, 0);
    note_empty(idle, idle->devices[s->device]);
    return 0;
}

/* Inside a group an NCCL call submits nothing; the group's end does. */
static int nccl_call(struct gwa_idle *idle, const struct gwt_event *e)
{
    size_t i = 0;
    if (!stream_of(idle, e)) {
        submit_unknown(idle, e->t0_ns, e->t1_ns);
        return 0;
    }
    while (i < idle->named_count &&
           (idle->named[i].thread != e->thread || idle->named[i].stream != e->stream))
        i++;
    if (i == NAMED)
        idle->named_full = true;
    else if (i == idle->named_count)
        idle->named[idle->named_count++] = (struct named){.thread = e->thread, .stream = e->stream};
    return submit(idle, e, e->stream);
}

static int nccl_group(struct gwa_idle *idle, const struct gwt_event *e)
{
    size_t kept = 0;
    int rc = 0;
    if (idle->named_full)
        submit_unknown(idle, e->t0_ns, e->t1_ns);
    idle->named_full = false;
    for (size_t i = 0; i < idle->named_count && !rc; i++) {
        if (idle->named[i].thread == e->thread)
            rc = submit(idle, e, idle->named[i].stream);
        else
            idle->named[kept++] = idle->named[i];
    }
    idle->named_count = kept;
    return rc;
}

/* Anything but an executed launch. */
static int other_event(struct gwa_idle *idle, const struct gwt_event *e)
{
    bool executed = gwa_executed(e);
    switch (e->kind) {
    case GWT_LOST: /* whatever that thread did meanwhile */
    case GWT_RECORDING:
        submit_unknown(idle, e->t0_ns, e->t1_ns);
        return 0;
    case GWT_EVENT_RECORD:
        record_event(idle, e, executed);
        return 0;
    }
    if (!executed) {
        /* left by an exception: it may have submitted */
        if (e->flags & GWT_F_UNWOUND && gwa_submits(e->kind))
            submit_unknown(idle, e->t0_ns, e->t1_ns);
        return 0;
    }
    switch (e->kind) {
    case GWT_STREAM_WAIT:
        stream_waits(idle, e);
        return 0;
    case GWT_SYNC:
        sync_call(idle, e);
        return 0;
    case GWT_NCCL:
        return nccl_call(idle, e);
    case GWT_NCCL_GROUP:
        return nccl_group(idle, e);
    default:
        return gwa_submits(e->kind) ? operation(idle, e) : 0;
    }
}

int gwa_idle_event(struct gwa_idle *idle, const struct gwt_event *e)
{
    /* Here alone, since streams are pointed at below. */
    int rc =
        gwa_grow((void **)&idle->streams, &idle->streams_count, e->stream, sizeof(*idle->streams));
    if (rc)
        return rc;
    if (e->kind != GWT_LAUNCH || !gwa_executed(e) || !stream_of(idle, e))
        return other_event(idle, e);
    return submit(idle, e, e->stream);
}

/* ---- results -------------------------------------------------------------------------- */

bool gwa_idle_pending(const struct gwa_idle *idle, unsigned device)
{
    const struct device *d = device < DEVICES ? idle->devices[device] : NULL;
    return d && !empty(idle, d);
}

int64_t gwa_idle_proven(struct gwa_idle *idle, unsigned device, int64_t first, int64_t last)
{
    const struct device *d = device < DEVICES ? idle->devices[device] : NULL;
    if (!d)
        return 0;
    int64_t sum = d->evicted_ns;
    if (d->void_from != NEVER)
        sum -= d->void_to - d->void_from;
    if (sum < 0)
        sum = 0;
    for (size_t i = 0; i < d->count; i++) {
        const struct span *s = &d->spans[(d->first + i) % SPANS];
        sum += gwa_ranges_overlap(idle->ranges, s->from > first ? s->from : first,
                                  s->to < last ? s->to : last);
    }
    return sum;
}
