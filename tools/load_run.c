#include "load_run.h"
#include "load.h"
#include "tool.h"

#include <errno.h>

struct loading {
    const struct load_run *what;
    struct gwa_run *out;
};

/* A process without an event has no part in the run, unless it was stopped before it could. */
static int nothing(struct loading *l, const struct gwt_trace *trace)
{
    const struct gwt_coverage *c = gwt_coverage(trace);
    if (!c->ended || c->dropped || c->missing || c->bad_frames)
        gwa_run_problem(l->out, "process %u: no event was recorded, or none can be read",
                        gwt_header(trace)->pid);
    return -ENODATA;
}

static int one(struct gwt_trace *trace, const char *path, void *arg)
{
    struct loading *l = arg;
    struct gwt_error error = {""};
    struct progress progress;
    struct gwa_options options = l->what->options;
    struct gwa_process *p;
    options.progress = l->what->quiet ? NULL : progress_show;
    options.progress_arg = &progress;
    progress_begin(&progress);
    int rc = gwa_analyse(trace, &options, &p, &error);
    progress_end(&progress);
    if (rc == -ENODATA)
        return nothing(l, trace);
    if (rc) {
        say("%s: %s", path, error.text);
        return rc;
    }
    rc = gwa_run_add(l->out, trace, p, l->what->min_steps);
    gwa_free(p);
    if (rc)
        say("%s: out of memory", path);
    return rc;
}

int load_run(const struct load_run *what, struct gwa_run *out)
{
    struct loading l = {what, out};
    size_t unread = 0;
    *out = (struct gwa_run){0};
    int code = load_traces(what->path, what->process, one, &l, &unread);
    if (code == TOOL_USAGE)
        return code;
    if (unread)
        gwa_run_problem(out, "%zu of the recordings could not be read", unread);
    if (gwa_run_finish(out, what->label)) {
        say("%s: out of memory", what->path);
        return TOOL_USAGE;
    }
    return code;
}
