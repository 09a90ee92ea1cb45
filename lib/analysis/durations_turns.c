/* Functions whose launches take turns: one shape, and yet one launch in so many lasts longer, since
 * the layers that it serves differ in a size which the launch does not show.
 *
 * A mean over some samples of such a function is off by how many of each turn happen to be among
 * them. Once its period is known, samples are taken by what their turn lasts over the mean turn. */
#include "durations_internal.h"
#include "grow.h"

#include <math.h>

#define SAMPLES_LEAST 4   /* of each turn */
#define ROUNDS        4   /* until signatures and turns have settled */
#define GAIN_LEAST    12  /* of a period, by the Bayesian information criterion ... */
#define LEFT_MOST     0.5 /* ... and what it may leave unexplained */
#define FUNCTIONS_MAX 65536u

/* ---- turns ------------------------------------------------------------------------- */

int gwa_durations_find_function(struct gwa_durations *d, struct signature *s, uint32_t signature)
{
    struct gwt_signature_info info;
    if (!gwt_signature(d->trace, signature, &info) || !info.name || info.name_id >= FUNCTIONS_MAX)
        return 0;
    int rc = gwa_grow_within(&d->room, (void **)&d->functions, &d->functions_count, info.name_id,
                             sizeof(*d->functions));
    if (rc == -ERANGE)
        return 0;
    if (!rc)
        s->function = info.name_id + 1;
    return rc;
}

struct function *gwa_durations_turn(const struct gwa_durations *d, const struct signature *s)
{
    if (!s->function)
        return NULL;
    struct function *f = &d->functions[s->function - 1];
    f->turn++;
    return f;
}

void gwa_durations_turn_graph(const struct gwa_durations *d, uint32_t graph)
{
    struct gwt_graph_info info;
    if (!d->functions_count || !gwt_graph(d->trace, graph, &info))
        return;
    for (uint32_t i = 0; i < info.graph->items; i++) {
        uint32_t id = info.items[i].signature;
        if (info.items[i].kind == GWT_LAUNCH && id < d->signatures_count &&
            d->signatures[id].function)
            d->functions[d->signatures[id].function - 1].turn += info.items[i].count;
    }
}

void gwa_durations_restart(const struct gwa_durations *d)
{
    for (size_t i = 0; i < d->functions_count; i++)
        d->functions[i].turn = 0;
}

int gwa_durations_keep(struct gwa_durations *d, const struct kept *k)
{
    if (!d->signatures[k->signature].function)
        return 0;
    if (!d->kept && !(d->kept = calloc(KEPT_SAMPLES, sizeof(*d->kept))))
        return -ENOMEM;
    uint64_t n = d->kept_count++;
    if (n >= KEPT_SAMPLES)
        n = (n * 0x9e3779b97f4a7c15u >> 20) % (n + 1);
    if (n < KEPT_SAMPLES)
        d->kept[n] = *k;
    return 0;
}

/* ---- one function -------------------------------------------------------------------- */

struct row {
    const struct kept *kept;
    double ns;      /* between its events */
    uint32_t owner; /* index among the signatures that have samples */
    uint32_t turn;  /* of the period that is tried */
};

static int by_function(const void *a, const void *b, void *arg)
{
    const struct gwa_durations *d = arg;
    const struct kept *s = a, *t = b;
    uint32_t f = d->signatures[s->signature].function, g = d->signatures[t->signature].function;
    if (f != g)
        return f < g ? -1 : 1;
    if (s->signature != t->signature)
        return s->signature < t->signature ? -1 : 1;
    return s->turn < t->turn ? -1 : s->turn > t->turn;
}

/* What the durations are made of: a signature's, times its turn's. */
struct parts {
    double *owner; /* one of each signature */
    uint32_t owners;
    double factor[PERIODS];
};

static double squares(const struct row *rows, size_t n, const struct parts *p)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double at = p->owner[rows[i].owner] * p->factor[rows[i].turn];
        sum += (rows[i].ns - at) * (rows[i].ns - at);
    }
    return sum;
}

/* post: false: some turn has too few samples. */
static bool turns_of(struct row *rows, size_t n, unsigned period)
{
    size_t seen[PERIODS] = {0};
    for (size_t i = 0; i < n; i++) {
        rows[i].turn = rows[i].kept->turn % period;
        seen[rows[i].turn]++;
    }
    for (unsigned i = 0; i < period; i++)
        if (seen[i] < SAMPLES_LEAST)
            return false;
    return true;
}

/* pre: each turn has samples; rows are in order of their owners. */
static void fit_parts(const struct row *rows, size_t n, unsigned period, struct parts *p)
{
    for (unsigned i = 0; i < period; i++)
        p->factor[i] = 1;
    for (unsigned round = 0; round < ROUNDS; round++) {
        double top[PERIODS] = {0}, bottom[PERIODS] = {0}, mean = 0;
        for (size_t i = 0, k; i < n; i = k) {
            uint32_t owner = rows[i].owner;
            double sum = 0, weight = 0;
            for (k = i; k < n && rows[k].owner == owner; k++) {
                double f = p->factor[rows[k].turn];
                sum += f * rows[k].ns;
                weight += f * f;
            }
            double o = p->owner[owner] = sum / weight;
            for (k = i; k < n && rows[k].owner == owner; k++) {
                top[rows[k].turn] += o * rows[k].ns;
                bottom[rows[k].turn] += o * o;
            }
        }
        for (unsigned i = 0; i < period; i++) {
            p->factor[i] = top[i] / bottom[i];
            mean += p->factor[i] / period;
        }
        for (unsigned i = 0; i < period; i++)
            p->factor[i] /= mean;
        for (size_t i = 0; i < p->owners; i++)
            p->owner[i] *= mean;
    }
}

/* pre: fitted. *left: of the squares. */
static double cost(const struct row *rows, size_t n, unsigned period, const struct parts *p,
                   double *left)
{
    double figures = (double)p->owners + period - 1, count = (double)n;
    *left = squares(rows, n, p) + FLOOR_NS * FLOOR_NS;
    return count * log(*left) + figures * log(count);
}

/* pre: rows of one function. shapes: its signatures each have a duration of their own, or not.
 * share: of its samples, the rows; the rest would be lost to a period. */
static void try_periods(struct function *f, struct row *rows, size_t n, bool shapes, double share,
                        double *least, struct parts *p)
{
    p->owners = 0;
    for (size_t i = 0; i < n; i++) {
        if (!i || (shapes && rows[i].kept->signature != rows[i - 1].kept->signature))
            p->owners++;
        rows[i].owner = p->owners - 1;
    }
    double all = 0, left;
    for (unsigned period = 1; period <= PERIODS; period++) {
        if (!turns_of(rows, n, period))
            continue;
        fit_parts(rows, n, period, p);
        double c = cost(rows, n, period, p, &left);
        if (period == 1)
            all = left * share;
        else if (left > LEFT_MOST * all || c > *least - GAIN_LEAST)
            continue;
        if (c >= *least)
            continue;
        *least = c;
        f->period = period > 1 ? period : 0;
        for (unsigned i = 0; i < period; i++)
            f->factor[i] = (float)p->factor[i];
    }
}

/* Of its samples, those that are kept. */
static double share_kept(const struct gwa_durations *d, const struct kept *kept, size_t n)
{
    double all = 0;
    for (size_t i = 0; i < n; i++)
        if (!i || kept[i].signature != kept[i - 1].signature)
            all += (double)d->signatures[kept[i].signature].pairs.n;
    return (double)n / all;
}

static int fit_function(const struct gwa_durations *d, const struct kept *kept, size_t n,
                        struct function *f)
{
    struct row *rows = calloc(n, sizeof(*rows));
    struct parts p = {.owner = calloc(n, sizeof(double))};
    double least = INFINITY, share = share_kept(d, kept, n);
    int rc = rows && p.owner ? 0 : -ENOMEM;
    for (size_t i = 0; i < n && !rc; i++) {
        double busy = kept[i].busy ? d->signatures[kept[i].signature].busy_ns : 0;
        rows[i].kept = &kept[i];
        rows[i].ns = gwa_durations_ns(d, GWT_SAMPLE_KERNEL, kept[i].pair_ns - busy);
    }
    if (!rc) {
        try_periods(f, rows, n, false, share, &least, &p);
        try_periods(f, rows, n, true, share, &least, &p);
    }
    free(p.owner);
    free(rows);
    return rc;
}

/* ---- samples, as if of a mean turn ----------------------------------------------------- */

static bool takes_turns(const struct gwa_durations *d, uint32_t signature)
{
    const struct signature *s = &d->signatures[signature];
    return s->function && d->functions[s->function - 1].period;
}

static void forget(struct gwa_durations *d)
{
    for (size_t i = 0; i < d->signatures_count; i++) {
        struct signature *s = &d->signatures[i];
        if (!takes_turns(d, (uint32_t)i))
            continue;
        s->pairs = s->spaced = (struct stat){0};
        free(s->draws);
        s->draws = NULL;
    }
    for (size_t i = 0; i < d->groups.room; i++) {
        struct group *g = &d->groups.slots[i];
        if (!g->key || !g->level || !takes_turns(d, g->owner))
            continue;
        g->pairs = (struct stat){0};
        g->busy = 0;
    }
}

static int add_again(struct gwa_durations *d, const struct kept *k)
{
    struct signature *s = &d->signatures[k->signature];
    const struct function *f = &d->functions[s->function - 1];
    double busy = k->busy ? s->busy_ns : 0;
    double ns = gwa_durations_ns(d, GWT_SAMPLE_KERNEL, k->pair_ns - busy);
    double factor = fmax((double)f->factor[k->turn % f->period], 0.01);
    double pair = fmax(k->pair_ns - ns + ns / factor, 1);
    stat_add(&s->pairs, pair);
    if (!k->busy)
        stat_add(&s->spaced, pair);
    int rc = gwa_durations_add_draw(&s->draws, s->pairs.n, (uint32_t)fmin(pair, UINT32_MAX));
    return rc ? rc : gwa_durations_file(d, k->signature, k->key, pair, k->busy);
}

int gwa_durations_fit_turns(struct gwa_durations *d)
{
    size_t n = d->kept_count < KEPT_SAMPLES ? (size_t)d->kept_count : KEPT_SAMPLES;
    int rc = 0;
    if (!n)
        return 0;
    qsort_r(d->kept, n, sizeof(*d->kept), by_function, d);
    for (size_t i = 0, k; i < n && !rc; i = k) {
        uint32_t id = d->signatures[d->kept[i].signature].function;
        for (k = i + 1; k < n && d->signatures[d->kept[k].signature].function == id; k++)
            ;
        rc = fit_function(d, d->kept + i, k - i, &d->functions[id - 1]);
        d->turning |= d->functions[id - 1].period > 0;
    }
    if (rc || !d->turning)
        return rc;
    forget(d);
    for (size_t i = 0; i < n && !rc; i++)
        if (takes_turns(d, d->kept[i].signature))
            rc = add_again(d, &d->kept[i]);
    return rc;
}
