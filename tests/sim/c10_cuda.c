#include "c10_cuda.h"

#include "abi.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

cudaError_t cudaMalloc(void **ptr, size_t n);
cudaError_t cudaFree(void *ptr);
cudaError_t cudaGetLastError(void);
void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *ptr, int64_t size,
                                                           size_t allocated, size_t reserved,
                                                           uint16_t device);

#define EXPORT        __attribute__((visibility("default")))
#define ROUND         512u
#define SMALL         ((size_t)1 << 20) /* up to here out of 2 MiB segments */
#define SMALL_SEGMENT ((size_t)2 << 20)
#define LARGE_SEGMENT ((size_t)20 << 20)
#define DEVICE_CUDA_0 0x0001u

struct block {
    struct block *next, *prev; /* neighbours in the segment */
    struct block *chain;       /* in the table of live blocks, or in the free list */
    char *at;
    size_t size;
    int free, small;
};

#define TABLE 4096u
static struct block *live[TABLE];
static struct block *spare[2]; /* free blocks: large, small */
static size_t allocated, reserved, max_allocated;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned slot(const void *p)
{
    return (unsigned)(((uintptr_t)p >> 9) * 0x9e3779b1u) % TABLE;
}

static struct block *segment(size_t size, int small)
{
    size_t bytes = small                        ? SMALL_SEGMENT
                   : size < (LARGE_SEGMENT / 2) ? LARGE_SEGMENT
                                                : (size + SMALL_SEGMENT - 1) & ~(SMALL_SEGMENT - 1);
    void *at = NULL;
    if (cudaMalloc(&at, bytes)) {
        cudaGetLastError();
        c10_cuda_empty_cache(); /* and once more, as PyTorch does */
        if (cudaMalloc(&at, bytes))
            return NULL;
    }
    struct block *b = calloc(1, sizeof *b);
    if (!b)
        abort();
    b->at = at;
    b->size = bytes;
    b->small = small;
    reserved += bytes;
    return b;
}

/* best fit */
static struct block *take(size_t size, int small)
{
    struct block **best = NULL;
    for (struct block **p = &spare[small]; *p; p = &(*p)->chain)
        if ((*p)->size >= size && (!best || (*p)->size < (*best)->size))
            best = p;
    if (!best)
        return NULL;
    struct block *b = *best;
    *best = b->chain;
    b->free = 0;
    return b;
}

static void put(struct block *b)
{
    b->free = 1;
    b->chain = spare[b->small];
    spare[b->small] = b;
}

static void unlink_spare(struct block *b)
{
    struct block **p = &spare[b->small];
    while (*p != b)
        p = &(*p)->chain;
    *p = b->chain;
}

EXPORT void *c10_cuda_allocate(size_t bytes, void *stream)
{
    (void)stream;
    size_t size = bytes ? (bytes + ROUND - 1) / ROUND * ROUND : ROUND;
    int small = size <= SMALL;
    pthread_mutex_lock(&lock);
    struct block *b = take(size, small);
    if (!b) {
        pthread_mutex_unlock(&lock);
        b = segment(size, small);
        pthread_mutex_lock(&lock);
    }
    if (!b) {
        pthread_mutex_unlock(&lock);
        return NULL;
    }
    size_t rest = b->size - size;
    if (small ? rest >= ROUND : rest > SMALL) {
        struct block *r = calloc(1, sizeof *r);
        if (!r)
            abort();
        *r = (struct block){
            .next = b->next, .prev = b, .at = b->at + size, .size = rest, .small = small};
        if (b->next)
            b->next->prev = r;
        b->next = r;
        b->size = size;
        put(r);
    }
    b->chain = live[slot(b->at)];
    live[slot(b->at)] = b;
    allocated += b->size;
    if (allocated > max_allocated)
        max_allocated = allocated;
    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(b->at, (int64_t)b->size, allocated,
                                                          reserved, DEVICE_CUDA_0);
    pthread_mutex_unlock(&lock);
    return b->at;
}

EXPORT void c10_cuda_free(void *ptr)
{
    if (!ptr)
        return;
    pthread_mutex_lock(&lock);
    struct block **p = &live[slot(ptr)];
    while (*p && (*p)->at != ptr)
        p = &(*p)->chain;
    struct block *b = *p;
    if (!b)
        abort();
    *p = b->chain;
    allocated -= b->size;
    _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(ptr, -(int64_t)b->size, allocated,
                                                          reserved, DEVICE_CUDA_0);
    if (b->next && b->next->free) {
        struct block *n = b->next;
        unlink_spare(n);
        b->size += n->size;
        b->next = n->next;
        if (n->next)
            n->next->prev = b;
        free(n);
    }
    if (b->prev && b->prev->free) {
        struct block *q = b->prev;
        unlink_spare(q);
        q->size += b->size;
        q->next = b->next;
        if (b->next)
            b->next->prev = q;
        free(b);
        b = q;
    }
    put(b);
    pthread_mutex_unlock(&lock);
}

EXPORT void c10_cuda_empty_cache(void)
{
    pthread_mutex_lock(&lock);
    for (int small = 0; small < 2; small++)
        for (struct block **p = &spare[small]; *p;) {
            struct block *b = *p;
            if (b->next || b->prev) {
                p = &b->chain;
                continue;
            }
            *p = b->chain;
            reserved -= b->size;
            cudaFree(b->at);
            free(b);
        }
    pthread_mutex_unlock(&lock);
}

EXPORT size_t c10_cuda_max_allocated(void)
{
    return max_allocated;
}
