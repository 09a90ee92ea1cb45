/* What known ailments look like in figures, and what their cured twins do: the verdict must name
 * the ailment first, and the twin's list must not hold it. Figures are what each program's
 * description makes of a step; each is also run at half and at twice the size. */
#include "test_findings_scene.h"

#define SYNC   "cudaStreamSynchronize"
#define COPY   "cudaMemcpyAsync"
#define LAUNCH "cudaLaunchKernelExC"

static const char reduce_name[] = "void at::native::reduce_kernel<512, 1, at::native::MaxOps>()";
static const char nonzero_name[] =
    "void at_cuda_detail::cub::DeviceReduceSingleTileKernel<Policy600, "
    "TransformInputIterator<bool, NonZeroOp<bool>, bool*, long> >()";

/* ---- input ------------------------------------------------------------------------------ */

/* Items cost 4 ms of numpy each, a batch of 8 therefore 32 ms, the step 5 ms: 84 % of 38 ms. */
static void input_in_the_loop(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, 2, cured ? 12 : 4);
    if (cured)
        return; /* workers and pinned memory: the step alone remains */
    struct gwa_site *g = section(s, 84, 1, 0.98, LAUNCH, COPY);
    g->python = "data.py:12 __getitem__";
    g->h2d_bytes = (uint64_t)(STEADY * 4 * MIB);
    copies(s, GWT_H2D, GWA_MEM_PAGEABLE, 1, 4 * MIB, 0.9);
    /* .to("cuda") of the batch waits for the copy */
    drain(s, SYNC, 0, 1, 0.5);
}

/* The same through too few workers: the loop sleeps in queue.get(). */
static void workers_too_slow(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, 2, cured ? 12 : 6);
    if (!cured)
        section(s, 60, 1, 0.01, LAUNCH, COPY)->python = "queue.py:171 get";
}

/* Two workers that are too slow deliver at the same time: every other step waits. */
static void two_workers_too_slow(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, 2, cured ? 12 : 6);
    if (!cured)
        section(s, 60, 0.5, 0.04, LAUNCH, COPY)->period = 2;
}

/* Four workers run in step: every fourth batch is awaited. */
static void every_fourth_batch(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, 2, cured ? 12 : 6);
    if (!cured)
        section(s, 55, 0.25, 0.01, LAUNCH, COPY)->period = 4;
}

/* collate_fn tokenises; the tokenizer's own threads do the work while the loop waits. */
static void tokenizer_in_the_loop(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, 5, 15);
    if (cured)
        return;
    struct gwa_site *g = section(s, 60, 1, 0.04, LAUNCH, COPY);
    g->other_cores = 7.4;
    g->python = "train.py:31 collate";
    drain(s, SYNC, 4, 1, 61)->python = "train.py:60 main"; /* loss.item(), then the section */
}

static void between_epochs(struct scene *s, bool cured)
{
    if (cured)
        return;
    struct gwa_site *g = section(s, 40, 0.04, 0.2, LAUNCH, COPY); /* two gaps, of 20 steps each */
    g->position = GWA_SITE_OUTSIDE_STEPS;
    g->python = "dataloader.py:1077 __init__";
}

/* ---- copies ------------------------------------------------------------------------------- */

/* 256 MiB of pageable memory for a product of 10 ms; the call copies at 7 GB/s. */
static void pageable_copy(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, 1, 1);
    if (cured) { /* pinned, one batch ahead: beside the kernels */
        copies(s, GWT_H2D, GWA_MEM_PINNED, 1, 256 * MIB, 0)->exposed_pct = 0;
        return;
    }
    copies(s, GWT_H2D, GWA_MEM_PAGEABLE, 1, 256 * MIB, 75)->blocking_ms = 0.76 * s->wall_ms;
    drain(s, SYNC, 0, 1, 1.5);
}

/* The same with non_blocking=True: the call copies all the same, and nothing waits after it. */
static void pageable_copy_async(struct scene *s, bool cured)
{
    pageable_copy(s, cured);
    s->d.drains_count = 0;
}

static void pinning_per_batch(struct scene *s, bool cured)
{
    if (cured)
        return;
    struct gwa_site *g = site(s, GWA_IDLE_ALLOC, 20, 3);
    g->api = "cudaHostAlloc";
    g->phase = GWA_PHASE_FORWARD;
    s->d.memory.host_allocs_per_step = 3;
}

/* A model of 4 GiB on the host, its weights fetched block by block in each pass. */
static void offloaded_weights(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, 3, 4);
    if (cured)
        return;
    s->d.memory.baseline_bytes = (int64_t)(100 * MIB * s->scale);
    copies(s, GWT_H2D, GWA_MEM_PAGEABLE, 150, 27 * MIB, 60);
    struct gwa_site *g = site(s, GWA_IDLE_COPY, 20, 150);
    g->api = COPY;
    g->h2d_bytes = (uint64_t)(STEADY * 4 * GIB * s->scale);
    g->phase = GWA_PHASE_FORWARD;
    drain(s, SYNC, 0, 150, 15);
}

/* AdamW on the host: gradients out, a section with many threads, parameters in. */
static void optimizer_on_the_host(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, 3, 4);
    if (cured)
        return;
    s->d.memory.baseline_bytes = (int64_t)(960 * MIB * s->scale); /* the weights */
    copies(s, GWT_D2H, GWA_MEM_PAGEABLE, 120, 8 * MIB, 12);
    copies(s, GWT_H2D, GWA_MEM_PAGEABLE, 120, 8 * MIB, 12);
    struct gwa_site *g = section(s, 45, 1, 0.9, SYNC, COPY);
    g->other_cores = 11;
    g->d2h_bytes = g->h2d_bytes = (uint64_t)(STEADY * 8 * MIB * s->scale);
    drain(s, SYNC, 8 * MIB * s->scale, 120, 50)->pageable = true;
}

/* The same with few parameters: as many bytes both ways as stay on the device. */
static void few_parameters_on_the_host(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, 3, 4);
    if (cured)
        return;
    s->d.memory.baseline_bytes = (int64_t)(200 * MIB * s->scale);
    copies(s, GWT_D2H, GWA_MEM_PAGEABLE, 6, 32 * MIB, 12);
    copies(s, GWT_H2D, GWA_MEM_PAGEABLE, 6, 32 * MIB, 12);
    struct gwa_site *g = section(s, 45, 1, 0.9, SYNC, COPY);
    g->d2h_bytes = g->h2d_bytes = (uint64_t)(STEADY * 32 * MIB * s->scale);
}

/* ---- blocking calls ------------------------------------------------------------------------- */

/* loss.item() twice in a step of 10 ms, and a table of 4 KiB uploaded. The host waits half of the
 * time, then starts on an empty queue: the first gap is short, but many late launches follow. */
static void reads_each_step(struct scene *s, bool cured)
{
    if (cured) { /* once in 20 steps */
        drain(s, SYNC, 4, 0.05, 0.2);
        return;
    }
    flow(s, GWA_PHASE_FORWARD, 8, 12);
    idle(s, GWA_IDLE_SYNC, 2);
    struct gwa_drain *r = drain(s, SYNC, 4, 2, 1.5);
    r->python = "train.py:44 main";
    r->waited_ms = 0.5 * s->wall_ms;
    drain(s, SYNC, 0, 1, 0.5);
    copies(s, GWT_H2D, GWA_MEM_PAGEABLE, 1, 4 * KIB, 0.1);
}

/* Finite checks of a Trainer: two reads of a byte and one of the loss per step. */
static void nan_filter(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, 5, 8);
    if (cured)
        return;
    idle(s, GWA_IDLE_SYNC, 5);
    drain(s, SYNC, 1, 2, 14)->python = "trainer.py:2744 _inner_training_loop";
}

/* p.grad.norm().item() and if isfinite(...) over 300 parameters. */
static void reads_per_parameter(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_OTHER, cured ? 5 : 20, cured ? 10 : 35);
    if (cured) {
        drain(s, SYNC, 4, 1, 1);
        return;
    }
    idle(s, GWA_IDLE_SYNC, 15);
    drain(s, SYNC, 4, 300, 35);
    drain(s, SYNC, 1, 300, 32);
}

/* Anomaly detection reads one byte after each node of the backward pass. */
static void anomaly_mode(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_BACKWARD, cured ? 5 : 15, cured ? 6 : 20);
    if (cured)
        return;
    idle(s, GWA_IDLE_SYNC, 10);
    drain(s, SYNC, 1, 180, 40)->phase = GWA_PHASE_BACKWARD;
}

/* As measured: it makes the host slower, too, so that launches take the larger share; but no graph
 * takes a step with reads in it. */
static void anomaly_mode_on_a_slow_host(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_BACKWARD, cured ? 4 : 12.5, cured ? 4 : 50);
    if (cured)
        return;
    idle(s, GWA_IDLE_SYNC, 5);
    struct gwa_drain *d = drain(s, SYNC, 1, 151, 22.3);
    d->phase = GWA_PHASE_BACKWARD;
    d->waited_ms = 0.172 * s->wall_ms;
}

/* h[mask] twice in each of 8 layers. */
static void masks(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, cured ? 4 : 15, cured ? 4 : 15);
    if (cured)
        return;
    idle(s, GWA_IDLE_SYNC, 8);
    drain(s, SYNC, 4, 16, 30)->kernel = nonzero_name;
}

/* torch.cuda.synchronize() in a hook of each of 40 modules. */
static void hooks_that_synchronize(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, cured ? 4 : 15, cured ? 4 : 20);
    if (cured)
        return;
    idle(s, GWA_IDLE_SYNC, 8);
    drain(s, "cudaDeviceSynchronize", 0, 40, 38)->python = "timer.py:9 hook";
}

static void launch_blocking(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, 25, 25);
    fact(s, "env.CUDA_LAUNCH_BLOCKING", cured ? "0" : "1");
}

/* ---- memory -----------------------------------------------------------------------------------
 */

/* gc.collect(); torch.cuda.empty_cache() each step. */
static void empty_cache(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, 4, 4);
    if (cured)
        return;
    struct gwa_site *g = site(s, GWA_IDLE_ALLOC, 25, 30);
    g->api = "cudaFree";
    g = site(s, GWA_IDLE_ALLOC, 12, 30);
    g->api = "cudaMalloc";
    g->phase = GWA_PHASE_FORWARD;
    g = section(s, 20, 1, 0.99, LAUNCH, "cudaFree");
    g->python = "train.py:52 main";
    s->d.memory.allocs_per_step = s->d.memory.frees_per_step = 30;
    s->d.memory.alloc_ms_per_step = 39;
}

/* Every second step does not fit what is cached: a failure, frees, success. */
static void flushes(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, 4, 4);
    if (cured)
        return;
    site(s, GWA_IDLE_ALLOC, 30, 5)->api = "cudaFree";
    s->d.memory.retries = 25;
    s->d.memory.retry_ms = 0.3 * s->wall_ms;
    s->d.memory.allocs_per_step = s->d.memory.frees_per_step = 4;
    s->d.memory.peak_allocated_bytes = (int64_t)(76 * GIB);
    s->d.memory.used_bytes = (int64_t)(78 * GIB);
    s->d.memory.headroom_bytes = (int64_t)(2 * GIB);
    s->d.memory.batch_multiplier = 1.05;
}

/* total = total + loss keeps a graph of 30 MiB per step. */
static void kept_graphs(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, 10, 15);
    if (cured)
        return;
    s->d.memory.growth_bytes_per_step = 30 * MIB * s->scale;
    s->d.memory.steps_to_full = 39 * GIB / (30 * MIB * s->scale);
}

/* ---- launches
 * ------------------------------------------------------------------------------------- */

/* AdamW(foreach=False) over 2,000 parameters; fused, it is one launch. */
static void optimizer_per_parameter(struct scene *s, bool cured)
{
    flow(s, cured ? GWA_PHASE_FORWARD : GWA_PHASE_OPTIMIZER, cured ? 1 : 25, cured ? 0.9 : 55);
    s->p.steps.launches = all(cured ? 400 : 26000);
    s->d.met_idle_pct = cured ? 5 : 97;
    if (!cured)
        s->d.small.under_10us = (struct gwa_share){99, 80};
}

/* generate(): two reads of a byte per token, some 700 launches. The twin replays a graph. */
static void generation(struct scene *s, bool cured)
{
    s->p.steps.by_token = true;
    s->p.steps.backward_pct = s->p.steps.optimizer_pct = 0;
    s->p.steps.launches = all(cured ? 2 : 700);
    if (cured) {
        flow(s, GWA_PHASE_FORWARD, 0.9, 1);
        return;
    }
    flow(s, GWA_PHASE_FORWARD, 25, 60);
    drain(s, SYNC, 1, 2, 3)->kernel = reduce_name;
    s->d.memory.growth_bytes_per_step = 4096; /* the cache of keys and values */
    s->d.memory.steps_to_full = 1000;
    s->d.met_idle_pct = 99;
}

/* Adapters of rank 8 on all linears, not merged. */
static void lora(struct scene *s, bool cured)
{
    generation(s, cured);
    if (!cured)
        s->d.small.tiny_gemm = (struct gwa_share){45, 30};
}

/* Weights unpacked at each use. */
static void four_bit(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_BACKWARD, cured ? 1 : 15, cured ? 0.9 : 30);
    if (!cured)
        s->d.small.dequantise = (struct gwa_share){12, 35};
}

/* ---- the loop's regularity
 * ----------------------------------------------------------------------------- */

/* reduce-overhead with 20 lengths, ten steps each: captured anew every ten steps, with all that
 * comes with it; the twin pads. */
static void lengths_of_ten(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, 4, 6);
    s->p.other.captures = cured ? 1 : 20;
    s->p.launches.graph_launches = 200;
    s->p.steps.captures = all(0);
    if (cured)
        return;
    site(s, GWA_IDLE_LOAD, 8, 0.1)->api = "cudaGraphInstantiateWithFlags";
    site(s, GWA_IDLE_ALLOC, 10, 0.8)->period = 10;
    section(s, 40, 0.1, 0.98, "cudaDeviceSynchronize", "cudaFree")->period = 10;
}

/* The same where each is seen twice. */
static void lengths(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, 4, 6);
    s->p.other.captures = s->p.other.instantiations = cured ? 3 : 40;
    s->p.launches.graph_launches = cured ? 600 : 40;
    s->p.steps.captures = all(cured ? 0 : 2);
    if (cured)
        return;
    site(s, GWA_IDLE_LOAD, 15, 2)->api = "cudaGraphInstantiateWithFlags";
    section(s, 25, 2, 0.98, LAUNCH, "cudaStreamBeginCapture")->position = GWA_SITE_INSIDE;
    section(s, 10, 0.2, 0.5, LAUNCH, "cuModuleLoadData")->position = GWA_SITE_INSIDE;
}

/* The same where no step is like another, so that none are found. */
static void lengths_without_steps(struct scene *s, bool cured)
{
    lengths(s, cured);
    no_steps(s);
}

/* As measured: 20 lengths of ten steps each, one captured after the other; sections that no clock
 * was read in come with each. Cured: one length, captured at the beginning. */
static void lengths_one_after_another(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_OTHER, 5, cured ? 15 : 26);
    s->p.other.captures = s->p.other.instantiations = cured ? 3 : 20;
    s->p.launches.graph_launches = 180;
    s->p.captures_span_pct = cured ? 4 : 95;
    if (!cured) {
        site(s, GWA_IDLE_LOAD, 8, 0.1)->api = "cudaStreamBeginCapture";
        struct gwa_site *g = site(s, GWA_IDLE_UNKNOWN, 26, 0.1);
        g->after = "cudaStreamWaitEvent";
        g->before = COPY;
        section(s, 26, 0.1, 1, "cudaDeviceSynchronize", COPY);
    }
    no_steps(s);
}

static void recompiles(struct scene *s, bool cured)
{
    s->p.other.module_loads = 20;
    if (!cured)
        section(s, 50, 0.1, 0.95, LAUNCH, "cuModuleLoadDataEx")->position = GWA_SITE_INSIDE;
}

/* cudnn.benchmark with a new image size now and then. */
static void convolutions_tried(struct scene *s, bool cured)
{
    if (cured)
        return;
    flow(s, GWA_PHASE_FORWARD, 15, 15);
    struct gwa_drain *r = drain(s, "cudaEventSynchronize", 0, 0.4, 25);
    r->kernel = "sm90_xmma_fprop_implicit_gemm_f16";
    r->count = 400;
}

static void kernels_loaded(struct scene *s, bool cured)
{
    if (!cured)
        site(s, GWA_IDLE_LOAD, 12, 0.3)->api = "cuLibraryLoadData";
}

/* torch.save of model and optimizer every 10 steps: tensors copied one by one, then written. */
static void saving(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, 4, 4);
    if (cured)
        return;
    s->p.steps.unusual = 5;
    s->p.steps.unusual_period = 10;
    s->d.copies[GWT_D2H].calls = 1500;
    s->d.copies[GWT_D2H].bytes = (uint64_t)(30 * GIB * s->scale);
    struct gwa_site *g = site(s, GWA_IDLE_COPY, 10, 30);
    g->api = COPY;
    g->period = 10;
    g->d2h_bytes = (uint64_t)(30 * GIB * s->scale);
    g = section(s, 30, 30, 0.1, SYNC, COPY);
    g->period = 10;
    g->before_h2d = false;
    g->d2h_bytes = (uint64_t)(30 * GIB * s->scale);
    g->python = "serialization.py:967 save";
    drain(s, SYNC, 20 * MIB * s->scale, 30, 38)->pageable = true;
    s->p.steps.small_reads = all(0);
}

/* Logits of an evaluation copied to the host batch by batch. */
static void evaluation(struct scene *s, bool cured)
{
    if (cured)
        return;
    struct gwa_site *g = section(s, 30, 0.5, 0.8, SYNC, LAUNCH);
    g->position = GWA_SITE_OUTSIDE_STEPS;
    g->phase = GWA_PHASE_FORWARD;
    g->d2h_bytes = (uint64_t)(GIB * s->scale);
}

/* A value read and sent to a server every 10 steps. */
static void logging(struct scene *s, bool cured)
{
    if (cured)
        return;
    struct gwa_site *g = section(s, 20, 0.1, 0.05, SYNC, COPY);
    g->period = 10;
    g->d2h_bytes = 5 * 4;
    drain(s, SYNC, 4, 0.1, 20.5);
}

/* ---- the machine, other ranks, the rest
 * -------------------------------------------------------------------- */

static void held_lock(struct scene *s, bool cured)
{
    if (!cured)
        section(s, 25, 2, 0.02, LAUNCH, LAUNCH)->other_cores = 0.97;
}

static void few_cores(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, 4, 4);
    struct gwa_site *g = section(s, cured ? 10 : 40, 1, cured ? 0.99 : 0.3, LAUNCH, LAUNCH);
    g->involuntary = cured ? 0 : 12 * s->scale; /* time slices do not grow with the work */
    fact(s, "cpus", "2");
}

/* Input in the loop stays input, on a machine with too few cores too. */
static void input_with_few_cores(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, 4, 30);
    if (cured)
        return;
    section(s, 40, 1, 0.35, LAUNCH, COPY)->involuntary = 11 * s->scale;
}

static void late_rank(struct scene *s, bool cured)
{
    s->p.steps.collectives = all(7);
    s->p.steps.collective_bytes = all(200 * MIB * s->scale);
    if (cured)
        return;
    s->d.time.exposed_comm_pct = 30;
    s->d.time.compute_pct -= 30;
}

/* Four micro-batches, each reduced; the twin reduces the last only, in as many buckets as there
 * are micro-batches. */
static void reduced_each_pass(struct scene *s, bool cured)
{
    s->p.steps.micro_batches = 4;
    s->p.steps.collective_batches = cured ? 1 : 4;
    s->p.steps.collectives = all(cured ? 4 : 16);
    s->p.steps.collective_bytes = all((cured ? 200 : 800) * MIB * s->scale);
    s->d.time.exposed_comm_pct = cured ? 3 : 28;
    s->d.time.compute_pct -= s->d.time.exposed_comm_pct;
}

/* gc.collect() within the step: on the CPU, nothing copied. */
static void garbage(struct scene *s, bool cured)
{
    if (!cured)
        section(s, 35, 1, 0.99, LAUNCH, LAUNCH)->python = "predict.py:20 loop";
}

static void failed_capture(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, 15, 20);
    api(s, "cudaStreamSynchronize", GWT_SYNC, 10, cured ? 0 : 1);
    api(s, "cudaStreamEndCapture", GWT_CAPTURE, 2, cured ? 0 : 1);
}

/* ---- states
 * ------------------------------------------------------------------------------------------------
 */

static void at_the_limit(struct scene *s, bool cured)
{
    if (cured)
        flow(s, GWA_PHASE_FORWARD, 20, 40);
    kernel(s, "void flash_fwd_kernel<>()", 10, 300, 0);
}

static void well_used(struct scene *s, bool cured)
{
    flow(s, GWA_PHASE_FORWARD, cured ? 20 : 8, cured ? 40 : 9);
}

static void not_sampled(struct scene *s, bool cured)
{
    if (cured)
        return;
    s->d.time.method = "bounds";
    s->d.time.idle_pct = s->d.time.compute_pct = NAN;
    s->d.time.exposed_comm_pct = s->d.time.exposed_copy_pct = NAN;
    s->d.time.busy_low_pct = s->d.time.busy_high_pct = NAN;
    for (unsigned i = 0; i < GWA_IDLE_CLASS_COUNT; i++)
        s->d.time.idle[i] = NAN;
    s->d.sites_count = s->d.drains_count = 0;
    s->d.small.under_10us = (struct gwa_share){NAN, NAN};
}

/* A tenth of the events is lost: what looks like input may be anything. */
static void events_lost(struct scene *s, bool cured)
{
    section(s, 60, 1, 0.9, LAUNCH, COPY);
    if (cured)
        return;
    s->coverage.dropped = s->coverage.events / 9;
    s->p.quality.complete = false;
}

/* The same, where durations were guessed. */
static void guesswork(struct scene *s, bool cured)
{
    section(s, 60, 1, 0.9, LAUNCH, COPY);
    s->d.time.guesswork = !cured;
}

static void nothing_ran(struct scene *s, bool cured)
{
    if (!cured)
        s->p.devices_count = 0;
}

/* ---- the table
 * --------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*make)(struct scene *s, bool cured);
    const char *verdict;
} scenes[] = {
    {"items computed in the loop", input_in_the_loop, "input-cpu"},
    {"workers too slow", workers_too_slow, "input-wait"},
    {"two workers too slow", two_workers_too_slow, "input-wait"},
    {"every fourth batch", every_fourth_batch, "input-periodic"},
    {"tokenizer in the loop", tokenizer_in_the_loop, "input-cpu"},
    {"between epochs", between_epochs, "epoch-gap"},
    {"pageable copy", pageable_copy, "h2d-pageable"},
    {"pageable copy, non_blocking", pageable_copy_async, "h2d-pageable"},
    {"pinning per batch", pinning_per_batch, "pin-churn"},
    {"weights on the host", offloaded_weights, "offload"},
    {"optimizer on the host", optimizer_on_the_host, "offload"},
    {"few parameters on the host", few_parameters_on_the_host, "offload"},
    {"reads in each step", reads_each_step, "sync-per-step"},
    {"nan filter", nan_filter, "sync-per-step"},
    {"reads per parameter", reads_per_parameter, "sync-storm"},
    {"anomaly mode", anomaly_mode, "sync-storm"},
    {"anomaly mode on a slow host", anomaly_mode_on_a_slow_host, "sync-storm"},
    {"masks", masks, "shape-sync"},
    {"hooks that synchronize", hooks_that_synchronize, "device-sync"},
    {"launch blocking", launch_blocking, "blocking-mode"},
    {"empty_cache", empty_cache, "alloc-churn"},
    {"flushes", flushes, "alloc-retry"},
    {"kept graphs", kept_graphs, "mem-growth"},
    {"optimizer per parameter", optimizer_per_parameter, "launch-bound"},
    {"generation", generation, "launch-bound"},
    {"LoRA", lora, "launch-bound"},
    {"4-bit weights", four_bit, "launch-bound"},
    {"lengths", lengths, "graph-rerecord"},
    {"lengths, ten steps each", lengths_of_ten, "graph-rerecord"},
    {"lengths, no steps", lengths_without_steps, "graph-rerecord"},
    {"lengths, one after another", lengths_one_after_another, "graph-rerecord"},
    {"recompiles", recompiles, "compile-stall"},
    {"convolutions tried", convolutions_tried, "autotune"},
    {"kernels loaded", kernels_loaded, "module-load"},
    {"saving", saving, "save-stall"},
    {"evaluation", evaluation, "eval-phase"},
    {"logging", logging, "log-stall"},
    {"held lock", held_lock, "gil"},
    {"few cores", few_cores, "cpu-starved"},
    {"input, with few cores", input_with_few_cores, "input-cpu"},
    {"late rank", late_rank, "comm-wait"},
    {"reduced in each pass", reduced_each_pass, "comm-excess"},
    {"garbage collection", garbage, "unknown-host-gap"},
    {"failed capture", failed_capture, "capture-fail"},
    {"at the limit", at_the_limit, "gpu-bound"},
    {"well used", well_used, "healthy"},
    {"not sampled", not_sampled, "inconclusive"},
    {"events lost", events_lost, "inconclusive"},
    {"guesswork", guesswork, "inconclusive"},
    {"nothing ran", nothing_ran, "inconclusive"},
};

#define SCENES (sizeof(scenes) / sizeof(*scenes))

static void verdicts_and_twins(void **state)
{
    static const double scales[] = {1, 0.5, 2};
    static struct scene s;
    unsigned wrong = 0;
    (void)state;
    for (size_t i = 0; i < SCENES; i++)
        for (size_t k = 0; k < 3; k++)
            for (unsigned cured = 0; cured < 2; cured++) {
                scene_begin(&s, scales[k]);
                /* its own launches replace the base's */
                s.d.sites_count = 0;
                idle(&s, GWA_IDLE_LAUNCH, 0), idle(&s, GWA_IDLE_DISPATCH, 0);
                scenes[i].make(&s, cured);
                if (!(s.d.time.idle[GWA_IDLE_LAUNCH] > 0) && s.d.time.method[0] == 's')
                    flow(&s, GWA_PHASE_FORWARD, 3, 2);
                scene_find(&s);
                scene_sound(&s);
                int place = scene_place(&s, scenes[i].verdict);
                if (cured ? place >= 0 : place != 0) {
                    print_error("%s%s at %g times its size:\n", scenes[i].name,
                                cured ? ", cured," : "", scales[k]);
                    scene_print(&s);
                    wrong++;
                }
                if (getenv("SHOW_FINDINGS") && k == 0) {
                    print_error("== %s%s\n", scenes[i].name, cured ? ", cured" : "");
                    scene_print(&s);
                }
                scene_end(&s);
            }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_and_twins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
