/* How much of the device is free, for other processes hold memory of it too.
 *
 * Asked by the timer's thread, whose context is current there. An answer takes the driver longer
 * than a launch, and perhaps a lock that launches want: hence at most a thousandth of the time,
 * and never while a capture is active. */
#include "sampler.h"

#define EVERY_NS 1000000000ull
#define SHARE    1000

void gw_free_memory_ask(void)
{
    static uint64_t next;
    struct gw_thread *t = gw_thread_get();
    size_t bytes, total;
    uint64_t t0 = gw_ticks(), begun = gw_now_ns();
    if (!t || begun < next || gw_capturing() || !gw_driver.cuMemGetInfo_v2)
        return;
    CUresult status = gw_driver.cuMemGetInfo_v2(&bytes, &total);
    uint64_t ticks = gw_ticks() - t0, took = gw_now_ns() - begun;
    next = begun + (took > EVERY_NS / SHARE ? took * SHARE : EVERY_NS);
    if (status != 0)
        return;
    struct gwt_record r = {.t0 = t0,
                           .dur = ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX,
                           .api = (uint16_t)(GWT_API_PSEUDO + GWT_FREE_MEMORY),
                           .arg = gw_pool.device,
                           .value = bytes};
    gw_push(t, &r);
}
