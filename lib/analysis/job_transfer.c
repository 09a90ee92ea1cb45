/* How long collectives take once all ranks have come: a constant and a time per byte of each
 * operation on each communicator, fitted to when calls returned that waited for them. */
#include "job_moment.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a return is known to besides; a transfer's time is to be so many times its doubt. */
#define OFF_NS 1000
#define DOUBTS 2
/* Of transfers of one size only, what does not go with the bytes. */
#define USUAL_NS 10000
#define SMALL    4096 /* bytes: nothing does, there */
#define FITTED   20   /* rounds of weights */
#define ROUNDS   20   /* of run and learn */
#define SETTLED  1e-3
/* Of fewer, one that is explained by something else makes up transfers of any length. */
#define EQUATIONS_LEAST 4

double gwa_job_transfer_ns(const struct job_kind *k, double calls, double bytes)
{
    double ns = k->measured ? k->ns * calls + k->per_byte * bytes
                            : JOB_GUESS_NS * calls + JOB_GUESS_PER_BYTE * bytes;
    return fmin(ns, (double)JOB_FARTHEST);
}

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
        bool small = s->cb < SMALL * s->cc;
        k->ns = s->cc > 0 ? small ? s->ct / s->cc : fmin(USUAL_NS, s->ct / s->cc) : 0;
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

static double path_ns(const struct gwa_job *job, const struct job_collective *c)
{
    double ns = 0;
    for (unsigned k = 0; k < JOB_KINDS; k++)
        ns +=
            gwa_job_transfer_ns(&job->kinds[k], (double)c->path[k].calls, (double)c->path[k].bytes);
    return ns;
}

/* How long the transfers that led to the return of a call took, by the kinds' times as they were
 * when it was run. */
struct equation {
    const struct job_collective *c; /* whose path they are */
    double ns, doubt;
};

/* post: false: the call says nothing of transfers: others decided when it returned, or it may have
 * found the work done. */
static bool equation_of(const struct gwa_job *job, size_t rank, const struct job_seen *s,
                        struct equation *out)
{
    const struct job_row *row = &job->ranks[rank].rows.list[s->newest.of - 1];
    const struct job_collective *c =
        row->comm == JOB_NO_COMM ? NULL : &job->collectives[row->number];
    if (!c || c->last == NEVER || !job->comms[c->comm].usable)
        return false;
    struct job_expected e = gwa_job_without_newest(job, rank, s);
    int64_t after =
        (int64_t)gwa_job_transfer_ns(&job->kinds[c->kind], 1, (double)c->bytes) + s->newest.after;
    if (c->last + after > e.at)
        e = (struct job_expected){c->last + after, (double)c->modelled + (double)s->newest.after,
                                  c};
    double late = (double)(job_common(job_clock_of(job, rank), s->at) - e.at);
    *out =
        (struct equation){.c = e.path, .ns = late, .doubt = OFF_NS + job->off_share * e.modelled};
    if (!e.path || late > JOB_CAUGHT * (double)s->lasted_ns)
        return false;
    out->ns += path_ns(job, e.path);
    return true;
}

static size_t equations_since(const struct gwa_job *job, int64_t since, struct equation *list)
{
    size_t n = 0;
    for (size_t i = 0; i < job->count; i++)
        for (size_t k = 0; k < job->ranks[i].rows.seen_count; k++) {
            const struct job_seen *s = &job->ranks[i].rows.seen[k];
            n += job_common(job_clock_of(job, i), s->at) >= since &&
                 equation_of(job, i, s, &list[n]);
        }
    return n;
}

/* pre: room for what all have seen. */
static size_t equations_of(const struct gwa_job *job, struct equation *list)
{
    size_t n = equations_since(job, job->timed, list);
    return n < EQUATIONS_LEAST ? equations_since(job, NEVER, list) : n;
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
        double weight = 1 / (fmax(fabs(off), list[i].doubt) * all);
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
 * doubt about the model, of which many calls are no surer than one: a clock that is slower than
 * when it was sampled makes all of them late. */
static bool stands_out(const struct gwa_job *job, unsigned k, const struct equation *list,
                       size_t count)
{
    double doubts = 0, took = 0;
    for (size_t i = 0; i < count; i++) {
        const struct job_collective *c = list[i].c;
        double calls = (double)c->path[k].calls, doubt = list[i].doubt;
        doubts += calls / doubt;
        took += calls / (doubt * doubt) *
                gwa_job_transfer_ns(&job->kinds[k], calls, (double)c->path[k].bytes);
    }
    return took > 0 && took >= DOUBTS * doubts;
}

/* So much longer in one round at most: while they are held to be short, few calls seem to depend on
 * them, and what those few waited for would be all theirs. Long ones explain any wait, that for a
 * sleeping host too, and then nothing says that they are shorter. */
#define LONGER 2

/* bytes: of those that it was fitted to, on the average. The largest of its kind bounds its time
 * per byte, those its constant. */
static void bound_growth(struct job_kind *k, const struct job_kind *before, double bytes)
{
    double largest = fmax((double)k->largest, 1);
    double most = LONGER * gwa_job_transfer_ns(before, 1, largest);
    k->per_byte = fmin(k->per_byte, fmax(0, (most - k->ns) / largest));
    most = LONGER * gwa_job_transfer_ns(before, 1, bytes);
    k->ns = fmin(k->ns, most - fmin(k->per_byte * bytes, most));
}

static double bytes_of(const struct equation *list, size_t count, unsigned kind)
{
    double calls = 0, bytes = 0;
    for (size_t i = 0; i < count; i++) {
        calls += (double)list[i].c->path[kind].calls;
        bytes += (double)list[i].c->path[kind].bytes;
    }
    return calls > 0 ? bytes / calls : 0;
}

/* pre: room for what all have seen. */
static void fit(struct gwa_job *job, struct equation *list)
{
    struct job_kind before[JOB_KINDS];
    size_t n = equations_of(job, list);
    memcpy(before, job->kinds, sizeof(before));
    for (unsigned round = 0; round < FITTED; round++)
        for (unsigned k = 0; k < JOB_KINDS - 1; k++)
            if (!job->kinds[k].hidden)
                fit_kind(job, k, list, n);
    for (unsigned k = 0; k < JOB_KINDS - 1; k++)
        if (job->kinds[k].measured)
            bound_growth(&job->kinds[k], &before[k], bytes_of(list, n, k));
}

static int leave_hidden(struct gwa_job *job, bool *hidden)
{
    struct equation *list = calloc(gwa_job_seen(job) + 1, sizeof(*list));
    *hidden = false;
    if (!list)
        return -ENOMEM;
    size_t n = equations_of(job, list);
    for (unsigned k = 0; k < JOB_KINDS - 1; k++)
        if (job->kinds[k].measured && !stands_out(job, k, list, n)) {
            job->kinds[k].measured = 0;
            *hidden = job->kinds[k].hidden = true;
        }
    free(list);
    return 0;
}

/* ---- run and learn ------------------------------------------------------------------------ */

int gwa_job_learn(struct gwa_job *job)
{
    int rc = job->off_share > 0 ? 0 : gwa_job_learn_share(job);
    struct equation *list = rc ? NULL : calloc(gwa_job_seen(job) + 1, sizeof(*list));
    if (!list)
        return rc ? rc : -ENOMEM;
    fit(job, list);
    free(list);
    return gwa_job_see(job);
}

static bool alike(double a, double b)
{
    return fabs(a - b) <= SETTLED * fmax(fabs(a), fabs(b));
}

/* Rounds go on while transfers get longer or shorter; what is shown follows them. */
static bool is_settled(const struct gwa_job *job, const struct job_kind *before)
{
    for (unsigned k = 0; k < JOB_KINDS; k++) {
        double largest = (double)job->kinds[k].largest;
        if (!alike(gwa_job_transfer_ns(&job->kinds[k], 1, 0),
                   gwa_job_transfer_ns(&before[k], 1, 0)) ||
            !alike(gwa_job_transfer_ns(&job->kinds[k], 1, largest),
                   gwa_job_transfer_ns(&before[k], 1, largest)))
            return false;
    }
    return true;
}

static int run_and_learn(struct gwa_job *job)
{
    struct job_kind before[JOB_KINDS];
    unsigned same = 0;
    for (unsigned i = 0; i < ROUNDS && same < 2; i++) {
        memcpy(before, job->kinds, sizeof(before));
        int rc = gwa_job_learn(job);
        if (rc)
            return rc;
        gwa_job_run(job);
        same = is_settled(job, before) ? same + 1 : 0;
    }
    return 0;
}

int gwa_job_settle(struct gwa_job *job)
{
    bool again = true;
    int rc = 0;
    gwa_job_run(job);
    while (!rc && again && !(rc = run_and_learn(job)))
        rc = leave_hidden(job, &again);
    return rc;
}
