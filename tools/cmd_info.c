/* gpuwait info: what was recorded, and how whole it is. */
#include "commands.h"
#include "info_events.h"
#include "load.h"
#include "render.h"
#include "text.h"
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_JSON, OPT_EVENTS, OPT_PROCESS };
static const struct option_row options[] = {
    [OPT_JSON] = {0, "json", NULL, "one JSON object; with --events, one line for each event"},
    [OPT_EVENTS] = {'e', "events", NULL, "list the events, one a line, fields between tabs"},
    [OPT_PROCESS] = {'p', "process", "PID", "only this process, by process id or by rank"},
    {0}};

struct info {
    json_t *json; /* NULL: text */
    size_t shown;
};

/* ---- JSON ----------------------------------------------------------------------- */

static json_t *as_json(const struct gwt_trace *trace)
{
    const struct gwt_coverage *c = gwt_coverage(trace);
    json_t *o = json_object(), *versions = json_object();
    const char *what, *version;
    double own = gwa_own_host_ms(trace);
#define COUNT(key, number) json_object_set_new(o, key, json_integer((json_int_t)(number)))
    COUNT("pid", gwt_header(trace)->pid);
    COUNT("events", c->events);
    COUNT("dump_bytes", c->dump_bytes);
    COUNT("dropped", c->dropped);
    COUNT("lookups_wrapped", gwt_counter(trace, GWT_C_LOOKUPS_WRAPPED));
    COUNT("lookups_passed", gwt_counter(trace, GWT_C_LOOKUPS_PASSED));
    COUNT("export_tables", gwt_counter(trace, GWT_C_EXPORT_TABLES));
    COUNT("holes", gwt_counter(trace, GWT_C_HOLES));
    COUNT("unwalked_graphs", gwt_counter(trace, GWT_C_UNWALKED_GRAPHS));
    COUNT("samples", gwt_counter(trace, GWT_C_SAMPLES));
    COUNT("voids", gwt_counter(trace, GWT_C_SAMPLES_VOID));
#undef COUNT
    json_object_set_new(o, "own_host_ms", render_number(own));
    json_object_set_new(o, "own_gpu_ms",
                        json_real((double)gwt_counter(trace, GWT_C_SAMPLER_GPU_NS) / 1e6));
    for (size_t i = 0; gwa_version_at(trace, i, &what, &version); i++) {
        char *key = text_utf8(what);
        json_object_set_new(versions, key, render_string(version));
        free(key);
    }
    json_object_set_new(o, "versions", versions);
    return o;
}

/* ---- text ------------------------------------------------------------------------- */

static void row(const char *what, const char *figure)
{
    char *clean = text_clean(figure);
    printf("  %-34s %s\n", what, clean);
    free(clean);
}

static void number(const char *what, uint64_t n)
{
    char text[TEXT_NUMBER];
    row(what, text_count(text, n));
}

static void coverage(const struct gwt_trace *trace)
{
    const struct gwt_coverage *c = gwt_coverage(trace);
    struct gwa_flaw flaws[GWA_FLAW_COUNT];
    size_t n = gwa_flaws(trace, flaws);
    char text[TEXT_NUMBER];
    puts("recording");
    row("state", c->ended   ? "closed by its process"
                 : c->alive ? "still being written"
                            : "its process ended without closing it");
    number("events", c->events);
    if (c->from_ring)
        number("of these, from the ring file", c->from_ring);
    row("dump size", text_bytes(text, c->dump_bytes));
    if (c->events)
        row("bytes per event", text_fixed(text, (double)c->dump_bytes / (double)c->events, 2));
    row("clock", gwt_header(trace)->clock == GWT_CLOCK_TSC ? "tsc" : "monotonic");
    if (c->bad_bytes)
        number("bytes skipped", c->bad_bytes);
    for (size_t i = 0; i < n; i++) {
        char *flaw = render_flaw(&flaws[i]);
        row("INCOMPLETE", flaw);
        free(flaw);
    }
    if (!n)
        row("complete", "yes");
}

static void counters(const struct gwt_trace *trace)
{
    static const struct {
        enum gwt_counter counter;
        const char *text;
    } rows[] = {
#define X(name, number, text) {GWT_C_##name, text},
        GWT_COUNTERS(X)
#undef X
    };
    puts("counters");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char text[TEXT_NUMBER];
        /* texts are a clause each, and longer than the other columns */
        printf("  %14s  %s\n", text_count(text, gwt_counter(trace, rows[i].counter)), rows[i].text);
    }
    double own = gwa_own_host_ms(trace);
    char text[TEXT_NUMBER];
    printf("  %14s  own cost on the host: calls, first-time work, threads\n",
           text_us(text, own * 1e3));
}

static void facts(const struct gwt_trace *trace)
{
    const char *key, *value;
    puts("facts");
    for (size_t i = 0; gwt_fact_at(trace, i, &key, &value); i++) {
        char *clean = text_clean(key);
        row(clean, value);
        free(clean);
    }
}

static void devices(const struct gwt_trace *trace)
{
    for (unsigned i = 0; i < 255; i++) {
        const char *name = NULL;
        const struct gwt_def_device *d = gwt_device(trace, i, &name);
        char memory[TEXT_NUMBER];
        if (!d)
            continue;
        char *clean = text_clean(name ? name : "unknown");
        printf("GPU %u\n  %s, %u SMs, %s, compute capability %u.%u, PCI %04x:%02x:%02x", i, clean,
               d->sms, text_bytes(memory, d->memory_bytes), d->cc_major, d->cc_minor, d->pci_domain,
               d->pci_bus, d->pci_device);
        if (d->pcie_gen)
            printf(", link gen%u x%u", d->pcie_gen, d->pcie_width);
        putchar('\n');
        free(clean);
    }
}

static void threads(const struct gwt_trace *trace)
{
    struct gwt_thread_info t;
    puts("threads");
    for (size_t i = 0; gwt_thread_at(trace, i, &t); i++) {
        char *name = text_clean(t.name ? t.name : "");
        char *api = t.open_api ? text_clean(t.open_api) : NULL;
        printf("  %-10u %s", t.tid, name);
        if (api)
            printf("%sinside %s when last seen", *name ? ", " : "", api);
        putchar('\n');
        free(name);
        free(api);
    }
}

static void as_text(const struct gwt_trace *trace, const char *path, bool first)
{
    char *clean = text_clean(path);
    printf("%s%s: process %u\n", first ? "" : "\n", clean, gwt_header(trace)->pid);
    free(clean);
    coverage(trace);
    facts(trace);
    devices(trace);
    threads(trace);
    counters(trace);
}

/* ---- the command -------------------------------------------------------------------- */

/* Damage to an event frame shows when it is read. */
static void read_all(struct gwt_trace *trace)
{
    struct gwt_event e;
    struct progress progress;
    uint64_t n = 0;
    progress_begin(&progress);
    while (gwt_next(trace, &e) > 0)
        if ((++n & 0xfffff) == 0)
            progress_show(&progress, n, gwt_coverage(trace)->events);
    progress_end(&progress);
}

static int one(struct gwt_trace *trace, const char *path, void *arg)
{
    struct info *info = arg;
    read_all(trace);
    if (info->json)
        json_array_append_new(info->json, as_json(trace));
    else
        as_text(trace, path, !info->shown);
    info->shown++;
    return gwt_coverage(trace)->events ? 0 : -ENODATA;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct info info = {0};
    const char *process = NULL;
    bool json = false, events = false;
    for (int o; (o = option_next(self, argc, argv)) != OPTION_END;) {
        switch (o) {
        case OPT_JSON:
            json = true;
            break;
        case OPT_EVENTS:
            events = true;
            break;
        case OPT_PROCESS:
            process = optarg;
            break;
        case OPTION_HELP:
            return finish_output(TOOL_FINE);
        default:
            return TOOL_USAGE;
        }
    }
    if (argc - optind > 1) {
        say("info: one TRACE at most, not also \"%s\"", argv[optind + 1]);
        return TOOL_USAGE;
    }
    const char *path = optind < argc ? argv[optind] : LOAD_DEFAULT;
    if (events)
        return finish_output(load_traces(path, process, info_events, &json, NULL));
    info.json = json ? json_array() : NULL;
    int code = load_traces(path, process, one, &info, NULL);
    if (json && info.shown) {
        int printed = render_json_print(render_json_root(info.json));
        return printed ? printed : code;
    }
    json_decref(info.json);
    return finish_output(code);
}

const struct command cmd_info = {
    .name = "info",
    .text = "tell what was recorded: versions, events, coverage, losses, own cost",
    .run = run,
    .operands = "[TRACE]",
    .options = options,
    .notes = "TRACE is a directory or one .gwt file; default " LOAD_DEFAULT ".\n"
             "exit status: 0, or 2 usage or unreadable input, 3 nothing was recorded.\n",
    .examples = "  gpuwait info\n"
                "  gpuwait info --json runs/today\n"
                "  gpuwait info --events | grep cudaMemcpy\n",
    .usage_code = TOOL_USAGE,
};
