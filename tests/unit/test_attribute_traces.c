/* Idle by class adds up in every recording: those of tests/fixtures, or those named as arguments.
 * Where PLANTED names a file of lines "CLASS MS", such as a simulated client prints, each class is
 * as large as it says, within 2 % (or PERCENT) and 6 us a drain, about what waking up takes; with
 * OR_MORE also larger. */

/* clang-format off: cmocka.h needs these first */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "analysis/analysis.h"
#include "analysis/steps.h"

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char **files;
static size_t files_count;

static void same(const char *path, const char *what, double is, double should)
{
    if (!(fabs(is - should) <= 1e-6 * fmax(1, fabs(should))))
        fail_msg("%s: %s is %.9g, not %.9g", path, what, is, should);
}

static void check_sites(const char *path, const struct gwa_device *d)
{
    double of[GWA_IDLE_CLASS_COUNT] = {0}, wall_ms = d->window.wall_s * 1e3, drained = 0;
    for (size_t i = 0; i < d->sites_count; i++) {
        assert_in_range(d->sites[i].class, 0, GWA_IDLE_CLASS_COUNT - 1);
        assert_true(d->sites[i].idle_ms > 0);
        assert_true(!d->sites[i].reason == (d->sites[i].class != GWA_IDLE_UNKNOWN));
        of[d->sites[i].class] += d->sites[i].idle_ms;
    }
    for (unsigned c = 0; c < GWA_IDLE_CLASS_COUNT; c++)
        same(path, "a class's sites", 100 * of[c] / wall_ms, d->time.idle[c]);
    for (size_t i = 0; i < d->drains_count; i++)
        drained += d->drains[i].idle_ms;
    same(path, "drains", 100 * drained / wall_ms, d->time.drained_pct);
}

/* Returns whether there was anything to check. */
static bool check_device(const char *path, const struct gwa_device *d)
{
    double idle = 0, busy = 0, phases = 0;
    if (!d->time.method || strcmp(d->time.method, "sampled")) {
        for (unsigned c = 0; c < GWA_IDLE_CLASS_COUNT; c++)
            assert_true(isnan(d->time.idle[c]));
        assert_true(isnan(d->time.drained_pct) && !d->sites_count && !d->drains_count);
        return false;
    }
    for (unsigned c = 0; c < GWA_IDLE_CLASS_COUNT; c++) {
        assert_true(d->time.idle[c] >= 0);
        idle += d->time.idle[c];
    }
    same(path, "the sum of classes", idle, d->time.idle_pct);
    for (unsigned i = 0; i < GWA_PHASE_COUNT; i++) {
        phases += d->by_phase[i].idle_pct;
        busy += d->by_phase[i].busy_pct;
    }
    same(path, "idle by phase", phases, d->time.idle_pct);
    same(path, "busy by phase", busy, 100 - d->time.idle_pct);
    assert_true(d->time.drained_pct >= 0 && d->time.drained_pct <= d->time.idle_pct + 1e-9);
    for (size_t i = 0; i < d->gaps_count; i++) {
        double parts = 0;
        for (unsigned c = 0; c < GWA_IDLE_CLASS_COUNT; c++)
            parts += d->gaps[i].parts_ms[c];
        same(path, "the parts of a gap", parts, d->gaps[i].ms);
    }
    check_sites(path, d);
    return true;
}

static double class_ms(const struct gwa_device *d, const char *name)
{
    static const char *const names[] = {
#define X(id, key, text) #key,
        GWA_IDLE_CLASSES(X)
#undef X
    };
    double pct = NAN;
    if (!strcmp(name, "outside"))
        pct = d->time.idle[GWA_IDLE_HOST_CPU] + d->time.idle[GWA_IDLE_HOST_BLOCKED] +
              d->time.idle[GWA_IDLE_UNKNOWN];
    for (unsigned c = 0; c < GWA_IDLE_CLASS_COUNT; c++)
        if (!strcmp(name, names[c]))
            pct = d->time.idle[c];
    return pct / 100 * d->window.wall_s * 1e3;
}

static void check_planted(const char *path, const struct gwa_device *d)
{
    FILE *f = fopen(getenv("PLANTED"), "r");
    char name[32];
    const char *percent = getenv("PERCENT");
    double ms, wakes = 0, by = percent ? strtod(percent, NULL) / 100 : 0.02;
    unsigned lines = 0;
    assert_non_null(f);
    for (size_t i = 0; i < d->drains_count; i++)
        wakes += (double)d->drains[i].count * 6e-3;
    while (fscanf(f, "%31s %lf\n", name, &ms) == 2) {
        double is = class_ms(d, name);
        print_message("%s: planted %.1f ms, found %.1f\n", name, ms, is);
        if (!(ms - is <= by * ms + wakes) || (is - ms > by * ms + wakes && !getenv("OR_MORE")))
            fail_msg("%s: %s is %.3f ms, planted were %.3f", path, name, is, ms);
        lines++;
    }
    assert_true(lines > 0);
    fclose(f);
}

static void classes_add_up(void **state)
{
    size_t checked = 0;
    assert_true(files_count > 0);
    for (size_t i = 0; i < files_count; i++) {
        struct gwa_options options = {.whole = true};
        struct gwt_error error = {""};
        struct gwt_trace *trace;
        struct gwa_process *p = NULL;
        if (gwt_open(files[i], &trace, &error) || gwa_analyse(trace, &options, &p, &error))
            fail_msg("%s", error.text);
        for (size_t k = 0; k < p->devices_count; k++)
            checked += check_device(files[i], &p->devices[k]);
        if (getenv("PLANTED"))
            check_planted(files[i], &p->devices[0]);
        gwa_free(p);
        gwt_close(trace);
    }
    print_message("%zu devices in %zu recordings\n", checked, files_count);
    assert_true(checked > 0);
    (void)state;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(classes_add_up)};
    glob_t found = {0};
    files = argv + 1;
    files_count = (size_t)argc - 1;
    if (argc < 2 && !glob("tests/fixtures/*.gwt", 0, NULL, &found)) {
        files = found.gl_pathv;
        files_count = found.gl_pathc;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    globfree(&found);
    return failed;
}
