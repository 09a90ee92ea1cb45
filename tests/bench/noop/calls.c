/* Host cost of an intercepted call: ns per call on a CUDA that does nothing, beside two
 * bare clock reads of the same run. Prints one line per kind: "NAME THREADS NS".
 *
 *     calls [THREADS] [CALLS]
 */
#include "capture/cuda_abi.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t cudaMemcpyAsync(void *, const void *, size_t, enum cudaMemcpyKind, cudaStream_t);
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, CUstream, void **, void **);

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void clocks(unsigned i)
{
    static __thread volatile uint64_t sink __attribute__((unused));
    (void)i;
    uint64_t a = __builtin_ia32_rdtsc();
    uint64_t b = __builtin_ia32_rdtsc();
    sink = b - a;
}

static const dim3 grid = {64, 1, 1}, block = {256, 1, 1};

static void both_levels(unsigned i)
{
    cudaLaunchKernel((const void *)(uintptr_t)(0x1000 + (i & 63) * 16), grid, block, NULL, 0, NULL);
}

static void driver_only(unsigned i)
{
    cuLaunchKernel((CUfunction)(uintptr_t)(0x1000 + (i & 63) * 16), 64, 1, 1, 256, 1, 1, 0, NULL,
                   NULL, NULL);
}

static void copy(unsigned i)
{
    static char host[64];
    cudaMemcpyAsync((void *)(uintptr_t)(0x700000000000 + i % 64 * 4096), host, 64,
                    cudaMemcpyHostToDevice, NULL);
}

static void record(unsigned i)
{
    cudaEventRecord((cudaEvent_t)(uintptr_t)(0x2000 + i % 16 * 64), NULL);
}

static const struct {
    const char *name;
    void (*call)(unsigned);
} kinds[] = {
    {"two-clock-reads", clocks},    {"launch-both-levels", both_levels},
    {"launch-driver", driver_only}, {"copy-h2d", copy},
    {"event-record", record},
};

static unsigned calls = 2000000;
static pthread_barrier_t barrier;

struct job {
    unsigned kind;
    uint64_t ns;
};

/* Bursts with pauses: the drain must keep up, as it does beside calls that take microseconds. */
static void *work(void *p)
{
    struct job *j = p;
    for (unsigned i = 0; i < 2000; i++)
        kinds[j->kind].call(i);
    pthread_barrier_wait(&barrier);
    for (unsigned done = 0; done < calls;) {
        uint64_t t0 = now();
        for (unsigned i = 0; i < 8192; i++)
            kinds[j->kind].call(done + i);
        j->ns += now() - t0;
        done += 8192;
        nanosleep(&(struct timespec){.tv_nsec = 8000000}, NULL);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    if (argc > 2)
        calls = (unsigned)atoi(argv[2]);
    for (unsigned k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        pthread_t threads[64];
        struct job jobs[64] = {{0}};
        pthread_barrier_init(&barrier, NULL, n);
        for (unsigned i = 0; i < n; i++) {
            jobs[i].kind = k;
            pthread_create(&threads[i], NULL, work, &jobs[i]);
        }
        uint64_t ns = 0;
        for (unsigned i = 0; i < n; i++) {
            pthread_join(threads[i], NULL);
            ns += jobs[i].ns;
        }
        unsigned real = (calls + 8191) / 8192 * 8192;
        printf("%-20s %2u %8.2f\n", kinds[k].name, n, (double)ns / n / real);
        pthread_barrier_destroy(&barrier);
    }
    return 0;
}
