/* What one recorded call costs, measured in the process itself: the record path run on a
 * ring that nobody reads, by the drain thread before its work begins. */
#include "call.h"

#include <sys/mman.h>

#define RECORDS 64u
#define ROUNDS  2000u

struct bench {
    struct gwt_slot slot;
    struct gwt_record ring[RECORDS];
    struct gw_thread thread;
};

static void launch(void)
{
    struct gw_frame own, *f = gw_enter(&own, 1, GWT_LAUNCH, GWT_LEVEL_DRIVER);
    if (!f)
        return;
    f->shape = (struct gw_shape){0}; /* which the cache below holds everywhere */
    gw_leave(&own, f, gw_returned(&own), 0, GWT_LAUNCH);
}

/* pre:  this thread has no ring. post: ns x 1000; 0: could not be measured. */
uint64_t gw_measure_cost(void)
{
    struct bench *b =
        mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t best = UINT64_MAX;
    if (b == MAP_FAILED)
        return 0;
    struct gw_thread *t = &b->thread;
    t->slot = &b->slot;
    t->ring = b->ring;
    t->mask = RECORDS - 1;
    /* Caches as they are in the steady state: every signature entry and the stream are known. */
    for (unsigned i = 0; i < GW_SIGNATURE_CACHE; i++)
        t->signatures[i] = (struct gw_signature_entry){.shape.epoch = gw_names_epoch, .id = 1};
    for (unsigned i = 0; i < GW_STREAM_CACHE; i++)
        t->streams[i] = (struct gw_stream_entry){
            .key = gw_streams_epoch << 10 | (uint32_t)gw_device << 2 | 2, .id = 1};
    gw_self = t;
    for (unsigned r = 0; r < 5; r++) {
        uint64_t t0 = gw_clock_ns(CLOCK_MONOTONIC);
        for (unsigned i = 0; i < ROUNDS; i++) {
            t->tail_seen = t->head;
            launch();
        }
        uint64_t took = gw_clock_ns(CLOCK_MONOTONIC) - t0;
        best = took < best ? took : best;
    }
    bool worked = t->head == 5 * ROUNDS;
    gw_self = NULL;
    munmap(b, sizeof *b);
    return worked ? best * 1000 / ROUNDS : 0;
}
