#include "timeline_internal.h"
#include "grow.h"
#include "kinds.h"

#define QUEUED     32768u  /* pieces of a device that are held */
#define SETTLED_NS 2000000 /* beyond this age no blocking call will change them, most likely */

#define HOST_FUNCTION_NS 5000
/* Of a copy from or to pageable memory: what the call does before and after it, and the
 * slowest that staging is believed to be, ns per byte. */
#define PAGEABLE_HOST_NS  6000
#define PAGEABLE_SLOWEST  0.35

struct gwa_timeline *gwa_timeline_new(const struct gwt_trace *trace, struct gwa_ranges *ranges,
                                      const struct gwa_durations *durations,
                                      const struct gwa_model *model)
{
    struct gwa_timeline *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    const char *blocking = gwt_fact(trace, "env.CUDA_LAUNCH_BLOCKING");
    t->trace = trace;
    t->ranges = ranges;
    t->durations = durations;
    t->fixed = model->fixed;
    t->start_ns = model->start_ns > 0 ? model->start_ns : GWA_START_NS;
    t->gap_ns = model->gap_ns > 0 ? model->gap_ns : GWA_GAP_NS;
    t->wake_ns = 4000;
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
    return (struct gwa_model){.start_ns = t->start_ns, .gap_ns = t->gap_ns, .fixed = t->fixed};
}

/* ---- streams ------------------------------------------------------------------------- */

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
        d->busy_until = NEVER;
    }
    struct stream *s = calloc(1, sizeof(*s));
    if (!s)
        return -ENOMEM;
    *s = (struct stream){.id = e->stream,
                         .type = def->type,
                         .blocking = (def->type == GWT_STREAM_USER && def->nonblocking == 0) ||
                                     def->type == GWT_STREAM_PER_THREAD,
                         .device = d,
                         .end = NEVER,
                         .wait = NEVER,
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

static inline void raise_to(int64_t *t, int64_t at_least)
{
    if (*t < at_least)
        *t = at_least;
}

/* What a stream's next operation has to wait for in other streams. */
static void order(struct stream *s)
{
    struct device *d = s->device;
    if (s->type == GWT_STREAM_LEGACY) {
        for (size_t i = 0; i < d->dirty_count; i++) {
            raise_to(&s->wait, d->dirty[i]->end);
            raise_to(&s->wait, d->dirty[i]->wait);
            d->dirty[i]->dirty = false;
        }
        d->dirty_count = 0;
    } else if (s->blocking && d->legacy) {
        raise_to(&s->wait, d->legacy->end);
        raise_to(&s->wait, d->legacy->wait);
    }
}

static void mark_dirty(struct stream *s)
{
    if (!s->blocking || s->dirty)
        return;
    s->dirty = true;
    s->device->dirty[s->device->dirty_count++] = s;
}

/* ---- one operation --------------------------------------------------------------------- */

static void settle(struct gwa_timeline *t, struct device *d)
{
    gwa_sweep(&d->out.sweep, d->queues, d->streams_count, d->scratch, t->now - SETTLED_NS);
    d->queued = 0;
    for (size_t i = 0; i < d->streams_count; i++)
        d->queued += d->streams[i]->queue.count;
    if (d->queued < QUEUED * 3 / 4)
        return;
    /* Far ahead of the host, which no device is: the durations are wrong. Keep going. */
    gwa_sweep(&d->out.sweep, d->queues, d->streams_count, d->scratch, INT64_MAX);
    d->queued = 0;
}

/* How an operation came to be where it is. */
struct placing {
    int64_t arrival; /* it cannot start before */
    double ns;       /* its length */
    bool at_return;  /* its call blocked: it ended at the return */
};

static int place(struct gwa_timeline *t, const struct gwt_event *e, struct stream *s,
                 const struct placing *how, struct gwa_piece *p)
{
    struct device *d = s->device;
    int64_t ns = how->ns >= 1 ? (int64_t)how->ns : 1, gap = p->adjoins ? 0 : (int64_t)t->gap_ns;
    order(s);
    p->entry = e->t0_ns;
    p->lower = how->arrival;
    raise_to(&p->lower, s->wait);
    if (how->at_return) {
        p->end = e->t1_ns;
        p->start = p->end - ns > e->t0_ns ? p->end - ns : e->t0_ns;
        gwa_timeline_ended(t, s, p->start);
        p->lower = p->start;
        s->chain = 0;
    } else {
        p->start = p->lower;
        if (s->end != NEVER)
            raise_to(&p->start, s->end + gap);
        p->end = p->start + ns;
        if (p->start == how->arrival)
            s->chain = 0;
    }
    if (!s->chain) {
        s->chain_error = s->chain_variance = 0;
        s->chain_start = p->start;
    }
    s->chain++;
    p->inside = gwa_ranges_hold(t->ranges, e->t0_ns);
    p->interval = (uint32_t)t->ranges->hint;
    if (p->inside && (e->kind == GWT_LAUNCH || e->kind == GWT_GRAPH_LAUNCH)) {
        int64_t queued = p->start - e->t1_ns;
        d->out.launches++;
        d->out.met_idle += d->busy_until <= p->start && p->start <= how->arrival;
        gwa_hist_add(&d->out.queue, queued > 0 ? (uint64_t)queued : 0);
    }
    s->end = p->end;
    raise_to(&s->last_entry, e->t0_ns);
    raise_to(&d->busy_until, p->end);
    mark_dirty(s);
    s->ordinal++;
    int rc = gwa_queue_push(&s->queue, p);
    if (!rc && ++d->queued >= QUEUED)
        settle(t, d);
    return rc;
}

static void account(struct stream *s, const struct gwa_duration *duration, bool inside)
{
    struct gwa_timeline_device *out = &s->device->out;
    s->chain_error += duration->error;
    s->chain_variance += duration->spread * duration->spread;
    if (!inside)
        return;
    out->ns += duration->ns;
    if (duration->own)
        out->own_ns += duration->ns;
    s->device->spread2 += duration->spread * duration->spread;
}

static int count_ran(struct gwa_ran **rows, size_t *count, uint32_t id, double ns)
{
    if (id >= *count) {
        int rc = gwa_grow((void **)rows, count, id, sizeof(**rows));
        if (rc == -ERANGE)
            rc = gwa_grow((void **)rows, count, id = 0, sizeof(**rows));
        if (rc)
            return rc;
    }
    (*rows)[id].count++;
    (*rows)[id].ns += ns;
    return 0;
}

static int launch(struct gwa_timeline *t, const struct gwt_event *e, struct stream *s)
{
    struct gwa_duration duration = gwa_durations_of(t->durations, e, &s->context);
    struct gwa_piece p = {.activity =
                              gwa_durations_is_comm(t->durations, e->arg) ? GWA_COMM : GWA_COMPUTE,
                          .adjoins = e->flags & GWT_F_PDL};
    struct placing how = {.arrival = e->t1_ns + (int64_t)t->start_ns,
                          .ns = duration.ns,
                          .at_return = t->launches_block};
    int rc = place(t, e, s, &how, &p);
    struct gwa_timeline_device *out = &s->device->out;
    account(s, &duration, p.inside);
    if (rc || !p.inside)
        return rc;
    out->kernels++;
    return count_ran(&out->signatures, &out->signatures_count, e->arg, duration.ns);
}

static int graph_launch(struct gwa_timeline *t, const struct gwt_event *e, struct stream *s)
{
    struct gwa_duration duration = gwa_durations_of(t->durations, e, &s->context);
    struct shape shape = gwa_timeline_shape(t, e->arg);
    struct gwa_piece p = {
        .activity = shape.activity, .hollow = shape.hollow, .hollow_ns = shape.hollow_ns};
    struct placing how = {.arrival = e->t1_ns + (int64_t)t->start_ns,
                          .ns = duration.ns,
                          .at_return = t->launches_block};
    int rc = place(t, e, s, &how, &p);
    struct gwa_timeline_device *out = &s->device->out;
    account(s, &duration, p.inside);
    if (rc || !p.inside)
        return rc;
    out->kernels++;
    return count_ran(&out->graphs, &out->graphs_count, e->arg, duration.ns);
}

/* The call lasted as long as staging did, less what it did itself and what it waited for. */
static double pageable_ns(const struct gwt_event *e, const struct stream *s, double pinned_ns)
{
    int64_t from = e->t0_ns + PAGEABLE_HOST_NS;
    raise_to(&from, s->end);
    double slowest = pinned_ns + PAGEABLE_SLOWEST * (double)e->value;
    double ns = (double)(e->t1_ns - from);
    return ns < pinned_ns ? pinned_ns : ns > slowest ? slowest : ns;
}

static int copy(struct gwa_timeline *t, const struct gwt_event *e, struct stream *s)
{
    unsigned direction = GWT_F_SUB(e->flags);
    bool pageable = e->flags & GWT_F_PAGEABLE;
    if ((!e->value && e->arg <= 1) || direction == GWT_H2H)
        return 0;
    if (direction >= GWT_DIR_COUNT)
        direction = GWT_DIR_UNKNOWN;
    struct gwa_duration duration = gwa_durations_of(t->durations, e, &s->context);
    struct placing how = {.arrival = e->t1_ns + (int64_t)t->start_ns, .ns = duration.ns};
    if (direction == GWT_D2D || direction == GWT_P2P) {
        how.at_return = t->launches_block;
    } else if (pageable) {
        how.ns = pageable_ns(e, s, duration.ns);
        duration = (struct gwa_duration){
            .ns = how.ns, .error = how.ns / 5, .spread = how.ns / 5, .own = false};
        how.at_return = direction == GWT_D2H || e->flags & GWT_F_BLOCKING || t->launches_block;
        /* From there the call returns once the data is staged. */
        how.arrival = e->t1_ns - (int64_t)how.ns;
        raise_to(&how.arrival, e->t0_ns);
    } else {
        how.at_return = e->flags & GWT_F_BLOCKING || t->launches_block;
    }
    if (!s->moved && !(s->moved = calloc(GWT_DIR_COUNT, sizeof(*s->moved))))
        return -ENOMEM;
    unsigned memory = direction == GWT_D2D || direction == GWT_P2P ? 0 : pageable ? 2 : 1;
    struct gwa_piece p = {.activity = GWA_COPY, .moved = &s->moved[direction][memory]};
    if (!gwa_ranges_hold(t->ranges, e->t0_ns))
        p.moved = NULL;
    int rc = place(t, e, s, &how, &p);
    account(s, &duration, p.inside);
    if (p.inside)
        s->device->copy_error[direction == GWT_H2D   ? GWT_SAMPLE_H2D
                              : direction == GWT_D2H ? GWT_SAMPLE_D2H
                                                     : GWT_SAMPLE_D2D] += duration.error;
    return rc;
}

static int memset_(struct gwa_timeline *t, const struct gwt_event *e, struct stream *s)
{
    if (!e->value)
        return 0;
    struct gwa_duration duration = gwa_durations_of(t->durations, e, &s->context);
    struct gwa_piece p = {.activity = GWA_COPY};
    struct placing how = {.arrival = e->t1_ns + (int64_t)t->start_ns,
                          .ns = duration.ns,
                          .at_return = t->launches_block};
    int rc = place(t, e, s, &how, &p);
    account(s, &duration, p.inside);
    if (p.inside)
        s->device->copy_error[GWT_SAMPLE_MEMSET] += duration.error;
    return rc;
}

/* It runs on the host; the stream goes on when it has returned. */
static void host_function(struct gwa_timeline *t, const struct gwt_event *e, struct stream *s)
{
    int64_t from = e->t1_ns + (int64_t)t->start_ns;
    order(s);
    raise_to(&from, s->end);
    raise_to(&from, s->wait);
    raise_to(&s->wait, from + HOST_FUNCTION_NS);
    mark_dirty(s);
}

/* ---- events ------------------------------------------------------------------------------ */

struct recorded *gwa_timeline_recorded(struct gwa_timeline *t, uint64_t handle)
{
    return &t->events[(handle * 0x9e3779b97f4a7c15u) >> 48];
}

int64_t gwa_timeline_recorded_end(const struct gwa_timeline *t, const struct recorded *r)
{
    const struct stream *s = t->streams[r->stream];
    if (s && r->ordinal <= s->done_ordinal && s->done < r->end)
        return s->done;
    return r->end;
}

static void record_event(struct gwa_timeline *t, const struct gwt_event *e, struct stream *s)
{
    struct recorded *r = gwa_timeline_recorded(t, e->value);
    order(s);
    *r = (struct recorded){
        .handle = e->value, .ordinal = s->ordinal, .end = s->end, .stream = s->id};
    raise_to(&r->end, s->wait);
}

static void wait_for_event(struct gwa_timeline *t, const struct gwt_event *e, struct stream *s)
{
    const struct recorded *r = gwa_timeline_recorded(t, e->value);
    if (!r->stream || r->handle != e->value || r->stream == s->id)
        return;
    raise_to(&s->wait, gwa_timeline_recorded_end(t, r));
    mark_dirty(s);
}

int gwa_timeline_event(struct gwa_timeline *t, const struct gwt_event *e)
{
    struct stream *s;
    int rc;
    if (e->t1_ns > t->now)
        t->now = e->t1_ns;
    switch (e->kind) {
    case GWT_LAUNCH:
    case GWT_GRAPH_LAUNCH:
    case GWT_COPY:
    case GWT_MEMSET:
    case GWT_HOST_FUNC:
    case GWT_EVENT_RECORD:
    case GWT_STREAM_WAIT:
        break;
    case GWT_SYNC:
        if (gwa_executed(e))
            gwa_timeline_sync(t, e);
        return 0;
    default:
        return 0;
    }
    if (!gwa_executed(e))
        return 0;
    rc = stream_of(t, e, &s);
    if (!s)
        return rc;
    switch (e->kind) {
    case GWT_LAUNCH:
        return launch(t, e, s);
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
