/* Compiled by the current nvcc with -D__NV_LEGACY_LAUNCH, linked to libcudart.so.12. */
#include "two_cudarts.h"

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            fprintf(stderr, "old runtime: %s: %s\n", #call, cudaGetErrorString(error_));           \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { N = 2048 };

__global__ void old_step(unsigned *data)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    data[i] = data[i] * 3u + i;
}

extern "C" unsigned long long two_cudarts_old(int *version)
{
    static unsigned host[N];
    unsigned *data, *copy;
    unsigned long long sum = 0;
    cudaStream_t stream;

    CHECK(cudaRuntimeGetVersion(version));
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMalloc(&data, sizeof host));
    CHECK(cudaMalloc(&copy, sizeof host));
    for (unsigned i = 0; i < N; i++)
        host[i] = i;
    CHECK(cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(copy, 1, sizeof host));
    for (int i = 0; i < 3; i++)
        old_step<<<N / 128, 128, 0, stream>>>(data);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(copy, data, sizeof host / 2, cudaMemcpyDeviceToDevice, stream));
    CHECK(cudaMemsetAsync(data, 0, 256, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(host, copy, sizeof host, cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < N; i++)
        sum = sum * 31 + host[i];
    CHECK(cudaFree(data));
    CHECK(cudaFree(copy));
    CHECK(cudaStreamDestroy(stream));
    return sum;
}
