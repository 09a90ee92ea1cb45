/* report --json: what a device did. */
#include "render_json.h"

#include "analysis/steps.h"

#include <math.h>

static json_t *copies(const struct gwa_copies *c)
{
    json_t *o = json_object();
    render_set(o, "calls", render_count(c->calls));
    render_set(o, "bytes", render_count(c->bytes));
    return o;
}

/* Values by idle class, under its key and the suffix. */
static json_t *by_class(const double values[GWA_IDLE_CLASS_COUNT], const char *suffix)
{
    json_t *o = json_object();
    char key[32];
    for (unsigned c = 0; c < GWA_IDLE_CLASS_COUNT; c++) {
        snprintf(key, sizeof(key), "%s%s", word_class_key(c), suffix);
        render_set(o, key, render_number(values[c]));
    }
    return o;
}

static json_t *device_time(const struct gwa_time *t)
{
    json_t *o = json_object(), *interval = json_null();
    render_set(o, "compute_pct", render_number(t->compute_pct));
    render_set(o, "exposed_comm_pct", render_number(t->exposed_comm_pct));
    render_set(o, "exposed_copy_pct", render_number(t->exposed_copy_pct));
    render_set(o, "idle_pct", render_number(t->idle_pct));
    render_set(o, "idle", by_class(t->idle, "_pct"));
    render_set(o, "drained_pct", render_number(t->drained_pct));
    if (isfinite(t->busy_low_pct) && isfinite(t->busy_high_pct)) {
        interval = json_array();
        json_array_append_new(interval, render_number(t->busy_low_pct));
        json_array_append_new(interval, render_number(t->busy_high_pct));
    }
    render_set(o, "busy_interval_pct", interval);
    render_set(o, "provable_idle_pct", render_number(t->provable_idle_pct));
    render_set(o, "nvidia_smi_pct", render_number(t->nvidia_smi_pct));
    render_set(o, "sampled_share_pct", render_number(t->sampled_share_pct));
    render_set(o, "anchor_residual_pct", render_number(t->anchor_residual_pct));
    render_set(o, "method", render_string(t->method));
    return o;
}

static json_t *kernels(const struct gwa_device *d)
{
    json_t *list = json_array();
    for (size_t i = 0; i < d->kernels_count; i++) {
        const struct gwa_kernel *k = &d->kernels[i];
        json_t *o = json_object();
        render_set(o, "name", render_string(k->name));
        render_set(o, "calls", render_count(k->calls));
        render_set(o, "mean_us", render_number(k->mean_us));
        render_set(o, "total_ms", render_number(k->total_ms));
        render_set(o, "busy_pct", render_number(k->busy_pct));
        render_set(o, "below_sms_pct", render_number(k->below_sms_pct));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *device_copies(const struct gwa_device *d)
{
    static const unsigned always[] = {GWT_H2D, GWT_D2H, GWT_D2D};
    static const unsigned seldom[] = {GWT_P2P, GWT_H2H, GWT_DIR_UNKNOWN};
    json_t *o = json_object();
    for (size_t i = 0; i < 3; i++)
        render_set(o, gwa_direction_name(always[i]), copies(&d->copies[always[i]]));
    for (size_t i = 0; i < 3; i++)
        if (d->copies[seldom[i]].calls)
            render_set(o, gwa_direction_name(seldom[i]), copies(&d->copies[seldom[i]]));
    return o;
}

static json_t *transfers(const struct gwa_device *d)
{
    json_t *list = json_array();
    for (size_t i = 0; i < d->transfers_count; i++) {
        const struct gwa_transfer *t = &d->transfers[i];
        json_t *o = json_object();
        render_set(o, "direction", render_string(gwa_direction_name(t->direction)));
        render_set(o, "memory", render_string(gwa_memory_name(t->memory)));
        render_set(o, "stream", t->stream ? render_count(t->stream) : json_null());
        render_set(o, "calls", render_count(t->calls));
        render_set(o, "bytes", render_count(t->bytes));
        render_set(o, "busy_ms", render_number(t->busy_ms));
        render_set(o, "gb_per_s", render_number(t->gb_per_s));
        render_set(o, "exposed_pct", render_number(t->exposed_pct));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *gap_bands(const struct gwa_gap_bands *g)
{
    json_t *o = json_object();
    render_set(o, "over_100us_pct", render_number(g->over_100us_pct));
    render_set(o, "10_to_100us_pct", render_number(g->mid_pct));
    render_set(o, "under_10us_pct", render_number(g->under_10us_pct));
    return o;
}

static json_t *gaps(const struct gwa_device *d)
{
    if (!d->gaps)
        return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < d->gaps_count; i++) {
        json_t *o = json_object();
        render_set(o, "start_s", render_number(d->gaps[i].start_s));
        render_set(o, "ms", render_number(d->gaps[i].ms));
        bool parts = isfinite(d->time.idle[0]);
        render_set(o, "parts", parts ? by_class(d->gaps[i].parts_ms, "_ms") : json_null());
        render_set(o, "drained_by", render_string(d->gaps[i].drained_by));
        render_set(o, "python", render_string(d->gaps[i].python));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *by_phase(const struct gwa_device *d)
{
    json_t *o = json_object();
    for (unsigned i = 0; i < GWA_PHASE_COUNT; i++) {
        json_t *phase = json_object();
        render_set(phase, "busy_pct", render_number(d->by_phase[i].busy_pct));
        render_set(phase, "idle_pct", render_number(d->by_phase[i].idle_pct));
        render_set(o, word_phase(i), phase);
    }
    return o;
}

static json_t *memory(const struct gwa_device_memory *m)
{
    json_t *o = json_object();
    render_set(o, "pytorch", json_boolean(m->pytorch));
    render_set(o, "peak_allocated_bytes", render_count_or_null(m->peak_allocated_bytes));
    render_set(o, "peak_reserved_bytes", render_count_or_null(m->peak_reserved_bytes));
    render_set(o, "baseline_bytes", render_count_or_null(m->baseline_bytes));
    render_set(o, "activation_bytes", render_count_or_null(m->activation_bytes));
    render_set(o, "used_bytes", render_count_or_null(m->used_bytes));
    render_set(o, "capacity_bytes", render_count_or_null(m->capacity_bytes));
    render_set(o, "headroom_bytes", render_count_or_null(m->headroom_bytes));
    render_set(o, "headroom_without_others", json_boolean(m->from_reserved));
    render_set(o, "batch_multiplier", render_number(m->batch_multiplier));
    render_set(o, "growth_bytes_per_step", render_number(m->growth_bytes_per_step));
    render_set(o, "steps_to_full", render_number(m->steps_to_full));
    render_set(o, "alloc_retries", render_count(m->retries));
    render_set(o, "alloc_retry_ms", render_number(m->retry_ms));
    render_set(o, "allocs_per_step", render_number(m->allocs_per_step));
    render_set(o, "frees_per_step", render_number(m->frees_per_step));
    render_set(o, "host_allocs_per_step", render_number(m->host_allocs_per_step));
    render_set(o, "alloc_ms_per_step", render_number(m->alloc_ms_per_step));
    return o;
}

json_t *render_device_json(const struct gwa_device *d)
{
    json_t *o = json_object(), *window = json_object();
    char pcie[32];
    snprintf(pcie, sizeof(pcie), "gen%u x%u", d->pcie_gen, d->pcie_width);
    render_set(o, "index", render_count_or_null(d->index));
    render_set(o, "name", render_string(d->name));
    render_set(o, "sms", d->sms ? render_count(d->sms) : json_null());
    render_set(o, "memory_bytes", d->memory_bytes ? render_count(d->memory_bytes) : json_null());
    render_set(o, "pcie", d->pcie_gen ? json_string(pcie) : json_null());
    render_set(window, "wall_s", render_number(d->window.wall_s));
    render_set(window, "excluded_s", render_number(d->window.excluded_s));
    render_set(o, "window", window);
    render_set(o, "time", device_time(&d->time));
    render_set(o, "queue_us", render_times(&d->queue_us));
    render_set(o, "met_idle_pct", render_number(d->met_idle_pct));
    render_set(o, "gap_bands", gap_bands(&d->gaps_by_length));
    render_set(o, "gaps", gaps(d));
    render_set(o, "by_phase", by_phase(d));
    render_set(o, "sites", render_sites_json(d));
    render_set(o, "drains", render_drains_json(d));
    render_set(o, "kernels", kernels(d));
    render_set(o, "copies", device_copies(d));
    render_set(o, "memsets", copies(&d->memsets));
    render_set(o, "transfers", transfers(d));
    render_set(o, "memory", memory(&d->memory));
    return o;
}
