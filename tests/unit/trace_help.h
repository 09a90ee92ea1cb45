/* For the tests of lib/trace: directories, records and definitions, dumps and rings made by
 * hand, and what a reader finds in them. Every value is a function of thread and sequence
 * number, so that a test knows what each event must be without keeping a copy. */
#ifndef TRACE_HELP_H
#define TRACE_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/writer.h"

#include <gpuwait/trace.h>

/* ---- files -------------------------------------------------------------------------------- */

static inline void make_directory(char out[128])
{
    const char *base = getenv("TMPDIR");

    snprintf(out, 128, "%.90s/gpuwait-trace.XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(out));
}

static inline void remove_directory(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *e;

    while (dir && (e = readdir(dir)))
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            unlinkat(dirfd(dir), e->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(path);
}

static inline void *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    void *bytes;

    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    *size = (size_t)st.st_size;
    bytes = malloc(*size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, f), *size);
    fclose(f);
    return bytes;
}

static inline void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

/* ---- records: 1000 ticks apart, so tick = 1000 x sequence number + thread ----------------- */

enum { API_LAUNCH = 1, API_COPY = 2, API_SYNC = 3 };

static inline struct gwt_record record_of(uint32_t thread, uint64_t seq)
{
    uint64_t t0 = 1000000 + 1000 * seq + thread;

    if (seq % 5 == 4) {
        struct gwt_record_allocator a = {
            .t0 = t0,
            .reserved_512 = 1u << 20,
            .api = GWT_API_PSEUDO + GWT_ALLOCATOR,
            .flags = 1,
            .address = (uint32_t)(seq * 2654435761u),
            .size_512 = seq % 10 == 4 ? 100 : -100,
            .allocated = seq % 10 == 4 ? 51200 : 0,
        };
        struct gwt_record r;

        memcpy(&r, &a, sizeof(r));
        return r;
    }
    return (struct gwt_record){
        .t0 = t0,
        .dur = 100 + (uint32_t)(seq * 7919 % 300),
        .api = seq % 5 == 3 ? API_COPY : API_LAUNCH,
        .stream = 1,
        .status = seq % 50 == 0 ? 700 : 0,
        .arg = 1 + (uint32_t)(seq % 3),
        .value = seq % 5 == 3 ? 4096 : 0,
    };
}

/* The same, but with noise that does not compress: 10 bytes and more per event. */
static inline struct gwt_record noisy_record_of(uint32_t thread, uint64_t seq)
{
    struct gwt_record r = record_of(thread, seq - seq % 5);
    uint64_t x = (seq + 1) * 0x9e3779b97f4a7c15u;

    r.t0 = 1000000 + 1000 * seq + thread;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    r.value = x ^ x >> 32;
    return r;
}

/* post: e is what record_of(e->thread, e->seq) became, with ticks = ns. */
static inline void assert_event(const struct gwt_event *e)
{
    struct gwt_record r = record_of(e->thread, e->seq);

    assert_int_equal(e->t0_ns, r.t0);
    assert_int_equal(e->api, r.api);
    if (r.api == GWT_API_PSEUDO + GWT_ALLOCATOR) {
        assert_int_equal(e->kind, GWT_ALLOCATOR);
        assert_int_equal(e->t1_ns, r.t0);
        assert_int_equal(e->device, 1);
        assert_int_equal(e->size, e->seq % 10 == 4 ? 51200 : -51200);
        assert_int_equal(e->allocated, r.value);
        assert_int_equal(e->reserved, 1u << 29);
        return;
    }
    assert_int_equal(e->t1_ns, r.t0 + r.dur);
    assert_int_equal(e->status, r.status);
    assert_int_equal(e->arg, r.arg);
    assert_int_equal(e->value, r.value);
    assert_int_equal(e->stream, r.stream);
}

/* ---- definitions -------------------------------------------------------------------------- */

struct log_bytes {
    uint8_t bytes[1 << 16];
    size_t size;
};

static inline void define(struct log_bytes *log, enum gwt_def_type type, uint32_t id,
                          const void *fixed, size_t fixed_size, const void *rest, size_t rest_size)
{
    struct gwt_def d = {
        .type = (uint16_t)type, .size = (uint32_t)(fixed_size + rest_size), .id = id};

    assert_true(log->size + sizeof(d) + d.size + 8 <= sizeof(log->bytes));
    memcpy(log->bytes + log->size, &d, sizeof(d));
    log->size += sizeof(d);
    if (fixed_size)
        memcpy(log->bytes + log->size, fixed, fixed_size);
    log->size += fixed_size;
    if (rest_size)
        memcpy(log->bytes + log->size, rest, rest_size);
    log->size += rest_size;
    while (log->size % 8)
        log->bytes[log->size++] = 0;
}

static inline void define_string(struct log_bytes *log, uint32_t id, const char *text)
{
    define(log, GWT_DEF_STRING, id, NULL, 0, text, strlen(text));
}

/* What record_of() refers to. */
static inline void define_all(struct log_bytes *log)
{
    static const struct {
        uint8_t kind;
        const char *name;
    } apis[] = {[API_LAUNCH] = {GWT_LAUNCH, "cuLaunchKernel"},
                [API_COPY] = {GWT_COPY, "cuMemcpyHtoDAsync_v2"},
                [API_SYNC] = {GWT_SYNC, "cuStreamSynchronize"}};
    static const char *const kernels[] = {"gemm", "softmax", "layer_norm"};
    struct gwt_def_stream stream = {.handle = 0x7000, .type = GWT_STREAM_USER, .device = 1};
    struct gwt_def_device device = {.memory_bytes = 1u << 30, .sms = 132};
    struct gwt_def_thread thread = {.tid = 4242, .pthread = 0x7f00};
    struct {
        struct gwt_def_graph g;
        struct gwt_graph_item item;
    } graph = {.g = {.exec = 0x9000, .items = 1, .exact = 1},
               .item = {.kind = GWT_LAUNCH, .count = 12, .signature = 1}};

    define(log, GWT_DEF_FACT, 0, "host\0node7", 10, NULL, 0);
    for (uint32_t i = API_LAUNCH; i <= API_SYNC; i++) {
        struct gwt_def_api api = {.kind = apis[i].kind, .level = GWT_LEVEL_DRIVER};

        define(log, GWT_DEF_API, i, &api, sizeof(api), apis[i].name, strlen(apis[i].name));
    }
    for (uint32_t i = 1; i <= 3; i++) {
        struct gwt_def_signature s = {
            .name = i, .grid = {i, 1, 1}, .block = {128, 1, 1}, .shared = 16 * i};

        define_string(log, i, kernels[i - 1]);
        define(log, GWT_DEF_SIGNATURE, i, &s, sizeof(s), NULL, 0);
    }
    define(log, GWT_DEF_STREAM, 1, &stream, sizeof(stream), NULL, 0);
    define(log, GWT_DEF_DEVICE, 2, &device, sizeof(device), "NVIDIA H200", 11);
    define(log, GWT_DEF_THREAD, 1, &thread, sizeof(thread), "pt_main", 7);
    define(log, GWT_DEF_GRAPH, 1, &graph, sizeof(graph), NULL, 0);
}

/* ---- dumps -------------------------------------------------------------------------------- */

static inline struct gwt_file_header header_of(uint32_t pid)
{
    struct gwt_file_header h = {
        .pid = pid,
        .clock = GWT_CLOCK_MONOTONIC,
        .process_start = 777,
        .start = {.ticks = 1000000, .monotonic_ns = 1000000, .realtime_ns = 5000000},
    };

    memset(h.boot_id, 0xab, sizeof(h.boot_id));
    return h;
}

static inline struct gwt_writer *open_writer(const char *path, uint64_t max,
                                             const struct gwt_file_header *header)
{
    struct gwt_writer_options options = {.path = path, .max_bytes = max};
    void *memory = aligned_alloc(64, (gwt_writer_size() + 63) & ~(size_t)63);
    struct gwt_writer *w;

    assert_non_null(memory);
    assert_int_equal(gwt_writer_open(&w, memory, gwt_writer_size(), &options, header), 0);
    assert_ptr_equal(w, memory); /* so that free(w) frees it */
    return w;
}

static inline int write_range(struct gwt_writer *w, uint32_t thread, uint64_t first, uint32_t count,
                              struct gwt_record (*make)(uint32_t, uint64_t))
{
    struct gwt_record *records = malloc(count * sizeof(*records));
    int rc;

    assert_non_null(records);
    for (uint32_t i = 0; i < count; i++)
        records[i] = make(thread, first + i);
    rc = gwt_write_events(w, thread, first, records, count);
    free(records);
    return rc;
}

/* ---- rings -------------------------------------------------------------------------------- */

#define TEST_SLOTS 4u
#define TEST_LOG   (64u * 1024)

struct test_ring { /* the file, mapped or in memory: rings of `capacity` records follow */
    struct gwt_ring_header header;
    struct gwt_slot slots[TEST_SLOTS];
    uint8_t log[TEST_LOG];
    struct gwt_record records[];
};

static inline size_t ring_size(uint32_t capacity)
{
    return sizeof(struct test_ring) + (size_t)TEST_SLOTS * capacity * sizeof(struct gwt_record);
}

static inline void init_ring(struct test_ring *r, uint32_t capacity,
                             const struct gwt_file_header *dump)
{
    memset(r, 0, sizeof(*r));
    memcpy(r->header.magic, GWT_RING_MAGIC, 8);
    r->header.version_major = GWT_VERSION_MAJOR;
    r->header.header_size = sizeof(r->header);
    r->header.pid = dump->pid;
    r->header.clock = dump->clock;
    r->header.process_start = dump->process_start;
    r->header.start = r->header.now = dump->start;
    memcpy(r->header.boot_id, dump->boot_id, sizeof(r->header.boot_id));
    r->header.slots = TEST_SLOTS;
    r->header.slot_size = sizeof(struct gwt_slot);
    r->header.slots_offset = offsetof(struct test_ring, slots);
    r->header.deflog_offset = offsetof(struct test_ring, log);
    r->header.deflog_size = TEST_LOG;
    for (uint32_t i = 0; i < TEST_SLOTS; i++) {
        r->slots[i].ring_records = capacity;
        r->slots[i].ring_offset =
            offsetof(struct test_ring, records) + i * capacity * sizeof(struct gwt_record);
    }
}

/* Thread `thread` in slot `index` published [0, head), of which [0, tail) were drained. */
static inline void fill_slot(struct test_ring *r, uint32_t index, uint32_t thread, uint64_t tail,
                             uint64_t head)
{
    struct gwt_slot *s = &r->slots[index];
    uint64_t capacity = s->ring_records;

    s->state = GWT_SLOT_USED;
    s->thread = thread;
    s->head = head;
    s->tail = tail;
    for (uint64_t n = head > capacity ? head - capacity : 0; n < head; n++)
        r->records[index * capacity + n % capacity] = record_of(thread, n);
}

/* ---- what a reader finds ------------------------------------------------------------------ */

struct found {
    int rc;
    struct gwt_coverage coverage; /* after the last event */
    uint64_t events;
};

/* Reads a recording to its end, twice. post: each event is the right one, in order of return;
 * within a thread sequence numbers rise; the second pass equals the first. */
static inline struct found read_back(const char *path)
{
    struct gwt_error error = {{0}};
    struct gwt_trace *trace;
    struct found found = {0};

    found.rc = gwt_open(path, &trace, &error);
    if (found.rc) {
        assert_null(trace);
        assert_true(error.text[0]);
        assert_null(strchr(error.text, '\n'));
        return found;
    }
    for (int pass = 0; pass < 2; pass++) {
        uint64_t next[8] = {0}, events = 0;
        struct gwt_event e;
        int64_t last = INT64_MIN;

        while (gwt_next(trace, &e) == 1) {
            assert_true(e.thread < 8);
            assert_true(e.seq >= next[e.thread]);
            next[e.thread] = e.seq + 1;
            assert_event(&e);
            assert_true(e.t1_ns >= last);
            last = e.t1_ns;
            events++;
        }
        if (pass)
            assert_int_equal(events, found.events);
        found.events = events;
        gwt_rewind(trace);
    }
    found.coverage = *gwt_coverage(trace);
    assert_int_equal(found.coverage.events, found.events);
    gwt_close(trace);
    return found;
}

#endif
