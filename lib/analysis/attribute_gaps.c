/* Of what a gap consists: what the host did from its start to the submission that ended it. */
#include "attribute_internal.h"

#include <math.h>
#include <string.h>

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
        gwa_hole_clocks(&h, span_at(th, k));
    h.before = call_from(th, &h.before_index);
    for (; i < h.before_index; i++)
        gwa_hole_clocks(&h, span_at(th, i));
    h.t1 = h.before ? h.before->t0 : t;
    return h;
}

/* [from, to) of the thread's time. post: how far it is known what it did; from there it was
 * outside CUDA, as far as its calls so far tell. */
static int64_t walk(struct cut *c, struct thread *th, int64_t from, int64_t to)
{
    if (from < c->a->trimmed) {
        int64_t until = to < c->a->trimmed ? to : c->a->trimmed;
        gwa_part_unknown(c, from, until);
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
            gwa_part_hole(c, &h, from, s->t0);
            from = s->t0;
        }
        int64_t until = s->t1 < to ? s->t1 : to;
        gwa_part_call(c, th, s, from, until);
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
    gwa_part_hole(c, &h, from, to);
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
        gwa_part_hole(c, &h, from, to);
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
    const struct span *copy = gwa_hole_copy(&h);
    struct site *site = gwa_hole_site(c, &h, copy);
    if (!(h.measured > 0))
        open = site->unmeasured_ns;
    gwa_part_hole(c, &h, from, to);
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
    int64_t begins = first && first->t0 < idle->next.entry ? first->t0 : idle->next.entry;
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
        gwa_part_class(c, i, share * d->early[i]);
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

static bool was_queued(const struct gwa_next *next, int64_t start)
{
    int64_t returned = gwa_call_returned(next->entry, next->call_ns);
    return returned <= start && (next->lower <= start || returned + ARRIVES_NS <= start);
}

static void divide(struct cut *c, const struct gwa_idle_time *idle)
{
    const struct gwa_next *next = &idle->next;
    int64_t from = idle->start, to = idle->end;
    struct thread *th = idle->ended ? gwa_thread_of(c->a, next->thread) : NULL;
    from = take_early(c, from, to);
    if (!th) {
        gwa_part_unknown(c, from, to);
        return;
    }
    if (was_queued(next, idle->start)) {
        gwa_part_quick(c, GWA_IDLE_LAUNCH, GWA_LAUNCH_QUEUED, next->step, from, to, idle->start,
                       to - idle->start);
        return;
    }
    from = take_over(c, idle, th, from, to);
    int64_t returned = gwa_call_returned(next->entry, next->call_ns);
    if (returned > to)
        returned = to;
    if (from < returned) {
        walk_all(c, th, from, returned);
        from = returned;
    }
    gwa_part_quick(c, GWA_IDLE_LAUNCH, GWA_LAUNCH_CALL, next->step, from, to, next->entry,
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
    struct thread *th = gwa_thread_of(c->a, idle->next.thread);
    if (th)
        gwa_lines_vote_in(c->a->trace, &drain->lines, th, s->t0, s->t1 + AFTER_NS);
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

/* The most frequent gaps by far, short ones: the host had launched long before, or it came from its
 * last call shortly before, and launched. post: false: not such a one, nothing was done. */
static bool quick_gap(struct gwa_attribution *a, struct device *d, const struct gwa_idle_time *idle)
{
    const struct gwa_next *next = &idle->next;
    int64_t start = idle->start, ns = idle->end - start;
    if (!idle->ended || d->early_to != NEVER || d->top_count < TOP || ns > d->top[TOP - 1].ns ||
        next->thread >= a->threads_count)
        return false;
    struct thread *th = a->threads[next->thread];
    struct site *const *quick = d->quick[next->phase];
    struct site *launch = quick[QUICK_LAUNCH + GWA_LAUNCH_CALL], *between = quick[QUICK_DISPATCH],
                *queued = quick[QUICK_LAUNCH + GWA_LAUNCH_QUEUED];
    if (!th)
        return false;
    if (was_queued(next, start)) {
        if (queued)
            quick_add(d, queued, GWA_IDLE_LAUNCH, next->step, ns, start, idle->end);
        return queued != NULL;
    }
    if (!launch || !between || idle->thread != next->thread || start < a->trimmed)
        return false;
    size_t i = look_up(th, start);
    if (!i || i >= th->count)
        return false;
    const struct span *call = span_at(th, i), *last = span_at(th, i - 1);
    int64_t entry = call->t0;
    if (entry != next->entry || entry > idle->end || call->class != GWA_IDLE_LAUNCH ||
        call->t1 != gwa_call_returned(next->entry, next->call_ns) || last->what != SPAN_CALL ||
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
                    .phase = idle->ended ? idle->next.phase : (uint8_t)GWA_PHASE_OTHER};
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
    struct device *d = a->devices[device];
    if (!d && !(d = gwa_attribution_device(a, device))) {
        a->out_of_memory = true;
        return;
    }
    if (idle->ended)
        note_step(d, idle->next.step);
    if (!quick_gap(a, d, idle))
        whole_gap(a, d, device, idle);
    if (d->passed < idle->end)
        d->passed = idle->end;
    if (idle->ended)
        d->owner = idle->next.thread;
}

static void early_hole(struct device *d, const struct hole *h, double ns)
{
    double share = gwa_hole_share(h);
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
