/* Contexts, streams and events, and what is ordered behind what. */
#include "core.h"

#include "truth.h"

#include <stdlib.h>
#include <string.h>

static struct sim_pool stream_pool = {.size = sizeof(struct sim_stream)};
static struct sim_pool event_pool = {.size = sizeof(struct sim_event)};
static struct sim_pool ctx_pool = {.size = sizeof(struct sim_ctx)};
static struct sim_ctx *contexts;
static struct sim_ctx *primary[8];
static unsigned lanes;
static uint64_t stream_ids = 1;

/* ---- contexts -------------------------------------------------------------------------- */

static void stream_init(struct sim_stream *s, struct sim_ctx *ctx, unsigned flags, int priority)
{
    s->magic = MAGIC_STREAM;
    s->ctx = ctx;
    s->flags = flags;
    s->priority = priority;
    s->id = stream_ids++;
    s->lane.queue = sim_cfg.queues ? lanes++ % sim_cfg.queues : 0;
}

struct sim_ctx *sim_ctx_new(unsigned device, unsigned flags)
{
    struct sim_ctx *ctx = sim_pool_get(&ctx_pool);
    ctx->magic = MAGIC_CTX;
    ctx->device = device;
    ctx->flags = flags;
    ctx->refs = 1;
    stream_init(&ctx->legacy, ctx, 0, 0);
    ctx->next = contexts;
    contexts = ctx;
    return ctx;
}

struct sim_ctx *sim_ctx_primary(unsigned device)
{
    if (!primary[device]) {
        primary[device] = sim_ctx_new(device, 0);
        primary[device]->primary = true;
        primary[device]->refs = 0;
    }
    return primary[device];
}

struct sim_ctx *sim_ctx_current(void)
{
    struct sim_thread *t = sim_thread();
    return t->depth ? t->stack[t->depth - 1] : NULL;
}

static void stream_free(struct sim_stream *s)
{
    struct sim_stream **p = &s->ctx->streams;
    while (*p && *p != s)
        p = &(*p)->next;
    if (*p)
        *p = s->next;
    sim_capture_drop(s);
    sim_op_unref(s->tail);
    free(s->ahead);
    sim_pool_put(&stream_pool, s);
}

void sim_ctx_free(struct sim_ctx *ctx)
{
    sim_sync_ctx(ctx);
    while (ctx->streams)
        stream_free(ctx->streams);
    sim_op_unref(ctx->legacy.tail);
    struct sim_ctx **p = &contexts;
    while (*p && *p != ctx)
        p = &(*p)->next;
    if (*p)
        *p = ctx->next;
    if (ctx->primary)
        primary[ctx->device] = NULL;
    sim_pool_put(&ctx_pool, ctx);
}

/* ---- streams ----------------------------------------------------------------------------- */

struct sim_stream *sim_stream_new(struct sim_ctx *ctx, unsigned flags, int priority)
{
    struct sim_stream *s = sim_pool_get(&stream_pool);
    stream_init(s, ctx, flags, priority);
    s->next = ctx->streams;
    ctx->streams = s;
    return s;
}

/* What runs is let finish, as cudaStreamDestroy promises. */
void sim_stream_destroy(struct sim_stream *s)
{
    stream_free(s);
}

static struct sim_stream *per_thread_stream(struct sim_ctx *ctx)
{
    struct sim_thread *t = sim_thread();
    for (unsigned i = 0; i < 8; i++) {
        if (t->defaults[i].ctx == ctx)
            return t->defaults[i].stream;
        if (!t->defaults[i].ctx) {
            t->defaults[i].ctx = ctx;
            return t->defaults[i].stream = sim_stream_new(ctx, 0, 0);
        }
    }
    return &ctx->legacy;
}

struct sim_stream *sim_stream_of(const void *handle, int *status)
{
    struct sim_ctx *ctx = sim_ctx_current();
    struct sim_thread *t = sim_thread();
    *status = sim_ready();
    if (*status)
        return NULL;
    if (!ctx) {
        *status = E_CONTEXT;
        return NULL;
    }
    if (handle == (void *)2 || (!handle && t->top && t->top->per_thread))
        return per_thread_stream(ctx);
    if (!handle || handle == (void *)1)
        return &ctx->legacy;
    struct sim_stream *s = (struct sim_stream *)handle;
    if (s->magic != MAGIC_STREAM) {
        *status = E_HANDLE;
        return NULL;
    }
    return s;
}

/* ---- order ------------------------------------------------------------------------------ */

void sim_follow(struct sim_stream *s, struct sim_op *op)
{
    sim_op_after(op, s->tail);
    if (s == &s->ctx->legacy) {
        /* the legacy default stream waits for every blocking stream of its context */
        for (struct sim_stream *o = s->ctx->streams; o; o = o->next)
            if (!(o->flags & 1) && o->tail && o->tail->state != ST_DONE)
                sim_op_after(op, o->tail);
    } else if (!(s->flags & 1) && s->ctx->legacy.tail && s->ctx->legacy.tail->state != ST_DONE) {
        sim_op_after(op, s->ctx->legacy.tail);
    }
}

void sim_submit(struct sim_stream *s, struct sim_op *op)
{
    sim_device_run(sim_clock());
    while (s->lane.waiting >= sim_cfg.depth && s->tail) {
        /* the launch queue is full: the call returns when one entry has been taken */
        unsigned before = s->lane.waiting;
        int64_t next;
        while (s->lane.waiting >= before && (next = sim_device_next()) != SIM_NEVER)
            sim_wait_until(next);
        if (s->lane.waiting >= before)
            break;
    }
    op->stream = s;
    op->counted = sim_truth_active();
    op->own |= sim_own_thread();
    sim_follow(s, op);
    struct sim_op *old = s->tail;
    s->tail = sim_op_ref(op);
    sim_op_unref(old);
    sim_op_submit(op, sim_clock(), &s->lane);
    sim_op_unref(op);
}

void sim_sync_stream(struct sim_stream *s)
{
    sim_device_run(sim_clock());
    if (s->tail)
        sim_wait_done(s->tail);
}

void sim_sync_ctx(struct sim_ctx *ctx)
{
    sim_device_run(sim_clock());
    /* one wake-up, after the last of them */
    struct sim_op *last = NULL;
    for (struct sim_stream *s = &ctx->legacy; s; s = s == &ctx->legacy ? ctx->streams : s->next) {
        if (!s->tail || s->tail->state == ST_DONE)
            continue;
        if (last) {
            struct sim_op *join = sim_op_new(OP_MARK, ctx->device);
            sim_op_after(join, last);
            sim_op_after(join, s->tail);
            sim_op_submit(join, sim_clock(), NULL);
            sim_op_unref(last);
            last = join;
        } else {
            last = sim_op_ref(s->tail);
        }
    }
    if (last) {
        sim_wait_done(last);
        sim_op_unref(last);
    }
}

void sim_sync_device(unsigned device)
{
    for (struct sim_ctx *c = contexts; c; c = c->next)
        if (c->device == device)
            sim_sync_ctx(c);
}

/* ---- events ------------------------------------------------------------------------------- */

struct sim_event *sim_event_new(unsigned flags)
{
    struct sim_event *e = sim_pool_get(&event_pool);
    e->magic = MAGIC_EVENT;
    e->flags = flags;
    e->own = sim_own_thread();
    return e;
}

struct sim_event *sim_event_of(const void *handle)
{
    struct sim_event *e = (struct sim_event *)handle;
    return e && e->magic == MAGIC_EVENT ? e : NULL;
}

void sim_event_free(struct sim_event *e)
{
    sim_op_unref(e->op);
    free(e->nodes);
    sim_pool_put(&event_pool, e);
}

int sim_event_record(struct sim_stream *s, struct sim_event *e)
{
    int status = sim_capture_check(s);
    if (e->own)
        sim_own_call();
    if (status)
        return status;
    if (s->capture) {
        sim_capture_event(s, e);
        return E_OK;
    }
    struct sim_op *op = sim_op_new(OP_EVENT, s->ctx->device);
    op->timing = !(e->flags & 2);
    sim_op_unref(e->op);
    e->op = sim_op_ref(op);
    e->capture_id = 0;
    sim_submit(s, op);
    return E_OK;
}

int sim_event_wait(struct sim_stream *s, struct sim_event *e)
{
    if (s->capture || e->capture_id)
        return sim_capture_wait(s, e);
    int status = sim_capture_check(s);
    if (status)
        return status;
    if (!e->op || e->op->state == ST_DONE)
        return E_OK;
    struct sim_op *op = sim_op_new(OP_MARK, s->ctx->device);
    sim_op_after(op, e->op);
    sim_submit(s, op);
    return E_OK;
}
