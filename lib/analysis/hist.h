/* Log-linear histogram of durations: 64 buckets per power of two, so a quantile is within
 * 1/128 of the value. Sum, count, smallest and greatest are exact. */
#ifndef GWA_HIST_H
#define GWA_HIST_H

#include <stddef.h>
#include <stdint.h>

#define GWA_HIST_SUB_BITS 6
#define GWA_HIST_SUB      (1u << GWA_HIST_SUB_BITS)
#define GWA_HIST_TOP      45 /* values are clamped below 2^45 ns, nearly ten hours */
#define GWA_HIST_BUCKETS  ((GWA_HIST_TOP - GWA_HIST_SUB_BITS + 1) * GWA_HIST_SUB)

struct gwa_hist {
    uint64_t count;
    uint64_t sum;
    uint64_t min;
    uint64_t max;
    uint64_t bucket[GWA_HIST_BUCKETS];
};

static inline unsigned gwa_hist_index(uint64_t v)
{
    if (v < GWA_HIST_SUB)
        return (unsigned)v;
    if (v >> GWA_HIST_TOP)
        return GWA_HIST_BUCKETS - 1;
    unsigned e = 63 - (unsigned)__builtin_clzll(v);
    unsigned shift = e - GWA_HIST_SUB_BITS;
    return (shift + 1) * GWA_HIST_SUB + (unsigned)((v >> shift) & (GWA_HIST_SUB - 1));
}

static inline void gwa_hist_add(struct gwa_hist *h, uint64_t v)
{
    if (!h->count || v < h->min)
        h->min = v;
    if (v > h->max)
        h->max = v;
    h->count++;
    h->sum += v;
    h->bucket[gwa_hist_index(v)]++;
}

void gwa_hist_merge(struct gwa_hist *into, const struct gwa_hist *from);

/* pre:  0 < q <= 1. post: NaN when empty. */
double gwa_hist_quantile(const struct gwa_hist *h, double q);
double gwa_hist_mean(const struct gwa_hist *h);

#endif
