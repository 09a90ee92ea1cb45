/* The measured range of a CUDA C workload, and its error checks.
 *
 * With GPUWAIT_REFEREE=1 the program loads libcupti_referee.so from the path in
 * GPUWAIT_REFEREE_LIB, and writes NAME.trace.json into GPUWAIT_TRUTH_DIR; otherwise
 * it knows nothing of CUPTI.  As in common.py, the device is idle at both ends of
 * the range and the referee covers a little more than the range. */
#ifndef GPUWAIT_TESTS_RANGE_H
#define GPUWAIT_TESTS_RANGE_H

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cupti_referee.h"

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                          \
                    cudaGetErrorString(error_));                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void *range_referee;
static const char *range_name;

static void *range_symbol(const char *name)
{
    void *symbol = dlsym(range_referee, name);

    if (!symbol) {
        fprintf(stderr, "%s: %s\n", name, dlerror());
        exit(1);
    }
    return symbol;
}

static void range_begin(const char *name)
{
    const char *on = getenv("GPUWAIT_REFEREE");
    const char *path = getenv("GPUWAIT_REFEREE_LIB");

    range_name = name;
    CHECK(cudaDeviceSynchronize());
    if (on && !strcmp(on, "1")) {
        range_referee = dlopen(path ? path : "libcupti_referee.so", RTLD_NOW | RTLD_LOCAL);
        if (!range_referee) {
            fprintf(stderr, "%s\n", dlerror());
            exit(1);
        }
        if (((int (*)(void))range_symbol("cupti_referee_start"))())
            exit(1);
        CHECK(cudaDeviceSynchronize());
    }
    nvtxRangePushA(name);
}

static void range_end(void)
{
    const char *folder = getenv("GPUWAIT_TRUTH_DIR");
    char path[4096];

    CHECK(cudaDeviceSynchronize());
    nvtxRangePop();
    if (!range_referee)
        return;
    snprintf(path, sizeof path, "%s/%s.trace.json", folder ? folder : ".", range_name);
    if (((int (*)(const char *))range_symbol("cupti_referee_stop"))(path))
        exit(1);
}

/* FNV-1a over device memory, so that what the kernels did shows on stdout. */
static uint64_t device_hash(const void *device, size_t bytes)
{
    unsigned char *host = (unsigned char *)malloc(bytes);
    uint64_t hash = 14695981039346656037u;

    CHECK(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ host[i]) * 1099511628211u;
    free(host);
    return hash;
}

#endif
