/* The record path: what becomes one record, what two, and what happens when the ring is
 * full or a call never returns. Rings and calls are made by hand; right values are counted
 * by the test as it issues them. */
#include "capture/record.c"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "test_capture_fake.h"

static struct gwt_ring_header header;
struct gwt_ring_header *gw_header = &header;
static uint32_t alive = 1;
uint32_t *gw_alive = &alive;
uint32_t gw_state = GW_ACTIVE, gw_recording = 1;
uint32_t gw_clock = GWT_CLOCK_MONOTONIC;
struct gw_options gw_options;
static uint64_t now;
static uint64_t tick(void)
{
    return now += 10;
}
uint64_t (*gw_clock_test)(void) = tick;

static struct gwt_slot slot;
static struct gwt_record ring[8];
static struct gw_thread thread;
static uint32_t signatures_asked;

bool gw_start(void)
{
    return true;
}
bool gw_driver_ready(void)
{
    return true;
}
void gw_after_fork(void)
{
}
void gw_drain_kick(void)
{
}
struct gw_thread *gw_thread_get(void)
{
    return gw_self;
}
uint32_t gw_signature_slow(struct gw_thread *t, const struct gw_frame *f)
{
    (void)t, (void)f;
    return ++signatures_asked;
}
uint16_t gw_stream_slow(struct gw_thread *t, const struct gw_frame *f)
{
    (void)t, (void)f;
    return 7;
}
uint32_t gw_graph_id(const void *exec, uint16_t *flags)
{
    (void)flags;
    return exec ? 42 : 0;
}

/* The sampler is off here: nothing is asked of it. */
uint32_t gw_timing;
uint64_t gw_awaited;
struct gw_ahead gw_ahead;
void gw_stream_given(uint16_t stream, const struct gw_frame *f, uint32_t arg, uint64_t t1)
{
    (void)stream, (void)f, (void)arg, (void)t1;
    fail();
}

/* Time between calls is too short here for a section: test_capture_section.c has those. */
void gw_section_ends(struct gw_thread *t, struct gw_frame *f)
{
    (void)f;
    assert_int_equal(t->slot->returned, 0);
}
void gw_section_ended(struct gw_thread *t, uint64_t t0)
{
    (void)t, (void)t0;
}
void gw_section_begins(struct gw_thread *t, uint64_t t1)
{
    (void)t, (void)t1;
}

static int reset(void **state)
{
    (void)state;
    memset(&slot, 0, sizeof slot);
    memset(&thread, 0, sizeof thread);
    memset(&header, 0, sizeof header);
    memset(ring, 0, sizeof ring);
    thread.slot = &slot;
    thread.ring = ring;
    thread.mask = 7;
    thread.room = 8;
    gw_self = &thread;
    gw_top = NULL;
    gw_options.block_when_full = false;
    gw_recording = 1;
    signatures_asked = 0;
    now = 1000;
    return 0;
}

/* One call, as a wrapper makes it. */
static void call(unsigned api, unsigned kind, unsigned level, void (*inside)(void), int status)
{
    struct gw_frame own, *f = gw_enter(&own, GW_FRAME_WORD(api, kind, level));
    if (!f) {
        if (inside)
            inside();
        return;
    }
    f->shape = (struct gw_shape){.func = (const void *)0x5000};
    f->value = 64;
    if (inside)
        inside();
    gw_leave(&own, f, gw_returned(&own), status, kind);
}

static void driver_launch(void)
{
    call(2, GWT_LAUNCH, GWT_LEVEL_DRIVER, NULL, 0);
}

static void two_driver_copies(void)
{
    call(3, GWT_COPY, GWT_LEVEL_DRIVER, NULL, 0);
    call(3, GWT_COPY, GWT_LEVEL_DRIVER, NULL, 0);
}

static void test_two_levels_one_record(void **state)
{
    (void)state;
    call(1, GWT_LAUNCH, GWT_LEVEL_RUNTIME, driver_launch, 0);
    assert_int_equal(slot.head, 1);
    assert_int_equal(ring[0].api, 1); /* the API that the program called */
    assert_int_equal(ring[0].flags, GWT_F_DRIVER);
    assert_int_equal(ring[0].arg, 1);
    assert_int_equal(ring[0].stream, 7);
    assert_int_equal(header.counters[GWT_C_HOLES], 0);
    call(1, GWT_LAUNCH, GWT_LEVEL_RUNTIME, driver_launch, 0);
    assert_int_equal(signatures_asked, 1); /* the second comes from the cache */
}

static void test_runtime_launch_without_driver_is_a_hole(void **state)
{
    (void)state;
    call(1, GWT_LAUNCH, GWT_LEVEL_RUNTIME, NULL, 0);
    assert_true(ring[0].flags & GWT_F_HOLE);
    assert_int_equal(ring[0].arg, 0);
    assert_int_equal(header.counters[GWT_C_HOLES], 1);
    call(1, GWT_LAUNCH, GWT_LEVEL_RUNTIME, NULL, 98); /* a failed launch is none */
    assert_int_equal(header.counters[GWT_C_HOLES], 1);
    assert_int_equal(ring[1].status, 98);
}

static void test_another_kind_gets_its_own(void **state)
{
    (void)state;
    call(4, GWT_ALLOC, GWT_LEVEL_RUNTIME, driver_launch, 0);
    assert_int_equal(slot.head, 2);
    assert_int_equal(ring[0].api, 2); /* by time of return: the inner first */
    assert_true(ring[0].flags & GWT_F_NESTED);
    assert_int_equal(ring[1].api, 4);
    assert_false(ring[1].flags & GWT_F_NESTED);
}

static void test_second_driver_call_gets_its_own(void **state)
{
    (void)state;
    call(5, GWT_COPY, GWT_LEVEL_RUNTIME, two_driver_copies, 0);
    assert_int_equal(slot.head, 2);
    assert_int_equal(ring[0].api, 3);
    assert_int_equal(ring[1].api, 5);
}

static void test_same_level_is_one_call(void **state)
{
    (void)state;
    call(6, GWT_LAUNCH, GWT_LEVEL_DRIVER, driver_launch, 0);
    assert_int_equal(slot.head, 1);
    assert_int_equal(ring[0].api, 6);
}

static void test_polls_are_counted_only(void **state)
{
    (void)state;
    call(9, GWT_POLL, GWT_LEVEL_RUNTIME, NULL, 600);
    call(9, GWT_POLL, GWT_LEVEL_DRIVER, NULL, 0);
    assert_int_equal(slot.head, 0);
    assert_int_equal(header.counters[GWT_C_POLLS], 2);
}

static void test_full_ring_drops_newest_and_tells(void **state)
{
    (void)state;
    for (int i = 0; i < 11; i++)
        driver_launch();
    assert_int_equal(slot.head, 8);
    assert_int_equal(header.counters[GWT_C_DROPPED], 3);
    assert_int_equal(slot.lost, 3);
    uint64_t kept = ring[0].t0;
    assert_true(kept < ring[7].t0);
    slot.tail = 1; /* one free place is not enough for the LOST record and the event */
    driver_launch();
    assert_int_equal(header.counters[GWT_C_DROPPED], 4);
    slot.tail = 8;
    driver_launch();
    assert_int_equal(slot.head, 10);
    assert_int_equal(ring[0].api, GWT_API_PSEUDO + GWT_LOST);
    assert_int_equal(ring[0].value, 4);
    assert_true(ring[0].t0 > ring[7].t0 && ring[0].dur > 0);
    assert_int_equal(ring[1].api, 2);
    assert_int_equal(thread.lost, 0);
}

static void test_block_drops_after_its_bound(void **state)
{
    (void)state;
    gw_options.block_when_full = true;
    for (int i = 0; i < 9; i++)
        driver_launch(); /* nobody drains: the ninth waits a second, then is dropped */
    assert_int_equal(slot.head, 8);
    assert_int_equal(header.counters[GWT_C_DROPPED], 1);
}

static jmp_buf out;

__attribute__((noinline)) static void throws(void)
{
    struct gw_frame own;
    gw_enter(&own, GW_FRAME_WORD(8, GWT_SYNC, GWT_LEVEL_RUNTIME));
    longjmp(out, 1);
}

/* Deeper in the stack than any call that the test makes afterwards. */
__attribute__((noinline)) static void throws_deep(void)
{
    char *room = __builtin_alloca(8192);
    __asm__ volatile("" : : "r"(room) : "memory"); /* it is used, as far as a compiler knows */
    throws();
    __asm__ volatile("" : : "r"(room) : "memory");
}

static void test_exception_past_a_wrapper(void **state)
{
    (void)state;
    if (!setjmp(out))
        throws_deep();
    assert_non_null(gw_top);
    driver_launch();
    assert_int_equal(slot.head, 2);
    assert_int_equal(ring[0].api, 8);
    assert_int_equal(ring[0].flags, GWT_F_UNWOUND);
    assert_int_equal(ring[1].api, 2);
    assert_false(ring[1].flags & GWT_F_NESTED);
    assert_null(gw_top);
}

/* The same, and the next call comes from deeper in the stack, where an address alone would
 * take the dead frame for a caller's. */
__attribute__((noinline)) static void launch_deep(void)
{
    char *room = __builtin_alloca(16384);
    __asm__ volatile("" : : "r"(room) : "memory");
    driver_launch();
    __asm__ volatile("" : : "r"(room) : "memory");
}

__attribute__((noinline)) static void overwrite(void)
{
    char *room = __builtin_alloca(16384);
    memset(room, 0x5a, 16384);
    __asm__ volatile("" : : "r"(room) : "memory");
}

static void test_exception_then_deeper_call(void **state)
{
    (void)state;
    if (!setjmp(out))
        throws_deep();
    overwrite();
    launch_deep();
    assert_int_equal(slot.head, 2);
    assert_int_equal(ring[0].flags, GWT_F_UNWOUND);
    assert_false(ring[1].flags & GWT_F_NESTED);
    assert_null(gw_top);
}

static void test_signal_handler_inside_a_record(void **state)
{
    (void)state;
    gw_local.busy = 1;
    driver_launch();
    assert_int_equal(slot.head, 0);
    assert_int_equal(header.counters[GWT_C_NESTED_SIGNAL], 1);
    gw_local.busy = 0;
}

static void test_long_call(void **state)
{
    (void)state;
    struct gw_frame own, *f = gw_enter(&own, GW_FRAME_WORD(8, GWT_SYNC, GWT_LEVEL_DRIVER));
    now += 3ull << 32;
    gw_leave(&own, f, gw_returned(&own), 0, GWT_SYNC);
    assert_true(ring[0].flags & GWT_F_LONG);
    assert_int_equal(ring[0].dur, (3ull << 32) >> 10);
}

static void test_switched_off_keeps_books(void **state)
{
    (void)state;
    gw_recording = 0;
    driver_launch();
    assert_int_equal(slot.head, 0);
    assert_null(gw_top);
    gw_recording = 1;
    driver_launch();
    assert_int_equal(slot.head, 1);
}

static void test_open_call_is_shown_while_inside(void **state)
{
    (void)state;
    struct gw_frame own, *f = gw_enter(&own, GW_FRAME_WORD(8, GWT_SYNC, GWT_LEVEL_DRIVER));
    assert_int_equal(slot.open_api, 8);
    assert_int_equal(slot.open_t0, own.t0);
    assert_true(gw_slot_inside(&slot));
    gw_leave(&own, f, gw_returned(&own), 0, GWT_SYNC);
    assert_int_equal(slot.returned, now);
    assert_false(gw_slot_inside(&slot));
    /* a poll ends too, though it leaves no record */
    f = gw_enter(&own, GW_FRAME_WORD(9, GWT_POLL, GWT_LEVEL_DRIVER));
    assert_true(gw_slot_inside(&slot));
    gw_leave(&own, f, gw_returned(&own), 0, GWT_POLL);
    assert_false(gw_slot_inside(&slot));
}

#define TEST(name) cmocka_unit_test_setup(name, reset)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_two_levels_one_record),
        TEST(test_runtime_launch_without_driver_is_a_hole),
        TEST(test_another_kind_gets_its_own),
        TEST(test_second_driver_call_gets_its_own),
        TEST(test_same_level_is_one_call),
        TEST(test_polls_are_counted_only),
        TEST(test_full_ring_drops_newest_and_tells),
        TEST(test_block_drops_after_its_bound),
        TEST(test_exception_past_a_wrapper),
        TEST(test_exception_then_deeper_call),
        TEST(test_signal_handler_inside_a_record),
        TEST(test_long_call),
        TEST(test_switched_off_keeps_books),
        TEST(test_open_call_is_shown_while_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
