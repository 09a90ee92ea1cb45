/* Durations that drift: a device's clock moves by some hundredths with its heat and its power, and
 * all kernels with it. Spans of a run are then off together, and so is what waits for them in other
 * ranks, which no number of samples of each kernel mends. Samples of one span say so together, by
 * how much longer they are than expected of them: a factor, as far as it is more than their
 * scatter. */
#include "durations_internal.h"
#include "order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_LEAST 4   /* of a span */
#define ROWS_FEW   200 /* of fewer, as much is asked: they move all that the device did */
#define SPANS_MOST 512
#define LONG_NS    10000.0 /* of shorter kernels what the pair adds says more than the clock */
#define SCATTER    0.01    /* no sample is known better, relative */
#define TAILS      3.0     /* degrees of freedom of a t distribution: outliers are common */
#define ROUNDS     5       /* until it has settled, at most */
#define SURE       3.0     /* standard deviations of what chance makes of spans that are alike */
#define DRIFT_MOST 0.2
#define USUAL      0.6745 /* median of how far normal ones are off, in standard deviations */
#define SETTLED    0.95

struct row { /* a sample */
    int64_t at;
    double off;      /* relative to what is expected */
    double variance; /* of a single one */
};

struct span {
    size_t first; /* of its rows; it has those before the next one's */
    double off, variance;
};

static int by_time(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* post: false: it says nothing. */
static bool row_of(const struct gwa_durations *d, const struct kept *k, struct row *out)
{
    const struct signature *s = &d->signatures[k->signature];
    const struct function *f = s->function ? &d->functions[s->function - 1] : NULL;
    const struct found *g = s->level ? gwa_durations_found(d, k->key[s->level - 1]) : NULL;
    double expected = g ? g->ns : s->level ? s->elsewhere : s->estimate.ns;
    if (f && f->period)
        expected *= (double)f->factor[k->turn % f->period];
    if (s->comm || s->pairs.n < 2 || !(expected >= LONG_NS))
        return false;
    double ns = gwa_durations_ns(d, GWT_SAMPLE_KERNEL, k->pair_ns - (k->busy ? s->busy_ns : 0));
    double scatter = fmax(s->estimate.spread / expected, SCATTER);
    *out = (struct row){.at = k->at, .off = ns / expected - 1, .variance = scatter * scatter};
    return true;
}

static struct span span_of(const struct row *all, size_t first, size_t n)
{
    struct span out = {.first = first};
    const struct row *rows = all + first;
    for (unsigned round = 0; round < ROUNDS; round++) {
        double weight = 0, sum = 0;
        for (size_t i = 0; i < n; i++) {
            double off = rows[i].off - out.off;
            double w = (TAILS + 1) / (TAILS + off * off / rows[i].variance) / rows[i].variance;
            weight += w;
            sum += w * rows[i].off;
        }
        out.off = sum / weight;
        out.variance = 1 / weight;
    }
    return out;
}

/* Sums over spans, from the first on, by which what some of them make together costs nothing to
 * ask for. */
struct sums {
    double weight, off, squares;
};

static struct sums sum_up(const struct sums *from, const struct sums *to)
{
    return (struct sums){.weight = to->weight - from->weight,
                         .off = to->off - from->off,
                         .squares = to->squares - from->squares};
}

static double cost_of(const struct sums *s)
{
    return fmax(s->squares - s->off * s->off / s->weight, 0);
}

/* The first `n` spans fall best into some whose last one begins at from[n]: by the Bayesian
 * information criterion, of a place and a factor for each. */
static void divide(const struct sums *sums, size_t n, double each, double *best, size_t *from)
{
    best[0] = 0;
    for (size_t to = 1; to <= n; to++) {
        best[to] = INFINITY;
        for (size_t i = 0; i < to; i++) {
            struct sums s = sum_up(&sums[i], &sums[to]);
            double cost = best[i] + cost_of(&s) + each;
            if (cost < best[to]) {
                best[to] = cost;
                from[to] = i;
            }
        }
    }
}

/* *spans: as many as say more than they cost, in the order of time. */
static size_t unite(struct span *spans, size_t n, double each)
{
    struct sums sums[SPANS_MOST + 1] = {{0}};
    double best[SPANS_MOST + 1];
    size_t from[SPANS_MOST + 1], count = 0;
    for (size_t i = 0; i < n; i++) {
        double weight = 1 / spans[i].variance, off = spans[i].off;
        sums[i + 1] = (struct sums){.weight = sums[i].weight + weight,
                                    .off = sums[i].off + weight * off,
                                    .squares = sums[i].squares + weight * off * off};
    }
    divide(sums, n, each, best, from);
    for (size_t to = n; to; to = from[to], count++) {
        struct sums s = sum_up(&sums[from[to]], &sums[to]);
        spans[n - 1 - count] = (struct span){
            .first = spans[from[to]].first, .off = s.off / s.weight, .variance = 1 / s.weight};
    }
    memmove(spans, spans + n - count, count * sizeof(*spans));
    return count;
}

/* post: so many; room for SPANS_MOST. */
static size_t spans_of(const struct row *rows, size_t n, struct span *spans)
{
    size_t each = n / SPANS_MOST + 1, count = 0;
    each = each < ROWS_LEAST ? ROWS_LEAST : each;
    for (size_t from = 0, to; from < n; from = to) {
        to = n - from < 2 * each ? n : from + each;
        spans[count++] = span_of(rows, from, to - from);
    }
    return count ? unite(spans, count, 2 * log(fmax((double)n, ROWS_FEW))) : 0;
}

/* Around their mean, which durations have already, as far as they differ by more than chance. post:
 * false: they do not. */
static bool shrink(struct span *spans, size_t n)
{
    double weight = 0, sum = 0, squares = 0, q = 0, freedom = (double)n - 1;
    for (size_t i = 0; i < n; i++) {
        weight += 1 / spans[i].variance;
        squares += 1 / (spans[i].variance * spans[i].variance);
        sum += spans[i].off / spans[i].variance;
    }
    for (size_t i = 0; i < n; i++) {
        spans[i].off -= sum / weight;
        q += spans[i].off * spans[i].off / spans[i].variance;
    }
    if (n < 2 || q < freedom + SURE * sqrt(2 * freedom))
        return false;
    double apart = (q - freedom) / (weight - squares / weight);
    for (size_t i = 0; i < n; i++) {
        double off = spans[i].off * apart / (apart + spans[i].variance);
        spans[i].off = fmin(fmax(off, -DRIFT_MOST), DRIFT_MOST);
    }
    return true;
}

static size_t end_of(const struct span *spans, size_t count, size_t i, size_t rows)
{
    return i + 1 < count ? spans[i + 1].first : rows;
}

/* Of what samples were thought to scatter a part was the drift. post: to which part they scatter
 * around their spans, at most 1. scratch: room for so many. */
static double sharpen(struct row *rows, size_t n, const struct span *spans, size_t count,
                      double *scratch)
{
    for (size_t k = 0; k < count; k++)
        for (size_t i = spans[k].first; i < end_of(spans, count, k, n); i++)
            scratch[i] = fabs(rows[i].off - spans[k].off) / sqrt(rows[i].variance);
    double part = fmin(gwa_median(scratch, n) / USUAL, 1);
    for (size_t i = 0; i < n; i++)
        rows[i].variance = fmax(rows[i].variance * part * part, SCATTER * SCATTER);
    return part;
}

/* From the last row of one span to the first of the next the pace changes bit by bit: nothing says
 * where it did. */
static void spread_out(struct drift *out, const struct row *rows, size_t n,
                       const struct span *spans, size_t count)
{
    int64_t first = rows[0].at;
    double step = fmax((double)(rows[n - 1].at - first) / (DRIFT_POINTS - 1), 1);
    out->from = first;
    out->points_per_ns = 1 / step;
    for (size_t i = 0, k = 0; i < DRIFT_POINTS; i++) {
        int64_t at = first + (int64_t)((double)i * step);
        while (k + 1 < count && rows[spans[k + 1].first].at <= at)
            k++;
        size_t next = end_of(spans, count, k, n);
        double off = spans[k].off;
        if (next < n && at > rows[next - 1].at)
            off += (spans[k + 1].off - off) * (double)(at - rows[next - 1].at) /
                   (double)(rows[next].at - rows[next - 1].at);
        out->factor[i] = (float)(1 + off);
    }
}

/* pre: scratch has room for n, spans for SPANS_MOST. post: so many; 0: they differ by chance. */
static size_t find_spans(struct row *rows, size_t n, struct span *spans, double *scratch)
{
    qsort(rows, n, sizeof(*rows), by_time);
    size_t count = spans_of(rows, n, spans);
    for (unsigned round = 0; round < ROUNDS && count > 1; round++) {
        if (sharpen(rows, n, spans, count, scratch) > SETTLED)
            break;
        count = spans_of(rows, n, spans);
    }
    return shrink(spans, count) ? count : 0;
}

int gwa_durations_fit_drift(struct gwa_durations *d)
{
    size_t n = d->kept_count < KEPT_SAMPLES ? (size_t)d->kept_count : KEPT_SAMPLES, used = 0;
    struct row *rows = calloc(n + 1, sizeof(*rows));
    double *scratch = calloc(n + 1, sizeof(*scratch));
    struct span *spans = calloc(SPANS_MOST, sizeof(*spans));
    int rc = rows && scratch && spans ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < n; i++)
        used += row_of(d, &d->kept[i], &rows[used]);
    size_t count = rc ? 0 : find_spans(rows, used, spans, scratch);
    if (count && !(d->drift = calloc(1, sizeof(*d->drift))))
        rc = -ENOMEM;
    if (d->drift)
        spread_out(d->drift, rows, used, spans, count);
    free(rows);
    free(scratch);
    free(spans);
    return rc;
}
