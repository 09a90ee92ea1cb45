/* A piece of a gap, by what the host did in it: which class it is, and which place it adds to. */
#include "attribute_internal.h"

#include <math.h>
#include <stdlib.h>

#define SOON_CALLS 8       /* a copy to the device among the next so many calls ... */
#define SOON_NS    1000000 /* ... and within that time belongs to the section before */

/* ---- parts --------------------------------------------------------------------------------- */

void gwa_part_class(struct cut *c, unsigned class, double ns)
{
    c->parts.ns[class] += ns;
    c->d->ns[class] += ns;
}

static void gwa_part_longest(struct cut *c, struct site *site, uint32_t stack, double ns)
{
    if (ns <= c->parts.longest)
        return;
    c->parts.longest = ns;
    c->parts.longest_site = site;
    c->parts.longest_stack = stack;
}

/* Its class is told at the end. */
static void add_open(struct cut *c, struct site *site, double ns)
{
    for (unsigned i = 0; i < UNMEASURED; i++) {
        if (c->parts.open[i].site && c->parts.open[i].site != site)
            continue;
        c->parts.open[i].site = site;
        c->parts.open[i].ns += ns;
        site->unmeasured_ns += ns;
        return;
    }
    struct site *other = &c->d->other[GWA_IDLE_UNKNOWN];
    other->idle_ns += ns;
    gwa_part_class(c, GWA_IDLE_UNKNOWN, ns);
}

/* What is folded by phase alone: dispatch, then launch by origin. */
static struct site *quick_site(struct cut *c, unsigned class, unsigned origin)
{
    unsigned i = class == GWA_IDLE_DISPATCH ? QUICK_DISPATCH : QUICK_LAUNCH + origin;
    struct site **s = &c->d->quick[c->phase][i];
    if (!*s) {
        struct site_key key = {.device = (uint8_t)c->device,
                               .class = (uint8_t) class,
                               .origin = (uint8_t)origin,
                               .phase = c->phase};
        *s = gwa_site_of(c->a, &key);
    }
    return *s;
}

/* [from, to) of the gap; t0, ns: all of what it was part of. */
void gwa_part_quick(struct cut *c, unsigned class, unsigned origin, uint32_t step, int64_t from,
                    int64_t to, int64_t t0, int64_t ns)
{
    struct site *s = quick_site(c, class, origin);
    double idle = (double)(to - from);
    if (to <= from)
        return;
    gwa_part_class(c, class, idle);
    s->idle_ns += idle;
    gwa_site_met(s, t0, ns, step);
    gwa_part_longest(c, NULL, 0, idle);
}

void gwa_part_unknown(struct cut *c, int64_t from, int64_t to)
{
    if (to <= from)
        return;
    gwa_part_class(c, GWA_IDLE_UNKNOWN, (double)(to - from));
    c->d->other[GWA_IDLE_UNKNOWN].idle_ns += (double)(to - from);
    c->d->other[GWA_IDLE_UNKNOWN].count++;
}

/* ---- inside calls --------------------------------------------------------------------------- */

void gwa_part_call(struct cut *c, const struct thread *th, const struct span *s, int64_t from,
                   int64_t to)
{
    if (s->flags & SPAN_WAITS && s->t0 <= c->start && c->start <= s->t1)
        c->parts.drained = s;
    if (s->class == GWA_IDLE_LAUNCH) {
        gwa_part_quick(c, GWA_IDLE_LAUNCH, GWA_LAUNCH_CALL, s->step, from, to, s->t0,
                       s->t1 - s->t0);
        return;
    }
    if (to <= from)
        return;
    struct site_key key = {.api = s->api,
                           .device = (uint8_t)c->device,
                           .class = s->class,
                           .phase = s->phase,
                           .position =
                               s->step == UINT32_MAX ? GWA_SITE_OUTSIDE_STEPS : GWA_SITE_INSIDE,
                           .to_device = s->class == GWA_IDLE_COPY && s->flags & SPAN_TO_DEVICE};
    struct site *site = gwa_site_of(c->a, &key);
    double idle = (double)(to - from);
    uint32_t stack = gwa_stack_in(th, s->t0, s->t1 + AFTER_NS);
    gwa_part_class(c, s->class, idle);
    site->idle_ns += idle;
    if (gwa_site_met(site, s->t0, s->t1 - s->t0, s->step)) {
        gwa_lines_vote_in(c->a->trace, &site->lines, th, s->t0, s->t1 + AFTER_NS);
        if (s->flags & SPAN_TO_DEVICE)
            site->h2d += (double)s->bytes;
        if (s->flags & SPAN_TO_HOST)
            site->d2h += (double)s->bytes;
    }
    gwa_part_longest(c, site, stack, idle);
}

/* ---- outside calls -------------------------------------------------------------------------- */

/* Of the hole, on the CPU; NaN: less than half of it was measured. */
double gwa_hole_share(const struct hole *h)
{
    return 2 * h->measured >= (double)(h->t1 - h->t0) ? fmin(1, h->cpu / h->measured) : NAN;
}

void gwa_hole_clocks(struct hole *h, const struct span *s)
{
    h->measured += 1e3 * s->section.measured_us;
    h->cpu += 1e3 * s->section.cpu_us;
    h->process += 1e3 * s->section.process_us;
    h->involuntary += s->section.involuntary;
}

/* A copy to the device that the section leads to; NULL: none. */
const struct span *gwa_hole_copy(const struct hole *h)
{
    if (!h->before)
        return NULL;
    for (size_t i = h->before_index, n = 0; i < h->th->count && n < SOON_CALLS; i++, n++) {
        const struct span *s = span_at(h->th, i);
        if (s->t0 > h->t1 + SOON_NS || s->what == SPAN_SECTION)
            break;
        if (s->flags & SPAN_TO_DEVICE)
            return s;
    }
    return NULL;
}

static uint8_t position_of(const struct hole *h)
{
    if (!h->after || !h->before || h->after->step == UINT32_MAX || h->before->step == UINT32_MAX)
        return GWA_SITE_OUTSIDE_STEPS;
    return h->after->step == h->before->step ? GWA_SITE_INSIDE : GWA_SITE_STEP_EDGE;
}

#define UNUSUAL 4

/* Much longer than usual there. usual_ns drifts towards the median. */
static bool is_unusual(struct site *s, const struct hole *h)
{
    double ns = (double)(h->t1 - h->t0);
    if (s->seen && s->seen_t0 == h->t0)
        return s->seen_unusual;
    s->seen_unusual = s->seen >= 3 && ns > UNUSUAL * s->usual_ns;
    s->usual_ns = !s->seen ? ns : ns > s->usual_ns ? s->usual_ns * 1.3 : s->usual_ns / 1.3;
    s->seen_t0 = h->t0;
    s->seen++;
    return s->seen_unusual;
}

struct site *gwa_hole_site(struct cut *c, const struct hole *h, const struct span *copy)
{
    struct site_key key = {.after = h->after ? h->after->api : 0,
                           .before = h->before ? h->before->api : 0,
                           .device = (uint8_t)c->device,
                           .class = SECTION_SITE,
                           .phase = h->before ? h->before->phase : c->phase,
                           .position = position_of(h),
                           .to_device = copy != NULL};
    struct site *s = gwa_site_of(c->a, &key);
    if (!is_unusual(s, h))
        return s;
    key.unusual = 1;
    struct site *unusual = gwa_site_of(c->a, &key);
    unusual->base = s;
    return unusual;
}

static void note_wave(struct gwa_attribution *a, struct site *s, uint32_t step, int64_t ns)
{
    if (!s->waves && a->sites.count < SITES)
        a->out_of_memory |= !(s->waves = calloc(1, sizeof(*s->waves)));
    if (s->waves)
        gwa_waves_add(s->waves, step, (double)ns);
}

static void divide_section(struct cut *c, struct site *site, double idle, double share)
{
    if (isnan(share)) {
        add_open(c, site, idle);
        return;
    }
    double on_cpu = share * idle;
    site->cpu_ns += on_cpu;
    site->blocked_ns += idle - on_cpu;
    c->parts.ns[GWA_IDLE_HOST_CPU] += on_cpu;
    c->parts.ns[GWA_IDLE_HOST_BLOCKED] += idle - on_cpu;
}

static void add_section(struct cut *c, const struct hole *h, int64_t from, int64_t to)
{
    double share = gwa_hole_share(h);
    const struct span *copy = gwa_hole_copy(h);
    struct site *site = gwa_hole_site(c, h, copy);
    uint32_t stack = gwa_stack_in(h->th, h->t0, h->t1),
             step = h->after ? h->after->step : UINT32_MAX;
    divide_section(c, site, (double)(to - from), share);
    gwa_part_longest(c, site, stack, (double)(to - from));
    if (!gwa_site_met(site, h->t0, h->t1 - h->t0, step))
        return;
    gwa_lines_vote_in(c->a->trace, &site->lines, h->th, h->t0, h->t1);
    if (copy && step != UINT32_MAX)
        note_wave(c->a, site->base ? site->base : site, step, h->t1 - h->t0);
    if (h->measured > 0)
        gwa_site_judge(site, h->measured, h->cpu, h->process, h->involuntary);
    if (copy)
        site->h2d += (double)copy->bytes;
    if (h->after && h->after->flags & (SPAN_TO_HOST | SPAN_WAITS) &&
        !(h->after->flags & SPAN_TO_DEVICE))
        site->d2h += (double)h->after->bytes;
}

void gwa_part_hole(struct cut *c, const struct hole *h, int64_t from, int64_t to)
{
    if (h->t1 - h->t0 >= SECTION_NS)
        add_section(c, h, from, to);
    else
        gwa_part_quick(c, GWA_IDLE_DISPATCH, 0, h->before ? h->before->step : UINT32_MAX, from, to,
                       h->t0, h->t1 - h->t0);
}
