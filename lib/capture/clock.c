/* Which clock, and what its ticks mean. */
#include "gw.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint32_t gw_clock = GWT_CLOCK_MONOTONIC;
uint64_t (*gw_clock_test)(void);
uint64_t (*gw_cpu_test)(int tid);
void (*gw_nap_test)(uint64_t ns);

/* The counter must run at one rate through sleep and frequency changes, and the kernel must
 * itself trust it: on a machine where it does not, two cores may disagree. */
static bool counter_is_sound(void)
{
#if defined(__x86_64__)
    uint32_t a, b, c, d;
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(0x80000000u), "c"(0));
    if (a < 0x80000007u)
        return false;
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(0x80000007u), "c"(0));
    if (!(d & (1u << 8)))
        return false;
    char source[32] = "";
    int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                  O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, source, sizeof source - 1);
    close(fd);
    return n >= 3 && strncmp(source, "tsc", 3) == 0;
#elif defined(__aarch64__)
    return true; /* the generic timer is architectural */
#else
    return false;
#endif
}

void gw_clock_init(void)
{
    /* The simulator's virtual clock, so that its programs can be replayed exactly. */
    const char *test = getenv("GPUWAIT_TEST_CLOCK");
    if (test && *test) {
        gw_clock_test = (uint64_t(*)(void))gw_resolve_symbol("libcuda.so.1", "sim_clock_ticks");
        gw_cpu_test = (uint64_t(*)(int))gw_resolve_symbol("libcuda.so.1", "sim_cpu_ns");
        gw_nap_test = (void (*)(uint64_t))gw_resolve_symbol("libcuda.so.1", "sim_sleep_ns");
    }
    bool tsc = !gw_clock_test && counter_is_sound();
    gw_store_relaxed(&gw_clock, tsc ? GWT_CLOCK_TSC : GWT_CLOCK_MONOTONIC);
    gw_odd_set(GW_ODD_CLOCK, gw_clock != GWT_CLOCK_TSC);
}

void gw_clock_triple(struct gwt_triple *out)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        uint64_t before = gw_ticks();
        uint64_t monotonic = gw_clock_ns(CLOCK_MONOTONIC), realtime = gw_clock_ns(CLOCK_REALTIME);
        uint64_t after = gw_ticks();
        if (after - before >= best)
            continue;
        best = after - before;
        *out = (struct gwt_triple){before + best / 2, monotonic, realtime};
    }
    if (gw_clock == GWT_CLOCK_MONOTONIC) /* ticks are its nanoseconds */
        out->monotonic_ns = out->ticks;
}
