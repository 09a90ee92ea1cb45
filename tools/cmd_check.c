/* gpuwait check: the gate for CI. */
#include "commands.h"
#include "load.h"
#include "load_run.h"
#include "render_check.h"
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum {
    OPT_BASELINE,
    OPT_UPDATE,
    OPT_TIMES,
    OPT_ACCEPT,
    OPT_ALLOW,
    OPT_REQUIRE,
    OPT_FORBID,
    OPT_SKIP,
    OPT_LABEL,
    OPT_MIN_STEPS,
    OPT_PROCESS,
    OPT_RANGE,
    OPT_KERNEL,
    OPT_JUNIT,
    OPT_GITHUB,
    OPT_JSON,
    OPT_ALL
};
static const struct option_row options[] = {
    [OPT_BASELINE] = {'b', "baseline", "FILE", "the baseline to hold the recording against"},
    [OPT_UPDATE] = {'u', "update", NULL,
                    "write to it what moved beyond a third of its margin, or all of it where there "
                    "is none yet"},
    [OPT_TIMES] = {0, "times", NULL, "gate the step time and the GPU's busy share too"},
    [OPT_ACCEPT] = {0, "accept-wins", NULL, "what improved beyond its margin passes"},
    [OPT_ALLOW] = {0, "allow-different", "KEY",
                   "compare although this differs: script, sms, torch, ..."},
    [OPT_REQUIRE] = {0, "require", "PATTERN",
                     "a step must run a kernel whose name holds this; * is anything"},
    [OPT_FORBID] = {0, "forbid", "PATTERN", "no step may run one"},
    [OPT_SKIP] = {0, "skip", "METRIC", "leave this metric out"},
    [OPT_LABEL] = {0, "label", "NAME", "call the script so, in place of its file's name"},
    [OPT_MIN_STEPS] = {0, "min-steps", "N", "so many steady steps at least; default 10"},
    [OPT_PROCESS] = {'p', "process", "PID", "only this process, by process id or by rank"},
    [OPT_RANGE] = {0, "step-range", "NAME", "a step is an NVTX range of this name"},
    [OPT_KERNEL] = {0, "step-kernel", "TEXT",
                    "a step begins with each kernel whose name holds this text"},
    [OPT_JUNIT] = {0, "junit", "FILE", "write the results as JUnit's XML"},
    [OPT_GITHUB] = {0, "github", NULL, "print GitHub's annotations and write its step summary"},
    [OPT_JSON] = {0, "json", NULL, "one JSON object with all of it"},
    [OPT_ALL] = {'a', "all", NULL, "every row and every name in full"},
    {0}};

struct check {
    struct load_run load;
    struct gwa_gate_options gate;
    const char *baseline, *junit;
    char **require, **forbid;
    size_t require_count, forbid_count;
    bool update, github, json, all;
};

/* ---- options ---------------------------------------------------------------------------- */

static bool allow(struct check *c, const char *key)
{
    unsigned k = gwa_key_find(key);
    if (k < GWA_KEY_COUNT) {
        c->gate.allowed[k] = true;
        return true;
    }
    say("check: --allow-different knows no \"%s\"; gpuwait-check(1) lists the keys", key);
    return false;
}

static bool skip(struct check *c, const char *key)
{
    unsigned m = gwa_metric_find(key);
    if (m < GWA_METRIC_COUNT && gwa_metrics[m].gated != GWA_GATED_NO) {
        c->gate.skipped[m] = true;
        return true;
    }
    say("check: --skip knows no \"%s\"; gpuwait-check(1) lists the metrics", key);
    return false;
}

static bool pattern(char ***list, size_t *count, const char *text)
{
    if (!*text || !text[strspn(text, "*")]) {
        say("check: a pattern of kernel names holds some text");
        return false;
    }
    if (gwa_baseline_pattern(list, count, text)) {
        say("check: out of memory");
        return false;
    }
    return true;
}

/* Fewer than two steps have no median that tells anything. */
static bool min_steps(struct check *c, const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);
    if (*text && !*end && n >= 2 && n <= 1000000) {
        c->load.min_steps = (size_t)n;
        return true;
    }
    say("check: --min-steps takes a number from 2 on, not \"%s\"", text);
    return false;
}

/* post: false after a message. */
static bool take(struct check *c, int option)
{
    switch (option) {
    case OPT_BASELINE:
        c->baseline = optarg;
        return true;
    case OPT_UPDATE:
        return c->update = true;
    case OPT_TIMES:
        return c->gate.times = true;
    case OPT_ACCEPT:
        return c->gate.accept_wins = true;
    case OPT_ALLOW:
        return allow(c, optarg);
    case OPT_REQUIRE:
        return pattern(&c->require, &c->require_count, optarg);
    case OPT_FORBID:
        return pattern(&c->forbid, &c->forbid_count, optarg);
    case OPT_SKIP:
        return skip(c, optarg);
    case OPT_LABEL:
        c->load.label = optarg;
        return true;
    case OPT_MIN_STEPS:
        return min_steps(c, optarg);
    case OPT_PROCESS:
        c->load.process = optarg;
        return true;
    case OPT_RANGE:
        c->load.options.step_range = optarg;
        return true;
    case OPT_KERNEL:
        c->load.options.step_kernel = optarg;
        return true;
    case OPT_JUNIT:
        c->junit = optarg;
        return true;
    case OPT_GITHUB:
        return c->github = true;
    case OPT_JSON:
        return c->json = true;
    case OPT_ALL:
        return c->all = true;
    }
    return false;
}

static bool sensible(const struct check *c, int argc, char **argv)
{
    if (argc - optind > 1)
        say("check: one TRACE at most, not also \"%s\"", argv[optind + 1]);
    else if (!c->baseline)
        say("check: --baseline FILE is missing; with --update it is made");
    else if (c->load.options.step_range && c->load.options.step_kernel)
        say("check: --step-range or --step-kernel, not both");
    else
        return true;
    return false;
}

/* ---- the baseline --------------------------------------------------------------------------- */

static bool add_patterns(struct check *c, struct gwa_baseline *b)
{
    int rc = 0;
    for (size_t i = 0; i < c->require_count && !rc; i++)
        rc = gwa_baseline_pattern(&b->require, &b->require_count, c->require[i]);
    for (size_t i = 0; i < c->forbid_count && !rc; i++)
        rc = gwa_baseline_pattern(&b->forbid, &b->forbid_count, c->forbid[i]);
    if (rc)
        say("check: out of memory");
    return !rc;
}

/* post: false after a message. */
static bool read_baseline(const struct check *c, struct gwa_baseline *b)
{
    struct gwt_error error = {""};
    int rc = gwa_baseline_read(c->baseline, b, &error);
    if (rc == -ENOENT && c->update) {
        gwa_baseline_begin(b);
        return true;
    }
    if (rc == -ENOENT)
        say("%s: there is no such baseline; --update makes it", c->baseline);
    else if (rc)
        say("%s", error.text);
    return !rc;
}

static int update(const struct check *c, const struct gwa_run *run, struct gwa_baseline *b,
                  size_t patterns_before)
{
    struct gwt_error error = {""};
    if (run->problems_count) {
        for (size_t i = 0; i < run->problems_count; i++)
            say("%s", run->problems[i]);
        say("%s: not written", c->baseline);
        return TOOL_NOTHING;
    }
    int changed = gwa_baseline_update(b, run, c->gate.times);
    if (changed < 0) {
        say("check: out of memory");
        return TOOL_USAGE;
    }
    changed += (int)(b->require_count + b->forbid_count - patterns_before);
    if (!changed) {
        say("%s: nothing moved beyond a third of its margin", c->baseline);
        return TOOL_FINE;
    }
    if (gwa_baseline_save(b, c->baseline, &error)) {
        say("%s", error.text);
        return TOOL_USAGE;
    }
    say("%s: written, %d entries are new, changed or gone", c->baseline, changed);
    return TOOL_FINE;
}

/* ---- output -----------------------------------------------------------------------------------
 */

static int write_file(const char *path, const char *mode, const struct check_report *r,
                      void (*write)(FILE *, const struct check_report *))
{
    FILE *out = fopen(path, mode);
    if (out)
        write(out, r);
    bool failed = !out || ferror(out);
    failed |= out && fclose(out);
    if (failed)
        say("%s: cannot write it: %s", path, strerror(errno));
    return failed ? TOOL_USAGE : TOOL_FINE;
}

static void junit(FILE *out, const struct check_report *r)
{
    const char *fixed = getenv("SOURCE_DATE_EPOCH");
    render_check_junit(out, r, fixed ? strtoll(fixed, NULL, 10) : (int64_t)time(NULL));
}

/* Names in the text cannot be taken for commands: GitHub obeys none until the word comes again,
 * which they cannot know. */
static void text_for_github(const struct page *page, const struct check_report *r)
{
    uint64_t word[2] = {0};
    if (getrandom(word, sizeof(word), 0) != sizeof(word))
        word[0] = (uint64_t)time(NULL);
    fprintf(page->out, "::stop-commands::%016" PRIx64 "%016" PRIx64 "\n", word[0], word[1]);
    render_check(page, r);
    fprintf(page->out, "::%016" PRIx64 "%016" PRIx64 "::\n", word[0], word[1]);
}

static int print(const struct check *c, const struct check_report *r)
{
    struct page page = page_stdout(c->all);
    const char *summary = getenv("GITHUB_STEP_SUMMARY");
    int code = TOOL_FINE;
    if (c->json)
        code = render_json_print(render_check_json(r));
    else if (c->github)
        text_for_github(&page, r);
    else
        render_check(&page, r);
    if (c->github) /* the commands count wherever they are printed */
        render_check_github(c->json ? stderr : stdout, r);
    if (c->github && summary && *summary && write_file(summary, "ae", r, render_check_summary))
        code = TOOL_USAGE;
    if (c->junit && write_file(c->junit, "we", r, junit))
        code = TOOL_USAGE;
    return finish_output(code);
}

/* ---- all ----------------------------------------------------------------------------------------
 */

static int exit_code(const struct gwa_gate *g)
{
    static const int codes[] = {[GWA_GATE_PASSED] = TOOL_FINE,
                                [GWA_GATE_FAILED] = TOOL_GATE,
                                [GWA_GATE_UNUSABLE] = TOOL_USAGE,
                                [GWA_GATE_INCONCLUSIVE] = TOOL_NOTHING};
    return codes[g->outcome];
}

/* The lines of Python come with the device's idle time, which a gate that passes has no use for:
 * only what failed is read once more. */
static int load_with_lines(struct check *c, const struct gwa_baseline *b, struct gwa_run *run,
                           struct gwa_gate *gate)
{
    if (gate->outcome != GWA_GATE_FAILED || !run->stacks || !c->load.options.counts_only)
        return 0;
    gwa_gate_free(gate);
    gwa_run_free(run);
    c->load.options.counts_only = false;
    int code = load_run(&c->load, run);
    return code == TOOL_USAGE ? -EIO : gwa_gate(run, b, &c->gate, gate);
}

static int hold_against(struct check *c, struct gwa_run *run, const struct gwa_baseline *b)
{
    struct gwa_gate gate;
    if (gwa_gate(run, b, &c->gate, &gate) || load_with_lines(c, b, run, &gate)) {
        say("check: out of memory");
        return TOOL_USAGE;
    }
    struct check_report r = {run, b, &gate, c->load.path, c->baseline};
    int code = print(c, &r);
    if (code == TOOL_FINE)
        code = exit_code(&gate);
    gwa_gate_free(&gate);
    return code;
}

static int check(struct check *c)
{
    struct gwa_baseline b;
    struct gwa_run run;
    if (!read_baseline(c, &b))
        return TOOL_USAGE;
    size_t patterns = b.require_count + b.forbid_count;
    c->load.options.counts_only = !c->gate.times;
    int code = add_patterns(c, &b) ? load_run(&c->load, &run) : TOOL_USAGE;
    if (code != TOOL_USAGE) {
        code = c->update ? update(c, &run, &b, patterns) : hold_against(c, &run, &b);
        gwa_run_free(&run);
    }
    gwa_baseline_free(&b);
    return code;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct check c = {0};
    int code = TOOL_USAGE;
    for (int o; (o = option_next(self, argc, argv)) != OPTION_END;) {
        if (o == OPTION_HELP)
            code = finish_output(TOOL_FINE);
        if (o < 0 || !take(&c, o))
            goto out;
    }
    if (sensible(&c, argc, argv)) {
        c.load.path = optind < argc ? argv[optind] : LOAD_DEFAULT;
        code = check(&c);
    }
out:
    for (size_t i = 0; i < c.require_count; i++)
        free(c.require[i]);
    for (size_t i = 0; i < c.forbid_count; i++)
        free(c.forbid[i]);
    free(c.require);
    free(c.forbid);
    return code;
}

const struct command cmd_check = {
    .name = "check",
    .text = "hold a recording's counts against a baseline, for CI",
    .run = run,
    .operands = "[TRACE]",
    .options = options,
    .notes = "TRACE is a directory or one .gwt file; default " LOAD_DEFAULT ". What is compared "
             "are the medians of its steady steps; gpuwait-check(1) lists the metrics, their "
             "margins, and the keys that must be the same.\n"
             "exit status: 0 passed, 1 failed, 2 usage, an unreadable recording or baseline, or a "
             "baseline without one of the metrics, 3 no conclusion: the recording is incomplete, "
             "too short or without steps, or the baseline is of something else.\n",
    .examples = "  gpuwait check --baseline ci/train.json --update\n"
                "  gpuwait check --baseline ci/train.json\n"
                "  gpuwait check runs/today -b ci/train.json --github --junit gpuwait.xml\n"
                "  gpuwait check -b ci/train.json --forbid 'elementwise*double'\n",
    .usage_code = TOOL_USAGE,
};
