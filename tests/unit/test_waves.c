/* Rhythm of waits over steps: series whose period is known, or that have none. */
/* clang-format off: cmocka.h needs these first */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "analysis/attribute_internal.h"

#include <stdlib.h>

static uint32_t state = 1;

/* About `ms`, give or take a tenth. */
static double about(double ms)
{
    state = state * 1664525 + 1013904223;
    return ms * 1e6 * (0.9 + 0.2 * (state >> 8) / 0x1p24);
}

static void one_long_in_so_many(void **arg)
{
    (void)arg;
    for (unsigned every = 2; every <= WAVES; every += every < 8 ? 1 : 7) {
        struct waves w = {0};
        for (uint32_t i = 0; i < 12 * every; i++)
            if (i % every == every / 2) /* others do not wait at all */
                gwa_waves_add(&w, 100 + i, about(40));
        assert_int_equal(gwa_waves_period(&w), every);
    }
}

/* Four workers, of which two have drifted apart from the others, and go on drifting. */
static void two_long_ones_that_move(void **arg)
{
    struct waves w = {0};
    (void)arg;
    for (uint32_t i = 0; i < 80; i++) {
        gwa_waves_add(&w, i, about(1));
        if (i % 4 == 3)
            gwa_waves_add(&w, i, about(80 - i / 2.0));
        if (i % 4 == 0)
            gwa_waves_add(&w, i, about(10 + i / 2.0));
    }
    assert_int_equal(gwa_waves_period(&w), 4);
}

static void no_rhythm(void **arg)
{
    (void)arg;
    struct waves even = {0}, slow = {0}, random = {0}, once = {0}, few = {0}, none = {0};
    for (uint32_t i = 0; i < 400; i++) {
        gwa_waves_add(&even, i, about(40));
        gwa_waves_add(&slow, i, about(i < 200 ? 5 : 80)); /* a phase, no rhythm */
        state = state * 1664525 + 1013904223;
        if (state >> 30 == 0)
            gwa_waves_add(&random, i, about(40));
    }
    gwa_waves_add(&once, 5, 1e9);
    gwa_waves_add(&once, 4000000, 1e9);
    for (uint32_t i = 0; i < 20; i += 4) /* too few rounds to tell */
        gwa_waves_add(&few, i, about(40));
    assert_int_equal(gwa_waves_period(&even), 0);
    assert_int_equal(gwa_waves_period(&slow), 0);
    assert_int_equal(gwa_waves_period(&random), 0);
    assert_int_equal(gwa_waves_period(&once), 0);
    assert_int_equal(gwa_waves_period(&few), 0);
    assert_int_equal(gwa_waves_period(&none), 0);
}

/* A pause in the loop, and steps that a damaged file puts anywhere. */
static void interrupted_and_hostile(void **arg)
{
    struct waves w = {0}, any = {0};
    (void)arg;
    for (uint32_t i = 0; i < 200; i += 5)
        gwa_waves_add(&w, i < 100 ? i : i + 100000, about(30));
    assert_int_equal(gwa_waves_period(&w), 5);
    for (uint32_t i = 0; i < 2000; i++) {
        state = state * 1664525 + 1013904223;
        gwa_waves_add(&any, i % 3 ? state : UINT32_MAX - 1, i % 5 ? 1e300 : -1e300);
    }
    gwa_waves_period(&any);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_long_in_so_many),
        cmocka_unit_test(two_long_ones_that_move),
        cmocka_unit_test(no_rhythm),
        cmocka_unit_test(interrupted_and_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
