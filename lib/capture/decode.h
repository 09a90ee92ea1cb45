/* The vocabulary of the call table: what a row's BEFORE and AFTER macros do.
 *
 * In scope inside a wrapper: `f`, the frame that becomes the record (a driver call
 * nested in a runtime call of the same kind fills its caller's frame); PT, 1 in the
 * per-thread-default-stream twins; LEVEL; `node`, the CUDA major version of the
 * caller's cudart; and in AFTER `r`, the result. AFTER macros run on failure too and
 * test `r` themselves, since a capture gate must come down either way.
 * No macro reads user memory beyond the call's documented arguments. */
#ifndef GW_DECODE_H
#define GW_DECODE_H

#include "gw.h"
#include "sampler.h"

#define NOTHING     ((void)0)
#define NULL_STREAM NULL

static inline void gw_on_stream(struct gw_frame *f, const void *stream, bool per_thread, int level)
{
    f->stream = stream;
    f->per_thread = per_thread;
    f->no_stream = 0;
    if (level == GWT_LEVEL_DRIVER && gw_unlikely(gw_load_relaxed(&gw_busy_stream) != NULL))
        gw_sample_foreign(stream);
    /* Only the driver level asks: the runtime's own call always reaches it. */
    if (level == GWT_LEVEL_DRIVER && gw_unlikely(gw_capturing()) &&
        gw_stream_captures(stream, per_thread))
        f->flags |= GWT_F_CAPTURED;
}
#define D_STREAM(stream) gw_on_stream(f, (const void *)(stream), PT, LEVEL)

/* ---- launches ------------------------------------------------------------------- */

static inline void gw_on_launch(struct gw_frame *f, const void *func, uint32_t gx, uint32_t gy,
                                uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz, size_t shared)
{
    f->shape = (struct gw_shape){func, {gx, gy, gz}, {bx, by, bz}, (uint32_t)shared};
}
#define D_LAUNCH(func, gx, gy, gz, bx, by, bz, smem, stream)                                       \
    do {                                                                                           \
        gw_on_launch(f, (const void *)(func), gx, gy, gz, bx, by, bz, smem);                       \
        D_STREAM(stream);                                                                          \
    } while (0)
#define D_COOP(func, gx, gy, gz, bx, by, bz, smem, stream)                                         \
    do {                                                                                           \
        f->flags |= GWT_F_COOP;                                                                    \
        D_LAUNCH(func, gx, gy, gz, bx, by, bz, smem, stream);                                      \
    } while (0)
#define D_LAUNCH_RT(func, grid, block, smem, stream)                                               \
    D_LAUNCH(func, (grid).x, (grid).y, (grid).z, (block).x, (block).y, (block).z, smem, stream)
#define D_COOP_RT(func, grid, block, smem, stream)                                                 \
    D_COOP(func, (grid).x, (grid).y, (grid).z, (block).x, (block).y, (block).z, smem, stream)

static inline void gw_on_attributes(struct gw_frame *f, const CUlaunchAttribute *a, unsigned n)
{
    for (unsigned i = 0; a && i < n; i++) {
        if (a[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && a[i].value.cooperative)
            f->flags |= GWT_F_COOP;
        else if (a[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
                 a[i].value.programmaticStreamSerializationAllowed)
            f->flags |= GWT_F_PDL;
        else if (a[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
            f->flags |= GWT_F_PDL;
    }
}
#define D_LAUNCH_EX(func, config)                                                                  \
    do {                                                                                           \
        if (config) {                                                                              \
            D_LAUNCH(func, (config)->gridDimX, (config)->gridDimY, (config)->gridDimZ,             \
                     (config)->blockDimX, (config)->blockDimY, (config)->blockDimZ,                \
                     (config)->sharedMemBytes, (config)->hStream);                                 \
            gw_on_attributes(f, (config)->attrs, (config)->numAttrs);                              \
        } else {                                                                                   \
            f->shape = (struct gw_shape){0};                                                       \
        }                                                                                          \
    } while (0)
#define D_LAUNCH_EX_RT(func, config)                                                               \
    do {                                                                                           \
        if (config)                                                                                \
            D_LAUNCH_RT(func, (config)->gridDim, (config)->blockDim, (config)->dynamicSmemBytes,   \
                        (config)->stream);                                                         \
    } while (0)
/* One call, a kernel for each element: the first is named, more than one is said to be partly
 * read. Gone in CUDA 13. */
#define GW_COOP_MULTI(list, n, launch)                                                             \
    do {                                                                                           \
        f->flags |= GWT_F_COOP;                                                                    \
        if ((int)LEVEL == (int)GWT_LEVEL_DRIVER && (n) > 1)                                        \
            gw_count(GWT_C_UNDECODED, 1);                                                          \
        f->shape = (struct gw_shape){0};                                                           \
        if ((list) && (n))                                                                         \
            launch;                                                                                \
    } while (0)
#define D_COOP_MULTI(list, n)                                                                      \
    GW_COOP_MULTI(list, n,                                                                         \
                  D_LAUNCH((list)->function, (list)->gridDimX, (list)->gridDimY, (list)->gridDimZ, \
                           (list)->blockDimX, (list)->blockDimY, (list)->blockDimZ,                \
                           (list)->sharedMemBytes, (list)->hStream))
#define D_COOP_MULTI_RT(list, n)                                                                   \
    GW_COOP_MULTI(list, n,                                                                         \
                  D_LAUNCH_RT((list)->func, (list)->gridDim, (list)->blockDim, (list)->sharedMem,  \
                              (list)->stream))
#define D_GRAPH_LAUNCH(exec, stream)                                                               \
    do {                                                                                           \
        f->shape.func = (const void *)(exec);                                                      \
        D_STREAM(stream);                                                                          \
    } while (0)
#define D_HOST_FUNC(stream) D_STREAM(stream)

/* ---- copies, memsets -------------------------------------------------------------- */

enum { H2D = GWT_H2D, D2H = GWT_D2H, D2D = GWT_D2D, P2P = GWT_P2P, H2H = GWT_H2H, UNIFIED = -1 };

/* cudaMemcpyKind: HostToHost, HostToDevice, DeviceToHost, DeviceToDevice, Default */
#define RTKIND(kind)                                                                               \
    ((unsigned)(kind) < 4 ? (const int[]){GWT_H2H, GWT_H2D, GWT_D2H, GWT_D2D}[(unsigned)(kind)]    \
                          : UNIFIED)

void gw_on_copy(struct gw_frame *f, int direction, const void *dst, const void *src, uint64_t bytes,
                int level);
void gw_on_copy2d(struct gw_frame *f, const CUDA_MEMCPY2D *p, int level);
void gw_on_copy3d(struct gw_frame *f, const CUDA_MEMCPY3D *p, int level);
void gw_on_copy2d_v1(struct gw_frame *f, const CUDA_MEMCPY2D_v1 *p, int level);
void gw_on_copy3d_v1(struct gw_frame *f, const CUDA_MEMCPY3D_v1 *p, int level);
void gw_on_copy3d_peer(struct gw_frame *f, const CUDA_MEMCPY3D_PEER *p);
void gw_on_copy3d_runtime(struct gw_frame *f, const struct cudaMemcpy3DParms *p);
void gw_on_copy3d_peer_runtime(struct gw_frame *f, const struct cudaMemcpy3DPeerParms *p);
void gw_on_copy_batch(struct gw_frame *f, void *const *dsts, void *const *srcs, const size_t *sizes,
                      size_t count, int level);

/* What memory a copy touches must be looked up before the call: another thread may free
 * it once the call has returned. */
#define D_COPY(direction, dst, src, bytes, stream)                                                 \
    do {                                                                                           \
        gw_on_copy(f, direction, (const void *)(uintptr_t)(dst), (const void *)(uintptr_t)(src),   \
                   bytes, LEVEL);                                                                  \
        D_STREAM(stream);                                                                          \
    } while (0)
#define D_COPY_BLOCKING(direction, dst, src, bytes, stream)                                        \
    do {                                                                                           \
        f->flags |= GWT_F_BLOCKING;                                                                \
        D_COPY(direction, dst, src, bytes, stream);                                                \
    } while (0)
#define D_COPY2D(p, stream)                                                                        \
    do {                                                                                           \
        gw_on_copy2d(f, (p), LEVEL);                                                               \
        D_STREAM(stream);                                                                          \
    } while (0)
#define D_COPY3D(p, stream)                                                                        \
    do {                                                                                           \
        gw_on_copy3d(f, (p), LEVEL);                                                               \
        D_STREAM(stream);                                                                          \
    } while (0)
#define D_COPY2D_V1(p, stream)                                                                     \
    do {                                                                                           \
        gw_on_copy2d_v1(f, (p), LEVEL);                                                            \
        D_STREAM(stream);                                                                          \
    } while (0)
#define D_COPY3D_V1(p, stream)                                                                     \
    do {                                                                                           \
        gw_on_copy3d_v1(f, (p), LEVEL);                                                            \
        D_STREAM(stream);                                                                          \
    } while (0)
#define D_COPY3DPEER(p, stream)                                                                    \
    do {                                                                                           \
        gw_on_copy3d_peer(f, (p));                                                                 \
        D_STREAM(stream);                                                                          \
    } while (0)
#define D_COPY3D_RT(p, stream)                                                                     \
    do {                                                                                           \
        gw_on_copy3d_runtime(f, (p));                                                              \
        D_STREAM(stream);                                                                          \
    } while (0)
#define D_COPY3DPEER_RT(p, stream)                                                                 \
    do {                                                                                           \
        gw_on_copy3d_peer_runtime(f, (p));                                                         \
        D_STREAM(stream);                                                                          \
    } while (0)
#define GW_BLOCKING(...)                                                                           \
    do {                                                                                           \
        f->flags |= GWT_F_BLOCKING;                                                                \
        __VA_ARGS__;                                                                               \
    } while (0)
#define D_COPY2D_BLOCKING(p, stream)    GW_BLOCKING(D_COPY2D(p, stream))
#define D_COPY3D_BLOCKING(p, stream)    GW_BLOCKING(D_COPY3D(p, stream))
#define D_COPY2D_V1_BLOCKING(p, stream) GW_BLOCKING(D_COPY2D_V1(p, stream))
#define D_COPY3D_V1_BLOCKING(p, stream) GW_BLOCKING(D_COPY3D_V1(p, stream))
#define D_COPY3D_RT_BLOCKING(p, stream) GW_BLOCKING(D_COPY3D_RT(p, stream))
#define D_COPY_BATCH(dsts, srcs, sizes, count, stream)                                             \
    do {                                                                                           \
        gw_on_copy_batch(f, (void *const *)(dsts), (void *const *)(srcs), (sizes), (count),        \
                         LEVEL);                                                                   \
        D_STREAM(stream);                                                                          \
    } while (0)
/* The operands of a 3D batch are left unread: their layout is new (12.8) and unused so far
 * by the frameworks; the calls are counted, their bytes are said to be unknown. */
#define D_COPY3D_BATCH(count, operands, stream)                                                    \
    do {                                                                                           \
        (void)(operands);                                                                          \
        f->arg = (uint32_t)(count);                                                                \
        if ((int)LEVEL == (int)GWT_LEVEL_DRIVER)                                                   \
            gw_count(GWT_C_UNDECODED, 1);                                                          \
        D_STREAM(stream);                                                                          \
    } while (0)

#define D_MEMSET(ptr, bytes, stream)                                                               \
    do {                                                                                           \
        f->value = (bytes);                                                                        \
        f->arg = 1;                                                                                \
        D_STREAM(stream);                                                                          \
    } while (0)
#define D_PREFETCH(ptr, bytes, stream) D_MEMSET(ptr, bytes, stream)

#define D_PREFETCH_BATCH(ptrs, sizes, count, stream)                                               \
    do {                                                                                           \
        f->value = 0;                                                                              \
        for (size_t i_ = 0; (sizes) && i_ < (count); i_++)                                         \
            f->value += (sizes)[i_];                                                               \
        f->arg = (uint32_t)(count);                                                                \
        D_STREAM(stream);                                                                          \
    } while (0)

/* ---- memory -------------------------------------------------------------------------- */

#define D_ALLOC_SIZE(bytes) (f->value = (uint64_t)(bytes))
#define GW_FREED(ptr)                                                                              \
    do {                                                                                           \
        /* before the call: the address may be another thread's a moment after it */               \
        f->arg = GWT_ADDR(ptr);                                                                    \
        gw_memory_remove((const void *)(uintptr_t)(ptr));                                          \
    } while (0)
#define D_FREE(ptr)        GW_FREED(ptr)
#define D_FREE_HOST(ptr)   GW_FREED(ptr)
#define D_UNREGISTER(ptr)  GW_FREED(ptr)
#define D_UNMAP(ptr, size) GW_FREED(ptr)
#define D_FREE_ASYNC(ptr, stream)                                                                  \
    do {                                                                                           \
        GW_FREED(ptr);                                                                             \
        D_STREAM(stream);                                                                          \
    } while (0)
#define GW_ALLOCATED(ptr, bytes, kind)                                                             \
    do {                                                                                           \
        if (r == 0) {                                                                              \
            f->arg = GWT_ADDR(ptr);                                                                \
            gw_memory_add((const void *)(uintptr_t)(ptr), (bytes), kind, gw_device);               \
        }                                                                                          \
    } while (0)
#define A_ALLOC(ptr, bytes)         GW_ALLOCATED(ptr, bytes, GW_MEM_DEVICE)
#define A_ALLOC_MANAGED(ptr, bytes) GW_ALLOCATED(ptr, bytes, GW_MEM_MANAGED)
#define A_ALLOC_HOST(ptr, bytes)    GW_ALLOCATED(ptr, bytes, GW_MEM_PINNED)
#define A_REGISTER(ptr, bytes)      GW_ALLOCATED(ptr, bytes, GW_MEM_PINNED)
#define A_MAP(ptr, bytes)           GW_ALLOCATED(ptr, bytes, GW_MEM_DEVICE)
#define A_ALLOC_PITCH(ptr, pitch, height)                                                          \
    do {                                                                                           \
        if (r == 0)                                                                                \
            f->value = (uint64_t)(pitch) * (height);                                               \
        GW_ALLOCATED(ptr, (size_t)(pitch) * (height), GW_MEM_DEVICE);                              \
    } while (0)

/* ---- waiting --------------------------------------------------------------------------- */

#define D_SYNC_DEVICE() (f->flags |= GWT_SCOPE_DEVICE << GWT_F_SUB_SHIFT)
#define GW_SCOPE(f, scope)                                                                         \
    ((f)->flags = (uint16_t)(((f)->flags & ((1u << GWT_F_SUB_SHIFT) - 1)) |                        \
                             (unsigned)(scope) << GWT_F_SUB_SHIFT))
#define D_SYNC_STREAM(stream_)                                                                     \
    do {                                                                                           \
        GW_SCOPE(f, GWT_SCOPE_STREAM);                                                             \
        f->stream = (const void *)(stream_);                                                       \
        f->per_thread = PT;                                                                        \
        f->no_stream = 0;                                                                          \
    } while (0)
#define D_SYNC_EVENT(event)                                                                        \
    do {                                                                                           \
        GW_SCOPE(f, GWT_SCOPE_EVENT);                                                              \
        f->value = (uint64_t)(uintptr_t)(event);                                                   \
    } while (0)
#define D_EVENT_RECORD(event, stream)                                                              \
    do {                                                                                           \
        f->value = (uint64_t)(uintptr_t)(event);                                                   \
        D_STREAM(stream);                                                                          \
    } while (0)
#define D_STREAM_WAIT(stream, event) D_EVENT_RECORD(event, stream)
#define ALL_STREAMS                  NULL /* the whole context: filed under its legacy stream */
#define A_EVENT_CREATED(event, flags_)                                                             \
    do {                                                                                           \
        if (r == 0)                                                                                \
            gw_event_created((const void *)(event), (flags_));                                     \
    } while (0)
#define D_EVENTS_READ(start, end) gw_events_read((const void *)(start), (const void *)(end))

/* ---- captures, graphs --------------------------------------------------------------------- */

/* Raised before the real call: a sample in flight on another thread either sees the gate
 * or has finished its CUDA calls (partner: the sampler's own check after it raised its
 * in-flight count). Driver level only; the runtime's call passes through it. */
#define D_CAPTURE_BEGIN(stream_)                                                                   \
    do {                                                                                           \
        if ((int)LEVEL == (int)GWT_LEVEL_DRIVER) {                                                 \
            gw_add_seq(&gw_odd, GW_ODD_CAPTURE);                                                   \
            gw_sample_wait();                                                                      \
        }                                                                                          \
        f->stream = (const void *)(stream_);                                                       \
        f->per_thread = PT;                                                                        \
        f->no_stream = 0;                                                                          \
    } while (0)
#define A_CAPTURE_BEGUN()                                                                          \
    do {                                                                                           \
        if ((int)LEVEL == (int)GWT_LEVEL_DRIVER && r != 0)                                         \
            gw_sub_seq(&gw_odd, GW_ODD_CAPTURE);                                                   \
    } while (0)
#define D_CAPTURE_END(stream_)                                                                     \
    do {                                                                                           \
        f->flags |= GWT_F_CLOSING;                                                                 \
        f->stream = (const void *)(stream_);                                                       \
        f->per_thread = PT;                                                                        \
        f->no_stream = 0;                                                                          \
    } while (0)
void gw_capture_ended(int status);
#define A_CAPTURE_ENDED()                                                                          \
    do {                                                                                           \
        if ((int)LEVEL == (int)GWT_LEVEL_DRIVER)                                                   \
            gw_capture_ended((int)r);                                                              \
    } while (0)
#define A_INSTANTIATED(exec, graph)                                                                \
    do {                                                                                           \
        if (r == 0 && (int)LEVEL == (int)GWT_LEVEL_DRIVER) {                                       \
            gw_graph_instantiated((const void *)(exec), (const void *)(graph));                    \
            f->arg = gw_graph_id((const void *)(exec), NULL);                                      \
        }                                                                                          \
    } while (0)
#define A_GRAPH_UPDATED(exec, graph) A_INSTANTIATED(exec, graph)
#define A_GRAPH_TOUCHED(exec)                                                                      \
    do {                                                                                           \
        if (r == 0 && (int)LEVEL == (int)GWT_LEVEL_DRIVER)                                         \
            gw_graph_touched((const void *)(exec));                                                \
    } while (0)
/* Before the call: the handle may be another graph's a moment after it. */
#define D_GRAPH_DESTROY(exec)                                                                      \
    do {                                                                                           \
        f->flags |= GWT_F_CLOSING;                                                                 \
        if ((int)LEVEL == (int)GWT_LEVEL_DRIVER)                                                   \
            gw_graph_destroyed((const void *)(exec));                                              \
    } while (0)

/* ---- modules, streams, contexts ---------------------------------------------------------- */

#define D_UNLOAD()                                                                                 \
    do {                                                                                           \
        if ((int)LEVEL == (int)GWT_LEVEL_DRIVER)                                                   \
            gw_names_invalidate();                                                                 \
    } while (0)
/* Events and kernels of the sampler's go with their context; so does all knowledge of names. */
#define D_CTX_DESTROY(ctx)                                                                         \
    do {                                                                                           \
        gw_timer_context_gone((const void *)(ctx));                                                \
        D_UNLOAD();                                                                                \
    } while (0)
#define D_CTX_RESET() D_CTX_DESTROY(NULL)
#define A_STREAM_CREATED(stream_, flags_)                                                          \
    do {                                                                                           \
        if (r == 0) {                                                                              \
            gw_stream_created((const void *)(stream_), (unsigned)(flags_));                        \
            f->stream = (const void *)(stream_);                                                   \
            f->no_stream = 0;                                                                      \
        }                                                                                          \
    } while (0)
/* The id is looked up before the handle may be another stream_'s. */
#define D_STREAM_DESTROY(stream_)                                                                  \
    do {                                                                                           \
        f->flags |= GWT_F_CLOSING;                                                                 \
        f->value = 0;                                                                              \
        gw_stream_gone((const void *)(stream_));                                                   \
    } while (0)
#define A_CTX_CREATED(ctx, dev)                                                                    \
    do {                                                                                           \
        if (r == 0)                                                                                \
            gw_ctx_created((const void *)(ctx), (int)(dev));                                       \
    } while (0)
/* Being retained makes a context known, not current; a green context's device is asked for when
 * it is made current. */
#define A_CTX_RETAINED(ctx, dev)                                                                   \
    do {                                                                                           \
        if (r == 0 && (int)(dev) >= 0)                                                             \
            gw_ctx_known((const void *)(ctx), (int)(dev));                                         \
    } while (0)
#define A_CTX_DESTROYED(ctx) NOTHING /* its address, if reused, is defined anew */
#define A_CTX_CURRENT(ctx)                                                                         \
    do {                                                                                           \
        if (r == 0)                                                                                \
            gw_ctx_current((const void *)(ctx));                                                   \
    } while (0)
#define A_CTX_POPPED()                                                                             \
    do {                                                                                           \
        if (r == 0)                                                                                \
            gw_ctx_popped();                                                                       \
    } while (0)
#define A_DEVICE(ordinal)                                                                          \
    do {                                                                                           \
        if (r == 0)                                                                                \
            gw_set_device((int)((ordinal)));                                                       \
    } while (0)
#define A_FUNC_NAME(handle, name)                                                                  \
    do {                                                                                           \
        if (r == 0)                                                                                \
            gw_names_hint((const void *)(handle), (name), false);                                  \
    } while (0)
#define A_KERNEL_NAME(handle, name)                                                                \
    do {                                                                                           \
        if (r == 0)                                                                                \
            gw_names_hint((const void *)(handle), (name), true);                                   \
    } while (0)
#define A_FUNC_ALIAS(func, kernel)                                                                 \
    do {                                                                                           \
        if (r == 0 && gw_unlikely(!gw_driver.cuFuncGetName))                                       \
            gw_names_alias((const void *)(func), (const void *)(kernel));                          \
    } while (0)

/* ---- NCCL ------------------------------------------------------------------------------------ */

uint64_t gw_nccl_bytes(size_t count, int datatype);
#define D_NCCL(count, datatype, comm, stream_)                                                     \
    do {                                                                                           \
        f->value = gw_nccl_bytes((count), (int)(datatype));                                        \
        f->arg = gw_comm_id((const void *)(comm));                                                 \
        f->stream = (const void *)(stream_);                                                       \
        f->per_thread = 0;                                                                         \
        f->no_stream = 0;                                                                          \
    } while (0)
/* A send or receive: with whom. */
#define D_NCCL_PEER(count, datatype, peer, comm, stream_)                                          \
    do {                                                                                           \
        D_NCCL(count, datatype, comm, stream_);                                                    \
        f->arg |= (unsigned)(peer) < GWT_COMM_MAX ? ((uint32_t)(peer) + 1) << 16 : 0;              \
    } while (0)
#define D_NCCL_COMM(comm) (f->arg = gw_comm_id((const void *)(comm)))
#define gw_accepted(r)    ((r) == 0 || (int)(r) == 7) /* ncclInProgress: the handle is set already */
#define A_COMMS(comms, n)                                                                          \
    do {                                                                                           \
        if (gw_accepted(r))                                                                        \
            gw_comms_created((const void *const *)(comms), (int)(n));                              \
    } while (0)
/* id: NULL, or the unique id that all its ranks pass. */
#define A_COMM(comm, nranks, rank, id)                                                             \
    do {                                                                                           \
        if (gw_accepted(r)) {                                                                      \
            gw_comm_created((const void *)(comm), (int)(nranks), (int)(rank), (id));               \
            f->arg = gw_comm_id((const void *)(comm));                                             \
        }                                                                                          \
    } while (0)
/* All ranks of the parent call, those too that get none. */
#define A_COMM_CHILD(parent, color, comm)                                                          \
    do {                                                                                           \
        if (gw_accepted(r)) {                                                                      \
            gw_comm_split((const void *)(parent), (int)(color), (const void *)(comm));             \
            f->arg = gw_comm_id((const void *)(comm));                                             \
        }                                                                                          \
    } while (0)

#endif
