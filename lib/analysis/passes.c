#include "passes.h"
#include "pipe.h"

#include <errno.h>

/* At most so many events tell what is not known before a run; then all are placed in time. */
#define LEARN_EVENTS 300000u

struct pass {
    struct gwa_tally *t;
    int (*tick)(void *arg);
    void *tick_arg;
    uint64_t events;
    struct gwa_ranges ranges; /* t's, with a hint of the stage that asks first */
    /* the timeline's, apart from what other stages look at: it changes with each event */
    _Alignas(64) struct gwa_batch *batch; /* NULL: it has seen all */
    uint32_t at;                          /* event of it */
    uint64_t placed, settle; /* events; after how many the sweep is next brought up to them */
    bool out_of_memory;
};

static int count_events(struct pass *p, const struct gwa_batch *b)
{
    uint64_t before = p->events / GWA_TICK;
    p->events += b->count;
    return p->events / GWA_TICK != before ? p->tick(p->tick_arg) : 0;
}

/* Of all events nearly the half say what is allocated, to those who ask for that alone. */
static inline bool only_memory(const struct gwt_event *e)
{
    return e->kind == GWT_ALLOCATOR;
}

/* ---- the first -------------------------------------------------------------------------- */

static int learn(void *arg, struct gwa_batch *b)
{
    struct pass *p = arg;
    int rc = 0;
    for (size_t i = 0; i < b->count && !rc; i++) {
        const struct gwt_event *e = &b->events[i];
        if (only_memory(e))
            continue;
        rc = gwa_durations_event(p->t->durations, e);
        if (!rc && gwa_ranges_hold(&p->ranges, e->t0_ns))
            rc = gwa_steps_event(p->t->steps, e);
    }
    return rc;
}

static int count(void *arg, struct gwa_batch *b)
{
    struct pass *p = arg;
    int rc = 0;
    for (size_t i = 0; i < b->count && !rc; i++)
        rc = gwa_tally_event(p->t, &b->events[i]);
    return rc ? rc : count_events(p, b);
}

int gwa_pass_count(struct gwa_tally *t, int (*tick)(void *arg), void *tick_arg)
{
    static gwa_stage *const stages[] = {learn, count};
    struct pass p = {.t = t, .tick = tick, .tick_arg = tick_arg, .ranges = t->ranges};
    int rc = gwa_pipe(t->trace, UINT64_MAX, t->workers, stages, 2, &p);
    t->events = p.events;
    if (!rc)
        rc = gwa_durations_fit(t->durations);
    /* what has a duration takes as much again when it is placed in time */
    size_t used = 2 * gwa_durations_used(t->durations) + (GWA_TALLY_ROOM - t->room);
    return rc ? rc : gwa_steps_find(t->steps, used < GWA_LISTS_ROOM ? GWA_LISTS_ROOM - used : 0);
}

/* ---- between them ------------------------------------------------------------------------- */

static int place_alone(void *arg, struct gwa_batch *b)
{
    struct pass *p = arg;
    int rc = 0;
    for (size_t i = 0; i < b->count && !rc; i++)
        rc = gwa_timeline_event(p->t->timeline, &b->events[i], NULL, &b->ns[i]);
    return rc;
}

int gwa_pass_learn(struct gwa_tally *t)
{
    static gwa_stage *const stages[] = {place_alone};
    struct pass p = {.t = t};
    return gwa_pipe(t->trace, LEARN_EVENTS, t->workers, stages, 1, &p);
}

/* ---- the last: in steps ------------------------------------------------------------------ */

static int count_in_step(struct gwa_tally *t, const struct gwt_event *e, unsigned kind)
{
    if (kind != GWA_STEP_STEADY && kind != GWA_STEP_UNUSUAL)
        return 0;
    return gwa_step_calls_event(t->step_calls, e, kind == GWA_STEP_STEADY);
}

/* What proves that a device was idle, and how far it was looked at. */
static int watch(struct pass *p, const struct gwt_event *e)
{
    int rc = gwa_ranges_hold(&p->ranges, e->t0_ns) ? gwa_tally_widen(p->t, e) : 0;
    return rc ? rc : gwa_idle_event(p->t->idle, e);
}

static int place_in_steps(void *arg, struct gwa_batch *b)
{
    struct pass *p = arg;
    struct gwa_tally *t = p->t;
    const struct gwa_step *steps = gwa_steps_list(t->steps);
    bool any = gwa_steps_count(t->steps) > 0, all = p->ranges.all;
    int rc = 0;
    for (size_t i = 0; i < b->count && !rc; i++) {
        const struct gwt_event *e = &b->events[i];
        struct gwa_place *place = &b->places[i];
        if (any && (all || gwa_ranges_hold(&p->ranges, e->t0_ns)))
            rc = gwa_steps_place(t->steps, e, place);
        else
            *place = (struct gwa_place){.step = UINT32_MAX};
        if (!rc)
            rc = gwa_memory_event(t->memory, e, place);
        if (rc || only_memory(e))
            continue;
        if (place->step != UINT32_MAX)
            rc = count_in_step(t, e, steps[place->step].kind);
        if (!rc)
            rc = watch(p, e);
    }
    return rc;
}

/* ---- in time ----------------------------------------------------------------------------- */

static void found_idle(void *arg, unsigned device, const struct gwa_idle_time *idle)
{
    struct pass *p = arg;
    if (!p->batch) {
        gwa_attribution_gap(p->t->attribution, device, idle);
        return;
    }
    struct gwa_note *n = gwa_note(p->batch);
    if (!n) {
        p->out_of_memory = true;
        return;
    }
    n->idle = *idle;
    n->at = p->at;
    n->what = GWA_NOTE_IDLE;
    n->device = (uint8_t)device;
}

/* After so many events, in case that what the attribution holds, until the sweep has passed it, is
 * much. */
#define SETTLE_FIRST 63488u
#define SETTLE_AGAIN 65536u

static int settle(struct pass *p, struct gwa_batch *b)
{
    struct gwa_timeline *timeline = p->t->timeline;
    struct gwa_note *n;
    gwa_timeline_settle(timeline);
    for (unsigned i = 0; i < GWA_TIMELINE_DEVICES; i++) {
        const struct gwa_timeline_device *d = gwa_timeline_of(timeline, i);
        if (!d || !d->sweep.begun)
            continue;
        if (!(n = gwa_note(b)))
            return -ENOMEM;
        *n = (struct gwa_note){.at = p->at,
                               .what = GWA_NOTE_PASSED,
                               .device = (uint8_t)i,
                               .idle.start = gwa_sweep_reach(&d->sweep),
                               .idle.end = gwa_timeline_settled(timeline)};
    }
    if (!(n = gwa_note(b)))
        return -ENOMEM;
    *n = (struct gwa_note){.at = p->at, .what = GWA_NOTE_TRIM};
    p->settle += SETTLE_AGAIN;
    return 0;
}

static int place_in_time(void *arg, struct gwa_batch *b)
{
    struct pass *p = arg;
    struct gwa_timeline *timeline = p->t->timeline;
    int rc = 0;
    p->batch = b;
    for (size_t i = 0; i < b->count && !rc; i++) {
        p->at = (uint32_t)i;
        if (p->placed++ == p->settle && (rc = settle(p, b)))
            break;
        rc = gwa_timeline_event(timeline, &b->events[i], &b->places[i], &b->ns[i]);
    }
    p->batch = NULL;
    return p->out_of_memory ? -ENOMEM : rc;
}

/* ---- and why ----------------------------------------------------------------------------- */

static void read_note(struct gwa_attribution *a, const struct gwa_note *n)
{
    if (n->what == GWA_NOTE_IDLE)
        gwa_attribution_gap(a, n->device, &n->idle);
    else if (!gwa_attribution_full(a))
        return;
    else if (n->what == GWA_NOTE_PASSED)
        gwa_attribution_passed(a, n->device, n->idle.start, n->idle.end);
    else
        gwa_attribution_trim(a);
}

static int explain(void *arg, struct gwa_batch *b)
{
    struct pass *p = arg;
    struct gwa_tally *t = p->t;
    const struct gwa_note *note = b->notes, *last = b->notes_count ? note + b->notes_count : note;
    int rc = 0;
    for (size_t i = 0; i < b->count && !rc && t->attribution; i++) {
        const struct gwa_place *place = &b->places[i];
        if (only_memory(&b->events[i]))
            continue;
        for (; note < last && note->at <= i; note++)
            read_note(t->attribution, note);
        if (place->step != UINT32_MAX)
            gwa_steps_took(t->steps, &b->events[i], place, b->ns[i]);
        rc = gwa_attribution_event(t->attribution, &b->events[i], place);
    }
    for (; note < last; note++)
        read_note(t->attribution, note);
    return rc ? rc : count_events(p, b);
}

int gwa_pass_place(struct gwa_tally *t, int (*tick)(void *arg), void *tick_arg)
{
    static gwa_stage *const timed[] = {place_in_steps, place_in_time, explain};
    static gwa_stage *const untimed[] = {place_in_steps, explain}; /* explains nothing: ticks */
    struct pass p = {
        .t = t, .tick = tick, .tick_arg = tick_arg, .ranges = t->ranges, .settle = SETTLE_FIRST};
    if (!t->timeline)
        return gwa_pipe(t->trace, UINT64_MAX, t->workers, untimed, 2, &p);
    if (!(t->attribution = gwa_attribution_new(t->trace)))
        return -ENOMEM;
    gwa_timeline_listen(t->timeline, found_idle, &p);
    int rc = gwa_pipe(t->trace, UINT64_MAX, t->workers, timed, 3, &p);
    return rc ? rc : gwa_timeline_finish(t->timeline);
}
