#include "diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint8_t noise_of(const struct gwa_diff *d, unsigned m)
{
    const struct gwa_spread *base = &d->base->values[m], *now = &d->now->values[m];
    double spread = fmax(d->base->spread_pct, d->now->spread_pct);
    if (base->median == now->median)
        return GWA_NOISE_SAME;
    if (gwa_within_noise(m, base, now, spread))
        return GWA_NOISE_WITHIN;
    bool known = gwa_metrics[m].group == GWA_GROUP_TIME;
    if (m == GWA_METRIC_STEP_MS)
        known = spread > 0;
    else if (gwa_metrics[m].group == GWA_GROUP_STEP)
        known = isfinite(base->least + now->least);
    return known && isfinite(base->median + now->median) ? GWA_NOISE_BEYOND : GWA_NOISE_UNKNOWN;
}

static void rows(struct gwa_diff *d)
{
    for (unsigned m = 0; m < GWA_METRIC_COUNT; m++) {
        double base = d->base->values[m].median, now = d->now->values[m].median;
        if (isnan(base) && isnan(now))
            continue;
        struct gwa_diff_row *row = &d->rows[d->rows_count++];
        *row = (struct gwa_diff_row){m, base, now, noise_of(d, m)};
        d->beyond += row->noise == GWA_NOISE_BEYOND || row->noise == GWA_NOISE_UNKNOWN;
    }
}

static const struct gwa_run_finding *find(const struct gwa_run *run, const char *id)
{
    for (size_t i = 0; i < run->findings_count; i++)
        if (!strcmp(run->findings[i].id, id))
            return &run->findings[i];
    return NULL;
}

static void findings(struct gwa_diff *d)
{
    for (size_t i = 0; i < d->base->findings_count; i++)
        if (!find(d->now, d->base->findings[i].id))
            d->findings[d->findings_count++] =
                (struct gwa_diff_finding){&d->base->findings[i], NULL};
    for (int both = 0; both < 2; both++)
        for (size_t i = 0; i < d->now->findings_count; i++) {
            const struct gwa_run_finding *old = find(d->base, d->now->findings[i].id);
            if (!old == !both)
                d->findings[d->findings_count++] =
                    (struct gwa_diff_finding){old, &d->now->findings[i]};
        }
}

int gwa_diff(const struct gwa_run *base, const struct gwa_run *now, enum gwa_sort sort,
             struct gwa_diff *out)
{
    *out = (struct gwa_diff){.base = base, .now = now};
    out->findings = calloc(base->findings_count + now->findings_count + 1, sizeof(*out->findings));
    if (!out->findings ||
        gwa_names_compare(&base->kernels, &now->kernels, sort, &out->kernels,
                          &out->kernels_count) ||
        gwa_names_compare(&base->calls, &now->calls,
                          sort == GWA_SORT_NAME ? GWA_SORT_NAME : GWA_SORT_CALLS, &out->calls,
                          &out->calls_count)) {
        gwa_diff_free(out);
        return -ENOMEM;
    }
    rows(out);
    findings(out);
    for (unsigned k = 0; k < GWA_KEY_COUNT; k++) {
        const char *a = base->keys[k], *b = now->keys[k];
        out->keys[k] = !a != !b || (a && strcmp(a, b));
    }
    return 0;
}

void gwa_diff_free(struct gwa_diff *d)
{
    free(d->kernels);
    free(d->calls);
    free(d->findings);
    *d = (struct gwa_diff){0};
}
