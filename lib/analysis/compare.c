/* The metrics of a process, and how far they may move. */
#include "compare.h"

#include <math.h>
#include <string.h>

const struct gwa_metric gwa_metrics[GWA_METRIC_COUNT] = {
#define X(id, key, group, unit, join, gated, worse, abs, rel, text, value)                         \
    [GWA_METRIC_##id] = {#key,                                                                     \
                         text,                                                                     \
                         GWA_GROUP_##group,                                                        \
                         GWA_UNIT_##unit,                                                          \
                         GWA_JOIN_##join,                                                          \
                         GWA_GATED_##gated,                                                        \
                         GWA_WORSE_##worse,                                                        \
                         abs,                                                                      \
                         rel},
    GWA_METRICS(X)
#undef X
#define X(id, key, text)                                                                           \
    [GWA_METRIC_IDLE_##id] = {"idle_" #key "_pct",                                                 \
                              "idle: " text,                                                       \
                              GWA_GROUP_TIME,                                                      \
                              GWA_UNIT_PCT,                                                        \
                              GWA_JOIN_MEAN,                                                       \
                              GWA_GATED_NO,                                                        \
                              GWA_WORSE_MORE,                                                      \
                              3,                                                                   \
                              0.10},
        GWA_IDLE_CLASSES(X)
#undef X
};

unsigned gwa_metric_find(const char *key)
{
    unsigned m = 0;
    while (m < GWA_METRIC_COUNT && strcmp(gwa_metrics[m].key, key))
        m++;
    return m;
}

const struct gwa_key gwa_keys[GWA_KEY_COUNT] = {
#define X(id, key, times, fact, text) [GWA_KEY_##id] = {#key, fact, text, times},
    GWA_KEYS(X)
#undef X
};

unsigned gwa_key_find(const char *key)
{
    unsigned k = 0;
    while (k < GWA_KEY_COUNT && strcmp(gwa_keys[k].key, key))
        k++;
    return k;
}

/* ---- values of a process ----------------------------------------------------------------- */

struct gwa_spread gwa_spread_one(double v)
{
    return (struct gwa_spread){NAN, v, NAN};
}

struct gwa_spread gwa_spread_sum(struct gwa_spread a, struct gwa_spread b)
{
    return (struct gwa_spread){a.least + b.least, a.median + b.median, a.most + b.most};
}

double gwa_mean_of_devices(const struct gwa_process *p, size_t offset)
{
    double sum = 0, weights = 0;
    for (size_t i = 0; i < p->devices_count; i++) {
        const struct gwa_device *d = &p->devices[i];
        double v;
        memcpy(&v, (const char *)d + offset, sizeof(v));
        if (!isfinite(v) || !(d->window.wall_s > 0))
            continue;
        sum += v * d->window.wall_s;
        weights += d->window.wall_s;
    }
    return weights > 0 ? sum / weights : NAN;
}

double gwa_most_of_devices(const struct gwa_process *p, size_t offset)
{
    double most = NAN;
    for (size_t i = 0; i < p->devices_count; i++) {
        int64_t v;
        memcpy(&v, (const char *)&p->devices[i].memory + offset, sizeof(v));
        if (v >= 0 && !((double)v <= most))
            most = (double)v;
    }
    return most;
}

struct gwa_spread gwa_busy(const struct gwa_process *p)
{
    return gwa_spread_one(100 - gwa_mean_of_devices(p, offsetof(struct gwa_device, time.idle_pct)));
}

struct gwa_spread gwa_collective_calls(const struct gwa_process *p)
{
    double calls = 0;
    for (size_t i = 0; i < p->collectives_count; i++)
        calls += (double)p->collectives[i].calls;
    return gwa_spread_one(calls);
}

/* ---- margins --------------------------------------------------------------------------------- */

struct gwa_margins gwa_margins_of(unsigned metric)
{
    const struct gwa_metric *m = &gwa_metrics[metric];
    return (struct gwa_margins){m->abs, m->rel, m->abs, m->rel};
}

static bool beyond(double by, double base, double abs, double rel, double part)
{
    return by > abs / part && by > rel * base / part;
}

enum gwa_move gwa_moved(const struct gwa_margins *m, double base, double now, double part)
{
    double of = fabs(base);
    if (isnan(base) || isnan(now))
        return GWA_MOVE_NONE;
    if (beyond(now - base, of, m->abs, m->rel, part))
        return GWA_MOVE_UP;
    return beyond(base - now, of, m->below_abs, m->below_rel, part) ? GWA_MOVE_DOWN : GWA_MOVE_NONE;
}

/* Half of the steps lie within the spread, so half of it on either side of the median. Beyond half
 * of the time itself nothing is noise. */
static bool step_time_within(double by, double base, double spread_pct)
{
    return by <= fmin(spread_pct / 2, 50) / 100 * base;
}

/* A count that varies: either median is one that the other run has seen. Times but the step's have
 * no spread that is known: the margins of the table. */
bool gwa_within_noise(unsigned metric, const struct gwa_spread *base, const struct gwa_spread *now,
                      double spread_pct)
{
    struct gwa_margins margins = gwa_margins_of(metric);
    double by = fabs(now->median - base->median);
    if (isnan(by))
        return false;
    if (metric == GWA_METRIC_STEP_MS)
        return step_time_within(by, fabs(base->median), spread_pct);
    if (gwa_metrics[metric].group == GWA_GROUP_TIME)
        return gwa_moved(&margins, base->median, now->median, 1) == GWA_MOVE_NONE;
    return now->median >= base->least && now->median <= base->most && base->median >= now->least &&
           base->median <= now->most;
}
