/* What the run measured with kernels of the recorder's own: what event pairs add, and the time
 * between kernels. */
#include "durations_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GAP_LEAST_NS 50
/* Of a figure that is so many times the least, other work took the better part. */
#define DISTURBED 2
/* Of programs' shortest kernels CUPTI says 0.66 to 0.91 us, in 27 recordings of H200s. */
#define SHORTEST_NS 750
#define SHORT_LEAST 4 /* samples that it takes */
#define SURE        2 /* standard errors */
/* Less may be for a shortest kernel that is shorter, or for chance. */
#define EXCESS_LEAST_NS 500
#define AMONG_LEAST     4
#define AMONG_ERROR     30.0 /* ns, of a mean, however many it is of */
/* A pair around a program's kernel measures more than around the recorder's own in a stream of its
 * own: over the kernels of six PyTorch programs pairs behind a spacer exceeded CUPTI's durations by
 * 0.05 to 0.3 us more on the average, with a profiler and without. */
#define WRITES_NS       150
#define WRITES_DOUBT_NS 200
/* Around that kernel among the program's work pairs added 0.06 to 0.11 us more than around the
 * program's own, by CUPTI's durations, in the means of three programs on an H200. */
#define AMONG_DOUBT_NS 100
/* In the recorder's own stream a pair added 0.4 us less to 0.5 us more, by process, in eight of an
 * H200's; in busy streams 0 to 0.3 us more than behind a spacer, by program. */
#define OWN_STREAM_ERROR 300.0
#define BUSY_MORE        200.0
#define BUSY_APART       250.0
/* Where none was measured there: what a busy stream was held to add before. */
#define BUSY_NS       600.0
#define BUSY_DOUBT_NS 100.0
/* Of a gap as measured: between large kernels of an H200 they are up to 0.9 us longer. */
#define ALONE_ERROR 150.0

void gwa_durations_constant(struct gwa_durations *d, const struct gwt_event *e)
{
    unsigned what = GWT_SAMPLE_CLASS(e->flags);
    bool among = e->flags & GWT_CONSTANT_AMONG, spaced = e->flags & GWT_SAMPLE_SPACER;
    struct measured *m = among                           ? &d->among[spaced]
                         : what < GWT_SAMPLE_CLASS_COUNT ? &d->constants[what]
                         : what == GWT_CONSTANT_GAP      ? &d->gaps[0]
                         : what == GWT_CONSTANT_NODES    ? &d->gaps[1]
                                                         : NULL;
    if (!m || !e->value || e->value > 1000000000u)
        return;
    m->value[m->count % MEASURED].ns = (float)e->value / 1e3f;
    m->value[m->count % MEASURED].weight = e->arg && e->arg < 1000000 ? (float)e->arg : 1;
    m->count++;
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* sorted: by value; share: of all weights that lie below. */
static double quantile(const struct measured *sorted, uint32_t n, double share)
{
    double all = 0, below = 0;
    for (uint32_t i = 0; i < n; i++)
        all += (double)sorted->value[i].weight;
    for (uint32_t i = 0; i < n; i++) {
        below += (double)sorted->value[i].weight;
        if (below >= share * all)
            return (double)sorted->value[i].ns;
    }
    return (double)sorted->value[n - 1].ns;
}

/* sorted: by value. The mean of the middle half, by weight. */
static double middle(const struct measured *sorted, uint32_t n)
{
    double all = 0, below = 0, sum = 0;
    for (uint32_t i = 0; i < n; i++)
        all += (double)sorted->value[i].weight;
    for (uint32_t i = 0; i < n; i++) {
        double from = fmax(below, all / 4);
        below += (double)sorted->value[i].weight;
        sum += fmax(fmin(below, all * 3 / 4) - from, 0) * (double)sorted->value[i].ns;
    }
    return sum / (all / 2);
}

static uint32_t sort(const struct measured *m, struct measured *sorted)
{
    uint32_t n = m->count < MEASURED ? m->count : MEASURED;
    *sorted = *m;
    qsort(sorted->value, n, sizeof(*sorted->value), by_value);
    while (n && sorted->value[n - 1].ns > DISTURBED * sorted->value[0].ns)
        n--;
    return n;
}

bool gwa_durations_undisturbed(const struct measured *m, double *ns)
{
    struct measured sorted;
    uint32_t n = sort(m, &sorted);
    if (n)
        *ns = quantile(&sorted, n, 0.25);
    return n;
}

bool gwa_durations_measured(const struct measured *m, double *ns, double *error)
{
    struct measured sorted;
    uint32_t n = sort(m, &sorted);
    if (!n)
        return false;
    *ns = middle(&sorted, n);
    *error = (quantile(&sorted, n, 0.75) - quantile(&sorted, n, 0.25)) / sqrt(n);
    return true;
}

/* The mean, since what lengthens some of them lengthens as many of the program's pairs. */
static bool mean_of(const struct measured *m, double *ns, double *variance)
{
    struct measured sorted;
    uint32_t n = sort(m, &sorted);
    struct stat s = {0};
    for (uint32_t i = 0; i < n; i++)
        stat_add(&s, (double)sorted.value[i].ns);
    if (n < AMONG_LEAST)
        return false;
    double error = standard_error(s.m2 / (n - 1), n);
    *ns = s.mean;
    *variance = error * error + AMONG_ERROR * AMONG_ERROR;
    return true;
}

/* Least squares of both, x behind a spacer and x + y in a busy stream, each as well known as was
 * expected before and as it was measured. */
struct adds gwa_durations_adds(const struct gwa_durations *d, double own_ns, double own_error)
{
    double spaced = 0, busy = 0, v[2] = {INFINITY, INFINITY};
    bool any = mean_of(&d->among[1], &spaced, &v[1]);
    any |= mean_of(&d->among[0], &busy, &v[0]);
    if (!any)
        return (struct adds){.ns = own_ns + WRITES_NS,
                             .error = own_error + WRITES_DOUBT_NS,
                             .busy_ns = BUSY_NS,
                             .busy_error = BUSY_DOUBT_NS,
                             .own = true};
    double x = 1 / (OWN_STREAM_ERROR * OWN_STREAM_ERROR), y = 1 / (BUSY_APART * BUSY_APART);
    double a = x + 1 / v[1] + 1 / v[0], b = 1 / v[0], c = y + 1 / v[0];
    double p = x * own_ns + spaced / v[1] + busy / v[0], q = y * BUSY_MORE + busy / v[0];
    double det = a * c - b * b;
    return (struct adds){.ns = (c * p - b * q) / det,
                         .error = sqrt(c / det) + AMONG_DOUBT_NS,
                         .busy_ns = (a * q - b * p) / det,
                         .busy_error = sqrt(a / det)};
}

double gwa_durations_excess(const struct gwa_durations *d)
{
    double least = INFINITY;
    for (size_t i = 0; i < d->signatures_count; i++) {
        const struct signature *s = &d->signatures[i];
        double n = (double)s->pairs.n;
        if (s->comm || n < SHORT_LEAST)
            continue;
        double busy = (n - (double)s->spaced.n) / n * s->busy_ns;
        double pair = s->pairs.mean - busy + SURE * standard_error(s->pairs.m2 / (n - 1), n);
        least = fmin(least, pair);
    }
    double excess = d->constant[GWT_SAMPLE_KERNEL] + SHORTEST_NS - least;
    return excess > EXCESS_LEAST_NS ? excess : 0;
}

bool gwa_durations_gap(const struct gwa_durations *d, bool graph, double *ns, double *error)
{
    *ns = graph ? GWA_GRAPH_GAP_NS : GWA_GAP_NS;
    *error = *ns / 2;
    if (!gwa_durations_measured(&d->gaps[graph], ns, error))
        return false;
    *ns = fmax(*ns - GWA_KERNEL_OFFSET_NS, GAP_LEAST_NS);
    if (!graph && *ns > GWA_GAP_NS) /* it had to wait for the same */
        *ns = fmax(*ns - d->excess, GWA_GAP_NS);
    *error = hypot(*error, ALONE_ERROR);
    return true;
}

double gwa_durations_pace(const struct gwa_durations *d)
{
    double gap, error;
    if (!gwa_durations_gap(d, false, &gap, &error))
        return 1;
    return fmin(fmax(gap / GWA_GAP_NS, 0.5), 4);
}

struct gwa_delay gwa_durations_delay(const struct gwa_durations *d, enum gwt_timed timed)
{
    struct gwa_delay delay = {0};
    if (timed == GWT_NOT_TIMED)
        return delay;
    delay.events = d->constant[GWT_SAMPLE_KERNEL] + d->busy_ns;
    delay.before = delay.events;
    if (timed == GWT_TIMED_BEHIND_SPACER) {
        delay.spacer = d->spacers.n ? d->spacers.mean : 0;
        delay.before = d->constant[GWT_SAMPLE_KERNEL];
    }
    return delay;
}
