/* Look-alike of libc10.so: the function through which PyTorch's caching allocator reports, at
 * its own mangled name, so that what interposes the real one interposes this. */
#include "sim.h"

#include <dlfcn.h>

/* void c10::reportMemoryUsageToProfiler(void *, int64_t, size_t, size_t, c10::Device); the
 * device is {int8 type, int8 index} in one register, type 1 is CUDA */
__attribute__((visibility("default"))) void
_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *ptr, int64_t size, size_t allocated,
                                                      size_t reserved, uint16_t device);

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *ptr, int64_t size,
                                                           size_t allocated, size_t reserved,
                                                           uint16_t device)
{
    (void)ptr;
    (void)size;
    if ((device & 0xff) != 1)
        return;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    const struct sim_hooks *(*hooks)(void) =
        driver ? (const struct sim_hooks *(*)(void))dlsym(driver, "sim_hooks") : NULL;
    if (hooks)
        hooks()->allocator(allocated, reserved);
    if (driver)
        dlclose(driver);
}
