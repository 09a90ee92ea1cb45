/* report --json: steps, why the GPU was idle, and what was found. */
#include "render_json.h"

#include "analysis/steps.h"
#include "text.h"

#include <math.h>
#include <stdlib.h>

/* ---- where -------------------------------------------------------------------------- */

static const char *position_key(unsigned position)
{
    return position == GWA_SITE_INSIDE      ? "inside"
           : position == GWA_SITE_STEP_EDGE ? "step_edge"
                                            : "outside_steps";
}

json_t *render_sites_json(const struct gwa_device *d)
{
    if (!isfinite(d->time.idle[0]))
        return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < d->sites_count; i++) {
        const struct gwa_site *s = &d->sites[i];
        json_t *o = json_object();
        render_set(o, "class", json_string(word_class_key(s->class)));
        render_set(o, "phase", json_string(word_phase(s->phase)));
        render_set(o, "position", json_string(position_key(s->position)));
        render_set(o, "before_h2d", json_boolean(s->before_h2d));
        render_set(o, "api", render_string(s->api));
        render_set(o, "after", render_string(s->after));
        render_set(o, "before", render_string(s->before));
        render_set(o, "count", s->count ? render_count(s->count) : json_null());
        render_set(o, "idle_ms", render_number(s->idle_ms));
        render_set(o, "host_ms", render_number(s->host_ms));
        render_set(o, "cpu_share", render_number(s->cpu_share));
        render_set(o, "other_cores", render_number(s->other_cores));
        render_set(o, "involuntary", render_number(s->involuntary));
        render_set(o, "per_step", render_number(s->per_step));
        render_set(o, "wave", render_count(s->wave));
        render_set(o, "period", render_count(s->period));
        render_set(o, "h2d_bytes", render_count(s->h2d_bytes));
        render_set(o, "d2h_bytes", render_count(s->d2h_bytes));
        render_set(o, "python", render_string(s->python));
        json_array_append_new(list, o);
    }
    return list;
}

json_t *render_drains_json(const struct gwa_device *d)
{
    if (!isfinite(d->time.idle[0]))
        return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < d->drains_count; i++) {
        const struct gwa_drain *x = &d->drains[i];
        json_t *o = json_object();
        render_set(o, "api", render_string(x->api));
        render_set(o, "kernel", render_string(x->kernel));
        render_set(o, "bytes", render_count(x->bytes));
        render_set(o, "pageable", json_boolean(x->pageable));
        render_set(o, "count", render_count(x->count));
        render_set(o, "per_step", render_number(x->per_step));
        render_set(o, "idle_ms", render_number(x->idle_ms));
        render_set(o, "waited_ms", render_number(x->waited_ms));
        render_set(o, "phase", json_string(word_phase(x->phase)));
        render_set(o, "python", render_string(x->python));
        json_array_append_new(list, o);
    }
    return list;
}

/* ---- steps --------------------------------------------------------------------------- */

/* X(field): least, median and most of each. */
#define SPREADS(X)                                                                                 \
    X(launches)                                                                                    \
    X(graph_launches)                                                                              \
    X(kernels)                                                                                     \
    X(syncs)                                                                                       \
    X(copies)                                                                                      \
    X(h2d_bytes)                                                                                   \
    X(d2h_bytes)                                                                                   \
    X(pageable_bytes)                                                                              \
    X(blocking_copies)                                                                             \
    X(allocations)                                                                                 \
    X(host_allocations)                                                                            \
    X(frees)                                                                                       \
    X(collectives)                                                                                 \
    X(collective_bytes)                                                                            \
    X(captures)                                                                                    \
    X(module_loads)                                                                                \
    X(small_reads)

/* Without steps none of their figures was measured, whatever the struct holds. */
static json_t *figure(const struct gwa_step_summary *s, double v)
{
    return s->count ? render_number(v) : json_null();
}

static json_t *text(const struct gwa_step_summary *s, const char *v)
{
    return s->count ? render_string(v) : json_null();
}

static json_t *truth(const struct gwa_step_summary *s, bool v)
{
    return s->count ? json_boolean(v) : json_null();
}

json_t *render_steps_json(const struct gwa_step_summary *s)
{
    json_t *o = json_object(), *least = json_object(), *most = json_object();
    json_t *phases = json_object(), *unusual = json_object();
    render_set(o, "count", render_count(s->count));
    render_set(o, "all", s->count ? render_count(s->all) : json_null());
    render_set(o, "found_by", text(s, s->found_by));
    render_set(o, "by_token", truth(s, s->by_token));
    render_set(o, "confidence", figure(s, s->confidence));
    render_set(o, "warmup_s", figure(s, s->warmup_s));
    render_set(o, "median_ms", figure(s, s->ms.median));
    render_set(o, "spread_pct", figure(s, s->spread_pct));
    render_set(least, "ms", figure(s, s->ms.least));
    render_set(most, "ms", figure(s, s->ms.most));
#define X(field)                                                                                   \
    render_set(o, #field, figure(s, s->field.median));                                             \
    render_set(least, #field, figure(s, s->field.least));                                          \
    render_set(most, #field, figure(s, s->field.most));
    SPREADS(X)
#undef X
    render_set(o, "least", least);
    render_set(o, "most", most);
    render_set(o, "micro_batches", figure(s, s->micro_batches));
    render_set(o, "collective_batches", figure(s, s->collective_batches));
    render_set(o, "identical", truth(s, s->identical));
    render_set(o, "identical_pct", figure(s, s->identical_pct));
    render_set(o, "varies", text(s, s->varies));
    render_set(phases, "forward_pct", figure(s, s->forward_pct));
    render_set(phases, "backward_pct", figure(s, s->backward_pct));
    render_set(phases, "optimizer_pct", figure(s, s->optimizer_pct));
    render_set(o, "phases", phases);
    render_set(o, "recompute_pct", figure(s, s->recompute_pct));
    render_set(o, "recompute_segments", figure(s, s->recompute_segments));
    render_set(unusual, "count", figure(s, s->unusual));
    render_set(unusual, "period", s->count ? render_count(s->unusual_period) : json_null());
    render_set(unusual, "longer_ms", figure(s, s->unusual_ms));
    render_set(o, "unusual", unusual);
    render_set(o, "other_pct", figure(s, s->other_pct));
    return o;
}

/* ---- findings ------------------------------------------------------------------------- */

static json_t *evidence(const struct gwa_finding *f)
{
    json_t *o = json_object();
    for (size_t i = 0; i < f->evidence_count; i++) {
        const struct gwa_evidence *e = &f->evidence[i];
        char *key = text_utf8(e->key);
        render_set(o, key, isfinite(e->number) ? json_real(e->number) : render_string(e->text));
        free(key);
    }
    return o;
}

static json_t *finding(const struct gwa_finding *f)
{
    json_t *o = json_object();
    render_set(o, "id", render_string(f->id));
    render_set(o, "share_pct", render_number(f->share_pct));
    render_set(o, "bound_pct", render_number(f->bound_pct));
    render_set(o, "confidence", json_string(word_confidence(f->confidence)));
    render_set(o, "what", render_string(f->what));
    render_set(o, "where", render_string(f->where));
    render_set(o, "remedy", render_string(f->remedy));
    render_set(o, "cannot_know", render_string(f->cannot_know));
    render_set(o, "evidence", evidence(f));
    return o;
}

void render_findings_json(json_t *process, const struct gwa_process *p)
{
    json_t *findings = json_array(), *what_if = json_array();
    for (size_t i = 0; i < p->findings_count; i++)
        json_array_append_new(findings, finding(&p->findings[i]));
    for (size_t i = 0; i < p->what_if_count; i++) {
        json_t *o = json_object();
        render_set(o, "id", render_string(p->what_if[i].id));
        render_set(o, "text", render_string(p->what_if[i].text));
        render_set(o, "bound_pct", render_number(p->what_if[i].bound_pct));
        json_array_append_new(what_if, o);
    }
    render_set(process, "verdict",
               p->findings_count ? render_string(p->findings[0].id) : json_null());
    render_set(process, "findings", findings);
    render_set(process, "what_if", what_if);
}
