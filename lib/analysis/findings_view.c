/* Whose idle it is: each site belongs to one finding, and each blocking call to one, so that
 * nothing is promised twice. */
#include "findings_internal.h"
#include "small.h"

#include <math.h>
#include <string.h>

/* What calls and Python lines say about themselves. */
static const char *const words_compile[] = {"dynamo",          "inductor",      "torch/_functorch",
                                            "triton/compiler", "async_compile", NULL};
static const char *const words_autotune[] = {"autotun", "do_bench", NULL};
static const char *const words_log[] = {"wandb", "tensorboard", "mlflow", " log", NULL};
static const char *const words_save[] = {" save", " _save", NULL};
static const char *const words_load[] = {"Module", "LibraryLoad", "LinkCreate", "LinkComplete",
                                         NULL};
static const char *const words_capture[] = {"Capture", "Instantiate", NULL};
static const char *const words_host_memory[] = {
    "HostAlloc", "MallocHost", "HostRegister", "MemAllocHost", "FreeHost", "HostUnregister", NULL};
static const char *const words_wait[] = {"Synchronize", NULL};
static const char *const words_memory[] = {"Malloc",     "cudaFree",  "MemFree",
                                           "MemAlloc",   "MemMap",    "MemUnmap",
                                           "MemRelease", "MemCreate", NULL};

static bool calls_of(const struct gwa_site *s, const char *const *words)
{
    return gwa_named(s->api, words) || gwa_named(s->before, words) || gwa_named(s->after, words);
}

static double per_occurrence(double total, const struct gwa_site *s)
{
    return s->count ? total / (double)s->count : 0;
}

/* A thread that computes and is taken off the CPU again and again; time slices last some
 * milliseconds, and an undisturbed thread keeps its core. */
#define SLICE_MS 20.0

bool gwa_starved(const struct gwa_site *s)
{
    return s->cpu_share >= 0.2 && s->cpu_share <= 0.85 && s->count &&
           s->involuntary * SLICE_MS >= s->host_ms / (double)s->count;
}

/* A section that computes some of the time comes as two rows, one for each class, with the
 * figures of the whole: what it is, the larger part decides. */
static bool computing(const struct gwa_site *s)
{
    return isnan(s->cpu_share) ? s->class == GWA_IDLE_HOST_CPU
                               : s->cpu_share >= 0.5 || gwa_starved(s);
}

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static bool same_section(const struct gwa_site *a, const struct gwa_site *b)
{
    return a->count == b->count && a->phase == b->phase && a->position == b->position &&
           a->before_h2d == b->before_h2d && a->unusual == b->unusual && same(a->after, b->after) &&
           same(a->before, b->before) && same(a->api, b->api);
}

static bool rare(const struct gwa_site *s)
{
    return s->period > 1 || s->per_step < GWA_EVERY_STEP;
}

/* ---- what goes on in the loop as a whole ----------------------------------------------- */

/* Weights, gradients or optimizer state are many tensors, each worth more than its latency, and
 * together a good part of what stays on the device; a batch is a few. */
#define MANY_COPIES 16.0
#define GOOD_PART   0.05
/* Of more than a batch of any size would be, fewer will do: where what recurs is a layer. */
#define SOME_COPIES 8.0
#define LARGE_PART  0.25
/* Or a good deal of it goes both ways, in whatever number of copies. */
#define BOTH_WAYS 0.25
/* Without steps: a batch is held whole beside what is computed from it, a weight is one of many. */
#define ONE_OF_MANY 0.1

static bool is_offloading(const struct gwa_process *p, const struct gwa_device *d)
{
    const struct gwa_step_summary *s = &p->steps;
    double held = (double)d->memory.peak_allocated_bytes; /* -1: not known */
    double stays = d->memory.baseline_bytes >= 0 ? (double)d->memory.baseline_bytes : held;
    double in = s->h2d_bytes.median, out = s->d2h_bytes.median;
    double passes = s->micro_batches > 1 ? s->micro_batches : 1;
    if (s->count && in > BOTH_WAYS * stays && out > BOTH_WAYS * stays && in + out > GWA_SMALL_COPY)
        return true;
    if (s->count) {
        double copies = s->copies.median / passes;
        bool enough = (copies >= MANY_COPIES && in > GOOD_PART * stays) ||
                      (copies >= SOME_COPIES && in > LARGE_PART * stays);
        return enough && in + out > GWA_SMALL_COPY * s->copies.median && in >= out / 2;
    }
    double calls = (double)d->copies[GWT_H2D].calls, bytes = (double)d->copies[GWT_H2D].bytes;
    return calls >= MANY_COPIES && bytes > calls * GWA_SMALL_COPY && held > 0 && bytes > held &&
           bytes < calls * ONE_OF_MANY * held;
}

/* Each graph is replayed a few times only before the next is captured. */
#define REPLAYS 5.0
/* A warm-up captures a few ... */
#define CAPTURES 3.0
/* ... and is over before half of the time is. */
#define ALL_ALONG 50.0

static bool is_recording(const struct gwa_process *p, const struct gwa_device *d)
{
    if (p->steps.count && p->steps.captures.median >= 1)
        return true;
    /* in the even part of the loop */
    for (size_t i = 0; i < d->sites_count && p->steps.count; i++) {
        const struct gwa_site *s = &d->sites[i];
        if (s->class == GWA_IDLE_LOAD && gwa_named(s->api, words_capture) &&
            s->per_step * (double)p->steps.count >= CAPTURES)
            return true;
    }
    return !p->steps.count && (double)p->other.captures >= CAPTURES &&
           ((double)p->launches.graph_launches < REPLAYS * (double)p->other.captures ||
            p->captures_span_pct >= ALL_ALONG);
}

/* Far more goes to the host than even steps account for. */
#define DUMPED 4.0

static bool is_dumping(const struct gwa_process *p, const struct gwa_device *d)
{
    double bytes = (double)d->copies[GWT_D2H].bytes;
    return p->steps.count && bytes > GWA_SMALL_COPY * MANY_COPIES &&
           bytes > DUMPED * (double)p->steps.all * p->steps.d2h_bytes.median;
}

static double lost_share(const struct gwa_process *p)
{
    const struct gwt_coverage *c = p->coverage;
    if (!c)
        return 0;
    double lost = (double)c->dropped + (double)c->missing + (double)c->aggregated;
    return lost > 0 ? lost / (lost + (double)c->events) : 0;
}

/* ---- sites ------------------------------------------------------------------------------- */

static bool long_beside_steps(const struct gwa_view *v, const struct gwa_site *s)
{
    return v->stepped && s->count && s->host_ms / (double)s->count > 2 * v->p->steps.ms.median &&
           (s->period > GWA_WORKERS_MOST || (!s->period && s->per_step < 0.1));
}

/* Logging comes after a value was read, which other steps do not do. */
static bool after_rare_read(const struct gwa_view *v, const struct gwa_site *s)
{
    double read = per_occurrence((double)s->d2h_bytes, s);
    return v->stepped && !v->dumping && s->period > 1 && read > 0 && read <= GWA_SMALL_COPY &&
           v->p->steps.small_reads.median < GWA_EVERY_STEP;
}

static bool is_saving(const struct gwa_view *v, const struct gwa_site *s)
{
    double out = per_occurrence((double)s->d2h_bytes, s);
    if (out > 0 && gwa_named(s->python, words_save))
        return true;
    if (out > GWA_SMALL_COPY)
        return rare(s) || v->dumping;
    return out > 0 && v->dumping && rare(s);
}

static enum gwa_finding_id outside_owner(const struct gwa_view *v, const struct gwa_site *s)
{
    return s->count && s->host_ms / (double)s->count > v->p->steps.ms.median ? GWA_FIND_EPOCH_GAP
                                                                             : GWA_FIND_EVAL_PHASE;
}

static enum gwa_finding_id input_owner(const struct gwa_view *v, const struct gwa_site *s)
{
    if (long_beside_steps(v, s))
        return GWA_FIND_EPOCH_GAP;
    /* where every other step waits, there is too little input as such */
    unsigned period = gwa_rhythm(s);
    if (!computing(s) && period > 2 && period <= GWA_WORKERS_MOST)
        return GWA_FIND_INPUT_PERIODIC;
    /* blocked, while other threads of the process work for it: a pool inside a call */
    bool pool = s->other_cores > GWA_BUSY_CORES;
    return computing(s) || pool ? GWA_FIND_INPUT_CPU : GWA_FIND_INPUT_WAIT;
}

/* But for the waits, the host would be done with its steps before the device is: what it does
 * after a wait that drained the queue would not be seen. */
#define AHEAD 0.9

static bool would_be_ahead(const struct gwa_view *v)
{
    double waited = 0;
    for (size_t i = 0; i < v->d->drains_count; i++)
        waited += gwa_at_least_0(v->d->drains[i].waited_ms);
    return v->wall_ms - waited < AHEAD * v->work_pct / 100 * v->wall_ms;
}

/* What comes with a capture (compiling, collecting garbage, emptying the cache) is as rare. */
static bool with_captures(const struct gwa_view *v, const struct gwa_site *s)
{
    if (calls_of(s, words_capture) || calls_of(s, words_load))
        return true;
    return v->stepped ? rare(s) : s->count <= v->p->other.captures;
}

static enum gwa_finding_id host_owner(const struct gwa_view *v, const struct gwa_site *s)
{
    bool inside = !v->stepped || s->per_step > 0; /* of the even part of the loop */

    if (v->recording && with_captures(v, s))
        return GWA_FIND_GRAPH_RERECORD;
    if (gwa_named(s->python, words_autotune))
        return GWA_FIND_AUTOTUNE;
    if (gwa_named(s->python, words_compile) || (inside && gwa_named(s->before, words_load)))
        return GWA_FIND_COMPILE_STALL;
    if (v->pinning && calls_of(s, words_host_memory))
        return GWA_FIND_PIN_CHURN;
    if (v->churning && calls_of(s, words_memory))
        return GWA_FIND_ALLOC_CHURN;
    if (v->stepped && s->position == GWA_SITE_OUTSIDE_STEPS && s->d2h_bytes &&
        s->phase == GWA_PHASE_FORWARD)
        return GWA_FIND_EVAL_PHASE;
    if (is_saving(v, s))
        return GWA_FIND_SAVE_STALL;
    if (v->offloading && (s->d2h_bytes > 0 || s->before_h2d) && !rare(s))
        return GWA_FIND_OFFLOAD;
    if (gwa_named(s->python, words_log) || after_rare_read(v, s))
        return GWA_FIND_LOG_STALL;
    if (v->stepped && s->position == GWA_SITE_OUTSIDE_STEPS)
        return outside_owner(v, s);
    if (s->before_h2d)
        return input_owner(v, s);
    if (!computing(s) && s->other_cores > GWA_BUSY_CORES && s->other_cores < GWA_ONE_CORE)
        return GWA_FIND_GIL;
    /* preparing input is to move elsewhere, starved or not; other work needs its core */
    if (s->class == GWA_IDLE_HOST_BLOCKED && gwa_starved(s))
        return GWA_FIND_CPU_STARVED;
    if (!rare(s) && gwa_named(s->after, words_wait) && would_be_ahead(v))
        return GWA_FIND_SYNC_PER_STEP;
    return GWA_FIND_UNKNOWN_HOST_GAP;
}

static enum gwa_finding_id copy_owner(const struct gwa_view *v, const struct gwa_site *s)
{
    bool out = s->d2h_bytes > s->h2d_bytes;
    double bytes = per_occurrence((double)(out ? s->d2h_bytes : s->h2d_bytes), s);
    if (bytes <= GWA_SMALL_COPY)
        return GWA_FIND_SYNC_PER_STEP;
    if (out && is_saving(v, s))
        return GWA_FIND_SAVE_STALL;
    if (v->offloading)
        return GWA_FIND_OFFLOAD;
    return out ? GWA_FIND_SYNC_PER_STEP : GWA_FIND_H2D_PAGEABLE;
}

static enum gwa_finding_id site_owner(const struct gwa_view *v, const struct gwa_site *s)
{
    switch (s->class) {
    case GWA_IDLE_HOST_CPU:
    case GWA_IDLE_HOST_BLOCKED:
        return host_owner(v, s);
    case GWA_IDLE_ALLOC:
        if (v->recording && with_captures(v, s))
            return GWA_FIND_GRAPH_RERECORD;
        return gwa_named(s->api, words_host_memory) ? GWA_FIND_PIN_CHURN : GWA_FIND_ALLOC_CHURN;
    case GWA_IDLE_LOAD:
        if (v->recording || gwa_named(s->api, words_capture))
            return GWA_FIND_GRAPH_RERECORD;
        return GWA_FIND_MODULE_LOAD;
    case GWA_IDLE_COPY:
        return copy_owner(v, s);
    case GWA_IDLE_COMM:
        return GWA_FIND_COMM_WAIT;
    case GWA_IDLE_UNKNOWN:
        if (v->recording && s->count && with_captures(v, s))
            return GWA_FIND_GRAPH_RERECORD;
        return GWA_FIND_UNKNOWN_HOST_GAP;
    default: /* LAUNCH, DISPATCH: sum_flow(). SYNC: what blocking calls drained says it better */
        return GWA_FIND_NONE;
    }
}

static void claim(struct gwa_view *v, enum gwa_finding_id id, const struct gwa_site *s,
                  bool counted)
{
    struct gwa_claim *c = &v->claims[id];
    c->idle_ms += s->idle_ms;
    c->pct += 100 * s->idle_ms / v->wall_ms;
    if (!c->top || s->idle_ms > c->top->idle_ms)
        c->top = s;
    if (counted)
        return;
    c->host_ms += s->host_ms;
    c->count += (double)s->count;
    if (s->per_step > 0)
        c->per_step += s->per_step;
    if (s->cpu_share >= 0) {
        c->cpu_ms += s->cpu_share * s->host_ms;
        c->cpu_of_ms += s->host_ms;
    }
    if (s->other_cores >= 0) {
        c->core_ms += s->other_cores * s->host_ms;
        c->core_of_ms += s->host_ms;
    }
    c->bytes_to_host += (double)s->d2h_bytes;
    c->bytes_to_device += (double)s->h2d_bytes;
}

/* post: `flow_pct`, `in_graphs_pct`, `supplied_pct`. */
static void sum_flow(struct gwa_view *v)
{
    const double *idle = v->d->time.idle;
    double queued = 0;
    for (size_t i = 0; i < v->d->sites_count; i++) {
        const struct gwa_site *s = &v->d->sites[i];
        if (s->class != GWA_IDLE_LAUNCH || !(s->idle_ms > 0))
            continue;
        if (s->origin == GWA_LAUNCH_GRAPH)
            v->in_graphs_pct += 100 * s->idle_ms / v->wall_ms;
        else if (s->origin == GWA_LAUNCH_QUEUED)
            queued += 100 * s->idle_ms / v->wall_ms;
    }
    v->supplied_pct = v->busy_pct - gwa_at_least_0(v->d->time.exposed_comm_pct) + queued;
    v->flow_pct = gwa_at_least_0(idle[GWA_IDLE_LAUNCH] - v->in_graphs_pct - queued) +
                  gwa_at_least_0(idle[GWA_IDLE_DISPATCH]);
}

static void claim_sites(struct gwa_view *v)
{
    const struct gwa_site *sites = v->d->sites;
    for (size_t i = 0; i < v->d->sites_count; i++) {
        const struct gwa_site *s = &sites[i];
        bool host = s->class == GWA_IDLE_HOST_CPU || s->class == GWA_IDLE_HOST_BLOCKED;
        enum gwa_finding_id id = site_owner(v, s);
        bool counted = false;
        if (id == GWA_FIND_NONE || !(s->idle_ms > 0) || !(s->host_ms >= 0))
            continue;
        for (size_t k = 0; k < i && host && id != GWA_FIND_CPU_STARVED && !counted; k++)
            counted =
                sites[k].class != s->class && sites[k].idle_ms > 0 && same_section(&sites[k], s);
        claim(v, id, s, counted);
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

double gwa_exposed_pct(const struct gwa_view *v, unsigned direction, bool pageable_only)
{
    double ms = 0, all = 0;
    for (size_t i = 0; i < v->d->transfers_count; i++) {
        const struct gwa_transfer *t = &v->d->transfers[i];
        double exposed = gwa_at_least_0(t->busy_ms) * gwa_at_least_0(t->exposed_pct) / 100;
        all += exposed;
        if (t->direction == direction && (!pageable_only || t->memory == GWA_MEM_PAGEABLE))
            ms += exposed;
    }
    return v->timed && all > 0 ? gwa_at_least_0(v->d->time.exposed_copy_pct) * ms / all : 0;
}

void gwa_view_fill(struct gwa_view *v, const struct gwt_trace *trace, const struct gwa_process *p,
                   const struct gwa_device *d)
{
    const struct gwa_device_memory *m = &d->memory;
    *v = (struct gwa_view){
        .trace = trace,
        .p = p,
        .d = d,
        .wall_ms = d->window.wall_s * 1e3,
        .stepped = p->steps.count > 0,
        .busy_pct = NAN,
        .work_pct = NAN,
        .supplied_pct = NAN,
        .passes = p->steps.micro_batches > 1 ? p->steps.micro_batches : 1,
        .lost = lost_share(p),
        .offloading = is_offloading(p, d),
        .dumping = is_dumping(p, d),
        .recording = is_recording(p, d),
        .churning = m->frees_per_step >= GWA_EVERY_STEP,
        .pinning = m->host_allocs_per_step >= GWA_EVERY_STEP,
    };
    v->timed = d->time.method && !strcmp(d->time.method, "sampled") && d->window.wall_s > 0 &&
               isfinite(d->time.idle_pct + d->time.compute_pct + d->time.exposed_comm_pct +
                        d->time.exposed_copy_pct);
    if (!v->timed)
        return;
    v->busy_pct = 100 - d->time.idle_pct;
    v->work_pct = d->time.compute_pct;
    sum_flow(v);
    claim_sites(v);
    gwa_claim_drains(v);
}
