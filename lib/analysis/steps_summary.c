/* From the rows of the second pass to medians over the steady steps. */
#include "analysis.h"
#include "steps_internal.h"
#include "order.h"

#include <math.h>
#include <stdlib.h>

struct values {
    double *list; /* of steady steps, sorted by spread_of() */
    size_t count;
};

static struct gwa_spread spread_of(struct values *v)
{
    if (!v->count)
        return (struct gwa_spread){NAN, NAN, NAN};
    qsort(v->list, v->count, sizeof(*v->list), gwa_by_value);
    return (struct gwa_spread){v->list[0], v->list[v->count / 2], v->list[v->count - 1]};
}

static bool steady(const struct gwa_steps *s, size_t i)
{
    return s->list[i].kind == GWA_STEP_STEADY;
}

#define EACH_STEADY(s, v, value)                                                                   \
    do {                                                                                           \
        (v)->count = 0;                                                                            \
        for (size_t i = 0; i < (s)->count; i++)                                                    \
            if (steady(s, i))                                                                      \
                (v)->list[(v)->count++] = (double)(value);                                         \
    } while (0)

static double step_ms(const struct gwa_step *step)
{
    return (double)(step->to - step->from) / 1e6;
}

static void times(const struct gwa_steps *s, struct values *v, struct gwa_step_summary *out)
{
    EACH_STEADY(s, v, step_ms(&s->list[i]));
    out->ms = spread_of(v);
    out->spread_pct = NAN;
    if (v->count && out->ms.median > 0)
        out->spread_pct =
            100 * (v->list[v->count * 3 / 4] - v->list[v->count / 4]) / out->ms.median;
    out->warmup_s = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->list[i].kind == GWA_STEP_WARMUP)
            out->warmup_s += step_ms(&s->list[i]) / 1e3;
}

static void counts(const struct gwa_steps *s, struct values *v, struct gwa_step_summary *out)
{
#define X(type, field)                                                                             \
    EACH_STEADY(s, v, s->rows[i].field);                                                           \
    out->field = spread_of(v);
    GWA_STEP_COUNTS(X)
#undef X
    EACH_STEADY(s, v, s->list[i].backwards);
    out->micro_batches = spread_of(v).median;
    EACH_STEADY(s, v, s->rows[i].segments);
    out->recompute_segments = spread_of(v).median;
    EACH_STEADY(s, v, s->rows[i].collective_batches);
    out->collective_batches = spread_of(v).median;
    if (out->micro_batches == 0)
        out->micro_batches = out->recompute_segments = out->collective_batches = NAN;
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : NAN;
}

/* Of the device's time where it is known, else of launches. */
static void phases(const struct gwa_steps *s, struct gwa_step_summary *out)
{
    double ns[GWA_PHASE_COUNT] = {0}, launched[GWA_PHASE_COUNT] = {0};
    double all_ns = 0, all_launched = 0, recompute_ns = 0, recompute_launches = 0;
    for (size_t i = 0; i < s->count; i++) {
        const struct gwa_step_row *r = &s->rows[i];
        const struct gwa_step_time *time = &s->times[i];
        if (!steady(s, i))
            continue;
        for (unsigned p = 0; p < GWA_PHASE_COUNT; p++) {
            ns[p] += time->gpu_ns[p];
            all_ns += time->gpu_ns[p];
            launched[p] += p == GWA_PHASE_OTHER ? 0 : r->launched[p - 1];
        }
        all_launched += (double)r->launches + r->graph_launches;
        recompute_ns += time->recompute_ns;
        recompute_launches += r->recompute_launches;
    }
    const double *part = all_ns > 0 ? ns : launched;
    double whole = all_ns > 0 ? all_ns : all_launched;
    out->forward_pct = percent(part[GWA_PHASE_FORWARD], whole);
    out->backward_pct = percent(part[GWA_PHASE_BACKWARD], whole);
    out->optimizer_pct = percent(part[GWA_PHASE_OPTIMIZER], whole);
    out->recompute_pct = percent(all_ns > 0 ? recompute_ns : recompute_launches, whole);
    if (isnan(out->micro_batches)) /* no backward pass tells them apart */
        out->forward_pct = out->backward_pct = out->optimizer_pct = out->recompute_pct = NAN;
}

/* From the first step that counts to the end of the last. */
static double between_pct(const struct gwa_steps *s)
{
    int64_t from, to;
    double inside = 0;
    bool any = false;
    for (size_t i = 0; i < s->count; i++) {
        const struct gwa_step *step = &s->list[i];
        if (step->kind != GWA_STEP_STEADY && step->kind != GWA_STEP_UNUSUAL)
            continue;
        from = any ? from : step->from;
        to = step->to;
        inside += step_ms(step);
        any = true;
    }
    return any ? fmax(0, 100 - percent(inside, (double)(to - from) / 1e6)) : NAN;
}

/* ---- are they alike ----------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* How many steady steps have the most frequent value, of `*all`. */
static size_t most_frequent(uint64_t *list, size_t n)
{
    size_t most = 0;
    qsort(list, n, sizeof(*list), by_value);
    for (size_t i = 0, same = 0; i < n; i++) {
        same = i && list[i] == list[i - 1] ? same + 1 : 1;
        if (same > most)
            most = same;
    }
    return most;
}

static int alike(const struct gwa_steps *s, struct gwa_step_summary *out)
{
    uint64_t *list = malloc((s->count + 1) * sizeof(*list));
    if (!list)
        return -ENOMEM;
    static const struct {
        const char *text;
        bool names, shapes, sizes;
    } aspects[] = {
        {NULL, true, true, true},
        {"which kernels and calls run", true, false, false},
        {"copy sizes", false, false, true},
        {"grid sizes", false, true, false},
    };
    for (size_t a = 0; a < sizeof(aspects) / sizeof(*aspects); a++) {
        size_t n = 0;
        for (size_t i = 0; i < s->count; i++) {
            const struct gwa_step_row *r = &s->rows[i];
            if (steady(s, i))
                list[n++] = (aspects[a].names ? r->names : 0) +
                            (aspects[a].shapes ? gwa_mix(r->shapes) : 0) +
                            (aspects[a].sizes ? gwa_mix(r->sizes + 1) : 0);
        }
        size_t most = most_frequent(list, n);
        if (a == 0) {
            out->identical = n > 0 && most == n;
            out->identical_pct = percent((double)most, (double)n);
        }
        if (out->identical)
            break;
        if (a > 0 && n && most < n) {
            out->varies = aspects[a].text;
            break;
        }
    }
    if (out->varies && out->launches.least != out->launches.most)
        out->varies = "number of launches";
    free(list);
    return 0;
}

/* ---- those with more work ----------------------------------------------------------------- */

/* The distance of most neighbours among them, counted in steps. */
static void unusual(const struct gwa_steps *s, struct values *v, struct gwa_step_summary *out)
{
    size_t n = 0, step = 0, before = 0;
    double *gaps = v->list;
    bool any = false;
    out->unusual = (double)s->unusual;
    out->unusual_ms = NAN;
    for (size_t i = 0; i < s->count; i++) {
        if (s->list[i].kind == GWA_STEP_OTHER || s->list[i].kind == GWA_STEP_WARMUP)
            continue;
        if (s->list[i].kind == GWA_STEP_UNUSUAL) {
            if (any)
                gaps[n++] = (double)(step - before);
            any = true;
            before = step;
        }
        step++;
    }
    if (n) {
        qsort(gaps, n, sizeof(*gaps), gwa_by_value);
        double usual = gaps[n / 2];
        size_t same = 0;
        for (size_t i = 0; i < n; i++)
            same += gaps[i] == usual;
        if (same * 10 >= n * 8)
            out->unusual_period = (unsigned)usual;
    }
    n = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->list[i].kind == GWA_STEP_UNUSUAL)
            v->list[n++] = step_ms(&s->list[i]);
    v->count = n;
    if (n)
        out->unusual_ms = spread_of(v).median - out->ms.median;
}

int gwa_steps_summary(struct gwa_steps *s, struct gwa_step_summary *out)
{
    *out = (struct gwa_step_summary){.count = s->steady + s->unusual,
                                     .all = s->steady + s->unusual + s->warm,
                                     .steady = s->steady,
                                     .confidence = NAN,
                                     .warmup_s = NAN};
    if (!out->count || !s->rows) {
        out->count = out->all = out->steady = 0;
        return 0;
    }
    gwa_steps_place_end(s);
    struct values v = {.list = malloc((s->count + 1) * sizeof(*v.list))};
    if (!v.list)
        return -ENOMEM;
    times(s, &v, out);
    counts(s, &v, out);
    phases(s, out);
    out->other_pct = between_pct(s);
    int rc = alike(s, out);
    if (!rc)
        unusual(s, &v, out);
    free(v.list);
    out->confidence = s->confidence;
    out->by_token = s->by_token;
    out->found_by = s->found_by;
    if (!s->range && !s->kernel && out->graph_launches.median > out->launches.median)
        out->found_by = "graph launches";
    return rc;
}
