/* check --json: one object, names as in gpuwait-check(1). */
#include "render_check.h"
#include "render_json.h"

static json_t *texts(char *const *list, size_t count)
{
    json_t *a = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(a, render_string(list[i]));
    return a;
}

static json_t *rows(const struct gwa_gate *g)
{
    json_t *a = json_array();
    for (size_t i = 0; i < g->rows_count; i++) {
        const struct gwa_gate_row *row = &g->rows[i];
        json_t *o = json_object();
        render_set(o, "metric", render_string(gwa_metrics[row->metric].key));
        render_set(o, "process", render_string(row->process));
        render_set(o, "baseline", render_number(row->base));
        render_set(o, "now", render_number(row->now));
        render_set(o, "delta", render_number(row->now - row->base));
        render_set(o, "margin", render_number(row->margin));
        render_set(o, "verdict", render_string(words_verdict(row->verdict)));
        render_set(o, "fails", json_boolean(row->fails));
        json_array_append_new(a, o);
    }
    return a;
}

static json_t *patterns(const struct gwa_gate *g)
{
    json_t *a = json_array();
    for (size_t i = 0; i < g->patterns_count; i++) {
        const struct gwa_gate_pattern *p = &g->patterns[i];
        json_t *o = json_object();
        render_set(o, "pattern", render_string(p->pattern));
        render_set(o, "required", json_boolean(p->required));
        render_set(o, "kernel", render_string(p->kernel));
        render_set(o, "fails", json_boolean(p->fails));
        json_array_append_new(a, o);
    }
    return a;
}

static json_t *changes(const struct gwa_change *list, size_t count)
{
    json_t *a = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *o = json_object();
        render_set(o, "name", render_string(list[i].name));
        render_set(o, "baseline", render_number(list[i].base));
        render_set(o, "now", render_number(list[i].now));
        render_set(o, "python", render_string(list[i].where));
        json_array_append_new(a, o);
    }
    return a;
}

json_t *render_check_json(const struct check_report *r)
{
    const struct gwa_gate *g = r->gate;
    json_t *o = json_object(), *keys = json_object();
    for (unsigned k = 0; k < GWA_KEY_COUNT; k++)
        render_set(keys, gwa_keys[k].key, render_string(r->run->keys[k]));
    render_set(o, "schema", json_integer(1));
    render_set(o, "tool", json_string("gpuwait"));
    render_set(o, "version", json_string(GPUWAIT_VERSION));
    render_set(o, "outcome", json_string(words_outcome_key(g)));
    render_set(o, "trace", render_string(r->trace));
    render_set(o, "baseline", render_string(r->path));
    render_set(o, "regressed", render_count(g->regressed));
    render_set(o, "won", render_count(g->won));
    render_set(o, "reasons", texts(g->reasons, g->reasons_count));
    render_set(o, "notes", texts(g->notes, g->notes_count));
    render_set(o, "keys", keys);
    render_set(o, "metrics", rows(g));
    render_set(o, "patterns", patterns(g));
    render_set(o, "kernels", changes(g->kernels, g->kernels_count));
    render_set(o, "calls", changes(g->calls, g->calls_count));
    return o;
}
