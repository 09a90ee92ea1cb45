/* The reader: sound recordings, cut ones, damaged ones, hostile ones, live ones. */
#include "trace_help.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

int example_main(int argc, char **argv);
#define main example_main
#include "example.c"
#undef main

struct fixture {
    char directory[128];
    char path[160];
    char ring[160];
    struct gwt_file_header header;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    make_directory(f->directory);
    snprintf(f->path, sizeof(f->path), "%s/a.gwt", f->directory);
    snprintf(f->ring, sizeof(f->ring), "%s/a.ring", f->directory);
    f->header = header_of(1000);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    remove_directory(f->directory);
    free(f);
    return 0;
}

static struct log_bytes definitions;

static void write_definitions(struct gwt_writer *w)
{
    definitions.size = 0;
    define_all(&definitions);
    assert_int_equal(gwt_write_definitions(w, 0, definitions.bytes, definitions.size), 0);
}

/* Three threads, 100 events each in frames of 20, definitions, clock, counters. */
static void write_small(const struct fixture *f, bool close_it)
{
    struct gwt_writer *w = open_writer(f->path, 1 << 30, &f->header);
    struct gwt_triple triple = {.ticks = 2000000, .monotonic_ns = 2000000};
    uint64_t counters[GWT_COUNTER_SLOTS] = {0};

    write_definitions(w);
    for (uint64_t seq = 0; seq < 100; seq += 20)
        for (uint32_t thread = 1; thread <= 3; thread++)
            assert_int_equal(write_range(w, thread, seq, 20, record_of), 0);
    assert_int_equal(gwt_write_clock(w, &triple, 1), 0);
    assert_int_equal(gwt_write_counters(w, counters), 0);
    if (close_it)
        assert_int_equal(gwt_writer_close(w), 0);
    else
        gwt_writer_abandon(w);
    free(w);
}

/* ---- sound recordings --------------------------------------------------------------------- */

static void threads_are_merged_by_return(void **state)
{
    struct fixture *f = *state;
    struct found found;

    write_small(f, true);
    found = read_back(f->path); /* it asserts the order, and each event's values */
    assert_int_equal(found.rc, 0);
    assert_int_equal(found.events, 300);
    assert_true(found.coverage.ended);
    assert_false(found.coverage.ring);
    assert_false(found.coverage.ring_missing);
    assert_false(found.coverage.alive);
    assert_false(found.coverage.torn);
    assert_int_equal(found.coverage.missing, 0);
    assert_int_equal(found.coverage.bad_frames, 0);
    assert_int_equal(found.coverage.bad_bytes, 0);
}

static void definitions_are_found(void **state)
{
    struct fixture *f = *state;
    struct gwt_signature_info signature;
    struct gwt_thread_info thread;
    struct gwt_graph_info graph;
    struct gwt_trace *t;
    const char *name, *key, *value;

    write_small(f, true);
    assert_int_equal(gwt_open(f->path, &t, NULL), 0);
    assert_string_equal(gwt_fact(t, "host"), "node7");
    assert_null(gwt_fact(t, "hos"));
    assert_true(gwt_fact_at(t, 0, &key, &value));
    assert_string_equal(key, "host");
    assert_false(gwt_fact_at(t, 1, &key, &value));
    assert_string_equal(gwt_string(t, 3), "layer_norm");
    assert_null(gwt_string(t, 4));
    assert_null(gwt_string(t, 0));
    assert_string_equal(gwt_api_name(t, API_COPY), "cuMemcpyHtoDAsync_v2");
    assert_string_equal(gwt_api_name(t, GWT_API_PSEUDO + GWT_ALLOCATOR), "ALLOCATOR");
    assert_null(gwt_api_name(t, 9));
    assert_string_equal(gwt_kind_name(GWT_HOST_FREE), "HOST_FREE");
    assert_null(gwt_kind_name(GWT_KIND_COUNT));
    assert_true(gwt_signature(t, 2, &signature));
    assert_string_equal(signature.name, "softmax");
    assert_int_equal(signature.grid[0], 2);
    assert_int_equal(signature.block[0], 128);
    assert_int_equal(signature.shared, 32);
    assert_false(gwt_signature(t, 4, &signature));
    assert_int_equal(gwt_stream(t, 1)->handle, 0x7000);
    assert_null(gwt_stream(t, 2));
    assert_true(gwt_graph(t, 1, &graph));
    assert_int_equal(graph.graph->items, 1);
    assert_int_equal(graph.items[0].count, 12);
    assert_int_equal(gwt_device(t, 1, &name)->sms, 132);
    assert_string_equal(name, "NVIDIA H200");
    assert_null(gwt_device(t, 0, &name));
    assert_null(gwt_device(t, UINT32_MAX, &name));
    assert_null(gwt_comm(t, 1));
    assert_true(gwt_thread_at(t, 0, &thread));
    assert_int_equal(thread.id, 1);
    assert_int_equal(thread.tid, 4242);
    assert_string_equal(thread.name, "pt_main");
    assert_null(thread.open_api);
    assert_true(gwt_thread_at(t, 2, &thread));
    assert_int_equal(thread.id, 3);
    assert_null(thread.name);
    assert_false(gwt_thread_at(t, 3, &thread));
    assert_int_equal(gwt_header(t)->pid, 1000);
    assert_null(gwt_aggregate_at(t, 0));
    gwt_close(t);
}

/* A later entry of the same type and id replaces the earlier; entries may straddle frames that
 * follow one another; what comes twice counts once. */
static void definitions_in_pieces(void **state)
{
    struct fixture *f = *state;
    struct gwt_writer *w = open_writer(f->path, 1 << 30, &f->header);
    static struct log_bytes log;
    struct gwt_def_thread d = {.tid = 1};
    struct gwt_thread_info thread;
    struct gwt_trace *t;
    size_t half;

    log.size = 0;
    define_string(&log, 1, "first");
    define(&log, GWT_DEF_THREAD, 5, &d, sizeof(d), "python", 6);
    half = log.size + 20; /* in the middle of the next entry */
    define_string(&log, 2, "straddling");
    define(&log, GWT_DEF_THREAD, 5, &d, sizeof(d), "pt_autograd_0", 13);
    define(&log, GWT_DEF_FACT, 0, "alone", 5, NULL, 0);
    assert_int_equal(gwt_write_definitions(w, half, log.bytes + half, log.size - half), 0);
    assert_int_equal(gwt_write_definitions(w, 0, log.bytes, half), 0);
    assert_int_equal(gwt_write_definitions(w, 0, log.bytes, half), 0);
    assert_int_equal(gwt_writer_close(w), 0);
    free(w);
    assert_int_equal(gwt_open(f->path, &t, NULL), 0);
    assert_string_equal(gwt_string(t, 1), "first");
    assert_string_equal(gwt_string(t, 2), "straddling");
    assert_true(gwt_thread(t, 5, &thread));
    assert_string_equal(thread.name, "pt_autograd_0");
    assert_string_equal(gwt_fact(t, "alone"), "");
    assert_int_equal(gwt_coverage(t)->bad_frames, 0);
    assert_int_equal(gwt_coverage(t)->events, 0); /* no event is no error: `info` has a header */
    gwt_close(t);
}

/* Nonsense in the log is left out, and nothing else. */
static void definitions_of_nonsense(void **state)
{
    struct fixture *f = *state;
    struct gwt_writer *w = open_writer(f->path, 1 << 30, &f->header);
    static struct log_bytes log;
    struct gwt_def_graph graph = {.items = 2}; /* and room for one */
    struct gwt_graph_item item = {.count = 1};
    struct gwt_graph_info info;
    struct gwt_signature_info signature;
    struct gwt_trace *t;

    log.size = 0;
    define_string(&log, 1, "good");
    define_string(&log, 0, "no id");
    define_string(&log, 1u << 25, "id too great");
    define(&log, GWT_DEF_SIGNATURE, 1, "short", 5, NULL, 0);
    define(&log, GWT_DEF_GRAPH, 1, &graph, sizeof(graph), &item, sizeof(item));
    define(&log, 77, 1, "of a later version", 18, NULL, 0);
    define_string(&log, 2, "good too");
    assert_int_equal(gwt_write_definitions(w, 0, log.bytes, log.size), 0);
    assert_int_equal(gwt_writer_close(w), 0);
    free(w);
    assert_int_equal(gwt_open(f->path, &t, NULL), 0);
    assert_string_equal(gwt_string(t, 1), "good");
    assert_string_equal(gwt_string(t, 2), "good too");
    assert_null(gwt_string(t, 1u << 25));
    assert_false(gwt_signature(t, 1, &signature));
    assert_false(gwt_graph(t, 1, &info));
    assert_int_equal(gwt_coverage(t)->bad_frames, 4);
    gwt_close(t);
}

/* Where a chunk is lost, the next one starts with an entry again. */
static void definitions_with_a_hole(void **state)
{
    struct fixture *f = *state;
    struct gwt_writer *w = open_writer(f->path, 1 << 30, &f->header);
    static struct log_bytes log;
    size_t at[3];
    struct gwt_trace *t;

    log.size = 0;
    for (uint32_t i = 0; i < 3; i++) {
        static const char *const text[] = {"one", "two", "three"};

        define_string(&log, i + 1, text[i]);
        at[i] = log.size;
    }
    assert_int_equal(gwt_write_definitions(w, 0, log.bytes, at[0]), 0);
    assert_int_equal(gwt_write_definitions(w, at[1], log.bytes + at[1], at[2] - at[1]), 0);
    assert_int_equal(gwt_writer_close(w), 0);
    free(w);
    assert_int_equal(gwt_open(f->path, &t, NULL), 0);
    assert_string_equal(gwt_string(t, 1), "one");
    assert_null(gwt_string(t, 2));
    assert_string_equal(gwt_string(t, 3), "three");
    gwt_close(t);
}

/* 2.5 ticks a nanosecond, then 2: each triple is hit exactly, between two it is a straight
 * line, and outside the line of the whole run (9000 ns in 20000 ticks) goes on. */
static void ticks_become_nanoseconds(void **state)
{
    struct fixture *f = *state;
    static const struct {
        uint64_t ticks;
        int64_t ns;
    } expect[] = {{1000000, 50000}, {1005000, 52000}, {1010000, 54000}, {1015000, 56500},
                  {1020000, 59000}, {1040000, 68000}, {980000, 41000}};
    struct gwt_triple triples[] = {{.ticks = 1020000, .monotonic_ns = 59000},
                                   {.ticks = 1010000, .monotonic_ns = 54000}};
    struct gwt_record records[7] = {0};
    struct gwt_writer *w;
    struct gwt_trace *t;
    struct gwt_event e;

    f->header.clock = GWT_CLOCK_TSC;
    f->header.start = (struct gwt_triple){.ticks = 1000000, .monotonic_ns = 50000};
    w = open_writer(f->path, 1 << 30, &f->header);
    for (int i = 0; i < 7; i++) {
        records[i].t0 = expect[i].ticks;
        records[i].api = API_LAUNCH;
    }
    assert_int_equal(gwt_write_events(w, 1, 0, records, 7), 0);
    assert_int_equal(gwt_write_clock(w, triples, 2), 0);
    assert_int_equal(gwt_writer_close(w), 0);
    free(w);
    assert_int_equal(gwt_open(f->path, &t, NULL), 0);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(gwt_next(t, &e), 1);
        assert_int_equal(e.t0_ns, expect[i].ns);
        assert_int_equal(e.t1_ns, e.t0_ns);
    }
    assert_int_equal(gwt_next(t, &e), 0);
    gwt_close(t);
}

static void long_calls_and_losses(void **state)
{
    struct fixture *f = *state;
    struct gwt_writer *w = open_writer(f->path, 1 << 30, &f->header);
    struct gwt_record records[] = {
        {.t0 = 2000000, .dur = 5000000, .api = API_SYNC, .flags = GWT_F_LONG},
        {.t0 = 9000000000, .dur = 10, .api = GWT_API_PSEUDO + GWT_LOST, .value = 55},
    };
    uint64_t counters[GWT_COUNTER_SLOTS] = {[GWT_C_NO_RING] = 3};
    struct gwt_trace *t;
    struct gwt_event e;

    assert_int_equal(gwt_write_events(w, 1, 0, records, 2), 0);
    assert_int_equal(gwt_write_counters(w, counters), 0);
    assert_int_equal(gwt_writer_close(w), 0);
    free(w);
    assert_int_equal(gwt_open(f->path, &t, NULL), 0);
    assert_int_equal(gwt_next(t, &e), 1);
    assert_int_equal(e.t1_ns - e.t0_ns, 5120000000); /* 5000000 x 1024 ticks */
    assert_int_equal(gwt_next(t, &e), 1);
    assert_int_equal(e.kind, GWT_LOST);
    assert_int_equal(e.level, GWT_LEVEL_NONE);
    assert_int_equal(e.device, 0xff);
    assert_int_equal(gwt_coverage(t)->dropped, 58); /* 55 in the record, 3 without a ring */
    gwt_rewind(t);
    while (gwt_next(t, &e))
        ;
    assert_int_equal(gwt_coverage(t)->dropped, 58);
    gwt_close(t);
}

/* Durations on the device come in nanoseconds and stay in them, whatever a tick is; the class in
 * the flags' low bits is not GWT_F_LONG. */
static void device_times_are_no_ticks(void **state)
{
    struct fixture *f = *state;
    struct gwt_writer *w;
    struct gwt_record_sample sample = {
        .t0 = 1002000,
        .pair_ns = 4123456,
        .api = GWT_API_PSEUDO + GWT_SAMPLE,
        .flags = GWT_SAMPLE_KERNEL | GWT_SAMPLE_SPACER | GWT_VOID_LATE << 8,
        .stream = 1,
        .arg = 7,
        .value = 4096,
    };
    struct gwt_record harvested[] = {{0},
                                     {.t0 = 1003000,
                                      .dur = 31000,
                                      .api = GWT_API_PSEUDO + GWT_CONSTANT,
                                      .flags = GWT_SAMPLE_KERNEL,
                                      .arg = 64,
                                      .value = 2700000}};
    struct gwt_record launched[] = {{.t0 = 1002000, .dur = 500, .api = API_LAUNCH, .stream = 1},
                                    {.t0 = 1004000, .dur = 500, .api = API_LAUNCH, .stream = 1}};
    struct gwt_triple triple = {.ticks = 2000000, .monotonic_ns = 1500000}; /* half a ns a tick */
    struct gwt_trace *t;
    struct gwt_event e;

    f->header.clock = GWT_CLOCK_TSC;
    w = open_writer(f->path, 1 << 30, &f->header);
    memcpy(&harvested[0], &sample, sizeof(sample));
    write_definitions(w);
    assert_int_equal(gwt_write_events(w, 1, 0, launched, 2), 0);
    assert_int_equal(gwt_write_events(w, 2, 0, harvested, 2), 0);
    assert_int_equal(gwt_write_clock(w, &triple, 1), 0);
    assert_int_equal(gwt_writer_close(w), 0);
    free(w);
    assert_int_equal(gwt_open(f->path, &t, NULL), 0);

    assert_int_equal(gwt_next(t, &e), 1);
    assert_int_equal(e.kind, GWT_SAMPLE);
    assert_int_equal(e.t0_ns, 1001000);
    assert_int_equal(e.t1_ns, e.t0_ns);
    assert_int_equal(e.raw, 4123456);
    assert_int_equal(GWT_SAMPLE_CLASS(e.flags), GWT_SAMPLE_KERNEL);
    assert_int_equal(e.flags, sample.flags);
    assert_int_equal(e.stream, 1);
    assert_int_equal(e.device, 1);
    assert_int_equal(e.arg, 7);
    assert_int_equal(e.value, 4096);

    assert_int_equal(gwt_next(t, &e), 1); /* the call that it timed has the same entry */
    assert_int_equal(e.kind, GWT_LAUNCH);
    assert_int_equal(e.t0_ns, 1001000);
    assert_int_equal(e.t1_ns, 1001250);
    assert_int_equal(e.raw, 0);

    assert_int_equal(gwt_next(t, &e), 1);
    assert_int_equal(e.kind, GWT_CONSTANT);
    assert_int_equal(e.t1_ns, e.t0_ns);
    assert_int_equal(e.raw, 31000);
    assert_int_equal(e.arg, 64);
    assert_int_equal(e.value, 2700000);

    assert_int_equal(gwt_next(t, &e), 1);
    assert_int_equal(e.kind, GWT_LAUNCH);
    assert_int_equal(gwt_next(t, &e), 0);
    gwt_close(t);
}

/* Nested calls return first and are recorded first, though they began later. */
static void nested_calls_come_first(void **state)
{
    struct fixture *f = *state;
    struct gwt_writer *w = open_writer(f->path, 1 << 30, &f->header);
    struct gwt_record one[] = {{.t0 = 2000100, .dur = 100, .api = 2, .flags = GWT_F_NESTED},
                               {.t0 = 2000000, .dur = 300, .api = 1}};
    struct gwt_record two[] = {{.t0 = 2000050, .dur = 200, .api = 3}};
    static const uint16_t order[] = {2, 3, 1};
    struct gwt_trace *t;
    struct gwt_event e;

    assert_int_equal(gwt_write_events(w, 1, 0, one, 2), 0);
    assert_int_equal(gwt_write_events(w, 2, 0, two, 1), 0);
    assert_int_equal(gwt_writer_close(w), 0);
    free(w);
    assert_int_equal(gwt_open(f->path, &t, NULL), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(gwt_next(t, &e), 1);
        assert_int_equal(e.api, order[i]);
    }
    assert_int_equal(gwt_next(t, &e), 0);
    gwt_close(t);
}

/* More threads at once than the merge decodes whole frames for (32 x 65536 records): the rest
 * get slices, and nobody sees a difference. */
static void many_threads_at_once(void **state)
{
    enum { THREADS = 40, EACH = 65536 };
    struct fixture *f = *state;
    struct gwt_writer *w = open_writer(f->path, 1 << 30, &f->header);
    struct gwt_record *records = calloc(EACH, sizeof(*records));
    uint64_t next[THREADS + 1] = {0}, events = 0;
    struct gwt_trace *t;
    struct gwt_event e;
    int64_t last = 0;

    for (uint32_t thread = 1; thread <= THREADS; thread++) {
        for (uint32_t i = 0; i < EACH; i++)
            records[i] = (struct gwt_record){
                .t0 = 1000000 + 100 * (uint64_t)i + thread, .dur = 50, .api = 1, .arg = i};
        assert_int_equal(gwt_write_events(w, thread, 0, records, EACH), 0);
    }
    assert_int_equal(gwt_writer_close(w), 0);
    free(w);
    free(records);
    assert_int_equal(gwt_open(f->path, &t, NULL), 0);
    while (events < 800000 && gwt_next(t, &e)) { /* each slice was decoded again by then */
        assert_int_equal(e.seq, next[e.thread]);
        assert_int_equal(e.arg, e.seq);
        next[e.thread]++;
        assert_true(e.t1_ns >= last);
        last = e.t1_ns;
        events++;
    }
    assert_int_equal(events, 800000);
    gwt_close(t);
}

static void the_example_works(void **state)
{
    struct fixture *f = *state;
    char *arguments[] = {"example", f->path, NULL}, out[160], *text;
    char expected[128];
    unsigned launches[3] = {0};
    size_t size;
    int saved, fd;

    write_small(f, true);
    for (uint64_t seq = 0; seq < 100; seq++)
        if (record_of(1, seq).api == API_LAUNCH && !record_of(1, seq).status)
            launches[seq % 3] += 3;
    snprintf(expected, sizeof(expected), "%8u gemm\n%8u softmax\n%8u layer_norm\n", launches[0],
             launches[1], launches[2]);

    snprintf(out, sizeof(out), "%s/out", f->directory);
    fflush(stdout);
    saved = dup(1);
    fd = open(out, O_CREAT | O_WRONLY, 0600);
    dup2(fd, 1);
    assert_int_equal(example_main(2, arguments), 0);
    fflush(stdout);
    dup2(saved, 1);
    close(saved);
    close(fd);
    text = read_file(out, &size);
    text[size] = 0;
    assert_string_equal(text, expected);
    free(text);
}

/* ---- what is not a recording -------------------------------------------------------------- */

static void assert_refused(const char *path, int code, const char *word)
{
    struct gwt_error error = {{0}};
    struct gwt_trace *t = (void *)1;

    assert_int_equal(gwt_open(path, &t, &error), code);
    assert_null(t);
    assert_non_null(strstr(error.text, word));
    assert_non_null(strstr(error.text, path));
    assert_int_equal(gwt_open(path, &t, NULL), code);
}

static void other_files_are_refused(void **state)
{
    struct fixture *f = *state;
    struct gwt_file_header h = f->header;

    assert_refused(f->path, -ENOENT, "No such file");
    assert_refused(f->directory, -EISDIR, "directory");
    write_file(f->path, "", 0);
    assert_refused(f->path, -EBADMSG, "empty");
    write_file(f->path, "#!/bin/sh\n", 10);
    assert_refused(f->path, -EBADMSG, "not a gpuwait recording");
    write_file(f->path, GWT_MAGIC, 8);
    assert_refused(f->path, -EBADMSG, "cut short");
    unlink(f->path);
    assert_int_equal(mkfifo(f->path, 0600), 0); /* and it must not wait for a writer */
    assert_refused(f->path, -EBADMSG, "not a regular file");
    unlink(f->path);

    memcpy(h.magic, GWT_MAGIC, 8);
    h.header_size = sizeof(h);
    h.version_major = 2;
    h.version_minor = 3;
    write_file(f->path, &h, sizeof(h));
    assert_refused(f->path, -EPROTO, "version 2.3");
    h.version_major = __builtin_bswap16(1);
    h.header_size = __builtin_bswap32(sizeof(h));
    write_file(f->path, &h, sizeof(h));
    assert_refused(f->path, -EPROTO, "big-endian");
    h.version_major = 1;
    h.header_size = 100;
    write_file(f->path, &h, sizeof(h));
    assert_refused(f->path, -EBADMSG, "damaged");
    h.header_size = sizeof(h);
    h.features = 1ull << 40;
    write_file(f->path, &h, sizeof(h));
    assert_refused(f->path, -EPROTO, "newer");
    h.features = 1;
    h.version_minor = 9; /* a later minor version is read */
    write_file(f->path, &h, sizeof(h));
    assert_int_equal(read_back(f->path).rc, 0);
}

static void directories_are_listed(void **state)
{
    struct fixture *f = *state;
    struct gwt_error error = {{0}};
    char path[200], **list;

    assert_int_equal(gwt_list(f->directory, &list, &error), -ENODATA);
    assert_null(list);
    assert_non_null(strstr(error.text, "no recording"));
    assert_int_equal(gwt_list(f->path, &list, &error), -ENOENT);
    for (const char *const *name =
             (const char *const[]){"b.gwt", "a.gwt", "c.ring", "d.gwt.tail0", ".gwt", NULL};
         *name; name++) {
        snprintf(path, sizeof(path), "%s/%s", f->directory, *name);
        write_file(path, "x", 1);
    }
    snprintf(path, sizeof(path), "%s/dir.gwt", f->directory);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(gwt_list(f->directory, &list, &error), 0);
    assert_string_equal(list[0], f->path);
    assert_string_equal(strrchr(list[1], '/'), "/b.gwt");
    assert_null(list[2]);
    gwt_list_free(list);
    assert_int_equal(gwt_list(f->path, &list, &error), 0);
    assert_string_equal(list[0], f->path);
    assert_null(list[1]);
    gwt_list_free(list);
    gwt_list_free(NULL);
    rmdir(path);
}

/* ---- cut and damaged recordings ----------------------------------------------------------- */

/* Frames end where the file does if it was cut between them. */
static size_t frame_ends(const uint8_t *bytes, size_t size, size_t ends[], size_t room)
{
    size_t n = 0, at = sizeof(struct gwt_file_header);

    while (at < size) {
        struct gwt_frame frame;

        memcpy(&frame, bytes + at, sizeof(frame));
        assert_int_equal(frame.magic, GWT_FRAME_MAGIC);
        at += sizeof(frame) + frame.stored_size;
        assert_true(n < room);
        ends[n++] = at;
    }
    assert_int_equal(at, size);
    return n;
}

static void cut_at_every_byte(void **state)
{
    struct fixture *f = *state;
    size_t size, ends[64], n, whole = 0;
    uint64_t events = 0;
    uint8_t *bytes;

    write_small(f, true);
    bytes = read_file(f->path, &size);
    n = frame_ends(bytes, size, ends, 64);
    for (size_t cut = 1; cut <= size; cut++) {
        struct found found;
        bool between = cut == sizeof(struct gwt_file_header);

        write_file(f->path, bytes, cut);
        found = read_back(f->path);
        if (cut < sizeof(struct gwt_file_header)) {
            assert_int_equal(found.rc, -EBADMSG);
            continue;
        }
        for (size_t i = 0; i < n; i++)
            between |= ends[i] == cut;
        if (whole < n && ends[whole] == cut)
            whole++;
        assert_int_equal(found.rc, 0);
        /* frame 0 holds definitions, frames 1 to 15 hold 20 events each */
        events = 20 * (whole < 1 ? 0 : whole > 16 ? 15 : whole - 1);
        assert_int_equal(found.events, events);
        assert_int_equal(found.coverage.torn, !between);
        assert_int_equal(found.coverage.ended, cut == size);
        assert_int_equal(found.coverage.bad_frames, 0);
        assert_int_equal(found.coverage.bad_bytes, 0);
        assert_int_equal(found.coverage.missing, 0);
    }
    assert_int_equal(events, 300);
    free(bytes);
}

static void cut_at_every_997th_byte(void **state)
{
    struct fixture *f = *state;
    struct gwt_writer *w = open_writer(f->path, 1 << 30, &f->header);
    uint64_t last = 0;
    uint8_t *bytes;
    size_t size;

    write_definitions(w);
    for (uint64_t seq = 0; seq < 24000; seq += 3000)
        for (uint32_t thread = 1; thread <= 4; thread++)
            assert_int_equal(write_range(w, thread, seq, 3000, record_of), 0);
    assert_int_equal(gwt_writer_close(w), 0);
    free(w);
    bytes = read_file(f->path, &size);
    assert_true(size > 50 * 997);
    for (size_t cut = sizeof(struct gwt_file_header); cut < size; cut += 997) {
        struct found found;

        write_file(f->path, bytes, cut);
        found = read_back(f->path);
        assert_int_equal(found.rc, 0);
        assert_true(found.events >= last && found.events % 3000 == 0);
        assert_int_equal(found.coverage.missing, 0);
        last = found.events;
    }
    free(bytes);
}

/* One byte of a frame changes: that frame is lost, and nothing else; and what is lost is said.
 * The header's `t_first` and `t_last` are covered by its CRC like all of it. */
static void damage_costs_one_frame(void **state)
{
    struct fixture *f = *state;
    size_t size, ends[64], n;
    uint8_t *bytes;

    write_small(f, true);
    bytes = read_file(f->path, &size);
    n = frame_ends(bytes, size, ends, 64);
    assert_int_equal(n, 1 + 15 + 1 + 1 + 1);
    for (size_t at = ends[0]; at < ends[15]; at++) {
        struct found found;
        size_t frame = 1;

        while (ends[frame] <= at)
            frame++;
        bytes[at] ^= 0x10;
        write_file(f->path, bytes, size);
        bytes[at] ^= 0x10;
        found = read_back(f->path);
        assert_int_equal(found.rc, 0);
        if (found.events == 300)
            continue; /* a bit of the zstd header that means nothing */
        assert_int_equal(found.events, 280);
        /* the last frame of a thread leaves no gap behind it */
        assert_int_equal(found.coverage.missing, frame > 12 ? 0 : 20);
        assert_int_equal(found.coverage.bad_frames > 0 || found.coverage.bad_bytes > 0, 1);
        assert_true(found.coverage.ended);
    }
    free(bytes);
}

/* Bytes too many, or too few, between and inside frames. */
static void the_next_frame_is_found(void **state)
{
    struct fixture *f = *state;
    size_t size, ends[64];
    uint8_t *bytes, *other;

    write_small(f, true);
    bytes = read_file(f->path, &size);
    other = malloc(size + 5000);
    frame_ends(bytes, size, ends, 64);
    for (size_t junk = 1; junk < 5000; junk += 1 + junk / 2) {
        struct found found;

        memcpy(other, bytes, ends[3]);
        for (size_t i = 0; i < junk; i++) /* with parts of a magic in it */
            other[ends[3] + i] = (uint8_t)("GWTF"[i % 4] + (i % 7 == 0));
        memcpy(other + ends[3] + junk, bytes + ends[3], size - ends[3]);
        write_file(f->path, other, size + junk);
        found = read_back(f->path);
        assert_int_equal(found.events, 300);
        assert_int_equal(found.coverage.bad_bytes, junk);
        assert_int_equal(found.coverage.bad_frames, 0);
    }
    for (size_t gone = 1; gone < ends[3] - ends[2]; gone++) { /* from the end of frame 3 */
        struct found found;

        memcpy(other, bytes, ends[3] - gone);
        memcpy(other + ends[3] - gone, bytes + ends[3], size - ends[3]);
        write_file(f->path, other, size - gone);
        found = read_back(f->path);
        assert_int_equal(found.events, 280);
        assert_int_equal(found.coverage.missing, 20);
        assert_true(found.coverage.bad_frames + found.coverage.bad_bytes > 0);
        assert_true(found.coverage.ended);
    }
    free(other);
    free(bytes);
}

/* A header with a sound CRC may still ask for anything. */
static void hostile_headers_are_skipped(void **state)
{
    struct fixture *f = *state;
    size_t size, ends[64];
    uint8_t *bytes;
    struct gwt_frame good, bad;

    write_small(f, true);
    bytes = read_file(f->path, &size);
    frame_ends(bytes, size, ends, 64);
    memcpy(&good, bytes + ends[3], sizeof(good));
    for (int lie = 0; lie < 12; lie++) {
        struct found found;

        bad = good;
        switch (lie) {
        case 0:
            bad.count = 0;
            break;
        case 1:
            bad.count = UINT32_MAX;
            break;
        case 2:
            bad.raw_size = UINT32_MAX;
            break;
        case 3:
            bad.count++;
            bad.raw_size += 32;
            break;
        case 4:
            bad.codec = 99;
            break;
        case 5:
            bad.codec = GWT_CODEC_RAW;
            break;
        case 6:
            bad.stored_size = UINT32_MAX;
            break;
        case 7:
            bad.first = UINT64_MAX;
            break;
        case 8:
            bad.type = GWT_FRAME_CLOCK;
            break;
        case 9:
            bad.type = GWT_FRAME_DEFINITIONS;
            break;
        case 10:
            bad.type = GWT_FRAME_COUNTERS;
            break;
        case 11:
            bad.type = GWT_FRAME_AGGREGATE;
            break;
        }
        bad.check = 0;
        bad.check = gwt_crc32c(&bad, sizeof(bad));
        memcpy(bytes + ends[3], &bad, sizeof(bad));
        write_file(f->path, bytes, size);
        found = read_back(f->path);
        assert_int_equal(found.rc, 0);
        assert_int_equal(found.events, 280);
        assert_int_equal(found.coverage.missing, 20);
        assert_int_equal(found.coverage.bad_frames, 1);
        assert_true(found.coverage.ended);
    }
    bad = good; /* a type of a later minor version is no damage */
    bad.type = 50;
    bad.check = 0;
    bad.check = gwt_crc32c(&bad, sizeof(bad));
    memcpy(bytes + ends[3], &bad, sizeof(bad));
    write_file(f->path, bytes, size);
    assert_int_equal(read_back(f->path).coverage.bad_frames, 0);
    free(bytes);
}

/* A few bytes may unfold to megabytes: not into ours. 300 x 4 MB of definitions, triples and
 * sums, and 500 threads at once with 65536 events each, all within 1 MiB. Peak memory is a
 * process's, so a child reads. */
static void bombs_are_bounded(void **state)
{
    static const struct {
        uint16_t type, codec;
        uint32_t each, raw, frames;
    } bombs[] = {
        {GWT_FRAME_DEFINITIONS, GWT_CODEC_ZSTD, 0, 4000000, 100},
        {GWT_FRAME_CLOCK, GWT_CODEC_ZSTD, sizeof(struct gwt_triple), 3999960, 100},
        {GWT_FRAME_AGGREGATE, GWT_CODEC_ZSTD, sizeof(struct gwt_aggregate), 3999960, 100},
        {GWT_FRAME_EVENTS, GWT_CODEC_COLUMNS_ZSTD, sizeof(struct gwt_record),
         GWT_FRAME_RECORDS_MAX * sizeof(struct gwt_record), 500},
    };
    struct fixture *f = *state;
    void *memory = aligned_alloc(64, (gwt_encoder_size() + 63) & ~(size_t)63);
    struct gwt_encoder *e = gwt_encoder_init(memory, gwt_encoder_size());
    size_t room = gwt_encode_bound(GWT_FRAME_RAW_MAX);
    uint8_t *out = malloc(room);
    struct gwt_writer *w = open_writer(f->path, 1 << 30, &f->header);
    struct stat st;
    FILE *file;
    int status;

    gwt_writer_abandon(w);
    free(w);
    file = fopen(f->path, "ab");
    assert_non_null(file);
    for (size_t b = 0; b < sizeof(bombs) / sizeof(bombs[0]); b++) {
        struct gwt_record *raw = calloc(1, bombs[b].raw);
        uint32_t count = bombs[b].each ? bombs[b].raw / bombs[b].each : 0;
        long n;

        for (uint32_t i = 0; bombs[b].type == GWT_FRAME_EVENTS && i < count; i++)
            raw[i].t0 = 1000ull * i; /* so that all threads are needed at once */
        n = bombs[b].type == GWT_FRAME_EVENTS ? gwt_encode_records(e, raw, count, out, room)
                                              : gwt_encode_bytes(e, raw, bombs[b].raw, out, room);
        assert_true(n > 0);
        for (uint32_t i = 0; i < bombs[b].frames; i++) {
            struct gwt_frame frame = {
                .magic = GWT_FRAME_MAGIC,
                .type = bombs[b].type,
                .codec = bombs[b].codec,
                .thread = i,
                .count = count,
                .first = bombs[b].each ? 0 : (uint64_t)i * bombs[b].raw,
                .raw_size = bombs[b].raw,
                .stored_size = (uint32_t)n,
            };

            frame.check = gwt_crc32c(&frame, sizeof(frame));
            fwrite(&frame, sizeof(frame), 1, file);
            fwrite(out, (size_t)n, 1, file);
        }
        free(raw);
    }
    assert_int_equal(fclose(file), 0);
    free(memory);
    free(out);
    assert_int_equal(stat(f->path, &st), 0);
    assert_true(st.st_size < 1 << 20);

    fflush(stdout);
    if (!fork()) {
        struct rusage before, after;
        struct gwt_trace *t;
        struct gwt_event event;

        getrusage(RUSAGE_SELF, &before);
        if (gwt_open(f->path, &t, NULL))
            _exit(1);
        for (int i = 0; i < 2000; i++)
            if (gwt_next(t, &event) != 1)
                _exit(2);
        getrusage(RUSAGE_SELF, &after);
        /* in KiB; a sanitizer holds back what was freed, so it gets twice as much */
        _exit(after.ru_maxrss - before.ru_maxrss <
                      (dlsym(RTLD_DEFAULT, "__asan_init") ? 512 : 256) * 1024
                  ? 0
                  : 3);
    }
    assert_true(wait(&status) > 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- with a ring -------------------------------------------------------------------------- */

/* Thread 1 is in the ring up to 150, of which the dump has 100; thread 2's 40 were all drained
 * but 20 of those frames' tail was not advanced yet; thread 5 is in the ring alone. */
static struct test_ring *make_ring(const struct fixture *f, uint32_t capacity)
{
    struct test_ring *r = malloc(ring_size(capacity));

    assert_non_null(r);
    init_ring(r, capacity, &f->header);
    memset(r->records, 0, ring_size(capacity) - sizeof(*r));
    fill_slot(r, 0, 1, 100, 150);
    fill_slot(r, 1, 2, 80, 100);
    fill_slot(r, 2, 5, 0, 30);
    return r;
}

static void a_ring_continues_the_dump(void **state)
{
    struct fixture *f = *state;
    struct test_ring *r;
    struct found found;
    struct gwt_thread_info thread;
    struct gwt_trace *t;

    strcpy(f->header.ring_path, f->ring);
    write_small(f, false);
    r = make_ring(f, 128);
    r->slots[0].open_t0 = 1160000;
    r->slots[0].open_api = API_SYNC;
    r->slots[1].open_t0 = 1100000; /* from which it has returned */
    r->slots[1].open_api = API_SYNC;
    r->slots[1].returned = 1100500;
    r->slots[0].lost = 7;
    r->header.counters[GWT_C_POLLS] = 99;
    r->header.now = (struct gwt_triple){.ticks = 3000000, .monotonic_ns = 3000000};
    define_string(&definitions, 9, "only in the ring");
    memcpy(r->log, definitions.bytes, definitions.size);
    r->header.deflog_head = definitions.size;
    r->header.deflog_tail = definitions.size - 40;
    write_file(f->ring, r, ring_size(128));

    found = read_back(f->path);
    assert_int_equal(found.rc, 0);
    assert_int_equal(found.events, 150 + 100 + 100 + 30);
    assert_int_equal(found.coverage.from_ring, 50 + 30);
    assert_int_equal(found.coverage.missing, 0);
    assert_true(found.coverage.ring);
    assert_false(found.coverage.ended);
    assert_false(found.coverage.ring_missing);
    assert_false(found.coverage.alive); /* boot id abab... is not this machine's */
    assert_int_equal(found.coverage.dropped, 7);
    assert_int_equal(gwt_open(f->path, &t, NULL), 0);
    assert_int_equal(gwt_counter(t, GWT_C_POLLS), 99);
    assert_string_equal(gwt_string(t, 9), "only in the ring");
    assert_true(gwt_thread(t, 1, &thread));
    assert_string_equal(thread.open_api, "cuStreamSynchronize");
    assert_int_equal(thread.open_since_ns, 1160000);
    for (uint32_t id = 2; id <= 5; id += 3) {
        assert_true(gwt_thread(t, id, &thread));
        assert_null(thread.open_api);
    }
    gwt_close(t);

    /* the ring lies beside the dump if both were moved; else it is missed */
    snprintf(f->header.ring_path, sizeof(f->header.ring_path), "%s/elsewhere", f->directory);
    unlink(f->path);
    write_small(f, false);
    assert_int_equal(read_back(f->path).events, 380);
    unlink(f->ring);
    found = read_back(f->path);
    assert_int_equal(found.events, 300);
    assert_true(found.coverage.ring_missing);
    assert_false(found.coverage.ring);
    free(r);
}

static void another_process_ring_is_ignored(void **state)
{
    struct fixture *f = *state;

    strcpy(f->header.ring_path, f->ring);
    write_small(f, false);
    for (int i = 0; i < 6; i++) {
        struct test_ring *r = make_ring(f, 128);
        struct found found;

        switch (i) {
        case 0:
            r->header.pid++;
            break;
        case 1:
            r->header.process_start++;
            break;
        case 2:
            r->header.boot_id[15]++;
            break;
        case 3:
            r->header.magic[0] = 'X';
            break;
        case 4:
            r->header.version_major = 2;
            break;
        case 5:
            r->header.slots = 1u << 30;
            break;
        }
        write_file(f->ring, r, ring_size(128));
        found = read_back(f->path);
        assert_int_equal(found.events, 300);
        assert_true(found.coverage.ring_missing);
        assert_false(found.coverage.ring);
        free(r);
    }
}

/* A full ring that nobody drained: record 0 is still there. One more and it would not be; an
 * overwritten one is in the dump, or it is counted as missing. */
static void a_full_ring_is_read_whole(void **state)
{
    struct fixture *f = *state;
    struct test_ring *r = calloc(1, ring_size(64));
    struct gwt_writer *w;
    struct found found;

    strcpy(f->header.ring_path, f->ring);
    w = open_writer(f->path, 1 << 30, &f->header); /* an empty dump */
    gwt_writer_abandon(w);
    free(w);
    init_ring(r, 64, &f->header);
    fill_slot(r, 0, 1, 0, 64);
    memcpy(r->log, definitions.bytes, definitions.size);
    r->header.deflog_head = definitions.size;
    write_file(f->ring, r, ring_size(64));
    found = read_back(f->path);
    assert_int_equal(found.events, 64);
    assert_int_equal(found.coverage.missing, 0);

    fill_slot(r, 0, 1, 10, 74); /* 0 to 9 were drained, and the dump that had them is gone */
    write_file(f->ring, r, ring_size(64));
    found = read_back(f->path);
    assert_int_equal(found.events, 64);
    assert_int_equal(found.coverage.missing, 10);
    free(r);
}

/* After a failed write the drain thread goes on advancing tails: what the ring still holds is
 * all there is. */
static void a_stopped_dump_is_continued_by_the_ring(void **state)
{
    struct fixture *f = *state;
    struct test_ring *r;
    struct found found;

    strcpy(f->header.ring_path, f->ring);
    write_small(f, true);
    r = make_ring(f, 64);
    fill_slot(r, 0, 1, 200, 200); /* 137 to 199: 136 may be just being overwritten */
    r->header.counters[GWT_C_WRITE_ERRNO] = ENOSPC;
    write_file(f->ring, r, ring_size(64));
    found = read_back(f->path);
    assert_int_equal(found.events, 100 + 63 + 100 + 100 + 30);
    assert_int_equal(found.coverage.missing, 37);
    free(r);
}

static void hostile_rings_are_survived(void **state)
{
    struct fixture *f = *state;
    uint64_t seed = 7;

    strcpy(f->header.ring_path, f->ring);
    write_small(f, false);
    for (int i = 0; i < 3000; i++) {
        struct test_ring *r = make_ring(f, 64);
        struct gwt_trace *t;
        struct gwt_event e;

        for (int k = 0; k < 3; k++) {
            /* somewhere in a field of the header or of a slot */
            size_t at = 32 + (seed = seed * 6364136223846793005u + 1442695040888963407u) / 65536 %
                                 (offsetof(struct test_ring, log) - 40);
            uint64_t value = seed >> (seed >> 58);

            if (i % 2)
                at = offsetof(struct test_ring, slots) + at % 512 / 8 * 8 + seed % 3 * 512;
            memcpy((char *)r + at, &value, 8);
        }
        write_file(f->ring, r, ring_size(64));
        assert_int_equal(gwt_open(f->path, &t, NULL), 0);
        while (gwt_next(t, &e))
            ;
        assert_true(gwt_coverage(t)->events >= 300);
        gwt_close(t);
        free(r);
    }
}

static void a_live_process_is_seen(void **state)
{
    struct fixture *f = *state;
    char text[512], *at;
    FILE *file = fopen("/proc/self/stat", "r");
    unsigned byte;
    size_t n;
    struct found found;

    assert_non_null(file);
    n = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[n] = 0;
    at = strrchr(text, ')') + 2;
    for (int field = 3; field < 22; field++)
        at = strchr(at, ' ') + 1;
    f->header.process_start = strtoull(at, NULL, 10);
    f->header.pid = (uint32_t)getpid();
    file = fopen("/proc/sys/kernel/random/boot_id", "r");
    assert_non_null(file);
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            assert_int_equal(fgetc(file), '-');
        assert_int_equal(fscanf(file, "%2x", &byte), 1);
        f->header.boot_id[i] = (uint8_t)byte;
    }
    fclose(file);

    write_small(f, false);
    found = read_back(f->path);
    assert_true(found.coverage.alive);
    /* a frame that is just being written is not damage */
    file = fopen(f->path, "ab");
    fwrite("GWTF", 1, 4, file);
    fclose(file);
    assert_false(read_back(f->path).coverage.torn);
    unlink(f->path);
    write_small(f, true); /* ended: whatever else that process does */
    assert_false(read_back(f->path).coverage.alive);
    unlink(f->path);
    f->header.process_start++;
    write_small(f, false);
    assert_false(read_back(f->path).coverage.alive);
}

/* ---- live --------------------------------------------------------------------------------- */

/* A producer and a drain thread as in libgpuwait.so: two threads' rings, small ones, so that
 * they wrap and fill; and slot 1 changes hands. */
struct live {
    const struct fixture *f;
    struct test_ring *ring;
    uint64_t max;
    uint32_t capacity;
    bool stop;
};

static void *produce(void *arg)
{
    struct live *l = arg;
    struct gwt_slot *s = &l->ring->slots[0];

    while (!__atomic_load_n(&l->stop, __ATOMIC_RELAXED)) {
        uint64_t head = s->head;

        if (head % 300 == 0)
            usleep(1000);
        if (head == 150000) /* enough to read again and again */
            break;
        if (head - __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE) == l->capacity)
            continue;
        l->ring->records[head % l->capacity] = record_of(1, head);
        __atomic_store_n(&s->head, head + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void drain_slot(struct live *l, struct gwt_writer *w, uint32_t index)
{
    struct gwt_slot *s = &l->ring->slots[index];
    uint64_t head = __atomic_load_n(&s->head, __ATOMIC_ACQUIRE);
    struct gwt_record copy[256];

    while (s->tail < head) {
        uint32_t n = head - s->tail < 256 ? (uint32_t)(head - s->tail) : 256;

        for (uint32_t i = 0; i < n; i++)
            copy[i] = l->ring->records[index * l->capacity + (s->tail + i) % l->capacity];
        assert_int_equal(gwt_write_events(w, s->thread, s->tail, copy, n), 0);
        __atomic_store_n(&s->tail, s->tail + n, __ATOMIC_RELEASE);
    }
}

/* A short-lived thread: its slot is taken, filled, closed, drained, given away. */
static void one_more_thread(struct live *l, struct gwt_writer *w, uint32_t id)
{
    struct gwt_slot *s = &l->ring->slots[1];

    s->thread = id;
    s->head = s->tail = 0;
    __atomic_store_n(&s->state, GWT_SLOT_USED, __ATOMIC_RELEASE);
    for (uint64_t n = 0; n < 40; n++) {
        l->ring->records[l->capacity + n] = record_of(id, n);
        __atomic_store_n(&s->head, n + 1, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&s->state, GWT_SLOT_CLOSED, __ATOMIC_RELEASE);
    drain_slot(l, w, 1);
    __atomic_store_n(&s->state, GWT_SLOT_FREE, __ATOMIC_RELEASE);
}

static void *drain(void *arg)
{
    struct live *l = arg;
    struct gwt_writer *w = open_writer(l->f->path, l->max, &l->f->header);
    uint32_t id = 2;

    write_definitions(w);
    while (!__atomic_load_n(&l->stop, __ATOMIC_RELAXED)) {
        drain_slot(l, w, 0);
        for (int i = 0; i < 8 && id < 1000; i++)
            one_more_thread(l, w, id++);
        usleep(50);
    }
    gwt_writer_abandon(w); /* as if killed */
    free(w);
    return NULL;
}

/* Reads again and again until both threads are killed, and once more then. */
static void read_live(const struct fixture *f, uint64_t max)
{
    struct live l = {.f = f, .capacity = 512, .max = max};
    const bool bounded = max < 1 << 30;
    pthread_t producer, drainer;
    uint64_t most = 0;
    bool killed = false, aggregated = false;
    struct stat st = {0};
    int fd;

    fd = open(f->ring, O_CREAT | O_RDWR, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)ring_size(l.capacity)), 0);
    l.ring = mmap(NULL, ring_size(l.capacity), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(l.ring != MAP_FAILED);
    close(fd);
    init_ring(l.ring, l.capacity, &f->header);
    l.ring->slots[0].thread = 1;
    l.ring->slots[0].state = GWT_SLOT_USED;
    pthread_create(&drainer, NULL, drain, &l);
    while (stat(f->path, &st) || st.st_size < (off_t)sizeof(f->header))
        usleep(100);
    pthread_create(&producer, NULL, produce, &l);

    for (int round = 0; !killed; round++) {
        struct gwt_trace *t;
        struct gwt_event e;
        uint64_t next = 0, events = 0, others = 0;
        struct gwt_thread_info last = {0};
        const struct gwt_coverage *c;

        killed = round >= 60 && aggregated == bounded;
        if (killed) { /* what is there now is all there was */
            __atomic_store_n(&l.stop, true, __ATOMIC_RELAXED);
            pthread_join(producer, NULL);
            pthread_join(drainer, NULL);
        }
        assert_int_equal(gwt_open(f->path, &t, NULL), 0);
        c = gwt_coverage(t);
        assert_true(c->ring);
        while (gwt_next(t, &e)) {
            events++;
            assert_event(&e);
            if (e.thread != 1) {
                others++;
                continue;
            }
            if (!c->aggregated)
                assert_int_equal(e.seq, next); /* no hole, no duplicate, from the first on */
            assert_true(e.seq >= next);
            next = e.seq + 1;
        }
        assert_int_equal(c->missing, 0);
        assert_int_equal(c->bad_frames, 0);
        assert_int_equal(c->bad_bytes, 0);
        aggregated |= c->aggregated > 0;
        /* the other threads have 40 events each, the latest perhaps fewer */
        for (size_t k = 0; gwt_thread_at(t, k, &last); k++)
            ;
        if (!bounded && last.id > 1) {
            assert_true(others <= 40 * (uint64_t)(last.id - 1));
            assert_true(others + 40 >= 40 * (uint64_t)(last.id - 1));
        }
        if (killed && !bounded)
            assert_int_equal(next, l.ring->slots[0].head);
        assert_true(events + c->aggregated >= most);
        most = events + c->aggregated;
        gwt_close(t);
    }
    munmap(l.ring, ring_size(l.capacity));
}

static void a_live_recording_has_no_hole(void **state)
{
    struct fixture *f = *state;

    strcpy(f->header.ring_path, f->ring);
    read_live(f, 1 << 30);
}

/* The same while tail segments are being replaced. */
static void a_live_bounded_recording_has_no_hole(void **state)
{
    struct fixture *f = *state;

    strcpy(f->header.ring_path, f->ring);
    read_live(f, 256 << 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(threads_are_merged_by_return),
        T(definitions_are_found),
        T(definitions_in_pieces),
        T(definitions_of_nonsense),
        T(definitions_with_a_hole),
        T(ticks_become_nanoseconds),
        T(long_calls_and_losses),
        T(device_times_are_no_ticks),
        T(nested_calls_come_first),
        T(many_threads_at_once),
        T(the_example_works),
        T(other_files_are_refused),
        T(directories_are_listed),
        T(cut_at_every_byte),
        T(cut_at_every_997th_byte),
        T(damage_costs_one_frame),
        T(the_next_frame_is_found),
        T(hostile_headers_are_skipped),
        T(bombs_are_bounded),
        T(a_ring_continues_the_dump),
        T(another_process_ring_is_ignored),
        T(a_full_ring_is_read_whole),
        T(a_stopped_dump_is_continued_by_the_ring),
        T(hostile_rings_are_survived),
        T(a_live_process_is_seen),
        T(a_live_recording_has_no_hole),
        T(a_live_bounded_recording_has_no_hole),
#undef T
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
