/* report --json: one object, names as in gpuwait-report(1), null where nothing was measured. */
#include "render.h"
#include "text.h"
#include "tool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

json_t *render_string(const char *text)
{
    if (!text)
        return json_null();
    char *valid = text_utf8(text);
    json_t *j = json_string(valid);
    free(valid);
    return j;
}

json_t *render_number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static json_t *count(uint64_t n)
{
    return json_integer((json_int_t)n);
}

static json_t *count_or_null(int64_t n)
{
    return n < 0 ? json_null() : json_integer(n);
}

static void set(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

static void set_nulls(json_t *object, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        set(object, keys[i], json_null());
}
#define SET_NULLS(object, ...)                                                                     \
    do {                                                                                           \
        static const char *const keys_[] = {__VA_ARGS__};                                          \
        set_nulls(object, keys_, sizeof(keys_) / sizeof(*keys_));                                  \
    } while (0)

static json_t *times(const struct gwa_times *t)
{
    json_t *o = json_object();
    set(o, "mean", render_number(t->mean));
    set(o, "p50", render_number(t->p50));
    set(o, "p90", render_number(t->p90));
    set(o, "p99", render_number(t->p99));
    return o;
}

static json_t *copies(const struct gwa_copies *c)
{
    json_t *o = json_object();
    set(o, "calls", count(c->calls));
    set(o, "bytes", count(c->bytes));
    return o;
}

/* Executed calls by API, of the kinds a and b. */
static json_t *by_api(const struct gwa_process *p, unsigned a, unsigned b)
{
    json_t *o = json_object();
    for (size_t i = 0; i < p->apis_count; i++)
        if ((p->apis[i].kind == a || p->apis[i].kind == b) && p->apis[i].calls) {
            char *name = text_utf8(p->apis[i].name);
            set(o, name, count(p->apis[i].calls));
            free(name);
        }
    return o;
}

static json_t *times_by_api(const struct gwa_process *p)
{
    json_t *o = json_object();
    for (size_t i = 0; i < p->apis_count; i++)
        if ((p->apis[i].kind == GWT_LAUNCH || p->apis[i].kind == GWT_GRAPH_LAUNCH) &&
            p->apis[i].calls) {
            char *name = text_utf8(p->apis[i].name);
            set(o, name, times(&p->apis[i].us));
            free(name);
        }
    return o;
}

static json_t *quality(const struct gwa_process *p)
{
    const struct gwa_quality *q = &p->quality;
    json_t *o = json_object();
    set(o, "complete", json_boolean(q->complete));
    set(o, "recorded", count(q->recorded));
    set(o, "dropped", count(q->dropped));
    set(o, "holes", count(p->launches.holes));
    set(o, "driver_only_pct", render_number(p->launches.driver_only_pct));
    set(o, "own_overhead_pct", render_number(q->own_overhead_pct));
    set(o, "stuck_in", q->stuck_count ? render_string(q->stuck[0].api) : json_null());
    return o;
}

static json_t *launches(const struct gwa_process *p)
{
    const struct gwa_launches *l = &p->launches;
    json_t *o = json_object();
    set(o, "calls", count(l->calls));
    set(o, "kernels", count(l->kernels));
    set(o, "captured", count(l->captured));
    set(o, "graph_launches", count(l->graph_launches));
    set(o, "failed", count(l->failed));
    set(o, "per_second", render_number(l->per_second));
    set(o, "by_api", by_api(p, GWT_LAUNCH, GWT_GRAPH_LAUNCH));
    set(o, "api_us", times(&l->api_us));
    set(o, "api_us_by_api", times_by_api(p));
    set(o, "host_us_per_launch", render_number(l->host_us_per_launch));
    return o;
}

static json_t *waits(const struct gwa_process *p)
{
    json_t *o = json_object(), *b = json_object();
    set(o, "calls", count(p->syncs.calls));
    set(o, "waited_ms", render_number(p->syncs.waited_ms));
    set(o, "by_api", by_api(p, GWT_SYNC, GWT_SYNC));
    set(b, "calls", count(p->blocking_copies.calls));
    set(b, "waited_ms", render_number(p->blocking_copies.waited_ms));
    set(o, "blocking_copies", b);
    return o;
}

static json_t *allocations(const struct gwa_process *p)
{
    const struct gwa_allocations *a = &p->allocations;
    json_t *o = json_object();
    set(o, "calls", count(a->calls));
    set(o, "failed", count(a->failed));
    set(o, "ms", render_number(a->ms));
    set(o, "by_api", by_api(p, GWT_ALLOC, GWT_HOST_ALLOC));
    set(o, "frees", count(a->frees));
    set(o, "free_ms", render_number(a->free_ms));
    return o;
}

static json_t *other_calls(const struct gwa_process *p)
{
    json_t *o = json_object();
    set(o, "polls", count_or_null(p->polls));
#define X(field, kind, text) set(o, #field, count(p->other.field));
    GWA_OTHER_CALLS(X)
#undef X
    return o;
}

static json_t *collectives(const struct gwa_process *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->collectives_count; i++) {
        json_t *o = json_object();
        set(o, "op", render_string(p->collectives[i].op));
        set(o, "calls", count(p->collectives[i].calls));
        set(o, "bytes", count(p->collectives[i].bytes));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *threads(const struct gwa_process *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->threads_count; i++) {
        const struct gwa_thread *t = &p->threads[i];
        json_t *o = json_object();
        set(o, "tid", count(t->tid));
        set(o, "name", render_string(t->name));
        set(o, "calls", count(t->calls));
        set(o, "launches", count(t->launches));
        set(o, "waited_ms", render_number(t->waited_ms));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *streams(const struct gwa_process *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->streams_count; i++) {
        const struct gwa_stream *s = &p->streams[i];
        json_t *o = json_object();
        set(o, "id", count(s->id));
        set(o, "device", s->device == 0xff ? json_null() : count(s->device));
        set(o, "type", render_string(gwa_stream_type_name(s->type)));
        set(o, "launches", count(s->launches));
        set(o, "copies", count(s->copies));
        set(o, "memsets", count(s->memsets));
        set(o, "collectives", count(s->collectives));
        set(o, "syncs", count(s->syncs));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *steps(void)
{
    json_t *o = json_object(), *phases = json_object();
    SET_NULLS(o, "count", "median_ms", "spread_pct", "launches", "kernels", "syncs", "h2d_bytes",
              "micro_batches", "identical");
    SET_NULLS(phases, "forward_pct", "backward_pct", "optimizer_pct");
    set(o, "phases", phases);
    SET_NULLS(o, "recompute_pct", "confidence");
    return o;
}

static json_t *device_time(const struct gwa_time *t)
{
    json_t *o = json_object(), *idle = json_object(), *interval = json_null();
    set(o, "compute_pct", render_number(t->compute_pct));
    set(o, "exposed_comm_pct", render_number(t->exposed_comm_pct));
    set(o, "exposed_copy_pct", render_number(t->exposed_copy_pct));
    set(o, "idle_pct", render_number(t->idle_pct));
    SET_NULLS(idle, "launch_pct", "dispatch_pct", "host_cpu_pct", "host_blocked_pct", "sync_pct",
              "alloc_pct", "copy_pct", "load_pct", "comm_pct", "unknown_pct");
    set(o, "idle", idle);
    if (isfinite(t->busy_low_pct)) {
        interval = json_array();
        json_array_append_new(interval, render_number(t->busy_low_pct));
        json_array_append_new(interval, render_number(t->busy_high_pct));
    }
    set(o, "busy_interval_pct", interval);
    set(o, "provable_idle_pct", render_number(t->provable_idle_pct));
    set(o, "nvidia_smi_pct", render_number(t->nvidia_smi_pct));
    set(o, "sampled_share_pct", render_number(t->sampled_share_pct));
    set(o, "anchor_residual_pct", render_number(t->anchor_residual_pct));
    set(o, "method", render_string(t->method));
    return o;
}

static json_t *kernels(const struct gwa_device *d)
{
    json_t *list = json_array();
    for (size_t i = 0; i < d->kernels_count; i++) {
        const struct gwa_kernel *k = &d->kernels[i];
        json_t *o = json_object();
        set(o, "name", render_string(k->name));
        set(o, "calls", count(k->calls));
        set(o, "mean_us", render_number(k->mean_us));
        set(o, "total_ms", render_number(k->total_ms));
        set(o, "busy_pct", render_number(k->busy_pct));
        set(o, "below_sms_pct", render_number(k->below_sms_pct));
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
        set(o, gwa_direction_name(always[i]), copies(&d->copies[always[i]]));
    for (size_t i = 0; i < 3; i++)
        if (d->copies[seldom[i]].calls)
            set(o, gwa_direction_name(seldom[i]), copies(&d->copies[seldom[i]]));
    return o;
}

static json_t *transfers(const struct gwa_device *d)
{
    json_t *list = json_array();
    for (size_t i = 0; i < d->transfers_count; i++) {
        const struct gwa_transfer *t = &d->transfers[i];
        json_t *o = json_object();
        set(o, "direction", render_string(gwa_direction_name(t->direction)));
        set(o, "memory", render_string(gwa_memory_name(t->memory)));
        set(o, "stream", t->stream ? count(t->stream) : json_null());
        set(o, "calls", count(t->calls));
        set(o, "bytes", count(t->bytes));
        set(o, "busy_ms", render_number(t->busy_ms));
        set(o, "gb_per_s", render_number(t->gb_per_s));
        set(o, "exposed_pct", render_number(t->exposed_pct));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *gap_bands(const struct gwa_gap_bands *g)
{
    json_t *o = json_object();
    set(o, "over_100us_pct", render_number(g->over_100us_pct));
    set(o, "10_to_100us_pct", render_number(g->mid_pct));
    set(o, "under_10us_pct", render_number(g->under_10us_pct));
    return o;
}

static json_t *gaps(const struct gwa_device *d)
{
    if (!d->gaps)
        return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < d->gaps_count; i++) {
        json_t *o = json_object();
        set(o, "start_s", render_number(d->gaps[i].start_s));
        set(o, "ms", render_number(d->gaps[i].ms));
        SET_NULLS(o, "parts", "drained_by", "python");
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *device(const struct gwa_device *d)
{
    json_t *o = json_object(), *window = json_object(), *memory = json_object();
    char pcie[32];
    snprintf(pcie, sizeof(pcie), "gen%u x%u", d->pcie_gen, d->pcie_width);
    set(o, "index", count_or_null(d->index));
    set(o, "name", render_string(d->name));
    set(o, "sms", d->sms ? count(d->sms) : json_null());
    set(o, "memory_bytes", d->memory_bytes ? count(d->memory_bytes) : json_null());
    set(o, "pcie", d->pcie_gen ? json_string(pcie) : json_null());
    set(window, "wall_s", render_number(d->window.wall_s));
    set(window, "excluded_s", render_number(d->window.excluded_s));
    set(o, "window", window);
    set(o, "time", device_time(&d->time));
    set(o, "queue_us", times(&d->queue_us));
    set(o, "met_idle_pct", render_number(d->met_idle_pct));
    set(o, "gap_bands", gap_bands(&d->gaps_by_length));
    set(o, "gaps", gaps(d));
    set(o, "kernels", kernels(d));
    set(o, "copies", device_copies(d));
    set(o, "memsets", copies(&d->memsets));
    set(o, "transfers", transfers(d));
    set(memory, "peak_allocated_bytes", count_or_null(d->memory.peak_allocated_bytes));
    set(memory, "peak_reserved_bytes", count_or_null(d->memory.peak_reserved_bytes));
    SET_NULLS(memory, "activation_bytes", "headroom_bytes", "batch_multiplier", "alloc_retries",
              "growth_bytes_per_step");
    set(o, "memory", memory);
    return o;
}

json_t *render_json(const struct gwa_process *p)
{
    json_t *o = json_object(), *devices = json_array();
    for (size_t i = 0; i < p->devices_count; i++)
        json_array_append_new(devices, device(&p->devices[i]));
    set(o, "pid", count(p->identity.pid));
    set(o, "host", render_string(p->identity.host));
    set(o, "rank", count_or_null(p->identity.rank));
    set(o, "command", render_string(p->identity.command));
    set(o, "clock", render_string(p->identity.clock));
    set(o, "quality", quality(p));
    set(o, "launches", launches(p));
    set(o, "syncs", waits(p));
    set(o, "allocations", allocations(p));
    set(o, "nccl", collectives(p));
    set(o, "other_calls", other_calls(p));
    set(o, "threads", threads(p));
    set(o, "streams", streams(p));
    set(o, "steps", steps());
    set(o, "devices", devices);
    set(o, "verdict", json_null());
    set(o, "findings", json_array());
    set(o, "what_if", json_array());
    return o;
}

json_t *render_json_root(json_t *processes)
{
    json_t *root = json_object();
    set(root, "schema", json_integer(1));
    set(root, "tool", json_string("gpuwait"));
    set(root, "version", json_string(GPUWAIT_VERSION));
    set(root, "processes", processes);
    return root;
}

/* DEL is the one control character that jansson leaves as it is. */
static int write_chunk(const char *bytes, size_t size, void *out)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] == 0x7f ? fputs("\\u007f", out) < 0 : putc(bytes[i], out) == EOF)
            return -1;
    return 0;
}

int render_json_write(const json_t *j, FILE *out, bool one_line)
{
    /* ASCII only: a terminal that shows it is safe from what names hold. */
    size_t flags =
        JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9) | (one_line ? JSON_COMPACT : JSON_INDENT(1));
    int rc = json_dump_callback(j, write_chunk, out, flags);
    return putc('\n', out) == EOF ? -1 : rc;
}

int render_json_print(json_t *root)
{
    int rc = render_json_write(root, stdout, false);
    json_decref(root);
    if (rc && !ferror(stdout)) {
        say("cannot write the JSON");
        return TOOL_USAGE;
    }
    return finish_output(TOOL_FINE);
}
