/* Reading the operation out of a call's arguments: copies of every shape. */
#include "decode.h"

static bool on_device(enum gw_memory kind)
{
    return kind == GW_MEM_DEVICE || kind == GW_MEM_MANAGED;
}

static int by_memory(const void *dst, const void *src)
{
    bool to = on_device(gw_memory_kind(dst, NULL)), from = on_device(gw_memory_kind(src, NULL));
    return to ? (from ? GWT_D2D : GWT_H2D) : (from ? GWT_D2H : GWT_H2H);
}

static void set_direction(struct gw_frame *f, int direction)
{
    f->flags = (uint16_t)((f->flags & ((1u << GWT_F_SUB_SHIFT) - 1)) | (unsigned)direction
                                                                           << GWT_F_SUB_SHIFT);
}

void gw_on_copy(struct gw_frame *f, int direction, const void *dst, const void *src, uint64_t bytes,
                int level)
{
    f->value = bytes;
    f->arg = 1;
    /* The driver call that follows decides; looking twice would cost twice. */
    if (level == GWT_LEVEL_RUNTIME) {
        set_direction(f, direction == UNIFIED ? GWT_DIR_UNKNOWN : direction);
        return;
    }
    if (direction == UNIFIED)
        direction = by_memory(dst, src);
    set_direction(f, direction);
    /* Within and between devices the blocking calls do not block (cuda.h, "API
     * synchronization behavior"). */
    if (direction == GWT_D2D || direction == GWT_P2P)
        f->flags &= (uint16_t)~GWT_F_BLOCKING;
    f->flags &= (uint16_t)~GWT_F_PAGEABLE;
    const void *host = direction == GWT_H2D ? src : direction == GWT_D2H ? dst : NULL;
    if (host && gw_memory_kind(host, NULL) == GW_MEM_PAGEABLE)
        f->flags |= GWT_F_PAGEABLE;
}

/* One side of a 2D or 3D copy. Arrays live on the device. */
static const void *side(CUmemorytype type, const void *host, CUdeviceptr device, bool *unified)
{
    *unified = type == CU_MEMORYTYPE_UNIFIED;
    if (type == CU_MEMORYTYPE_HOST)
        return host;
    return (const void *)(uintptr_t)device;
}

static void on_sides(struct gw_frame *f, CUmemorytype dst_type, const void *dst_host,
                     CUdeviceptr dst_device, CUmemorytype src_type, const void *src_host,
                     CUdeviceptr src_device, uint64_t bytes, int level)
{
    bool dst_unified, src_unified;
    const void *dst = side(dst_type, dst_host, dst_device, &dst_unified);
    const void *src = side(src_type, src_host, src_device, &src_unified);
    bool to = dst_unified ? on_device(gw_memory_kind(dst, NULL)) : dst_type != CU_MEMORYTYPE_HOST;
    bool from = src_unified ? on_device(gw_memory_kind(src, NULL)) : src_type != CU_MEMORYTYPE_HOST;
    gw_on_copy(f, to ? (from ? GWT_D2D : GWT_H2D) : (from ? GWT_D2H : GWT_H2H), dst, src, bytes,
               level);
}

void gw_on_copy2d(struct gw_frame *f, const CUDA_MEMCPY2D *p, int level)
{
    if (p)
        on_sides(f, p->dstMemoryType, p->dstHost, p->dstDevice, p->srcMemoryType, p->srcHost,
                 p->srcDevice, (uint64_t)p->WidthInBytes * p->Height, level);
}

void gw_on_copy3d(struct gw_frame *f, const CUDA_MEMCPY3D *p, int level)
{
    if (p)
        on_sides(f, p->dstMemoryType, p->dstHost, p->dstDevice, p->srcMemoryType, p->srcHost,
                 p->srcDevice, (uint64_t)p->WidthInBytes * p->Height * p->Depth, level);
}

void gw_on_copy2d_v1(struct gw_frame *f, const CUDA_MEMCPY2D_v1 *p, int level)
{
    if (p)
        on_sides(f, p->dstMemoryType, p->dstHost, p->dstDevice, p->srcMemoryType, p->srcHost,
                 p->srcDevice, (uint64_t)p->WidthInBytes * p->Height, level);
}

void gw_on_copy3d_v1(struct gw_frame *f, const CUDA_MEMCPY3D_v1 *p, int level)
{
    if (p)
        on_sides(f, p->dstMemoryType, p->dstHost, p->dstDevice, p->srcMemoryType, p->srcHost,
                 p->srcDevice, (uint64_t)p->WidthInBytes * p->Height * p->Depth, level);
}

void gw_on_copy3d_peer(struct gw_frame *f, const CUDA_MEMCPY3D_PEER *p)
{
    if (!p)
        return;
    f->value = (uint64_t)p->WidthInBytes * p->Height * p->Depth;
    f->arg = 1;
    set_direction(f, p->srcContext == p->dstContext ? GWT_D2D : GWT_P2P);
}

/* An extent counts elements where an array takes part, bytes elsewhere; the driver's call has
 * bytes in either case and overrides this. */
void gw_on_copy3d_runtime(struct gw_frame *f, const struct cudaMemcpy3DParms *p)
{
    if (!p)
        return;
    f->value = (uint64_t)p->extent.width * p->extent.height * p->extent.depth;
    f->arg = 1;
    int direction = RTKIND(p->kind);
    set_direction(f, direction == UNIFIED ? GWT_DIR_UNKNOWN : direction);
}

void gw_on_copy3d_peer_runtime(struct gw_frame *f, const struct cudaMemcpy3DPeerParms *p)
{
    if (!p)
        return;
    f->value = (uint64_t)p->extent.width * p->extent.height * p->extent.depth;
    f->arg = 1;
    set_direction(f, p->srcDevice == p->dstDevice ? GWT_D2D : GWT_P2P);
}

/* One record holds one direction: that of the first copy. A batch that mixes directions is
 * counted as not fully read. */
void gw_on_copy_batch(struct gw_frame *f, void *const *dsts, void *const *srcs, const size_t *sizes,
                      size_t count, int level)
{
    uint64_t bytes = 0;
    if (!dsts || !srcs || !sizes || !count)
        return;
    if (level == GWT_LEVEL_RUNTIME) { /* the driver call that follows reads them */
        f->arg = (uint32_t)count;
        return;
    }
    int first = by_memory(dsts[0], srcs[0]);
    bool mixed = false;
    for (size_t i = 0; i < count; i++) {
        bytes += sizes[i];
        mixed |= by_memory(dsts[i], srcs[i]) != first;
    }
    if (mixed)
        gw_count(GWT_C_UNDECODED, 1);
    gw_on_copy(f, first, dsts[0], srcs[0], bytes, level);
    f->arg = (uint32_t)count;
}

/* A capture is over whatever EndCapture returned, except where it refused to look at it:
 * wrong thread (908), not the stream it began in (903), not capturing (401), not a stream
 * (1, 400). */
void gw_capture_ended(int status)
{
    if (status == 908 || status == 903 || status == 401 || status == 400 || status == 1)
        return;
    if (gw_sub_seq(&gw_odd, GW_ODD_CAPTURE) < GW_ODD_CAPTURE)
        gw_add_seq(&gw_odd, GW_ODD_CAPTURE); /* a capture begun before we looked */
    gw_names_pending();
}

/* ncclDataType_t in order: int8, uint8, int32, uint32, int64, uint64, float16, float32,
 * float64, bfloat16, float8e4m3, float8e5m2 (nccl.h 2.28). */
uint64_t gw_nccl_bytes(size_t count, int datatype)
{
    static const uint8_t size[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    if (datatype < 0 || (size_t)datatype >= sizeof size)
        return count;
    return (uint64_t)count * size[datatype];
}
