/* The ABI that the simulation needs beyond the call table's own header: structs that a
 * recorder passes on unread, and attributes that programs ask for. Facts only. */
#ifndef SIM_ABI_H
#define SIM_ABI_H

#include "capture/cuda_abi.h"

struct CUgraphEdgeData_st {
    unsigned char from_port, to_port, type, reserved[5];
};

struct CUDA_HOST_NODE_PARAMS_st {
    CUhostFn fn;
    void *userData;
};

struct CUDA_GRAPH_INSTANTIATE_PARAMS_st {
    cuuint64_t flags;
    CUstream hUploadStream;
    CUgraphNode hErrNode_out;
    int result_out;
};

struct CUgraphExecUpdateResultInfo_st {
    int result;
    CUgraphNode errorNode, errorFromNode;
};

/* The union of all node kinds: the type, then the parameters of that kind. */
struct CUgraphNodeParams_st {
    CUgraphNodeType type;
    int reserved0[3];
    union {
        long long reserved1[29];
        CUDA_KERNEL_NODE_PARAMS_v2 kernel; /* v3's first members */
        struct {
            int flags, reserved;
            CUcontext ctx;
            CUDA_MEMCPY3D copy;
        } copy;
        CUDA_MEMSET_NODE_PARAMS memset;
        struct CUDA_HOST_NODE_PARAMS_st host;
        struct {
            CUgraph graph;
        } graph;
        struct {
            CUevent event;
        } event;
    };
    long long reserved2;
};

struct CUmemAllocationProp_st {
    int type;
    CUmemAllocationHandleType requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType, gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
};

struct CUmemAccessDesc_st {
    CUmemLocation location;
    int flags;
};

struct CUmemPoolProps_st {
    int allocType;
    CUmemAllocationHandleType handleTypes;
    CUmemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
};

struct CUDA_ARRAY_DESCRIPTOR_st {
    size_t Width, Height;
    int Format;
    unsigned int NumChannels;
};

struct CUDA_ARRAY3D_DESCRIPTOR_st {
    size_t Width, Height, Depth;
    int Format;
    unsigned int NumChannels, Flags;
};

typedef struct CUuuid_st {
    char bytes[16];
} CUuuid;

/* ---- the runtime's ---- */

struct cudaChannelFormatDesc {
    int x, y, z, w, f;
};

struct cudaHostNodeParams {
    cudaHostFn_t fn;
    void *userData;
};

struct cudaKernelNodeParams {
    void *func;
    dim3 gridDim, blockDim;
    unsigned int sharedMemBytes;
    void **kernelParams, **extra;
};

struct cudaMemsetParams {
    void *dst;
    size_t pitch;
    unsigned int value, elementSize;
    size_t width, height;
};

struct cudaPointerAttributes {
    int type, device;
    void *devicePointer, *hostPointer;
    long reserved[8]; /* 13 */
};

struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;
    int maxDynamicSharedSizeBytes, preferredShmemCarveout, clusterDimMustBeSet;
    int requiredClusterWidth, requiredClusterHeight, requiredClusterDepth;
    int clusterSchedulingPolicyAllowed, nonPortableClusterSizeAllowed;
    int reserved[16];
};

#endif
