#include "timeline_internal.h"
#include "grow.h"
#include "kinds.h"

#include <math.h>

#define HOST_FUNCTION_NS 5000
#define ROOM             (32u << 20)

/* Times in the file beyond are nonsense: no sum of them overflows. */
#define FARTHEST ((int64_t)1 << 60)

/* Of a copy from or to pageable memory: what the call does before and after it, the share of
 * the rest in which the host alone moves the first piece or the last, and the slowest that
 * staging is believed to be, ns per byte. Up to so many bytes travel in one piece. */
#define PAGEABLE_HOST_NS    6000
#define PAGEABLE_HOST_SHARE 0.15
#define PAGEABLE_SLOWEST    0.35
#define PAGEABLE_AT_ONCE    65536

struct gwa_timeline *gwa_timeline_new(const struct gwt_trace *trace, struct gwa_ranges *ranges,
                                      const struct gwa_durations *durations,
                                      const struct gwa_model *model)
{
    struct gwa_timeline *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    const char *blocking = gwt_fact(trace, "env.CUDA_LAUNCH_BLOCKING");
    t->trace = trace;
    t->room = ROOM;
    t->ranges = ranges;
    t->durations = durations;
    gwa_durations_restart(durations);
    t->model = *model;
    if (!(t->model.ns[GWA_GAP] > 0)) {
        double error;
        gwa_durations_gap(durations, false, &t->model.ns[GWA_GAP], &error);
        t->model.variance[GWA_GAP][GWA_GAP] = error * error;
        t->model.gap_ns = t->model.ns[GWA_GAP];
        t->model.ns[GWA_HANDOVER] = GWA_HANDOVER_NS * gwa_durations_pace(durations);
    }
    gwa_model_start(&t->model);
    struct gwa_delay pair = gwa_durations_delay(durations, GWT_TIMED_BEHIND_SPACER);
    t->held_ns = (int32_t)pair.events;
    t->stamp_ns = (int32_t)fmax(pair.before - t->model.ns[GWA_GAP], 0);
    t->launches_block = blocking && strtol(blocking, NULL, 10) != 0;
    t->streams = calloc(STREAMS, sizeof(*t->streams));
    t->events = calloc(EVENTS, sizeof(*t->events));
    if (!t->streams || !t->events) {
        gwa_timeline_free(t);
        return NULL;
    }
    return t;
}

static void free_device(struct device *d)
{
    for (size_t i = 0; i < d->streams_count; i++) {
        free(d->streams[i]->queue.ring);
        free(d->streams[i]->moved);
        free(d->streams[i]);
    }
    free(d->streams);
    free(d->queues);
    free(d->dirty);
    free(d->scratch);
    free(d->out.signatures);
    free(d->out.graphs);
    gwa_sweep_free(&d->out.sweep);
    free(d);
}

void gwa_timeline_free(struct gwa_timeline *t)
{
    if (!t)
        return;
    for (unsigned i = 0; i < DEVICES; i++)
        if (t->devices[i])
            free_device(t->devices[i]);
    free(t->streams);
    free(t->events);
    free(t->shapes);
    free(t);
}

struct gwa_model gwa_timeline_model(const struct gwa_timeline *t)
{
    struct gwa_model m = t->model;
    gwa_model_share(&m);
    return m;
}

void gwa_timeline_listen(struct gwa_timeline *t, gwa_on_idle *on_idle, void *arg)
{
    t->on_idle = on_idle;
    t->on_idle_arg = arg;
}

void gwa_timeline_comm(struct gwa_timeline *t, const struct gwa_comm_time *list, size_t count)
{
    t->comm = list;
    t->comm_count = count;
}

/* ---- streams ------------------------------------------------------------------------ */

static int add_stream(struct device *d, struct stream *s)
{
    if (d->streams_count == d->streams_room) {
        size_t room = d->streams_room ? d->streams_room * 2 : 16;
        struct stream **streams = reallocarray(d->streams, room, sizeof(*streams));
        if (streams)
            d->streams = streams;
        struct stream **dirty = reallocarray(d->dirty, room, sizeof(*dirty));
        if (dirty)
            d->dirty = dirty;
        struct gwa_queue **queues = reallocarray(d->queues, room, sizeof(*queues));
        if (queues)
            d->queues = queues;
        uint32_t *scratch = reallocarray(d->scratch, room, sizeof(*scratch));
        if (scratch)
            d->scratch = scratch;
        if (!streams || !dirty || !queues || !scratch)
            return -ENOMEM;
        d->streams_room = room;
    }
    d->queues[d->streams_count] = &s->queue;
    d->streams[d->streams_count++] = s;
    return 0;
}

static int make_stream(struct gwa_timeline *t, const struct gwt_event *e, struct stream **out)
{
    const struct gwt_def_stream *def = gwt_stream(t->trace, e->stream);
    *out = NULL;
    if (!e->stream || e->device == 0xff || !def)
        return 0;
    struct device *d = t->devices[e->device];
    if (!d) {
        d = t->devices[e->device] = calloc(1, sizeof(*d));
        if (!d)
            return -ENOMEM;
        d->index = e->device;
        d->busy_until = d->beside_until = NEVER;
        if (t->on_idle && gwa_sweep_listen(&d->out.sweep, t->on_idle, t->on_idle_arg, e->device))
            return -ENOMEM;
    }
    struct stream *s = calloc(1, sizeof(*s));
    if (!s)
        return -ENOMEM;
    *s = (struct stream){.id = e->stream,
                         .type = def->type,
                         .blocking = (def->type == GWT_STREAM_USER && def->nonblocking == 0) ||
                                     def->type == GWT_STREAM_PER_THREAD,
                         .device = d,
                         .engine = ENGINE_NONE,
                         .end = {.at = NEVER},
                         .wait = {.at = NEVER},
                         .last_entry = NEVER,
                         .done = NEVER};
    int rc = add_stream(d, s);
    if (rc) {
        free(s);
        return rc;
    }
    if (s->type == GWT_STREAM_LEGACY)
        d->legacy = s;
    t->streams[e->stream] = *out = s;
    return 0;
}

static inline int stream_of(struct gwa_timeline *t, const struct gwt_event *e, struct stream **out)
{
    *out = t->streams[e->stream];
    return *out ? 0 : make_stream(t, e, out);
}

/* ---- operations ------------------------------------------------------------------------ */

int gwa_timeline_ran(struct gwa_timeline *t, struct gwa_ran **rows, size_t *count, uint32_t *id)
{
    if (*id < *count)
        return 0;
    int rc = gwa_grow_within(&t->room, (void **)rows, count, *id, sizeof(**rows));
    if (rc != -ERANGE)
        return rc;
    *id = 0;
    return gwa_grow_within(&t->room, (void **)rows, count, 0, sizeof(**rows));
}

static int graph_launch(struct gwa_timeline *t, const struct gwt_event *e, struct stream *s)
{
    struct gwa_duration duration;
    struct shape unknown, *shape = gwa_timeline_shape(t, e->arg, &unknown);
    gwa_durations_of(t->durations, e, &s->context, &duration);
    struct placing how = {.arrival = e->t1_ns + (int64_t)t->model.start_ns,
                          .ns = duration.ns,
                          .activity = shape->activity,
                          .hollow = shape->hollow,
                          .hollow_ns = shape->hollow_ns,
                          .timed = (uint8_t)GWT_F_SUB(e->flags),
                          .at_return = t->launches_block};
    /* an executable graph runs once at a time, whatever the stream */
    gwa_timeline_wait_until(s, shape->end);
    int rc = gwa_timeline_place(t, e, s, &how, &duration);
    struct gwa_timeline_device *out = &s->device->out;
    shape->end = s->end;
    if (rc || !how.inside)
        return rc;
    out->graphs_doubt_ns += fmin((double)shape->doubt_ns, duration.ns);
    return gwa_timeline_count_ran(t, &out->graphs, &out->graphs_count, e->arg, duration.ns);
}

/* The call lasted as long as staging did, less what it did itself and what it waited for; where it
 * did wait, no longer than others that did not. */
static double pageable_ns(struct gwa_timeline *t, const struct gwt_event *e, const struct stream *s,
                          double pinned_ns)
{
    int64_t from = e->t0_ns + PAGEABLE_HOST_NS;
    double *rate = &t->pageable[GWT_F_SUB(e->flags) == GWT_D2H];
    if (e->value <= PAGEABLE_AT_ONCE)
        return pinned_ns;
    bool waits = s->end.at > e->t0_ns || s->wait.at > e->t0_ns;
    gwa_raise_to(&from, s->end.at);
    gwa_raise_to(&from, s->wait.at);
    double slowest = pinned_ns + PAGEABLE_SLOWEST * (double)e->value;
    double ns = (double)(e->t1_ns - from) * (1 - PAGEABLE_HOST_SHARE);
    ns = ns < pinned_ns ? pinned_ns : ns > slowest ? slowest : ns;
    double seen = ns / (double)e->value;
    /* now and then one is interrupted, or waits for what is not known: longer ones count little */
    *rate = !(*rate > 0) ? seen : *rate + (seen < *rate ? 0.1 : 0.02) * (seen - *rate);
    return waits ? fmin(ns, fmax(*rate * (double)e->value, pinned_ns)) : ns;
}

/* Copies of about one size share their error. */
static double *copy_error(struct stream *s, const struct gwt_event *e, unsigned class)
{
    return &s->device->copy_error[class][e->value ? 63 - __builtin_clzll(e->value) : 0];
}

static int copy(struct gwa_timeline *t, const struct gwt_event *e, struct stream *s)
{
    unsigned direction = GWT_F_SUB(e->flags);
    bool pageable = e->flags & GWT_F_PAGEABLE;
    if ((!e->value && e->arg <= 1) || direction == GWT_H2H)
        return 0;
    if (direction >= GWT_DIR_COUNT)
        direction = GWT_DIR_UNKNOWN;
    struct gwa_duration duration;
    gwa_durations_of(t->durations, e, &s->context, &duration);
    struct placing how = {.arrival = e->t1_ns + (int64_t)t->model.start_ns,
                          .ns = duration.ns,
                          .activity = GWA_COPY,
                          .engine = direction == GWT_H2D   ? ENGINE_H2D
                                    : direction == GWT_D2H ? ENGINE_D2H
                                                           : ENGINE_COMPUTE};
    if (direction == GWT_D2D || direction == GWT_P2P) {
        how.at_return = t->launches_block;
    } else if (pageable) {
        gwa_timeline_order(t, s); /* it waits for that, too */
        how.ns = pageable_ns(t, e, s, duration.ns);
        if (how.ns > GWA_LONGEST_NS)
            how.ns = GWA_LONGEST_NS;
        duration = (struct gwa_duration){
            .ns = how.ns, .error = how.ns / 5, .spread = how.ns / 5, .own = false};
        how.at_return = direction == GWT_D2H || e->flags & GWT_F_BLOCKING || t->launches_block;
        /* From there the call returns once the data is staged. */
        how.arrival = e->t1_ns - (int64_t)how.ns;
        gwa_raise_to(&how.arrival, e->t0_ns);
        if (e->value > PAGEABLE_AT_ONCE && !how.at_return)
            gwa_timeline_waited(t, e, s, how.arrival - (int64_t)duration.error, (int64_t)how.ns);
    } else {
        how.at_return = e->flags & GWT_F_BLOCKING || t->launches_block;
    }
    if (!s->moved && !(s->moved = calloc(GWT_DIR_COUNT, sizeof(*s->moved))))
        return -ENOMEM;
    unsigned memory = direction == GWT_D2D || direction == GWT_P2P ? 0 : pageable ? 2 : 1;
    how.moved = &s->moved[direction][memory];
    int rc = gwa_timeline_place(t, e, s, &how, &duration);
    if (how.inside)
        *copy_error(s, e,
                    direction == GWT_H2D   ? GWT_SAMPLE_H2D
                    : direction == GWT_D2H ? GWT_SAMPLE_D2H
                                           : GWT_SAMPLE_D2D) += duration.error;
    return rc;
}

static int memset_(struct gwa_timeline *t, const struct gwt_event *e, struct stream *s)
{
    if (!e->value)
        return 0;
    struct gwa_duration duration;
    gwa_durations_of(t->durations, e, &s->context, &duration);
    struct placing how = {.arrival = e->t1_ns + (int64_t)t->model.start_ns,
                          .ns = duration.ns,
                          .activity = GWA_COPY,
                          .timed = (uint8_t)GWT_F_SUB(e->flags),
                          .at_return = t->launches_block};
    int rc = gwa_timeline_place(t, e, s, &how, &duration);
    if (how.inside)
        *copy_error(s, e, GWT_SAMPLE_MEMSET) += duration.error;
    return rc;
}

/* It runs on the host; the stream goes on when it has returned. */
static void host_function(struct gwa_timeline *t, const struct gwt_event *e, struct stream *s)
{
    struct moment from = {.at = e->t1_ns + (int64_t)t->model.start_ns};
    gwa_timeline_order(t, s);
    if (s->end.at > from.at)
        from = s->end;
    gwa_timeline_wait_until(s, from);
    s->wait.at += HOST_FUNCTION_NS;
    gwa_timeline_mark_dirty(s);
}

/* ---- events ------------------------------------------------------------------------- */

struct recorded *gwa_timeline_recorded(struct gwa_timeline *t, uint64_t handle)
{
    return &t->events[(handle * 0x9e3779b97f4a7c15u) >> 48];
}

struct moment gwa_timeline_recorded_end(const struct gwa_timeline *t, const struct recorded *r)
{
    const struct stream *s = t->streams[r->stream];
    if (s && r->ordinal <= s->done_ordinal && s->done < r->end.at)
        return (struct moment){.at = s->done};
    struct moment end = r->end;
    int64_t by = s ? s->device->sooner - r->sooner : 0;
    if (by > 0 && end.at > t->now)
        end.at = end.at - by > t->now ? end.at - by : t->now;
    /* A blocking call may have shown since that it comes later. */
    size_t i = s ? gwa_timeline_index_of(s, r->ordinal) : 0;
    if (s && i < s->queue.count)
        gwa_raise_to(&end.at, gwa_queue_at(&s->queue, i)->end);
    return end;
}

static void record_event(struct gwa_timeline *t, const struct gwt_event *e, struct stream *s)
{
    struct recorded *r = gwa_timeline_recorded(t, e->value);
    gwa_timeline_order(t, s);
    *r = (struct recorded){.handle = e->value,
                           .ordinal = s->ordinal,
                           .end = s->end,
                           .sooner = s->device->sooner,
                           .stream = s->id};
    if (GWT_F_SUB(e->flags) == GWT_STAMP) {
        r->stamp = t->stamp_ns;
        if (s->behind < t->held_ns)
            s->behind = t->held_ns;
    }
    if (s->wait.at > r->end.at)
        r->end = s->wait;
}

static void wait_for_event(struct gwa_timeline *t, const struct gwt_event *e, struct stream *s)
{
    const struct recorded *r = gwa_timeline_recorded(t, e->value);
    if (!r->stream || r->handle != e->value || r->stream == s->id)
        return;
    struct moment end = gwa_timeline_recorded_end(t, r), stamped = end;
    if (end.at != NEVER)
        stamped.at += r->stamp;
    gwa_timeline_wait_until(s, gwa_timeline_handed_over(t, stamped));
    gwa_timeline_mark_dirty(s);
    gwa_timeline_remember_wait(
        s, (struct waited_for){
               .ordinal = r->ordinal, .end = end, .stamp = r->stamp, .stream = r->stream});
}

/* Kinds that the timeline is made of; the rest only says how late it is. */
static const bool places[UINT8_MAX + 1] = {
    [GWT_LAUNCH] = true,      [GWT_GRAPH_LAUNCH] = true, [GWT_COPY] = true,
    [GWT_MEMSET] = true,      [GWT_HOST_FUNC] = true,    [GWT_EVENT_RECORD] = true,
    [GWT_STREAM_WAIT] = true, [GWT_SYNC] = true,
};

/* pre: it places something, and was executed. */
static int event(struct gwa_timeline *t, const struct gwt_event *e)
{
    struct stream *s;
    if (e->kind == GWT_SYNC) {
        gwa_timeline_sync(t, e);
        return 0;
    }
    int rc = stream_of(t, e, &s);
    if (!s)
        return rc;
    switch (e->kind) {
    case GWT_LAUNCH:
        return gwa_timeline_launch(t, e, s);
    case GWT_GRAPH_LAUNCH:
        return graph_launch(t, e, s);
    case GWT_COPY:
        return copy(t, e, s);
    case GWT_MEMSET:
        return memset_(t, e, s);
    case GWT_HOST_FUNC:
        host_function(t, e, s);
        return 0;
    case GWT_EVENT_RECORD:
        record_event(t, e, s);
        return 0;
    default:
        wait_for_event(t, e, s);
        return 0;
    }
}

int gwa_timeline_event(struct gwa_timeline *t, const struct gwt_event *e,
                       const struct gwa_place *place, double *ns)
{
    *ns = 0;
    if (e->t0_ns < -FARTHEST || e->t1_ns > FARTHEST)
        return 0;
    gwa_raise_to(&t->now, e->t1_ns);
    if (!places[e->kind] || !gwa_executed(e))
        return 0;
    t->placed = NULL;
    t->placed_ns = 0;
    int rc = event(t, e);
    *ns = t->placed_ns;
    struct gwa_queue *q = place && t->placed ? &t->placed->queue : NULL;
    if (!q || !q->count) /* it was swept at once */
        return rc;
    struct gwa_piece *newest = gwa_queue_at(q, q->count - 1);
    newest->step = place->step;
    newest->phase = place->phase;
    return rc;
}
