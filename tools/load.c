#include "load.h"
#include "tool.h"

#include "analysis/analysis.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct source {
    const char *path;
    uint32_t pid;
    int rank;
    int error; /* of opening it */
};

static int by_rank(const void *a, const void *b)
{
    const struct source *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return strcmp(x->path, y->path);
}

static void open_failed(struct source *s, int rc, const struct gwt_error *error)
{
    s->error = rc;
    if (rc != -ENODATA)
        say("%s", error->text);
}

static struct source look_at(const char *path)
{
    struct source s = {.path = path, .rank = -1};
    struct gwt_error error = {""};
    struct gwa_identity who;
    struct gwt_trace *trace;
    int rc = gwt_open(path, &trace, &error);
    if (rc) {
        open_failed(&s, rc, &error);
        return s;
    }
    gwa_identify(trace, &who);
    s.pid = who.pid;
    s.rank = who.rank;
    gwt_close(trace);
    return s;
}

/* Which of the sources `process` means: its number is a pid first, else a rank. */
static bool chosen(const struct source *list, size_t count, const struct source *s, long number)
{
    bool is_pid = false;
    for (size_t i = 0; i < count; i++)
        is_pid |= !list[i].error && list[i].pid == (uint32_t)number;
    return is_pid ? s->pid == (uint32_t)number : s->rank == number;
}

static int nothing(const char *path)
{
    say("%s: nothing was recorded; was the program started by \"gpuwait run\" or with the "
        "preload, and did it call CUDA?",
        path);
    return TOOL_NOTHING;
}

int load_traces(const char *path, const char *process, load_each each, void *arg, size_t *unread)
{
    struct gwt_error error = {""};
    char **list, *end = NULL;
    size_t count = 0, done = 0, failed = 0, empty = 0;
    long number = process ? strtol(process, &end, 10) : -1;
    if (process && (!*process || *end || number < 0)) {
        say("--process takes a process id or a rank, not \"%s\"", process);
        return TOOL_USAGE;
    }
    int rc = gwt_list(path, &list, &error);
    if (rc == -ENODATA)
        return nothing(path);
    if (rc == -ENOENT) {
        say("%s: there is no such file or directory; \"gpuwait run -- COMMAND\" records one", path);
        return TOOL_USAGE;
    }
    if (rc) {
        say("%s", error.text);
        return TOOL_USAGE;
    }
    while (list[count])
        count++;
    struct source *sources = xalloc(count * sizeof(*sources));
    for (size_t i = 0; i < count; i++)
        sources[i] = count > 1 || process ? look_at(list[i]) : (struct source){.path = list[i]};
    qsort(sources, count, sizeof(*sources), by_rank);

    for (size_t i = 0; i < count; i++) {
        struct source *s = &sources[i];
        struct gwt_trace *trace;
        if (process && !chosen(sources, count, s, number))
            continue;
        if (!s->error && (rc = gwt_open(s->path, &trace, &error)))
            open_failed(s, rc, &error);
        if (!s->error) {
            s->error = each(trace, s->path, arg);
            gwt_close(trace);
        }
        if (s->error == -ECANCELED)
            break;
        if (s->error == -ENODATA)
            empty++;
        else if (s->error)
            failed++;
        else
            done++;
    }
    free(sources);
    gwt_list_free(list);
    if (unread)
        *unread = failed;
    if (done)
        return TOOL_FINE;
    if (failed)
        return TOOL_USAGE;
    if (empty || !process)
        return nothing(path);
    say("%s: no process %s in it; \"gpuwait info\" lists them", path, process);
    return TOOL_USAGE;
}

/* ---- progress ------------------------------------------------------------------- */

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

void progress_begin(struct progress *p)
{
    p->started_ns = now_ns();
    p->shown = -1;
}

int progress_show(void *arg, uint64_t done, uint64_t total)
{
    struct progress *p = arg;
    int percent = total ? (int)(100 * (double)done / (double)total) : 0;
    if (percent > 99)
        percent = 99;
    if (percent == p->shown || !isatty(STDERR_FILENO) || now_ns() - p->started_ns < 1000000000)
        return 0;
    fprintf(stderr, "\rgpuwait: reading, %d %%", percent);
    fflush(stderr);
    p->shown = percent;
    return 0;
}

void progress_end(struct progress *p)
{
    if (p->shown >= 0)
        fprintf(stderr, "\r%24s\r", "");
    p->shown = -1;
}
