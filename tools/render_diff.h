/* What diff prints. */
#ifndef RENDER_DIFF_H
#define RENDER_DIFF_H

#include "render.h"

#include "analysis/diff.h"

struct diff_report {
    const struct gwa_diff *diff;
    const char *base, *now; /* as given */
    size_t limit;           /* rows of kernels, of calls; 0: all */
};

void render_diff(const struct page *page, const struct diff_report *r);
json_t *render_diff_json(const struct diff_report *r);

#endif
