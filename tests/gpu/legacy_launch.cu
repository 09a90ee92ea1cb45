/* nvcc -D__NV_LEGACY_LAUNCH -cudart shared: <<<>>> calls cudaLaunchKernel, as up to CUDA 12.
 * Also the less common ways to launch, copy and set memory, and calls that fail. */
#include "range.h"

#include <cooperative_groups.h>

enum { N = 1 << 12, WIDTH = 256, HEIGHT = 16 };

__device__ float table[64];

__global__ void lookup(float *data)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    data[i] = data[i] * 0.5f + table[i % 64];
}

__global__ void shared_sum(float *data)
{
    extern __shared__ float tile[];

    tile[threadIdx.x] = data[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0)
        for (unsigned i = 1; i < blockDim.x; i++)
            data[blockIdx.x * blockDim.x] += tile[i];
}

__global__ void across_grid(float *data)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    data[i] += 1.0f;
    cooperative_groups::this_grid().sync();
    if (i < 32)
        data[i] += data[N - 1 - i];
}

static void noted(void *count)
{
    ++*(int *)count;
}

static void launches(float *a, cudaStream_t stream, int *notes)
{
    void *args[] = {&a};
    cudaLaunchConfig_t config = {};
    cudaError_t error;

    lookup<<<N / 128, 128, 0, stream>>>(a);
    shared_sum<<<N / 128, 128, 128 * sizeof(float), stream>>>(a);
    CHECK(cudaLaunchKernel((const void *)lookup, dim3(N / 64), dim3(64), args, 0, stream));
    config.gridDim = dim3(N / 32);
    config.blockDim = dim3(32);
    config.stream = stream;
    CHECK(cudaLaunchKernelExC(&config, (const void *)lookup, args));
    CHECK(cudaLaunchCooperativeKernel((const void *)across_grid, dim3(N / 256), dim3(256), args, 0,
                                      stream));
    CHECK(cudaLaunchHostFunc(stream, noted, notes));
    error = cudaLaunchKernel((const void *)lookup, dim3(1), dim3(4096), args, 0, stream);
    printf("4096 threads a block: %s\n", cudaGetErrorName(error));
    cudaGetLastError();
}

static void copies(float *a, float *b, float *host, cudaStream_t stream)
{
    static float pageable[N];
    cudaMemcpy3DParms box = {};

    for (int i = 0; i < N; i++)
        pageable[i] = (float)(i % 13);
    CHECK(cudaMemcpyToSymbol(table, pageable, sizeof table));
    CHECK(cudaMemcpyToSymbolAsync(table, host, 32 * sizeof(float), 0, cudaMemcpyHostToDevice,
                                  stream));
    CHECK(cudaMemcpy(a, pageable, sizeof pageable, cudaMemcpyDefault));
    CHECK(cudaMemcpyAsync(b, host, N * sizeof *b, cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemcpy2D(a, WIDTH * sizeof *a, pageable, WIDTH * sizeof *a, 200 * sizeof *a, HEIGHT,
                       cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2DAsync(b, WIDTH * sizeof *b, a, WIDTH * sizeof *a, 100 * sizeof *a, HEIGHT,
                            cudaMemcpyDeviceToDevice, stream));
    box.srcPtr = make_cudaPitchedPtr(b, WIDTH * sizeof *b, WIDTH * sizeof *b, 4);
    box.dstPtr = make_cudaPitchedPtr(a, WIDTH * sizeof *a, WIDTH * sizeof *a, 4);
    box.extent = make_cudaExtent(64 * sizeof *a, 3, 2);
    box.kind = cudaMemcpyDeviceToDevice;
    CHECK(cudaMemcpy3DAsync(&box, stream));
    CHECK(cudaMemset2DAsync(b, WIDTH * sizeof *b, 1, 64, HEIGHT, stream));
    CHECK(cudaMemset(b, 2, 512));
    CHECK(cudaMemcpyFromSymbol(pageable, table, sizeof table));
    CHECK(cudaMemcpyAsync(host, a, N * sizeof *a, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
}

/* A graph built by hand: a child graph of two kernels, a memset, a copy. */
static void graphs(float *a, float *b, cudaStream_t stream)
{
    void *args[] = {&a};
    cudaGraph_t outer, inner;
    cudaGraphNode_t kernel, second, child, clear, copy;
    cudaGraphExec_t exec;
    cudaKernelNodeParams launch = {};
    cudaMemsetParams set = {};

    launch.func = (void *)lookup;
    launch.gridDim = dim3(N / 128);
    launch.blockDim = dim3(128);
    launch.kernelParams = args;
    CHECK(cudaGraphCreate(&inner, 0));
    CHECK(cudaGraphAddKernelNode(&kernel, inner, NULL, 0, &launch));
    CHECK(cudaGraphAddKernelNode(&second, inner, &kernel, 1, &launch));
    CHECK(cudaGraphCreate(&outer, 0));
    CHECK(cudaGraphAddChildGraphNode(&child, outer, NULL, 0, inner));
    set.dst = b;
    set.value = 7;
    set.elementSize = 4;
    set.width = 128;
    set.height = 1;
    CHECK(cudaGraphAddMemsetNode(&clear, outer, &child, 1, &set));
    CHECK(cudaGraphAddMemcpyNode1D(&copy, outer, &clear, 1, a, b, 256, cudaMemcpyDeviceToDevice));
    CHECK(cudaGraphAddKernelNode(&kernel, outer, &copy, 1, &launch));
    CHECK(cudaGraphInstantiate(&exec, outer, 0));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(outer));
    CHECK(cudaGraphDestroy(inner));
}

static void work(float *a, float *b, float *host, cudaStream_t stream, int *notes)
{
    float *pooled;

    copies(a, b, host, stream);
    launches(a, stream, notes);
    CHECK(cudaMallocAsync(&pooled, N * sizeof *pooled, stream));
    CHECK(cudaMemcpyAsync(pooled, a, N * sizeof *a, cudaMemcpyDeviceToDevice, stream));
    lookup<<<N / 128, 128, 0, stream>>>(pooled);
    CHECK(cudaMemcpyAsync(b, pooled, N * sizeof *a, cudaMemcpyDeviceToDevice, stream));
    CHECK(cudaFreeAsync(pooled, stream));
    graphs(a, b, stream);
}

int main(void)
{
    float *a, *b, *host;
    cudaStream_t stream;
    int notes = 0;

    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMalloc(&a, N * sizeof *a));
    CHECK(cudaMalloc(&b, N * sizeof *b));
    host = (float *)calloc(N, sizeof *host);
    CHECK(cudaHostRegister(host, N * sizeof *host, cudaHostRegisterDefault));
    CHECK(cudaMemset(a, 0, N * sizeof *a));
    work(a, b, host, stream, &notes);
    range_begin("legacy_launch");
    work(a, b, host, stream, &notes);
    work(a, b, host, stream, &notes);
    range_end();
    CHECK(cudaGetLastError());
    printf("notes %d\na %016llx\nb %016llx\n", notes,
           (unsigned long long)device_hash(a, N * sizeof *a),
           (unsigned long long)device_hash(b, N * sizeof *b));
    CHECK(cudaHostUnregister(host));
    return 0;
}
