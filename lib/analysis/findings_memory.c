/* Findings on memory, copies and communication. */
#include "findings_internal.h"
#include "small.h"

#include <math.h>

/* ---- running out ----------------------------------------------------------------------- */

/* A retry in the warm-up is how the caching allocator settles; more of them, or one that takes
 * its share of time, is a job at its limit. */
#define RETRIES 3

bool gwa_rule_ALLOC_RETRY(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_device_memory *m = &v->d->memory;
    double wall_ms = v->p->window.wall_s * 1e3; /* retries count over all of it */
    double pct = wall_ms > 0 ? 100 * m->retry_ms / wall_ms : NAN;
    double idle = v->claims[GWA_FIND_ALLOC_CHURN].pct; /* its frees and allocations */
    if (!m->retries)
        return false;
    WHAT("%llu allocations failed for want of memory and succeeded after cached blocks had been "
         "given back, %s each",
         (unsigned long long)m->retries, MS(m->retry_ms / (double)m->retries));
    if (pct > 0)
        WHAT(": %s of the time", PCT(pct));
    WHAT(".");
    f->f.share_pct = f->f.bound_pct = v->timed ? fmin(idle, pct) : NAN;
    if (m->retries < RETRIES && !(pct >= 1))
        f->rank = GWA_RANK_HINT;
    gwa_evidence(f, "retries", (double)m->retries);
    gwa_evidence(f, "retries_per_step",
                 v->p->steps.all ? (double)m->retries / (double)v->p->steps.all : NAN);
    gwa_evidence(f, "retry_ms", m->retry_ms);
    gwa_evidence(f, "used_bytes", m->used_bytes >= 0 ? (double)m->used_bytes : NAN);
    gwa_evidence(f, "memory_bytes", v->d->memory_bytes ? (double)v->d->memory_bytes : NAN);
    f->f.confidence = GWA_HIGH;
    return true;
}

/* Memory is allocated for what is kept, and none is given back. A generation loop's cache grows by
 * design. */
static bool grows(const struct gwa_view *v)
{
    return v->d->memory.growth_bytes_per_step > 0 && !v->p->steps.by_token && !v->churning;
}

/* No run is longer; a smaller leak ends none. */
#define STEPS_MOST 1e6

bool gwa_rule_MEM_GROWTH(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_device_memory *m = &v->d->memory;
    double idle = v->claims[GWA_FIND_ALLOC_CHURN].pct;
    if (!(m->growth_bytes_per_step > 0) || v->p->steps.by_token)
        return false;
    WHAT("Memory that is held between steps grows by %s in each step",
         BYTES(m->growth_bytes_per_step));
    if (m->steps_to_full >= 0)
        WHAT("; at this rate the GPU is full after about %s more steps", COUNT(m->steps_to_full));
    WHAT(".");
    if (!(m->steps_to_full <= STEPS_MOST))
        f->rank = GWA_RANK_HINT;
    if (grows(v) && idle >= GWA_MENTION_PCT) {
        WHAT(" Allocating it left the GPU idle %s of the time.", PCT(idle));
        f->f.share_pct = f->f.bound_pct = idle;
    }
    gwa_evidence(f, "growth_bytes_per_step", m->growth_bytes_per_step);
    gwa_evidence(f, "steps_to_full", m->steps_to_full);
    gwa_evidence(f, "baseline_bytes", m->baseline_bytes >= 0 ? (double)m->baseline_bytes : NAN);
    gwa_evidence(f, "headroom_bytes", m->headroom_bytes >= 0 ? (double)m->headroom_bytes : NAN);
    f->f.confidence = v->p->steps.confidence < 0.5 ? GWA_LOW : GWA_HIGH;
    return true;
}

/* ---- allocating --------------------------------------------------------------------------- */

/* Memory is allocated wherever it is needed next; what frees it is the line to change. */
static const char *line_that_frees(const struct gwa_device *d)
{
    static const char *const frees[] = {"Free", "MemUnmap", "MemRelease", NULL};
    const struct gwa_site *most = NULL;
    for (size_t i = 0; i < d->sites_count; i++) {
        const struct gwa_site *s = &d->sites[i];
        if (s->python && (gwa_named(s->api, frees) || gwa_named(s->before, frees)) &&
            (!most || s->idle_ms > most->idle_ms))
            most = s;
    }
    return most ? most->python : NULL;
}

bool gwa_rule_ALLOC_CHURN(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_claim *c = &v->claims[GWA_FIND_ALLOC_CHURN];
    const struct gwa_device_memory *m = &v->d->memory;
    if (m->retries >= RETRIES || grows(v)) /* then it is what retries do, or what is kept */
        return false;
    if (!(v->churning && m->allocs_per_step >= GWA_EVERY_STEP) && !(c->pct >= GWA_MENTION_PCT))
        return false;
    WHAT("GPU memory is allocated and freed while the loop runs");
    if (m->allocs_per_step > 0 || m->frees_per_step > 0)
        WHAT(": %s allocations and %s frees in each step, %s", COUNT(m->allocs_per_step),
             COUNT(m->frees_per_step), MS(m->alloc_ms_per_step));
    if (c->top) {
        WHAT("; the GPU waited %s of the time for it and what belongs to it", PCT(c->pct));
        if (line_that_frees(v->d))
            WHERE("%s", line_that_frees(v->d));
        gwa_cite_claim(f, v, c);
    }
    WHAT(".");
    gwa_evidence(f, "allocs_per_step", m->allocs_per_step);
    gwa_evidence(f, "frees_per_step", m->frees_per_step);
    gwa_evidence(f, "alloc_ms_per_step", m->alloc_ms_per_step);
    gwa_evidence(f, "allocations", (double)v->p->allocations.device_calls);
    f->f.confidence = v->churning ? GWA_HIGH : GWA_MEDIUM;
    return true;
}

bool gwa_rule_PIN_CHURN(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_claim *c = &v->claims[GWA_FIND_PIN_CHURN];
    const struct gwa_device_memory *m = &v->d->memory;
    if (!v->pinning && !(c->pct >= GWA_MENTION_PCT))
        return false;
    WHAT("Host memory is pinned anew while the loop runs");
    if (m->host_allocs_per_step > 0)
        WHAT(", %s in each step", TIMES(m->host_allocs_per_step));
    if (c->top) {
        WHAT("; the GPU waited %s of the time for it", PCT(c->pct));
        gwa_cite_claim(f, v, c);
    }
    WHAT(".");
    gwa_evidence(f, "host_allocs_per_step", m->host_allocs_per_step);
    gwa_evidence(f, "host_allocations", (double)v->p->allocations.host_calls);
    f->f.confidence = GWA_HIGH;
    return true;
}

/* ---- copies ---------------------------------------------------------------------------------- */

struct moved {
    double calls, bytes, pageable, blocking_ms, busy_ms, exposed_ms;
};

static struct moved moved(const struct gwa_device *d, unsigned direction, bool pageable_only)
{
    struct moved m = {0};
    for (size_t i = 0; i < d->transfers_count; i++) {
        const struct gwa_transfer *t = &d->transfers[i];
        bool pageable = t->memory == GWA_MEM_PAGEABLE;
        if (t->direction != direction || (pageable_only && !pageable))
            continue;
        m.calls += (double)t->calls;
        m.bytes += (double)t->bytes;
        m.pageable += pageable ? (double)t->bytes : 0;
        m.blocking_ms += t->blocking_ms > 0 ? t->blocking_ms : 0;
        if (t->busy_ms > 0 && t->exposed_pct >= 0) {
            m.busy_ms += t->busy_ms;
            m.exposed_ms += t->busy_ms * t->exposed_pct / 100;
        }
    }
    return m;
}

static void cite_moved(struct gwa_draft *f, const struct gwa_view *v, const struct moved *m)
{
    gwa_evidence(f, "copies", m->calls);
    gwa_evidence(f, "bytes", m->bytes);
    gwa_evidence(f, "h2d_bytes_per_step", v->stepped ? v->p->steps.h2d_bytes.median : NAN);
    gwa_evidence(f, "gb_per_s", m->busy_ms > 0 ? m->bytes / m->busy_ms / 1e6 : NAN);
    gwa_evidence(f, "in_calls_ms", m->blocking_ms > 0 ? m->blocking_ms : NAN);
    gwa_evidence(f, "exposed_ms", m->exposed_ms);
}

/* The line that waits for a copy to the device. */
static void place_copy(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_drain *most = NULL;
    for (size_t i = 0; i < v->d->drains_count; i++) {
        const struct gwa_drain *r = &v->d->drains[i];
        if (!r->bytes && r->python && (!most || r->waited_ms > most->waited_ms))
            most = r;
    }
    if (most)
        WHERE("%s", most->python);
}

bool gwa_rule_H2D_PAGEABLE(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_claim *c = &v->claims[GWA_FIND_H2D_PAGEABLE];
    const struct gwa_step_summary *s = &v->p->steps;
    struct moved m = moved(v->d, GWT_H2D, true);
    double pct = gwa_exposed_pct(v, GWT_H2D, true) + c->pct;
    if (!v->timed || v->offloading || !(m.calls > 0) || m.bytes <= m.calls * GWA_SMALL_COPY ||
        !(pct >= GWA_MENTION_PCT))
        return false;
    WHAT("%s", BYTES(v->stepped ? fmin(s->h2d_bytes.median, s->pageable_bytes.median) : m.bytes));
    WHAT("%s copied to the GPU from pageable memory, %s a call; nothing computed meanwhile "
         "for %s of the time",
         v->stepped ? " a step are" : " were", BYTES(m.bytes / m.calls), PCT(pct));
    if (m.blocking_ms > 0)
        WHAT(", and each call held the host %s", MS(m.blocking_ms / m.calls));
    WHAT(".");
    if (c->top)
        gwa_cite_claim(f, v, c);
    else
        place_copy(v, f);
    cite_moved(f, v, &m);
    f->f.share_pct = f->f.bound_pct = pct;
    f->f.confidence = GWA_HIGH;
    return true;
}

bool gwa_rule_OFFLOAD(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_claim *c = &v->claims[GWA_FIND_OFFLOAD];
    struct moved in = moved(v->d, GWT_H2D, false), out = moved(v->d, GWT_D2H, false);
    double pct = gwa_exposed_pct(v, GWT_H2D, false) + gwa_exposed_pct(v, GWT_D2H, false) + c->pct;
    if (!v->offloading || !(pct >= GWA_MENTION_PCT))
        return false;
    double to_host = v->stepped ? v->p->steps.d2h_bytes.median : out.bytes;
    WHAT("%s to the GPU", BYTES(v->stepped ? v->p->steps.h2d_bytes.median : in.bytes));
    if (to_host > 0)
        WHAT(" and %s to the host", BYTES(to_host));
    WHAT("%s, in copies of %s on average", v->stepped ? " in each step" : "",
         BYTES(in.bytes / in.calls));
    if (in.busy_ms > 0)
        WHAT(" at %.3g GB/s", in.bytes / in.busy_ms / 1e6);
    if (in.bytes > 0 && in.pageable > in.bytes / 2)
        WHAT(", from pageable memory");
    WHAT(": weights, gradients or optimizer state, not a batch. The GPU computed nothing "
         "meanwhile for %s of the time.",
         PCT(pct));
    if (c->top)
        gwa_cite_claim(f, v, c);
    cite_moved(f, v, &in);
    gwa_evidence(f, "d2h_bytes", out.bytes);
    gwa_evidence(f, "pageable_pct", in.bytes > 0 ? 100 * in.pageable / in.bytes : NAN);
    f->f.share_pct = f->f.bound_pct = pct;
    f->f.confidence = GWA_MEDIUM; /* by size, number and recurrence */
    return true;
}

/* ---- communication -----------------------------------------------------------------------------
 */

/* Reductions in the backward pass of more than one micro-batch of a step. */
static double excess_pct(const struct gwa_view *v)
{
    const struct gwa_step_summary *s = &v->p->steps;
    double passes = round(s->collective_batches);
    if (!v->timed || !v->stepped || !(passes >= 2) || !(s->collectives.median >= passes))
        return 0;
    double comm = v->d->time.exposed_comm_pct > 0 ? v->d->time.exposed_comm_pct : 0;
    return (comm + v->claims[GWA_FIND_COMM_WAIT].pct) * (passes - 1) / passes;
}

static void cite_collectives(struct gwa_draft *f, const struct gwa_view *v)
{
    const struct gwa_step_summary *s = &v->p->steps;
    gwa_evidence(f, "exposed_comm_pct", v->d->time.exposed_comm_pct);
    gwa_evidence(f, "collectives_per_step", v->stepped ? s->collectives.median : NAN);
    gwa_evidence(f, "collective_bytes_per_step", v->stepped ? s->collective_bytes.median : NAN);
}

bool gwa_rule_COMM_EXCESS(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_step_summary *s = &v->p->steps;
    double pct = excess_pct(v);
    if (!(pct >= GWA_MENTION_PCT))
        return false;
    WHAT("%s collectives (%s) in each optimizer step of %s micro-batches: gradients seem to be "
         "reduced in %s of them, %s of the time.",
         COUNT(s->collectives.median), BYTES(s->collective_bytes.median), COUNT(v->passes),
         s->collective_batches < v->passes ? COUNT(s->collective_batches) : "every one", PCT(pct));
    f->f.share_pct = f->f.bound_pct = pct;
    gwa_evidence(f, "micro_batches", v->passes);
    gwa_evidence(f, "reduced_batches", s->collective_batches);
    cite_collectives(f, v);
    f->f.confidence = GWA_MEDIUM;
    return true;
}

bool gwa_rule_COMM_WAIT(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_claim *c = &v->claims[GWA_FIND_COMM_WAIT];
    if (!v->timed)
        return false;
    double comm = v->d->time.exposed_comm_pct > 0 ? v->d->time.exposed_comm_pct : 0;
    double pct = comm + c->pct - excess_pct(v);
    if (!(pct >= GWA_MENTION_PCT))
        return false;
    WHAT("Communication that no kernel runs beside takes %s of the time", PCT(comm));
    if (c->top)
        WHAT(", and the host's calls for it %s more", PCT(c->pct));
    WHAT("; it includes waiting for ranks that arrive later.");
    if (c->top)
        gwa_cite_claim(f, v, c);
    cite_collectives(f, v);
    f->f.share_pct = f->f.bound_pct = pct;
    f->f.confidence = GWA_MEDIUM;
    return true;
}
