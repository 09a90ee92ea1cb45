#include "info_events.h"
#include "render.h"
#include "text.h"
#include "tool.h"

#include "analysis/analysis.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    unsigned bit;
    const char *name;
} flags[] = {
    {GWT_F_CAPTURED, "captured"}, {GWT_F_HOLE, "hole"},        {GWT_F_DRIVER, "driver"},
    {GWT_F_BLOCKING, "blocking"}, {GWT_F_COOP, "cooperative"}, {GWT_F_PDL, "pdl"},
    {GWT_F_PAGEABLE, "pageable"}, {GWT_F_NESTED, "nested"},    {GWT_F_APPROX, "approximate"},
    {GWT_F_CLOSING, "closing"},   {GWT_F_UNWOUND, "unwound"},
};

static void flag_names(char *out, size_t size, unsigned bits)
{
    size_t used = 0;
    out[0] = 0;
    for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
        if (bits & flags[i].bit)
            used +=
                (size_t)snprintf(out + used, size - used, "%s%s", used ? "," : "", flags[i].name);
}

static const char *scope_name(unsigned scope)
{
    static const char *const names[] = {"", "device", "stream", "event"};
    return scope < sizeof(names) / sizeof(*names) ? names[scope] : "";
}

/* What the event is about, by kind; "" where its name says all. Malloc'ed. */
/* Innermost frame first: "fetch (train.py:12) < main (train.py:87)". */
static char *stack_text(const struct gwt_trace *trace, const struct gwt_event *e)
{
    struct gwt_stack_info k;
    static const char *const whys[] = {[GWT_STACK_OUTSIDE] = "outside CUDA",
                                       [GWT_STACK_INSIDE] = "inside a call",
                                       [GWT_STACK_RANDOM] = "inside a short call"};
    unsigned why = GWT_STACK_WHY(e->flags);
    char *text =
        xprintf("thread %llu %s%s:", (unsigned long long)e->value, why && why < 4 ? whys[why] : "?",
                e->flags & GWT_STACK_OF_MAIN ? ", of the main thread" : "");
    if (!gwt_stack(trace, e->arg, &k))
        return text;
    for (size_t i = 0; i < k.count; i++) {
        const struct gwt_stack_frame *f = &k.frames[i];
        const char *file = gwt_string(trace, f->file), *function = gwt_string(trace, f->function);
        char *longer = xprintf("%s%s%s (%s:%u)", text, i ? " < " : " ", function ? function : "?",
                               file ? file : "?", f->line);
        free(text);
        text = longer;
    }
    return text;
}

static char *detail(const struct gwt_trace *trace, const struct gwt_event *e)
{
    struct gwt_signature_info s;
    const char *text;
    unsigned sub = GWT_F_SUB(e->flags);
    switch (e->kind) {
    case GWT_LAUNCH:
        if (!gwt_signature(trace, e->arg, &s))
            return xstrdup("");
        text = s.name ? s.name : "(name unknown)";
        return s.grid[0]
                   ? xprintf("%s grid %ux%ux%u block %ux%ux%u shared %u", text, s.grid[0],
                             s.grid[1], s.grid[2], s.block[0], s.block[1], s.block[2], s.shared)
                   : xstrdup(text);
    case GWT_GRAPH_LAUNCH:
    case GWT_INSTANTIATE:
    case GWT_GRAPH_UPDATE:
        return xprintf("graph %u", e->arg);
    case GWT_COPY:
        return xprintf("%s %llu bytes in %u", gwa_direction_name(sub), (unsigned long long)e->value,
                       e->arg);
    case GWT_MEMSET:
    case GWT_PREFETCH:
    case GWT_ALLOC:
    case GWT_HOST_ALLOC:
        return xprintf("%llu bytes", (unsigned long long)e->value);
    case GWT_SYNC:
        return xprintf("%s", scope_name(sub));
    case GWT_NCCL:
        return xprintf("%llu bytes communicator %u", (unsigned long long)e->value,
                       GWT_COMM(e->arg));
    case GWT_EVENT_RECORD:
    case GWT_STREAM_WAIT:
        return xprintf("event %llx%s", (unsigned long long)e->value,
                       sub == GWT_STAMP ? " with a time stamp" : "");
    case GWT_ALLOCATOR:
        return xprintf("%+lld bytes allocated %llu reserved %llu", (long long)e->size,
                       (unsigned long long)e->allocated, (unsigned long long)e->reserved);
    case GWT_RANGE_PUSH:
    case GWT_RANGE_START:
    case GWT_MARK:
        text = gwt_string(trace, e->arg);
        return xstrdup(text ? text : "");
    case GWT_SECTION: {
        struct gwt_section c = gwt_section_of(e);
        return xprintf("of the last %lld us: %lld on CPU, %lld in the process, switches %u + %u",
                       (long long)c.measured_ns / 1000, (long long)c.cpu_ns / 1000,
                       (long long)c.process_cpu_ns / 1000, c.voluntary, c.involuntary);
    }
    case GWT_FREE_MEMORY:
        return xprintf("%llu bytes of GPU %u", (unsigned long long)e->value, e->arg);
    case GWT_STACK:
        return stack_text(trace, e);
    case GWT_LOST:
        return xprintf("%llu events lost", (unsigned long long)e->value);
    case GWT_RECORDING:
        return xstrdup(e->value ? "on" : "off");
    default:
        return xstrdup("");
    }
}

static void as_text(const struct gwt_trace *trace, const struct gwt_event *e, int64_t start)
{
    const char *api = gwt_api_name(trace, e->api);
    struct gwt_thread_info t = {0};
    char *raw = detail(trace, e), *about = text_clean(raw), names[160];
    char *name = text_clean(api ? api : gwt_kind_name(e->kind));
    gwt_thread(trace, e->thread, &t);
    flag_names(names, sizeof(names), e->flags);
    printf("%.9f\t%.3f\t%u\t%s\t%s\t", (double)(e->t0_ns - start) / 1e9,
           (double)(e->t1_ns - e->t0_ns) / 1e3, t.tid, gwt_kind_name(e->kind), name);
    if (e->device == 0xff)
        putchar('-');
    else
        printf("%u", e->device);
    printf("\t%u\t%u\t%s\t%s\n", e->stream, e->status, names, about);
    free(name);
    free(about);
    free(raw);
}

static void as_json(const struct gwt_trace *trace, const struct gwt_event *e)
{
    struct gwt_thread_info t = {0};
    char *about = detail(trace, e), names[160];
    json_t *o = json_object();
    gwt_thread(trace, e->thread, &t);
    flag_names(names, sizeof(names), e->flags);
    json_object_set_new(o, "t0_ns", json_integer(e->t0_ns));
    json_object_set_new(o, "t1_ns", json_integer(e->t1_ns));
    json_object_set_new(o, "tid", json_integer(t.tid));
    json_object_set_new(o, "kind", json_string(gwt_kind_name(e->kind)));
    json_object_set_new(o, "api", render_string(gwt_api_name(trace, e->api)));
    json_object_set_new(o, "device", e->device == 0xff ? json_null() : json_integer(e->device));
    json_object_set_new(o, "stream", json_integer(e->stream));
    json_object_set_new(o, "status", json_integer(e->status));
    json_object_set_new(o, "flags", json_string(names));
    json_object_set_new(o, "arg", json_integer(e->arg));
    json_object_set_new(o, "value", json_integer((json_int_t)e->value));
    json_object_set_new(o, "detail", render_string(about));
    render_json_write(o, stdout, true);
    json_decref(o);
    free(about);
}

int info_events(struct gwt_trace *trace, const char *path, void *arg)
{
    const bool json = *(const bool *)arg;
    struct gwt_event e;
    int64_t start = 0;
    bool first = true;
    (void)path;
    gwt_rewind(trace);
    if (!json)
        printf("# process %u: seconds\tus\ttid\tkind\tcall\tGPU\tstream\tstatus\tflags\tdetail\n",
               gwt_header(trace)->pid);
    while (gwt_next(trace, &e) > 0 && !ferror(stdout)) {
        if (first)
            start = e.t0_ns;
        first = false;
        if (json)
            as_json(trace, &e);
        else
            as_text(trace, &e, start);
    }
    return 0;
}
