/* The timer thread: prepares the sampler, calibrates it, harvests its events.
 *
 * It makes CUDA calls, so it may be held up by the driver without hurting anyone: neither
 * the program nor the drain waits for it. Its capture mode is THREAD_LOCAL, so that its
 * queries invalidate nobody's capture; while a capture is active it makes none at all. */
#include "sampler.h"

#include "ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TICK_NS      10000000L     /* between harvests */
#define SETTLE_NS    300000000ull  /* after the first launches: leave the start-up alone */
#define PATIENCE_NS  1200000000ull /* for an idle moment to prepare in */
#define CALIBRATE_NS 1000000000ull
#define CALIBRATIONS 8 /* for one figure in the dump ... */
#define AT_FIRST     6 /* ... of which there are so many at first, then one a CALIBRATE_NS */
#define NODES        4
#define SPACER_NS    40000u
#define TIMEOUT_NS   200000000ull /* an answer of the device that takes longer is none */
#define BAD_IN_A_ROW 64
#define SHORTEST_NS  1000 /* an operation, with the way to the next */

static uint32_t stop_word, running;
static CUstream own_stream;
static CUevent own_before, own_after, own_done;
static CUdeviceptr stamps; /* like gw_pool's, for NODES kernels in our own stream */
static CUgraphExec own_graph;
static bool graph_tried;
static uint32_t ticket;
static unsigned bad;
static bool silent; /* the device is so busy that a measurement got no answer in time */
/* As measured last: what events around a kernel add to its own time, and what the next one adds. */
static float pair_adds_ns, gap_ns;

/* The real functions: none of this is recorded. */
#define REAL(name, ...)                  (((CUresult(*) CALL_##name)gw_real[GW_API_##name])(__VA_ARGS__))
#define CALL_cuCtxSetCurrent             (CUcontext)
#define CALL_cuModuleLoadData            (CUmodule *, const void *)
#define CALL_cuModuleGetFunction         (CUfunction *, CUmodule, const char *)
#define CALL_cuEventCreate               (CUevent *, unsigned)
#define CALL_cuEventRecord               (CUevent, CUstream)
#define CALL_cuEventQuery                (CUevent)
#define CALL_cuStreamCreate              (CUstream *, unsigned)
#define CALL_cuMemAlloc_v2               (CUdeviceptr *, size_t)
#define CALL_cuMemHostAlloc              (void **, size_t, unsigned)
#define CALL_cuGraphLaunch               (CUgraphExec, CUstream)
#define CALL_cuGraphInstantiateWithFlags (CUgraphExec *, CUgraph, unsigned long long)
#define CALL_cuEventElapsedTime          (float *, CUevent, CUevent)
#define CALL_cuEventElapsedTime_v2       (float *, CUevent, CUevent)
#define CALL_cuLaunchKernel                                                                        \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,   \
     void **, void **)

static bool may_call(void)
{
    return gw_load_acquire(&stop_word) == 0 && !gw_capturing();
}

/* The timer thread's own sleep. */
static void nap(long ns)
{
    if (!gw_test_nap((uint64_t)ns))
        nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* ---- preparing ------------------------------------------------------------------------- */

static bool prepare(void)
{
    CUmodule module;
    struct gw_pool *p = &gw_pool;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    void *word = NULL;
    if (!gw_driver.cuThreadExchangeStreamCaptureMode || !gw_driver.cuMemHostGetDevicePointer_v2 ||
        !(gw_real[GW_API_cuEventElapsedTime_v2] || gw_real[GW_API_cuEventElapsedTime]))
        return false;
    if (REAL(cuCtxSetCurrent, p->ctx) != 0 ||
        gw_driver.cuThreadExchangeStreamCaptureMode(&mode) != 0)
        return false;
    if (REAL(cuModuleLoadData, &module, gw_ptx) != 0 ||
        REAL(cuModuleGetFunction, &p->spacer, module, "gpuwait_spacer") != 0 ||
        REAL(cuModuleGetFunction, &p->selftime, module, "gpuwait_selftime") != 0 ||
        REAL(cuModuleGetFunction, &p->tell, module, "gpuwait_tell") != 0)
        return false;
    /* Non-blocking: the legacy stream neither waits for it nor makes it wait. */
    if (REAL(cuStreamCreate, &own_stream, 1) != 0 || REAL(cuEventCreate, &own_before, 0) != 0 ||
        REAL(cuEventCreate, &own_after, 0) != 0 || REAL(cuEventCreate, &own_done, 0) != 0 ||
        REAL(cuMemAlloc_v2, &stamps, (GW_PAIRS + NODES) * GW_STAMP_BYTES) != 0 ||
        REAL(cuMemHostAlloc, &word, 4096, 3) != 0 ||
        gw_driver.cuMemHostGetDevicePointer_v2(&p->word_device, word, 0) != 0)
        return false;
    p->word = word;
    p->stamps = stamps;
    stamps += GW_PAIRS * GW_STAMP_BYTES;
    for (unsigned i = 0; i < GW_PAIRS; i++)
        if (REAL(cuEventCreate, &p->pairs[i].before, 0) != 0 ||
            REAL(cuEventCreate, &p->pairs[i].after, 0) != 0)
            return false;
    return true;
}

/* ---- calibrating -------------------------------------------------------------------------- */

static CUresult launch(CUfunction f, void **args)
{
    return REAL(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, own_stream, args, NULL);
}

/* Words of the shared page: samples use the first, calibration these. */
#define TICKET_AT 128u
#define STAMPS_AT 256u

static bool spacer(void)
{
    uint64_t ns = SPACER_NS, word = (uint64_t)gw_pool.word_device + TICKET_AT;
    uint32_t value = ++ticket;
    return launch(gw_pool.spacer, (void *[]){&ns, &word, &value}) == 0;
}

static bool spacer_ended(void)
{
    return gw_pool.word[TICKET_AT / 4] == ticket;
}

static bool selftime(unsigned which)
{
    uint64_t ns = GW_SELFTIME_NS, out = (uint64_t)stamps + which * GW_STAMP_BYTES;
    return launch(gw_pool.selftime, (void *[]){&ns, &out}) == 0;
}

/* post: `count` kernels' stamps are on their way to told(), and own_done comes behind them */
static bool tell_stamps(uint64_t from, unsigned count)
{
    uint64_t to = (uint64_t)gw_pool.word_device + STAMPS_AT;
    for (unsigned i = 0; i < count; i++, from += GW_STAMP_BYTES, to += GW_STAMP_BYTES)
        if (launch(gw_pool.tell, (void *[]){&from, &to}) != 0)
            return false;
    return REAL(cuEventRecord, own_done, own_stream) == 0;
}

static const volatile uint64_t *told(void)
{
    return (const volatile uint64_t *)(gw_pool.word + STAMPS_AT / 4);
}

static bool wait_for(CUevent e)
{
    uint64_t deadline = gw_now_ns() + TIMEOUT_NS;
    long pause = 20000; /* most answers come at once; on a busy device the driver is left alone */
    CUresult r;
    while ((r = REAL(cuEventQuery, e)) == 600) {
        silent = gw_now_ns() > deadline;
        if (silent || !may_call())
            return false;
        nap(pause);
        if (pause < 1000000)
            pause *= 2;
    }
    return r == 0;
}

static CUresult elapsed(float *ms, CUevent a, CUevent b)
{
    return gw_real[GW_API_cuEventElapsedTime_v2] ? REAL(cuEventElapsedTime_v2, ms, a, b)
                                                 : REAL(cuEventElapsedTime, ms, a, b);
}

/* What events around kernels of ours take beyond these, whose first and last stamps are told. */
static bool adds_of(float ms, unsigned kernels, float *adds)
{
    *adds = ms * 1e6f - (float)(told()[2 * kernels - 1] - told()[0]);
    return ms > 0 && *adds > 0 && *adds < 100000;
}

/* The self-timing kernel on our own stream, as a sample of the program's would be taken.
 * post: what the pair of events adds to the kernel's own measure, ns. */
static bool measure(float *adds)
{
    float ms = 0;
    if (!may_call() || !spacer() || REAL(cuEventRecord, own_before, own_stream) != 0 ||
        !selftime(0) || REAL(cuEventRecord, own_after, own_stream) != 0)
        return false;
    bool late = spacer_ended();
    if (!tell_stamps(stamps, 1) || !wait_for(own_done) || late ||
        elapsed(&ms, own_before, own_after) != 0)
        return false;
    return adds_of(ms, 1, adds);
}

/* pre: told. post: the mean time from one kernel's last stamp to the next one's first, ns. */
static bool gap_of(unsigned kernels, float *gap)
{
    float sum = 0;
    for (unsigned i = 1; i < kernels; i++)
        sum += (float)(int64_t)(told()[2 * i] - told()[2 * i - 1]);
    *gap = sum / (float)(kernels - 1);
    return *gap > 0 && *gap < 100000;
}

/* Kernels in a row that were all there before the first began. */
static bool measure_gap(float *gap)
{
    if (!may_call() || !spacer() || !selftime(0) || !selftime(1))
        return false;
    bool late = spacer_ended();
    return tell_stamps(stamps, 2) && wait_for(own_done) && !late && gap_of(2, gap);
}

/* The same of a graph's, and what events around the whole add. */
static bool measure_graph(float *gap, float *adds)
{
    float ms = 0;
    if (!may_call() || !spacer() || REAL(cuEventRecord, own_before, own_stream) != 0 ||
        REAL(cuGraphLaunch, own_graph, own_stream) != 0 ||
        REAL(cuEventRecord, own_after, own_stream) != 0)
        return false;
    bool late = spacer_ended();
    return tell_stamps(stamps, NODES) && wait_for(own_done) && !late &&
           elapsed(&ms, own_before, own_after) == 0 && gap_of(NODES, gap) &&
           adds_of(ms, NODES, adds);
}

static bool add_node(CUgraph graph, unsigned i, CUgraphNode *last)
{
    uint64_t ns = GW_SELFTIME_NS, out = (uint64_t)stamps + i * GW_STAMP_BYTES;
    void *args[] = {&ns, &out};
    CUDA_KERNEL_NODE_PARAMS_v2 p = {gw_pool.selftime, 1, 1, 1, 1, 1, 1, 0, args, NULL, NULL, NULL};
    CUgraphNode node;
    CUresult r = gw_driver.cuGraphAddKernelNode_v2
                     ? gw_driver.cuGraphAddKernelNode_v2(&node, graph, last, i > 0, &p)
                     : gw_driver.cuGraphAddKernelNode(&node, graph, last, i > 0, (void *)&p);
    *last = node;
    return r == 0;
}

/* Only where the program launches graphs of its own. */
static bool make_graph(void)
{
    CUgraph graph;
    CUgraphNode last;
    if (graph_tried || !gw_load_relaxed(&gw_graphs_ran) || !may_call())
        return own_graph != NULL;
    graph_tried = true;
    if (!gw_driver.cuGraphCreate || !gw_real[GW_API_cuGraphLaunch] ||
        !gw_real[GW_API_cuGraphInstantiateWithFlags] ||
        !(gw_driver.cuGraphAddKernelNode_v2 || gw_driver.cuGraphAddKernelNode) ||
        gw_driver.cuGraphCreate(&graph, 0) != 0)
        return false;
    for (unsigned i = 0; i < NODES; i++)
        if (!add_node(graph, i, &last))
            return false;
    CUgraphExec exec;
    if (REAL(cuGraphInstantiateWithFlags, &exec, graph, 0) == 0)
        own_graph = exec;
    return own_graph != NULL;
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The mean of the middle half of several, into the dump: a few are longer, since kernels of the
 * program's ran beside ours. what: class of samples, or enum gwt_constant. post: that mean */
static float publish(unsigned what, float *v, unsigned n)
{
    struct gw_thread *t = gw_thread_get();
    float sum = 0;
    qsort(v, n, sizeof *v, by_value);
    unsigned from = n / 4, to = n - n / 4;
    for (unsigned i = from; i < to; i++)
        sum += v[i];
    float spread = n > 3 ? (v[n * 3 / 4] - v[n / 4]) * 0.74f : v[n - 1] - v[0]; /* of a normal */
    struct gwt_record r = {.t0 = gw_ticks(),
                           .dur = (uint32_t)(spread * 1000),
                           .api = (uint16_t)(GWT_API_PSEUDO + GWT_CONSTANT),
                           .flags = (uint16_t)what,
                           .arg = n,
                           .value = (uint64_t)(sum / (float)(to - from) * 1000)};
    if (t)
        gw_push(t, &r);
    return sum / (float)(to - from);
}

static void spent(uint64_t device_ns)
{
    gw_count(GWT_C_SAMPLER_GPU_NS, device_ns);
    gw_sampler_spent(device_ns);
}

static bool calibrate(void)
{
    float v[CALIBRATIONS];
    unsigned n = 0, tries = 0;
    for (silent = false; tries < CALIBRATIONS && !silent; tries++)
        n += measure(&v[n]);
    spent((uint64_t)tries * (SPACER_NS + GW_SELFTIME_NS + 7000));
    if (n)
        pair_adds_ns = publish(GWT_SAMPLE_KERNEL, v, n);
    return n > 0;
}

static void calibrate_gaps(void)
{
    float gaps[CALIBRATIONS], adds[CALIBRATIONS];
    unsigned n = 0, tries = 0;
    for (silent = false; tries < CALIBRATIONS && !silent; tries++)
        n += measure_gap(&gaps[n]);
    spent((uint64_t)tries * (SPACER_NS + 2 * GW_SELFTIME_NS));
    if (n)
        gap_ns = publish(GWT_CONSTANT_GAP, gaps, n);
    if (!make_graph())
        return;
    for (n = tries = 0, silent = false; tries < CALIBRATIONS && !silent; tries++)
        n += measure_graph(&gaps[n], &adds[n]);
    spent((uint64_t)tries * (SPACER_NS + NODES * GW_SELFTIME_NS + 7000));
    if (n) {
        publish(GWT_CONSTANT_NODES, gaps, n);
        publish(GWT_SAMPLE_GRAPH, adds, n);
    }
}

/* ---- harvesting ------------------------------------------------------------------------------ */

/* post: how far it was off what was known, squared, over the mean; 0: nothing was */
static float learn_of(struct gw_seen *s, float ns)
{
    float d = ns - s->mean_ns, n = (float)s->n + 1; /* stored here only */
    float mean = s->mean_ns + d / n, squared = d * (ns - mean);
    gw_store_float(&s->mean_ns, mean);
    gw_store_float(&s->m2, s->m2 + squared);
    gw_store_release(&s->n, s->n + 1);
    return squared / (mean * mean);
}

/* What it makes the stream last longer by: without the events, with the way to what follows. */
static void learn(const struct gw_pair *p, float pair_ns)
{
    float ns = pair_ns - pair_adds_ns + gap_ns, off = 0;
    if (ns < SHORTEST_NS)
        ns = SHORTEST_NS;
    struct gw_seen *s = gw_seen_of(GWT_SAMPLE_CLASS(p->flags), p->arg, p->value);
    struct gw_seen *function = p->func ? gw_seen_of_function(p->func) : NULL;
    bool again = s && s->n;
    if (s)
        off = learn_of(s, ns);
    if (s && GWT_SAMPLE_CLASS(p->flags) == GWT_SAMPLE_KERNEL)
        gw_kernel_lasts(p->arg, (uint64_t)s->mean_ns);
    if (!function)
        return;
    learn_of(function, ns);
    if (again) {
        gw_store_float(&function->within, function->within + off);
        gw_store_release(&function->freedom, function->freedom + 1); /* partner: variance_of() */
    }
}

static void tell(const struct gw_pair *p, unsigned reason, float ns)
{
    struct gw_thread *t = gw_thread_get();
    union {
        struct gwt_record_sample s;
        struct gwt_record r;
    } u = {.s = {.t0 = p->t0,
                 .pair_ns = reason ? 0 : (uint32_t)ns,
                 .api = (uint16_t)(GWT_API_PSEUDO + GWT_SAMPLE),
                 .flags = (uint16_t)(p->flags | reason << 8),
                 .stream = p->stream,
                 .arg = p->arg,
                 .value = p->value}};
    if (reason)
        gw_count(GWT_C_SAMPLES_VOID, 1);
    if (t)
        gw_push(t, &u.r);
}

/* What the pair added around our kernel in the program's stream. */
static void tell_constant(const struct gw_pair *p, float ms)
{
    float adds;
    silent = false;
    if (tell_stamps(gw_stamps_of(p), 1) && wait_for(own_done) && adds_of(ms, 1, &adds))
        publish(p->flags | GWT_CONSTANT_AMONG, &adds, 1);
}

/* A failing driver, or a context that was reset: nothing more is tried. */
static void give_up(const char *why)
{
    gw_store_relaxed(&gw_timing, 0);
    gw_say("timing on the GPU stops: %s; the recording goes on without", why);
}

static void harvest(void)
{
    for (unsigned i = 0; i < GW_PAIRS && may_call(); i++) {
        struct gw_pair *p = &gw_pool.pairs[i];
        /* Partner: the release store in gw_sample_end(). */
        uint32_t state = gw_load_acquire(&p->state);
        if (state != GW_PAIR_SUBMITTED && state != GW_PAIR_VOID)
            continue;
        CUresult r = p->reason == GWT_VOID_ERROR ? 0 : REAL(cuEventQuery, p->after);
        if (r == 600)
            continue;
        float ms = 0;
        unsigned reason = p->reason;
        if (!reason && (r != 0 || elapsed(&ms, p->before, p->after) != 0))
            reason = GWT_VOID_ERROR;
        if (!reason && !(ms > 0 && ms < 4000))
            reason = GWT_VOID_VALUE;
        if (!p->calibrates)
            tell(p, reason, ms * 1e6f);
        if (!reason && p->calibrates)
            tell_constant(p, ms);
        else if (!reason)
            learn(p, ms * 1e6f);
        bad = reason == GWT_VOID_ERROR || reason == GWT_VOID_VALUE ? bad + 1 : 0;
        gw_store_release(&p->state, GW_PAIR_FREE); /* partner: take_pair() */
    }
    if (bad >= BAD_IN_A_ROW)
        give_up("its events fail");
}

/* Many more candidates than the budget allows samples, so that the choice among them is a
 * choice. */
static void pace(uint64_t *last_heads, uint64_t *last_ns)
{
    uint64_t heads = 0, now = gw_now_ns();
    for (unsigned i = 0; i < gw_ring_slots_used(); i++)
        heads += gw_load_relaxed(&gw_ring_slot(i)->head);
    if (now - *last_ns < 100000000)
        return;
    if (heads < *last_heads) /* a ring was handed on and counts from zero */
        *last_heads = heads;
    double rate = (double)(heads - *last_heads) / ((double)(now - *last_ns) * 1e-9);
    double samples = (double)gw_spending / 30000.0;
    double every = rate / (16 * samples);
    gw_store_relaxed(&gw_sample_every, every < 1 ? 1 : every > 100000 ? 100000 : (uint32_t)every);
    gw_sampler_price(now);
    *last_heads = heads;
    *last_ns = now;
}

/* ---- the thread --------------------------------------------------------------------------------
 */

/* Tools that rewrite or serialise kernels, and modes in which a pair measures something else. */
static const char *reason_against(void)
{
    static const char *const tools[] = {"libsanitizer-collection.so", "libcudadebugger.so.1",
                                        "libnvbit.so"};
    const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");
    const char *connections = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    if (blocking && *blocking && strcmp(blocking, "0") != 0)
        return "CUDA_LAUNCH_BLOCKING is set";
    if (connections && strcmp(connections, "1") == 0)
        return "CUDA_DEVICE_MAX_CONNECTIONS=1: an event could hold up other streams";
    if (getenv("CUDA_INJECTION64_PATH"))
        return "another tool is injected (CUDA_INJECTION64_PATH)";
    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++)
        if (gw_library_mapped(tools[i]))
            return tools[i];
    return NULL;
}

static void say_fact(const char *text)
{
    gw_lock();
    gw_define(GWT_DEF_FACT, 0, "timing", sizeof "timing", text, strlen(text));
    gw_unlock();
}

static bool wait_for_moment(void)
{
    uint64_t begun = 0, awaited = gw_load_relaxed(&gw_awaited);
    for (;;) {
        nap(TICK_NS);
        if (gw_load_acquire(&stop_word) || gw_load_acquire(&gw_state) == GW_OFF)
            return false;
        if (!gw_load_acquire(&gw_pool.ctx) || gw_capturing()) /* partner: gw_pool_offer() */
            continue;
        uint64_t now = gw_now_ns();
        if (!begun)
            begun = now;
        bool idle = gw_load_relaxed(&gw_awaited) != awaited; /* a wait for the device returned */
        awaited = gw_load_relaxed(&gw_awaited);
        if (now - begun > SETTLE_NS && (idle || now - begun > PATIENCE_NS))
            return true;
    }
}

static void *run(void *arg)
{
    uint64_t heads = 0, paced = gw_now_ns(), calibrated;
    struct gwt_triple before, after;
    (void)arg;
    pthread_setname_np(pthread_self(), "gpuwait-timer");
    gw_clock_triple(&before);
    if (!wait_for_moment())
        goto out;
    gw_clock_triple(&after);
    gw_sampler_clock(after.ticks - before.ticks, after.monotonic_ns - before.monotonic_ns);
    if (!prepare()) {
        say_fact("the spacer kernel could not be prepared");
        goto out;
    }
    gw_free_memory_ask();
    /* A full device, or captures one after another, leave no room at first: later, then. */
    while (!calibrate()) {
        gw_free_memory_ask();
        nap(CALIBRATE_NS / 4);
        if (gw_load_acquire(&stop_word) || gw_load_acquire(&gw_state) != GW_ACTIVE)
            goto out;
    }
    for (unsigned i = 1; i < AT_FIRST; i++)
        calibrate();
    for (unsigned i = 0; i < AT_FIRST; i++)
        calibrate_gaps();
    say_fact("on");
    if (gw_load_acquire(&stop_word) == 0)
        gw_store_release(&gw_timing, 1);
    calibrated = gw_now_ns();
    while (!gw_load_acquire(&stop_word) && gw_load_acquire(&gw_state) == GW_ACTIVE) {
        nap(TICK_NS);
        pace(&heads, &paced);
        if (!may_call())
            continue;
        gw_free_memory_ask();
        harvest();
        uint64_t now = gw_now_ns();
        if (now - calibrated > CALIBRATE_NS && gw_load_relaxed(&gw_timing)) {
            calibrate(); /* a profiler that attaches changes the constants */
            calibrate_gaps();
            calibrated = now;
        }
    }
out:
    gw_store_release(&running, 0); /* partner: gw_timer_stop() */
    return NULL;
}

void gw_timer_start(void)
{
    if (gw_options.timing_pct <= 0 || !gw_driver.cuCtxGetCurrent)
        return;
    /* Here, since it asks for the loader's lock and the environment: a thread of ours that held
     * that lock while the program makes a process by a bare clone() would leave it taken there. */
    const char *against = reason_against();
    if (against) {
        say_fact(against);
        return;
    }
    gw_sampler_budget();
    /* Handlers registered now run before the driver's own, which were registered earlier. */
    static bool registered;
    if (!registered)
        registered = atexit(gw_timer_stop) == 0;
    gw_store_relaxed(&stop_word, 0);
    own_graph = NULL;
    graph_tried = false;
    gw_store_relaxed(&running, 1);
    if (gw_own_thread(run, 0) < 0) /* the driver's code runs on it: as much stack as usual */
        gw_store_relaxed(&running, 0);
}

/* At exit the driver is about to go: no more calls. Bounded, since a call may hang with it. */
void gw_timer_stop(void)
{
    gw_store_relaxed(&gw_timing, 0);
    gw_store_release(&stop_word, 1);
    for (int i = 0; i < 400 && gw_load_acquire(&running); i++)
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
}

/* The thread is the parent's: nothing is to be waited for at exit. */
void gw_timer_forget(void)
{
    gw_store_relaxed(&running, 0);
}

void gw_timer_context_gone(const void *ctx)
{
    CUcontext own = gw_load_acquire(&gw_pool.ctx);
    if (!own || (ctx && ctx != own) || gw_load_relaxed(&stop_word))
        return;
    gw_store_relaxed(&gw_timing, 0);
    gw_sample_wait();
    gw_timer_stop();
}

void gw_timer_switch(bool on)
{
    if (gw_pool.word && gw_load_acquire(&running))
        gw_store_relaxed(&gw_timing, on);
}
