/* --range: what belongs to an NVTX range of a name, and peaks of memory inside it. */
#include "test_analysis_fake.h"

#include "analysis/ranges.h"

static void entry_decides_whatever_the_thread(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);     /* before */
    sync_stream(t, 90, 120, S_A); /* entered before, returns inside: not */
    range_push(t, 1, 100, R_STEP);
    launch(t, 130, S_A, K_ADD);                               /* inside */
    fake_call(t, 2, 140, 141, API_LAUNCH, S_A)->arg = K_GEMM; /* the autograd thread: inside */
    sync_stream(t, 150, 260, S_A); /* entered inside, returns after: inside */
    range_pop(t, 1, 200);
    launch(t, 270, S_A, K_ADD); /* after */
    struct gwa_process *p = analyse(t, "step");
    assert_int_equal(p->intervals, 1);
    assert_int_equal(p->launches.calls, 2);
    assert_int_equal(p->syncs.calls, 1);
    assert_near(p->syncs.waited_ms, 0.110, 1e-9);
    assert_int_equal(p->devices[0].kernels_executed, 2);
    assert_int_equal(p->threads_count, 2);
    assert_int_equal(p->polls, -1); /* counted for the whole process only */
    assert_true(isnan(p->quality.own_overhead_pct));
    assert_int_equal(p->quality.recorded, t->count);
    gwa_free(p);
    free(t);
}

static void ranges_nest_and_repeat(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    for (int step = 0; step < 3; step++) {
        int64_t at = step * 1000;
        range_push(t, 1, at, R_OTHER);
        launch(t, at + 10, S_A, K_ADD);
        range_push(t, 1, at + 100, R_STEP);
        launch(t, at + 110, S_A, K_ADD);
        range_push(t, 1, at + 200, R_STEP); /* in itself: counted once */
        launch(t, at + 210, S_A, K_ADD);
        range_pop(t, 1, at + 300);
        launch(t, at + 310, S_A, K_ADD);
        range_pop(t, 1, at + 400);
        launch(t, at + 410, S_A, K_ADD);
        range_pop(t, 1, at + 500);
        launch(t, at + 510, S_A, K_ADD);
    }
    struct gwa_process *p = analyse(t, "step");
    assert_int_equal(p->intervals, 3);
    assert_int_equal(p->launches.calls, 9);
    gwa_free(p);
    p = analyse(t, "other");
    assert_int_equal(p->launches.calls, 15);
    gwa_free(p);
    p = analyse(t, NULL);
    assert_int_equal(p->launches.calls, 18);
    gwa_free(p);
    free(t);
}

static void stacks_are_per_thread(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    range_push(t, 1, 0, R_STEP);
    range_push(t, 2, 10, R_OTHER);
    range_pop(t, 1, 100); /* closes "step", though "other" was opened later */
    launch(t, 150, S_A, K_ADD);
    range_pop(t, 2, 200);
    struct gwa_process *p = analyse(t, "step");
    assert_int_equal(p->launches.calls, 0);
    gwa_free(p);
    p = analyse(t, "other");
    assert_int_equal(p->launches.calls, 1);
    gwa_free(p);
    free(t);
}

static struct gwt_event *start_end(struct gwt_trace *t, unsigned thread, int64_t at, unsigned kind,
                                   unsigned name, uint64_t id)
{
    struct gwt_event *e = fake_add(t, thread, at, at, kind);
    e->arg = name;
    e->value = id;
    return e;
}

static void start_and_end_go_by_their_id(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    start_end(t, 1, 0, GWT_RANGE_START, R_STEP, 100);
    start_end(t, 1, 10, GWT_RANGE_START, R_OTHER, 101);
    start_end(t, 1, 20, GWT_RANGE_START, R_STEP, 102);
    start_end(t, 2, 50, GWT_RANGE_END, 0, 100); /* on another thread, out of order */
    launch(t, 60, S_A, K_ADD);                  /* inside the second */
    start_end(t, 1, 80, GWT_RANGE_END, 0, 102);
    launch(t, 90, S_A, K_ADD); /* inside "other" only */
    start_end(t, 1, 95, GWT_RANGE_END, 0, 101);
    start_end(t, 1, 96, GWT_RANGE_END, 0, 999); /* of one opened before recording */
    struct gwa_process *p = analyse(t, "step");
    assert_int_equal(p->intervals, 1);
    assert_int_equal(p->launches.calls, 1);
    gwa_free(p);
    p = analyse(t, "other");
    assert_int_equal(p->launches.calls, 2);
    gwa_free(p);
    free(t);
}

static void what_is_never_closed_lasts_to_the_end(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    range_pop(t, 1, 0); /* of a range opened before recording */
    launch(t, 5, S_A, K_ADD);
    range_push(t, 1, 10, R_STEP);
    range_push(t, 1, 20, R_OTHER);
    launch(t, 30, S_A, K_ADD);
    launch(t, 1000, S_A, K_ADD)->t1_ns = 1000 * US; /* the very last */
    struct gwa_process *p = analyse(t, "step");
    assert_int_equal(p->launches.calls, 2);
    gwa_free(p);
    free(t);
}

static void no_such_range_lists_those_there_are(void **state)
{
    struct gwt_trace *t = fake_new();
    struct gwa_options options = {.range = "nosuch"};
    struct gwa_process *p;
    struct gwt_error error;
    (void)state;
    launch(t, 0, S_A, K_ADD);
    assert_int_equal(gwa_analyse(t, &options, &p, &error), -ENOENT);
    assert_string_equal(error.text,
                        "no NVTX range named \"nosuch\"; the recording has no NVTX range at all");
    for (unsigned i = 0; i < 12; i++) {
        static const char *const names[] = {"n0", "n1", "n2", "n3", "n4",  "n5",
                                            "n6", "n7", "n8", "n9", "n10", "n11"};
        t->strings[20 + i] = names[i];
        range_push(t, 1, 10 + 4 * i, 20 + i);
        range_pop(t, 1, 11 + 4 * i);
        range_push(t, 1, 12 + 4 * i, 20 + i); /* each once in the list */
        range_pop(t, 1, 13 + 4 * i);
    }
    assert_int_equal(gwa_analyse(t, &options, &p, &error), -ENOENT);
    assert_string_equal(error.text, "no NVTX range named \"nosuch\"; there are: \"n0\", \"n1\", "
                                    "\"n2\", \"n3\", \"n4\", \"n5\", \"n6\", \"n7\", \"n8\", \"n9\""
                                    ", and more");
    free(t);
}

static void peaks_of_the_whole_recording(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    allocator(t, 0, 512, 2048);
    allocator(t, 10, 118838272, 142606336);
    allocator(t, 10, 1024, 142606336); /* freed within the same microsecond */
    allocator(t, 20, 2048, 4096);
    launch(t, 30, S_A, K_ADD);
    struct gwa_process *p = analyse(t, NULL);
    assert_int_equal(p->devices[0].memory.peak_allocated_bytes, 118838272);
    assert_int_equal(p->devices[0].memory.peak_reserved_bytes, 142606336);
    gwa_free(p);
    free(t);
}

static void no_report_is_not_a_peak_of_zero(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 30, S_A, K_ADD);
    struct gwa_process *p = analyse(t, NULL);
    assert_int_equal(p->devices[0].memory.peak_allocated_bytes, -1);
    assert_int_equal(p->devices[0].memory.peak_reserved_bytes, -1);
    gwa_free(p);
    free(t);
}

static void peaks_of_a_range(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    allocator(t, 10, 9000, 10000); /* the greatest, but before */
    allocator(t, 20, 5000, 10000); /* what is held as the range begins counts */
    range_push(t, 1, 100, R_STEP);
    allocator(t, 110, 4000, 10000);
    allocator(t, 120, 4500, 10000);
    allocator(t, 130, 3000, 6000);
    range_pop(t, 1, 200);
    allocator(t, 300, 8000, 20000); /* after */
    range_push(t, 1, 400, R_OTHER); /* nothing happens in here, 8000 is held */
    range_pop(t, 1, 410);
    struct gwa_process *p = analyse(t, "step");
    assert_int_equal(p->devices[0].memory.peak_allocated_bytes, 5000);
    assert_int_equal(p->devices[0].memory.peak_reserved_bytes, 10000);
    gwa_free(p);
    p = analyse(t, "other");
    assert_int_equal(p->devices[0].memory.peak_allocated_bytes, 8000);
    assert_int_equal(p->devices[0].memory.peak_reserved_bytes, 20000);
    gwa_free(p);
    free(t);
}

static void host_time_per_launch_does_not_span_the_edge(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    for (int step = 0; step < 3; step++) {
        int64_t at = step * 10000;
        range_push(t, 1, at, R_STEP);
        launch(t, at + 10, S_A, K_ADD);
        launch(t, at + 17, S_A, K_ADD);
        range_pop(t, 1, at + 30);
        launch(t, at + 5000, S_A, K_ADD);
    }
    struct gwa_process *p = analyse(t, "step");
    assert_near(p->launches.host_us_per_launch, 7, 0.07);
    gwa_free(p);
    free(t);
}

/* A step is a range of 1,000 us that holds two launches; the first in "other" takes longer. */
static struct gwa_process *stepped(bool whole)
{
    struct gwt_trace *t = fake_new();
    struct gwa_options options = {.range = "other", .step_range = "step", .whole = whole};
    struct gwa_process *p = NULL;
    struct gwt_error error;
    int64_t at = 0;
    for (int step = 0; step < 12; step++) {
        if (step == 2)
            range_push(t, 1, at, R_OTHER);
        range_push(t, 1, at, R_STEP);
        launch(t, at + 10, S_A, K_ADD);
        launch(t, at + (step == 2 ? 4900 : 900), S_A, K_GEMM);
        range_pop(t, 1, at + (step == 2 ? 4950 : 950));
        at += step == 2 ? 5000 : 1000;
        if (step == 9)
            range_pop(t, 1, at - 10);
    }
    assert_int_equal(gwa_analyse(t, &options, &p, &error), 0);
    free(t);
    return p;
}

static void steps_are_those_inside(void **state)
{
    (void)state;
    struct gwa_process *p = stepped(false);
    assert_int_equal(p->launches.calls, 16); /* of 8 steps, the first too */
    assert_int_equal(p->steps.all, 8);
    assert_int_equal(p->steps.count, 7);
    assert_near(p->steps.ms.median, 1, 1e-9);
    assert_near(p->steps.launches.median, 2, 1e-9);
    /* from the second's begin to the last call's return: seven steps less what follows that */
    assert_near(p->window.wall_s, 6.9e-3, 0.02e-3);
    assert_near(p->window.excluded_s, 5e-3, 0.02e-3);
    gwa_free(p);
    p = stepped(true);
    assert_int_equal(p->steps.count, 7);
    assert_near(p->window.wall_s, 11.9e-3, 0.02e-3);
    assert_true(isnan(p->window.excluded_s));
    gwa_free(p);
}

static void ends_that_are_too_far_apart(void **state)
{
    struct gwa_interval far[] = {{INT64_MIN, -1}, {0, 10}, {20, INT64_MAX}};
    struct gwa_ranges all = {.all = true}, some = {.list = far, .count = 3};
    (void)state;
    assert_true(gwa_ranges_overlap(&all, -5, 7) == 12);
    assert_true(gwa_ranges_overlap(&all, INT64_MIN, INT64_MAX) == INT64_MAX);
    assert_true(gwa_ranges_overlap(&some, -5, 25) == 4 + 10 + 5);
    assert_true(gwa_ranges_overlap(&some, INT64_MIN, INT64_MAX) == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entry_decides_whatever_the_thread),
        cmocka_unit_test(ends_that_are_too_far_apart),
        cmocka_unit_test(ranges_nest_and_repeat),
        cmocka_unit_test(stacks_are_per_thread),
        cmocka_unit_test(start_and_end_go_by_their_id),
        cmocka_unit_test(what_is_never_closed_lasts_to_the_end),
        cmocka_unit_test(no_such_range_lists_those_there_are),
        cmocka_unit_test(peaks_of_the_whole_recording),
        cmocka_unit_test(no_report_is_not_a_peak_of_zero),
        cmocka_unit_test(peaks_of_a_range),
        cmocka_unit_test(steps_are_those_inside),
        cmocka_unit_test(host_time_per_launch_does_not_span_the_edge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
