/* Findings beside the verdict: hints, order, what is not promised twice, what is not known. */
#include "test_findings_scene.h"

#define SYNC   "cudaStreamSynchronize"
#define COPY   "cudaMemcpyAsync"
#define LAUNCH "cudaLaunchKernelExC"

static struct scene s;

static const struct gwa_finding *found(const char *id)
{
    int i = scene_place(&s, id);
    if (i < 0) {
        scene_print(&s);
        fail_msg("no %s", id);
    }
    return &s.p.findings[i];
}

static double evidence(const struct gwa_finding *f, const char *key)
{
    for (size_t i = 0; i < f->evidence_count; i++)
        if (!strcmp(f->evidence[i].key, key))
            return f->evidence[i].number;
    return NAN;
}

static void run(void)
{
    scene_find(&s);
    scene_sound(&s);
}

/* Reads on a device at its limit cost next to nothing, however long they wait: the state is the
 * verdict, and the reads are mentioned. */
static void reads_at_the_limit(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    s.d.sites_count = 0;
    flow(&s, GWA_PHASE_FORWARD, 0.4, 0.4);
    idle(&s, GWA_IDLE_SYNC, 0.2);
    site(&s, GWA_IDLE_LAUNCH, 2, 500)->origin = GWA_LAUNCH_QUEUED;
    drain(&s, SYNC, 4, 2, 0.3)->waited_ms = 0.9 * s.wall_ms;
    drain(&s, SYNC, 0, 1, 0.2);
    run();
    assert_string_equal(s.p.findings[0].id, "gpu-bound");
    assert_true(scene_place(&s, "sync-per-step") > 0);
    scene_end(&s);
}

/* As measured with two reads a step in a model of 8 layers of 2,048: a little idle after each. */
/* Near it they come first if they are most of what the device does not compute. It is at its
 * limit where it has work in its queue, though it does not compute between two operations. */
static void reads_near_the_limit(void **state)
{
    static const struct near {
        double launch, dispatch, drained, queued, unknown;
        const char *first;
        int gpu_bound;
    } nears[] = {
        {2.2, 4.5, 1.6, 0, 0, "sync-per-step", 1},    /* 6.6 of 7.7 */
        {2.2, 4.5, 1.6, 3, 1.5, "gpu-bound", 0},      /* 6.6 of 12.2; has work 90.8 */
        {2.2, 4.5, 1.6, 0, 4.5, "sync-per-step", -1}, /* the same; has work 87.8 */
        {1.4, 2.6, 1, 0, 0, "gpu-bound", 0},          /* 4 of 5: too little */
    };
    (void)state;
    for (unsigned i = 0; i < sizeof(nears) / sizeof(nears[0]); i++) {
        const struct near *n = &nears[i];
        scene_begin(&s, 1);
        s.d.sites_count = 0;
        flow(&s, GWA_PHASE_FORWARD, n->launch, n->dispatch);
        if (n->queued > 0)
            site(&s, GWA_IDLE_LAUNCH, n->queued, 500)->origin = GWA_LAUNCH_QUEUED;
        if (n->unknown > 0)
            idle(&s, GWA_IDLE_UNKNOWN, n->unknown);
        drain(&s, SYNC, 4, 2, n->drained)->waited_ms = 0.05 * s.wall_ms;
        run();
        assert_string_equal(s.p.findings[0].id, n->first);
        assert_int_equal(scene_place(&s, "gpu-bound"), n->gpu_bound);
        assert_int_equal(scene_place(&s, "healthy"), -1);
        if (!i) { /* with two kernels and two copies of 8 us in 100 ms */
            assert_true(fabs(found("sync-per-step")->share_pct - 5) < 1e-9);
            assert_true(fabs(found("sync-per-step")->bound_pct - 6.632) < 1e-9);
        }
        scene_end(&s);
    }
}

/* What nobody wants is named first on any device: a wait for all of it, left in the loop. */
static void mistakes_at_the_limit(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    s.d.sites_count = 0;
    flow(&s, GWA_PHASE_FORWARD, 1.8, 2.4);
    drain(&s, "cudaDeviceSynchronize", 0, 1, 3.5)->waited_ms = 0.05 * s.wall_ms;
    run();
    assert_string_equal(s.p.findings[0].id, "device-sync");
    assert_string_equal(s.p.findings[1].id, "gpu-bound");
    assert_true(found("device-sync")->bound_pct < 6);
    scene_end(&s);
}

/* Some waits read values, others end uploads; the line is of whichever has one. */
static void some_waits_read(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    s.d.sites_count = 0;
    flow(&s, GWA_PHASE_FORWARD, 4, 16);
    drain(&s, SYNC, 0, 2, 6);
    drain(&s, SYNC, 1, 2.98, 2)->python = "train.py:48 train";
    run();
    const struct gwa_finding *f = found("sync-per-step");
    assert_non_null(strstr(f->what, "5 times in each step, 3 of them to read a value (one byte:"));
    assert_string_equal(f->where, "train.py:48 train");
    scene_end(&s);
}

/* Checkpointing is no idleness: no finding but the state and the hint. */
static void recompute_is_a_hint(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    s.p.steps.recompute_pct = 24;
    s.p.steps.recompute_segments = 16;
    run();
    assert_int_equal(s.p.findings_count, 2);
    assert_string_equal(s.p.findings[0].id, "gpu-bound");
    const struct gwa_finding *f = found("recompute");
    /* of wall time: 24 % of the 94 % that are computing */
    assert_true(fabs(f->bound_pct - 0.24 * 94) < 1e-9);
    assert_non_null(strstr(f->remedy, "39 GiB")); /* room for it */
    scene_end(&s);

    scene_begin(&s, 1);
    s.p.steps.recompute_pct = 24;
    s.d.memory.headroom_bytes = (int64_t)MIB;
    run();
    assert_null(strstr(found("recompute")->remedy, "room"));
    scene_end(&s);

    scene_begin(&s, 1);
    s.p.steps.recompute_pct = 1;
    run();
    assert_int_equal(scene_place(&s, "recompute"), -1);
    scene_end(&s);
}

/* Launches that come too slowly, and room for four times the batch. */
static void a_larger_batch(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    s.d.sites_count = 0;
    flow(&s, GWA_PHASE_FORWARD, 20, 40);
    s.d.memory.batch_multiplier = 4;
    s.p.steps.micro_batches = 8;
    run();
    assert_string_equal(s.p.findings[0].id, "launch-bound");
    assert_int_equal(scene_place(&s, "small-batch"), 1);
    /* a quarter of the launches remains for the same work: 3/4 of 60 % */
    assert_true(fabs(found("small-batch")->bound_pct - 45) < 1e-9);
    assert_non_null(strstr(found("small-batch")->remedy, "before gradient accumulation"));
    scene_end(&s);

    scene_begin(&s, 1); /* no room */
    s.d.sites_count = 0;
    flow(&s, GWA_PHASE_FORWARD, 20, 40);
    s.d.memory.batch_multiplier = 1.3;
    run();
    assert_int_equal(scene_place(&s, "small-batch"), -1);
    scene_end(&s);

    scene_begin(&s, 1); /* busy, with kernels that do not fill it */
    s.d.small.below_sms.busy_pct = 80;
    run();
    assert_string_equal(s.p.findings[0].id, "gpu-bound");
    assert_true(isnan(found("small-batch")->bound_pct));
    scene_end(&s);
}

/* Between operations that are queued, or inside graphs, the device idles too; no launch is late. */
static void gaps_of_a_full_queue(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    s.d.sites_count = 0;
    flow(&s, GWA_PHASE_FORWARD, 1, 0.5);
    site(&s, GWA_IDLE_LAUNCH, 12, 500)->origin = GWA_LAUNCH_GRAPH;
    site(&s, GWA_IDLE_LAUNCH, 9, 500)->origin = GWA_LAUNCH_QUEUED;
    run();
    assert_int_equal(scene_place(&s, "launch-bound"), -1);
    assert_string_equal(s.p.findings[0].id, "healthy");
    /* a graph could still bring operations that are queued closer, but not its own nodes */
    assert_string_equal(s.p.what_if[0].id, "graph-replay");
    assert_true(fabs(s.p.what_if[0].bound_pct - 10.5) < 1e-9);
    scene_end(&s);
}

static void helpers_are_named(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    s.d.sites_count = 0;
    flow(&s, GWA_PHASE_OPTIMIZER, 20, 40);
    s.d.small.dequantise = (struct gwa_share){15, 30};
    s.d.small.tiny_gemm = (struct gwa_share){40, 10};
    s.p.steps.identical = false;
    run();
    const char *remedy = s.p.findings[0].remedy;
    assert_non_null(strstr(remedy, "fused=True"));
    assert_non_null(strstr(remedy, "dequantise"));
    assert_non_null(strstr(remedy, "adapt fewer modules")); /* in training none can be merged */
    assert_null(strstr(remedy, "merge_and_unload"));
    assert_null(strstr(remedy, "Steps are identical"));
    assert_string_equal(s.p.findings[0].where, "optimizer");
    scene_end(&s);

    scene_begin(&s, 1);
    s.d.sites_count = 0;
    flow(&s, GWA_PHASE_FORWARD, 20, 40);
    s.d.small.tiny_gemm = (struct gwa_share){40, 10};
    s.p.steps.backward_pct = 0;
    run();
    assert_non_null(strstr(s.p.findings[0].remedy, "merge_and_unload"));
    scene_end(&s);
}

/* Risks come first, then what frees most, then the state. */
static void order(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    section(&s, 20, 1, 0.99, LAUNCH, COPY);
    section(&s, 30, 1, 0.99, LAUNCH, LAUNCH);
    s.d.memory.growth_bytes_per_step = MIB;
    s.d.memory.steps_to_full = 40000;
    fact(&s, "env.CUDA_LAUNCH_BLOCKING", "1");
    run();
    assert_int_equal(scene_place(&s, "blocking-mode"), 0);
    assert_int_equal(scene_place(&s, "mem-growth"), 1);
    assert_int_equal(scene_place(&s, "unknown-host-gap"), 2);
    assert_int_equal(scene_place(&s, "input-cpu"), 3);
    scene_end(&s);
}

/* The same idle supports one finding: shares of exclusive causes add up to no more than there is,
 * also where a blocking call comes before a section with a cause of its own. */
static void nothing_is_promised_twice(void **state)
{
    static const char *const exclusive[] = {"input-cpu",   "sync-per-step", "launch-bound",
                                            "alloc-churn", "h2d-pageable",  "unknown-host-gap"};
    double sum = 0;
    (void)state;
    scene_begin(&s, 1);
    section(&s, 30, 1, 0.99, SYNC, COPY);
    site(&s, GWA_IDLE_ALLOC, 8, 2)->api = "cudaMalloc";
    drain(&s, SYNC, 4, 1, 34)->waited_ms = 0.01 * s.wall_ms;
    run();
    for (size_t i = 0; i < sizeof(exclusive) / sizeof(*exclusive); i++) {
        int k = scene_place(&s, exclusive[i]);
        if (k >= 0)
            sum += s.p.findings[k].share_pct;
    }
    assert_true(sum <= s.d.time.idle_pct + 1e-9);
    assert_true(fabs(found("input-cpu")->bound_pct - 30) < 1e-9);
    /* of the 34 that follow the read, 30 are input; waited for was less, and at most all is won,
     * with the 16 us that two calls take in 100 ms */
    assert_true(fabs(found("sync-per-step")->share_pct - 4) < 1e-9);
    assert_true(fabs(found("sync-per-step")->bound_pct - 5.016) < 1e-9);
    scene_end(&s);
}

/* A process without one measured figure: nothing is claimed of it. */
static void nothing_is_known(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    memset(&s.d, 0xff, sizeof(s.d)); /* all doubles NaN */
    memset(&s.p.steps, 0xff, sizeof(s.p.steps));
    s.p.steps.count = s.p.steps.all = 0;
    s.p.steps.identical = s.p.steps.by_token = false;
    s.p.steps.varies = s.p.steps.found_by = NULL;
    s.d.name = NULL;
    s.d.memory.growth_bytes_per_step = NAN;
    s.d.memory.retries = 0;
    s.d.memory_bytes = 0;
    s.d.kernels_executed = 10;
    s.d.sites_count = s.d.drains_count = s.d.kernels_count = s.d.transfers_count = 0;
    s.d.gaps_count = 0;
    s.d.time.method = NULL;
    memset(s.d.copies, 0, sizeof(s.d.copies));
    memset(&s.d.prefetches, 0, sizeof(s.d.prefetches));
    s.d.memory.pytorch = s.d.memory.from_reserved = false;
    s.p.devices = &s.d;
    run();
    assert_int_equal(s.p.findings_count, 1);
    assert_string_equal(s.p.findings[0].id, "inconclusive");
    assert_int_equal(s.p.what_if_count, 0);
    scene_end(&s);
}

/* Sampled, but the host's side was not: the state only. */
static void classes_are_not_known(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    s.d.sites_count = 0;
    s.d.time.compute_pct = 30;
    s.d.time.idle_pct = 70;
    s.d.time.busy_low_pct = 28;
    s.d.time.busy_high_pct = 32;
    for (unsigned i = 0; i < GWA_IDLE_CLASS_COUNT; i++)
        s.d.time.idle[i] = NAN;
    run();
    assert_string_equal(s.p.findings[0].id, "inconclusive");
    assert_int_equal(s.p.what_if_count, 0);
    scene_end(&s);
}

static void too_few_samples(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    s.d.time.busy_low_pct = 60;
    s.d.time.busy_high_pct = 99;
    run();
    assert_string_equal(s.p.findings[0].id, "inconclusive");
    assert_int_equal(scene_place(&s, "gpu-bound"), -1);
    scene_end(&s);
}

/* How long copies from pageable memory take on the device is not known well; what was computed
 * meanwhile is. */
static void vague_copies(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    copies(&s, GWT_H2D, GWA_MEM_PAGEABLE, 1, 256 * MIB, 64);
    s.d.time.busy_low_pct = 62;
    s.d.time.busy_high_pct = 100;
    run();
    assert_string_equal(s.p.findings[0].id, "h2d-pageable");
    assert_int_equal(scene_place(&s, "inconclusive"), -1);
    scene_end(&s);
}

/* A mode or risk that says why the device idles needs no doubt beside it. */
static void risks_explain(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    idle(&s, GWA_IDLE_ALLOC, 0);
    site(&s, GWA_IDLE_ALLOC, 60, 3)->api = "cudaMalloc";
    s.d.memory.retries = 30;
    s.d.memory.retry_ms = 0.5 * s.wall_ms;
    run();
    assert_string_equal(s.p.findings[0].id, "alloc-retry");
    assert_int_equal(scene_place(&s, "inconclusive"), -1);
    scene_end(&s);
    scene_begin(&s, 1);
    s.d.time.method = "bounds";
    fact(&s, "env.CUDA_LAUNCH_BLOCKING", "1");
    run();
    assert_string_equal(s.p.findings[0].id, "blocking-mode");
    assert_int_equal(scene_place(&s, "inconclusive"), -1);
    scene_end(&s);
}

/* A free waits until the device is done: what then comes late is its doing, up to that wait. */
static void frees_empty_the_queue(void **state)
{
    (void)state;
    for (unsigned waits = 0; waits < 2; waits++) {
        scene_begin(&s, 1);
        s.d.sites_count = 0;
        flow(&s, GWA_PHASE_FORWARD, 4, 10);
        struct gwa_site *g = site(&s, GWA_IDLE_ALLOC, 20, 3);
        g->api = "cudaFree";
        g->host_ms += waits * 0.24 * s.wall_ms;
        s.d.memory.allocs_per_step = s.d.memory.frees_per_step = 3;
        run();
        assert_true(fabs(found("alloc-churn")->share_pct - (waits ? 34 : 20)) < 1e-9);
        assert_int_equal(scene_place(&s, "launch-bound") >= 0, !waits);
        scene_end(&s);
    }
}

/* Damage lowers confidence in everything that rests on the events. */
static void incomplete_is_less_sure(void **state)
{
    (void)state;
    for (unsigned complete = 0; complete < 2; complete++) {
        scene_begin(&s, 1);
        section(&s, 40, 1, 0.99, LAUNCH, COPY);
        s.p.quality.complete = complete;
        run();
        assert_int_equal(found("input-cpu")->confidence, complete ? GWA_HIGH : GWA_MEDIUM);
        scene_end(&s);
    }
}

/* Idle in many small causes: the largest is the verdict, though none is much. */
static void no_cause_stands_out(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    s.d.sites_count = 0;
    flow(&s, GWA_PHASE_FORWARD, 1.3, 1.4);
    section(&s, 2.5, 1, 0.99, LAUNCH, COPY);
    section(&s, 2.2, 1, 0.99, LAUNCH, LAUNCH);
    idle(&s, GWA_IDLE_SYNC, 25);
    run();
    assert_string_equal(s.p.findings[0].id, "launch-bound");
    scene_end(&s);
}

/* A retry or two while the pool settles are no verdict; nor is a leak that no run will live to
 * see the end of. */
static void small_risks_are_hints(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    s.d.memory.retries = 1;
    s.d.memory.retry_ms = 2;
    s.d.memory.growth_bytes_per_step = 512;
    s.d.memory.steps_to_full = 39 * GIB / 512;
    run();
    assert_string_equal(s.p.findings[0].id, "gpu-bound");
    assert_true(scene_place(&s, "alloc-retry") > 0 && scene_place(&s, "mem-growth") > 0);
    scene_end(&s);
}

/* A full card has no room, whatever else is well. */
static void memory_is_full(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    s.d.sites_count = 0;
    flow(&s, GWA_PHASE_FORWARD, 8, 9);
    s.d.memory.peak_allocated_bytes = (int64_t)(76 * GIB);
    s.d.memory.batch_multiplier = 1.05;
    run();
    assert_string_equal(s.p.findings[0].id, "gpu-bound");
    assert_int_equal(scene_place(&s, "healthy"), -1);
    assert_true(fabs(evidence(&s.p.findings[0], "memory_pct") - 95) < 1e-9);
    scene_end(&s);
}

static void bounds_of_what_if(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    s.d.sites_count = 0;
    flow(&s, GWA_PHASE_FORWARD, 10, 20);
    section(&s, 15, 1, 0.99, LAUNCH, COPY);
    section(&s, 5, 1, 0.01, LAUNCH, COPY);
    site(&s, GWA_IDLE_UNKNOWN, 4, 1)->after = LAUNCH; /* a section without clocks */
    site(&s, GWA_IDLE_UNKNOWN, 3, 1);                 /* not a section */
    copies(&s, GWT_H2D, GWA_MEM_PAGEABLE, 1, 100 * MIB, 7);
    run();
    static const struct {
        const char *id;
        double pct;
    } want[] = {{"graph-replay", 30}, {"no-host-gaps", 24}, {"copies-overlapped", 7}};
    assert_int_equal(s.p.what_if_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(s.p.what_if[i].id, want[i].id);
        assert_true(fabs(s.p.what_if[i].bound_pct - want[i].pct) < 1e-9);
    }
    scene_end(&s);
}

/* Two devices of one process: the state is the busier one's, a cause may be the other's. */
static void two_devices(void **state)
{
    static struct gwa_device both[2];
    static struct scene other;
    (void)state;
    scene_begin(&other, 1);
    section(&other, 60, 1, 1, LAUNCH, COPY);
    other.d.kernels_executed /= 10;
    scene_begin(&s, 1);
    section(&s, 10, 1, 0.99, LAUNCH, COPY);
    both[0] = other.d;
    both[1] = s.d;
    s.p.devices = both;
    s.p.devices_count = 2;
    run();
    assert_string_equal(s.p.findings[0].id, "input-cpu");
    assert_true(fabs(s.p.findings[0].bound_pct - 60) < 1e-9);
    scene_end(&s);
}

/* ---- what is not what it looks like ------------------------------------------------------- */

static void small_uploads_are_no_pageable_copies(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    copies(&s, GWT_H2D, GWA_MEM_PAGEABLE, 40, 4 * KIB, 4);
    run();
    assert_int_equal(scene_place(&s, "h2d-pageable"), -1);
    scene_end(&s);
}

/* A batch of many tensors is small beside the tables that it is looked up in. */
static void a_batch_of_many_tensors_is_no_offload(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    copies(&s, GWT_H2D, GWA_MEM_PAGEABLE, 30, MIB, 30);
    run();
    assert_string_equal(s.p.findings[0].id, "h2d-pageable");
    assert_int_equal(scene_place(&s, "offload"), -1);
    scene_end(&s);
}

/* Outputs that go to the host in each step, and a batch that comes from it. */
static void outputs_are_no_offload(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    s.d.memory.baseline_bytes = (int64_t)GIB;
    copies(&s, GWT_H2D, GWA_MEM_PAGEABLE, 1, MIB, 5);
    copies(&s, GWT_D2H, GWA_MEM_PAGEABLE, 1, GIB, 30);
    run();
    assert_int_equal(scene_place(&s, "offload"), -1);
    scene_end(&s);
}

static void one_late_capture_is_no_habit(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    site(&s, GWA_IDLE_LOAD, 4, 0.02)->api = "cudaStreamEndCapture";
    s.p.other.captures = 5;
    s.p.launches.graph_launches = 20;
    run();
    assert_int_equal(scene_place(&s, "graph-rerecord"), -1);
    scene_end(&s);
}

/* Before the first allocation of a step the host may do anything. */
static void a_section_before_malloc_is_no_churn(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    s.d.memory.frees_per_step = 0;
    section(&s, 20, 1, 0.9, LAUNCH, "cudaMalloc");
    run();
    assert_int_equal(scene_place(&s, "alloc-churn"), -1);
    assert_string_equal(s.p.findings[0].id, "unknown-host-gap");
    scene_end(&s);
}

/* Late launches cost three times as much, but between two waits there are too few to capture. */
static void a_graph_needs_launches_in_a_row(void **state)
{
    (void)state;
    for (unsigned few = 0; few < 2; few++) {
        scene_begin(&s, 1);
        s.p.steps.launches = all(few ? 200 : 2000);
        flow(&s, GWA_PHASE_FORWARD, 30, 30);
        drain(&s, "cudaDeviceSynchronize", 0, 40, 8);
        run();
        assert_string_equal(s.p.findings[0].id, few ? "device-sync" : "launch-bound");
        assert_true(scene_place(&s, few ? "launch-bound" : "device-sync") > 0);
        scene_end(&s);
    }
}

/* What the host does after each read of the loss: did it not wait there, it would be done with
 * that, and all else of the step, while the device computes. Or it would not. */
static void work_after_a_read_is_the_reads(void **state)
{
    (void)state;
    for (unsigned ahead = 0; ahead < 2; ahead++) {
        scene_begin(&s, 1);
        section(&s, 20, 1, 0.99, "cudaStreamSynchronize", LAUNCH);
        idle(&s, GWA_IDLE_HOST_CPU, 20);
        drain(&s, "cudaStreamSynchronize", 4, 1, 22)->waited_ms = (ahead ? 0.6 : 0.1) * s.wall_ms;
        run();
        assert_string_equal(s.p.findings[0].id, ahead ? "sync-per-step" : "unknown-host-gap");
        if (ahead)
            assert_in_range((long)s.p.findings[0].share_pct, 20, 26);
        scene_end(&s);
    }
}

/* An allocation now and then that takes its time is churn, where no graph is captured. */
static void rare_allocations(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    site(&s, GWA_IDLE_ALLOC, 15, 0.2)->api = "cudaMalloc";
    run();
    assert_string_equal(s.p.findings[0].id, "alloc-churn");
    scene_end(&s);
}

/* Two places that happen to last as long are two; a section's two rows are one. */
static void places_are_counted_once(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    section(&s, 20, 1, 0.6, LAUNCH, COPY);
    section(&s, 20, 1, 0.6, "cudaEventRecord", COPY);
    run();
    assert_true(fabs(evidence(found("input-cpu"), "per_step") - 2) < 1e-9);
    assert_true(fabs(evidence(found("input-cpu"), "occurrences") - 2 * STEADY) < 1e-9);
    assert_true(fabs(evidence(found("input-cpu"), "ms_each") - 20) < 1e-9);
    assert_true(fabs(evidence(found("input-cpu"), "cpu_share") - 0.6) < 1e-9);
    assert_true(fabs(found("input-cpu")->bound_pct - 40) < 1e-9);
    scene_end(&s);
}

/* What saving reads, large tensors and small, is no habit of the loop's. */
static void saving_reads_much(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    s.d.copies[GWT_D2H].bytes = (uint64_t)(30 * GIB);
    struct gwa_site *g = section(&s, 30, 30, 0.1, SYNC, COPY);
    g->period = 10;
    g->d2h_bytes = (uint64_t)(30 * GIB);
    drain(&s, SYNC, 20 * MIB, 30, 20)->pageable = true;
    drain(&s, SYNC, 4, 30, 15)->pageable = true;
    run();
    assert_string_equal(s.p.findings[0].id, "save-stall");
    assert_int_equal(scene_place(&s, "sync-storm"), -1);
    assert_int_equal(scene_place(&s, "sync-per-step"), -1);
    scene_end(&s);
}

/* Frees and allocations of retries are the retries'. */
static void retries_are_no_churn(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    site(&s, GWA_IDLE_ALLOC, 20, 5)->api = "cudaFree";
    s.d.memory.retries = 25;
    s.d.memory.retry_ms = 0.3 * s.wall_ms;
    s.d.memory.allocs_per_step = s.d.memory.frees_per_step = 4;
    run();
    assert_string_equal(s.p.findings[0].id, "alloc-retry");
    assert_true(fabs(s.p.findings[0].bound_pct - 20) < 1e-9);
    assert_int_equal(scene_place(&s, "alloc-churn"), -1);
    scene_end(&s);
}

/* 80 % busy, and a flag away from 95: not yet the time to stop. */
static void cheap_gains_are_taken_first(void **state)
{
    (void)state;
    scene_begin(&s, 1);
    section(&s, 14, 1, 0.9, LAUNCH, COPY);
    run();
    assert_string_equal(s.p.findings[0].id, "input-cpu");
    assert_int_equal(scene_place(&s, "healthy"), -1);
    scene_end(&s);
}

/* ---- any figures at all ------------------------------------------------------------------- */

static unsigned seed;

static unsigned any(unsigned below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

/* Mostly plausible, at times nothing, negative or beyond all bounds. */
static double number(double most)
{
    static const double odd[] = {NAN, -1, 0, 1e300, 1e-300};
    return any(12) ? most * any(1000) / 999 : odd[any(5)];
}

static const char *word(void)
{
    static const char *const words[] = {NULL,
                                        SYNC,
                                        COPY,
                                        LAUNCH,
                                        "cudaFree",
                                        "cudaMalloc",
                                        "cudaHostAlloc",
                                        "cudaStreamBeginCapture",
                                        "cuLibraryLoadData",
                                        "cudaEventSynchronize",
                                        "cudaDeviceSynchronize",
                                        "wandb/sdk.py:1 log",
                                        "serialization.py:2 save",
                                        "conv2d_fprop",
                                        "cub::DeviceReduce"};
    return words[any(sizeof(words) / sizeof(*words))];
}

static void any_scene(void)
{
    scene_begin(&s, 1);
    for (unsigned i = 0; i < GWA_IDLE_CLASS_COUNT; i++)
        s.d.time.idle[i] = number(100);
    s.d.time.idle_pct = number(100);
    s.d.time.compute_pct = number(100);
    s.d.time.exposed_comm_pct = number(100);
    s.d.time.exposed_copy_pct = number(100);
    s.d.time.busy_low_pct = number(100);
    s.d.time.busy_high_pct = number(100);
    s.d.window.wall_s = number(10);
    s.d.met_idle_pct = number(100);
    s.p.launches.host_us_per_launch = number(100);
    s.p.quality.complete = any(2);
    s.coverage.dropped = any(4) ? 0 : any(100000);
    s.p.other.captures = any(3) ? 0 : any(100);
    s.p.launches.graph_launches = any(1000);
    s.d.kernels_executed = any(5) ? 1000 : 0;
    if (!any(4))
        memset(&s.p.steps, 0, sizeof(s.p.steps));
    s.p.steps.by_token = any(2);
    s.p.steps.ms = all(number(1000));
    s.p.steps.launches = all(number(1000));
    s.p.steps.copies = all(number(100));
    s.p.steps.h2d_bytes = all(number(1e9));
    s.p.steps.d2h_bytes = all(number(1e9));
    s.p.steps.collectives = all(number(8));
    s.p.steps.collective_bytes = all(number(1e9));
    s.p.steps.small_reads = all(number(100));
    s.p.steps.captures = all(number(2));
    s.p.steps.micro_batches = number(8);
    s.p.steps.recompute_pct = number(40);
    s.p.steps.recompute_segments = number(40);
    s.d.memory.batch_multiplier = number(10);
    s.d.memory.growth_bytes_per_step = number(1e6);
    s.d.memory.steps_to_full = number(1e6);
    s.d.memory.headroom_bytes = any(2) ? -1 : (int64_t)GIB;
    s.d.memory.allocs_per_step = number(10);
    s.d.memory.frees_per_step = number(10);
    s.d.memory.alloc_ms_per_step = number(10);
    s.d.memory.host_allocs_per_step = number(10);
    s.d.memory.retries = any(5);
    s.d.memory.retry_ms = number(100);
    s.d.small.below_sms.busy_pct = number(100);
    s.d.small.tiny_gemm.launches_pct = number(100);
    s.d.small.dequantise = (struct gwa_share){number(100), number(100)};
    s.d.sites_count = any(10);
    for (size_t i = 0; i < s.d.sites_count; i++)
        s.sites[i] = (struct gwa_site){.class = (uint8_t)any(GWA_IDLE_CLASS_COUNT),
                                       .phase = (uint8_t)any(6),
                                       .position = (uint8_t)any(3),
                                       .before_h2d = any(2),
                                       .api = word(),
                                       .after = word(),
                                       .before = word(),
                                       .python = word(),
                                       .count = any(100),
                                       .idle_ms = number(2000),
                                       .host_ms = number(2000),
                                       .cpu_share = number(1),
                                       .other_cores = number(2),
                                       .involuntary = number(20),
                                       .per_step = number(3),
                                       .period = any(12),
                                       .d2h_bytes = any(3) ? 0 : any(1u << 24),
                                       .h2d_bytes = any(3) ? 0 : any(1u << 24)};
    s.d.drains_count = any(8);
    for (size_t i = 0; i < s.d.drains_count; i++)
        s.drains[i] = (struct gwa_drain){.api = word(),
                                         .kernel = word(),
                                         .bytes = any(2) ? any(9) : any(1u << 20),
                                         .pageable = any(2),
                                         .count = any(1000),
                                         .per_step = number(30),
                                         .idle_ms = number(2000),
                                         .waited_ms = number(2000),
                                         .phase = (uint8_t)any(6),
                                         .python = word()};
    s.d.transfers_count = any(5);
    for (size_t i = 0; i < s.d.transfers_count; i++)
        s.transfers[i] = (struct gwa_transfer){.direction = (uint8_t)any(GWT_DIR_COUNT),
                                               .memory = (uint8_t)any(GWA_MEM_COUNT),
                                               .calls = any(100),
                                               .bytes = any(1u << 30),
                                               .blocking_ms = number(100),
                                               .busy_ms = number(1000),
                                               .exposed_pct = number(100)};
}

static void any_figures(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        seed = i * 2654435761u;
        any_scene();
        run();
        scene_end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_at_the_limit),
        cmocka_unit_test(reads_near_the_limit),
        cmocka_unit_test(mistakes_at_the_limit),
        cmocka_unit_test(some_waits_read),
        cmocka_unit_test(vague_copies),
        cmocka_unit_test(risks_explain),
        cmocka_unit_test(frees_empty_the_queue),
        cmocka_unit_test(recompute_is_a_hint),
        cmocka_unit_test(a_larger_batch),
        cmocka_unit_test(helpers_are_named),
        cmocka_unit_test(gaps_of_a_full_queue),
        cmocka_unit_test(order),
        cmocka_unit_test(nothing_is_promised_twice),
        cmocka_unit_test(nothing_is_known),
        cmocka_unit_test(classes_are_not_known),
        cmocka_unit_test(too_few_samples),
        cmocka_unit_test(incomplete_is_less_sure),
        cmocka_unit_test(no_cause_stands_out),
        cmocka_unit_test(small_risks_are_hints),
        cmocka_unit_test(memory_is_full),
        cmocka_unit_test(bounds_of_what_if),
        cmocka_unit_test(two_devices),
        cmocka_unit_test(small_uploads_are_no_pageable_copies),
        cmocka_unit_test(a_batch_of_many_tensors_is_no_offload),
        cmocka_unit_test(outputs_are_no_offload),
        cmocka_unit_test(one_late_capture_is_no_habit),
        cmocka_unit_test(a_section_before_malloc_is_no_churn),
        cmocka_unit_test(rare_allocations),
        cmocka_unit_test(places_are_counted_once),
        cmocka_unit_test(saving_reads_much),
        cmocka_unit_test(a_graph_needs_launches_in_a_row),
        cmocka_unit_test(work_after_a_read_is_the_reads),
        cmocka_unit_test(retries_are_no_churn),
        cmocka_unit_test(cheap_gains_are_taken_first),

        cmocka_unit_test(any_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
