/* Before and after, as a person reads it: counts first. */
#include "render_diff.h"
#include "render_check.h"
#include "render_parts.h"
#include "text.h"
#include "tool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const group_titles[GWA_GROUP_COUNT] = {
    [GWA_GROUP_STEP] = "A steady step (medians)",
    [GWA_GROUP_TIME] = "Times",
    [GWA_GROUP_MEMORY] = "Memory",
    [GWA_GROUP_TOTAL] = "The whole recording",
};

static const char *noise_word(const struct gwa_diff_row *row)
{
    switch (row->noise) {
    case GWA_NOISE_SAME:
        return "";
    case GWA_NOISE_WITHIN:
        return "within noise";
    default:
        return isnan(row->base) ? "new" : isnan(row->now) ? "gone" : "";
    }
}

static char *percent(char *out, double base, double now)
{
    char n[TEXT_NUMBER];
    if (!isfinite(base) || !isfinite(now) || base == 0)
        return strcpy(out, "");
    double by = 100 * (now - base) / fabs(base);
    if (fabs(by) < 0.05)
        return strcpy(out, "");
    if (by >= 1000)
        snprintf(out, TEXT_NUMBER, "%s times", text_short(n, now / base));
    else
        snprintf(out, TEXT_NUMBER, "%c%s %%", by < 0 ? '-' : '+', text_fixed(n, fabs(by), 1));
    return out;
}

/* What is 0 on both sides tells nothing. */
static bool shown(const struct page *page, const struct gwa_diff_row *row)
{
    return page->all || !(row->base == 0 && row->now == 0);
}

static void group(const struct page *page, const struct gwa_diff *d, unsigned which)
{
    static const struct column columns[] = {{"WHAT", LEFT, 0}, {"BASE", RIGHT, 0},
                                            {"NEW", RIGHT, 0}, {"DELTA", RIGHT, 0},
                                            {"", RIGHT, 0},    {"NOTE", LEFT, 1}};
    char n[TEXT_NUMBER];
    struct table *t = table_new(page, columns, COLUMNS_IN(columns));
    bool any = false;
    for (size_t i = 0; i < d->rows_count; i++) {
        const struct gwa_diff_row *row = &d->rows[i];
        const struct gwa_metric *m = &gwa_metrics[row->metric];
        if (m->group != which || !shown(page, row))
            continue;
        if (!any)
            page_heading(page, group_titles[which]);
        any = true;
        table_row(t);
        table_cell(t, "%s", m->key);
        table_cell(t, "%s", words_value(n, row->base, m->unit));
        table_cell(t, "%s", words_value(n, row->now, m->unit));
        table_cell(t, "%s", words_delta(n, row->base, row->now, m->unit));
        table_cell(t, "%s", percent(n, row->base, row->now));
        table_cell(t, "%s", noise_word(row));
    }
    table_print(t);
}

/* ---- by name --------------------------------------------------------------------------------- */

static const char *how(const struct gwa_change *c)
{
    return c->base == 0 ? "new" : c->now == 0 ? "gone" : c->now > c->base ? "more" : "fewer";
}

static size_t rows_of(const struct page *page, const struct diff_report *r, size_t count)
{
    size_t limit = r->limit ? r->limit : 20;
    return (page->all && !r->limit) || count < limit ? count : limit;
}

static void kernels(const struct page *page, const struct diff_report *r)
{
    static const struct column columns[] = {{"", LEFT, 0},           {"BASE", RIGHT, 0},
                                            {"NEW", RIGHT, 0},       {"EACH us", RIGHT, 0},
                                            {"ms A STEP", RIGHT, 0}, {"KERNEL", LEFT, 1}};
    const struct gwa_diff *d = r->diff;
    char n[TEXT_NUMBER], by[TEXT_NUMBER];
    size_t shown_rows = rows_of(page, r, d->kernels_count);
    if (!d->kernels_count)
        return;
    page_heading(page, "Kernels whose count changed, calls a step");
    struct table *t = table_new(page, columns, COLUMNS_IN(columns));
    for (size_t i = 0; i < shown_rows; i++) {
        const struct gwa_change *c = &d->kernels[i];
        double us = isnan(c->now_us) ? c->base_us : c->now_us;
        table_row(t);
        table_cell(t, "%s", how(c));
        table_cell(t, "%s", words_value(n, c->base, GWA_UNIT_COUNT));
        table_cell(t, "%s", words_value(n, c->now, GWA_UNIT_COUNT));
        table_cell(t, "%s", text_short(n, us));
        text_short(n, fabs(c->effect_ms));
        snprintf(by, sizeof(by), "%s%.*s",
                 isnan(c->effect_ms) ? ""
                 : c->effect_ms < 0  ? "-"
                                     : "+",
                 TEXT_NUMBER - 2, n);
        table_cell(t, "%s", by);
        table_kernel(t, c->name);
    }
    table_print(t);
    page_more(page, shown_rows, d->kernels_count, "kernels");
    page_text(page, "  ", "ms A STEP: of GPU time that it adds, by the durations sampled.");
}

static void calls(const struct page *page, const struct diff_report *r)
{
    static const struct column columns[] = {
        {"", LEFT, 0}, {"BASE", RIGHT, 0}, {"NEW", RIGHT, 0}, {"CALL", LEFT, 1}};
    const struct gwa_diff *d = r->diff;
    char n[TEXT_NUMBER];
    size_t shown_rows = rows_of(page, r, d->calls_count);
    if (!d->calls_count)
        return;
    page_heading(page, "Other calls whose count changed, a step");
    struct table *t = table_new(page, columns, COLUMNS_IN(columns));
    for (size_t i = 0; i < shown_rows; i++) {
        const struct gwa_change *c = &d->calls[i];
        char *where = c->where ? xprintf("%s, at %s", c->name, words_python(page, c->where)) : NULL;
        table_row(t);
        table_cell(t, "%s", how(c));
        table_cell(t, "%s", words_value(n, c->base, GWA_UNIT_COUNT));
        table_cell(t, "%s", words_value(n, c->now, GWA_UNIT_COUNT));
        table_cell(t, "%s", where ? where : c->name);
        free(where);
    }
    table_print(t);
    page_more(page, shown_rows, d->calls_count, "calls");
}

/* ---- findings ----------------------------------------------------------------------------------
 */

static void one_finding(const struct page *page, const char *lead, const struct gwa_run_finding *f)
{
    char *text = xprintf("%s: %s%s%s", f->id, f->what ? f->what : "(no words for it)",
                         f->where ? " At " : "", f->where ? f->where : "");
    page_text(page, lead, text);
    free(text);
}

static void findings(const struct page *page, const struct gwa_diff *d)
{
    char a[TEXT_NUMBER], b[TEXT_NUMBER];
    if (!d->findings_count)
        return;
    page_heading(page, "Findings");
    for (size_t i = 0; i < d->findings_count; i++) {
        const struct gwa_diff_finding *f = &d->findings[i];
        if (!f->base) {
            one_finding(page, "  new     ", f->now);
        } else if (!f->now) {
            one_finding(page, "  gone    ", f->base);
        } else {
            char *text = isfinite(f->base->share_pct) && isfinite(f->now->share_pct)
                             ? xprintf("%s: %s -> %s %% of wall time", f->now->id,
                                       text_fixed(a, f->base->share_pct, 1),
                                       text_fixed(b, f->now->share_pct, 1))
                             : xstrdup(f->now->id);
            page_text(page, "  still   ", text);
            free(text);
        }
    }
}

/* ---- all
 * ------------------------------------------------------------------------------------------ */

static void head(const struct page *page, const struct diff_report *r)
{
    const struct gwa_diff *d = r->diff;
    const struct gwa_run *runs[] = {d->base, d->now};
    const char *names[] = {r->base, r->now};
    char *text = xprintf("base %s, new %s", r->base, r->now);
    page_text(page, "", text);
    free(text);
    for (unsigned k = 0; k < GWA_KEY_COUNT; k++) {
        if (!d->keys[k])
            continue;
        text = xprintf("%s: %s -> %s", gwa_keys[k].text,
                       d->base->keys[k] ? d->base->keys[k] : "unknown",
                       d->now->keys[k] ? d->now->keys[k] : "unknown");
        page_text(page, "  differs: ", text);
        free(text);
    }
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < runs[side]->problems_count; i++) {
            text = xprintf("%s: %s", names[side], runs[side]->problems[i]);
            page_text(page, "  note: ", text);
            free(text);
        }
    if (!d->beyond && !d->kernels_count && !d->calls_count)
        page_text(page, "  ", "No count differs, and what else does is within noise.");
}

void render_diff(const struct page *page, const struct diff_report *r)
{
    char n[TEXT_NUMBER];
    head(page, r);
    for (unsigned g = 0; g < GWA_GROUP_COUNT; g++)
        group(page, r->diff, g);
    double spread = fmax(r->diff->base->spread_pct, r->diff->now->spread_pct);
    if (spread > 0) {
        char *text = xprintf("Noise: half of the steps of one run lie within %s %% of its step "
                             "time, and two equal runs may differ by as much.",
                             text_fixed(n, spread / 2, 1));
        page_text(page, "  ", text);
        free(text);
    }
    kernels(page, r);
    calls(page, r);
    findings(page, r->diff);
}
