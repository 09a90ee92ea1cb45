/* How long collectives take once all ranks have come: a constant and a time per byte of each
 * operation on each communicator, fitted to the ends that blocking calls show.
 *
 * A call that waited returned when the latest of what it waited for was over. Where that is later
 * than the host's submissions and older collectives explain, it was the newest collective, less
 * what came after it on the device: its end is shown. Otherwise it had ended by then: a bound. */
#include "job_internal.h"
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
/* What an end is known to besides; a transfer's time is to be so many times its doubt. */
#define OFF_NS 1000
#define DOUBTS 2
/* Of transfers of one size only, what does not go with the bytes. */
#define USUAL_NS 10000
#define ROUNDS   20
/* Of fewer, one that is explained by something else makes up transfers of any length. */
#define EQUATIONS_LEAST 4

double gwa_job_transfer_ns(const struct job_kind *k, double calls, double bytes)
{
    return k->measured ? k->ns * calls + k->per_byte * bytes
                       : JOB_GUESS_NS * calls + JOB_GUESS_PER_BYTE * bytes;
}

/* ---- what calls show ------------------------------------------------------------------ */

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

/* When it should have returned, by all but its newest collective, or by that too; and the modelled
 * time which that rests on. */
struct expected {
    int64_t at;
    double modelled;
};

static void raise_to(const struct gwa_job *job, size_t rank, uint32_t row, int64_t after,
                     struct expected *e)
{
    const struct job_row *r = row ? &job->ranks[rank].rows.list[row - 1] : NULL;
    int64_t end = row ? gwa_job_row_end(job, rank, row) : NEVER;
    if (end == NEVER || end + after <= e->at)
        return;
    const struct job_collective *c = r->comm == JOB_NO_COMM ? NULL : &job->collectives[r->number];
    *e = (struct expected){end + after,
                           (double)after + (c && !c->anchored ? (double)c->modelled : 0)};
}

static struct expected without_newest(const struct gwa_job *job, size_t rank,
                                      const struct job_seen *s)
{
    struct expected e = {job_common(job_clock_of(job, rank), s->host), (double)s->modelled};
    raise_to(job, rank, s->on[0], s->after[0], &e);
    return e;
}

/* post: false: it tells nothing of a collective. *shown: its end, else a bound. */
static bool tells(const struct gwa_job *job, size_t rank, const struct job_seen *s,
                  struct showing *out, bool *shown)
{
    const struct job_rows *r = &job->ranks[rank].rows;
    const struct job_row *row = &r->list[s->on[1] - 1];
    if (row->comm == JOB_NO_COMM || !job->comms[job->collectives[row->number].comm].usable)
        return false;
    const struct job_collective *c = &job->collectives[row->number];
    struct expected otherwise = without_newest(job, rank, s);
    int64_t at = job_common(job_clock_of(job, rank), s->at);
    *out = (struct showing){
        .collective = row->number, .rank = (uint32_t)rank, .end = at - s->after[1]};
    int64_t come = c->last == NEVER ? at : c->last + s->after[1];
    double late = (double)(at - (come > otherwise.at ? come : otherwise.at));
    *shown = late < JOB_CAUGHT * (double)s->lasted_ns &&
             (otherwise.at == NEVER ||
              at > otherwise.at + slack_ns(job, otherwise.modelled + (double)s->after[1]));
    out->end += *shown ? 0 : slack_ns(job, (double)s->after[1]);
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

/* ---- the fit -------------------------------------------------------------------------- */

struct sums { /* of weighted equations: calls * ns + bytes * per_byte = time */
    double cc, cb, bb, ct, bt;
};

static void solve(const struct sums *s, struct job_kind *k)
{
    double det = s->cc * s->bb - s->cb * s->cb;
    if (det > 1e-4 * s->cc * s->bb) {
        k->ns = (s->ct * s->bb - s->bt * s->cb) / det;
        k->per_byte = (s->bt * s->cc - s->ct * s->cb) / det;
    } else { /* of one size */
        k->ns = s->cc > 0 ? fmin(USUAL_NS, s->ct / s->cc) : 0;
        k->per_byte = s->bb > 0 ? (s->bt - k->ns * s->cb) / s->bb : 0;
    }
    if (!(k->ns >= 0)) {
        k->ns = 0;
        k->per_byte = s->bb > 0 ? s->bt / s->bb : 0;
    }
    if (!(k->per_byte >= 0)) {
        k->per_byte = 0;
        k->ns = s->cc > 0 ? s->ct / s->cc : 0;
    }
    if (!(k->ns >= 0))
        k->ns = 0;
}

/* How long the transfers that lead to it took as it ended then, by the kinds' times as they were
 * when it was run. */
struct equation {
    const struct job_collective *c;
    double ns;
};

static double path_ns(const struct gwa_job *job, const struct job_collective *c)
{
    double ns = 0;
    for (unsigned k = 0; k < JOB_KINDS; k++)
        ns +=
            gwa_job_transfer_ns(&job->kinds[k], (double)c->path[k].calls, (double)c->path[k].bytes);
    return ns;
}

static size_t equations_of(const struct gwa_job *job, struct equation *list)
{
    size_t n = 0;
    for (size_t i = 0; i < job->collectives_count; i++) {
        const struct job_collective *c = &job->collectives[i];
        double own = gwa_job_transfer_ns(&job->kinds[c->kind], 1, (double)c->bytes);
        if (c->last == NEVER || (c->shown == NEVER && c->bound == NEVER))
            continue;
        /* less what it would be by the model: too little, or too much for a bound */
        double late = (double)((c->shown != NEVER ? c->shown : c->bound) - c->last) - own;
        if (c->shown == NEVER && late > 0)
            continue;
        list[n++] = (struct equation){.c = c, .ns = path_ns(job, c) + late};
    }
    return n;
}

double gwa_job_doubt_ns(const struct gwa_job *job, const struct job_collective *c)
{
    return OFF_NS + job->off_share * (double)c->modelled;
}

/* The least absolute deviation, by weights; of one kind, the others as they are. */
static void fit_kind(struct gwa_job *job, unsigned k, const struct equation *list, size_t count)
{
    struct sums s = {0};
    struct job_kind *kind = &job->kinds[k];
    uint64_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const struct job_collective *c = list[i].c;
        double calls = (double)c->path[k].calls, bytes = (double)c->path[k].bytes, all = 0;
        if (!(calls > 0))
            continue;
        for (unsigned m = 0; m < JOB_KINDS; m++)
            all += (double)c->path[m].calls;
        double off = list[i].ns - path_ns(job, c);
        double time = gwa_job_transfer_ns(kind, calls, bytes) + off;
        double weight = 1 / (fmax(fabs(off), gwa_job_doubt_ns(job, c)) * all);
        s.cc += weight * calls * calls;
        s.cb += weight * calls * bytes;
        s.bb += weight * bytes * bytes;
        s.ct += weight * calls * time;
        s.bt += weight * bytes * time;
        n++;
    }
    if (n < EQUATIONS_LEAST)
        return;
    solve(&s, kind);
    kind->measured = n;
}

/* Transfers that are hidden beside computing tell nothing: what was fitted is then less than the
 * doubt about the model. */
static bool stands_out(const struct gwa_job *job, unsigned k, const struct equation *list,
                       size_t count)
{
    double worth = 0, took = 0;
    for (size_t i = 0; i < count; i++) {
        const struct job_collective *c = list[i].c;
        double calls = (double)c->path[k].calls, doubt = gwa_job_doubt_ns(job, c);
        worth += calls * calls / (doubt * doubt);
        took += calls / (doubt * doubt) *
                gwa_job_transfer_ns(&job->kinds[k], calls, (double)c->path[k].bytes);
    }
    return took >= DOUBTS * sqrt(worth);
}

static int fit(struct gwa_job *job)
{
    struct equation *list = calloc(job->collectives_count + 1, sizeof(*list));
    if (!list)
        return -ENOMEM;
    size_t n = equations_of(job, list);
    for (unsigned round = 0; round < ROUNDS; round++)
        for (unsigned k = 0; k < JOB_KINDS - 1; k++)
            fit_kind(job, k, list, n);
    for (unsigned k = 0; k < JOB_KINDS - 1; k++)
        if (job->kinds[k].measured && !stands_out(job, k, list, n))
            job->kinds[k].measured = 0;
    free(list);
    return 0;
}

/* ---- all ------------------------------------------------------------------------------ */

/* By which share of what was modelled a call returned sooner than it should have; 0: it did not. */
struct sooner {
    double share, modelled;
};

static struct sooner sooner(const struct gwa_job *job, size_t rank, const struct job_seen *s)
{
    struct expected e = without_newest(job, rank, s);
    raise_to(job, rank, s->on[1], s->after[1], &e);
    int64_t at = job_common(job_clock_of(job, rank), s->at);
    bool is = e.at > at + SLACK_NS && e.modelled > TELLING_NS;
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
static int learn_share(struct gwa_job *job, size_t seen)
{
    struct sooner *list = calloc(seen ? seen : 1, sizeof(*list));
    size_t used = 0;
    if (!list)
        return -ENOMEM;
    for (size_t i = 0; i < job->count; i++)
        for (size_t k = 0; k < job->ranks[i].rows.seen_count; k++) {
            list[used] = sooner(job, i, &job->ranks[i].rows.seen[k]);
            used += list[used].share > 0;
        }
    job->off_share = fmin(fmax(usual_share(list, used), SHARE_LEAST), SHARE_MOST);
    free(list);
    return 0;
}

int gwa_job_learn(struct gwa_job *job)
{
    size_t seen = 0, used = 0;
    for (size_t i = 0; i < job->count; i++)
        seen += job->ranks[i].rows.seen_count;
    if (!(job->off_share > 0) && learn_share(job, seen))
        return -ENOMEM;
    struct showing *list = calloc(seen ? seen : 1, sizeof(*list));
    struct lag *lags = calloc(seen ? seen : 1, sizeof(*lags));
    if (!list || !lags) {
        free(list);
        free(lags);
        return -ENOMEM;
    }
    for (size_t i = 0; i < job->collectives_count; i++)
        job->collectives[i].bound = NEVER;
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
    for (size_t i = 0; i < job->collectives_count; i++)
        job->collectives[i].shown = NEVER;
    qsort(list, used, sizeof(*list), by_collective);
    show(job, list, used);
    measure_lags(job, list, used, lags);
    free(list);
    free(lags);
    return fit(job);
}
