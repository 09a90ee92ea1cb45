/* Made-up runs, for tests of comparing: a job of one or more processes with every gated metric
 * set. */
#ifndef COMPARE_HELP_H
#define COMPARE_HELP_H

#include "analysis/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline struct gwa_spread always(double v)
{
    return (struct gwa_spread){v, v, v};
}

static struct gwt_coverage ended = {.ended = true, .events = 1000};
static struct gwa_device h200 = {.index = 0,
                                 .name = "NVIDIA H200",
                                 .sms = 132,
                                 .window = {.wall_s = 10},
                                 .time = {.idle_pct = 40},
                                 .memory = {.peak_allocated_bytes = 1 << 30,
                                            .peak_reserved_bytes = -1,
                                            .activation_bytes = -1,
                                            .used_bytes = -1}};

static struct gwa_per_step usual_kernels[] = {{"add(float*, int)", 40}, {"gemm", 2}};
static struct gwa_per_step usual_calls[] = {{"cudaStreamSynchronize", 1}};

/* 50 steady steps of 42 launches, one wait and one copy of 4 KiB to the device. */
static inline struct gwa_process usual_process(void)
{
    struct gwa_process p = {
        .identity = {.pid = 42, .rank = -1, .command = "python3 -u jobs/train.py --lr 1e-4"},
        .coverage = &ended,
        .quality = {.complete = true},
        .launches = {.calls = 2520, .kernels = 2520, .host_us_per_launch = 10},
        .devices = &h200,
        .devices_count = 1,
        .steps = {.count = 50,
                  .all = 60,
                  .steady = 50,
                  .ms = {9, 10, 12},
                  .spread_pct = 4,
                  .launches = always(42),
                  .kernels = always(42),
                  .graph_launches = always(0),
                  .syncs = always(1),
                  .copies = always(2),
                  .h2d_bytes = always(4096),
                  .d2h_bytes = always(4),
                  .pageable_bytes = always(0),
                  .blocking_copies = always(0),
                  .allocations = always(0),
                  .host_allocations = always(0),
                  .frees = always(0),
                  .collectives = always(0),
                  .collective_bytes = always(0),
                  .captures = always(0),
                  .captures_mean = 0,
                  .module_loads = always(0),
                  .small_reads = always(1),
                  .micro_batches = 1,
                  .recompute_pct = NAN,
                  .confidence = 0.9},
        .step_kernels = usual_kernels,
        .step_kernels_count = 2,
        .step_calls = usual_calls,
        .step_calls_count = 1,
    };
    return p;
}

/* Every double of the time metrics that the sample leaves out is 0, which was "measured". */
static inline struct gwa_run run_of(const struct gwa_process *list, size_t count)
{
    struct gwa_run r = {0};
    for (size_t i = 0; i < count; i++)
        if (gwa_run_add(&r, NULL, &list[i], 0))
            abort();
    if (gwa_run_finish(&r, NULL))
        abort();
    return r;
}

#endif
