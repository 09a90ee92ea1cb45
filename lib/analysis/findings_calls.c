/* Findings on the calls themselves: modes, blocking calls, launches. */
#include "findings_internal.h"
#include "small.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- modes ----------------------------------------------------------------------------- */

static double blocked_pct(const struct gwa_view *v)
{
    double sync = v->d->time.idle[GWA_IDLE_SYNC];
    return v->flow_pct + (sync > 0 ? sync : 0);
}

bool gwa_rule_BLOCKING_MODE(const struct gwa_view *v, struct gwa_draft *f)
{
    const char *mode = gwt_fact(v->trace, "env.CUDA_LAUNCH_BLOCKING");
    if (!mode || !*mode || !strcmp(mode, "0"))
        return false;
    WHAT("CUDA_LAUNCH_BLOCKING=%s: every launch waits until its kernel is done, so the GPU "
         "idles while the host prepares the next",
         mode);
    if (v->timed) {
        f->f.share_pct = f->f.bound_pct = blocked_pct(v);
        WHAT(" (%s of the time, between launches)", PCT(blocked_pct(v)));
        gwa_evidence(f, "idle_pct", blocked_pct(v));
    }
    WHAT(".");
    gwa_evidence_text(f, "CUDA_LAUNCH_BLOCKING", mode);
    gwa_evidence(f, "launch_call_us", v->p->launches.api_us.mean);
    WHERE("the environment of the process");
    f->f.confidence = GWA_HIGH;
    return true;
}

static const struct gwa_api *failing(const struct gwa_process *p, bool captures)
{
    for (size_t i = 0; i < p->apis_count; i++) {
        const struct gwa_api *a = &p->apis[i];
        bool capture = a->kind == GWT_CAPTURE || a->kind == GWT_INSTANTIATE;
        bool other = a->kind == GWT_SYNC || a->kind == GWT_ALLOC || a->kind == GWT_FREE ||
                     a->kind == GWT_COPY || a->kind == GWT_LAUNCH || a->kind == GWT_EVENT_RECORD ||
                     a->kind == GWT_HOST_ALLOC;
        if (a->failed && (captures ? capture : other))
            return a;
    }
    return NULL;
}

bool gwa_rule_CAPTURE_FAIL(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_api *capture = failing(v->p, true), *other = failing(v->p, false);
    if (!capture)
        return false;
    WHAT("A stream capture failed %s (%s)", TIMES((double)capture->failed), capture->name);
    gwa_evidence_text(f, "failed_call", capture->name);
    gwa_evidence(f, "failed", (double)capture->failed);
    if (other) {
        WHAT("; %s also failed, %s, and may be the call that a capture does not allow", other->name,
             TIMES((double)other->failed));
        gwa_evidence_text(f, "offending_call", other->name);
        WHERE("%s", other->name);
    } else {
        WHERE("%s", capture->name);
    }
    WHAT(".");
    f->f.confidence = GWA_HIGH;
    return true;
}

/* ---- blocking calls ---------------------------------------------------------------------- */

void gwa_cite_reads(struct gwa_draft *f, const struct gwa_view *v, const struct gwa_reads *r)
{
    const struct gwa_drain *d = r->top;
    f->waits_per_step = v->stepped ? r->per_step : 0;
    f->f.share_pct = r->pct;
    f->f.bound_pct = fmax(r->pct, r->bound_pct);
    f->f.confidence = v->stepped ? GWA_HIGH : GWA_MEDIUM;
    gwa_evidence(f, "idle_pct", r->pct);
    gwa_evidence(f, "occurrences", r->count);
    gwa_evidence(f, "per_step", v->stepped ? r->per_step : NAN);
    gwa_evidence(f, "waited_ms", r->waited_ms);
    if (!d)
        return;
    gwa_evidence_text(f, "call", d->api);
    if (d->bytes)
        gwa_evidence(f, "bytes_read", (double)d->bytes);
    gwa_evidence_text(f, "kernel_before", d->kernel);
    if (r->python)
        WHERE("%s", r->python);
    else if (gwa_phase_text(d->phase))
        WHERE("%s, %s", gwa_phase_text(d->phase), d->api ? d->api : "a blocking call");
    else if (d->api)
        WHERE("%s", d->api);
}

/* What a read of so many bytes usually is. */
static const char *reading(double bytes)
{
    if (bytes == 1)
        return "one byte: if on a tensor, isnan or isinf, the end of a text";
    if (bytes == 2)
        return "two bytes: .item() of a bf16 or fp16 value";
    if (bytes == 4)
        return "four bytes: .item() of a loss, norm or scale";
    if (bytes == 8)
        return "eight bytes: .item() of an integer";
    return NULL;
}

static double storm_level(const struct gwa_view *v, const struct gwa_reads *r)
{
    if (v->stepped)
        return r->per_step / v->passes / GWA_STORM_READS;
    double launches = (double)v->p->launches.calls;
    return launches > 0 && r->count >= GWA_STORM_READS ? r->count / launches / GWA_STORM_PER_LAUNCH
                                                       : 0;
}

static void say_often(struct gwa_draft *f, const struct gwa_view *v, const struct gwa_reads *r)
{
    if (v->stepped && r->per_step < 0.95)
        WHAT("in most %s", v->p->steps.by_token ? "tokens" : "steps");
    else if (v->stepped)
        WHAT("%s %s", TIMES(r->per_step), v->p->steps.by_token ? "for each token" : "in each step");
    else
        WHAT("%s", TIMES(r->count));
}

/* The few others need no word. */
#define ALL_READ 0.9

static void say_reads(struct gwa_draft *f, const struct gwa_view *v, const struct gwa_reads *r)
{
    const char *what = r->value ? reading((double)r->value->bytes) : NULL;
    double part = r->count > 0 ? r->values / r->count : 0;
    WHAT("The host waits for the GPU ");
    say_often(f, v, r);
    if (what && part < ALL_READ)
        WHAT(", %s of them", COUNT(v->stepped ? part * r->per_step : r->values));
    if (what)
        WHAT("%s to read a value (%s)", part < ALL_READ ? "" : ",", what);
    WHAT(", and lets its queue run empty: the GPU then idles, %s of the time.", PCT(r->pct));
}

#define LEAST_PCT 0.1 /* of which a habit is worth a word even on a GPU at its limit */

bool gwa_rule_SYNC_PER_STEP(const struct gwa_view *v, struct gwa_draft *f)
{
    struct gwa_reads r = v->reads[GWA_FIND_SYNC_PER_STEP];
    double copies = v->claims[GWA_FIND_SYNC_PER_STEP].pct;
    bool often = v->stepped ? r.per_step >= GWA_EVERY_STEP : r.pct >= GWA_MENTION_PCT;
    if (!r.top || !often || storm_level(v, &r) >= 1)
        return false;
    if (copies > r.pct)
        r.pct = copies;
    if (r.pct < LEAST_PCT)
        return false;
    say_reads(f, v, &r);
    gwa_cite_reads(f, v, &r);
    gwa_evidence(f, "small_reads_per_step", v->stepped ? v->p->steps.small_reads.median : NAN);
    return true;
}

#define IN_BACKWARD 0.9

bool gwa_rule_SYNC_STORM(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_reads *r = &v->reads[GWA_FIND_SYNC_PER_STEP];
    if (!r->top || storm_level(v, r) < 1 || !(r->pct >= GWA_MENTION_PCT))
        return false;
    say_reads(f, v, r);
    if (r->in_backward >= IN_BACKWARD * r->count)
        REMEDY("The reads are in backward, where a training loop has none of its own: switch off "
               "torch.autograd.set_detect_anomaly(True), or take .item() and if on a tensor out of "
               "hooks and of your own autograd functions.");
    gwa_cite_reads(f, v, r);
    gwa_evidence(f, "in_backward_pct", r->count > 0 ? 100 * r->in_backward / r->count : NAN);
    return true;
}

bool gwa_rule_SHAPE_SYNC(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_reads *r = &v->reads[GWA_FIND_SHAPE_SYNC];
    if (!r->top || !(r->pct >= GWA_MENTION_PCT))
        return false;
    WHAT("The host waits for the size of a result ");
    say_often(f, v, r);
    WHAT(", before it can go on (%s read after a count or scan): the GPU then idles, %s of the "
         "time.",
         BYTES((double)r->top->bytes), PCT(r->pct));
    gwa_cite_reads(f, v, r);
    if (f->f.confidence > GWA_MEDIUM)
        f->f.confidence = GWA_MEDIUM; /* known by the kernel's name */
    return true;
}

bool gwa_rule_DEVICE_SYNC(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_reads *r = &v->reads[GWA_FIND_DEVICE_SYNC];
    bool often =
        v->stepped ? r->per_step >= GWA_EVERY_STEP : r->count >= 3 && r->pct >= GWA_MENTION_PCT;
    if (!r->top || !often)
        return false;
    WHAT("The host waits until the whole GPU is done (%s), ", r->top->api);
    say_often(f, v, r);
    WHAT("; until the next launch arrives the GPU idles, %s of the time.", PCT(r->pct));
    gwa_cite_reads(f, v, r);
    return true;
}

/* ---- launches ------------------------------------------------------------------------------ */

/* Waiting for single launches, without what blocking calls brought about. */
static double launch_pct(const struct gwa_view *v)
{
    return v->flow_pct > v->drained_launch_pct ? v->flow_pct - v->drained_launch_pct : 0;
}

/* The phase in which most of it happens; OTHER where none stands out. */
static unsigned launch_phase(const struct gwa_view *v)
{
    double ms[GWA_PHASE_COUNT] = {0}, all = 0;
    unsigned most = GWA_PHASE_OTHER;
    for (size_t i = 0; i < v->d->sites_count; i++) {
        const struct gwa_site *s = &v->d->sites[i];
        bool flow = (s->class == GWA_IDLE_LAUNCH && s->origin == GWA_LAUNCH_CALL) ||
                    s->class == GWA_IDLE_DISPATCH;
        if (!flow || s->phase >= GWA_PHASE_COUNT || !(s->idle_ms > 0))
            continue;
        ms[s->phase] += s->idle_ms;
        all += s->idle_ms;
    }
    for (unsigned i = 0; i < GWA_PHASE_COUNT; i++)
        if (ms[i] > ms[most])
            most = i;
    return ms[most] > all / 2 ? most : GWA_PHASE_OTHER;
}

static double kernel_us(const struct gwa_device *d)
{
    double ms = 0, calls = 0;
    for (size_t i = 0; i < d->kernels_count; i++)
        if (d->kernels[i].total_ms > 0) {
            ms += d->kernels[i].total_ms;
            calls += (double)d->kernels[i].calls;
        }
    return calls > 0 ? 1e3 * ms / calls : NAN;
}

/* A helper's share from which it is worth naming. */
#define NAMEABLE_PCT 10.0

static void launch_remedy(const struct gwa_view *v, struct gwa_draft *f, unsigned phase)
{
    const struct gwa_step_summary *s = &v->p->steps;
    const struct gwa_small_work *w = &v->d->small;
    REMEDY("Fewer launches for the same work. ");
    if (phase == GWA_PHASE_OPTIMIZER)
        REMEDY("Most of it is the optimizer: AdamW(fused=True), or foreach=True, instead of a loop "
               "over parameters. ");
    if (s->count && s->graph_launches.median > 0)
        REMEDY("CUDA graphs are replayed already (%s a step): capture what is launched beside them "
               "too, and give each replay more work. ",
               COUNT(s->graph_launches.median));
    else if (s->count && s->identical && s->syncs.median > 0)
        REMEDY("Steps are identical, so one CUDA graph can replay what lies between their waits "
               "for the GPU (%s a step; with none, all of it): "
               "torch.compile(mode=\"reduce-overhead\") or torch.cuda.graph. ",
               COUNT(s->syncs.median));
    else if (s->count && s->identical)
        REMEDY("Steps are identical, so one CUDA graph can replay them: "
               "torch.compile(mode=\"reduce-overhead\") or torch.cuda.graph. ");
    else
        REMEDY("torch.compile fuses small kernels; with fixed shapes mode=\"reduce-overhead\" "
               "replays them as a CUDA graph. ");
    if (s->by_token)
        REMEDY("For generation a static key-value cache is what makes that possible "
               "(cache_implementation=\"static\"). ");
    if (w->tiny_gemm.launches_pct >= NAMEABLE_PCT)
        REMEDY("%s of the kernels are matrix products too small to fill the GPU; %s. ",
               PCT(w->tiny_gemm.launches_pct),
               s->count && s->backward_pct > 0
                   ? "if they are LoRA's, adapt fewer modules or fuse them with the compiler"
                   : "if they are LoRA's, merge the adapters: merge_and_unload()");
    if (w->dequantise.launches_pct >= 1)
        REMEDY("%s of the kernels only dequantise weights%s%s; 8- or 16-bit weights avoid them "
               "where memory allows. ",
               PCT(w->dequantise.launches_pct), w->dequantise.busy_pct > 0 ? ", of busy time " : "",
               w->dequantise.busy_pct > 0 ? PCT(w->dequantise.busy_pct) : "");
}

bool gwa_rule_LAUNCH_BOUND(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_launches *l = &v->p->launches;
    const struct gwa_step_summary *s = &v->p->steps;
    double pct = launch_pct(v), each = kernel_us(v->d);
    unsigned phase = launch_phase(v);
    if (!(pct >= GWA_MENTION_PCT))
        return false;
    WHAT("The GPU ran out of work %s of the time because launches came too slowly", PCT(pct));
    if (l->host_us_per_launch > 0)
        WHAT(": one costs the host %s", MS(l->host_us_per_launch / 1e3));
    if (l->host_us_per_launch > 0 && each > 0)
        WHAT(", and the mean kernel lasts %s", MS(each / 1e3));
    if (s->count && s->launches.median > 0)
        WHAT("; %s launch%s a %s", COUNT(s->launches.median), s->launches.median == 1 ? "" : "es",
             s->by_token ? "token" : "step");
    WHAT(".");
    launch_remedy(v, f, phase);
    f->f.share_pct = f->f.bound_pct = pct;
    gwa_evidence(f, "idle_pct", pct);
    gwa_evidence(f, "launches_per_step", s->count ? s->launches.median : NAN);
    gwa_evidence(f, "host_us_per_launch", l->host_us_per_launch);
    gwa_evidence(f, "kernel_mean_us", each);
    gwa_evidence(f, "met_idle_pct", v->d->met_idle_pct);
    gwa_evidence(f, "kernels_under_10us_pct", v->d->small.under_10us.launches_pct);
    gwa_evidence(f, "kernels_below_sms_pct", v->d->small.below_sms.launches_pct);
    gwa_evidence(f, "dequantise_pct", v->d->small.dequantise.launches_pct);
    if (gwa_phase_text(phase)) {
        gwa_evidence_text(f, "phase", gwa_phase_text(phase));
        WHERE("%s", gwa_phase_text(phase));
    }
    /* rests on durations and on when a kernel starts: sure where most launches met an idle device
     */
    f->f.confidence = v->d->met_idle_pct >= 50 ? GWA_HIGH : GWA_MEDIUM;
    return true;
}

static const char *multiplier_text(char b[GWA_NUMBER + 16], double multiplier)
{
    char n[GWA_NUMBER];
    bool most = multiplier > GWA_MULTIPLIER_MOST;
    snprintf(b, GWA_NUMBER + 16, "%s %s", most ? "more than" : "about",
             gwa_count_text(n, most ? GWA_MULTIPLIER_MOST : multiplier));
    return b;
}

/* Twice the batch, at least, or it is not worth a word. */
#define ROOM 2.0

bool gwa_rule_SMALL_BATCH(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_device_memory *m = &v->d->memory;
    /* the idle that launch-bound reports: n times the batch leaves 1/n of its launches */
    double pct = launch_pct(v) * (1 - 1 / fmin(m->batch_multiplier, GWA_MULTIPLIER_MOST));
    double below = v->d->small.below_sms.busy_pct;
    char many[GWA_NUMBER + 16];
    bool waits = pct >= GWA_MATERIAL_PCT && v->work_pct<GWA_HEALTHY_PCT, hollow = below> 50;
    bool fills_up = m->growth_bytes_per_step > 0 && !v->p->steps.by_token;
    if (!(m->batch_multiplier >= ROOM) || (!waits && !hollow) || fills_up)
        return false;
    multiplier_text(many, m->batch_multiplier);
    WHAT("Memory has room for %s times the batch (%s free of %s)", many,
         BYTES((double)m->headroom_bytes), BYTES((double)v->d->memory_bytes));
    if (waits)
        WHAT(", while launches come too slowly for the work in each");
    if (hollow)
        WHAT(", while %s of the busy time is in kernels with fewer blocks than the GPU has SMs",
             PCT(below));
    WHAT(".");
    REMEDY("Raise the batch, by memory to %s times what it is%s: the same launches then carry more "
           "work%s.",
           many, m->from_reserved ? " if no other process uses the GPU" : "",
           v->passes >= 2 ? "; raise it before gradient accumulation, and accumulate less" : "");
    gwa_evidence(f, "batch_multiplier", m->batch_multiplier);
    gwa_evidence(f, "headroom_bytes", (double)m->headroom_bytes);
    gwa_evidence(f, "activation_bytes", (double)m->activation_bytes);
    gwa_evidence(f, "below_sms_busy_pct", below);
    gwa_evidence(f, "micro_batches", v->stepped ? v->p->steps.micro_batches : NAN);
    f->f.share_pct = f->f.bound_pct = waits ? pct : NAN;
    f->f.confidence = GWA_LOW;
    return true;
}

/* Less is an operator that happens to run in both passes. */
#define RECOMPUTED 5.0

bool gwa_rule_RECOMPUTE(const struct gwa_view *v, struct gwa_draft *f)
{
    const struct gwa_step_summary *s = &v->p->steps;
    const struct gwa_device_memory *m = &v->d->memory;
    if (!(s->recompute_pct >= RECOMPUTED))
        return false;
    WHAT("%s of %s forward work during backward (activation checkpointing)", PCT(s->recompute_pct),
         v->timed ? "GPU time repeats" : "launches repeat");
    if (s->recompute_segments > 0)
        WHAT(", in %s segment%s a step", COUNT(s->recompute_segments),
             s->recompute_segments == 1 ? "" : "s");
    WHAT(".");
    if (m->headroom_bytes > 0 && m->activation_bytes > 0 && m->headroom_bytes > m->activation_bytes)
        REMEDY("Memory has room (%s): checkpoint fewer blocks, every second one for a start, with "
               "use_reentrant=False.",
               BYTES((double)m->headroom_bytes));
    f->f.share_pct = f->f.bound_pct =
        v->timed ? s->recompute_pct * v->d->time.compute_pct / 100 : NAN;
    gwa_evidence(f, "recompute_pct", s->recompute_pct);
    gwa_evidence(f, "segments_per_step", s->recompute_segments);
    gwa_evidence(f, "headroom_bytes", m->headroom_bytes >= 0 ? (double)m->headroom_bytes : NAN);
    f->f.confidence = GWA_MEDIUM;
    return true;
}
