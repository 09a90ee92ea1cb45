/* Host cost of an intercepted call on a CUDA that does nothing. Run with the preload and
 * without: the difference is what interception adds. Two bare clock reads are the floor that
 * no recorder of entry and return goes below.
 *
 *     calls [THREADS [ROUNDS]]      a line per kind: NAME MEDIAN LEAST P99.9, nanoseconds a call
 *     calls count NAME CALLS        so many calls and nothing else, for counting instructions
 *
 * Kinds take turns in short bursts, so that other work on the machine meets all alike; between
 * bursts the drain catches up, as it does beside calls that take microseconds. */
#include "capture/cuda_abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BURST   4096u
#define THREADS 64u
#define ROUNDS  10000u

cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t cudaMemcpyAsync(void *, const void *, size_t, enum cudaMemcpyKind, cudaStream_t);
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t);
cudaError_t cudaMalloc(void **, size_t);
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, CUstream, void **, void **);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *, CUgraph, unsigned long long);
#define REPORT _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
void REPORT(void *p, int64_t size, size_t allocated, size_t reserved, uint16_t device);

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return now();
#endif
}

/* ---- kinds of calls ----------------------------------------------------------------- */

static void clocks(unsigned i)
{
    static __thread volatile uint64_t sink __attribute__((unused));
    (void)i;
    uint64_t a = ticks();
    uint64_t b = ticks();
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

static void allocate(unsigned i)
{
    void *p = (void *)(uintptr_t)(0x710000000000 + i % 64 * 4096);
    cudaMalloc(&p, 512);
}

static void record(unsigned i)
{
    cudaEventRecord((cudaEvent_t)(uintptr_t)(0x2000 + i % 16 * 64), NULL);
}

static void graph(unsigned i)
{
    (void)i;
    cudaGraphLaunch((cudaGraphExec_t)(uintptr_t)0x3000, NULL);
}

static void report(unsigned i)
{
    REPORT((void *)(uintptr_t)(0x720000000000 + i % 64 * 4096), i & 1 ? -512 : 512, 1u << 20,
           2u << 20, 1);
}

/* A name that nobody intercepts. */
static void look_up(unsigned i)
{
    (void)i;
    dlsym(RTLD_DEFAULT, "strlen");
}

static const struct kind {
    const char *name;
    void (*call)(unsigned);
} kinds[] = {
    {"two-clock-reads", clocks},
    {"launch-both-levels", both_levels},
    {"launch-driver", driver_only},
    {"copy-h2d", copy},
    {"malloc", allocate},
    {"event-record", record},
    {"graph-launch", graph},
    {"allocator-report", report},
    {"dlsym", look_up},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

/* ---- measuring ------------------------------------------------------------------------ */

static unsigned threads = 1, rounds = 200;
static pthread_barrier_t barrier;
static float ns[KINDS][THREADS][ROUNDS]; /* of one call, on average over a burst */
static uint32_t *single[KINDS][THREADS]; /* ticks of single calls, one burst in 16 */

static void pause_ms(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void *work(void *p)
{
    unsigned self = (unsigned)(uintptr_t)p;
    for (unsigned k = 0; k < KINDS; k++)
        for (unsigned i = 0; i < 2000; i++)
            kinds[k].call(i);
    for (unsigned r = 0; r < rounds; r++) {
        for (unsigned k = 0; k < KINDS; k++) {
            pause_ms(4);
            pthread_barrier_wait(&barrier);
            if (r % 16 == 15) {
                uint32_t *t = single[k][self] + r / 16 * BURST;
                for (unsigned i = 0; i < BURST; i++) {
                    uint64_t t0 = ticks();
                    kinds[k].call(i);
                    t[i] = (uint32_t)(ticks() - t0);
                }
            }
            uint64_t t0 = now();
            for (unsigned i = 0; i < BURST; i++)
                kinds[k].call(i);
            ns[k][self][r] = (float)(now() - t0) / BURST;
        }
    }
    return NULL;
}

static int up(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static int up_ticks(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void print(unsigned k, double ns_per_tick)
{
    static float all[THREADS * ROUNDS];
    size_t n = 0, m = (size_t)(rounds / 16) * BURST, singles = 0;
    uint32_t *each = malloc(sizeof *each * (threads * m + 1));
    if (!each)
        exit(1);
    for (unsigned t = 0; t < threads; t++) {
        memcpy(all + n, ns[k][t], sizeof(float) * rounds);
        n += rounds;
        memcpy(each + singles, single[k][t], sizeof *each * m);
        singles += m;
    }
    qsort(all, n, sizeof all[0], up);
    qsort(each, singles, sizeof *each, up_ticks);
    double p999 = singles ? each[singles - singles / 1000 - 1] * ns_per_tick : 0;
    printf("%s %.2f %.2f %.0f\n", kinds[k].name, (double)all[n / 2], (double)all[0], p999);
    free(each);
}

__attribute__((noinline)) static int count(const char *name, unsigned calls)
{
    for (unsigned k = 0; k < KINDS; k++) {
        if (strcmp(kinds[k].name, name) != 0)
            continue;
        for (unsigned i = 0; i < calls; i++)
            kinds[k].call(i);
        return 0;
    }
    return 2;
}

/* Timing on the device begins a while after the first launch. */
static void wait_for_timing(void)
{
    if (!getenv("NOOP_TIMES"))
        return;
    both_levels(0);
    for (unsigned i = 0; i < 2000; i += 4)
        pause_ms(4);
}

int main(int argc, char **argv)
{
    CUgraphExec exec = (CUgraphExec)(uintptr_t)0x3000;
    cuGraphInstantiateWithFlags(&exec, NULL, 0);
    wait_for_timing();
    if (argc == 4 && strcmp(argv[1], "count") == 0)
        return count(argv[2], (unsigned)atoi(argv[3]));
    if (argc > 1)
        threads = (unsigned)atoi(argv[1]);
    if (argc > 2)
        rounds = (unsigned)atoi(argv[2]);
    if (threads < 1 || threads > THREADS || rounds < 1 || rounds > ROUNDS)
        return 2;
    pthread_barrier_init(&barrier, NULL, threads);
    for (unsigned k = 0; k < KINDS; k++)
        for (unsigned t = 0; t < threads; t++)
            if (!(single[k][t] = calloc((size_t)(rounds / 16 + 1) * BURST, sizeof(uint32_t))))
                return 1;
    pthread_t thread[THREADS];
    uint64_t ticks0 = ticks(), ns0 = now();
    for (unsigned t = 1; t < threads; t++)
        pthread_create(&thread[t], NULL, work, (void *)(uintptr_t)t);
    work((void *)0);
    for (unsigned t = 1; t < threads; t++)
        pthread_join(thread[t], NULL);
    double ns_per_tick = (double)(now() - ns0) / (double)(ticks() - ticks0);
    for (unsigned k = 0; k < KINDS; k++)
        print(k, ns_per_tick);
    return 0;
}
