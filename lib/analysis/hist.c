#include "hist.h"

#include <math.h>

void gwa_hist_merge(struct gwa_hist *into, const struct gwa_hist *from)
{
    if (!from->count)
        return;
    if (!into->count || from->min < into->min)
        into->min = from->min;
    if (from->max > into->max)
        into->max = from->max;
    into->count += from->count;
    into->sum += from->sum;
    for (unsigned i = 0; i < GWA_HIST_BUCKETS; i++)
        into->bucket[i] += from->bucket[i];
}

static double middle(unsigned index)
{
    if (index < GWA_HIST_SUB)
        return index;
    unsigned shift = index / GWA_HIST_SUB - 1;
    double low = ldexp(GWA_HIST_SUB + index % GWA_HIST_SUB, (int)shift);
    return low + (ldexp(1, (int)shift) - 1) / 2;
}

double gwa_hist_quantile(const struct gwa_hist *h, double q)
{
    if (!h->count)
        return NAN;
    uint64_t rank = (uint64_t)ceil(q * (double)h->count);
    if (rank < 1)
        rank = 1;
    uint64_t seen = 0;
    unsigned i = 0;
    while (i < GWA_HIST_BUCKETS - 1 && (seen += h->bucket[i]) < rank)
        i++;
    double v = middle(i);
    if (v < (double)h->min)
        v = (double)h->min;
    if (v > (double)h->max)
        v = (double)h->max;
    return v;
}

double gwa_hist_mean(const struct gwa_hist *h)
{
    return h->count ? (double)h->sum / (double)h->count : NAN;
}
