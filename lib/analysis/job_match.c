/* Which kernels of NCCL on different ranks belong to one collective: those of one communicator
 * with the same number in it. */
#include "grow.h"
#include "job_internal.h"

#include <math.h>
#include <string.h>

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

/* Open addressing: indices + 1; room is a power of two above twice what it will hold. */
struct table {
    uint32_t *slots;
    size_t room;
};

static int table_new(struct table *t, size_t most)
{
    for (t->room = 64; t->room < 2 * most;)
        t->room *= 2;
    t->slots = calloc(t->room, sizeof(*t->slots));
    return t->slots ? 0 : -ENOMEM;
}

/* ---- communicators ------------------------------------------------------------------ */

static int share(struct gwa_job *job, struct table *t, struct job_comm *c, uint32_t host)
{
    size_t i = mix(0, c->identity) & (t->room - 1);
    if (!c->identity)
        return 0;
    while (t->slots[i] && job->comms[t->slots[i] - 1].identity != c->identity)
        i = (i + 1) & (t->room - 1);
    if (!t->slots[i]) {
        if (gwa_reserve((void **)&job->comms, &job->comms_room, job->comms_count,
                        sizeof(*job->comms)))
            return -ENOMEM;
        job->comms[job->comms_count++] =
            (struct job_shared){.identity = c->identity, .ranks = c->ranks};
        t->slots[i] = (uint32_t)job->comms_count;
    }
    c->shared = t->slots[i] - 1;
    struct job_shared *s = &job->comms[c->shared];
    if (!s->members++)
        s->host = host;
    s->hosts |= s->host != host;
    s->pair |= c->peer >= 0;
    return 0;
}

static int share_all(struct gwa_job *job)
{
    struct table t;
    size_t most = 0;
    int rc;
    for (size_t i = 0; i < job->count; i++)
        most += job->ranks[i].rows.comms_count;
    if ((rc = table_new(&t, most)))
        return rc;
    for (size_t i = 0; i < job->count && !rc; i++)
        for (size_t c = 0; c < job->ranks[i].rows.comms_count && !rc; c++)
            rc = share(job, &t, &job->ranks[i].rows.comms[c], job->ranks[i].host);
    free(t.slots);
    return rc;
}

/* ---- collectives -------------------------------------------------------------------- */

static struct job_collective *collective_of(struct gwa_job *job, struct table *t,
                                            const struct job_row *row, uint32_t comm, size_t *room)
{
    size_t i = mix(mix(1, comm), row->number) & (t->room - 1);
    for (; t->slots[i]; i = (i + 1) & (t->room - 1)) {
        struct job_collective *c = &job->collectives[t->slots[i] - 1];
        if (c->comm == comm && c->number == row->number)
            return c;
    }
    if (gwa_reserve((void **)&job->collectives, room, job->collectives_count,
                    sizeof(*job->collectives)))
        return NULL;
    struct job_collective *c = &job->collectives[job->collectives_count++];
    *c = (struct job_collective){.comm = comm,
                                 .number = row->number,
                                 .op = row->op,
                                 .bytes = row->bytes,
                                 .last = NEVER,
                                 .end = NEVER,
                                 .shown = NEVER,
                                 .bound = NEVER};
    t->slots[i] = (uint32_t)job->collectives_count;
    return c;
}

static int number_rows(struct gwa_job *job, struct table *t)
{
    size_t room = 0;
    for (size_t i = 0; i < job->count; i++) {
        struct job_rows *r = &job->ranks[i].rows;
        for (size_t k = 0; k < r->count; k++) {
            struct job_row *row = &r->list[k];
            uint32_t comm = row->comm == JOB_NO_COMM ? UINT32_MAX : r->comms[row->comm].shared;
            if (comm == UINT32_MAX) {
                row->comm = JOB_NO_COMM;
                continue;
            }
            struct job_collective *c = collective_of(job, t, row, comm, &room);
            if (!c)
                return -ENOMEM;
            job->comms[comm].mixed |= c->op != row->op || row->bytes != c->bytes;
            c->count++;
            row->number = (uint32_t)(c - job->collectives);
        }
    }
    return 0;
}

static int post_rows(struct gwa_job *job)
{
    uint32_t posts = 0;
    for (size_t i = 0; i < job->collectives_count; i++) {
        job->collectives[i].posts = posts;
        posts += job->collectives[i].count;
    }
    job->posts = calloc(posts ? posts : 1, sizeof(*job->posts));
    if (!job->posts)
        return -ENOMEM;
    for (size_t i = 0; i < job->count; i++) {
        struct job_rows *r = &job->ranks[i].rows;
        for (size_t k = 0; k < r->count; k++) {
            if (r->list[k].comm == JOB_NO_COMM)
                continue;
            struct job_collective *c = &job->collectives[r->list[k].number];
            job->posts[c->posts + c->posted++] =
                (struct job_post){.rank = (uint32_t)i, .row = (uint32_t)k};
        }
    }
    return 0;
}

/* A row alone tells nothing of the others. */
static void leave_single(struct gwa_job *job)
{
    for (size_t i = 0; i < job->collectives_count; i++) {
        const struct job_collective *c = &job->collectives[i];
        if (c->count != 1)
            continue;
        const struct job_post *p = &job->posts[c->posts];
        job->ranks[p->rank].rows.list[p->row].comm = JOB_NO_COMM;
    }
}

/* ---- kinds -------------------------------------------------------------------------- */

static bool same_kind(const struct job_kind *a, const struct job_kind *b)
{
    return a->op == b->op && a->ranks == b->ranks && a->hosts == b->hosts;
}

static struct job_kind kind_of(const struct gwa_job *job, const struct job_collective *c)
{
    return (struct job_kind){.op = c->op, .ranks = c->count, .hosts = job->comms[c->comm].hosts};
}

static int by_count(const void *a, const void *b)
{
    const struct job_kind *x = a, *y = b;
    return (x->count < y->count) - (x->count > y->count);
}

#define SEEN 64u /* kinds that are counted */
static void find_kinds(struct gwa_job *job)
{
    struct job_kind seen[SEEN];
    size_t count = 0;
    for (size_t i = 0; i < job->collectives_count; i++) {
        struct job_kind kind = kind_of(job, &job->collectives[i]);
        size_t k = 0;
        if (job->collectives[i].count < 2)
            continue;
        while (k < count && !same_kind(&seen[k], &kind))
            k++;
        if (k == count && count < SEEN)
            seen[count++] = kind;
        if (k < count) {
            seen[k].count++;
            seen[k].largest = fmaxf(seen[k].largest, job->collectives[i].bytes);
        }
    }
    qsort(seen, count, sizeof(*seen), by_count);
    if (count > JOB_KINDS - 1)
        count = JOB_KINDS - 1;
    memcpy(job->kinds, seen, count * sizeof(*seen));
    for (size_t i = 0; i < job->collectives_count; i++) {
        struct job_kind kind = kind_of(job, &job->collectives[i]);
        size_t k = 0;
        while (k < count && !same_kind(&seen[k], &kind))
            k++;
        job->collectives[i].kind = (uint8_t)(k < count ? k : JOB_KINDS - 1);
    }
}

static void mark_waited_for(struct gwa_job *job, const struct job_rows *r, uint32_t row)
{
    if (row && r->list[row - 1].comm != JOB_NO_COMM)
        job->collectives[r->list[row - 1].number].waited_for = true;
}

int gwa_job_match(struct gwa_job *job)
{
    struct table t = {0};
    size_t rows = 0;
    int rc = share_all(job);
    for (size_t i = 0; i < job->count; i++)
        rows += job->ranks[i].rows.count;
    if (!rc && !(rc = table_new(&t, rows)) && !(rc = number_rows(job, &t)))
        rc = post_rows(job);
    free(t.slots);
    if (rc)
        return rc;
    leave_single(job);
    find_kinds(job);
    for (size_t i = 0; i < job->count; i++) {
        const struct job_rows *r = &job->ranks[i].rows;
        for (size_t k = 0; k < r->count; k++)
            mark_waited_for(job, r, r->list[k].base);
        for (size_t k = 0; k < r->seen_count; k++)
            mark_waited_for(job, r, r->seen[k].newest.of);
    }
    return 0;
}
