/* The sums of the timeline, and the shapes of graphs. */
#include "timeline_internal.h"
#include "grow.h"

/* Of the time that a graph takes, what goes by between its nodes: where all of them have samples
 * of their own, what is left of the whole; else the usual gap. */
static struct shape shape_of(const struct gwa_timeline *t, uint32_t graph)
{
    struct shape out = {.known = true, .activity = GWA_COMPUTE};
    struct gwt_graph_info info;
    double nodes = 0, comm = 0, kernels = 0, inside = 0;
    bool own = true;
    if (!gwt_graph(t->trace, graph, &info))
        return out;
    for (uint32_t i = 0; i < info.graph->items; i++) {
        const struct gwt_graph_item *item = &info.items[i];
        double count = item->count;
        if (item->kind == GWT_LAUNCH) {
            struct gwa_duration one = gwa_durations_signature(t->durations, item->signature);
            inside += count * one.ns;
            own &= one.own;
            kernels += count;
            if (gwa_durations_is_comm(t->durations, item->signature))
                comm += count;
        } else if (item->kind == GWT_COPY || item->kind == GWT_MEMSET) {
            own = false;
        } else {
            continue;
        }
        nodes += count;
    }
    if (!kernels)
        out.activity = GWA_COPY;
    else if (comm == kernels)
        out.activity = GWA_COMM;
    if (nodes < 2)
        return out;
    double whole = gwa_durations_graph(t->durations, graph).ns;
    double between = own ? whole - inside : (nodes - 1) * GWA_GRAPH_GAP_NS;
    if (between > 2 * (nodes - 1) * GWA_GRAPH_GAP_NS)
        between = 2 * (nodes - 1) * GWA_GRAPH_GAP_NS;
    if (between > whole / 2)
        between = whole / 2;
    if (between > 0) {
        out.hollow = (float)(between / whole);
        out.hollow_ns = (float)(between / (nodes - 1));
    }
    return out;
}

struct shape gwa_timeline_shape(struct gwa_timeline *t, uint32_t graph)
{
    if (gwa_grow((void **)&t->shapes, &t->shapes_count, graph, sizeof(*t->shapes)))
        return shape_of(t, graph);
    if (!t->shapes[graph].known)
        t->shapes[graph] = shape_of(t, graph);
    return t->shapes[graph];
}

/* ---- graphs' time, by their nodes ------------------------------------------------------------ */

static int share_out(const struct gwa_timeline *t, struct gwa_timeline_device *out, uint32_t graph)
{
    const struct gwa_ran *ran = &out->graphs[graph];
    struct gwt_graph_info info;
    double inside = 0;
    if (!ran->count || !gwt_graph(t->trace, graph, &info))
        return 0;
    for (uint32_t i = 0; i < info.graph->items; i++)
        if (info.items[i].kind == GWT_LAUNCH)
            inside += info.items[i].count *
                      gwa_durations_signature(t->durations, info.items[i].signature).ns;
    if (!(inside > 0))
        return 0;
    struct shape shape = graph < t->shapes_count ? t->shapes[graph] : (struct shape){0};
    double share = ran->ns * (1 - (double)shape.hollow) / inside;
    for (uint32_t i = 0; i < info.graph->items; i++) {
        uint32_t id = info.items[i].signature;
        if (info.items[i].kind != GWT_LAUNCH)
            continue;
        int rc = gwa_grow((void **)&out->signatures, &out->signatures_count, id,
                          sizeof(*out->signatures));
        if (rc == -ERANGE)
            continue;
        if (rc)
            return rc;
        out->signatures[id].graph_ns +=
            share * info.items[i].count * gwa_durations_signature(t->durations, id).ns;
    }
    return 0;
}

/* Errors of one signature's mean are the same for all its launches; of different signatures
 * they are independent. */
static void add_errors(const struct gwa_timeline *t, struct device *d)
{
    struct gwa_timeline_device *out = &d->out;
    double error2 = d->spread2;
    for (size_t i = 0; i < out->signatures_count; i++) {
        double e = (double)out->signatures[i].count *
                   gwa_durations_signature(t->durations, (uint32_t)i).error;
        error2 += e * e;
    }
    for (size_t i = 0; i < out->graphs_count; i++) {
        double e =
            (double)out->graphs[i].count * gwa_durations_graph(t->durations, (uint32_t)i).error;
        error2 += e * e;
    }
    for (unsigned i = 0; i < GWT_SAMPLE_CLASS_COUNT; i++)
        error2 += d->copy_error[i] * d->copy_error[i];
    out->error2 = error2;
}

int gwa_timeline_finish(struct gwa_timeline *t)
{
    int rc = 0;
    for (unsigned i = 0; i < DEVICES && !rc; i++) {
        struct device *d = t->devices[i];
        if (!d)
            continue;
        gwa_sweep(&d->out.sweep, d->queues, d->streams_count, d->scratch, INT64_MAX);
        gwa_sweep_finish(&d->out.sweep);
        add_errors(t, d);
        for (size_t g = 0; g < d->out.graphs_count && !rc; g++)
            rc = share_out(t, &d->out, (uint32_t)g);
    }
    return rc;
}

const struct gwa_timeline_device *gwa_timeline_of(const struct gwa_timeline *t, unsigned device)
{
    return device < DEVICES && t->devices[device] ? &t->devices[device]->out : NULL;
}

const struct gwa_moved *gwa_timeline_moved(const struct gwa_timeline *t, unsigned stream,
                                           unsigned direction, unsigned memory)
{
    const struct stream *s = stream < STREAMS ? t->streams[stream] : NULL;
    if (!s || !s->moved || direction >= GWT_DIR_COUNT || memory >= MEMORIES)
        return NULL;
    return &s->moved[direction][memory];
}
