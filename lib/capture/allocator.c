/* Reports of PyTorch's caching allocator.
 *
 * libc10_cuda.so calls c10::reportMemoryUsageToProfiler(void *, int64_t, size_t, size_t,
 * c10::Device) in libc10.so through its PLT at every allocation and free, holding the
 * allocator's mutex: no lock, no allocation, no CUDA call here. Its totals are PyTorch's
 * own, to the byte. Device is two bytes, type (1: CUDA) and index, in one register. */
#include "call.h"

#include <dlfcn.h>

typedef void (*report_fn)(void *, int64_t, size_t, size_t, uint16_t);

#define REPORT      _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
#define REPORT_NAME "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"

GW_EXPORT void REPORT(void *p, int64_t size, size_t allocated, size_t reserved, uint16_t device);

static report_fn real_report(void)
{
    static report_fn cached;
    report_fn f = gw_load_acquire(&cached);
    if (gw_likely(f))
        return f;
    f = (report_fn)gw_resolve_symbol("libc10.so", REPORT_NAME);
    if (!f || f == (report_fn)REPORT)
        f = (report_fn)gw_resolve_next(REPORT_NAME);
    if (f)
        gw_store_release(&cached, f);
    return f;
}

static void record(void *p, int64_t size, size_t allocated, size_t reserved, unsigned device)
{
    struct gw_thread *t = gw_self ? gw_self : gw_thread_get();
    if (!t || gw_is_busy(t))
        return;
    union {
        struct gwt_record_allocator a;
        struct gwt_record r;
    } u = {.a = {.t0 = gw_ticks(),
                 .reserved_512 = (uint32_t)(reserved / 512),
                 .api = (uint16_t)(GWT_API_PSEUDO + GWT_ALLOCATOR),
                 .flags = (uint16_t)device,
                 .address = GWT_ADDR(p),
                 .size_512 = (int32_t)(size / 512),
                 .allocated = allocated}};
    gw_busy_begin();
    gw_push(t, &u.r);
    gw_busy_end(t);
}

GW_EXPORT void REPORT(void *p, int64_t size, size_t allocated, size_t reserved, uint16_t device)
{
    if ((device & 0xff) == 1 && gw_is_alive() && gw_load_relaxed(&gw_recording))
        record(p, size, allocated, reserved, device >> 8);
    report_fn f = real_report();
    if (f)
        f(p, size, allocated, reserved, device);
}
