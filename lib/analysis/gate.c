#include "gate.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gating {
    const struct gwa_run *run;
    const struct gwa_baseline *baseline;
    const struct gwa_gate_options *options;
    struct gwa_gate *out;
    size_t missing; /* metrics that the baseline lacks */
};

__attribute__((format(printf, 3, 4))) static int add_text(char ***list, size_t *count,
                                                          const char *format, ...)
{
    char **grown = realloc(*list, (*count + 1) * sizeof(*grown));
    va_list args;
    if (!grown)
        return -ENOMEM;
    *list = grown;
    va_start(args, format);
    int n = vasprintf(&grown[*count], format, args);
    va_end(args);
    if (n < 0)
        return -ENOMEM;
    ++*count;
    return 0;
}

#define REASON(g, ...) add_text(&(g)->out->reasons, &(g)->out->reasons_count, __VA_ARGS__)
#define NOTE(g, ...)   add_text(&(g)->out->notes, &(g)->out->notes_count, __VA_ARGS__)

static bool gated(const struct gating *g, unsigned m)
{
    return gwa_metrics[m].gated == GWA_GATED_YES ||
           (g->options->times && gwa_metrics[m].gated == GWA_GATED_TIMES);
}

/* ---- keys --------------------------------------------------------------------------------------
 */

static bool times_matter(const struct gating *g)
{
    bool matter = false;
    for (unsigned m = 0; m < GWA_METRIC_COUNT; m++)
        matter |= gated(g, m) && gwa_metrics[m].group == GWA_GROUP_TIME && !g->options->skipped[m];
    return matter;
}

static int compare_keys(struct gating *g)
{
    bool times = times_matter(g);
    int rc = 0;
    for (unsigned k = 0; k < GWA_KEY_COUNT && !rc; k++) {
        const char *base = g->baseline->keys[k], *now = g->run->keys[k];
        if (k == GWA_KEY_SCRIPT && !base && !now && !g->options->allowed[k]) {
            rc = REASON(g, "the script is not known, its command line was not recorded: --label "
                           "NAME names it");
            continue;
        }
        if ((gwa_keys[k].times && !times) || (!base && !now) || (base && now && !strcmp(base, now)))
            continue;
        base = base ? base : "unknown";
        now = now ? now : "unknown";
        if (g->options->allowed[k])
            rc = NOTE(g, "%s differs: %s in the baseline, %s now", gwa_keys[k].key, base, now);
        else
            rc = REASON(g,
                        "%s differs: %s in the baseline, %s now (--allow-different %s, or a "
                        "baseline of its own)",
                        gwa_keys[k].key, base, now, gwa_keys[k].key);
    }
    return rc;
}

/* ---- metrics
 * ------------------------------------------------------------------------------------- */

static uint8_t judge(unsigned metric, const struct gwa_margins *margins, double base, double now)
{
    if (isnan(base) && isnan(now))
        return GWA_VERDICT_NOT_MEASURED;
    if (isnan(base) || isnan(now))
        return GWA_VERDICT_UNKNOWN;
    enum gwa_move move = gwa_moved(margins, base, now, 1);
    if (move == GWA_MOVE_NONE)
        return GWA_VERDICT_OK;
    bool worse = (move == GWA_MOVE_UP) == (gwa_metrics[metric].worse == GWA_WORSE_MORE);
    return worse ? GWA_VERDICT_REGRESSED : GWA_VERDICT_WON;
}

static double margin_of(const struct gwa_margins *m, double base, double now)
{
    double abs = now < base ? m->below_abs : m->abs, rel = now < base ? m->below_rel : m->rel;
    return fmax(abs, isnan(base) ? 0 : rel * fabs(base));
}

/* Far fewer kernels may be a win, or work that is no longer done, or a part of a step taken for
 * the whole: for a person to say. */
static bool accepted(const struct gating *g, unsigned metric, double base, double now)
{
    return g->options->accept_wins && !(metric == GWA_METRIC_KERNELS && now < base / 2);
}

/* Beyond these the step itself is in doubt. */
#define LESS_OF_A_STEP 0.6
#define MORE_OF_A_STEP 1.7

static int doubt_the_step(struct gating *g, double base, double now)
{
    double ratio = now / base;
    if (!(base > 0) || (ratio >= LESS_OF_A_STEP && ratio <= MORE_OF_A_STEP))
        return 0;
    return NOTE(g,
                "a step holds %.2f times as many kernels as the baseline's: if another step was "
                "found, --step-range or --step-kernel says which",
                ratio);
}

static int add_row(struct gating *g, unsigned metric, const char *process, double base, double now)
{
    struct gwa_gate *out = g->out;
    const struct gwa_margins *margins = &g->baseline->margins[metric];
    struct gwa_gate_row row = {.metric = metric,
                               .process = process ? strdup(process) : NULL,
                               .base = base,
                               .now = now,
                               .margin = margin_of(margins, base, now),
                               .verdict = judge(metric, margins, base, now),
                               .line = g->baseline->lines[metric]};
    if (process && !row.process)
        return -ENOMEM;
    if (g->options->skipped[metric])
        row.verdict = GWA_VERDICT_SKIPPED;
    row.fails = row.verdict == GWA_VERDICT_REGRESSED ||
                (row.verdict == GWA_VERDICT_WON && !accepted(g, metric, base, now));
    out->regressed += row.verdict == GWA_VERDICT_REGRESSED;
    out->won += row.verdict == GWA_VERDICT_WON;
    out->failed += row.fails;
    out->rows[out->rows_count++] = row;
    if (row.verdict != GWA_VERDICT_UNKNOWN)
        return 0;
    return REASON(g, "%s%s%s was not measured %s", gwa_metrics[metric].key, process ? " of " : "",
                  process ? process : "", isnan(now) ? "this time" : "for the baseline");
}

static int all_metrics(struct gating *g)
{
    int rc = 0;
    for (unsigned m = 0; m < GWA_METRIC_COUNT && !rc; m++) {
        if (!gated(g, m))
            continue;
        if (g->baseline->has[m]) {
            rc = add_row(g, m, NULL, g->baseline->values[m], g->run->values[m].median);
            if (!rc && m == GWA_METRIC_KERNELS)
                rc = doubt_the_step(g, g->baseline->values[m], g->run->values[m].median);
        } else if (!g->options->skipped[m]) {
            g->missing++;
            rc = REASON(g, "the baseline has no %s (--update%s adds it, --skip %s leaves it out)",
                        gwa_metrics[m].key,
                        gwa_metrics[m].gated == GWA_GATED_TIMES ? " --times" : "",
                        gwa_metrics[m].key);
        }
    }
    return rc;
}

static const struct gwa_run_process *find_process(const struct gwa_run *run, const char *name)
{
    for (size_t i = 0; i < run->count; i++) {
        char its[GWA_PROCESS_NAME];
        gwa_process_name(&run->processes[i], its);
        if (!strcmp(its, name))
            return &run->processes[i];
    }
    return NULL;
}

static int each_process(struct gating *g)
{
    int rc = 0;
    for (size_t i = 0; i < g->baseline->processes_count && !rc; i++) {
        const struct gwa_baseline_process *base = &g->baseline->processes[i];
        const struct gwa_run_process *now = find_process(g->run, base->name);
        if (!now || g->run->rankless) {
            if (!g->options->allowed[GWA_KEY_PROCESSES])
                rc = REASON(g, "%s of the baseline is not in this run", base->name);
            continue;
        }
        for (unsigned m = 0; m < GWA_METRIC_COUNT && !rc; m++)
            if (gated(g, m) && g->baseline->has[m])
                rc = add_row(g, m, base->name, base->values[m], now->values[m].median);
    }
    return rc;
}

/* ---- kernels
 * --------------------------------------------------------------------------------------- */

static const char *first_match(const struct gwa_run *run, const char *pattern)
{
    for (size_t i = 0; i < run->kernels.count; i++) {
        const struct gwa_named *k = &run->kernels.list[i];
        if (gwa_pattern_matches(pattern, k->full ? k->full : k->name))
            return k->name;
    }
    return NULL;
}

static void patterns(struct gating *g, char **list, size_t count, bool required)
{
    for (size_t i = 0; i < count; i++) {
        const char *kernel = first_match(g->run, list[i]);
        bool fails = required == !kernel;
        g->out->patterns[g->out->patterns_count++] =
            (struct gwa_gate_pattern){list[i], required, kernel, fails};
        g->out->failed += fails;
        g->out->regressed += fails;
    }
}

static int by_names(struct gating *g)
{
    struct gwa_gate *out = g->out;
    int rc = gwa_names_compare(&g->baseline->kernels, &g->run->kernels, GWA_SORT_CALLS,
                               &out->kernels, &out->kernels_count);
    return rc ? rc
              : gwa_names_compare(&g->baseline->calls, &g->run->calls, GWA_SORT_CALLS, &out->calls,
                                  &out->calls_count);
}

/* ---- all
 * -------------------------------------------------------------------------------------------- */

static int gate(struct gating *g)
{
    int rc = 0;
    for (size_t i = 0; i < g->run->problems_count && !rc; i++)
        rc = REASON(g, "%s", g->run->problems[i]);
    if (rc || !g->run->count)
        return rc;
    if ((rc = compare_keys(g)) || (rc = all_metrics(g)) || (rc = each_process(g)))
        return rc;
    patterns(g, g->baseline->require, g->baseline->require_count, true);
    patterns(g, g->baseline->forbid, g->baseline->forbid_count, false);
    return by_names(g);
}

int gwa_gate(const struct gwa_run *run, const struct gwa_baseline *baseline,
             const struct gwa_gate_options *options, struct gwa_gate *out)
{
    struct gating g = {run, baseline, options, out, 0};
    *out = (struct gwa_gate){0};
    out->rows = calloc((baseline->processes_count + 1) * GWA_METRIC_COUNT, sizeof(*out->rows));
    out->patterns =
        calloc(baseline->require_count + baseline->forbid_count + 1, sizeof(*out->patterns));
    int rc = out->rows && out->patterns ? gate(&g) : -ENOMEM;
    if (rc)
        gwa_gate_free(out);
    else
        out->outcome = g.missing            ? GWA_GATE_UNUSABLE
                       : out->reasons_count ? GWA_GATE_INCONCLUSIVE
                       : out->failed        ? GWA_GATE_FAILED
                                            : GWA_GATE_PASSED;
    return rc;
}

void gwa_gate_free(struct gwa_gate *g)
{
    for (size_t i = 0; i < g->rows_count; i++)
        free(g->rows[i].process);
    for (size_t i = 0; i < g->reasons_count; i++)
        free(g->reasons[i]);
    for (size_t i = 0; i < g->notes_count; i++)
        free(g->notes[i]);
    free(g->rows);
    free(g->patterns);
    free(g->kernels);
    free(g->calls);
    free(g->reasons);
    free(g->notes);
    *g = (struct gwa_gate){0};
}
