/* Where the GPU's time went, for the report as text. */
#include "render_parts.h"
#include "text.h"

#include <math.h>
#include <string.h>

#define GAPS_SHOWN 5

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

static void split(const struct page *page, const struct gwa_device *d)
{
    const struct gwa_time *t = &d->time;
    char a[TEXT_NUMBER], b[TEXT_NUMBER], note[120];
    snprintf(note, sizeof(note), "of %s, first operation to last",
             text_us(a, d->window.wall_s * 1e6));
    percent(page, "computing", t->compute_pct, note);
    if (t->exposed_comm_pct > 0)
        percent(page, "communicating", t->exposed_comm_pct, "while nothing computes");
    percent(page, "copying", t->exposed_copy_pct, "while no kernel runs");
    snprintf(note, sizeof(note), "busy is between %s and %s %%", text_fixed(a, t->busy_low_pct, 1),
             text_fixed(b, t->busy_high_pct, 1));
    percent(page, "idle", t->idle_pct, note);
    percent(page, "  in gaps over 100 us", d->gaps_by_length.over_100us_pct, "");
    percent(page, "  of 10 to 100 us", d->gaps_by_length.mid_pct, "");
    percent(page, "  under 10 us", d->gaps_by_length.under_10us_pct, "");
    percent(page, "nvidia-smi would show", t->nvidia_smi_pct, "any kernel in a sixth of a second");
}

static void queue(const struct page *page, const struct gwa_device *d)
{
    const struct gwa_times *q = &d->queue_us;
    char mean[TEXT_NUMBER], p50[TEXT_NUMBER], p99[TEXT_NUMBER], note[120];
    if (isnan(d->met_idle_pct))
        return;
    percent(page, "launches met an idle GPU", d->met_idle_pct, "");
    snprintf(note, sizeof(note), "mean, from the call's return; p50 %s, p99 %s",
             text_us(p50, q->p50), text_us(p99, q->p99));
    page_line(page, "launch to start", text_us(mean, q->mean), note);
}

static void gaps(const struct page *page, const struct gwa_device *d)
{
    static const struct column columns[] = {{"GAP", RIGHT, 0}, {"AT s", RIGHT, 0}};
    char n[TEXT_NUMBER];
    size_t shown = page_limit(page, d->gaps_count, GAPS_SHOWN);
    if (!shown)
        return;
    fputc('\n', page->out);
    struct table *t = table_new(page, columns, COLUMNS_IN(columns));
    for (size_t i = 0; i < shown; i++) {
        table_row(t);
        table_cell(t, "%s", text_us(n, d->gaps[i].ms * 1e3));
        table_cell(t, "%s", text_fixed(n, d->gaps[i].start_s, 4));
    }
    table_print(t);
    fputs("  The longest; AT: since the recording began.\n", page->out);
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
    snprintf(title, sizeof(title), several ? "GPU time, GPU %d" : "GPU time", d->index);
    page_heading(page, title);
    split(page, d);
    queue(page, d);
    basis(page, d);
    gaps(page, d);
}
