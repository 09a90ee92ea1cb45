/* The drain thread: rings and definitions into the dump.
 *
 * It wakes often and works seldom: a ring is emptied when it is a quarter full or its
 * oldest record a second old, so that frames are large and compress well. Nothing is lost
 * by waiting, since the ring itself outlives the process. A tail is advanced only after
 * write() returned: an event is in the ring, in the dump, or in both. */
#include "gw.h"

#include "trace/writer.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WAKE_NS 5000000L
#define AGE_NS  1000000000ull /* oldest an undrained record may grow */
#define LAST_NS 5000000000ull /* the last round may take so long */

static struct gwt_writer *writer;
static struct gwt_record *records; /* GWT_FRAME_RECORDS_MAX of them */
static uint8_t *definitions;       /* GWT_DEFLOG_SIZE bytes */
static uint32_t stop_word, done_word, kick_word;
static uint32_t told_full;
static bool told_gone;

static struct {
    uint32_t thread; /* whose this slot was when last looked at */
    uint64_t flushed_ns;
    bool unwritten; /* writing failed: its events from `from` on are in no frame */
    uint64_t from;
} seen[GWT_THREAD_SLOTS];

/* ---- moving ---------------------------------------------------------------------------------- */

static void say_once(int error)
{
    if (told_full++)
        return;
    gw_store_relaxed(&gw_header->counters[GWT_C_WRITE_ERRNO], (uint64_t)error);
    gw_say("cannot write %s: %s; the job goes on, recording stops", gw_dump_path, strerror(error));
}

static void drain_definitions(void)
{
    uint64_t first;
    size_t size;
    while ((size = gw_define_pending(&first)) > 0) {
        gw_define_copy(first, definitions, size);
        int r = gwt_write_definitions(writer, first, definitions, size);
        if (r < 0)
            say_once(-r);
        /* On failure too: a full disk must not stop the program's new names from being interned. */
        gw_define_drained(first, size);
    }
}

/* The ring still holds the latest of them, until another thread gets it. */
static void not_written(unsigned slot, uint64_t from, int error)
{
    say_once(error);
    if (!seen[slot].unwritten)
        seen[slot].from = from;
    seen[slot].unwritten = true;
}

static void drain_slot(struct gwt_slot *s)
{
    const struct gwt_record *ring = gw_ring_records(s);
    uint64_t mask = s->ring_records - 1, tail = s->tail;
    /* Partner: the producer's release store of head. */
    uint64_t n = gw_load_acquire(&s->head) - tail;
    while (n) {
        uint32_t part = n < GWT_FRAME_RECORDS_MAX ? (uint32_t)n : GWT_FRAME_RECORDS_MAX;
        for (uint32_t i = 0; i < part; i++)
            records[i] = ring[(tail + i) & mask];
        int r = gwt_write_events(writer, s->thread, tail, records, part);
        if (r < 0)
            not_written(gw_ring_index(s), tail, -r);
        tail += part;
        n -= part;
        /* Partner: the producer's acquire load in has_room(). Only now may it overwrite. */
        gw_store_release(&s->tail, tail);
    }
}

static void look_after_ring(void)
{
    if (told_gone || !gw_ring_is_gone())
        return;
    told_gone = true;
    gw_say("the ring file of %s was removed: the job and its recording go on, but if it is killed "
           "its last second is lost",
           gw_dump_path);
}

/* What keeps threads from their rings often keeps the dump from being written too: then that is
 * said, since it is worse. */
static void look_after_threads(void)
{
    struct gwt_writer_stats stats;
    gwt_writer_stats(writer, &stats);
    if (stats.error) /* closed, it is stopped without one */
        say_once(stats.error);
    if (!told_full)
        gw_ring_tell_no_room();
}

/* post: the time that the ring says */
static struct gwt_triple tell_time(void)
{
    struct gwt_triple t;
    gw_clock_triple(&t);
    /* A sequence lock for readers of a live ring: odd while the triple changes. */
    gw_store_relaxed(&gw_header->now_seq, gw_header->now_seq + 1);
    gw_fence_release();
    gw_header->now = t;
    gw_store_release(&gw_header->now_seq, gw_header->now_seq + 1);
    return t;
}

static void publish_counters(void)
{
    struct gwt_writer_stats stats;
    gwt_writer_stats(writer, &stats);
    uint64_t *c = gw_header->counters;
    gw_store_relaxed(&c[GWT_C_DRAIN_CPU_NS],
                     gw_clock_ns(CLOCK_THREAD_CPUTIME_ID) + gw_watch_cpu_ns());
    gw_store_relaxed(&c[GWT_C_FRAMES], stats.frames);
    gw_store_relaxed(&c[GWT_C_BYTES_WRITTEN], stats.bytes);
    gw_store_relaxed(&c[GWT_C_EVENTS_AGGREGATED], stats.aggregated);
    gwt_write_counters(writer, c);
}

/* One round. post: true if something was written. */
static bool round_of(bool all)
{
    uint64_t now = gw_clock_ns(CLOCK_MONOTONIC);
    bool wrote = false;
    for (unsigned i = 0; i < gw_ring_slots_used(); i++) {
        struct gwt_slot *s = gw_ring_slot(i);
        /* Partner: the release stores of state in ring.c. */
        uint32_t state = gw_load_acquire(&s->state);
        if (state == GWT_SLOT_FREE)
            continue;
        if (seen[i].thread != s->thread) {
            seen[i].thread = s->thread;
            seen[i].unwritten = false;
            seen[i].flushed_ns = now;
        }
        uint64_t n = gw_load_acquire(&s->head) - s->tail;
        bool due = all || state == GWT_SLOT_CLOSED || n >= s->ring_records / 4 ||
                   now - seen[i].flushed_ns >= AGE_NS;
        if (!due)
            continue;
        seen[i].flushed_ns = now;
        if (n) {
            drain_definitions(); /* what the events refer to goes first */
            drain_slot(s);
            wrote = true;
        }
        if (state == GWT_SLOT_CLOSED) {
            if (seen[i].unwritten)
                gw_count(GWT_C_DROPPED, s->tail - seen[i].from);
            gw_ring_slot_release(s);
        }
    }
    return wrote;
}

static void *run(void *arg)
{
    (void)arg;
    pthread_setname_np(pthread_self(), "gpuwait-drain");
    while (gw_load_acquire(&gw_state) == GW_STARTING)
        gw_pause();
    gw_store_relaxed(&gw_header->counters[GWT_C_CALL_NS_X1000], gw_measure_cost());
    gw_watch_start(); /* here: to make a thread takes the program's time otherwise */
    /* At first write so that even a short job leaves definitions behind. */
    drain_definitions();
    uint64_t told = 0, published = 0;
    for (;;) {
        bool stopping = gw_load_acquire(&stop_word) != 0; /* partner: gw_drain_stop() */
        if (stopping)
            gw_watch_stop();
        bool wrote = round_of(stopping);
        uint64_t now = gw_clock_ns(CLOCK_MONOTONIC);
        if (stopping || (wrote && now - published >= AGE_NS)) {
            struct gwt_triple t = tell_time();
            drain_definitions();
            gwt_write_clock(writer, &t, 1);
            publish_counters();
            look_after_ring();
            if (stopping)
                break;
            look_after_threads();
            told = published = now;
        } else if (now - told >= AGE_NS) {
            tell_time(); /* from which a reader knows how long a killed job was stuck */
            told = now;
        }
        gw_own_nap(&kick_word, gw_load_relaxed(&kick_word), WAKE_NS);
    }
    int r = gwt_writer_close(writer);
    if (r < 0)
        say_once(-r);
    else
        gw_ring_unlink();
    look_after_threads();
    gw_store_release(&done_word, 1); /* partner: gw_own_await() */
    gw_own_wake(&done_word);
    return NULL;
}

/* ---- life ---------------------------------------------------------------------------------- */

int gw_drain_start(const struct gwt_file_header *file)
{
    size_t records_size = GWT_FRAME_RECORDS_MAX * sizeof(struct gwt_record);
    size_t size = records_size + GWT_DEFLOG_SIZE + gwt_writer_size();
    uint8_t *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -errno;
    records = (void *)memory;
    definitions = memory + records_size;
    stop_word = done_word = told_full = 0;
    told_gone = false;
    memset(seen, 0, sizeof seen);
    struct gwt_writer_options options = {.path = gw_dump_path,
                                         .max_bytes = gw_options.max_bytes,
                                         .min_free_pct = gw_options.min_free_pct};
    int r =
        gwt_writer_open(&writer, definitions + GWT_DEFLOG_SIZE, gwt_writer_size(), &options, file);
    if (r < 0) {
        munmap(memory, size);
        return r;
    }
    r = gw_own_thread(run, 256 * 1024);
    if (r < 0) {
        gwt_writer_abandon(writer);
        unlink(gw_dump_path);
        munmap(memory, size);
    }
    return r;
}

void gw_drain_kick(void)
{
    gw_add_relaxed(&kick_word, 1);
    gw_own_wake(&kick_word);
}

/* At exit. The thread may be gone without a trace, so the wait is bounded: what it left
 * stays readable in the ring. */
void gw_drain_stop(void)
{
    gw_store_release(&stop_word, 1); /* partner: run() */
    gw_drain_kick();
    gw_own_await(&done_word, LAST_NS);
}

void gw_drain_forget(void)
{
    if (writer)
        gwt_writer_abandon(writer);
    writer = NULL;
}
