/* Threads that launch at once, each on a stream of its own, under one barrier per round.
 *
 *     threads [THREADS [LAUNCHES]]
 */
#include "client.h"

#include <pthread.h>

static const char image_text[] = "SIMIMAGE\nkernel _Z4workPfi us=2.2 cv=0.1 params=8,4\n"
                                 "kernel _Z4tailPfi us=6 params=8,4\n";
static struct fatbin_wrapper image = FATBIN(image_text);
static struct kernel kernels[] = {{.name = "_Z4workPfi"}, {.name = "_Z4tailPfi"}};
static float *device;
static long launches_each;

static void *work(void *arg)
{
    cudaStream_t stream;
    int n = (int)(intptr_t)arg;
    void *args[] = {&device, &n};
    dim3 grid = {8, 1, 1}, block = {64, 1, 1};
    CHECK(cudaSetDevice(0));
    CHECK(cudaStreamCreateWithFlags(&stream, CU_STREAM_NON_BLOCKING));
    for (long i = 0; i < launches_each; i++) {
        CHECK(launch(&kernels[0], grid, block, args, 0, stream));
        if (i % 32 == 31) {
            CHECK(launch(&kernels[1], grid, block, args, 0, stream));
            CHECK(cudaStreamSynchronize(stream));
        }
    }
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamDestroy(stream));
    return NULL;
}

int main(int argc, char **argv)
{
    long nthreads = argument(argc, argv, 1, 8);
    pthread_t threads[256];
    launches_each = argument(argc, argv, 2, 500);
    if (nthreads < 1 || nthreads > 256)
        return 2;
    register_kernels(&image, kernels, 2);
    CHECK(cudaSetDevice(0));
    CHECK(cudaMalloc((void **)&device, 4096));
    /* handles before the threads: getting one is not what is tested */
    CHECK(__cudaGetKernel((cudaKernel_t *)&kernels[0].handle, &kernels[0].stub));
    CHECK(__cudaGetKernel((cudaKernel_t *)&kernels[1].handle, &kernels[1].stub));
    for (long i = 0; i < nthreads; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (long i = 0; i < nthreads; i++)
        pthread_join(threads[i], NULL);
    CHECK(cudaFree(device));
    uint64_t tails = (uint64_t)(launches_each / 32);
    note((uint64_t)(nthreads * launches_each), "kernel:_Z4workPfi");
    note((uint64_t)nthreads * tails, "kernel:_Z4tailPfi");
    note((uint64_t)nthreads * ((uint64_t)launches_each + tails), "launches");
    note((uint64_t)nthreads * (tails + 1), "syncs");
    return finish("threads");
}
