/* Slots of the ring file: how many threads get one, and what the others are told. */
#include "capture/define.c"
#include "capture/ring.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

struct gw_options gw_options;

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

static int create_ring(void **state)
{
    static char directory[] = "/tmp/gpuwait-ring-XXXXXX";
    static char path[128], ring_path[256];
    struct gwt_file_header file = {.pid = 1};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_without_a_slot_need_not_ask),
    };
    return cmocka_run_group_tests(tests, create_ring, remove_ring);
}
