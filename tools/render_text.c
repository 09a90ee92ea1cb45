/* The report as a person reads it, best things first. */
#include "render_parts.h"
#include "text.h"
#include "tool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KERNELS_SHOWN 15
#define STUCK_SHOWN   3

struct page page_stdout(bool all)
{
    return (struct page){.out = stdout,
                         .width = text_width(STDOUT_FILENO),
                         .bold = text_bold(STDOUT_FILENO),
                         .all = all};
}

void page_heading(const struct page *page, const char *title)
{
    fprintf(page->out, page->bold ? "\n\033[1m%s\033[0m\n" : "\n%s\n", title);
}

void page_line(const struct page *page, const char *what, const char *figure, const char *note)
{
    fprintf(page->out, "  %-26s %12s%s%s\n", what, figure, note && *note ? "  " : "",
            note ? note : "");
}

void page_more(const struct page *page, size_t shown, size_t count, const char *what)
{
    if (shown < count)
        fprintf(page->out, "  ... and %zu more %s (--all)\n", count - shown, what);
}

size_t page_limit(const struct page *page, size_t count, size_t shown)
{
    return page->all || count <= shown ? count : shown;
}

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
    char n[TEXT_NUMBER];
    char *command = text_clean(who->command ? who->command : "(command not recorded)");
    char *host = text_clean(who->host ? who->host : "unknown host");
    if (!page->all)
        text_cut(command, page->width);
    fprintf(page->out, page->bold ? "\033[1m%s\033[0m\n" : "%s\n", command);
    fprintf(page->out, "process %u", who->pid);
    if (who->rank >= 0)
        fprintf(page->out, ", rank %d,", who->rank);
    fprintf(page->out, " on %s%s: %s events", host, p->coverage->alive ? ", still running" : "",
            text_count(n, p->quality.recorded));
    if (!isnan(p->window.wall_s))
        fprintf(page->out, ", %s from first to last operation", text_us(n, p->window.wall_s * 1e6));
    fputc('\n', page->out);
    free(command);
    free(host);
    if (range) {
        char *name = text_clean(range);
        fprintf(page->out, "only NVTX range \"%s\": %s %s\n", name, text_count(n, p->intervals),
                p->intervals == 1 ? "interval" : "intervals");
        free(name);
    }
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
        char memory[TEXT_NUMBER];
        char *name = text_clean(d->name ? d->name : "unknown GPU");
        if (d->index < 0)
            fputs("some work on a GPU that is not known", page->out);
        else
            fprintf(page->out, "GPU %d: %s", d->index, name);
        if (d->sms)
            fprintf(page->out, ", %u SMs", d->sms);
        if (d->memory_bytes)
            fprintf(page->out, ", %s", text_bytes(memory, d->memory_bytes));
        if (d->pcie_gen)
            fprintf(page->out, ", PCIe %u x%u", d->pcie_gen, d->pcie_width);
        fputc('\n', page->out);
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
            table_cell(t, "%s %%", text_fixed(n, k->busy_pct, 1));
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
    snprintf(title, sizeof(title), several ? "Kernels on GPU %d" : "Kernels", d->index);
    page_heading(page, title);
    struct table *t = timed ? table_new(page, measured, COLUMNS_IN(measured))
                            : table_new(page, counted, COLUMNS_IN(counted));
    kernel_rows(t, d, shown, timed);
    table_print(t);
    page_more(page, shown, d->kernels_count, "kernels");
    fprintf(page->out,
            "  %s. SMALL: of its own launches, those with fewer\n"
            "  blocks than the GPU has SMs.\n",
            timed ? "BUSY: of the time that the GPU was busy" : "SHARE: of executed kernels");
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
          "  Not measured: GPU time of kernels and copies, gaps, steps.\n",
          page->out);
}

void render_report(const struct page *page, const struct gwa_process *p, const char *range)
{
    bool several = p->devices_count > 1;
    flaws(page, p);
    head(page, p, range);
    devices_line(page, p);
    for (size_t i = 0; i < p->devices_count; i++)
        part_time(page, &p->devices[i], several);
    if (p->devices_count)
        idle(page, p);
    launches(page, p);
    for (size_t i = 0; i < p->devices_count; i++)
        kernels(page, &p->devices[i], several);
    for (size_t i = 0; i < p->devices_count; i++)
        part_copies(page, &p->devices[i], several);
    part_waits(page, p);
    part_memory(page, p);
    part_collectives(page, p);
    part_threads(page, p);
    part_streams(page, p);
    part_other(page, p);
}

/* ---- the short one, after a run ----------------------------------------------------------------
 */

void render_short(const struct gwa_process *p, void (*say_line)(const char *text))
{
    const struct gwa_launches *l = &p->launches;
    char a[TEXT_NUMBER], b[TEXT_NUMBER], c[TEXT_NUMBER], d[TEXT_NUMBER];
    char *graphs = l->graph_launches
                       ? xprintf(" and %s graph launches", text_count(c, l->graph_launches))
                       : xstrdup("");
    char *text = xprintf("process %u: %s kernels by %s launch calls%s, %s of host time per launch",
                         p->identity.pid, text_count(a, l->kernels), text_count(b, l->calls),
                         graphs, text_us(d, l->host_us_per_launch));
    free(graphs);
    say_line(text);
    free(text);
    for (size_t i = 0; i < p->devices_count && i < 2; i++) {
        const struct gwa_device *dev = &p->devices[i];
        if (dev->index < 0 || (!part_time_known(dev) && isnan(dev->time.provable_idle_pct)))
            continue;
        if (part_time_known(dev))
            text =
                xprintf("GPU %d: idle %s %% of %s, busy between %s and %s %%", dev->index,
                        text_fixed(a, dev->time.idle_pct, 1), text_us(b, dev->window.wall_s * 1e6),
                        text_fixed(c, dev->time.busy_low_pct, 1),
                        text_fixed(d, dev->time.busy_high_pct, 1));
        else
            text = xprintf("GPU %d: idle at least %s %% of %s (lower bound)", dev->index,
                           text_fixed(a, dev->time.provable_idle_pct, 1),
                           text_us(b, dev->window.wall_s * 1e6));
        say_line(text);
        free(text);
    }
    for (size_t i = 0; i < p->quality.flaws_count && i < 2; i++) {
        text = render_flaw(&p->quality.flaws[i]);
        char *whole = xprintf("incomplete: %s", text);
        say_line(whole);
        free(whole);
        free(text);
    }
}
