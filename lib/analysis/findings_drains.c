/* Idle that blocking calls brought about: reads, synchronisation, giving memory back. */
#include "findings_internal.h"
#include "small.h"

#include <math.h>
#include <string.h>

static const char *const words_device_sync[] = {"DeviceSynchronize", "CtxSynchronize",
                                                "ThreadSynchronize", NULL};
static const char *const words_event_sync[] = {"EventSynchronize", NULL};
static const char *const words_sync[] = {"Synchronize", "Memcpy", NULL};
/* CUB's reductions, scans and selections are how PyTorch counts what it will return. */
static const char *const words_shape[] = {"cub::", "nonzero", NULL};
/* What autotuners try out. */
static const char *const words_tuned[] = {"conv",  "cudnn",    "triton", "fprop", "dgrad",
                                          "wgrad", "winograd", "fft",    NULL};
static const char *const words_copy[] = {"Memcpy", NULL};
static const char *const words_free[] = {"cudaFree", "MemFree", NULL};

static enum gwa_finding_id drain_owner(const struct gwa_view *v, const struct gwa_drain *r)
{
    if (gwa_named(r->api, words_device_sync))
        return GWA_FIND_DEVICE_SYNC;
    if (!gwa_named(r->api, words_sync))
        return GWA_FIND_NONE; /* cudaFree and the like: `alloc` */
    if (gwa_named(r->api, words_event_sync) && !(r->per_step >= GWA_EVERY_STEP) &&
        (gwa_named(r->kernel, words_tuned) || gwa_named(r->kernel, gwa_gemm_names)))
        return GWA_FIND_AUTOTUNE;
    bool big = (double)r->bytes > GWA_SMALL_COPY;
    if (big && (v->offloading || !(r->per_step >= GWA_EVERY_STEP)))
        return GWA_FIND_NONE; /* saving or offloading: their sites tell */
    if (r->pageable && v->dumping)
        return GWA_FIND_NONE; /* a small tensor among those saved; .item() reads to pinned memory */
    if (!r->bytes && gwa_named(r->api, words_copy) && v->offloading)
        return GWA_FIND_NONE;
    if (r->bytes >= 4 && !big && gwa_named(r->kernel, words_shape))
        return GWA_FIND_SHAPE_SYNC;
    return GWA_FIND_SYNC_PER_STEP;
}

/* Idle of sections that have names of their own, after a call of this name. */
static double named_otherwise(const struct gwa_device *d, const char *api)
{
    double ms = 0;
    for (size_t i = 0; i < d->sites_count; i++) {
        const struct gwa_site *s = &d->sites[i];
        bool brief = s->class == GWA_IDLE_LAUNCH || s->class == GWA_IDLE_DISPATCH ||
                     s->class == GWA_IDLE_SYNC || s->class == GWA_IDLE_COPY;
        if (!brief && s->after && api && !strcmp(s->after, api))
            ms += s->idle_ms;
    }
    return ms;
}

static double idle_after(const struct gwa_device *d, const char *api)
{
    double ms = 0;
    for (size_t i = 0; i < d->drains_count; i++)
        if (d->drains[i].api && api && !strcmp(d->drains[i].api, api))
            ms += d->drains[i].idle_ms;
    return ms;
}

/* A value that is read was computed for it, by one kernel at least, and copied: they go with it. */
#define CALLS_TO_READ 2

static void read_drain(struct gwa_view *v, const struct gwa_drain *r, double share)
{
    double host_us = v->p->launches.host_us_per_launch;
    enum gwa_finding_id id = drain_owner(v, r);
    if (id == GWA_FIND_NONE)
        return;
    struct gwa_reads *out = &v->reads[id];
    out->pct += 100 * r->idle_ms * share / v->wall_ms;
    out->count += (double)r->count;
    if (r->per_step > 0)
        out->per_step += r->per_step;
    if (r->waited_ms > 0)
        out->waited_ms += r->waited_ms;
    if (r->bytes && host_us > 0)
        out->bound_pct += 100 * (double)r->count * CALLS_TO_READ * host_us / 1e3 / v->wall_ms;
    if (r->phase == GWA_PHASE_BACKWARD)
        out->in_backward += (double)r->count;
    if (r->bytes) {
        out->values += (double)r->count;
        if (!out->value || r->idle_ms > out->value->idle_ms)
            out->value = r;
    }
    if (r->python && (!out->python || r->idle_ms > out->python_ms)) {
        out->python = r->python;
        out->python_ms = r->idle_ms;
    }
    if (!out->top || r->idle_ms > out->top->idle_ms)
        out->top = r;
}

/* What blocking calls cost. After a drained queue the device idles until the next launch
 * arrives; of that gap, what is not a section with a cause of its own is theirs. But then the
 * host is no longer ahead, and launches may come late for a while: without waiting, a step takes
 * as long as the host needs for it, or the device, so that up to the time waited is won, out of
 * the idle of late launches. At most, all from the call's entry to the next start is, and what the
 * host did only to read. */
static void claim_reads(struct gwa_view *v)
{
    const struct gwa_time *t = &v->d->time;
    double flow = v->flow_pct;
    double brief =
        flow + gwa_at_least_0(t->idle[GWA_IDLE_SYNC]) + v->claims[GWA_FIND_SYNC_PER_STEP].pct;
    double drained = 0, waited = 0;
    for (size_t i = 0; i < v->d->drains_count; i++) {
        const struct gwa_drain *r = &v->d->drains[i];
        double total = idle_after(v->d, r->api);
        double own = gwa_at_least_0(total - named_otherwise(v->d, r->api));
        if (total > 0 && r->idle_ms > 0)
            read_drain(v, r, own / total);
    }
    for (unsigned i = 0; i < GWA_FINDING_IDS; i++) {
        drained += v->reads[i].pct;
        waited += 100 * v->reads[i].waited_ms / v->wall_ms;
    }
    double cost = fmin(brief, fmax(drained, waited));
    for (unsigned i = 0; i < GWA_FINDING_IDS && drained > 0; i++) {
        double held = v->reads[i].pct * (drained + waited) / drained;
        v->reads[i].bound_pct = fmin(brief, held + v->reads[i].bound_pct);
        v->reads[i].pct *= cost / drained;
    }
    if (drained > 0 && brief > 0)
        v->drained_launch_pct = cost * flow / brief;
}

/* Giving memory back waits for the device, too, and what follows starts on an empty queue. */
static void claim_frees(struct gwa_view *v)
{
    struct gwa_claim *c = &v->claims[GWA_FIND_ALLOC_CHURN];
    double waited = 0, flow = gwa_at_least_0(v->flow_pct - v->drained_launch_pct);
    for (size_t i = 0; i < v->d->sites_count && c->top; i++) {
        const struct gwa_site *s = &v->d->sites[i];
        if (s->class == GWA_IDLE_ALLOC && gwa_named(s->api, words_free) &&
            s->per_step >= GWA_EVERY_STEP && s->host_ms > s->idle_ms)
            waited += 100 * (s->host_ms - s->idle_ms) / v->wall_ms;
    }
    c->pct += fmin(flow, waited);
    v->drained_launch_pct += fmin(flow, waited);
}

void gwa_claim_drains(struct gwa_view *v)
{
    claim_reads(v);
    claim_frees(v);
}
