/* Margins, names, runs: what is compared, and by how much it may differ. */
/* clang-format off: cmocka.h needs these first */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "compare_help.h"

#include "analysis/diff.h"

static enum gwa_move moved(double abs, double rel, double base, double now)
{
    struct gwa_margins m = {abs, rel, abs, rel};
    return gwa_moved(&m, base, now, 1);
}

/* A move counts when it is larger than both margins; at either's edge it does not. */
static void both_margins(void **state)
{
    (void)state;
    assert_int_equal(moved(5, 0.1, 100, 111), GWA_MOVE_UP);
    assert_int_equal(moved(5, 0.1, 100, 110), GWA_MOVE_NONE);  /* 10 % exactly */
    assert_int_equal(moved(15, 0.1, 100, 112), GWA_MOVE_NONE); /* more than 10 %, less than 15 */
    assert_int_equal(moved(15, 0.1, 100, 115), GWA_MOVE_NONE); /* 15 exactly */
    assert_int_equal(moved(15, 0.1, 100, 116), GWA_MOVE_UP);
    assert_int_equal(moved(5, 0.1, 1000, 1050), GWA_MOVE_NONE); /* more than 5, less than 10 % */
    assert_int_equal(moved(5, 0.1, 100, 89), GWA_MOVE_DOWN);
    assert_int_equal(moved(5, 0.1, 100, 90), GWA_MOVE_NONE);
    /* counts: one more of any number is a move, from 0 too */
    assert_int_equal(moved(0.5, 0, 1e6, 1e6 + 1), GWA_MOVE_UP);
    assert_int_equal(moved(0.5, 0, 0, 1), GWA_MOVE_UP);
    assert_int_equal(moved(0.5, 0, 0, 0.5), GWA_MOVE_NONE);
    assert_int_equal(moved(0.5, 0, 1, 0), GWA_MOVE_DOWN);
    /* bytes: from 0 any number is */
    assert_int_equal(moved(0, 0.01, 0, 1), GWA_MOVE_UP);
    assert_int_equal(moved(0, 0.01, 1000, 1010), GWA_MOVE_NONE);
    assert_int_equal(moved(0, 0.01, 1000, 1011), GWA_MOVE_UP);
    assert_int_equal(moved(0, 0, 3, 3), GWA_MOVE_NONE);
}

static void what_was_not_measured_moves_nowhere(void **state)
{
    (void)state;
    assert_int_equal(moved(0, 0, NAN, 3), GWA_MOVE_NONE);
    assert_int_equal(moved(0, 0, 3, NAN), GWA_MOVE_NONE);
    assert_int_equal(moved(0, 0, NAN, NAN), GWA_MOVE_NONE);
}

static void downwards_has_margins_of_its_own(void **state)
{
    struct gwa_margins m = {.abs = 1, .rel = 0, .below_abs = 10, .below_rel = 0.5};
    (void)state;
    assert_int_equal(gwa_moved(&m, 10, 12, 1), GWA_MOVE_UP);
    assert_int_equal(gwa_moved(&m, 100, 60, 1), GWA_MOVE_NONE); /* 40 %, of 50 */
    assert_int_equal(gwa_moved(&m, 100, 49, 1), GWA_MOVE_DOWN);
    /* a third of the margins */
    assert_int_equal(gwa_moved(&m, 10, 10.3, 3), GWA_MOVE_NONE);
    assert_int_equal(gwa_moved(&m, 10, 10.4, 3), GWA_MOVE_UP);
}

/* The names that a baseline holds are part of the project's interface. */
static void gated_metrics_have_their_names(void **state)
{
    static const char *const always_gated[] = {
        "launch_calls",      "kernels",        "graph_launches", "syncs",
        "blocking_copies",   "pageable_bytes", "h2d_bytes",      "d2h_bytes",
        "allocation_calls",  "captures",       "collectives",    "collective_bytes",
        "host_us_per_launch"};
    static const char *const with_times[] = {"step_ms", "busy_pct"};
    size_t counted = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(always_gated) / sizeof(*always_gated); i++) {
        unsigned m = gwa_metric_find(always_gated[i]);
        assert_true(m < GWA_METRIC_COUNT);
        assert_int_equal(gwa_metrics[m].gated, GWA_GATED_YES);
    }
    for (size_t i = 0; i < sizeof(with_times) / sizeof(*with_times); i++)
        assert_int_equal(gwa_metrics[gwa_metric_find(with_times[i])].gated, GWA_GATED_TIMES);
    for (unsigned m = 0; m < GWA_METRIC_COUNT; m++) {
        counted += gwa_metrics[m].gated != GWA_GATED_NO;
        assert_int_equal(gwa_metric_find(gwa_metrics[m].key), m); /* no name twice */
    }
    assert_int_equal(counted, 15);
    assert_int_equal(gwa_metric_find("launches"), GWA_METRIC_COUNT);
}

/* vllm#53472: 1,549 -> 1,165 launches a step, each 70 % dearer; two hosts of one project: 35 and
 * 42 us. */
static void dearer_launches_are_seen_and_other_hosts_are_not(void **state)
{
    struct gwa_margins m = gwa_margins_of(GWA_METRIC_HOST_US);
    (void)state;
    assert_int_equal(gwa_moved(&m, 10, 17, 1), GWA_MOVE_UP);
    assert_int_equal(gwa_moved(&m, 35, 42, 1), GWA_MOVE_NONE);
}

static void scripts_have_labels(void **state)
{
    static const char *const cases[][2] = {
        {"python3 -u jobs/train.py --lr 1e-4", "train.py"},
        {"/usr/bin/python3.12 -W ignore -X dev train.py", "train.py"},
        {"python -m package.train --x", "package.train"},
        {"python -c print(1)", "-c"},
        {"python", "python"},
        {"build/bench_gemm 4096", "bench_gemm"},
        {"(left out)", NULL},
        {"", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *label = gwa_script_label(cases[i][0]);
        if (cases[i][1])
            assert_string_equal(label, cases[i][1]);
        else
            assert_null(label);
        free(label);
    }
    assert_null(gwa_script_label(NULL));
}

/* ---- names -------------------------------------------------------------------------------- */

static void names_are_united_and_compared(void **state)
{
    struct gwa_names base = {0}, now = {0};
    struct gwa_change *list;
    size_t count;
    (void)state;
    gwa_names_add(&base, "b", 2, 10, NULL);
    gwa_names_add(&base, "a", 1, 5, NULL);
    gwa_names_add(&base, "same", 3, 1, NULL);
    gwa_names_add(&base, "b", 2, 30, "x.py:1 f");
    gwa_names_sort(&base);
    assert_int_equal(base.count, 3);
    assert_true(gwa_names_find(&base, "b")->calls == 4);
    assert_true(gwa_names_find(&base, "b")->mean_us == 20); /* (2 x 10 + 2 x 30) / 4 */
    assert_null(gwa_names_find(&base, "c"));

    gwa_names_add(&now, "b", 5, 20, NULL);
    gwa_names_add(&now, "new", 2, 1000, NULL);
    gwa_names_add(&now, "same", 3.05, 1, NULL); /* in one step of twenty */
    gwa_names_sort(&now);
    assert_int_equal(gwa_names_compare(&base, &now, GWA_SORT_EFFECT, &list, &count), 0);
    assert_int_equal(count, 3);
    /* 2 ms more, 20 us more, 5 us less */
    assert_string_equal(list[0].name, "new");
    assert_true(fabs(list[0].effect_ms - 2) < 1e-9);
    assert_string_equal(list[1].name, "b");
    assert_true(fabs(list[1].effect_ms - 0.02) < 1e-9);
    assert_string_equal(list[1].where, "x.py:1 f");
    assert_string_equal(list[2].name, "a");
    assert_true(list[2].now == 0);
    free(list);
    gwa_names_compare(&base, &now, GWA_SORT_CALLS, &list, &count);
    assert_string_equal(list[0].name, "new"); /* +2; a and b are 1 each, by name */
    assert_string_equal(list[1].name, "a");
    free(list);
    gwa_names_compare(&base, &now, GWA_SORT_NAME, &list, &count);
    assert_string_equal(list[0].name, "a");
    free(list);
    gwa_names_free(&base);
    gwa_names_free(&now);
}

static void names_are_plain_and_not_endless(void **state)
{
    struct gwa_names n = {0};
    char name[2000];
    (void)state;
    memset(name, 'k', sizeof(name));
    name[sizeof(name) - 1] = 0;
    gwa_names_add(&n, name, 1, NAN, NULL);
    name[1500] = 'j'; /* differs behind the cut only */
    gwa_names_add(&n, name, 1, NAN, NULL);
    gwa_names_add(&n, "\033[2J\xff\n", 1, NAN, NULL);
    gwa_names_add(&n, NULL, 1, NAN, NULL);
    gwa_names_sort(&n);
    assert_int_equal(n.count, 4);
    assert_string_equal(n.list[0].name, "(name unknown)");
    assert_string_equal(n.list[1].name, "?[2J??");
    assert_true(strlen(n.list[2].name) < 260);
    /* as a baseline holds it, it is the same name */
    struct gwa_names again = {0};
    gwa_names_add(&again, n.list[2].name, 1, NAN, NULL);
    assert_string_equal(again.list[0].name, n.list[2].name);
    gwa_names_free(&again);
    assert_int_equal(strlen(n.list[2].full), 1999);
    gwa_names_free(&n);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static void a_run_is_the_sum_of_its_processes(void **state)
{
    struct gwa_process p[3] = {usual_process(), usual_process(), usual_process()};
    (void)state;
    p[0].identity.rank = 0;
    p[1].identity.rank = 1;
    p[1].launches.host_us_per_launch = 30;
    p[1].launches.kernels = 3 * p[0].launches.kernels;
    p[1].steps.ms = always(20);
    p[2].launches.calls = p[2].launches.kernels = 0; /* took no part */
    p[2].steps.count = 0;
    struct gwa_run r = run_of(p, 3);
    assert_int_equal(r.count, 2);
    assert_int_equal(r.problems_count, 0);
    assert_false(r.rankless);
    assert_true(r.values[GWA_METRIC_LAUNCH_CALLS].median == 84);
    assert_true(r.values[GWA_METRIC_HOST_US].median == 25); /* (1 x 10 + 3 x 30) / 4 */
    assert_true(r.values[GWA_METRIC_STEP_MS].median == 20);
    assert_true(r.values[GWA_METRIC_BUSY].median == 60);
    assert_true(isnan(r.values[GWA_METRIC_PEAK_RESERVED].median));
    assert_true(gwa_names_find(&r.kernels, "gemm")->calls == 4);
    assert_string_equal(r.keys[GWA_KEY_SCRIPT], "train.py");
    assert_string_equal(r.keys[GWA_KEY_SMS], "132");
    assert_string_equal(r.keys[GWA_KEY_PROCESSES], "2");
    gwa_run_free(&r);

    p[1].identity.rank = 0;
    r = run_of(p, 2);
    assert_true(r.rankless);
    gwa_run_free(&r);
}

static void has_problem(const struct gwa_process *p, const char *text)
{
    struct gwa_run r = run_of(p, 1);
    bool found = false;
    for (size_t i = 0; i < r.problems_count; i++)
        found |= strstr(r.problems[i], text) != NULL;
    if (!found)
        fail_msg("no problem says \"%s\"", text);
    gwa_run_free(&r);
}

static void nothing_is_concluded_from_less_than_a_whole_run(void **state)
{
    struct gwa_process p = usual_process();
    struct gwt_coverage killed = {.events = 10}, alive = {.alive = true, .events = 10};
    (void)state;
    p.quality.flaws[0] = (struct gwa_flaw){GWA_FLAW_DROPPED, 7};
    p.quality.flaws_count = 1;
    has_problem(&p, "7 events dropped because a ring was full");
    p = usual_process();
    p.coverage = &killed;
    has_problem(&p, "it was killed");
    p.coverage = &alive;
    has_problem(&p, "still running");
    p = usual_process();
    p.steps.steady = 9;
    has_problem(&p, "9 steady steps, and 10 are the least");
    p.steps.count = p.steps.steady = 0;
    has_problem(&p, "no steps were found");
    p = usual_process();
    p.steps.confidence = 0.4;
    has_problem(&p, "doubtful (confidence 0.40)");
    p.steps.confidence = NAN;
    has_problem(&p, "doubtful");
    p = usual_process();
    p.launches.calls = 0;
    has_problem(&p, "no kernel was launched");
    p.coverage = &killed; /* and what it would have launched is not known */
    has_problem(&p, "it was killed");
}

/* ---- before and after ---------------------------------------------------------------------------
 */

static const struct gwa_diff_row *row_of(const struct gwa_diff *d, unsigned metric)
{
    for (size_t i = 0; i < d->rows_count; i++)
        if (d->rows[i].metric == metric)
            return &d->rows[i];
    return NULL;
}

static void differences_know_their_noise(void **state)
{
    struct gwa_process a = usual_process(), b = usual_process();
    struct gwa_diff d;
    (void)state;
    a.steps.h2d_bytes = (struct gwa_spread){4000, 4096, 5000}; /* varies with the data */
    b.steps.h2d_bytes = (struct gwa_spread){4000, 4200, 5000};
    b.steps.syncs = always(2);
    b.steps.ms.median = 10.2;             /* half of the steps are within 4 %: 2 on either side */
    b.launches.host_us_per_launch = 13.4; /* its margin is 35 % */
    struct gwa_run base = run_of(&a, 1), now = run_of(&b, 1);
    assert_int_equal(gwa_diff(&base, &now, GWA_SORT_EFFECT, &d), 0);
    assert_int_equal(row_of(&d, GWA_METRIC_LAUNCH_CALLS)->noise, GWA_NOISE_SAME);
    assert_int_equal(row_of(&d, GWA_METRIC_H2D_BYTES)->noise, GWA_NOISE_WITHIN);
    assert_int_equal(row_of(&d, GWA_METRIC_SYNCS)->noise, GWA_NOISE_BEYOND);
    assert_int_equal(row_of(&d, GWA_METRIC_STEP_MS)->noise, GWA_NOISE_WITHIN);
    assert_int_equal(row_of(&d, GWA_METRIC_HOST_US)->noise, GWA_NOISE_WITHIN);
    assert_null(row_of(&d, GWA_METRIC_PEAK_RESERVED));
    assert_int_equal(d.kernels_count, 0);
    gwa_diff_free(&d);
    gwa_run_free(&now);
    b.steps.ms.median = 10.3;
    b.launches.host_us_per_launch = 13.6;
    now = run_of(&b, 1);
    assert_int_equal(gwa_diff(&base, &now, GWA_SORT_EFFECT, &d), 0);
    assert_int_equal(row_of(&d, GWA_METRIC_STEP_MS)->noise, GWA_NOISE_BEYOND);
    assert_int_equal(row_of(&d, GWA_METRIC_HOST_US)->noise, GWA_NOISE_BEYOND);
    gwa_diff_free(&d);
    gwa_run_free(&base);
    gwa_run_free(&now);
    /* steps that differ wildly excuse no doubling */
    a.steps.spread_pct = 7300;
    b.steps.ms.median = 20;
    base = run_of(&a, 1);
    now = run_of(&b, 1);
    assert_int_equal(gwa_diff(&base, &now, GWA_SORT_EFFECT, &d), 0);
    assert_int_equal(row_of(&d, GWA_METRIC_STEP_MS)->noise, GWA_NOISE_BEYOND);
    gwa_diff_free(&d);
    gwa_run_free(&base);
    gwa_run_free(&now);
}

static struct gwa_finding found(const char *id)
{
    static char what[] = "x";
    return (struct gwa_finding){.id = id, .what = what, .share_pct = 5};
}

static void findings_appear_and_disappear(void **state)
{
    struct gwa_process a = usual_process(), b = usual_process();
    struct gwa_finding old[] = {found("input-cpu"), found("launch-bound")};
    struct gwa_finding new[] = {found("launch-bound"), found("sync-per-step")};
    struct gwa_diff d;
    (void)state;
    a.findings = old;
    b.findings = new;
    a.findings_count = b.findings_count = 2;
    struct gwa_run base = run_of(&a, 1), now = run_of(&b, 1);
    assert_int_equal(gwa_diff(&base, &now, GWA_SORT_EFFECT, &d), 0);
    assert_int_equal(d.findings_count, 3);
    assert_string_equal(d.findings[0].base->id, "input-cpu");
    assert_null(d.findings[0].now);
    assert_string_equal(d.findings[1].now->id, "sync-per-step");
    assert_null(d.findings[1].base);
    assert_string_equal(d.findings[2].base->id, "launch-bound");
    assert_string_equal(d.findings[2].now->id, "launch-bound");
    gwa_diff_free(&d);
    gwa_run_free(&base);
    gwa_run_free(&now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_margins),
        cmocka_unit_test(what_was_not_measured_moves_nowhere),
        cmocka_unit_test(downwards_has_margins_of_its_own),
        cmocka_unit_test(gated_metrics_have_their_names),
        cmocka_unit_test(dearer_launches_are_seen_and_other_hosts_are_not),
        cmocka_unit_test(scripts_have_labels),
        cmocka_unit_test(names_are_united_and_compared),
        cmocka_unit_test(names_are_plain_and_not_endless),
        cmocka_unit_test(a_run_is_the_sum_of_its_processes),
        cmocka_unit_test(nothing_is_concluded_from_less_than_a_whole_run),
        cmocka_unit_test(differences_know_their_noise),
        cmocka_unit_test(findings_appear_and_disappear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
