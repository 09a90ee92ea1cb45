/* Figures of a device, from what was folded. */
#include "attribute_internal.h"
#include "grow.h"

#include <math.h>
#include <string.h>

struct rows { /* of the result */
    struct gwa_attribution *a;
    struct device *d;
    struct gwa_device *out;
    size_t sites_room, drains_room;
    int rc;
};

/* ---- sites ---------------------------------------------------------------------------------- */

static const char *reason_of(const struct site *s, unsigned class)
{
    if (class != GWA_IDLE_UNKNOWN)
        return NULL;
    if (s->key.class == SECTION_SITE)
        return "time outside CUDA whose CPU time was not recorded, nor that of the same place's "
               "other occurrences";
    if (s->key.class == GWA_IDLE_UNKNOWN && s->key.api)
        return "events were lost";
    return "more calls or places than are followed";
}

/* Most distances between steps with it were the same. */
static unsigned period_of(const struct site *s)
{
    return s->period_hits >= 3 && s->period_hits >= 4 * s->period_misses ? s->period : 0;
}

static double per_step(const struct rows *r, uint64_t in_steps)
{
    return r->d->steps ? (double)in_steps / (double)r->d->steps : NAN;
}

/* A sum of bytes that a trace claims. */
static uint64_t whole(double bytes)
{
    return bytes < 0x1p64 ? (uint64_t)bytes : UINT64_MAX;
}

static void add_row(struct rows *r, const struct site *s, unsigned class, double idle_ns)
{
    const struct gwt_trace *trace = r->a->trace;
    struct gwa_device *out = r->out;
    bool outside = s->key.class == SECTION_SITE;
    if (r->rc || !(idle_ns > 0))
        return;
    r->rc =
        gwa_reserve((void **)&out->sites, &r->sites_room, out->sites_count, sizeof(*out->sites));
    if (r->rc)
        return;
    const struct waves *waves = s->base ? s->base->waves : s->waves;
    struct gwa_site *row = &out->sites[out->sites_count++];
    *row = (struct gwa_site){
        .class = (uint8_t) class,
        .origin = s->key.origin,
        .phase = s->key.phase,
        .position = s->key.position,
        .before_h2d = s->key.to_device,
        .unusual = s->key.unusual,
        .api = s->key.api ? gwt_api_name(trace, s->key.api) : NULL,
        .after = outside && s->key.after ? gwt_api_name(trace, s->key.after) : NULL,
        .before = outside && s->key.before ? gwt_api_name(trace, s->key.before) : NULL,
        .reason = reason_of(s, class),
        .count = s->count,
        .idle_ms = idle_ns / 1e6,
        .host_ms = s->host_ns / 1e6,
        .cpu_share = gwa_site_share(s),
        .other_cores = s->measured > 0 ? fmax(0, s->process - s->on_cpu) / s->measured : NAN,
        .involuntary = s->judged > 0 ? s->involuntary / s->judged : NAN,
        .per_step = per_step(r, s->in_steps),
        .period = period_of(s),
        .wave = waves ? gwa_waves_period(waves) : 0,
        .d2h_bytes = whole(s->d2h),
        .h2d_bytes = whole(s->h2d),
        .python = gwa_python_line(trace, gwa_lines_best(trace, &s->lines)),
    };
}

/* What has no clocks of its own is divided as the same place's other sections are.
 * place: it is one place. */
static void add_site(struct rows *r, const struct site *s, bool place,
                     double ns[GWA_IDLE_CLASS_COUNT])
{
    if (s->key.class != SECTION_SITE) {
        add_row(r, s, s->key.class, s->idle_ns);
        return;
    }
    double share = gwa_site_share(s);
    double cpu = s->cpu_ns, blocked = s->blocked_ns, unknown = s->unmeasured_ns;
    if (place && !isnan(share)) {
        cpu += share * unknown;
        blocked += unknown - share * unknown;
        unknown = 0;
    }
    add_row(r, s, GWA_IDLE_HOST_CPU, cpu);
    add_row(r, s, GWA_IDLE_HOST_BLOCKED, blocked);
    add_row(r, s, GWA_IDLE_UNKNOWN, unknown);
    ns[GWA_IDLE_HOST_CPU] += cpu;
    ns[GWA_IDLE_HOST_BLOCKED] += blocked;
    ns[GWA_IDLE_UNKNOWN] += unknown;
}

static void add_hollow(struct rows *r, const struct gwa_sums *sums)
{
    for (unsigned phase = 0; phase < GWA_PHASE_COUNT; phase++) {
        struct site s = {
            .key = {.class = GWA_IDLE_LAUNCH, .origin = GWA_LAUNCH_GRAPH, .phase = (uint8_t)phase}};
        add_row(r, &s, GWA_IDLE_LAUNCH, sums->hollow_in[phase]);
    }
}

static int by_idle(const void *a, const void *b)
{
    const struct gwa_site *x = a, *y = b;
    return (x->idle_ms < y->idle_ms) - (x->idle_ms > y->idle_ms);
}

static void finish_sites(struct rows *r, unsigned device, const struct gwa_sums *sums)
{
    const struct site *sites = r->a->sites.rows;
    double ns[GWA_IDLE_CLASS_COUNT];
    memcpy(ns, r->d->ns, sizeof(ns));
    for (size_t i = 0; i < r->a->sites.count; i++)
        if (sites[i].key.device == device)
            add_site(r, &sites[i], true, ns);
    for (unsigned i = 0; i <= GWA_IDLE_CLASS_COUNT; i++) {
        r->d->other[i].key.class = (uint8_t)i;
        add_site(r, &r->d->other[i], false, ns);
    }
    add_hollow(r, sums);
    ns[GWA_IDLE_LAUNCH] += sums->hollow;
    for (unsigned i = 0; i < GWA_IDLE_CLASS_COUNT; i++)
        r->out->time.idle[i] = 100 * ns[i] / sums->wall;
    if (r->out->sites_count)
        qsort(r->out->sites, r->out->sites_count, sizeof(*r->out->sites), by_idle);
}

/* ---- drains --------------------------------------------------------------------------------- */

static void add_drain(struct rows *r, const struct drain *s)
{
    const struct gwt_trace *trace = r->a->trace;
    struct gwa_device *out = r->out;
    const char *kernel = s->key.kernel ? gwt_string(trace, s->key.kernel) : NULL;
    if (r->rc || !s->count)
        return;
    r->rc = gwa_reserve((void **)&out->drains, &r->drains_room, out->drains_count,
                        sizeof(*out->drains));
    if (r->rc)
        return;
    out->drains[out->drains_count++] =
        (struct gwa_drain){.api = s->key.api ? gwt_api_name(trace, s->key.api) : NULL,
                           .kernel = kernel ? gwa_demangle(kernel) : NULL,
                           .bytes = s->key.bytes,
                           .pageable = s->key.pageable,
                           .count = s->count,
                           .per_step = per_step(r, s->in_steps),
                           .idle_ms = s->idle_ns / 1e6,
                           .waited_ms = s->waited_ns / 1e6,
                           .phase = s->key.phase,
                           .python = gwa_python_line(trace, gwa_lines_best(trace, &s->lines))};
}

static int drains_by_idle(const void *a, const void *b)
{
    const struct gwa_drain *x = a, *y = b;
    return (x->idle_ms < y->idle_ms) - (x->idle_ms > y->idle_ms);
}

static void finish_drains(struct rows *r, unsigned device)
{
    const struct drain *drains = r->a->drains.rows;
    for (size_t i = 0; i < r->a->drains.count; i++)
        if (drains[i].key.device == device)
            add_drain(r, &drains[i]);
    add_drain(r, &r->d->other_drains);
    if (r->out->drains_count)
        qsort(r->out->drains, r->out->drains_count, sizeof(*r->out->drains), drains_by_idle);
}

/* ---- gaps ----------------------------------------------------------------------------------- */

static void finish_gap(const struct rows *r, const struct top_gap *top, struct gwa_idle_gap *out)
{
    const struct parts *p = &top->parts;
    double ns[GWA_IDLE_CLASS_COUNT];
    memcpy(ns, p->ns, sizeof(ns));
    for (unsigned i = 0; i < UNMEASURED && p->open[i].site; i++) {
        bool place = p->open[i].site != &r->d->other[SECTION_SITE];
        double share = place ? gwa_site_share(p->open[i].site) : NAN;
        if (isnan(share)) {
            ns[GWA_IDLE_UNKNOWN] += p->open[i].ns;
            continue;
        }
        ns[GWA_IDLE_HOST_CPU] += share * p->open[i].ns;
        ns[GWA_IDLE_HOST_BLOCKED] += (1 - share) * p->open[i].ns;
    }
    for (unsigned i = 0; i < GWA_IDLE_CLASS_COUNT; i++)
        out->parts_ms[i] = ns[i] / 1e6;
    if (top->drained_by)
        out->drained_by = gwt_api_name(r->a->trace, top->drained_by);
    uint32_t stack = p->longest_stack;
    if (!stack && p->longest_site)
        stack = gwa_lines_best(r->a->trace, &p->longest_site->lines);
    out->python = gwa_python_line(r->a->trace, stack);
}

static void finish_gaps(const struct rows *r, const struct gwa_sums *sums)
{
    for (size_t i = 0; i < r->out->gaps_count; i++) {
        size_t k = 0;
        while (k < r->d->top_count && r->d->top[k].start != sums->gaps[i].start)
            k++;
        if (k < r->d->top_count)
            finish_gap(r, &r->d->top[k], &r->out->gaps[i]);
        else
            for (unsigned c = 0; c < GWA_IDLE_CLASS_COUNT; c++)
                r->out->gaps[i].parts_ms[c] = NAN;
    }
}

/* ---- all ------------------------------------------------------------------------------------ */

int gwa_attribution_finish(struct gwa_attribution *a, struct gwa_device *out, unsigned device,
                           const struct gwa_sums *sums)
{
    struct rows r = {.a = a, .out = out};
    if (device >= DEVICES || a->out_of_memory || !(r.d = gwa_attribution_device(a, device)))
        return -ENOMEM;
    finish_sites(&r, device, sums);
    finish_drains(&r, device);
    finish_gaps(&r, sums);
    out->time.drained_pct = 100 * r.d->drained_ns / sums->wall;
    for (unsigned i = 0; i < GWA_PHASE_COUNT; i++)
        out->by_phase[i] = (struct gwa_by_phase){.busy_pct = 100 * sums->busy_in[i] / sums->wall,
                                                 .idle_pct = 100 * sums->idle_in[i] / sums->wall};
    return r.rc;
}

void gwa_attribution_release(struct gwa_device *d)
{
    for (size_t i = 0; i < d->sites_count; i++)
        free((char *)d->sites[i].python);
    for (size_t i = 0; i < d->drains_count; i++) {
        free((char *)d->drains[i].python);
        free((char *)d->drains[i].kernel);
    }
    for (size_t i = 0; i < d->gaps_count; i++)
        free((char *)d->gaps[i].python);
    free(d->sites);
    free(d->drains);
}
