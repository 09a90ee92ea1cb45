#include "tally.h"
#include "grow.h"
#include "kinds.h"
#include "memory.h"

static struct gwa_device_tally *new_device(struct gwa_tally *t, unsigned index)
{
    struct gwa_device_tally *d = t->devices[index] = calloc(1, sizeof(*d));
    if (d)
        d->peak_allocated = d->peak_reserved = -1;
    return d;
}

static inline struct gwa_device_tally *device_of(struct gwa_tally *t, unsigned index)
{
    return t->devices[index] ? t->devices[index] : new_device(t, index);
}

static int new_thread(struct gwa_tally *t, uint32_t id, struct gwa_thread_tally **out)
{
    size_t before = t->threads_count;
    int rc =
        gwa_grow_within(&t->room, (void **)&t->threads, &t->threads_count, id, sizeof(*t->threads));
    for (size_t i = before; i < t->threads_count; i++)
        t->threads[i].last_launch = INT64_MIN;
    /* An id that is not believed shares the place of id 0, which no thread has. */
    if (rc == -ERANGE)
        rc = t->threads_count ? 0 : new_thread(t, 0, out);
    if (!rc)
        *out = &t->threads[id < t->threads_count ? id : 0];
    return rc;
}

static inline int thread_of(struct gwa_tally *t, uint32_t id, struct gwa_thread_tally **out)
{
    if (id >= t->threads_count)
        return new_thread(t, id, out);
    *out = &t->threads[id];
    return 0;
}

static int count_api(struct gwa_tally *t, const struct gwt_event *e, uint64_t ns, bool executed)
{
    int rc = gwa_grow((void **)&t->apis, &t->apis_count, e->api, sizeof(*t->apis));
    if (rc)
        return rc;
    struct gwa_api_tally *a = &t->apis[e->api];
    a->seen = 1;
    a->kind = e->kind;
    a->level = e->level;
    if (executed) {
        a->calls++;
        a->ns += ns;
    } else if (e->flags & GWT_F_CAPTURED && !e->status) {
        a->captured++;
        return 0;
    } else {
        a->failed++;
        return 0;
    }
    switch (e->kind) {
    case GWT_LAUNCH:
    case GWT_GRAPH_LAUNCH:
        if (!a->hist && !(a->hist = calloc(1, sizeof(*a->hist))))
            return -ENOMEM;
        gwa_hist_add(a->hist, ns);
        break;
    case GWT_COPY:
    case GWT_MEMSET:
    case GWT_PREFETCH:
    case GWT_ALLOC:
    case GWT_HOST_ALLOC:
    case GWT_NCCL:
        a->bytes += e->value;
        break;
    }
    return 0;
}

/* ---- by kind -------------------------------------------------------------------- */

static int count_kernel(struct gwa_tally *t, struct gwa_device_tally *d, uint32_t signature)
{
    int rc = 0;
    if (signature >= d->signatures_count)
        rc = gwa_grow_within(&t->room, (void **)&d->signatures, &d->signatures_count, signature,
                             sizeof(*d->signatures));
    if (!rc)
        d->signatures[signature]++;
    else if (rc == -ERANGE)
        d->unnamed++, rc = 0;
    return rc;
}

static int count_graph(struct gwa_tally *t, struct gwa_device_tally *d, const struct gwt_event *e)
{
    int rc = gwa_grow_within(&t->room, (void **)&d->graphs, &d->graphs_count, e->arg,
                             sizeof(*d->graphs));
    if (rc && rc != -ERANGE)
        return rc;
    struct gwa_graph_tally *g = rc ? &d->lost_graphs : &d->graphs[e->arg];
    g->launches++;
    if (e->flags & GWT_F_APPROX)
        g->approximate++;
    return 0;
}

static enum gwa_memory memory_of(const struct gwt_event *e)
{
    unsigned direction = GWT_F_SUB(e->flags);
    if (direction == GWT_D2D || direction == GWT_P2P)
        return GWA_MEM_DEVICE;
    return e->flags & GWT_F_PAGEABLE ? GWA_MEM_PAGEABLE : GWA_MEM_PINNED;
}

static int count_copy(struct gwa_tally *t, const struct gwt_event *e, uint64_t ns)
{
    struct gwa_stream_tally *s = &t->streams[e->stream];
    unsigned direction = GWT_F_SUB(e->flags);
    if (!e->value && e->arg <= 1)
        return 0; /* a copy of nothing starts nothing */
    if (direction >= GWT_DIR_COUNT)
        direction = GWT_DIR_UNKNOWN;
    if (!s->transfers && !(s->transfers = calloc(GWT_DIR_COUNT, sizeof(*s->transfers))))
        return -ENOMEM;
    struct gwa_copy_tally *c = &s->transfers[direction][memory_of(e)];
    c->calls += e->arg;
    c->bytes += e->value;
    s->copies += e->arg;
    if (gwa_waits_for_copy(e)) {
        c->blocking++;
        c->blocking_bytes += e->value;
        c->blocking_ns += ns;
        t->blocking_copies.calls++;
        t->blocking_copies.waited_ms += (double)ns / 1e6;
    }
    return 0;
}

static void count_size(struct gwa_copies *c, const struct gwt_event *e)
{
    if (!e->value)
        return;
    c->calls++;
    c->bytes += e->value;
}

static void count_launch_cadence(struct gwa_tally *t, struct gwa_thread_tally *th,
                                 const struct gwt_event *e)
{
    if (e->flags & GWT_F_NESTED)
        return;
    if (th->last_launch != INT64_MIN && e->t0_ns > th->last_launch)
        gwa_hist_add(&t->cadence, (uint64_t)(e->t0_ns - th->last_launch));
    th->last_launch = e->t0_ns;
}

/* ---- PyTorch's allocator ------------------------------------------------------------- */

/* What has been held since the last report counts for the range if they overlap. */
void gwa_tally_held(struct gwa_tally *t, struct gwa_device_tally *d, int64_t until)
{
    if (!d->reported)
        return;
    if (!t->ranges.all &&
        !gwa_ranges_overlap(&t->ranges, d->since, until > d->since ? until : d->since + 1))
        return;
    if ((int64_t)d->allocated > d->peak_allocated)
        d->peak_allocated = (int64_t)d->allocated;
    if ((int64_t)d->reserved > d->peak_reserved)
        d->peak_reserved = (int64_t)d->reserved;
}

static int allocator(struct gwa_tally *t, const struct gwt_event *e)
{
    struct gwa_device_tally *d = device_of(t, e->device);
    if (!d)
        return -ENOMEM;
    gwa_tally_held(t, d, e->t0_ns);
    d->reported = true;
    d->since = e->t0_ns;
    d->allocated = e->allocated;
    d->reserved = e->reserved;
    return 0;
}

/* ---- one event -------------------------------------------------------------------------- */

int gwa_tally_widen(struct gwa_tally *t, const struct gwt_event *e)
{
    bool submits = gwa_submits(e->kind);
    if ((!submits && e->kind != GWT_SYNC) || e->level == GWT_LEVEL_NONE || !gwa_executed(e))
        return 0;
    struct gwa_device_tally *d = device_of(t, e->device);
    if (!d)
        return -ENOMEM;
    if (submits) {
        if (!d->operated || e->t0_ns < d->first)
            d->first = e->t0_ns;
        if (!d->operated || e->t1_ns > d->last)
            d->last = e->t1_ns;
        d->operated = true;
    } else if (d->operated && e->t1_ns > d->last && gwa_idle_pending(t->idle, e->device)) {
        d->last = e->t1_ns;
    }
    return 0;
}

static int executed_call(struct gwa_tally *t, const struct gwt_event *e,
                         struct gwa_thread_tally *th, uint64_t ns)
{
    int rc = gwa_grow((void **)&t->streams, &t->streams_count, e->stream, sizeof(*t->streams));
    if (rc)
        return rc;
    struct gwa_stream_tally *s = &t->streams[e->stream];
    if (gwa_submits(e->kind) || e->kind == GWT_SYNC) {
        s->seen = 1;
        s->device = e->device;
        if (!device_of(t, e->device))
            return -ENOMEM;
    }
    struct gwa_device_tally *d = t->devices[e->device];
    switch (e->kind) {
    case GWT_LAUNCH:
        s->launches++;
        th->launches++;
        if (e->flags & GWT_F_HOLE)
            t->holes++;
        count_launch_cadence(t, th, e);
        return count_kernel(t, d, e->arg);
    case GWT_GRAPH_LAUNCH:
        s->launches++;
        th->launches++;
        count_launch_cadence(t, th, e);
        return count_graph(t, d, e);
    case GWT_COPY:
        if (gwa_waits_for_copy(e)) {
            th->waited_ns += ns;
            th->last_launch = INT64_MIN;
        }
        return count_copy(t, e, ns);
    case GWT_MEMSET:
        count_size(&d->memsets, e);
        s->memsets++;
        break;
    case GWT_PREFETCH:
        count_size(&d->prefetches, e);
        break;
    case GWT_SYNC:
        s->syncs++;
        th->waited_ns += ns;
        th->last_launch = INT64_MIN;
        t->syncs.calls++;
        t->syncs.waited_ms += (double)ns / 1e6;
        break;
    case GWT_NCCL:
        s->collectives++;
        break;
    }
    return 0;
}

int gwa_tally_event(struct gwa_tally *t, const struct gwt_event *e)
{
    if (e->t1_ns > t->end)
        t->end = e->t1_ns;
    if (e->kind == GWT_ALLOCATOR)
        return allocator(t, e);

    int rc = 0;
    bool inside = gwa_ranges_hold(&t->ranges, e->t0_ns);
    if (e->level != GWT_LEVEL_NONE) {
        struct gwa_thread_tally *th;
        uint64_t ns = e->t1_ns > e->t0_ns ? (uint64_t)(e->t1_ns - e->t0_ns) : 0;
        if ((rc = thread_of(t, e->thread, &th)))
            return rc;
        if (inside) {
            bool executed = gwa_executed(e);
            th->calls++;
            if (e->kind == GWT_CAPTURE) {
                t->last_capture = e->t0_ns;
                if (t->first_capture == INT64_MAX)
                    t->first_capture = e->t0_ns;
            }
            rc = count_api(t, e, ns, executed);
            if (!rc && executed)
                rc = executed_call(t, e, th, ns);
        } else {
            th->last_launch = INT64_MIN;
        }
    }
    return rc;
}

void gwa_tally_free(struct gwa_tally *t)
{
    for (size_t i = 0; i < t->apis_count; i++)
        free(t->apis[i].hist);
    for (size_t i = 0; i < t->streams_count; i++)
        free(t->streams[i].transfers);
    for (unsigned i = 0; i < GWA_DEVICES; i++) {
        if (!t->devices[i])
            continue;
        free(t->devices[i]->signatures);
        free(t->devices[i]->graphs);
        free(t->devices[i]);
    }
    free(t->apis);
    free(t->streams);
    free(t->threads);
    gwa_idle_free(t->idle);
    gwa_timeline_free(t->timeline);
    gwa_attribution_free(t->attribution);
    gwa_memory_free(t->memory);
    gwa_durations_free(t->durations);
    gwa_ranges_free(&t->ranges);
    gwa_ranges_free(&t->window);
    gwa_steps_free(t->steps);
    gwa_step_calls_free(t->step_calls);
}
