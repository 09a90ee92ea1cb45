/* Captures, graphs and libraries of the runtime. */
#include "cudart.h"

#include <string.h>

#define P(x) ((CUdeviceptr)(uintptr_t)(x))
#define R(x) ((cudaError_t)(x))

/* ---- captures -------------------------------------------------------------------------- */

cudaError_t rt_cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    return R(DT(cuStreamBeginCapture_v2, cuStreamBeginCapture, 10010,
                10010)(stream, (CUstreamCaptureMode)mode));
}

cudaError_t rt_cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                             const cudaGraphNode_t *deps,
                                             const cudaGraphEdgeData *edges, size_t n,
                                             enum cudaStreamCaptureMode mode)
{
    return R(DT(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph, 12030,
                12030)(stream, graph, deps, (const CUgraphEdgeData *)(const void *)edges, n,
                       (CUstreamCaptureMode)mode));
}

cudaError_t rt_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    return R(DT(cuStreamEndCapture, cuStreamEndCapture, 10000, 10000)(stream, graph));
}

cudaError_t rt_cudaStreamIsCapturing(cudaStream_t stream, int *status)
{
    int error = rt_context();
    CUstreamCaptureStatus s = CU_STREAM_CAPTURE_STATUS_NONE;
    if (!error)
        error = (int)DT(cuStreamIsCapturing, cuStreamIsCapturing, 10000, 10000)(stream, &s);
    *status = (int)s;
    return R(error);
}

/* 13: (stream, status, id, graph, deps, edges, n); before: (stream, status, id). */
cudaError_t rt_cudaStreamGetCaptureInfo(cudaStream_t stream, int *status, unsigned long long *id,
                                        void *word3, void *word4, void *word5, void *word6)
{
    int error = rt_context();
    CUstreamCaptureStatus s = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t n = 0;
    if (error)
        return R(error);
#if SIM_CUDART >= 13000
    error = (int)DT(cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo, 12030,
                    12030)(stream, &s, &n, word3, word4, word5, word6);
#else
    (void)word3, (void)word4, (void)word5, (void)word6;
    error = (int)DT(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo, 10010, 10010)(stream, &s, &n);
#endif
    *status = (int)s;
    if (id)
        *id = n;
    return R(error);
}

cudaError_t rt_cudaStreamGetCaptureInfo_v2(cudaStream_t stream, int *status, unsigned long long *id,
                                           cudaGraph_t *graph, const cudaGraphNode_t **deps,
                                           size_t *n)
{
    int error = rt_context();
    CUstreamCaptureStatus s = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t number = 0;
    if (!error)
        error = (int)DT(cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo, 11030,
                        11030)(stream, &s, &number, graph, deps, n);
    *status = (int)s;
    if (id)
        *id = number;
    return R(error);
}

cudaError_t rt_cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    CUstreamCaptureMode m = (CUstreamCaptureMode)*mode;
    int status =
        (int)D(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, 10010)(&m);
    *mode = (enum cudaStreamCaptureMode)m;
    return R(status);
}

/* ---- executable graphs ---------------------------------------------------------------------- */

cudaError_t rt_cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, void *word2,
                                    void *word3, void *word4)
{
#if SIM_CUDART >= 12000
    (void)word3, (void)word4;
    return R(D(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags,
               11040)(exec, graph, (unsigned long long)(uintptr_t)word2));
#else
    return R(D(cuGraphInstantiate_v2, cuGraphInstantiate, 11000)(exec, graph, word2, word3,
                                                                 (size_t)(uintptr_t)word4));
#endif
}

cudaError_t rt_cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                             unsigned long long flags)
{
    return R(
        D(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040)(exec, graph, flags));
}

cudaError_t rt_cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
                                              cudaGraphInstantiateParams *parms)
{
    return R(DT(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams, 12000,
                12000)(exec, graph, (CUDA_GRAPH_INSTANTIATE_PARAMS *)(void *)parms));
}

cudaError_t rt_cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, void *word2,
                                   void *word3)
{
#if SIM_CUDART >= 12000
    (void)word3;
    return R(D(cuGraphExecUpdate_v2, cuGraphExecUpdate, 12000)(exec, graph, word2));
#else
    return R(D(cuGraphExecUpdate, cuGraphExecUpdate, 10020)(exec, graph, word2, word3));
#endif
}

cudaError_t rt_cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    return R(DT(cuGraphLaunch, cuGraphLaunch, 10000, 10000)(exec, stream));
}

cudaError_t rt_cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    return R(DT(cuGraphUpload, cuGraphUpload, 11010, 11010)(exec, stream));
}

cudaError_t rt_cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    return R(D(cuGraphExecDestroy, cuGraphExecDestroy, 10000)(exec));
}

cudaError_t rt_cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t gnode,
                                       unsigned int enabled)
{
    return R(D(cuGraphNodeSetEnabled, cuGraphNodeSetEnabled, 11060)(exec, gnode, enabled));
}

/* The driver's kernel parameters: a registered function becomes its kernel. */
static CUDA_KERNEL_NODE_PARAMS_v2 kernel_params(const struct cudaKernelNodeParams *p)
{
    void *kernel = rt_kernel_of(p->func);
    CUDA_KERNEL_NODE_PARAMS_v2 q = {.gridDimX = p->gridDim.x,
                                    .gridDimY = p->gridDim.y,
                                    .gridDimZ = p->gridDim.z,
                                    .blockDimX = p->blockDim.x,
                                    .blockDimY = p->blockDim.y,
                                    .blockDimZ = p->blockDim.z,
                                    .sharedMemBytes = p->sharedMemBytes,
                                    .kernelParams = p->kernelParams,
                                    .extra = p->extra};
#if SIM_CUDART >= 12000
    q.kern = kernel ? kernel : p->func;
#else
    q.func = kernel ? kernel : p->func;
#endif
    return q;
}

cudaError_t rt_cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t gnode,
                                                const struct cudaKernelNodeParams *parms)
{
    CUDA_KERNEL_NODE_PARAMS_v2 p = kernel_params(parms);
#if SIM_CUDART >= 12000
    return R(D(cuGraphExecKernelNodeSetParams_v2, cuGraphExecKernelNodeSetParams,
               12000)(exec, gnode, &p));
#else
    return R(D(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams,
               10010)(exec, gnode, (const CUDA_KERNEL_NODE_PARAMS_v1 *)(const void *)&p));
#endif
}

static CUDA_MEMCPY3D linear(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind)
{
    bool from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
    bool to_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;
    CUmemorytype other = kind == cudaMemcpyDefault ? CU_MEMORYTYPE_UNIFIED : CU_MEMORYTYPE_DEVICE;
    return (CUDA_MEMCPY3D){.srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : other,
                           .srcHost = from_host ? src : NULL,
                           .srcDevice = from_host ? 0 : P(src),
                           .srcPitch = n,
                           .srcHeight = 1,
                           .dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : other,
                           .dstHost = to_host ? dst : NULL,
                           .dstDevice = to_host ? 0 : P(dst),
                           .dstPitch = n,
                           .dstHeight = 1,
                           .WidthInBytes = n,
                           .Height = 1,
                           .Depth = 1};
}

static CUcontext current(void)
{
    CUcontext ctx = NULL;
    D(cuCtxGetCurrent, cuCtxGetCurrent, 4000)(&ctx);
    return ctx;
}

cudaError_t rt_cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t gnode,
                                                  void *dst, const void *src, size_t n,
                                                  enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D p = linear(dst, src, n, kind);
    return R(D(cuGraphExecMemcpyNodeSetParams, cuGraphExecMemcpyNodeSetParams,
               10020)(exec, gnode, &p, current()));
}

cudaError_t rt_cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t gnode,
                                                const struct cudaMemsetParams *parms)
{
    CUDA_MEMSET_NODE_PARAMS p = {P(parms->dst),      parms->pitch, parms->value,
                                 parms->elementSize, parms->width, parms->height};
    return R(D(cuGraphExecMemsetNodeSetParams, cuGraphExecMemsetNodeSetParams,
               10020)(exec, gnode, &p, current()));
}

cudaError_t rt_cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t gnode,
                                                    cudaGraph_t child)
{
    return R(D(cuGraphExecChildGraphNodeSetParams, cuGraphExecChildGraphNodeSetParams,
               11010)(exec, gnode, child));
}

/* ---- graphs by hand ---------------------------------------------------------------------------
 */

cudaError_t rt_cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
    int status = rt_context();
    return R(status ? status : (int)D(cuGraphCreate, cuGraphCreate, 10000)(graph, flags));
}

cudaError_t rt_cudaGraphDestroy(cudaGraph_t graph)
{
    return R(D(cuGraphDestroy, cuGraphDestroy, 10000)(graph));
}

cudaError_t rt_cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph)
{
    return R(D(cuGraphClone, cuGraphClone, 10000)(clone, graph));
}

cudaError_t rt_cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    return R(D(cuGraphGetNodes, cuGraphGetNodes, 10000)(graph, nodes, count));
}

cudaError_t rt_cudaGraphNodeGetType(cudaGraphNode_t gnode, int *type)
{
    CUgraphNodeType t = CU_GRAPH_NODE_TYPE_EMPTY;
    int status = (int)D(cuGraphNodeGetType, cuGraphNodeGetType, 10000)(gnode, &t);
    *type = (int)t;
    return R(status);
}

cudaError_t rt_cudaGraphAddKernelNode(cudaGraphNode_t *gnode, cudaGraph_t graph,
                                      const cudaGraphNode_t *deps, size_t n,
                                      const struct cudaKernelNodeParams *parms)
{
    int status = rt_context();
    if (status)
        return R(status);
    CUDA_KERNEL_NODE_PARAMS_v2 p = kernel_params(parms);
#if SIM_CUDART >= 12000
    return R(D(cuGraphAddKernelNode_v2, cuGraphAddKernelNode, 12000)(gnode, graph, deps, n, &p));
#else
    return R(D(cuGraphAddKernelNode, cuGraphAddKernelNode,
               10000)(gnode, graph, deps, n, (const CUDA_KERNEL_NODE_PARAMS_v1 *)(const void *)&p));
#endif
}

cudaError_t rt_cudaGraphKernelNodeGetParams(cudaGraphNode_t gnode, struct cudaKernelNodeParams *out)
{
    CUDA_KERNEL_NODE_PARAMS_v2 p;
#if SIM_CUDART >= 12000
    int status =
        (int)D(cuGraphKernelNodeGetParams_v2, cuGraphKernelNodeGetParams, 12000)(gnode, &p);
#else
    memset(&p, 0, sizeof p);
    int status = (int)D(cuGraphKernelNodeGetParams, cuGraphKernelNodeGetParams,
                        10000)(gnode, (CUDA_KERNEL_NODE_PARAMS_v1 *)(void *)&p);
#endif
    if (status)
        return R(status);
    *out = (struct cudaKernelNodeParams){.func = p.func ? (void *)p.func : (void *)p.kern,
                                         .gridDim = {p.gridDimX, p.gridDimY, p.gridDimZ},
                                         .blockDim = {p.blockDimX, p.blockDimY, p.blockDimZ},
                                         .sharedMemBytes = p.sharedMemBytes,
                                         .kernelParams = p.kernelParams};
    return cudaSuccess;
}

cudaError_t rt_cudaGraphAddMemcpyNode1D(cudaGraphNode_t *gnode, cudaGraph_t graph,
                                        const cudaGraphNode_t *deps, size_t n, void *dst,
                                        const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
    int status = rt_context();
    CUDA_MEMCPY3D p = linear(dst, src, bytes, kind);
    return R(status ? status
                    : (int)D(cuGraphAddMemcpyNode, cuGraphAddMemcpyNode, 10000)(gnode, graph, deps,
                                                                                n, &p, current()));
}

cudaError_t rt_cudaGraphAddMemsetNode(cudaGraphNode_t *gnode, cudaGraph_t graph,
                                      const cudaGraphNode_t *deps, size_t n,
                                      const struct cudaMemsetParams *parms)
{
    int status = rt_context();
    CUDA_MEMSET_NODE_PARAMS p = {P(parms->dst),      parms->pitch, parms->value,
                                 parms->elementSize, parms->width, parms->height};
    return R(status ? status
                    : (int)D(cuGraphAddMemsetNode, cuGraphAddMemsetNode, 10000)(gnode, graph, deps,
                                                                                n, &p, current()));
}

cudaError_t rt_cudaGraphAddHostNode(cudaGraphNode_t *gnode, cudaGraph_t graph,
                                    const cudaGraphNode_t *deps, size_t n,
                                    const struct cudaHostNodeParams *parms)
{
    CUDA_HOST_NODE_PARAMS p = {parms->fn, parms->userData};
    return R(D(cuGraphAddHostNode, cuGraphAddHostNode, 10000)(gnode, graph, deps, n, &p));
}

cudaError_t rt_cudaGraphAddChildGraphNode(cudaGraphNode_t *gnode, cudaGraph_t graph,
                                          const cudaGraphNode_t *deps, size_t n, cudaGraph_t child)
{
    return R(
        D(cuGraphAddChildGraphNode, cuGraphAddChildGraphNode, 10000)(gnode, graph, deps, n, child));
}

cudaError_t rt_cudaGraphAddEmptyNode(cudaGraphNode_t *gnode, cudaGraph_t graph,
                                     const cudaGraphNode_t *deps, size_t n)
{
    return R(D(cuGraphAddEmptyNode, cuGraphAddEmptyNode, 10000)(gnode, graph, deps, n));
}

/* ---- libraries ---------------------------------------------------------------------------------
 */

#if SIM_CUDART >= 12000
cudaError_t rt_cudaLibraryLoadData(cudaLibrary_t *lib, const void *image, enum cudaJitOption *jit,
                                   void **jit_values, unsigned int jit_count,
                                   enum cudaLibraryOption *opt, void **opt_values,
                                   unsigned int opt_count)
{
    return R(D(cuLibraryLoadData, cuLibraryLoadData,
               12000)(lib, image, (CUjit_option *)(void *)jit, jit_values, jit_count,
                      (CUlibraryOption *)(void *)opt, opt_values, opt_count));
}

cudaError_t rt_cudaLibraryLoadFromFile(cudaLibrary_t *lib, const char *path,
                                       enum cudaJitOption *jit, void **jit_values,
                                       unsigned int jit_count, enum cudaLibraryOption *opt,
                                       void **opt_values, unsigned int opt_count)
{
    return R(D(cuLibraryLoadFromFile, cuLibraryLoadFromFile,
               12000)(lib, path, (CUjit_option *)(void *)jit, jit_values, jit_count,
                      (CUlibraryOption *)(void *)opt, opt_values, opt_count));
}

cudaError_t rt_cudaLibraryUnload(cudaLibrary_t lib)
{
    return R(D(cuLibraryUnload, cuLibraryUnload, 12000)(lib));
}

cudaError_t rt_cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t lib, const char *name)
{
    return R(D(cuLibraryGetKernel, cuLibraryGetKernel, 12000)(kernel, lib, name));
}
#endif
