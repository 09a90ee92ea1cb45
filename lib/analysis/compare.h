/* Two runs beside each other: the metrics, what a run was, and how far metrics may move.
 *
 * A run is all processes of one recording, added one by one; it owns what it holds, so that
 * traces and results may be closed. A metric that was not measured is NaN.
 */
#ifndef GWA_COMPARE_H
#define GWA_COMPARE_H

#include "analysis.h"

enum gwa_unit { GWA_UNIT_COUNT, GWA_UNIT_BYTES, GWA_UNIT_MS, GWA_UNIT_US, GWA_UNIT_PCT };

/* What a metric is of. */
enum gwa_group {
    GWA_GROUP_STEP, /* one steady step: medians */
    GWA_GROUP_TIME, /* times and shares of wall time */
    GWA_GROUP_MEMORY,
    GWA_GROUP_TOTAL, /* the whole recording */
    GWA_GROUP_COUNT
};

/* Over the processes of a run. */
enum gwa_join { GWA_JOIN_SUM, GWA_JOIN_MEAN /* by launches */, GWA_JOIN_MOST };

enum gwa_gated { GWA_GATED_NO, GWA_GATED_YES, GWA_GATED_TIMES /* only when times are asked for */ };

enum gwa_worse { GWA_WORSE_MORE, GWA_WORSE_LESS };

/* The metrics, in the order in which they are shown: X(id, key, group, unit, join, gated, worse,
 * abs, rel, text, value). A metric regressed, or was won, when it moved by more than `abs` and by
 * more than `rel` of the baseline. `value`: of struct gwa_process *p, a struct gwa_spread.
 *
 * Counts recur exactly in a loop's median step: half a call is the margin. Captures are a mean,
 * since one in a hundred steps is one too many; of how many steps may differ. Bytes may follow the
 * data (padding): 1 %. Host time per launch depends on the machine that runs the job: between
 * hosts of one project a fifth has been seen, and the regressions that only this figure shows
 * are of 70 %: a third lies between. Times of the device and of steps: a tenth. */
#define GWA_METRICS(X)                                                                             \
    X(LAUNCH_CALLS, launch_calls, STEP, COUNT, SUM, YES, MORE, 0.5, 0, "kernel launch calls",      \
      p->steps.launches)                                                                           \
    X(KERNELS, kernels, STEP, COUNT, SUM, YES, MORE, 0.5, 0, "kernels executed", p->steps.kernels) \
    X(GRAPH_LAUNCHES, graph_launches, STEP, COUNT, SUM, YES, MORE, 0.5, 0, "graph launches",       \
      p->steps.graph_launches)                                                                     \
    X(SYNCS, syncs, STEP, COUNT, SUM, YES, MORE, 0.5, 0, "waits for the GPU", p->steps.syncs)      \
    X(BLOCKING_COPIES, blocking_copies, STEP, COUNT, SUM, YES, MORE, 0.5, 0, "copies that block",  \
      p->steps.blocking_copies)                                                                    \
    X(PAGEABLE_BYTES, pageable_bytes, STEP, BYTES, SUM, YES, MORE, 0, 0.01,                        \
      "copied from or to pageable memory", p->steps.pageable_bytes)                                \
    X(H2D_BYTES, h2d_bytes, STEP, BYTES, SUM, YES, MORE, 0, 0.01, "copied to the GPU",             \
      p->steps.h2d_bytes)                                                                          \
    X(D2H_BYTES, d2h_bytes, STEP, BYTES, SUM, YES, MORE, 0, 0.01, "copied from the GPU",           \
      p->steps.d2h_bytes)                                                                          \
    X(ALLOCATION_CALLS, allocation_calls, STEP, COUNT, SUM, YES, MORE, 0.5, 0,                     \
      "device and pinned allocations",                                                             \
      gwa_spread_sum(p->steps.allocations, p->steps.host_allocations))                             \
    X(CAPTURES, captures, STEP, COUNT, SUM, YES, MORE, 0, 0.10,                                    \
      "stream captures after warm-up, in the mean", gwa_spread_one(p->steps.captures_mean))        \
    X(COLLECTIVES, collectives, STEP, COUNT, SUM, YES, MORE, 0.5, 0, "collectives",                \
      p->steps.collectives)                                                                        \
    X(COLLECTIVE_BYTES, collective_bytes, STEP, BYTES, SUM, YES, MORE, 0, 0.01, "communicated",    \
      p->steps.collective_bytes)                                                                   \
    X(COPIES, copies, STEP, COUNT, SUM, NO, MORE, 0.5, 0, "copies", p->steps.copies)               \
    X(SMALL_READS, small_reads, STEP, COUNT, SUM, NO, MORE, 0.5, 0, "small reads that wait",       \
      p->steps.small_reads)                                                                        \
    X(FREES, frees, STEP, COUNT, SUM, NO, MORE, 0.5, 0, "frees", p->steps.frees)                   \
    X(MODULE_LOADS, module_loads, STEP, COUNT, SUM, NO, MORE, 0.5, 0, "module loads",              \
      p->steps.module_loads)                                                                       \
    X(MICRO_BATCHES, micro_batches, STEP, COUNT, MOST, NO, MORE, 0.5, 0, "micro-batches",          \
      gwa_spread_one(p->steps.micro_batches))                                                      \
    X(HOST_US, host_us_per_launch, TIME, US, MEAN, YES, MORE, 1, 0.35, "host time per launch",     \
      gwa_spread_one(p->launches.host_us_per_launch))                                              \
    X(STEP_MS, step_ms, TIME, MS, MOST, TIMES, MORE, 0.1, 0.10, "time of a step", p->steps.ms)     \
    X(BUSY, busy_pct, TIME, PCT, MEAN, TIMES, LESS, 3, 0.10, "GPU busy", gwa_busy(p))              \
    X(LAUNCH_US, api_us_per_launch, TIME, US, MEAN, NO, MORE, 0.5, 0.10,                           \
      "inside one launch call, median", gwa_spread_one(p->launches.api_us.p50))                    \
    X(QUEUE_US, queue_us, TIME, US, MEAN, NO, MORE, 1, 0.10, "launch to start, median",            \
      GWA_OF_DEVICES(p, queue_us.p50))                                                             \
    X(MET_IDLE, met_idle_pct, TIME, PCT, MEAN, NO, MORE, 3, 0.10, "launches that met an idle GPU", \
      GWA_OF_DEVICES(p, met_idle_pct))                                                             \
    X(COMPUTE, compute_pct, TIME, PCT, MEAN, NO, LESS, 3, 0.10, "computing",                       \
      GWA_OF_DEVICES(p, time.compute_pct))                                                         \
    X(EXPOSED_COMM, exposed_comm_pct, TIME, PCT, MEAN, NO, MORE, 3, 0.10,                          \
      "communicating while nothing computes", GWA_OF_DEVICES(p, time.exposed_comm_pct))            \
    X(EXPOSED_COPY, exposed_copy_pct, TIME, PCT, MEAN, NO, MORE, 3, 0.10,                          \
      "copying while nothing computes", GWA_OF_DEVICES(p, time.exposed_copy_pct))                  \
    X(IDLE, idle_pct, TIME, PCT, MEAN, NO, MORE, 3, 0.10, "GPU idle",                              \
      GWA_OF_DEVICES(p, time.idle_pct))                                                            \
    X(RECOMPUTE, recompute_pct, TIME, PCT, MEAN, NO, MORE, 3, 0.10, "recomputed in backward",      \
      gwa_spread_one(p->steps.recompute_pct))                                                      \
    X(WALL, wall_ms, TIME, MS, MOST, NO, MORE, 1, 0.10, "first to last operation",                 \
      gwa_spread_one(p->window.wall_s * 1e3))                                                      \
    X(PEAK_ALLOCATED, peak_allocated_bytes, MEMORY, BYTES, MOST, NO, MORE, 1048576, 0.02,          \
      "peak allocated by PyTorch", GWA_BYTES_OF_DEVICES(p, peak_allocated_bytes))                  \
    X(PEAK_RESERVED, peak_reserved_bytes, MEMORY, BYTES, MOST, NO, MORE, 1048576, 0.02,            \
      "peak reserved by PyTorch", GWA_BYTES_OF_DEVICES(p, peak_reserved_bytes))                    \
    X(ACTIVATION, activation_bytes, MEMORY, BYTES, MOST, NO, MORE, 1048576, 0.02, "activations",   \
      GWA_BYTES_OF_DEVICES(p, activation_bytes))                                                   \
    X(USED, used_bytes, MEMORY, BYTES, MOST, NO, MORE, 1048576, 0.02, "device memory used",        \
      GWA_BYTES_OF_DEVICES(p, used_bytes))                                                         \
    X(TOTAL_LAUNCHES, total_launch_calls, TOTAL, COUNT, SUM, NO, MORE, 0.5, 0,                     \
      "kernel launch calls", gwa_spread_one((double)p->launches.calls))                            \
    X(TOTAL_KERNELS, total_kernels, TOTAL, COUNT, SUM, NO, MORE, 0.5, 0, "kernels executed",       \
      gwa_spread_one((double)p->launches.kernels))                                                 \
    X(TOTAL_GRAPHS, total_graph_launches, TOTAL, COUNT, SUM, NO, MORE, 0.5, 0, "graph launches",   \
      gwa_spread_one((double)p->launches.graph_launches))                                          \
    X(TOTAL_SYNCS, total_syncs, TOTAL, COUNT, SUM, NO, MORE, 0.5, 0, "waits for the GPU",          \
      gwa_spread_one((double)p->syncs.calls))                                                      \
    X(TOTAL_BLOCKING, total_blocking_copies, TOTAL, COUNT, SUM, NO, MORE, 0.5, 0,                  \
      "copies that block", gwa_spread_one((double)p->blocking_copies.calls))                       \
    X(TOTAL_ALLOCATIONS, total_allocation_calls, TOTAL, COUNT, SUM, NO, MORE, 0.5, 0,              \
      "device and pinned allocations", gwa_spread_one((double)p->allocations.calls))               \
    X(TOTAL_RETRIES, total_allocation_retries, TOTAL, COUNT, SUM, NO, MORE, 0.5, 0,                \
      "failed allocations", gwa_spread_one((double)p->allocations.failed))                         \
    X(TOTAL_CAPTURES, total_captures, TOTAL, COUNT, SUM, NO, MORE, 0.5, 0, "stream captures",      \
      gwa_spread_one((double)p->other.captures))                                                   \
    X(TOTAL_LOADS, total_module_loads, TOTAL, COUNT, SUM, NO, MORE, 0.5, 0, "module loads",        \
      gwa_spread_one((double)p->other.module_loads))                                               \
    X(TOTAL_COLLECTIVES, total_collectives, TOTAL, COUNT, SUM, NO, MORE, 0.5, 0, "collectives",    \
      gwa_collective_calls(p))

enum gwa_metric_id {
#define X(id, ...) GWA_METRIC_##id,
    GWA_METRICS(X)
#undef X
#define X(id, key, text) GWA_METRIC_IDLE_##id, /* idle_launch_pct ... */
        GWA_IDLE_CLASSES(X)
#undef X
            GWA_METRIC_COUNT
};

struct gwa_metric {
    const char *key, *text;
    uint8_t group, unit, join, gated, worse;
    double abs, rel;
};

extern const struct gwa_metric gwa_metrics[GWA_METRIC_COUNT];

/* post: its id, or GWA_METRIC_COUNT where there is none of this name. */
unsigned gwa_metric_find(const char *key);

/* ---- what must be the same for counts, or for times, to be comparable ------------------ */

/* X(id, key, for times only, recorded fact, text); NULL: from elsewhere */
#define GWA_KEYS(X)                                                                                \
    X(SCRIPT, script, false, NULL, "script")                                                       \
    X(PROCESSES, processes, false, NULL, "number of processes")                                    \
    X(SMS, sms, false, NULL, "number of SMs")                                                      \
    X(TORCH, torch, false, "version.torch", "PyTorch")                                             \
    X(CUDART, cudart, false, "library.libcudart", "CUDA runtime")                                  \
    X(CUBLAS, cublas, false, "library.libcublas.so", "cuBLAS")                                     \
    X(CUBLASLT, cublaslt, false, "library.libcublasLt.so", "cuBLASLt")                             \
    X(CUDNN, cudnn, false, "library.libcudnn.so", "cuDNN")                                         \
    X(NCCL, nccl, false, "version.nccl", "NCCL")                                                   \
    X(GPU, gpu, true, NULL, "GPU")                                                                 \
    X(DRIVER, driver, true, "version.driver", "driver")

enum gwa_key_id {
#define X(id, ...) GWA_KEY_##id,
    GWA_KEYS(X)
#undef X
        GWA_KEY_COUNT
};

struct gwa_key {
    const char *key, *fact, *text;
    bool times;
};

extern const struct gwa_key gwa_keys[GWA_KEY_COUNT];
unsigned gwa_key_find(const char *key); /* GWA_KEY_COUNT: none */

/* ---- names with a number each ---------------------------------------------------------------- */

struct gwa_named {
    char *name;
    char *full;     /* of a name that was cut; else NULL */
    double calls;   /* per steady step */
    double mean_us; /* of one, on the device; NaN */
    char *where;    /* Python line; NULL */
};

struct gwa_names {
    struct gwa_named *list;
    size_t count, room;
};

/* Bytes that are no plain text become '?', long names are cut and end in a hash. NULL: a name that
 * is not known. post: 0 or -ENOMEM. */
int gwa_names_add(struct gwa_names *n, const char *name, double calls, double mean_us,
                  const char *where);
/* Sorts, and makes one of those with the same name: before finding and comparing. */
void gwa_names_sort(struct gwa_names *n);
const struct gwa_named *gwa_names_find(const struct gwa_names *n, const char *name);
void gwa_names_free(struct gwa_names *n);

struct gwa_change {
    const char *name;  /* borrowed */
    const char *where; /* Python line; NULL */
    double base, now;  /* calls per step; 0: none */
    double base_us, now_us;
    double effect_ms; /* GPU time per step that it adds; NaN */
};

enum gwa_sort { GWA_SORT_EFFECT, GWA_SORT_CALLS, GWA_SORT_NAME };

/* What differs, in order; borrows from both. post: 0 or -ENOMEM; *out to be freed. */
int gwa_names_compare(const struct gwa_names *base, const struct gwa_names *now, enum gwa_sort sort,
                      struct gwa_change **out, size_t *count);

/* ---- a run --------------------------------------------------------------------------------------
 */

struct gwa_run_finding {
    char *id, *what, *where;
    double share_pct;
};

struct gwa_run_process {
    uint32_t pid;
    int rank;
    double kernels; /* in the whole recording */
    size_t steady;  /* steps that medians are over */
    struct gwa_spread values[GWA_METRIC_COUNT];
};

struct gwa_run {
    struct gwa_run_process *processes;
    size_t count;
    struct gwa_spread values[GWA_METRIC_COUNT]; /* of all, after gwa_run_finish() */
    char *keys[GWA_KEY_COUNT];                  /* NULL: not recorded */
    struct gwa_names kernels, calls;            /* of a steady step, of all processes */
    struct gwa_run_finding *findings;           /* of the process with most kernels first */
    size_t findings_count;
    char **problems; /* why nothing can be concluded from it, each a sentence */
    size_t problems_count;
    bool rankless;     /* several processes without ranks that tell them apart */
    uint64_t stacks;   /* Python stacks that were taken */
    double spread_pct; /* of the step time: the widest of the processes */
};

/* Steady steps below which a median says nothing. */
#define GWA_STEPS_LEAST 10u
/* Confidence in the steps found, likewise. */
#define GWA_CONFIDENCE_LEAST 0.5

/* min_steps: 0: GWA_STEPS_LEAST. post: 0 or -ENOMEM. */
int gwa_run_add(struct gwa_run *r, const struct gwt_trace *trace, const struct gwa_process *p,
                size_t min_steps);
/* label: instead of the script's name; NULL: that. post: 0 or -ENOMEM. */
int gwa_run_finish(struct gwa_run *r, const char *label);
int gwa_run_problem(struct gwa_run *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void gwa_run_free(struct gwa_run *r);

/* "python3 -u dir/train.py --x" -> "train.py"; malloc'ed, NULL without memory or a command. */
char *gwa_script_label(const char *command);

/* ---- margins
 * -------------------------------------------------------------------------------------- */

struct gwa_margins {
    double abs, rel;             /* upwards */
    double below_abs, below_rel; /* downwards */
};

struct gwa_margins gwa_margins_of(unsigned metric); /* from the table */

enum gwa_move { GWA_MOVE_NONE, GWA_MOVE_UP, GWA_MOVE_DOWN };

/* Beyond both margins, each divided by `part`. NaN moves nowhere. */
enum gwa_move gwa_moved(const struct gwa_margins *m, double base, double now, double part);

/* Whether a difference may be one of two equal runs. spread_pct: of step times, the wider of the
 * two. post: false where that is not known. */
bool gwa_within_noise(unsigned metric, const struct gwa_spread *base, const struct gwa_spread *now,
                      double spread_pct);

/* ---- for the table ------------------------------------------------------------------------------
 */

struct gwa_spread gwa_spread_one(double v); /* least and most not known */
struct gwa_spread gwa_spread_sum(struct gwa_spread a, struct gwa_spread b);
struct gwa_spread gwa_busy(const struct gwa_process *p);
struct gwa_spread gwa_collective_calls(const struct gwa_process *p);
/* Mean of a double over the devices, by wall time. */
#define GWA_OF_DEVICES(p, field)                                                                   \
    gwa_spread_one(gwa_mean_of_devices(p, offsetof(struct gwa_device, field)))
double gwa_mean_of_devices(const struct gwa_process *p, size_t offset);
/* Largest of a byte count of struct gwa_device_memory. */
#define GWA_BYTES_OF_DEVICES(p, field)                                                             \
    gwa_spread_one(gwa_most_of_devices(p, offsetof(struct gwa_device_memory, field)))
double gwa_most_of_devices(const struct gwa_process *p, size_t offset);

#endif
