/* Slots of the ring file: how many threads get one, and what the others are told. */
#include "capture/define.c"
#include "capture/ring.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

struct gw_options gw_options;
__thread struct gw_local gw_local __attribute__((tls_model("initial-exec")));

static unsigned said;
void gw_say(const char *format, ...)
{
    (void)format;
    said++;
}

static struct gw_thread threads[GWT_THREAD_SLOTS];

/* As many as RINGS_MAX has room for: 8 x 2 MiB, 16 x 512 KiB, the rest in rings of 64 KiB. */
#define FIT (24 + ((48 - 16 - 8) << 20) / (64 << 10))

static void test_threads_without_a_slot_need_not_ask(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FIT; i++) {
        assert_false(gw_ring_full());
        assert_int_equal(gw_ring_thread(&threads[i]), 0);
    }
    /* One must try to find out. */
    assert_false(gw_ring_full());
    assert_int_equal(gw_ring_thread(&threads[FIT]), -ENOSPC);
    assert_true(gw_ring_full());
    /* A thread ends and the drain has emptied its ring. */
    struct gwt_slot *slot = threads[30].slot;
    slot->returned = slot->open_t0 = 77;
    gw_ring_thread_close(&threads[30]);
    assert_true(gw_ring_full());
    gw_ring_slot_release(slot);
    assert_false(gw_ring_full());
    assert_int_equal(gw_ring_thread(&threads[FIT]), 0);
    assert_ptr_equal(threads[FIT].slot, slot);
    assert_int_equal(threads[FIT].id, FIT + 1);
    assert_int_equal(slot->thread, FIT + 1);
    assert_int_equal(slot->returned, 0); /* nothing of the thread before */
    assert_int_equal(slot->open_t0, 0);
    assert_int_equal(gw_ring_thread(&threads[FIT + 1]), -ENOSPC);
    assert_true(gw_ring_full());
}

/* KiB of files in this process's memory. */
static long files_kib(void)
{
    char line[256];
    long kib = 0, some;
    FILE *f = fopen("/proc/self/status", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "RssFile: %ld", &some) == 1 || sscanf(line, "RssShmem: %ld", &some) == 1)
            kib += some;
    fclose(f);
    return kib;
}

/* While the drain is late for threads that ended, those that begin make do with little: the large
 * rings are free again in a moment, and go to the threads after them. */
static void test_rings_for_a_moment(void **state)
{
    (void)state;
    files_kib(); /* what reading them takes is there from then on */
    assert_int_equal(gw_ring_thread(&threads[0]), 0);
    assert_int_equal(threads[0].room, 65536);
    gw_ring_thread_close(&threads[0]);
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(gw_ring_thread(&threads[i]), 0);
        assert_int_equal(threads[i].room, RECORDS_SPARE);
    }
    long before = files_kib();
    gw_ring_slot_release(threads[1].slot);
    assert_in_range(before - files_kib(), 192, 320); /* of 32 bytes each */
    gw_ring_slot_release(threads[0].slot);
    assert_int_equal(gw_ring_thread(&threads[3]), 0);
    assert_ptr_equal(threads[3].slot, threads[0].slot);
    assert_int_equal(gw_ring_thread(&threads[4]), 0);
    assert_ptr_equal(threads[4].slot, threads[1].slot);
    assert_in_range(files_kib(), before - 64, before + 64);
    for (int i = 5; i < 12; i++) { /* nobody ended: eight large ones in all, as ever */
        assert_int_equal(gw_ring_thread(&threads[i]), 0);
        assert_int_equal(threads[i].room, 65536);
    }
    assert_int_equal(gw_ring_thread(&threads[12]), 0);
    assert_int_equal(threads[12].room, 16384);
}

/* What was drained of the definitions leaves memory, and stays in the file for readers. */
static void test_definitions_leave_memory(void **state)
{
    static uint8_t text[64 << 10], out[sizeof text];
    long before = files_kib();
    uint64_t first;
    (void)state;
    memset(text, 'a', sizeof text);
    for (unsigned i = 0; i < 3 * GWT_DEFLOG_SIZE / sizeof text; i++) {
        assert_true(gw_define(GWT_DEF_STRING, i + 1, NULL, 0, text, sizeof text));
        size_t size = gw_define_pending(&first);
        assert_int_equal(size, sizeof text + sizeof(struct gwt_def));
        gw_define_copy(first + sizeof(struct gwt_def), out, sizeof text);
        assert_memory_equal(out, text, sizeof text);
        gw_define_drained(first, size);
        assert_int_equal(gw_define_pending(&first), 0);
    }
    assert_true(files_kib() - before < 1024); /* of 4096 that the window has */
}

/* A file descriptor that takes nothing stands for a full disk. */
static void test_room_that_is_not_to_be_had(void **state)
{
    (void)state;
    struct gwt_file real = ring;
    said = 0;
    assert_int_equal(gwt_file_adopt(open("/dev/null", O_RDONLY | O_CLOEXEC), &ring), 0);
    for (unsigned i = 0; i < FAILURES_MAX; i++) {
        assert_false(gw_ring_full());
        assert_int_equal(gw_ring_thread(&threads[0]), -ENOSPC);
    }
    assert_true(gw_ring_full());
    assert_int_equal(said, 0); /* the drain does, where it has nothing worse to say */
    gw_ring_tell_no_room();
    gw_ring_tell_no_room();
    assert_int_equal(said, 1);
    gwt_file_close(&ring);
    ring = real;
}

/* The program closed our descriptor, and its number is now a file of the program's own. */
static void test_descriptor_that_is_the_programs(void **state)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "%s/own", (const char *)*state);
    int own = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(own >= 0);
    said = 0;
    assert_int_equal(dup3(own, ring.fd, O_CLOEXEC), ring.fd);
    assert_int_equal(gw_ring_thread(&threads[0]), -ENOSPC);
    gw_ring_tell_no_room();
    assert_int_equal(said, 1);
    assert_int_equal(fstat(own, &st), 0);
    assert_int_equal(st.st_size, 0);
    close(own);
    close(ring.fd);
    unlink(path);
}

/* Once is an accident: the next thread gets its ring. */
static void test_room_that_was_not_to_be_had_once(void **state)
{
    struct gwt_file real = ring;
    (void)state;
    said = 0;
    ring.fd = -1;
    assert_int_equal(gw_ring_thread(&threads[0]), -ENOSPC);
    ring = real;
    gw_ring_tell_no_room();
    assert_int_equal(said, 1);
    assert_int_equal(gw_ring_thread(&threads[0]), 0);
}

static int create_ring(void **state)
{
    static char directory[32];
    static char path[128], ring_path[256];
    struct gwt_file_header file = {.pid = 1};
    gw_ring_forget();
    strcpy(directory, "/tmp/gpuwait-ring-XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    strcpy(gw_options.ring, "dump");
    snprintf(path, sizeof path, "%s/x.gwt", directory);
    *state = directory;
    return gw_ring_create(path, &file, ring_path);
}

static int remove_ring(void **state)
{
    gw_ring_unlink();
    return rmdir(*state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_ring, remove_ring)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_threads_without_a_slot_need_not_ask),
        TEST(test_rings_for_a_moment),
        TEST(test_definitions_leave_memory),
        TEST(test_room_that_is_not_to_be_had),
        TEST(test_descriptor_that_is_the_programs),
        TEST(test_room_that_was_not_to_be_had_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
