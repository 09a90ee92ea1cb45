/* Bodies of the runtime's copies and memsets: each ends in the driver call that the real one
 * makes. */
#include "cudart.h"

#include <string.h>

#define P(x) ((CUdeviceptr)(uintptr_t)(x))
#define R(x) ((cudaError_t)(x))

/* ---- linear copies ----------------------------------------------------------------------- */

cudaError_t rt_cudaMemcpy(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return R(DT(cuMemcpyHtoD_v2, cuMemcpyHtoD, 3020, 7000)(P(dst), src, n));
    case cudaMemcpyDeviceToHost:
        return R(DT(cuMemcpyDtoH_v2, cuMemcpyDtoH, 3020, 7000)(dst, P(src), n));
    case cudaMemcpyDeviceToDevice:
        return R(DT(cuMemcpyDtoD_v2, cuMemcpyDtoD, 3020, 7000)(P(dst), P(src), n));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return R(DT(cuMemcpy, cuMemcpy, 4000, 7000)(P(dst), P(src), n));
    }
    return (cudaError_t)21; /* invalid direction */
}

cudaError_t rt_cudaMemcpyAsync(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind,
                               cudaStream_t stream)
{
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return R(DT(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync, 3020, 7000)(P(dst), src, n, stream));
    case cudaMemcpyDeviceToHost:
        return R(DT(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync, 3020, 7000)(dst, P(src), n, stream));
    case cudaMemcpyDeviceToDevice:
        return R(
            DT(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync, 3020, 7000)(P(dst), P(src), n, stream));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return R(DT(cuMemcpyAsync, cuMemcpyAsync, 4000, 7000)(P(dst), P(src), n, stream));
    }
    return (cudaError_t)21;
}

static CUcontext context_of(int dev)
{
    CUcontext ctx = NULL;
    D(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000)(&ctx, dev);
    return ctx;
}

cudaError_t rt_cudaMemcpyPeer(void *dst, int dst_dev, const void *src, int src_dev, size_t n)
{
    return R(D(cuMemcpyPeer, cuMemcpyPeer, 4000)(P(dst), context_of(dst_dev), P(src),
                                                 context_of(src_dev), n));
}

cudaError_t rt_cudaMemcpyPeerAsync(void *dst, int dst_dev, const void *src, int src_dev, size_t n,
                                   cudaStream_t stream)
{
    return R(D(cuMemcpyPeerAsync, cuMemcpyPeerAsync, 4000)(P(dst), context_of(dst_dev), P(src),
                                                           context_of(src_dev), n, stream));
}

/* ---- symbols ------------------------------------------------------------------------------ */

static int symbol_at(const void *symbol, size_t offset, void **out)
{
    CUdeviceptr p;
    int status = rt_symbol_of(symbol, &p, NULL);
    if (!status)
        *out = (void *)(uintptr_t)(p + offset);
    return status;
}

cudaError_t rt_cudaMemcpyToSymbol(const void *symbol, const void *src, size_t n, size_t offset,
                                  enum cudaMemcpyKind kind)
{
    void *p;
    int status = symbol_at(symbol, offset, &p);
    return status ? R(status) : rt_cudaMemcpy(p, src, n, kind);
}

cudaError_t rt_cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t n, size_t offset,
                                       enum cudaMemcpyKind kind, cudaStream_t stream)
{
    void *p;
    int status = symbol_at(symbol, offset, &p);
    return status ? R(status) : rt_cudaMemcpyAsync(p, src, n, kind, stream);
}

cudaError_t rt_cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t n, size_t offset,
                                    enum cudaMemcpyKind kind)
{
    void *p;
    int status = symbol_at(symbol, offset, &p);
    return status ? R(status) : rt_cudaMemcpy(dst, p, n, kind);
}

cudaError_t rt_cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t n, size_t offset,
                                         enum cudaMemcpyKind kind, cudaStream_t stream)
{
    void *p;
    int status = symbol_at(symbol, offset, &p);
    return status ? R(status) : rt_cudaMemcpyAsync(dst, p, n, kind, stream);
}

cudaError_t rt_cudaGetSymbolAddress(void **ptr, const void *symbol)
{
    int status = rt_context();
    return R(status ? status : symbol_at(symbol, 0, ptr));
}

cudaError_t rt_cudaGetSymbolSize(size_t *size, const void *symbol)
{
    CUdeviceptr p;
    int status = rt_context();
    return R(status ? status : rt_symbol_of(symbol, &p, size));
}

/* ---- two and three dimensions --------------------------------------------------------------- */

static void side(CUmemorytype *type, const void **host, CUdeviceptr *device, const void *p,
                 bool on_host, bool unified)
{
    *type = unified ? CU_MEMORYTYPE_UNIFIED : on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    if (*type == CU_MEMORYTYPE_HOST)
        *host = p;
    else
        *device = P(p);
}

static CUDA_MEMCPY2D two(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D p = {
        .srcPitch = src_pitch, .dstPitch = dst_pitch, .WidthInBytes = width, .Height = height};
    bool unified = kind == cudaMemcpyDefault;
    side(&p.srcMemoryType, &p.srcHost, &p.srcDevice, src,
         kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice, unified);
    side(&p.dstMemoryType, (const void **)&p.dstHost, &p.dstDevice, dst,
         kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost, unified);
    return p;
}

cudaError_t rt_cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                            size_t width, size_t height, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D p = two(dst, dst_pitch, src, src_pitch, width, height, kind);
    return R(DT(cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned, 3020, 7000)(&p));
}

cudaError_t rt_cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                                 size_t width, size_t height, enum cudaMemcpyKind kind,
                                 cudaStream_t stream)
{
    CUDA_MEMCPY2D p = two(dst, dst_pitch, src, src_pitch, width, height, kind);
    return R(DT(cuMemcpy2DAsync_v2, cuMemcpy2DAsync, 3020, 7000)(&p, stream));
}

/* Arrays have elements of 4 bytes here; positions in them are not used. */
static CUDA_MEMCPY3D three(const struct cudaMemcpy3DParms *p)
{
    bool bytes = !p->srcArray && !p->dstArray, unified = p->kind == cudaMemcpyDefault;
    CUDA_MEMCPY3D q = {.srcXInBytes = p->srcPos.x,
                       .srcY = p->srcPos.y,
                       .srcZ = p->srcPos.z,
                       .dstXInBytes = p->dstPos.x,
                       .dstY = p->dstPos.y,
                       .dstZ = p->dstPos.z,
                       .srcPitch = p->srcPtr.pitch,
                       .srcHeight = p->srcPtr.ysize,
                       .dstPitch = p->dstPtr.pitch,
                       .dstHeight = p->dstPtr.ysize,
                       .WidthInBytes = bytes ? p->extent.width : p->extent.width * 4,
                       .Height = p->extent.height,
                       .Depth = p->extent.depth};
    side(&q.srcMemoryType, &q.srcHost, &q.srcDevice, p->srcPtr.ptr,
         p->kind == cudaMemcpyHostToHost || p->kind == cudaMemcpyHostToDevice, unified);
    side(&q.dstMemoryType, (const void **)&q.dstHost, &q.dstDevice, p->dstPtr.ptr,
         p->kind == cudaMemcpyHostToHost || p->kind == cudaMemcpyDeviceToHost, unified);
    if (p->srcArray) {
        q.srcMemoryType = CU_MEMORYTYPE_ARRAY;
        q.srcArray = (CUarray)(void *)p->srcArray;
    }
    if (p->dstArray) {
        q.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        q.dstArray = (CUarray)(void *)p->dstArray;
    }
    return q;
}

cudaError_t rt_cudaMemcpy3D(const struct cudaMemcpy3DParms *parms)
{
    CUDA_MEMCPY3D p = three(parms);
    return R(DT(cuMemcpy3D_v2, cuMemcpy3D, 3020, 7000)(&p));
}

cudaError_t rt_cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *parms, cudaStream_t stream)
{
    CUDA_MEMCPY3D p = three(parms);
    return R(DT(cuMemcpy3DAsync_v2, cuMemcpy3DAsync, 3020, 7000)(&p, stream));
}

static CUDA_MEMCPY3D_PEER peer(const struct cudaMemcpy3DPeerParms *p)
{
    struct cudaMemcpy3DParms m = {.srcArray = p->srcArray,
                                  .srcPos = p->srcPos,
                                  .srcPtr = p->srcPtr,
                                  .dstArray = p->dstArray,
                                  .dstPos = p->dstPos,
                                  .dstPtr = p->dstPtr,
                                  .extent = p->extent,
                                  .kind = cudaMemcpyDeviceToDevice};
    CUDA_MEMCPY3D q = three(&m);
    CUDA_MEMCPY3D_PEER r;
    memcpy(&r, &q, sizeof r);
    r.srcContext = context_of(p->srcDevice);
    r.dstContext = context_of(p->dstDevice);
    return r;
}

cudaError_t rt_cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *parms)
{
    CUDA_MEMCPY3D_PEER p = peer(parms);
    return R(DT(cuMemcpy3DPeer, cuMemcpy3DPeer, 4000, 7000)(&p));
}

cudaError_t rt_cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *parms, cudaStream_t stream)
{
    CUDA_MEMCPY3D_PEER p = peer(parms);
    return R(DT(cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync, 4000, 7000)(&p, stream));
}

/* An array side of a two-dimensional copy. */
static CUDA_MEMCPY2D array2(CUarray array, bool to_array, const void *p, size_t pitch, size_t width,
                            size_t height, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D q = to_array ? two(NULL, pitch, p, pitch, width, height, kind)
                               : two((void *)p, pitch, NULL, pitch, width, height, kind);
    if (to_array) {
        q.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        q.dstArray = array;
    } else {
        q.srcMemoryType = CU_MEMORYTYPE_ARRAY;
        q.srcArray = array;
    }
    return q;
}

static int copy2(const CUDA_MEMCPY2D *p)
{
    return (int)DT(cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned, 3020, 7000)(p);
}

static int copy2_async(const CUDA_MEMCPY2D *p, cudaStream_t stream)
{
    return (int)DT(cuMemcpy2DAsync_v2, cuMemcpy2DAsync, 3020, 7000)(p, stream);
}

#define A(array) ((CUarray)(void *)(array))

cudaError_t rt_cudaMemcpyToArray(cudaArray_t dst, size_t x, size_t y, const void *src, size_t n,
                                 enum cudaMemcpyKind kind)
{
    (void)x, (void)y;
    CUDA_MEMCPY2D p = array2(A(dst), true, src, n, n, 1, kind);
    return R(copy2(&p));
}

cudaError_t rt_cudaMemcpyToArrayAsync(cudaArray_t dst, size_t x, size_t y, const void *src,
                                      size_t n, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)x, (void)y;
    CUDA_MEMCPY2D p = array2(A(dst), true, src, n, n, 1, kind);
    return R(copy2_async(&p, stream));
}

cudaError_t rt_cudaMemcpyFromArray(void *dst, cudaArray_const_t src, size_t x, size_t y, size_t n,
                                   enum cudaMemcpyKind kind)
{
    (void)x, (void)y;
    CUDA_MEMCPY2D p = array2(A(src), false, dst, n, n, 1, kind);
    return R(copy2(&p));
}

cudaError_t rt_cudaMemcpyFromArrayAsync(void *dst, cudaArray_const_t src, size_t x, size_t y,
                                        size_t n, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)x, (void)y;
    CUDA_MEMCPY2D p = array2(A(src), false, dst, n, n, 1, kind);
    return R(copy2_async(&p, stream));
}

cudaError_t rt_cudaMemcpy2DToArray(cudaArray_t dst, size_t x, size_t y, const void *src,
                                   size_t pitch, size_t width, size_t height,
                                   enum cudaMemcpyKind kind)
{
    (void)x, (void)y;
    CUDA_MEMCPY2D p = array2(A(dst), true, src, pitch, width, height, kind);
    return R(copy2(&p));
}

cudaError_t rt_cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t x, size_t y, const void *src,
                                        size_t pitch, size_t width, size_t height,
                                        enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)x, (void)y;
    CUDA_MEMCPY2D p = array2(A(dst), true, src, pitch, width, height, kind);
    return R(copy2_async(&p, stream));
}

cudaError_t rt_cudaMemcpy2DFromArray(void *dst, size_t pitch, cudaArray_const_t src, size_t x,
                                     size_t y, size_t width, size_t height,
                                     enum cudaMemcpyKind kind)
{
    (void)x, (void)y;
    CUDA_MEMCPY2D p = array2(A(src), false, dst, pitch, width, height, kind);
    return R(copy2(&p));
}

cudaError_t rt_cudaMemcpy2DFromArrayAsync(void *dst, size_t pitch, cudaArray_const_t src, size_t x,
                                          size_t y, size_t width, size_t height,
                                          enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)x, (void)y;
    CUDA_MEMCPY2D p = array2(A(src), false, dst, pitch, width, height, kind);
    return R(copy2_async(&p, stream));
}

static CUDA_MEMCPY2D arrays(cudaArray_t dst, cudaArray_const_t src, size_t width, size_t height)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                           .srcArray = A(src),
                           .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                           .dstArray = A(dst),
                           .WidthInBytes = width,
                           .Height = height};
}

cudaError_t rt_cudaMemcpyArrayToArray(cudaArray_t dst, size_t dst_x, size_t dst_y,
                                      cudaArray_const_t src, size_t src_x, size_t src_y, size_t n,
                                      enum cudaMemcpyKind kind)
{
    (void)dst_x, (void)dst_y, (void)src_x, (void)src_y, (void)kind;
    CUDA_MEMCPY2D p = arrays(dst, src, n, 1);
    return R(copy2(&p));
}

cudaError_t rt_cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t dst_x, size_t dst_y,
                                        cudaArray_const_t src, size_t src_x, size_t src_y,
                                        size_t width, size_t height, enum cudaMemcpyKind kind)
{
    (void)dst_x, (void)dst_y, (void)src_x, (void)src_y, (void)kind;
    CUDA_MEMCPY2D p = arrays(dst, src, width, height);
    return R(copy2(&p));
}

/* ---- batches: the words depend on the version ------------------------------------------------ */

cudaError_t rt_cudaMemcpyBatchAsync(void **dsts, void **srcs, size_t *sizes, size_t count,
                                    struct cudaMemcpyAttributes *attrs, size_t *attr_firsts,
                                    size_t attr_count, void *word7, void *word8)
{
    CUdeviceptr *d = (CUdeviceptr *)(void *)dsts, *s = (CUdeviceptr *)(void *)srcs;
    CUmemcpyAttributes *a = (CUmemcpyAttributes *)(void *)attrs;
#if SIM_CUDART >= 13000
    (void)word8;
    return R(DT(cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync, 13000,
                13000)(d, s, sizes, count, a, attr_firsts, attr_count, word7));
#else
    return R(DT(cuMemcpyBatchAsync, cuMemcpyBatchAsync, 12080,
                12080)(d, s, sizes, count, a, attr_firsts, attr_count, word7, word8));
#endif
}

cudaError_t rt_cudaMemcpy3DBatchAsync(size_t count, struct cudaMemcpy3DBatchOp *ops, void *word2,
                                      void *word3, void *word4)
{
    CUDA_MEMCPY3D_BATCH_OP *o = (CUDA_MEMCPY3D_BATCH_OP *)(void *)ops;
#if SIM_CUDART >= 13000
    (void)word4;
    return R(DT(cuMemcpy3DBatchAsync_v2, cuMemcpy3DBatchAsync, 13000,
                13000)(count, o, (unsigned long long)(uintptr_t)word2, word3));
#else
    return R(DT(cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync, 12080,
                12080)(count, o, word2, (unsigned long long)(uintptr_t)word3, word4));
#endif
}

cudaError_t rt_cudaMemPrefetchAsync(const void *ptr, size_t n, void *place, void *word3,
                                    void *word4)
{
#if SIM_CUDART >= 13000
    CUmemLocation at;
    uintptr_t word = (uintptr_t)place; /* the struct, passed by value */
    memcpy(&at, &word, sizeof at);
    return R(DT(cuMemPrefetchAsync_v2, cuMemPrefetchAsync, 12020,
                12020)(P(ptr), n, at, (unsigned)(uintptr_t)word3, word4));
#else
    (void)word4;
    return R(DT(cuMemPrefetchAsync, cuMemPrefetchAsync, 8000, 8000)(P(ptr), n, (int)(intptr_t)place,
                                                                    word3));
#endif
}

/* ---- memsets ------------------------------------------------------------------------------------
 */

cudaError_t rt_cudaMemset(void *ptr, int value, size_t n)
{
    return R(DT(cuMemsetD8_v2, cuMemsetD8, 3020, 7000)(P(ptr), (unsigned char)value, n));
}

cudaError_t rt_cudaMemsetAsync(void *ptr, int value, size_t n, cudaStream_t stream)
{
    return R(
        DT(cuMemsetD8Async, cuMemsetD8Async, 3020, 7000)(P(ptr), (unsigned char)value, n, stream));
}

cudaError_t rt_cudaMemset2D(void *ptr, size_t pitch, int value, size_t width, size_t height)
{
    return R(DT(cuMemsetD2D8_v2, cuMemsetD2D8, 3020, 7000)(P(ptr), pitch, (unsigned char)value,
                                                           width, height));
}

cudaError_t rt_cudaMemset2DAsync(void *ptr, size_t pitch, int value, size_t width, size_t height,
                                 cudaStream_t stream)
{
    return R(DT(cuMemsetD2D8Async, cuMemsetD2D8Async, 3020,
                7000)(P(ptr), pitch, (unsigned char)value, width, height, stream));
}

cudaError_t rt_cudaMemset3D(struct cudaPitchedPtr at, int value, struct cudaExtent extent)
{
    return R(DT(cuMemsetD2D8_v2, cuMemsetD2D8, 3020, 7000)(
        P(at.ptr), at.pitch, (unsigned char)value, extent.width, extent.height * extent.depth));
}

cudaError_t rt_cudaMemset3DAsync(struct cudaPitchedPtr at, int value, struct cudaExtent extent,
                                 cudaStream_t stream)
{
    return R(DT(cuMemsetD2D8Async, cuMemsetD2D8Async, 3020,
                7000)(P(at.ptr), at.pitch, (unsigned char)value, extent.width,
                      extent.height * extent.depth, stream));
}
