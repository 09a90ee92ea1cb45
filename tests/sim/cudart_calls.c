/* Bodies of the runtime's entry points: each ends in the driver call that the real one makes. */
#include "cudart.h"

#include <stdio.h>
#include <string.h>

#define P(x) ((CUdeviceptr)(uintptr_t)(x))
#define R(x) ((cudaError_t)(x))
#define A(x) ((CUarray)(void *)(x))

/* ---- launches --------------------------------------------------------------------------- */

cudaError_t rt_cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t smem,
                                cudaStream_t stream)
{
    /* a registered host function, or a kernel handle as it is */
    void *kernel = rt_kernel_of(func);
    return R(DT(cuLaunchKernel, cuLaunchKernel, 4000,
                7000)(kernel ? kernel : (void *)func, grid.x, grid.y, grid.z, block.x, block.y,
                      block.z, (unsigned)smem, stream, args, NULL));
}

/* One address in the real library too: a direct jump. */
cudaError_t rt___cudaLaunchKernel(cudaKernel_t func, dim3 grid, dim3 block, void **args,
                                  size_t smem, cudaStream_t stream)
{
    return rt_cudaLaunchKernel(func, grid, block, args, smem, stream);
}

cudaError_t rt_cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *func, void **args)
{
    if (!c)
        return cudaErrorInvalidValue;
    void *kernel = rt_kernel_of(func);
    CUlaunchConfig d = {.gridDimX = c->gridDim.x,
                        .gridDimY = c->gridDim.y,
                        .gridDimZ = c->gridDim.z,
                        .blockDimX = c->blockDim.x,
                        .blockDimY = c->blockDim.y,
                        .blockDimZ = c->blockDim.z,
                        .sharedMemBytes = (unsigned)c->dynamicSmemBytes,
                        .hStream = c->stream,
                        .attrs = (CUlaunchAttribute *)(void *)c->attrs,
                        .numAttrs = c->numAttrs};
    return R(DT(cuLaunchKernelEx, cuLaunchKernelEx, 11060,
                11060)(&d, kernel ? kernel : (void *)func, args, NULL));
}

cudaError_t rt_cudaLaunchCooperativeKernel(const void *func, dim3 grid, dim3 block, void **args,
                                           size_t smem, cudaStream_t stream)
{
    void *kernel = rt_kernel_of(func);
    return R(DT(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 9000,
                9000)(kernel ? kernel : (void *)func, grid.x, grid.y, grid.z, block.x, block.y,
                      block.z, (unsigned)smem, stream, args));
}

cudaError_t rt_cudaLaunchCooperativeKernelMultiDevice(struct cudaLaunchParams *list, unsigned int n,
                                                      unsigned int flags)
{
    CUDA_LAUNCH_PARAMS params[8];
    if (n > 8)
        return cudaErrorInvalidValue;
    for (unsigned i = 0; i < n; i++)
        params[i] = (CUDA_LAUNCH_PARAMS){.function = rt_kernel_of(list[i].func),
                                         .gridDimX = list[i].gridDim.x,
                                         .gridDimY = list[i].gridDim.y,
                                         .gridDimZ = list[i].gridDim.z,
                                         .blockDimX = list[i].blockDim.x,
                                         .blockDimY = list[i].blockDim.y,
                                         .blockDimZ = list[i].blockDim.z,
                                         .sharedMemBytes = (unsigned)list[i].sharedMem,
                                         .hStream = list[i].stream,
                                         .kernelParams = list[i].args};
    return R(D(cuLaunchCooperativeKernelMultiDevice, cuLaunchCooperativeKernelMultiDevice,
               9000)(params, n, flags));
}

cudaError_t rt_cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t func, void *user)
{
    return R(DT(cuLaunchHostFunc, cuLaunchHostFunc, 10000, 10000)(stream, func, user));
}

cudaError_t rt_cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t func, void *user,
                                     unsigned int flags)
{
    /* the status types differ in name only */
    return R(DT(cuStreamAddCallback, cuStreamAddCallback, 5000,
                7000)(stream, (CUstreamCallback)(void *)func, user, flags));
}

/* ---- memory
 * -------------------------------------------------------------------------------------- */

cudaError_t rt_cudaMalloc(void **ptr, size_t n)
{
    CUdeviceptr p = 0;
    if (!ptr)
        return cudaErrorInvalidValue;
    *ptr = NULL;
    if (!n)
        return cudaSuccess;
    int status = (int)D(cuMemAlloc_v2, cuMemAlloc, 3020)(&p, n);
    if (!status)
        *ptr = (void *)(uintptr_t)p;
    return R(status);
}

cudaError_t rt_cudaMallocPitch(void **ptr, size_t *pitch, size_t width, size_t height)
{
    CUdeviceptr p = 0;
    int status = (int)D(cuMemAllocPitch_v2, cuMemAllocPitch, 3020)(&p, pitch, width, height, 4);
    if (!status)
        *ptr = (void *)(uintptr_t)p;
    return R(status);
}

cudaError_t rt_cudaMalloc3D(struct cudaPitchedPtr *at, struct cudaExtent extent)
{
    at->xsize = extent.width;
    at->ysize = extent.height;
    return rt_cudaMallocPitch(&at->ptr, &at->pitch, extent.width, extent.height * extent.depth);
}

cudaError_t rt_cudaMallocManaged(void **ptr, size_t n, unsigned int flags)
{
    CUdeviceptr p = 0;
    int status = (int)D(cuMemAllocManaged, cuMemAllocManaged, 6000)(&p, n, flags);
    if (!status)
        *ptr = (void *)(uintptr_t)p;
    return R(status);
}

cudaError_t rt_cudaFree(void *ptr)
{
    return ptr ? R(D(cuMemFree_v2, cuMemFree, 3020)(P(ptr))) : cudaSuccess;
}

cudaError_t rt_cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                               size_t width, size_t height, unsigned int flags)
{
    struct CUDA_ARRAY_DESCRIPTOR_st d = {.Width = width, .Height = height, .NumChannels = 1};
    (void)desc, (void)flags;
    return R(D(cuArrayCreate_v2, cuArrayCreate, 3020)((CUarray *)(void *)array, &d));
}

cudaError_t rt_cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                                 struct cudaExtent extent, unsigned int flags)
{
    struct CUDA_ARRAY3D_DESCRIPTOR_st d = {
        .Width = extent.width, .Height = extent.height, .Depth = extent.depth, .NumChannels = 1};
    (void)desc, (void)flags;
    return R(D(cuArray3DCreate_v2, cuArray3DCreate, 3020)((CUarray *)(void *)array, &d));
}

cudaError_t rt_cudaFreeArray(cudaArray_t array)
{
    return R(D(cuArrayDestroy, cuArrayDestroy, 2000)(A(array)));
}

static cudaError_t async_result(int status, CUdeviceptr p, void **ptr)
{
    if (!status)
        *ptr = (void *)(uintptr_t)p;
    return R(status);
}

cudaError_t rt_cudaMallocAsync(void **ptr, size_t n, cudaStream_t stream)
{
    CUdeviceptr p = 0;
    return async_result((int)DT(cuMemAllocAsync, cuMemAllocAsync, 11020, 11020)(&p, n, stream), p,
                        ptr);
}

cudaError_t rt_cudaMallocFromPoolAsync(void **ptr, size_t n, cudaMemPool_t pool,
                                       cudaStream_t stream)
{
    CUdeviceptr p = 0;
    return async_result((int)DT(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020,
                                11020)(&p, n, pool, stream),
                        p, ptr);
}

cudaError_t rt_cudaFreeAsync(void *ptr, cudaStream_t stream)
{
    return R(DT(cuMemFreeAsync, cuMemFreeAsync, 11020, 11020)(P(ptr), stream));
}

cudaError_t rt_cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *props)
{
    return R(D(cuMemPoolCreate, cuMemPoolCreate, 11020)(pool, (const void *)props));
}

cudaError_t rt_cudaMemPoolDestroy(cudaMemPool_t pool)
{
    return R(D(cuMemPoolDestroy, cuMemPoolDestroy, 11020)(pool));
}

cudaError_t rt_cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
    return R(D(cuMemPoolTrimTo, cuMemPoolTrimTo, 11020)(pool, keep));
}

cudaError_t rt_cudaMemPoolGetAttribute(cudaMemPool_t pool, int attr, void *value)
{
    return R(D(cuMemPoolGetAttribute, cuMemPoolGetAttribute, 11020)(pool, attr, value));
}

cudaError_t rt_cudaMemPoolSetAttribute(cudaMemPool_t pool, int attr, void *value)
{
    return R(D(cuMemPoolSetAttribute, cuMemPoolSetAttribute, 11020)(pool, attr, value));
}

cudaError_t rt_cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int dev)
{
    return R(D(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, 11020)(pool, dev));
}

cudaError_t rt_cudaDeviceGetMemPool(cudaMemPool_t *pool, int dev)
{
    return R(D(cuDeviceGetMemPool, cuDeviceGetMemPool, 11020)(pool, dev));
}

cudaError_t rt_cudaHostAlloc(void **ptr, size_t n, unsigned int flags)
{
    return R(D(cuMemHostAlloc, cuMemHostAlloc, 2020)(ptr, n, flags));
}

cudaError_t rt_cudaMallocHost(void **ptr, size_t n)
{
    return R(D(cuMemHostAlloc, cuMemHostAlloc, 2020)(ptr, n, 0));
}

cudaError_t rt_cudaFreeHost(void *ptr)
{
    return ptr ? R(D(cuMemFreeHost, cuMemFreeHost, 2000)(ptr)) : cudaSuccess;
}

cudaError_t rt_cudaHostRegister(void *ptr, size_t n, unsigned int flags)
{
    return R(D(cuMemHostRegister_v2, cuMemHostRegister, 6050)(ptr, n, flags));
}

cudaError_t rt_cudaHostUnregister(void *ptr)
{
    return R(D(cuMemHostUnregister, cuMemHostUnregister, 4000)(ptr));
}

cudaError_t rt_cudaHostGetDevicePointer(void **out, void *ptr, unsigned int flags)
{
    CUdeviceptr p = 0;
    return async_result(
        (int)D(cuMemHostGetDevicePointer_v2, cuMemHostGetDevicePointer, 3020)(&p, ptr, flags), p,
        out);
}

/* ---- waiting, events, streams
 * ------------------------------------------------------------------------ */

cudaError_t rt_cudaDeviceSynchronize(void)
{
    return R(D(cuCtxSynchronize, cuCtxSynchronize, 2000)());
}

cudaError_t rt_cudaThreadSynchronize(void)
{
    return rt_cudaDeviceSynchronize();
}

cudaError_t rt_cudaStreamSynchronize(cudaStream_t stream)
{
    return R(DT(cuStreamSynchronize, cuStreamSynchronize, 2000, 7000)(stream));
}

cudaError_t rt_cudaEventSynchronize(cudaEvent_t event)
{
    return R(D(cuEventSynchronize, cuEventSynchronize, 2000)(event));
}

cudaError_t rt_cudaStreamQuery(cudaStream_t stream)
{
    return R(DT(cuStreamQuery, cuStreamQuery, 2000, 7000)(stream));
}

cudaError_t rt_cudaEventQuery(cudaEvent_t event)
{
    return R(D(cuEventQuery, cuEventQuery, 2000)(event));
}

cudaError_t rt_cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return R(DT(cuEventRecord, cuEventRecord, 2000, 7000)(event, stream));
}

cudaError_t rt_cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
    return R(
        DT(cuEventRecordWithFlags, cuEventRecordWithFlags, 11010, 11010)(event, stream, flags));
}

cudaError_t rt_cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    return R(DT(cuStreamWaitEvent, cuStreamWaitEvent, 3020, 7000)(stream, event, flags));
}

cudaError_t rt_cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    int status = rt_context();
    return R(status ? status : (int)D(cuEventCreate, cuEventCreate, 2000)(event, flags));
}

cudaError_t rt_cudaEventCreate(cudaEvent_t *event)
{
    return rt_cudaEventCreateWithFlags(event, 0);
}

cudaError_t rt_cudaEventDestroy(cudaEvent_t event)
{
    return R(D(cuEventDestroy_v2, cuEventDestroy, 4000)(event));
}

cudaError_t rt_cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b)
{
    if (rt_driver[REQ_cuEventElapsedTime_12080_0] != (void *)rt_lacking)
        return R(D(cuEventElapsedTime_v2, cuEventElapsedTime, 12080)(ms, a, b));
    return R(D(cuEventElapsedTime, cuEventElapsedTime, 2000)(ms, a, b));
}

cudaError_t rt_cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
    return R(
        D(cuStreamCreateWithPriority, cuStreamCreateWithPriority, 5050)(stream, flags, priority));
}

cudaError_t rt_cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    return R(D(cuStreamCreate, cuStreamCreate, 2000)(stream, flags));
}

cudaError_t rt_cudaStreamCreate(cudaStream_t *stream)
{
    return rt_cudaStreamCreateWithFlags(stream, 0);
}

cudaError_t rt_cudaStreamDestroy(cudaStream_t stream)
{
    return R(D(cuStreamDestroy_v2, cuStreamDestroy, 4000)(stream));
}

/* ---- getters
 * -------------------------------------------------------------------------------------------- */

RT_EXPORT cudaError_t cudaGetLastError(void);
RT_EXPORT cudaError_t cudaGetLastError(void)
{
    cudaError_t e = R(rt_last_error);
    rt_last_error = 0;
    return e;
}

RT_EXPORT cudaError_t cudaPeekAtLastError(void);
RT_EXPORT cudaError_t cudaPeekAtLastError(void)
{
    return R(rt_last_error);
}

RT_EXPORT cudaError_t cudaRuntimeGetVersion(int *version);
RT_EXPORT cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = SIM_CUDART;
    return cudaSuccess;
}

/* Without a driver: version 0, and that is no error. */
RT_EXPORT cudaError_t cudaDriverGetVersion(int *version);
RT_EXPORT cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 0;
    if (!rt_init())
        D(cuDriverGetVersion, cuDriverGetVersion, 2020)(version);
    return cudaSuccess;
}

static const struct {
    int status;
    const char *name, *text;
} errors[] = {
    {0, "cudaSuccess", "no error"},
    {1, "cudaErrorInvalidValue", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "out of memory"},
    {3, "cudaErrorInitializationError", "initialization error"},
    {13, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {35, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {98, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {100, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {101, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {600, "cudaErrorNotReady", "device not ready"},
    {801, "cudaErrorNotSupported", "operation not supported"},
    {900, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {901, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
};

static const char *error_text(int status, bool name)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].status == status)
            return name ? errors[i].name : errors[i].text;
    return "unrecognized error code";
}

RT_EXPORT const char *cudaGetErrorString(cudaError_t status);
RT_EXPORT const char *cudaGetErrorString(cudaError_t status)
{
    return error_text((int)status, false);
}

RT_EXPORT const char *cudaGetErrorName(cudaError_t status);
RT_EXPORT const char *cudaGetErrorName(cudaError_t status)
{
    return error_text((int)status, true);
}

cudaError_t rt_cudaGetDeviceCount(int *count)
{
    return R(D(cuDeviceGetCount, cuDeviceGetCount, 2000)(count));
}

cudaError_t rt_cudaGetDevice(int *dev)
{
    *dev = rt_current_device();
    return cudaSuccess;
}

cudaError_t rt_cudaDeviceGetAttribute(int *value, int attr, int dev)
{
    return R(
        D(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000)(value, (CUdevice_attribute)attr, dev));
}

cudaError_t rt_cudaDeviceGetPCIBusId(char *id, int size, int dev)
{
    return R(D(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, 4010)(id, size, dev));
}

cudaError_t rt_cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    return R(D(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, 5050)(least, greatest));
}

cudaError_t rt_cudaDeviceCanAccessPeer(int *can, int dev, int peer_dev)
{
    return R(D(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, 4000)(can, dev, peer_dev));
}

/* The struct that differs most between versions: the fields that programs read, by offset. */
static int properties(char *out, int dev, size_t size, size_t sms)
{
    static const struct {
        int attr;
        size_t at;
    } fields[] = {{8, 296}, {12, 304}, {10, 308}, {1, 320}, {2, 324},  {3, 328},
                  {4, 332}, {5, 336},  {6, 340},  {7, 344}, {75, 360}, {76, 364}};
    size_t memory = 0;
    int value;
    int status = (int)D(cuDeviceTotalMem_v2, cuDeviceTotalMem, 3020)(&memory, dev);
    if (status)
        return status;
    memset(out, 0, size);
    D(cuDeviceGetName, cuDeviceGetName, 2000)(out, 256, dev);
    memcpy(out + 288, &memory, sizeof memory);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        rt_cudaDeviceGetAttribute(&value, fields[i].attr, dev);
        memcpy(out + fields[i].at, &value, sizeof value);
    }
    rt_cudaDeviceGetAttribute(&value, 16, dev);
    memcpy(out + sms, &value, sizeof value);
    return 0;
}

cudaError_t rt_cudaGetDeviceProperties(void *prop, int dev)
{
#if SIM_CUDART >= 13000
    return R(properties(prop, dev, 1008, 384));
#else
    return R(properties(prop, dev, 728, 388));
#endif
}

cudaError_t rt_cudaGetDeviceProperties_v2(void *prop, int dev)
{
    return R(properties(prop, dev, 1032, 388));
}

cudaError_t rt_cudaMemGetInfo(size_t *available, size_t *total)
{
    int status = rt_context();
    return R(status ? status : (int)D(cuMemGetInfo_v2, cuMemGetInfo, 3020)(available, total));
}

cudaError_t rt_cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *ptr)
{
    unsigned type = 0, managed = 0;
    int dev = -2, attrs[] = {2, 8, 9};
    void *values[] = {&type, &managed, &dev};
    int status = rt_context();
    if (status)
        return R(status);
    D(cuPointerGetAttributes, cuPointerGetAttributes, 7000)(3, attrs, values, P(ptr));
    memset(out, 0, SIM_CUDART >= 13000 ? sizeof *out : 24);
    out->type = managed ? 3 : type == CU_MEMORYTYPE_DEVICE ? 2 : type == CU_MEMORYTYPE_HOST;
    out->device = type ? dev : -2;
    out->devicePointer = type ? (void *)ptr : NULL;
    out->hostPointer = type == CU_MEMORYTYPE_HOST || managed ? (void *)ptr : NULL;
    return cudaSuccess;
}

cudaError_t rt_cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *func)
{
    int status = rt_context();
    if (status)
        return R(status);
    if (!rt_kernel_of(func))
        return cudaErrorInvalidDeviceFunction;
    memset(out, 0, SIM_CUDART >= 13000 ? sizeof *out : 56);
    out->maxThreadsPerBlock = 1024;
    out->numRegs = 32;
    out->ptxVersion = out->binaryVersion = 90;
    out->maxDynamicSharedSizeBytes = 49152;
    return cudaSuccess;
}

cudaError_t rt_cudaFuncSetAttribute(const void *func, int attr, int value)
{
    int status = rt_context();
    void *kernel = status ? NULL : rt_kernel_of(func);
    if (status || !kernel)
        return status ? R(status) : cudaErrorInvalidDeviceFunction;
    return R(D(cuFuncSetAttribute, cuFuncSetAttribute, 9000)(kernel, attr, value));
}

cudaError_t rt_cudaFuncGetName(const char **name, const void *func)
{
    int status = rt_context();
    void *kernel = status ? NULL : rt_kernel_of(func);
    if (status)
        return R(status);
    return R(D(cuKernelGetName, cuKernelGetName, 12030)(name, kernel ? kernel : (void *)func));
}

cudaError_t rt_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *func,
                                                                      int threads, size_t shared,
                                                                      unsigned int flags)
{
    int status = rt_context();
    if (status)
        return R(status);
    return R(D(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
               cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
               7000)(blocks, rt_kernel_of(func), threads, shared, flags));
}

cudaError_t rt_cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *func,
                                                             int threads, size_t shared)
{
    return rt_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, func, threads, shared,
                                                                     0);
}

cudaError_t rt_cudaGetDriverEntryPointByVersion(const char *symbol, void **pfn,
                                                unsigned int version, unsigned long long flags,
                                                int *status)
{
    return R(rt_entry_point(symbol, pfn, version, flags, status));
}

cudaError_t rt_cudaGetDriverEntryPoint(const char *symbol, void **pfn, unsigned long long flags,
                                       int *status)
{
    return R(rt_entry_point(symbol, pfn, SIM_CUDART, flags, status));
}

cudaError_t rt_cudaGetExportTable(const void **table, const CUuuid *id)
{
    return R(D(cuGetExportTable, cuGetExportTable, 3000)(table, id));
}

#define STREAM_GETTER(name, type, version, version_pt)                                             \
    cudaError_t rt_cuda##name(cudaStream_t stream, type *value)                                    \
    {                                                                                              \
        int status = rt_context();                                                                 \
        return R(status ? status                                                                   \
                        : (int)DT(cu##name, cu##name, version, version_pt)(stream, value));        \
    }

STREAM_GETTER(StreamGetPriority, int, 5050, 7000)
STREAM_GETTER(StreamGetFlags, unsigned int, 5050, 7000)

#if SIM_CUDART >= 12000
STREAM_GETTER(StreamGetId, unsigned long long, 12000, 12000)
#endif
