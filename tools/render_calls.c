/* The report's tables about calls other than launches. */
#include "render_parts.h"
#include "text.h"

#include <math.h>

#define ROWS_SHOWN 10

/* ---- copies -------------------------------------------------------------------------- */

static void copy_rows(struct table *t, const struct gwa_device *d, size_t shown, bool timed)
{
    char n[TEXT_NUMBER];
    for (size_t i = 0; i < shown; i++) {
        const struct gwa_transfer *x = &d->transfers[i];
        table_row(t);
        table_cell(t, "%s", text_count(n, x->calls));
        table_cell(t, "%s", text_bytes(n, x->bytes));
        table_cell(t, "%s", text_bytes(n, x->bytes / (x->calls ? x->calls : 1)));
        if (timed)
            table_cell(t, "%s", text_short(n, x->busy_ms));
        else
            table_cell(t, "%s", x->blocking ? text_short(n, x->blocking_ms) : "-");
        table_cell(t, "%s", isnan(x->gb_per_s) ? "n/a" : text_fixed(n, x->gb_per_s, 2));
        if (timed && isnan(x->exposed_pct))
            table_cell(t, "n/a");
        else if (timed)
            table_cell(t, "%.0f %%", x->exposed_pct);
        if (x->stream)
            table_cell(t, "%u", x->stream);
        else
            table_cell(t, "-");
        table_cell(t, "%s %s", gwa_direction_name(x->direction),
                   x->memory == GWA_MEM_GRAPH ? "inside graphs" : gwa_memory_name(x->memory));
    }
}

void part_copies(const struct page *page, const struct gwa_device *d, bool several)
{
    static const struct column held[] = {
        {"CALLS", RIGHT, 0}, {"BYTES", RIGHT, 0},  {"EACH", RIGHT, 0}, {"HELD ms", RIGHT, 0},
        {"GB/s", RIGHT, 0},  {"STREAM", RIGHT, 0}, {"COPY", LEFT, 1}};
    static const struct column measured[] = {
        {"CALLS", RIGHT, 0}, {"BYTES", RIGHT, 0},   {"EACH", RIGHT, 0},   {"BUSY ms", RIGHT, 0},
        {"GB/s", RIGHT, 0},  {"EXPOSED", RIGHT, 0}, {"STREAM", RIGHT, 0}, {"COPY", LEFT, 1}};
    char title[64], n[TEXT_NUMBER], m[TEXT_NUMBER];
    size_t shown = page_limit(page, d->transfers_count, ROWS_SHOWN);
    bool timed = part_time_known(d), any_held = false;
    if (!d->transfers_count && !d->memsets.calls && !d->prefetches.calls)
        return;
    snprintf(title, sizeof(title), several ? "Copies, %s" : "Copies", WORD_GPU(d->index));
    page_heading(page, title);
    struct table *t = timed ? table_new(page, measured, COLUMNS_IN(measured))
                            : table_new(page, held, COLUMNS_IN(held));
    copy_rows(t, d, shown, timed);
    table_print(t);
    page_more(page, shown, d->transfers_count, "rows");
    for (size_t i = 0; i < shown; i++)
        any_held |= d->transfers[i].blocking != 0;
    if (timed && d->transfers_count)
        fputs("  EXPOSED: of the time on the GPU, while no kernel ran.\n", page->out);
    else if (any_held)
        fputs("  HELD: time inside calls that return when the copy is done; GB/s is theirs.\n",
              page->out);
    if (d->memsets.calls) {
        snprintf(title, sizeof(title), "%s", text_bytes(m, d->memsets.bytes));
        page_line(page, "memsets", text_count(n, d->memsets.calls), title);
    }
    if (d->prefetches.calls) {
        snprintf(title, sizeof(title), "%s", text_bytes(m, d->prefetches.bytes));
        page_line(page, "prefetches", text_count(n, d->prefetches.calls), title);
    }
}

/* ---- waits ------------------------------------------------------------------------ */

/* One table for every kind of call whose number and time matter. */
void part_calls(const struct page *page, const struct gwa_process *p, const char *const *names,
                const unsigned *kinds, size_t kinds_count, bool copies_too)
{
    static const struct column columns[] = {{"CALLS", RIGHT, 0},
                                            {"FAILED", RIGHT, 0},
                                            {"TOTAL ms", RIGHT, 0},
                                            {"MEAN us", RIGHT, 0},
                                            {"CALL", LEFT, 1}};
    struct table *t = table_new(page, columns, COLUMNS_IN(columns));
    char n[TEXT_NUMBER];
    for (size_t k = 0; k < kinds_count; k++)
        for (size_t i = 0; i < p->apis_count; i++) {
            const struct gwa_api *a = &p->apis[i];
            if (a->kind != kinds[k] || !(a->calls + a->failed))
                continue;
            table_row(t);
            table_cell(t, "%s", text_count(n, a->calls));
            table_cell(t, "%s", text_count(n, a->failed));
            table_cell(t, "%s", text_short(n, a->ms));
            table_cell(t, "%s", text_short(n, a->calls ? a->ms * 1e3 / (double)a->calls : NAN));
            table_cell(t, "%s%s", a->name, names ? names[k] : "");
        }
    if (copies_too && p->blocking_copies.calls) {
        const struct gwa_waits *w = &p->blocking_copies;
        table_row(t);
        table_cell(t, "%s", text_count(n, w->calls));
        table_cell(t, "-");
        table_cell(t, "%s", text_short(n, w->waited_ms));
        table_cell(t, "%s", text_short(n, w->waited_ms * 1e3 / (double)w->calls));
        table_cell(t, "blocking copies (synchronous or pageable)");
    }
    table_print(t);
}

void part_waits(const struct page *page, const struct gwa_process *p)
{
    static const unsigned kinds[] = {GWT_SYNC};
    if (!p->syncs.calls && !p->blocking_copies.calls)
        return;
    page_heading(page, "Waits for the GPU (time inside them is not waste by itself)");
    part_calls(page, p, NULL, kinds, 1, true);
}

/* ---- the rest ------------------------------------------------------------------------------ */

void part_collectives(const struct page *page, const struct gwa_process *p)
{
    static const struct column columns[] = {
        {"CALLS", RIGHT, 0}, {"BYTES", RIGHT, 0}, {"HOST ms", RIGHT, 0}, {"NCCL", LEFT, 1}};
    char n[TEXT_NUMBER];
    if (!p->collectives_count)
        return;
    page_heading(page, "Communication");
    struct table *t = table_new(page, columns, COLUMNS_IN(columns));
    for (size_t i = 0; i < p->collectives_count; i++) {
        const struct gwa_collective *c = &p->collectives[i];
        table_row(t);
        table_cell(t, "%s", text_count(n, c->calls));
        table_cell(t, "%s", text_bytes(n, c->bytes));
        table_cell(t, "%s", text_short(n, c->ms));
        table_cell(t, "%s", c->op);
    }
    table_print(t);
}

void part_threads(const struct page *page, const struct gwa_process *p)
{
    static const struct column columns[] = {{"CALLS", RIGHT, 0},
                                            {"LAUNCHES", RIGHT, 0},
                                            {"WAITED ms", RIGHT, 0},
                                            {"TID", RIGHT, 0},
                                            {"THREAD", LEFT, 1}};
    char n[TEXT_NUMBER];
    size_t shown = page_limit(page, p->threads_count, ROWS_SHOWN);
    page_heading(page, "Threads");
    struct table *t = table_new(page, columns, COLUMNS_IN(columns));
    for (size_t i = 0; i < shown; i++) {
        const struct gwa_thread *th = &p->threads[i];
        table_row(t);
        table_cell(t, "%s", text_count(n, th->calls));
        table_cell(t, "%s", text_count(n, th->launches));
        table_cell(t, "%s", text_short(n, th->waited_ms));
        table_cell(t, "%u", th->tid);
        table_cell(t, "%s", th->name ? th->name : "");
    }
    table_print(t);
    page_more(page, shown, p->threads_count, "threads");
}

void part_streams(const struct page *page, const struct gwa_process *p)
{
    static const struct column columns[] = {
        {"STREAM", RIGHT, 0},  {"GPU", RIGHT, 0},  {"LAUNCHES", RIGHT, 0}, {"COPIES", RIGHT, 0},
        {"MEMSETS", RIGHT, 0}, {"NCCL", RIGHT, 0}, {"WAITS", RIGHT, 0},    {"KIND", LEFT, 1}};
    char n[TEXT_NUMBER];
    size_t shown = page_limit(page, p->streams_count, ROWS_SHOWN);
    if (!p->streams_count)
        return;
    page_heading(page, "Streams");
    struct table *t = table_new(page, columns, COLUMNS_IN(columns));
    for (size_t i = 0; i < shown; i++) {
        const struct gwa_stream *s = &p->streams[i];
        table_row(t);
        table_cell(t, s->id ? "%u" : "?", s->id);
        table_cell(t, s->device == 0xff ? "?" : "%u", s->device);
        table_cell(t, "%s", text_count(n, s->launches));
        table_cell(t, "%s", text_count(n, s->copies));
        table_cell(t, "%s", text_count(n, s->memsets));
        table_cell(t, "%s", text_count(n, s->collectives));
        table_cell(t, "%s", text_count(n, s->syncs));
        if (s->tid)
            table_cell(t, "%s of thread %u", gwa_stream_type_name(s->type), s->tid);
        else
            table_cell(t, "%s%s", gwa_stream_type_name(s->type),
                       s->nonblocking == 1 ? ", non-blocking" : "");
    }
    table_print(t);
    page_more(page, shown, p->streams_count, "streams");
}

void part_other(const struct page *page, const struct gwa_process *p)
{
    char n[TEXT_NUMBER];
    page_heading(page, "Other calls");
#define X(field, kind, text)                                                                       \
    if (p->other.field)                                                                            \
        page_line(page, text, text_count(n, p->other.field), "");
    GWA_OTHER_CALLS(X)
#undef X
    if (p->polls >= 0)
        page_line(page, "event and stream queries", text_count(n, (uint64_t)p->polls), "");
    if (!isnan(p->quality.own_host_ms)) {
        char note[64], pct[TEXT_NUMBER] = "";
        snprintf(note, sizeof(note), "%s%s", text_fixed(pct, p->quality.own_overhead_pct, 2),
                 isnan(p->quality.own_overhead_pct) ? "" : " % of one core");
        page_line(page, "gpuwait's own cost", text_us(n, p->quality.own_host_ms * 1e3),
                  isnan(p->quality.own_overhead_pct) ? "" : note);
    }
}
