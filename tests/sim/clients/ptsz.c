/* A program compiled with --default-stream per-thread: the null stream is each thread's own, and
 * every call goes by its _ptsz or _ptds name.
 *
 *     ptsz [ROUNDS]
 */
#include "client.h"

#include <pthread.h>

static const char image_text[] = "SIMIMAGE\n"
                                 "kernel _Z4stepPfi us=3 params=8,4\n"
                                 "kernel _Z4longPfi us=20000 cv=0 params=8,4\n";
static struct fatbin_wrapper image = FATBIN(image_text);
static struct kernel kernels[] = {{.name = "_Z4stepPfi"}, {.name = "_Z4longPfi"}};
static float *device, *pinned;

static cudaError_t launch_ptsz(struct kernel *k)
{
    int n = 1;
    void *args[] = {&device, &n};
    dim3 grid = {1, 1, 1}, block = {64, 1, 1};
    if (!k->handle)
        CHECK(__cudaGetKernel((cudaKernel_t *)&k->handle, &k->stub));
    return __cudaLaunchKernel_ptsz(k->handle, grid, block, args, 0, NULL);
}

/* The main thread's stream is at work: this one's must not be. */
static void *other(void *unused)
{
    (void)unused;
    CHECK(cudaSetDevice(0));
    CHECK(cudaStreamQuery_ptsz(NULL));
    CHECK_FAILS(cudaStreamQuery_ptsz(CU_STREAM_LEGACY), cudaErrorNotReady);
    CHECK(cudaMemsetAsync_ptsz(device, 0, 256, NULL));
    CHECK(cudaStreamSynchronize_ptsz(NULL));
    return NULL;
}

int main(int argc, char **argv)
{
    long rounds = argument(argc, argv, 1, 30);
    cudaEvent_t event;
    pthread_t thread;

    register_kernels(&image, kernels, 2);
    CHECK(cudaSetDevice(0));
    CHECK(cudaMalloc((void **)&device, 1 << 20));
    CHECK(cudaHostAlloc((void **)&pinned, 1 << 20, 0));
    CHECK(cudaEventCreateWithFlags(&event, CU_EVENT_DISABLE_TIMING));
    for (long i = 0; i < rounds; i++) {
        for (int k = 0; k < 4; k++)
            CHECK(launch_ptsz(&kernels[0]));
        CHECK(cudaMemcpy_ptds(device, pinned, 4096, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpyAsync_ptsz(pinned, device, 4096, cudaMemcpyDeviceToHost, NULL));
        CHECK(cudaMemset_ptds(device, 1, 4096));
        CHECK(cudaEventRecord_ptsz(event, NULL));
        CHECK(cudaStreamSynchronize_ptsz(NULL));
        CHECK(cudaEventQuery(event));
        note(4, "kernel:_Z4stepPfi");
        note(4, "api:__cudaLaunchKernel_ptsz");
        note_copy("H2D", false, 4096);
        note_copy("D2H", false, 4096);
        note_memset(4096);
        note(1, "api:cudaMemcpy_ptds");
        note(1, "api:cudaStreamSynchronize_ptsz");
    }
    CHECK(launch_ptsz(&kernels[1]));
    note(1, "kernel:_Z4longPfi");
    note(1, "api:__cudaLaunchKernel_ptsz");
    pthread_create(&thread, NULL, other, NULL);
    pthread_join(thread, NULL);
    note_memset(256);
    note(1, "api:cudaStreamSynchronize_ptsz");
    CHECK_FAILS(cudaStreamQuery_ptsz(NULL), cudaErrorNotReady);
    CHECK(cudaStreamSynchronize_ptsz(NULL));
    note(1, "api:cudaStreamSynchronize_ptsz");
    CHECK(cudaEventDestroy(event));
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFree(device));
    return finish("ptsz");
}
