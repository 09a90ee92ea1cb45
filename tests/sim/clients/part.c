/* One half of a program with two runtimes: a library linked to one version. Its names end in
 * that version. */
#include "client.h"

#define PASTE2(a, b) a##b
#define PASTE(a, b)  PASTE2(a, b)
#define NAME         PASTE(part_, PART)
#define TEXT2(x)     #x
#define TEXT(x)      TEXT2(x)
#define KERNEL       "_Z7part_" TEXT(PART) "Pfi"

static const char image_text[] = "SIMIMAGE\nkernel " KERNEL " us=2.5 params=8,4\n";
static struct fatbin_wrapper image = FATBIN(image_text);
static struct kernel kernels[] = {{.name = KERNEL}};
static float *device;

__attribute__((constructor)) static void registered(void)
{
    register_kernels(&image, kernels, 1);
}

/* post: kernels launched, negative if the wrong runtime answered */
__attribute__((visibility("default"))) long NAME(long rounds);
long NAME(long rounds)
{
    int version = 0, n = 1;
    char host[512] = {0};
    void *args[] = {&device, &n};
    dim3 grid = {8, 1, 1}, block = {64, 1, 1};
    CHECK(cudaRuntimeGetVersion(&version));
    if (version / 1000 != PART)
        return -version;
    CHECK(cudaSetDevice(0));
    CHECK(cudaMalloc((void **)&device, 4096));
    for (long i = 0; i < rounds; i++) {
        CHECK(launch(&kernels[0], grid, block, args, 0, NULL));
        CHECK(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice));
        burn_us(5);
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(device));
    return rounds;
}
