/* Memory pools, and the calls that put addresses and physical blocks together. */
#include "driver.h"
#include "graph.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- calls: pools ---------------------------------------------------------------------- */

struct CUmemPoolHandle_st {
    uint32_t magic;
    unsigned device;
    uint64_t threshold;
};

static struct CUmemPoolHandle_st default_pools[8];

static CUmemoryPool default_pool(unsigned device)
{
    default_pools[device].magic = MAGIC_POOL;
    default_pools[device].device = device;
    return &default_pools[device];
}

CUresult sim_cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice dev)
{
    if (dev < 0 || dev >= (int)sim_cfg.devices)
        return E_DEVICE;
    *pool = default_pool((unsigned)dev);
    return E_OK;
}

CUresult sim_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    return sim_cuDeviceGetDefaultMemPool(pool, dev);
}

CUresult sim_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    struct CUmemPoolHandle_st *p = calloc(1, sizeof *p);
    if (!p)
        return E_MEMORY;
    p->magic = MAGIC_POOL;
    p->device = props && props->location.id > 0 ? (unsigned)props->location.id & 7 : 0;
    *pool = p;
    return E_OK;
}

CUresult sim_cuMemPoolDestroy(CUmemoryPool pool)
{
    if (!pool || pool->magic != MAGIC_POOL)
        return E_VALUE;
    free(pool);
    return E_OK;
}

CUresult sim_cuMemPoolGetAttribute(CUmemoryPool pool, int attr, void *value)
{
    if (attr >= 5 && attr <= 8) /* reserved and used bytes, now and at most */
        *(uint64_t *)value = sim_arenas[pool->device].used;
    else if (attr == 4)
        *(uint64_t *)value = pool->threshold;
    else
        *(int *)value = 1;
    return E_OK;
}

CUresult sim_cuMemPoolSetAttribute(CUmemoryPool pool, int attr, void *value)
{
    if (attr == 4)
        pool->threshold = *(const uint64_t *)value;
    return E_OK;
}

CUresult sim_cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t n, CUmemoryPool pool, CUstream stream)
{
    int status;
    uintptr_t p = 0;
    (void)pool;
    sim_lock();
    struct sim_stream *s = sim_stream_of(stream, &status);
    if (s)
        status = sim_capture_check(s);
    if (!status)
        status = sim_memory_alloc(s->ctx->device, n, 0, false, &p);
    if (!status && s->capture)
        sim_capture_node(s, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    else if (!status)
        sim_submit(s, sim_op_new(OP_MARK, s->ctx->device));
    sim_unlock();
    if (!status)
        *ptr = p;
    return status;
}

CUresult sim_cuMemAllocAsync(CUdeviceptr *ptr, size_t n, CUstream stream)
{
    return sim_cuMemAllocFromPoolAsync(ptr, n, NULL, stream);
}

static void free_at_end(struct sim_op *op)
{
    sim_memory_free((uintptr_t)op->value);
}

CUresult sim_cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
    int status;
    sim_lock();
    struct sim_stream *s = sim_stream_of(stream, &status);
    if (s)
        status = sim_capture_check(s);
    if (!status && s->capture) {
        sim_capture_node(s, CU_GRAPH_NODE_TYPE_MEM_FREE);
    } else if (!status) {
        struct sim_op *op = sim_op_new(OP_MARK, s->ctx->device);
        op->effect = free_at_end;
        op->value = ptr;
        sim_submit(s, op);
    }
    sim_unlock();
    return status;
}

/* ---- calls: addresses and physical blocks ------------------------------------------------- */

struct physical {
    uint32_t magic;
    unsigned device;
    size_t bytes;
    int refs; /* the handle, and mappings */
};

CUresult sim_cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
                                           int option)
{
    (void)prop;
    (void)option;
    *bytes = 2u << 20;
    return E_OK;
}

CUresult sim_cuMemAddressReserve(CUdeviceptr *ptr, size_t n, size_t alignment, CUdeviceptr at,
                                 unsigned long long flags)
{
    (void)at;
    (void)flags;
    sim_lock();
    int status = sim_ready();
    struct sim_arena *a = sim_arena(0);
    uintptr_t p = 0;
    if (!status && !(p = sim_arena_place(a, n, alignment ? alignment : 2u << 20)))
        status = E_MEMORY;
    if (!status)
        sim_range_insert(
            &sim_device_ranges,
            (struct sim_range){.at = p, .size = n, .kind = MEM_DEVICE, .arena = 1, .reserved = 1});
    sim_unlock();
    if (!status)
        *ptr = p;
    return status;
}

CUresult sim_cuMemAddressFree(CUdeviceptr ptr, size_t n)
{
    sim_lock();
    struct sim_range *r = sim_range_of(&sim_device_ranges, ptr);
    int status = r && r->at == ptr && r->size == n && r->reserved ? E_OK : E_VALUE;
    if (!status)
        sim_range_erase(&sim_device_ranges, r);
    sim_unlock();
    return status;
}

static void physical_put(struct physical *p)
{
    if (--p->refs)
        return;
    sim_arenas[p->device].used -= p->bytes;
    p->magic = 0;
    free(p);
}

CUresult sim_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t n,
                         const CUmemAllocationProp *prop, unsigned long long flags)
{
    (void)flags;
    unsigned device = prop->location.id > 0 ? (unsigned)prop->location.id & 7 : 0;
    sim_lock();
    int status = sim_ready();
    struct physical *p = NULL;
    if (!status && (sim_arenas[device].used + n > sim_cfg.memory - sim_cfg.ballast ||
                    !(p = calloc(1, sizeof *p))))
        status = E_MEMORY;
    if (p) {
        *p = (struct physical){.magic = MAGIC_PHYS, .device = device, .bytes = n, .refs = 1};
        sim_arenas[device].used += n;
        *handle = (uintptr_t)p;
    }
    sim_unlock();
    sim_spend((uint64_t)(250000.0 / sim_cfg.speed));
    return status;
}

CUresult sim_cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct physical *p = (struct physical *)(uintptr_t)handle;
    if (!p || p->magic != MAGIC_PHYS)
        return E_VALUE;
    sim_lock();
    physical_put(p);
    sim_unlock();
    return E_OK;
}

/* A mapping is noted only by the block's reference: its addresses work from the reservation on. */
static struct {
    uintptr_t at;
    struct physical *block;
} * mappings;
static size_t nmappings, mapping_room;

CUresult sim_cuMemMap(CUdeviceptr ptr, size_t n, size_t offset, CUmemGenericAllocationHandle handle,
                      unsigned long long flags)
{
    struct physical *p = (struct physical *)(uintptr_t)handle;
    (void)n;
    (void)offset;
    (void)flags;
    if (!p || p->magic != MAGIC_PHYS)
        return E_VALUE;
    sim_lock();
    struct sim_range *r = sim_range_of(&sim_device_ranges, ptr);
    int status = r && r->reserved ? E_OK : E_VALUE;
    if (!status) {
        if (nmappings == mapping_room) {
            mapping_room = mapping_room ? mapping_room * 2 : 64;
            mappings = sim_grow(mappings, mapping_room * sizeof *mappings);
        }
        mappings[nmappings].at = ptr;
        mappings[nmappings++].block = p;
        p->refs++;
        r->device = (uint8_t)p->device;
    }
    sim_unlock();
    return status;
}

CUresult sim_cuMemUnmap(CUdeviceptr ptr, size_t n)
{
    sim_lock();
    int status = E_VALUE;
    for (size_t i = 0; i < nmappings;) {
        if (mappings[i].at < ptr || mappings[i].at >= ptr + n) {
            i++;
            continue;
        }
        physical_put(mappings[i].block);
        mappings[i] = mappings[--nmappings];
        status = E_OK;
    }
    sim_unlock();
    return status;
}
