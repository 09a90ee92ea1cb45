/* From one process's recording to figures. Nothing here prints or exits.
 *
 * A figure that was not measured is NaN (doubles) or NULL (strings); a count that is 0 was
 * counted. Definitions: a call that failed or that a capturing stream took into a graph
 * is not an execution and is in no figure but `failed` and `captured`; a call belongs to
 * a range when its entry lies inside; copies and memsets inside graphs count at each
 * launch of the graph.
 */
#ifndef GWA_ANALYSIS_H
#define GWA_ANALYSIS_H

#include <gpuwait/trace.h>

/* What the host was doing while the device was idle: X(id, key, text) */
#define GWA_IDLE_CLASSES(X)                                                                        \
    X(LAUNCH, launch, "inside launch calls, or on the way to the device")                          \
    X(DISPATCH, dispatch, "outside CUDA for under 1 ms: framework and Python per operator")        \
    X(HOST_CPU, host_cpu, "outside CUDA for longer, on the CPU")                                   \
    X(HOST_BLOCKED, host_blocked, "outside CUDA for longer, waiting")                              \
    X(SYNC, sync, "inside a blocking call after the device had finished")                          \
    X(ALLOC, alloc, "allocating, freeing or registering memory")                                   \
    X(COPY, copy, "inside a copy that blocks, while the device did nothing")                       \
    X(LOAD, load, "loading modules, capturing or instantiating graphs")                            \
    X(COMM, comm, "inside NCCL's host calls")                                                      \
    X(UNKNOWN, unknown, "not attributable")

enum gwa_idle_class {
#define X(id, key, text) GWA_IDLE_##id,
    GWA_IDLE_CLASSES(X)
#undef X
        GWA_IDLE_CLASS_COUNT
};

/* When one kernel of NCCL ran, of those that were executed, in the order of their calls' return:
 * what only all ranks together tell. */
struct gwa_comm_time {
    int64_t wait, ns; /* from its start: until the last rank came, until its end; -1: not known */
    uint8_t op;       /* by which its time is added up: below GWA_COMM_OPS */
};
#define GWA_COMM_OPS 16u

struct gwa_interval; /* ranges.h */

struct gwa_options {
    const char *range; /* only what lies in NVTX ranges of this name; NULL: everything */
    /* Steps: the NVTX ranges of this name, or begun by each launch of a kernel whose name holds
     * this text; both NULL: found by themselves. */
    const char *step_range, *step_kernel;
    /* Times from the steady steps [from, to) only, counted from 0 over all steps of the range;
     * 0, 0: all of those that are not warm-up. */
    uint32_t step_from, step_to;
    bool whole; /* times from the whole recording or range, warm-up too */
    /* Of those times, only what was submitted within these, sorted and disjoint; NULL: all. */
    const struct gwa_interval *within;
    size_t within_count;
    const struct gwa_comm_time *comm; /* NULL: not known */
    size_t comm_count;
    /* Counts alone: the device's time, and what it waited for, stay unknown. */
    bool counts_only;
    /* From the return of a launch to its start on an idle device, us; 0: as it is without a
     * profiler. Under one, calls last longer and starts follow sooner. */
    double start_us;
    unsigned threads; /* that it may keep busy; 0: as many as there are CPUs */
    /* Called now and then; nonzero stops with -ECANCELED. May be NULL. */
    int (*progress)(void *arg, uint64_t done, uint64_t total);
    void *progress_arg;
};

/* Durations in microseconds; quantiles within 1 %. */
struct gwa_times {
    double mean, p50, p90, p99;
};

struct gwa_api {
    const char *name;
    uint8_t kind;   /* enum gwt_kind */
    uint8_t level;  /* enum gwt_level */
    uint64_t calls; /* executed */
    uint64_t failed;
    uint64_t captured;
    uint64_t bytes;
    double ms;
    struct gwa_times us; /* launches and graph launches only */
};

struct gwa_launches {
    uint64_t calls;          /* kernel launch calls executed */
    uint64_t kernels;        /* kernels executed, those of graphs included */
    uint64_t captured;       /* kernel launch calls taken into a graph */
    uint64_t graph_launches; /* executed */
    uint64_t failed;         /* of kernels and graphs */
    uint64_t driver_only;    /* kernel launch calls that no runtime wrapper saw */
    uint64_t holes;          /* runtime launches whose driver launch was not seen */
    uint64_t approximate;    /* launches of graphs that were edited or could not be walked */
    double per_second;       /* launches of kernels and of graphs, over the window */
    double driver_only_pct;  /* of `calls` */
    struct gwa_times api_us; /* time inside a launch call, of kernels and of graphs */
    /* Median from the entry of one launch to the entry of the same thread's next, where no
     * blocking call lies between: what one launch costs the host, framework included. */
    double host_us_per_launch;
};

struct gwa_waits {
    uint64_t calls;
    double waited_ms;
};

struct gwa_allocations { /* device memory and pinned host memory */
    uint64_t calls;      /* allocations and registrations that succeeded */
    uint64_t failed;
    double ms;
    uint64_t device_calls, host_calls;
    uint64_t frees;
    double free_ms;
};

struct gwa_collective {
    const char *op; /* the API's name without "nccl" */
    uint64_t calls;
    uint64_t bytes;
    double ms;
};

/* Calls that are counted and no more: X(field, kind, text) */
#define GWA_OTHER_CALLS(X)                                                                         \
    X(module_loads, GWT_MODULE_LOAD, "module loads")                                               \
    X(captures, GWT_CAPTURE, "stream captures")                                                    \
    X(instantiations, GWT_INSTANTIATE, "graph instantiations")                                     \
    X(graph_updates, GWT_GRAPH_UPDATE, "graph updates")                                            \
    X(host_functions, GWT_HOST_FUNC, "host functions")                                             \
    X(event_records, GWT_EVENT_RECORD, "event records")                                            \
    X(stream_waits, GWT_STREAM_WAIT, "stream waits")

struct gwa_other {
#define X(field, kind, text) uint64_t field;
    GWA_OTHER_CALLS(X)
#undef X
};

struct gwa_thread {
    uint32_t id;
    uint32_t tid;
    const char *name;
    uint64_t calls;
    uint64_t launches;
    double waited_ms; /* inside blocking calls */
};

struct gwa_stream {
    uint16_t id;
    uint8_t device; /* 0xff: unknown */
    uint8_t type;   /* enum gwt_stream_type; 0: unknown */
    uint8_t nonblocking;
    uint64_t handle;
    uint32_t tid; /* of its thread, for a per-thread default stream */
    uint64_t launches;
    uint64_t copies;
    uint64_t memsets;
    uint64_t collectives;
    uint64_t syncs;
};

struct gwa_kernel {
    const char *name; /* demangled whole; NULL: the driver gave none */
    uint64_t calls;   /* executed */
    uint64_t in_graphs;
    double mean_us, total_ms; /* NaN where most of its launches rest on no sample of it */
    double busy_pct;          /* total_ms in percent of the device's busy time */
    double below_sms_pct; /* of those whose grid is known: fewer blocks than the device has SMs */
};

enum gwa_memory { GWA_MEM_DEVICE, GWA_MEM_PINNED, GWA_MEM_PAGEABLE, GWA_MEM_GRAPH, GWA_MEM_COUNT };

struct gwa_graph { /* executable graph, as launched in the window */
    uint32_t id;
    uint64_t launches;
    uint64_t kernels; /* of one launch */
    double mean_us;   /* of a launch, the gaps between its nodes included; NaN: never timed */
};

struct gwa_copies {
    uint64_t calls;
    uint64_t bytes;
};

struct gwa_transfer {
    uint8_t direction; /* enum gwt_direction */
    uint8_t memory;    /* enum gwa_memory; GRAPH: inside graphs, kind not known */
    uint16_t stream;   /* 0: unknown, or in graphs */
    uint64_t calls;
    uint64_t bytes;
    uint64_t blocking; /* of the calls, those that return when the copy is done */
    double blocking_ms;
    double gb_per_s; /* by busy_ms; without it of the blocking ones, by the time inside the call */
    double busy_ms;  /* on the device */
    double exposed_pct; /* of that, while no kernel ran */
};

struct gwa_window {
    /* Start of the first operation to end of the last, of each interval of the range; where the
     * device was not sampled, entry of the first call to return of the last. */
    double wall_s;
    double excluded_s;
};

/* Percentages of the window's wall time. */
struct gwa_time {
    /* They add up: compute; communication while nothing computes; copies and memsets while
     * neither; nothing. */
    double compute_pct, exposed_comm_pct, exposed_copy_pct, idle_pct;
    double idle[GWA_IDLE_CLASS_COUNT]; /* they add up to idle_pct; NaN where not sampled */
    double drained_pct; /* idle that followed a blocking call which had emptied the queue */
    double busy_low_pct, busy_high_pct; /* 100 - idle lies between, most likely */
    /* From the return of a blocking call that left the device empty to the entry of the next
     * submission: a lower bound of idle. NaN where lost events forbid the conclusion. */
    double provable_idle_pct;
    double provable_idle_s;
    double nvidia_smi_pct;      /* what its utilisation shows: sixths of a second with any kernel */
    double sampled_share_pct;   /* of operations' time, that rests on samples of their own kind */
    double anchor_residual_pct; /* by how much the model missed the ends that blocking calls show */
    const char *method;         /* "sampled", "bounds"; NULL where nothing is known */
    bool guesswork;             /* too many kernels were never timed: shares mean little */
};

/* Idle between operations by length of the gap; percentages of the window's wall time. */
struct gwa_gap_bands {
    double over_100us_pct, mid_pct, under_10us_pct;
};

struct gwa_idle_gap {
    double start_s; /* since the recording began */
    double ms;
    double parts_ms[GWA_IDLE_CLASS_COUNT];
    const char *drained_by; /* API of the blocking call that had emptied the queue; NULL: none */
    const char *python;     /* "file.py:12 function", of the longest part; NULL: not known */
};

/* Where a site lies in its step. */
enum gwa_site_position { GWA_SITE_INSIDE, GWA_SITE_STEP_EDGE, GWA_SITE_OUTSIDE_STEPS };

/* Where idle of class `launch` comes from. */
enum gwa_launch_origin {
    GWA_LAUNCH_CALL,   /* inside the submitting call, or on the way from it to the device */
    GWA_LAUNCH_QUEUED, /* what came next was there already: between two operations' work */
    GWA_LAUNCH_GRAPH,  /* between the nodes of a graph */
    GWA_LAUNCH_ORIGINS
};

/* Host activity that left the device idle, folded over its recurrences: same class, calls
 * around it and phase. `dispatch` and `launch` are folded by phase alone (and by origin).
 * What exceeds the table's room is folded by class alone, without calls. A section that was
 * partly on the CPU is in two rows, `host_cpu` and `host_blocked`, with the idle of each. */
struct gwa_site {
    uint8_t class;      /* enum gwa_idle_class */
    uint8_t origin;     /* LAUNCH: enum gwa_launch_origin */
    uint8_t phase;      /* enum gwa_phase */
    uint8_t position;   /* enum gwa_site_position */
    bool before_h2d;    /* what ends it is, or soon leads to, a copy to the device */
    bool unusual;       /* over four times as long as is usual between the same calls */
    const char *api;    /* the call it was inside; NULL: outside calls */
    const char *after;  /* outside calls: the one before; NULL: none */
    const char *before; /* outside calls: the one that ended it */
    const char *reason; /* UNKNOWN: why; else NULL */
    uint64_t count;
    double idle_ms;     /* of the device, in it */
    double host_ms;     /* its whole length */
    double cpu_share;   /* of host_ms measured, the thread's own CPU time; NaN: not measured */
    double other_cores; /* CPU time of the process's other threads over host_ms; NaN */
    double involuntary; /* context switches per occurrence; NaN */
    double per_step;    /* occurrences per steady step; NaN without steps */
    unsigned period;    /* it recurs every so many steps; 0: not regularly; 1: in every step */
    unsigned wave;      /* before_h2d: it takes long every so many steps; 0: at no such rhythm */
    uint64_t d2h_bytes, h2d_bytes; /* moved by the copies right before and after it, all together */
    const char *python;            /* "file.py:12 function", the most frequent line; NULL */
};

/* Blocking calls that emptied the queue, folded by call, size read and kernel before. */
struct gwa_drain {
    const char *api;    /* NULL: those that exceed the table's room, together */
    const char *kernel; /* name of the last kernel before, demangled; NULL */
    uint64_t bytes;     /* of the copy to the host that it waited for; 0: none */
    bool pageable;
    uint64_t count;
    double per_step; /* NaN without steps */
    double idle_ms;  /* from the end of the device's work to the next operation's start */
    double waited_ms;
    uint8_t phase;
    const char *python;
};

struct gwa_by_phase {
    double busy_pct, idle_pct; /* of the window's wall time; idle by what ended it */
};

/* Beyond, a batch that small says little of what a large one needs. */
#define GWA_MULTIPLIER_MOST 64.0

struct gwa_device_memory {
    /* PyTorch's own figures, -1 where it reported none. In a range, what was held at its
     * begin counts. */
    int64_t peak_allocated_bytes;
    int64_t peak_reserved_bytes;
    /* From here on -1 or NaN where not known; they rest on steps, or say nothing without. */
    int64_t baseline_bytes;   /* allocated between steps: weights, optimizer, what is kept */
    int64_t activation_bytes; /* highest of the steady steps' peaks over their baseline */
    int64_t used_bytes;       /* of the device, at most: reserved by PyTorch, or by allocations */
    int64_t capacity_bytes;   /* least that was free, or this process's for its tensors */
    int64_t headroom_bytes;   /* of that, beyond what the forward pass needs at most */
    /* 1 + 0.9 x what fits beside the forward peak, the pool taking as much more than tensors as it
     * does now, / activation; NaN where weights are fetched */
    double batch_multiplier;
    double growth_bytes_per_step; /* of the baseline; 0: none beyond its scatter */
    double steps_to_full;         /* at that growth; NaN: does not grow */
    uint64_t retries;             /* allocations that failed for want of memory, then succeeded */
    double retry_ms;
    double allocs_per_step, frees_per_step; /* device allocations proper, in steady steps */
    double host_allocs_per_step;            /* pinned */
    double alloc_ms_per_step;
    bool pytorch;       /* from its allocator's reports */
    bool from_reserved; /* free memory is not known: other processes are left out */
};

/* Kernels too small to fill the device, and helpers by name; each in percent of the executed
 * kernels and of the device's busy time. By name: a name counts as small by its mean. */
struct gwa_share {
    double launches_pct, busy_pct; /* busy_pct: NaN where not sampled */
};

struct gwa_small_work {
    struct gwa_share under_10us; /* NaN where not sampled */
    struct gwa_share below_sms;  /* grids smaller than the number of SMs; of known grids */
    struct gwa_share dequantise; /* weights unpacked to be multiplied, by name */
    struct gwa_share tiny_gemm;  /* matrix products on grids smaller than the number of SMs */
};

struct gwa_comm_use { /* of one operation of NCCL, where gwa_options.comm tells */
    double busy_ms;
    double exposed_ms;      /* while nothing computes */
    double exposed_wait_ms; /* of that, until the last rank came */
};

struct gwa_device {
    int index; /* -1: not known on which device */
    const char *name;
    uint32_t sms; /* 0: unknown */
    uint64_t memory_bytes;
    uint16_t pcie_gen, pcie_width;
    struct gwa_window window;
    struct gwa_time time;
    struct gwa_times queue_us; /* from the return of a launch to its start */
    double met_idle_pct;       /* of launches: nothing ran when they started */
    struct gwa_gap_bands gaps_by_length;
    struct gwa_idle_gap *gaps; /* the longest, longest first; NULL where not sampled */
    size_t gaps_count;
    struct gwa_by_phase by_phase[4]; /* enum gwa_phase; NaN where not sampled */
    struct gwa_site *sites;          /* most idle first */
    size_t sites_count;
    struct gwa_drain *drains; /* most idle first */
    size_t drains_count;
    uint64_t kernels_executed;
    struct gwa_kernel *kernels; /* by time, else by calls, most first */
    size_t kernels_count;
    struct gwa_graph *graphs; /* by id; NULL where not sampled, or none ran */
    size_t graphs_count;
    struct gwa_copies copies[GWT_DIR_COUNT];
    struct gwa_copies memsets;
    struct gwa_copies prefetches;
    struct gwa_transfer *transfers; /* by direction, memory, stream */
    size_t transfers_count;
    struct gwa_device_memory memory;
    struct gwa_small_work small;
    struct gwa_comm_use comm[GWA_COMM_OPS];
};

/* What makes the recording, or the counts from it, incomplete: X(id, text), the text
 * preceded by the number where `amount` is not 0. */
#define GWA_FLAWS(X)                                                                               \
    X(DROPPED, "events dropped because a ring was full")                                           \
    X(MISSING, "events are in neither dump nor ring")                                              \
    X(BAD_FRAMES, "damaged frames skipped")                                                        \
    X(TORN, "the dump's last frame is cut short")                                                  \
    X(RING_MISSING, "not closed by its process and the ring file is gone: the end is missing")     \
    X(AGGREGATED, "events kept as per-second sums only, to stay within GPUWAIT_MAX")               \
    X(STOPPED, "writing stopped")                                                                  \
    X(NO_RING, "events of threads that got no ring")                                               \
    X(DEFINITIONS, "definitions lost: some names or shapes are unknown")                           \
    X(HOLES, "launches that did not reach the driver in sight: their kernels have no name")        \
    X(GRAPHS, "launches of graphs whose nodes are not exactly known")                              \
    X(UNDECODED, "copies whose bytes could not be read")

enum gwa_flaw_id {
#define X(id, text) GWA_FLAW_##id,
    GWA_FLAWS(X)
#undef X
        GWA_FLAW_COUNT
};

struct gwa_flaw {
    uint8_t id;      /* enum gwa_flaw_id */
    uint64_t amount; /* 0: no number belongs to it; STOPPED: errno */
};

const char *gwa_flaw_text(unsigned id);

struct gwa_stuck { /* a call that did not return */
    const char *api;
    const char *thread_name;
    uint32_t tid;
    double seconds; /* since it was entered; NaN: not known */
};

struct gwa_quality {
    bool complete;
    struct gwa_flaw flaws[GWA_FLAW_COUNT];
    size_t flaws_count;
    uint64_t recorded;
    uint64_t dropped;
    struct gwa_stuck *stuck; /* longest first; empty after a clean end */
    size_t stuck_count;
    double own_host_ms; /* calls x measured cost, first-time work, sampling, our threads' CPU */
    double own_overhead_pct; /* own_host_ms over the window: percent of one core */
};

/* The smallest, median and largest of the steady steps. */
struct gwa_spread {
    double least, median, most;
};

/* Of the steady steps, unless a field says otherwise. Figures are medians where they are one
 * number; NaN where not known. */
struct gwa_step_summary {
    size_t count;         /* steady and unusual ones */
    size_t all;           /* warm-up too */
    size_t steady;        /* those that medians are over */
    double captures_mean; /* stream captures per step, over `count` */
    double warmup_s;      /* before the first steady step */
    struct gwa_spread ms;
    double spread_pct; /* of `ms`: interquartile range over median */
    struct gwa_spread launches, graph_launches, kernels, syncs, copies, h2d_bytes, d2h_bytes;
    struct gwa_spread pageable_bytes, blocking_copies, allocations, host_allocations, frees;
    struct gwa_spread collectives, collective_bytes, captures, module_loads, small_reads;
    double micro_batches;      /* forward and backward passes per step */
    double collective_batches; /* of them, those whose backward pass has collectives */
    bool identical;            /* same signatures, copies and order in all steady steps */
    const char *varies;        /* where not: what does, in words; NULL */
    double identical_pct;      /* of steady steps, those like the most frequent one */
    /* of GPU time where sampled (else of launches) */
    double forward_pct, backward_pct, optimizer_pct;
    double recompute_pct;      /* of GPU time: forward launches repeated in backward */
    double recompute_segments; /* per step */
    double unusual;            /* steps that were longer for what they did besides */
    unsigned unusual_period;   /* they come every so many steps; 0: not regularly */
    double unusual_ms;         /* by how much they are longer */
    double other_pct;          /* of the time from the first to the last: between steps */
    double confidence;         /* 0 .. 1 */
    bool by_token;             /* a generation loop: no backward, one launch pattern a token */
    const char *found_by;      /* "launches", "graph launches", "range", "kernel" */
};

/* What a steady step holds by name: means over these steps. */
struct gwa_per_step {
    const char *name; /* kernels: demangled, NULL: none; calls: the API's */
    double calls;
};

/* Findings: findings.def has one row for each id. */
struct gwa_evidence {
    const char *key; /* as in JSON */
    double number;   /* NaN: text instead */
    char *text;      /* malloc'ed, or NULL */
};

enum gwa_confidence { GWA_LOW, GWA_MEDIUM, GWA_HIGH };

struct gwa_finding {
    const char *id;          /* "input-cpu" */
    double share_pct;        /* of wall time, that it accounts for; NaN: not a share */
    double bound_pct;        /* of wall time, saved at most if it were cured; NaN */
    uint8_t confidence;      /* enum gwa_confidence */
    char *what;              /* one sentence with the figures */
    char *where;             /* Python line, phase or call; NULL */
    char *remedy;            /* what to change: the flag, the call */
    const char *cannot_know; /* NULL */
    struct gwa_evidence *evidence;
    size_t evidence_count;
};

struct gwa_what_if {
    const char *id;
    const char *text;
    double bound_pct; /* of wall time, saved at most */
};

struct gwa_identity {
    uint32_t pid;
    const char *host;
    const char *command;
    int rank; /* -1: none */
    const char *clock;
};

struct gwa_process {
    struct gwa_identity identity;
    const struct gwt_coverage *coverage;
    struct gwa_quality quality;
    struct gwa_window window; /* of all devices together */
    size_t intervals;         /* of the range asked for; 0: none asked for */
    int64_t from, to;         /* steps that times are of, of the trace's clock; else the extremes */
    struct gwa_launches launches;
    struct gwa_waits syncs;
    struct gwa_waits blocking_copies;
    struct gwa_allocations allocations;
    int64_t polls; /* -1: not known, in a range */
    struct gwa_other other;
    double captures_span_pct; /* from the first stream capture to the last, of the window; NaN */
    struct gwa_api *apis;     /* each API that was called, by kind, then most calls first */
    size_t apis_count;
    struct gwa_collective *collectives;
    size_t collectives_count;
    struct gwa_thread *threads;
    size_t threads_count;
    struct gwa_stream *streams;
    size_t streams_count;
    struct gwa_device *devices; /* those that something ran on, by index */
    size_t devices_count;
    struct gwa_step_summary steps;     /* count 0: none found */
    struct gwa_per_step *step_kernels; /* executed, of all devices, by name */
    size_t step_kernels_count;
    struct gwa_per_step *step_calls; /* executed calls but launches, by API */
    size_t step_calls_count;
    struct gwa_finding *findings; /* the first is the verdict */
    size_t findings_count;
    struct gwa_what_if *what_if;
    size_t what_if_count;
    uint64_t stacks; /* Python stacks that were taken */
};

/* One pass over the trace, one more with a range, and one more where it holds samples of
 * operations timed on the device; memory does not grow with its length.
 * pre:  the trace is open; the result borrows its strings and dies before it.
 * post: 0 and *out to be freed by gwa_free(), or negative and *out = NULL:
 *       -ENOENT no such range (`error` lists those there are), -ENODATA no event,
 *       -ECANCELED, -ENOMEM. */
int gwa_analyse(struct gwt_trace *trace, const struct gwa_options *options,
                struct gwa_process **out, struct gwt_error *error);
void gwa_free(struct gwa_process *process);

/* The parts that need no pass. */
void gwa_identify(const struct gwt_trace *trace, struct gwa_identity *out);
/* post: the flaws that the files alone show; returns how many. */
size_t gwa_flaws(const struct gwt_trace *trace, struct gwa_flaw flaws[GWA_FLAW_COUNT]);
/* Own cost so far in ms; NaN where the recorder did not measure it. */
double gwa_own_host_ms(const struct gwt_trace *trace);

/* The recorded facts that name a version, without their prefix; index from 0.
 * post: false past the last. */
bool gwa_version_at(const struct gwt_trace *trace, size_t index, const char **what,
                    const char **version);

/* post: a malloc'ed demangled name with its whole parameter list, or a copy of `mangled`
 *       where it is not a mangled name; NULL without memory. */
char *gwa_demangle(const char *mangled);

const char *gwa_direction_name(unsigned direction);
const char *gwa_memory_name(unsigned memory);
const char *gwa_stream_type_name(unsigned type);

#endif
