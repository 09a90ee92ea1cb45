/* What kind of memory an address lies in: device, pinned host, managed, or, where nobody
 * told us of it, pageable.
 *
 * A sorted table of ranges with a sequence lock. Writers (allocations) hold the one
 * lock; readers (copies) take none and retry when a writer was at work. */
#include "gw.h"

#define RANGES (1u << 16)

struct range {
    uintptr_t start;
    uintptr_t end;
    uint64_t what; /* enum gw_memory, the device shifted by 8 */
};

static struct range ranges[RANGES];
static uint32_t used;
static uint32_t sequence; /* odd while a writer is at work */

/* Readers may look at a range while it is stored: word by word. */
static void store(long i, struct range r)
{
    gw_store_relaxed(&ranges[i].start, r.start);
    gw_store_relaxed(&ranges[i].end, r.end);
    gw_store_relaxed(&ranges[i].what, r.what);
}

/* post: index of the last range that starts at or below p, or -1. */
static long find(uintptr_t p, uint32_t n)
{
    long lo = 0, hi = (long)n - 1;
    while (lo <= hi) {
        long mid = (lo + hi) / 2;
        if (gw_load_relaxed(&ranges[mid].start) <= p)
            lo = mid + 1;
        else
            hi = mid - 1;
    }
    return hi;
}

static void begin_write(void)
{
    gw_store_relaxed(&sequence, sequence + 1);
    gw_fence_release(); /* partner: the acquire fence in gw_memory_kind() */
}

static void end_write(void)
{
    gw_store_release(&sequence, sequence + 1);
}

void gw_memory_add(const void *p, size_t size, enum gw_memory kind, unsigned device)
{
    uintptr_t start = (uintptr_t)p;
    struct range new = {start, start + size, (uint64_t)kind | (uint64_t)device << 8};
    if (!p)
        return;
    gw_lock();
    long i = find(start, used);
    begin_write();
    if (i >= 0 && ranges[i].start == start) {
        store(i, new);
    } else if (used < RANGES) {
        for (long k = (long)used - 1; k > i; k--)
            store(k + 1, ranges[k]);
        store(i + 1, new);
        gw_store_relaxed(&used, used + 1);
    } else {
        gw_count(GWT_C_UNDECODED, 1);
    }
    end_write();
    gw_unlock();
}

void gw_memory_remove(const void *p)
{
    if (!p)
        return;
    gw_lock();
    long i = find((uintptr_t)p, used);
    if (i >= 0 && ranges[i].start == (uintptr_t)p) {
        begin_write();
        for (long k = i; k + 1 < (long)used; k++)
            store(k, ranges[k + 1]);
        gw_store_relaxed(&used, used - 1);
        end_write();
    }
    gw_unlock();
}

enum gw_memory gw_memory_kind(const void *p, unsigned *device)
{
    uintptr_t end = 0;
    uint64_t what = 0;
    uint32_t before;
    do {
        while ((before = gw_load_acquire(&sequence)) & 1)
            gw_pause();
        uint32_t n = gw_load_relaxed(&used);
        long i = find((uintptr_t)p, n);
        end = 0;
        if (i >= 0) {
            end = gw_load_relaxed(&ranges[i].end);
            what = gw_load_relaxed(&ranges[i].what);
        }
        gw_fence_acquire(); /* partner: the release fence in begin_write() */
    } while (gw_load_relaxed(&sequence) != before);
    bool hit = (uintptr_t)p < end;
    if (device)
        *device = hit ? (unsigned)(what >> 8) : 0;
    return hit ? (enum gw_memory)(what & 0xff) : GW_MEM_PAGEABLE;
}

void gw_memory_reset(void)
{
    used = 0;
    sequence = 0;
}
