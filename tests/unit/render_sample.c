/* Prints made-up analysis results through the report's own code, for render.sh: every field set
 * ("full"), nothing known in rows that exist ("unknown"), no operation timed
 * ("bounds"), a second device and no steps ("two"), names that attack a terminal ("hostile").
 * Usage: render_sample CASE text|all|json|short */
#include "../../tools/render.h"
#include "../../tools/text.h"

#include "analysis/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(*(array)))

/* ---- full: a QLoRA job ------------------------------------------------------------------- */

static struct gwa_evidence tokenizer_evidence[] = {{"per_step_ms", 169.2, NULL},
                                                   {"cpu_share", 0.98, NULL},
                                                   {"next_copy", NAN, (char[]){"H2D pageable"}}};
static struct gwa_evidence launch_evidence[] = {{"launches_per_step", 4312, NULL}};

static struct gwa_finding findings[] = {
    {.id = "mem-growth",
     .share_pct = NAN,
     .bound_pct = NAN,
     .confidence = GWA_MEDIUM,
     .what = (char[]){"Memory kept between steps grows by 12.0 MiB a step: the card is full in "
                      "about 640 steps."},
     .where = (char[]){"train.py:96 train"},
     .remedy = (char[]){"Keep numbers, not tensors: total += loss.detach() instead of total += "
                        "loss."},
     .cannot_know = "which tensors they are"},
    {.id = "input-cpu",
     .share_pct = 41.2,
     .bound_pct = 41.2,
     .confidence = GWA_HIGH,
     .what = (char[]){"The GPU waits 41.2 % of the time while this thread prepares the next "
                      "batch on the CPU, before a copy to the GPU."},
     .where = (char[]){"train.py:87 encode"},
     .remedy = (char[]){"Tokenise once before training (dataset.map), or give the DataLoader "
                        "num_workers=4 and pin_memory=True."},
     .evidence = tokenizer_evidence,
     .evidence_count = COUNT_OF(tokenizer_evidence)},
    {.id = "launch-bound",
     .share_pct = 18.3,
     .bound_pct = 20.1,
     .confidence = GWA_HIGH,
     .what = (char[]){"4,312 launches a step of 6.1 us each on average: the GPU is done before "
                      "the next arrives."},
     .where = NULL,
     .remedy = (char[]){"torch.compile(model), or a larger batch (see small-batch)."},
     .evidence = launch_evidence,
     .evidence_count = COUNT_OF(launch_evidence)},
    {.id = "small-batch",
     .share_pct = NAN,
     .bound_pct = 30,
     .confidence = GWA_LOW,
     .what = (char[]){"A batch 2.4 times as large would fit."},
     .where = (char[]){"forward"},
     .remedy = (char[]){"Raise the batch before gradient accumulation."}},
    {.id = "sync-per-step",
     .share_pct = 0.9,
     .bound_pct = 0.9,
     .confidence = GWA_HIGH,
     .what = (char[]){"One 4-byte read waits for the GPU in every step."},
     .where = (char[]){"train.py:101 train"},
     .remedy = (char[]){"Read the loss on logging steps only."}},
    {.id = "recompute", .share_pct = 12, .bound_pct = NAN, .confidence = GWA_HIGH, .what = NULL},
};

static struct gwa_what_if what_if[] = {{"host-gaps-removed", "no host work between steps", 41.2},
                                       {"graph-replay", "one graph replay for all launches", 20.1},
                                       {"copies-overlapped", NULL, 1.2}};

static struct gwa_idle_gap gaps[] = {
    {.start_s = 8.3071,
     .ms = 1203.5,
     .parts_ms =
         {[GWA_IDLE_HOST_BLOCKED] = 1180.2, [GWA_IDLE_COPY] = 20.1, [GWA_IDLE_LAUNCH] = 3.2},
     .drained_by = "cudaStreamSynchronize",
     .python = "/opt/project/a/long/way/down/checkpoint.py:1017 save_checkpoint"},
    {.start_s = 9.9,
     .ms = 170.4,
     .parts_ms = {[GWA_IDLE_HOST_CPU] = 170.4},
     .python = "train.py:87 encode"},
    {.start_s = 12.25,
     .ms = 0.021,
     .parts_ms = {[GWA_IDLE_UNKNOWN] = 0.021},
     .drained_by = "cudaMemcpy"},
};

static struct gwa_site sites[] = {
    {.class = GWA_IDLE_HOST_CPU,
     .phase = GWA_PHASE_OTHER,
     .position = GWA_SITE_STEP_EDGE,
     .before_h2d = true,
     .after = "cudaStreamSynchronize",
     .before = "cudaMemcpyAsync",
     .count = 97,
     .idle_ms = 16412.3,
     .host_ms = 16500.1,
     .cpu_share = 0.98,
     .other_cores = 2.1,
     .involuntary = 0.5,
     .per_step = 1,
     .period = 1,
     .h2d_bytes = 97 << 14,
     .d2h_bytes = 97 * 4,
     .python = "train.py:87 encode"},
    {.class = GWA_IDLE_DISPATCH,
     .phase = GWA_PHASE_BACKWARD,
     .count = 201233,
     .idle_ms = 7312.9,
     .host_ms = 7400,
     .cpu_share = NAN,
     .other_cores = NAN,
     .involuntary = NAN,
     .per_step = 2074.5,
     .python = NULL},
    {.class = GWA_IDLE_HOST_BLOCKED,
     .phase = GWA_PHASE_OTHER,
     .position = GWA_SITE_OUTSIDE_STEPS,
     .after = "cudaMemcpyAsync",
     .count = 9,
     .idle_ms = 3204.5,
     .host_ms = 3300,
     .cpu_share = 0.03,
     .other_cores = 0,
     .involuntary = 1,
     .per_step = 0.1,
     .period = 10,
     .d2h_bytes = UINT64_C(1) << 32,
     .python = "checkpoint.py:1017 save_checkpoint"},
    {.class = GWA_IDLE_ALLOC,
     .phase = GWA_PHASE_FORWARD,
     .api = "cudaMalloc",
     .count = 12,
     .idle_ms = 9.1,
     .host_ms = 9.1,
     .cpu_share = 1,
     .other_cores = 0,
     .involuntary = 0,
     .per_step = 0.12},
};

static struct gwa_drain drains[] = {
    {.api = "cudaStreamSynchronize",
     .kernel = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(float*)",
     .bytes = 4,
     .pageable = true,
     .count = 97,
     .per_step = 1,
     .idle_ms = 358.2,
     .waited_ms = 2110.4,
     .phase = GWA_PHASE_OPTIMIZER,
     .python = "train.py:101 train"},
    {.api = "cudaDeviceSynchronize", .count = 2, .per_step = NAN, .idle_ms = 3.1, .waited_ms = 0.4},
};

static struct gwa_kernel kernels[] = {
    {"void kDequantizeBlockwise<__nv_bfloat16, 512, 64, 8>(float*, unsigned char*, float*, "
     "__nv_bfloat16*, int, int)",
     86912, 0, 21.3, 1851.2, 16.4, 2},
    {"sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1_"
     "tensor16x8x16",
     65184, 0, 88.1, 5742.7, 50.9, 0},
};

static struct gwa_transfer transfers[] = {
    {GWT_H2D, GWA_MEM_PAGEABLE, 1, 97, 97 << 14, 97, 2.1, 3.9, 0.41, 100}};

static struct gwa_api apis[] = {
    {"cudaLaunchKernel", GWT_LAUNCH, GWT_LEVEL_RUNTIME, 418264, 0, 0, 0, 2300, {5.5, 5.1, 7.2, 14}},
    {"cudaStreamSynchronize",
     GWT_SYNC,
     GWT_LEVEL_RUNTIME,
     97,
     0,
     0,
     0,
     2110.4,
     {NAN, NAN, NAN, NAN}},
    {"cudaMalloc", GWT_ALLOC, GWT_LEVEL_RUNTIME, 31, 1, 0, 1 << 30, 12, {NAN, NAN, NAN, NAN}},
};
static struct gwa_thread threads[] = {{1, 423, "python", 300000, 200000, 2110.4},
                                      {2, 424, "pt_autograd_0", 220000, 218264, 0}};
static struct gwa_stream streams[] = {{1, 0, GWT_STREAM_LEGACY, 0, 0, 0, 418264, 97, 0, 0, 97}};

static struct gwa_device devices[2] = {{
    .index = 0,
    .name = "NVIDIA A10",
    .sms = 72,
    .memory_bytes = UINT64_C(24146608128),
    .pcie_gen = 4,
    .pcie_width = 16,
    .window = {.wall_s = 39.83, .excluded_s = 8.22},
    .time = {.compute_pct = 27.4,
             .exposed_comm_pct = 0,
             .exposed_copy_pct = 1.2,
             .idle_pct = 71.4,
             .idle = {[GWA_IDLE_LAUNCH] = 2.04,
                      [GWA_IDLE_DISPATCH] = 18.3,
                      [GWA_IDLE_HOST_CPU] = 41.2,
                      [GWA_IDLE_HOST_BLOCKED] = 8.05,
                      [GWA_IDLE_SYNC] = 0.9,
                      [GWA_IDLE_ALLOC] = 0.02,
                      [GWA_IDLE_COPY] = 0.3,
                      [GWA_IDLE_UNKNOWN] = 0.59},
             .drained_pct = 50.1,
             .busy_low_pct = 28.1,
             .busy_high_pct = 29.1,
             .provable_idle_pct = 44.2,
             .provable_idle_s = 17.6,
             .nvidia_smi_pct = 61.3,
             .sampled_share_pct = 92.8,
             .anchor_residual_pct = 0.01,
             .method = "sampled"},
    .queue_us = {5.1, 2.3, 8.8, 29.3},
    .met_idle_pct = 77.7,
    .gaps_by_length = {60.2, 10.4, 0.8},
    .gaps = gaps,
    .gaps_count = COUNT_OF(gaps),
    .by_phase = {[GWA_PHASE_OTHER] = {0.4, 50.1},
                 [GWA_PHASE_FORWARD] = {8.1, 7.2},
                 [GWA_PHASE_BACKWARD] = {19.1, 13.0},
                 [GWA_PHASE_OPTIMIZER] = {1.0, 1.1}},
    .sites = sites,
    .sites_count = COUNT_OF(sites),
    .drains = drains,
    .drains_count = COUNT_OF(drains),
    .kernels_executed = 418264,
    .kernels = kernels,
    .kernels_count = COUNT_OF(kernels),
    .copies = {[GWT_H2D] = {97, 97 << 14}, [GWT_D2H] = {97, 97 * 4}},
    .transfers = transfers,
    .transfers_count = COUNT_OF(transfers),
    .memory = {.peak_allocated_bytes = INT64_C(9663676416),
               .peak_reserved_bytes = INT64_C(10737418240),
               .baseline_bytes = INT64_C(5368709120),
               .activation_bytes = INT64_C(4294967296),
               .used_bytes = INT64_C(11811160064),
               .capacity_bytes = INT64_C(15300820992),
               .headroom_bytes = INT64_C(6710886400),
               .batch_multiplier = 2.41,
               .growth_bytes_per_step = 12582912,
               .steps_to_full = 639.7,
               .retries = 3,
               .retry_ms = 41.7,
               .allocs_per_step = 0.3,
               .frees_per_step = 0.1,
               .host_allocs_per_step = 0,
               .alloc_ms_per_step = 0.1,
               .pytorch = true},
}};

static struct gwt_coverage coverage = {.ended = true, .events = 612345};

static struct gwa_process process = {
    .identity = {423, "gpu-01", "python qlora.py --epochs 1", -1, "tsc"},
    .coverage = &coverage,
    .quality = {.complete = true, .recorded = 612345, .own_host_ms = 61, .own_overhead_pct = 0.15},
    .window = {.wall_s = 48.05, .excluded_s = 8.22},
    .launches = {.calls = 418264,
                 .kernels = 418264,
                 .per_second = 10501,
                 .driver_only = 83652,
                 .driver_only_pct = 20,
                 .api_us = {5.5, 5.1, 7.2, 14},
                 .host_us_per_launch = 25.2},
    .syncs = {97, 2110.4},
    .blocking_copies = {97, 2.1},
    .allocations = {.calls = 31, .failed = 1, .ms = 12, .device_calls = 31},
    .apis = apis,
    .apis_count = COUNT_OF(apis),
    .threads = threads,
    .threads_count = COUNT_OF(threads),
    .streams = streams,
    .streams_count = COUNT_OF(streams),
    .devices = devices,
    .devices_count = 1,
    .steps = {.count = 97,
              .all = 100,
              .warmup_s = 8.22,
              .ms = {395.2, 406.1, 1712.8},
              .spread_pct = 3.1,
              .launches = {4312, 4312, 4390},
              .kernels = {4312, 4312, 4390},
              .graph_launches = {0, 0, 0},
              .syncs = {1, 1, 3},
              .copies = {2, 2, 300},
              .h2d_bytes = {16384, 16384, 16384},
              .d2h_bytes = {4, 4, 4294967296},
              .pageable_bytes = {16384, 16384, 16384},
              .blocking_copies = {2, 2, 300},
              .small_reads = {1, 1, 1},
              .allocations = {0, 0, 2.5},
              .micro_batches = 4,
              .collective_batches = 1,
              .identical = false,
              .varies = "copies in 10 of 97",
              .identical_pct = 89.7,
              .forward_pct = 28.3,
              .backward_pct = 66.8,
              .optimizer_pct = 3.5,
              .recompute_pct = 24.1,
              .recompute_segments = 32,
              .unusual = 9,
              .unusual_period = 10,
              .unusual_ms = 1203.5,
              .other_pct = 2.25,
              .confidence = 0.97,
              .found_by = "launches"},
    .findings = findings,
    .findings_count = COUNT_OF(findings),
    .what_if = what_if,
    .what_if_count = COUNT_OF(what_if),
    .stacks = 413,
};

/* ---- unknown: the same rows with nothing in them ------------------------------------------- */

static void forget_doubles(void *from, size_t bytes)
{
    double *v = from;
    for (size_t i = 0; i < bytes / sizeof(*v); i++)
        v[i] = i % 2 ? NAN : -NAN;
}
#define FORGET(object, first, last)                                                                \
    forget_doubles(&(object).first,                                                                \
                   (size_t)((char *)(&(object).last + 1) - (char *)&(object).first))

static void forget_device(struct gwa_device *d, const char *method)
{
    d->name = NULL;
    d->sms = d->pcie_gen = d->pcie_width = 0;
    d->memory_bytes = 0;
    FORGET(*d, window.wall_s, window.excluded_s);
    FORGET(d->time, compute_pct, anchor_residual_pct);
    d->time.method = method;
    FORGET(d->queue_us, mean, p99);
    d->met_idle_pct = NAN;
    FORGET(d->gaps_by_length, over_100us_pct, under_10us_pct);
    FORGET(*d, by_phase[0].busy_pct, by_phase[3].idle_pct);
    for (size_t i = 0; i < d->gaps_count; i++) {
        FORGET(d->gaps[i], start_s, parts_ms);
        d->gaps[i].drained_by = d->gaps[i].python = NULL;
    }
    for (size_t i = 0; i < d->sites_count; i++) {
        d->sites[i] = (struct gwa_site){.class = 99, .phase = 99, .position = 99};
        FORGET(d->sites[i], idle_ms, per_step);
    }
    for (size_t i = 0; i < d->drains_count; i++) {
        d->drains[i] = (struct gwa_drain){.phase = 99};
        FORGET(d->drains[i], per_step, waited_ms);
    }
    for (size_t i = 0; i < d->kernels_count; i++) {
        d->kernels[i].name = NULL;
        FORGET(d->kernels[i], mean_us, below_sms_pct);
    }
    for (size_t i = 0; i < d->transfers_count; i++) {
        FORGET(d->transfers[i], gb_per_s, exposed_pct);
        d->transfers[i].blocking_ms = NAN;
    }
    d->memory = (struct gwa_device_memory){.peak_allocated_bytes = -1,
                                           .peak_reserved_bytes = -1,
                                           .baseline_bytes = -1,
                                           .activation_bytes = -1,
                                           .used_bytes = -1,
                                           .capacity_bytes = -1,
                                           .headroom_bytes = -1};
    FORGET(d->memory, batch_multiplier, steps_to_full);
    FORGET(d->memory, retry_ms, alloc_ms_per_step);
}

static void forget(struct gwa_process *p, const char *method)
{
    p->identity = (struct gwa_identity){.pid = 7, .rank = -1};
    p->quality.own_host_ms = p->quality.own_overhead_pct = NAN;
    FORGET(p->window, wall_s, excluded_s);
    FORGET(p->launches, per_second, host_us_per_launch);
    p->polls = -1;
    p->syncs.waited_ms = p->blocking_copies.waited_ms = NAN;
    p->allocations.ms = p->allocations.free_ms = NAN;
    for (size_t i = 0; i < p->apis_count; i++)
        FORGET(p->apis[i], ms, us.p99);
    for (size_t i = 0; i < p->threads_count; i++) {
        p->threads[i].name = NULL;
        p->threads[i].waited_ms = NAN;
    }
    forget_device(&p->devices[0], method);
    p->steps = (struct gwa_step_summary){.count = 1, .all = 1};
    FORGET(p->steps, warmup_s, collective_batches);
    FORGET(p->steps, identical_pct, unusual);
    p->steps.unusual_ms = p->steps.other_pct = p->steps.confidence = NAN;
    for (size_t i = 0; i < p->findings_count; i++) {
        struct gwa_finding *f = &p->findings[i];
        f->share_pct = f->bound_pct = NAN;
        f->confidence = 99;
        f->what = f->where = NULL;
        f->remedy = i ? NULL : f->remedy;
        f->cannot_know = NULL;
        for (size_t e = 0; e < f->evidence_count; e++)
            f->evidence[e] = (struct gwa_evidence){f->evidence[e].key, NAN, NULL};
    }
    for (size_t i = 0; i < p->what_if_count; i++) {
        p->what_if[i].text = NULL;
        p->what_if[i].bound_pct = NAN;
    }
}

/* ---- two: a second device, which nothing is known of, in a job of several ranks ----------- */

static void add_device(struct gwa_process *p)
{
    p->devices[1] = (struct gwa_device){.index = 1, .name = "NVIDIA A10"};
    forget_device(&p->devices[1], "bounds");
    p->devices[1].name = "NVIDIA A10";
    p->devices[1].memory.retries = 2;
    p->devices[1].window.wall_s = 12.5;
    p->devices[1].time.provable_idle_pct = 93.1;
    p->devices[1].time.provable_idle_s = 11.6;
    p->devices_count = 2;
    p->identity.rank = 3;
    p->steps.count = 0;
    p->findings_count = 2;
    p->devices[0].sites_count = 1;
    p->devices[0].sites[0].per_step = NAN;
    p->devices[0].time.exposed_comm_pct = 4.5;
    p->devices[0].time.compute_pct = 22.9;
    p->devices[0].time.exposed_copy_pct = -1e-14; /* as a difference of sums may be */
}

/* ---- hostile: every string that comes from a recording --------------------------------------- */

#define EVIL                                                                                       \
    "\033[2J\033]0;title\007\r\n\tx\x7f \xc2\x9b"                                                  \
    "31m\xff\xfe \xe2\x80\xae"                                                                     \
    "rtl"                                                                                          \
    "a_word_that_is_longer_than_any_line_of_the_page_could_be_and_so_must_be_broken_somewhere_"    \
    "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4%s%n"

static void poison(struct gwa_process *p)
{
    struct gwa_device *d = &p->devices[0];
    static char evil[] = EVIL;
    p->identity.host = p->identity.command = p->identity.clock = EVIL;
    d->name = EVIL;
    d->gaps[0].python = d->gaps[0].drained_by = EVIL;
    d->sites[0].python = d->sites[0].api = d->sites[1].after = d->sites[1].before = EVIL;
    d->drains[0].api = d->drains[0].kernel = d->drains[0].python = EVIL;
    d->kernels[0].name = EVIL;
    p->apis[0].name = p->apis[1].name = p->apis[2].name = EVIL;
    p->threads[0].name = EVIL;
    p->steps.varies = p->steps.found_by = EVIL;
    p->findings[0].what = p->findings[0].where = p->findings[0].remedy = evil;
    p->findings[0].cannot_know = EVIL;
    p->findings[1].what = p->findings[1].where = p->findings[1].remedy = evil;
    p->findings[1].evidence[2].text = evil;
    p->findings[1].evidence[1].key = EVIL;
    p->what_if[0].text = EVIL;
}

/* ---- printing -------------------------------------------------------------------------------- */

/* As say() does, which the short report goes through. */
static void line(const char *text)
{
    char *clean = text_clean(text);
    puts(clean);
    free(clean);
}

static int print(const struct gwa_process *p, const char *as)
{
    struct page page = page_stdout(!strcmp(as, "all"));
    if (!strcmp(as, "json")) {
        struct render_main speaks = {0};
        json_t *list = json_array();
        json_array_append_new(list, render_json(p));
        render_json_main(&speaks, p, 0);
        return render_json_print(render_json_report(list, &speaks));
    }
    if (!strcmp(as, "short"))
        render_short(p, 5, line);
    else
        render_report(&page, p, NULL);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    if (!strcmp(argv[1], "unknown"))
        forget(&process, "sampled");
    else if (!strcmp(argv[1], "bounds"))
        forget(&process, "bounds");
    else if (!strcmp(argv[1], "two"))
        add_device(&process);
    else if (!strcmp(argv[1], "hostile"))
        poison(&process);
    else if (strcmp(argv[1], "full"))
        return 2;
    return print(&process, argv[2]);
}
