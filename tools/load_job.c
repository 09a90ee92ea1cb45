#include "load_job.h"
#include "tool.h"

#include "analysis/pipe.h"

#include <errno.h>
#include <stdlib.h>

#define THREADS_MOST 4 /* each holds what the analysis of one rank takes */

bool load_is_job(const struct load_source *list, size_t count)
{
    size_t ranks = 0;
    for (size_t i = 0; i < count; i++) {
        ranks += !list[i].error && list[i].rank >= 0;
        for (size_t k = 0; list[i].identity && k < i; k++)
            if (list[k].identity == list[i].identity)
                return true;
    }
    return ranks > 1;
}

static bool same_rank(const struct load_source *a, const struct load_source *b)
{
    return a->rank >= 0 && a->rank == b->rank && !a->error && !b->error;
}

/* A rank that has two communicators of its own was started twice. */
static bool several_runs(const struct load_source *list, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (same_rank(&list[i - 1], &list[i]) && list[i - 1].identity && list[i].identity &&
            list[i - 1].identity != list[i].identity)
            return true;
    return false;
}

static bool helps(const struct load_source *list, size_t count, size_t index)
{
    for (size_t i = 0; i < count && !list[index].identity; i++)
        if (i != index && list[i].identity && same_rank(&list[i], &list[index]))
            return true;
    return false;
}

size_t load_ranks(const char *path, struct load_source *list, size_t count)
{
    bool *out = xalloc(count + 1);
    struct load_source *others = xalloc((count + 1) * sizeof(*others));
    uint64_t newest = 0, run = 0;
    size_t kept = 0, left = 0;
    bool several = several_runs(list, count);
    for (size_t i = 0; i < count; i++)
        if (list[i].identity && list[i].started_ns >= newest) {
            newest = list[i].started_ns;
            run = list[i].identity;
        }
    for (size_t i = 0; i < count; i++)
        out[i] = (several && list[i].identity != run) || helps(list, count, i);
    for (size_t i = 0; i < count; i++)
        if (out[i])
            others[left++] = list[i];
        else
            list[kept++] = list[i];
    for (size_t i = 0; i < left; i++)
        list[kept + i] = others[i];
    if (several)
        say("%s holds several runs: the report is on the newest one", path);
    free(others);
    free(out);
    return kept;
}

/* ---- one rank after another, on a few threads ----------------------------------------- */

typedef int (*on_rank)(struct load_job *l, size_t index, struct gwt_trace *trace,
                       struct gwt_error *error);

struct round {
    struct load_job *l;
    on_rank act;
    size_t count;
    size_t (*at)(const struct load_job *l, size_t unit); /* rank; NULL: the unit itself */
    bool shows;                                          /* this thread has the terminal */
};

static size_t take(struct load_job *l, size_t count)
{
    pthread_mutex_lock(&l->lock);
    size_t unit = l->failed || l->next == count ? count : l->next++;
    pthread_mutex_unlock(&l->lock);
    return unit;
}

static void finish(struct round *r, const struct load_source *s, int rc,
                   const struct gwt_error *error)
{
    struct load_job *l = r->l;
    pthread_mutex_lock(&l->lock);
    l->done++;
    if (rc == -ENOMEM)
        l->failed = rc;
    if (rc && rc != -ENODATA)
        say("%s: %s", s->path, *error->text ? error->text : "out of memory");
    if (r->shows)
        progress_show(&l->progress, l->done, l->units);
    pthread_mutex_unlock(&l->lock);
}

static void *work(void *arg)
{
    struct round *r = arg;
    struct load_job *l = r->l;
    for (size_t unit; (unit = take(l, r->count)) < r->count;) {
        size_t rank = r->at ? r->at(l, unit) : unit;
        struct load_source *s = &l->sources[rank];
        struct gwt_error error = {""};
        struct gwt_trace *trace;
        int rc = s->error;
        if (rc) {
            error = (struct gwt_error){""};
            rc = -ENODATA; /* said already */
        } else if (!(rc = gwt_open(s->path, &trace, &error))) {
            rc = r->act(l, unit, trace, &error);
            gwt_close(trace);
        }
        finish(r, s, rc, &error);
    }
    return NULL;
}

static int each_rank(struct load_job *l, on_rank act, size_t count,
                     size_t (*at)(const struct load_job *, size_t))
{
    struct round rounds[THREADS_MOST];
    pthread_t threads[THREADS_MOST];
    size_t cpus = gwa_cpus(), want = cpus > THREADS_MOST ? THREADS_MOST : cpus, made = 0;
    if (want > count)
        want = count ? count : 1;
    l->next = 0;
    l->options.threads = (unsigned)(cpus / want); /* of each rank's analysis */
    for (size_t i = 0; i < want; i++)
        rounds[i] = (struct round){.l = l, .act = act, .count = count, .at = at, .shows = i == 0};
    while (made + 1 < want && !pthread_create(&threads[made], NULL, work, &rounds[made + 1]))
        made++;
    work(&rounds[0]);
    for (size_t i = 0; i < made; i++)
        pthread_join(threads[i], NULL);
    return l->failed;
}

/* ---- what is done to each -------------------------------------------------------------- */

static int scan(struct load_job *l, size_t index, struct gwt_trace *trace, struct gwt_error *error)
{
    int rc = gwa_job_scan(l->job, index, trace, &l->options, error);
    if (rc)
        l->sources[index].error = rc;
    return rc;
}

static int analyse(struct load_job *l, size_t index, struct gwt_trace *trace,
                   struct gwt_error *error)
{
    struct gwa_process *p;
    if (!load_chosen(l->sources, l->count, index, l->number))
        return 0;
    int rc = gwa_job_analyse(l->job, index, trace, &l->options, &p, error);
    if (rc) {
        l->sources[index].error = rc;
        return rc;
    }
    pthread_mutex_lock(&l->lock);
    l->each(index, p, l->arg);
    pthread_mutex_unlock(&l->lock);
    gwa_free(p);
    return 0;
}

static size_t look_at(const struct load_job *l, size_t look)
{
    return gwa_job_look_at(l->job, look);
}

static int look(struct load_job *l, size_t index, struct gwt_trace *trace, struct gwt_error *error)
{
    return gwa_job_look(l->job, index, trace, &l->options, error);
}

int load_job(struct load_job *l, const struct gwa_job_result **out)
{
    size_t good = 0;
    l->job = gwa_job_new(l->count);
    pthread_mutex_init(&l->lock, NULL);
    l->units = 2 * l->count;
    int rc = l->job ? 0 : -ENOMEM;
    progress_begin(&l->progress);
    if (!rc)
        rc = each_rank(l, scan, l->count, NULL);
    if (!rc)
        rc = gwa_job_join(l->job);
    if (!rc)
        rc = each_rank(l, analyse, l->count, NULL);
    if (!rc && l->number < 0)
        rc = each_rank(l, look, gwa_job_looks(l->job), look_at);
    if (!rc)
        rc = gwa_job_finish(l->job, out);
    progress_end(&l->progress);
    for (size_t i = 0; i < l->count; i++)
        good += !l->sources[i].error;
    if (rc == -ENOMEM)
        say("out of memory");
    return rc || !good ? TOOL_USAGE : TOOL_FINE;
}

void load_job_free(struct load_job *l)
{
    gwa_job_free(l->job);
    pthread_mutex_destroy(&l->lock);
}
