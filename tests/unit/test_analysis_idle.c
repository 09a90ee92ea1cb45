/* Provable idle: when the host's calls prove that a device had nothing to do. Each test
 * names the interval that is proven, or why none is. Times are microseconds. */
#include "test_analysis_fake.h"

/* Proven idle of device 0 in us; the recording is used up. */
static double idle_us(struct gwt_trace *t)
{
    struct gwa_process *p = analyse(t, NULL);
    double us = p->devices[0].time.provable_idle_s * 1e6;
    gwa_free(p);
    free(t);
    return us;
}

static void from_return_of_the_wait_to_the_next_launch(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    sync_device(t, 10, 100);
    launch(t, 400, S_A, K_ADD); /* 100..400 */
    sync_device(t, 410, 500);
    launch(t, 550, S_A, K_ADD); /* 500..550 */
    struct gwa_process *p = analyse(t, NULL);
    const struct gwa_time *time = &p->devices[0].time;
    assert_near(time->provable_idle_s * 1e6, 350, 1e-6);
    assert_near(p->devices[0].window.wall_s * 1e6, 551, 1e-6);
    assert_near(time->provable_idle_pct, 100 * 350.0 / 551, 1e-9);
    assert_string_equal(time->method, "bounds");
    assert_true(isnan(time->idle_pct)); /* a bound is not the figure */
    gwa_free(p);
    free(t);
}

static void a_redundant_wait_does_not_interrupt(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    sync_device(t, 10, 100);
    sync_device(t, 200, 201); /* the device is still empty */
    launch(t, 300, S_A, K_ADD);
    assert_near(idle_us(t), 200, 1e-6);
}

static void not_after_a_failed_wait_or_a_query(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    sync_device(t, 10, 100)->status = 700;
    launch(t, 300, S_A, K_ADD);
    assert_near(idle_us(t), 0, 0);
}

static void a_stream_wait_proves_its_stream_only(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    launch(t, 5, S_B, K_ADD);
    sync_stream(t, 10, 100, S_A); /* B may be running */
    launch(t, 200, S_A, K_ADD);
    sync_stream(t, 210, 300, S_A);
    sync_stream(t, 310, 400, S_B); /* now nothing is left: 400..450 */
    launch(t, 450, S_B, K_ADD);
    assert_near(idle_us(t), 50, 1e-6);
}

static void another_threads_submission_during_the_wait_is_not_covered(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    fake_call(t, 2, 50, 51, API_LAUNCH, S_A); /* after the wait began */
    sync_stream(t, 10, 100, S_A);
    launch(t, 300, S_A, K_ADD);
    assert_near(idle_us(t), 0, 0);
}

static void a_submission_under_way_when_the_wait_returns(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    sync_device(t, 10, 100);
    /* entered before the wait returned, turns up after it: 100 to 250 proves nothing */
    fake_call(t, 2, 90, 250, API_LAUNCH, S_B);
    sync_device(t, 260, 300);
    launch(t, 320, S_A, K_ADD); /* 300..320 */
    assert_near(idle_us(t), 20, 1e-6);
}

static void the_earliest_entry_ends_the_span(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    sync_device(t, 10, 100);
    launch(t, 300, S_A, K_ADD);
    fake_call(t, 2, 150, 400, API_LAUNCH, S_B); /* returns later, entered earlier: 100..150 */
    assert_near(idle_us(t), 50, 1e-6);
}

static void a_late_submission_trims_many_spans(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    int64_t at = 0;
    for (int i = 0; i < 10; i++, at += 100) { /* each proves 60: from +40 to +100 */
        launch(t, at, S_A, K_ADD);
        sync_device(t, at + 2, at + 40);
    }
    launch(t, at, S_A, K_ADD);
    /* a first launch that loads its module, from the middle of the fourth span on */
    fake_call(t, 2, 370, at + 50, API_LAUNCH, S_B);
    assert_near(idle_us(t), 3 * 60 + 30, 1e-6);
}

static void more_spans_than_are_kept(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    int64_t at = 0;
    for (int i = 0; i < 5000; i++, at += 100) {
        launch(t, at, S_A, K_ADD);
        sync_device(t, at + 2, at + 40);
    }
    launch(t, at, S_A, K_ADD);
    assert_near(idle_us(t), 5000 * 60, 1e-3);

    /* and one call that was under way during nearly all of them takes all that back */
    t = fake_new();
    for (at = 0; at < 500000; at += 100) {
        launch(t, at, S_A, K_ADD);
        sync_device(t, at + 2, at + 40);
    }
    fake_call(t, 2, 150, at + 50, API_LAUNCH, S_B);
    double us = idle_us(t);
    assert_true(us >= 0 && us <= 60);
}

static void blocking_copies_drain_their_stream(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    copy(t, 10, 100, S_A, GWT_D2H, 4, GWT_F_BLOCKING); /* what .item() amounts to */
    launch(t, 160, S_A, K_ADD);                        /* 100..160 */
    /* pageable device-to-host copies wait although they are called asynchronous */
    copy(t, 170, 300, S_A, GWT_D2H, 1 << 20, GWT_F_PAGEABLE);
    launch(t, 310, S_A, K_ADD); /* 300..310 */
    /* pageable host-to-device copies may return once the data is staged */
    copy(t, 320, 400, S_A, GWT_H2D, 100, GWT_F_PAGEABLE | GWT_F_BLOCKING);
    launch(t, 500, S_A, K_ADD);
    /* and copies inside the device return at once */
    sync_stream(t, 510, 600, S_A);
    copy(t, 605, 610, S_A, GWT_D2D, 100, GWT_F_BLOCKING); /* 600..605 */
    launch(t, 700, S_A, K_ADD);
    assert_near(idle_us(t), 60 + 10 + 5, 1e-6);
}

static void a_blocking_copy_is_itself_work(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    sync_device(t, 10, 100);
    copy(t, 150, 400, S_A, GWT_H2D, 1 << 20, GWT_F_BLOCKING); /* 100..150, then the copy */
    launch(t, 410, S_A, K_ADD);                               /* 400..410 */
    assert_near(idle_us(t), 60, 1e-6);
}

static void event_waits_cover_what_was_submitted_before_the_record(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    record_event(t, 10, S_A, 0x77);
    sync_event(t, 20, 100, 0x77);
    launch(t, 130, S_A, K_ADD); /* 100..130 */
    record_event(t, 140, S_A, 0x77);
    launch(t, 150, S_A, K_ADD); /* after the record */
    sync_event(t, 160, 200, 0x77);
    launch(t, 300, S_A, K_ADD);
    sync_event(t, 310, 320, 0x99); /* never seen recorded */
    launch(t, 400, S_A, K_ADD);
    assert_near(idle_us(t), 30, 1e-6);
}

static void an_event_recorded_anew_by_another_thread_is_in_doubt(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    record_event(t, 10, S_A, 0x77);
    struct gwt_event *e = fake_call(t, 2, 19, 30, API_RECORD, S_B); /* overlaps the wait's entry */
    e->value = 0x77;
    sync_event(t, 20, 100, 0x77); /* for which of the two? */
    launch(t, 200, S_A, K_ADD);
    assert_near(idle_us(t), 0, 0);
}

static void waits_between_streams_carry_over(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    /* a copy on a side stream, for which the main stream waits: prefetching */
    copy(t, 0, 1, S_NONBLOCKING, GWT_H2D, 1 << 20, 0);
    record_event(t, 5, S_NONBLOCKING, 0x77);
    wait_event(t, 10, S_A, 0x77);
    launch(t, 15, S_A, K_ADD);
    sync_stream(t, 20, 100, S_A); /* hence the copy is done too */
    launch(t, 150, S_A, K_ADD);   /* 100..150 */
    /* work given to the side stream after the record is not covered */
    record_event(t, 160, S_NONBLOCKING, 0x77);
    copy(t, 165, 166, S_NONBLOCKING, GWT_H2D, 1 << 20, 0);
    wait_event(t, 170, S_A, 0x77);
    sync_stream(t, 180, 200, S_A);
    launch(t, 300, S_A, K_ADD);
    assert_near(idle_us(t), 50, 1e-6);
}

static void the_legacy_stream_and_blocking_streams_wait_for_each_other(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    launch(t, 5, S_LEGACY, K_ADD);     /* waits for A */
    sync_stream(t, 10, 100, S_LEGACY); /* so both are done */
    launch(t, 150, S_LEGACY, K_ADD);   /* 100..150 */
    launch(t, 160, S_A, K_ADD);        /* waits for the legacy stream */
    sync_stream(t, 170, 200, S_A);     /* so both are done */
    launch(t, 230, S_A, K_ADD);        /* 200..230 */
    launch(t, 240, S_LEGACY, K_ADD);
    launch(t, 250, S_A, K_ADD); /* after the legacy launch: not covered by waiting for that */
    sync_stream(t, 260, 300, S_LEGACY);
    launch(t, 400, S_A, K_ADD);
    assert_near(idle_us(t), 80, 1e-6);
}

static void non_blocking_streams_do_not(void **state)
{
    struct gwt_trace *t;
    const unsigned apart[] = {S_NONBLOCKING, S_UNSEEN}; /* or not known to */
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        t = fake_new();
        launch(t, 0, apart[i], K_ADD);
        launch(t, 5, S_LEGACY, K_ADD);
        sync_stream(t, 10, 100, S_LEGACY);
        launch(t, 200, S_LEGACY, K_ADD);
        assert_near(idle_us(t), 0, 0);
    }
    /* a per-thread default stream is a blocking one */
    t = fake_new();
    launch(t, 0, S_PER_THREAD, K_ADD);
    copy(t, 5, 100, S_LEGACY, GWT_D2H, 4, GWT_F_BLOCKING);
    launch(t, 200, S_LEGACY, K_ADD);
    assert_near(idle_us(t), 100, 1e-6);
}

static void the_end_of_a_capture_is_no_work(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    sync_device(t, 10, 100);
    launch(t, 120, S_A, K_ADD)->flags = GWT_F_CAPTURED;
    record_event(t, 130, S_A, 0x77)->flags = GWT_F_CAPTURED;
    struct gwt_event *e = fake_call(t, 1, 200, 210, API_GRAPH, S_A);
    e->arg = 1; /* 100..200 */
    launch(t, 220, S_B, K_ADD);
    sync_event(t, 230, 300, 0x77); /* an event that was captured proves nothing */
    launch(t, 400, S_A, K_ADD);
    assert_near(idle_us(t), 100, 1e-6);
}

static void graph_launches_and_collectives_are_submissions(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    sync_device(t, 10, 100);
    fake_call(t, 1, 130, 140, API_ALL_REDUCE, S_B); /* 100..130 */
    sync_stream(t, 150, 200, S_A);
    launch(t, 250, S_A, K_ADD); /* the collective may run */
    assert_near(idle_us(t), 30, 1e-6);
}

static void a_group_submits_when_it_ends(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    fake_call(t, 1, 10, 11, API_ALL_REDUCE, S_B); /* inside a group */
    sync_device(t, 20, 100);
    /* its end lets the collective go; from there on B has work */
    fake_call(t, 1, 150, 160, API_GROUP_END, 0)->flags = GWT_F_CLOSING; /* 100..150 */
    sync_stream(t, 170, 200, S_A);
    launch(t, 300, S_A, K_ADD);
    assert_near(idle_us(t), 50, 1e-6);
}

static void devices_are_apart(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    launch(t, 5, S_OTHER_DEVICE, K_ADD);
    sync_device(t, 10, 100);               /* device 0 */
    launch(t, 120, S_OTHER_DEVICE, K_ADD); /* ends nothing there */
    launch(t, 300, S_A, K_ADD);            /* 100..300 */
    struct gwa_process *p = analyse(t, NULL);
    assert_int_equal(p->devices_count, 2);
    assert_near(p->devices[0].time.provable_idle_s * 1e6, 200, 1e-6);
    assert_near(p->devices[1].time.provable_idle_s * 1e6, 0, 0);
    gwa_free(p);
    free(t);
}

static void an_unknown_stream_may_be_any(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    launch(t, 5, 0, K_ADD);
    sync_stream(t, 10, 100, S_A); /* the unknown one may run on */
    launch(t, 200, S_A, K_ADD);
    sync_device(t, 210, 300); /* covers it whatever it was */
    launch(t, 340, S_A, K_ADD);
    assert_near(idle_us(t), 40, 1e-6);
}

static void lost_events_may_have_been_submissions(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    record_event(t, 5, S_A, 0x77);
    sync_device(t, 10, 100);
    fake_add(t, 2, 150, 180, GWT_LOST)->value = 1000; /* 100..150 */
    sync_stream(t, 190, 200, S_A);
    launch(t, 250, S_A, K_ADD); /* who knows what the other thread had submitted */
    sync_device(t, 260, 300);
    launch(t, 320, S_A, K_ADD);    /* 300..320 */
    sync_event(t, 330, 340, 0x77); /* it may have been recorded anew meanwhile */
    launch(t, 400, S_A, K_ADD);
    assert_near(idle_us(t), 70, 1e-6);
}

static void not_while_recording_was_off(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    sync_device(t, 10, 100);
    fake_add(t, 1, 150, 150, GWT_RECORDING)->value = 0; /* 100..150 */
    fake_add(t, 1, 900, 900, GWT_RECORDING)->value = 1;
    launch(t, 1000, S_A, K_ADD);
    assert_near(idle_us(t), 50, 1e-6);
}

static void not_where_the_recording_has_holes(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    sync_device(t, 10, 100);
    launch(t, 400, S_A, K_ADD);
    t->coverage.missing = 1;
    struct gwa_process *p = analyse(t, NULL);
    assert_true(isnan(p->devices[0].time.provable_idle_pct));
    assert_null(p->devices[0].time.method);
    gwa_free(p);
    free(t);
}

static void inside_a_range_only_its_part_counts(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    launch(t, 0, S_A, K_ADD);
    sync_device(t, 10, 100);
    range_push(t, 1, 150, R_STEP);
    launch(t, 200, S_A, K_ADD); /* proven 100..200; the window begins with this launch */
    sync_device(t, 210, 300);
    launch(t, 350, S_A, K_ADD); /* 300..350 inside */
    sync_device(t, 360, 400);
    range_pop(t, 1, 420);
    range_push(t, 1, 450, R_STEP);
    launch(t, 500, S_A, K_ADD); /* 400..500: 400..420 and 450..500 inside */
    sync_device(t, 510, 520);
    range_pop(t, 1, 600);
    launch(t, 700, S_A, K_ADD); /* 520..600 is inside, but after the last operation */
    struct gwa_process *p = analyse(t, "step");
    assert_near(p->devices[0].time.provable_idle_s * 1e6, 50 + 20 + 50, 1e-6);
    /* from the first entry, 200, to the last return, 520, less what lies between the ranges */
    assert_near(p->devices[0].window.wall_s * 1e6, 320 - 30, 1e-6);
    gwa_free(p);
    free(t);
}

static void streams_that_wait_in_a_circle_end(void **state)
{
    struct gwt_trace *t = fake_new();
    (void)state;
    for (int i = 0; i < 50; i++) {
        int64_t at = i * 100;
        launch(t, at, S_A, K_ADD);
        record_event(t, at + 2, S_A, 1);
        wait_event(t, at + 4, S_B, 1);
        launch(t, at + 6, S_B, K_ADD);
        record_event(t, at + 8, S_B, 2);
        wait_event(t, at + 10, S_A, 2);
        sync_stream(t, at + 20, at + 50, S_A); /* hence B, hence all: 50 to 100 */
    }
    launch(t, 5000, S_A, K_ADD);
    assert_near(idle_us(t), 50 * 50, 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_return_of_the_wait_to_the_next_launch),
        cmocka_unit_test(a_redundant_wait_does_not_interrupt),
        cmocka_unit_test(not_after_a_failed_wait_or_a_query),
        cmocka_unit_test(a_stream_wait_proves_its_stream_only),
        cmocka_unit_test(another_threads_submission_during_the_wait_is_not_covered),
        cmocka_unit_test(a_submission_under_way_when_the_wait_returns),
        cmocka_unit_test(the_earliest_entry_ends_the_span),
        cmocka_unit_test(a_late_submission_trims_many_spans),
        cmocka_unit_test(more_spans_than_are_kept),
        cmocka_unit_test(blocking_copies_drain_their_stream),
        cmocka_unit_test(a_blocking_copy_is_itself_work),
        cmocka_unit_test(event_waits_cover_what_was_submitted_before_the_record),
        cmocka_unit_test(an_event_recorded_anew_by_another_thread_is_in_doubt),
        cmocka_unit_test(waits_between_streams_carry_over),
        cmocka_unit_test(the_legacy_stream_and_blocking_streams_wait_for_each_other),
        cmocka_unit_test(non_blocking_streams_do_not),
        cmocka_unit_test(the_end_of_a_capture_is_no_work),
        cmocka_unit_test(graph_launches_and_collectives_are_submissions),
        cmocka_unit_test(a_group_submits_when_it_ends),
        cmocka_unit_test(devices_are_apart),
        cmocka_unit_test(an_unknown_stream_may_be_any),
        cmocka_unit_test(lost_events_may_have_been_submissions),
        cmocka_unit_test(not_while_recording_was_off),
        cmocka_unit_test(not_where_the_recording_has_holes),
        cmocka_unit_test(inside_a_range_only_its_part_counts),
        cmocka_unit_test(streams_that_wait_in_a_circle_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
