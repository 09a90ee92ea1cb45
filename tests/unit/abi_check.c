/* The call table and cuda_abi.h against real CUDA headers; abi_check.sh compiles this twice.
 *
 * With GW_REAL_CUDA_HEADERS: declares every row and helper again next to the header's own
 * declaration, so that a wrong prototype does not compile, and lists sizes, offsets and
 * values as the headers have them. Without: lists the same as our header has them, and
 * compares.
 */
#include "lib/capture/cuda_abi.h"

#include <stdio.h>
#include <string.h>

struct fact {
    const char *what;
    long long value;
};
extern const struct fact real_facts[];
extern const size_t real_count;

#ifdef GW_REAL_CUDA_HEADERS

#define ROW(ret, name, params, ...)  ret name params;
#define PTSZ(ret, name, params, ...) ROW(ret, name, params) ROW(ret, name##_ptsz, params)
#define PTDS(ret, name, params, ...) ROW(ret, name, params) ROW(ret, name##_ptds, params)
#define RT                           ROW
#define RT_PTSZ                      PTSZ
#define RT_PTDS                      PTDS
#define DR                           ROW
#define DR_PTSZ                      PTSZ
#define DR_PTDS                      PTDS
#define NC                           ROW
#include "lib/capture/calls.def"
#define HELPER ROW
#include "lib/capture/helpers.def"

/* toolkits from one version on, up to but without another */
#define TOOLKIT(from, below) (CUDA_VERSION >= (from) && CUDA_VERSION < (below))
#define FACTS                real_facts

#else

#define TOOLKIT(from, below) 1
#define FACTS                our_facts
static

#endif

#define SIZE(type)                                                                                 \
    {                                                                                              \
        "sizeof " #type, sizeof(type)                                                              \
    }
#define OFFSET(type, field)                                                                        \
    {                                                                                              \
        "offset " #type "." #field, offsetof(type, field)                                          \
    }
#define VALUE(name)                                                                                \
    {                                                                                              \
#name, name                                                                                \
    }

const struct fact FACTS[] = {
    /* status */
    SIZE(CUresult),
    VALUE(CUDA_SUCCESS),
    VALUE(CUDA_ERROR_INVALID_VALUE),
    VALUE(CUDA_ERROR_OUT_OF_MEMORY),
    VALUE(CUDA_ERROR_NOT_INITIALIZED),
    VALUE(CUDA_ERROR_DEINITIALIZED),
    VALUE(CUDA_ERROR_STUB_LIBRARY),
    VALUE(CUDA_ERROR_NO_DEVICE),
    VALUE(CUDA_ERROR_INVALID_DEVICE),
    VALUE(CUDA_ERROR_INVALID_IMAGE),
    VALUE(CUDA_ERROR_INVALID_CONTEXT),
    VALUE(CUDA_ERROR_INVALID_HANDLE),
    VALUE(CUDA_ERROR_NOT_FOUND),
    VALUE(CUDA_ERROR_NOT_READY),
    VALUE(CUDA_ERROR_ILLEGAL_ADDRESS),
    VALUE(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED),
    VALUE(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED),
    VALUE(CUDA_ERROR_LAUNCH_FAILED),
    VALUE(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE),
    VALUE(CUDA_ERROR_NOT_PERMITTED),
    VALUE(CUDA_ERROR_NOT_SUPPORTED),
    VALUE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED),
    VALUE(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED),
    VALUE(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT),
    VALUE(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD),
    VALUE(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE),
    VALUE(CUDA_ERROR_UNKNOWN),
    SIZE(cudaError_t),
    VALUE(cudaSuccess),
    VALUE(cudaErrorInvalidValue),
    VALUE(cudaErrorMemoryAllocation),
    VALUE(cudaErrorInitializationError),
    VALUE(cudaErrorCudartUnloading),
    VALUE(cudaErrorStubLibrary),
    VALUE(cudaErrorInsufficientDriver),
    VALUE(cudaErrorInvalidDeviceFunction),
    VALUE(cudaErrorNoDevice),
    VALUE(cudaErrorInvalidDevice),
    VALUE(cudaErrorSharedObjectInitFailed),
    VALUE(cudaErrorInvalidResourceHandle),
    VALUE(cudaErrorSymbolNotFound),
    VALUE(cudaErrorNotReady),
    VALUE(cudaErrorIllegalAddress),
    VALUE(cudaErrorHostMemoryAlreadyRegistered),
    VALUE(cudaErrorHostMemoryNotRegistered),
    VALUE(cudaErrorLaunchFailure),
    VALUE(cudaErrorCooperativeLaunchTooLarge),
    VALUE(cudaErrorNotPermitted),
    VALUE(cudaErrorNotSupported),
    VALUE(cudaErrorStreamCaptureUnsupported),
    VALUE(cudaErrorStreamCaptureInvalidated),
    VALUE(cudaErrorStreamCaptureImplicit),
    VALUE(cudaErrorStreamCaptureWrongThread),
    VALUE(cudaErrorGraphExecUpdateFailure),
    VALUE(cudaErrorUnknown),

    /* handles: what is no pointer */
    SIZE(CUdevice),
    SIZE(CUdeviceptr),
    SIZE(CUmemGenericAllocationHandle),
    SIZE(cuuint32_t),
    SIZE(cuuint64_t),
    VALUE((size_t)CU_STREAM_LEGACY),
    VALUE((size_t)CU_STREAM_PER_THREAD),

    /* flags */
    VALUE(CU_STREAM_NON_BLOCKING),
    VALUE(CU_EVENT_BLOCKING_SYNC),
    VALUE(CU_EVENT_DISABLE_TIMING),
    VALUE(CU_EVENT_INTERPROCESS),
    VALUE(CU_EVENT_RECORD_EXTERNAL),
    VALUE(CU_EVENT_WAIT_EXTERNAL),
    VALUE(CU_MEMHOSTALLOC_PORTABLE),
    VALUE(CU_MEMHOSTALLOC_DEVICEMAP),
    VALUE(CU_MEMHOSTALLOC_WRITECOMBINED),

    /* enumerations */
    SIZE(enum cudaMemcpyKind),
    VALUE(cudaMemcpyHostToHost),
    VALUE(cudaMemcpyHostToDevice),
    VALUE(cudaMemcpyDeviceToHost),
    VALUE(cudaMemcpyDeviceToDevice),
    VALUE(cudaMemcpyDefault),
    SIZE(CUmemorytype),
    VALUE(CU_MEMORYTYPE_HOST),
    VALUE(CU_MEMORYTYPE_DEVICE),
    VALUE(CU_MEMORYTYPE_ARRAY),
    VALUE(CU_MEMORYTYPE_UNIFIED),
    SIZE(CUgraphNodeType),
    VALUE(CU_GRAPH_NODE_TYPE_KERNEL),
    VALUE(CU_GRAPH_NODE_TYPE_MEMCPY),
    VALUE(CU_GRAPH_NODE_TYPE_MEMSET),
    VALUE(CU_GRAPH_NODE_TYPE_HOST),
    VALUE(CU_GRAPH_NODE_TYPE_GRAPH),
    VALUE(CU_GRAPH_NODE_TYPE_EMPTY),
    VALUE(CU_GRAPH_NODE_TYPE_WAIT_EVENT),
    VALUE(CU_GRAPH_NODE_TYPE_EVENT_RECORD),
    VALUE(CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL),
    VALUE(CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT),
    VALUE(CU_GRAPH_NODE_TYPE_MEM_ALLOC),
    VALUE(CU_GRAPH_NODE_TYPE_MEM_FREE),
    VALUE(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP),
#if TOOLKIT(12030, 99000)
    VALUE(CU_GRAPH_NODE_TYPE_CONDITIONAL),
#endif
    SIZE(CUstreamCaptureMode),
    VALUE(CU_STREAM_CAPTURE_MODE_GLOBAL),
    VALUE(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
    VALUE(CU_STREAM_CAPTURE_MODE_RELAXED),
    SIZE(enum cudaStreamCaptureMode),
    VALUE(cudaStreamCaptureModeGlobal),
    VALUE(cudaStreamCaptureModeThreadLocal),
    VALUE(cudaStreamCaptureModeRelaxed),
    SIZE(CUstreamCaptureStatus),
    VALUE(CU_STREAM_CAPTURE_STATUS_NONE),
    VALUE(CU_STREAM_CAPTURE_STATUS_ACTIVE),
    VALUE(CU_STREAM_CAPTURE_STATUS_INVALIDATED),
    SIZE(CUdevice_attribute),
    VALUE(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
    VALUE(CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
    VALUE(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
    VALUE(CU_DEVICE_ATTRIBUTE_INTEGRATED),
    VALUE(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
    VALUE(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID),
    VALUE(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
    VALUE(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
    VALUE(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
    VALUE(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
    VALUE(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT),
    VALUE(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING),
    VALUE(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
    VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
    VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
    VALUE(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS),
    VALUE(CU_MEM_LOCATION_TYPE_INVALID),
    VALUE(CU_MEM_LOCATION_TYPE_DEVICE),
    VALUE(cudaMemLocationTypeInvalid),
    VALUE(cudaMemLocationTypeDevice),
#if TOOLKIT(12020, 99000)
    VALUE(CU_MEM_LOCATION_TYPE_HOST),
    VALUE(CU_MEM_LOCATION_TYPE_HOST_NUMA),
    VALUE(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT),
    VALUE(cudaMemLocationTypeHost),
    VALUE(cudaMemLocationTypeHostNuma),
    VALUE(cudaMemLocationTypeHostNumaCurrent),
#endif
    SIZE(CUjit_option),
    SIZE(CUjitInputType),
    SIZE(CUlibraryOption),
    SIZE(CUlimit),
    SIZE(CUmemAllocationHandleType),
    SIZE(CUgraphExecUpdateResult),
    SIZE(CUmem_advise),
    SIZE(CUflushGPUDirectRDMAWritesTarget),
    SIZE(CUflushGPUDirectRDMAWritesScope),
    SIZE(enum cudaMemoryAdvise),
    SIZE(enum cudaFlushGPUDirectRDMAWritesTarget),
    SIZE(enum cudaFlushGPUDirectRDMAWritesScope),
    SIZE(enum cudaJitOption),
    SIZE(enum cudaLibraryOption),
    SIZE(enum cudaLimit),
    SIZE(enum cudaMemAllocationHandleType),

    /* small structs */
    SIZE(dim3),
    OFFSET(dim3, z),
    SIZE(struct cudaPos),
    OFFSET(struct cudaPos, z),
    SIZE(struct cudaExtent),
    OFFSET(struct cudaExtent, height),
    OFFSET(struct cudaExtent, depth),
    SIZE(struct cudaPitchedPtr),
    OFFSET(struct cudaPitchedPtr, ptr),
    OFFSET(struct cudaPitchedPtr, pitch),
    OFFSET(struct cudaPitchedPtr, ysize),
    SIZE(CUmemLocation),
    OFFSET(CUmemLocation, id),
    SIZE(struct cudaMemLocation),
    OFFSET(struct cudaMemLocation, id),
    SIZE(CUipcMemHandle),
    SIZE(cudaIpcMemHandle_t),

    /* launches */
    SIZE(CUlaunchAttributeID),
    VALUE(CU_LAUNCH_ATTRIBUTE_IGNORE),
    VALUE(CU_LAUNCH_ATTRIBUTE_COOPERATIVE),
    VALUE(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION),
    VALUE(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION),
    VALUE(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT),
    VALUE(CU_LAUNCH_ATTRIBUTE_PRIORITY),
    SIZE(cudaLaunchAttributeID),
    VALUE(cudaLaunchAttributeIgnore),
    VALUE(cudaLaunchAttributeCooperative),
    VALUE(cudaLaunchAttributeClusterDimension),
    VALUE(cudaLaunchAttributeProgrammaticStreamSerialization),
    VALUE(cudaLaunchAttributeProgrammaticEvent),
    VALUE(cudaLaunchAttributePriority),
    SIZE(CUlaunchAttributeValue),
    OFFSET(CUlaunchAttributeValue, cooperative),
    OFFSET(CUlaunchAttributeValue, programmaticStreamSerializationAllowed),
    OFFSET(CUlaunchAttributeValue, priority),
    OFFSET(CUlaunchAttributeValue, clusterDim.z),
    OFFSET(CUlaunchAttributeValue, programmaticEvent.event),
    OFFSET(CUlaunchAttributeValue, programmaticEvent.flags),
    OFFSET(CUlaunchAttributeValue, programmaticEvent.triggerAtBlockStart),
    SIZE(cudaLaunchAttributeValue),
    OFFSET(cudaLaunchAttributeValue, cooperative),
    OFFSET(cudaLaunchAttributeValue, programmaticStreamSerializationAllowed),
    OFFSET(cudaLaunchAttributeValue, priority),
    OFFSET(cudaLaunchAttributeValue, clusterDim.z),
    OFFSET(cudaLaunchAttributeValue, programmaticEvent.event),
    OFFSET(cudaLaunchAttributeValue, programmaticEvent.flags),
    OFFSET(cudaLaunchAttributeValue, programmaticEvent.triggerAtBlockStart),
#if TOOLKIT(12030, 99000)
    VALUE(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT),
    VALUE(cudaLaunchAttributeLaunchCompletionEvent),
    OFFSET(CUlaunchAttributeValue, launchCompletionEvent.event),
    OFFSET(CUlaunchAttributeValue, launchCompletionEvent.flags),
    OFFSET(cudaLaunchAttributeValue, launchCompletionEvent.event),
    OFFSET(cudaLaunchAttributeValue, launchCompletionEvent.flags),
#endif
#if TOOLKIT(12040, 99000)
    VALUE(CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE),
    VALUE(cudaLaunchAttributeDeviceUpdatableKernelNode),
#endif
    SIZE(CUlaunchAttribute),
    OFFSET(CUlaunchAttribute, id),
    OFFSET(CUlaunchAttribute, value),
    SIZE(cudaLaunchAttribute),
    OFFSET(cudaLaunchAttribute, id),
    OFFSET(cudaLaunchAttribute, val),
    SIZE(CUlaunchConfig),
    OFFSET(CUlaunchConfig, gridDimX),
    OFFSET(CUlaunchConfig, gridDimY),
    OFFSET(CUlaunchConfig, gridDimZ),
    OFFSET(CUlaunchConfig, blockDimX),
    OFFSET(CUlaunchConfig, blockDimY),
    OFFSET(CUlaunchConfig, blockDimZ),
    OFFSET(CUlaunchConfig, sharedMemBytes),
    OFFSET(CUlaunchConfig, hStream),
    OFFSET(CUlaunchConfig, attrs),
    OFFSET(CUlaunchConfig, numAttrs),
    SIZE(cudaLaunchConfig_t),
    OFFSET(cudaLaunchConfig_t, gridDim),
    OFFSET(cudaLaunchConfig_t, blockDim),
    OFFSET(cudaLaunchConfig_t, dynamicSmemBytes),
    OFFSET(cudaLaunchConfig_t, stream),
    OFFSET(cudaLaunchConfig_t, attrs),
    OFFSET(cudaLaunchConfig_t, numAttrs),
    SIZE(CUDA_LAUNCH_PARAMS),
    OFFSET(CUDA_LAUNCH_PARAMS, function),
    OFFSET(CUDA_LAUNCH_PARAMS, gridDimX),
    OFFSET(CUDA_LAUNCH_PARAMS, blockDimZ),
    OFFSET(CUDA_LAUNCH_PARAMS, sharedMemBytes),
    OFFSET(CUDA_LAUNCH_PARAMS, hStream),
    OFFSET(CUDA_LAUNCH_PARAMS, kernelParams),
#if TOOLKIT(11080, 13000)
    SIZE(struct cudaLaunchParams),
    OFFSET(struct cudaLaunchParams, func),
    OFFSET(struct cudaLaunchParams, gridDim),
    OFFSET(struct cudaLaunchParams, blockDim),
    OFFSET(struct cudaLaunchParams, args),
    OFFSET(struct cudaLaunchParams, sharedMem),
    OFFSET(struct cudaLaunchParams, stream),
#endif

    /* copies */
    SIZE(CUDA_MEMCPY2D),
    OFFSET(CUDA_MEMCPY2D, srcXInBytes),
    OFFSET(CUDA_MEMCPY2D, srcMemoryType),
    OFFSET(CUDA_MEMCPY2D, srcHost),
    OFFSET(CUDA_MEMCPY2D, srcDevice),
    OFFSET(CUDA_MEMCPY2D, srcArray),
    OFFSET(CUDA_MEMCPY2D, srcPitch),
    OFFSET(CUDA_MEMCPY2D, dstXInBytes),
    OFFSET(CUDA_MEMCPY2D, dstMemoryType),
    OFFSET(CUDA_MEMCPY2D, dstHost),
    OFFSET(CUDA_MEMCPY2D, dstDevice),
    OFFSET(CUDA_MEMCPY2D, dstArray),
    OFFSET(CUDA_MEMCPY2D, dstPitch),
    OFFSET(CUDA_MEMCPY2D, WidthInBytes),
    OFFSET(CUDA_MEMCPY2D, Height),
    SIZE(CUDA_MEMCPY3D),
    OFFSET(CUDA_MEMCPY3D, srcXInBytes),
    OFFSET(CUDA_MEMCPY3D, srcMemoryType),
    OFFSET(CUDA_MEMCPY3D, srcHost),
    OFFSET(CUDA_MEMCPY3D, srcDevice),
    OFFSET(CUDA_MEMCPY3D, srcArray),
    OFFSET(CUDA_MEMCPY3D, srcPitch),
    OFFSET(CUDA_MEMCPY3D, srcHeight),
    OFFSET(CUDA_MEMCPY3D, dstXInBytes),
    OFFSET(CUDA_MEMCPY3D, dstMemoryType),
    OFFSET(CUDA_MEMCPY3D, dstHost),
    OFFSET(CUDA_MEMCPY3D, dstDevice),
    OFFSET(CUDA_MEMCPY3D, dstArray),
    OFFSET(CUDA_MEMCPY3D, dstPitch),
    OFFSET(CUDA_MEMCPY3D, dstHeight),
    OFFSET(CUDA_MEMCPY3D, WidthInBytes),
    OFFSET(CUDA_MEMCPY3D, Height),
    OFFSET(CUDA_MEMCPY3D, Depth),
    SIZE(CUDA_MEMCPY3D_PEER),
    OFFSET(CUDA_MEMCPY3D_PEER, srcMemoryType),
    OFFSET(CUDA_MEMCPY3D_PEER, srcHost),
    OFFSET(CUDA_MEMCPY3D_PEER, srcDevice),
    OFFSET(CUDA_MEMCPY3D_PEER, srcContext),
    OFFSET(CUDA_MEMCPY3D_PEER, dstMemoryType),
    OFFSET(CUDA_MEMCPY3D_PEER, dstHost),
    OFFSET(CUDA_MEMCPY3D_PEER, dstDevice),
    OFFSET(CUDA_MEMCPY3D_PEER, dstContext),
    OFFSET(CUDA_MEMCPY3D_PEER, WidthInBytes),
    OFFSET(CUDA_MEMCPY3D_PEER, Height),
    OFFSET(CUDA_MEMCPY3D_PEER, Depth),
    SIZE(CUDA_MEMCPY2D_v1),
    OFFSET(CUDA_MEMCPY2D_v1, srcMemoryType),
    OFFSET(CUDA_MEMCPY2D_v1, srcHost),
    OFFSET(CUDA_MEMCPY2D_v1, srcDevice),
    OFFSET(CUDA_MEMCPY2D_v1, dstMemoryType),
    OFFSET(CUDA_MEMCPY2D_v1, dstHost),
    OFFSET(CUDA_MEMCPY2D_v1, dstDevice),
    OFFSET(CUDA_MEMCPY2D_v1, WidthInBytes),
    OFFSET(CUDA_MEMCPY2D_v1, Height),
    SIZE(CUDA_MEMCPY3D_v1),
    OFFSET(CUDA_MEMCPY3D_v1, srcMemoryType),
    OFFSET(CUDA_MEMCPY3D_v1, srcHost),
    OFFSET(CUDA_MEMCPY3D_v1, srcDevice),
    OFFSET(CUDA_MEMCPY3D_v1, dstMemoryType),
    OFFSET(CUDA_MEMCPY3D_v1, dstHost),
    OFFSET(CUDA_MEMCPY3D_v1, dstDevice),
    OFFSET(CUDA_MEMCPY3D_v1, WidthInBytes),
    OFFSET(CUDA_MEMCPY3D_v1, Height),
    OFFSET(CUDA_MEMCPY3D_v1, Depth),
    SIZE(struct cudaMemcpy3DParms),
    OFFSET(struct cudaMemcpy3DParms, srcArray),
    OFFSET(struct cudaMemcpy3DParms, srcPos),
    OFFSET(struct cudaMemcpy3DParms, srcPtr),
    OFFSET(struct cudaMemcpy3DParms, dstArray),
    OFFSET(struct cudaMemcpy3DParms, dstPos),
    OFFSET(struct cudaMemcpy3DParms, dstPtr),
    OFFSET(struct cudaMemcpy3DParms, extent),
    OFFSET(struct cudaMemcpy3DParms, kind),
    SIZE(struct cudaMemcpy3DPeerParms),
    OFFSET(struct cudaMemcpy3DPeerParms, srcArray),
    OFFSET(struct cudaMemcpy3DPeerParms, srcPtr),
    OFFSET(struct cudaMemcpy3DPeerParms, srcDevice),
    OFFSET(struct cudaMemcpy3DPeerParms, dstArray),
    OFFSET(struct cudaMemcpy3DPeerParms, dstPtr),
    OFFSET(struct cudaMemcpy3DPeerParms, dstDevice),
    OFFSET(struct cudaMemcpy3DPeerParms, extent),

/* copies: batches */
#if TOOLKIT(12080, 99000)
    SIZE(CUmemcpy3DOperandType),
    VALUE(CU_MEMCPY_OPERAND_TYPE_POINTER),
    VALUE(CU_MEMCPY_OPERAND_TYPE_ARRAY),
    VALUE(cudaMemcpyOperandTypePointer),
    VALUE(cudaMemcpyOperandTypeArray),
    SIZE(CUmemcpySrcAccessOrder),
    VALUE(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM),
    VALUE(CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL),
    VALUE(CU_MEMCPY_SRC_ACCESS_ORDER_ANY),
    VALUE(cudaMemcpySrcAccessOrderStream),
    VALUE(cudaMemcpySrcAccessOrderDuringApiCall),
    VALUE(cudaMemcpySrcAccessOrderAny),
    SIZE(CUmemcpy3DOperand),
    OFFSET(CUmemcpy3DOperand, type),
    OFFSET(CUmemcpy3DOperand, op.ptr.ptr),
    OFFSET(CUmemcpy3DOperand, op.ptr.rowLength),
    OFFSET(CUmemcpy3DOperand, op.ptr.layerHeight),
    OFFSET(CUmemcpy3DOperand, op.ptr.locHint),
    OFFSET(CUmemcpy3DOperand, op.array.array),
    OFFSET(CUmemcpy3DOperand, op.array.offset),
    SIZE(CUDA_MEMCPY3D_BATCH_OP),
    OFFSET(CUDA_MEMCPY3D_BATCH_OP, src),
    OFFSET(CUDA_MEMCPY3D_BATCH_OP, dst),
    OFFSET(CUDA_MEMCPY3D_BATCH_OP, extent),
    OFFSET(CUDA_MEMCPY3D_BATCH_OP, srcAccessOrder),
    OFFSET(CUDA_MEMCPY3D_BATCH_OP, flags),
    SIZE(struct cudaMemcpy3DOperand),
    OFFSET(struct cudaMemcpy3DOperand, type),
    OFFSET(struct cudaMemcpy3DOperand, op.ptr.ptr),
    OFFSET(struct cudaMemcpy3DOperand, op.ptr.rowLength),
    OFFSET(struct cudaMemcpy3DOperand, op.ptr.layerHeight),
    OFFSET(struct cudaMemcpy3DOperand, op.ptr.locHint),
    OFFSET(struct cudaMemcpy3DOperand, op.array.array),
    OFFSET(struct cudaMemcpy3DOperand, op.array.offset),
    SIZE(struct cudaMemcpy3DBatchOp),
    OFFSET(struct cudaMemcpy3DBatchOp, src),
    OFFSET(struct cudaMemcpy3DBatchOp, dst),
    OFFSET(struct cudaMemcpy3DBatchOp, extent),
    OFFSET(struct cudaMemcpy3DBatchOp, srcAccessOrder),
    OFFSET(struct cudaMemcpy3DBatchOp, flags),
#endif

    /* nodes of a graph */
    SIZE(CUDA_KERNEL_NODE_PARAMS_v1),
    OFFSET(CUDA_KERNEL_NODE_PARAMS_v1, func),
    OFFSET(CUDA_KERNEL_NODE_PARAMS_v1, gridDimX),
    OFFSET(CUDA_KERNEL_NODE_PARAMS_v1, blockDimX),
    OFFSET(CUDA_KERNEL_NODE_PARAMS_v1, sharedMemBytes),
    OFFSET(CUDA_KERNEL_NODE_PARAMS_v1, kernelParams),
    OFFSET(CUDA_KERNEL_NODE_PARAMS_v1, extra),
#if TOOLKIT(12000, 99000)
    SIZE(CUDA_KERNEL_NODE_PARAMS_v2),
    OFFSET(CUDA_KERNEL_NODE_PARAMS_v2, func),
    OFFSET(CUDA_KERNEL_NODE_PARAMS_v2, gridDimX),
    OFFSET(CUDA_KERNEL_NODE_PARAMS_v2, blockDimX),
    OFFSET(CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes),
    OFFSET(CUDA_KERNEL_NODE_PARAMS_v2, kernelParams),
    OFFSET(CUDA_KERNEL_NODE_PARAMS_v2, extra),
    OFFSET(CUDA_KERNEL_NODE_PARAMS_v2, kern),
    OFFSET(CUDA_KERNEL_NODE_PARAMS_v2, ctx),
#endif
    SIZE(CUDA_MEMSET_NODE_PARAMS),
    OFFSET(CUDA_MEMSET_NODE_PARAMS, dst),
    OFFSET(CUDA_MEMSET_NODE_PARAMS, pitch),
    OFFSET(CUDA_MEMSET_NODE_PARAMS, value),
    OFFSET(CUDA_MEMSET_NODE_PARAMS, elementSize),
    OFFSET(CUDA_MEMSET_NODE_PARAMS, width),
    OFFSET(CUDA_MEMSET_NODE_PARAMS, height),

    /* NCCL */
    SIZE(ncclUniqueId),
    SIZE(ncclResult_t),
    VALUE(ncclSuccess),
    VALUE(ncclUnhandledCudaError),
    VALUE(ncclSystemError),
    VALUE(ncclInternalError),
    VALUE(ncclInvalidArgument),
    VALUE(ncclInvalidUsage),
    VALUE(ncclRemoteError),
    VALUE(ncclInProgress),
    SIZE(ncclRedOp_t),
    VALUE(ncclSum),
    VALUE(ncclProd),
    VALUE(ncclMax),
    VALUE(ncclMin),
    VALUE(ncclAvg),
    SIZE(ncclDataType_t),
    VALUE(ncclInt8),
    VALUE(ncclUint8),
    VALUE(ncclInt32),
    VALUE(ncclUint32),
    VALUE(ncclInt64),
    VALUE(ncclUint64),
    VALUE(ncclFloat16),
    VALUE(ncclFloat32),
    VALUE(ncclFloat64),
#if !defined(NCCL_VERSION_CODE) || NCCL_VERSION_CODE >= 22400
    VALUE(ncclBfloat16), /* before, only beside cuda_bf16.h */
    VALUE(ncclFloat8e4m3),
    VALUE(ncclFloat8e5m2),
#endif
};

#ifdef GW_REAL_CUDA_HEADERS

const size_t real_count = sizeof(real_facts) / sizeof(real_facts[0]);

#else

/* Both lists are in one order; the real one may lack what its toolkit lacks. */
int main(void)
{
    size_t n = sizeof(our_facts) / sizeof(our_facts[0]), same = 0, wrong = 0;
    for (size_t i = 0, k = 0; i < n && k < real_count; i++) {
        if (strcmp(our_facts[i].what, real_facts[k].what) != 0)
            continue;
        if (our_facts[i].value == real_facts[k].value)
            same++;
        else
            wrong++, printf("%s is %lld, the headers say %lld\n", our_facts[i].what,
                            our_facts[i].value, real_facts[k].value);
        k++;
    }
    if (same + wrong != real_count)
        wrong++, printf("the two lists differ in more than what a toolkit lacks\n");
    printf("%zu sizes, offsets and values agree, %zu do not, %zu the toolkit lacks\n", same, wrong,
           n - real_count);
    return wrong != 0;
}

#endif
