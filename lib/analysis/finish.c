/* From the tally to the figures that belong to the whole process. */
#include "tally.h"
#include "kinds.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct gwa_times gwa_times_us(const struct gwa_hist *h)
{
    return (struct gwa_times){
        .mean = gwa_hist_mean(h) / 1e3,
        .p50 = gwa_hist_quantile(h, 0.50) / 1e3,
        .p90 = gwa_hist_quantile(h, 0.90) / 1e3,
        .p99 = gwa_hist_quantile(h, 0.99) / 1e3,
    };
}

/* The window that counts are of. */
double gwa_counted_s(const struct gwa_process *p)
{
    const struct gwa_window *w = &p->window;
    double s = isnan(w->excluded_s) ? w->wall_s : w->wall_s + w->excluded_s;
    return s > 0 ? s : NAN;
}

static bool is_launch(unsigned kind)
{
    return kind == GWT_LAUNCH || kind == GWT_GRAPH_LAUNCH;
}

static int by_kind_and_calls(const void *a, const void *b)
{
    const struct gwa_api *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->calls != y->calls)
        return x->calls > y->calls ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int finish_apis(const struct gwa_tally *t, struct gwa_process *p)
{
    size_t n = 0;
    for (size_t i = 0; i < t->apis_count; i++)
        n += t->apis[i].seen;
    p->apis = calloc(n ? n : 1, sizeof(*p->apis));
    if (!p->apis)
        return -ENOMEM;
    for (size_t i = 0; i < t->apis_count; i++) {
        const struct gwa_api_tally *a = &t->apis[i];
        if (!a->seen)
            continue;
        const char *name = gwt_api_name(t->trace, (uint16_t)i);
        struct gwa_api *out = &p->apis[p->apis_count++];
        *out = (struct gwa_api){.name = name ? name : "(unknown)",
                                .kind = a->kind,
                                .level = a->level,
                                .calls = a->calls,
                                .failed = a->failed,
                                .captured = a->captured,
                                .bytes = a->bytes,
                                .ms = (double)a->ns / 1e6,
                                .us = {NAN, NAN, NAN, NAN}};
        if (a->hist)
            out->us = gwa_times_us(a->hist);
    }
    qsort(p->apis, p->apis_count, sizeof(*p->apis), by_kind_and_calls);
    return 0;
}

static int finish_launches(const struct gwa_tally *t, struct gwa_process *p)
{
    struct gwa_launches *l = &p->launches;
    struct gwa_hist *all = calloc(1, sizeof(*all));
    if (!all)
        return -ENOMEM;
    for (size_t i = 0; i < t->apis_count; i++)
        if (t->apis[i].hist)
            gwa_hist_merge(all, t->apis[i].hist);
    l->api_us = gwa_times_us(all);
    free(all);

    for (size_t i = 0; i < p->apis_count; i++) {
        const struct gwa_api *a = &p->apis[i];
        if (is_launch(a->kind))
            l->failed += a->failed;
        if (a->kind == GWT_GRAPH_LAUNCH)
            l->graph_launches += a->calls;
        if (a->kind != GWT_LAUNCH)
            continue;
        l->calls += a->calls;
        l->captured += a->captured;
        if (a->level == GWT_LEVEL_DRIVER)
            l->driver_only += a->calls;
    }
    for (size_t i = 0; i < p->devices_count; i++)
        l->kernels += p->devices[i].kernels_executed;
    l->holes = t->holes;
    l->approximate = t->approximate;
    l->driver_only_pct = l->calls ? 100.0 * (double)l->driver_only / (double)l->calls : NAN;
    l->per_second = (double)(l->calls + l->graph_launches) / gwa_counted_s(p);
    l->host_us_per_launch = gwa_hist_quantile(&t->cadence, 0.5) / 1e3;
    return 0;
}

static void finish_allocations(struct gwa_process *p)
{
    struct gwa_allocations *m = &p->allocations;
    for (size_t i = 0; i < p->apis_count; i++) {
        const struct gwa_api *a = &p->apis[i];
        switch (a->kind) {
        case GWT_ALLOC:
            m->device_calls += a->calls;
            break;
        case GWT_HOST_ALLOC:
            m->host_calls += a->calls;
            break;
        case GWT_FREE:
        case GWT_HOST_FREE:
            m->frees += a->calls;
            m->free_ms += a->ms;
            continue;
        default:
            continue;
        }
        m->failed += a->failed;
        m->ms += a->ms;
    }
    m->calls = m->device_calls + m->host_calls;
}

static void finish_other(const struct gwa_tally *t, struct gwa_process *p)
{
    p->captures_span_pct =
        t->first_capture == INT64_MAX
            ? NAN
            : 100 * (double)(t->last_capture - t->first_capture) / 1e9 / gwa_counted_s(p);
    for (size_t i = 0; i < p->apis_count; i++) {
        const struct gwa_api *a = &p->apis[i];
#define X(field, kind_, text)                                                                      \
    if (a->kind == kind_)                                                                          \
        p->other.field += a->calls;
        GWA_OTHER_CALLS(X)
#undef X
    }
    /* A capture is two calls; its end is the one that says that it came to pass. */
    p->other.captures /= 2;
}

static int finish_collectives(struct gwa_process *p)
{
    p->collectives = calloc(p->apis_count ? p->apis_count : 1, sizeof(*p->collectives));
    if (!p->collectives)
        return -ENOMEM;
    for (size_t i = 0; i < p->apis_count; i++) {
        const struct gwa_api *a = &p->apis[i];
        if (a->kind != GWT_NCCL || !a->calls)
            continue;
        const char *op = !strncmp(a->name, "nccl", 4) && a->name[4] ? a->name + 4 : a->name;
        p->collectives[p->collectives_count++] =
            (struct gwa_collective){.op = op, .calls = a->calls, .bytes = a->bytes, .ms = a->ms};
    }
    return 0;
}

static int finish_threads(const struct gwa_tally *t, struct gwa_process *p)
{
    size_t n = 0;
    for (size_t i = 0; i < t->threads_count; i++)
        n += t->threads[i].calls > 0;
    p->threads = calloc(n ? n : 1, sizeof(*p->threads));
    if (!p->threads)
        return -ENOMEM;
    for (size_t i = 0; i < t->threads_count; i++) {
        const struct gwa_thread_tally *th = &t->threads[i];
        struct gwt_thread_info info = {0};
        if (!th->calls)
            continue;
        gwt_thread(t->trace, (uint32_t)i, &info);
        p->threads[p->threads_count++] =
            (struct gwa_thread){.id = (uint32_t)i,
                                .tid = info.tid,
                                .name = info.name,
                                .calls = th->calls,
                                .launches = th->launches,
                                .waited_ms = (double)th->waited_ns / 1e6};
    }
    return 0;
}

static int finish_streams(const struct gwa_tally *t, struct gwa_process *p)
{
    size_t n = 0;
    for (size_t i = 0; i < t->streams_count; i++)
        n += t->streams[i].seen;
    p->streams = calloc(n ? n : 1, sizeof(*p->streams));
    if (!p->streams)
        return -ENOMEM;
    for (size_t i = 0; i < t->streams_count; i++) {
        const struct gwa_stream_tally *s = &t->streams[i];
        const struct gwt_def_stream *def = gwt_stream(t->trace, (uint16_t)i);
        /* the stand-in of calls that take no stream, such as a device-wide wait */
        bool stand_in = !def || def->type == GWT_STREAM_NONE;
        if (!s->seen || (stand_in && !(s->launches + s->copies + s->memsets + s->collectives)))
            continue;
        struct gwa_stream *out = &p->streams[p->streams_count++];
        *out = (struct gwa_stream){.id = (uint16_t)i,
                                   .device = s->device,
                                   .launches = s->launches,
                                   .copies = s->copies,
                                   .memsets = s->memsets,
                                   .collectives = s->collectives,
                                   .syncs = s->syncs,
                                   .nonblocking = 0xff};
        if (!def)
            continue;
        struct gwt_thread_info info = {0};
        out->type = def->type;
        out->handle = def->handle;
        out->nonblocking = def->nonblocking;
        if (def->type == GWT_STREAM_PER_THREAD && gwt_thread(t->trace, def->thread, &info))
            out->tid = info.tid;
    }
    return 0;
}

int gwa_finish_calls(struct gwa_tally *t, struct gwa_process *p)
{
    int rc;
    p->syncs = t->syncs;
    p->blocking_copies = t->blocking_copies;
    p->polls = t->ranges.all ? (int64_t)gwt_counter(t->trace, GWT_C_POLLS) : -1;
    if ((rc = finish_apis(t, p)) || (rc = finish_launches(t, p)) || (rc = finish_collectives(p)) ||
        (rc = finish_threads(t, p)) || (rc = finish_streams(t, p)))
        return rc;
    finish_allocations(p);
    finish_other(t, p);
    return 0;
}
