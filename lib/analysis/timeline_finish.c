/* The sums of the timeline, and the shapes of graphs. */
#include "timeline_internal.h"
#include "grow.h"

#include <math.h>

/* Time of a graph's nodes, one after another. */
struct nodes {
    double count, kernels, comm, ns;
};

static void add_node(const struct gwa_timeline *t, const struct gwt_graph_item *item,
                     struct nodes *sum)
{
    struct gwa_duration one;
    if (item->kind == GWT_LAUNCH) {
        one = gwa_durations_signature(t->durations, item->signature);
        sum->kernels += item->count;
        if (gwa_durations_is_comm(t->durations, item->signature))
            sum->comm += item->count;
    } else if (item->kind == GWT_COPY) {
        one =
            gwa_durations_copy(t->durations, item->direction, item->bytes / item->count, 1, false);
    } else if (item->kind == GWT_MEMSET) {
        one = gwa_durations_memset(t->durations, item->bytes / item->count, false);
    } else {
        return;
    }
    sum->count += item->count;
    sum->ns += item->count * one.ns;
}

/* Of the time that a graph takes, the share in which none of its nodes runs.
 *
 * One after another: the gaps between them. Where they take longer in all than the whole does,
 * some run side by side, say in two rows: the first is busy but for its gaps, the second with
 * what is left, and nothing runs while both pause. */
static double hollow_share(double whole, double nodes_ns, double count, double gap)
{
    double both = nodes_ns / whole;
    double first = nodes_ns / (nodes_ns + count * gap);
    double second = fmin(fmax(both - first, 0), first);
    return (1 - first) * (1 - second);
}

/* A pair of events around a graph measures its entry and exit too, and its nodes lie further apart
 * than those of the graph that calibrates gaps, the fuller the device: by 5 us, and 0.1 us a gap,
 * for one of 48 nodes on an H200, against CUPTI in three runs. Not taken off, since one graph tells
 * nothing of others. */
#define GRAPH_DOUBT_NS 4500
#define NODE_DOUBT_NS  105

static struct shape shape_of(const struct gwa_timeline *t, uint32_t graph)
{
    struct shape out = {.known = true, .activity = GWA_COMPUTE, .end = {.at = NEVER}};
    struct nodes sum = {0};
    struct gwt_graph_info info;
    if (!gwt_graph(t->trace, graph, &info))
        return out;
    for (uint32_t i = 0; i < info.graph->items; i++)
        if (info.items[i].count)
            add_node(t, &info.items[i], &sum);
    if (!(sum.kernels > 0))
        out.activity = GWA_COPY;
    else if (sum.comm >= sum.kernels)
        out.activity = GWA_COMM;
    out.doubt_ns = (float)(GRAPH_DOUBT_NS + NODE_DOUBT_NS * fmax(sum.count - 1, 0));
    if (sum.count < 2)
        return out;
    double whole = gwa_durations_graph(t->durations, graph).ns;
    double gap = gwa_durations_graph_gap(t->durations, graph, t->model.ns[GWA_GAP]);
    out.hollow = (float)fmin(hollow_share(whole, sum.ns, sum.count - 1, gap), 0.5);
    out.hollow_ns = (float)gap;
    return out;
}

struct shape *gwa_timeline_shape(struct gwa_timeline *t, uint32_t graph, struct shape *unknown)
{
    struct shape *s = unknown;
    if (graph < GWA_TIMED_MAX && !gwa_grow_within(&t->room, (void **)&t->shapes, &t->shapes_count,
                                                  graph, sizeof(*t->shapes)))
        s = &t->shapes[graph];
    if (s == unknown || !s->known)
        *s = shape_of(t, graph);
    return s;
}

/* ---- graphs' time, by their nodes --------------------------------------------------- */

/* Nodes whose functions were timed elsewhere and that leave each other less than that run side by
 * side. */
#define SIDE_BY_SIDE 0.75

/* What each node has of a graph's time, over what it took where it was timed: of one after another
 * the whole is known best, and they were timed in another company; side by side each takes what it
 * takes. */
static double share_of(const struct gwa_timeline *t, const struct gwt_graph_info *info, double ns)
{
    double inside = 0;
    bool timed = true;
    for (uint32_t i = 0; i < info->graph->items; i++) {
        const struct gwt_graph_item *item = &info->items[i];
        if (item->kind != GWT_LAUNCH)
            continue;
        struct gwa_duration one = gwa_durations_signature(t->durations, item->signature);
        inside += item->count * one.ns;
        timed &= !one.guessed;
    }
    double share = inside > 0 ? ns / inside : 0;
    return timed && share > 0 && share < SIDE_BY_SIDE ? 1 : share;
}

static int share_out(struct gwa_timeline *t, struct gwa_timeline_device *out, uint32_t graph)
{
    const struct gwa_ran *ran = &out->graphs[graph];
    struct gwt_graph_info info;
    if (!ran->count || !gwt_graph(t->trace, graph, &info))
        return 0;
    struct shape shape = graph < t->shapes_count ? t->shapes[graph] : (struct shape){0};
    double whole = ran->ns / (double)ran->count * (1 - (double)shape.hollow);
    double share = share_of(t, &info, whole);
    for (uint32_t i = 0; i < info.graph->items && share > 0; i++) {
        uint32_t id = info.items[i].signature;
        if (info.items[i].kind != GWT_LAUNCH)
            continue;
        int rc = gwa_timeline_ran(t, &out->signatures, &out->signatures_count, &id);
        if (rc)
            return rc;
        uint64_t count = ran->count * info.items[i].count;
        out->signatures[id].graph_count += count;
        out->signatures[id].graph_ns +=
            share * (double)count * gwa_durations_signature(t->durations, id).ns;
    }
    return 0;
}

/* Errors of one signature's mean are the same for all its launches; of different signatures
 * they are independent. */
static void add_errors(const struct gwa_timeline *t, struct device *d)
{
    struct gwa_timeline_device *out = &d->out;
    double error2 = d->spread2 + d->place * d->place;
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
        for (unsigned k = 0; k < 64; k++)
            error2 += d->copy_error[i][k] * d->copy_error[i][k];
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
