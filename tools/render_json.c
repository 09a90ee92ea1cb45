/* report --json: one object, names as in gpuwait-report(1), null where nothing was measured. */
#include "render_json.h"
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

json_t *render_count(uint64_t n)
{
    return json_integer((json_int_t)n);
}

json_t *render_count_or_null(int64_t n)
{
    return n < 0 ? json_null() : json_integer(n);
}

void render_set(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

json_t *render_times(const struct gwa_times *t)
{
    json_t *o = json_object();
    render_set(o, "mean", render_number(t->mean));
    render_set(o, "p50", render_number(t->p50));
    render_set(o, "p90", render_number(t->p90));
    render_set(o, "p99", render_number(t->p99));
    return o;
}

/* Executed calls by API, of the kinds a and b. */
static json_t *by_api(const struct gwa_process *p, unsigned a, unsigned b)
{
    json_t *o = json_object();
    for (size_t i = 0; i < p->apis_count; i++)
        if ((p->apis[i].kind == a || p->apis[i].kind == b) && p->apis[i].calls) {
            char *name = text_utf8(p->apis[i].name);
            render_set(o, name, render_count(p->apis[i].calls));
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
            render_set(o, name, render_times(&p->apis[i].us));
            free(name);
        }
    return o;
}

static json_t *quality(const struct gwa_process *p)
{
    const struct gwa_quality *q = &p->quality;
    json_t *o = json_object();
    render_set(o, "complete", json_boolean(q->complete));
    render_set(o, "recorded", render_count(q->recorded));
    render_set(o, "dropped", render_count(q->dropped));
    render_set(o, "holes", render_count(p->launches.holes));
    render_set(o, "driver_only_pct", render_number(p->launches.driver_only_pct));
    render_set(o, "own_overhead_pct", render_number(q->own_overhead_pct));
    render_set(o, "stuck_in", q->stuck_count ? render_string(q->stuck[0].api) : json_null());
    return o;
}

static json_t *launches(const struct gwa_process *p)
{
    const struct gwa_launches *l = &p->launches;
    json_t *o = json_object();
    render_set(o, "calls", render_count(l->calls));
    render_set(o, "kernels", render_count(l->kernels));
    render_set(o, "captured", render_count(l->captured));
    render_set(o, "graph_launches", render_count(l->graph_launches));
    render_set(o, "failed", render_count(l->failed));
    render_set(o, "per_second", render_number(l->per_second));
    render_set(o, "by_api", by_api(p, GWT_LAUNCH, GWT_GRAPH_LAUNCH));
    render_set(o, "api_us", render_times(&l->api_us));
    render_set(o, "api_us_by_api", times_by_api(p));
    render_set(o, "host_us_per_launch", render_number(l->host_us_per_launch));
    return o;
}

static json_t *waits(const struct gwa_process *p)
{
    json_t *o = json_object(), *b = json_object();
    render_set(o, "calls", render_count(p->syncs.calls));
    render_set(o, "waited_ms", render_number(p->syncs.waited_ms));
    render_set(o, "by_api", by_api(p, GWT_SYNC, GWT_SYNC));
    render_set(b, "calls", render_count(p->blocking_copies.calls));
    render_set(b, "waited_ms", render_number(p->blocking_copies.waited_ms));
    render_set(o, "blocking_copies", b);
    return o;
}

static json_t *allocations(const struct gwa_process *p)
{
    const struct gwa_allocations *a = &p->allocations;
    json_t *o = json_object();
    render_set(o, "calls", render_count(a->calls));
    render_set(o, "failed", render_count(a->failed));
    render_set(o, "ms", render_number(a->ms));
    render_set(o, "by_api", by_api(p, GWT_ALLOC, GWT_HOST_ALLOC));
    render_set(o, "frees", render_count(a->frees));
    render_set(o, "free_ms", render_number(a->free_ms));
    return o;
}

static json_t *other_calls(const struct gwa_process *p)
{
    json_t *o = json_object();
    render_set(o, "polls", render_count_or_null(p->polls));
#define X(field, kind, text) render_set(o, #field, render_count(p->other.field));
    GWA_OTHER_CALLS(X)
#undef X
    return o;
}

static json_t *collectives(const struct gwa_process *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->collectives_count; i++) {
        json_t *o = json_object();
        render_set(o, "op", render_string(p->collectives[i].op));
        render_set(o, "calls", render_count(p->collectives[i].calls));
        render_set(o, "bytes", render_count(p->collectives[i].bytes));
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
        render_set(o, "tid", render_count(t->tid));
        render_set(o, "name", render_string(t->name));
        render_set(o, "calls", render_count(t->calls));
        render_set(o, "launches", render_count(t->launches));
        render_set(o, "waited_ms", render_number(t->waited_ms));
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
        render_set(o, "id", render_count(s->id));
        render_set(o, "device", s->device == 0xff ? json_null() : render_count(s->device));
        render_set(o, "type", render_string(gwa_stream_type_name(s->type)));
        render_set(o, "launches", render_count(s->launches));
        render_set(o, "copies", render_count(s->copies));
        render_set(o, "memsets", render_count(s->memsets));
        render_set(o, "collectives", render_count(s->collectives));
        render_set(o, "syncs", render_count(s->syncs));
        json_array_append_new(list, o);
    }
    return list;
}

json_t *render_json(const struct gwa_process *p)
{
    json_t *o = json_object(), *devices = json_array();
    for (size_t i = 0; i < p->devices_count; i++)
        json_array_append_new(devices, render_device_json(&p->devices[i]));
    render_set(o, "pid", render_count(p->identity.pid));
    render_set(o, "host", render_string(p->identity.host));
    render_set(o, "rank", render_count_or_null(p->identity.rank));
    render_set(o, "command", render_string(p->identity.command));
    render_set(o, "clock", render_string(p->identity.clock));
    render_set(o, "quality", quality(p));
    render_set(o, "launches", launches(p));
    render_set(o, "syncs", waits(p));
    render_set(o, "allocations", allocations(p));
    render_set(o, "nccl", collectives(p));
    render_set(o, "other_calls", other_calls(p));
    render_set(o, "threads", threads(p));
    render_set(o, "streams", streams(p));
    render_set(o, "steps", render_steps_json(&p->steps));
    render_set(o, "devices", devices);
    render_set(o, "stacks", render_count(p->stacks));
    render_findings_json(o, p);
    return o;
}

json_t *render_json_root(json_t *processes)
{
    json_t *root = json_object();
    render_set(root, "schema", json_integer(1));
    render_set(root, "tool", json_string("gpuwait"));
    render_set(root, "version", json_string(GPUWAIT_VERSION));
    render_set(root, "processes", processes);
    return root;
}

void render_json_main(struct render_main *m, const struct gwa_process *p, size_t index)
{
    double busy_s = 0;
    for (size_t i = 0; i < p->devices_count; i++) {
        const struct gwa_device *d = &p->devices[i];
        double busy = (100 - d->time.idle_pct) / 100 * d->window.wall_s;
        busy_s += isfinite(busy) ? busy : 0;
    }
    if (m->any &&
        (busy_s < m->busy_s || (!(busy_s > m->busy_s) && p->launches.kernels <= m->kernels)))
        return;
    *m = (struct render_main){
        .any = true, .busy_s = busy_s, .kernels = p->launches.kernels, .index = index};
}

json_t *render_json_report(json_t *processes, const struct render_main *m)
{
    static const char *const keys[] = {"verdict", "findings", "what_if"};
    const json_t *speaks = json_array_get(processes, m->index);
    json_t *root = render_json_root(processes);
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        json_object_set(root, keys[i], json_object_get(speaks, keys[i]));
    json_object_set(root, "verdict_pid", json_object_get(speaks, "pid"));
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
