/* Collectives over ranks, from rows made by hand: which belong together, when they end, what is
 * learnt of transfers and of clocks. Times are ns. */
/* clang-format off: cmocka.h needs these first */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "analysis/job_moment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000

/* ---- a job by hand ------------------------------------------------------------------------ */

#define ROWS 256

static struct gwa_job *job_of(size_t ranks, size_t hosts)
{
    struct gwa_job *job = gwa_job_new(ranks);
    assert_non_null(job);
    job->hosts = calloc(hosts, sizeof(*job->hosts));
    job->hosts_count = hosts;
    for (size_t i = 0; i < ranks; i++) {
        struct job_rank *r = &job->ranks[i];
        r->known = true;
        r->host = (uint32_t)(i % hosts);
        r->rows.list = calloc(ROWS, sizeof(*r->rows.list));
        r->rows.seen = calloc(ROWS, sizeof(*r->rows.seen));
        r->rows.comms = calloc(1, sizeof(*r->rows.comms));
        r->rows.comms[0] = (struct job_comm){
            .identity = 7, .ranks = (int)ranks, .rank = (int)i, .peer = -1, .shared = UINT32_MAX};
        r->rows.comms_count = 1;
        r->rows.sampled = 1;
        r->starts = calloc(ROWS, sizeof(*r->starts));
        r->latest = calloc(ROWS, sizeof(*r->latest));
    }
    return job;
}

/* post: its number, from 1. */
static uint32_t row(struct gwa_job *job, size_t rank, uint32_t number, int64_t host, uint32_t on,
                    int64_t after, uint32_t before)
{
    struct job_rows *r = &job->ranks[rank].rows;
    r->list[r->count++] = (struct job_row){.host = host,
                                           .on = {on},
                                           .after = {(float)after},
                                           .base = on,
                                           .before = before,
                                           .number = number,
                                           .op = JOB_ALL_REDUCE,
                                           .calls = 1,
                                           .bytes = 1000};
    return (uint32_t)r->count;
}

static void called(struct gwa_job *job, size_t rank, int64_t at, uint32_t on, int64_t after,
                   int64_t lasted)
{
    struct job_rows *r = &job->ranks[rank].rows;
    r->seen[r->seen_count++] = (struct job_seen){.at = at,
                                                 .host = NEVER,
                                                 .on = {{on, after}},
                                                 .newest = {on, after},
                                                 .lasted_ns = (float)lasted};
}

/* By a call that waited for all of it. */
static void seen(struct gwa_job *job, size_t rank, int64_t at, uint32_t on, int64_t after)
{
    called(job, rank, at, on, after, 100 * MS);
}

static void run(struct gwa_job *job)
{
    assert_int_equal(gwa_job_match(job), 0);
    assert_int_equal(gwa_job_align(job), 0);
    gwa_job_run(job);
}

static const struct job_collective *of(const struct gwa_job *job, size_t rank, uint32_t number)
{
    return &job->collectives[job->ranks[rank].rows.list[number - 1].number];
}

/* ---- moments -------------------------------------------------------------------------------- */

static struct job_moment on(uint32_t row, int64_t after)
{
    return (struct job_moment){.host = NEVER, .on = {{row, after}}};
}

static void add(struct job_supposed *s, struct job_moment *m, uint32_t row, int64_t after)
{
    struct job_moment other = on(row, after);
    gwa_job_moment_join(s, m, &other);
}

/* Rows 1 to 4, of which the last is behind the third in its stream, and that goes on from the
 * first. */
static struct job_supposed supposed(struct job_rows *rows)
{
    static struct job_row list[4];
    int64_t *ends = calloc(5, sizeof(*ends));
    memset(list, 0, sizeof(list));
    list[2] = (struct job_row){.on = {1}, .after = {50}};
    list[3].before = 3;
    for (int i = 1; i < 5; i++)
        ends[i] = i * 100;
    *rows = (struct job_rows){.list = list, .count = 4, .most = 4};
    return (struct job_supposed){.rows = rows, .ends = ends, .ends_room = 5};
}

static void forget(struct job_supposed *s)
{
    free(s->ends);
    free(s->latest);
    free(s->rows->latest);
}

static void moments_are_the_later_of_both(void **state)
{
    struct job_rows rows;
    struct job_supposed s = supposed(&rows);
    struct job_moment a = job_moment_at(50), b = job_moment_at(70);
    (void)state;
    gwa_job_moment_join(&s, &a, &b);
    assert_int_equal(a.host, 70);
    add(&s, &a, 2, 5);
    add(&s, &a, 1, 7);
    assert_int_equal(a.on[0].of, 1); /* the older first */
    assert_int_equal(a.on[1].of, 2);
    assert_int_equal(job_moment_value(&a, &s), 205);
    add(&s, &a, 1, 3); /* what is earlier changes nothing */
    assert_int_equal(a.on[0].after, 7);
    job_moment_later(&a, 10);
    assert_int_equal(job_moment_value(&a, &s), 215);
    forget(&s);
}

static void moments_on_three_are_on_all_of_them(void **state)
{
    struct job_rows rows;
    struct job_supposed s = supposed(&rows);
    struct job_moment m = job_moment_at(50);
    int64_t after, host = NEVER;
    (void)state;
    add(&s, &m, 1, 57);
    add(&s, &m, 2, 5);
    add(&s, &m, 3, 0);
    assert_int_equal(rows.latest_count, 1);
    assert_int_equal(rows.latest[0].host, 50);
    assert_int_equal(rows.latest[0].on[0].of, 1);
    assert_int_equal(rows.latest[0].on[1].of, 2);
    assert_int_equal(rows.latest[0].newest, 2);
    assert_int_equal(m.on[0].of, JOB_LATEST | 1);
    assert_int_equal(m.on[1].of, 3);
    assert_int_equal(job_moment_value(&m, &s), 300);
    job_moment_later(&m, 10);
    add(&s, &m, 2, 15); /* which it has waited for already */
    assert_int_equal(rows.latest_count, 1);
    assert_int_equal(gwa_job_moment_newest(&rows, &m, &after, &host), 3);
    assert_int_equal(after, 10);
    forget(&s);
}

static void moments_leave_out_what_cannot_be_later(void **state)
{
    struct job_rows rows;
    struct job_supposed s = supposed(&rows);
    struct job_moment m = on(1, 50), n = on(1, 51);
    (void)state;
    add(&s, &m, 4, 0); /* behind the third, which begins 50 after the first */
    assert_int_equal(m.on[0].of, 4);
    assert_int_equal(m.on[1].of, 0);
    add(&s, &n, 4, 0); /* later, if those are short */
    assert_int_equal(n.on[0].of, 1);
    assert_int_equal(n.on[1].of, 4);
    forget(&s);
}

static void moments_are_led_on_through_others(void **state)
{
    struct job_rows rows;
    struct job_supposed s = supposed(&rows);
    struct job_moment from = on(1, 60), m = on(1, 70);
    (void)state;
    add(&s, &m, 2, 0);
    add(&s, &m, 3, 0);
    job_moment_later(&m, 5);
    /* a call shows that the first was over at 500, less 60 */
    gwa_job_moment_lead(&s, &m, &from, 500);
    assert_int_equal(m.host, 515);
    assert_int_equal(m.since, 500);
    assert_int_equal(m.on[0].of, 2); /* the others are still open */
    assert_int_equal(m.on[0].after, 5);
    assert_int_equal(m.on[1].of, 3);
    forget(&s);
}

static void moments_do_not_overflow(void **state)
{
    struct job_moment m = job_moment_at(JOB_FARTHEST);
    (void)state;
    for (int i = 0; i < 100; i++)
        job_moment_later(&m, JOB_FARTHEST - 1);
    assert_int_equal(m.host, JOB_FARTHEST);
}

/* ---- matching ---------------------------------------------------------------------------------
 */

static void rows_of_one_number_meet(void **state)
{
    struct gwa_job *job = job_of(3, 1);
    (void)state;
    for (size_t i = 0; i < 3; i++)
        row(job, i, 4, 10, 0, 0, 0);
    row(job, 1, 5, 20, 0, 0, 0); /* alone */
    run(job);
    assert_int_equal(of(job, 0, 1)->count, 3);
    assert_ptr_equal(of(job, 0, 1), of(job, 2, 1));
    assert_int_equal(job->ranks[1].rows.list[1].comm, JOB_NO_COMM);
    assert_int_equal(job->comms_count, 1);
    assert_int_equal(job->comms[0].members, 3);
    assert_int_equal(job->kinds[0].ranks, 3);
    assert_int_equal(job->kinds[0].count, 1);
    assert_int_equal(job->kinds[1].count, 0); /* what has no partner is of no kind */
    gwa_job_free(job);
}

static void communicators_without_identity_do_not(void **state)
{
    struct gwa_job *job = job_of(2, 1);
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        row(job, i, 0, 10, 0, 0, 0);
        job->ranks[i].rows.comms[0].identity = 0;
    }
    run(job);
    assert_int_equal(job->collectives_count, 0);
    gwa_job_free(job);
}

/* ---- in time ----------------------------------------------------------------------------------
 */

static void the_last_decides(void **state)
{
    struct gwa_job *job = job_of(3, 1);
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        uint32_t first = row(job, i, 0, i == 1 ? 5 * MS : MS, 0, 0, 0);
        uint32_t second = row(job, i, 1, 2 * MS, 0, 0, first); /* in the stream behind it */
        row(job, i, 2, NEVER, second, i == 2 ? 3 * MS : MS, 0);
    }
    run(job);
    double transfer = gwa_job_transfer_ns(&job->kinds[0], 1, 1000);
    assert_int_equal(of(job, 0, 1)->last, 5 * MS);
    assert_int_equal(of(job, 0, 1)->late, 1);
    assert_int_equal(of(job, 0, 1)->end, 5 * MS + (int64_t)transfer);
    int64_t second = of(job, 0, 1)->end + 1000;
    assert_int_equal(of(job, 0, 2)->last, second); /* all come at once, when the stream is free */
    int64_t third = of(job, 0, 2)->end + 3 * MS;
    assert_int_equal(of(job, 0, 3)->last, third);
    assert_int_equal(of(job, 0, 3)->late, 2);
    assert_true(of(job, 0, 3)->path[0].calls == 3); /* all three transfers are on its way */
    assert_int_equal(gwa_job_row_ready(job, 0, 2), 2 * MS);
    gwa_job_free(job);
}

static void what_is_missing_ends_nothing(void **state)
{
    struct gwa_job *job = job_of(2, 1);
    (void)state;
    /* each waits for a collective that the other submits only after it: no real job does */
    uint32_t a = row(job, 0, 0, MS, 0, 0, 0);
    row(job, 0, 1, NEVER, a, 0, 0);
    uint32_t b = row(job, 1, 1, 2 * MS, 0, 0, 0);
    row(job, 1, 0, NEVER, b, 0, 0);
    run(job);
    assert_int_equal(job->ranks[0].cursor, 2);
    assert_int_equal(job->ranks[1].cursor, 2);
    assert_true(of(job, 0, 1)->end != NEVER && of(job, 0, 2)->end != NEVER);
    gwa_job_free(job);
}

/* ---- transfers --------------------------------------------------------------------------------
 */

#define STEPS 20

/* Three transfers of 2 ms behind each other in each step, of which only the last is seen to end,
 * half a millisecond of other work later. */
static void transfers_are_learnt_along_the_way(void **state)
{
    struct gwa_job *job = job_of(2, 1);
    (void)state;
    int64_t t = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        int64_t end = 0;
        for (size_t i = 0; i < 2; i++) {
            uint32_t before = 0;
            int64_t last = t + 3 * MS; /* rank 1 comes 3 ms after rank 0 */
            for (uint32_t k = 0; k < 3; k++)
                before = row(job, i, 3 * step + k, i ? last : t, 0, 0, before);
            end = last + 3 * 2 * MS + 2 * 1000;
            seen(job, i, end + MS / 2, before, MS / 2);
        }
        t = end + MS;
    }
    run(job);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(gwa_job_learn(job), 0);
        gwa_job_run(job);
    }
    double ns = gwa_job_transfer_ns(&job->kinds[0], 1, 1000);
    assert_true(job->kinds[0].measured >= STEPS);
    assert_true(fabs(ns - 2 * MS) < 0.01 * 2 * MS);
    /* the first of the last step: 3 ms waited, 2 ms of transfer, though nothing showed its end */
    const struct job_collective *c = of(job, 0, 3 * (STEPS - 1) + 1);
    assert_int_equal(c->shown, NEVER);
    assert_true(fabs((double)(c->end - c->last) - 2 * MS) < 0.01 * 2 * MS);
    assert_int_equal(c->last - job->ranks[0].starts[3 * (STEPS - 1)], 3 * MS);
    assert_int_equal(c->late, 1);
    gwa_job_free(job);
}

/* A call of 20 us that returned 5 ms after both had come found the work done. */
static void short_calls_find_the_work_done(void **state)
{
    for (int i = 0; i < 2; i++) {
        struct gwa_job *job = job_of(2, 1);
        (void)state;
        uint32_t first = row(job, 0, 0, MS, 0, 0, 0);
        row(job, 1, 0, MS, 0, 0, 0);
        called(job, 0, 6 * MS, first, 0, i ? 20000 : MS);
        run(job);
        assert_int_equal(gwa_job_learn(job), 0);
        gwa_job_run(job);
        const struct job_collective *c = of(job, 0, 1);
        assert_int_equal(c->shown, i ? NEVER : 6 * MS);
        assert_true(i ? c->end < MS + MS / 10 : c->end == 6 * MS);
        gwa_job_free(job);
    }
}

/* Collectives beside computing, whose end nothing waits for: what calls return later or sooner by
 * is how far the model is off, 2 % to either side, and no transfer. */
static void hidden_transfers_stay_unknown(void **state)
{
    struct gwa_job *job = job_of(2, 1);
    (void)state;
    for (uint32_t k = 0; k < STEPS; k++)
        for (size_t i = 0; i < 2; i++) {
            int64_t from = k * 1000LL * MS, modelled = 100 * MS;
            uint32_t on = row(job, i, k, from + modelled, 0, 0, 0);
            job->ranks[i].rows.list[on - 1].modelled = (float)modelled;
            seen(job, i, from + modelled + MS + (k % 2 ? 2 * MS : -2 * MS), on, MS);
            job->ranks[i].rows.seen[k].host = from + modelled + MS;
            job->ranks[i].rows.seen[k].modelled = (float)(modelled + MS);
        }
    run(job);
    assert_int_equal(gwa_job_settle(job), 0);
    assert_true(fabs(job->off_share - 0.02) < 0.001);
    assert_int_equal(job->kinds[0].measured, 0);
    for (uint32_t k = 0; k < STEPS; k++)
        assert_int_equal(of(job, 0, k + 1)->shown, NEVER);
    gwa_job_free(job);
}

/* ---- who is late ------------------------------------------------------------------------------
 */

/* Rank 1 copies for 1 ms longer before each collective, as the use of its device says too: of every
 * 10 ms. `off`: what blocking calls showed of both models, in % of wall time. */
static double caused_by_copies(bool timed, double off, double *by_copies)
{
    struct gwa_job *job = job_of(2, 1);
    for (size_t i = 0; i < 2; i++) {
        uint32_t before = row(job, i, 0, MS, 0, 0, 0);
        for (uint32_t k = 1; k <= STEPS; k++) {
            before = row(job, i, k, NEVER, before, i ? 3 * MS : 2 * MS, 0);
            job->ranks[i].rows.list[k].copies = k * (i ? 15000 : 5000); /* of 100 ns */
            job->ranks[i].rows.list[k].compute = k * 10000;
            job->ranks[i].rows.list[k].kernels = k * 10;
        }
        row(job, i, STEPS + 1, NEVER, before, MS, 0);
        job->ranks[i].rows.kernels = 10 * STEPS;
        job->ranks[i].rows.copy_ns = 1;
        job->ranks[i].rows.timed_copy_ns = timed;
        job->ranks[i].rows.last = 10LL * STEPS * MS;
        job->ranks[i].out.exposed_copy_pct = i ? 15 : 5;
        job->ranks[i].off_pct = i ? off : off / 3;
    }
    run(job);
    assert_int_equal(gwa_job_blame(job), 0);
    assert_true(job->ranks[0].caused < 1);
    double caused = job->ranks[1].caused;
    *by_copies = job->ranks[1].by_cause[GWA_LATE_COPIES];
    gwa_job_free(job);
    return caused;
}

static void nobody_is_late_by_a_guess(void **state)
{
    double copies;
    (void)state;
    double caused = caused_by_copies(true, 0, &copies);
    assert_true(fabs(caused - STEPS * MS) < 1000);
    assert_true(fabs(copies - STEPS * MS) < 1000);
    caused = caused_by_copies(false, 0, &copies); /* how long they took was never measured */
    assert_true(caused < 1000 && copies < 1000);
}

static void nobody_is_late_by_what_models_are_off(void **state)
{
    double copies;
    (void)state;
    double caused = caused_by_copies(true, 4.5, &copies); /* 10 % longer, which may be 4 */
    assert_true(fabs(caused - 0.4 * STEPS * MS) < 1000);
    assert_true(fabs(copies - 0.4 * STEPS * MS) < 1000);
    caused = caused_by_copies(true, 9, &copies); /* or none */
    assert_true(caused < 1000 && copies < 1000);
}

/* ---- clocks ---------------------------------------------------------------------------------- */

static void see_ends(struct gwa_job *job, uint32_t count, double drift)
{
    for (uint32_t k = 0; k < count; k++)
        for (size_t i = 0; i < 2; i++) {
            int64_t end = (int64_t)(k + 1) * 100 * MS + (k % 3) * 500; /* jitter: half a us */
            int64_t own = i ? end + (int64_t)(drift * (double)end) - 3000000007 : end;
            seen(job, i, own + MS, row(job, i, k, own - MS, 0, 0, 0), MS + (i ? k % 2 * 400 : 0));
        }
}

static void hosts_are_aligned_by_common_ends(void **state)
{
    struct gwa_job *job = job_of(2, 2);
    (void)state;
    see_ends(job, 60, 20e-6);
    run(job);
    const struct job_clock *c = &job->hosts[1].clock;
    assert_true(job->hosts[0].aligned && job->hosts[1].aligned && job->comms[0].usable);
    assert_int_equal(job->hosts[1].matches, 60);
    assert_true(fabs(c->drift - 20e-6) < 0.1e-6);
    /* at both ends of the recording */
    const int64_t times[] = {100 * MS, 6000LL * MS};
    for (int i = 0; i < 2; i++) {
        int64_t own = times[i] + (int64_t)(20e-6 * (double)times[i]) - 3000000007;
        assert_true(llabs(job_common(c, own) - times[i]) < 1000);
        assert_true(llabs(job_own(c, job_common(c, own)) - own) < 10);
    }
    assert_true(job->hosts[1].jitter_ns < 1000);
    gwa_job_free(job);
}

static void few_ends_align_nothing(void **state)
{
    struct gwa_job *job = job_of(2, 2);
    (void)state;
    see_ends(job, 4, 0);
    run(job);
    assert_false(job->hosts[1].aligned);
    assert_false(job->comms[0].usable);
    bool told;
    assert_non_null(gwa_job_why_not(job, &told));
    gwa_job_free(job);
}

static void names_and_links(void **state)
{
    (void)state;
    assert_string_equal(gwa_job_op_name(JOB_REDUCE_SCATTER), "ReduceScatter");
    assert_true(fabs(gwa_job_op_factor(JOB_ALL_REDUCE, 8) - 1.75) < 1e-12);
    assert_true(fabs(gwa_job_op_factor(JOB_ALL_GATHER, 8) - 7) < 1e-12);
    assert_true(isnan(gwa_job_op_factor(JOB_OTHER, 8)));
    assert_string_equal(gwa_late_cause_key(GWA_LATE_LINK), "link");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_are_the_later_of_both),
        cmocka_unit_test(moments_on_three_are_on_all_of_them),
        cmocka_unit_test(moments_leave_out_what_cannot_be_later),
        cmocka_unit_test(moments_are_led_on_through_others),
        cmocka_unit_test(moments_do_not_overflow),
        cmocka_unit_test(rows_of_one_number_meet),
        cmocka_unit_test(communicators_without_identity_do_not),
        cmocka_unit_test(the_last_decides),
        cmocka_unit_test(what_is_missing_ends_nothing),
        cmocka_unit_test(transfers_are_learnt_along_the_way),
        cmocka_unit_test(short_calls_find_the_work_done),
        cmocka_unit_test(hidden_transfers_stay_unknown),
        cmocka_unit_test(nobody_is_late_by_a_guess),
        cmocka_unit_test(nobody_is_late_by_what_models_are_off),
        cmocka_unit_test(hosts_are_aligned_by_common_ends),
        cmocka_unit_test(few_ends_align_nothing),
        cmocka_unit_test(names_and_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
