#include "tally.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct progress {
    const struct gwa_options *options;
    uint64_t done, total;
};

#define TICK 0x100000u /* events */

static int tick(void *arg)
{
    struct progress *p = arg;
    p->done += TICK;
    if (!p->options->progress)
        return 0;
    return p->options->progress(p->options->progress_arg, p->done, p->total) ? -ECANCELED : 0;
}

static int prepare(struct gwa_tally *t, struct gwt_trace *trace, struct progress *progress,
                   struct gwt_error *error)
{
    t->trace = trace;
    t->end = INT64_MIN;
    t->ranges.all = true;
    t->apis = calloc(GWA_APIS, sizeof(*t->apis));
    t->streams = calloc(GWA_STREAMS, sizeof(*t->streams));
    t->idle = gwa_idle_new(trace, &t->ranges);
    t->durations = gwa_durations_new(trace);
    if (!t->apis || !t->streams || !t->idle || !t->durations)
        return -ENOMEM;
    if (!progress->options->range)
        return 0;
    return gwa_ranges_find(&t->ranges, trace, progress->options->range, tick, progress, error);
}

static int pass(struct gwa_tally *t, struct progress *progress, uint64_t *events)
{
    struct gwt_event e;
    int rc = 0;
    gwt_rewind(t->trace);
    while (!rc && gwt_next(t->trace, &e) > 0) {
        rc = gwa_tally_event(t, &e);
        if (!rc)
            rc = gwa_durations_event(t->durations, &e);
        if ((++*events & (TICK - 1)) == 0 && !rc)
            rc = tick(progress);
    }
    return rc;
}

/* At most so many events tell what is not known before a run; then all are placed in time. */
#define LEARN_EVENTS 300000u

static int run_timeline(struct gwa_tally *t, const struct gwa_model *model, uint64_t most,
                        struct progress *progress)
{
    struct gwt_event e;
    uint64_t events = 0;
    int rc = 0;
    gwa_timeline_free(t->timeline);
    t->timeline = gwa_timeline_new(t->trace, &t->ranges, t->durations, model);
    if (!t->timeline)
        return -ENOMEM;
    gwt_rewind(t->trace);
    while (!rc && events < most && gwt_next(t->trace, &e) > 0) {
        rc = gwa_timeline_event(t->timeline, &e);
        if ((++events & (TICK - 1)) == 0 && !rc)
            rc = tick(progress);
    }
    return rc;
}

/* The last pass, where there are durations to place in time. */
static int timeline(struct gwa_tally *t, struct progress *progress)
{
    struct gwa_model model = {.start_ns = progress->options->start_us * 1e3};
    int rc = gwa_durations_fit(t->durations);
    if (rc || !gwa_durations_samples(t->durations))
        return rc;
    if ((rc = run_timeline(t, &model, LEARN_EVENTS, progress)))
        return rc;
    model = gwa_timeline_model(t->timeline);
    if ((rc = run_timeline(t, &model, UINT64_MAX, progress)))
        return rc;
    return gwa_timeline_finish(t->timeline);
}

int gwa_analyse(struct gwt_trace *trace, const struct gwa_options *options,
                struct gwa_process **out, struct gwt_error *error)
{
    struct progress progress = {.options = options};
    struct gwa_tally *t = calloc(1, sizeof(*t));
    struct gwa_process *p = calloc(1, sizeof(*p));
    uint64_t events = 0;
    int rc = -ENOMEM;

    *out = NULL;
    if (!t || !p)
        goto out;
    bool sampled = gwt_counter(trace, GWT_C_SAMPLES) > gwt_counter(trace, GWT_C_SAMPLES_VOID);
    progress.total = gwt_coverage(trace)->events * (1u + !!options->range + sampled);
    if ((rc = prepare(t, trace, &progress, error)) || (rc = pass(t, &progress, &events)))
        goto out;
    if (!events) {
        snprintf(error->text, sizeof(error->text), "no event was recorded");
        rc = -ENODATA;
        goto out;
    }
    if ((rc = timeline(t, &progress)))
        goto out;
    gwa_identify(trace, &p->identity);
    p->coverage = gwt_coverage(trace);
    p->intervals = t->ranges.count;
    if ((rc = gwa_finish_devices(t, p)) || (rc = gwa_finish_calls(t, p)) ||
        (rc = gwa_finish_stuck(t, p)))
        goto out;
    gwa_finish_quality(t, p);
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
    free(d->gaps);
    free(d->graphs);
}

void gwa_free(struct gwa_process *p)
{
    if (!p)
        return;
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
