/* The time between kernels, as measured in the run. */
#include "durations_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GAP_LEAST_NS 50
#define ALONE_ERROR  150.0 /* of a single measurement, and of the offset that comes off */

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

bool gwa_durations_gap(const struct gwa_durations *d, bool graph, double *ns, double *error)
{
    const struct measured *m = &d->gaps[graph];
    uint32_t n = m->count < MEASURED ? m->count : MEASURED;
    float sorted[MEASURED];
    *ns = graph ? GWA_GRAPH_GAP_NS : GWA_GAP_NS;
    *error = *ns / 2;
    if (!n)
        return false;
    memcpy(sorted, m->ns, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), by_value);
    *ns = fmax((double)sorted[n / 2] - GWA_KERNEL_OFFSET_NS, GAP_LEAST_NS);
    *error = hypot(ALONE_ERROR, (double)(sorted[n * 3 / 4] - sorted[n / 4]) / sqrt(n));
    return true;
}
