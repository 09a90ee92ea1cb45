/* gpuwait report: what the recording says. */
#include "commands.h"
#include "load_job.h"
#include "render_job.h"
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPT_JSON,
    OPT_RANGE,
    OPT_STEPS,
    OPT_STEP_RANGE,
    OPT_STEP_KERNEL,
    OPT_PROCESS,
    OPT_SUMMARIES,
    OPT_ALL
};
static const struct option_row options[] = {
    [OPT_JSON] = {0, "json", NULL, "one JSON object with all figures, never cut"},
    [OPT_RANGE] = {'r', "range", "NAME", "only what lies in NVTX ranges of this name"},
    [OPT_STEPS] = {'s', "steps", "A:B|all",
                   "times from steps A to B - 1 only, counted from 0; all: from everything, "
                   "warm-up too"},
    [OPT_STEP_RANGE] = {0, "step-range", "NAME", "a step is an NVTX range of this name"},
    [OPT_STEP_KERNEL] = {0, "step-kernel", "TEXT",
                         "a step begins with each kernel whose name holds this text"},
    [OPT_PROCESS] = {'p', "process", "PID", "only this process, by process id or by rank"},
    [OPT_SUMMARIES] = {0, "summaries", NULL, "of a job of many ranks, one line of JSON for each"},
    [OPT_ALL] = {'a', "all", NULL, "every row and every name in full"},
    {0}};

struct report {
    struct page page;
    struct gwa_options options;
    json_t *json;                      /* array of processes; NULL: text */
    struct render_main main;           /* the process whose verdict is that of all */
    const struct load_source *sources; /* of a job */
    json_t **ranks;                    /* of a job: each one's element */
    bool job, summaries;
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
    struct gwa_options analysis = r->options;
    analysis.progress = progress_show;
    analysis.progress_arg = &progress;
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
    const char *step = analysis.step_range ? analysis.step_range : analysis.step_kernel;
    if (step && !p->steps.count)
        say("%s: --step-%s \"%s\" found no step: times are of everything, warm-up too", path,
            analysis.step_range ? "range" : "kernel", step);
    if (r->json) {
        json_array_append_new(r->json, render_json(p));
        render_json_main(&r->main, p, json_array_size(r->json) - 1);
    } else {
        if (r->shown)
            fputs("\n\n", r->page.out);
        render_report(&r->page, p, r->options.range);
    }
    r->shown++;
    gwa_free(p);
    return 0;
}

/* ---- ranks of one job ------------------------------------------------------------------- */

static void rank(size_t index, const struct gwa_process *p, void *arg)
{
    struct report *r = arg;
    warn(r->sources[index].path, p);
    if (r->json)
        r->ranks[index] = render_json(p);
    else if (!r->job)
        render_report(&r->page, p, r->options.range);
    r->shown++;
}

static int print_job(struct report *r, const struct load_job *l, const struct gwa_job_result *job)
{
    if (r->summaries)
        return render_job_lines(job, stdout) ? TOOL_USAGE : finish_output(TOOL_FINE);
    if (!r->json) {
        if (r->job)
            render_job(&r->page, job);
        return finish_output(TOOL_FINE);
    }
    for (size_t i = 0; i < l->count; i++)
        if (r->ranks[i])
            json_array_append_new(r->json, r->ranks[i]);
    json_t *root = r->job ? render_job_report(r->json, job)
                          : render_json_report(r->json, &(struct render_main){.any = true});
    r->json = NULL;
    return render_json_print(root);
}

/* number: the one that is asked for; -1: all. */
static int report_job(struct report *r, struct load_source *sources, size_t count, long number)
{
    const struct gwa_job_result *job;
    struct load_job l = {.sources = sources,
                         .count = count,
                         .number = number,
                         .options = r->options,
                         .each = rank,
                         .arg = r};
    r->job = number < 0;
    r->sources = sources;
    r->ranks = xalloc(count * sizeof(*r->ranks));
    memset(r->ranks, 0, count * sizeof(*r->ranks));
    json_object_seed(0); /* before there are threads */
    int code = load_job(&l, &job);
    if (code == TOOL_FINE)
        code = print_job(r, &l, job);
    load_job_free(&l);
    free(r->ranks);
    return code;
}

/* ---- command line ------------------------------------------------------------------------ */

/* "A:B", either of which may be left out, or "all". post: false after a message. */
static bool parse_steps(const char *text, struct gwa_options *o)
{
    char *end;
    unsigned long from = 0, to = UINT32_MAX;
    if (!strcmp(text, "all")) {
        o->whole = true;
        return true;
    }
    const char *colon = strchr(text, ':');
    bool good = colon && text[strspn(text, "0123456789:")] == 0;
    if (good && colon > text)
        from = strtoul(text, &end, 10), good = end == colon;
    if (good && colon[1])
        to = strtoul(colon + 1, &end, 10), good = *end == 0;
    if (!good || from >= to || to > UINT32_MAX) {
        say("report: --steps takes A:B with A less than B, or \"all\", not \"%s\"", text);
        return false;
    }
    o->step_from = (uint32_t)from;
    o->step_to = (uint32_t)to;
    return true;
}

/* post: exit code. JSON of a job has been printed then, and r->json is NULL. */
static int report(struct report *r, const char *path, const char *process)
{
    struct load_source *sources;
    size_t count;
    long number;
    if (!load_number(process, &number))
        return TOOL_USAGE;
    int code = load_list(path, &sources, &count);
    if (code)
        return code;
    size_t ranks = load_ranks(path, sources, count);
    bool any = number < 0;
    for (size_t i = 0; i < ranks && !any; i++)
        any = load_chosen(sources, ranks, i, number);
    if (any && load_is_job(sources, ranks))
        code = report_job(r, sources, ranks, number);
    else if (r->summaries) {
        say("report: --summaries is for a job of several ranks, which %s is not", path);
        code = TOOL_USAGE;
    } else
        code = load_traces(path, process, one, r, NULL);
    load_list_free(sources, count);
    return code;
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
            r.options.range = optarg;
            break;
        case OPT_STEPS:
            if (!parse_steps(optarg, &r.options))
                return TOOL_USAGE;
            break;
        case OPT_STEP_RANGE:
            r.options.step_range = optarg;
            break;
        case OPT_STEP_KERNEL:
            r.options.step_kernel = optarg;
            break;
        case OPT_PROCESS:
            process = optarg;
            break;
        case OPT_SUMMARIES:
            r.summaries = true;
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
    if (r.options.step_range && r.options.step_kernel) {
        say("report: --step-range or --step-kernel, not both");
        return TOOL_USAGE;
    }
    r.page = page_stdout(all);
    r.json = json ? json_array() : NULL;
    int code = report(&r, optind < argc ? argv[optind] : LOAD_DEFAULT, process);
    if (!r.shown && r.no_range)
        say("%s", r.no_range);
    free(r.no_range);
    if (r.json && code == TOOL_FINE)
        return render_json_print(render_json_report(r.json, &r.main));
    json_decref(r.json);
    return finish_output(code);
}

const struct command cmd_report = {
    .name = "report",
    .text = "say what the GPU waited for and what to change",
    .run = run,
    .operands = "[TRACE]",
    .options = options,
    .notes =
        "TRACE is a directory or one .gwt file, of a finished, running or killed job; "
        "default " LOAD_DEFAULT ".\n"
        "Ranks of one job make one report, with what they waited for each other; --process shows "
        "one of them.\n"
        "exit status: 0 reported (what is incomplete is said on stderr), 2 usage or unreadable "
        "input, 3 nothing was recorded.\n",
    .examples = "  gpuwait report\n"
                "  gpuwait report --range step --all runs/today\n"
                "  gpuwait report --steps 100:200\n"
                "  gpuwait report --step-kernel multi_tensor_adam\n"
                "  gpuwait report --process 3\n"
                "  gpuwait report --summaries | jq -s 'min_by(.compute_pct).host'\n"
                "  gpuwait report --json | jq '.verdict, .findings[0].remedy'\n",
    .usage_code = TOOL_USAGE,
};
