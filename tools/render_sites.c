/* Why the GPU was idle, place by place, for the report as text. */
#include "render_parts.h"
#include "text.h"
#include "tool.h"

#include "analysis/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SITES_SHOWN  8
#define DRAINS_SHOWN 5

static const char *phase_or_dash(unsigned phase)
{
    return phase == GWA_PHASE_OTHER ? "-" : word_phase(phase);
}

static const char *word_place(const struct gwa_site *s)
{
    if (s->position == GWA_SITE_STEP_EDGE)
        return "step edge";
    if (s->position == GWA_SITE_OUTSIDE_STEPS)
        return "no step";
    return phase_or_dash(s->phase);
}

/* A path's folders say little where room is short; function names hold no slash. */
const char *words_python(const struct page *page, const char *python)
{
    const char *slash = strrchr(python, '/');
    return slash && !page->all ? slash + 1 : python;
}

/* The calls around it; "" where there is none. */
static char *words_calls(const struct gwa_site *s)
{
    if (s->class == GWA_IDLE_LAUNCH && s->origin != GWA_LAUNCH_CALL)
        return xprintf("between %s kernels%s%s",
                       s->origin == GWA_LAUNCH_GRAPH ? "a graph's" : "queued",
                       s->phase == GWA_PHASE_OTHER ? "" : ", ",
                       s->phase == GWA_PHASE_OTHER ? "" : word_phase(s->phase));
    if (s->api)
        return xprintf("in %s", s->api);
    if (s->after && s->before)
        return xprintf("from %s to %s", s->after, s->before);
    if (s->after || s->before)
        return xprintf(s->after ? "after %s" : "before %s", s->after ? s->after : s->before);
    return xstrdup("");
}

char *words_site(const struct page *page, const struct gwa_site *s)
{
    if (s->python && !page->all)
        return xstrdup(words_python(page, s->python));
    char *calls = words_calls(s);
    if (!s->python && (*calls || s->phase == GWA_PHASE_OTHER))
        return calls;
    char *whole = s->python ? xprintf("%s%s%s", s->python, *calls ? ", " : "", calls)
                            : xprintf("in %s", word_phase(s->phase));
    free(calls);
    return whole;
}

/* How often: per step, or every so many. */
static void often(struct table *t, double per_step, unsigned period)
{
    char n[TEXT_NUMBER];
    if (period > 1)
        table_cell(t, "1 in %u", period);
    else
        table_cell(t, "%s", text_short(n, per_step));
}

void part_sites(const struct page *page, const struct gwa_device *d, bool several)
{
    static const struct column brief[] = {{"IDLE", RIGHT, 0},   {"COUNT", RIGHT, 0},
                                          {"A STEP", RIGHT, 0}, {"CPU", RIGHT, 0},
                                          {"CLASS", LEFT, 0},   {"WHERE", LEFT, 1}};
    static const struct column whole[] = {
        {"IDLE", RIGHT, 0}, {"COUNT", RIGHT, 0}, {"A STEP", RIGHT, 0}, {"CPU", RIGHT, 0},
        {"CLASS", LEFT, 0}, {"IN", LEFT, 0},     {"WHERE", LEFT, 1}};
    char n[TEXT_NUMBER], title[80];
    size_t shown = page_limit(page, d->sites_count, SITES_SHOWN);
    if (!shown)
        return;
    snprintf(title, sizeof(title), several ? "What left %s idle" : "What left the GPU idle",
             WORD_GPU(d->index));
    page_heading(page, title);
    struct table *t = page->all ? table_new(page, whole, COLUMNS_IN(whole))
                                : table_new(page, brief, COLUMNS_IN(brief));
    for (size_t i = 0; i < shown; i++) {
        const struct gwa_site *s = &d->sites[i];
        char *where = words_site(page, s);
        table_row(t);
        table_cell(t, "%s", text_us(n, s->idle_ms * 1e3));
        table_cell(t, "%s", s->count ? text_count(n, s->count) : "n/a");
        often(t, s->per_step, s->period);
        table_cell(t, isfinite(s->cpu_share) ? "%.0f %%" : "n/a", 100 * s->cpu_share);
        table_cell(t, "%s", word_class(s->class));
        if (page->all)
            table_cell(t, "%s", word_place(s));
        table_cell(t, "%s", where);
        free(where);
    }
    table_print(t);
    page_more(page, shown, d->sites_count, "places");
    page_text(page, "  ",
              "IDLE: of the GPU, in all. CPU: of the host's time there, on a core itself.");
}

/* "train.py:101 train, cudaStreamSynchronize after reduce_kernel" */
static char *drain_where(const struct page *page, const struct gwa_drain *d)
{
    char *kernel = d->kernel ? text_kernel(d->kernel, page->all ? 0 : 40) : NULL;
    char *whole =
        xprintf("%s%s%s%s%s", d->python ? words_python(page, d->python) : "", d->python ? ", " : "",
                d->api ? d->api : "unknown call", kernel ? " after " : "", kernel ? kernel : "");
    free(kernel);
    return whole;
}

void part_drains(const struct page *page, const struct gwa_device *d, bool several)
{
    static const struct column brief[] = {{"IDLE", RIGHT, 0},  {"WAITED", RIGHT, 0},
                                          {"COUNT", RIGHT, 0}, {"A STEP", RIGHT, 0},
                                          {"READ", RIGHT, 0},  {"CALL", LEFT, 1}};
    static const struct column whole[] = {
        {"IDLE", RIGHT, 0}, {"WAITED", RIGHT, 0}, {"COUNT", RIGHT, 0}, {"A STEP", RIGHT, 0},
        {"READ", RIGHT, 0}, {"IN", LEFT, 0},      {"CALL", LEFT, 1}};
    char n[TEXT_NUMBER], title[80];
    size_t shown = page_limit(page, d->drains_count, DRAINS_SHOWN);
    if (!shown)
        return;
    snprintf(title, sizeof(title),
             several ? "Blocking calls that emptied the queue of %s"
                     : "Blocking calls that emptied the queue",
             WORD_GPU(d->index));
    page_heading(page, title);
    struct table *t = page->all ? table_new(page, whole, COLUMNS_IN(whole))
                                : table_new(page, brief, COLUMNS_IN(brief));
    for (size_t i = 0; i < shown; i++) {
        const struct gwa_drain *x = &d->drains[i];
        char *where = drain_where(page, x);
        table_row(t);
        table_cell(t, "%s", text_us(n, x->idle_ms * 1e3));
        table_cell(t, "%s", text_us(n, x->waited_ms * 1e3));
        table_cell(t, "%s", text_count(n, x->count));
        often(t, x->per_step, 0);
        table_cell(t, "%s%s", x->bytes ? text_bytes(n, x->bytes) : "-", x->pageable ? " *" : "");
        if (page->all)
            table_cell(t, "%s", phase_or_dash(x->phase));
        table_cell(t, "%s", where);
        free(where);
    }
    table_print(t);
    page_more(page, shown, d->drains_count, "calls");
    page_text(page, "  ",
              "IDLE: from the end of the GPU's work to its next; WAITED is no waste: it was "
              "working. READ: size of the copy to the host; *: into pageable memory.");
}
