/* The report on many ranks as text: verdict first, then the ranks, what they wait for in
 * communication, and how their clocks were compared. */
#include "render_job.h"
#include "render_parts.h"
#include "text.h"
#include "tool.h"

#include <math.h>
#include <stdlib.h>

#define RANKS_SHOWN 16
#define CLASSES     3 /* of idle time: those that are largest over all ranks */
#define WORST_SHOWN 5
#define HOSTS_SHOWN 8

static void head(const struct page *page, const struct gwa_job_result *job)
{
    char a[TEXT_NUMBER], b[TEXT_NUMBER];
    size_t ranks = 0;
    for (size_t i = 0; i < job->ranks_count; i++)
        ranks += job->ranks[i].recorded;
    fprintf(page->out, "job of %s ranks on %s %s", text_count(a, ranks),
            text_count(b, job->hosts_count), job->hosts_count == 1 ? "host" : "hosts");
    if (job->collectives)
        fprintf(page->out, ", %s collectives matched", text_count(a, job->collectives));
    fputc('\n', page->out);
}

/* ---- ranks ------------------------------------------------------------------------------- */

/* The classes that are most of all ranks' idle time. */
static size_t classes_of(const struct gwa_job_result *job, unsigned order[GWA_IDLE_CLASS_COUNT])
{
    double most[GWA_IDLE_CLASS_COUNT] = {0};
    for (size_t i = 0; i < job->ranks_count; i++)
        for (unsigned c = 0; c < GWA_IDLE_CLASS_COUNT; c++)
            if (job->ranks[i].idle[c] > most[c])
                most[c] = job->ranks[i].idle[c];
    size_t n = idle_order(most, false, order);
    return n < CLASSES ? n : CLASSES;
}

static void percent(struct table *t, double v)
{
    char n[TEXT_NUMBER];
    table_cell(t, isfinite(v) ? "%s %%" : "%s", text_fixed(n, v, 1));
}

static void rank_row(struct table *t, const struct gwa_job_rank *r, const unsigned *classes,
                     size_t count)
{
    char n[TEXT_NUMBER];
    table_row(t);
    if (r->rank >= 0)
        table_cell(t, "%d%s", r->rank, r->outlier ? " *" : "");
    else
        table_cell(t, "-%s", r->outlier ? " *" : "");
    percent(t, r->compute_pct);
    percent(t, r->exposed_comm_pct);
    percent(t, r->comm_wait_pct);
    percent(t, r->exposed_copy_pct);
    percent(t, r->idle_pct);
    for (size_t i = 0; i < count; i++)
        percent(t, r->idle[classes[i]]);
    percent(t, r->caused_pct);
    table_cell(t, "%s", text_count(n, r->steps));
    table_cell(t, "%s", text_short(n, r->step_ms));
    table_cell(t, "%s", text_count(n, r->launches));
    table_cell(t, "%u %s", r->pid, r->host ? r->host : "");
}

/* Those that stand out first, so that none of them is left out. */
static void ranks(const struct page *page, const struct gwa_job_result *job)
{
    unsigned classes[GWA_IDLE_CLASS_COUNT];
    size_t count = classes_of(job, classes), shown = 0, recorded = 0;
    struct column columns[11 + CLASSES] = {{"RANK", RIGHT, 0}, {"COMPUTE", RIGHT, 0},
                                           {"COMM", RIGHT, 0}, {"WAIT", RIGHT, 0},
                                           {"COPY", RIGHT, 0}, {"IDLE", RIGHT, 0}};
    static const struct column rest[] = {{"CAUSED", RIGHT, 0},
                                         {"STEPS", RIGHT, 0},
                                         {"ms/STEP", RIGHT, 0},
                                         {"LAUNCHES", RIGHT, 0},
                                         {"PROCESS", LEFT, 1}};
    size_t n = 6;
    for (size_t i = 0; i < count; i++)
        columns[n++] = (struct column){word_class(classes[i]), RIGHT, 0};
    for (size_t i = 0; i < COLUMNS_IN(rest); i++)
        columns[n++] = rest[i];
    page_heading(page, "Ranks");
    struct table *t = table_new(page, columns, n);
    for (size_t i = 0; i < job->ranks_count; i++)
        recorded += job->ranks[i].recorded;
    size_t limit = page_limit(page, recorded, RANKS_SHOWN);
    for (int late = 1; late >= 0; late--)
        for (size_t i = 0; i < job->ranks_count && shown < limit; i++)
            if (job->ranks[i].recorded && job->ranks[i].outlier == late) {
                rank_row(t, &job->ranks[i], classes, count);
                shown++;
            }
    table_print(t);
    page_more(page, shown, recorded, "ranks");
    page_text(page, "  ",
              "Of each rank's wall time: COMM while nothing computes, of it WAIT until the last "
              "rank had come; IDLE, of it the largest classes; CAUSED, what each other rank "
              "waited for this one. * stands out.");
}

/* ---- communication -------------------------------------------------------------------- */

static void ops(const struct page *page, const struct gwa_job_result *job)
{
    static const struct column columns[] = {
        {"CALLS", RIGHT, 0},    {"BYTES", RIGHT, 0},      {"TRANSFER ms", RIGHT, 0},
        {"WAIT ms", RIGHT, 0},  {"EXPOSED ms", RIGHT, 0}, {"HIDDEN", RIGHT, 0},
        {"BUS GB/s", RIGHT, 0}, {"RANKS", RIGHT, 0},      {"OPERATION", LEFT, 1}};
    char n[TEXT_NUMBER];
    if (!job->ops_count)
        return;
    page_heading(page, "Communication (of one rank, on the average)");
    struct table *t = table_new(page, columns, COLUMNS_IN(columns));
    for (size_t i = 0; i < job->ops_count; i++) {
        const struct gwa_job_op *o = &job->ops[i];
        table_row(t);
        table_cell(t, "%s", text_count(n, o->calls));
        table_cell(t, "%s", text_bytes(n, (uint64_t)o->bytes));
        table_cell(t, "%s", text_short(n, o->transfer_ms));
        table_cell(t, "%s", text_short(n, o->wait_ms));
        table_cell(t, "%s", text_short(n, o->exposed_ms));
        percent(t, o->hidden_pct);
        table_cell(t, "%s", text_short(n, o->bus_gb_per_s));
        table_cell(t, "%u", o->ranks);
        table_cell(t, "%s", o->op);
    }
    table_print(t);
    page_text(page, "  ",
              "TRANSFER: from the coming of the last rank on. WAIT: before that, beside other "
              "work or not. EXPOSED: either, while nothing computes; HIDDEN: the rest. BUS: what "
              "each link carries.");
}

static void late(const struct page *page, const struct gwa_job_result *job)
{
    char n[TEXT_NUMBER];
    if (!job->late_count)
        return;
    page_heading(page, "Late ranks");
    for (size_t i = 0; i < job->late_count; i++) {
        const struct gwa_job_late *l = &job->late[i];
        const struct gwa_job_rank *r = &job->ranks[l->rank];
        char *who = r->rank >= 0 ? xprintf("rank %d", r->rank) : xprintf("process %u", r->pid);
        char *lead = xprintf("  %s: ", who);
        char *what =
            l->looked && l->cause == GWA_LATE_HOST
                ? xprintf(", %s%s%s%s%s", word_class(l->class), l->python || l->before ? " " : "",
                          l->python   ? "at "
                          : l->before ? "before "
                                      : "",
                          l->python ? words_python(page, l->python) : "",
                          !l->python && l->before ? l->before : "")
                : xstrdup("");
        char *text = xprintf("each other rank waits %s %% of the time for it; %s%s",
                             text_fixed(n, l->caused_pct, 1), gwa_late_cause_text(l->cause), what);
        page_text(page, lead, text);
        free(text);
        free(what);
        free(lead);
        free(who);
    }
}

static void worst(const struct page *page, const struct gwa_job_result *job)
{
    static const struct column columns[] = {{"WAIT", RIGHT, 0},  {"AT s", RIGHT, 0},
                                            {"BYTES", RIGHT, 0}, {"INDEX", RIGHT, 0},
                                            {"LAST", RIGHT, 0},  {"OPERATION", LEFT, 1}};
    char n[TEXT_NUMBER];
    size_t shown = page_limit(page, job->worst_count, WORST_SHOWN);
    if (!shown)
        return;
    page_heading(page, "Longest waits");
    struct table *t = table_new(page, columns, COLUMNS_IN(columns));
    for (size_t i = 0; i < shown; i++) {
        const struct gwa_job_worst *w = &job->worst[i];
        const struct gwa_job_rank *r = &job->ranks[w->late];
        table_row(t);
        table_cell(t, "%s", text_us(n, w->wait_ms * 1e3));
        table_cell(t, "%s", text_fixed(n, w->start_s, 3));
        table_cell(t, "%s", text_bytes(n, (uint64_t)w->bytes));
        table_cell(t, "%u", w->index);
        if (r->rank >= 0)
            table_cell(t, "rank %d", r->rank);
        else
            table_cell(t, "%u", r->pid);
        table_cell(t, "%s", w->op);
    }
    table_print(t);
}

/* ---- clocks ------------------------------------------------------------------------------ */

static void clocks(const struct page *page, const struct gwa_job_result *job)
{
    static const struct column columns[] = {{"RANKS", RIGHT, 0},     {"OFFSET s", RIGHT, 0},
                                            {"+- us", RIGHT, 0},     {"JITTER us", RIGHT, 0},
                                            {"DRIFT ppm", RIGHT, 0}, {"MATCHES", RIGHT, 0},
                                            {"HOST", LEFT, 1}};
    char n[TEXT_NUMBER];
    if (job->hosts_count < 2)
        return;
    page_heading(page, "Clocks of the hosts, against the first one's");
    struct table *t = table_new(page, columns, COLUMNS_IN(columns));
    size_t shown = page_limit(page, job->hosts_count, HOSTS_SHOWN);
    for (size_t i = 0; i < shown; i++) {
        const struct gwa_job_host *h = &job->hosts[i];
        table_row(t);
        table_cell(t, "%s", text_count(n, h->ranks));
        table_cell(t, "%s", text_fixed(n, h->offset_s, 6));
        table_cell(t, "%s", text_short(n, h->uncertainty_us));
        table_cell(t, "%s", text_short(n, h->jitter_us));
        table_cell(t, "%s", text_short(n, h->drift_ppm));
        table_cell(t, "%s", text_count(n, h->matches));
        table_cell(t, "%s", h->host ? h->host : "(unknown)");
    }
    table_print(t);
    page_more(page, shown, job->hosts_count, "hosts");
}

static void limits(const struct page *page, const struct gwa_job_result *job)
{
    char n[TEXT_NUMBER];
    if (job->why_not) {
        char *text = xprintf("Waiting is not told from transfers, and nobody is called late: %s.",
                             job->why_not);
        page_text(page, "  ", text);
        free(text);
    }
    if (job->cut)
        page_text(page, "  ",
                  "There are more collectives than are compared: those at the end of "
                  "each rank were left out.");
    if (job->unmatched && job->collectives) {
        char *text =
            xprintf("%s kernels of NCCL have no known partner.", text_count(n, job->unmatched));
        page_text(page, "  ", text);
        free(text);
    }
}

void render_job_short(const struct gwa_job_result *job, void (*line)(const char *text))
{
    const struct gwa_finding *f = job->findings_count ? &job->findings[0] : NULL;
    char n[TEXT_NUMBER];
    size_t ranks = 0;
    for (size_t i = 0; i < job->ranks_count; i++)
        ranks += job->ranks[i].recorded;
    char *text = f ? xprintf("job of %s ranks: %s: %s", text_count(n, ranks), f->id, f->what)
                   : xprintf("job of %s ranks", text_count(n, ranks));
    line(text);
    free(text);
    if (!f || !f->remedy)
        return;
    text = xprintf("next: %s", f->remedy);
    line(text);
    free(text);
}

void render_job(const struct page *page, const struct gwa_job_result *job)
{
    const struct gwa_process p = {.findings = job->findings, .findings_count = job->findings_count};
    head(page, job);
    limits(page, job);
    part_findings(page, &p);
    ranks(page, job);
    late(page, job);
    ops(page, job);
    worst(page, job);
    clocks(page, job);
    part_findings_all(page, &p);
    fprintf(page->out, "\n  \"gpuwait report --process RANK\" is one rank's report in full.\n");
}
