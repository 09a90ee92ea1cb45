/* Which calls of NCCL each of its kernels serves. A kernel is launched inside its call, which
 * returns after it; in a group, inside the group's end, after all calls have returned. */
#include "grow.h"
#include "job_internal.h"
#include "kinds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PENDING 64u   /* calls of a group that are remembered */
#define COMMS   4096u /* that are told apart, pairs of ranks too */
#define NO_OP   0xff

struct job_call { /* of NCCL, in an open group */
    uint64_t bytes;
    uint32_t comm; /* index in rows->comms */
    uint32_t number;
    int peer;
    uint16_t stream;
    uint8_t op;
};

struct job_thread {
    struct job_call *pending; /* PENDING of them */
    size_t pending_count;
    unsigned depth; /* of groups */
    uint32_t row;   /* of the newest kernel, for which no call was seen yet; 0: none */
    int64_t row_t0;
};

/* ---- operations by name ------------------------------------------------------------- */

const char *gwa_job_op_name(unsigned op)
{
    static const char *const names[] = {
#define X(id, name, factor) name,
        JOB_OPS(X)
#undef X
    };
    return op < JOB_OP_COUNT ? names[op] : "unknown";
}

double gwa_job_op_factor(unsigned op, double n)
{
    switch (op) {
#define X(id, name, factor)                                                                        \
    case JOB_##id:                                                                                 \
        return factor;
        JOB_OPS(X)
#undef X
    default:
        return NAN;
    }
}

static uint8_t op_of_name(const char *name)
{
    static const struct {
        const char *name;
        uint8_t op;
    } others[] = {{"Bcast", JOB_BROADCAST}, {"Send", JOB_SEND_RECV}, {"Recv", JOB_SEND_RECV}};
    if (!name || strncmp(name, "nccl", 4))
        return NO_OP;
    name += 4;
    size_t length = strlen(name), config = strlen("Config");
    if (length > config && !strcmp(name + length - config, "Config"))
        length -= config;
    for (unsigned op = 0; op < JOB_OTHER; op++)
        if (strlen(gwa_job_op_name(op)) == length && !strncmp(name, gwa_job_op_name(op), length))
            return (uint8_t)(op + 1);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (strlen(others[i].name) == length && !strncmp(name, others[i].name, length))
            return others[i].op + 1;
    return NO_OP; /* one-sided: nobody waits in it */
}

static uint8_t op_of(struct job_calls *s, uint16_t api)
{
    if (!s->ops[api])
        s->ops[api] = op_of_name(gwt_api_name(s->trace, api));
    return s->ops[api];
}

/* ---- communicators ------------------------------------------------------------------ */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

/* peer: -1: the collectives'. post: its index; JOB_NO_COMM: too many, or no memory. */
static uint32_t comm_of(struct job_calls *s, uint32_t id, int peer)
{
    struct job_rows *r = s->rows;
    size_t i = 0;
    while (i < r->comms_count && (r->comms[i].id != id || r->comms[i].peer != peer))
        i++;
    if (i < r->comms_count)
        return (uint32_t)i;
    if (i == COMMS || gwa_reserve((void **)&r->comms, &r->comms_room, i, sizeof(*r->comms)))
        return JOB_NO_COMM;
    const struct gwt_def_comm *def = gwt_comm(s->trace, id);
    struct job_comm *c = &r->comms[i];
    *c = (struct job_comm){.id = id, .peer = peer, .ranks = -1, .rank = -1, .shared = UINT32_MAX};
    if (def) {
        c->identity = def->identity;
        c->rank = def->rank;
        c->ranks = def->ranks > 0 ? def->ranks : -1;
    }
    if (peer >= 0) {
        int low = c->rank < peer ? c->rank : peer, high = c->rank < peer ? peer : c->rank;
        /* who it is itself is not known: nor is the pair */
        c->identity = c->identity && low >= 0 && low != high
                          ? mix(mix(c->identity, (uint64_t)low + 1), (uint64_t)high + 1)
                          : 0;
        c->ranks = 2;
    }
    r->comms_count++;
    return (uint32_t)i;
}

/* ---- threads, calls and their kernels ----------------------------------------------- */

static int thread_of(struct job_calls *s, uint32_t id, struct job_thread **out)
{
    int rc = gwa_grow((void **)&s->threads, &s->threads_count, id, sizeof(*s->threads));
    *out = rc ? NULL : &s->threads[id];
    return rc == -ERANGE ? 0 : rc;
}

static void claim(struct job_calls *s, struct job_row *row, const struct job_call *c)
{
    struct job_comm *comm = &s->rows->comms[c->comm];
    if (!row->calls) {
        row->op = c->op;
        row->comm = comm->identity ? (uint16_t)c->comm : JOB_NO_COMM;
        row->number = c->number;
    }
    row->bytes += (float)c->bytes;
    row->calls += row->calls < UINT8_MAX;
}

/* The kernel serves what the group asked of one communicator on its stream. */
static void claim_group(struct job_calls *s, struct job_thread *t, struct job_row *row,
                        uint16_t stream)
{
    const struct job_comm *comms = s->rows->comms;
    uint32_t id = 0, comm = 0;
    size_t kept = 0;
    bool any = false, mixed = false;
    for (size_t i = 0; i < t->pending_count; i++) {
        struct job_call c = t->pending[i];
        if (c.stream != stream || (any && comms[c.comm].id != id)) {
            t->pending[kept++] = c;
            continue;
        }
        mixed |= any && c.comm != comm;
        any = true;
        comm = c.comm;
        id = comms[comm].id;
        claim(s, row, &c);
    }
    t->pending_count = kept;
    if (mixed) /* with several others: which of them it waits for longest is not known */
        row->comm = JOB_NO_COMM;
}

int gwa_job_calls_nccl(struct job_calls *s, const struct gwt_event *e)
{
    struct job_thread *t;
    uint8_t op = op_of(s, e->api);
    if (op == NO_OP || !gwa_executed(e))
        return 0;
    int rc = thread_of(s, e->thread, &t);
    op--;
    uint32_t comm = comm_of(s, GWT_COMM(e->arg), op == JOB_SEND_RECV ? GWT_COMM_PEER(e->arg) : -1);
    if (rc || !t || comm == JOB_NO_COMM)
        return rc;
    struct job_call c = {.bytes = e->value,
                         .comm = comm,
                         .number = s->rows->comms[comm].next++,
                         .stream = e->stream,
                         .op = op};
    if (op == JOB_SEND_RECV && GWT_COMM_PEER(e->arg) < 0)
        s->rows->comms[comm].identity = 0; /* of an old dump: with whom is not known */
    if (t->row && t->row_t0 >= e->t0_ns) {
        claim(s, &s->rows->list[t->row - 1], &c);
        t->row = 0;
    } else if (t->depth) {
        if (!t->pending && !(t->pending = calloc(PENDING, sizeof(*t->pending))))
            return -ENOMEM;
        if (t->pending_count < PENDING)
            t->pending[t->pending_count++] = c;
    }
    return 0;
}

int gwa_job_calls_group(struct job_calls *s, const struct gwt_event *e)
{
    struct job_thread *t;
    const char *name = gwt_api_name(s->trace, e->api);
    int rc = thread_of(s, e->thread, &t);
    if (!t || !name)
        return rc;
    if (!strcmp(name, "ncclGroupStart")) {
        t->depth++;
    } else if (t->depth && !--t->depth) {
        t->pending_count = 0;
        t->row = 0;
    }
    return 0;
}

/* ---- its kernels ---------------------------------------------------------------------- */

int gwa_job_calls_kernel(struct job_calls *s, const struct gwt_event *e)
{
    struct job_rows *r = s->rows;
    struct job_thread *t;
    int rc = thread_of(s, e->thread, &t);
    if (rc || !t)
        return rc;
    if (t->pending_count) {
        claim_group(s, t, &r->list[r->count - 1], e->stream);
    } else {
        t->row = (uint32_t)r->count;
        t->row_t0 = e->t0_ns;
    }
    return 0;
}

int gwa_job_calls_init(struct job_calls *s, const struct gwt_trace *trace, struct job_rows *rows)
{
    *s = (struct job_calls){.trace = trace, .rows = rows, .ops = calloc(UINT16_MAX + 1, 1)};
    return s->ops ? 0 : -ENOMEM;
}

void gwa_job_calls_free(struct job_calls *s)
{
    for (size_t i = 0; i < s->threads_count; i++)
        free(s->threads[i].pending);
    free(s->threads);
    free(s->ops);
}
