/* One gap, divided by what the host did meanwhile. */
#include "attribute_internal.h"

#include <math.h>
#include <string.h>

#define SOON_CALLS 8       /* a copy to the device among the next so many calls ... */
#define SOON_NS    1000000 /* ... and within that time belongs to the section before */
#define AFTER_NS   1000000 /* a stack taken so shortly after a blocking call shows its caller */

/* A gap while it is being divided. */
struct cut {
    struct gwa_attribution *a;
    struct device *d;
    unsigned device;
    uint8_t phase;
    int64_t start; /* of the gap */
    struct parts parts;
};

/* ---- parts --------------------------------------------------------------------------------- */

static void add_class(struct cut *c, unsigned class, double ns)
{
    c->parts.ns[class] += ns;
    c->d->ns[class] += ns;
}

static void note_longest(struct cut *c, struct site *site, uint32_t stack, double ns)
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
    add_class(c, GWA_IDLE_UNKNOWN, ns);
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
static void add_quick(struct cut *c, unsigned class, unsigned origin, uint32_t step, int64_t from,
                      int64_t to, int64_t t0, int64_t ns)
{
    struct site *s = quick_site(c, class, origin);
    double idle = (double)(to - from);
    if (to <= from)
        return;
    add_class(c, class, idle);
    s->idle_ns += idle;
    gwa_site_met(s, t0, ns, step);
    note_longest(c, NULL, 0, idle);
}

static void add_unknown(struct cut *c, int64_t from, int64_t to)
{
    if (to <= from)
        return;
    add_class(c, GWA_IDLE_UNKNOWN, (double)(to - from));
    c->d->other[GWA_IDLE_UNKNOWN].idle_ns += (double)(to - from);
    c->d->other[GWA_IDLE_UNKNOWN].count++;
}

/* ---- inside calls --------------------------------------------------------------------------- */

static void add_call(struct cut *c, const struct thread *th, const struct span *s, int64_t from,
                     int64_t to)
{
    if (s->flags & SPAN_WAITS && s->t0 <= c->start && c->start <= s->t1)
        c->parts.drained = s;
    if (s->class == GWA_IDLE_LAUNCH) {
        add_quick(c, GWA_IDLE_LAUNCH, GWA_LAUNCH_CALL, s->step, from, to, s->t0, s->t1 - s->t0);
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
    add_class(c, s->class, idle);
    site->idle_ns += idle;
    if (gwa_site_met(site, s->t0, s->t1 - s->t0, s->step)) {
        gwa_lines_vote(c->a->trace, &site->lines, stack);
        if (s->flags & SPAN_TO_DEVICE)
            site->h2d += (double)s->bytes;
        if (s->flags & SPAN_TO_HOST)
            site->d2h += (double)s->bytes;
    }
    note_longest(c, site, stack, idle);
}

/* ---- outside calls -------------------------------------------------------------------------- */

/* A thread's time outside CUDA, from its call `after` to the entry of `before`. */
struct hole {
    const struct thread *th; /* whose `before` is */
    int64_t t0, t1;
    const struct span *after, *before; /* NULL: not known */
    size_t before_index;
    double measured, cpu, process, involuntary; /* ns */
};

/* Of the hole, on the CPU; NaN: less than half of it was measured. */
static double share_of(const struct hole *h)
{
    return 2 * h->measured >= (double)(h->t1 - h->t0) ? fmin(1, h->cpu / h->measured) : NAN;
}

static void add_clocks(struct hole *h, const struct span *s)
{
    h->measured += 1e3 * s->section.measured_us;
    h->cpu += 1e3 * s->section.cpu_us;
    h->process += 1e3 * s->section.process_us;
    h->involuntary += s->section.involuntary;
}

/* A copy to the device that the section leads to; NULL: none. */
static const struct span *leads_to_copy(const struct hole *h)
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

static struct site *section_site(struct cut *c, const struct hole *h, const struct span *copy)
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
    return gwa_site_of(c->a, &key);
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
    double share = share_of(h);
    const struct span *copy = leads_to_copy(h);
    struct site *site = section_site(c, h, copy);
    uint32_t stack = gwa_stack_in(h->th, h->t0, h->t1);
    divide_section(c, site, (double)(to - from), share);
    note_longest(c, site, stack, (double)(to - from));
    if (!gwa_site_met(site, h->t0, h->t1 - h->t0, h->after ? h->after->step : UINT32_MAX))
        return;
    gwa_lines_vote(c->a->trace, &site->lines, stack);
    if (h->measured > 0)
        gwa_site_judge(site, h->measured, h->cpu, h->process, h->involuntary);
    if (copy)
        site->h2d += (double)copy->bytes;
    if (h->after && h->after->flags & (SPAN_TO_HOST | SPAN_WAITS) &&
        !(h->after->flags & SPAN_TO_DEVICE))
        site->d2h += (double)h->after->bytes;
}

static void add_hole(struct cut *c, const struct hole *h, int64_t from, int64_t to)
{
    if (h->t1 - h->t0 >= SECTION_NS)
        add_section(c, h, from, to);
    else
        add_quick(c, GWA_IDLE_DISPATCH, 0, h->before ? h->before->step : UINT32_MAX, from, to,
                  h->t0, h->t1 - h->t0);
}

/* ---- walking -------------------------------------------------------------------------------- */

/* Index of the first span that ends after t. */
static size_t look_up(struct thread *th, int64_t t)
{
    size_t i = th->cursor < th->count ? th->cursor : th->count, low = 0, high = th->count;
    unsigned tries = 16;
    while (i && span_at(th, i - 1)->t1 > t && tries--)
        i--;
    while (tries && i < th->count && span_at(th, i)->t1 <= t && tries--)
        i++;
    if ((i && span_at(th, i - 1)->t1 > t) || (i < th->count && span_at(th, i)->t1 <= t)) {
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (span_at(th, middle)->t1 <= t)
                low = middle + 1;
            else
                high = middle;
        }
        i = low;
    }
    return th->cursor = i;
}

static const struct span *call_before(const struct thread *th, size_t i)
{
    while (i--)
        if (span_at(th, i)->what == SPAN_CALL)
            return span_at(th, i);
    return th->before.t1 == NEVER ? NULL : &th->before;
}

static const struct span *call_from(const struct thread *th, size_t *i)
{
    for (; *i < th->count; ++*i)
        if (span_at(th, *i)->what == SPAN_CALL)
            return span_at(th, *i);
    return NULL;
}

/* The hole that ends with the span at i, or that nothing ended yet; t: inside it. */
static struct hole hole_before(const struct thread *th, size_t i, int64_t t)
{
    struct hole h = {.th = th, .before_index = i};
    h.after = call_before(th, i);
    h.t0 = h.after ? h.after->t1 : t;
    for (size_t k = i; k-- && span_at(th, k)->what == SPAN_SECTION;)
        add_clocks(&h, span_at(th, k));
    h.before = call_from(th, &h.before_index);
    for (; i < h.before_index; i++)
        add_clocks(&h, span_at(th, i));
    h.t1 = h.before ? h.before->t0 : t;
    return h;
}

/* [from, to) of the thread's time. post: how far it is known what it did; from there it was
 * outside CUDA, as far as its calls so far tell. */
static int64_t walk(struct cut *c, struct thread *th, int64_t from, int64_t to)
{
    if (from < c->a->trimmed) {
        int64_t until = to < c->a->trimmed ? to : c->a->trimmed;
        add_unknown(c, from, until);
        from = until;
    }
    for (size_t i = from < to ? look_up(th, from) : 0; from < to; i++) {
        const struct span *s = call_from(th, &i);
        if (!s)
            break;
        if (s->t0 > from) {
            if (s->t0 > to)
                break;
            struct hole h = hole_before(th, i, from);
            add_hole(c, &h, from, s->t0);
            from = s->t0;
        }
        int64_t until = s->t1 < to ? s->t1 : to;
        add_call(c, th, s, from, until);
        if (until > from)
            from = until;
    }
    return from;
}

/* The rest of [from, to) ends inside a hole of the thread's own. */
static void walk_all(struct cut *c, struct thread *th, int64_t from, int64_t to)
{
    from = walk(c, th, from, to);
    if (from >= to)
        return;
    struct hole h = hole_before(th, look_up(th, from), from);
    if (!h.before)
        h.t1 = to;
    add_hole(c, &h, from, to);
}

/* ---- hand-over ------------------------------------------------------------------------------ */

/* From `last`'s newest call to the first of `th`, its span `i`: neither was inside CUDA. One of
 * them computed, or both waited: `last` before it handed over, `th` after. */
static void add_hand_over(struct cut *c, struct thread *last, const struct thread *th, size_t i,
                          int64_t from, int64_t to)
{
    struct hole own = hole_before(last, look_up(last, from), from);
    struct hole h = hole_before(th, i, from);
    h.after = own.after;
    h.t0 = own.t0;
    double other = h.measured > 0 ? fmin(1, h.cpu / (double)(h.t1 - h.t0)) : 0;
    if (h.t1 - h.t0 < SECTION_NS) {
        add_hole(c, &h, from, to);
        return;
    }
    double ns = (double)(h.t1 - h.t0);
    bool known = own.measured > 0 && own.measured >= (double)(own.t1 - own.t0) * 0.99;
    if (known || other >= 0.5) {
        h.cpu = (known ? own.cpu : 0) + other * ns;
        h.measured = ns;
        h.process = fmax(h.cpu, h.process);
    } else {
        h.measured = 0;
    }
    double open = -1;
    const struct span *copy = leads_to_copy(&h);
    struct site *site = section_site(c, &h, copy);
    if (!(h.measured > 0))
        open = site->unmeasured_ns;
    add_section(c, &h, from, to);
    if (open >= 0 && site->unmeasured_ns > open)
        last->handed =
            (struct hand_over){.site = site, .from = h.t0, .ns = h.t1 - h.t0, .other_share = other};
}

/* post: from when on `th` counts: its first call that returned after `last` had submitted. */
static int64_t take_over(struct cut *c, const struct gwa_idle_time *idle, struct thread *th,
                         int64_t from, int64_t to)
{
    struct thread *last = gwa_thread_of(c->a, idle->thread);
    if (!last || last == th || from < c->a->trimmed)
        return from;
    size_t i = look_up(th, idle->returned);
    const struct span *first = call_from(th, &i);
    int64_t begins = first && first->t0 < idle->next->entry ? first->t0 : idle->next->entry;
    if (begins > to)
        begins = to;
    if (begins <= from)
        return from;
    int64_t at = walk(c, last, from, begins);
    if (at < begins)
        add_hand_over(c, last, th, i, at, begins);
    return begins;
}

/* ---- gaps ----------------------------------------------------------------------------------- */

static int64_t take_early(struct cut *c, int64_t from, int64_t to)
{
    struct device *d = c->d;
    int64_t until = to < d->early_to ? to : d->early_to;
    if (d->early_to == NEVER || from < d->early_from || until <= from)
        return from;
    double share = (double)(until - from) / (double)(d->early_to - d->early_from);
    for (unsigned i = 0; i < GWA_IDLE_CLASS_COUNT; i++) {
        add_class(c, i, share * d->early[i]);
        d->other[i].idle_ns += share * d->early[i];
    }
    return until;
}

static void forget_early(struct device *d, int64_t until)
{
    if (d->early_to > until)
        return;
    d->early_from = d->early_to = NEVER;
    memset(d->early, 0, sizeof(d->early));
}

#define ARRIVES_NS                                                                                 \
    20000 /* within that a submission is on the device, if nothing else is awaited                 \
           */

static bool was_queued(const struct gwa_piece *next, int64_t start)
{
    int64_t returned = gwa_piece_returned(next);
    return returned <= start && (next->lower <= start || returned + ARRIVES_NS <= start);
}

static void divide(struct cut *c, const struct gwa_idle_time *idle)
{
    const struct gwa_piece *next = idle->next;
    int64_t from = idle->start, to = idle->end;
    struct thread *th = next ? gwa_thread_of(c->a, next->thread) : NULL;
    from = take_early(c, from, to);
    if (!th) {
        add_unknown(c, from, to);
        return;
    }
    if (was_queued(next, idle->start)) {
        add_quick(c, GWA_IDLE_LAUNCH, GWA_LAUNCH_QUEUED, next->step, from, to, idle->start,
                  to - idle->start);
        return;
    }
    from = take_over(c, idle, th, from, to);
    int64_t returned = gwa_piece_returned(next);
    if (returned > to)
        returned = to;
    if (from < returned) {
        walk_all(c, th, from, returned);
        from = returned;
    }
    add_quick(c, GWA_IDLE_LAUNCH, GWA_LAUNCH_CALL, next->step, from, to, next->entry,
              next->call_ns);
}

/* ---- drains --------------------------------------------------------------------------------- */

static void add_drain(struct cut *c, const struct gwa_idle_time *idle)
{
    const struct span *s = c->parts.drained;
    struct gwt_signature_info info;
    if (!s)
        return;
    bool read = s->bytes && !(s->flags & SPAN_TO_DEVICE);
    struct drain_key key = {.bytes = read ? s->bytes : 0,
                            .api = s->api,
                            .device = (uint8_t)c->device,
                            .phase = s->phase,
                            .pageable = !!(s->flags & SPAN_PAGEABLE)};
    if (s->kernel && gwt_signature(c->a->trace, s->kernel, &info))
        key.kernel = info.name_id;
    struct drain *drain = gwa_fold_find(&c->a->drains, &key);
    if (!drain)
        drain = &c->d->other_drains;
    double ns = (double)(idle->end - idle->start);
    c->d->drained_ns += ns;
    drain->idle_ns += ns;
    if (drain->count && drain->last_t0 == s->t0)
        return;
    drain->last_t0 = s->t0;
    drain->count++;
    drain->in_steps += s->step != UINT32_MAX;
    drain->waited_ns += (double)(s->t1 - s->t0);
    struct thread *th = gwa_thread_of(c->a, idle->next->thread);
    gwa_lines_vote(c->a->trace, &drain->lines, gwa_stack_in(th, s->t0, s->t1 + AFTER_NS));
}

static void keep_longest(struct cut *c, const struct gwa_idle_time *idle)
{
    struct device *d = c->d;
    int64_t ns = idle->end - idle->start;
    size_t i = d->top_count;
    if (i == TOP && ns <= d->top[i - 1].ns)
        return;
    if (i == TOP)
        i--;
    else
        d->top_count++;
    for (; i > 0 && d->top[i - 1].ns < ns; i--)
        d->top[i] = d->top[i - 1];
    d->top[i] = (struct top_gap){.start = idle->start,
                                 .ns = ns,
                                 .parts = c->parts,
                                 .drained_by = c->parts.drained ? c->parts.drained->api : 0};
    d->top[i].parts.drained = NULL;
}

static inline void quick_add(struct device *d, struct site *s, unsigned class, uint32_t step,
                             int64_t idle, int64_t t0, int64_t t1)
{
    d->ns[class] += (double)idle;
    s->idle_ns += (double)idle;
    gwa_site_met(s, t0, t1 - t0, step);
}

/* The most frequent gap by far, short: the host came from its last call shortly before, and
 * launched; or had done so long before. post: false: not such a one, nothing was done. */
static bool quick_gap(struct gwa_attribution *a, struct device *d, const struct gwa_idle_time *idle)
{
    const struct gwa_piece *next = idle->next;
    int64_t start = idle->start, ns = idle->end - start;
    if (!next || idle->thread != next->thread || next->thread >= a->threads_count ||
        d->early_to != NEVER || d->top_count < TOP || ns > d->top[TOP - 1].ns || start < a->trimmed)
        return false;
    struct thread *th = a->threads[next->thread];
    struct site *const *quick = d->quick[next->phase];
    struct site *launch = quick[QUICK_LAUNCH + GWA_LAUNCH_CALL], *between = quick[QUICK_DISPATCH];
    if (!th || !launch || !between || was_queued(next, start))
        return false;
    size_t i = look_up(th, start);
    if (!i || i >= th->count)
        return false;
    const struct span *call = span_at(th, i), *last = span_at(th, i - 1);
    int64_t entry = call->t0;
    if (entry != next->entry || entry > idle->end || call->class != GWA_IDLE_LAUNCH ||
        call->t1 != gwa_piece_returned(next) || last->what != SPAN_CALL ||
        entry - last->t1 >= SECTION_NS)
        return false;
    if (start < entry) {
        quick_add(d, between, GWA_IDLE_DISPATCH, call->step, entry - start, last->t1, entry);
        ns -= entry - start;
    }
    quick_add(d, launch, GWA_IDLE_LAUNCH, call->step, ns, entry, call->t1);
    return true;
}

static void note_step(struct device *d, uint32_t step)
{
    d->steps += step != UINT32_MAX && step != d->last_step;
    d->last_step = step;
}

static void whole_gap(struct gwa_attribution *a, struct device *d, unsigned device,
                      const struct gwa_idle_time *idle)
{
    struct cut c = {.a = a,
                    .d = d,
                    .device = device,
                    .start = idle->start,
                    .phase = idle->next ? idle->next->phase : (uint8_t)GWA_PHASE_OTHER};
    divide(&c, idle);
    forget_early(d, idle->end);
    add_drain(&c, idle);
    keep_longest(&c, idle);
}

void gwa_attribution_gap(void *arg, unsigned device, const struct gwa_idle_time *idle)
{
    struct gwa_attribution *a = arg;
    if (device >= DEVICES || idle->end <= idle->start)
        return;
    struct device *d = gwa_attribution_device(a, device);
    if (!d) {
        a->out_of_memory = true;
        return;
    }
    if (idle->next)
        note_step(d, idle->next->step);
    if (!quick_gap(a, d, idle))
        whole_gap(a, d, device, idle);
    if (d->passed < idle->end)
        d->passed = idle->end;
    if (idle->next)
        d->owner = idle->next->thread;
}

static void early_hole(struct device *d, const struct hole *h, double ns)
{
    double share = share_of(h);
    if (h->t1 - h->t0 < SECTION_NS) {
        d->early[GWA_IDLE_DISPATCH] += ns;
    } else if (isnan(share)) {
        d->early[GWA_IDLE_UNKNOWN] += ns;
    } else {
        d->early[GWA_IDLE_HOST_CPU] += share * ns;
        d->early[GWA_IDLE_HOST_BLOCKED] += ns - share * ns;
    }
}

/* Divided like a gap, but kept apart: it is not known yet how much of it will be one. */
void gwa_attribution_early(struct gwa_attribution *a, struct device *d, int64_t from, int64_t to)
{
    struct thread *th = gwa_thread_of(a, d->owner);
    if (d->early_to == NEVER)
        d->early_from = from;
    d->early_to = to;
    if (th && from >= a->trimmed) {
        for (size_t i = look_up(th, from); from < to; i++) {
            const struct span *s = call_from(th, &i);
            int64_t entry = s && s->t0 < to ? s->t0 : to;
            if (entry > from) {
                struct hole h = hole_before(th, i, entry);
                early_hole(d, &h, (double)(entry - from));
                from = entry;
            }
            if (!s || s->t0 >= to)
                break;
            int64_t until = s->t1 < to ? s->t1 : to;
            if (until > from) {
                d->early[s->class] += (double)(until - from);
                from = until;
            }
        }
    }
    d->early[GWA_IDLE_UNKNOWN] += (double)(to - from);
}
