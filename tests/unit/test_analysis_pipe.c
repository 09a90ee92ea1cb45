/* A pass in stages: each event once, in order, at each stage after those before it, whether the
 * stages have threads of their own (many events) or not (few). */
#include "test_analysis_fake.h"

#include "analysis/pipe.h"

struct seen {
    uint64_t at[3]; /* events that each stage has seen */
    uint64_t fail_at;
    uint64_t notes;
    bool wrong[3];
};

static int first(void *arg, struct gwa_batch *b)
{
    struct seen *s = arg;
    for (size_t i = 0; i < b->count; i++) {
        s->wrong[0] |= b->events[i].seq != s->at[0]++;
        b->places[i].step = (uint32_t)b->events[i].seq + 7;
    }
    return 0;
}

static int second(void *arg, struct gwa_batch *b)
{
    struct seen *s = arg;
    for (size_t i = 0; i < b->count; i++) {
        if (s->at[1] == s->fail_at)
            return -ECANCELED;
        s->wrong[1] |= b->places[i].step != s->at[1] + 7;
        b->ns[i] = (double)s->at[1]++ / 2;
        if (b->events[i].seq % 100)
            continue;
        struct gwa_note *n = gwa_note(b);
        if (!n)
            return -ENOMEM;
        *n = (struct gwa_note){.at = (uint32_t)i, .idle.start = (int64_t)b->events[i].seq};
    }
    return 0;
}

static int third(void *arg, struct gwa_batch *b)
{
    struct seen *s = arg;
    for (size_t i = 0; i < b->count; i++)
        s->wrong[2] |= b->ns[i] != (double)s->at[2]++ / 2;
    for (size_t i = 0; i < b->notes_count; i++, s->notes++)
        s->wrong[2] |= b->events[b->notes[i].at].seq != s->notes * 100 ||
                       b->notes[i].idle.start != (int64_t)(s->notes * 100);
    return 0;
}

static gwa_stage *const all[] = {first, second, third};

static struct gwt_trace *trace_of(size_t count)
{
    struct gwt_trace *t = calloc(1, sizeof(*t));
    assert_non_null(t);
    for (size_t i = 0; i < count; i++)
        t->events[i] =
            (struct gwt_event){.t0_ns = (int64_t)i * 10, .t1_ns = (int64_t)i * 10 + 5, .seq = i};
    t->count = count;
    t->coverage.events = count;
    return t;
}

static void all_seen(struct gwt_trace *t, unsigned threads, size_t stages)
{
    struct seen s = {.fail_at = UINT64_MAX};
    assert_int_equal(gwa_pipe(t, UINT64_MAX, threads, all, stages, &s), 0);
    for (size_t k = 0; k < 3; k++) {
        assert_false(s.wrong[k]);
        assert_int_equal(s.at[k], k < stages ? t->count : 0);
    }
    assert_int_equal(s.notes, stages == 3 ? (t->count + 99) / 100 : 0);
}

static void test_all_events_in_order(void **state)
{
    static const size_t counts[] = {
        0, 1, GWA_BATCH, GWA_BATCH + 1, 2 * GWA_BATCH, GWA_BATCH * 8, GWA_BATCH * 9 + 3, FAKE_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        struct gwt_trace *t = trace_of(counts[i]);
        for (size_t stages = 1; stages <= 3; stages++) {
            for (unsigned threads = 0; threads <= 3; threads++)
                all_seen(t, threads, stages);
        }
        free(t);
    }
}

static void test_no_more_events_than_asked_for(void **state)
{
    static const size_t most[] = {1, GWA_BATCH, GWA_BATCH * 3 + 10};
    (void)state;
    struct gwt_trace *t = trace_of(FAKE_MAX);
    for (size_t i = 0; i < sizeof(most) / sizeof(*most); i++) {
        struct seen s = {.fail_at = UINT64_MAX};
        assert_int_equal(gwa_pipe(t, most[i], 0, all, 2, &s), 0);
        assert_int_equal(s.at[1], most[i]);
        assert_false(s.wrong[0] || s.wrong[1]);
    }
    free(t);
}

/* In the middle of a pass, and what the last stage had seen by then is whole batches. */
static void test_a_stage_that_fails_ends_it(void **state)
{
    static const size_t fails[] = {0, 5, GWA_BATCH * 3 + 10, FAKE_MAX - 1};
    (void)state;
    struct gwt_trace *t = trace_of(FAKE_MAX);
    for (size_t i = 0; i < sizeof(fails) / sizeof(*fails); i++) {
        struct seen s = {.fail_at = fails[i]};
        assert_int_equal(gwa_pipe(t, UINT64_MAX, 0, all, 3, &s), -ECANCELED);
        assert_false(s.wrong[0] || s.wrong[1] || s.wrong[2]);
        assert_int_equal(s.at[1], fails[i]);
        assert_true(s.at[2] <= fails[i] && s.at[2] % GWA_BATCH == 0);
    }
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_events_in_order),
        cmocka_unit_test(test_no_more_events_than_asked_for),
        cmocka_unit_test(test_a_stage_that_fails_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
