/* Reading what is recorded of the time outside of calls: host sections, Python stacks and their
 * definitions, as written and as a hostile file has them. Right values: format.h. */
#include "trace_help.h"

#define SECTION (GWT_API_PSEUDO + GWT_SECTION)
#define STACK   (GWT_API_PSEUDO + GWT_STACK)

struct fixture {
    char directory[128], path[256];
    struct gwt_file_header header;
};

static struct fixture fixture;

static int set_up(void **state)
{
    struct fixture *f = *state = &fixture;

    make_directory(f->directory);
    snprintf(f->path, sizeof(f->path), "%.127s/a.gwt", f->directory);
    f->header = header_of(1);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    remove_directory(f->directory);
    return 0;
}

static struct gwt_trace *write_and_open(struct fixture *f, const struct log_bytes *log,
                                        const struct gwt_record *records, uint32_t count)
{
    struct gwt_writer *w = open_writer(f->path, 1 << 30, &f->header);
    struct gwt_trace *trace;

    if (log)
        assert_int_equal(gwt_write_definitions(w, 0, log->bytes, log->size), 0);
    assert_int_equal(gwt_write_events(w, 1, 0, records, count), 0);
    assert_int_equal(gwt_writer_close(w), 0);
    free(w);
    assert_int_equal(gwt_open(f->path, &trace, NULL), 0);
    return trace;
}

static struct gwt_record of_section(const struct gwt_record_section *s)
{
    struct gwt_record r;

    memcpy(&r, s, sizeof(r));
    return r;
}

static void a_section_reads_back(void **state)
{
    struct gwt_record_section s = {.t0 = 2000000,
                                   .dur = 20000000,
                                   .api = SECTION,
                                   .voluntary = 3,
                                   .involuntary = 40000,
                                   .cpu_us = 15000,
                                   .process_cpu_us = 22000,
                                   .measured_us = 18000};
    struct gwt_record_section longest = {.t0 = 30000000,
                                         .dur = UINT32_MAX,
                                         .api = SECTION,
                                         .flags = GWT_F_LONG,
                                         .voluntary = 0xffff,
                                         .involuntary = 0xffff,
                                         .cpu_us = UINT32_MAX,
                                         .process_cpu_us = UINT32_MAX,
                                         .measured_us = UINT32_MAX};
    struct gwt_record records[] = {of_section(&s), of_section(&longest)};
    struct gwt_trace *trace = write_and_open(*state, NULL, records, 2);
    struct gwt_section c;
    struct gwt_event e;

    assert_int_equal(gwt_next(trace, &e), 1);
    assert_int_equal(e.kind, GWT_SECTION);
    assert_int_equal(e.level, GWT_LEVEL_NONE);
    assert_int_equal(e.t0_ns, 2000000); /* ticks are ns */
    assert_int_equal(e.t1_ns, 22000000);
    assert_int_equal(e.stream, 0); /* the fields of a call have no meaning here */
    assert_int_equal(e.status, 0);
    assert_int_equal(e.device, 0xff);
    c = gwt_section_of(&e);
    assert_int_equal(c.measured_ns, 18000000);
    assert_int_equal(c.cpu_ns, 15000000);
    assert_int_equal(c.process_cpu_ns, 22000000);
    assert_int_equal(c.voluntary, 3);
    assert_int_equal(c.involuntary, 40000);

    assert_int_equal(gwt_next(trace, &e), 1);
    assert_int_equal(e.t1_ns - e.t0_ns, (int64_t)UINT32_MAX << 10);
    c = gwt_section_of(&e);
    assert_int_equal(c.measured_ns, (int64_t)UINT32_MAX * 1000);
    assert_int_equal(c.cpu_ns, (int64_t)UINT32_MAX * 1000);
    assert_int_equal(c.process_cpu_ns, (int64_t)UINT32_MAX * 1000);
    assert_int_equal(c.voluntary, 0xffff);
    assert_int_equal(c.involuntary, 0xffff);
    assert_int_equal(gwt_next(trace, &e), 0);
    gwt_close(trace);
}

/* Its context switches lie where other records have stream and status: a stream of that number
 * lends it no device. */
static void a_section_is_on_no_device(void **state)
{
    struct gwt_record_section s = {
        .t0 = 2000000, .dur = 5000, .api = SECTION, .voluntary = 1, .involuntary = 1};
    struct gwt_record r = of_section(&s);
    static struct log_bytes log;
    struct gwt_trace *trace;
    struct gwt_event e;

    log.size = 0;
    define_all(&log); /* stream 1 is on device 1 */
    trace = write_and_open(*state, &log, &r, 1);
    assert_int_equal(gwt_next(trace, &e), 1);
    assert_int_equal(e.device, 0xff);
    assert_int_equal(gwt_section_of(&e).voluntary, 1);
    gwt_close(trace);
}

static void define_stack(struct log_bytes *log, uint32_t id, uint32_t says, uint32_t has)
{
    struct gwt_def_stack k = {.frames = says};
    struct gwt_stack_frame frames[GWT_STACK_FRAMES_MAX + 8];

    for (uint32_t i = 0; i < has; i++)
        frames[i] = (struct gwt_stack_frame){.file = 1, .function = 2 + i % 2, .line = 10 + i};
    define(log, GWT_DEF_STACK, id, &k, sizeof(k), frames, has * sizeof(frames[0]));
}

static void a_stack_reads_back(void **state)
{
    struct gwt_record r = {.t0 = 2000000,
                           .dur = 40000,
                           .api = STACK,
                           .flags = GWT_STACK_INSIDE << GWT_F_SUB_SHIFT | GWT_STACK_OF_MAIN,
                           .arg = 5,
                           .value = 3};
    static struct log_bytes log;
    struct gwt_stack_info info;
    struct gwt_trace *trace;
    struct gwt_event e;

    log.size = 0;
    define_string(&log, 1, "train.py");
    define_string(&log, 2, "collate");
    define_string(&log, 3, "main");
    define_stack(&log, 5, 2, 2);
    define_stack(&log, 6, 0, 0);
    define_stack(&log, 7, GWT_STACK_FRAMES_MAX, GWT_STACK_FRAMES_MAX);
    trace = write_and_open(*state, &log, &r, 1);
    assert_int_equal(gwt_next(trace, &e), 1);
    assert_int_equal(e.kind, GWT_STACK);
    assert_int_equal(e.t1_ns - e.t0_ns, 40000);
    assert_int_equal(e.value, 3);
    assert_int_equal(GWT_STACK_WHY(e.flags), GWT_STACK_INSIDE);
    assert_true(e.flags & GWT_STACK_OF_MAIN);
    assert_true(gwt_stack(trace, e.arg, &info));
    assert_int_equal(info.count, 2);
    assert_string_equal(gwt_string(trace, info.frames[0].file), "train.py");
    assert_string_equal(gwt_string(trace, info.frames[0].function), "collate");
    assert_string_equal(gwt_string(trace, info.frames[1].function), "main");
    assert_int_equal(info.frames[1].line, 11);
    assert_true(gwt_stack(trace, 6, &info));
    assert_int_equal(info.count, 0);
    assert_true(gwt_stack(trace, 7, &info));
    assert_int_equal(info.count, GWT_STACK_FRAMES_MAX);
    assert_int_equal(info.frames[GWT_STACK_FRAMES_MAX - 1].line, 10 + GWT_STACK_FRAMES_MAX - 1);
    assert_int_equal(gwt_coverage(trace)->bad_frames, 0);
    gwt_close(trace);
}

/* Each is skipped and counted; what follows it is read. */
static void hostile_stacks(void **state)
{
    static const struct {
        uint32_t id, says, has;
    } bad[] = {
        {11, 3, 2},                                              /* more than the payload holds */
        {12, UINT32_MAX, 1},                                     /* whose size would overflow */
        {13, 0x10000000, 0},                                     /* 2^28 x 16 bytes = 2^32 */
        {14, GWT_STACK_FRAMES_MAX + 1, GWT_STACK_FRAMES_MAX + 1} /* deeper than any is recorded */
    };
    struct gwt_record r = {.t0 = 2000000, .api = STACK, .arg = 11};
    static struct log_bytes log;
    struct gwt_stack_info info;
    struct gwt_trace *trace;
    uint32_t short_of_header = 1;

    log.size = 0;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        define_stack(&log, bad[i].id, bad[i].says, bad[i].has);
    define(&log, GWT_DEF_STACK, 15, &short_of_header, 4, NULL, 0);
    define_stack(&log, 0, 1, 1); /* no id */
    define_stack(&log, 20, 1, 3);
    trace = write_and_open(*state, &log, &r, 1);
    for (uint32_t id = 0; id < 20; id++)
        assert_false(gwt_stack(trace, id, &info));
    assert_false(gwt_stack(trace, UINT32_MAX, &info));
    assert_true(gwt_stack(trace, 20, &info)); /* room that it does not use is no harm */
    assert_int_equal(info.count, 1);
    assert_int_equal(gwt_coverage(trace)->bad_frames, 6);
    gwt_close(trace);
}

/* Sums of what the disk bound left out: a section's switches are no status, its length is not
 * time inside calls. */
static struct gwt_record mixed_record_of(uint32_t thread, uint64_t seq)
{
    struct gwt_record noise = noisy_record_of(thread, seq);
    struct gwt_record_section s = {.t0 = 5000000000ull + seq * 1000000,
                                   .dur = 900000,
                                   .api = SECTION,
                                   .voluntary = 7,
                                   .involuntary = 9,
                                   .cpu_us = (uint32_t)noise.value,
                                   .measured_us = 900};

    if (seq % 2)
        return of_section(&s);
    return (struct gwt_record){.t0 = 5000000000ull + seq * 1000000,
                               .dur = 10,
                               .api = API_LAUNCH,
                               .arg = (uint32_t)noise.value};
}

static void sums_keep_sections_apart(void **state)
{
    struct fixture *f = *state;
    struct gwt_writer *w = open_writer(f->path, 256 << 10, &f->header);
    static struct log_bytes log;
    uint64_t launches = 0, sections = 0;
    const struct gwt_aggregate *a;
    struct gwt_trace *trace;
    struct gwt_event e;

    log.size = 0;
    define_all(&log);
    assert_int_equal(gwt_write_definitions(w, 0, log.bytes, log.size), 0);
    for (uint64_t seq = 0; seq < 200000; seq += 1000)
        assert_int_equal(write_range(w, 1, seq, 1000, mixed_record_of), 0);
    assert_int_equal(gwt_writer_close(w), 0);
    free(w);
    assert_int_equal(gwt_open(f->path, &trace, NULL), 0);
    for (size_t i = 0; (a = gwt_aggregate_at(trace, i)); i++) {
        assert_int_equal(a->failed, 0);
        assert_int_equal(a->bytes, 0);
        if (a->api == SECTION) {
            assert_int_equal(a->ticks, 0);
            sections += a->calls;
        } else {
            assert_int_equal(a->api, API_LAUNCH);
            assert_int_equal(a->ticks, 10 * a->calls);
            launches += a->calls;
        }
    }
    assert_true(sections > 0 && launches > 0); /* the bound was met */
    while (gwt_next(trace, &e)) {
        launches += e.kind == GWT_LAUNCH;
        sections += e.kind == GWT_SECTION;
    }
    assert_int_equal(launches, 100000);
    assert_int_equal(sections, 100000);
    gwt_close(trace);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_section_reads_back), TEST(a_section_is_on_no_device), TEST(a_stack_reads_back),
        TEST(hostile_stacks),       TEST(sums_keep_sections_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
