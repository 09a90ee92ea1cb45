/* gpuwait run: the command, with libgpuwait.so preloaded into it and its children. */
#include "commands.h"
#include "load_job.h"
#include "render_job.h"
#include "run_child.h"
#include "run_dir.h"
#include "run_option.h"
#include "run_preload.h"
#include "run_target.h"
#include "text.h"
#include "tool.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- options: two of our own, one for each environment variable but GPUWAIT, GPUWAIT_OUT --- */

enum { OPT_OUTPUT, OPT_NO_REPORT, OPT_ENVIRONMENT };

enum {
#define ENV(name, value, takes, text) ENV_##name,
#include "trace/env.def"
#undef ENV
    ENV_COUNT,
    ENV_FIRST = ENV_GPUWAIT_OUT + 1 /* the first that is an option of ours */
};

static const struct {
    const char *name, *value, *takes, *text;
} environment[ENV_COUNT] = {
#define ENV(name, value, takes, text) {#name, value, takes, text},
#include "trace/env.def"
#undef ENV
};

static struct option_row options[OPT_ENVIRONMENT + ENV_COUNT - ENV_FIRST + 1] = {
    [OPT_OUTPUT] = {'o', "output", "DIR",
                    "directory that receives the recording (GPUWAIT_OUT; "
                    "default gpuwait.trace)"},
    [OPT_NO_REPORT] = {0, "no-report", NULL, "no summary on stderr at the end"},
};

/* GPUWAIT_MIN_FREE becomes --min-free. */
static void prepare(void)
{
    for (int i = ENV_FIRST; i < ENV_COUNT; i++) {
        struct option_row *row = &options[OPT_ENVIRONMENT + i - ENV_FIRST];
        char *name = xstrdup(environment[i].name + strlen("GPUWAIT_"));
        for (char *c = name; *c; c++)
            *c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
        row->name = name;
        row->value = "VALUE";
        row->text = xprintf("%s (%s; default %s)", environment[i].text, environment[i].name,
                            environment[i].value);
    }
}

struct run {
    const char *directory;
    bool report;
    char **argv;
    struct run_dir dir;
    struct target target;
    struct child child;
};

static bool set(int o)
{
    int row = ENV_FIRST + o - OPT_ENVIRONMENT;
    if (!run_option_takes(environment[row].takes, optarg)) {
        char *takes = run_option_text(environment[row].takes);
        say("run: --%s takes %s, not '%s'", options[o].name, takes, optarg);
        free(takes);
        return false;
    }
    setenv(environment[row].name, optarg, 1);
    return true;
}

/* post: 0, or the exit code. */
static int parse(const struct command *self, int argc, char **argv, struct run *r, bool *done)
{
    *done = true;
    for (int o; (o = option_next(self, argc, argv)) != OPTION_END;) {
        if (o == OPTION_HELP)
            return finish_output(TOOL_FINE);
        if (o < 0)
            return TOOL_RUN_FAILED;
        if (o == OPT_OUTPUT)
            r->directory = optarg;
        else if (o == OPT_NO_REPORT)
            r->report = false;
        else if (!set(o))
            return TOOL_RUN_FAILED;
    }
    if (optind == argc) {
        say("run: no command given, as in: gpuwait run -- python train.py");
        return TOOL_RUN_FAILED;
    }
    r->argv = argv + optind;
    *done = false;
    return 0;
}

/* ---- the summary at the end ------------------------------------------------------------ */

#define PROCESSES_TOLD 2
#define LINES_ONE      5        /* of the only process; with the line about all, six */
#define LINES_EACH     2        /* of one among several */
#define EVENTS_SUMMED  50000000 /* some seconds: a job must not hang on at its end */

struct recorded {
    uint64_t events;
    uint64_t bytes;
    size_t processes, told;
};

static void say_line(const char *text)
{
    say("%s", text);
}

/* A task of a job tells of its own rank only: the others tell of theirs. */
static bool is_ours(const struct run *r, struct gwt_trace *trace)
{
    static const char *const ranks[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
    if (!r->dir.joined || gwt_header(trace)->pid == (uint32_t)r->child.pid)
        return true;
    for (size_t i = 0; i < sizeof(ranks) / sizeof(*ranks); i++) {
        const char *mine = getenv(ranks[i]);
        char *key = xprintf("env.%s", ranks[i]);
        const char *its = gwt_fact(trace, key);
        free(key);
        if (mine && its)
            return !strcmp(mine, its);
    }
    return true;
}

static void tell_process(struct gwt_trace *trace, size_t lines)
{
    struct gwa_process *p;
    struct gwt_error error;
    struct progress progress;
    struct gwa_options analysis = {.progress = progress_show, .progress_arg = &progress};
    if (gwt_coverage(trace)->events > EVENTS_SUMMED) {
        say("process %u: too many events to sum up here", gwt_header(trace)->pid);
        return;
    }
    progress_begin(&progress);
    int rc = gwa_analyse(trace, &analysis, &p, &error);
    progress_end(&progress);
    if (rc)
        return;
    render_short(p, lines, say_line);
    gwa_free(p);
}

static void no_more(size_t index, const struct gwa_process *p, void *arg)
{
    (void)index, (void)p, (void)arg;
}

/* Ranks that were started together. post: false: they are no job, or too much to sum up here. */
static bool tell_job(const struct run *r)
{
    struct load_source *list;
    const struct gwa_job_result *job;
    size_t count, fresh = 0;
    uint64_t events = 0;
    if (r->dir.joined || load_list(r->dir.path, &list, &count))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (list[i].error || run_dir_had(&r->dir, list[i].path)) {
            free(list[i].path);
            continue;
        }
        events += list[i].events;
        list[fresh++] = list[i];
    }
    struct load_job l = {.sources = list, .count = fresh, .number = -1, .each = no_more};
    bool is_job = fresh > 1 && events <= EVENTS_SUMMED && load_is_job(list, fresh);
    if (is_job) {
        is_job = load_job(&l, &job) == TOOL_FINE;
        if (is_job)
            render_job_short(job, say_line);
        load_job_free(&l);
    }
    load_list_free(list, fresh);
    return is_job;
}

static struct recorded tell(const struct run *r)
{
    struct recorded sum = {0};
    struct gwt_error error;
    char **list;
    if (gwt_list(r->dir.path, &list, &error))
        return sum;
    bool told = tell_job(r);
    size_t fresh = 0;
    for (size_t i = 0; list[i]; i++)
        fresh += !run_dir_had(&r->dir, list[i]);
    for (size_t i = 0; list[i]; i++) {
        struct gwt_trace *trace;
        if (run_dir_had(&r->dir, list[i]))
            continue;
        if (gwt_open(list[i], &trace, &error))
            continue; /* without an event, or another task's, half made */
        if (is_ours(r, trace)) {
            sum.processes++;
            sum.events += gwt_coverage(trace)->events;
            sum.bytes += gwt_coverage(trace)->dump_bytes;
            if (told) {
                sum.told++;
            } else if (sum.told < PROCESSES_TOLD) {
                tell_process(trace, fresh > 1 ? LINES_EACH : LINES_ONE);
                sum.told++;
            }
        }
        gwt_close(trace);
    }
    gwt_list_free(list);
    return sum;
}

static void tell_nothing(const struct run *r)
{
    const char *off = getenv("GPUWAIT"), *place = target_elsewhere(r->argv[0]);
    int status = r->child.status;
    if (r->target.why_not)
        say("nothing was recorded: %s", r->target.why_not);
    else if (off && !strcmp(off, "0"))
        say("nothing was recorded: GPUWAIT=0 is set");
    else if (place)
        say("nothing was recorded: %s starts its program %s; start gpuwait there", r->argv[0],
            place);
    else if (WIFSIGNALED(status))
        say("nothing was recorded: it ended by signal %d before its first CUDA call",
            WTERMSIG(status));
    else if (WEXITSTATUS(status))
        say("nothing was recorded: it ended with exit code %d before its first CUDA call",
            WEXITSTATUS(status));
    else
        say("nothing was recorded: it made no CUDA call%s",
            access("/dev/nvidiactl", F_OK) && access("/dev/dxg", F_OK)
                ? " (there is no NVIDIA device here)"
                : ", or not in a process that "
                  "inherited LD_PRELOAD");
}

static void summary(const struct run *r, size_t cut_off)
{
    struct recorded sum = tell(r);
    char events[TEXT_NUMBER], bytes[TEXT_NUMBER];
    if (!sum.processes) {
        tell_nothing(r);
        return;
    }
    if (sum.processes > sum.told)
        say("and %zu more processes", sum.processes - sum.told);
    if (cut_off)
        say("%zu process%s killed or left by _exit: what came last is in the ring file beside the "
            "recording",
            cut_off, cut_off == 1 ? " was" : "es were");
    say("%s events, %s, in %s; read them with: gpuwait report%s%s", text_count(events, sum.events),
        text_bytes(bytes, sum.bytes), r->directory, strcmp(r->directory, LOAD_DEFAULT) ? " " : "",
        strcmp(r->directory, LOAD_DEFAULT) ? r->directory : "");
}

/* ---- the command ------------------------------------------------------------------------- */

/* Where the command could not be executed. */
static int not_started(const struct run *r)
{
    int error = r->child.error;
    say("cannot run %s: %s", r->argv[0], strerror(error));
    return error == ENOENT ? TOOL_RUN_MISSING : TOOL_RUN_CANNOT;
}

static int run(const struct command *self, int argc, char **argv)
{
    const char *out = getenv("GPUWAIT_OUT");
    struct run r = {
        .directory = out && *out ? out : LOAD_DEFAULT, .report = true, .dir = {.lock = -1}};
    struct preload preload = {0};
    char *library = NULL;
    bool done;
    int code = parse(self, argc, argv, &r, &done);
    if (done)
        return code;

    code = TOOL_RUN_FAILED;
    target_inspect(r.argv[0], &r.target);
    if (!(library = preload_find()) || !preload_make(&preload, library) ||
        !run_dir_open(r.directory, &r.dir))
        goto out;
    if (r.target.why_not)
        say("%s; running it without a recording", r.target.why_not);
    if (setenv("LD_PRELOAD", preload.value, 1) || setenv("GPUWAIT_OUT", r.dir.path, 1)) {
        say("cannot set the environment: %s", strerror(errno));
        goto out;
    }
    int rc = child_run(r.target.path, r.argv, &r.child);
    /* our own part of the run needs neither */
    unsetenv("LD_PRELOAD");
    if (rc) {
        say("cannot start a process: %s", strerror(-rc));
    } else if (r.child.error) {
        code = not_started(&r);
    } else {
        size_t cut_off = run_dir_gather(&r.dir);
        if (r.report)
            summary(&r, cut_off);
        code = WEXITSTATUS(r.child.status);
    }
out:
    run_dir_close(&r.dir);
    preload_done(&preload);
    free(library);
    target_free(&r.target);
    return r.child.pid > 0 && !r.child.error ? child_end_like(&r.child) : code;
}

const struct command cmd_run = {
    .name = "run",
    .text = "run a command and record what it does with the GPU",
    .run = run,
    .prepare = prepare,
    .operands = "[--] COMMAND [ARGUMENT]...",
    .options = options,
    .notes =
        "A recording that DIR holds already moves to DIR.old, unless its job still runs or "
        "this is a task of the same job (Slurm, MPI, torchrun): then it is joined. Processes "
        "that COMMAND starts are recorded too.\n"
        "exit status: the command's, or it ends by the same signal; 125 for failures of gpuwait "
        "itself, 126 if COMMAND cannot be executed, 127 if it is not found.\n",
    .examples = "  gpuwait run -- python train.py --epochs 1\n"
                "  gpuwait run -o runs/today -- torchrun --nproc-per-node 8 train.py\n"
                "  srun gpuwait run -- python -m package.train\n",
    .operands_end = true,
    .usage_code = TOOL_RUN_FAILED,
};
