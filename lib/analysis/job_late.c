/* Who came last to the collectives that others waited in, and by what of its own making.
 *
 * From the end of the newest collective that a rank had waited for to its coming to the next one,
 * all it does is its own: if that took longer than on the others in the middle, so much of their
 * waiting is its doing; if it did not, the rank was late because it had waited for another. */
#include "grow.h"
#include "job_internal.h"
#include "order.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* To stand out: so much of wall time, and of all waiting so many times a fair share (of few
 * ranks, most of it). */
#define MATERIAL_PCT  3.0 /* of wall time: model and clocks of two ranks differ by less */
#define FAIR_SHARES   3.0
#define MOST_OF_IT    0.75
#define GUESSED_LEAST 0.02   /* of its kernels never timed, their time tells nothing of a rank */
#define WINDOWS       20000u /* that are looked at, at most */

/* What a rank did on its way to a collective. */
struct way {
    int64_t ready;
    double ns; /* that it took; NaN: since when is not known */
    double compute, copies, kernels;
    double waited; /* in collectives on the way that it was not the last to come to */
};

static double units(uint32_t from, uint32_t to)
{
    return (double)(uint32_t)(to - from) * 100;
}

static double waited_in(const struct gwa_job *job, size_t rank, size_t row)
{
    const struct job_rank *r = &job->ranks[rank];
    const struct job_row *one = &r->rows.list[row];
    const struct job_collective *c =
        one->comm == JOB_NO_COMM ? NULL : &job->collectives[one->number];
    return c && c->last > r->starts[row] ? (double)(c->last - r->starts[row]) : 0;
}

static struct way way_of(const struct gwa_job *job, const struct job_post *p)
{
    const struct job_rank *r = &job->ranks[p->rank];
    const struct job_row *row = &r->rows.list[p->row];
    struct way way = {.ready = gwa_job_row_ready(job, p->rank, p->row + 1), .ns = NAN};
    if (!row->base) {
        way.waited = waited_in(job, p->rank, p->row);
        return way;
    }
    for (size_t i = row->base; i <= p->row; i++)
        way.waited += waited_in(job, p->rank, i);
    const struct job_row *base = &r->rows.list[row->base - 1];
    int64_t end = gwa_job_row_end(job, p->rank, row->base);
    if (end == NEVER || way.ready == NEVER)
        return way;
    way.ns = (double)(way.ready - end);
    way.compute = units(base->compute, row->compute);
    way.copies = units(base->copies, row->copies);
    way.kernels = (double)(uint32_t)(row->kernels - base->kernels);
    return way;
}

/* ---- one collective --------------------------------------------------------------------- */

struct scratch {
    struct way *ways;
    double *ns, *compute, *copies, *kernels; /* of the ranks that were not last */
    size_t count, room;
};

static int make_room(struct scratch *s, size_t count)
{
    if (s->room >= count)
        return 0;
    struct way *ways = reallocarray(s->ways, count, sizeof(*ways));
    if (ways)
        s->ways = ways;
    double *grown = reallocarray(s->ns, count * 4, sizeof(*grown));
    if (grown)
        s->ns = grown;
    if (!ways || !grown)
        return -ENOMEM;
    s->compute = grown + count;
    s->copies = grown + 2 * count;
    s->kernels = grown + 3 * count;
    s->room = count;
    return 0;
}

/* post: which of the posts was ready last; *waited: how long the others waited for it, mean. */
static uint32_t last_ready(const struct gwa_job *job, const struct job_collective *c,
                           struct scratch *s, double *waited)
{
    uint32_t late = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        s->ways[i] = way_of(job, &job->posts[c->posts + i]);
        if (s->ways[i].ready > s->ways[late].ready)
            late = i;
    }
    s->count = 0;
    *waited = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const struct way *w = &s->ways[i];
        if (i == late || w->ready == NEVER)
            continue;
        *waited += fmin((double)(s->ways[late].ready - w->ready), w->waited);
        if (!isfinite(w->ns))
            continue;
        s->ns[s->count] = w->ns;
        s->compute[s->count] = w->compute;
        s->copies[s->count] = w->copies;
        s->kernels[s->count++] = w->kernels;
    }
    *waited /= (double)(c->count - 1);
    return late;
}

static double between(double least, double x, double most)
{
    return !(x > least) ? least : x < most ? x : most;
}

static void charge(struct job_rank *r, struct scratch *o, const struct way *late, double waited)
{
    double of[GWA_LATE_CAUSE_COUNT] = {0};
    double own = waited;
    if (o->count && isfinite(late->ns)) {
        own = between(0, late->ns - gwa_median(o->ns, o->count), waited);
        double compute = between(0, late->compute - gwa_median(o->compute, o->count), own);
        double copies = between(0, late->copies - gwa_median(o->copies, o->count), own - compute);
        /* Nobody is late by what was only guessed. */
        if ((double)r->rows.guessed > GUESSED_LEAST * (double)r->rows.kernels) {
            own -= compute;
            compute = 0;
        }
        if (r->rows.timed_copy_ns < r->rows.copy_ns / 2) {
            own -= copies;
            copies = 0;
        }
        bool more = late->kernels > 1.02 * gwa_median(o->kernels, o->count) + 1;
        of[more ? GWA_LATE_WORK : GWA_LATE_GPU] = compute;
        of[GWA_LATE_COPIES] = copies;
        of[GWA_LATE_HOST] = own - compute - copies;
    } else {
        of[GWA_LATE_HOST] = own;
    }
    r->caused += own;
    r->times++;
    for (unsigned i = 0; i < GWA_LATE_CAUSE_COUNT; i++)
        r->by_cause[i] += of[i];
}

/* ---- all -------------------------------------------------------------------------------------
 */

/* Of the steady time that ranks have in common. */
static void find_window(struct gwa_job *job)
{
    job->from = NEVER;
    job->to = INT64_MAX;
    for (size_t i = 0; i < job->count; i++) {
        const struct job_rank *r = &job->ranks[i];
        if (!r->analysed)
            continue;
        if (r->from != INT64_MIN && job_common(job_clock_of(job, i), r->from) > job->from)
            job->from = job_common(job_clock_of(job, i), r->from);
        if (r->to != INT64_MAX && job_common(job_clock_of(job, i), r->to) < job->to)
            job->to = job_common(job_clock_of(job, i), r->to);
    }
}

double gwa_job_wall_ns(const struct gwa_job *job)
{
    int64_t from = job->from, to = job->to;
    int64_t first = INT64_MAX, last = NEVER;
    for (size_t i = 0; i < job->count; i++) {
        const struct job_rank *r = &job->ranks[i];
        if (!r->known || r->rows.first == NEVER)
            continue;
        int64_t a = job_common(job_clock_of(job, i), r->rows.first);
        int64_t b = job_common(job_clock_of(job, i), r->rows.last);
        first = a < first ? a : first;
        last = b > last ? b : last;
    }
    if (from == NEVER)
        from = first;
    if (to == INT64_MAX)
        to = last;
    return to > from ? (double)to - (double)from : NAN;
}

typedef double share_of(const struct job_rank *);

/* post: the middle one of the other ranks' shares of wall time; NaN: not known of them. */
static double of_others(const struct gwa_job *job, size_t rank, double *room, share_of *share)
{
    size_t count = 0;
    for (size_t i = 0; i < job->count; i++)
        if (i != rank && isfinite(share(&job->ranks[i])))
            room[count++] = share(&job->ranks[i]);
    return count ? gwa_median(room, count) : NAN;
}

static double idle_of(const struct job_rank *r)
{
    return r->out.idle_pct;
}

static double compute_of(const struct job_rank *r)
{
    return r->out.compute_pct;
}

static double copies_of(const struct job_rank *r)
{
    return r->out.exposed_copy_pct;
}

static double off_of(const struct job_rank *r)
{
    return r->off_pct;
}

static share_of *const spent_late[GWA_LATE_CAUSE_COUNT] = {[GWA_LATE_HOST] = idle_of,
                                                           [GWA_LATE_GPU] = compute_of,
                                                           [GWA_LATE_WORK] = compute_of,
                                                           [GWA_LATE_COPIES] = copies_of};

/* A rank is late by what it spends otherwise than the others: idle while its host is late,
 * computing or copying for longer. By more its model alone is late: where GPUs are full, durations
 * that are wrong by a hundredth add up to milliseconds between two waits of the host. By how much
 * the models are off, blocking calls show: nobody is late by so little. */
static int bound_by_use(struct gwa_job *job)
{
    double wall = gwa_job_wall_ns(job), *room = malloc((job->count + 1) * sizeof(*room));
    if (!room)
        return -ENOMEM;
    for (size_t i = 0; i < job->count; i++) {
        struct job_rank *r = &job->ranks[i];
        double off = r->off_pct + of_others(job, i, room, off_of);
        for (unsigned c = 0; c < GWA_LATE_CAUSE_COUNT; c++) {
            share_of *share = spent_late[c];
            double others = share ? of_others(job, i, room, share) : NAN;
            if (!isfinite(others))
                continue;
            double over = r->by_cause[c] - fmax(0, share(r) - others - off) * wall / 100;
            if (over > 0) {
                r->by_cause[c] -= over;
                r->caused -= over;
            }
        }
    }
    free(room);
    return 0;
}

int gwa_job_blame(struct gwa_job *job)
{
    struct scratch s = {0};
    int rc = 0;
    find_window(job);
    for (size_t i = 0; i < job->count; i++) {
        job->ranks[i].caused = 0;
        job->ranks[i].times = 0;
        memset(job->ranks[i].by_cause, 0, sizeof(job->ranks[i].by_cause));
    }
    for (size_t i = 0; i < job->collectives_count && !rc; i++) {
        struct job_collective *c = &job->collectives[i];
        double waited;
        if (!c->waited_for || !job_inside(job, c))
            continue;
        if ((rc = make_room(&s, c->count)))
            break;
        uint32_t late = last_ready(job, c, &s, &waited);
        c->blamed = job->posts[c->posts + late].rank;
        if (waited > 0)
            charge(&job->ranks[c->blamed], &s, &s.ways[late], waited);
    }
    free(s.ways);
    free(s.ns);
    return rc ? rc : bound_by_use(job);
}

size_t gwa_job_outliers(const struct gwa_job *job, size_t *list, size_t most)
{
    double wall = gwa_job_wall_ns(job), all = 0, ranks = 0;
    size_t count = 0;
    for (size_t i = 0; i < job->count; i++) {
        all += job->ranks[i].caused;
        ranks += job->ranks[i].known;
    }
    for (size_t i = 0; i < job->count; i++) {
        double caused = job->ranks[i].caused;
        if (!(100 * caused / wall >= MATERIAL_PCT) ||
            caused < all * fmin(MOST_OF_IT, FAIR_SHARES / ranks))
            continue;
        size_t at = count < most ? count++ : most;
        if (at == most && caused <= job->ranks[list[most - 1]].caused)
            continue;
        if (at == most)
            at--;
        for (; at && job->ranks[list[at - 1]].caused < caused; at--)
            list[at] = list[at - 1];
        list[at] = i;
    }
    return count;
}

/* ---- what is looked at --------------------------------------------------------------------- */

static int by_from(const void *a, const void *b)
{
    const struct gwa_interval *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static size_t unite(struct gwa_interval *list, size_t count)
{
    size_t n = 0;
    qsort(list, count, sizeof(*list), by_from);
    for (size_t i = 0; i < count; i++) {
        if (n && list[i].from <= list[n - 1].to) {
            if (list[i].to > list[n - 1].to)
                list[n - 1].to = list[i].to;
        } else {
            list[n++] = list[i];
        }
    }
    return n;
}

/* From the submission of the collective before, so that the window holds something from before the
 * time in question, to that of the next one. */
static bool window_of(const struct gwa_job *job, const struct job_post *p, struct gwa_interval *out)
{
    const struct job_rows *r = &job->ranks[p->rank].rows;
    const struct job_row *row = &r->list[p->row];
    if (!row->base)
        return false;
    *out = (struct gwa_interval){r->list[row->base - 1].submitted, row->submitted + 1};
    return out->to > out->from;
}

int gwa_job_look_windows(const struct gwa_job *job, const struct job_look *look,
                         struct gwa_interval **out, size_t *count)
{
    size_t room = 0, used = 0;
    *out = NULL;
    for (size_t i = 0; i < job->collectives_count && used < WINDOWS; i++) {
        const struct job_collective *c = &job->collectives[i];
        if (!c->waited_for || !job_inside(job, c) || c->blamed != look->late)
            continue;
        for (uint32_t k = 0; k < c->count; k++) {
            const struct job_post *p = &job->posts[c->posts + k];
            if (p->rank != look->rank)
                continue;
            if (gwa_reserve((void **)out, &room, used, sizeof(**out)))
                return -ENOMEM;
            used += window_of(job, p, &(*out)[used]);
        }
    }
    *count = used ? unite(*out, used) : 0;
    return 0;
}
