/* diff --json: one object, names as in gpuwait-diff(1). */
#include "render_diff.h"
#include "render_json.h"

#include <string.h>

static json_t *side(const struct gwa_run *run, const char *name)
{
    json_t *o = json_object(), *keys = json_object(), *problems = json_array();
    for (unsigned k = 0; k < GWA_KEY_COUNT; k++)
        render_set(keys, gwa_keys[k].key, render_string(run->keys[k]));
    for (size_t i = 0; i < run->problems_count; i++)
        json_array_append_new(problems, render_string(run->problems[i]));
    render_set(o, "trace", render_string(name));
    render_set(o, "keys", keys);
    render_set(o, "problems", problems);
    render_set(o, "spread_pct", run->spread_pct > 0 ? render_number(run->spread_pct) : json_null());
    return o;
}

static const char *noise_key(unsigned noise)
{
    static const char *const keys[] = {[GWA_NOISE_UNKNOWN] = NULL,
                                       [GWA_NOISE_WITHIN] = "within",
                                       [GWA_NOISE_BEYOND] = "beyond",
                                       [GWA_NOISE_SAME] = "same"};
    return keys[noise];
}

static json_t *metrics(const struct gwa_diff *d)
{
    static const char *const groups[GWA_GROUP_COUNT] = {
        [GWA_GROUP_STEP] = "step",
        [GWA_GROUP_TIME] = "time",
        [GWA_GROUP_MEMORY] = "memory",
        [GWA_GROUP_TOTAL] = "total",
    };
    json_t *a = json_array();
    for (size_t i = 0; i < d->rows_count; i++) {
        const struct gwa_diff_row *row = &d->rows[i];
        json_t *o = json_object();
        render_set(o, "metric", json_string(gwa_metrics[row->metric].key));
        render_set(o, "group", json_string(groups[gwa_metrics[row->metric].group]));
        render_set(o, "base", render_number(row->base));
        render_set(o, "new", render_number(row->now));
        render_set(o, "delta", render_number(row->now - row->base));
        render_set(o, "noise", render_string(noise_key(row->noise)));
        json_array_append_new(a, o);
    }
    return a;
}

static json_t *changes(const struct gwa_change *list, size_t count, size_t limit)
{
    json_t *a = json_array();
    for (size_t i = 0; i < count && (!limit || i < limit); i++) {
        json_t *o = json_object();
        render_set(o, "name", render_string(list[i].name));
        render_set(o, "base", render_number(list[i].base));
        render_set(o, "new", render_number(list[i].now));
        render_set(o, "base_us", render_number(list[i].base_us));
        render_set(o, "new_us", render_number(list[i].now_us));
        render_set(o, "effect_ms", render_number(list[i].effect_ms));
        render_set(o, "python", render_string(list[i].where));
        json_array_append_new(a, o);
    }
    return a;
}

static json_t *share(const struct gwa_run_finding *f)
{
    return f ? render_number(f->share_pct) : json_null();
}

static json_t *findings(const struct gwa_diff *d)
{
    json_t *a = json_array();
    for (size_t i = 0; i < d->findings_count; i++) {
        const struct gwa_diff_finding *f = &d->findings[i];
        const struct gwa_run_finding *one = f->now ? f->now : f->base;
        json_t *o = json_object();
        render_set(o, "id", render_string(one->id));
        render_set(o, "change", json_string(!f->base ? "new" : !f->now ? "gone" : "still"));
        render_set(o, "base_share_pct", share(f->base));
        render_set(o, "new_share_pct", share(f->now));
        render_set(o, "what", render_string(one->what));
        render_set(o, "where", render_string(one->where));
        json_array_append_new(a, o);
    }
    return a;
}

json_t *render_diff_json(const struct diff_report *r)
{
    const struct gwa_diff *d = r->diff;
    json_t *o = json_object(), *differ = json_array();
    for (unsigned k = 0; k < GWA_KEY_COUNT; k++)
        if (d->keys[k])
            json_array_append_new(differ, json_string(gwa_keys[k].key));
    render_set(o, "schema", json_integer(1));
    render_set(o, "tool", json_string("gpuwait"));
    render_set(o, "version", json_string(GPUWAIT_VERSION));
    render_set(o, "base", side(d->base, r->base));
    render_set(o, "new", side(d->now, r->now));
    render_set(o, "different_keys", differ);
    render_set(o, "beyond_noise", render_count(d->beyond));
    render_set(o, "metrics", metrics(d));
    render_set(o, "kernels", changes(d->kernels, d->kernels_count, r->limit));
    render_set(o, "calls", changes(d->calls, d->calls_count, r->limit));
    render_set(o, "findings", findings(d));
    return o;
}
