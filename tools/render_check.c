/* The gate as a person reads it. */
#include "render_check.h"
#include "render_parts.h"
#include "text.h"
#include "tool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHANGES_SHOWN 20

static void texts(const struct page *page, const char *lead, char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        page_text(page, lead, list[i]);
}

static void head(const struct page *page, const struct check_report *r)
{
    char *outcome = words_outcome(r->gate), *clean;
    char *text = xprintf("%s against %s: %s", r->trace, r->path, outcome);
    clean = text_clean(text);
    if (page->bold)
        fprintf(page->out, "\033[1m%s\033[0m\n", clean);
    else
        page_text(page, "", clean);
    free(clean);
    free(text);
    free(outcome);
    texts(page, "  because ", r->gate->reasons, r->gate->reasons_count);
    texts(page, "  note: ", r->gate->notes, r->gate->notes_count);
    if (r->run->rankless)
        page_text(page, "  note: ",
                  "processes without ranks of their own are compared all together only");
}

/* ---- metrics ------------------------------------------------------------------------------- */

/* Of single processes only what is not as it was. */
static bool shown(const struct page *page, const struct gwa_gate_row *row)
{
    return page->all || !row->process ||
           (row->verdict != GWA_VERDICT_OK && row->verdict != GWA_VERDICT_NOT_MEASURED &&
            row->verdict != GWA_VERDICT_SKIPPED);
}

static void metrics(const struct page *page, const struct check_report *r)
{
    static const struct column columns[] = {{"METRIC", LEFT, 0},  {"BASELINE", RIGHT, 0},
                                            {"NOW", RIGHT, 0},    {"DELTA", RIGHT, 0},
                                            {"MARGIN", RIGHT, 0}, {"VERDICT", LEFT, 1}};
    char n[TEXT_NUMBER];
    const char *process = NULL;
    if (!r->gate->rows_count)
        return;
    fputc('\n', page->out);
    struct table *t = table_new(page, columns, COLUMNS_IN(columns));
    for (size_t i = 0; i < r->gate->rows_count; i++) {
        const struct gwa_gate_row *row = &r->gate->rows[i];
        unsigned unit = gwa_metrics[row->metric].unit;
        if (!shown(page, row))
            continue;
        if (row->process && (!process || strcmp(process, row->process))) {
            table_row(t);
            table_cell(t, "%s", row->process);
        }
        process = row->process;
        table_row(t);
        table_cell(t, row->process ? "  %s" : "%s", gwa_metrics[row->metric].key);
        table_cell(t, "%s", words_value(n, row->base, unit));
        table_cell(t, "%s", words_value(n, row->now, unit));
        table_cell(t, "%s", words_delta(n, row->base, row->now, unit));
        table_cell(t, "%s", words_value(n, row->margin, unit));
        table_cell(t, "%s", words_verdict(row->verdict));
    }
    table_print(t);
    page_text(page, "  ",
              "Of one steady step, but for times. A metric fails when it moved by more than its "
              "margin.");
}

static void patterns(const struct page *page, const struct gwa_gate *g)
{
    if (g->patterns_count)
        fputc('\n', page->out);
    for (size_t i = 0; i < g->patterns_count; i++) {
        char *text = words_pattern(&g->patterns[i]);
        page_text(page, g->patterns[i].fails ? "  FAILED  " : "  ok      ", text);
        free(text);
    }
}

/* ---- what changed by name ------------------------------------------------------------------ */

static void changes(const struct page *page, const char *title, const char *what, bool kernels,
                    const struct gwa_change *list, size_t count)
{
    const struct column columns[] = {
        {"BASELINE", RIGHT, 0}, {"NOW", RIGHT, 0}, {"DELTA", RIGHT, 0}, {what, LEFT, 1}};
    char n[TEXT_NUMBER];
    size_t rows = page_limit(page, count, CHANGES_SHOWN);
    if (!count)
        return;
    page_heading(page, title);
    struct table *t = table_new(page, columns, COLUMNS_IN(columns));
    for (size_t i = 0; i < rows; i++) {
        const struct gwa_change *c = &list[i];
        table_row(t);
        table_cell(t, "%s", words_value(n, c->base, GWA_UNIT_COUNT));
        table_cell(t, "%s", words_value(n, c->now, GWA_UNIT_COUNT));
        table_cell(t, "%s", words_delta(n, c->base, c->now, GWA_UNIT_COUNT));
        if (kernels)
            table_kernel(t, c->name);
        else
            table_cell(t, "%s", c->name);
    }
    table_print(t);
    for (size_t i = 0; i < rows; i++)
        if (list[i].where) {
            char *text = xprintf("%s: %s", words_python(page, list[i].where), list[i].name);
            page_text(page, "  at ", text);
            free(text);
        }
    page_more(page, rows, count, kernels ? "kernels" : "calls");
}

void render_check(const struct page *page, const struct check_report *r)
{
    const struct gwa_gate *g = r->gate;
    head(page, r);
    metrics(page, r);
    patterns(page, g);
    if (g->outcome != GWA_GATE_FAILED && !page->all)
        return;
    changes(page, "Kernels whose count changed, calls a step", "KERNEL", true, g->kernels,
            g->kernels_count);
    changes(page, "Calls whose count changed, a step", "CALL", false, g->calls, g->calls_count);
    if (g->outcome == GWA_GATE_FAILED) {
        fputc('\n', page->out);
        char *text = xprintf("If this is as it should be: gpuwait check %s --baseline %s --update",
                             r->trace, r->path);
        page_text(page, "", text);
        free(text);
    }
}
