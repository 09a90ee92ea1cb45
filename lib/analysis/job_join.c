/* The job in time: every rank's stream comes to its collectives when what it waits for has ended,
 * and a collective ends when the last has come and the data has moved. */
#include "job_moment.h"

#include <string.h>

#define GAP_NS 1000 /* between two kernels of NCCL in a stream */

static const struct job_row *row_of(const struct gwa_job *job, size_t rank, uint32_t row)
{
    return &job->ranks[rank].rows.list[row - 1];
}

static const struct job_collective *collective_of(const struct gwa_job *job,
                                                  const struct job_row *row)
{
    return row->comm == JOB_NO_COMM || !job->comms[job->collectives[row->number].comm].usable
               ? NULL
               : &job->collectives[row->number];
}

int64_t gwa_job_row_end(const struct gwa_job *job, size_t rank, uint32_t row)
{
    const struct job_row *r = row_of(job, rank, row);
    const struct job_collective *c = collective_of(job, r);
    if (c)
        return c->end;
    return job->ranks[rank].starts[row - 1] + JOB_GUESS_NS +
           (int64_t)(JOB_GUESS_PER_BYTE * (double)r->bytes);
}

/* When a rank comes to a row, and the row whose end decides that; 0: none. */
struct coming {
    int64_t at;
    uint32_t after;
    float modelled; /* ns since that, or since the host decided */
};

#define LONG_AGO (-((int64_t)1 << 61))

static struct coming by_host(const struct gwa_job *job, size_t rank, int64_t host, float modelled)
{
    struct coming c = {.at = job_common(job_clock_of(job, rank), host), .modelled = modelled};
    if (c.at == NEVER)
        c.at = LONG_AGO;
    return c;
}

int64_t gwa_job_end_of(const struct gwa_job *job, size_t rank, uint32_t of, uint32_t *row,
                       float *modelled)
{
    if (!(of & JOB_LATEST)) {
        *row = of;
        *modelled = 0;
        return gwa_job_row_end(job, rank, of);
    }
    const struct job_latest_end *l = &job->ranks[rank].latest[of & ~JOB_LATEST];
    *row = l->row;
    *modelled = l->modelled;
    return l->end;
}

/* pre: those of the latest that it goes on from are settled, where they can be.
 * post: false: not known yet. */
static bool raise_to(const struct gwa_job *job, size_t rank, uint32_t of, int64_t after,
                     struct coming *c)
{
    uint32_t row;
    float modelled;
    if (!of)
        return true;
    int64_t end = gwa_job_end_of(job, rank, of, &row, &modelled);
    if (end == NEVER)
        return false;
    if (job_later(end, after) > c->at)
        *c = (struct coming){
            .at = job_later(end, after), .after = row, .modelled = modelled + (float)after};
    return true;
}

/* What of the terms is not known yet; 0: all are. */
static uint32_t open_term(const struct gwa_job *job, size_t rank, const struct job_term *on)
{
    for (int i = 0; i < 2; i++) {
        uint32_t row;
        float modelled;
        if (on[i].of && gwa_job_end_of(job, rank, on[i].of, &row, &modelled) == NEVER)
            return on[i].of;
    }
    return 0;
}

/* Settles one of the latest, and those that it goes on from, without recursion: a file may hold a
 * million of them in a row. post: the row that is not known yet; 0: settled. */
static uint32_t settle(struct gwa_job *job, size_t rank, uint32_t of)
{
    struct job_rank *r = &job->ranks[rank];
    uint32_t at = of & ~JOB_LATEST;
    r->latest[at].row = 0;
    while (at) {
        const struct job_latest *l = &r->rows.latest[at - 1];
        uint32_t open = open_term(job, rank, l->on);
        if (open & JOB_LATEST) {
            r->latest[open & ~JOB_LATEST].row = at;
            at = open & ~JOB_LATEST;
            continue;
        }
        if (open)
            return open;
        float modelled = l->host == NEVER ? 0 : (float)((double)l->host - (double)l->since);
        struct coming c = by_host(job, rank, l->host, modelled);
        uint32_t asks = r->latest[at].row;
        raise_to(job, rank, l->on[0].of, l->on[0].after, &c);
        raise_to(job, rank, l->on[1].of, l->on[1].after, &c);
        r->latest[at] = (struct job_latest_end){c.at, c.after, c.modelled};
        at = asks;
    }
    return 0;
}

/* post: the row that keeps it open; 0: none. */
static uint32_t keeps_open(struct gwa_job *job, size_t rank, uint32_t of)
{
    if (of & JOB_LATEST)
        return job->ranks[rank].latest[of & ~JOB_LATEST].end == NEVER ? settle(job, rank, of) : 0;
    return of && gwa_job_row_end(job, rank, of) == NEVER ? of : 0;
}

static bool ready_at(const struct gwa_job *job, size_t rank, const struct job_row *row,
                     struct coming *c)
{
    *c = by_host(job, rank, row->host, row->modelled);
    return raise_to(job, rank, row->on[0], (int64_t)row->after[0], c) &&
           raise_to(job, rank, row->on[1], (int64_t)row->after[1], c);
}

int64_t gwa_job_row_ready(const struct gwa_job *job, size_t rank, uint32_t row)
{
    struct coming c;
    return ready_at(job, rank, row_of(job, rank, row), &c) ? c.at : NEVER;
}

/* What a blocking call showed is what it is; the transfers before say nothing more then. */
static void resolve(struct gwa_job *job, struct job_collective *c)
{
    c->end =
        job_later(c->last, (int64_t)gwa_job_transfer_ns(&job->kinds[c->kind], 1, (double)c->bytes));
    c->path[c->kind].calls++;
    c->path[c->kind].bytes += c->bytes;
    c->anchored = c->shown != NEVER || (c->bound != NEVER && c->end > c->bound);
    if (c->anchored)
        c->end = c->shown != NEVER ? c->shown : c->bound;
}

static void post(struct gwa_job *job, struct job_collective *c, size_t rank,
                 const struct coming *how)
{
    if (c->last == NEVER || how->at > c->last) {
        const struct job_collective *before =
            how->after ? collective_of(job, row_of(job, rank, how->after)) : NULL;
        c->last = how->at;
        c->late = (uint32_t)rank;
        c->modelled = how->modelled + (before && !before->anchored ? before->modelled : 0);
        if (before && !before->anchored)
            memcpy(c->path, before->path, sizeof(c->path));
        else
            memset(c->path, 0, sizeof(c->path));
    }
    if (++c->posted == c->count)
        resolve(job, c);
}

/* post: whether the rank's next row found its place. */
static bool step(struct gwa_job *job, size_t rank)
{
    struct job_rank *r = &job->ranks[rank];
    const struct job_row *row = &r->rows.list[r->cursor];
    struct coming c;
    if (keeps_open(job, rank, row->on[0]) || keeps_open(job, rank, row->on[1]) ||
        !ready_at(job, rank, row, &c) || !raise_to(job, rank, row->before, GAP_NS, &c))
        return false;
    r->starts[r->cursor] = c.at;
    if (collective_of(job, row))
        post(job, &job->collectives[row->number], rank, &c);
    r->cursor++;
    return true;
}

/* Ranks wait for each other in a circle, which real ones do not: recordings that are incomplete.
 * What one of them waits for ends with those that came. */
static bool force(struct gwa_job *job)
{
    struct job_collective *first = NULL;
    for (size_t i = 0; i < job->count; i++) {
        struct job_rank *r = &job->ranks[i];
        if (r->cursor == r->rows.count)
            continue;
        const struct job_row *row = &r->rows.list[r->cursor];
        const uint32_t needs[] = {keeps_open(job, i, row->on[0]), keeps_open(job, i, row->on[1]),
                                  keeps_open(job, i, row->before)};
        for (size_t k = 0; k < 3; k++) {
            if (!needs[k])
                continue;
            struct job_collective *c = &job->collectives[row_of(job, i, needs[k])->number];
            if (!first || c->last < first->last)
                first = c;
        }
    }
    if (first)
        resolve(job, first);
    return first != NULL;
}

void gwa_job_run(struct gwa_job *job)
{
    for (size_t i = 0; i < job->collectives_count; i++) {
        job->collectives[i].posted = 0;
        job->collectives[i].last = job->collectives[i].end = NEVER;
    }
    for (size_t i = 0; i < job->count; i++) {
        job->ranks[i].cursor = 0;
        for (size_t k = 0; k <= job->ranks[i].rows.latest_count; k++)
            job->ranks[i].latest[k] = (struct job_latest_end){.end = NEVER};
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < job->count; i++)
            while (job->ranks[i].cursor < job->ranks[i].rows.count && step(job, i))
                moved = true;
        if (!moved)
            moved = force(job);
    }
    for (size_t i = 0; i < job->count; i++) /* that only calls waited for */
        for (uint32_t k = 1; k <= job->ranks[i].rows.latest_count; k++)
            keeps_open(job, i, JOB_LATEST | k);
}
