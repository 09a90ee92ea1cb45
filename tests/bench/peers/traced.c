/* What others take to record a call: run under `uftrace record` (built with -pg), and under an
 * LTTng session (built with LTTNG). A line: NAME MEDIAN LEAST, nanoseconds of one record, bursts
 * and pauses as in noop/calls.c. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef LTTNG
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "bench_tracepoint.h"
#endif

#define BURST  4096u
#define ROUNDS 96u

__attribute__((no_instrument_function)) static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A recorder of functions times entry and return of this one; a tracepoint is one event, so a
 * call's entry and return are two. */
__attribute__((noinline)) static void call(unsigned i)
{
#ifdef LTTNG
    lttng_ust_tracepoint(bench, call, (void *)(uintptr_t)i, 64, 256, 0);
    lttng_ust_tracepoint(bench, call, (void *)(uintptr_t)i, 64, 256, 1);
#else
    __asm__ volatile("" : : "r"(i));
#endif
}

__attribute__((no_instrument_function)) static int up(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

__attribute__((no_instrument_function)) int main(void)
{
    static double ns[ROUNDS];
    for (unsigned r = 0; r < ROUNDS; r++) {
        nanosleep(&(struct timespec){.tv_nsec = 4000000}, NULL);
        uint64_t t0 = now();
        for (unsigned i = 0; i < BURST; i++)
            call(i);
        ns[r] = (double)(now() - t0) / BURST;
    }
    qsort(ns, ROUNDS, sizeof ns[0], up);
    printf("call %.2f %.2f\n", ns[ROUNDS / 2], ns[0]);
    return 0;
}
