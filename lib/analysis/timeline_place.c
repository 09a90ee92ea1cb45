/* Where an operation comes to lie in its stream. */
#include "timeline_internal.h"

#include <errno.h>
#include <math.h>

#define QUEUED     8192u   /* pieces of a device that are held */
#define SETTLED_NS 2000000 /* beyond this age no blocking call will change them, most likely */

/* ---- what it waits for ---------------------------------------------------------------- */

void gwa_timeline_wait_until(struct stream *s, struct moment m)
{
    if (m.at == NEVER || m.at <= s->wait.at)
        return;
    s->wait = m;
    s->waiting = s->ordinal + 1;
}

/* From there to another stream or engine. */
struct moment gwa_timeline_handed_over(const struct gwa_timeline *t, struct moment m)
{
    if (m.at != NEVER) {
        m.at += (int64_t)t->model.ns[GWA_HANDOVER];
        m.handovers++;
    }
    return m;
}

/* Of the same stream the newer; else in place of the oldest. */
void gwa_timeline_remember_wait(struct stream *s, struct waited_for what)
{
    struct waited_for *to = &s->waited_for[0];
    for (size_t i = 0; i < WAITED_FOR; i++) {
        struct waited_for *w = &s->waited_for[i];
        if (w->stream == what.stream) {
            to = w;
            break;
        }
        if (w->before < to->before)
            to = w;
    }
    what.before = s->ordinal + 1;
    *to = what;
}

static void wait_for_all_of(const struct gwa_timeline *t, struct stream *s, const struct stream *of)
{
    gwa_timeline_wait_until(s, gwa_timeline_handed_over(t, of->end));
    gwa_timeline_wait_until(s, of->wait);
}

static void remember_all_of(struct stream *s, const struct stream *of)
{
    if (of->ordinal)
        gwa_timeline_remember_wait(
            s, (struct waited_for){.ordinal = of->ordinal, .end = of->end, .stream = of->id});
}

/* What a stream's next operation has to wait for in other streams. */
void gwa_timeline_order(const struct gwa_timeline *t, struct stream *s)
{
    struct device *d = s->device;
    if (s->type == GWT_STREAM_LEGACY) {
        for (size_t i = 0; i < d->dirty_count; i++) {
            wait_for_all_of(t, s, d->dirty[i]);
            remember_all_of(s, d->dirty[i]);
            d->dirty[i]->dirty = false;
        }
        d->dirty_count = 0;
    } else if (s->blocking && d->legacy) {
        wait_for_all_of(t, s, d->legacy);
        if (s->legacy_ordinal != d->legacy->ordinal) /* else by an earlier one already */
            remember_all_of(s, d->legacy);
        s->legacy_ordinal = d->legacy->ordinal;
    }
}

void gwa_timeline_mark_dirty(struct stream *s)
{
    if (!s->blocking || s->dirty)
        return;
    s->dirty = true;
    s->device->dirty[s->device->dirty_count++] = s;
}

/* ---- one operation ------------------------------------------------------------------ */

static void settle(struct gwa_timeline *t, struct device *d)
{
    gwa_sweep(&d->out.sweep, d->queues, d->streams_count, d->scratch, t->now - SETTLED_NS);
    d->queued = 0;
    for (size_t i = 0; i < d->streams_count; i++)
        d->queued += d->streams[i]->queue.count;
    if (d->queued < QUEUED * 3 / 4)
        return;
    /* Far ahead of the host, which no device is: the durations are wrong. Keep going. */
    gwa_sweep(&d->out.sweep, d->queues, d->streams_count, d->scratch, INT64_MAX);
    d->queued = 0;
}

void gwa_timeline_settle(struct gwa_timeline *t)
{
    for (unsigned i = 0; i < DEVICES; i++)
        if (t->devices[i])
            settle(t, t->devices[i]);
}

int64_t gwa_timeline_settled(const struct gwa_timeline *t)
{
    return t->now - SETTLED_NS;
}

/* By how much sooner than the return of its call an operation ended: the call woke up, where it
 * lasted long enough for that. */
static int64_t woken(const struct gwa_timeline *t, const struct gwt_event *e, int64_t ns)
{
    int64_t spare = (e->t1_ns - e->t0_ns - ns) / 2;
    int64_t wake = t->model.fixed ? 0 : (int64_t)t->model.ns[GWA_WAKE];
    return spare < 0 ? 0 : spare < wake ? spare : wake;
}

/* Where a piece comes to lie. In another order than in struct gwa_piece: two times that go there as
 * one vector would be read as one too, right behind their being written one by one. */
struct spot {
    int64_t start, lower, end;
    int32_t gap, timing;
    uint8_t follows;
};

/* The recorder's events around an operation, and the spacer before them, hold it up and what comes
 * next. An event takes the gap's place; the spacer was submitted before the event, that before the
 * call. */
#define RECORD_NS 2500
static void timing(const struct gwa_timeline *t, const struct gwt_event *e, struct stream *s,
                   struct placing *how, struct spot *p)
{
    struct gwa_delay delay = {0};
    if (how->timed != GWT_NOT_TIMED)
        delay = gwa_durations_delay(t->durations, how->timed);
    int32_t gap = gwa_timeline_gap(t, p->follows), before = (int32_t)delay.before;
    int32_t least = s->behind > before ? s->behind : before;
    p->timing = (int32_t)delay.spacer + (least > gap ? least - gap : 0);
    p->gap = gap + p->timing;
    s->behind = (int32_t)delay.events;
    if (how->timed == GWT_TIMED_BEHIND_SPACER)
        gwa_raise_to(&how->arrival, e->t0_ns - RECORD_NS +
                                        (int64_t)(t->model.start_ns + delay.spacer + delay.before));
}

/* Operations whose call blocks. */
static void at_return(const struct gwa_timeline *t, const struct gwt_event *e, struct stream *s,
                      int64_t ns, struct spot *p)
{
    p->end = e->t1_ns - woken(t, e, ns);
    p->start = p->end - ns > e->t0_ns ? p->end - ns : e->t0_ns;
    p->lower = p->start;
    gwa_timeline_waited(t, e, s, p->start, ns);
    gwa_timeline_ended(t, s, p->start);
    s->end = (struct moment){.at = p->end};
    s->run = 1;
    s->run_start = p->start;
}

void gwa_timeline_ends(struct stream *s, int64_t end)
{
    struct device *d = s->device;
    if (end > d->busy_until) {
        if (d->busy != s)
            gwa_raise_to(&d->beside_until, d->busy_until);
        d->busy_until = end;
        d->busy = s;
    } else if (d->busy != s) {
        gwa_raise_to(&d->beside_until, end);
    }
}

/* Operations that share the device slow each other: by so much their durations may be off. */
#define BESIDE_SHARE 0.1
static double beside(const struct stream *s, const struct spot *p)
{
    const struct device *d = s->device;
    int64_t until = d->busy == s ? d->beside_until : d->busy_until;
    if (until > p->end)
        until = p->end;
    return until > p->start ? (double)(until - p->start) : 0;
}

static void restart(struct stream *s, int64_t start)
{
    s->run = 1;
    s->run_start = start;
}

/* An engine moves one copy at a time, in the order in which they come to it. */
static int64_t wait_for_engine(struct stream *s, const struct placing *how, int64_t start,
                               struct spot *p)
{
    const struct copying *c = &s->device->copying[how->engine];
    if (how->engine == ENGINE_COMPUTE || c->start > start || c->end.at <= start)
        return start;
    s->end = c->end;
    restart(s, c->end.at);
    p->lower = c->end.at;
    return c->end.at;
}

/* The latest of what it waits for decides, and what that rests on is what the end rests on. */
static void behind(struct stream *s, const struct gwt_event *e, struct placing *how, int64_t ns,
                   struct spot *p)
{
    int64_t arrival = how->arrival;
    int64_t start = arrival > s->wait.at ? arrival : s->wait.at;
    p->lower = start;
    if (s->end.at != NEVER && s->end.at + p->gap > start) {
        start = s->end.at + p->gap;
        s->end.gaps += p->follows == GWA_AFTER_GAP;
        s->end.handovers += p->follows == GWA_AFTER_HANDOVER;
        s->run++;
    } else if (start > arrival) {
        s->end = s->wait;
        restart(s, start);
    } else {
        s->end = (struct moment){.at = s->end.at};
        restart(s, start);
    }
    start = wait_for_engine(s, how, start, p);
    if (start > e->t1_ns + GWA_LONGEST_NS)
        start = e->t1_ns + GWA_LONGEST_NS;
    p->start = start;
    p->end = s->end.at = start + ns;
    if (!how->comm)
        return;
    /* It ended when it did, whatever this rank's durations say. */
    int64_t lasted = how->comm->ns < GWA_LONGEST_NS ? how->comm->ns : GWA_LONGEST_NS;
    p->end = start + (lasted > 1 ? lasted : 1);
    s->end = (struct moment){.at = p->end};
    how->ns = (double)(p->end - start);
}

static void count(struct device *d, const struct gwt_event *e, const struct placing *how,
                  const struct gwa_duration *duration, int64_t start)
{
    if (e->kind == GWT_LAUNCH || e->kind == GWT_GRAPH_LAUNCH) {
        int64_t queued = start - e->t1_ns;
        d->out.launches++;
        d->out.met_idle += d->busy_until <= start && start <= how->arrival;
        gwa_hist_add(&d->out.queue, queued > 0 ? (uint64_t)queued : 0);
    }
    d->out.ns += how->ns;
    if (duration->own)
        d->out.own_ns += how->ns;
    d->spread2 += duration->spread * duration->spread;
    d->place += duration->place;
}

static inline double believed(double ns)
{
    return ns < (double)GWA_LONGEST_NS ? ns : (double)GWA_LONGEST_NS;
}

/* Between two copies of one engine as well: 1.6 to 2.9 us on two H200s. */
static inline bool is_handed_over(uint8_t from, uint8_t to)
{
    return from != ENGINE_NONE && (from != to || to != ENGINE_COMPUTE);
}

/* Launches are by far the most: what is fixed in `how` they do not look at. */
static inline __attribute__((always_inline)) int place(struct gwa_timeline *t,
                                                       const struct gwt_event *e, struct stream *s,
                                                       struct placing *how,
                                                       const struct gwa_duration *duration)
{
    struct device *d = s->device;
    int64_t ns = how->ns < 1 ? 1 : how->ns > GWA_LONGEST_NS ? GWA_LONGEST_NS : (int64_t)how->ns;
    struct spot p = {.follows = GWA_AFTER_GAP};
    gwa_timeline_order(t, s);
    if (how->adjoins)
        p.follows = GWA_AT_ONCE;
    else if (is_handed_over(s->engine, how->engine))
        p.follows = GWA_AFTER_HANDOVER;
    timing(t, e, s, how, &p);
    if (how->at_return)
        at_return(t, e, s, ns, &p);
    else
        behind(s, e, how, ns, &p);
    double spread = believed(duration->spread);
    double shared = beside(s, &p);
    s->end.error += (float)(believed(duration->error) + BESIDE_SHARE * shared);
    s->end.beside += (float)shared;
    s->end.variance += (float)(spread * spread);
    s->engine = how->engine;
    if (how->engine != ENGINE_COMPUTE)
        d->copying[how->engine] = (struct copying){p.start, s->end};
    t->placed_ns = how->ns;
    how->inside = gwa_ranges_hold(t->ranges, e->t0_ns);
    if (how->inside)
        count(d, e, how, duration, p.start);
    gwa_raise_to(&s->last_entry, e->t0_ns);
    gwa_timeline_ends(s, p.end);
    gwa_timeline_mark_dirty(s);

    struct gwa_piece *piece = gwa_queue_add(&s->queue);
    if (!piece)
        return -ENOMEM;
    s->ordinal++;
    piece->start = p.start;
    piece->end = p.end;
    piece->lower = p.lower;
    piece->entry = e->t0_ns;
    piece->call_ns = gwa_call_ns(e->t0_ns, e->t1_ns);
    piece->thread = e->thread;
    piece->step = UINT32_MAX;
    piece->phase = GWA_PHASE_OTHER;
    t->placed = s;
    piece->moved = how->inside ? how->moved : NULL;
    piece->wait = !how->comm                         ? 0
                  : how->comm->wait < GWA_LONGEST_NS ? how->comm->wait
                                                     : GWA_LONGEST_NS;
    piece->interval = (uint32_t)t->ranges->hint;
    piece->activity = how->activity;
    piece->inside = how->inside;
    piece->follows = p.follows;
    piece->gap = p.gap;
    piece->timing = p.timing;
    piece->hollow = how->hollow;
    piece->hollow_ns = how->hollow_ns;
    if (++d->queued >= QUEUED)
        settle(t, d);
    return 0;
}

int gwa_timeline_place(struct gwa_timeline *t, const struct gwt_event *e, struct stream *s,
                       struct placing *how, const struct gwa_duration *duration)
{
    return place(t, e, s, how, duration);
}

/* ---- kernels -------------------------------------------------------------------------- */

static const struct gwa_comm_time *told_of(struct gwa_timeline *t)
{
    const struct gwa_comm_time *c = t->comm_next < t->comm_count ? &t->comm[t->comm_next] : NULL;
    t->comm_next++;
    return c && c->ns >= 0 ? c : NULL;
}

int gwa_timeline_launch(struct gwa_timeline *t, const struct gwt_event *e, struct stream *s)
{
    struct gwa_duration duration;
    gwa_durations_of(t->durations, e, &s->context, &duration);
    const struct gwa_comm_time *told = duration.comm ? told_of(t) : NULL;
    if (!duration.comm)
        duration.ns = fmax(duration.ns + t->model.kernel_ns, duration.ns / 2);
    struct placing how = {.arrival = e->t1_ns + (int64_t)t->model.start_ns,
                          .ns = duration.ns,
                          .activity = duration.comm ? GWA_COMM : GWA_COMPUTE,
                          .adjoins = e->flags & GWT_F_PDL,
                          .timed = (uint8_t)GWT_F_SUB(e->flags),
                          .at_return = t->launches_block,
                          .moved = told ? &s->device->out.comm[told->op % GWA_COMM_OPS] : NULL,
                          .comm = told};
    if (told)
        duration = (struct gwa_duration){.ns = duration.ns, .own = true};
    int rc = place(t, e, s, &how, &duration);
    struct gwa_timeline_device *out = &s->device->out;
    if (rc || !how.inside)
        return rc;
    out->kernels++;
    return gwa_timeline_count_ran(t, &out->signatures, &out->signatures_count, e->arg, how.ns);
}
