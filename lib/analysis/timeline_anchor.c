/* What blocking calls say about the model: the work that they waited for had ended when they
 * returned, and where they really waited, not long before. */
#include "timeline_internal.h"

#include <math.h>

#define WAITED_NS    20000 /* so long a call has waited, whatever the model says */
#define SEEN_NS      500   /* the end of the work cannot be known sooner */
#define EXCESS_LEAST 30000 /* below, waking up explains it */

/* ---- a stream's newest operations --------------------------------------------------- */

struct target { /* what a call waited for in one stream */
    struct stream *stream;
    uint64_t ordinal;  /* up to here */
    struct moment end; /* by the model; NEVER: nothing */
    int64_t after; /* ns until a time stamp behind it was taken, for which the call waited too */
};

/* It waited for the newest operation there is. */
static bool at_tip(const struct target *t)
{
    return t->ordinal == t->stream->ordinal && t->end.at == t->stream->end.at;
}

static struct target tip_of(const struct gwa_timeline *t, struct stream *s)
{
    return (struct target){
        .stream = s, .ordinal = s->ordinal, .end = s->end, .after = s->behind ? t->stamp_ns : 0};
}

/* All that the stream had been given when a call was entered. */
static struct target given_before(const struct gwa_timeline *t, struct stream *s, int64_t entry)
{
    const struct gwa_queue *q = &s->queue;
    size_t i = q->count;
    while (i && gwa_queue_at(q, i - 1)->entry > entry)
        i--;
    if (i == q->count && s->last_entry <= entry)
        return tip_of(t, s);
    if (i)
        return (struct target){.stream = s,
                               .ordinal = s->ordinal - (q->count - i),
                               .end = {.at = gwa_queue_at(q, i - 1)->end}};
    return (struct target){.stream = s, .end = {.at = NEVER}};
}

/* post: the stream that was waited for; NULL: it is gone, or another device's */
static struct stream *waited_stream(const struct gwa_timeline *t, const struct stream *s,
                                    const struct waited_for *w)
{
    struct stream *of = t->streams[w->stream];
    return of && of->device == s->device ? of : NULL;
}

static struct target waited_in(struct stream *of, const struct waited_for *w)
{
    struct target out = {.stream = of, .ordinal = w->ordinal, .end = w->end, .after = w->stamp};
    size_t k = gwa_timeline_index_of(of, w->ordinal);
    if (w->ordinal == of->ordinal)
        out.end = of->end;
    else if (k < of->queue.count)
        out.end.at = gwa_queue_at(&of->queue, k)->end;
    return out;
}

/* The earliest start of a piece whose host had submitted it then. */
static int64_t arrival_of(const struct gwa_timeline *t, const struct gwa_piece *p)
{
    int64_t returned = gwa_piece_returned(p);
    return returned == INT64_MAX ? p->lower : returned + (int64_t)t->model.start_ns;
}

/* ---- what an operation that has ended says -------------------------------------------- */

/* What a stream still has to wait for once an operation of it has ended: what it was told to after
 * that, by ordinal of the first that has to. */
struct left {
    uint64_t ended;
    size_t count;
    struct {
        uint64_t before;
        struct moment until;
    } of[WAITED_FOR];
    int64_t over; /* what it was to wait for until here, is over; NEVER: nothing */
};

static struct left left_to_wait_for(const struct gwa_timeline *t, const struct stream *s,
                                    uint64_t ended)
{
    struct left left = {.ended = ended, .over = NEVER};
    for (size_t i = 0; i < WAITED_FOR; i++) {
        const struct waited_for *w = &s->waited_for[i];
        struct stream *of = waited_stream(t, s, w);
        if (!of || w->before <= ended || w->end.at == NEVER)
            continue;
        struct moment until = waited_in(of, w).end;
        until.at += w->stamp;
        left.of[left.count].before = w->before;
        left.of[left.count++].until = gwa_timeline_handed_over(t, until);
    }
    return left;
}

static void wait_anew(struct stream *s, const struct left *left, int64_t by)
{
    s->wait = (struct moment){.at = by};
    s->waiting = left->ended;
    for (size_t i = 0; i < left->count; i++)
        if (left->of[i].until.at > s->wait.at) {
            s->wait = left->of[i].until;
            s->waiting = left->of[i].before;
        }
}

static void wait_no_longer(const struct gwa_timeline *t, const struct left *left, uint64_t ordinal,
                           struct gwa_piece *p)
{
    if (p->lower > left->over)
        return;
    int64_t lower = arrival_of(t, p);
    for (size_t i = 0; i < left->count; i++)
        if (left->of[i].before <= ordinal)
            gwa_raise_to(&lower, left->of[i].until.at);
    if (lower < p->lower)
        p->lower = lower;
}

/* Later operations move up as far as they may. */
static void move_up(const struct gwa_timeline *t, struct stream *s, size_t from,
                    const struct left *left)
{
    size_t count = s->queue.count;
    for (size_t i = from; i < count; i++) {
        struct gwa_piece *p = gwa_queue_at(&s->queue, i);
        wait_no_longer(t, left, s->ordinal - (count - 1 - i), p);
        int64_t ns = p->end - p->start, start = p->lower;
        int64_t behind = gwa_queue_at(&s->queue, i - 1)->end + p->gap;
        if (start < behind)
            start = behind;
        if (start >= p->start)
            break;
        p->start = start;
        p->end = start + ns;
    }
    s->end.at = gwa_queue_at(&s->queue, count - 1)->end;
}

/* post: the time that it was to wait until */
static int64_t cut_queue(struct stream *s, size_t last, int64_t by)
{
    int64_t waited = NEVER;
    for (size_t k = last + 1; k-- > 0;) {
        struct gwa_piece *p = gwa_queue_at(&s->queue, k);
        if (p->end <= by)
            break;
        p->end = by;
        if (p->start > by)
            p->start = by;
        gwa_raise_to(&waited, p->lower);
    }
    return waited;
}

static void cut(const struct gwa_timeline *t, const struct target *target, int64_t by)
{
    struct stream *s = target->stream;
    bool waited = s->wait.at > by && s->waiting <= target->ordinal;
    if (target->ordinal > s->done_ordinal) {
        s->done_ordinal = target->ordinal;
        s->done = by;
    }
    if (!waited && target->end.at <= by)
        return;
    struct left left = left_to_wait_for(t, s, target->ordinal);
    if (waited) {
        left.over = s->wait.at;
        wait_anew(s, &left, by);
    }
    size_t i = gwa_timeline_index_of(s, target->ordinal);
    if (i < s->queue.count) {
        gwa_raise_to(&left.over, cut_queue(s, i, by));
        move_up(t, s, i + 1, &left);
    } else if (target->ordinal == s->ordinal && s->end.at > by) {
        s->end = (struct moment){.at = by};
    }
}

/* What a stream had waited for on its way had ended too, and what that had waited for. */
#define WAITS_DEEP 8
static void cut_waited_for(const struct gwa_timeline *t, const struct target *target, int64_t by,
                           unsigned deep)
{
    const struct stream *s = target->stream;
    for (size_t i = 0; i < WAITED_FOR; i++) {
        const struct waited_for *w = &s->waited_for[i];
        struct stream *of = waited_stream(t, s, w);
        if (!of || (w->before > target->ordinal && target->ordinal != s->ordinal))
            continue;
        struct target other = waited_in(of, w);
        bool news = other.ordinal > of->done_ordinal;
        cut(t, &other, by);
        if (news && deep < WAITS_DEEP)
            cut_waited_for(t, &other, by, deep + 1);
    }
}

static struct target later_target(struct target a, struct target b)
{
    if (b.end.at == NEVER || (a.end.at != NEVER && b.end.at + b.after <= a.end.at + a.after))
        return a;
    return b;
}

/* Where a stream was told to wait and given nothing since, a call that waits for it waits for that
 * too, in the other stream. post: what ends last by the model. */
static struct target waits_for(const struct gwa_timeline *t, struct target own)
{
    const struct stream *s = own.stream;
    struct target last = own;
    for (size_t i = 0; i < WAITED_FOR && own.ordinal == s->ordinal; i++) {
        const struct waited_for *w = &s->waited_for[i];
        struct stream *of = waited_stream(t, s, w);
        if (!of || w->before != s->ordinal + 1 || w->end.at == NEVER)
            continue;
        last = later_target(last, waited_in(of, w));
    }
    return last;
}

/* The same of an operation, which the rules of the legacy stream make wait too. */
static struct target operation_waits_for(const struct gwa_timeline *t, struct stream *s)
{
    const struct device *d = s->device;
    struct target last = waits_for(t, tip_of(t, s));
    if (s->blocking && d->legacy)
        last = later_target(last, tip_of(t, d->legacy));
    for (size_t i = 0; i < d->streams_count && s->type == GWT_STREAM_LEGACY; i++)
        if (d->streams[i]->blocking)
            last = later_target(last, tip_of(t, d->streams[i]));
    return last;
}

static void find_busy_until(struct device *d)
{
    d->busy_until = d->beside_until = NEVER;
    d->busy = NULL;
    for (size_t i = 0; i < d->streams_count; i++)
        gwa_timeline_ends(d->streams[i], d->streams[i]->end.at);
}

void gwa_timeline_ended(const struct gwa_timeline *t, struct stream *s, int64_t by)
{
    struct target all = {.stream = s, .ordinal = s->ordinal, .end = s->end};
    if (s->end.at == NEVER)
        return;
    bool late = s->end.at > by;
    cut(t, &all, by);
    if (s->wait.at > by)
        s->wait = (struct moment){.at = by};
    if (late)
        find_busy_until(s->device);
}

static int64_t later_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* What waited for something that the model had end at `from` or later did so for ns less. */
static void wait_less(const struct gwa_timeline *t, struct gwa_piece *p, int64_t from, int64_t ns)
{
    int64_t arrival = arrival_of(t, p);
    if (p->lower > from && p->lower > arrival)
        p->lower = later_of(arrival, p->lower - ns);
}

/* own: the first piece's predecessor, which was swept, is what was sooner. */
static void move_waiting(const struct gwa_timeline *t, struct stream *s, int64_t from, int64_t ns,
                         bool own)
{
    struct gwa_queue *q = &s->queue;
    size_t i = q->count;
    while (i && gwa_queue_at(q, i - 1)->start > from)
        i--;
    for (; i < q->count; i++) {
        struct gwa_piece *p = gwa_queue_at(q, i);
        int64_t behind = i                     ? gwa_queue_at(q, i - 1)->end + p->gap
                         : p->start > p->lower ? p->start - (own ? ns : 0)
                                               : from - ns;
        wait_less(t, p, from, ns);
        int64_t start = later_of(later_of(p->lower, behind), from - ns);
        if (start >= p->start)
            continue;
        p->end -= p->start - start;
        p->start = start;
    }
    if (q->count && gwa_queue_at(q, q->count - 1)->end < s->end.at)
        s->end.at = gwa_queue_at(q, q->count - 1)->end;
    if (s->wait.at > from)
        s->wait.at -= ns;
}

/* What the model had end at `from` ended by ns sooner, and so did all that followed from it, in
 * whatever stream: else it falls ever further behind a host that waits for the past only. */
static void sooner(const struct gwa_timeline *t, struct stream *s, int64_t from, int64_t ns)
{
    struct device *d = s->device;
    if (ns <= 0)
        return;
    for (size_t i = 0; i < d->streams_count; i++)
        move_waiting(t, d->streams[i], from, ns, d->streams[i] == s);
    d->sooner = d->sooner + ns < GWA_LONGEST_NS ? d->sooner + ns : GWA_LONGEST_NS;
}

/* ---- one anchor --------------------------------------------------------------------- */

/* Later operations move on as far as they must. */
static void move_on(struct stream *s, size_t from)
{
    for (size_t i = from; i < s->queue.count; i++) {
        struct gwa_piece *p = gwa_queue_at(&s->queue, i);
        int64_t by = gwa_queue_at(&s->queue, i - 1)->end + p->gap - p->start;
        if (by <= 0)
            break;
        p->start += by;
        p->end += by;
    }
    gwa_raise_to(&s->end.at, gwa_queue_at(&s->queue, s->queue.count - 1)->end);
}

static void move_end(const struct gwa_timeline *t, struct target *last, int64_t by)
{
    struct stream *s = last->stream;
    size_t i = gwa_timeline_index_of(s, last->ordinal);
    if (!by || i == s->queue.count)
        return;
    if (by > 0) {
        gwa_queue_at(&s->queue, i)->end += by;
        move_on(s, i + 1);
    } else {
        cut(t, last, last->end.at + by);
    }
    last->end.at += by;
}

/* The operations of a stream's newest run, with the gaps between them as they are now. */
static void respace(const struct gwa_timeline *t, struct target *last)
{
    struct stream *s = last->stream;
    size_t n = s->queue.count, from = s->run < n ? n - s->run : 0;
    if (!at_tip(last) || !n)
        return;
    for (size_t i = from + 1; i < n; i++) {
        struct gwa_piece *p = gwa_queue_at(&s->queue, i);
        int64_t ns = p->end - p->start;
        p->gap = gwa_timeline_gap(t, p->follows) + p->timing;
        int64_t behind = gwa_queue_at(&s->queue, i - 1)->end + p->gap;
        p->start = p->lower > behind ? p->lower : behind;
        p->end = p->start + ns;
    }
    s->end.at = gwa_queue_at(&s->queue, n - 1)->end;
    last->end = s->end;
}

static bool ran_alone(const struct stream *s)
{
    const struct device *d = s->device;
    for (size_t i = 0; i < d->streams_count; i++)
        if (d->streams[i] != s && d->streams[i]->end.at > s->run_start)
            return false;
    return true;
}

/* By the model it had to; or the call was long and the work ended shortly before, if that. */
static bool has_waited(const struct gwt_event *e, const struct target *last)
{
    if (last->end.at + last->after > e->t0_ns)
        return true;
    return e->t1_ns - e->t0_ns > WAITED_NS &&
           (double)(e->t0_ns - last->end.at) <
               WAITED_NS + 2 * gwa_model_uncertainty_above(last->end);
}

/* From the model's end of what a call waited for to its return, ns. */
static double late_by(const struct gwt_event *e, const struct target *last)
{
    return (double)(e->t1_ns - last->after - last->end.at);
}

static void anchor(struct gwa_timeline *t, const struct gwt_event *e, struct target *last)
{
    struct gwa_timeline_device *out = &last->stream->device->out;
    bool inside = gwa_ranges_hold(t->ranges, e->t0_ns);
    double late = late_by(e, last);
    if (!has_waited(e, last))
        return;
    if (inside) {
        out->anchors++;
        out->residual_ns += fabs(late - t->model.ns[GWA_WAKE]);
    }
    if (!t->model.fixed) {
        gwa_model_learn(&t->model, last->end, ran_alone(last->stream), late);
        respace(t, last);
        late = late_by(e, last);
        move_end(t, last, (int64_t)gwa_model_explained(&t->model, last->end, late));
        late = late_by(e, last);
    }
    double missed = fabs(late - t->model.ns[GWA_WAKE]);
    if (inside && missed > EXCESS_LEAST)
        out->excess_ns += missed - EXCESS_LEAST;
}

void gwa_timeline_waited(const struct gwa_timeline *t, const struct gwt_event *e, struct stream *s,
                         int64_t by, int64_t ns)
{
    struct target last = operation_waits_for(t, s);
    if (t->model.fixed || last.end.at == NEVER || e->t1_ns - e->t0_ns - ns < WAITED_NS ||
        !has_waited(e, &last))
        return;
    double late = (double)(by - last.end.at - last.after) - t->model.ns[GWA_HANDOVER];
    if (late > 0)
        move_end(t, &last,
                 (int64_t)gwa_model_explained(&t->model, last.end, late + t->model.ns[GWA_WAKE]));
}

/* ---- calls -------------------------------------------------------------------------- */

static void one_stream(struct gwa_timeline *t, const struct gwt_event *e, struct target target)
{
    struct stream *s = target.stream;
    if (target.end.at == NEVER)
        return;
    int64_t from = target.end.at, by = e->t1_ns - target.after - SEEN_NS;
    anchor(t, e, &target);
    cut(t, &target, by);
    cut_waited_for(t, &target, by, 0);
    sooner(t, s, from, from - (target.end.at < by ? target.end.at : by));
    if (target.ordinal == s->ordinal) {
        if (s->wait.at > e->t1_ns)
            s->wait = (struct moment){.at = e->t1_ns};
    }
    find_busy_until(s->device);
}

static void whole_stream(struct gwa_timeline *t, const struct gwt_event *e, struct stream *s)
{
    struct target own = given_before(t, s, e->t0_ns), last = waits_for(t, own);
    one_stream(t, e, last);
    if (last.stream == s || own.end.at == NEVER)
        return;
    cut(t, &own, e->t1_ns - SEEN_NS);
    cut_waited_for(t, &own, e->t1_ns - SEEN_NS, 0);
    if (s->wait.at > e->t1_ns)
        s->wait = (struct moment){.at = e->t1_ns};
    find_busy_until(s->device);
}

static void whole_device(struct gwa_timeline *t, const struct gwt_event *e, struct device *d)
{
    struct target last = {.end = {.at = NEVER}};
    for (size_t i = 0; i < d->streams_count; i++) {
        struct target target = given_before(t, d->streams[i], e->t0_ns);
        if (target.end.at > last.end.at)
            last = target;
    }
    if (last.end.at == NEVER)
        return;
    anchor(t, e, &last);
    for (size_t i = 0; i < d->streams_count; i++) {
        struct stream *s = d->streams[i];
        struct target target = given_before(t, s, e->t0_ns);
        if (target.end.at == NEVER)
            continue;
        cut(t, &target, e->t1_ns - target.after - SEEN_NS);
        if (target.ordinal != s->ordinal)
            continue;
        if (s->wait.at > e->t1_ns)
            s->wait = (struct moment){.at = e->t1_ns};
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
            whole_stream(t, e, t->streams[e->stream]);
        break;
    case GWT_SCOPE_EVENT: {
        const struct recorded *r = gwa_timeline_recorded(t, e->value);
        struct stream *s = t->streams[r->stream];
        if (!r->stream || r->handle != e->value || !s || !r->ordinal)
            break;
        one_stream(t, e,
                   (struct target){.stream = s,
                                   .ordinal = r->ordinal,
                                   .end = gwa_timeline_recorded_end(t, r),
                                   .after = r->stamp});
        break;
    }
    }
}
