/* Signatures by their function: launches of one function that differ in shape only.
 *
 * A function's time is the same as long as its grid fits the device and grows with the grid
 * beyond: two lines that meet. Signatures lie around it, some far (a matrix product's third
 * size is not in its shape), some not at all, which their samples tell. So far each of them is
 * drawn towards the line; those without samples lie on it. */
#include "durations_internal.h"
#include "grow.h"

#include <math.h>

#define OWN_PRIOR 4  /* samples that the function's scatter counts for in a signature's */
#define KNOTS     24 /* places where the lines may meet that are tried */

struct shape { /* a signature of the function */
    uint32_t name, signature;
    double x;    /* threads of the grid */
    double n, y; /* samples, their mean, ns */
    double m2;
};

struct fit {
    double level, slope, knot; /* level + slope * max(0, x - knot) */
    double scatter, apart;     /* variances over y^2: of one sample, of signatures around the fit */
    double error;              /* of the fit itself, over y, squared */
    double least;              /* of its signatures */
};

static double threads_of(const struct gwt_signature_info *info)
{
    double threads = 1;
    for (int i = 0; i < 3; i++)
        threads *= (double)info->grid[i] * (double)info->block[i];
    return threads;
}

static double at(const struct fit *f, double x)
{
    return fmax(f->level + f->slope * fmax(0, x - f->knot), f->least / 2);
}

/* Weighted least squares of y on max(0, x - knot). post: the squares left, INFINITY: no rise. */
static double try_knot(const struct shape *s, size_t n, const double *weight, double knot,
                       struct fit *f)
{
    double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0, left = 0;
    for (size_t i = 0; i < n; i++) {
        double x = fmax(0, s[i].x - knot);
        w += weight[i];
        wx += weight[i] * x;
        wy += weight[i] * s[i].y;
        wxx += weight[i] * x * x;
        wxy += weight[i] * x * s[i].y;
    }
    double spread = wxx - wx * wx / w;
    f->knot = knot;
    f->slope = spread > 1e-9 * wxx ? (wxy - wx * wy / w) / spread : 0;
    if (!(f->slope > 0) && isfinite(knot))
        return INFINITY;
    f->level = (wy - f->slope * wx) / w;
    if (!(f->level > 0))
        return INFINITY;
    for (size_t i = 0; i < n; i++) {
        double r = s[i].y - f->level - f->slope * fmax(0, s[i].x - knot);
        left += weight[i] * r * r;
    }
    return left;
}

/* pre: sorted by x. The best of no rise, a rise from the start and rises from a knot; one more
 * figure must earn its place. */
static unsigned fit_lines(const struct shape *s, size_t n, const double *weight, struct fit *best)
{
    double least = INFINITY, count = (double)n;
    unsigned figures = 1;
    for (size_t k = 0; k <= KNOTS + 1; k++) {
        struct fit f = *best;
        double knot = !k ? INFINITY : k == 1 ? 0 : s[(k - 2) * (n - 1) / KNOTS].x;
        unsigned own = !k ? 1 : k == 1 ? 2 : 3;
        if (n < own + (own > 2 ? 2u : 0u))
            continue;
        double left = try_knot(s, n, weight, knot, &f);
        double cost = count * log(fmax(left, 1e-30)) + own * log(count);
        if (!isfinite(left) || cost >= least)
            continue;
        least = cost;
        *best = f;
        figures = own;
    }
    return figures;
}

/* How far samples scatter within a signature, and signatures around the fit: what is left of
 * their means' scatter when that of so many samples is taken off. */
static void fit_scatter(const struct gwa_durations *d, const struct shape *s, size_t n,
                        unsigned figures, struct fit *f)
{
    double within = 0, freedom = 0, between = 0, sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        double y = at(f, s[i].x);
        within += s[i].m2 / (y * y);
        freedom += s[i].n - 1;
        between += s[i].n * (s[i].y / y - 1) * (s[i].y / y - 1);
        sum += s[i].n;
        squares += s[i].n * s[i].n;
    }
    f->scatter = (within + PRIOR * d->variation) / (freedom + PRIOR);
    double rest = (double)n - figures;
    double size = sum - squares / sum;
    /* few signatures say little about it: so much more, then */
    f->apart = rest > 0 && size > 0 ? fmax(0, between - f->scatter * (rest - sqrt(2 * rest))) / size
                                    : 0.09;
    f->error = figures * (f->scatter / sum + f->apart / (double)n);
}

static int fit_name(const struct gwa_durations *d, const struct shape *s, size_t n, struct fit *f)
{
    double *weight = calloc(n, sizeof(*weight));
    unsigned figures = 1;
    if (!weight)
        return -ENOMEM;
    *f = (struct fit){.least = INFINITY};
    for (size_t i = 0; i < n; i++) {
        f->least = fmin(f->least, s[i].y);
        weight[i] = s[i].n;
    }
    /* longer ones scatter more: weigh by the first fit, then fit again */
    for (int pass = 0; pass < 2; pass++) {
        figures = fit_lines(s, n, weight, f);
        for (size_t i = 0; i < n; i++)
            weight[i] = s[i].n / (at(f, s[i].x) * at(f, s[i].x));
    }
    free(weight);
    fit_scatter(d, s, n, figures, f);
    return 0;
}

/* Where the signature's own samples put it, and where the function does, by what each is worth. */
static void draw(struct signature *s, const struct fit *f, double x)
{
    double y = at(f, x), n = (double)s->pairs.n;
    if (s->level)
        return;
    /* its own scatter, as far as it is known */
    double scatter = f->scatter;
    if (n > 1)
        scatter = (s->pairs.m2 / (y * y) + OWN_PRIOR * scatter) / (n - 1 + OWN_PRIOR);
    double own = n / scatter, others = f->apart > 0 ? 1 / f->apart : 1e12;
    if (!n) {
        s->estimate = (struct gwa_duration){
            .ns = y, .error = y * sqrt(f->apart + f->error), .spread = y * sqrt(f->scatter)};
        return;
    }
    double share = own / (own + others);
    s->estimate.ns = share * s->estimate.ns + (1 - share) * y;
    s->estimate.error =
        fmin(s->estimate.error, y * sqrt(1 / (own + others) + (1 - share) * f->error));
    s->elsewhere = s->estimate.ns;
}

/* ---- draws of signatures with too few samples of their own ------------------------------ */

struct pool {
    struct draws draws;
    size_t n;
    double sum;
};

static void add_to_pool(const struct gwa_durations *d, struct pool *p, const struct signature *s,
                        double y)
{
    size_t kept = s->pairs.n < DRAWS ? (size_t)s->pairs.n : DRAWS;
    for (size_t i = 0; s->draws && i < kept; i++) {
        double ratio = gwa_durations_ns(d, GWT_SAMPLE_KERNEL, s->draws->of[i].pair) / y;
        size_t at = p->n < DRAWS ? p->n : (size_t)(p->n * 0x9e3779b97f4a7c15u >> 20) % (p->n + 1);
        p->n++;
        if (at >= DRAWS)
            continue;
        p->sum += ratio - (at < p->n - 1 ? (double)p->draws.of[at].ratio : 0);
        p->draws.of[at].ratio = (float)ratio;
    }
}

static int draw_from_pool(struct pool *p, struct signature *s)
{
    if (s->pairs.n >= DRAWS_LEAST || p->n < DRAWS || s->comm)
        return 0;
    if (!s->draws && !(s->draws = calloc(1, sizeof(*s->draws))))
        return -ENOMEM;
    *s->draws = p->draws;
    for (size_t i = 0; i < DRAWS; i++)
        s->draws->of[i].ratio *= (float)(DRAWS / p->sum);
    s->draws->ratios = true;
    return 0;
}

static int by_name_and_size(const void *a, const void *b)
{
    const struct shape *s = a, *t = b;
    if (s->name != t->name)
        return s->name < t->name ? -1 : 1;
    if (s->x != t->x)
        return s->x < t->x ? -1 : 1;
    return s->signature < t->signature ? -1 : s->signature > t->signature;
}

/* pre: shapes of one name, sorted; room for `n` at `sampled`. */
static int settle_name(struct gwa_durations *d, const struct shape *shapes, size_t n,
                       struct shape *sampled)
{
    struct fit f;
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (shapes[i].n > 0)
            sampled[count++] = shapes[i];
    if (!count)
        return 0;
    int rc = fit_name(d, sampled, count, &f);
    struct pool pool = {0};
    for (size_t i = 0; i < count && !rc; i++)
        add_to_pool(d, &pool, &d->signatures[sampled[i].signature], at(&f, sampled[i].x));
    for (size_t i = 0; i < n && !rc; i++) {
        struct signature *s = &d->signatures[shapes[i].signature];
        draw(s, &f, shapes[i].x);
        rc = draw_from_pool(&pool, s);
    }
    return rc;
}

int gwa_durations_fit_names(struct gwa_durations *d)
{
    size_t count = 0, room = d->signatures_count ? d->signatures_count : 1;
    struct shape *shapes = calloc(2 * room, sizeof(*shapes));
    int rc = 0;
    if (!shapes)
        return -ENOMEM;
    for (size_t i = 0; i < d->signatures_count; i++) {
        struct gwt_signature_info info;
        const struct signature *s = &d->signatures[i];
        if (!(s->launches || s->pairs.n || s->node) || s->comm ||
            !gwt_signature(d->trace, (uint32_t)i, &info) || !info.name)
            continue;
        shapes[count++] = (struct shape){.name = info.name_id,
                                         .signature = (uint32_t)i,
                                         .x = threads_of(&info),
                                         .n = (double)s->pairs.n,
                                         .y = s->pairs.n ? s->estimate.ns : 0,
                                         .m2 = s->pairs.m2};
    }
    qsort(shapes, count, sizeof(*shapes), by_name_and_size);
    for (size_t i = 0, k; i < count && !rc; i = k) {
        for (k = i; k < count && shapes[k].name == shapes[i].name; k++)
            ;
        rc = settle_name(d, shapes + i, k - i, shapes + room);
    }
    free(shapes);
    return rc;
}
