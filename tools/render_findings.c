/* Verdict, why, next: what was found, in words. */
#include "render_parts.h"
#include "text.h"
#include "tool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REASONS_SHOWN  3
#define REASON_PCT     1.0
#define REMEDIES_SHOWN 3
#define REMEDY_PCT     2.0 /* less is not told from the timeline's own error */
#define OTHERS_SHOWN   5

/* ---- verdict ----------------------------------------------------------------------------- */

static void verdict(const struct page *page, const struct gwa_finding *f)
{
    char *title = xprintf("Verdict: %s%s", f->id,
                          f->confidence == GWA_HIGH     ? ""
                          : f->confidence == GWA_MEDIUM ? " (medium confidence)"
                                                        : " (low confidence)");
    page_heading(page, title);
    free(title);
    page_text(page, "  ", f->what ? f->what : "(no words for it)");
    if (f->cannot_know) {
        char *limit = xprintf("Not known from here: %s", f->cannot_know);
        page_text(page, "  ", limit);
        free(limit);
    }
}

/* ---- why ---------------------------------------------------------------------------------- */

/* The longest site of the class, the sites being in order. */
static void largest_site(const struct page *page, const struct gwa_device *d, unsigned class)
{
    char n[TEXT_NUMBER];
    for (size_t i = 0; i < d->sites_count; i++) {
        const struct gwa_site *s = &d->sites[i];
        if (s->class != class)
            continue;
        char *where = words_site(page, s);
        if (*where) {
            char *text = xprintf("%s: %s", where, text_us(n, s->idle_ms * 1e3));
            page_text(page, "            ", text);
            free(text);
        }
        free(where);
        return;
    }
}

static void reasons(const struct page *page, const struct gwa_device *d)
{
    unsigned order[GWA_IDLE_CLASS_COUNT];
    char n[TEXT_NUMBER], lead[32];
    size_t count = idle_order(d->time.idle, false, order);
    for (size_t i = 0; i < count && (page->all || i < REASONS_SHOWN); i++) {
        double pct = d->time.idle[order[i]];
        if (!page->all && pct < REASON_PCT)
            break;
        snprintf(lead, sizeof(lead), "  %6s %%  ", text_fixed(n, pct, 1));
        page_text(page, lead, word_class_text(order[i]));
        largest_site(page, d, order[i]);
    }
}

static bool has_reasons(const struct page *page, const struct gwa_device *d)
{
    unsigned order[GWA_IDLE_CLASS_COUNT];
    return isfinite(d->time.idle[0]) && idle_order(d->time.idle, false, order) &&
           (page->all || d->time.idle[order[0]] >= REASON_PCT);
}

static void why_device(const struct page *page, const struct gwa_device *d, bool several)
{
    const struct gwa_time *t = &d->time;
    char wall[TEXT_NUMBER], compute[TEXT_NUMBER], comm[TEXT_NUMBER], copy[TEXT_NUMBER];
    char idle[TEXT_NUMBER], lead[32] = "  ";
    if (several)
        snprintf(lead, sizeof(lead), "  %s: ", WORD_GPU(d->index));
    text_us(wall, d->window.wall_s * 1e6);
    text_fixed(idle, t->idle_pct, 1);
    if (!part_time_known(d)) {
        char *text =
            xprintf("%s %s the GPU was idle for at least %s %%; more is not known, since "
                    "no operation was timed",
                    several ? "of" : "Of", wall, text_fixed(idle, t->provable_idle_pct, 1));
        page_text(page, lead, text);
        free(text);
        return;
    }
    char *communication =
        t->exposed_comm_pct > 0
            ? xprintf(" %s %% communication,", text_fixed(comm, t->exposed_comm_pct, 1))
            : xstrdup("");
    char *text = xprintf("%s %s: %s %% compute,%s %s %% copies, %s %% idle%s",
                         several ? "of" : "Of", wall, text_fixed(compute, t->compute_pct, 1),
                         communication, text_fixed(copy, t->exposed_copy_pct, 1), idle,
                         has_reasons(page, d) ? ", while the host was" : "");
    page_text(page, lead, text);
    free(text);
    free(communication);
    if (has_reasons(page, d))
        reasons(page, d);
}

static void why(const struct page *page, const struct gwa_process *p)
{
    bool any = false;
    for (size_t i = 0; i < p->devices_count; i++) {
        const struct gwa_device *d = &p->devices[i];
        if (!part_time_known(d) && isnan(d->time.provable_idle_pct))
            continue;
        if (!any)
            page_heading(page, "Why");
        any = true;
        why_device(page, d, p->devices_count > 1);
    }
}

/* ---- next --------------------------------------------------------------------------------- */

/* "train.py:87 encode; saves at most 41.2 % of wall time" */
static void gain(const struct page *page, const struct gwa_finding *f, bool is_verdict)
{
    char n[TEXT_NUMBER];
    char *for_what = is_verdict ? xstrdup("") : xprintf("for %s", f->id);
    char *bound = isfinite(f->bound_pct)
                      ? xprintf("saves at most %s %% of wall time", text_fixed(n, f->bound_pct, 1))
                      : xstrdup("");
    char *text =
        xprintf("%s%s%s%s%s", for_what, *for_what && f->where ? ", " : "", f->where ? f->where : "",
                (*for_what || f->where) && *bound ? "; " : "", bound);
    if (*text)
        page_text(page, "     ", text);
    free(text);
    free(bound);
    free(for_what);
}

static bool worth_doing(const struct page *page, const struct gwa_process *p, size_t i)
{
    const struct gwa_finding *f = &p->findings[i];
    return f->remedy && (!i || page->all || !(f->bound_pct < REMEDY_PCT));
}

static void next(const struct page *page, const struct gwa_process *p)
{
    size_t count = 0, shown;
    char lead[32];
    for (size_t i = 0; i < p->findings_count; i++)
        count += worth_doing(page, p, i);
    if (!count)
        return;
    page_heading(page, "Next");
    shown = page_limit(page, count, REMEDIES_SHOWN);
    for (size_t i = 0, done = 0; done < shown; i++) {
        const struct gwa_finding *f = &p->findings[i];
        if (!worth_doing(page, p, i))
            continue;
        snprintf(lead, sizeof(lead), "  %zu. ", ++done);
        page_text(page, lead, f->remedy);
        gain(page, f, i == 0);
    }
}

/* ---- the others ------------------------------------------------------------------------------ */

static void others(const struct page *page, const struct gwa_process *p)
{
    char n[TEXT_NUMBER];
    int width = 0;
    if (p->findings_count < 2 || page->all) /* with --all part_findings_all() has them */
        return;
    page_heading(page, "Also found (of wall time)");
    size_t shown = page_limit(page, p->findings_count - 1, OTHERS_SHOWN);
    for (size_t i = 1; i <= shown; i++)
        width = (int)strlen(p->findings[i].id) > width ? (int)strlen(p->findings[i].id) : width;
    for (size_t i = 1; i <= shown; i++) {
        const struct gwa_finding *f = &p->findings[i];
        char *share = isfinite(f->share_pct) ? xprintf("%s %%", text_fixed(n, f->share_pct, 1))
                                             : xstrdup("-");
        char *lead = xprintf("  %7s  %-*s  ", share, width, f->id);
        page_text(page, lead, f->what ? f->what : "(no words for it)");
        free(lead);
        free(share);
    }
    page_more(page, shown, p->findings_count - 1, "findings");
}

void part_findings(const struct page *page, const struct gwa_process *p)
{
    if (!p->findings_count)
        return;
    verdict(page, &p->findings[0]);
    why(page, p);
    next(page, p);
    others(page, p);
}

/* ---- with --all: each finding with its evidence -------------------------------------------- */

static void evidence(const struct page *page, const struct gwa_finding *f)
{
    char n[TEXT_NUMBER];
    for (size_t i = 0; i < f->evidence_count; i++) {
        const struct gwa_evidence *e = &f->evidence[i];
        char *line = xprintf("%s: %s", e->key,
                             isfinite(e->number) || !e->text ? text_short(n, e->number) : e->text);
        page_text(page, "      ", line);
        free(line);
    }
}

void part_findings_all(const struct page *page, const struct gwa_process *p)
{
    char n[TEXT_NUMBER];
    if (!p->findings_count || !page->all)
        return;
    page_heading(page, "Findings");
    for (size_t i = 0; i < p->findings_count; i++) {
        const struct gwa_finding *f = &p->findings[i];
        char *title = isfinite(f->share_pct)
                          ? xprintf("%s: %s %% of wall time, %s confidence", f->id,
                                    text_fixed(n, f->share_pct, 1), word_confidence(f->confidence))
                          : xprintf("%s: %s confidence", f->id, word_confidence(f->confidence));
        page_text(page, "  ", title);
        free(title);
        if (f->what)
            page_text(page, "    ", f->what);
        if (f->where)
            page_text(page, "    at ", f->where);
        if (f->cannot_know)
            page_text(page, "    not known from here: ", f->cannot_know);
        evidence(page, f);
    }
}

void part_what_if(const struct page *page, const struct gwa_process *p)
{
    static const struct column columns[] = {{"AT MOST", RIGHT, 0}, {"IF", LEFT, 1}};
    char n[TEXT_NUMBER];
    if (!p->what_if_count)
        return;
    page_heading(page, "What if (upper bounds of wall time saved, each by itself)");
    struct table *t = table_new(page, columns, COLUMNS_IN(columns));
    for (size_t i = 0; i < p->what_if_count; i++) {
        const struct gwa_what_if *w = &p->what_if[i];
        table_row(t);
        table_cell(t, isfinite(w->bound_pct) ? "%s %%" : "%s", text_fixed(n, w->bound_pct, 1));
        table_cell(t, "%s", w->text ? w->text : w->id);
    }
    table_print(t);
}

/* ---- the short one, after a run -------------------------------------------------------------- */

static char *short_kernels(const struct gwa_process *p)
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
    return text;
}

/* NULL: nothing is known. */
static char *short_device(const struct gwa_device *d)
{
    char a[TEXT_NUMBER], b[TEXT_NUMBER], low[TEXT_NUMBER], high[TEXT_NUMBER];
    text_us(b, d->window.wall_s * 1e6);
    if (d->index < 0)
        return NULL;
    if (part_time_known(d))
        return xprintf("GPU %d: idle %s %% of %s, busy between %s and %s %%", d->index,
                       text_fixed(a, d->time.idle_pct, 1), b,
                       text_fixed(low, d->time.busy_low_pct, 1),
                       text_fixed(high, d->time.busy_high_pct, 1));
    if (isnan(d->time.provable_idle_pct))
        return NULL;
    return xprintf("GPU %d: idle at least %s %% of %s (lower bound)", d->index,
                   text_fixed(a, d->time.provable_idle_pct, 1), b);
}

/* Says and frees it, if there is room. */
static void short_line(char *text, size_t *room, void (*say_line)(const char *text))
{
    if (text && *room) {
        say_line(text);
        --*room;
    }
    free(text);
}

void render_short(const struct gwa_process *p, size_t lines, void (*say_line)(const char *text))
{
    const struct gwa_finding *first = p->findings_count ? &p->findings[0] : NULL;
    if (first && first->what)
        short_line(xprintf("process %u: %s: %s", p->identity.pid, first->id, first->what), &lines,
                   say_line);
    else
        short_line(short_kernels(p), &lines, say_line);
    for (size_t i = 0; i < p->devices_count && i < 2; i++)
        short_line(short_device(&p->devices[i]), &lines, say_line);
    if (p->quality.flaws_count) {
        char *flaw = render_flaw(&p->quality.flaws[0]);
        short_line(xprintf("incomplete: %s", flaw), &lines, say_line);
        free(flaw);
    }
    if (first && first->remedy)
        short_line(xprintf("next: %s", first->remedy), &lines, say_line);
    if (first && first->what)
        short_line(short_kernels(p), &lines, say_line);
}
