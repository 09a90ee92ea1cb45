/* The clock of the record path: one unserialised counter read.
 *
 * rdtscp or a fence would double its cost (18.5 against 9.6 ns where that was
 * measured) and buy nothing: a call lasts microseconds. */
#ifndef GW_CLOCK_H
#define GW_CLOCK_H

#include "atomics.h"

#include <gpuwait/format.h>

#include <stdbool.h>
#include <time.h>

extern uint32_t gw_clock;                /* enum gwt_clock, set once before the first record */
extern uint64_t (*gw_clock_test)(void);  /* the simulator's virtual clock, or NULL */
extern uint64_t (*gw_cpu_test)(int tid); /* CPU time by that clock; 0: own thread's, -1: all */
extern void (*gw_nap_test)(
    uint64_t ns); /* to sleep by that clock; not on a thread of the program's */

/* Chooses the clock: the TSC where it is invariant and the kernel trusts it. */
void gw_clock_init(void);

/* post: three clocks read as close together as one of several tries got them. */
void gw_clock_triple(struct gwt_triple *out);

static inline uint64_t gw_clock_ns(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Time that the program lives in: the virtual clock under test. */
static inline uint64_t gw_now_ns(void)
{
    return gw_unlikely(gw_clock_test) ? gw_clock_test() : gw_clock_ns(CLOCK_MONOTONIC);
}

/* Under test a thread of ours sleeps by the virtual clock, which then waits for it when it wakes.
 * post: true if so; false: it is for the caller to sleep. */
static inline bool gw_test_nap(uint64_t ns)
{
    if (gw_nap_test)
        gw_nap_test(ns);
    return gw_nap_test;
}

/* pre:  gw_clock is GWT_CLOCK_TSC. */
static inline __attribute__((always_inline)) uint64_t gw_counter(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t v;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
#else
    return gw_now_ns();
#endif
}

static inline __attribute__((always_inline)) uint64_t gw_ticks(void)
{
    return gw_unlikely(gw_load_relaxed(&gw_clock) != GWT_CLOCK_TSC) ? gw_now_ns() : gw_counter();
}

#endif
