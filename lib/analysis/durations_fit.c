/* From samples to expected durations. */
#include "durations_internal.h"
#include "grow.h"

#include <math.h>

/* Where the run measured no constant: what it was on an H200, and how far off it may be. */
#define CONSTANT_NS       2700
#define CONSTANT_DOUBT_NS 500

/* A pair around a copy on the device measures more than around that kernel: 0.04 to 0.09 us where
 * copies follow each other, behind kernels up to 0.4, in five recordings. */
#define COPIED_NS 80

double gwa_durations_ns(const struct gwa_durations *d, unsigned class, double pair_ns)
{
    double ns = pair_ns - d->constant[class];
    return ns > FLOOR_NS ? ns : FLOOR_NS;
}

/* Of kernels' pairs, of which `busy` were taken without a spacer. */
static double mean_of_pairs(const struct gwa_durations *d, const struct signature *s,
                            const struct stat *pairs, uint64_t busy)
{
    double share = pairs->n ? (double)busy / (double)pairs->n : 0;
    return gwa_durations_ns(d, GWT_SAMPLE_KERNEL, pairs->mean - share * s->busy_ns);
}

static double mean_of(const struct gwa_durations *d, const struct signature *s)
{
    return mean_of_pairs(d, s, &s->pairs, s->pairs.n - s->spaced.n);
}

/* ---- constants ---------------------------------------------------------------------- */

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

static int fit_constants(struct gwa_durations *d)
{
    double base = CONSTANT_NS, error = CONSTANT_DOUBT_NS, alone = CONSTANT_NS, graph = 0, busy,
           unused;
    gwa_durations_measured(&d->constants[GWT_SAMPLE_KERNEL], &base, &error);
    gwa_durations_undisturbed(&d->constants[GWT_SAMPLE_KERNEL], &alone);
    for (unsigned i = 0; i < GWT_SAMPLE_CLASS_COUNT; i++) {
        double ns = (i == GWT_SAMPLE_D2D ? alone + COPIED_NS : base) - GWA_KERNEL_OFFSET_NS;
        gwa_durations_measured(&d->constants[i], &ns, &unused);
        d->constant[i] = ns;
    }
    struct adds adds = gwa_durations_adds(d, base, error);
    d->constant[GWT_SAMPLE_KERNEL] = adds.ns - GWA_KERNEL_OFFSET_NS;
    gwa_durations_fit_hand_over(d, alone);
    int rc = gwa_durations_fit_busy(d, &adds, &busy);
    d->excess = adds.own ? gwa_durations_excess(d) : 0;
    d->constant[GWT_SAMPLE_KERNEL] -= d->excess;
    d->constant[GWT_SAMPLE_GRAPH] = d->constant[GWT_SAMPLE_KERNEL];
    if (gwa_durations_measured(&d->constants[GWT_SAMPLE_GRAPH], &graph, &unused))
        d->constant[GWT_SAMPLE_GRAPH] += graph - base; /* both in the same stream */
    double doubt = adds.error + busy;
    if (!offset_is_known(d->trace))
        doubt += GWA_KERNEL_OFFSET_DOUBT_NS;
    d->below = d->above = doubt;
    return rc;
}

void gwa_durations_doubt(const struct gwa_durations *d, double *below, double *above)
{
    *below = d->below;
    *above = d->above;
}

/* ---- places: do they tell a signature's operations apart? --------------------------- */

/* Sums of one signature's samples over groups at both levels; index: level - 1. */
struct analysis {
    double n[2]; /* samples that are in a group */
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

static void analyse_group(const struct gwa_durations *d, struct analysis *all,
                          const struct group *g)
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

/* What places leave unexplained. */
struct rest {
    double squares, freedom;
};

static struct rest rest_of(const struct signature *s, const struct analysis *a)
{
    if (!s->level)
        return (struct rest){s->pairs.m2, (double)s->pairs.n - 1};
    unsigned i = s->level - 1u;
    return (struct rest){a->within[i], a->n[i] - a->groups[i]};
}

static double typical_variation(const struct gwa_durations *d, const struct analysis *all)
{
    double sum = 0, weight = 0;
    for (size_t i = 0; i < d->signatures_count; i++) {
        const struct signature *s = &d->signatures[i];
        if (s->pairs.n < 3)
            continue;
        struct rest rest = rest_of(s, &all[i]);
        double ns = mean_of(d, s);
        double v = rest.squares / (ns * ns);
        sum += v < rest.freedom ? v : rest.freedom;
        weight += rest.freedom;
    }
    double v = weight > 0 ? sum / weight : 0.01;
    return v < 1e-4 ? 1e-4 : v;
}

static void fit_signature(struct gwa_durations *d, struct signature *s, struct analysis *a)
{
    double n = (double)s->pairs.n;
    struct rest rest = rest_of(s, a);
    double ns = mean_of(d, s);
    double variance = (rest.squares + PRIOR * d->variation * ns * ns) / (rest.freedom + PRIOR);
    s->estimate = (struct gwa_duration){
        .ns = ns, .error = standard_error(variance, n), .spread = sqrt(variance), .own = true};
    s->elsewhere = ns;
    s->apart = s->level ? sqrt(a->effect[0] + a->effect[1]) : 0;
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
    if (d->signatures[g->owner].level != g->level || !g->pairs.n)
        return;
    g->mean = mean_of_pairs(d, &d->signatures[g->owner], &g->pairs, g->busy);
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

static int fit_sampled(struct gwa_durations *d)
{
    struct analysis *all = calloc(d->signatures_count ? d->signatures_count : 1, sizeof(*all));
    if (!all)
        return -ENOMEM;
    struct groups *g = &d->groups;
    for (size_t i = 0; i < g->room; i++)
        if (g->slots[i].key && g->slots[i].level && g->slots[i].pairs.n)
            analyse_group(d, all, &g->slots[i]);
    for (size_t i = 0; i < d->signatures_count; i++) {
        struct signature *s = &d->signatures[i];
        if (tell_apart(&all[i], 0, s->pairs.mean))
            s->level = 1;
        if (tell_apart(&all[i], 1, s->pairs.mean))
            s->level = 2;
    }
    d->variation = typical_variation(d, all);
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

/* ---- signatures without samples ------------------------------------------------------- */

static bool is_comm(const char *name)
{
    return name && strstr(name, "nccl") && strstr(name, "Kernel"); /* Dev, SymkDev, ... */
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
    d->unknown =
        (struct gwa_duration){.ns = ns, .error = spread, .spread = spread, .guessed = true};
}

/* Nothing is known about how long a collective lasts but that it takes some time to start;
 * the calls that wait for it say more. */
static const struct gwa_duration comm = {
    .ns = 20000, .error = 20000, .spread = 20000, .guessed = true};

static int fit_others(struct gwa_durations *d)
{
    for (size_t i = 0; i < d->signatures_count; i++) {
        struct gwt_signature_info info;
        struct signature *s = &d->signatures[i];
        if ((s->launches || s->pairs.n || s->node) && gwt_signature(d->trace, (uint32_t)i, &info))
            s->comm = is_comm(info.name);
        if (!s->pairs.n)
            s->estimate = s->comm ? comm : d->unknown;
    }
    return gwa_durations_fit_names(d);
}

/* ---- what is asked for, by key ------------------------------------------------------ */

/* Groups at the level that their signature uses and above it, and copies of one size. */
static bool is_asked_for(const struct gwa_durations *d, const struct group *g)
{
    return g->key && g->pairs.n &&
           (g->level ? g->level <= d->signatures[g->owner].level : g->pairs.n >= 2);
}

static int collect(struct gwa_durations *d)
{
    const struct groups *g = &d->groups;
    size_t n = 0;
    for (size_t i = 0; i < g->room; i++)
        n += is_asked_for(d, &g->slots[i]);
    for (d->found_room = 64; d->found_room < 2 * n;)
        d->found_room *= 2;
    d->found = calloc(d->found_room, sizeof(*d->found));
    if (!d->found)
        return -ENOMEM;
    for (size_t i = 0; i < g->room; i++) {
        const struct group *one = &g->slots[i];
        if (!is_asked_for(d, one))
            continue;
        size_t at = (size_t)(one->key >> 8) & (d->found_room - 1);
        while (d->found[at].key)
            at = (at + 1) & (d->found_room - 1);
        d->found[at] = (struct found){
            .key = one->key,
            .ns = one->level ? one->ns
                             : gwa_durations_copied_ns(d, one->owner / COPY_PLACES,
                                                       one->owner % COPY_PLACES, one->pairs.mean)};
    }
    return 0;
}

int gwa_durations_fit(struct gwa_durations *d)
{
    int rc;
    if (d->streams)
        memset(d->streams, 0, d->streams_count * sizeof(*d->streams));
    if ((rc = gwa_durations_no_more(d)) || (rc = fit_constants(d)))
        return rc;
    gwa_durations_fit_copies(d);
    if ((rc = gwa_durations_fit_turns(d)))
        return rc;
    gwa_durations_restart(d);
    if ((rc = fit_constants(d))) /* once more, by samples that scatter less */
        return rc;
    if ((rc = gwa_durations_mark_nodes(d)) || (rc = fit_sampled(d)))
        return rc;
    estimate_unknown(d);
    if ((rc = collect(d)) || (rc = fit_others(d)) || (rc = gwa_durations_fit_drift(d)))
        return rc;
    gwa_durations_fit_graphs(d);
    for (size_t i = 0; i < d->signatures_count; i++)
        gwa_durations_fit_draws(d, &d->signatures[i].draws, d->signatures[i].pairs.n,
                                GWT_SAMPLE_KERNEL);
    for (size_t i = 0; i < d->graphs_count; i++)
        gwa_durations_fit_draws(d, &d->graphs[i].draws, d->graphs[i].pairs.n, GWT_SAMPLE_GRAPH);
    return 0;
}
