/* The job in time: every rank's stream comes to its collectives when what it waits for has ended,
 * and a collective ends when the last has come and the data has moved. */
#include "job_internal.h"

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

/* post: false: not known yet. */
static bool raise_to(const struct gwa_job *job, size_t rank, uint32_t row, int64_t after,
                     struct coming *c)
{
    if (!row)
        return true;
    int64_t end = gwa_job_row_end(job, rank, row);
    if (end == NEVER)
        return false;
    if (end + after > c->at)
        *c = (struct coming){.at = end + after, .after = row, .modelled = (float)after};
    return true;
}

static bool ready_at(const struct gwa_job *job, size_t rank, const struct job_row *row,
                     struct coming *c)
{
    *c = (struct coming){.at = job_common(job_clock_of(job, rank), row->host),
                         .modelled = row->modelled};
    if (c->at == NEVER)
        c->at = -((int64_t)1 << 61);
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
    c->end = c->last + (int64_t)gwa_job_transfer_ns(&job->kinds[c->kind], 1, (double)c->bytes);
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
    if (!ready_at(job, rank, row, &c) || !raise_to(job, rank, row->before, GAP_NS, &c))
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
        const uint32_t needs[] = {row->on[0], row->on[1], row->before};
        for (size_t k = 0; k < 3; k++) {
            if (!needs[k] || gwa_job_row_end(job, i, needs[k]) != NEVER)
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
    for (size_t i = 0; i < job->count; i++)
        job->ranks[i].cursor = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < job->count; i++)
            while (job->ranks[i].cursor < job->ranks[i].rows.count && step(job, i))
                moved = true;
        if (!moved)
            moved = force(job);
    }
}
