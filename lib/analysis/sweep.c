#include "sweep.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CELL_NS 166666667

struct gwa_piece *gwa_queue_grow(struct gwa_queue *q)
{
    size_t room = q->room ? q->room * 2 : 8; /* there may be many streams */
    struct gwa_piece *grown = malloc(room * sizeof(*grown));
    if (!grown)
        return NULL;
    for (size_t i = 0; i < q->count; i++)
        grown[i] = *gwa_queue_at(q, i);
    free(q->ring);
    q->ring = grown;
    q->first = 0;
    q->room = room;
    return gwa_queue_at(q, q->count++);
}

/* ---- sums --------------------------------------------------------------------------- */

static enum gwa_band band_of(double ns)
{
    return ns > 100000 ? GWA_OVER_100US : ns >= 10000 ? GWA_10_TO_100US : GWA_UNDER_10US;
}

static void add_gap(struct gwa_sums *s, struct gwa_gap gap)
{
    size_t i = s->gaps_count;
    if (i == GWA_GAPS && gap.ns <= s->gaps[i - 1].ns)
        return;
    if (i == GWA_GAPS)
        i--;
    else
        s->gaps_count++;
    for (; i > 0 && s->gaps[i - 1].ns < gap.ns; i--)
        s->gaps[i] = s->gaps[i - 1];
    s->gaps[i] = gap;
}

static void add_sums(struct gwa_sums *to, const struct gwa_sums *from)
{
    to->wall += from->wall;
    to->idle += from->idle;
    to->hollow += from->hollow;
    for (unsigned i = 0; i < GWA_PHASE_COUNT; i++) {
        to->busy_in[i] += from->busy_in[i];
        to->idle_in[i] += from->idle_in[i];
        to->hollow_in[i] += from->hollow_in[i];
    }
    for (unsigned i = 0; i < GWA_ACTIVITIES; i++)
        to->time[i] += from->time[i];
    for (unsigned i = 0; i < GWA_BANDS; i++)
        to->band[i] += from->band[i];
    for (size_t i = 0; i < from->gaps_count; i++)
        add_gap(to, from->gaps[i]);
}

static void mark_cells(const struct gwa_sweep *s, struct gwa_cells *cells, int64_t from, int64_t to)
{
    if (to < s->first + (cells->last + 1) * CELL_NS)
        return;
    int64_t a = (from - s->first) / CELL_NS, b = (to - s->first) / CELL_NS;
    if (a <= cells->last)
        a = cells->last + 1;
    if (b >= a) {
        cells->count += (uint64_t)(b - a + 1);
        cells->last = b;
    }
}

/* ---- walking ------------------------------------------------------------------------ */

int64_t gwa_sweep_reach(const struct gwa_sweep *s)
{
    int64_t t = s->end[0];
    for (unsigned i = 1; i < GWA_ACTIVITIES; i++)
        if (s->end[i] > t)
            t = s->end[i];
    return t;
}

/* What is under way while nothing runs that is named before it is exposed. */
static void expose(struct gwa_sweep *s, unsigned activity, int64_t from, int64_t to)
{
    for (size_t i = 0; i < s->active_count; i++) {
        struct gwa_active *a = &s->active[i];
        double ns = (double)((a->end < to ? a->end : to) - from);
        if (a->activity != activity)
            continue;
        a->moved->exposed_ns += ns;
        if (from < a->come)
            a->moved->waited_ns += ns;
    }
}

static void drop_ended(struct gwa_sweep *s, int64_t now)
{
    for (size_t i = 0; i < s->active_count;)
        if (s->active[i].end <= now)
            s->active[i] = s->active[--s->active_count];
        else
            i++;
}

/* Where only graphs run, the device is idle while all of them pause at once. post: of that share,
 * and how long a pause is. */
static double hollow_of(struct gwa_sweep *s, int64_t now, double *ns)
{
    double share = 1;
    *ns = INFINITY;
    for (size_t i = 0; i < s->hollows_count;) {
        const struct gwa_hollow *h = &s->hollows[i];
        if (h->end <= now) {
            s->hollows[i] = s->hollows[--s->hollows_count];
            continue;
        }
        share *= (double)h->share;
        *ns = fmin(*ns, (double)h->ns);
        i++;
    }
    return s->hollows_count && s->solid <= now ? share : 0;
}

static void hold(struct gwa_sweep *s, const struct gwa_piece *p, int64_t end)
{
    if (p->hollow > 0 && s->hollows_count < GWA_HOLLOWS)
        s->hollows[s->hollows_count++] =
            (struct gwa_hollow){.end = end, .share = p->hollow, .ns = p->hollow_ns};
    else if (end > s->solid)
        s->solid = end;
}

static void tell(struct gwa_sweep *s, const struct gwa_sums *sums, int64_t from, int64_t to,
                 const struct gwa_piece *next)
{
    struct gwa_idle_time idle = {.start = from,
                                 .end = to,
                                 .returned = s->last_returned,
                                 .thread = s->last_thread,
                                 .ended = true,
                                 .next = gwa_next_of(next)};
    if (sums == &s->sums)
        s->on_idle(s->on_idle_arg, s->device, &idle);
    else if (s->idle_count < GWA_PENDING)
        s->idle[s->idle_count++] = idle;
    else
        s->idle_rest += to - from;
}

/* The window goes on: what was pending lies inside. */
static void tell_pending(struct gwa_sweep *s)
{
    for (size_t i = 0; i < s->idle_count; i++)
        s->on_idle(s->on_idle_arg, s->device, &s->idle[i]);
    if (s->idle_rest) {
        struct gwa_idle_time rest = {.start = s->now - s->idle_rest, .end = s->now};
        s->on_idle(s->on_idle_arg, s->device, &rest);
    }
}

static void book_idle(struct gwa_sweep *s, struct gwa_sums *sums, int64_t from, int64_t to,
                      const struct gwa_piece *next)
{
    double ns = (double)(to - from);
    sums->wall += ns;
    sums->idle += ns;
    sums->idle_in[next->phase] += ns;
    if (s->on_idle)
        tell(s, sums, from, to, next);
    sums->band[band_of(ns)] += ns;
    if (sums->gaps_count < GWA_GAPS || to - from > sums->gaps[GWA_GAPS - 1].ns)
        add_gap(sums, (struct gwa_gap){.start = from, .ns = to - from});
}

/* [from, to), during which nothing begins or ends. running: bits of what does. */
static void book(struct gwa_sweep *s, struct gwa_sums *sums, unsigned running, int64_t from,
                 int64_t to, const struct gwa_piece *next)
{
    if (!running) {
        book_idle(s, sums, from, to, next);
        return;
    }
    double ns = (double)(to - from);
    unsigned first = (unsigned)__builtin_ctz(running);
    sums->wall += ns;
    sums->time[first] += ns;
    sums->busy_in[s->phase[first]] += ns;
    double pause, share = hollow_of(s, from, &pause);
    if (share > 0) {
        double hollow = share * ns;
        sums->time[first] -= hollow;
        sums->idle += hollow;
        sums->hollow += hollow;
        sums->busy_in[s->phase[first]] -= hollow;
        sums->idle_in[s->phase[first]] += hollow;
        sums->hollow_in[s->phase[first]] += hollow;
        sums->band[band_of(pause)] += hollow;
    }
    if (first != GWA_COMPUTE && s->active_count)
        expose(s, first, from, to);
}

/* As advance(), where nothing has gaps of its own or is measured by itself, and all counts. */
static void advance_plain(struct gwa_sweep *s, int64_t to, const struct gwa_piece *next_piece)
{
    const int64_t compute = s->end[GWA_COMPUTE], comm = s->end[GWA_COMM], copy = s->end[GWA_COPY];
    struct gwa_sums *sums = &s->sums;
    for (int64_t now = s->now, next; now < to; s->now = now = next) {
        int first = copy > now ? GWA_COPY : -1;
        next = copy > now && copy < to ? copy : to;
        if (comm > now) {
            first = GWA_COMM;
            next = comm < next ? comm : next;
        }
        if (compute > now) {
            first = GWA_COMPUTE;
            next = compute < next ? compute : next;
        }
        if (first < 0) {
            book_idle(s, sums, now, next, next_piece);
            continue;
        }
        double ns = (double)(next - now);
        sums->wall += ns;
        sums->time[first] += ns;
        sums->busy_in[s->phase[first]] += ns;
    }
}
_Static_assert(GWA_ACTIVITIES == 3, "advance_plain() has them all, in order");

/* post: s->now = to. next_piece: what starts at `to`; NULL: nothing, and no idle comes before.
 * continues: it belongs to the open window. */
static void advance(struct gwa_sweep *s, int64_t to, const struct gwa_piece *next_piece,
                    bool continues)
{
    while (s->now < to) {
        int64_t next = to;
        unsigned running = 0;
        struct gwa_sums *sums = &s->sums;
        for (unsigned i = 0; i < GWA_ACTIVITIES; i++) {
            if (s->end[i] <= s->now)
                continue;
            running |= 1u << i;
            if (s->end[i] < next)
                next = s->end[i];
        }
        if (s->solid > s->now && s->solid < next)
            next = s->solid;
        for (size_t i = 0; i < s->hollows_count; i++)
            if (s->hollows[i].end > s->now && s->hollows[i].end < next)
                next = s->hollows[i].end;
        for (size_t i = 0; i < s->active_count; i++) {
            const struct gwa_active *a = &s->active[i];
            if (a->end > s->now && a->end < next)
                next = a->end;
            if (a->activity == GWA_COMM && a->come > s->now && a->come < next)
                next = a->come;
        }
        if (!continues || s->has_pending) {
            if (s->open && s->window_end > s->now) {
                if (s->window_end < next)
                    next = s->window_end;
            } else {
                s->has_pending = true;
                sums = &s->pending;
            }
        }
        book(s, sums, running, s->now, next, next_piece);
        s->now = next;
        if (s->active_count)
            drop_ended(s, next);
    }
}

static void forget_pending(struct gwa_sweep *s)
{
    memset(&s->pending, 0, sizeof(s->pending));
    s->has_pending = false;
    s->idle_count = 0;
    s->idle_rest = 0;
}

static void begin(struct gwa_sweep *s, int64_t start)
{
    s->begun = true;
    s->now = s->first = s->solid = start;
    for (unsigned i = 0; i < GWA_ACTIVITIES; i++)
        s->end[i] = INT64_MIN;
    s->cells.last = s->kernel_cells.last = -1;
}

/* The window's part in a piece from `start` on. */
static void widen_window(struct gwa_sweep *s, const struct gwa_piece *p, int64_t start,
                         bool continues)
{
    if (continues) {
        if (s->has_pending) {
            add_sums(&s->sums, &s->pending);
            if (s->on_idle)
                tell_pending(s);
            forget_pending(s);
        }
    } else {
        forget_pending(s);
        s->open = true;
        s->interval = p->interval;
        s->window_end = start;
    }
    mark_cells(s, &s->cells, s->window_end < start ? s->window_end : start, p->end);
    if (p->activity != GWA_COPY)
        mark_cells(s, &s->kernel_cells, start, p->end);
    if (p->end > s->window_end)
        s->window_end = p->end;
}

static void take(struct gwa_sweep *s, const struct gwa_piece *p)
{
    if (!s->begun)
        begin(s, p->start);
    bool continues = p->inside && s->open && p->interval == s->interval;
    int64_t start = p->start, end = p->end;
    if (start < s->now) {
        if (p->inside) {
            s->late++;
            s->late_ns += (double)((end < s->now ? end : s->now) - start);
        }
        start = s->now;
        if (end < start)
            end = start;
    }
    if (continues && !s->has_pending && !s->active_count && !s->hollows_count)
        advance_plain(s, start, p);
    else
        advance(s, start, p, continues);
    if (p->inside)
        widen_window(s, p, start, continues);
    unsigned a = p->activity;
    hold(s, p, end);
    s->phase[a] = p->phase;
    s->last_thread = p->thread;
    s->last_returned = gwa_piece_returned(p);
    if (end > s->end[a])
        s->end[a] = end;
    if (p->moved) {
        p->moved->busy_ns += (double)(p->end - p->start);
        if (s->active_count < GWA_ACTIVE && end > start)
            s->active[s->active_count++] = (struct gwa_active){
                .end = end, .come = p->start + p->wait, .moved = p->moved, .activity = p->activity};
    }
}

/* ---- merging ------------------------------------------------------------------------ */

static int64_t head(struct gwa_queue *const *queues, uint32_t i)
{
    return gwa_queue_at(queues[i], 0)->start;
}

static void sift(struct gwa_queue *const *queues, uint32_t *heap, size_t count, size_t i)
{
    uint32_t moving = heap[i];
    int64_t start = head(queues, moving);
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= count)
            break;
        if (child + 1 < count && head(queues, heap[child + 1]) < head(queues, heap[child]))
            child++;
        if (head(queues, heap[child]) >= start)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = moving;
}

void gwa_sweep(struct gwa_sweep *s, struct gwa_queue *const *queues, size_t count,
               uint32_t *scratch, int64_t until)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (queues[i]->count)
            scratch[n++] = (uint32_t)i;
    for (size_t i = n / 2; i-- > 0;)
        sift(queues, scratch, n, i);
    while (n) {
        struct gwa_queue *q = queues[scratch[0]];
        const struct gwa_piece *p = gwa_queue_at(q, 0);
        if (p->start >= until)
            break;
        take(s, p);
        q->first = (q->first + 1) & (q->room - 1);
        if (!--q->count)
            scratch[0] = scratch[--n];
        if (n > 1)
            sift(queues, scratch, n, 0);
    }
}

int gwa_sweep_listen(struct gwa_sweep *s, gwa_on_idle *on_idle, void *arg, unsigned device)
{
    s->idle = malloc(GWA_PENDING * sizeof(*s->idle));
    if (!s->idle)
        return -ENOMEM;
    s->on_idle = on_idle;
    s->on_idle_arg = arg;
    s->device = device;
    return 0;
}

void gwa_sweep_free(struct gwa_sweep *s)
{
    free(s->idle);
}

void gwa_sweep_finish(struct gwa_sweep *s)
{
    if (s->begun)
        advance(s, gwa_sweep_reach(s), NULL, false);
}
