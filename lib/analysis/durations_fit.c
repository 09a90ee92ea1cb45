/* From samples to expected durations. */
#include "durations_internal.h"
#include "grow.h"

#include <math.h>

#define FLOOR_NS 32 /* the device's timer moves in such steps */

/* Where the run measured no constant: what it was on an H200, and how far off it may be. */
#define CONSTANT_NS       2700
#define CONSTANT_DOUBT_NS 500

/* A pair around a kernel of a real program was seen to measure up to so much more than around
 * the one that calibrates it, and a little less. */
#define PAIR_BELOW_NS 350
#define PAIR_ABOVE_NS 100

/* Samples that a signature's variance is supposed to rest on before its own count. */
#define PRIOR 2

static double duration(const struct gwa_durations *d, unsigned class, double pair_ns)
{
    double ns = pair_ns - d->constant[class];
    if (class == GWT_SAMPLE_KERNEL || class == GWT_SAMPLE_GRAPH)
        ns += GWA_KERNEL_OFFSET_NS;
    return ns > FLOOR_NS ? ns : FLOOR_NS;
}

/* ---- constants ------------------------------------------------------------------------ */

static bool offset_is_known(const struct gwt_trace *trace)
{
    const char *name;
    for (unsigned i = 0; i < 256; i++) {
        const struct gwt_def_device *device = gwt_device(trace, i, &name);
        if (device)
            return device->cc_major == 9 && device->cc_minor == 0;
    }
    return false;
}

static void fit_constants(struct gwa_durations *d)
{
    const struct constant *kernel = &d->constants[GWT_SAMPLE_KERNEL];
    double base = kernel->weight ? kernel->sum / kernel->weight : CONSTANT_NS;
    for (unsigned i = 0; i < GWT_SAMPLE_CLASS_COUNT; i++) {
        const struct constant *c = &d->constants[i];
        d->constant[i] = c->weight ? c->sum / c->weight : base;
    }
    double doubt = 0;
    if (kernel->weight)
        doubt += 2 * sqrt(kernel->variance) / kernel->weight;
    else
        doubt += CONSTANT_DOUBT_NS;
    if (!offset_is_known(d->trace))
        doubt += GWA_KERNEL_OFFSET_DOUBT_NS;
    d->below = PAIR_BELOW_NS + doubt;
    d->above = PAIR_ABOVE_NS + doubt;
}

void gwa_durations_doubt(const struct gwa_durations *d, double *below, double *above)
{
    *below = d->below;
    *above = d->above;
}

/* ---- places: do they tell a signature's operations apart? ------------------------------- */

/* Sums of one signature's samples over groups at both levels; index: level - 1. */
struct analysis {
    double n[2];       /* samples that are in a group */
    double groups[2];
    double within[2];  /* squares around the group's mean */
    double between[2]; /* squares of the group's mean around its parent's, times its samples */
    double overlap[2]; /* squared samples of a group over its parent's samples */
    double effect[2];  /* variance of groups around their parents; 0: none to speak of */
    double trust, sum; /* of the groups that tell its operations apart */
};

static struct group *parent_of(const struct gwa_durations *d, const struct group *g)
{
    return gwa_durations_group(&d->groups, g->parent);
}

static void analyse_group(const struct gwa_durations *d, struct analysis *all, const struct group *g)
{
    struct analysis *a = &all[g->owner];
    unsigned i = g->level - 1u;
    double n = (double)g->pairs.n, parent_n, parent_mean;
    if (g->level == 1) {
        parent_n = (double)d->signatures[g->owner].pairs.n;
        parent_mean = d->signatures[g->owner].pairs.mean;
    } else {
        const struct group *parent = parent_of(d, g);
        if (!parent)
            return;
        parent_n = (double)parent->pairs.n;
        parent_mean = parent->pairs.mean;
    }
    a->n[i] += n;
    a->groups[i]++;
    a->within[i] += g->pairs.m2;
    a->between[i] += n * (g->pairs.mean - parent_mean) * (g->pairs.mean - parent_mean);
    a->overlap[i] += n * n / parent_n;
}

/* post: whether groups at level i + 1 differ by more than chance and enough to matter. */
static bool tell_apart(struct analysis *a, unsigned i, double mean)
{
    double parents = i ? a->groups[0] : 1;
    double above = a->groups[i] - parents, below = a->n[i] - a->groups[i];
    if (above < 1 || below < 3)
        return false;
    double within = a->within[i] / below + FLOOR_NS * FLOOR_NS / 12.0;
    double between = a->between[i] / above;
    double size = (a->n[i] - a->overlap[i]) / above;
    if (between < within * (1 + 3 * sqrt(2 / above + 2 / below)) || size <= 0)
        return false;
    double effect = (between - within) / size;
    if (effect < 50 * 50 && effect < 1e-4 * mean * mean)
        return false;
    a->effect[i] = effect;
    return true;
}

static void fit_signature(struct gwa_durations *d, struct signature *s, struct analysis *a)
{
    s->level = 0;
    if (tell_apart(a, 0, s->pairs.mean))
        s->level = 1;
    if (tell_apart(a, 1, s->pairs.mean))
        s->level = 2;
    double n = (double)s->pairs.n;
    double squares = s->pairs.m2, freedom = n - 1;
    if (s->level) {
        squares = a->within[s->level - 1];
        freedom = a->n[s->level - 1] - a->groups[s->level - 1];
    }
    double ns = duration(d, GWT_SAMPLE_KERNEL, s->pairs.mean);
    double variance = (squares + PRIOR * d->variation * ns * ns) / (freedom + PRIOR);
    s->estimate = (struct gwa_duration){
        .ns = ns, .error = sqrt(variance / n), .spread = sqrt(variance), .own = true};
    s->elsewhere = ns;
}

/* Variance of a group's operations around its mean. */
static double within(const struct analysis *a, unsigned i)
{
    double freedom = a->n[i] - a->groups[i];
    return (freedom > 0 ? a->within[i] / freedom : 0) + FLOOR_NS * FLOOR_NS / 12.0;
}

/* A group's mean is believed by `trust`, between 0 and 1, and so much it tells about those of
 * which there are no samples: places that are seldom are many, so that each place, not each
 * sample, counts. */
static void tell(struct group *g, double *trust_sum, double *sum)
{
    *trust_sum += g->trust;
    *sum += g->trust * g->mean;
}

static void fit_finest(struct gwa_durations *d, const struct analysis *all, struct group *g)
{
    const struct analysis *a = &all[g->owner];
    unsigned i = g->level - 1u;
    double n = (double)g->pairs.n;
    if (d->signatures[g->owner].level != g->level)
        return;
    g->mean = duration(d, GWT_SAMPLE_KERNEL, g->pairs.mean);
    g->trust = n * a->effect[i] / (n * a->effect[i] + within(a, i));
    if (g->level == 1)
        return;
    struct group *parent = parent_of(d, g);
    if (parent)
        tell(g, &parent->inner_trust, &parent->inner);
}

/* Level 1, after level 2. */
static void fit_parent(const struct gwa_durations *d, struct analysis *all, struct group *g)
{
    struct analysis *a = &all[g->owner];
    unsigned level = d->signatures[g->owner].level;
    if (level == 2 && g->inner_trust > 0) {
        g->mean = g->inner / g->inner_trust;
        g->trust = a->effect[0] / (a->effect[0] + a->effect[1] / g->inner_trust);
        /* where the operation before explains nothing, all places are alike */
        if (!(a->effect[0] > 0)) {
            a->trust += g->inner_trust;
            a->sum += g->inner;
            return;
        }
    }
    if (level)
        tell(g, &a->trust, &a->sum);
}

static void settle_group(const struct gwa_durations *d, struct group *g)
{
    const struct signature *s = &d->signatures[g->owner];
    const struct group *parent = g->level == 2 ? parent_of(d, g) : NULL;
    double elsewhere = parent ? parent->ns : s->elsewhere;
    g->ns = elsewhere + g->trust * (g->mean - elsewhere);
}

static double typical_variation(const struct gwa_durations *d)
{
    double sum = 0, weight = 0;
    for (size_t i = 0; i < d->signatures_count; i++) {
        const struct stat *p = &d->signatures[i].pairs;
        if (p->n < 3)
            continue;
        double ns = duration(d, GWT_SAMPLE_KERNEL, p->mean);
        double v = p->m2 / (ns * ns);
        sum += v < (double)(p->n - 1) ? v : (double)(p->n - 1);
        weight += (double)(p->n - 1);
    }
    double v = weight ? sum / weight : 0.01;
    return v < 1e-4 ? 1e-4 : v;
}

static int fit_sampled(struct gwa_durations *d)
{
    struct analysis *all = calloc(d->signatures_count ? d->signatures_count : 1, sizeof(*all));
    if (!all)
        return -ENOMEM;
    struct groups *g = &d->groups;
    for (size_t i = 0; i < g->room; i++)
        if (g->slots[i].key && g->slots[i].level)
            analyse_group(d, all, &g->slots[i]);
    d->variation = typical_variation(d);
    for (size_t i = 0; i < d->signatures_count; i++)
        if (d->signatures[i].pairs.n)
            fit_signature(d, &d->signatures[i], &all[i]);
    for (unsigned level = 2; level >= 1; level--)
        for (size_t i = 0; i < g->room; i++)
            if (g->slots[i].key && g->slots[i].level == level)
                fit_finest(d, all, &g->slots[i]);
    for (size_t i = 0; i < g->room; i++)
        if (g->slots[i].key && g->slots[i].level == 1)
            fit_parent(d, all, &g->slots[i]);
    for (size_t i = 0; i < d->signatures_count; i++)
        if (all[i].trust > 0)
            d->signatures[i].elsewhere = all[i].sum / all[i].trust;
    for (unsigned level = 1; level <= 2; level++)
        for (size_t i = 0; i < g->room; i++)
            if (g->slots[i].key && g->slots[i].level == level)
                settle_group(d, &g->slots[i]);
    free(all);
    return 0;
}

/* ---- signatures without samples: by their function's other launch shapes -------------------- */

struct name { /* weighted by samples; x: threads of the grid */
    double n, x, y, xx, xy;
    double least, most, widest;
};

static double threads_of(const struct gwt_signature_info *info)
{
    double threads = 1;
    for (int i = 0; i < 3; i++)
        threads *= (double)info->grid[i] * (double)info->block[i];
    return threads;
}

static void add_to_name(struct name *name, double threads, const struct signature *s)
{
    double n = (double)s->pairs.n, y = s->estimate.ns;
    if (!name->n || y < name->least)
        name->least = y;
    if (y > name->most)
        name->most = y;
    if (threads > name->widest)
        name->widest = threads;
    name->n += n;
    name->x += n * threads;
    name->y += n * y;
    name->xx += n * threads * threads;
    name->xy += n * threads * y;
}

/* A line through the function's shapes, if time grows with their size; else their mean. */
static struct gwa_duration by_name(const struct name *name, double threads)
{
    double mean = name->y / name->n, ns = mean;
    double spread_x = name->xx - name->x * name->x / name->n;
    if (threads > 0 && spread_x > 1e-9 * name->xx) {
        double slope = (name->xy - name->x * name->y / name->n) / spread_x;
        if (slope > 0)
            ns = mean + slope * (threads - name->x / name->n);
    }
    double most = name->most * (threads > name->widest ? threads / name->widest : 1);
    if (ns < name->least)
        ns = name->least;
    if (ns > most)
        ns = most;
    return (struct gwa_duration){.ns = ns, .error = 0.3 * ns, .spread = 0.3 * ns};
}

static bool is_comm(const char *name)
{
    return name && strstr(name, "nccl") &&
           (strstr(name, "ncclDevKernel") || strstr(name, "ncclKernel"));
}

/* Rare signatures are those that go without samples, so each that has some counts once. */
static void estimate_unknown(struct gwa_durations *d)
{
    double n = 0, sum = 0, squares = 0;
    for (size_t i = 0; i < d->signatures_count; i++) {
        const struct signature *s = &d->signatures[i];
        if (!s->pairs.n)
            continue;
        n++;
        sum += s->estimate.ns;
        squares += s->estimate.ns * s->estimate.ns;
    }
    double ns = n > 0 ? sum / n : 5000;
    double spread = n > 1 ? sqrt(fabs(squares / n - ns * ns)) : ns;
    if (spread < ns)
        spread = ns;
    d->unknown = (struct gwa_duration){.ns = ns, .error = spread, .spread = spread};
}

/* Nothing is known about how long a collective lasts but that it takes some time to start;
 * the calls that wait for it say more. */
static const struct gwa_duration comm = {.ns = 20000, .error = 20000, .spread = 20000};

static int fit_others(struct gwa_durations *d)
{
    struct name *names = NULL;
    size_t count = 0;
    int rc = 0;
    for (size_t i = 0; i < d->signatures_count && !rc; i++) {
        struct gwt_signature_info info;
        struct signature *s = &d->signatures[i];
        if (!(s->launches || s->pairs.n || s->node) ||
            !gwt_signature(d->trace, (uint32_t)i, &info))
            continue;
        s->comm = is_comm(info.name);
        if (!s->pairs.n || !info.name)
            continue;
        rc = gwa_grow((void **)&names, &count, info.name_id, sizeof(*names));
        if (!rc)
            add_to_name(&names[info.name_id], threads_of(&info), s);
        else if (rc == -ERANGE)
            rc = 0;
    }
    for (size_t i = 0; i < d->signatures_count && !rc; i++) {
        struct gwt_signature_info info;
        struct signature *s = &d->signatures[i];
        if (s->pairs.n)
            continue;
        s->estimate = s->comm ? comm : d->unknown;
        if (!s->comm && (s->launches || s->node) && gwt_signature(d->trace, (uint32_t)i, &info) &&
            info.name && info.name_id < count && names[info.name_id].n > 0)
            s->estimate = by_name(&names[info.name_id], threads_of(&info));
    }
    free(names);
    return rc;
}

/* ---- copies ----------------------------------------------------------------------------- */

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

static void fit_curves(struct gwa_durations *d)
{
    for (unsigned class = 0; class < GWT_SAMPLE_CLASS_COUNT; class++) {
        for (unsigned i = 0; i < BUCKETS; i++) {
            const struct bucket *b = &d->copies[class][i];
            if (!b->pairs.n)
                continue;
            double n = (double)b->pairs.n, ns = duration(d, class, b->pairs.mean);
            double variance = (b->pairs.m2 + PRIOR * 0.0025 * ns * ns) / (n - 1 + PRIOR);
            d->curves[class][d->points[class]++] = (struct point){
                .bytes = b->bytes, .ns = ns, .error = sqrt(variance / n), .spread = sqrt(variance)};
        }
    }
}

static struct gwa_duration one_copy(const struct gwa_durations *d, unsigned class, double bytes)
{
    const struct point *p = d->curves[class];
    size_t n = d->points[class], i = 0;
    if (!n) {
        double ns = 1300 + bytes / d->rate[class];
        return (struct gwa_duration){.ns = ns, .error = 0.3 * ns, .spread = 0.3 * ns};
    }
    while (i < n && p[i].bytes <= bytes)
        i++;
    double ns;
    if (!i) {
        ns = p[0].ns - (p[0].bytes - bytes) / d->rate[class];
        if (ns < p[0].ns / 2)
            ns = p[0].ns / 2;
    } else if (i == n) {
        i = n - 1;
        /* what was measured at 1 MiB and above holds for more bytes too */
        ns = p[i].bytes >= 1 << 20 ? p[i].ns * bytes / p[i].bytes
                                   : p[i].ns + (bytes - p[i].bytes) / d->rate[class];
    } else {
        double share = (bytes - p[i - 1].bytes) / (p[i].bytes - p[i - 1].bytes);
        ns = p[i - 1].ns + share * (p[i].ns - p[i - 1].ns);
    }
    double scale = ns / p[i].ns;
    bool near = bytes >= p[i].bytes / 2 && bytes <= p[i].bytes * 2;
    return (struct gwa_duration){.ns = ns,
                                 .error = (near ? 1 : 3) * scale * p[i].error,
                                 .spread = scale * p[i].spread,
                                 .own = near};
}

/* Copies of this very size decide if they were sampled. */
static struct gwa_duration of_size(const struct gwa_durations *d, unsigned class, uint64_t bytes)
{
    struct gwa_duration out = one_copy(d, class, (double)bytes);
    const struct group *g =
        gwa_durations_group(&d->groups, gwa_durations_size_key(class, bytes));
    if (g && g->pairs.n >= 2) {
        out.ns = duration(d, class, g->pairs.mean);
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

/* ---- graphs ------------------------------------------------------------------------------ */

static int mark_nodes(struct gwa_durations *d)
{
    for (size_t i = 0; i < d->graphs_count; i++) {
        struct gwt_graph_info info;
        if (!d->graphs[i].launches || !gwt_graph(d->trace, (uint32_t)i, &info))
            continue;
        for (uint32_t k = 0; k < info.graph->items; k++) {
            if (info.items[k].kind != GWT_LAUNCH)
                continue;
            uint32_t id = info.items[k].signature;
            int rc = gwa_grow((void **)&d->signatures, &d->signatures_count, id,
                              sizeof(*d->signatures));
            if (!rc)
                d->signatures[id].node = true;
            else if (rc != -ERANGE)
                return rc;
        }
    }
    return 0;
}

/* One after another: what a launch runs, and the gaps between. */
static struct gwa_duration by_nodes(const struct gwa_durations *d, uint32_t id)
{
    struct gwa_duration sum = {0};
    struct gwt_graph_info info;
    uint64_t nodes = 0;
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
        nodes += item->count;
        sum.ns += count * one.ns;
        sum.error += count * one.error;
        sum.spread += sqrt(count) * one.spread;
    }
    if (!nodes)
        return (struct gwa_duration){.ns = FLOOR_NS, .error = FLOOR_NS};
    sum.ns += (double)(nodes - 1) * GWA_GRAPH_GAP_NS;
    sum.error += (double)(nodes - 1) * GWA_GRAPH_GAP_NS / 2;
    return sum;
}

static void fit_graphs(struct gwa_durations *d)
{
    for (size_t i = 0; i < d->graphs_count; i++) {
        struct graph *g = &d->graphs[i];
        if (!g->pairs.n) {
            if (g->launches)
                g->estimate = by_nodes(d, (uint32_t)i);
            continue;
        }
        double n = (double)g->pairs.n, ns = duration(d, GWT_SAMPLE_GRAPH, g->pairs.mean);
        double variance = (g->pairs.m2 + PRIOR * 0.0025 * ns * ns) / (n - 1 + PRIOR);
        g->estimate = (struct gwa_duration){
            .ns = ns, .error = sqrt(variance / n), .spread = sqrt(variance), .own = true};
    }
}

int gwa_durations_fit(struct gwa_durations *d)
{
    int rc;
    memset(d->streams, 0, 65536 * sizeof(*d->streams));
    fit_constants(d);
    fit_rates(d);
    fit_curves(d);
    if ((rc = mark_nodes(d)) || (rc = fit_sampled(d)))
        return rc;
    estimate_unknown(d);
    if ((rc = fit_others(d)))
        return rc;
    fit_graphs(d);
    return 0;
}
