/* gpuwait report: what the recording says. */
#include "commands.h"
#include "load.h"
#include "render.h"
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_JSON, OPT_RANGE, OPT_PROCESS, OPT_ALL };
static const struct option_row options[] = {
    [OPT_JSON] = {0, "json", NULL, "one JSON object with all figures, never cut"},
    [OPT_RANGE] = {'r', "range", "NAME", "only what lies in NVTX ranges of this name"},
    [OPT_PROCESS] = {'p', "process", "PID", "only this process, by process id or by rank"},
    [OPT_ALL] = {'a', "all", NULL, "every row and every name in full"},
    {0}};

struct report {
    struct page page;
    const char *range;
    json_t *json; /* array of processes; NULL: text */
    size_t shown;
    char *no_range; /* said only where no process has the range */
};

static void warn(const char *path, const struct gwa_process *p)
{
    for (size_t i = 0; i < p->quality.flaws_count; i++) {
        char *text = render_flaw(&p->quality.flaws[i]);
        say("%s: incomplete: %s", path, text);
        free(text);
    }
}

static int one(struct gwt_trace *trace, const char *path, void *arg)
{
    struct report *r = arg;
    struct gwa_process *p;
    struct gwt_error error = {""};
    struct progress progress;
    struct gwa_options analysis = {
        .range = r->range, .progress = progress_show, .progress_arg = &progress};
    progress_begin(&progress);
    int rc = gwa_analyse(trace, &analysis, &p, &error);
    progress_end(&progress);
    if (rc == -ENOENT) { /* other processes may have it */
        if (!r->no_range)
            r->no_range = xstrdup(error.text);
        return rc;
    }
    if (rc) {
        if (rc != -ENODATA)
            say("%s: %s", path, error.text);
        return rc;
    }
    warn(path, p);
    if (r->json) {
        json_array_append_new(r->json, render_json(p));
    } else {
        if (r->shown)
            fputs("\n\n", r->page.out);
        render_report(&r->page, p, r->range);
    }
    r->shown++;
    gwa_free(p);
    return 0;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct report r = {0};
    const char *process = NULL;
    bool json = false, all = false;
    for (int o; (o = option_next(self, argc, argv)) != OPTION_END;) {
        switch (o) {
        case OPT_JSON:
            json = true;
            break;
        case OPT_RANGE:
            r.range = optarg;
            break;
        case OPT_PROCESS:
            process = optarg;
            break;
        case OPT_ALL:
            all = true;
            break;
        case OPTION_HELP:
            return finish_output(TOOL_FINE);
        default:
            return TOOL_USAGE;
        }
    }
    if (argc - optind > 1) {
        say("report: one TRACE at most, not also \"%s\"", argv[optind + 1]);
        return TOOL_USAGE;
    }
    r.page = page_stdout(all);
    r.json = json ? json_array() : NULL;
    int code = load_traces(optind < argc ? argv[optind] : LOAD_DEFAULT, process, one, &r);
    if (!r.shown && r.no_range)
        say("%s", r.no_range);
    free(r.no_range);
    if (json && code == TOOL_FINE)
        return render_json_print(render_json_root(r.json));
    json_decref(r.json);
    return finish_output(code);
}

const struct command cmd_report = {
    .name = "report",
    .text = "report launches, copies, waits, memory and idle time of a recording",
    .run = run,
    .operands = "[TRACE]",
    .options = options,
    .notes =
        "TRACE is a directory or one .gwt file, of a finished, running or killed job; "
        "default " LOAD_DEFAULT ".\n"
        "exit status: 0 reported (what is incomplete is said on stderr), 2 usage or unreadable "
        "input, 3 nothing was recorded.\n",
    .examples = "  gpuwait report\n"
                "  gpuwait report --range step --all runs/today\n"
                "  gpuwait report --json | jq '.processes[0].launches'\n",
    .usage_code = TOOL_USAGE,
};
