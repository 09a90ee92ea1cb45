/* A dump of a few KiB that names ids as high as they are believed, on as many devices as there can
 * be, is analysed within 256 MiB. */
/* clang-format off: cmocka.h needs these first */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "analysis/analysis.h"
#include "analysis/grow.h"
#include "trace/writer.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEVICES  254u
#define PEAK_MIB 256
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEASURABLE 0 /* what is freed stays */
#else
#define MEASURABLE 1
#endif

enum { LAUNCH = 1, GRAPH = 2 };

static uint8_t definitions[1 << 17];
static size_t used;

static void define(enum gwt_def_type type, uint32_t id, const void *bytes, size_t size)
{
    struct gwt_def d = {.type = (uint16_t)type, .size = (uint32_t)size, .id = id};
    assert_true(used + sizeof(d) + size + 8 <= sizeof(definitions));
    memcpy(definitions + used, &d, sizeof(d));
    memcpy(definitions + used + sizeof(d), bytes, size);
    used += (sizeof(d) + size + 7) & ~(size_t)7;
}

static void define_all(void)
{
    struct {
        struct gwt_def_graph graph;
        struct gwt_graph_item item;
    } graph = {{.exec = 1, .items = 1, .exact = 1},
               {.kind = GWT_LAUNCH, .count = 1, .signature = GWA_ID_MAX - 1}};
    struct {
        struct gwt_def_api api;
        char name[4];
    } call = {{.kind = GWT_LAUNCH, .level = GWT_LEVEL_RUNTIME}, "a"};
    used = 0;
    define(GWT_DEF_API, LAUNCH, &call, sizeof(call.api) + 1);
    call.api.kind = GWT_GRAPH_LAUNCH;
    define(GWT_DEF_API, GRAPH, &call, sizeof(call.api) + 1);
    define(GWT_DEF_GRAPH, GWA_ID_MAX - 1, &graph, sizeof(graph));
    for (uint32_t i = 0; i < DEVICES; i++) {
        struct gwt_def_stream s = {.handle = i, .type = GWT_STREAM_USER, .device = (uint8_t)i};
        define(GWT_DEF_STREAM, i + 1, &s, sizeof(s));
    }
}

/* On each device, `ids` of each kind from the highest down, each launch timed. */
static uint32_t events(struct gwt_record *r, uint32_t ids)
{
    uint64_t t = 1000000;
    uint32_t n = 0;
    for (uint32_t k = 0; k < ids; k++) {
        for (uint32_t d = 0; d < DEVICES; d++, t += 200) {
            uint32_t id = GWA_ID_MAX - 1 - 7 * k;
            struct gwt_record_sample sample = {.t0 = t,
                                               .pair_ns = 9000,
                                               .api = GWT_API_PSEUDO + GWT_SAMPLE,
                                               .flags = GWT_SAMPLE_KERNEL,
                                               .stream = (uint16_t)(d + 1),
                                               .arg = id};
            struct gwt_record launch = {
                .t0 = t, .dur = 10, .api = LAUNCH, .stream = (uint16_t)(d + 1), .arg = id};
            struct gwt_record graph = {
                .t0 = t + 100, .dur = 10, .api = GRAPH, .stream = (uint16_t)(d + 1), .arg = id};
            r[n++] = launch;
            memcpy(&r[n++], &sample, sizeof(sample));
            r[n++] = graph;
        }
    }
    return n;
}

static void write_dump(const char *path, uint32_t ids)
{
    struct gwt_writer_options options = {.path = path, .max_bytes = 1 << 24};
    struct gwt_file_header header = {.clock = GWT_CLOCK_MONOTONIC, .start = {1, 1, 1}};
    struct gwt_record *records = calloc((size_t)3 * DEVICES * ids, sizeof(*records));
    void *memory = aligned_alloc(64, (gwt_writer_size() + 63) & ~(size_t)63);
    struct gwt_writer *w;
    assert_non_null(records);
    assert_non_null(memory);
    define_all();
    uint32_t n = events(records, ids);
    assert_int_equal(gwt_writer_open(&w, memory, gwt_writer_size(), &options, &header), 0);
    assert_int_equal(gwt_write_definitions(w, 0, definitions, used), 0);
    assert_int_equal(gwt_write_events(w, 1, 0, records, n), 0);
    assert_int_equal(gwt_write_events(w, GWA_ID_MAX - 1, 0, records, n), 0);
    assert_int_equal(gwt_writer_close(w), 0);
    free(memory);
    free(records);
}

/* post: 0 where all launches were counted. */
static int analyse(const char *path, uint64_t launches)
{
    struct gwa_options options = {.whole = true};
    struct gwt_error error;
    struct gwt_trace *trace;
    struct gwa_process *p;
    if (gwt_open(path, &trace, &error) || gwa_analyse(trace, &options, &p, &error))
        return 1;
    int rc = p->launches.calls == launches && p->launches.graph_launches == launches &&
                     p->devices_count == DEVICES
                 ? 0
                 : 2;
    gwa_free(p);
    gwt_close(trace);
    return rc;
}

static void bounded(uint32_t ids)
{
    const char *base = getenv("TMPDIR");
    char path[256];
    struct rusage usage;
    int status;
    snprintf(path, sizeof(path), "%.200s/bounds-%d.gwt", base ? base : "/tmp", (int)getpid());
    write_dump(path, ids);
    pid_t pid = fork();
    if (!pid)
        _exit(analyse(path, (uint64_t)2 * DEVICES * ids));
    assert_int_equal(wait4(pid, &status, 0, &usage), pid);
    unlink(path);
    assert_int_equal(status, 0);
    if (MEASURABLE)
        assert_in_range(usage.ru_maxrss / 1024, 1, PEAK_MIB);
}

static void the_highest_id(void **state)
{
    (void)state;
    bounded(1);
}

static void many_high_ids(void **state)
{
    (void)state;
    bounded(60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_highest_id),
        cmocka_unit_test(many_high_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
