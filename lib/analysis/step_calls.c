#include "step_calls.h"
#include "grow.h"
#include "kinds.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct gwa_step_calls {
    uint64_t *signatures; /* executed launches, by signature id */
    size_t signatures_count;
    uint64_t *graphs; /* launches, by graph id */
    size_t graphs_count;
    uint64_t unnamed; /* kernels whose id is not believed */
    uint64_t *apis;   /* calls, by id */
    size_t apis_count;
    uint64_t captures; /* in unusual steps too: a loop that captures now and then */
};

struct gwa_step_calls *gwa_step_calls_new(void)
{
    return calloc(1, sizeof(struct gwa_step_calls));
}

void gwa_step_calls_free(struct gwa_step_calls *s)
{
    if (!s)
        return;
    free(s->signatures);
    free(s->graphs);
    free(s->apis);
    free(s);
}

static int count(uint64_t **list, size_t *size, uint32_t id, uint64_t *lost)
{
    int rc = id < *size ? 0 : gwa_grow((void **)list, size, id, sizeof(**list));
    if (!rc)
        (*list)[id]++;
    else if (rc == -ERANGE)
        ++*lost, rc = 0;
    return rc;
}

int gwa_step_calls_event(struct gwa_step_calls *s, const struct gwt_event *e, bool steady)
{
    if (e->kind == GWT_CAPTURE && e->flags & GWT_F_CLOSING && !e->status)
        s->captures++;
    if (!steady || e->level == GWT_LEVEL_NONE || !gwa_executed(e))
        return 0;
    if (e->kind == GWT_LAUNCH)
        return count(&s->signatures, &s->signatures_count, e->arg, &s->unnamed);
    int rc = count(&s->apis, &s->apis_count, e->api, &s->unnamed);
    if (!rc && e->kind == GWT_GRAPH_LAUNCH)
        rc = count(&s->graphs, &s->graphs_count, e->arg, &s->unnamed);
    return rc;
}

/* ---- by name ------------------------------------------------------------------------------ */

/* Kernels by name id; 0: none. */
struct sums {
    uint64_t *list;
    size_t count;
};

static int add_signature(struct sums *sums, const struct gwt_trace *trace, uint32_t id, uint64_t n)
{
    struct gwt_signature_info info = {0};
    gwt_signature(trace, id, &info);
    int rc = gwa_grow((void **)&sums->list, &sums->count, info.name_id, sizeof(*sums->list));
    if (rc && rc != -ERANGE)
        return rc;
    if (!rc || sums->count)
        sums->list[rc ? 0 : info.name_id] += n;
    return 0;
}

static int add_graph(struct sums *sums, const struct gwt_trace *trace, uint32_t id, uint64_t n)
{
    struct gwt_graph_info info;
    int rc = 0;
    if (!gwt_graph(trace, id, &info))
        return 0;
    for (uint32_t i = 0; i < info.graph->items && !rc; i++)
        if (info.items[i].kind == GWT_LAUNCH)
            rc = add_signature(sums, trace, info.items[i].signature, n * info.items[i].count);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    const char *x = ((const struct gwa_per_step *)a)->name;
    const char *y = ((const struct gwa_per_step *)b)->name;
    return x && y ? strcmp(x, y) : !!x - !!y;
}

static int name_kernels(const struct sums *sums, const struct gwt_trace *trace, size_t steps,
                        struct gwa_process *p)
{
    size_t n = 0;
    for (size_t i = 0; i < sums->count; i++)
        n += sums->list[i] > 0;
    p->step_kernels = calloc(n ? n : 1, sizeof(*p->step_kernels));
    if (!p->step_kernels)
        return -ENOMEM;
    for (size_t i = 0; i < sums->count; i++) {
        if (!sums->list[i])
            continue;
        const char *mangled = i ? gwt_string(trace, (uint32_t)i) : NULL;
        char *name = mangled ? gwa_demangle(mangled) : NULL;
        if (mangled && !name)
            return -ENOMEM;
        p->step_kernels[p->step_kernels_count++] =
            (struct gwa_per_step){name, (double)sums->list[i] / (double)steps};
    }
    qsort(p->step_kernels, p->step_kernels_count, sizeof(*p->step_kernels), by_name);
    return 0;
}

static int kernels(const struct gwa_step_calls *s, const struct gwt_trace *trace, size_t steps,
                   struct gwa_process *p)
{
    struct sums sums = {0};
    int rc = 0;
    for (size_t i = 0; i < s->signatures_count && !rc; i++)
        if (s->signatures[i])
            rc = add_signature(&sums, trace, (uint32_t)i, s->signatures[i]);
    if (!rc && s->unnamed)
        rc = add_signature(&sums, trace, 0, s->unnamed);
    for (size_t i = 0; i < s->graphs_count && !rc; i++)
        if (s->graphs[i])
            rc = add_graph(&sums, trace, (uint32_t)i, s->graphs[i]);
    if (!rc)
        rc = name_kernels(&sums, trace, steps, p);
    free(sums.list);
    return rc;
}

static int calls(const struct gwa_step_calls *s, const struct gwt_trace *trace, size_t steps,
                 struct gwa_process *p)
{
    size_t n = 0;
    for (size_t i = 0; i < s->apis_count; i++)
        n += s->apis[i] > 0;
    p->step_calls = calloc(n ? n : 1, sizeof(*p->step_calls));
    if (!p->step_calls)
        return -ENOMEM;
    for (size_t i = 0; i < s->apis_count; i++) {
        if (!s->apis[i])
            continue;
        const char *name = gwt_api_name(trace, (uint16_t)i);
        p->step_calls[p->step_calls_count++] =
            (struct gwa_per_step){name ? name : "(unknown)", (double)s->apis[i] / (double)steps};
    }
    qsort(p->step_calls, p->step_calls_count, sizeof(*p->step_calls), by_name);
    return 0;
}

int gwa_step_calls_finish(const struct gwa_step_calls *s, const struct gwt_trace *trace,
                          struct gwa_process *p)
{
    size_t steps = p->steps.steady;
    p->steps.captures_mean =
        p->steps.count ? (double)s->captures / (double)p->steps.count : (double)NAN;
    if (!steps)
        return 0;
    int rc = kernels(s, trace, steps, p);
    return rc ? rc : calls(s, trace, steps, p);
}

void gwa_step_calls_release(struct gwa_process *p)
{
    for (size_t i = 0; i < p->step_kernels_count; i++)
        free((char *)p->step_kernels[i].name);
    free(p->step_kernels);
    free(p->step_calls);
}
