#include "findings.h"
#include "memory.h"
#include "passes.h"
#include "small.h"
#include "tally.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct progress {
    const struct gwa_options *options;
    uint64_t done, total;
};

static int tick(void *arg)
{
    struct progress *p = arg;
    p->done += GWA_TICK;
    if (!p->options->progress)
        return 0;
    return p->options->progress(p->options->progress_arg, p->done, p->total) ? -ECANCELED : 0;
}

static int prepare(struct gwa_tally *t, struct gwt_trace *trace, struct progress *progress,
                   struct gwt_error *error)
{
    const struct gwa_options *o = progress->options;
    t->trace = trace;
    t->workers = o->threads;
    t->room = GWA_TALLY_ROOM;
    t->end = INT64_MIN;
    t->first_capture = INT64_MAX;
    t->ranges.all = true;
    t->durations = gwa_durations_new(trace);
    t->steps = gwa_steps_new(trace, o->step_range, o->step_kernel);
    t->memory = gwa_memory_new(trace);
    t->step_calls = gwa_step_calls_new();
    if (!t->durations || !t->steps || !t->memory || !t->step_calls)
        return -ENOMEM;
    if (!o->range)
        return 0;
    return gwa_ranges_find(&t->ranges, trace, o->range, tick, progress, error);
}

/* ---- what times are of ---------------------------------------------------------------- */

/* post: the span of steps [from, to), counted over those that are a loop's. */
static bool steps_asked(const struct gwa_steps *steps, uint32_t from, uint32_t to,
                        struct gwa_interval *out)
{
    const struct gwa_step *list = gwa_steps_list(steps);
    uint32_t n = 0;
    for (size_t i = 0; i < gwa_steps_count(steps); i++) {
        if (list[i].kind == GWA_STEP_OTHER)
            continue;
        if (n == from)
            out->from = list[i].from;
        if (n >= from && n < to)
            out->to = list[i].to;
        n++;
    }
    return from < to && from < n;
}

/* post: what of the ranges lies in [from, to). */
static int cut(const struct gwa_ranges *ranges, struct gwa_interval span, struct gwa_ranges *out)
{
    size_t count = ranges->all ? 1 : ranges->count;
    const struct gwa_interval *list = ranges->all ? &span : ranges->list;
    *out = (struct gwa_ranges){.list = calloc(count + 1, sizeof(*out->list)), .room = count + 1};
    if (!out->list)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        struct gwa_interval part = list[i];
        if (part.from < span.from)
            part.from = span.from;
        if (part.to > span.to)
            part.to = span.to;
        if (part.from < part.to)
            out->list[out->count++] = part;
    }
    return 0;
}

/* post: what of the ranges lies in the list. */
static int cut_to_list(struct gwa_ranges *ranges, const struct gwa_interval *list, size_t count)
{
    struct gwa_ranges out = {.list = calloc(ranges->count + count + 1, sizeof(*out.list)),
                             .room = ranges->count + count + 1};
    if (!out.list)
        return -ENOMEM;
    for (size_t a = 0, b = 0; a < ranges->count && b < count;) {
        const struct gwa_interval *x = &ranges->list[a], *y = &list[b];
        struct gwa_interval both = {x->from > y->from ? x->from : y->from,
                                    x->to < y->to ? x->to : y->to};
        if (both.from < both.to)
            out.list[out.count++] = both;
        x->to < y->to ? a++ : b++;
    }
    gwa_ranges_free(ranges);
    *ranges = out;
    return 0;
}

static int choose_window(struct gwa_tally *t, const struct gwa_options *o,
                         struct gwa_interval *steps, struct gwt_error *error)
{
    struct gwa_interval span = {INT64_MIN, INT64_MAX};
    if (o->step_from || o->step_to) {
        if (!steps_asked(t->steps, o->step_from, o->step_to, &span)) {
            snprintf(error->text, sizeof(error->text), "no steps %u to %u in this %s", o->step_from,
                     o->step_to, o->range ? "range" : "recording");
            return -ENOENT;
        }
        t->windowed = true;
    } else if (!o->whole) {
        t->windowed = gwa_steps_steady(t->steps, &span.from, &span.to);
    }
    *steps = span;
    t->windowed |= o->within != NULL;
    if (!t->windowed && t->ranges.all) {
        t->window = t->ranges;
        return 0;
    }
    int rc = cut(&t->ranges, span, &t->window);
    return rc || !o->within ? rc : cut_to_list(&t->window, o->within, o->within_count);
}

/* ---- placing in time and in steps ------------------------------------------------------ */

static int new_timeline(struct gwa_tally *t, struct gwa_ranges *ranges, const struct gwa_options *o,
                        const struct gwa_model *model)
{
    gwa_timeline_free(t->timeline);
    t->timeline = gwa_timeline_new(t->trace, ranges, t->durations, model);
    if (!t->timeline)
        return -ENOMEM;
    gwa_timeline_comm(t->timeline, o->comm, o->comm_count);
    return 0;
}

static int learn_model(struct gwa_tally *t, const struct gwa_options *o, struct gwa_model *model)
{
    int rc = new_timeline(t, &t->ranges, o, model);
    if (!rc && !(rc = gwa_pass_learn(t)))
        *model = gwa_timeline_model(t->timeline);
    return rc;
}

/* After the first pass. */
static int times(struct gwa_tally *t, struct progress *progress, struct gwa_interval *steps,
                 struct gwt_error *error)
{
    const struct gwa_options *o = progress->options;
    struct gwa_model model = {.start_ns = o->start_us * 1e3};
    bool sampled = !o->counts_only && gwa_durations_samples(t->durations) > 0;
    int rc = choose_window(t, o, steps, error);
    if (rc)
        return rc;
    if (!(t->idle = gwa_idle_new(t->trace, &t->window)))
        return -ENOMEM;
    if (sampled &&
        ((rc = learn_model(t, o, &model)) || (rc = new_timeline(t, &t->window, o, &model))))
        return rc;
    return gwa_pass_place(t, tick, progress);
}

int gwa_analyse(struct gwt_trace *trace, const struct gwa_options *options,
                struct gwa_process **out, struct gwt_error *error)
{
    struct progress progress = {.options = options};
    struct gwa_tally *t = calloc(1, sizeof(*t));
    struct gwa_process *p = calloc(1, sizeof(*p));
    int rc = -ENOMEM;

    *out = NULL;
    if (!t || !p)
        goto out;
    progress.total = gwt_coverage(trace)->events * (2u + !!options->range);
    if ((rc = prepare(t, trace, &progress, error)) || (rc = gwa_pass_count(t, tick, &progress)))
        goto out;
    if (!t->events) {
        snprintf(error->text, sizeof(error->text), "no event was recorded");
        rc = -ENODATA;
        goto out;
    }
    struct gwa_interval steps;
    if ((rc = times(t, &progress, &steps, error)))
        goto out;
    p->from = steps.from;
    p->to = steps.to;
    gwa_identify(trace, &p->identity);
    p->coverage = gwt_coverage(trace);
    p->intervals = t->ranges.count;
    if ((rc = gwa_finish_devices(t, p)) || (rc = gwa_finish_calls(t, p)) ||
        (rc = gwa_finish_stuck(t, p)) || (rc = gwa_steps_summary(t->steps, &p->steps)) ||
        (rc = gwa_step_calls_finish(t->step_calls, trace, p)))
        goto out;
    gwa_finish_quality(t, p);
    for (size_t i = 0; i < p->devices_count; i++) {
        gwa_small_work(&p->devices[i]);
        if ((rc = gwa_memory_finish(t->memory, t->steps, &p->devices[i])))
            goto out;
    }
    if ((rc = gwa_find(trace, p)))
        goto out;
    *out = p;
    p = NULL;
out:
    if (rc == -ENOMEM)
        snprintf(error->text, sizeof(error->text), "out of memory");
    gwa_free(p);
    if (t)
        gwa_tally_free(t);
    free(t);
    return rc;
}

static void free_device(struct gwa_device *d)
{
    for (size_t i = 0; i < d->kernels_count; i++)
        free((char *)d->kernels[i].name);
    free(d->kernels);
    free(d->transfers);
    gwa_attribution_release(d);
    free(d->gaps);
    free(d->graphs);
}

void gwa_free(struct gwa_process *p)
{
    if (!p)
        return;
    gwa_findings_free(p);
    gwa_step_calls_release(p);
    for (size_t i = 0; i < p->devices_count; i++)
        free_device(&p->devices[i]);
    free(p->devices);
    free(p->streams);
    free(p->threads);
    free(p->collectives);
    free(p->apis);
    free(p->quality.stuck);
    free(p);
}
