/* Two runs beside each other, everything that the report has. */
#ifndef GWA_DIFF_H
#define GWA_DIFF_H

#include "compare.h"

enum gwa_noise {
    GWA_NOISE_UNKNOWN, /* the spread of one run is not known */
    GWA_NOISE_WITHIN,  /* steps of one run differ by as much */
    GWA_NOISE_BEYOND,
    GWA_NOISE_SAME, /* no difference at all */
};

struct gwa_diff_row {
    unsigned metric;
    double base, now;
    uint8_t noise;
};

struct gwa_diff_finding {
    const struct gwa_run_finding *base, *now; /* NULL: not found there */
};

struct gwa_diff {
    const struct gwa_run *base, *now;
    struct gwa_diff_row rows[GWA_METRIC_COUNT]; /* those known on a side at least, in order */
    size_t rows_count;
    struct gwa_change *kernels, *calls;
    size_t kernels_count, calls_count;
    struct gwa_diff_finding *findings; /* gone ones, then new ones, then those of both */
    size_t findings_count;
    bool keys[GWA_KEY_COUNT]; /* that differ */
    size_t beyond;            /* rows that differ beyond noise, or whose noise is not known */
};

/* Both runs are finished. post: 0 or -ENOMEM; *out borrows from both. */
int gwa_diff(const struct gwa_run *base, const struct gwa_run *now, enum gwa_sort sort,
             struct gwa_diff *out);
void gwa_diff_free(struct gwa_diff *d);

#endif
