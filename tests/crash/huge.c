/* Recordings under a mebibyte that unfold into millions of events or definitions, each made to
 * make some part of the analysis remember as much as it can:
 *
 *     huge FILE.gwt KIND COUNT      KIND: one of the table below; `huge` lists them
 */
#include "trace/writer.h"

#include <gpuwait/format.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY_THREADS 4096u

enum api { NONE, LAUNCH, SYNC, ALLOC, FREE, COPY, RECORD, NCCL, GRAPH, CREATE };

static struct gwt_writer *writer;
static uint8_t definitions[1 << 18];
static size_t defined;
static uint64_t defined_first;

static void must(int rc)
{
    if (rc) {
        fprintf(stderr, "huge: %s\n", strerror(-rc));
        exit(1);
    }
}

static void flush(void)
{
    if (defined)
        must(gwt_write_definitions(writer, defined_first, definitions, defined));
    defined_first += defined;
    defined = 0;
}

static void define(unsigned type, uint32_t id, const void *fixed, size_t size, const char *text)
{
    struct gwt_def d = {.type = (uint16_t)type, .size = (uint32_t)(size + strlen(text)), .id = id};
    if (defined + sizeof d + d.size + 8 > sizeof definitions)
        flush();
    memcpy(definitions + defined, &d, sizeof d);
    memcpy(definitions + defined + sizeof d, fixed, size);
    memcpy(definitions + defined + sizeof d + size, text, strlen(text));
    defined += (sizeof d + d.size + 7) & ~(size_t)7;
}

static void names(void)
{
    static const struct {
        const char *name;
        enum gwt_kind kind;
    } api[] = {[LAUNCH] = {"cudaLaunchKernel", GWT_LAUNCH},
               [SYNC] = {"cudaStreamSynchronize", GWT_SYNC},
               [ALLOC] = {"cudaMalloc", GWT_ALLOC},
               [FREE] = {"cudaFree", GWT_FREE},
               [COPY] = {"cudaMemcpyAsync", GWT_COPY},
               [RECORD] = {"cudaEventRecord", GWT_EVENT_RECORD},
               [NCCL] = {"ncclAllReduce", GWT_NCCL},
               [GRAPH] = {"cudaGraphLaunch", GWT_GRAPH_LAUNCH},
               [CREATE] = {"cudaStreamCreate", GWT_STREAM}};
    for (uint32_t i = 1; i < sizeof api / sizeof api[0]; i++) {
        struct gwt_def_api d = {.kind = (uint8_t)api[i].kind, .level = GWT_LEVEL_RUNTIME};
        define(GWT_DEF_API, i, &d, sizeof d, api[i].name);
    }
    struct gwt_def_stream s = {.type = GWT_STREAM_LEGACY};
    define(GWT_DEF_STREAM, 1, &s, sizeof s, "");
    for (uint32_t i = 1; i <= 4; i++) {
        char name[16];
        struct gwt_def_signature sig = {.name = i, .grid = {i, 1, 1}, .block = {32, 1, 1}};
        snprintf(name, sizeof name, "kernel%u", i);
        define(GWT_DEF_STRING, i, NULL, 0, name);
        define(GWT_DEF_SIGNATURE, i, &sig, sizeof sig, "");
    }
}

/* ---- kinds: event i, and what it refers to ---------------------------------------- */

static void steps(uint32_t i, struct gwt_record *r)
{
    r->api = i % 3 == 2 ? SYNC : LAUNCH;
    r->arg = i % 3 + 1;
}

static void ranges(uint32_t i, struct gwt_record *r)
{
    r->api = (uint16_t)(GWT_API_PSEUDO + (i % 4 == 0   ? GWT_RANGE_PUSH
                                          : i % 4 == 3 ? GWT_RANGE_POP
                                                       : GWT_LAUNCH));
    r->arg = 1;
    if (i % 4 == 1 || i % 4 == 2)
        r->api = i % 4 == 1 ? LAUNCH : SYNC;
}

static void nested(uint32_t i, struct gwt_record *r)
{
    r->api = (uint16_t)(GWT_API_PSEUDO + (i & 1 ? GWT_RANGE_PUSH : GWT_RANGE_START));
    r->arg = i % 4 + 1;
    r->value = i;
}

static void strings(uint32_t i, struct gwt_record *r)
{
    char name[16];
    snprintf(name, sizeof name, "r%u", i);
    define(GWT_DEF_STRING, 5 + i, NULL, 0, name);
    r->api = GWT_API_PSEUDO + GWT_RANGE_PUSH;
    r->arg = 5 + i;
}

static void signatures(uint32_t i, struct gwt_record *r)
{
    struct gwt_def_signature s = {.name = i % 4 + 1, .grid = {i + 5, 1, 1}, .block = {32, 1, 1}};
    define(GWT_DEF_SIGNATURE, 5 + i, &s, sizeof s, "");
    r->api = LAUNCH;
    r->arg = 5 + i;
}

static void streams(uint32_t i, struct gwt_record *r)
{
    struct gwt_def_stream s = {.type = GWT_STREAM_USER, .handle = i, .device = (uint8_t)i};
    if (i < 65000)
        define(GWT_DEF_STREAM, 2 + i, &s, sizeof s, "");
    r->api = LAUNCH;
    r->stream = (uint16_t)(2 + i % 65000);
    r->arg = 1;
}

static void graphs(uint32_t i, struct gwt_record *r)
{
    struct {
        struct gwt_def_graph graph;
        struct gwt_graph_item item;
    } g = {.graph = {.exec = i, .items = 1, .exact = 1},
           .item = {.kind = GWT_LAUNCH, .count = i | 1, .signature = 1}};
    define(GWT_DEF_GRAPH, 1 + i, &g, sizeof g, "");
    r->api = GRAPH;
    r->arg = 1 + i;
}

static void allocations(uint32_t i, struct gwt_record *r)
{
    r->api = ALLOC;
    r->arg = i;
    r->value = 512;
}

static void allocator(uint32_t i, struct gwt_record *r)
{
    struct gwt_record_allocator a = {.t0 = r->t0,
                                     .reserved_512 = i,
                                     .api = GWT_API_PSEUDO + GWT_ALLOCATOR,
                                     .address = i,
                                     .size_512 = 1,
                                     .allocated = (uint64_t)i * 512};
    memcpy(r, &a, sizeof a);
}

static void events(uint32_t i, struct gwt_record *r)
{
    r->api = RECORD;
    r->arg = i;
    r->value = i;
}

static void collectives(uint32_t i, struct gwt_record *r)
{
    struct gwt_def_comm c = {.handle = i, .ranks = 8, .identity = i + 1};
    define(GWT_DEF_COMM, 1 + i, &c, sizeof c, "");
    r->api = NCCL;
    r->arg = 1 + i;
    r->value = 4096;
}

static void copies(uint32_t i, struct gwt_record *r)
{
    r->api = i & 1 ? SYNC : COPY;
    r->flags = 1 << 12;
    r->arg = 1;
    r->value = i * 64;
}

static void lost(uint32_t i, struct gwt_record *r)
{
    r->api = i & 1 ? LAUNCH : (uint16_t)(GWT_API_PSEUDO + GWT_LOST);
    r->arg = 1;
    r->value = i;
}

static void samples(uint32_t i, struct gwt_record *r)
{
    struct gwt_record_sample s = {.t0 = r->t0,
                                  .pair_ns = 5000 + i % 999,
                                  .api = GWT_API_PSEUDO + GWT_SAMPLE,
                                  .flags = 1,
                                  .stream = 1,
                                  .arg = i & ~1u};
    if (i & 1) {
        memcpy(r, &s, sizeof s);
        return;
    }
    signatures(i, r);
}

static void stacks(uint32_t i, struct gwt_record *r)
{
    struct {
        struct gwt_def_stack stack;
        struct gwt_stack_frame frame;
    } s = {.stack = {.frames = 1}};
    memset(&s.frame, 0, sizeof s.frame);
    memcpy(&s.frame, &i, sizeof i);
    define(GWT_DEF_STACK, 1 + i, &s, sizeof s, "");
    r->api = GWT_API_PSEUDO + GWT_STACK;
    r->arg = 1 + i;
    r->value = 1;
}

/* As many steps as are listed, each of them with an allocation; then all else by turns. */
#define STEPS_EVENTS 2200000u
static void mixed(uint32_t i, struct gwt_record *r)
{
    static void (*const others[])(uint32_t, struct gwt_record *) = {
        signatures, graphs, streams, strings,   collectives, stacks,
        copies,     events, ranges,  allocator, nested,      samples};
    const uint32_t n = sizeof others / sizeof others[0];
    if (i >= STEPS_EVENTS)
        others[(i - STEPS_EVENTS) % n](i - STEPS_EVENTS, r);
    else if (i % 4 < 3)
        steps(i / 4 * 3 + i % 4, r);
    else
        allocations(i, r);
}

static const struct {
    const char *name;
    void (*make)(uint32_t i, struct gwt_record *r);
    /* frames of many: small ones, one after the other; full ones, all over the same time */
    enum { ALONE, IN_TURN, ALONGSIDE } threads;
} kinds[] = {
    {"steps", steps, ALONE},
    {"ranges", ranges, ALONE},
    {"nested", nested, ALONE},
    {"strings", strings, ALONE},
    {"signatures", signatures, ALONE},
    {"streams", streams, ALONE},
    {"graphs", graphs, ALONE},
    {"allocations", allocations, ALONE},
    {"allocator", allocator, ALONE},
    {"events", events, ALONE},
    {"collectives", collectives, ALONE},
    {"copies", copies, ALONE},
    {"lost", lost, ALONE},
    {"samples", samples, ALONE},
    {"stacks", stacks, ALONE},
    {"mixed", mixed, ALONE},
    {"threads", steps, IN_TURN},
    {"alongside", steps, ALONGSIDE},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static void write_all(size_t kind, uint32_t count)
{
    static struct gwt_record records[GWT_FRAME_RECORDS_MAX];
    uint32_t room = kinds[kind].threads == IN_TURN ? 16 : GWT_FRAME_RECORDS_MAX, thread = 1;
    const uint64_t start = 1000000000;
    uint64_t t = start, latest = start, first = 0;
    for (uint32_t i = 0; i < count;) {
        uint32_t n = 0;
        for (; n < room && i < count; n++, i++, t += 20000) {
            records[n] = (struct gwt_record){.t0 = t, .dur = 5000, .stream = 1};
            kinds[kind].make(i, &records[n]);
        }
        latest = t > latest ? t : latest;
        flush();
        must(gwt_write_events(writer, thread, first, records, n));
        first += n;
        if (kinds[kind].threads == IN_TURN) {
            thread = thread % MANY_THREADS + 1;
            first = i / (16 * MANY_THREADS) * 16;
        } else if (kinds[kind].threads == ALONGSIDE) {
            thread++;
            first = 0;
            t = start;
        }
    }
    struct gwt_triple end = {latest, latest, latest};
    must(gwt_write_clock(writer, &end, 1));
}

int main(int argc, char **argv)
{
    struct gwt_writer_options options = {.max_bytes = 1 << 30};
    struct gwt_file_header header = {.pid = 42, .clock = GWT_CLOCK_MONOTONIC};
    header.start = (struct gwt_triple){1000000000, 1000000000, 1000000000};
    size_t kind = 0;
    if (argc != 4) {
        for (size_t i = 0; i < KINDS; i++)
            puts(kinds[i].name);
        return argc == 1 ? 0 : 2;
    }
    while (kind < KINDS && strcmp(kinds[kind].name, argv[2]) != 0)
        kind++;
    if (kind == KINDS)
        return 2;
    options.path = argv[1];
    void *memory = aligned_alloc(64, (gwt_writer_size() + 63) & ~(size_t)63);
    must(gwt_writer_open(&writer, memory, gwt_writer_size(), &options, &header));
    names();
    write_all(kind, (uint32_t)atol(argv[3]));
    must(gwt_writer_close(writer));
    return 0;
}
