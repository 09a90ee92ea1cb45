/* What blocking calls say about the model: the work that they waited for had ended when they
 * returned, and where they really waited, not long before. */
#include "timeline_internal.h"

#include <math.h>

#define WAITED_NS    20000 /* so long a call has waited, whatever the model says */
#define WAKE_LEAST   500   /* the end of the work cannot be known sooner */
#define WAKE_MOST    20000
#define STRETCH_LEAST 30000 /* below, waking up explains it */

#define CHAIN_LEAST  100 /* operations, for the gap between them to be read off */
#define GAP_LEAST_NS 300
#define GAP_MOST_NS  1600

/* ---- a stream's newest operations ---------------------------------------------------------- */

struct target { /* what a call waited for in one stream */
    struct stream *stream;
    uint64_t ordinal; /* up to here */
    int64_t end;      /* by the model; NEVER: nothing */
};

/* Index in the queue of an ordinal; the queue's count where it was swept already. */
static size_t index_of(const struct stream *s, uint64_t ordinal)
{
    const struct gwa_queue *q = &s->queue;
    uint64_t behind = s->ordinal - ordinal;
    return behind < q->count ? q->count - 1 - (size_t)behind : q->count;
}

/* All that the stream had been given when a call was entered. */
static struct target given_before(struct stream *s, int64_t entry)
{
    const struct gwa_queue *q = &s->queue;
    size_t i = q->count;
    while (i && gwa_queue_at(q, i - 1)->entry > entry)
        i--;
    if (i)
        return (struct target){.stream = s,
                               .ordinal = s->ordinal - (q->count - i),
                               .end = gwa_queue_at(q, i - 1)->end};
    if (!q->count && s->last_entry <= entry)
        return (struct target){.stream = s, .ordinal = s->ordinal, .end = s->end};
    return (struct target){.stream = s, .end = NEVER};
}

/* Later operations move up as far as they may. */
static void move_up(struct gwa_timeline *t, struct stream *s, size_t from)
{
    for (size_t i = from; i < s->queue.count; i++) {
        struct gwa_piece *p = gwa_queue_at(&s->queue, i);
        int64_t ns = p->end - p->start, start = p->lower;
        int64_t behind = gwa_queue_at(&s->queue, i - 1)->end + (p->adjoins ? 0 : (int64_t)t->gap_ns);
        if (start < behind)
            start = behind;
        if (start >= p->start)
            break;
        p->start = start;
        p->end = start + ns;
    }
    s->end = gwa_queue_at(&s->queue, s->queue.count - 1)->end;
}

static void cut(struct gwa_timeline *t, const struct target *target, int64_t by)
{
    struct stream *s = target->stream;
    if (target->ordinal > s->done_ordinal) {
        s->done_ordinal = target->ordinal;
        s->done = by;
    }
    if (target->end <= by)
        return;
    size_t i = index_of(s, target->ordinal);
    if (i == s->queue.count) {
        if (target->ordinal == s->ordinal && s->end > by)
            s->end = by;
        return;
    }
    for (size_t k = i + 1; k-- > 0;) {
        struct gwa_piece *p = gwa_queue_at(&s->queue, k);
        if (p->end <= by)
            break;
        p->end = by;
        if (p->start > by)
            p->start = by;
    }
    move_up(t, s, i + 1);
}

static void find_busy_until(struct device *d)
{
    d->busy_until = NEVER;
    for (size_t i = 0; i < d->streams_count; i++)
        if (d->streams[i]->end > d->busy_until)
            d->busy_until = d->streams[i]->end;
}

void gwa_timeline_ended(struct gwa_timeline *t, struct stream *s, int64_t by)
{
    struct target all = {.stream = s, .ordinal = s->ordinal, .end = s->end};
    if (s->end == NEVER)
        return;
    bool late = s->end > by;
    cut(t, &all, by);
    if (s->wait > by)
        s->wait = by;
    if (late)
        find_busy_until(s->device);
}

/* ---- one anchor ------------------------------------------------------------------------------ */

/* How much later than modelled work may have ended because durations are expected values. */
static double allowance(const struct stream *s)
{
    return 2 * (s->chain_error + sqrt(s->chain_variance));
}

/* A run's durations are expected values: their errors may explain that work ended later. */
static int64_t stretch(const struct target *last, int64_t to)
{
    struct stream *s = last->stream;
    double allowed = allowance(s);
    size_t i = index_of(s, last->ordinal);
    int64_t by = to - last->end;
    if (last->ordinal != s->ordinal || i == s->queue.count || by < STRETCH_LEAST)
        return 0;
    if ((double)by > allowed)
        by = (int64_t)allowed;
    gwa_queue_at(&s->queue, i)->end += by;
    s->end += by;
    return by;
}

/* Many operations one behind the other whose lengths are well known leave the gap between them
 * as the only unknown. */
static void calibrate_gap(struct gwa_timeline *t, const struct target *last, double missed_ns)
{
    const struct stream *s = last->stream;
    if (t->fixed || last->ordinal != s->ordinal || s->chain < CHAIN_LEAST ||
        s->chain_error > 0.1 * GWA_GAP_NS * s->chain)
        return;
    double step = missed_ns / s->chain / 4;
    if (step > 50)
        step = 50;
    if (step < -50)
        step = -50;
    t->gap_ns += step;
    if (t->gap_ns < GAP_LEAST_NS)
        t->gap_ns = GAP_LEAST_NS;
    if (t->gap_ns > GAP_MOST_NS)
        t->gap_ns = GAP_MOST_NS;
}

/* The median, followed in small steps. */
static void calibrate_wake(struct gwa_timeline *t, double late_ns)
{
    if (t->fixed || fabs(late_ns) > 100000)
        return;
    t->wake_ns *= late_ns > t->wake_ns ? 1.05 : 0.95;
    if (t->wake_ns < WAKE_LEAST)
        t->wake_ns = WAKE_LEAST;
    if (t->wake_ns > WAKE_MOST)
        t->wake_ns = WAKE_MOST;
}

/* A single operation that met an idle device had started and ended before the call that waited
 * for it returned: submissions arrive no later than that leaves time for. */
static void calibrate_start(struct gwa_timeline *t, const struct target *last, int64_t returned)
{
    const struct stream *s = last->stream;
    double over = (double)(last->end - (returned - WAKE_LEAST));
    if (t->fixed || last->ordinal != s->ordinal || s->chain != 1 || over <= 0 || over > 3000)
        return;
    t->start_ns -= over / 8;
    if (t->start_ns < 500)
        t->start_ns = 500;
}

/* By the model it had to; or the call was long and the work ended shortly before, if that. */
static bool has_waited(const struct gwt_event *e, const struct target *last)
{
    if (last->end > e->t0_ns)
        return true;
    return e->t1_ns - e->t0_ns > WAITED_NS &&
           (double)(e->t0_ns - last->end) < WAITED_NS + allowance(last->stream);
}

static void anchor(struct gwa_timeline *t, const struct gwt_event *e, struct target *last)
{
    struct gwa_timeline_device *out = &last->stream->device->out;
    int64_t returned = e->t1_ns;
    double late = (double)(returned - last->end);
    if (!has_waited(e, last))
        return;
    double missed = late - t->wake_ns;
    if (gwa_ranges_hold(t->ranges, e->t0_ns)) {
        out->anchors++;
        out->residual_ns += fabs(missed);
    }
    calibrate_start(t, last, returned);
    calibrate_gap(t, last, missed);
    if (last->end > e->t0_ns)
        calibrate_wake(t, late);
    if (missed > 0)
        missed -= (double)stretch(last, returned - (int64_t)t->wake_ns);
    if (fabs(missed) > STRETCH_LEAST && gwa_ranges_hold(t->ranges, e->t0_ns))
        out->excess_ns += fabs(missed) - STRETCH_LEAST;
}

/* ---- calls -------------------------------------------------------------------------------------- */

static void one_stream(struct gwa_timeline *t, const struct gwt_event *e, struct target target)
{
    struct stream *s = target.stream;
    if (target.end == NEVER)
        return;
    anchor(t, e, &target);
    target.end = target.ordinal == s->ordinal ? s->end : target.end;
    cut(t, &target, e->t1_ns - WAKE_LEAST);
    if (target.ordinal == s->ordinal) {
        s->chain = 0;
        if (s->wait > e->t1_ns)
            s->wait = e->t1_ns;
    }
    find_busy_until(s->device);
}

static void whole_device(struct gwa_timeline *t, const struct gwt_event *e, struct device *d)
{
    struct target last = {.end = NEVER};
    for (size_t i = 0; i < d->streams_count; i++) {
        struct target target = given_before(d->streams[i], e->t0_ns);
        if (target.end > last.end)
            last = target;
    }
    if (last.end == NEVER)
        return;
    anchor(t, e, &last);
    for (size_t i = 0; i < d->streams_count; i++) {
        struct stream *s = d->streams[i];
        struct target target = given_before(s, e->t0_ns);
        if (target.end == NEVER)
            continue;
        cut(t, &target, e->t1_ns - WAKE_LEAST);
        if (target.ordinal != s->ordinal)
            continue;
        s->chain = 0;
        if (s->wait > e->t1_ns)
            s->wait = e->t1_ns;
    }
    find_busy_until(d);
}

void gwa_timeline_sync(struct gwa_timeline *t, const struct gwt_event *e)
{
    switch (GWT_F_SUB(e->flags)) {
    case GWT_SCOPE_DEVICE:
        if (t->devices[e->device])
            whole_device(t, e, t->devices[e->device]);
        break;
    case GWT_SCOPE_STREAM:
        if (t->streams[e->stream])
            one_stream(t, e, given_before(t->streams[e->stream], e->t0_ns));
        break;
    case GWT_SCOPE_EVENT: {
        const struct recorded *r = gwa_timeline_recorded(t, e->value);
        struct stream *s = t->streams[r->stream];
        if (!r->stream || r->handle != e->value || !s || !r->ordinal)
            break;
        one_stream(t, e,
                   (struct target){.stream = s,
                                   .ordinal = r->ordinal,
                                   .end = gwa_timeline_recorded_end(t, r)});
        break;
    }
    }
}
