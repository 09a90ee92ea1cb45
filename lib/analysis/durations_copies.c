/* Expected durations of copies, memsets and graphs. */
#include "durations_internal.h"
#include "grow.h"
#include "order.h"

#include <math.h>
#include <stdlib.h>

#define RATE_DOUBT 0.15 /* of a rate that nothing measured */

/* ---- copies ------------------------------------------------------------------------- */

static void fit_rates(struct gwa_durations *d)
{
    static const double per_lane[] = {0.2, 0.2, 0.4, 0.77, 1.56, 3.45, 6.9};
    const char *name;
    double pcie = 20;
    for (unsigned i = 0; i < 256; i++) {
        const struct gwt_def_device *device = gwt_device(d->trace, i, &name);
        if (!device)
            continue;
        if (device->pcie_gen && device->pcie_gen < sizeof(per_lane) / sizeof(*per_lane) &&
            device->pcie_width)
            pcie = per_lane[device->pcie_gen] * device->pcie_width;
        break;
    }
    d->rate[GWT_SAMPLE_H2D] = d->rate[GWT_SAMPLE_D2H] = pcie;
    d->rate[GWT_SAMPLE_D2D] = 1000;
    d->rate[GWT_SAMPLE_MEMSET] = 1500;
}

/* A copy between host and device runs on an engine of its own, and the events around it do not:
 * a pair contains two hand-overs. How long they take, the smallest copies tell, whose duration
 * is known; before, it is as on an H200 (pairs around 4 KiB of 8.0 and 6.9 us). */
#define SMALL_BYTES       4096
#define SMALL_DOUBT_NS    200
#define HAND_OVER_DOUBT   1500.0
#define HAND_OVER_EACH_NS 2000.0 /* scatter of one, least */
static const struct {
    double small_ns;  /* CUPTI's duration of a copy of few bytes */
    double beyond_ns; /* by how much more a pair adds than around a kernel */
} hand_over[GWT_SAMPLE_CLASS_COUNT] = {
    [GWT_SAMPLE_H2D] = {1000, 4200},
    [GWT_SAMPLE_D2H] = {1550, 2600},
};

static bool has_engine(unsigned class)
{
    return class == GWT_SAMPLE_H2D || class == GWT_SAMPLE_D2H;
}

/* For its engine: it would last so long, not as long as others. */
static bool has_waited(unsigned class, double ns, double usual)
{
    return has_engine(class) && ns > 1.3 * usual + 2000;
}

/* adds: what about a pair adds. Copies of many bytes last as long as these say. */
#define MANY_BYTES 65536
static void settle_bucket(struct bucket *b, bool waits, double adds)
{
    double ns[KEPT];
    size_t n = b->pairs.n < KEPT ? (size_t)b->pairs.n : KEPT;
    b->middle = b->pairs.mean;
    b->spread = b->pairs.n > 1 ? sqrt(b->pairs.m2 / (double)(b->pairs.n - 1)) : 0;
    if (!waits || !n)
        return;
    for (size_t i = 0; i < n; i++) {
        double scale = b->bytes < MANY_BYTES ? 1 : b->bytes / (double)b->kept[i].bytes;
        ns[i] = adds + scale * ((double)b->kept[i].pair - adds);
    }
    qsort(ns, n, sizeof(*ns), gwa_by_value);
    b->middle = (ns[(n - 1) / 2] + ns[n / 2]) / 2;
    b->spread = 0.74 * (ns[n - 1 - n / 4] - ns[n / 4]); /* of a normal */
}

static void settle_buckets(struct gwa_durations *d, double kernel)
{
    for (unsigned class = 0; class < GWT_SAMPLE_CLASS_COUNT; class ++)
        for (unsigned i = 0; i < BUCKETS; i++)
            settle_bucket(&d->copies[class][i], has_engine(class),
                          kernel + hand_over[class].beyond_ns);
}

void gwa_durations_fit_hand_over(struct gwa_durations *d, double kernel)
{
    fit_rates(d);
    settle_buckets(d, kernel);
    for (unsigned class = GWT_SAMPLE_H2D; class <= GWT_SAMPLE_D2H; class ++) {
        if (d->constants[class].count) /* the run measured it */
            continue;
        double weight = 1 / (HAND_OVER_DOUBT * HAND_OVER_DOUBT);
        double beyond = hand_over[class].beyond_ns * gwa_durations_pace(d);
        double sum = weight * (kernel + beyond);
        for (unsigned i = 0; i <= gwa_durations_bucket(SMALL_BYTES); i++) {
            const struct bucket *b = &d->copies[class][i];
            double each = HAND_OVER_EACH_NS * HAND_OVER_EACH_NS;
            if (!b->pairs.n)
                continue;
            each = fmax(each, b->spread * b->spread);
            double off = b->middle - hand_over[class].small_ns - kernel - beyond;
            if (fabs(off) > 3 * HAND_OVER_DOUBT) /* it waited for something */
                continue;
            double w = (double)b->pairs.n / each;
            weight += w;
            sum += w * (b->middle - hand_over[class].small_ns - b->bytes / d->rate[class]);
        }
        d->constant[class] = sum / weight;
        d->doubt[class] = sqrt(1 / weight + SMALL_DOUBT_NS * SMALL_DOUBT_NS);
    }
}

/* Copies of few bytes last so long. */
#define LEAST_NS 1300

static double by_rate(const struct gwa_durations *d, unsigned class, double bytes)
{
    return LEAST_NS + bytes / d->rate[class];
}

/* Some copies went about as fast as the link is said to be. */
static bool link_is_so_fast(const struct gwa_durations *d)
{
    for (unsigned class = GWT_SAMPLE_H2D; class <= GWT_SAMPLE_D2H; class ++)
        for (size_t i = 0; i < d->points[class]; i++) {
            const struct point *p = &d->curves[class][i];
            if (p->bytes >= MANY_BYTES && p->ns < 1.5 * by_rate(d, class, p->bytes))
                return true;
        }
    return false;
}

/* Where another stream keeps the engine busy at that place of each step, all copies of a size wait
 * for it whenever they are timed. */
static void fit_waited(struct gwa_durations *d)
{
    if (!link_is_so_fast(d))
        return;
    for (unsigned class = GWT_SAMPLE_H2D; class <= GWT_SAMPLE_D2H; class ++)
        for (size_t i = 0; i < d->points[class]; i++) {
            struct point *p = &d->curves[class][i];
            double ns = by_rate(d, class, p->bytes);
            if (has_waited(class, p->ns, 1.5 * ns))
                *p = (struct point){
                    .bytes = p->bytes, .ns = ns, .error = RATE_DOUBT * ns, .spread = 0.3 * ns};
        }
}

void gwa_durations_fit_copies(struct gwa_durations *d)
{
    for (unsigned class = 0; class < GWT_SAMPLE_CLASS_COUNT; class ++) {
        for (unsigned i = 0; i < BUCKETS; i++) {
            const struct bucket *b = &d->copies[class][i];
            if (!b->pairs.n)
                continue;
            double n = (double)b->pairs.n, ns = gwa_durations_ns(d, class, b->middle);
            double variance =
                ((n - 1) * b->spread * b->spread + PRIOR * 0.0025 * ns * ns) / (n - 1 + PRIOR);
            d->curves[class][d->points[class]++] =
                (struct point){.bytes = b->bytes,
                               .ns = ns,
                               .error = hypot(standard_error(variance, n), d->doubt[class]),
                               .spread = sqrt(variance)};
        }
        /* none lasts much longer than one of more bytes: then it had waited */
        struct point *p = d->curves[class];
        for (size_t i = d->points[class]; i-- > 1;)
            if (has_waited(class, p[i - 1].ns, p[i].ns))
                p[i - 1].ns = p[i].ns;
    }
    fit_waited(d);
}

static struct gwa_duration one_copy(const struct gwa_durations *d, unsigned class, double bytes)
{
    const struct point *p = d->curves[class];
    size_t n = d->points[class], i = 0;
    if (!n) {
        double ns = by_rate(d, class, bytes);
        return (struct gwa_duration){.ns = ns, .error = RATE_DOUBT * ns, .spread = 0.3 * ns};
    }
    while (i < n && p[i].bytes <= bytes)
        i++;
    double ns;
    if (!i) {
        double least = fmin(LEAST_NS, p[0].ns); /* of few bytes; the rest is in proportion */
        ns = least + (p[0].ns - least) * bytes / p[0].bytes;
    } else if (i == n) {
        i = n - 1;
        /* what was measured at 1 MiB and above holds for more bytes too */
        ns = p[i].bytes >= 1 << 20 ? p[i].ns * bytes / p[i].bytes
                                   : p[i].ns + (bytes - p[i].bytes) / d->rate[class];
    } else {
        double share = (bytes - p[i - 1].bytes) / (p[i].bytes - p[i - 1].bytes);
        ns = p[i - 1].ns + share * (p[i].ns - p[i - 1].ns);
    }
    double scale = ns / p[i].ns, away = fabs(bytes - p[i].bytes);
    if (i && i < n)
        away = fmin(away, bytes - p[i - 1].bytes);
    bool near = bytes >= p[i].bytes / 2 && bytes <= p[i].bytes * 2;
    return (struct gwa_duration){.ns = ns,
                                 .error = hypot(p[i].error, RATE_DOUBT * away / d->rate[class]),
                                 .spread = scale * p[i].spread,
                                 .own = near};
}

/* Copies of this very size decide if they were sampled, unless they had waited for others. */
static struct gwa_duration of_size(const struct gwa_durations *d, unsigned class, uint64_t bytes)
{
    struct gwa_duration out = one_copy(d, class, (double)bytes);
    const struct found *g = gwa_durations_found(d, gwa_durations_size_key(class, bytes));
    if (g && !has_waited(class, g->ns, out.ns)) {
        out.ns = g->ns;
        out.own = true;
    }
    return out;
}

static const uint8_t class_of[GWT_DIR_COUNT] = {
    [GWT_DIR_UNKNOWN] = GWT_SAMPLE_D2D, [GWT_H2D] = GWT_SAMPLE_H2D, [GWT_D2H] = GWT_SAMPLE_D2H,
    [GWT_D2D] = GWT_SAMPLE_D2D,         [GWT_P2P] = GWT_SAMPLE_D2D, [GWT_H2H] = GWT_SAMPLE_H2D,
};

struct gwa_duration gwa_durations_copy(const struct gwa_durations *d, unsigned direction,
                                       uint64_t bytes, uint64_t copies)
{
    unsigned class = class_of[direction < GWT_DIR_COUNT ? direction : (unsigned)GWT_DIR_UNKNOWN];
    if (copies <= 1)
        return of_size(d, class, bytes);
    struct gwa_duration out = of_size(d, class, bytes / copies);
    out.ns *= (double)copies;
    out.error *= (double)copies;
    out.spread *= sqrt((double)copies);
    return out;
}

struct gwa_duration gwa_durations_memset(const struct gwa_durations *d, uint64_t bytes)
{
    return of_size(d, GWT_SAMPLE_MEMSET, bytes);
}

/* ---- graphs ------------------------------------------------------------------------- */

int gwa_durations_mark_nodes(struct gwa_durations *d)
{
    for (size_t i = 0; i < d->graphs_count; i++) {
        struct gwt_graph_info info;
        if (!d->graphs[i].launches || !gwt_graph(d->trace, (uint32_t)i, &info))
            continue;
        for (uint32_t k = 0; k < info.graph->items; k++) {
            if (info.items[k].kind != GWT_LAUNCH)
                continue;
            uint32_t id = info.items[k].signature;
            if (id >= GWA_TIMED_MAX)
                continue;
            int rc = gwa_grow_within(&d->room, (void **)&d->signatures, &d->signatures_count, id,
                                     sizeof(*d->signatures));
            if (rc == -ERANGE)
                continue;
            if (rc)
                return rc;
            d->signatures[id].node = true;
        }
    }
    return 0;
}

/* What a launch runs, its nodes one after another without gaps. own: all rest on samples. */
static struct gwa_duration nodes_of(const struct gwa_durations *d, uint32_t id, uint64_t *nodes)
{
    struct gwa_duration sum = {.own = true};
    struct gwt_graph_info info;
    *nodes = 0;
    if (!gwt_graph(d->trace, id, &info))
        return d->unknown;
    for (uint32_t i = 0; i < info.graph->items; i++) {
        const struct gwt_graph_item *item = &info.items[i];
        double count = item->count;
        struct gwa_duration one = {0};
        if (!item->count)
            continue;
        if (item->kind == GWT_LAUNCH)
            one = gwa_durations_signature(d, item->signature);
        else if (item->kind == GWT_COPY)
            one = gwa_durations_copy(d, item->direction, item->bytes / item->count, 1);
        else if (item->kind == GWT_MEMSET)
            one = gwa_durations_memset(d, item->bytes / item->count);
        else
            continue;
        *nodes += item->count;
        sum.ns += count * one.ns;
        sum.error += count * one.error;
        sum.spread += sqrt(count) * one.spread;
        sum.own &= one.own;
    }
    return sum;
}

static struct gwa_duration by_nodes(const struct gwa_durations *d, uint32_t id)
{
    uint64_t nodes;
    struct gwa_duration sum = nodes_of(d, id, &nodes);
    if (!nodes)
        return (struct gwa_duration){.ns = FLOOR_NS, .error = FLOOR_NS};
    double gap, gap_error;
    gwa_durations_gap(d, true, &gap, &gap_error);
    sum.ns += (double)(nodes - 1) * gap;
    sum.error += (double)(nodes - 1) * gap_error;
    sum.own = false;
    return sum;
}

/* Nodes that leave some of the whole run one after another, with gaps of that between them. All
 * graphs of a run have about the same. */
#define GAP_SCATTER_NS 150.0

static void fit_gaps(struct gwa_durations *d)
{
    double sum = 0, weight = 0;
    for (size_t i = 0; i < d->graphs_count; i++) {
        struct graph *g = &d->graphs[i];
        uint64_t nodes;
        if (!g->pairs.n)
            continue;
        struct gwa_duration inside = nodes_of(d, (uint32_t)i, &nodes);
        double gaps = (double)nodes - 1, between = g->estimate.ns - inside.ns;
        if (!inside.own || nodes < 2 || between < 100 * gaps ||
            between > 2 * GWA_GRAPH_GAP_NS * gaps)
            continue;
        g->gap = between / gaps;
        g->gap_doubt = hypot(hypot(inside.error, g->estimate.error) / gaps, 10);
        double w = 1 / (g->gap_doubt * g->gap_doubt + GAP_SCATTER_NS * GAP_SCATTER_NS);
        sum += w * g->gap;
        weight += w;
    }
    if (weight > 0) {
        d->gap = sum / weight;
        d->gap_doubt = sqrt(1 / weight);
    }
}

double gwa_durations_graph_gap(const struct gwa_durations *d, uint32_t graph, double usual)
{
    double gap = d->gap, doubt = d->gap_doubt;
    if (!(doubt > 0)) {
        gwa_durations_gap(d, true, &gap, &doubt);
        gap = fmin(usual, gap);
    }
    if (graph >= d->graphs_count || !(d->graphs[graph].gap_doubt > 0))
        return gap;
    double prior = 1 / (doubt * doubt + GAP_SCATTER_NS * GAP_SCATTER_NS);
    double own = 1 / (d->graphs[graph].gap_doubt * d->graphs[graph].gap_doubt);
    return (prior * gap + own * d->graphs[graph].gap) / (prior + own);
}

void gwa_durations_fit_graphs(struct gwa_durations *d)
{
    for (size_t i = 0; i < d->graphs_count; i++) {
        struct graph *g = &d->graphs[i];
        if (!g->pairs.n) {
            if (g->launches)
                g->estimate = by_nodes(d, (uint32_t)i);
            continue;
        }
        double n = (double)g->pairs.n, ns = gwa_durations_ns(d, GWT_SAMPLE_GRAPH, g->pairs.mean);
        double variance = (g->pairs.m2 + PRIOR * 0.0025 * ns * ns) / (n - 1 + PRIOR);
        g->estimate = (struct gwa_duration){
            .ns = ns, .error = standard_error(variance, n), .spread = sqrt(variance), .own = true};
    }
    fit_gaps(d);
}
