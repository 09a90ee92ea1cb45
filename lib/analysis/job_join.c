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

/* post: false: not known yet. */
static bool raise_to(const struct gwa_job *job, size_t rank, uint32_t row, int64_t after,
                     int64_t *start)
{
    if (!row)
        return true;
    int64_t end = gwa_job_row_end(job, rank, row);
    if (end == NEVER)
        return false;
    if (end + after > *start)
        *start = end + after;
    return true;
}

static void resolve(struct gwa_job *job, struct job_collective *c)
{
    const struct job_transfer *t = &job->comms[c->comm].transfer[c->op];
    if (c->shown != NEVER) {
        c->end = c->shown;
        return;
    }
    c->end = c->last + (int64_t)gwa_job_transfer_ns(t, (double)c->bytes, 1);
    if (c->bound != NEVER && c->end > c->bound)
        c->end = c->bound > c->last ? c->bound : c->last;
}

/* The last to come decides from when on the data moves: since it came, or since earlier transfers
 * of the same kind began that follow each other. */
static void chain(const struct gwa_job *job, struct job_collective *c, const struct job_row *row,
                  size_t rank, bool behind)
{
    const struct job_collective *before =
        behind ? collective_of(job, row_of(job, rank, row->before)) : NULL;
    c->chain = c->last;
    c->chain_calls = 1;
    c->chain_bytes = c->bytes;
    if (!before || before->comm != c->comm || before->op != c->op || before->shown != NEVER)
        return;
    c->chain = before->chain;
    c->chain_calls += before->chain_calls;
    c->chain_bytes += before->chain_bytes;
}

static void post(struct gwa_job *job, struct job_collective *c, const struct job_row *row,
                 size_t rank, int64_t start, bool behind)
{
    if (c->last == NEVER || start > c->last) {
        c->last = start;
        c->late = (uint32_t)rank;
        chain(job, c, row, rank, behind);
    }
    if (++c->posted == c->count)
        resolve(job, c);
}

/* post: false: not known yet. */
static bool ready_at(const struct gwa_job *job, size_t rank, const struct job_row *row, int64_t *t)
{
    *t = job_common(job_clock_of(job, rank), row->host);
    if (*t == NEVER)
        *t = -((int64_t)1 << 61);
    return raise_to(job, rank, row->on[0], (int64_t)row->after[0], t) &&
           raise_to(job, rank, row->on[1], (int64_t)row->after[1], t);
}

int64_t gwa_job_row_ready(const struct gwa_job *job, size_t rank, uint32_t row)
{
    int64_t t;
    return ready_at(job, rank, row_of(job, rank, row), &t) ? t : NEVER;
}

/* post: whether the rank's next row found its place. */
static bool step(struct gwa_job *job, size_t rank)
{
    struct job_rank *r = &job->ranks[rank];
    const struct job_row *row = &r->rows.list[r->cursor];
    int64_t ready, start;
    if (!ready_at(job, rank, row, &ready))
        return false;
    start = ready;
    if (!raise_to(job, rank, row->before, GAP_NS, &start))
        return false;
    r->starts[r->cursor] = start;
    if (collective_of(job, row))
        post(job, &job->collectives[row->number], row, rank, start, start > ready);
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
