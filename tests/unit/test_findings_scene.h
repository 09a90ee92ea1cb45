/* A process as the analysis would describe it, for tests of findings: figures, no events.
 * The base is a training loop at its device's limit; a scene takes from its computing time
 * what it makes idle. `scale` makes steps and tensors larger: no verdict may rest on it. */
#ifndef TEST_FINDINGS_SCENE_H
#define TEST_FINDINGS_SCENE_H

/* clang-format off: cmocka.h needs these first */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "analysis/findings.h"
#include "analysis/steps.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCENE_MAX 32
#define STEADY    50.0 /* steps */
#define KIB       1024.0
#define MIB       (1024 * KIB)
#define GIB       (1024 * MIB)

struct gwt_trace { /* what gwa_find() asks of a recording */
    const char *facts[8][2];
    uint64_t samples;
};

struct scene {
    struct gwt_trace trace;
    struct gwa_process p;
    struct gwa_device d;
    struct gwt_coverage coverage;
    struct gwa_site sites[SCENE_MAX];
    struct gwa_drain drains[SCENE_MAX];
    struct gwa_transfer transfers[SCENE_MAX];
    struct gwa_kernel kernels[SCENE_MAX];
    struct gwa_api apis[SCENE_MAX];
    size_t second[SCENE_MAX], seconds; /* second rows of sections, by index */
    double scale, wall_ms;
};

const char *gwt_fact(const struct gwt_trace *t, const char *key)
{
    for (size_t i = 0; i < 8 && t->facts[i][0]; i++)
        if (!strcmp(t->facts[i][0], key))
            return t->facts[i][1];
    return NULL;
}

uint64_t gwt_counter(const struct gwt_trace *t, enum gwt_counter c)
{
    return c == GWT_C_SAMPLES ? t->samples : 0;
}

static void fact(struct scene *s, const char *key, const char *value)
{
    size_t i = 0;
    while (s->trace.facts[i][0])
        i++;
    s->trace.facts[i][0] = key;
    s->trace.facts[i][1] = value;
}

static struct gwa_spread all(double v)
{
    return (struct gwa_spread){v, v, v};
}

/* So much of the wall time is idle of this class, in all. */
static void idle(struct scene *s, unsigned class, double pct)
{
    struct gwa_time *t = &s->d.time;
    double more = pct - t->idle[class];
    t->idle[class] = pct;
    t->idle_pct += more;
    t->compute_pct -= more;
    t->busy_low_pct = 100 - t->idle_pct - 2;
    t->busy_high_pct = 100 - t->idle_pct + 2;
    s->p.devices = &s->d; /* wherever the scene was copied to */
}

/* Idle of launches: folded by phase. */
static void flow(struct scene *s, unsigned phase, double launch, double dispatch)
{
    double pct[2] = {launch, dispatch};
    uint8_t class[2] = {GWA_IDLE_LAUNCH, GWA_IDLE_DISPATCH};
    for (unsigned i = 0; i < 2; i++) {
        idle(s, class[i], pct[i]);
        s->sites[s->d.sites_count++] = (struct gwa_site){.class = class[i],
                                                         .phase = (uint8_t)phase,
                                                         .count = 10000,
                                                         .idle_ms = pct[i] / 100 * s->wall_ms,
                                                         .host_ms = pct[i] / 100 * s->wall_ms,
                                                         .cpu_share = NAN,
                                                         .other_cores = NAN,
                                                         .involuntary = NAN,
                                                         .per_step = 200};
    }
}

/* A place that left the device idle for `pct`, so often per step; returned for amending. */
static struct gwa_site *site(struct scene *s, unsigned class, double pct, double per_step)
{
    struct gwa_site *new = &s->sites[s->d.sites_count++];
    double ms = pct / 100 * s->wall_ms;
    *new = (struct gwa_site){.class = (uint8_t) class,
                             .count = (uint64_t)ceil(per_step * STEADY),
                             .idle_ms = ms,
                             .host_ms = ms,
                             .cpu_share = NAN,
                             .other_cores = NAN,
                             .involuntary = NAN,
                             .period = per_step >= 0.99 ? 1 : 0,
                             .per_step = per_step};
    idle(s, class, s->d.time.idle[class] + pct);
    return new;
}

/* A section of the host outside CUDA, between two calls. As the attribution does it: two rows,
 * what was computed and what was waited, with the figures of the whole; returned for amending is
 * the first, which scene_find() copies to the second. */
static struct gwa_site *section(struct scene *s, double pct, double per_step, double cpu,
                                const char *after, const char *before)
{
    struct gwa_site *first = site(s, GWA_IDLE_HOST_CPU, pct * cpu, per_step);
    struct gwa_site *second = site(s, GWA_IDLE_HOST_BLOCKED, pct * (1 - cpu), per_step);
    first->host_ms = pct / 100 * s->wall_ms;
    first->cpu_share = cpu;
    first->other_cores = 0.02;
    first->involuntary = 0;
    first->after = after;
    first->before = before;
    first->before_h2d = !strcmp(before, "cudaMemcpyAsync");
    first->position = GWA_SITE_STEP_EDGE;
    s->second[s->seconds++] = (size_t)(second - s->sites);
    return first;
}

static void amend_seconds(struct scene *s)
{
    for (size_t i = 0; i < s->seconds; i++) {
        struct gwa_site *second = &s->sites[s->second[i]];
        double idle_ms = second->idle_ms;
        *second = second[-1];
        second->class = GWA_IDLE_HOST_BLOCKED;
        second->idle_ms = idle_ms;
    }
    s->seconds = 0;
}

static struct gwa_drain *drain(struct scene *s, const char *api, double bytes, double per_step,
                               double pct)
{
    struct gwa_drain *new = &s->drains[s->d.drains_count++];
    *new = (struct gwa_drain){.api = api,
                              .kernel = "void at::native::reduce_kernel<512, 1, float>()",
                              .bytes = (uint64_t)bytes,
                              .count = (uint64_t)ceil(per_step * STEADY),
                              .per_step = per_step,
                              .idle_ms = pct / 100 * s->wall_ms,
                              .waited_ms = pct / 100 * s->wall_ms,
                              .phase = GWA_PHASE_FORWARD};
    s->p.steps.syncs = all(s->p.steps.syncs.median + per_step);
    if (bytes > 0 && bytes <= 64)
        s->p.steps.small_reads = all(s->p.steps.small_reads.median + per_step);
    return new;
}

/* Copies per step, of so many bytes each; `pct` of wall time, all of it exposed. */
static struct gwa_transfer *copies(struct scene *s, unsigned direction, unsigned memory,
                                   double per_step, double bytes, double pct)
{
    struct gwa_transfer *new = &s->transfers[s->d.transfers_count++];
    double calls = ceil(per_step * STEADY);
    bytes *= s->scale;
    *new = (struct gwa_transfer){.direction = (uint8_t)direction,
                                 .memory = (uint8_t)memory,
                                 .calls = (uint64_t)calls,
                                 .bytes = (uint64_t)(calls * bytes),
                                 .gb_per_s = 7,
                                 .busy_ms = pct / 100 * s->wall_ms,
                                 .exposed_pct = 100};
    s->d.copies[direction].calls += new->calls;
    s->d.copies[direction].bytes += new->bytes;
    s->d.time.exposed_copy_pct += pct;
    s->d.time.compute_pct -= pct;
    s->p.steps.copies = all(s->p.steps.copies.median + per_step);
    if (direction == GWT_H2D)
        s->p.steps.h2d_bytes = all(s->p.steps.h2d_bytes.median + per_step * bytes);
    else
        s->p.steps.d2h_bytes = all(s->p.steps.d2h_bytes.median + per_step * bytes);
    if (memory == GWA_MEM_PAGEABLE)
        s->p.steps.pageable_bytes = all(s->p.steps.pageable_bytes.median + per_step * bytes);
    return new;
}

static struct gwa_kernel *kernel(struct scene *s, const char *name, double share, double us,
                                 double below)
{
    struct gwa_kernel *new = &s->kernels[s->d.kernels_count++];
    double ms = share / 100 * s->d.time.compute_pct / 100 * s->wall_ms;
    *new = (struct gwa_kernel){.name = name,
                               .calls = (uint64_t)(1e3 * ms / us) + 1,
                               .mean_us = us,
                               .total_ms = ms,
                               .busy_pct = share,
                               .below_sms_pct = below};
    s->d.kernels_executed += new->calls;
    return new;
}

static struct gwa_api *api(struct scene *s, const char *name, unsigned kind, uint64_t calls,
                           uint64_t failed)
{
    struct gwa_api *new = &s->apis[s->p.apis_count++];
    *new = (struct gwa_api){
        .name = name, .kind = (uint8_t)kind, .calls = calls, .failed = failed, .us = {5, 5, 6, 9}};
    return new;
}

static void no_steps(struct scene *s)
{
    memset(&s->p.steps, 0, sizeof(s->p.steps));
    for (size_t i = 0; i < s->d.sites_count; i++)
        s->sites[i].per_step = NAN, s->sites[i].period = 0;
    for (size_t i = 0; i < s->d.drains_count; i++)
        s->drains[i].per_step = NAN;
}

/* 60 steps of 100 ms, 10 of them warm-up; the device computes 94 % of the time; no call that
 * blocks; half of 80 GiB in use. */
static void scene_begin(struct scene *s, double scale)
{
    memset(s, 0, sizeof(*s));
    s->scale = scale;
    s->wall_ms = STEADY * 100 * scale;
    s->trace.samples = 5000;
    s->coverage = (struct gwt_coverage){.ended = true, .events = 100000};
    s->p.coverage = &s->coverage;
    s->p.quality.complete = true;
    s->p.devices = &s->d;
    s->p.devices_count = 1;
    s->p.apis = s->apis;
    s->p.window.wall_s = s->wall_ms / 1e3;
    s->p.captures_span_pct = NAN;
    s->p.launches = (struct gwa_launches){.calls = 48000,
                                          .kernels = 48000,
                                          .api_us = {5, 4.5, 6, 9},
                                          .host_us_per_launch = 8,
                                          .driver_only_pct = 20};
    s->p.steps = (struct gwa_step_summary){.count = 50,
                                           .all = 60,
                                           .warmup_s = 1,
                                           .ms = all(100 * scale),
                                           .spread_pct = 2,
                                           .launches = all(800),
                                           .kernels = all(800),
                                           .copies = all(1),
                                           .h2d_bytes = all(64 * KIB),
                                           .micro_batches = 1,
                                           .identical_pct = 100,
                                           .identical = true,
                                           .forward_pct = 30,
                                           .backward_pct = 60,
                                           .optimizer_pct = 10,
                                           .confidence = 0.9,
                                           .found_by = "launches"};
    s->d.index = 0;
    s->d.name = "Test GPU";
    s->d.sms = 132;
    s->d.memory_bytes = (uint64_t)(80 * GIB);
    s->d.window = (struct gwa_window){.wall_s = s->wall_ms / 1e3, .excluded_s = 1};
    s->d.time = (struct gwa_time){.compute_pct = 100,
                                  .nvidia_smi_pct = 100,
                                  .provable_idle_pct = 1,
                                  .sampled_share_pct = 95,
                                  .method = "sampled"};
    s->d.met_idle_pct = 10;
    s->d.sites = s->sites;
    s->d.drains = s->drains;
    s->d.transfers = s->transfers;
    s->d.kernels = s->kernels;
    s->d.memory = (struct gwa_device_memory){.peak_allocated_bytes = (int64_t)(40 * GIB),
                                             .peak_reserved_bytes = (int64_t)(42 * GIB),
                                             .baseline_bytes = (int64_t)(10 * GIB),
                                             .activation_bytes = (int64_t)(30 * GIB),
                                             .used_bytes = (int64_t)(42 * GIB),
                                             .headroom_bytes = (int64_t)(39 * GIB),
                                             .batch_multiplier = 2.17,
                                             .steps_to_full = NAN,
                                             .pytorch = true,
                                             .from_reserved = true};
    s->d.small = (struct gwa_small_work){
        .under_10us = {40, 8}, .below_sms = {20, 5}, .dequantise = {0, 0}, .tiny_gemm = {2, 1}};
    flow(s, GWA_PHASE_FORWARD, 3, 2);
    idle(s, GWA_IDLE_SYNC, 1);
    kernel(s, "nvjet_tst_128x256_64x4", 80, 120, 0);
    kernel(s, "void at::native::vectorized_elementwise_kernel<4>()", 20, 9, 20);
}

static void scene_find(struct scene *s)
{
    amend_seconds(s);
    assert_int_equal(gwa_find(&s->trace, &s->p), 0);
}

/* post: where `id` is among the findings; -1: it is not. */
static int scene_place(const struct scene *s, const char *id)
{
    for (size_t i = 0; i < s->p.findings_count; i++)
        if (!strcmp(s->p.findings[i].id, id))
            return (int)i;
    return -1;
}

/* As a word of its own: a number that was not measured. */
static bool scene_word(const char *text, const char *word)
{
    for (const char *at = text; (at = strstr(at, word)); at++) {
        char after = at[strlen(word)], before = at > text ? at[-1] : ' ';
        if (!isalnum((unsigned char)before) && before != '_' && !isalnum((unsigned char)after) &&
            after != '_')
            return true;
    }
    return false;
}

/* Of texts: numbers that were not measured or make no sense, and stray punctuation. */
static bool scene_odd(const char *text)
{
    return scene_word(text, "nan") || scene_word(text, "inf") || strstr(text, "(null)") ||
           strstr(text, " -") || strstr(text, "  ") || !*text || strlen(text) >= 700;
}

/* What holds of every list of findings, whatever the figures. */
static void scene_sound(const struct scene *s)
{
    assert_true(s->p.findings_count > 0);
    for (size_t i = 0; i < s->p.findings_count; i++) {
        const struct gwa_finding *f = &s->p.findings[i];
        const char *texts[] = {f->what, f->where, f->remedy, f->cannot_know};
        assert_non_null(f->what);
        assert_non_null(f->remedy);
        for (size_t k = 0; k < 4; k++)
            if (texts[k] && scene_odd(texts[k]))
                fail_msg("%s: %s", f->id, texts[k]);
        assert_true(f->what[strlen(f->what) - 1] == '.');
        assert_true(isnan(f->share_pct) || (f->share_pct >= 0 && f->share_pct <= 100));
        assert_true(isnan(f->bound_pct) || (f->bound_pct >= 0 && f->bound_pct <= 100));
        if (!f->evidence_count)
            fail_msg("%s has no evidence: %s", f->id, f->what);
        for (size_t k = 0; k < f->evidence_count; k++)
            assert_true(f->evidence[k].text ? isnan(f->evidence[k].number)
                                            : isfinite(f->evidence[k].number));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(s->p.findings[k].id, f->id);
    }
    for (size_t i = 0; i < s->p.what_if_count; i++)
        assert_true(s->p.what_if[i].bound_pct >= 0 && s->p.what_if[i].bound_pct <= 100);
}

static void scene_print(const struct scene *s)
{
    for (size_t i = 0; i < s->p.findings_count; i++)
        print_error("  %s, bound %.1f: %s [%s] %s\n", s->p.findings[i].id,
                    s->p.findings[i].bound_pct, s->p.findings[i].what,
                    s->p.findings[i].where ? s->p.findings[i].where : "", s->p.findings[i].remedy);
}

static void scene_end(struct scene *s)
{
    gwa_findings_free(&s->p);
}

/* Not every test uses every helper. */
__attribute__((unused)) static void *const scene_used[] = {
    (void *)fact,        (void *)all,         (void *)flow,        (void *)site,
    (void *)section,     (void *)drain,       (void *)copies,      (void *)kernel,
    (void *)api,         (void *)no_steps,    (void *)scene_begin, (void *)scene_find,
    (void *)scene_place, (void *)scene_sound, (void *)scene_print, (void *)scene_end};

#endif
