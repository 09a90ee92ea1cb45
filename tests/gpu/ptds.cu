/* nvcc --default-stream per-thread -cudart shared: the _ptsz and _ptds entry points.
 * Two threads, each on its own default stream. */
#include "range.h"

#include <thread>

enum { N = 1 << 13, ROUNDS = 5 };

__global__ void mix(unsigned *data, unsigned seed)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    data[i] = data[i] * 1664525u + seed + i;
}

__global__ void fold(unsigned *data, unsigned half)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < half)
        data[i] ^= data[i + half];
}

static void worker(unsigned *data, unsigned *copy, unsigned seed)
{
    static thread_local unsigned host[N];
    cudaEvent_t event;

    CHECK(cudaEventCreate(&event));
    for (unsigned i = 0; i < N; i++)
        host[i] = i ^ seed;
    CHECK(cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice));
    for (unsigned i = 0; i < ROUNDS; i++) {
        mix<<<N / 256, 256>>>(data, seed + i);
        CHECK(cudaMemcpyAsync(copy, data, sizeof host, cudaMemcpyDeviceToDevice));
    }
    CHECK(cudaMemset(copy, 0x5a, N * sizeof *copy / 4));
    CHECK(cudaMemsetAsync(copy, 0x33, 64));
    fold<<<N / 512, 256>>>(copy, N / 2);
    CHECK(cudaEventRecord(event));
    CHECK(cudaEventSynchronize(event));
    CHECK(cudaMemcpyAsync(host, copy, 4096, cudaMemcpyDeviceToHost));
    CHECK(cudaStreamSynchronize(0));
    CHECK(cudaEventDestroy(event));
}

int main(void)
{
    unsigned *data[2], *copy[2];

    for (int i = 0; i < 2; i++) {
        CHECK(cudaMalloc(&data[i], N * sizeof **data));
        CHECK(cudaMalloc(&copy[i], N * sizeof **copy));
        worker(data[i], copy[i], 11);
    }
    range_begin("ptds");
    {
        std::thread other(worker, data[1], copy[1], 99);

        worker(data[0], copy[0], 42);
        other.join();
    }
    range_end();
    CHECK(cudaGetLastError());
    for (int i = 0; i < 2; i++)
        printf("%016llx %016llx\n", (unsigned long long)device_hash(data[i], N * sizeof **data),
               (unsigned long long)device_hash(copy[i], N * sizeof **copy));
    return 0;
}
