/* libcudart.so.13, linked, and libcudart.so.12, below a library that is opened
 * RTLD_LOCAL, at work in one process: each call must reach its own runtime.
 * argv[1] is that library. */
#include "range.h"
#include "two_cudarts.h"

enum { N = 4096 };

__global__ void new_step(unsigned *data)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    data[i] ^= data[i] << 5 ^ i;
}

static unsigned long long two_cudarts_new(int *version)
{
    static unsigned host[N];
    unsigned *data, *copy;
    unsigned long long hash;

    CHECK(cudaRuntimeGetVersion(version));
    CHECK(cudaMalloc(&data, sizeof host));
    CHECK(cudaMalloc(&copy, sizeof host));
    for (unsigned i = 0; i < N; i++)
        host[i] = i + 7;
    CHECK(cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(copy, 3, sizeof host));
    for (int i = 0; i < 4; i++)
        new_step<<<N / 256, 256>>>(data);
    CHECK(cudaMemcpyAsync(copy, data, sizeof host / 4, cudaMemcpyDeviceToDevice));
    CHECK(cudaMemsetAsync(data, 0, 128));
    hash = device_hash(copy, sizeof host);
    CHECK(cudaFree(data));
    CHECK(cudaFree(copy));
    return hash;
}

int main(int argc, char **argv)
{
    int version[2];
    unsigned long long result[2];
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    unsigned long long (*old)(int *);

    if (!library) {
        fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "usage: two_cudarts LIBRARY");
        return 2;
    }
    old = (unsigned long long (*)(int *))dlsym(library, "two_cudarts_old");
    if (!old) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    result[0] = two_cudarts_new(&version[0]);
    result[1] = old(&version[1]);
    range_begin("two_cudarts");
    for (int i = 0; i < 3; i++) {
        result[0] += two_cudarts_new(&version[0]);
        result[1] += old(&version[1]);
    }
    range_end();
    printf("new %d %016llx\nold %d %016llx\n", version[0], result[0], version[1], result[1]);
    return 0;
}
