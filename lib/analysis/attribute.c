/* What each thread did, as far as the sweep has not passed it. */
#include "attribute_internal.h"
#include "grow.h"
#include "kinds.h"

#include <string.h>

#define FULL     65536u             /* spans of all threads */
#define THREADS  65536u             /* beyond, what they did is not followed */
#define NESTED   1024u              /* calls inside one; beyond, they are counted as part of it */
#define FARTHEST ((int64_t)1 << 60) /* times beyond are nonsense: no sum of them overflows */

struct gwa_attribution *gwa_attribution_new(const struct gwt_trace *trace)
{
    struct gwa_attribution *a = calloc(1, sizeof(*a));
    if (!a)
        return NULL;
    a->trace = trace;
    a->trimmed = NEVER;
    if (gwa_fold_new(&a->sites, sizeof(struct site), sizeof(struct site_key)) ||
        gwa_fold_new(&a->drains, sizeof(struct drain), sizeof(struct drain_key))) {
        gwa_attribution_free(a);
        return NULL;
    }
    return a;
}

void gwa_attribution_free(struct gwa_attribution *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->threads_count; i++) {
        if (!a->threads[i])
            continue;
        free(a->threads[i]->ring);
        free(a->threads[i]->stacks);
        free(a->threads[i]);
    }
    for (unsigned i = 0; i < DEVICES; i++)
        free(a->devices[i]);
    free(a->threads);
    free(a->nested);
    for (size_t i = 0; i < a->sites.count; i++)
        free(((struct site *)a->sites.rows)[i].waves);
    gwa_fold_free(&a->sites);
    gwa_fold_free(&a->drains);
    free(a);
}

/* ---- threads ----------------------------------------------------------------------------- */

struct thread *gwa_thread_of(const struct gwa_attribution *a, uint32_t id)
{
    return id < a->threads_count ? a->threads[id] : NULL;
}

static int make_thread(struct gwa_attribution *a, uint32_t id, struct thread **out)
{
    *out = NULL;
    if (id >= THREADS)
        return 0;
    int rc = gwa_grow((void **)&a->threads, &a->threads_count, id, sizeof(struct thread *));
    if (rc)
        return rc;
    struct thread *th = *out = a->threads[id] = calloc(1, sizeof(*th));
    if (!th)
        return -ENOMEM;
    th->before.t1 = NEVER;
    return 0;
}

/* *out: NULL for an id that is not believed. */
static inline int thread_of(struct gwa_attribution *a, uint32_t id, struct thread **out)
{
    *out = gwa_thread_of(a, id);
    return *out ? 0 : make_thread(a, id, out);
}

static int grow_ring(struct thread *th)
{
    size_t room = th->room ? th->room * 2 : 16;
    struct span *grown = malloc(room * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    for (size_t i = 0; i < th->count; i++)
        grown[i] = *span_at(th, i);
    free(th->ring);
    th->ring = grown;
    th->first = 0;
    th->room = room;
    return 0;
}

static void forget(struct gwa_attribution *a, struct thread *th, int64_t until)
{
    size_t n = 0, call;
    while (n < th->count && span_at(th, n)->t1 < until)
        n++;
    if (!n)
        return;
    for (call = n; call && span_at(th, call - 1)->what != SPAN_CALL;)
        call--;
    if (call)
        th->before = *span_at(th, call - 1);
    th->first = (th->first + n) & (th->room - 1);
    th->count -= n;
    th->cursor = th->cursor > n ? th->cursor - n : 0;
    a->spans -= n;
    if (a->trimmed < until)
        a->trimmed = until;
}

/* Before that no device's gap is still to come. */
static int64_t passed_by_all(const struct gwa_attribution *a)
{
    int64_t passed = INT64_MAX;
    for (unsigned i = 0; i < a->devices_count; i++)
        if (a->devices[i] && a->devices[i]->passed < passed)
            passed = a->devices[i]->passed;
    return passed;
}

/* Room for one more: in place of half of what is held, where that is not needed any more. */
static int make_room(struct gwa_attribution *a, struct thread *th)
{
    size_t had = th->count;
    if (had && a->devices_count)
        forget(a, th, passed_by_all(a));
    return th->count <= had / 2 && had ? 0 : grow_ring(th);
}

/* post: a place at the end, to be filled and counted; NULL without memory */
static inline struct span *new_span(struct gwa_attribution *a, struct thread *th)
{
    return th->count == th->room && make_room(a, th) ? NULL : span_at(th, th->count);
}

static inline void count_span(struct gwa_attribution *a, struct thread *th)
{
    th->count++;
    a->spans++;
}

static int add_span(struct gwa_attribution *a, struct thread *th, const struct span *s)
{
    struct span *to = new_span(a, th);
    if (!to)
        return -ENOMEM;
    *to = *s;
    count_span(a, th);
    return 0;
}

static inline void drop_newest(struct gwa_attribution *a, struct thread *th, size_t n)
{
    th->count -= n;
    a->spans -= n;
    if (th->cursor > th->count)
        th->cursor = th->count;
}

/* ---- calls ------------------------------------------------------------------------------- */

static const uint8_t class_of_kind[GWT_KIND_COUNT] = {
    [GWT_LAUNCH] = GWA_IDLE_LAUNCH,
    [GWT_GRAPH_LAUNCH] = GWA_IDLE_LAUNCH,
    [GWT_HOST_FUNC] = GWA_IDLE_LAUNCH,
    [GWT_COPY] = GWA_IDLE_LAUNCH,
    [GWT_MEMSET] = GWA_IDLE_LAUNCH,
    [GWT_PREFETCH] = GWA_IDLE_LAUNCH,
    [GWT_EVENT_RECORD] = GWA_IDLE_LAUNCH,
    [GWT_STREAM_WAIT] = GWA_IDLE_LAUNCH,
    [GWT_STREAM_OP] = GWA_IDLE_LAUNCH,
    [GWT_POLL] = GWA_IDLE_LAUNCH,
    [GWT_ALLOC] = GWA_IDLE_ALLOC,
    [GWT_FREE] = GWA_IDLE_ALLOC,
    [GWT_HOST_ALLOC] = GWA_IDLE_ALLOC,
    [GWT_HOST_FREE] = GWA_IDLE_ALLOC,
    [GWT_SYNC] = GWA_IDLE_SYNC,
    [GWT_CAPTURE] = GWA_IDLE_LOAD,
    [GWT_INSTANTIATE] = GWA_IDLE_LOAD,
    [GWT_GRAPH_UPDATE] = GWA_IDLE_LOAD,
    [GWT_GRAPH_DESTROY] = GWA_IDLE_LOAD,
    [GWT_MODULE_LOAD] = GWA_IDLE_LOAD,
    [GWT_MODULE_UNLOAD] = GWA_IDLE_LOAD,
    [GWT_STREAM] = GWA_IDLE_LOAD,
    [GWT_CONTEXT] = GWA_IDLE_LOAD,
    [GWT_NCCL] = GWA_IDLE_COMM,
    [GWT_NCCL_GROUP] = GWA_IDLE_COMM,
    [GWT_NCCL_COMM] = GWA_IDLE_COMM,
    [GWT_LOST] = GWA_IDLE_UNKNOWN,
    [GWT_NONE] = NO_CLASS,
    [GWT_NAME] = NO_CLASS,
    [GWT_ALLOCATOR] = NO_CLASS,
    [GWT_RANGE_PUSH] = NO_CLASS,
    [GWT_RANGE_POP] = NO_CLASS,
    [GWT_RANGE_START] = NO_CLASS,
    [GWT_RANGE_END] = NO_CLASS,
    [GWT_MARK] = NO_CLASS,
    [GWT_RECORDING] = NO_CLASS,
    [GWT_SAMPLE] = NO_CLASS,
    [GWT_CONSTANT] = NO_CLASS,
    [GWT_SECTION] = NO_CLASS,
    [GWT_STACK] = NO_CLASS,
    [GWT_FREE_MEMORY] = NO_CLASS,
};

static inline uint8_t class_of(const struct gwt_event *e)
{
    if (e->flags & GWT_F_CAPTURED)
        return GWA_IDLE_LOAD;
    if (e->kind == GWT_COPY && (e->flags & GWT_F_BLOCKING || gwa_waits_for_copy(e)))
        return GWA_IDLE_COPY;
    return class_of_kind[e->kind];
}

/* A free that is not ordered in a stream waits for the device. */
static inline bool can_drain(const struct gwt_event *e, uint8_t class)
{
    return class == GWA_IDLE_SYNC || class == GWA_IDLE_COPY || (e->kind == GWT_FREE && !e->stream);
}

/* What a blocking call waited for. */
static void note_drain(struct gwa_attribution *a, const struct thread *th, struct span *s)
{
    s->flags |= SPAN_WAITS;
    s->kernel = a->kernel;
    if (s->class == GWA_IDLE_COPY)
        return;
    s->bytes = th->read_bytes;
    if (th->read_bytes && th->read_pageable)
        s->flags |= SPAN_PAGEABLE;
}

static void note_copy(const struct gwt_event *e, struct thread *th, struct span *s)
{
    unsigned direction = GWT_F_SUB(e->flags);
    s->bytes = e->value;
    if (direction == GWT_H2D)
        s->flags |= SPAN_TO_DEVICE;
    if (e->flags & GWT_F_PAGEABLE)
        s->flags |= SPAN_PAGEABLE;
    th->read_bytes = 0;
    if (direction != GWT_D2H)
        return;
    s->flags |= SPAN_TO_HOST;
    th->read_bytes = e->value;
    th->read_pageable = e->flags & GWT_F_PAGEABLE;
}

/* The calls made inside this one are in the ring already: it takes what they leave. */
static int around(struct gwa_attribution *a, struct thread *th, const struct span *outer, size_t n)
{
    struct span *nested = a->nested, piece = *outer;
    int rc = 0;
    if (!nested && !(nested = a->nested = malloc(NESTED * sizeof(*nested))))
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        nested[i] = *span_at(th, th->count - n + i);
    drop_newest(a, th, n);
    for (size_t i = 0; i < n && !rc; i++) {
        piece.t1 = nested[i].t0;
        if (piece.t1 > piece.t0)
            rc = add_span(a, th, &piece);
        if (!rc && nested[i].what == SPAN_CALL)
            rc = add_span(a, th, &nested[i]);
        piece.t0 = nested[i].t1;
    }
    piece.t1 = outer->t1;
    if (!rc && piece.t1 > piece.t0)
        rc = add_span(a, th, &piece);
    return rc;
}

/* All that a thread does while it captures is capturing. */
static bool joined(struct gwa_attribution *a, struct thread *th, const struct span *s)
{
    while (th->count && span_at(th, th->count - 1)->what == SPAN_SECTION)
        drop_newest(a, th, 1);
    if (!th->count || span_at(th, th->count - 1)->class != GWA_IDLE_LOAD)
        return false;
    struct span *last = span_at(th, th->count - 1);
    if (s->t1 > last->t1)
        last->t1 = s->t1;
    return true;
}

/* Where it does not simply follow what is there. */
static int insert_call(struct gwa_attribution *a, struct thread *th, struct span *s)
{
    size_t n = 0;
    if (th->capturing && s->class == GWA_IDLE_LOAD && joined(a, th, s))
        return 0;
    /* Calls come in order of their return: one that seems to return later has a bad clock. */
    while (th->count && span_at(th, th->count - 1)->t1 > s->t1)
        drop_newest(a, th, 1);
    while (n < th->count && span_at(th, th->count - 1 - n)->t0 >= s->t0)
        n++;
    if (n && n <= NESTED)
        return around(a, th, s, n);
    if (n)
        drop_newest(a, th, n);
    if (th->count && s->t0 < span_at(th, th->count - 1)->t1)
        s->t0 = span_at(th, th->count - 1)->t1; /* clocks are not exact to the ns */
    return s->t1 >= s->t0 ? add_span(a, th, s) : 0;
}

static void describe(struct gwa_attribution *a, struct thread *th, const struct gwt_event *e,
                     const struct gwa_place *place, struct span *s)
{
    s->t0 = e->t0_ns;
    s->t1 = e->t1_ns;
    s->step = place->step;
    s->api = e->api;
    s->class = class_of(e);
    s->what = SPAN_CALL;
    s->phase = place->phase;
    s->flags = 0;
    s->kernel = 0;
    s->bytes = 0;
    if (e->kind == GWT_COPY)
        note_copy(e, th, s);
    else if (gwa_submits(e->kind))
        th->read_bytes = 0;
    if (can_drain(e, s->class))
        note_drain(a, th, s);
    else if (e->kind == GWT_LAUNCH && gwa_executed(e))
        a->kernel = e->arg;
}

static int one_call(struct gwa_attribution *a, struct thread *th, const struct gwt_event *e,
                    const struct gwa_place *place)
{
    int rc = 0;
    if (e->device < DEVICES - 1 && !a->devices[e->device] && gwa_submits(e->kind)) {
        struct device *d = gwa_attribution_device(a, e->device);
        if (!d)
            return -ENOMEM;
        d->passed = e->t0_ns; /* its first gap follows its first operation */
    }
    if (!th->capturing && th->count && span_at(th, th->count - 1)->t1 <= e->t0_ns) {
        struct span *s = new_span(a, th);
        if (!s)
            return -ENOMEM;
        describe(a, th, e, place, s);
        count_span(a, th);
    } else {
        struct span s;
        describe(a, th, e, place, &s);
        rc = insert_call(a, th, &s);
    }
    if (e->kind == GWT_CAPTURE)
        th->capturing = !(e->flags & GWT_F_CLOSING);
    return rc;
}

/* ---- sections, stacks ------------------------------------------------------------------- */

static uint32_t us_of(int64_t ns)
{
    return ns <= 0 ? 0 : ns / 1000 > UINT32_MAX ? UINT32_MAX : (uint32_t)(ns / 1000);
}

/* The hand-over that this section began with is known now: what the thread computed, it did
 * before the other took over, since then it only waits. */
static void settle_hand_over(struct thread *th, const struct gwt_event *e,
                             const struct gwt_section *clocks)
{
    struct hand_over *h = &th->handed;
    if (!h->site)
        return;
    if ((double)clocks->measured_ns >= 0.99 * (double)(e->t1_ns - h->from)) {
        double cpu = (double)clocks->cpu_ns + h->other_share * (double)h->ns;
        gwa_site_judge(h->site, (double)h->ns, cpu, cpu, 0);
    }
    h->site = NULL;
}

static int section(struct gwa_attribution *a, struct thread *th, const struct gwt_event *e)
{
    struct gwt_section clocks = gwt_section_of(e);
    struct span s = {.t0 = e->t0_ns, .t1 = e->t1_ns, .what = SPAN_SECTION, .class = NO_CLASS};
    if (th->count && s.t0 < span_at(th, th->count - 1)->t1)
        s.t0 = span_at(th, th->count - 1)->t1;
    if (s.t1 <= s.t0)
        return 0;
    settle_hand_over(th, e, &clocks);
    s.section.cpu_us = us_of(clocks.cpu_ns);
    s.section.process_us = us_of(clocks.process_cpu_ns);
    s.section.measured_us = us_of(clocks.measured_ns);
    s.section.involuntary = clocks.involuntary;
    return add_span(a, th, &s);
}

static int stack(struct gwa_attribution *a, const struct gwt_event *e)
{
    struct thread *th;
    int rc = thread_of(a, (uint32_t)(e->value < UINT32_MAX ? e->value : UINT32_MAX), &th);
    if (!th)
        return rc;
    if (!th->stacks) {
        th->stacks = malloc(STACKS * sizeof(*th->stacks));
        if (!th->stacks)
            return -ENOMEM;
        for (unsigned i = 0; i < STACKS; i++)
            th->stacks[i].at = NEVER;
    }
    th->stacks[th->stacks_next++ % STACKS] = (struct stack_at){.at = e->t0_ns, .stack = e->arg};
    return 0;
}

uint32_t gwa_stack_in(const struct thread *th, int64_t from, int64_t to)
{
    for (unsigned i = 1; th->stacks && i <= STACKS; i++) {
        const struct stack_at *s = &th->stacks[(th->stacks_next - i) % STACKS];
        if (s->at < from) /* none, or older still */
            break;
        if (s->at < to)
            return s->stack;
    }
    return 0;
}

int gwa_attribution_event(struct gwa_attribution *a, const struct gwt_event *e,
                          const struct gwa_place *place)
{
    struct thread *th;
    if (e->kind >= GWT_KIND_COUNT || e->t1_ns < e->t0_ns || e->t0_ns < -FARTHEST ||
        e->t1_ns > FARTHEST)
        return 0;
    if (e->kind == GWT_STACK)
        return stack(a, e);
    if (e->kind != GWT_SECTION && class_of_kind[e->kind] == NO_CLASS)
        return 0;
    int rc = thread_of(a, e->thread, &th);
    if (!th)
        return rc;
    return e->kind == GWT_SECTION ? section(a, th, e) : one_call(a, th, e, place);
}

/* ---- what is passed ----------------------------------------------------------------------- */

struct device *gwa_attribution_device(struct gwa_attribution *a, unsigned index)
{
    struct device *d = a->devices[index];
    if (d)
        return d;
    d = a->devices[index] = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    if (index >= a->devices_count)
        a->devices_count = index + 1;
    d->passed = d->early_from = d->early_to = NEVER;
    d->last_step = UINT32_MAX;
    return d;
}

bool gwa_attribution_full(const struct gwa_attribution *a)
{
    return a->spans > FULL;
}

void gwa_attribution_passed(struct gwa_attribution *a, unsigned device, int64_t reach, int64_t now)
{
    struct device *d = device < DEVICES ? gwa_attribution_device(a, device) : NULL;
    if (!d)
        return;
    d->passed = reach;
    if (d->early_to > reach)
        reach = d->early_to;
    if (now > reach) {
        gwa_attribution_early(a, d, reach, now);
        d->passed = now;
    }
}

void gwa_attribution_trim(struct gwa_attribution *a)
{
    int64_t passed = passed_by_all(a);
    for (size_t i = 0; i < a->threads_count; i++)
        if (a->threads[i])
            forget(a, a->threads[i], passed);
    if (a->spans <= FULL / 2)
        return;
    /* Too many at one moment: what they were is not followed. */
    for (size_t i = 0; i < a->threads_count; i++) {
        struct thread *th = a->threads[i];
        if (th && th->count)
            forget(a, th, span_at(th, th->count - 1)->t1 + 1);
    }
}
