/* A stream of events shaped like training: a loop over 100 signatures with jittered durations,
 * one allocator report per launch, and some copies, event records and synchronisations. */
#ifndef BENCH_STREAM_H
#define BENCH_STREAM_H

#include "trace/codec.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SIGNATURES 100
#define GHZ        2.6

enum { LAUNCH = 1, MEMCPY, EVENT_RECORD, STREAM_WAIT, SYNC, MALLOC };

static uint64_t seed = 42;

static double uniform(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform());
}

static uint64_t ticks(double us, double deviation)
{
    double v = us * GHZ * 1000 * (1 + deviation * normal());

    if (uniform() < 0.01) /* a cache miss, an interrupt */
        v *= 1 + 10 * uniform();
    return v < 20 ? 20 : (uint64_t)v;
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void report(struct gwt_record *r, uint64_t t0, uint32_t address, int32_t size)
{
    static uint64_t allocated = 3u << 30;
    struct gwt_record_allocator a = {
        .t0 = t0,
        .reserved_512 = 8u << 21,
        .api = GWT_API_PSEUDO + GWT_ALLOCATOR,
        .address = address,
        .size_512 = size,
    };

    allocated += (uint64_t)(int64_t)size * 512;
    a.allocated = allocated;
    memcpy(r, &a, sizeof(a));
}

static void fill(struct gwt_record *r, uint32_t count)
{
    uint64_t t = 123456789012345;
    uint32_t step[SIGNATURES * 8], size[SIGNATURES * 8], address[SIGNATURES * 8];
    uint32_t n = 0;

    for (uint32_t i = 0; i < SIGNATURES * 8; i++) {
        step[i] = 1 + (uint32_t)(uniform() * uniform() * SIGNATURES);
        size[i] = 1 + (uint32_t)(uniform() * uniform() * 32768);
        address[i] = 0xb0000 + (uint32_t)(uniform() * 4e6);
    }
    while (n + 8 < count) {
        for (uint32_t i = 0; i < SIGNATURES * 8 && n + 8 < count; i++) {
            uint64_t gap = ticks(4, 0.2);

            t += gap;
            if (i % 2 == 0)
                report(&r[n++], t, address[i], (int32_t)size[i]);
            else
                report(&r[n++], t, address[i - 1], -(int32_t)size[i - 1]);
            t += ticks(1.5, 0.2);
            r[n] = (struct gwt_record){
                .t0 = t, .api = LAUNCH, .stream = 1, .arg = step[i], .flags = GWT_F_DRIVER};
            r[n].dur = (uint32_t)ticks(3.2, 0.15);
            t += r[n].dur;
            if (uniform() < 0.001)
                r[n].value = r[n].dur / 2;
            n++;
            if (i % 200 == 0) {
                t += ticks(5, 0.2);
                r[n] = (struct gwt_record){.t0 = t,
                                           .api = MEMCPY,
                                           .stream = 1,
                                           .value = 4096 << i % 7,
                                           .flags = GWT_H2D << GWT_F_SUB_SHIFT,
                                           .dur = (uint32_t)ticks(6, 0.2)};
                t += r[n++].dur;
            }
            if (i % 50 == 0) {
                for (uint16_t api = EVENT_RECORD; api <= STREAM_WAIT; api++) {
                    t += ticks(1, 0.2);
                    r[n] = (struct gwt_record){.t0 = t,
                                               .api = api,
                                               .stream = (uint16_t)(api - 1),
                                               .value = 0x55d0c0000000 + i / 50 * 0x80,
                                               .dur = (uint32_t)ticks(0.6, 0.2)};
                    t += r[n++].dur;
                }
            }
        }
        t += ticks(20, 0.3);
        r[n] = (struct gwt_record){
            .t0 = t, .api = SYNC, .stream = 1, .flags = 2 << GWT_F_SUB_SHIFT | GWT_F_BLOCKING};
        r[n].dur = (uint32_t)ticks(3000, 0.1);
        t += r[n++].dur;
    }
    while (n < count)
        r[n++] = (struct gwt_record){.t0 = t, .api = MALLOC};
}

#endif
