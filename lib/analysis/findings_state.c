/* What the device does as a whole: at its limit, well used, or not to be told. */
#include "findings_internal.h"

#include <math.h>
#include <string.h>

static double memory_pct(const struct gwa_view *v)
{
    const struct gwa_device_memory *m = &v->d->memory;
    double bytes = (double)v->d->memory_bytes;
    if (!(bytes > 0))
        return NAN;
    if (m->pytorch && m->peak_allocated_bytes >= 0)
        return 100 * (double)m->peak_allocated_bytes / bytes;
    return m->used_bytes >= 0 ? 100 * (double)m->used_bytes / bytes : NAN;
}

/* More than this between the ends of busy time, and neither is known to be right. */
#define INTERVAL_MOST 25.0
#define INTERVAL_VOID 50.0 /* nor is a share of idle time */

static bool vague(const struct gwa_view *v)
{
    const struct gwa_time *t = &v->d->time;
    if (!v->timed || t->guesswork)
        return v->timed;
    /* what is not known of copies leaves open how long the GPU copied, not what it computed */
    return t->busy_high_pct - t->busy_low_pct > INTERVAL_MOST &&
           t->busy_low_pct < GWA_HEALTHY_PCT &&
           v->work_pct + t->busy_high_pct - v->busy_pct > GWA_HEALTHY_PCT;
}

static void cite_state(struct gwa_draft *f, const struct gwa_view *v)
{
    const struct gwa_time *t = &v->d->time;
    gwa_evidence(f, "busy_pct", v->busy_pct);
    gwa_evidence(f, "compute_pct", v->timed ? t->compute_pct : NAN);
    gwa_evidence(f, "busy_low_pct", v->timed ? t->busy_low_pct : NAN);
    gwa_evidence(f, "busy_high_pct", v->timed ? t->busy_high_pct : NAN);
    gwa_evidence(f, "supplied_pct", v->supplied_pct);
    gwa_evidence(f, "memory_pct", memory_pct(v));
}

/* Of the busy time; a kernel that takes less is one of many. */
#define NAMEABLE_PCT 5.0

bool gwa_rule_GPU_BOUND(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_device *d = v->d;
    bool full = memory_pct(v) > GWA_MEMORY_FULL_PCT;
    if (!v->timed || vague(v) || !(gwa_at_limit(v) || (full && v->work_pct >= GWA_HEALTHY_PCT)))
        return false;
    WHAT("The GPU computes %s of the time", PCT(v->work_pct));
    if (gwa_at_limit(v) && v->work_pct < GWA_BOUND_PCT)
        WHAT(" and has work at hand %s of it", PCT(v->supplied_pct));
    if (d->kernels_count && d->kernels[0].name && d->kernels[0].busy_pct >= NAMEABLE_PCT)
        WHAT("; one kernel (%.60s%s) takes %s of that", d->kernels[0].name,
             strlen(d->kernels[0].name) > 60 ? "..." : "", PCT(d->kernels[0].busy_pct));
    if (full)
        WHAT("; %s of its memory was in use at the peak", PCT(memory_pct(v)));
    WHAT(".");
    if (d->prefetches.calls)
        gwa_evidence(f, "managed_prefetches", (double)d->prefetches.calls);
    cite_state(f, v);
    f->f.confidence = d->time.busy_low_pct >= GWA_HEALTHY_PCT ? GWA_HIGH : GWA_MEDIUM;
    return true;
}

bool gwa_rule_HEALTHY(const struct gwa_view *v, struct gwa_draft *f)
{
    if (!v->timed || vague(v) || v->any_gain || memory_pct(v) > GWA_MEMORY_FULL_PCT ||
        v->work_pct < GWA_HEALTHY_PCT || gwa_at_limit(v))
        return false;
    WHAT("The GPU computes %s of the time, and nothing cheap is left to gain.", PCT(v->work_pct));
    cite_state(f, v);
    f->f.confidence = GWA_MEDIUM;
    return true;
}

/* ---- not to be told ------------------------------------------------------------------------ */

static bool too_much_lost(const struct gwa_view *v)
{
    return v->lost > GWA_LOST_SHARE || (v->p->coverage && v->p->coverage->ring_missing);
}

bool gwa_rule_INCONCLUSIVE(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_time *t = &v->d->time;
    if (too_much_lost(v)) {
        f->rank = GWA_RANK_DOUBT;
        WHAT("The recording is incomplete (%s of events are missing): idle time may be calls that "
             "were not recorded.",
             PCT(100 * v->lost));
        REMEDY("Record again with GPUWAIT_FULL=block and enough disk space (GPUWAIT_MAX), and let "
               "the process end.");
    } else if (!v->d->kernels_executed) {
        WHAT("No kernel ran on a GPU while this was recorded.");
        REMEDY("See `gpuwait doctor`, and record a run that uses the GPU.");
    } else if (!v->timed && v->any_gain) { /* a mode that says why, and how to know more */
        return false;
    } else if (!v->timed) {
        WHAT("How long operations take on the GPU was not measured");
        if (t->method && t->provable_idle_pct > 0)
            WHAT("; by the calls alone it was idle at least %s of the time",
                 PCT(t->provable_idle_pct));
        WHAT(".");
        REMEDY("Record again with GPUWAIT_GPU_TIMING=auto, for longer.");
    } else if (vague(v)) {
        if (t->guesswork || t->busy_high_pct - t->busy_low_pct > INTERVAL_VOID)
            f->rank = GWA_RANK_DOUBT;
        WHAT("The GPU was busy between %s and %s of the time: too few operations were timed to "
             "say more.",
             PCT(t->busy_low_pct), PCT(t->busy_high_pct));
        REMEDY("Record for longer, or time more operations: GPUWAIT_GPU_TIMING=2.");
    } else if (v->work_pct < GWA_HEALTHY_PCT && !v->any_gain) {
        bool classed = !isnan(t->idle[GWA_IDLE_LAUNCH]);
        WHAT("The GPU does not compute %s of the time, %s.", PCT(100 - v->work_pct),
             classed ? "for no cause that stands out" : "and the recording does not show why");
        REMEDY("Record more steps of the loop, and mark them with an NVTX range.");
    } else {
        return false;
    }
    gwa_evidence(f, "lost_pct", 100 * v->lost);
    gwa_evidence(f, "samples", (double)gwt_counter(v->trace, GWT_C_SAMPLES));
    if (t->method)
        gwa_evidence(f, "provable_idle_pct", t->provable_idle_pct);
    cite_state(f, v);
    f->f.confidence = GWA_HIGH;
    return true;
}
