/* A program on a machine without CUDA that asks whether there is some: by dlsym, by opening the
 * driver, and by a weak reference. Linked to nothing.
 *
 *     nodriver
 */
#include "abi.h"

#include <dlfcn.h>
#include <stdio.h>

extern CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t n) __attribute__((weak));
extern cudaError_t cudaGetDevice(int *dev) __attribute__((weak));
extern ncclResult_t ncclGroupStart(void) __attribute__((weak));

int main(void)
{
    CUdeviceptr p = 0;
    int dev = 0;
    printf("default cuInit: %s\n", dlsym(RTLD_DEFAULT, "cuInit") ? "found" : "absent");
    printf("default cudaMalloc: %s\n", dlsym(RTLD_DEFAULT, "cudaMalloc") ? "found" : "absent");
    printf("next cuInit: %s\n", dlsym(RTLD_NEXT, "cuInit") ? "found" : "absent");
    printf("libcuda: %s\n", dlopen("libcuda.so.1", RTLD_NOW) ? "found" : "absent");
    if (cuMemAlloc_v2)
        printf("weak cuMemAlloc_v2: status %d\n", (int)cuMemAlloc_v2(&p, 1024));
    else
        printf("weak cuMemAlloc_v2: absent\n");
    if (cudaGetDevice)
        printf("weak cudaGetDevice: status %d\n", (int)cudaGetDevice(&dev));
    else
        printf("weak cudaGetDevice: absent\n");
    if (ncclGroupStart)
        printf("weak ncclGroupStart: status %d\n", (int)ncclGroupStart());
    else
        printf("weak ncclGroupStart: absent\n");
    return 0;
}
