/* What blocking calls showed of collectives, and of how far the model is off.
 *
 * A call that waited returned when the latest of what it waited for was over. Where that is later
 * than the host's submissions and older collectives explain, it was the newest collective, less
 * what came after it on the device: its end is shown. Otherwise it had ended by then: a bound. */
#include "job_moment.h"
#include "order.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* What is known of one rank's durations: so much later is later. A GPU's clock moves by some
 * hundredths with its load and heat, and all durations with it: by how much in this job, the calls
 * say that returned sooner than the model ends what they waited for. */
#define SLACK_NS    20000
#define SHARE_LEAST 0.015
#define SHARE_MOST  0.5
#define TELLING_NS  1e6 /* modelled time that it takes */
#define DEEP        8   /* that what a call waited for is taken apart */

size_t gwa_job_seen(const struct gwa_job *job)
{
    size_t seen = 0;
    for (size_t i = 0; i < job->count; i++)
        seen += job->ranks[i].rows.seen_count;
    return seen;
}

struct showing {
    uint32_t collective;
    uint32_t rank;
    int64_t end; /* common clock */
};

static int by_collective(const void *a, const void *b)
{
    const struct showing *x = a, *y = b;
    if (x->collective != y->collective)
        return x->collective < y->collective ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static int64_t slack_ns(const struct gwa_job *job, double modelled)
{
    return SLACK_NS + (int64_t)(job->off_share * modelled);
}

static void raise_to(const struct gwa_job *job, size_t rank, const struct job_term *t,
                     struct job_expected *e)
{
    uint32_t row;
    float modelled;
    int64_t end = t->of ? gwa_job_end_of(job, rank, t->of, &row, &modelled) : NEVER;
    if (end == NEVER || job_later(end, t->after) <= e->at)
        return;
    const struct job_row *r = row ? &job->ranks[rank].rows.list[row - 1] : NULL;
    const struct job_collective *c =
        r && r->comm != JOB_NO_COMM ? &job->collectives[r->number] : NULL;
    if (c && c->anchored)
        c = NULL;
    *e = (struct job_expected){job_later(end, t->after),
                               (double)t->after + (double)modelled + (c ? (double)c->modelled : 0),
                               c};
}

static void raise_without(const struct gwa_job *job, size_t rank, const struct job_term *t,
                          uint32_t row, unsigned deep, struct job_expected *e)
{
    const struct job_latest *l = job_latest_of(&job->ranks[rank].rows, t->of);
    if (t->of == row)
        return;
    if (!l || l->newest != row || !deep) {
        raise_to(job, rank, t, e);
        return;
    }
    int64_t host = job_common(job_clock_of(job, rank), l->host);
    if (host != NEVER && job_later(host, t->after) > e->at)
        *e = (struct job_expected){job_later(host, t->after),
                                   (double)l->host - (double)l->since + (double)t->after, NULL};
    for (int k = 0; k < 2; k++) {
        struct job_term on = {l->on[k].of, job_later(l->on[k].after, t->after)};
        raise_without(job, rank, &on, row, deep - 1, e);
    }
}

struct job_expected gwa_job_without_newest(const struct gwa_job *job, size_t rank,
                                           const struct job_seen *s)
{
    struct job_expected e = {job_common(job_clock_of(job, rank), s->host), (double)s->modelled,
                             NULL};
    raise_without(job, rank, &s->on[0], s->newest.of, DEEP, &e);
    raise_without(job, rank, &s->on[1], s->newest.of, DEEP, &e);
    return e;
}

/* post: false: it tells nothing of a collective. *shown: its end, else a bound. */
static bool tells(const struct gwa_job *job, size_t rank, const struct job_seen *s,
                  struct showing *out, bool *shown)
{
    const struct job_rows *r = &job->ranks[rank].rows;
    const struct job_row *row = &r->list[s->newest.of - 1];
    if (row->comm == JOB_NO_COMM || !job->comms[job->collectives[row->number].comm].usable)
        return false;
    const struct job_collective *c = &job->collectives[row->number];
    struct job_expected otherwise = gwa_job_without_newest(job, rank, s);
    int64_t at = job_common(job_clock_of(job, rank), s->at);
    *out = (struct showing){
        .collective = row->number, .rank = (uint32_t)rank, .end = at - s->newest.after};
    int64_t come = c->last == NEVER ? at : c->last + s->newest.after;
    double late = (double)(at - (come > otherwise.at ? come : otherwise.at));
    *shown = late < JOB_CAUGHT * (double)s->lasted_ns &&
             (otherwise.at == NEVER ||
              at > otherwise.at + slack_ns(job, otherwise.modelled + (double)s->newest.after));
    out->end += *shown ? 0 : slack_ns(job, (double)s->newest.after);
    return true;
}

static void bound(struct job_collective *c, int64_t end)
{
    if (c->bound == NEVER || c->bound > end)
        c->bound = end;
}

/* A host wakes late more often than early: of few, the earlier. */
static void show(struct gwa_job *job, const struct showing *list, size_t count)
{
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && list[i + n].collective == list[i].collective;)
            n++;
        job->collectives[list[i].collective].shown = list[i + (n - 1) / 2].end;
    }
}

/* By how much this rank sees ends later than the middle one of its host. */
struct lag {
    uint32_t rank;
    int64_t ns;
};

static int by_rank(const void *a, const void *b)
{
    const struct lag *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->ns > y->ns) - (x->ns < y->ns);
}

static void settle_lags(struct gwa_job *job, struct lag *lags, size_t count)
{
    qsort(lags, count, sizeof(*lags), by_rank);
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && lags[i + n].rank == lags[i].rank;)
            n++;
        job->ranks[lags[i].rank].link_ns = n >= 5 ? (double)lags[i + n / 2].ns : NAN;
    }
}

static void measure_lags(struct gwa_job *job, const struct showing *list, size_t count,
                         struct lag *lags)
{
    size_t used = 0;
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && list[i + n].collective == list[i].collective;)
            n++;
        for (size_t k = 0; k < n; k++) {
            uint32_t host = job->ranks[list[i + k].rank].host;
            size_t first = n, last = 0, same = 0;
            for (size_t m = 0; m < n && n <= 64; m++)
                if (job->ranks[list[i + m].rank].host == host) {
                    first = first == n ? m : first;
                    last = m;
                    same++;
                }
            if (same < 2 || n > 64)
                continue;
            lags[used++] = (struct lag){.rank = list[i + k].rank,
                                        .ns = list[i + k].end - list[i + (first + last) / 2].end};
        }
    }
    settle_lags(job, lags, used);
}

/* post: what calls showed, so many; and the bounds that the others set. */
static size_t look(struct gwa_job *job, struct showing *list)
{
    size_t used = 0;
    for (size_t i = 0; i < job->collectives_count; i++)
        job->collectives[i].bound = job->collectives[i].shown = NEVER;
    for (size_t i = 0; i < job->count; i++) {
        const struct job_rows *r = &job->ranks[i].rows;
        job->ranks[i].link_ns = NAN;
        for (size_t k = 0; k < r->seen_count; k++) {
            struct showing one;
            bool shown;
            if (!tells(job, i, &r->seen[k], &one, &shown))
                continue;
            if (shown)
                list[used++] = one;
            else
                bound(&job->collectives[one.collective], one.end);
        }
    }
    return used;
}

int gwa_job_see(struct gwa_job *job)
{
    size_t seen = gwa_job_seen(job), used;
    struct showing *list = calloc(seen ? seen : 1, sizeof(*list));
    struct lag *lags = calloc(seen ? seen : 1, sizeof(*lags));
    if (list && lags) {
        used = look(job, list);
        qsort(list, used, sizeof(*list), by_collective);
        show(job, list, used);
        measure_lags(job, list, used, lags);
    }
    bool failed = !list || !lags;
    free(list);
    free(lags);
    return failed ? -ENOMEM : 0;
}

/* ---- how far off ------------------------------------------------------------------------- */

/* A GPU that has just begun runs at another clock than when it was sampled, and its first calls
 * take longer: what was seen before says little of how long things take. */
static void find_timed(struct gwa_job *job)
{
    job->timed = NEVER;
    for (size_t i = 0; i < job->count; i++) {
        if (job->ranks[i].rows.timed == NEVER || !job->ranks[i].known)
            continue;
        int64_t t = job_common(job_clock_of(job, i), job->ranks[i].rows.timed);
        if (t > job->timed)
            job->timed = t;
    }
}

/* By which share of what was modelled a call returned sooner than it should have; 0: it did not. */
struct sooner {
    double share, modelled;
};

static struct sooner sooner(const struct gwa_job *job, size_t rank, const struct job_seen *s)
{
    struct job_expected e = gwa_job_without_newest(job, rank, s);
    raise_to(job, rank, &s->newest, &e);
    int64_t at = job_common(job_clock_of(job, rank), s->at);
    bool is = at >= job->timed && e.at > at + SLACK_NS && e.modelled > TELLING_NS;
    return (struct sooner){is ? (double)(e.at - at) / e.modelled : 0, e.modelled};
}

static int by_share(const void *a, const void *b)
{
    const struct sooner *x = a, *y = b;
    return (x->share > y->share) - (x->share < y->share);
}

/* Of nine tenths of the time that was modelled it is no more. */
static double usual_share(struct sooner *list, size_t count)
{
    double all = 0, below = 0;
    size_t i = 0;
    qsort(list, count, sizeof(*list), by_share);
    for (size_t k = 0; k < count; k++)
        all += list[k].modelled;
    while (i + 1 < count && (below += list[i].modelled) < 0.9 * all)
        i++;
    return count ? list[i].share : 0;
}

/* Before anything was shown. That it ran later than modelled may have other reasons, but as often
 * as sooner it does. */
int gwa_job_learn_share(struct gwa_job *job)
{
    size_t seen = gwa_job_seen(job);
    struct sooner *list = calloc(seen ? seen : 1, sizeof(*list));
    size_t used = 0;
    if (!list)
        return -ENOMEM;
    find_timed(job);
    for (size_t i = 0; i < job->count; i++)
        for (size_t k = 0; k < job->ranks[i].rows.seen_count; k++) {
            list[used] = sooner(job, i, &job->ranks[i].rows.seen[k]);
            used += list[used].share > 0;
        }
    job->off_share = fmin(fmax(usual_share(list, used), SHARE_LEAST), SHARE_MOST);
    free(list);
    return 0;
}
