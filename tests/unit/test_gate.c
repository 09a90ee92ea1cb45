/* Baselines: from text, to text, and runs held against them. */
/* clang-format off: cmocka.h needs these first */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "compare_help.h"

#include "analysis/gate.h"

#include <errno.h>

static struct gwa_baseline baseline_of(const struct gwa_run *run, bool times)
{
    struct gwa_baseline b;
    gwa_baseline_begin(&b);
    assert_true(gwa_baseline_update(&b, run, times) > 0);
    return b;
}

static char *text_of(const struct gwa_baseline *b)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(gwa_baseline_write(b, out), 0);
    fclose(out);
    return text;
}

static struct gwa_baseline usual_baseline(void)
{
    struct gwa_process p = usual_process();
    struct gwa_run run = run_of(&p, 1);
    struct gwa_baseline b = baseline_of(&run, false);
    gwa_run_free(&run);
    return b;
}

/* ---- text ------------------------------------------------------------------------------- */

static void a_baseline_comes_back_as_it_was(void **state)
{
    struct gwa_process p[2] = {usual_process(), usual_process()};
    struct gwa_baseline again;
    struct gwt_error error;
    (void)state;
    p[0].identity.rank = 0;
    p[1].identity.rank = 1;
    struct gwa_run run = run_of(p, 2);
    struct gwa_baseline b = baseline_of(&run, true);
    gwa_baseline_pattern(&b.forbid, &b.forbid_count, "double");
    b.margins[GWA_METRIC_SYNCS].below_abs = 3;
    char *text = text_of(&b);
    assert_int_equal(gwa_baseline_parse(text, strlen(text), "x", &again, &error), 0);
    char *second = text_of(&again);
    assert_string_equal(text, second);
    assert_true(again.margins[GWA_METRIC_SYNCS].below_abs == 3);
    assert_int_equal(again.processes_count, 2);
    assert_true(again.values[GWA_METRIC_LAUNCH_CALLS] == 84);
    assert_true(again.processes[1].values[GWA_METRIC_LAUNCH_CALLS] == 42);
    assert_true(again.has[GWA_METRIC_STEP_MS]);
    /* and nothing of it is new */
    assert_int_equal(gwa_baseline_update(&again, &run, true), 0);
    free(text);
    free(second);
    gwa_baseline_free(&b);
    gwa_baseline_free(&again);
    gwa_run_free(&run);
}

/* Each is refused in one line that begins with `where` and says `why`. */
static void hostile_texts_are_refused(void **state)
{
#define KEYS "\"schema\": 1, \"keys\": {}, "
    static const char *const cases[][3] = {
        {"", "b.json:1:0: ", "end of file"},
        {"{", "b.json:1:1: ", "end of file"},
        {"\n\n  {\"schema\": 1,\n x}", "b.json:4:2: ", "expected"},
        {"[]", "b.json:1: ", "not a JSON object"},
        {"{}", "b.json: schema: ", "is missing"},
        {"{\"schema\": 1, \"keys\": {}}", "b.json: metrics: ", "is missing"},
        {"{\"schema\": 2, \"keys\": {}, \"metrics\": {}}", "b.json:1: schema: ", "schema 1 only"},
        {"{\"schema\": \"1\", \"keys\": {}, \"metrics\": {}}", "b.json:1: schema: ", "schema 1"},
        {"{" KEYS "\"metrics\": {}, \"metrics\": {}}", "b.json:1:", "duplicate"},
        {"{" KEYS "\"metrics\": []}", "b.json:1: metrics: ", "not an object"},
        {"{" KEYS "\"metrics\":\n{\"launches\": {\"value\": 1}}}",
         "b.json:2: metrics.launches: ", "no such metric"},
        {"{" KEYS "\"metrics\": {\"copies\": {\"value\": 1}}}",
         "b.json:1: metrics.copies: ", "no such metric"},
        {"{" KEYS "\"metrics\": {\"syncs\": 1}}", "b.json:1: metrics.syncs: ", "not an object"},
        {"{" KEYS "\"metrics\": {\"syncs\": {}}}", "b.json:1: metrics.syncs: ", "no value"},
        {"{" KEYS "\"metrics\": {\"syncs\": {\"value\": -1}}}",
         "b.json:1: metrics.syncs: ", "no number of 0 or more"},
        {"{" KEYS "\"metrics\": {\"syncs\": {\"value\": 1e300}}}",
         "b.json:1: metrics.syncs: ", "no number of 0 or more"},
        {"{" KEYS "\"metrics\": {\"syncs\": {\"value\": 1e999}}}", "b.json:1:", "overflow"},
        {"{" KEYS "\"metrics\": {\"syncs\": {\"value\": 1, \"abs\": -1}}}",
         "b.json:1: metrics.syncs: ", "a margin is"},
        {"{" KEYS "\"metrics\": {\"syncs\": {\"value\": 1, \"abs\": \"x\"}}}",
         "b.json:1: metrics.syncs: ", "a margin is"},
        {"{" KEYS "\"metrics\": {\"syncs\": {\"value\": 1, \"max\": 1}}}",
         "b.json:1: metrics.syncs: ", "takes value, abs"},
        {"{" KEYS "\"metrics\": {}, \"kernels\": {\"a\": \"b\"}}",
         "b.json:1: kernels.a: ", "no number"},
        {"{" KEYS "\"metrics\": {}, \"kernels\": 3}", "b.json:1: kernels: ", "not an object"},
        {"{" KEYS "\"metrics\": {}, \"require\": {}}", "b.json:1: require: ", "not an array"},
        {"{" KEYS "\"metrics\": {}, \"forbid\": [\"\"]}", "b.json:1: forbid: ", "not empty"},
        {"{" KEYS "\"metrics\": {}, \"extra\": {}}", "b.json:1: extra: ", "no such part"},
        {"{" KEYS "\"metrics\": {}, \"processes\": {\"rank 0\": 3}}",
         "b.json:1: processes.rank 0: ", "not an object"},
        {"{" KEYS "\"metrics\": {}, \"processes\": {\"r\": {\"x\": 3}}}",
         "b.json:1: processes.x: ", "no such metric"},
        {"{\"schema\": 1, \"keys\": {\"colour\": \"x\"}, \"metrics\": {}}",
         "b.json:1: keys.colour: ", "no such key"},
        {"{\"schema\": 1, \"keys\": {\"sms\": 132}, \"metrics\": {}}",
         "b.json:1: keys.sms: ", "not a text"},
        {"{\"schema\": 1, \"keys\": {\"s\\u0000ms\": 1}, \"metrics\": {}}", "b.json:1:", "\\u0000"},
        {"\xff\xfe", "b.json:1:", "decode"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct gwa_baseline b;
        struct gwt_error error = {""};
        int rc = gwa_baseline_parse(cases[i][0], strlen(cases[i][0]), "b.json", &b, &error);
        if (rc != -EBADMSG || strncmp(error.text, cases[i][1], strlen(cases[i][1])) ||
            !strstr(error.text, cases[i][2]) || strchr(error.text, '\n'))
            fail_msg("%s\n  gives %d \"%s\"\n  not \"%s ... %s\"", cases[i][0], rc, error.text,
                     cases[i][1], cases[i][2]);
        assert_int_equal(b.kernels.count, 0); /* nothing is left to be freed */
    }
}

static void deep_texts_are_refused(void **state)
{
    static char deep[1 << 20];
    struct gwa_baseline b;
    struct gwt_error error = {""};
    (void)state;
    memset(deep, '[', sizeof(deep));
    assert_int_equal(gwa_baseline_parse(deep, sizeof(deep), "b.json", &b, &error), -EBADMSG);
}

/* ---- what is renewed ----------------------------------------------------------------------- */

static void only_what_moved_is_renewed(void **state)
{
    struct gwa_process p = usual_process();
    struct gwa_baseline b = usual_baseline();
    (void)state;
    p.launches.host_us_per_launch = 11;    /* a third of 35 % is 11.7 % */
    p.steps.h2d_bytes = always(4096 + 13); /* a third of 1 % is 13.65 */
    struct gwa_run run = run_of(&p, 1);
    assert_int_equal(gwa_baseline_update(&b, &run, false), 0);
    assert_true(b.values[GWA_METRIC_HOST_US] == 10);
    gwa_run_free(&run);

    p.launches.host_us_per_launch = 11.2;
    p.steps.h2d_bytes = always(4096 + 14);
    p.steps.syncs = always(2);
    b.margins[GWA_METRIC_SYNCS].rel = 0.2; /* by hand */
    run = run_of(&p, 1);
    assert_int_equal(gwa_baseline_update(&b, &run, false), 3);
    assert_true(b.values[GWA_METRIC_HOST_US] == 11.2);
    assert_true(b.values[GWA_METRIC_H2D_BYTES] == 4110);
    assert_true(b.values[GWA_METRIC_SYNCS] == 2);
    assert_true(b.margins[GWA_METRIC_SYNCS].rel == 0.2);
    gwa_run_free(&run);
    gwa_baseline_free(&b);
}

static void patterns_match_anywhere(void **state)
{
    (void)state;
    assert_true(gwa_pattern_matches("gemm", "void cutlass_gemm<float>(int)"));
    assert_true(gwa_pattern_matches("gemm*double", "gemm<float, double>"));
    assert_false(gwa_pattern_matches("double*gemm", "gemm<float, double>"));
    assert_true(gwa_pattern_matches("*gemm*", "gemm"));
    assert_false(gwa_pattern_matches("gemm*gemm", "gemm"));
    assert_false(gwa_pattern_matches("gemm", ""));
}

/* ---- the gate ---------------------------------------------------------------------------------
 */

static const struct gwa_gate_row *row_of(const struct gwa_gate *g, unsigned metric)
{
    for (size_t i = 0; i < g->rows_count; i++)
        if (g->rows[i].metric == metric && !g->rows[i].process)
            return &g->rows[i];
    return NULL;
}

struct gated {
    struct gwa_run run;
    struct gwa_baseline baseline;
    struct gwa_gate gate;
};

static void gate(struct gated *g, const struct gwa_process *p, const struct gwa_gate_options *o)
{
    g->run = run_of(p, 1);
    assert_int_equal(gwa_gate(&g->run, &g->baseline, o, &g->gate), 0);
}

static void ungate(struct gated *g)
{
    gwa_gate_free(&g->gate);
    gwa_run_free(&g->run);
}

static void the_same_passes(void **state)
{
    struct gwa_process p = usual_process();
    struct gwa_gate_options o = {0};
    struct gated g = {.baseline = usual_baseline()};
    (void)state;
    gate(&g, &p, &o);
    assert_int_equal(g.gate.outcome, GWA_GATE_PASSED);
    assert_int_equal(g.gate.rows_count, 13);
    assert_int_equal(row_of(&g.gate, GWA_METRIC_SYNCS)->verdict, GWA_VERDICT_OK);
    ungate(&g);
    gwa_baseline_free(&g.baseline);
}

static void a_regression_fails_and_is_named(void **state)
{
    struct gwa_process p = usual_process();
    struct gwa_per_step kernels[] = {{"add(float*, int)", 41}, {"gemm", 2}};
    struct gwa_gate_options o = {0};
    struct gated g = {.baseline = usual_baseline()};
    (void)state;
    p.steps.kernels = p.steps.launches = always(43);
    p.step_kernels = kernels;
    gate(&g, &p, &o);
    assert_int_equal(g.gate.outcome, GWA_GATE_FAILED);
    assert_int_equal(g.gate.regressed, 2);
    assert_int_equal(row_of(&g.gate, GWA_METRIC_KERNELS)->verdict, GWA_VERDICT_REGRESSED);
    assert_true(row_of(&g.gate, GWA_METRIC_KERNELS)->margin == 0.5);
    assert_int_equal(g.gate.kernels_count, 1);
    assert_string_equal(g.gate.kernels[0].name, "add(float*, int)");
    ungate(&g);
    o.skipped[GWA_METRIC_KERNELS] = o.skipped[GWA_METRIC_LAUNCH_CALLS] = true;
    gate(&g, &p, &o);
    assert_int_equal(g.gate.outcome, GWA_GATE_PASSED);
    assert_int_equal(row_of(&g.gate, GWA_METRIC_KERNELS)->verdict, GWA_VERDICT_SKIPPED);
    ungate(&g);
    gwa_baseline_free(&g.baseline);
}

static void wins_fail_unless_they_are_accepted(void **state)
{
    struct gwa_process p = usual_process();
    struct gwa_gate_options o = {0};
    struct gated g = {.baseline = usual_baseline()};
    (void)state;
    p.steps.syncs = always(0);
    gate(&g, &p, &o);
    assert_int_equal(g.gate.outcome, GWA_GATE_FAILED);
    assert_int_equal(row_of(&g.gate, GWA_METRIC_SYNCS)->verdict, GWA_VERDICT_WON);
    ungate(&g);
    o.accept_wins = true;
    gate(&g, &p, &o);
    assert_int_equal(g.gate.outcome, GWA_GATE_PASSED);
    assert_int_equal(g.gate.won, 1);
    ungate(&g);
    /* most of the kernels gone is not taken for a win */
    p.steps.kernels = always(20);
    gate(&g, &p, &o);
    assert_int_equal(g.gate.outcome, GWA_GATE_FAILED);
    assert_int_equal(g.gate.notes_count, 1);
    ungate(&g);
    gwa_baseline_free(&g.baseline);
}

/* Fewer launches, each 70 % dearer. */
static void fewer_but_dearer_launches_regress(void **state)
{
    struct gwa_process p = usual_process();
    struct gwa_gate_options o = {.accept_wins = true};
    struct gated g = {.baseline = usual_baseline()};
    (void)state;
    p.steps.launches = p.steps.kernels = always(32);
    p.launches.host_us_per_launch = 17;
    gate(&g, &p, &o);
    assert_int_equal(g.gate.outcome, GWA_GATE_FAILED);
    assert_int_equal(g.gate.regressed, 1);
    assert_int_equal(row_of(&g.gate, GWA_METRIC_HOST_US)->verdict, GWA_VERDICT_REGRESSED);
    ungate(&g);
    gwa_baseline_free(&g.baseline);
}

static bool says(const struct gwa_gate *g, const char *text)
{
    for (size_t i = 0; i < g->reasons_count; i++)
        if (strstr(g->reasons[i], text))
            return true;
    return false;
}

static void other_machines_versions_and_scripts_are_not_compared(void **state)
{
    static const struct {
        unsigned key;
        const char *value, *text;
    } cases[] = {{GWA_KEY_SMS, "108", "sms differs: 108 in the baseline, 132 now"},
                 {GWA_KEY_SCRIPT, "eval.py", "script differs: eval.py in the baseline, train.py"},
                 {GWA_KEY_TORCH, "2.10", "torch differs: 2.10 in the baseline, unknown now"},
                 {GWA_KEY_PROCESSES, "8", "processes differs: 8 in the baseline, 1 now"},
                 {GWA_KEY_DRIVER, "580", "driver differs: 580 in the baseline, unknown now"}};
    struct gwa_process p = usual_process();
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct gwa_gate_options o = {0};
        struct gated g = {.baseline = usual_baseline()};
        free(g.baseline.keys[cases[i].key]);
        g.baseline.keys[cases[i].key] = strdup(cases[i].value);
        gate(&g, &p, &o);
        assert_int_equal(g.gate.outcome, GWA_GATE_INCONCLUSIVE);
        assert_true(says(&g.gate, cases[i].text));
        ungate(&g);
        o.allowed[cases[i].key] = true;
        gate(&g, &p, &o);
        assert_int_equal(g.gate.outcome, GWA_GATE_PASSED);
        assert_int_equal(g.gate.notes_count, 1);
        ungate(&g);
        gwa_baseline_free(&g.baseline);
    }
    /* nor scripts of which nothing is known */
    struct gwa_gate_options none = {0};
    struct gated unknown = {.baseline = usual_baseline()};
    free(unknown.baseline.keys[GWA_KEY_SCRIPT]);
    unknown.baseline.keys[GWA_KEY_SCRIPT] = NULL;
    p.identity.command = "(left out)";
    gate(&unknown, &p, &none);
    assert_int_equal(unknown.gate.outcome, GWA_GATE_INCONCLUSIVE);
    assert_true(says(&unknown.gate, "--label NAME"));
    ungate(&unknown);
    gwa_baseline_free(&unknown.baseline);
    p = usual_process();
    /* where no time is gated, the driver is nobody's business */
    struct gwa_gate_options o = {.skipped = {[GWA_METRIC_HOST_US] = true}};
    struct gated g = {.baseline = usual_baseline()};
    g.baseline.keys[GWA_KEY_DRIVER] = strdup("580");
    gate(&g, &p, &o);
    assert_int_equal(g.gate.outcome, GWA_GATE_PASSED);
    ungate(&g);
    gwa_baseline_free(&g.baseline);
}

static void what_is_missing_or_not_measured_is_never_green(void **state)
{
    struct gwa_process p = usual_process();
    struct gwa_gate_options o = {0};
    struct gated g = {.baseline = usual_baseline()};
    (void)state;
    o.times = true; /* and the baseline has none */
    gate(&g, &p, &o);
    assert_int_equal(g.gate.outcome, GWA_GATE_UNUSABLE);
    assert_true(says(&g.gate, "the baseline has no step_ms (--update --times adds it"));
    ungate(&g);
    o.times = false;
    p.launches.host_us_per_launch = NAN;
    gate(&g, &p, &o);
    assert_int_equal(g.gate.outcome, GWA_GATE_INCONCLUSIVE);
    assert_true(says(&g.gate, "host_us_per_launch was not measured this time"));
    ungate(&g);
    g.baseline.values[GWA_METRIC_HOST_US] = NAN; /* nor then */
    gate(&g, &p, &o);
    assert_int_equal(g.gate.outcome, GWA_GATE_PASSED);
    assert_int_equal(row_of(&g.gate, GWA_METRIC_HOST_US)->verdict, GWA_VERDICT_NOT_MEASURED);
    ungate(&g);
    /* a regression does not make an incomplete run conclusive */
    p = usual_process();
    p.steps.syncs = always(9);
    p.steps.steady = 3;
    gate(&g, &p, &o);
    assert_int_equal(g.gate.outcome, GWA_GATE_INCONCLUSIVE);
    ungate(&g);
    gwa_baseline_free(&g.baseline);
}

static void kernels_are_required_and_forbidden(void **state)
{
    struct gwa_process p = usual_process();
    struct gwa_gate_options o = {0};
    struct gated g = {.baseline = usual_baseline()};
    (void)state;
    gwa_baseline_pattern(&g.baseline.require, &g.baseline.require_count, "gemm");
    gwa_baseline_pattern(&g.baseline.forbid, &g.baseline.forbid_count, "double");
    gate(&g, &p, &o);
    assert_int_equal(g.gate.outcome, GWA_GATE_PASSED);
    ungate(&g);
    gwa_baseline_pattern(&g.baseline.require, &g.baseline.require_count, "flash");
    gwa_baseline_pattern(&g.baseline.forbid, &g.baseline.forbid_count, "add(float*int");
    gate(&g, &p, &o);
    assert_int_equal(g.gate.outcome, GWA_GATE_FAILED);
    assert_int_equal(g.gate.failed, 2);
    assert_string_equal(g.gate.patterns[3].kernel, "add(float*, int)");
    ungate(&g);
    gwa_baseline_free(&g.baseline);
}

/* One rank's loss is another's gain: together nothing moved. */
static void processes_are_held_each_against_its_own(void **state)
{
    struct gwa_process p[2] = {usual_process(), usual_process()};
    struct gwa_gate_options o = {0};
    struct gwa_gate g;
    (void)state;
    p[0].identity.rank = 0;
    p[1].identity.rank = 1;
    struct gwa_run run = run_of(p, 2);
    struct gwa_baseline b = baseline_of(&run, false);
    gwa_run_free(&run);
    p[0].steps.syncs = always(0);
    p[1].steps.syncs = always(2);
    run = run_of(p, 2);
    assert_int_equal(gwa_gate(&run, &b, &o, &g), 0);
    assert_int_equal(g.outcome, GWA_GATE_FAILED);
    assert_int_equal(g.regressed, 1);
    assert_int_equal(g.won, 1);
    assert_int_equal(row_of(&g, GWA_METRIC_SYNCS)->verdict, GWA_VERDICT_OK);
    gwa_gate_free(&g);
    gwa_run_free(&run);
    gwa_baseline_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_baseline_comes_back_as_it_was),
        cmocka_unit_test(hostile_texts_are_refused),
        cmocka_unit_test(deep_texts_are_refused),
        cmocka_unit_test(only_what_moved_is_renewed),
        cmocka_unit_test(patterns_match_anywhere),
        cmocka_unit_test(the_same_passes),
        cmocka_unit_test(a_regression_fails_and_is_named),
        cmocka_unit_test(wins_fail_unless_they_are_accepted),
        cmocka_unit_test(fewer_but_dearer_launches_regress),
        cmocka_unit_test(other_machines_versions_and_scripts_are_not_compared),
        cmocka_unit_test(what_is_missing_or_not_measured_is_never_green),
        cmocka_unit_test(kernels_are_required_and_forbidden),
        cmocka_unit_test(processes_are_held_each_against_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
