/* gpuwait diff: before and after. */
#include "commands.h"
#include "load_run.h"
#include "render_diff.h"
#include "tool.h"

#include <getopt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_JSON, OPT_LIMIT, OPT_SORT, OPT_STEPS, OPT_RANGE, OPT_KERNEL, OPT_PROCESS, OPT_ALL };
static const struct option_row options[] = {
    [OPT_JSON] = {0, "json", NULL, "one JSON object with all of it"},
    [OPT_LIMIT] = {'n', "limit", "N", "at most so many kernels, and calls; default 20"},
    [OPT_SORT] = {0, "sort", "KEY",
                  "kernels by effect (GPU time per step, the default), calls or name"},
    [OPT_STEPS] = {'s', "steps", "all", "times from everything, warm-up too"},
    [OPT_RANGE] = {0, "step-range", "NAME", "a step is an NVTX range of this name"},
    [OPT_KERNEL] = {0, "step-kernel", "TEXT",
                    "a step begins with each kernel whose name holds this text"},
    [OPT_PROCESS] = {'p', "process", "RANK", "only this process, by process id or by rank"},
    [OPT_ALL] = {'a', "all", NULL, "every row and every name in full"},
    {0}};

struct diff {
    struct load_run load;
    enum gwa_sort sort;
    size_t limit;
    bool json, all;
};

static bool sort_by(struct diff *d, const char *key)
{
    static const char *const keys[] = {
        [GWA_SORT_EFFECT] = "effect", [GWA_SORT_CALLS] = "calls", [GWA_SORT_NAME] = "name"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (!strcmp(keys[i], key)) {
            d->sort = (enum gwa_sort)i;
            return true;
        }
    say("diff: --sort takes effect, calls or name, not \"%s\"", key);
    return false;
}

static bool limit(struct diff *d, const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);
    if (*text && !*end && n > 0 && n <= 1000000) {
        d->limit = (size_t)n;
        return true;
    }
    say("diff: --limit takes a number from 1 on, not \"%s\"", text);
    return false;
}

static bool take(struct diff *d, int option)
{
    switch (option) {
    case OPT_JSON:
        return d->json = true;
    case OPT_LIMIT:
        return limit(d, optarg);
    case OPT_SORT:
        return sort_by(d, optarg);
    case OPT_STEPS:
        if (strcmp(optarg, "all")) {
            say("diff: --steps takes \"all\", not \"%s\"", optarg);
            return false;
        }
        return d->load.options.whole = true;
    case OPT_RANGE:
        d->load.options.step_range = optarg;
        return true;
    case OPT_KERNEL:
        d->load.options.step_kernel = optarg;
        return true;
    case OPT_PROCESS:
        d->load.process = optarg;
        return true;
    case OPT_ALL:
        return d->all = true;
    }
    return false;
}

/* ---- both at once ------------------------------------------------------------------------- */

struct reading {
    struct load_run what;
    struct gwa_run run;
    int code;
};

static void *read_one(void *arg)
{
    struct reading *r = arg;
    r->code = load_run(&r->what, &r->run);
    return NULL;
}

static int worse(int a, int b)
{
    return a == TOOL_USAGE || b == TOOL_USAGE ? TOOL_USAGE : a > b ? a : b;
}

static int print(const struct diff *d, const struct reading *r)
{
    struct gwa_diff diff;
    if (gwa_diff(&r[0].run, &r[1].run, d->sort, &diff)) {
        say("diff: out of memory");
        return TOOL_USAGE;
    }
    struct page page = page_stdout(d->all);
    struct diff_report report = {&diff, r[0].what.path, r[1].what.path, d->limit};
    int code = TOOL_FINE;
    if (d->json)
        code = render_json_print(render_diff_json(&report));
    else
        render_diff(&page, &report);
    gwa_diff_free(&diff);
    return finish_output(code);
}

static int diff(const struct diff *d, const char *base, const char *now)
{
    struct reading r[2] = {{.what = d->load}, {.what = d->load}};
    pthread_t other;
    r[0].what.path = base;
    r[0].what.quiet = true; /* one progress is enough */
    r[1].what.path = now;
    bool two = !pthread_create(&other, NULL, read_one, &r[0]);
    if (!two)
        read_one(&r[0]);
    read_one(&r[1]);
    if (two)
        pthread_join(other, NULL);
    int code = worse(r[0].code, r[1].code);
    if (code == TOOL_FINE)
        code = print(d, r);
    gwa_run_free(&r[0].run);
    gwa_run_free(&r[1].run);
    return code;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct diff d = {0};
    for (int o; (o = option_next(self, argc, argv)) != OPTION_END;) {
        if (o == OPTION_HELP)
            return finish_output(TOOL_FINE);
        if (o < 0 || !take(&d, o))
            return TOOL_USAGE;
    }
    if (argc - optind != 2) {
        say("diff: takes two recordings, BASE and NEW");
        return TOOL_USAGE;
    }
    if (d.load.options.step_range && d.load.options.step_kernel) {
        say("diff: --step-range or --step-kernel, not both");
        return TOOL_USAGE;
    }
    return diff(&d, argv[optind], argv[optind + 1]);
}

const struct command cmd_diff = {
    .name = "diff",
    .text = "show what changed between two recordings",
    .run = run,
    .operands = "BASE NEW",
    .options = options,
    .notes = "BASE and NEW are directories or .gwt files. Counts are of a steady step where steps "
             "were found, times leave warm-up out.\n"
             "exit status: 0 compared (what is incomplete is said), 2 usage or unreadable input, "
             "3 nothing was recorded.\n",
    .examples = "  gpuwait diff gpuwait.trace.old gpuwait.trace\n"
                "  gpuwait diff --limit 50 --sort calls before after\n"
                "  gpuwait diff --json before after | jq '.kernels[0]'\n",
    .usage_code = TOOL_USAGE,
};
