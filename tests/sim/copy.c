/* Copies and memsets: directions from the pointers, pinned or pageable, who waits for whom. */
#include "driver.h"

#include "graph.h"
#include "truth.h"

#include <stdlib.h>
#include <string.h>

/* A pageable copy towards the device up to this size is staged and does not wait. */
#define STAGED_MAX (64u << 10)

static bool on_device(enum sim_memory kind)
{
    return kind == MEM_DEVICE || kind == MEM_MANAGED;
}

void sim_copy_resolve(const struct sim_copy *c, enum sim_direction *direction, bool *pageable)
{
    unsigned from = 0, to = 0;
    /* an address of 0 stands for an array */
    enum sim_memory src = c->src ? sim_memory_kind(c->src, &from) : MEM_DEVICE;
    enum sim_memory dst = c->dst ? sim_memory_kind(c->dst, &to) : MEM_DEVICE;
    if (c->direction >= 0)
        *direction = (enum sim_direction)c->direction;
    else if (on_device(src) && on_device(dst))
        *direction = c->src && c->dst && from != to ? DIR_P2P : DIR_D2D;
    else if (on_device(src))
        *direction = DIR_D2H;
    else
        *direction = on_device(dst) ? DIR_H2D : DIR_H2H;
    *pageable = (*direction == DIR_H2D && src == MEM_PAGEABLE) ||
                (*direction == DIR_D2H && dst == MEM_PAGEABLE) ||
                (*direction == DIR_H2H && (src == MEM_PAGEABLE || dst == MEM_PAGEABLE));
}

/* ---- the bytes themselves --------------------------------------------------------------- */

struct move {
    struct sim_copy copy;
    void *staged;
    bool fill;
    CUDA_MEMSET_NODE_PARAMS set;
};

static void move_bytes(const struct sim_copy *c, const void *staged)
{
    if (!c->dst || (!c->src && !staged) || c->bytes > sim_cfg.data_max)
        return;
    if (!c->height) {
        memmove((void *)c->dst, staged ? staged : (const void *)c->src, c->bytes);
        return;
    }
    for (size_t z = 0; z < c->depth; z++)
        for (size_t y = 0; y < c->height; y++)
            memmove((char *)c->dst + z * c->dst_slice + y * c->dst_pitch,
                    (const char *)c->src + z * c->src_slice + y * c->src_pitch, c->width);
}

static void fill_bytes(const CUDA_MEMSET_NODE_PARAMS *s)
{
    if (s->width * s->height * s->elementSize > sim_cfg.data_max)
        return;
    for (size_t y = 0; y < s->height; y++)
        for (size_t x = 0; x < s->width; x++)
            memcpy((char *)(uintptr_t)s->dst + y * s->pitch + x * s->elementSize, &s->value,
                   s->elementSize);
}

static void run_move(struct sim_op *op)
{
    struct move *m = op->data;
    if (m->fill)
        fill_bytes(&m->set);
    else
        move_bytes(&m->copy, m->staged);
}

static void free_move(void *data)
{
    struct move *m = data;
    free(m->staged);
    free(m);
}

static void attach(struct sim_op *op, const struct move *m)
{
    struct move *copy = malloc(sizeof *copy);
    if (!copy)
        abort();
    *copy = *m;
    op->data = copy;
    op->effect = run_move;
    op->release = free_move;
}

struct sim_op *sim_copy_op(unsigned device, const struct sim_copy *c, bool staged)
{
    static const uint8_t engines[DIR_COUNT] = {ENG_H2D, ENG_D2H, ENG_COMPUTE, ENG_PEER, ENG_NONE};
    enum sim_direction direction;
    bool pageable;
    sim_copy_resolve(c, &direction, &pageable);
    struct sim_op *op = sim_op_new(OP_COPY, device);
    op->direction = (uint8_t)direction;
    op->pageable = pageable;
    op->engine = engines[direction];
    op->demand = 0.6;
    op->bytes = c->bytes;
    op->work = sim_copy_ns(direction, pageable, c->bytes);
    struct move m = {.copy = *c};
    if (staged && c->src && !c->height && c->bytes <= sim_cfg.data_max) {
        m.staged = malloc(c->bytes ? c->bytes : 1);
        if (m.staged)
            memcpy(m.staged, (const void *)c->src, c->bytes);
    }
    attach(op, &m);
    return op;
}

/* The host and the device may both see an H2H copy only in the stream's order. */
int sim_copy(const void *stream, const struct sim_copy *c)
{
    int status;
    enum sim_direction direction;
    bool pageable;
    sim_lock();
    struct sim_stream *s = sim_stream_of(stream, &status);
    if (s)
        status = sim_capture_check(s);
    if (!status && s->capture && c->blocking)
        status = sim_capture_invalidate(s, E_CAP_UNSUPPORTED);
    if (!status && !s->capture && c->blocking)
        status = sim_capture_guard();
    if (status) {
        sim_unlock();
        return status;
    }
    sim_copy_resolve(c, &direction, &pageable);
    if (s->capture) {
        struct sim_node *node = sim_capture_node(s, CU_GRAPH_NODE_TYPE_MEMCPY);
        if (node)
            sim_node_set_copy(node, c);
        sim_unlock();
        return node ? E_OK : E_CAP_INVALIDATED;
    }
    bool staged = pageable && direction == DIR_H2D && c->bytes <= STAGED_MAX;
    struct sim_op *op = sim_copy_op(s->ctx->device, c, staged);
    if (!sim_own_thread())
        sim_truth_copy(direction, pageable, c->bytes);
    sim_op_ref(op);
    if (pageable && !staged) {
        /* the driver waits for the stream, then feeds the device chunk by chunk */
        sim_sync_stream(s);
    }
    sim_submit(s, op);
    bool host_waits = c->blocking && direction != DIR_D2D && direction != DIR_P2P && !staged;
    if (host_waits || (pageable && !staged) || sim_cfg.blocking)
        sim_wait_done(op);
    sim_op_unref(op);
    sim_unlock();
    if (staged) /* into the staging buffer */
        sim_spend((uint64_t)((double)c->bytes / 10.0 / sim_cfg.speed));
    return E_OK;
}

static int linear(int direction, uintptr_t dst, uintptr_t src, size_t n, const void *stream,
                  bool blocking)
{
    struct sim_copy c = {
        .dst = dst, .src = src, .bytes = n, .direction = direction, .blocking = blocking};
    if (!n)
        return sim_ready();
    return sim_copy(stream, &c);
}

#define P(x) ((uintptr_t)(x))

CUresult sim_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
    return linear(-1, dst, src, n, NULL, true);
}

CUresult sim_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream)
{
    return linear(-1, dst, src, n, stream, false);
}

CUresult sim_cuMemcpyWithAttributesAsync(CUdeviceptr dst, CUdeviceptr src, size_t n,
                                         CUmemcpyAttributes *attr, CUstream stream)
{
    (void)attr;
    return linear(-1, dst, src, n, stream, false);
}

CUresult sim_cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t n)
{
    return linear(DIR_H2D, dst, P(src), n, NULL, true);
}

CUresult sim_cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t n, CUstream stream)
{
    return linear(DIR_H2D, dst, P(src), n, stream, false);
}

CUresult sim_cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t n)
{
    return linear(DIR_D2H, P(dst), src, n, NULL, true);
}

CUresult sim_cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t n, CUstream stream)
{
    return linear(DIR_D2H, P(dst), src, n, stream, false);
}

CUresult sim_cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
    return linear(DIR_D2D, dst, src, n, NULL, true);
}

CUresult sim_cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream)
{
    return linear(DIR_D2D, dst, src, n, stream, false);
}

CUresult sim_cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
                          size_t n)
{
    return linear(dst_ctx == src_ctx ? DIR_D2D : DIR_P2P, dst, src, n, NULL, true);
}

CUresult sim_cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src,
                               CUcontext src_ctx, size_t n, CUstream stream)
{
    return linear(dst_ctx == src_ctx ? DIR_D2D : DIR_P2P, dst, src, n, stream, false);
}

/* ---- two and three dimensions ------------------------------------------------------------- */

static int type_direction(CUmemorytype src, CUmemorytype dst)
{
    if (src == CU_MEMORYTYPE_UNIFIED || dst == CU_MEMORYTYPE_UNIFIED)
        return -1;
    if (src == CU_MEMORYTYPE_HOST)
        return dst == CU_MEMORYTYPE_HOST ? DIR_H2H : DIR_H2D;
    return dst == CU_MEMORYTYPE_HOST ? DIR_D2H : DIR_D2D;
}

static uintptr_t side(CUmemorytype type, const void *host, CUdeviceptr device, size_t x, size_t y,
                      size_t z, size_t pitch, size_t slice)
{
    uintptr_t base = type == CU_MEMORYTYPE_HOST    ? P(host)
                     : type == CU_MEMORYTYPE_ARRAY ? 0
                                                   : device;
    return base ? base + x + y * pitch + z * slice : 0;
}

struct sim_copy sim_copy_from_3d(const CUDA_MEMCPY3D *p)
{
    size_t src_slice = p->srcPitch * p->srcHeight, dst_slice = p->dstPitch * p->dstHeight;
    struct sim_copy c = {.direction = type_direction(p->srcMemoryType, p->dstMemoryType),
                         .src = side(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes,
                                     p->srcY, p->srcZ, p->srcPitch, src_slice),
                         .dst = side(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes,
                                     p->dstY, p->dstZ, p->dstPitch, dst_slice),
                         .width = p->WidthInBytes,
                         .height = p->Height,
                         .depth = p->Depth,
                         .bytes = p->WidthInBytes * p->Height * p->Depth,
                         .src_pitch = p->srcPitch,
                         .dst_pitch = p->dstPitch,
                         .src_slice = src_slice,
                         .dst_slice = dst_slice};
    if (c.height == 1 && c.depth == 1)
        c.height = 0; /* linear */
    return c;
}

static int two(const CUDA_MEMCPY2D *p, const void *stream, bool blocking)
{
    if (!p)
        return E_VALUE;
    struct sim_copy c = {.direction = type_direction(p->srcMemoryType, p->dstMemoryType),
                         .src = side(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes,
                                     p->srcY, 0, p->srcPitch, 0),
                         .dst = side(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes,
                                     p->dstY, 0, p->dstPitch, 0),
                         .width = p->WidthInBytes,
                         .height = p->Height,
                         .depth = 1,
                         .bytes = p->WidthInBytes * p->Height,
                         .src_pitch = p->srcPitch,
                         .dst_pitch = p->dstPitch,
                         .blocking = blocking};
    return c.bytes ? sim_copy(stream, &c) : sim_ready();
}

static int three(const CUDA_MEMCPY3D *p, const void *stream, bool blocking)
{
    if (!p)
        return E_VALUE;
    struct sim_copy c = sim_copy_from_3d(p);
    c.blocking = blocking;
    return c.bytes ? sim_copy(stream, &c) : sim_ready();
}

static int peer3(const CUDA_MEMCPY3D_PEER *p, const void *stream, bool blocking)
{
    if (!p)
        return E_VALUE;
    CUDA_MEMCPY3D q;
    _Static_assert(sizeof q == sizeof *p, "the same layout, contexts in the reserved words");
    memcpy(&q, p, sizeof q);
    struct sim_copy c = sim_copy_from_3d(&q);
    if (c.direction == DIR_D2D && p->srcContext != p->dstContext)
        c.direction = DIR_P2P;
    c.blocking = blocking;
    return c.bytes ? sim_copy(stream, &c) : sim_ready();
}

CUresult sim_cuMemcpy2D_v2(const CUDA_MEMCPY2D *parms)
{
    return two(parms, NULL, true);
}

CUresult sim_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *parms)
{
    return two(parms, NULL, true);
}

CUresult sim_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *parms, CUstream stream)
{
    return two(parms, stream, false);
}

CUresult sim_cuMemcpy3D_v2(const CUDA_MEMCPY3D *parms)
{
    return three(parms, NULL, true);
}

CUresult sim_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *parms, CUstream stream)
{
    return three(parms, stream, false);
}

CUresult sim_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *parms)
{
    return peer3(parms, NULL, true);
}

CUresult sim_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *parms, CUstream stream)
{
    return peer3(parms, stream, false);
}

/* ---- batches -------------------------------------------------------------------------------- */

CUresult sim_cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
                                   size_t count, CUmemcpyAttributes *attrs, size_t *attr_firsts,
                                   size_t attr_count, CUstream stream)
{
    (void)attrs, (void)attr_firsts, (void)attr_count;
    for (size_t i = 0; i < count; i++) {
        int status = linear(-1, dsts[i], srcs[i], sizes[i], stream, false);
        if (status)
            return status;
    }
    return E_OK;
}

CUresult sim_cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                CUmemcpyAttributes *attrs, size_t *attr_firsts, size_t attr_count,
                                size_t *fail_index, CUstream stream)
{
    (void)fail_index;
    return sim_cuMemcpyBatchAsync_v2(dsts, srcs, sizes, count, attrs, attr_firsts, attr_count,
                                     stream);
}

static uintptr_t operand(const CUmemcpy3DOperand *o)
{
    return o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY ? 0 : o->op.ptr.ptr;
}

CUresult sim_cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops,
                                     unsigned long long flags, CUstream stream)
{
    (void)flags;
    for (size_t i = 0; i < count; i++) {
        /* extents are in bytes where both sides are pointers */
        size_t n = ops[i].extent.width * ops[i].extent.height * ops[i].extent.depth;
        struct sim_copy c = {
            .dst = operand(&ops[i].dst), .src = operand(&ops[i].src), .bytes = n, .direction = -1};
        int status = n ? sim_copy(stream, &c) : E_OK;
        if (status)
            return status;
    }
    return E_OK;
}

CUresult sim_cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *fail_index,
                                  unsigned long long flags, CUstream stream)
{
    (void)fail_index;
    return sim_cuMemcpy3DBatchAsync_v2(count, ops, flags, stream);
}

/* ---- arrays ------------------------------------------------------------------------------- */

CUresult sim_cuMemcpyHtoA_v2(CUarray dst, size_t offset, const void *src, size_t n)
{
    (void)dst, (void)offset;
    return linear(DIR_H2D, 0, P(src), n, NULL, true);
}

CUresult sim_cuMemcpyHtoAAsync_v2(CUarray dst, size_t offset, const void *src, size_t n,
                                  CUstream stream)
{
    (void)dst, (void)offset;
    return linear(DIR_H2D, 0, P(src), n, stream, false);
}

CUresult sim_cuMemcpyAtoH_v2(void *dst, CUarray src, size_t offset, size_t n)
{
    (void)src, (void)offset;
    return linear(DIR_D2H, P(dst), 0, n, NULL, true);
}

CUresult sim_cuMemcpyAtoHAsync_v2(void *dst, CUarray src, size_t offset, size_t n, CUstream stream)
{
    (void)src, (void)offset;
    return linear(DIR_D2H, P(dst), 0, n, stream, false);
}

CUresult sim_cuMemcpyDtoA_v2(CUarray dst, size_t offset, CUdeviceptr src, size_t n)
{
    (void)dst, (void)offset;
    return linear(DIR_D2D, 0, src, n, NULL, true);
}

CUresult sim_cuMemcpyAtoD_v2(CUdeviceptr dst, CUarray src, size_t offset, size_t n)
{
    (void)src, (void)offset;
    return linear(DIR_D2D, dst, 0, n, NULL, true);
}

CUresult sim_cuMemcpyAtoA_v2(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset,
                             size_t n)
{
    (void)dst, (void)dst_offset, (void)src, (void)src_offset;
    return linear(DIR_D2D, 0, 0, n, NULL, true);
}

/* ---- memsets -------------------------------------------------------------------------------- */

struct sim_op *sim_memset_op(unsigned device, uintptr_t dst, uint64_t bytes)
{
    (void)dst;
    struct sim_op *op = sim_op_new(OP_MEMSET, device);
    op->engine = ENG_COMPUTE;
    op->demand = 0.3;
    op->bytes = bytes;
    op->work = sim_memset_ns(bytes);
    return op;
}

struct sim_op *sim_memset_node_op(unsigned device, const CUDA_MEMSET_NODE_PARAMS *p)
{
    struct sim_op *op = sim_memset_op(device, p->dst, p->width * p->height * p->elementSize);
    struct move m = {.fill = true, .set = *p};
    attach(op, &m);
    return op;
}

static int set(const CUDA_MEMSET_NODE_PARAMS *p, const void *stream, bool blocking)
{
    int status;
    if (!p->width || !p->height)
        return sim_ready();
    sim_lock();
    struct sim_stream *s = sim_stream_of(stream, &status);
    if (s)
        status = sim_capture_check(s);
    if (!status && s->capture) {
        struct sim_node *node = sim_capture_node(s, CU_GRAPH_NODE_TYPE_MEMSET);
        if (node)
            node->memset = *p;
        else
            status = E_CAP_INVALIDATED;
    } else if (!status) {
        struct sim_op *op = sim_memset_node_op(s->ctx->device, p);
        enum sim_memory kind = sim_memory_kind(p->dst, NULL);
        if (!sim_own_thread())
            sim_truth_memset(p->width * p->height * p->elementSize);
        sim_op_ref(op);
        sim_submit(s, op);
        /* memory that the host sees: done when the call returns */
        if ((blocking && kind != MEM_DEVICE) || sim_cfg.blocking)
            sim_wait_done(op);
        sim_op_unref(op);
    }
    sim_unlock();
    return status;
}

#define SET(name, type, size)                                                                      \
    CUresult sim_cuMemset##name##_v2(CUdeviceptr ptr, type value, size_t n)                        \
    {                                                                                              \
        CUDA_MEMSET_NODE_PARAMS p = {ptr, n * size, value, size, n, 1};                            \
        return set(&p, NULL, true);                                                                \
    }                                                                                              \
    CUresult sim_cuMemset##name##Async(CUdeviceptr ptr, type value, size_t n, CUstream stream)     \
    {                                                                                              \
        CUDA_MEMSET_NODE_PARAMS p = {ptr, n * size, value, size, n, 1};                            \
        return set(&p, stream, false);                                                             \
    }                                                                                              \
    CUresult sim_cuMemsetD2##name##_v2(CUdeviceptr ptr, size_t pitch, type value, size_t width,    \
                                       size_t height)                                              \
    {                                                                                              \
        CUDA_MEMSET_NODE_PARAMS p = {ptr, pitch, value, size, width, height};                      \
        return set(&p, NULL, true);                                                                \
    }                                                                                              \
    CUresult sim_cuMemsetD2##name##Async(CUdeviceptr ptr, size_t pitch, type value, size_t width,  \
                                         size_t height, CUstream stream)                           \
    {                                                                                              \
        CUDA_MEMSET_NODE_PARAMS p = {ptr, pitch, value, size, width, height};                      \
        return set(&p, stream, false);                                                             \
    }

SET(D8, unsigned char, 1)
SET(D16, unsigned short, 2)
SET(D32, unsigned int, 4)

CUresult sim_cuMemPrefetchAsync_v2(CUdeviceptr ptr, size_t n, CUmemLocation place,
                                   unsigned int flags, CUstream stream)
{
    int status;
    (void)ptr, (void)place, (void)flags;
    sim_lock();
    struct sim_stream *s = sim_stream_of(stream, &status);
    if (s)
        status = sim_capture_check(s);
    if (!status && s->capture)
        status = sim_capture_invalidate(s, E_CAP_UNSUPPORTED);
    if (!status) {
        /* pages move, but no copy that a referee would list */
        struct sim_op *op = sim_op_new(OP_COPY, s->ctx->device);
        op->engine = ENG_H2D;
        op->bytes = n;
        op->own = true;
        op->work = sim_copy_ns(DIR_H2D, false, n) * 2;
        sim_submit(s, op);
    }
    sim_unlock();
    return status;
}

CUresult sim_cuMemPrefetchAsync(CUdeviceptr ptr, size_t n, CUdevice dev, CUstream stream)
{
    CUmemLocation place = {CU_MEM_LOCATION_TYPE_DEVICE, dev};
    return sim_cuMemPrefetchAsync_v2(ptr, n, place, 0, stream);
}
