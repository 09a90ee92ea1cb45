/* The report as a person reads it, best things first. */
#include "render_parts.h"
#include "text.h"
#include "tool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KERNELS_SHOWN 15
#define STUCK_SHOWN   3

char *render_flaw(const struct gwa_flaw *f)
{
    char n[TEXT_NUMBER];
    if (f->id == GWA_FLAW_STOPPED)
        return xprintf("%s: %s", gwa_flaw_text(f->id), strerror((int)f->amount));
    if (!f->amount)
        return xstrdup(gwa_flaw_text(f->id));
    return xprintf("%s %s", text_count(n, f->amount), gwa_flaw_text(f->id));
}

/* ---- head -------------------------------------------------------------------- */

static void head(const struct page *page, const struct gwa_process *p, const char *range)
{
    const struct gwa_identity *who = &p->identity;
    char n[TEXT_NUMBER], times[TEXT_NUMBER], rank[32] = "";
    char *command = text_clean(who->command ? who->command : "(command not recorded)");
    if (!page->all)
        text_cut(command, page->width);
    fprintf(page->out, page->bold ? "\033[1m%s\033[0m\n" : "%s\n", command);
    free(command);
    if (who->rank >= 0)
        snprintf(rank, sizeof(rank), ", rank %d,", who->rank);
    /* events are not counted by range, time is */
    char *wall = isnan(p->window.wall_s) ? xstrdup("")
                                         : xprintf(", %s from first to last operation",
                                                   text_us(times, p->window.wall_s * 1e6));
    char *line = xprintf("process %u%s on %s%s: %s events%s", who->pid, rank,
                         who->host ? who->host : "unknown host",
                         p->coverage->alive   ? ", still running"
                         : p->coverage->ended ? ""
                                              : ", killed or left by _exit",
                         text_count(n, p->quality.recorded), range ? " in all" : wall);
    page_text(page, "", line);
    free(line);
    if (range) {
        line = xprintf("only NVTX range \"%s\": %s %s%s", range, text_count(n, p->intervals),
                       p->intervals == 1 ? "interval" : "intervals", wall);
        page_text(page, "", line);
        free(line);
    }
    free(wall);
}

static void flaws(const struct page *page, const struct gwa_process *p)
{
    const struct gwa_quality *q = &p->quality;
    for (size_t i = 0; i < q->flaws_count; i++) {
        char *text = render_flaw(&q->flaws[i]);
        fprintf(page->out, "INCOMPLETE: %s\n", text);
        free(text);
    }
    for (size_t i = 0; i < page_limit(page, q->stuck_count, STUCK_SHOWN); i++) {
        const struct gwa_stuck *s = &q->stuck[i];
        char seconds[TEXT_NUMBER];
        char *api = text_clean(s->api), *name = text_clean(s->thread_name ? s->thread_name : "");
        fprintf(page->out, "STUCK: thread %u%s%s%s %s inside %s for %s s\n", s->tid,
                *name ? " (" : "", name, *name ? ")" : "", p->coverage->alive ? "is" : "was", api,
                text_fixed(seconds, s->seconds, 1));
        free(api);
        free(name);
    }
}

static void devices_line(const struct page *page, const struct gwa_process *p)
{
    for (size_t i = 0; i < p->devices_count; i++) {
        const struct gwa_device *d = &p->devices[i];
        char n[TEXT_NUMBER], sms[32] = "", memory[TEXT_NUMBER + 4] = "", pcie[32] = "";
        if (d->sms)
            snprintf(sms, sizeof(sms), ", %u SMs", d->sms);
        if (d->memory_bytes)
            snprintf(memory, sizeof(memory), ", %s", text_bytes(n, d->memory_bytes));
        if (d->pcie_gen)
            snprintf(pcie, sizeof(pcie), ", PCIe %u x%u", d->pcie_gen, d->pcie_width);
        char *name = d->index < 0
                         ? xstrdup("some work on a GPU that is not known")
                         : xprintf("GPU %d: %s", d->index, d->name ? d->name : "unknown GPU");
        char *line = xprintf("%s%s%s%s", name, sms, memory, pcie);
        page_text(page, "", line);
        free(line);
        free(name);
    }
}

/* ---- launches -------------------------------------------------------------------- */

static bool is_launch(const struct gwa_api *a)
{
    return (a->kind == GWT_LAUNCH || a->kind == GWT_GRAPH_LAUNCH) && a->calls;
}

static void launch_apis(const struct page *page, const struct gwa_process *p)
{
    static const struct column columns[] = {
        {"CALLS", RIGHT, 0}, {"MEAN us", RIGHT, 0},  {"P50", RIGHT, 0},       {"P90", RIGHT, 0},
        {"P99", RIGHT, 0},   {"TOTAL ms", RIGHT, 0}, {"LAUNCH CALL", LEFT, 1}};
    struct table *t = table_new(page, columns, COLUMNS_IN(columns));
    char n[TEXT_NUMBER];
    for (size_t i = 0; i < p->apis_count; i++) {
        const struct gwa_api *a = &p->apis[i];
        if (!is_launch(a))
            continue;
        table_row(t);
        table_cell(t, "%s", text_count(n, a->calls));
        table_cell(t, "%s", text_short(n, a->us.mean));
        table_cell(t, "%s", text_short(n, a->us.p50));
        table_cell(t, "%s", text_short(n, a->us.p90));
        table_cell(t, "%s", text_short(n, a->us.p99));
        table_cell(t, "%s", text_short(n, a->ms));
        table_cell(t, "%s", a->name);
    }
    table_print(t);
}

static void launches(const struct page *page, const struct gwa_process *p)
{
    const struct gwa_launches *l = &p->launches;
    char n[TEXT_NUMBER], note[64];
    page_heading(page, "Launches");
    page_line(page, "kernel launch calls", text_count(n, l->calls), "");
    if (l->driver_only) {
        snprintf(note, sizeof(note), "%s %% of them", text_fixed(n, l->driver_only_pct, 1));
        page_line(page, "at driver level only", text_count(n, l->driver_only), note);
    }
    if (l->graph_launches)
        page_line(page, "graph launches", text_count(n, l->graph_launches), "");
    page_line(page, "kernels executed", text_count(n, l->kernels),
              l->approximate      ? "about: some graphs are not exactly known"
              : l->graph_launches ? "those inside graphs included"
                                  : "");
    if (l->captured)
        page_line(page, "captured into graphs", text_count(n, l->captured), "calls, not executed");
    if (l->failed)
        page_line(page, "failed", text_count(n, l->failed), "not executed");
    page_line(page, "launches per second", text_short(n, l->per_second),
              l->graph_launches ? "of kernels and graphs" : "");
    page_line(page, "host time per launch", text_us(n, l->host_us_per_launch),
              isnan(l->host_us_per_launch) ? "" : "median, from one launch to the next");
    if (l->calls + l->graph_launches) {
        fputc('\n', page->out);
        launch_apis(page, p);
    }
}

/* ---- kernels ----------------------------------------------------------------------- */

static void kernel_rows(struct table *t, const struct gwa_device *d, size_t shown, bool timed)
{
    char n[TEXT_NUMBER];
    for (size_t i = 0; i < shown; i++) {
        const struct gwa_kernel *k = &d->kernels[i];
        table_row(t);
        table_cell(t, "%s", text_count(n, k->calls));
        if (timed) {
            table_cell(t, "%s", text_short(n, k->mean_us));
            table_cell(t, "%s", text_short(n, k->total_ms));
            table_cell(t, isfinite(k->busy_pct) ? "%s %%" : "%s", text_fixed(n, k->busy_pct, 1));
        } else {
            table_cell(t, "%.1f %%", 100 * (double)k->calls / (double)d->kernels_executed);
        }
        if (isnan(k->below_sms_pct))
            table_cell(t, "n/a");
        else
            table_cell(t, "%.0f %%", k->below_sms_pct);
        table_kernel(t, k->name ? k->name : "(name unknown)");
    }
}

static void kernels(const struct page *page, const struct gwa_device *d, bool several)
{
    static const struct column counted[] = {
        {"CALLS", RIGHT, 0}, {"SHARE", RIGHT, 0}, {"SMALL", RIGHT, 0}, {"KERNEL", LEFT, 1}};
    static const struct column measured[] = {{"CALLS", RIGHT, 0},    {"MEAN us", RIGHT, 0},
                                             {"TOTAL ms", RIGHT, 0}, {"BUSY", RIGHT, 0},
                                             {"SMALL", RIGHT, 0},    {"KERNEL", LEFT, 1}};
    char title[64];
    bool timed = part_time_known(d);
    size_t shown = page_limit(page, d->kernels_count, KERNELS_SHOWN);
    if (!d->kernels_count)
        return;
    snprintf(title, sizeof(title), several ? "Kernels on %s" : "Kernels", WORD_GPU(d->index));
    page_heading(page, title);
    struct table *t = timed ? table_new(page, measured, COLUMNS_IN(measured))
                            : table_new(page, counted, COLUMNS_IN(counted));
    kernel_rows(t, d, shown, timed);
    table_print(t);
    page_more(page, shown, d->kernels_count, "kernels");
    char *note =
        xprintf("%s. SMALL: of its own launches, those with fewer blocks than the GPU has "
                "SMs.",
                timed ? "BUSY: of the time that the GPU was busy" : "SHARE: of executed kernels");
    page_text(page, "  ", note);
    free(note);
}

/* ---- idle ------------------------------------------------------------------------------------ */

static void idle(const struct page *page, const struct gwa_process *p)
{
    char pct[TEXT_NUMBER], s[TEXT_NUMBER], wall[TEXT_NUMBER];
    size_t unknown = 0;
    for (size_t i = 0; i < p->devices_count; i++)
        unknown += !part_time_known(&p->devices[i]);
    if (!unknown)
        return;
    page_heading(page, "GPU idle, lower bound");
    for (size_t i = 0; i < p->devices_count; i++) {
        const struct gwa_device *d = &p->devices[i];
        if (d->index < 0 || part_time_known(d))
            continue;
        if (isnan(d->time.provable_idle_pct))
            fprintf(page->out, "  GPU %d: n/a%s\n", d->index,
                    p->quality.complete ? "" : ", events are missing");
        else
            fprintf(page->out, "  GPU %d: at least %s %% (%s of %s wall time)\n", d->index,
                    text_fixed(pct, d->time.provable_idle_pct, 1),
                    text_us(s, d->time.provable_idle_s * 1e6),
                    text_us(wall, d->window.wall_s * 1e6));
    }
    fputs("  From the return of a call that left the GPU empty to the next submission; it\n"
          "  may have been idle at other times too, which host calls alone do not show.\n"
          "  Not measured: GPU time of kernels and copies, gaps.\n",
          page->out);
}

/* Each device's part, in this order. */
static void (*const device_parts[])(const struct page *, const struct gwa_device *,
                                    bool) = {part_time, part_sites, part_gaps, part_drains};

static void each_device(const struct page *page, const struct gwa_process *p,
                        void (*part)(const struct page *, const struct gwa_device *, bool))
{
    for (size_t i = 0; i < p->devices_count; i++)
        part(page, &p->devices[i], p->devices_count > 1);
}

void render_report(const struct page *page, const struct gwa_process *p, const char *range)
{
    flaws(page, p);
    head(page, p, range);
    devices_line(page, p);
    part_findings(page, p);
    for (size_t i = 0; i < COLUMNS_IN(device_parts); i++)
        each_device(page, p, device_parts[i]);
    if (p->devices_count)
        idle(page, p);
    part_what_if(page, p);
    part_steps(page, p);
    each_device(page, p, part_phases);
    part_memory(page, p);
    launches(page, p);
    each_device(page, p, kernels);
    each_device(page, p, part_copies);
    part_waits(page, p);
    part_collectives(page, p);
    part_threads(page, p);
    part_streams(page, p);
    part_other(page, p);
    part_findings_all(page, p);
}
