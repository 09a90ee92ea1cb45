/* What a pair of events adds in a busy stream beyond what it adds behind a spacer.
 *
 * The first event waits until what the kernel before has written is there, and the kernel behind
 * it starts that much colder than it would have next to its neighbour: some 0.6 us on an H200.
 * Signatures that were timed both ways tell how it is in this run.
 *
 * How far their samples scatter is known by function, since most of them have few. Where a stream
 * is busy at one place of a step and idle at another, the operations there may differ too, by more
 * than chance: such signatures are outliers, and count little. */
#include "durations_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define APART_NS 150.0 /* functions differ from each other in it by so much */
#define TAILS    3.0   /* degrees of freedom of a t distribution: outliers are common */
#define ROUNDS   8     /* until it has settled */
#define SCATTER  0.1   /* of a duration; counts as PRIOR samples of the function */

struct timed { /* a signature with samples */
    uint32_t function, signature;
    double between;  /* by how much pairs without a spacer are longer */
    double samples;  /* of both kinds that it would take to know that as well; 0: it has one kind */
    double variance; /* of `between` */
};

static uint32_t function_of(const struct gwa_durations *d, uint32_t signature)
{
    struct gwt_signature_info info;
    return gwt_signature(d->trace, signature, &info) && info.name ? info.name_id : UINT32_MAX;
}

static struct timed compare(const struct gwa_durations *d, uint32_t signature)
{
    const struct signature *s = &d->signatures[signature];
    struct timed out = {.function = function_of(d, signature), .signature = signature};
    double n = (double)s->pairs.n, spaced = (double)s->spaced.n, rest = n - spaced;
    if (spaced < 1 || rest < 1)
        return out;
    out.between = (n * s->pairs.mean - spaced * s->spaced.mean) / rest - s->spaced.mean;
    out.samples = spaced * rest / n;
    return out;
}

static int by_function(const void *a, const void *b)
{
    const struct timed *s = a, *t = b;
    if (s->function != t->function)
        return s->function < t->function ? -1 : 1;
    return s->signature < t->signature ? -1 : s->signature > t->signature;
}

/* pre: all of one function. Squares are taken around the mean of each kind. */
static void fit_variance(const struct gwa_durations *d, struct timed *t, size_t n)
{
    double squares = 0, freedom = 0, sum = 0, samples = 0;
    for (size_t i = 0; i < n; i++) {
        const struct stat *pairs = &d->signatures[t[i].signature].pairs;
        double between = t[i].samples * t[i].between * t[i].between;
        squares += fmax(pairs->m2 - between, 0);
        freedom += (double)pairs->n - (t[i].samples > 0 ? 2 : 1);
        samples += (double)pairs->n;
        sum += (double)pairs->n * pairs->mean;
    }
    double scatter = SCATTER * sum / samples;
    double one = (squares + PRIOR * scatter * scatter) / (freedom + PRIOR);
    for (size_t i = 0; i < n; i++)
        t[i].variance = t[i].samples > 0 ? one / t[i].samples : 0;
}

/* Their mean, when `expected` is what is expected, as well known as `variance` says; they lie
 * around it by `apart`, a variance. post: *variance is the mean's. */
static double agree(const struct timed *t, size_t n, double expected, double apart,
                    double *variance)
{
    double mean = expected, prior = 1 / *variance;
    for (unsigned round = 0; round < ROUNDS; round++) {
        double weight = prior, sum = prior * expected;
        for (size_t i = 0; i < n; i++) {
            if (!(t[i].samples > 0))
                continue;
            double v = t[i].variance + apart, off = t[i].between - mean;
            double w = (TAILS + 1) / (TAILS + off * off / v) / v;
            weight += w;
            sum += w * t[i].between;
        }
        mean = sum / weight;
        *variance = 1 / weight;
    }
    return mean;
}

static size_t same_function(const struct timed *t, size_t n)
{
    size_t i = 1;
    while (i < n && t[i].function == t[0].function)
        i++;
    return i;
}

static void settle(struct gwa_durations *d, const struct adds *adds, struct timed *t, size_t n,
                   double *doubt)
{
    qsort(t, n, sizeof(*t), by_function);
    for (size_t i = 0, k; i < n; i += k) {
        k = same_function(t + i, n - i);
        fit_variance(d, t + i, k);
    }
    double variance = adds->busy_error * adds->busy_error;
    d->busy_ns = agree(t, n, adds->busy_ns, APART_NS * APART_NS, &variance);
    *doubt = sqrt(variance);
    for (size_t i = 0, k; i < n; i += k) {
        k = same_function(t + i, n - i);
        variance = APART_NS * APART_NS;
        double own = agree(t + i, k, d->busy_ns, 0, &variance);
        for (size_t j = i; j < i + k; j++)
            d->signatures[t[j].signature].busy_ns = own;
    }
}

int gwa_durations_fit_busy(struct gwa_durations *d, const struct adds *adds, double *doubt)
{
    struct timed *t = calloc(d->signatures_count ? d->signatures_count : 1, sizeof(*t));
    uint64_t all = 0, busy = 0;
    size_t n = 0;
    if (!t)
        return -ENOMEM;
    for (size_t i = 0; i < d->signatures_count; i++) {
        const struct signature *s = &d->signatures[i];
        all += s->pairs.n;
        busy += s->pairs.n - s->spaced.n;
        if (s->pairs.n)
            t[n++] = compare(d, (uint32_t)i);
    }
    settle(d, adds, t, n, doubt);
    *doubt *= all ? (double)busy / (double)all : 0;
    free(t);
    return 0;
}
