/* Events per second of gwt_next(), from a dump of one thread and of several. */
#include "stream.h"
#include "trace/writer.h"

#include <gpuwait/trace.h>

#include <unistd.h>

#define EVENTS (1u << 22)
#define FRAME  16384u

static int measure(const struct gwt_record *records, uint32_t threads)
{
    struct gwt_writer_options options = {.max_bytes = 1ull << 32};
    struct gwt_file_header header = {.clock = GWT_CLOCK_TSC,
                                     .start = {.ticks = 1, .monotonic_ns = 1}};
    void *memory = aligned_alloc(64, (gwt_writer_size() + 63) & ~(size_t)63);
    char path[64];
    struct gwt_writer *w;
    struct gwt_trace *trace;
    struct gwt_event e;
    uint64_t events = 0, check = 0, t0, t1, t2;

    snprintf(path, sizeof(path), "/tmp/gpuwait-bench-%d.gwt", (int)getpid());
    options.path = path;
    if (!memory || gwt_writer_open(&w, memory, gwt_writer_size(), &options, &header))
        return 1;
    for (uint32_t at = 0; at < EVENTS; at += FRAME) { /* each thread has the whole stream's times */
        struct gwt_triple now = {.ticks = records[at].t0};

        now.monotonic_ns = (uint64_t)((double)now.ticks / GHZ);
        for (uint32_t thread = 0; thread < threads; thread++)
            if (gwt_write_events(w, thread + 1, at, records + at, FRAME))
                return 1;
        if (gwt_write_clock(w, &now, 1))
            return 1;
    }
    if (gwt_writer_close(w))
        return 1;
    free(memory);

    t0 = now_ns();
    if (gwt_open(path, &trace, NULL))
        return 1;
    t1 = now_ns();
    while (gwt_next(trace, &e)) {
        events++;
        check += (uint64_t)e.t1_ns;
    }
    t2 = now_ns();
    printf("%2u threads: open %5.1f ms, %6.1f M events/s (%.1f ns each), sum %llx\n", threads,
           (double)(t1 - t0) / 1e6, (double)events * 1e3 / (double)(t2 - t1),
           (double)(t2 - t1) / (double)events, (unsigned long long)check);
    gwt_close(trace);
    unlink(path);
    return events != (uint64_t)EVENTS * threads;
}

int main(void)
{
    struct gwt_record *records = calloc(EVENTS, sizeof(*records));
    int rc = 1;

    if (!records)
        return 1;
    fill(records, EVENTS);
    for (uint32_t threads = 1; threads <= 16; threads *= 4) {
        rc = measure(records, threads);
        if (rc)
            break;
    }
    free(records);
    return rc;
}
