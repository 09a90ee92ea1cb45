/* Real calls, replayed: tests/fixtures/kineto_*.calls (see from_kineto.py) become a recording, with
 * samples of randomly chosen operations as the recorder would have taken them. */
#ifndef TIMELINE_REPLAY_H
#define TIMELINE_REPLAY_H

/* clang-format off: cmocka.h needs these first */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "trace/writer.h"

#include <gpuwait/trace.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

enum replay_kind { REPLAY_KERNEL, REPLAY_COPY, REPLAY_MEMSET, REPLAY_DEVICE, REPLAY_STREAM };

struct replay_call {
    int64_t t0, t1;
    uint32_t thread;
    uint32_t name; /* index */
    uint32_t ns;   /* on the device */
    uint8_t kind;
};

struct replay {
    char **names;
    struct replay_call *calls;
    size_t names_count, calls_count;
};

static inline const char *fixtures_directory(void)
{
    return access("tests/fixtures", R_OK) == 0 ? "tests/fixtures" : "../fixtures";
}

static inline uint64_t replay_number(const uint8_t **at, const uint8_t *end)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        assert_true(*at < end && shift < 64);
        v |= (uint64_t)(**at & 127) << shift;
        if (!(*(*at)++ & 128))
            return v;
    }
}

static inline struct replay replay_load(const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s.calls", fixtures_directory(), name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    static uint8_t stored[1 << 20];
    size_t size = fread(stored, 1, sizeof(stored), f);
    fclose(f);
    unsigned long long raw = ZSTD_getFrameContentSize(stored, size);
    assert_true(raw > 8 && raw < 16u << 20);
    uint8_t *bytes = malloc((size_t)raw);
    assert_non_null(bytes);
    assert_int_equal(ZSTD_decompress(bytes, (size_t)raw, stored, size), raw);
    const uint8_t *at = bytes + 8, *end = bytes + raw;
    assert_memory_equal(bytes, "GWCALLS1", 8);

    struct replay r = {0};
    r.names_count = (size_t)replay_number(&at, end);
    r.names = calloc(r.names_count, sizeof(*r.names));
    for (size_t i = 0; i < r.names_count; i++) {
        size_t length = (size_t)replay_number(&at, end);
        assert_true(length <= (size_t)(end - at));
        r.names[i] = strndup((const char *)at, length);
        at += length;
    }
    r.calls_count = (size_t)replay_number(&at, end);
    r.calls = calloc(r.calls_count, sizeof(*r.calls));
    int64_t t0 = 1000000000;
    for (size_t i = 0; i < r.calls_count; i++) {
        struct replay_call *c = &r.calls[i];
        uint64_t head = replay_number(&at, end), delta = replay_number(&at, end);
        c->kind = head & 7;
        c->thread = 1 + (uint32_t)(head >> 3);
        t0 += delta & 1 ? -(int64_t)(delta >> 1) - 1 : (int64_t)(delta >> 1);
        c->t0 = t0;
        c->t1 = t0 + (int64_t)replay_number(&at, end);
        if (c->kind <= REPLAY_MEMSET) {
            c->name = (uint32_t)replay_number(&at, end);
            c->ns = (uint32_t)replay_number(&at, end);
            assert_true(c->name < r.names_count);
        }
    }
    assert_ptr_equal(at, end);
    free(bytes);
    return r;
}

static inline void replay_free(struct replay *r)
{
    for (size_t i = 0; i < r->names_count; i++)
        free(r->names[i]);
    free(r->names);
    free(r->calls);
}

/* ---- writing ------------------------------------------------------------------------ */

struct replay_log {
    struct gwt_writer *writer;
    uint64_t at;
};

static inline void replay_define(struct replay_log *log, enum gwt_def_type type, uint32_t id,
                                 const void *fixed, size_t fixed_size, const void *rest,
                                 size_t rest_size)
{
    struct gwt_def d = {
        .type = (uint16_t)type, .size = (uint32_t)(fixed_size + rest_size), .id = id};
    size_t size = (sizeof(d) + d.size + 7) & ~(size_t)7;
    uint8_t *bytes = calloc(1, size);
    assert_non_null(bytes);
    memcpy(bytes, &d, sizeof(d));
    if (fixed_size)
        memcpy(bytes + sizeof(d), fixed, fixed_size);
    if (rest_size)
        memcpy(bytes + sizeof(d) + fixed_size, rest, rest_size);
    assert_int_equal(gwt_write_definitions(log->writer, log->at, bytes, size), 0);
    log->at += size;
    free(bytes);
}

enum { REPLAY_API_LAUNCH = 1, REPLAY_API_COPY, REPLAY_API_MEMSET, REPLAY_API_SYNC };
enum { REPLAY_LEGACY = 1, REPLAY_NONE };

static inline void replay_definitions(struct gwt_writer *w, const struct replay *r)
{
    static const struct {
        uint8_t kind;
        const char *name;
    } apis[] = {[REPLAY_API_LAUNCH] = {GWT_LAUNCH, "cudaLaunchKernel"},
                [REPLAY_API_COPY] = {GWT_COPY, "cudaMemcpyAsync"},
                [REPLAY_API_MEMSET] = {GWT_MEMSET, "cudaMemsetAsync"},
                [REPLAY_API_SYNC] = {GWT_SYNC, "cudaStreamSynchronize"}};
    struct replay_log log = {.writer = w};
    for (uint32_t i = REPLAY_API_LAUNCH; i <= REPLAY_API_SYNC; i++) {
        struct gwt_def_api api = {.kind = apis[i].kind, .level = GWT_LEVEL_RUNTIME};
        replay_define(&log, GWT_DEF_API, i, &api, sizeof(api), apis[i].name, strlen(apis[i].name));
    }
    struct gwt_def_stream legacy = {.type = GWT_STREAM_LEGACY}, none = {.type = GWT_STREAM_NONE};
    replay_define(&log, GWT_DEF_STREAM, REPLAY_LEGACY, &legacy, sizeof(legacy), NULL, 0);
    replay_define(&log, GWT_DEF_STREAM, REPLAY_NONE, &none, sizeof(none), NULL, 0);
    struct gwt_def_device device = {
        .memory_bytes = 150000000000, .sms = 132, .cc_major = 9, .pcie_gen = 5, .pcie_width = 16};
    replay_define(&log, GWT_DEF_DEVICE, 1, &device, sizeof(device), "NVIDIA H200", 11);
    for (uint32_t i = 0; i < r->names_count; i++) {
        /* the traces do not tell launch shapes: one signature per name */
        struct gwt_def_signature s = {.name = i + 1};
        replay_define(&log, GWT_DEF_STRING, i + 1, NULL, 0, r->names[i], strlen(r->names[i]));
        replay_define(&log, GWT_DEF_SIGNATURE, i + 1, &s, sizeof(s), NULL, 0);
    }
}

/* The traces do not tell bytes either: what lasts as long is taken to be as large. */
static inline uint64_t replay_bytes(const struct replay_call *c)
{
    return (uint64_t)1 << (32 - __builtin_clz(c->ns | 1));
}

static inline unsigned replay_direction(const char *name)
{
    return strstr(name, "HtoD") ? GWT_H2D : strstr(name, "DtoH") ? GWT_D2H : GWT_D2D;
}

#define REPLAY_KERNEL_CONSTANT 2700
#define REPLAY_COPY_CONSTANT   2100

static inline struct gwt_record replay_sample(const struct replay *r, const struct replay_call *c)
{
    struct gwt_record_sample s = {.t0 = (uint64_t)c->t0,
                                  .api = GWT_API_PSEUDO + GWT_SAMPLE,
                                  .flags = GWT_SAMPLE_KERNEL | GWT_SAMPLE_SPACER,
                                  .stream = REPLAY_LEGACY,
                                  .arg = c->name + 1,
                                  .pair_ns = c->ns + REPLAY_KERNEL_CONSTANT - 600 + 150};
    if (c->kind != REPLAY_KERNEL) {
        static const uint8_t classes[] = {
            [GWT_H2D] = GWT_SAMPLE_H2D, [GWT_D2H] = GWT_SAMPLE_D2H, [GWT_D2D] = GWT_SAMPLE_D2D};
        s.flags = c->kind == REPLAY_MEMSET ? GWT_SAMPLE_MEMSET
                                           : classes[replay_direction(r->names[c->name])];
        s.arg = 0;
        s.value = replay_bytes(c);
        s.pair_ns = c->ns + REPLAY_COPY_CONSTANT;
    }
    struct gwt_record out;
    memcpy(&out, &s, sizeof(out));
    return out;
}

static inline struct gwt_record replay_record(const struct replay *r, const struct replay_call *c)
{
    struct gwt_record out = {
        .t0 = (uint64_t)c->t0, .dur = (uint32_t)(c->t1 - c->t0), .stream = REPLAY_LEGACY};
    switch (c->kind) {
    case REPLAY_KERNEL:
        out.api = REPLAY_API_LAUNCH;
        out.arg = c->name + 1;
        break;
    case REPLAY_COPY:
        out.api = REPLAY_API_COPY;
        out.arg = 1;
        out.value = replay_bytes(c);
        out.flags = (uint16_t)(replay_direction(r->names[c->name]) << GWT_F_SUB_SHIFT);
        if (strstr(r->names[c->name], "Pageable"))
            out.flags |= GWT_F_PAGEABLE;
        break;
    case REPLAY_MEMSET:
        out.api = REPLAY_API_MEMSET;
        out.value = replay_bytes(c);
        break;
    case REPLAY_DEVICE:
        out.api = REPLAY_API_SYNC;
        out.stream = REPLAY_NONE;
        out.flags = GWT_SCOPE_DEVICE << GWT_F_SUB_SHIFT;
        break;
    default:
        out.api = REPLAY_API_SYNC;
        out.flags = GWT_SCOPE_STREAM << GWT_F_SUB_SHIFT;
        break;
    }
    return out;
}

/* One thread's records, in order; its samples come a little later, as the harvest would. */
static inline void replay_write_thread(struct gwt_writer *w, const struct replay *r,
                                       uint32_t thread)
{
    struct gwt_record *records = calloc(r->calls_count, sizeof(*records));
    size_t n = 0;
    uint64_t first = 0;
    assert_non_null(records);
    for (size_t i = 0; i < r->calls_count; i++)
        if (r->calls[i].thread == thread)
            records[n++] = replay_record(r, &r->calls[i]);
    while (n > first) {
        uint32_t count = n - first > 4096 ? 4096 : (uint32_t)(n - first);
        assert_int_equal(gwt_write_events(w, thread, first, records + first, count), 0);
        first += count;
    }
    free(records);
}

/* Of each name's operations one in `one_in` is sampled, but some three of each, by `seed`. */
static inline void replay_write_samples(struct gwt_writer *w, const struct replay *r,
                                        unsigned one_in, uint64_t seed)
{
    static const struct {
        unsigned class, ps;
    } constants[] = {{GWT_SAMPLE_KERNEL, REPLAY_KERNEL_CONSTANT * 1000},
                     {GWT_SAMPLE_H2D, REPLAY_COPY_CONSTANT * 1000},
                     {GWT_SAMPLE_D2H, REPLAY_COPY_CONSTANT * 1000},
                     {GWT_SAMPLE_D2D, REPLAY_COPY_CONSTANT * 1000},
                     {GWT_SAMPLE_MEMSET, REPLAY_COPY_CONSTANT * 1000}};
    size_t n = 0, room = sizeof(constants) / sizeof(*constants);
    struct gwt_record *records = calloc(r->calls_count + room, sizeof(*records));
    uint64_t *calls = calloc(r->names_count, sizeof(*calls));
    assert_non_null(records);
    assert_non_null(calls);
    for (; n < room; n++)
        records[n] = (struct gwt_record){.t0 = (uint64_t)r->calls[0].t0,
                                         .api = GWT_API_PSEUDO + GWT_CONSTANT,
                                         .flags = (uint16_t)constants[n].class,
                                         .arg = 50,
                                         .dur = 30000,
                                         .value = constants[n].ps};
    for (size_t i = 0; i < r->calls_count; i++)
        if (r->calls[i].kind <= REPLAY_MEMSET)
            calls[r->calls[i].name]++;
    for (size_t i = 0; i < r->calls_count; i++) {
        const struct replay_call *c = &r->calls[i];
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        if (c->kind > REPLAY_MEMSET)
            continue;
        uint64_t every = calls[c->name] / 3 < one_in ? calls[c->name] / 3 : one_in;
        if ((seed >> 33) % (every ? every : 1) == 0)
            records[n++] = replay_sample(r, c);
    }
    free(calls);
    assert_int_equal(gwt_write_events(w, 100, 0, records, (uint32_t)n), 0);
    free(records);
}

static inline void replay_write(const struct replay *r, const char *path, unsigned one_in,
                                uint64_t seed)
{
    struct gwt_file_header header = {
        .pid = 42,
        .clock = GWT_CLOCK_MONOTONIC,
        .start = {.ticks = 1000000, .monotonic_ns = 1000000, .realtime_ns = 5000000},
    };
    struct gwt_writer_options options = {.path = path, .max_bytes = 1 << 30};
    void *memory = aligned_alloc(64, (gwt_writer_size() + 63) & ~(size_t)63);
    struct gwt_writer *w;
    uint64_t counters[GWT_COUNTER_SLOTS] = {0};
    uint32_t threads = 0;
    assert_non_null(memory);
    assert_int_equal(gwt_writer_open(&w, memory, gwt_writer_size(), &options, &header), 0);
    replay_definitions(w, r);
    for (size_t i = 0; i < r->calls_count; i++)
        if (r->calls[i].thread > threads)
            threads = r->calls[i].thread;
    for (uint32_t i = 1; i <= threads; i++)
        replay_write_thread(w, r, i);
    replay_write_samples(w, r, one_in, seed);
    assert_int_equal(gwt_write_counters(w, counters), 0);
    assert_int_equal(gwt_writer_close(w), 0);
    free(memory);
}

/* ---- the truth ---------------------------------------------------------------------- */

static inline json_t *replay_truth(const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s.truth.json", fixtures_directory(), name);
    json_t *truth = json_load_file(path, 0, NULL);
    assert_non_null(truth);
    return truth;
}

#endif
