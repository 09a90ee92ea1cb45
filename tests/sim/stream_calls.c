/* Streams, events, waiting: the calls. What they do is in stream.c. */
#include "driver.h"

/* ---- streams --------------------------------------------------------------------------------- */

CUresult sim_cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    sim_lock();
    int status = sim_ready();
    struct sim_ctx *ctx = sim_ctx_current();
    if (!status && !ctx)
        status = E_CONTEXT;
    if (!status && (!stream || flags > 1))
        status = E_VALUE;
    if (!status)
        *stream = (CUstream)(void *)sim_stream_new(ctx, flags, priority);
    sim_unlock();
    return status;
}

CUresult sim_cuStreamCreate(CUstream *stream, unsigned int flags)
{
    return sim_cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult sim_cuStreamDestroy_v2(CUstream stream)
{
    int status;
    sim_lock();
    struct sim_stream *s = (uintptr_t)stream > 2 ? sim_stream_of(stream, &status) : NULL;
    if ((uintptr_t)stream <= 2)
        status = E_HANDLE;
    if (s)
        sim_stream_destroy(s);
    sim_unlock();
    return status;
}

CUresult sim_cuStreamDestroy(CUstream stream)
{
    return sim_cuStreamDestroy_v2(stream);
}

#define STREAM_GET(expression)                                                                     \
    int status;                                                                                    \
    sim_lock();                                                                                    \
    struct sim_stream *s = sim_stream_of(stream, &status);                                         \
    if (s)                                                                                         \
        expression;                                                                                \
    sim_unlock();                                                                                  \
    return status

CUresult sim_cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
    STREAM_GET(*flags = s->flags);
}

CUresult sim_cuStreamGetPriority(CUstream stream, int *priority)
{
    STREAM_GET(*priority = s->priority);
}

CUresult sim_cuStreamGetCtx(CUstream stream, CUcontext *ctx)
{
    STREAM_GET(*ctx = (CUcontext)(void *)s->ctx);
}

CUresult sim_cuStreamGetId(CUstream stream, unsigned long long *id)
{
    STREAM_GET(*id = s->id);
}

CUresult sim_cuStreamGetDevice(CUstream stream, CUdevice *dev)
{
    STREAM_GET(*dev = (int)s->ctx->device);
}

/* ---- waiting ------------------------------------------------------------------------------------
 */

/* Streams in capture cannot be waited for, nor can anything while a capture forbids it. */
static int sync_check(const struct sim_stream *s)
{
    if (s && s->capture)
        return sim_capture_invalidate((struct sim_stream *)s, E_CAP_UNSUPPORTED);
    return sim_capture_guard();
}

CUresult sim_cuCtxSynchronize(void)
{
    sim_lock();
    int status = sim_ready();
    struct sim_ctx *ctx = sim_ctx_current();
    if (!status && !ctx)
        status = E_CONTEXT;
    if (!status)
        status = sync_check(NULL);
    for (struct sim_stream *s = ctx && !status ? ctx->streams : NULL; s; s = s->next)
        if (s->capture)
            status = sync_check(s);
    if (!status)
        sim_sync_ctx(ctx);
    sim_unlock();
    return status;
}

CUresult sim_cuCtxSynchronize_v2(CUcontext ctx)
{
    if (!ctx)
        return sim_cuCtxSynchronize();
    sim_lock();
    int status = sim_ctx_of(ctx) ? sync_check(NULL) : E_CONTEXT;
    if (!status)
        sim_sync_ctx(sim_ctx_of(ctx));
    sim_unlock();
    return status;
}

CUresult sim_cuStreamSynchronize(CUstream stream)
{
    int status;
    sim_lock();
    struct sim_stream *s = sim_stream_of(stream, &status);
    if (s)
        status = sync_check(s);
    if (!status && s == &s->ctx->legacy) {
        /* the legacy stream: all blocking streams' work before it too */
        struct sim_op *op = sim_op_new(OP_MARK, s->ctx->device);
        sim_op_ref(op);
        sim_submit(s, op);
        sim_wait_done(op);
        sim_op_unref(op);
    } else if (!status) {
        sim_sync_stream(s);
    }
    sim_unlock();
    return status;
}

CUresult sim_cuStreamQuery(CUstream stream)
{
    int status;
    sim_lock();
    struct sim_stream *s = sim_stream_of(stream, &status);
    if (s)
        status = sync_check(s);
    if (!status) {
        sim_device_run(sim_clock());
        bool done = !s->tail || s->tail->state == ST_DONE;
        for (struct sim_stream *o = s->ctx->streams; done && s == &s->ctx->legacy && o; o = o->next)
            done = (o->flags & 1) || !o->tail || o->tail->state == ST_DONE;
        status = done ? E_OK : E_NOT_READY;
    }
    sim_unlock();
    return status;
}

/* ---- events
 * -------------------------------------------------------------------------------------- */

CUresult sim_cuEventCreate(CUevent *event, unsigned int flags)
{
    sim_lock();
    int status = sim_ready();
    if (!status && !sim_ctx_current())
        status = E_CONTEXT;
    if (!status)
        *event = (CUevent)(void *)sim_event_new(flags);
    sim_unlock();
    return status;
}

CUresult sim_cuEventDestroy_v2(CUevent event)
{
    sim_lock();
    struct sim_event *e = sim_event_of(event);
    if (e)
        sim_event_free(e);
    sim_unlock();
    return e ? E_OK : E_HANDLE;
}

CUresult sim_cuEventDestroy(CUevent event)
{
    return sim_cuEventDestroy_v2(event);
}

CUresult sim_cuEventRecord(CUevent event, CUstream stream)
{
    int status;
    sim_lock();
    struct sim_stream *s = sim_stream_of(stream, &status);
    struct sim_event *e = sim_event_of(event);
    if (!status)
        status = e ? sim_event_record(s, e) : E_HANDLE;
    sim_unlock();
    return status;
}

CUresult sim_cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
    if (!(flags & CU_EVENT_RECORD_EXTERNAL))
        return sim_cuEventRecord(event, stream);
    int status;
    sim_lock();
    struct sim_stream *s = sim_stream_of(stream, &status);
    struct sim_event *e = sim_event_of(event);
    if (!status && !e)
        status = E_HANDLE;
    if (!status && !s->capture)
        status = E_VALUE; /* external: only as a node of its own */
    if (!status)
        status = sim_capture_external(s, e, true);
    sim_unlock();
    return status;
}

CUresult sim_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    int status;
    sim_lock();
    struct sim_stream *s = sim_stream_of(stream, &status);
    struct sim_event *e = sim_event_of(event);
    if (!status && !e)
        status = E_HANDLE;
    if (!status)
        status = s->capture && (flags & CU_EVENT_WAIT_EXTERNAL) ? sim_capture_external(s, e, false)
                                                                : sim_event_wait(s, e);
    sim_unlock();
    return status;
}

static int event_check(const struct sim_event *e)
{
    int status = sim_ready();
    if (status || !e)
        return status ? status : E_HANDLE;
    if (e->own)
        sim_own_call();
    if (e->capture_id) { /* never runs: its capture is disturbed, whatever the thread's mode */
        sim_capture_disturb(e->capture_id);
        return E_CAP_EVENT;
    }
    return sim_capture_guard();
}

CUresult sim_cuEventQuery(CUevent event)
{
    sim_lock();
    struct sim_event *e = sim_event_of(event);
    int status = event_check(e);
    if (!status) {
        sim_device_run(sim_clock());
        status = !e->op || e->op->state == ST_DONE ? E_OK : E_NOT_READY;
    }
    sim_unlock();
    return status;
}

CUresult sim_cuEventSynchronize(CUevent event)
{
    sim_lock();
    struct sim_event *e = sim_event_of(event);
    int status = event_check(e);
    if (!status && e->op)
        sim_wait_done(e->op);
    bool sleeps = !status && (e->flags & CU_EVENT_BLOCKING_SYNC);
    sim_unlock();
    if (sleeps) /* woken by an interrupt */
        sim_spend((uint64_t)(18000.0 / sim_cfg.speed));
    return status;
}

CUresult sim_cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    sim_lock();
    struct sim_event *a = sim_event_of(from), *b = sim_event_of(to);
    int status = sim_ready();
    if (!status && (!a || !b || !a->op || !b->op || (a->flags & 2) || (b->flags & 2)))
        status = E_HANDLE;
    if (!status) {
        sim_device_run(sim_clock());
        if (a->op->state != ST_DONE || b->op->state != ST_DONE)
            status = E_NOT_READY;
        else
            *ms = (float)((double)((int64_t)b->op->value - (int64_t)a->op->value) / 1e6);
    }
    sim_unlock();
    return status;
}

CUresult sim_cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to)
{
    return sim_cuEventElapsedTime(ms, from, to);
}

/* ---- values in memory
 * -------------------------------------------------------------------------------- */

static void write_value(struct sim_op *op)
{
    __atomic_store_n((uint32_t *)op->data, (uint32_t)op->value, __ATOMIC_RELEASE);
}

static int value_op(CUstream stream, CUdeviceptr ptr, uint64_t value, enum sim_op_type type)
{
    int status;
    sim_lock();
    struct sim_stream *s = sim_stream_of(stream, &status);
    if (s)
        status = sim_capture_check(s);
    if (!status && s->capture) {
        sim_capture_node(s, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    } else if (!status) {
        struct sim_op *op = sim_op_new(type, s->ctx->device);
        op->data = (void *)(uintptr_t)ptr;
        op->value = value;
        if (type == OP_WRITE_VALUE)
            op->effect = write_value;
        sim_submit(s, op);
    }
    sim_unlock();
    return status;
}

#define VALUE(name, type, width, op)                                                               \
    CUresult sim_cuStream##name##width(CUstream stream, CUdeviceptr ptr, type value,               \
                                       unsigned int flags)                                         \
    {                                                                                              \
        (void)flags;                                                                               \
        return value_op(stream, ptr, value, op);                                                   \
    }                                                                                              \
    CUresult sim_cuStream##name##width##_v2(CUstream stream, CUdeviceptr ptr, type value,          \
                                            unsigned int flags)                                    \
    {                                                                                              \
        (void)flags;                                                                               \
        return value_op(stream, ptr, value, op);                                                   \
    }

VALUE(WaitValue, cuuint32_t, 32, OP_WAIT_VALUE)
VALUE(WaitValue, cuuint64_t, 64, OP_WAIT_VALUE)
VALUE(WriteValue, cuuint32_t, 32, OP_WRITE_VALUE)
VALUE(WriteValue, cuuint64_t, 64, OP_WRITE_VALUE)
