/* Numbers in order, and the one in the middle. */
#ifndef GWA_ORDER_H
#define GWA_ORDER_H

#include <stdlib.h>

/* For qsort() over doubles. */
static inline int gwa_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* pre: n > 0. post: sorted; the median, the mean of two where there are two. */
static inline double gwa_median(double *list, size_t n)
{
    qsort(list, n, sizeof(*list), gwa_by_value);
    return n % 2 ? list[n / 2] : (list[n / 2] + list[n / 2 - 1]) / 2;
}

#endif
