/* The writer: everything it was given is in the files, as events or as sums, within the bound
 * of disk space; and what happens when the disk says no. */
#include "trace_help.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

struct fixture {
    char directory[128];
    char path[160];
    struct gwt_file_header header;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    make_directory(f->directory);
    snprintf(f->path, sizeof(f->path), "%s/a.gwt", f->directory);
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

static void write_definitions(struct gwt_writer *w)
{
    static struct log_bytes log;

    log.size = 0;
    define_all(&log);
    assert_int_equal(gwt_write_definitions(w, 0, log.bytes, log.size), 0);
}

static uint64_t bytes_on_disk(const struct fixture *f)
{
    uint64_t sum = 0;
    DIR *dir = opendir(f->directory);
    struct dirent *e;

    assert_non_null(dir);
    while ((e = readdir(dir))) {
        struct stat st;

        if (!fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode))
            sum += (uint64_t)st.st_size;
    }
    closedir(dir);
    return sum;
}

static bool exists(const struct fixture *f, const char *suffix)
{
    char path[200];

    snprintf(path, sizeof(path), "%s%s", f->path, suffix);
    return !access(path, F_OK);
}

static void a_dump_reads_back(void **state)
{
    struct fixture *f = *state;
    struct gwt_writer *w = open_writer(f->path, 1 << 30, &f->header);
    struct gwt_triple triple = {.ticks = 9000000, .monotonic_ns = 9000000};
    uint64_t counters[GWT_COUNTER_SLOTS] = {[GWT_C_POLLS] = 17};
    struct gwt_writer_stats stats;
    struct gwt_trace *trace;
    struct found found;
    struct stat st;

    write_definitions(w);
    assert_int_equal(write_range(w, 1, 0, 1000, record_of), 0);
    assert_int_equal(write_range(w, 2, 0, 1, record_of), 0);        /* too few for columns */
    assert_int_equal(write_range(w, 1, 1000, 70000, record_of), 0); /* two frames */
    assert_int_equal(gwt_write_clock(w, &triple, 1), 0);
    assert_int_equal(gwt_write_counters(w, counters), 0);
    gwt_writer_stats(w, &stats);
    assert_int_equal(stats.frames, 7); /* definitions, 1 + 1 + 2 of events, clock, counters */
    assert_int_equal(stats.error, 0);
    assert_int_equal(gwt_writer_close(w), 0);
    free(w);

    assert_int_equal(stat(f->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600); /* kernel names may be somebody's secret */
    assert_false(exists(f, ".tail0"));
    found = read_back(f->path);
    assert_int_equal(found.rc, 0);
    assert_int_equal(found.events, 71001);
    assert_true(found.coverage.ended);
    assert_false(found.coverage.torn);
    assert_int_equal(found.coverage.missing, 0);
    assert_int_equal(found.coverage.bad_frames, 0);
    assert_int_equal(found.coverage.dump_bytes, st.st_size);
    assert_int_equal(gwt_open(f->path, &trace, NULL), 0);
    assert_int_equal(gwt_counter(trace, GWT_C_POLLS), 17);
    gwt_close(trace);
}

static void an_existing_file_is_left_alone(void **state)
{
    struct fixture *f = *state;
    struct gwt_writer_options options = {.path = f->path, .max_bytes = 1 << 20};
    void *memory = aligned_alloc(64, (gwt_writer_size() + 63) & ~(size_t)63);
    struct gwt_writer *w;
    size_t size;
    char *bytes;

    write_file(f->path, "mine", 4);
    assert_int_equal(gwt_writer_open(&w, memory, gwt_writer_size(), &options, &f->header), -EEXIST);
    assert_null(w);
    bytes = read_file(f->path, &size);
    assert_int_equal(size, 4);
    assert_memory_equal(bytes, "mine", 4);
    free(bytes);

    unlink(f->path);
    assert_int_equal(symlink("/nowhere", f->path), 0);
    assert_int_equal(gwt_writer_open(&w, memory, gwt_writer_size(), &options, &f->header), -EEXIST);
    unlink(f->path);

    options.path = "/nowhere/at/all.gwt";
    assert_int_equal(gwt_writer_open(&w, memory, gwt_writer_size(), &options, &f->header), -ENOENT);
    options.path = f->path;
    options.max_bytes = 1000;
    assert_int_equal(gwt_writer_open(&w, memory, gwt_writer_size(), &options, &f->header), -EINVAL);
    options.max_bytes = 1 << 20;
    assert_int_equal(gwt_writer_open(&w, memory, gwt_writer_size() - 64, &options, &f->header),
                     -EINVAL);
    assert_false(exists(f, ""));
    free(memory);
}

/* Sums of everything written, to compare with events + aggregates. */
struct sums {
    uint64_t calls, ticks, bytes, failed;
};

static void sum_records(struct sums *s, struct gwt_record r)
{
    s->calls++;
    if (r.api == GWT_API_PSEUDO + GWT_ALLOCATOR)
        return;
    s->ticks += r.dur;
    s->failed += r.status != 0;
    if (r.api == API_COPY)
        s->bytes += r.value;
}

/* post: sums over a whole recording; gaps between events of thread 1 and aggregates agree. */
static struct sums sum_recording(const char *path, struct gwt_coverage *coverage)
{
    struct gwt_trace *trace;
    struct gwt_event e;
    struct sums s = {0};
    const struct gwt_aggregate *a;

    assert_int_equal(gwt_open(path, &trace, NULL), 0);
    while (gwt_next(trace, &e)) {
        s.calls++;
        s.ticks += (uint64_t)(e.t1_ns - e.t0_ns);
        s.failed += e.status != 0;
        if (e.kind == GWT_COPY)
            s.bytes += e.value;
    }
    for (size_t i = 0; (a = gwt_aggregate_at(trace, i)); i++) {
        assert_true(a->span >= 1);
        s.calls += a->calls;
        s.ticks += a->ticks;
        s.bytes += a->bytes;
        s.failed += a->failed;
    }
    *coverage = *gwt_coverage(trace);
    gwt_close(trace);
    return s;
}

static struct gwt_record slow_record_of(uint32_t thread, uint64_t seq)
{
    struct gwt_record r = noisy_record_of(thread, seq);

    r.t0 = 1000000 + seq * 1000000; /* 1000 a second, so that aggregates have many rows */
    if (r.api == API_COPY)
        r.value &= 0xffffff;
    return r;
}

/* Head, tail segments and aggregates: nothing is lost, whatever the bound. */
static void the_bound_holds_and_nothing_is_lost(void **state)
{
    struct fixture *f = *state;
    static const uint64_t max[] = {64 << 10, 100000, 256 << 10, 1 << 20, 8 << 20};

    for (size_t m = 0; m < sizeof(max) / sizeof(max[0]); m++) {
        struct gwt_writer *w = open_writer(f->path, max[m], &f->header);
        uint64_t seq = 0, counters[GWT_COUNTER_SLOTS] = {0};
        struct gwt_writer_stats stats;
        struct gwt_coverage coverage;
        struct sums in = {0}, out;

        write_definitions(w);
        for (uint32_t i = 0; seq < 1200000; i++) {
            uint32_t count = 1 + i * 7919 % 20000;
            struct gwt_triple now = {.ticks = 1000000 + seq * 1000000};

            assert_int_equal(write_range(w, 1, seq, count, slow_record_of), 0);
            for (uint32_t k = 0; k < count; k++)
                sum_records(&in, slow_record_of(1, seq + k));
            seq += count;
            now.monotonic_ns = now.ticks;
            counters[GWT_C_POLLS] = seq;
            assert_int_equal(gwt_write_clock(w, &now, 1), 0);
            assert_int_equal(gwt_write_counters(w, counters), 0);
            assert_true(bytes_on_disk(f) <= max[m]);
        }
        assert_int_equal(gwt_writer_close(w), 0);
        gwt_writer_stats(w, &stats);
        free(w);
        assert_true(bytes_on_disk(f) <= max[m]);
        assert_true(exists(f, ".tail0") || exists(f, ".tail1"));

        out = sum_recording(f->path, &coverage);
        assert_true(coverage.ended);
        assert_int_equal(coverage.bad_frames, 0);
        assert_int_equal(coverage.missing, 0);
        assert_true(coverage.aggregated > 0);
        assert_int_equal(coverage.aggregated, stats.aggregated);
        assert_int_equal(coverage.events + coverage.aggregated, seq);
        assert_int_equal(out.calls, in.calls);
        assert_int_equal(out.ticks, in.ticks);
        assert_int_equal(out.bytes, in.bytes);
        assert_int_equal(out.failed, in.failed);
        remove_directory(f->directory);
        assert_int_equal(mkdir(f->directory, 0700), 0);
    }
}

/* The head is kept, and so is the recent past. */
static void head_and_tail_are_kept(void **state)
{
    struct fixture *f = *state;
    struct gwt_writer *w = open_writer(f->path, 1 << 20, &f->header);
    uint64_t seq = 0, last = 0, events = 0;
    struct gwt_trace *trace;
    struct gwt_event e;

    write_definitions(w);
    for (; seq < 500000; seq += 5000)
        assert_int_equal(write_range(w, 1, seq, 5000, noisy_record_of), 0);
    assert_int_equal(gwt_writer_close(w), 0);
    free(w);
    assert_int_equal(gwt_open(f->path, &trace, NULL), 0);
    while (gwt_next(trace, &e)) {
        if (events++ < 10000) /* half a MiB is more than 10000 events of 32 bytes */
            assert_int_equal(e.seq, events - 1);
        last = e.seq;
    }
    assert_int_equal(last, seq - 1);
    gwt_close(trace);
}

static struct gwt_record second_record_of(uint32_t thread, uint64_t seq)
{
    struct gwt_record noise = noisy_record_of(thread, seq);

    return (struct gwt_record){
        .t0 = 5000000000ull + seq * 1000000, /* 1000 in each second from the 5th on */
        .dur = 10,
        .api = API_COPY,
        .status = seq % 4 == 0,
        .arg = (uint32_t)noise.value, /* so that frames are not empty */
        .value = 1 + seq % 3,
    };
}

/* Segments hold whole seconds here, so every row is a multiple of one second's sums: 1000
 * calls of 10 ticks, 250 of them failed, of 1, 2, 3, 1, 2, 3 ... bytes: 1999 to 2001. */
static void rows_are_per_second(void **state)
{
    struct fixture *f = *state;
    struct gwt_writer *w = open_writer(f->path, 2 << 20, &f->header);
    uint64_t seen = 0, calls = 0;
    struct gwt_trace *trace;
    const struct gwt_aggregate *a;

    write_definitions(w);
    for (uint64_t seq = 0; seq < 600000; seq += 1000)
        assert_int_equal(write_range(w, 1, seq, 1000, second_record_of), 0);
    assert_int_equal(gwt_writer_close(w), 0);
    free(w);
    assert_int_equal(gwt_open(f->path, &trace, NULL), 0);
    for (size_t i = 0; (a = gwt_aggregate_at(trace, i)); i++) {
        assert_int_equal(a->api, API_COPY);
        assert_int_equal(a->calls % 1000, 0);
        assert_in_range(a->calls, 1000, 1000 * (uint64_t)a->span); /* a segment ended within */
        assert_int_equal(a->ticks, 10 * a->calls);
        assert_int_equal(a->failed, a->calls / 4);
        assert_in_range(a->bytes, 2 * a->calls - a->span, 2 * a->calls + a->span);
        assert_true(a->second >= 5 && a->second < 605);
        calls += a->calls;
        seen++;
    }
    assert_true(seen > 0);
    assert_int_equal(calls, gwt_coverage(trace)->aggregated);
    gwt_close(trace);
}

/* Definitions are worth more than events: they push the tail out, then the recording ends, and
 * the events that went are in sums. */
static void definitions_come_first(void **state)
{
    struct fixture *f = *state;
    struct gwt_writer *w = open_writer(f->path, 256 << 10, &f->header);
    struct gwt_writer_stats stats;
    struct gwt_coverage coverage;
    struct sums out;
    uint64_t at = 0, seq = 0, seed = 1;
    int rc = 0;

    for (uint32_t id = 1; !rc; id++) {
        static struct log_bytes log;
        uint64_t noise[512];

        for (int i = 0; i < 512; i++)
            noise[i] = seed = seed * 6364136223846793005u + 1442695040888963407u;
        log.size = 0;
        define(&log, GWT_DEF_STRING, id, noise, sizeof(noise), NULL, 0);
        rc = gwt_write_definitions(w, at, log.bytes, log.size);
        at += log.size;
        if (!rc) {
            assert_int_equal(write_range(w, 1, seq, 500, noisy_record_of), 0);
            seq += 500;
        }
        assert_true(bytes_on_disk(f) <= 256 << 10);
        assert_true(id < 100);
    }
    assert_int_equal(rc, -EFBIG);
    /* all of the bound but for the reserve and one definition's frame */
    assert_true(at > (256 << 10) / 2);
    assert_int_equal(write_range(w, 1, seq, 500, noisy_record_of), -EFBIG);
    assert_int_equal(gwt_writer_close(w), -EFBIG);
    gwt_writer_stats(w, &stats);
    assert_int_equal(stats.error, EFBIG);
    free(w);
    assert_true(bytes_on_disk(f) <= 256 << 10);
    out = sum_recording(f->path, &coverage);
    assert_true(coverage.ended);
    assert_int_equal(coverage.bad_frames, 0);
    assert_true(coverage.aggregated > 0);
    assert_int_equal(out.calls, seq);
}

/* The disk says no in the middle of a frame: the torn part is cut off, the writer stops, the
 * dump stays readable and says why it is short. */
static void a_full_disk_stops_the_writer(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, limit;

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (rlim_t at = 100; at < 60000; at += at < 4000 ? 531 : 9973) {
        struct gwt_writer_options options = {.path = f->path, .max_bytes = 1 << 30};
        void *memory = aligned_alloc(64, (gwt_writer_size() + 63) & ~(size_t)63);
        struct gwt_writer_stats stats;
        struct gwt_writer *w;
        struct found found;
        uint64_t seq = 0;
        int rc;

        limit = before;
        limit.rlim_cur = at;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        rc = gwt_writer_open(&w, memory, gwt_writer_size(), &options, &f->header);
        if (at < 512) { /* not even the header: no file is left behind */
            assert_int_equal(rc, -EFBIG);
            assert_null(w);
            assert_false(exists(f, ""));
            free(memory);
            continue;
        }
        assert_int_equal(rc, 0);
        while (!rc) {
            rc = write_range(w, 1, seq, 100, record_of);
            seq += rc ? 0 : 100;
        }
        assert_int_equal(rc, -EFBIG);
        gwt_writer_stats(w, &stats);
        assert_true(stats.stopped);
        assert_int_equal(stats.error, EFBIG);
        assert_int_equal(write_range(w, 1, seq, 100, record_of), -EFBIG);
        assert_int_equal(gwt_writer_close(w), -EFBIG);
        free(memory);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);

        assert_true(bytes_on_disk(f) <= at);
        found = read_back(f->path);
        assert_int_equal(found.rc, 0);
        assert_int_equal(found.events, seq);
        assert_int_equal(found.coverage.bad_frames, 0);
        assert_int_equal(found.coverage.bad_bytes, 0);
        assert_false(found.coverage.torn);
        if (found.coverage.ended) { /* the cut left room for the last frames */
            struct gwt_trace *trace;

            assert_int_equal(gwt_open(f->path, &trace, NULL), 0);
            assert_int_equal(gwt_counter(trace, GWT_C_WRITE_ERRNO), EFBIG);
            gwt_close(trace);
        }
        unlink(f->path);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
}

/* No file system has 100 % free, so the floor is met from the start: events go to short tail
 * segments and sums, and none is lost. */
static void a_floor_of_free_space_is_kept(void **state)
{
    struct fixture *f = *state;
    struct gwt_writer_options options = {
        .path = f->path, .max_bytes = 1ull << 34, .min_free_pct = 100};
    void *memory = aligned_alloc(64, (gwt_writer_size() + 63) & ~(size_t)63);
    struct gwt_coverage coverage;
    struct gwt_writer *w;
    uint64_t seq = 0;
    struct stat st;

    assert_int_equal(gwt_writer_open(&w, memory, gwt_writer_size(), &options, &f->header), 0);
    write_definitions(w);
    for (; seq < 1000000; seq += 50000)
        assert_int_equal(write_range(w, 1, seq, 50000, noisy_record_of), 0);
    assert_int_equal(gwt_writer_close(w), 0);
    free(memory);
    assert_int_equal(stat(f->path, &st), 0);
    assert_true(st.st_size < 1 << 20);
    assert_true(bytes_on_disk(f) < 10 << 20); /* two segments of 4 MiB */
    sum_recording(f->path, &coverage);
    assert_int_equal(coverage.events + coverage.aggregated, seq);
    assert_int_equal(coverage.missing, 0);
}

/* Programs that close every descriptor they do not know, then open their own. */
static void a_stolen_descriptor_is_not_written_to(void **state)
{
    struct fixture *f = *state;
    struct gwt_writer *w = open_writer(f->path, 1 << 30, &f->header);
    struct gwt_writer_stats stats;
    char other[160];
    struct stat st;
    int fds[64], n = 0;

    assert_int_equal(write_range(w, 1, 0, 10, record_of), 0);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    snprintf(other, sizeof(other), "%s/theirs", f->directory);
    for (int fd = 200; fd < 264; fd++) { /* the writer's numbers are taken again */
        int theirs = open(other, O_CREAT | O_RDWR, 0600);

        assert_true(theirs >= 0);
        fds[n++] = dup2(theirs, fd);
        close(theirs);
    }
    assert_int_equal(write_range(w, 1, 10, 10, record_of), -EBADF);
    assert_int_equal(gwt_writer_close(w), -EBADF);
    gwt_writer_stats(w, &stats);
    assert_int_equal(stats.error, EBADF);
    free(w);
    assert_int_equal(stat(other, &st), 0);
    assert_int_equal(st.st_size, 0);
    while (n) /* and they are still open */
        assert_int_equal(close(fds[--n]), 0);
    assert_int_equal(read_back(f->path).events, 10);
}

static void abandoning_writes_nothing(void **state)
{
    struct fixture *f = *state;
    struct gwt_writer *w = open_writer(f->path, 1 << 30, &f->header);
    size_t before, after;

    assert_int_equal(write_range(w, 1, 0, 10, record_of), 0);
    free(read_file(f->path, &before));
    gwt_writer_abandon(w);
    assert_int_equal(write_range(w, 1, 10, 10, record_of), -EBADF);
    free(w);
    free(read_file(f->path, &after));
    assert_int_equal(before, after);
}

/* Killed between the aggregates and the removal of the segment they stand for, or before:
 * the segment's events count once. */
static void an_evicted_segment_counts_once(void **state)
{
    struct fixture *f = *state;
    struct gwt_writer *w = open_writer(f->path, 256 << 10, &f->header);
    char tail0[200], tail1[200];
    void *old0 = NULL;
    size_t size0 = 0;
    struct gwt_coverage coverage;
    uint64_t seq = 0;

    snprintf(tail0, sizeof(tail0), "%s.tail0", f->path);
    snprintf(tail1, sizeof(tail1), "%s.tail1", f->path);
    write_definitions(w);
    while (access(tail1, F_OK)) { /* generation 1 is complete when 2 begins */
        free(old0);
        old0 = access(tail0, F_OK) ? NULL : read_file(tail0, &size0);
        assert_int_equal(write_range(w, 1, seq, 500, noisy_record_of), 0);
        seq += 500;
    }
    free(old0);
    old0 = read_file(tail0, &size0);
    for (bool replaced = false; !replaced;) {
        size_t size;
        void *now;

        assert_int_equal(write_range(w, 1, seq, 500, noisy_record_of), 0);
        seq += 500;
        now = read_file(tail0, &size);
        replaced = size != size0 || memcmp(now, old0, size);
        free(now);
    }
    gwt_writer_abandon(w);
    free(w);
    sum_recording(f->path, &coverage);
    assert_int_equal(coverage.events + coverage.aggregated, seq);
    assert_int_equal(coverage.missing, 0);
    /* as if generation 1 had not been removed yet, and its successor not begun */
    write_file(tail0, old0, size0);
    free(old0);
    sum_recording(f->path, &coverage);
    assert_int_equal(coverage.missing, 0);
    assert_true(coverage.events + coverage.aggregated <= seq);
    assert_true(coverage.events + coverage.aggregated >= seq - 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_dump_reads_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_existing_file_is_left_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_bound_holds_and_nothing_is_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(head_and_tail_are_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rows_are_per_second, set_up, tear_down),
        cmocka_unit_test_setup_teardown(definitions_come_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_full_disk_stops_the_writer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_floor_of_free_space_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stolen_descriptor_is_not_written_to, set_up, tear_down),
        cmocka_unit_test_setup_teardown(abandoning_writes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_evicted_segment_counts_once, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
