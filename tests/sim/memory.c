/* Addresses: a device address space with real, lazily committed memory behind it, and what is
 * known about host memory. */
#include "driver.h"
#include "memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA_BYTES  ((size_t)1 << 38)
#define DEVICE_ALIGN 512u

struct sim_arena sim_arenas[8];
struct sim_ranges sim_device_ranges;
static struct sim_ranges host_ranges;

/* index of the first range that ends after p */
static size_t find(const struct sim_ranges *r, uintptr_t p)
{
    size_t low = 0, high = r->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (r->at[mid].at + r->at[mid].size > p)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

struct sim_range *sim_range_of(struct sim_ranges *r, uintptr_t p)
{
    size_t i = find(r, p);
    return i < r->n && r->at[i].at <= p ? &r->at[i] : NULL;
}

void sim_range_insert(struct sim_ranges *r, struct sim_range range)
{
    if (r->n == r->room) {
        r->room = r->room ? r->room * 2 : 256;
        r->at = sim_grow(r->at, r->room * sizeof *r->at);
    }
    size_t i = find(r, range.at);
    memmove(&r->at[i + 1], &r->at[i], (r->n - i) * sizeof *r->at);
    r->at[i] = range;
    r->n++;
}

void sim_range_erase(struct sim_ranges *r, struct sim_range *range)
{
    size_t i = (size_t)(range - r->at);
    memmove(range, range + 1, (r->n - i - 1) * sizeof *r->at);
    r->n--;
}

struct sim_arena *sim_arena(unsigned device)
{
    struct sim_arena *a = &sim_arenas[device];
    for (size_t size = ARENA_BYTES; !a->base && size >= (64u << 20); size /= 2) {
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            continue;
        madvise(p, size, MADV_DONTDUMP);
        a->base = (uintptr_t)p;
        a->size = size;
    }
    return a;
}

/* first fit: what was freed is handed out again */
uintptr_t sim_arena_place(struct sim_arena *a, size_t bytes, size_t align)
{
    uintptr_t p = (a->base + align - 1) / align * align;
    for (size_t i = find(&sim_device_ranges, a->base); i < sim_device_ranges.n; i++) {
        const struct sim_range *r = &sim_device_ranges.at[i];
        if (r->at >= p + bytes)
            break;
        p = (r->at + r->size + align - 1) / align * align;
    }
    return p + bytes <= a->base + a->size ? p : 0;
}

int sim_memory_alloc(unsigned device, size_t bytes, size_t align, bool managed, uintptr_t *out)
{
    struct sim_arena *a = sim_arena(device);
    size_t rounded = (bytes + DEVICE_ALIGN - 1) / DEVICE_ALIGN * DEVICE_ALIGN;
    if (!bytes)
        return E_VALUE;
    if (!a->base || rounded > sim_cfg.memory ||
        a->used + rounded > sim_cfg.memory - sim_cfg.ballast)
        return E_MEMORY;
    uintptr_t p = sim_arena_place(a, rounded, align < DEVICE_ALIGN ? DEVICE_ALIGN : align);
    if (!p)
        return E_MEMORY;
    sim_range_insert(&sim_device_ranges,
                     (struct sim_range){.at = p,
                                        .size = rounded,
                                        .device = (uint8_t)device,
                                        .kind = managed ? MEM_MANAGED : MEM_DEVICE,
                                        .arena = 1});
    a->used += rounded;
    *out = p;
    return E_OK;
}

int sim_memory_free(uintptr_t p)
{
    struct sim_range *r = sim_range_of(&sim_device_ranges, p);
    if (!r || r->at != p || r->reserved)
        return E_VALUE;
    sim_arenas[r->device].used -= r->size;
    if (r->size >= (1u << 20))
        madvise((void *)r->at, r->size, MADV_DONTNEED);
    sim_range_erase(&sim_device_ranges, r);
    return E_OK;
}

enum sim_memory sim_memory_kind(uintptr_t p, unsigned *device)
{
    struct sim_range *r = sim_range_of(&sim_device_ranges, p);
    if (!r)
        r = sim_range_of(&host_ranges, p);
    if (device)
        *device = r ? r->device : 0;
    return r ? (enum sim_memory)r->kind : MEM_PAGEABLE;
}

/* ---- calls: device memory ------------------------------------------------------------ */

static unsigned current_device(void)
{
    struct sim_ctx *ctx = sim_ctx_current();
    return ctx ? ctx->device : 0;
}

static int begin(void)
{
    sim_lock();
    int status = sim_ready();
    if (!status && !sim_ctx_current())
        status = E_CONTEXT;
    if (!status)
        status = sim_capture_guard();
    if (status)
        sim_unlock();
    return status;
}

/* Small requests come out of a mapped slab, large ones from the system. */
static void charge_alloc(size_t bytes)
{
    sim_spend(bytes < (1u << 20) ? 3000 : (uint64_t)(600000.0 / sim_cfg.speed));
}

CUresult sim_cuMemAlloc_v2(CUdeviceptr *ptr, size_t n)
{
    int status = begin();
    if (status)
        return status;
    uintptr_t p = 0;
    status = ptr ? sim_memory_alloc(current_device(), n, 0, false, &p) : E_VALUE;
    sim_unlock();
    charge_alloc(n);
    if (!status)
        *ptr = p;
    return status;
}

CUresult sim_cuMemAlloc(CUdeviceptr_v1 *ptr, unsigned int n)
{
    (void)ptr;
    (void)n;
    return E_NOT_SUPPORTED; /* no 32-bit addresses here */
}

CUresult sim_cuMemAllocPitch_v2(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height,
                                unsigned int element)
{
    (void)element;
    size_t p = (width + 511) / 512 * 512;
    CUresult status = sim_cuMemAlloc_v2(ptr, p * height);
    if (!status)
        *pitch = p;
    return status;
}

CUresult sim_cuMemAllocManaged(CUdeviceptr *ptr, size_t n, unsigned int flags)
{
    (void)flags;
    int status = begin();
    if (status)
        return status;
    uintptr_t p = 0;
    status = sim_memory_alloc(current_device(), n, 4096, true, &p);
    sim_unlock();
    charge_alloc(n);
    if (!status)
        *ptr = p;
    return status;
}

CUresult sim_cuMemFree_v2(CUdeviceptr ptr)
{
    if (!ptr)
        return E_OK;
    int status = begin();
    if (status)
        return status;
    unsigned device = 0;
    sim_memory_kind(ptr, &device);
    sim_sync_device(device); /* freeing waits for the device */
    struct sim_range *r = sim_range_of(&sim_device_ranges, ptr);
    bool large = r && r->size >= (1u << 20);
    status = sim_memory_free(ptr);
    sim_unlock();
    if (large)
        sim_spend((uint64_t)(500000.0 / sim_cfg.speed));
    return status;
}

CUresult sim_cuMemGetInfo_v2(size_t *available, size_t *total)
{
    sim_lock();
    if (total)
        *total = sim_cfg.memory;
    if (available)
        *available = sim_cfg.memory - sim_cfg.ballast - sim_arenas[current_device()].used;
    sim_unlock();
    return E_OK;
}

CUresult sim_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr)
{
    sim_lock();
    struct sim_range *r = sim_range_of(&sim_device_ranges, ptr);
    if (r && base)
        *base = r->at;
    if (r && size)
        *size = r->size;
    sim_unlock();
    return r ? E_OK : E_FOUND;
}

/* ---- calls: arrays ------------------------------------------------------------------- */

struct CUarray_st {
    uintptr_t memory;
    size_t bytes;
};

static int array_new(CUarray *out, size_t bytes)
{
    int status = begin();
    if (status)
        return status;
    struct CUarray_st *a = calloc(1, sizeof *a);
    status = a ? sim_memory_alloc(current_device(), bytes, 0, false, &a->memory) : E_MEMORY;
    sim_unlock();
    if (status) {
        free(a);
        return status;
    }
    a->bytes = bytes;
    *out = a;
    return E_OK;
}

CUresult sim_cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *d)
{
    return array_new(array, d->Width * (d->Height ? d->Height : 1) * 4 * d->NumChannels);
}

CUresult sim_cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    return array_new(array, d->Width * (d->Height ? d->Height : 1) * (d->Depth ? d->Depth : 1) * 4 *
                                d->NumChannels);
}

CUresult sim_cuArrayDestroy(CUarray array)
{
    int status = begin();
    if (status)
        return status;
    status = array ? sim_memory_free(array->memory) : E_VALUE;
    sim_unlock();
    free(array);
    return status;
}

/* ---- calls: host memory ------------------------------------------------------------------- */

static int host_add(uintptr_t p, size_t n, enum sim_memory kind)
{
    sim_lock();
    int status = sim_ready();
    struct sim_range *r = sim_range_of(&host_ranges, p);
    if (!status && r)
        status = E_REGISTERED;
    if (!status)
        sim_range_insert(&host_ranges, (struct sim_range){.at = p,
                                                          .size = n,
                                                          .kind = (uint8_t)kind,
                                                          .device = (uint8_t)current_device()});
    sim_unlock();
    return status;
}

CUresult sim_cuMemHostAlloc(void **ptr, size_t n, unsigned int flags)
{
    (void)flags;
    int status = begin();
    if (status)
        return status;
    sim_unlock();
    void *p = mmap(NULL, n ? n : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!n || p == MAP_FAILED)
        return n ? E_MEMORY : E_VALUE;
    status = host_add((uintptr_t)p, n, MEM_PINNED);
    if (status)
        munmap(p, n);
    else
        *ptr = p;
    sim_spend((uint64_t)((double)n * 0.25 / sim_cfg.speed)); /* pinning touches each page */
    return status;
}

CUresult sim_cuMemAllocHost_v2(void **ptr, size_t n)
{
    return sim_cuMemHostAlloc(ptr, n, 0);
}

CUresult sim_cuMemHostRegister_v2(void *ptr, size_t n, unsigned int flags)
{
    (void)flags;
    if (!ptr || !n)
        return E_VALUE;
    sim_spend((uint64_t)((double)n * 0.15 / sim_cfg.speed));
    return host_add((uintptr_t)ptr, n, MEM_REGISTERED);
}

CUresult sim_cuMemHostRegister(void *ptr, size_t n, unsigned int flags)
{
    return sim_cuMemHostRegister_v2(ptr, n, flags);
}

static int host_remove(void *ptr, enum sim_memory kind, int missing, size_t *size)
{
    int status = begin();
    if (status)
        return status;
    struct sim_range *r = sim_range_of(&host_ranges, (uintptr_t)ptr);
    if (!r || r->at != (uintptr_t)ptr || r->kind != kind) {
        status = missing;
    } else {
        *size = r->size;
        sim_sync_device(r->device);
        sim_range_erase(&host_ranges, sim_range_of(&host_ranges, (uintptr_t)ptr));
    }
    sim_unlock();
    return status;
}

CUresult sim_cuMemFreeHost(void *ptr)
{
    size_t size = 0;
    int status = host_remove(ptr, MEM_PINNED, E_VALUE, &size);
    if (!status)
        munmap(ptr, size);
    return status;
}

CUresult sim_cuMemHostUnregister(void *ptr)
{
    size_t size;
    return host_remove(ptr, MEM_REGISTERED, E_NOT_REGISTERED, &size);
}

CUresult sim_cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *ptr, unsigned int flags)
{
    (void)flags;
    sim_lock();
    struct sim_range *r = sim_range_of(&host_ranges, (uintptr_t)ptr);
    sim_unlock();
    if (!r)
        return E_VALUE;
    *out = (uintptr_t)ptr;
    return E_OK;
}

CUresult sim_cuMemHostGetFlags(unsigned int *flags, void *ptr)
{
    (void)ptr;
    *flags = 0;
    return E_OK;
}

/* ---- calls: what a pointer is ------------------------------------------------------------------
 */

static int pointer_attribute(void *value, int attr, CUdeviceptr ptr)
{
    enum { CONTEXT = 1, TYPE, DEVICE_POINTER, HOST_POINTER, IS_MANAGED = 8, ORDINAL };
    unsigned device;
    enum sim_memory kind = sim_memory_kind(ptr, &device);
    if (kind == MEM_PAGEABLE)
        return E_VALUE;
    switch (attr) {
    case CONTEXT:
        *(void **)value = sim_ctx_primary(device);
        break;
    case TYPE:
        *(unsigned *)value =
            kind == MEM_DEVICE || kind == MEM_MANAGED ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        break;
    case DEVICE_POINTER:
        *(CUdeviceptr *)value = ptr;
        break;
    case HOST_POINTER:
        *(CUdeviceptr *)value = kind == MEM_DEVICE ? 0 : ptr;
        break;
    case IS_MANAGED:
        *(unsigned *)value = kind == MEM_MANAGED;
        break;
    case ORDINAL:
        *(int *)value = (int)device;
        break;
    default:
        *(int *)value = 0;
    }
    return E_OK;
}

CUresult sim_cuPointerGetAttribute(void *value, int attr, CUdeviceptr ptr)
{
    sim_lock();
    int status = pointer_attribute(value, attr, ptr);
    sim_unlock();
    return status;
}

CUresult sim_cuPointerGetAttributes(unsigned int n, int *attrs, void **values, CUdeviceptr ptr)
{
    sim_lock();
    for (unsigned i = 0; i < n; i++)
        if (pointer_attribute(values[i], attrs[i], ptr) && attrs[i] != 8)
            *(void **)values[i] = NULL; /* ordinary memory: zeros, not an error */
    sim_unlock();
    return E_OK;
}
