#include "load.h"
#include "tool.h"

#include "analysis/analysis.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int by_rank(const void *a, const void *b)
{
    const struct load_source *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return strcmp(x->path, y->path);
}

static void open_failed(struct load_source *s, int rc, const struct gwt_error *error)
{
    s->error = rc;
    if (rc != -ENODATA)
        say("%s", error->text);
}

/* Ids are given in order. */
static uint64_t identity_of(const struct gwt_trace *trace)
{
    const struct gwt_def_comm *c;
    for (uint32_t id = 1; (c = gwt_comm(trace, id)); id++)
        if (c->identity)
            return c->identity;
    return 0;
}

static void look_at(struct load_source *s)
{
    struct gwt_error error = {""};
    struct gwa_identity who;
    struct gwt_trace *trace;
    int rc = gwt_open(s->path, &trace, &error);
    if (rc) {
        open_failed(s, rc, &error);
        return;
    }
    gwa_identify(trace, &who);
    s->pid = who.pid;
    s->rank = who.rank;
    s->identity = identity_of(trace);
    s->events = gwt_coverage(trace)->events;
    s->started_ns = gwt_header(trace)->start.realtime_ns;
    gwt_close(trace);
}

static int nothing(const char *path)
{
    say("%s: nothing was recorded; was the program started by \"gpuwait run\" or with the "
        "preload, and did it call CUDA?",
        path);
    return TOOL_NOTHING;
}

bool load_number(const char *process, long *number)
{
    char *end = NULL;
    *number = process ? strtol(process, &end, 10) : -1;
    if (!process || (*process && !*end && *number >= 0))
        return true;
    say("--process takes a process id or a rank, not \"%s\"", process);
    return false;
}

bool load_chosen(const struct load_source *list, size_t count, size_t index, long number)
{
    const struct load_source *s = &list[index];
    bool is_pid = false;
    if (number < 0)
        return true;
    for (size_t i = 0; i < count; i++)
        is_pid |= !list[i].error && list[i].pid == (uint32_t)number;
    return is_pid ? s->pid == (uint32_t)number : s->rank == number;
}

/* look: at what is in them too. */
static int list_sources(const char *path, bool look, struct load_source **out, size_t *count)
{
    struct gwt_error error = {""};
    char **list;
    int rc = gwt_list(path, &list, &error);
    *out = NULL;
    *count = 0;
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
    while (list[*count])
        ++*count;
    *out = xalloc(*count * sizeof(**out));
    for (size_t i = 0; i < *count; i++) {
        (*out)[i] = (struct load_source){.path = xstrdup(list[i]), .rank = -1};
        if (look || *count > 1)
            look_at(&(*out)[i]);
    }
    gwt_list_free(list);
    qsort(*out, *count, sizeof(**out), by_rank);
    return TOOL_FINE;
}

int load_list(const char *path, struct load_source **list, size_t *count)
{
    return list_sources(path, false, list, count);
}

void load_list_free(struct load_source *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(list[i].path);
    free(list);
}

int load_traces(const char *path, const char *process, load_each each, void *arg, size_t *unread)
{
    struct gwt_error error = {""};
    struct load_source *sources;
    size_t count, done = 0, failed = 0, empty = 0;
    long number;
    if (!load_number(process, &number))
        return TOOL_USAGE;
    int rc = list_sources(path, process != NULL, &sources, &count);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++) {
        struct load_source *s = &sources[i];
        struct gwt_trace *trace;
        if (!load_chosen(sources, count, i, number))
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
    load_list_free(sources, count);
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
