/* Where the GPU's time went, for the report as text. */
#include "render_parts.h"
#include "text.h"
#include "tool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GAPS_SHOWN  5
#define PARTS_SHOWN 2
#define PCT_SHOWN   0.05 /* less is 0.0 % */

bool part_time_known(const struct gwa_device *d)
{
    return d->time.method && !strcmp(d->time.method, "sampled");
}

static void percent(const struct page *page, const char *what, double v, const char *note)
{
    char n[TEXT_NUMBER], figure[TEXT_NUMBER + 4];
    snprintf(figure, sizeof(figure), "%s %%", text_fixed(n, v, 1));
    page_line(page, what, figure, note);
}

/* ---- the additive table ---------------------------------------------------------------- */

static void share(const struct page *page, int digits, double v, const char *what, const char *text)
{
    char n[TEXT_NUMBER], lead[64];
    snprintf(lead, sizeof(lead), "%*s %%  %s", digits, text_fixed(n, v, 1), what);
    page_text(page, lead, text);
}

static void idle_classes(const struct page *page, const struct gwa_time *t)
{
    unsigned order[GWA_IDLE_CLASS_COUNT];
    size_t count = idle_order(t->idle, page->all, order);
    char name[32];
    for (size_t i = 0; i < count; i++) {
        if (!page->all && t->idle[order[i]] < PCT_SHOWN)
            break;
        snprintf(name, sizeof(name), "%-12s  ", word_class(order[i]));
        share(page, 8, t->idle[order[i]], name, word_class_text(order[i]));
    }
}

static void split(const struct page *page, const struct gwa_device *d)
{
    const struct gwa_time *t = &d->time;
    char a[TEXT_NUMBER], b[TEXT_NUMBER];
    bool classes = isfinite(t->idle[0]);
    share(page, 6, t->compute_pct, "", "computing");
    if (t->exposed_comm_pct > 0 || page->all)
        share(page, 6, t->exposed_comm_pct, "", "communicating, while nothing computes");
    share(page, 6, t->exposed_copy_pct, "", "copying, while no kernel runs");
    char *idle = xprintf("idle; busy is between %s and %s %%%s", text_fixed(a, t->busy_low_pct, 1),
                         text_fixed(b, t->busy_high_pct, 1), classes ? "; the host was" : "");
    share(page, 6, t->idle_pct, "", idle);
    free(idle);
    if (classes)
        idle_classes(page, t);
    char *of = xprintf("of %s, first operation to last", text_us(a, d->window.wall_s * 1e6));
    char *whole = d->window.excluded_s > 0 ? xprintf("%s; %s left out (warm-up, other work)", of,
                                                     text_us(b, d->window.excluded_s * 1e6))
                                           : xstrdup(of);
    share(page, 6, 100, "", whole);
    free(whole);
    free(of);
}

static void queue(const struct page *page, const struct gwa_device *d)
{
    const struct gwa_times *q = &d->queue_us;
    char mean[TEXT_NUMBER], p50[TEXT_NUMBER], p99[TEXT_NUMBER], note[120];
    if (isnan(d->met_idle_pct))
        return;
    percent(page, "launches met an idle GPU", d->met_idle_pct, "");
    snprintf(note, sizeof(note), "mean; p50 %s, p99 %s", text_us(p50, q->p50),
             text_us(p99, q->p99));
    page_line(page, "launch to start", text_us(mean, q->mean), note);
}

static void basis(const struct page *page, const struct gwa_device *d)
{
    char share[TEXT_NUMBER], missed[TEXT_NUMBER];
    fprintf(page->out,
            "  From host times and sampled durations: %s %% of the time of operations\n"
            "  rests on samples of their own kind",
            text_fixed(share, d->time.sampled_share_pct, 1));
    if (!isnan(d->time.anchor_residual_pct))
        fprintf(page->out, "; at blocking calls the model was off by\n  %s %% of wall time in all",
                text_fixed(missed, d->time.anchor_residual_pct, 2));
    fputs(".\n", page->out);
}

void part_time(const struct page *page, const struct gwa_device *d, bool several)
{
    char title[64];
    if (!part_time_known(d))
        return;
    snprintf(title, sizeof(title), several ? "GPU time, %s" : "GPU time", WORD_GPU(d->index));
    page_heading(page, title);
    split(page, d);
    fputc('\n', page->out);
    percent(page, "nvidia-smi would show", d->time.nvidia_smi_pct,
            "any kernel in a sixth of a second");
    if (d->time.drained_pct >= 0)
        percent(page, "idle after a drained queue", d->time.drained_pct,
                "a blocking call had emptied it");
    percent(page, "idle in gaps over 100 us", d->gaps_by_length.over_100us_pct, "");
    percent(page, "  of 10 to 100 us", d->gaps_by_length.mid_pct, "");
    percent(page, "  under 10 us", d->gaps_by_length.under_10us_pct, "");
    queue(page, d);
    basis(page, d);
}

/* ---- the longest gaps -------------------------------------------------------------------- */

/* "host-cpu 4.61 s, load 32 ms" */
static char *gap_parts(const struct gwa_idle_gap *g, bool all)
{
    unsigned order[GWA_IDLE_CLASS_COUNT];
    size_t count = idle_order(g->parts_ms, false, order);
    char *text = xstrdup(""), n[TEXT_NUMBER];
    for (size_t i = 0; i < count && (all || i < PARTS_SHOWN); i++) {
        char *longer = xprintf("%s%s%s %s", text, i ? ", " : "", word_class(order[i]),
                               text_us(n, g->parts_ms[order[i]] * 1e3));
        free(text);
        text = longer;
    }
    return text;
}

static char *gap_where(const struct page *page, const struct gwa_idle_gap *g)
{
    char *drained = g->drained_by ? xprintf("drained by %s", g->drained_by) : xstrdup("");
    if (!g->python)
        return drained;
    char *whole = xprintf("%s%s%s", words_python(page, g->python), *drained ? "; " : "", drained);
    free(drained);
    return whole;
}

void part_gaps(const struct page *page, const struct gwa_device *d, bool several)
{
    static const struct column columns[] = {
        {"GAP", RIGHT, 0}, {"AT s", RIGHT, 0}, {"THE HOST WAS", LEFT, 0}, {"WHERE", LEFT, 1}};
    char n[TEXT_NUMBER], title[64];
    size_t shown = page_limit(page, d->gaps_count, GAPS_SHOWN);
    bool parts = isfinite(d->time.idle[0]);
    if (!shown)
        return;
    snprintf(title, sizeof(title), several ? "Longest gaps, %s" : "Longest gaps",
             WORD_GPU(d->index));
    page_heading(page, title);
    struct table *t = table_new(page, columns, parts ? COLUMNS_IN(columns) : 2);
    for (size_t i = 0; i < shown; i++) {
        const struct gwa_idle_gap *g = &d->gaps[i];
        char *words = gap_parts(g, page->all), *where = gap_where(page, g);
        table_row(t);
        table_cell(t, "%s", text_us(n, g->ms * 1e3));
        table_cell(t, "%s", text_fixed(n, g->start_s, 4));
        table_cell(t, "%s", words);
        table_cell(t, "%s", where);
        free(words);
        free(where);
    }
    table_print(t);
    fputs("  AT: since the recording began.\n", page->out);
}
