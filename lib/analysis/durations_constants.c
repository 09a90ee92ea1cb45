/* What the run measured with kernels of the recorder's own: what event pairs add, and the time
 * between kernels. */
#include "durations_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GAP_LEAST_NS 50
/* Of a gap as measured: between large kernels of an H200 they are up to 0.9 us longer. */
#define ALONE_ERROR 150.0

void gwa_durations_constant(struct gwa_durations *d, const struct gwt_event *e)
{
    unsigned what = GWT_SAMPLE_CLASS(e->flags);
    struct measured *m = what < GWT_SAMPLE_CLASS_COUNT ? &d->constants[what]
                         : what == GWT_CONSTANT_GAP    ? &d->gaps[0]
                         : what == GWT_CONSTANT_NODES  ? &d->gaps[1]
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

bool gwa_durations_measured(const struct measured *m, double *ns, double *error)
{
    struct measured sorted = *m;
    uint32_t n = m->count < MEASURED ? m->count : MEASURED;
    if (!n)
        return false;
    qsort(sorted.value, n, sizeof(*sorted.value), by_value);
    *ns = middle(&sorted, n);
    *error = (quantile(&sorted, n, 0.75) - quantile(&sorted, n, 0.25)) / sqrt(n);
    return true;
}

bool gwa_durations_gap(const struct gwa_durations *d, bool graph, double *ns, double *error)
{
    *ns = graph ? GWA_GRAPH_GAP_NS : GWA_GAP_NS;
    *error = *ns / 2;
    if (!gwa_durations_measured(&d->gaps[graph], ns, error))
        return false;
    *ns = fmax(*ns - GWA_KERNEL_OFFSET_NS, GAP_LEAST_NS);
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

/* In a busy stream the first event waits until what the kernel before has written is there, and
 * the kernel behind it starts that much colder than it would have next to its neighbour: some
 * 0.6 us on an H200. Signatures that were timed both ways tell how it is in this run. */
#define BUSY_NS       600.0
#define BUSY_DOUBT_NS 100.0
#define APART_NS      150.0 /* signatures differ from each other in it by so much */

/* Of a signature that was timed both ways: by how much the pairs without a spacer are longer.
 * post: false where nothing can be said; variance: of that. */
static bool compare_busy(const struct signature *s, double *between, double *variance)
{
    double n = (double)s->pairs.n, spaced = (double)s->spaced.n, rest = n - spaced;
    if (spaced < 2 || rest < 2)
        return false;
    double mean = (n * s->pairs.mean - spaced * s->spaced.mean) / rest;
    *between = mean - s->spaced.mean;
    double within = s->pairs.m2 - spaced * rest / n * *between * *between;
    double one = fmax(within, 0) / (n - 2) + FLOOR_NS * FLOOR_NS / 12.0;
    *variance = one * (1 / spaced + 1 / rest) * (1 + 2 / spaced);
    return true;
}

double gwa_durations_fit_busy(struct gwa_durations *d)
{
    double weight = 1 / (BUSY_DOUBT_NS * BUSY_DOUBT_NS), sum = BUSY_NS * weight;
    double between, variance, apart = APART_NS * APART_NS;
    uint64_t all = 0, busy = 0;
    for (size_t i = 0; i < d->signatures_count; i++) {
        const struct signature *s = &d->signatures[i];
        all += s->pairs.n;
        busy += s->pairs.n - s->spaced.n;
        if (!compare_busy(s, &between, &variance))
            continue;
        weight += 1 / (variance + apart);
        sum += between / (variance + apart);
    }
    d->busy_ns = sum / weight;
    for (size_t i = 0; i < d->signatures_count; i++) {
        struct signature *s = &d->signatures[i];
        s->busy_ns = d->busy_ns;
        if (compare_busy(s, &between, &variance))
            s->busy_ns += (between - d->busy_ns) * apart / (variance + apart);
    }
    return all ? sqrt(1 / weight) * (double)busy / (double)all : 0;
}
