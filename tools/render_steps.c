/* Steps and their phases, for the report as text. */
#include "render_parts.h"
#include "text.h"
#include "tool.h"

#include "analysis/steps.h"

#include <math.h>
#include <stdlib.h>

/* ---- what a step holds ------------------------------------------------------------------ */

enum unit { COUNT, BYTES, MS };

/* X(field, unit, text): those that always matter first, 0 or not. */
#define ROWS(X)                                                                                    \
    X(ms, MS, "time")                                                                              \
    X(launches, COUNT, "launches")                                                                 \
    X(kernels, COUNT, "kernels executed")                                                          \
    X(syncs, COUNT, "waits for the GPU")                                                           \
    X(graph_launches, COUNT, "graph launches")                                                     \
    X(copies, COUNT, "copies")                                                                     \
    X(h2d_bytes, BYTES, "copied to the GPU")                                                       \
    X(d2h_bytes, BYTES, "copied from the GPU")                                                     \
    X(pageable_bytes, BYTES, "of pageable memory")                                                 \
    X(blocking_copies, COUNT, "copies that block")                                                 \
    X(small_reads, COUNT, "small reads that wait")                                                 \
    X(allocations, COUNT, "device allocations")                                                    \
    X(frees, COUNT, "frees")                                                                       \
    X(host_allocations, COUNT, "pinned allocations")                                               \
    X(collectives, COUNT, "collectives")                                                           \
    X(collective_bytes, BYTES, "communicated")                                                     \
    X(captures, COUNT, "stream captures")                                                          \
    X(module_loads, COUNT, "module loads")

#define ALWAYS 4

/* 4, 1,204, 2.50 */
static char *plain(char *out, double v)
{
    return v >= 0 && v < 1e15 && v == (double)(uint64_t)v ? text_count(out, (uint64_t)v)
                                                          : text_short(out, v);
}

static void figure(struct table *t, double v, enum unit unit)
{
    char n[TEXT_NUMBER];
    if (unit == MS)
        text_us(n, v * 1e3);
    else if (unit == BYTES && v >= 0 && v < 1e18)
        text_bytes(n, (uint64_t)v);
    else
        plain(n, v);
    table_cell(t, "%s", n);
}

static void rows(const struct page *page, const struct gwa_step_summary *s)
{
    static const struct column columns[] = {
        {"LEAST", RIGHT, 0}, {"MEDIAN", RIGHT, 0}, {"MOST", RIGHT, 0}, {"IN A STEP", LEFT, 1}};
    const struct {
        const struct gwa_spread *spread;
        enum unit unit;
        const char *text;
    } all[] = {
#define X(field, unit, text) {&s->field, unit, text},
        ROWS(X)
#undef X
    };
    struct table *t = table_new(page, columns, COLUMNS_IN(columns));
    for (size_t i = 0; i < COLUMNS_IN(all); i++) {
        if (i >= ALWAYS && !page->all && !(all[i].spread->most > 0))
            continue;
        table_row(t);
        figure(t, all[i].spread->least, all[i].unit);
        figure(t, all[i].spread->median, all[i].unit);
        figure(t, all[i].spread->most, all[i].unit);
        table_cell(t, "%s", all[i].text);
    }
    table_print(t);
}

/* ---- in words ------------------------------------------------------------------------------ */

static void found(const struct page *page, const struct gwa_step_summary *s)
{
    char n[TEXT_NUMBER], all[TEXT_NUMBER], confidence[TEXT_NUMBER], warmup[TEXT_NUMBER];
    char *before = s->warmup_s != 0
                       ? xprintf("; warm-up before them: %s", text_us(warmup, s->warmup_s * 1e6))
                       : xstrdup("");
    char *text = xprintf("%s of %s steps count%s, found by %s, confidence %s%s.",
                         text_count(n, s->count), text_count(all, s->all),
                         s->by_token ? ", one a token" : "", s->found_by ? s->found_by : "n/a",
                         text_fixed(confidence, s->confidence, 2), before);
    page_text(page, "  ", text);
    free(text);
    free(before);
}

static void sameness(const struct page *page, const struct gwa_step_summary *s)
{
    char n[TEXT_NUMBER];
    if (s->identical) {
        page_text(page, "  ", "Identical: the same kernels, shapes and copies in the same order.");
        return;
    }
    char *alike = isfinite(s->identical_pct)
                      ? xprintf("; %s %% are alike", text_fixed(n, s->identical_pct, 0))
                      : xstrdup("");
    char *text =
        xprintf("They vary%s%s%s.", s->varies ? ": " : "", s->varies ? s->varies : "", alike);
    page_text(page, "  ", text);
    free(text);
    free(alike);
}

/* of: GPU time, or launches where that was not measured. */
static void phases(const struct page *page, const struct gwa_step_summary *s, const char *of)
{
    char a[TEXT_NUMBER], b[TEXT_NUMBER], c[TEXT_NUMBER];
    if (isfinite(s->forward_pct) || isfinite(s->backward_pct)) {
        char *text = xprintf("Forward %s %%, backward %s %%, optimizer %s %% of %s.",
                             text_fixed(a, s->forward_pct, 1), text_fixed(b, s->backward_pct, 1),
                             text_fixed(c, s->optimizer_pct, 1), of);
        page_text(page, "  ", text);
        free(text);
    }
    if (s->recompute_pct > 0) {
        char *text =
            xprintf("Recomputed in backward: %s %% of %s, in %s segment%s a step.",
                    text_fixed(a, s->recompute_pct, 1), of, plain(b, s->recompute_segments),
                    s->recompute_segments == 1 ? "" : "s");
        page_text(page, "  ", text);
        free(text);
    }
    if (s->micro_batches > 1) {
        char *text = xprintf("%s micro-batches a step.", plain(a, s->micro_batches));
        page_text(page, "  ", text);
        free(text);
    }
}

static void unusual(const struct page *page, const struct gwa_step_summary *s)
{
    char n[TEXT_NUMBER], ms[TEXT_NUMBER];
    if (!(s->unusual > 0))
        return;
    char *every =
        s->unusual_period > 1 ? xprintf(", every %u steps,", s->unusual_period) : xstrdup("");
    char *time = isfinite(s->unusual_ms)
                     ? xprintf(" and took %s %s", text_us(ms, fabs(s->unusual_ms) * 1e3),
                               s->unusual_ms < 0 ? "less" : "longer")
                     : xstrdup("");
    char *text = xprintf("%s of them%s did more%s.", plain(n, s->unusual), every, time);
    page_text(page, "  ", text);
    free(text);
    free(time);
    free(every);
}

void part_steps(const struct page *page, const struct gwa_process *p)
{
    const struct gwa_step_summary *s = &p->steps;
    char n[TEXT_NUMBER];
    bool timed = false;
    if (!s->count && !p->launches.calls && !p->launches.graph_launches)
        return;
    page_heading(page, "Steps");
    if (!s->count) {
        page_text(page, "  ", "None found; times are of the whole recording, warm-up too.");
        return;
    }
    found(page, s);
    sameness(page, s);
    for (size_t i = 0; i < p->devices_count; i++)
        timed |= part_time_known(&p->devices[i]);
    phases(page, s, timed ? "GPU time" : "launches");
    unusual(page, s);
    if (isfinite(s->spread_pct)) {
        char *text = xprintf("The middle half of their times spans %s %% of the median.",
                             text_fixed(n, s->spread_pct, 1));
        page_text(page, "  ", text);
        free(text);
    }
    fputc('\n', page->out);
    rows(page, s);
}

/* ---- phases on the device ------------------------------------------------------------------ */

void part_phases(const struct page *page, const struct gwa_device *d, bool several)
{
    static const struct column columns[] = {
        {"BUSY", RIGHT, 0}, {"IDLE", RIGHT, 0}, {"PHASE", LEFT, 1}};
    char n[TEXT_NUMBER], title[80];
    bool any = false;
    for (unsigned i = 0; i < GWA_PHASE_COUNT; i++) /* all of it "other": nothing is said */
        any |= i != GWA_PHASE_OTHER && (d->by_phase[i].busy_pct > 0 || d->by_phase[i].idle_pct > 0);
    if (!any)
        return;
    snprintf(title, sizeof(title), several ? "Phases on %s, of wall time" : "Phases, of wall time",
             WORD_GPU(d->index));
    page_heading(page, title);
    struct table *t = table_new(page, columns, COLUMNS_IN(columns));
    for (unsigned i = 1; i <= GWA_PHASE_COUNT; i++) { /* "other" comes last */
        const struct gwa_by_phase *phase = &d->by_phase[i % GWA_PHASE_COUNT];
        table_row(t);
        table_cell(t, isfinite(phase->busy_pct) ? "%s %%" : "%s",
                   text_fixed(n, phase->busy_pct, 1));
        table_cell(t, isfinite(phase->idle_pct) ? "%s %%" : "%s",
                   text_fixed(n, phase->idle_pct, 1));
        table_cell(t, "%s", word_phase(i % GWA_PHASE_COUNT));
    }
    table_print(t);
}
