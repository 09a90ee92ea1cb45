/* The table of rules, and the order of what they find. */
#include "findings_internal.h"
#include "grow.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rule {
    const char *id;
    uint8_t rank, effort;
    const char *remedy, *cannot_know;
    bool (*holds)(const struct gwa_view *v, struct gwa_draft *f);
};

static const struct rule rules[GWA_FINDING_IDS] = {
#define FINDING(NAME, id, rank, effort, remedy, cannot_know)                                       \
    {id, GWA_RANK_##rank, GWA_EFFORT_##effort, remedy, cannot_know, gwa_rule_##NAME},
#include "findings.def"
};

unsigned gwa_finding_rank(const char *id)
{
    for (unsigned i = 0; i < GWA_FINDING_IDS; i++)
        if (!strcmp(rules[i].id, id))
            return rules[i].rank;
    return GWA_RANK_HINT;
}

/* ---- text ------------------------------------------------------------------------------ */

void gwa_say(struct gwa_draft *d, struct gwa_text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (d->failed || n < 0)
        return;
    if (t->used + (size_t)n + 1 > t->room) {
        size_t want = (t->used + (size_t)n + 1) * 2;
        char *grown = realloc(t->s, want);
        if (!grown) {
            d->failed = true;
            return;
        }
        t->s = grown;
        t->room = want;
    }
    va_start(args, format);
    vsnprintf(t->s + t->used, t->room - t->used, format, args);
    va_end(args);
    t->used += (size_t)n;
}

static struct gwa_evidence *one_more(struct gwa_draft *d)
{
    struct gwa_finding *f = &d->f;
    if (d->failed || gwa_reserve((void **)&f->evidence, &d->evidence_room, f->evidence_count,
                                 sizeof(*f->evidence))) {
        d->failed = true;
        return NULL;
    }
    return &f->evidence[f->evidence_count++];
}

void gwa_evidence(struct gwa_draft *d, const char *key, double number)
{
    struct gwa_evidence *e = isfinite(number) ? one_more(d) : NULL;
    if (e)
        *e = (struct gwa_evidence){.key = key, .number = number};
}

void gwa_evidence_text(struct gwa_draft *d, const char *key, const char *text)
{
    struct gwa_evidence *e = text ? one_more(d) : NULL;
    if (!e)
        return;
    *e = (struct gwa_evidence){.key = key, .number = NAN, .text = strdup(text)};
    if (!e->text)
        d->failed = true;
}

/* What was not measured is n/a. */
static bool not_known(char b[GWA_NUMBER], double x)
{
    if (isfinite(x) && x >= 0)
        return false;
    strcpy(b, "n/a");
    return true;
}

const char *gwa_pct_text(char b[GWA_NUMBER], double pct)
{
    if (!not_known(b, pct))
        snprintf(b, GWA_NUMBER, pct < 9.95 ? "%.1f %%" : "%.0f %%", pct < 100 ? pct : 100);
    return b;
}

const char *gwa_bytes_text(char b[GWA_NUMBER], double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    unsigned i = 0;
    if (not_known(b, bytes))
        return b;
    while (bytes >= 1024 && i < 4)
        bytes /= 1024, i++;
    snprintf(b, GWA_NUMBER, i && bytes < 9.95 ? "%.1f %s" : "%.0f %s", bytes, units[i]);
    return b;
}

const char *gwa_ms_text(char b[GWA_NUMBER], double ms)
{
    if (not_known(b, ms))
        return b;
    if (ms >= 999500) /* %.3g would begin to write powers of ten */
        snprintf(b, GWA_NUMBER, "%.0f s", ms / 1000);
    else if (ms >= 999.5)
        snprintf(b, GWA_NUMBER, "%.3g s", ms / 1000);
    else if (ms >= 0.9995)
        snprintf(b, GWA_NUMBER, "%.3g ms", ms);
    else
        snprintf(b, GWA_NUMBER, "%.3g us", ms * 1000);
    return b;
}

const char *gwa_count_text(char b[GWA_NUMBER], double count)
{
    if (not_known(b, count))
        return b;
    int length =
        snprintf(b, GWA_NUMBER, /* 5 rather than 5.0 for 4.98 */
                 count < 9.95 && fabs(count - round(count)) >= 0.05 ? "%.1f" : "%.0f", count);
    for (int at = length - 3; count >= 999.5 && at > 0 && length < GWA_NUMBER - 1; at -= 3) {
        memmove(b + at + 1, b + at, (size_t)(length - at) + 1);
        b[at] = ',';
        length++;
    }
    return b;
}

const char *gwa_times_text(char b[GWA_NUMBER], double times)
{
    char n[GWA_NUMBER];
    if (times >= 0.95 && times < 1.05)
        strcpy(b, "once");
    else if (times >= 1.95 && times < 2.05)
        strcpy(b, "twice");
    else
        snprintf(b, GWA_NUMBER, "%.20s times", gwa_count_text(n, times));
    return b;
}

const char *gwa_phase_text(unsigned phase)
{
    static const char *const texts[GWA_PHASE_COUNT] = {
#define X(id, text) text,
        GWA_PHASES(X)
#undef X
    };
    return phase < GWA_PHASE_COUNT && phase != GWA_PHASE_OTHER ? texts[phase] : NULL;
}

/* ---- drafts -------------------------------------------------------------------------------- */

struct drafts {
    struct gwa_draft *list;
    size_t count, room;
};

static void free_finding(struct gwa_finding *f)
{
    for (size_t i = 0; i < f->evidence_count; i++)
        free(f->evidence[i].text);
    free(f->evidence);
    free(f->what);
    free(f->where);
    free(f->remedy);
}

static void free_draft(struct gwa_draft *d)
{
    d->f.what = d->what.s;
    d->f.where = d->where.s;
    d->f.remedy = d->remedy.s;
    free_finding(&d->f);
}

/* What takes work is not worth it on a device that is used well; and on one at its limit little
 * comes before that. */
static double material(const struct gwa_view *v, const struct rule *r)
{
    if (r->effort == GWA_EFFORT_WORK && v->work_pct >= GWA_HEALTHY_PCT)
        return INFINITY;
    if (r->effort == GWA_EFFORT_CHEAP && gwa_at_limit(v))
        return fmax(GWA_MATERIAL_AT_LIMIT_PCT, GWA_MOST * (100 - v->work_pct));
    return GWA_MATERIAL_PCT;
}

/* Shares and bounds lie between 0 and 100. */
static double share(double pct)
{
    if (!(pct > 0))
        return isnan(pct) ? NAN : 0;
    return pct < 100 ? pct : 100;
}

static void settle(const struct gwa_view *v, const struct rule *r, struct gwa_draft *d)
{
    struct gwa_finding *f = &d->f;
    f->id = r->id;
    if (!f->cannot_know)
        f->cannot_know = r->cannot_know;
    f->share_pct = share(f->share_pct);
    f->bound_pct = share(f->bound_pct);
    if (!d->remedy.s)
        gwa_say(d, &d->remedy, "%s", r->remedy);
    if (!v->p->quality.complete && f->confidence > GWA_LOW && d->rank != GWA_RANK_DOUBT)
        f->confidence--;
    if (d->rank == GWA_RANK_GAIN && !(f->bound_pct >= material(v, r)))
        d->rank = GWA_RANK_HINT;
}

/* Idle that takes work to be rid of, on a device that is used well: stop here. */
static bool not_worth_it(const struct gwa_view *v, const struct rule *r, const struct gwa_draft *d)
{
    return r->rank == GWA_RANK_GAIN && d->rank == GWA_RANK_HINT && r->effort == GWA_EFFORT_WORK &&
           v->work_pct >= GWA_HEALTHY_PCT && !isnan(d->f.bound_pct);
}

/* One finding of an id: of the device where it would free most. */
static bool better(const struct gwa_draft *a, const struct gwa_draft *b)
{
    if (a->rank != b->rank)
        return a->rank < b->rank;
    return a->f.bound_pct > b->f.bound_pct;
}

static int apply(struct drafts *all, const struct gwa_view *v, unsigned id)
{
    const struct rule *r = &rules[id];
    struct gwa_draft d = {.id = (uint8_t)id,
                          .rank = r->rank,
                          .f = {.share_pct = NAN, .bound_pct = NAN, .confidence = GWA_MEDIUM}};
    bool holds = r->holds(v, &d);
    if (holds)
        settle(v, r, &d);
    holds = holds && !not_worth_it(v, r, &d);
    if (d.failed || !holds) {
        free_draft(&d);
        return d.failed ? -ENOMEM : 0;
    }
    for (size_t i = 0; i < all->count; i++) {
        if (all->list[i].id != id)
            continue;
        struct gwa_draft worse = all->list[i];
        if (better(&d, &worse))
            all->list[i] = d;
        else
            worse = d;
        free_draft(&worse);
        return 0;
    }
    if (gwa_reserve((void **)&all->list, &all->room, all->count, sizeof(*all->list))) {
        free_draft(&d);
        return -ENOMEM;
    }
    all->list[all->count++] = d;
    return 0;
}

static int in_order(const void *a, const void *b)
{
    const struct gwa_draft *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    double left = x->rank == GWA_RANK_RISK || isnan(x->weight) ? -1 : x->weight;
    double right = y->rank == GWA_RANK_RISK || isnan(y->weight) ? -1 : y->weight;
    if (left > right || left < right)
        return left > right ? -1 : 1;
    return (int)x->id - (int)y->id;
}

/* The device idles, and no single cause is worth a change: then the largest is the verdict. */
static void promote(struct drafts *all, double work_pct)
{
    struct gwa_draft *most = NULL;
    if (!(work_pct < GWA_HEALTHY_PCT))
        return;
    for (size_t i = 0; i < all->count; i++) {
        struct gwa_draft *d = &all->list[i];
        if (d->rank == GWA_RANK_GAIN)
            return;
        if (rules[d->id].rank == GWA_RANK_GAIN && d->f.bound_pct >= GWA_MENTION_PCT &&
            (!most || d->f.bound_pct > most->f.bound_pct))
            most = d;
    }
    if (most)
        most->rank = GWA_RANK_GAIN;
}

/* Why the device idles. */
static bool explains(const struct gwa_draft *d)
{
    return d->rank == GWA_RANK_GAIN || d->id == GWA_FIND_BLOCKING_MODE ||
           (d->rank == GWA_RANK_RISK && d->f.bound_pct >= GWA_MATERIAL_PCT);
}

static int find_in(struct drafts *all, struct gwa_view *v, bool states)
{
    int rc = 0;
    for (unsigned i = 0; i < GWA_FINDING_IDS && !rc; i++)
        if (rules[i].rank != GWA_RANK_STATE)
            rc = apply(all, v, i);
    if (rc || !states)
        return rc;
    promote(all, v->work_pct);
    for (size_t i = 0; i < all->count; i++)
        if (explains(&all->list[i]))
            v->any_gain = true;
    for (unsigned i = 0; i < GWA_FINDING_IDS && !rc; i++)
        if (rules[i].rank == GWA_RANK_STATE)
            rc = apply(all, v, i);
    return rc;
}

/* ---- what if --------------------------------------------------------------------------------- */

static void what_if(struct gwa_process *p, const char *id, const char *text, double bound)
{
    for (size_t i = 0; i < p->what_if_count; i++)
        if (!strcmp(p->what_if[i].id, id)) {
            if (share(bound) > p->what_if[i].bound_pct)
                p->what_if[i].bound_pct = share(bound);
            return;
        }
    if (share(bound) >= 0)
        p->what_if[p->what_if_count++] =
            (struct gwa_what_if){.id = id, .text = text, .bound_pct = share(bound)};
}

#define WHAT_IFS 3

/* Sections outside CUDA of which no clock says whether they computed or waited. */
static double unclocked_pct(const struct gwa_view *v)
{
    double ms = 0;
    for (size_t i = 0; i < v->d->sites_count; i++) {
        const struct gwa_site *s = &v->d->sites[i];
        if (s->class == GWA_IDLE_UNKNOWN && (s->after || s->before) && s->idle_ms > 0)
            ms += s->idle_ms;
    }
    return 100 * ms / v->wall_ms;
}

static int find_what_if(struct gwa_process *p, const struct gwa_view *v)
{
    const struct gwa_time *t = &v->d->time;
    if (!p->what_if && !(p->what_if = calloc(WHAT_IFS, sizeof(*p->what_if))))
        return -ENOMEM;
    if (!v->timed)
        return 0;
    what_if(p, "graph-replay",
            "the launches of each step were one replay of a graph (where steps are identical)",
            t->idle[GWA_IDLE_LAUNCH] + t->idle[GWA_IDLE_DISPATCH] - v->in_graphs_pct);
    what_if(p, "no-host-gaps", "the host took no time outside CUDA beyond 1 ms at once",
            t->idle[GWA_IDLE_HOST_CPU] + t->idle[GWA_IDLE_HOST_BLOCKED] + unclocked_pct(v));
    what_if(p, "copies-overlapped", "copies came from pinned memory and beside kernels",
            t->exposed_copy_pct + t->idle[GWA_IDLE_COPY]);
    return 0;
}

/* ---- all ----------------------------------------------------------------------------------------
 */

static struct gwa_device *busiest(const struct gwa_process *p)
{
    struct gwa_device *most = NULL;
    for (size_t i = 0; i < p->devices_count; i++)
        if (!most || p->devices[i].kernels_executed > most->kernels_executed)
            most = &p->devices[i];
    return most;
}

static const struct gwa_draft *of_id(const struct drafts *all, unsigned id)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].id == id)
            return &all->list[i];
    return NULL;
}

/* Of so few launches between two waits there is no graph to be made. */
#define CAPTURED_LEAST 16.0

/* Most first; but a graph or a compiler takes no step that is cut up by reads, so that these go
 * first where they bring anything near, or leave nothing to capture. */
static void weigh(struct drafts *all, const struct gwa_process *p)
{
    static const uint8_t cut[] = {GWA_FIND_SYNC_STORM, GWA_FIND_SHAPE_SYNC, GWA_FIND_DEVICE_SYNC};
    for (size_t i = 0; i < all->count; i++)
        all->list[i].weight = all->list[i].f.bound_pct;
    for (size_t i = 0; i < all->count; i++) {
        struct gwa_draft *d = &all->list[i];
        if (d->id != GWA_FIND_LAUNCH_BOUND && d->id != GWA_FIND_SMALL_BATCH)
            continue;
        for (size_t k = 0; k < sizeof(cut); k++) {
            const struct gwa_draft *c = of_id(all, cut[k]);
            if (c && c->rank == GWA_RANK_GAIN &&
                (c->f.bound_pct >= d->f.bound_pct / 2 ||
                 p->steps.launches.median < CAPTURED_LEAST * c->waits_per_step))
                d->weight = fmin(d->weight, nextafter(c->f.bound_pct, 0));
        }
    }
}

static int keep(struct gwa_process *p, struct drafts *all)
{
    if (!all->count)
        return 0;
    weigh(all, p);
    p->findings = calloc(all->count, sizeof(*p->findings));
    if (!p->findings)
        return -ENOMEM;
    qsort(all->list, all->count, sizeof(*all->list), in_order);
    for (size_t i = 0; i < all->count; i++) {
        struct gwa_draft *d = &all->list[i];
        d->f.what = d->what.s;
        d->f.where = d->where.s;
        d->f.remedy = d->remedy.s;
        p->findings[p->findings_count++] = d->f;
    }
    all->count = 0;
    return 0;
}

/* Where weights come and go, what a step takes is no measure of its batch. */
static void look(struct gwa_view *v, const struct gwt_trace *trace, const struct gwa_process *p,
                 struct gwa_device *d)
{
    gwa_view_fill(v, trace, p, d);
    if (v->offloading)
        d->memory.batch_multiplier = NAN;
}

int gwa_find(const struct gwt_trace *trace, struct gwa_process *p)
{
    struct gwa_device nowhere = {.index = -1, .window.wall_s = NAN}, *most = busiest(p);
    struct gwa_view *v = malloc(sizeof(*v));
    struct drafts all = {0};
    int rc = v ? 0 : -ENOMEM;
    /* the busiest last: its state is the process's */
    for (size_t i = 0; i < p->devices_count && !rc; i++) {
        if (&p->devices[i] == most)
            continue;
        look(v, trace, p, &p->devices[i]);
        rc = find_in(&all, v, false);
        if (!rc)
            rc = find_what_if(p, v);
    }
    if (!rc) {
        look(v, trace, p, most ? most : &nowhere);
        rc = find_in(&all, v, true);
        if (!rc)
            rc = find_what_if(p, v);
    }
    if (!rc)
        rc = keep(p, &all);
    for (size_t i = 0; i < all.count; i++)
        free_draft(&all.list[i]);
    free(all.list);
    free(v);
    return rc;
}

void gwa_findings_free(struct gwa_process *p)
{
    for (size_t i = 0; i < p->findings_count; i++)
        free_finding(&p->findings[i]);
    free(p->findings);
    free(p->what_if);
    p->findings = NULL;
    p->what_if = NULL;
    p->findings_count = p->what_if_count = 0;
}
