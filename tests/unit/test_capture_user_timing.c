/* Events by which the program measures: from when until when a stream is between two of them. */
#include "capture/user_timing.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define HOLD 1000u

static char handles[8];
#define A (&handles[0])
#define B (&handles[1])
#define C (&handles[2])
#define D (&handles[3])
static uint64_t now;

static int fresh(void **state)
{
    (void)state;
    gw_user_timing_reset();
    now = 10 * HOLD;
    for (unsigned i = 0; i < sizeof handles; i++)
        gw_event_created(&handles[i], 0);
    return 0;
}

static void record(const void *event, uint16_t stream)
{
    gw_event_recorded(event, stream, ++now);
}

static bool times(uint16_t stream)
{
    return gw_user_times(stream, now, HOLD);
}

/* An iteration that is timed: once, before the program has read what it took. */
static void first_interval(void)
{
    record(A, 1);
    record(B, 1);
    gw_events_read(A, B);
    now += 2 * HOLD;
}

static void unknown_holds(void **state)
{
    (void)state;
    assert_false(times(1));
    record(A, 1);
    assert_true(times(1));
    assert_false(times(2));
    now += HOLD;
    assert_false(times(1));
}

static void known_ends(void **state)
{
    (void)state;
    first_interval();
    for (int i = 0; i < 3; i++) {
        assert_false(times(1));
        record(A, 1);
        assert_true(times(1));
        record(B, 1);
        assert_false(times(1));
        gw_events_read(A, B);
    }
    record(A, 1); /* its end never comes */
    now += HOLD - 1;
    assert_true(times(1));
    now += 1;
    assert_false(times(1));
}

/* Its first event was recorded before any was looked at: no sign that it lies in another stream. */
static void begun_before_us(void **state)
{
    record(B, 1);
    gw_events_read(A, B);
    now += 2 * HOLD;
    known_ends(state);
}

/* As DDP does: forward from A to B, backward from B to C, communication from B on to D. */
static void several_of_one_iteration(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        record(A, 1);
        assert_true(times(1));
        record(B, 1);
        assert_true(times(1));
        record(C, 1);
        assert_true(times(1));
        record(D, 1);
        assert_int_equal(times(1), i == 0);
        gw_events_read(A, B);
        gw_events_read(B, C);
        gw_events_read(B, D);
        now += 2 * HOLD;
    }
}

/* The middle of three is an end as well as a beginning. */
static void chain(void **state)
{
    (void)state;
    record(A, 1);
    record(B, 1);
    record(C, 1);
    gw_events_read(A, B);
    gw_events_read(B, C);
    now += 2 * HOLD;
    record(A, 1);
    record(B, 1);
    assert_true(times(1));
    record(C, 1);
    assert_false(times(1));
}

/* Handles change places: what was an end begins, so it tells nothing. */
static void end_without_a_beginning(void **state)
{
    (void)state;
    first_interval();
    record(B, 1);
    assert_true(times(1));
}

static void unknown_within_known(void **state)
{
    (void)state;
    first_interval();
    record(A, 1);
    record(C, 1);
    record(B, 1);
    assert_true(times(1)); /* C may have begun something */
}

static void over_two_streams(void **state)
{
    (void)state;
    record(A, 1);
    record(B, 2);
    gw_events_read(A, B);
    now += 2 * HOLD;
    record(A, 1);
    record(B, 2);
    assert_true(times(1));
    now += HOLD;
    assert_false(times(1));
}

static void never_read(void **state)
{
    (void)state;
    for (unsigned i = 0; i < UNREAD; i++)
        record(A, 1);
    assert_true(times(1));
    now += HOLD;
    record(A, 1);
    assert_false(times(1));
}

/* A new event in an old one's place measures what is not known yet. */
static void made_anew(void **state)
{
    (void)state;
    first_interval();
    gw_event_created(A, 0);
    gw_event_created(B, 0);
    record(A, 1);
    record(B, 1);
    assert_true(times(1));
}

static void without_timing(void **state)
{
    (void)state;
    gw_event_created(A, 0);
    assert_true(gw_event_recorded(A, 2, ++now));
    gw_event_created(A, 2);
    assert_false(gw_event_recorded(A, 2, ++now));
    record(A, 1);
    assert_false(times(1));
    gw_events_read(A, B);
    gw_events_read(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(unknown_holds, fresh),
        cmocka_unit_test_setup(known_ends, fresh),
        cmocka_unit_test_setup(begun_before_us, fresh),
        cmocka_unit_test_setup(several_of_one_iteration, fresh),
        cmocka_unit_test_setup(chain, fresh),
        cmocka_unit_test_setup(end_without_a_beginning, fresh),
        cmocka_unit_test_setup(unknown_within_known, fresh),
        cmocka_unit_test_setup(over_two_streams, fresh),
        cmocka_unit_test_setup(never_read, fresh),
        cmocka_unit_test_setup(made_anew, fresh),
        cmocka_unit_test_setup(without_timing, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
