/* The part of the CUDA ABI that the call table needs, CUDA 11.8 to 13.x in one binary.
 *
 * Facts only (names, sizes, offsets, values), so that building needs no toolkit. Handles and
 * structs that are only passed on are incomplete types; structs that are read or passed by
 * value are laid out, under the fields' own names. tests/unit/abi_check.sh compares all of it
 * with real headers where there are some.
 *
 * With GW_REAL_CUDA_HEADERS the vendor's headers come instead, and this one adds only what
 * an older toolkit lacks.
 */
#ifndef GW_CUDA_ABI_H
#define GW_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef GW_REAL_CUDA_HEADERS

#include <cuda.h>
#include <cuda_runtime_api.h>

/* Types of the table that an older (or newer) toolkit does not know. What C lets one declare
 * twice needs no version. */
typedef struct CUlib_st *CUlibrary; /* 12.0 */
typedef struct CUkern_st *CUkernel; /* 12.0 */
typedef struct CUlib_st *cudaLibrary_t;
typedef struct CUkern_st *cudaKernel_t;
typedef struct CUgreenCtx_st *CUgreenCtx;               /* 12.4 */
typedef struct CUdevResourceDesc_st *CUdevResourceDesc; /* 12.4 */
typedef struct CUdevResourceDesc_st *cudaDevResourceDesc_t;
typedef struct cudaExecutionContext_st *cudaExecutionContext_t;                /* 13.1 */
typedef struct CUDA_FABRIC_COPY_BATCH_OP_st CUDA_FABRIC_COPY_BATCH_OP;         /* 13.5 */
typedef struct CUDA_GRAPH_INSTANTIATE_PARAMS_st CUDA_GRAPH_INSTANTIATE_PARAMS; /* 12.0 */
typedef struct CUDA_KERNEL_NODE_PARAMS_v2_st CUDA_KERNEL_NODE_PARAMS_v2;       /* 12.0 */
typedef struct CUDA_MEMCPY3D_BATCH_OP_st CUDA_MEMCPY3D_BATCH_OP;               /* 12.8 */
typedef struct CUctxCreateParams_st CUctxCreateParams;                         /* 12.5 */
typedef struct CUgraphEdgeData_st CUgraphEdgeData;                             /* 12.3 */
typedef struct CUgraphExecUpdateResultInfo_st CUgraphExecUpdateResultInfo;     /* 12.0 */
typedef struct CUgraphNodeParams_st CUgraphNodeParams;                         /* 12.2 */
typedef struct CUmemDecompressParams_st CUmemDecompressParams;                 /* 12.6 */
typedef struct CUmemcpyAttributes_st CUmemcpyAttributes;                       /* 12.8 */
typedef struct CUmulticastObjectProp_st CUmulticastObjectProp;                 /* 12.1 */
typedef struct CUstreamCigCaptureParams_st CUstreamCigCaptureParams;           /* 13.1 */
typedef struct cudaGraphEdgeData_st cudaGraphEdgeData;                         /* 12.3 */
typedef struct cudaGraphInstantiateParams_st cudaGraphInstantiateParams;       /* 12.0 */
struct cudaGraphNodeParams;                                                    /* 12.2 */
struct cudaGraphRecaptureCallbackData;                                         /* 13.3 */
struct cudaLaunchParams;                                                       /* up to 12.9 */
struct cudaMemcpy3DBatchOp;                                                    /* 12.8 */
struct cudaMemcpyAttributes;                                                   /* 12.8 */
#if CUDA_VERSION < 12000
typedef enum CUlibraryOption_enum { CU_LIBRARY_BINARY_IS_PRESERVED = 1 } CUlibraryOption;
#endif
#if CUDA_VERSION < 12080
enum cudaJitOption { cudaJitMaxRegisters = 0 };
enum cudaLibraryOption { cudaLibraryBinaryIsPreserved = 1 };
#endif
#if CUDA_VERSION < 13030
typedef void (*CUgraphRecaptureCallback)(void);
#endif

#else

/* ---- status ------------------------------------------------------------------------ */

typedef enum cudaError_enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_STUB_LIBRARY = 34,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    CUDA_ERROR_NOT_PERMITTED = 800,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
    CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
    CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910,
    CUDA_ERROR_UNKNOWN = 999,
} CUresult;

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInitializationError = 3,
    cudaErrorCudartUnloading = 4,
    cudaErrorStubLibrary = 34,
    cudaErrorInsufficientDriver = 35,
    cudaErrorInvalidDeviceFunction = 98,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorSharedObjectInitFailed = 303,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorSymbolNotFound = 500,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorHostMemoryAlreadyRegistered = 712,
    cudaErrorHostMemoryNotRegistered = 713,
    cudaErrorLaunchFailure = 719,
    cudaErrorCooperativeLaunchTooLarge = 720,
    cudaErrorNotPermitted = 800,
    cudaErrorNotSupported = 801,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901,
    cudaErrorStreamCaptureImplicit = 906,
    cudaErrorStreamCaptureWrongThread = 908,
    cudaErrorGraphExecUpdateFailure = 910,
    cudaErrorUnknown = 999,
} cudaError_t;

/* ---- handles ----------------------------------------------------------------------- */

typedef int CUdevice;
typedef unsigned int CUdeviceptr_v1; /* the ABI before 3.2 */
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;

typedef struct CUctx_st *CUcontext;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
typedef struct CUfunc_st *CUfunction;
typedef struct CUkern_st *CUkernel;
typedef struct CUlinkState_st *CUlinkState;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUextMemory_st *CUexternalMemory;
typedef struct CUextSemaphore_st *CUexternalSemaphore;
typedef struct CUgraphicsResource_st *CUgraphicsResource;

/* The runtime's are the driver's, except arrays and what comes from other APIs. */
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUlib_st *cudaLibrary_t;
typedef struct CUfunc_st *cudaFunction_t;
typedef struct CUkern_st *cudaKernel_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;
typedef struct CUdevResourceDesc_st *cudaDevResourceDesc_t;
typedef struct cudaExecutionContext_st *cudaExecutionContext_t;
typedef struct cudaArray *cudaArray_t;
typedef const struct cudaArray *cudaArray_const_t;
typedef struct cudaMipmappedArray *cudaMipmappedArray_t;
typedef struct CUexternalMemory_st *cudaExternalMemory_t;
typedef struct CUexternalSemaphore_st *cudaExternalSemaphore_t;
typedef struct cudaGraphicsResource *cudaGraphicsResource_t;

/* Values of a stream argument that are no handles. */
#define CU_STREAM_LEGACY     ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)

typedef void (*CUhostFn)(void *user);
typedef void (*cudaHostFn_t)(void *user);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *user);
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void *user);

/* ---- flags ------------------------------------------------------------------------- */

enum {
    CU_STREAM_NON_BLOCKING = 1, /* not ordered with the legacy default stream */
    CU_EVENT_BLOCKING_SYNC = 1,
    CU_EVENT_DISABLE_TIMING = 2, /* takes no time stamp */
    CU_EVENT_INTERPROCESS = 4,
    CU_EVENT_RECORD_EXTERNAL = 1, /* a node of its own in a capture */
    CU_EVENT_WAIT_EXTERNAL = 1,
    CU_MEMHOSTALLOC_PORTABLE = 1,
    CU_MEMHOSTALLOC_DEVICEMAP = 2,
    CU_MEMHOSTALLOC_WRITECOMBINED = 4,
};

/* ---- enumerations ------------------------------------------------------------------ */

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4, /* by the pointers */
};

typedef enum CUmemorytype_enum {
    CU_MEMORYTYPE_HOST = 1,
    CU_MEMORYTYPE_DEVICE = 2,
    CU_MEMORYTYPE_ARRAY = 3,
    CU_MEMORYTYPE_UNIFIED = 4, /* by the pointer, given as a device address */
} CUmemorytype;

typedef enum CUgraphNodeType_enum {
    CU_GRAPH_NODE_TYPE_KERNEL = 0,
    CU_GRAPH_NODE_TYPE_MEMCPY = 1,
    CU_GRAPH_NODE_TYPE_MEMSET = 2,
    CU_GRAPH_NODE_TYPE_HOST = 3,
    CU_GRAPH_NODE_TYPE_GRAPH = 4, /* a child graph */
    CU_GRAPH_NODE_TYPE_EMPTY = 5,
    CU_GRAPH_NODE_TYPE_WAIT_EVENT = 6,
    CU_GRAPH_NODE_TYPE_EVENT_RECORD = 7,
    CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL = 8,
    CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT = 9,
    CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10,
    CU_GRAPH_NODE_TYPE_MEM_FREE = 11,
    CU_GRAPH_NODE_TYPE_BATCH_MEM_OP = 12,
    CU_GRAPH_NODE_TYPE_CONDITIONAL = 13, /* 12.3: its body runs 0 to n times */
} CUgraphNodeType;

typedef enum CUstreamCaptureMode_enum {
    CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2,
} CUstreamCaptureMode;

enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal = 0,
    cudaStreamCaptureModeThreadLocal = 1,
    cudaStreamCaptureModeRelaxed = 2,
};

typedef enum CUstreamCaptureStatus_enum {
    CU_STREAM_CAPTURE_STATUS_NONE = 0,
    CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
    CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
} CUstreamCaptureStatus;

typedef enum CUdevice_attribute_enum {
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
    CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
    CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
    CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
    CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT = 40,
    CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
    CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS = 88,
} CUdevice_attribute;

typedef enum CUmemLocationType_enum {
    CU_MEM_LOCATION_TYPE_INVALID = 0,
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
    CU_MEM_LOCATION_TYPE_HOST = 2,
    CU_MEM_LOCATION_TYPE_HOST_NUMA = 3,
    CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 4,
} CUmemLocationType;

enum cudaMemLocationType {
    cudaMemLocationTypeInvalid = 0,
    cudaMemLocationTypeDevice = 1,
    cudaMemLocationTypeHost = 2,
    cudaMemLocationTypeHostNuma = 3,
    cudaMemLocationTypeHostNumaCurrent = 4,
};

/* Passed on, never looked at: one value gives the type its size. */
typedef enum CUjit_option_enum { CU_JIT_MAX_REGISTERS = 0 } CUjit_option;
typedef enum CUjitInputType_enum { CU_JIT_INPUT_CUBIN = 0 } CUjitInputType;
typedef enum CUlibraryOption_enum { CU_LIBRARY_BINARY_IS_PRESERVED = 1 } CUlibraryOption;
typedef enum CUlimit_enum { CU_LIMIT_STACK_SIZE = 0 } CUlimit;
typedef enum CUmemAllocationHandleType_enum {
    CU_MEM_HANDLE_TYPE_NONE = 0,
    CU_MEM_HANDLE_TYPE_MAX = 0x7fffffff,
} CUmemAllocationHandleType;
typedef enum CUgraphExecUpdateResult_enum {
    CU_GRAPH_EXEC_UPDATE_SUCCESS = 0,
} CUgraphExecUpdateResult;
typedef enum CUmem_advise_enum { CU_MEM_ADVISE_SET_READ_MOSTLY = 1 } CUmem_advise;
typedef enum CUflushGPUDirectRDMAWritesTarget_enum {
    CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX = 0,
} CUflushGPUDirectRDMAWritesTarget;
typedef enum CUflushGPUDirectRDMAWritesScope_enum {
    CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER = 100,
} CUflushGPUDirectRDMAWritesScope;
enum cudaMemoryAdvise { cudaMemAdviseSetReadMostly = 1 };
enum cudaFlushGPUDirectRDMAWritesTarget { cudaFlushGPUDirectRDMAWritesTargetCurrentDevice = 0 };
enum cudaFlushGPUDirectRDMAWritesScope { cudaFlushGPUDirectRDMAWritesToOwner = 100 };
enum cudaJitOption { cudaJitMaxRegisters = 0 };
enum cudaLibraryOption { cudaLibraryBinaryIsPreserved = 1 };
enum cudaLimit { cudaLimitStackSize = 0 };
enum cudaMemAllocationHandleType { cudaMemHandleTypeNone = 0 };

/* ---- small structs ----------------------------------------------------------------- */

typedef struct dim3 {
    unsigned int x, y, z;
} dim3;

struct cudaPos {
    size_t x, y, z;
};

struct cudaExtent {
    size_t width, height, depth;
};

struct cudaPitchedPtr {
    void *ptr;
    size_t pitch, xsize, ysize;
};

typedef struct CUmemLocation_st {
    CUmemLocationType type;
    int id;
} CUmemLocation;

struct cudaMemLocation {
    enum cudaMemLocationType type;
    int id;
};

/* Passed by value, hence on the stack. */
typedef struct CUipcMemHandle_st {
    char reserved[64];
} CUipcMemHandle;

typedef struct cudaIpcMemHandle_st {
    char reserved[64];
} cudaIpcMemHandle_t;

_Static_assert(sizeof(dim3) == 12, "ABI");
_Static_assert(sizeof(struct cudaPos) == 24, "ABI");
_Static_assert(sizeof(struct cudaExtent) == 24, "ABI");
_Static_assert(sizeof(struct cudaPitchedPtr) == 32, "ABI");
_Static_assert(sizeof(CUmemLocation) == 8, "ABI");
_Static_assert(sizeof(struct cudaMemLocation) == 8, "ABI");
_Static_assert(sizeof(CUipcMemHandle) == 64, "ABI");
_Static_assert(sizeof(cudaIpcMemHandle_t) == 64, "ABI");

/* ---- launches ---------------------------------------------------------------------- */

typedef enum CUlaunchAttributeID_enum {
    CU_LAUNCH_ATTRIBUTE_IGNORE = 0,
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT = 7,
    CU_LAUNCH_ATTRIBUTE_PRIORITY = 8,
    CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT = 12,
    CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE = 13,
} CUlaunchAttributeID;

typedef enum cudaLaunchAttributeID {
    cudaLaunchAttributeIgnore = 0,
    cudaLaunchAttributeCooperative = 2,
    cudaLaunchAttributeClusterDimension = 4,
    cudaLaunchAttributeProgrammaticStreamSerialization = 6,
    cudaLaunchAttributeProgrammaticEvent = 7,
    cudaLaunchAttributePriority = 8,
    cudaLaunchAttributeLaunchCompletionEvent = 12,
    cudaLaunchAttributeDeviceUpdatableKernelNode = 13,
} cudaLaunchAttributeID;

/* 64 bytes, of which an attribute's id says how to read them. */
typedef union CUlaunchAttributeValue_union {
    char pad[64];
    int cooperative;
    int programmaticStreamSerializationAllowed;
    int priority;
    struct {
        unsigned int x, y, z;
    } clusterDim;
    struct {
        CUevent event;
        int flags;
        int triggerAtBlockStart;
    } programmaticEvent;
    struct {
        CUevent event;
        int flags;
    } launchCompletionEvent;
} CUlaunchAttributeValue;

typedef struct CUlaunchAttribute_st {
    CUlaunchAttributeID id;
    char pad[4];
    CUlaunchAttributeValue value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig_st {
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned int numAttrs;
} CUlaunchConfig;

typedef union cudaLaunchAttributeValue {
    char pad[64];
    int cooperative;
    int programmaticStreamSerializationAllowed;
    int priority;
    struct {
        unsigned int x, y, z;
    } clusterDim;
    struct {
        cudaEvent_t event;
        int flags;
        int triggerAtBlockStart;
    } programmaticEvent;
    struct {
        cudaEvent_t event;
        int flags;
    } launchCompletionEvent;
} cudaLaunchAttributeValue;

typedef struct cudaLaunchAttribute_st {
    cudaLaunchAttributeID id;
    char pad[4];
    cudaLaunchAttributeValue val;
} cudaLaunchAttribute;

typedef struct cudaLaunchConfig_st {
    dim3 gridDim;
    dim3 blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned int numAttrs;
} cudaLaunchConfig_t;

/* One kernel of a cooperative launch on several devices. */
typedef struct CUDA_LAUNCH_PARAMS_st {
    CUfunction function;
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    void **kernelParams;
} CUDA_LAUNCH_PARAMS;

struct cudaLaunchParams {
    void *func;
    dim3 gridDim;
    dim3 blockDim;
    void **args;
    size_t sharedMem;
    cudaStream_t stream;
};

_Static_assert(sizeof(CUlaunchAttributeValue) == 64, "ABI");
_Static_assert(sizeof(CUlaunchAttribute) == 72, "ABI");
_Static_assert(offsetof(CUlaunchAttribute, value) == 8, "ABI");
_Static_assert(sizeof(CUlaunchConfig) == 56, "ABI");
_Static_assert(offsetof(CUlaunchConfig, hStream) == 32, "ABI");
_Static_assert(offsetof(CUlaunchConfig, numAttrs) == 48, "ABI");
_Static_assert(sizeof(cudaLaunchAttributeValue) == 64, "ABI");
_Static_assert(sizeof(cudaLaunchAttribute) == 72, "ABI");
_Static_assert(offsetof(cudaLaunchAttribute, val) == 8, "ABI");
_Static_assert(sizeof(cudaLaunchConfig_t) == 56, "ABI");
_Static_assert(offsetof(cudaLaunchConfig_t, dynamicSmemBytes) == 24, "ABI");
_Static_assert(offsetof(cudaLaunchConfig_t, numAttrs) == 48, "ABI");
_Static_assert(sizeof(CUDA_LAUNCH_PARAMS) == 56, "ABI");
_Static_assert(offsetof(CUDA_LAUNCH_PARAMS, hStream) == 40, "ABI");
_Static_assert(sizeof(struct cudaLaunchParams) == 56, "ABI");
_Static_assert(offsetof(struct cudaLaunchParams, stream) == 48, "ABI");

/* ---- copies ------------------------------------------------------------------------ */

typedef struct CUDA_MEMCPY2D_st {
    size_t srcXInBytes, srcY;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    size_t srcPitch;
    size_t dstXInBytes, dstY;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    size_t dstPitch;
    size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct CUDA_MEMCPY3D_st {
    size_t srcXInBytes, srcY, srcZ, srcLOD;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    void *reserved0;
    size_t srcPitch, srcHeight;
    size_t dstXInBytes, dstY, dstZ, dstLOD;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    void *reserved1;
    size_t dstPitch, dstHeight;
    size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

typedef struct CUDA_MEMCPY3D_PEER_st {
    size_t srcXInBytes, srcY, srcZ, srcLOD;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    CUcontext srcContext;
    size_t srcPitch, srcHeight;
    size_t dstXInBytes, dstY, dstZ, dstLOD;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    CUcontext dstContext;
    size_t dstPitch, dstHeight;
    size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D_PEER;

/* The ABI before 3.2. */
typedef struct CUDA_MEMCPY2D_v1_st {
    unsigned int srcXInBytes, srcY;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr_v1 srcDevice;
    CUarray srcArray;
    unsigned int srcPitch;
    unsigned int dstXInBytes, dstY;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr_v1 dstDevice;
    CUarray dstArray;
    unsigned int dstPitch;
    unsigned int WidthInBytes, Height;
} CUDA_MEMCPY2D_v1;

typedef struct CUDA_MEMCPY3D_v1_st {
    unsigned int srcXInBytes, srcY, srcZ, srcLOD;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr_v1 srcDevice;
    CUarray srcArray;
    void *reserved0;
    unsigned int srcPitch, srcHeight;
    unsigned int dstXInBytes, dstY, dstZ, dstLOD;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr_v1 dstDevice;
    CUarray dstArray;
    void *reserved1;
    unsigned int dstPitch, dstHeight;
    unsigned int WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D_v1;

struct cudaMemcpy3DParms {
    cudaArray_t srcArray;
    struct cudaPos srcPos;
    struct cudaPitchedPtr srcPtr;
    cudaArray_t dstArray;
    struct cudaPos dstPos;
    struct cudaPitchedPtr dstPtr;
    struct cudaExtent extent;
    enum cudaMemcpyKind kind;
};

struct cudaMemcpy3DPeerParms {
    cudaArray_t srcArray;
    struct cudaPos srcPos;
    struct cudaPitchedPtr srcPtr;
    int srcDevice;
    cudaArray_t dstArray;
    struct cudaPos dstPos;
    struct cudaPitchedPtr dstPtr;
    int dstDevice;
    struct cudaExtent extent;
};

_Static_assert(sizeof(CUDA_MEMCPY2D) == 128, "ABI");
_Static_assert(offsetof(CUDA_MEMCPY2D, dstMemoryType) == 72, "ABI");
_Static_assert(offsetof(CUDA_MEMCPY2D, WidthInBytes) == 112, "ABI");
_Static_assert(sizeof(CUDA_MEMCPY3D) == 200, "ABI");
_Static_assert(offsetof(CUDA_MEMCPY3D, dstMemoryType) == 120, "ABI");
_Static_assert(offsetof(CUDA_MEMCPY3D, WidthInBytes) == 176, "ABI");
_Static_assert(sizeof(CUDA_MEMCPY3D_PEER) == 200, "ABI");
_Static_assert(offsetof(CUDA_MEMCPY3D_PEER, dstContext) == 152, "ABI");
_Static_assert(sizeof(struct cudaMemcpy3DParms) == 160, "ABI");
_Static_assert(offsetof(struct cudaMemcpy3DParms, extent) == 128, "ABI");
_Static_assert(offsetof(struct cudaMemcpy3DParms, kind) == 152, "ABI");
_Static_assert(sizeof(struct cudaMemcpy3DPeerParms) == 168, "ABI");
_Static_assert(offsetof(struct cudaMemcpy3DPeerParms, extent) == 144, "ABI");

/* ---- copies: batches (12.8) -------------------------------------------------------- */

typedef enum CUmemcpy3DOperandType_enum {
    CU_MEMCPY_OPERAND_TYPE_POINTER = 1,
    CU_MEMCPY_OPERAND_TYPE_ARRAY = 2,
} CUmemcpy3DOperandType;

enum cudaMemcpy3DOperandType {
    cudaMemcpyOperandTypePointer = 1,
    cudaMemcpyOperandTypeArray = 2,
};

typedef enum CUmemcpySrcAccessOrder_enum {
    CU_MEMCPY_SRC_ACCESS_ORDER_INVALID = 0,
    CU_MEMCPY_SRC_ACCESS_ORDER_STREAM = 1,
    CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL = 2,
    CU_MEMCPY_SRC_ACCESS_ORDER_ANY = 3,
    CU_MEMCPY_SRC_ACCESS_ORDER_MAX = 0x7fffffff,
} CUmemcpySrcAccessOrder;

enum cudaMemcpySrcAccessOrder {
    cudaMemcpySrcAccessOrderInvalid = 0,
    cudaMemcpySrcAccessOrderStream = 1,
    cudaMemcpySrcAccessOrderDuringApiCall = 2,
    cudaMemcpySrcAccessOrderAny = 3,
    cudaMemcpySrcAccessOrderMax = 0x7fffffff,
};

typedef struct CUoffset3D_st {
    size_t x, y, z;
} CUoffset3D;

typedef struct CUextent3D_st {
    size_t width, height, depth;
} CUextent3D;

struct cudaOffset3D {
    size_t x, y, z;
};

typedef struct CUmemcpy3DOperand_st {
    CUmemcpy3DOperandType type;
    union {
        struct {
            CUdeviceptr ptr;
            size_t rowLength, layerHeight;
            CUmemLocation locHint;
        } ptr;
        struct {
            CUarray array;
            CUoffset3D offset;
        } array;
    } op;
} CUmemcpy3DOperand;

typedef struct CUDA_MEMCPY3D_BATCH_OP_st {
    CUmemcpy3DOperand src, dst;
    CUextent3D extent;
    CUmemcpySrcAccessOrder srcAccessOrder;
    unsigned int flags;
} CUDA_MEMCPY3D_BATCH_OP;

struct cudaMemcpy3DOperand {
    enum cudaMemcpy3DOperandType type;
    union {
        struct {
            void *ptr;
            size_t rowLength, layerHeight;
            struct cudaMemLocation locHint;
        } ptr;
        struct {
            cudaArray_t array;
            struct cudaOffset3D offset;
        } array;
    } op;
};

struct cudaMemcpy3DBatchOp {
    struct cudaMemcpy3DOperand src, dst;
    struct cudaExtent extent;
    enum cudaMemcpySrcAccessOrder srcAccessOrder;
    unsigned int flags;
};

_Static_assert(sizeof(CUmemcpy3DOperand) == 40, "ABI");
_Static_assert(sizeof(CUDA_MEMCPY3D_BATCH_OP) == 112, "ABI");
_Static_assert(offsetof(CUDA_MEMCPY3D_BATCH_OP, extent) == 80, "ABI");
_Static_assert(sizeof(struct cudaMemcpy3DOperand) == 40, "ABI");
_Static_assert(sizeof(struct cudaMemcpy3DBatchOp) == 112, "ABI");
_Static_assert(offsetof(struct cudaMemcpy3DBatchOp, extent) == 80, "ABI");

/* ---- nodes of a graph -------------------------------------------------------------- */

typedef struct CUDA_KERNEL_NODE_PARAMS_st {
    CUfunction func;
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    void **kernelParams;
    void **extra;
} CUDA_KERNEL_NODE_PARAMS_v1;

/* 12.0: func, or kern with func null; with kern a null ctx means the current one. */
typedef struct CUDA_KERNEL_NODE_PARAMS_v2_st {
    CUfunction func;
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    void **kernelParams;
    void **extra;
    CUkernel kern;
    CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS_v2;

typedef struct CUDA_MEMSET_NODE_PARAMS_st {
    CUdeviceptr dst;
    size_t pitch;
    unsigned int value;
    unsigned int elementSize;
    size_t width, height; /* width in elements */
} CUDA_MEMSET_NODE_PARAMS;

_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v1) == 56, "ABI");
_Static_assert(offsetof(CUDA_KERNEL_NODE_PARAMS_v1, kernelParams) == 40, "ABI");
_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v2) == 72, "ABI");
_Static_assert(offsetof(CUDA_KERNEL_NODE_PARAMS_v2, kern) == 56, "ABI");
_Static_assert(sizeof(CUDA_MEMSET_NODE_PARAMS) == 40, "ABI");
_Static_assert(offsetof(CUDA_MEMSET_NODE_PARAMS, elementSize) == 20, "ABI");

/* ---- structs that are only passed on ----------------------------------------------- */

typedef struct CUDA_ARRAY_DESCRIPTOR_st CUDA_ARRAY_DESCRIPTOR;
typedef struct CUDA_ARRAY_DESCRIPTOR_v1_st CUDA_ARRAY_DESCRIPTOR_v1;
typedef struct CUDA_ARRAY3D_DESCRIPTOR_st CUDA_ARRAY3D_DESCRIPTOR;
typedef struct CUDA_ARRAY3D_DESCRIPTOR_v1_st CUDA_ARRAY3D_DESCRIPTOR_v1;
typedef struct CUDA_BATCH_MEM_OP_NODE_PARAMS_v1_st CUDA_BATCH_MEM_OP_NODE_PARAMS;
typedef struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC_st CUDA_EXTERNAL_MEMORY_BUFFER_DESC;
typedef struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC_st CUDA_EXTERNAL_MEMORY_HANDLE_DESC;
typedef struct CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_st
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC;
typedef struct CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS;
typedef struct CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS;
typedef struct CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_st CUDA_EXT_SEM_SIGNAL_NODE_PARAMS;
typedef struct CUDA_EXT_SEM_WAIT_NODE_PARAMS_st CUDA_EXT_SEM_WAIT_NODE_PARAMS;
typedef struct CUDA_FABRIC_COPY_BATCH_OP_st CUDA_FABRIC_COPY_BATCH_OP;
typedef struct CUDA_GRAPH_INSTANTIATE_PARAMS_st CUDA_GRAPH_INSTANTIATE_PARAMS;
typedef struct CUDA_HOST_NODE_PARAMS_st CUDA_HOST_NODE_PARAMS;
typedef struct CUarrayMapInfo_st CUarrayMapInfo;
typedef struct CUctxCreateParams_st CUctxCreateParams;
typedef struct CUexecAffinityParam_st CUexecAffinityParam;
typedef struct CUgraphEdgeData_st CUgraphEdgeData;
typedef struct CUgraphExecUpdateResultInfo_st CUgraphExecUpdateResultInfo;
typedef struct CUgraphNodeParams_st CUgraphNodeParams;
typedef struct CUmemAccessDesc_st CUmemAccessDesc;
typedef struct CUmemAllocationProp_st CUmemAllocationProp;
typedef struct CUmemDecompressParams_st CUmemDecompressParams;
typedef struct CUmemPoolProps_st CUmemPoolProps;
typedef struct CUmemPoolPtrExportData_st CUmemPoolPtrExportData;
typedef struct CUmemcpyAttributes_st CUmemcpyAttributes;
typedef struct CUmulticastObjectProp_st CUmulticastObjectProp;
typedef struct CUstreamCigCaptureParams_st CUstreamCigCaptureParams;
typedef union CUstreamBatchMemOpParams_union CUstreamBatchMemOpParams;
typedef void (*CUgraphRecaptureCallback)(void);

typedef struct cudaGraphEdgeData_st cudaGraphEdgeData;
typedef struct cudaGraphInstantiateParams_st cudaGraphInstantiateParams;
struct cudaChannelFormatDesc;
struct cudaExternalMemoryBufferDesc;
struct cudaExternalMemoryHandleDesc;
struct cudaExternalMemoryMipmappedArrayDesc;
struct cudaExternalSemaphoreSignalNodeParams;
struct cudaExternalSemaphoreSignalParams;
struct cudaExternalSemaphoreWaitNodeParams;
struct cudaExternalSemaphoreWaitParams;
struct cudaGraphNodeParams;
struct cudaGraphRecaptureCallbackData;
struct cudaHostNodeParams;
struct cudaKernelNodeParams;
struct cudaMemAccessDesc;
struct cudaMemPoolProps;
struct cudaMemPoolPtrExportData;
struct cudaMemcpyAttributes;
struct cudaMemsetParams;

#endif /* GW_REAL_CUDA_HEADERS */

/* ---- NCCL, which comes apart from the toolkit --------------------------------------- */

#if defined(GW_REAL_CUDA_HEADERS) && __has_include(<nccl.h>)

#include <nccl.h>

#if NCCL_VERSION_CODE < 23100
typedef struct ncclCollConfig ncclCollConfig_t;
#endif
#if NCCL_VERSION_CODE < 22900
typedef struct ncclWaitSignalDesc ncclWaitSignalDesc_t;
#endif
#if NCCL_VERSION_CODE < 22700
typedef struct ncclWindow_vidmem *ncclWindow_t;
#endif

#else

typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;
typedef struct ncclConfig ncclConfig_t; /* passed on */
typedef struct ncclCollConfig ncclCollConfig_t;
typedef struct ncclWaitSignalDesc ncclWaitSignalDesc_t;

typedef struct {
    char internal[128];
} ncclUniqueId; /* passed by value */

_Static_assert(sizeof(ncclUniqueId) == 128, "ABI");

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7, /* of a communicator that does not block: not an error */
} ncclResult_t;

typedef enum {
    ncclSum = 0,
    ncclProd = 1,
    ncclMax = 2,
    ncclMin = 3,
    ncclAvg = 4,
    ncclMaxRedOp = 0x7fffffff, /* further values are operators made at run time */
} ncclRedOp_t;

typedef enum {
    ncclInt8 = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclFloat32 = 7,
    ncclFloat64 = 8,
    ncclBfloat16 = 9,
    ncclFloat8e4m3 = 10, /* 2.24 */
    ncclFloat8e5m2 = 11,
} ncclDataType_t;

#endif

#endif /* GW_CUDA_ABI_H */
