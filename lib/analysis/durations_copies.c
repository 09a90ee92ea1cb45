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
    d->link_known = false;
    for (unsigned i = 0; i < 256; i++) {
        const struct gwt_def_device *device = gwt_device(d->trace, i, &name);
        if (!device)
            continue;
        d->link_known = device->pcie_gen &&
                        device->pcie_gen < sizeof(per_lane) / sizeof(*per_lane) &&
                        device->pcie_width;
        if (d->link_known)
            pcie = per_lane[device->pcie_gen] * device->pcie_width;
        break;
    }
    d->rate[GWT_SAMPLE_H2D] = d->rate[GWT_SAMPLE_D2H] = pcie;
    d->rate[GWT_SAMPLE_D2D] = 1000;
    d->rate[GWT_SAMPLE_MEMSET] = 1500;
}

/* A copy between host and device runs on an engine of its own. Behind one of the same direction
 * the events are that engine's too, and a pair adds what it adds around a kernel: on two H200s, of
 * which one adds 2 us more, 2.5 and 4.7 us from 1 to 16 MiB, against CUPTI. Elsewhere the first
 * event is not, and a pair contains two hand-overs. How long they take, the smallest copies tell,
 * whose duration is known; before, it is as on an H200 (pairs around 4 KiB of 8.0 and 6.9 us).
 *
 * Of all that the recorder measured of pairs around its own kernel, a copy's pair is like those
 * that ran with nothing beside them: where there are copies, others met those on the link, and add
 * 4 us more. */
#define SMALL_BYTES       4096
#define SMALL_DOUBT_NS    200
#define HAND_OVER_DOUBT   1500.0
#define HAND_OVER_EACH_NS 2000.0 /* scatter of one, least */
#define ROW_DOUBT_NS      500.0
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

/* No other hand-over lies between its events. */
static bool is_direct(const struct gwa_durations *d, unsigned class, enum copy_place place)
{
    return has_engine(class) && place == COPY_IN_ROW && !d->constants[class].count;
}

double gwa_durations_copied_ns(const struct gwa_durations *d, unsigned class, enum copy_place place,
                               double pair_ns)
{
    return is_direct(d, class, place) ? fmax(pair_ns - d->row, FLOOR_NS)
                                      : gwa_durations_ns(d, class, pair_ns);
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
        for (unsigned place = 0; place < COPY_PLACES; place++)
            for (unsigned i = 0; i < BUCKETS; i++)
                settle_bucket(&d->copies[class][place][i], has_engine(class),
                              is_direct(d, class, place) ? d->row
                                                         : kernel + hand_over[class].beyond_ns);
}

/* What small copies of one place say of the constant. */
static void add_small(const struct gwa_durations *d, unsigned class, enum copy_place place,
                      double expected, double *sum, double *weight)
{
    for (unsigned i = 0; i <= gwa_durations_bucket(SMALL_BYTES); i++) {
        const struct bucket *b = &d->copies[class][place][i];
        double each = fmax(HAND_OVER_EACH_NS * HAND_OVER_EACH_NS, b->spread * b->spread);
        double off = b->middle - hand_over[class].small_ns - expected;
        if (!b->pairs.n || fabs(off) > 3 * HAND_OVER_DOUBT) /* it waited for something */
            continue;
        double w = (double)b->pairs.n / each;
        *weight += w;
        *sum += w * (b->middle - hand_over[class].small_ns - b->bytes / d->rate[class]);
    }
}

void gwa_durations_fit_hand_over(struct gwa_durations *d, double kernel)
{
    d->row = kernel - GWA_KERNEL_OFFSET_NS;
    fit_rates(d);
    settle_buckets(d, kernel);
    for (unsigned class = GWT_SAMPLE_H2D; class <= GWT_SAMPLE_D2H; class ++) {
        if (d->constants[class].count) /* the run measured it */
            continue;
        double weight = 1 / (HAND_OVER_DOUBT * HAND_OVER_DOUBT);
        double expected = kernel + hand_over[class].beyond_ns * gwa_durations_pace(d);
        double sum = weight * expected;
        add_small(d, class, COPY_ELSEWHERE, expected, &sum, &weight);
        add_small(d, class, COPY_SPACED, expected, &sum, &weight);
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
        for (size_t i = 0; i < d->curves[class][0].count; i++) {
            const struct point *p = &d->curves[class][0].points[i];
            if (p->bytes >= MANY_BYTES && p->ns < 1.5 * by_rate(d, class, p->bytes))
                return true;
        }
    return false;
}

/* Where another stream keeps the engine busy at that place of each step, all copies of a size wait
 * for it whenever they are timed. */
static void fit_waited(const struct gwa_durations *d, unsigned class, struct curve *c)
{
    for (size_t i = 0; i < c->count; i++) {
        struct point *p = &c->points[i];
        double ns = by_rate(d, class, p->bytes);
        if (has_waited(class, p->ns, 1.5 * ns))
            *p = (struct point){
                .bytes = p->bytes, .ns = ns, .error = RATE_DOUBT * ns, .spread = 0.3 * ns};
    }
}

static struct point point_of(const struct gwa_durations *d, unsigned class, enum copy_place place,
                             const struct bucket *b)
{
    double n = (double)b->pairs.n, ns = gwa_durations_copied_ns(d, class, place, b->middle);
    double variance =
        ((n - 1) * b->spread * b->spread + PRIOR * 0.0025 * ns * ns) / (n - 1 + PRIOR);
    double doubt = is_direct(d, class, place) ? ROW_DOUBT_NS : d->doubt[class];
    return (struct point){.bytes = b->bytes,
                          .ns = ns,
                          .pair = b->middle,
                          .error = hypot(standard_error(variance, n), doubt),
                          .spread = sqrt(variance)};
}

/* Whether copies that were timed at one place tell of those that are in a row, or not. */
static bool tells(unsigned class, enum copy_place place, bool in_row)
{
    return has_engine(class) || (place != COPY_ELSEWHERE) == in_row;
}

/* Of the places that tell, the one that is known best; if none, of the others. */
static bool best_point(const struct gwa_durations *d, unsigned class, unsigned bucket, bool in_row,
                       struct point *best)
{
    *best = (struct point){0};
    for (unsigned round = 0; round < 2 && !(best->ns > 0); round++)
        for (unsigned place = 0; place < COPY_PLACES; place++) {
            const struct bucket *b = &d->copies[class][place][bucket];
            if (!b->pairs.n || tells(class, place, in_row) == round)
                continue;
            struct point p = point_of(d, class, place, b);
            if (!(best->ns > 0) || p.error < best->error)
                *best = p;
        }
    return best->ns > 0;
}

/* Bytes go no faster in small copies than in the largest, nor faster than the link, unless even
 * what pairs of events last says so. */
#define LINK_AT_BEST 1.1
static void fit_fastest(const struct gwa_durations *d, unsigned class, struct curve *c)
{
    double link = d->link_known ? 1 / (LINK_AT_BEST * d->rate[class]) : 0, largest = 0;
    for (size_t i = c->count; i-- > 0;) {
        const struct point *p = &c->points[i];
        if (p->bytes < MANY_BYTES || 4 * p->bytes < largest)
            break;
        largest = fmax(largest, p->bytes);
        c->fastest = c->fastest > 0 ? fmin(c->fastest, p->ns / p->bytes) : p->ns / p->bytes;
        if (p->pair / p->bytes < link)
            link = 0;
    }
    c->fastest = fmax(c->fastest, link);
    for (size_t i = 0; i < c->count; i++)
        c->points[i].ns = fmax(c->points[i].ns, c->fastest * c->points[i].bytes);
}

static void fit_curve(struct gwa_durations *d, unsigned class, bool in_row)
{
    struct curve *c = &d->curves[class][in_row];
    for (unsigned i = 0; i < BUCKETS; i++)
        c->count += best_point(d, class, i, in_row, &c->points[c->count]);
    /* none lasts much longer than one of more bytes: then it had waited */
    struct point *p = c->points;
    for (size_t i = c->count; i-- > 1;)
        if (has_waited(class, p[i - 1].ns, p[i].ns))
            p[i - 1].ns = p[i].ns;
}

void gwa_durations_fit_copies(struct gwa_durations *d)
{
    for (unsigned class = 0; class < GWT_SAMPLE_CLASS_COUNT; class ++)
        for (unsigned in_row = 0; in_row < 2; in_row++)
            fit_curve(d, class, in_row);
    bool known = link_is_so_fast(d);
    for (unsigned class = GWT_SAMPLE_H2D; class <= GWT_SAMPLE_D2H; class ++)
        for (unsigned in_row = 0; in_row < 2; in_row++) {
            if (known)
                fit_waited(d, class, &d->curves[class][in_row]);
            fit_fastest(d, class, &d->curves[class][in_row]);
        }
}

static struct gwa_duration one_copy(const struct gwa_durations *d, unsigned class, bool in_row,
                                    double bytes)
{
    const struct point *p = d->curves[class][in_row].points;
    size_t n = d->curves[class][in_row].count, i = 0;
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
static struct gwa_duration of_size(const struct gwa_durations *d, unsigned class, uint64_t bytes,
                                   bool in_row)
{
    struct gwa_duration out = one_copy(d, class, in_row, (double)bytes);
    const struct found *g = NULL;
    for (unsigned place = COPY_PLACES; place-- > 0 && !g;)
        if (tells(class, place, in_row))
            g = gwa_durations_found(d, gwa_durations_size_key(class, place, bytes));
    if (g && !has_waited(class, g->ns, out.ns)) {
        out.ns = fmax(g->ns, d->curves[class][in_row].fastest * (double)bytes);
        out.own = true;
    }
    return out;
}

static const uint8_t class_of[GWT_DIR_COUNT] = {
    [GWT_DIR_UNKNOWN] = GWT_SAMPLE_D2D, [GWT_H2D] = GWT_SAMPLE_H2D, [GWT_D2H] = GWT_SAMPLE_D2H,
    [GWT_D2D] = GWT_SAMPLE_D2D,         [GWT_P2P] = GWT_SAMPLE_D2D, [GWT_H2H] = GWT_SAMPLE_H2D,
};

struct gwa_duration gwa_durations_copy(const struct gwa_durations *d, unsigned direction,
                                       uint64_t bytes, uint64_t copies, bool in_row)
{
    unsigned class = class_of[direction < GWT_DIR_COUNT ? direction : (unsigned)GWT_DIR_UNKNOWN];
    if (copies <= 1)
        return of_size(d, class, bytes, in_row);
    struct gwa_duration out = of_size(d, class, bytes / copies, in_row);
    out.ns *= (double)copies;
    out.error *= (double)copies;
    out.spread *= sqrt((double)copies);
    return out;
}

struct gwa_duration gwa_durations_memset(const struct gwa_durations *d, uint64_t bytes, bool in_row)
{
    return of_size(d, GWT_SAMPLE_MEMSET, bytes, in_row);
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
            one = gwa_durations_copy(d, item->direction, item->bytes / item->count, 1, false);
        else if (item->kind == GWT_MEMSET)
            one = gwa_durations_memset(d, item->bytes / item->count, false);
        else
            continue;
        *nodes += item->count;
        sum.ns += count * one.ns;
        sum.error += count * one.error;
        sum.spread += sqrt(count) * one.spread;
        sum.own &= one.own;
        sum.guessed |= one.guessed;
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

/* A pair may hold a wait: the graph runs once at a time, and other streams' work may be in its way.
 * It lasts hardly longer than half of its samples, and not so many times as long as its nodes one
 * after another. */
#define NODES_AT_MOST 1.5
#define WAITED_SHARE  1.3
#define WAITED_NS     20000.0
/* In one stream it does not wait for itself: where so many are longer, that is how it runs. */
#define LONGER_LEAST 2
#define LONGER_SHARE 0.1

static double waited_from(const struct gwa_durations *d, uint32_t id, const double *pairs,
                          unsigned n)
{
    uint64_t nodes;
    double usual = pairs[(n - 1) / 2], gap, unused;
    struct gwa_duration inside = nodes_of(d, id, &nodes);
    gwa_durations_gap(d, true, &gap, &unused);
    if (nodes && !inside.guessed)
        usual =
            fmin(usual, NODES_AT_MOST * (inside.ns + 2 * inside.error + (double)(nodes - 1) * gap +
                                         d->constant[GWT_SAMPLE_GRAPH]));
    return WAITED_SHARE * usual + WAITED_NS;
}

/* post: without the samples that waited; all of them, where none did. */
static struct stat unhindered(const struct gwa_durations *d, uint32_t id, struct graph *g)
{
    double pairs[DRAWS];
    unsigned n = g->pairs.n < DRAWS ? (unsigned)g->pairs.n : DRAWS, left = 0;
    struct stat out = {0};
    for (unsigned i = 0; i < n; i++)
        pairs[i] = g->draws->of[i].pair;
    qsort(pairs, n, sizeof(*pairs), gwa_by_value);
    double limit = waited_from(d, id, pairs, n);
    for (unsigned i = 0; i < n; i++)
        if (pairs[i] <= limit)
            stat_add(&out, pairs[i]);
    double longer = (double)(n - out.n);
    if (out.n == n || (!g->elsewhere && longer >= LONGER_LEAST && longer >= LONGER_SHARE * n))
        return g->pairs;
    for (unsigned i = 0; i < n; i++)
        if (g->draws->of[i].pair <= limit)
            g->draws->of[left++].pair = g->draws->of[i].pair;
    return out;
}

void gwa_durations_fit_graphs(struct gwa_durations *d)
{
    for (size_t i = 0; i < d->graphs_count; i++) {
        struct graph *g = &d->graphs[i];
        if (g->pairs.n)
            g->pairs = unhindered(d, (uint32_t)i, g);
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
