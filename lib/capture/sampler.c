/* Which operations are timed, and the few calls that this adds around them.
 *
 * Rules, each with its reason in the check that enforces it: never while a stream captures,
 * never NCCL, never what blocks, never between timing events of the program's own, never a
 * handle's first launch; within a budget of device time. */
#include "sampler.h"

#include "call.h"

uint32_t gw_timing;
uint64_t gw_spending;
struct gw_pool gw_pool;
uint64_t gw_awaited;

#define SPACER_MAX_NS    60000u
#define PAIR_COST_NS     7000u /* what two events cost the device (measured: 4 to 8 us) */
#define CALIBRATED       12    /* kernels' pairs, of which one is around a kernel of ours ... */
#define CALIBRATED_ODD   3     /* ... and at first, until AT_FIRST are, of so many */
#define AT_FIRST         16
#define SELFTIME_COST_NS 2000u   /* the way to it, and to what follows */
#define LEAD_NS          40000u  /* a stream this far behind needs no spacer */
#define SUBMIT_MOST_NS   30000u  /* what takes the host longer waits for room in a full queue */
#define APART_NS         150000u /* between two samples, so that one does not meet the other's ... */
#define APART_MORE_NS    300000u /* ... and up to so much more, or the same ones of a step are met */
#define TOKENS_NS        20000000 /* of time, that may be saved up; the start has them lent */
#define REPAID           5  /* one part in so many of what comes in, until that is paid back */
#define SPACED_ANYWAY    12 /* in a busy stream, of so many samples one has a spacer */
#define SEEN_AT_ONCE     3  /* samples */
#define KNOWN_WELL       32
#define FIRST            4 /* times as often is a shape taken that has no sample */
#define PRIOR            4 /* samples that the scatter of a function's other shapes counts for */
#define USER_TIMING_NS   1000000000ull /* for an interval of the program's whose end is not known */

/* ---- choosing ------------------------------------------------------------------------------- */

static uint32_t sampling;    /* one sample is submitted at a time */
static uint32_t in_flight;   /* raised before the gate is read; partner: gw_sample_wait() */
static uint64_t next_sample; /* no sooner */
static int64_t tokens_ns = TOKENS_NS; /* time to spend */
static int64_t lent_ns = TOKENS_NS;
static uint64_t tokens_at;
static uint64_t owed_ns;  /* spent on another thread, not yet taken off */
static uint64_t spent_ns; /* since the price was set */
static uint64_t priced_at;
static double spent_per_s;       /* lately */
static uint32_t lacking;         /* samples that found no pair of events free */
static uint32_t price_ns = 1000; /* spread at which every candidate is worth its cost */
static float submit_ns = 12000;  /* how long submitting a pair takes the host, high percentile */
static uint32_t wanted;          /* candidates met lately that had too few samples */
uint32_t gw_graphs_ran;
uint32_t gw_sample_every = 64; /* mean distance of candidates; set by the timer */

static uint32_t random_word(struct gw_thread *t)
{
    if (!t->random)
        t->random = t->id * 2654435761u | 1;
    t->random ^= t->random << 13;
    t->random ^= t->random >> 17;
    t->random ^= t->random << 5;
    return t->random;
}

/* The next candidate is a random number of launches away. */
static void rearm(struct gw_thread *t)
{
    uint32_t every = gw_load_relaxed(&wanted) ? 2 : gw_load_relaxed(&gw_sample_every);
    t->countdown = (int32_t)(random_word(t) % (2 * every));
}

/* By how much its samples differ, squared; no less than what it costs to know that. Few of them
 * that agree say little, where those of the function's other shapes do not. */
static float variance_of(const struct gw_seen *s, const struct gw_seen *function)
{
    float mean = gw_load_float(&s->mean_ns), freedom = (float)(gw_load_relaxed(&s->n) - 1);
    float squares = gw_load_float(&s->m2), least = 0.02f * mean + 50;
    uint32_t of = function ? gw_load_acquire(&function->freedom) : 0;
    if (of >= PRIOR) {
        squares += PRIOR * gw_load_float(&function->within) / (float)of * mean * mean;
        freedom += PRIOR;
    }
    float variance = squares / freedom;
    return variance < least * least ? least * least : variance;
}

/* With the probability of its spread over the price. */
static bool is_worth(struct gw_thread *t, float variance)
{
    float asked = (float)(random_word(t) & 0xffff) / 65536.0f * (float)gw_load_relaxed(&price_ns);
    return asked * asked < variance;
}

/* For a given number of samples the error of the total is least when a signature gets them
 * in proportion to its launches x spread: launches come by themselves, so accept by spread,
 * against a price at which the budget is just spent. The first three come at once, unless its
 * function is well known from other shapes: there are programs in which no shape comes twice. Then
 * the first is still worth more than any later one. */
static bool worth(struct gw_thread *t, struct gw_seen *s, const struct gw_seen *function)
{
    uint32_t taken = gw_load_relaxed(&s->taken);
    if (taken < SEEN_AT_ONCE && function && gw_load_acquire(&function->n) >= KNOWN_WELL)
        return is_worth(t, variance_of(function, NULL) * (taken ? 1 : FIRST * FIRST));
    if (taken < SEEN_AT_ONCE) {
        gw_store_relaxed(&wanted, 64);
        return true;
    }
    if (gw_load_acquire(&s->n) < 2)
        return random_word(t) % 8 == 0; /* on their way, or void so far */
    if (gw_load_relaxed(&wanted)) {
        gw_sub_relaxed(&wanted, 1);
        if (random_word(t) % 32)
            return false;
    }
    return is_worth(t, variance_of(s, function));
}

/* A rank that is held up holds up all that wait for it, so they share what one may spend; beyond
 * so many each would learn too little, and what they spend at the same time is not added up. */
#define RANKS_MOST 16
static uint32_t sharing = 1;

void gw_sampler_budget(void)
{
    uint64_t all = (uint64_t)(gw_options.timing_pct * 1e7); /* percent of a second, ns */
    gw_store_relaxed(&gw_spending, all / gw_load_relaxed(&sharing));
}

void gw_sampler_ranks(int ranks)
{
    uint32_t n = ranks > RANKS_MOST ? RANKS_MOST : (uint32_t)ranks;
    if (ranks < 1 || n <= gw_load_relaxed(&sharing))
        return;
    gw_store_relaxed(&sharing, n);
    if (gw_load_relaxed(&gw_spending))
        gw_sampler_budget();
}

/* A bucket that fills with the wall clock at the budget's rate: for the device's time and for the
 * host's, of which a sample takes the more. */
static bool afford(uint64_t now, int64_t cost)
{
    int64_t earned =
        tokens_at ? (int64_t)((double)(now - tokens_at) * 1e-9 * (double)gw_spending) : 0;
    int64_t back = earned / REPAID < lent_ns ? earned / REPAID : lent_ns;
    int64_t tokens = tokens_ns + earned - back - (int64_t)gw_exchange(&owed_ns, 0);
    lent_ns -= back;
    tokens_at = now;
    if (tokens > TOKENS_NS)
        tokens = TOKENS_NS;
    bool enough = tokens >= cost;
    gw_store_relaxed(&tokens_ns, enough ? tokens - cost : tokens); /* partner: gw_sampler_price() */
    if (enough)
        gw_add_relaxed(&spent_ns, (uint64_t)cost);
    return enough;
}

void gw_sampler_spent(uint64_t ns)
{
    gw_add_relaxed(&owed_ns, ns);
    gw_add_relaxed(&spent_ns, ns);
}

#define SMOOTH_S 0.3  /* of what was spent lately */
#define PER_S    5.0  /* how fast the price follows it */
#define LONGEST  0.15 /* s: at once it does not change by more than that makes */
#define SAVED    4 /* one part in so many of what comes in in a second, or of what can be saved up */

/* By what is spent: what is left is the sum of that, and a price that follows a sum swings. On an
 * H200 some tenths of a second had 30 samples then and others one, and of a device whose pace
 * drifts it is known only where there are some. */
void gw_sampler_price(uint64_t now)
{
    double s = (double)(now - priced_at) * 1e-9, comes_in = (double)gw_load_relaxed(&gw_spending);
    double saved = (double)__atomic_load_n(&tokens_ns, __ATOMIC_RELAXED);
    double kept = (comes_in < TOKENS_NS / 2 ? comes_in : TOKENS_NS / 2) / SAVED;
    double aim = comes_in + 2 * (saved - kept); /* what is beyond is spent in half a second */
    double price = gw_load_relaxed(&price_ns);
    if (priced_at && now > priced_at) {
        spent_per_s += ((double)gw_exchange(&spent_ns, 0) / s - spent_per_s) * s / (s + SMOOTH_S);
        aim = aim > 1 ? aim : 1;
        double off = (spent_per_s - aim) / (spent_per_s > aim ? spent_per_s : aim);
        price *= gw_exchange(&lacking, 0) ? 1.5 : 1 + PER_S * (s < LONGEST ? s : LONGEST) * off;
    }
    priced_at = now;
    gw_store_relaxed(&price_ns, price < 16 ? 16 : price > 1e9 ? 1000000000 : (uint32_t)price);
}

/* ---- one sample ------------------------------------------------------------------------------ */

static struct {
    struct gw_pair *pair;
    CUstream stream;
    bool per_thread;
    uint32_t value; /* that the spacer stores when it ends */
    uint64_t begun_ns;
} now_sampling;
const void *gw_busy_stream; /* the stream of the sample being submitted */
static uint32_t foreign;    /* another thread submitted to it */
static uint32_t last_value;

static struct gw_pair *take_pair(void)
{
    static uint32_t next;
    for (unsigned i = 0; i < GW_PAIRS; i++) {
        struct gw_pair *p = &gw_pool.pairs[(next + i) % GW_PAIRS];
        /* Partner: the timer's release store when it has harvested the pair. */
        if (gw_load_acquire(&p->state) == GW_PAIR_FREE) {
            next = (next + i + 1) % GW_PAIRS;
            gw_store_relaxed(&p->state, GW_PAIR_TAKEN);
            p->reason = GWT_VOID_NONE;
            return p;
        }
    }
    return NULL;
}

/* ns of the device */
static uint32_t cost_of(const struct gw_pair *p, uint32_t spacer_ns)
{
    return spacer_ns + PAIR_COST_NS + (p->calibrates ? GW_SELFTIME_NS + SELFTIME_COST_NS : 0);
}

typedef CUresult (*launch_fn)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                              unsigned, unsigned, CUstream, void **, void **);
typedef CUresult (*record_fn)(CUevent, CUstream);
typedef CUresult (*query_fn)(CUevent);

/* Of ours, into the program's stream. */
static bool launch(CUfunction f, void **args)
{
    return ((launch_fn)gw_real[GW_API_cuLaunchKernel])(f, 1, 1, 1, 1, 1, 1, 0, now_sampling.stream,
                                                       args, NULL) == 0;
}

static CUresult record_event(CUevent e)
{
    return ((record_fn)gw_real[GW_API_cuEventRecord])(e, now_sampling.stream);
}

/* Class of the operation, or 0: it is not to be timed. */
static unsigned class_of(const struct gw_frame *f)
{
    /* A programmatic dependent launch is timed like others: between events it runs alone, which
     * says what it costs at most; leaving such kernels out left whole libraries unknown. */
    if (f->flags & (GWT_F_CAPTURED | GWT_F_COOP | GWT_F_PAGEABLE | GWT_F_BLOCKING))
        return 0;
    switch (f->kind) {
    case GWT_LAUNCH:
        return GWT_SAMPLE_KERNEL;
    case GWT_GRAPH_LAUNCH:
        return GWT_SAMPLE_GRAPH;
    case GWT_MEMSET:
        return GWT_SAMPLE_MEMSET;
    case GWT_COPY:
        if (f->arg != 1)
            return 0;
        switch (GWT_F_SUB(f->flags)) {
        case GWT_H2D:
            return GWT_SAMPLE_H2D;
        case GWT_D2H:
            return GWT_SAMPLE_D2H;
        case GWT_D2D:
            return GWT_SAMPLE_D2D;
        }
    }
    return 0;
}

/* A busy stream has no spacer to tell that the first event was still waiting: ask. This thread
 * may be inside another's GLOBAL capture's reach, hence the mode. */
static CUresult query_before(const struct gw_pair *p)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    if (!gw_driver.cuThreadExchangeStreamCaptureMode ||
        gw_driver.cuThreadExchangeStreamCaptureMode(&mode) != 0)
        return 999; /* CUDA_ERROR_UNKNOWN */
    CUresult r = ((query_fn)gw_real[GW_API_cuEventQuery])(p->before);
    gw_driver.cuThreadExchangeStreamCaptureMode(&mode);
    return r;
}

/* The device has come to the first event before the second was there. Without a spacer, that is:
 * the stream had nothing to do, whatever was predicted of it. Else it would be believed busy for
 * ever, since nothing is learnt of operations that are always late. */
static bool is_late(const struct gw_pair *p)
{
    if (p->flags & GWT_SAMPLE_SPACER)
        return *gw_pool.word == now_sampling.value;
    CUresult r = query_before(p);
    if (r == 0)
        gw_store_relaxed(&gw_ahead.streams[p->stream].until, gw_ticks());
    return r != 600; /* CUDA_ERROR_NOT_READY */
}

/* Both events are submitted: whether the time between them means something. post: it is late */
static bool judge(struct gw_pair *p)
{
    bool late = is_late(p);
    if (late)
        p->reason = GWT_VOID_LATE;
    else if (gw_load_relaxed(&foreign))
        p->reason = GWT_VOID_FOREIGN;
    return late;
}

/* What a pair adds depends on what the device and the stream are at, so it is measured there: in a
 * stream of our own it was 0.4 us less to 0.5 us more, by process, on an H200. */
static bool calibrate(struct gw_pair *p)
{
    uint64_t ns = GW_SELFTIME_NS, out = gw_stamps_of(p);
    if (!launch(gw_pool.selftime, (void *[]){&ns, &out}) || record_event(p->after) != 0)
        return false;
    judge(p);
    return true;
}

static bool start(struct gw_frame *f, unsigned class, struct gw_pair *p, uint16_t stream,
                  uint32_t arg, bool spacer, uint32_t spacer_ns)
{
    bool per_thread = f->per_thread && !f->stream;
    p->func = class == GWT_SAMPLE_KERNEL ? f->shape.func : NULL;
    p->flags = (uint16_t)(class | (spacer ? GWT_SAMPLE_SPACER : 0) |
                          (f->flags & GWT_F_PDL ? GWT_SAMPLE_PDL : 0));
    p->stream = stream;
    p->arg = arg;
    p->spacer_ns = spacer ? spacer_ns : 0;
    p->value = class == GWT_SAMPLE_KERNEL || class == GWT_SAMPLE_GRAPH ? p->spacer_ns : f->value;
    if (f->kind != GWT_COPY)
        f->flags |= (uint16_t)((spacer ? GWT_TIMED_BEHIND_SPACER : GWT_TIMED) << GWT_F_SUB_SHIFT);
    now_sampling.pair = p;
    /* CU_STREAM_PER_THREAD: our calls are the legacy ones, which take null otherwise. */
    now_sampling.stream = per_thread ? (CUstream)(uintptr_t)2 : (CUstream)f->stream;
    now_sampling.begun_ns = gw_now_ns();
    gw_store_relaxed(&foreign, 0);
    gw_store_release(&gw_busy_stream, f->stream ? f->stream : (const void *)1);
    gw_odd_set(GW_ODD_SAMPLING, true);
    if (spacer) {
        uint64_t ns = spacer_ns, word = (uint64_t)gw_pool.word_device;
        uint32_t value = ++last_value;
        now_sampling.value = value;
        if (!launch(gw_pool.spacer, (void *[]){&ns, &word, &value}))
            return false;
    }
    return record_event(p->before) == 0 && (!p->calibrates || calibrate(p));
}

static uint32_t calibrated;

/* Kernels that are hardly known keep their samples, mostly: there are programs in which no shape
 * comes often. */
static bool calibrates(const struct gw_seen *s, unsigned class)
{
    uint32_t each = calibrated < AT_FIRST ? CALIBRATED_ODD : CALIBRATED;
    if (class != GWT_SAMPLE_KERNEL ||
        random_word(gw_self) % (gw_load_relaxed(&s->taken) < SEEN_AT_ONCE ? 4 * each : each))
        return false;
    calibrated += calibrated < AT_FIRST;
    return true;
}

static int begin_locked(struct gw_frame *f, struct gw_seen *s, unsigned class, uint16_t stream,
                        uint32_t arg)
{
    uint64_t now = gw_ticks(), until = gw_load_relaxed(&gw_ahead.streams[stream].until);
    uint64_t all = gw_load_relaxed(&gw_ahead.all);
    CUcontext ctx = NULL;
    if (until > all)
        until = all; /* a device-wide wait came after */
    /* In a busy stream now and then too: by how much pairs differ there, the same kernels tell. */
    bool spacer = until < now + gw_ticks_of(LEAD_NS) ||
                  (class == GWT_SAMPLE_KERNEL && random_word(gw_self) % SPACED_ANYWAY == 0);
    float wish = submit_ns * 1.3f + 3000;
    uint32_t spacer_ns = wish < GW_SPACER_LEAST_NS ? GW_SPACER_LEAST_NS
                         : wish > SPACER_MAX_NS    ? SPACER_MAX_NS
                                                   : (uint32_t)wish;
    if (gw_would_wait(s, class, stream, f->value, !spacer, now))
        return -1;
    if (now < gw_load_relaxed(&next_sample) ||
        gw_user_times(stream, now, gw_ticks_of(USER_TIMING_NS)))
        return -1;
    /* Events and stream must belong to one context. */
    if (!gw_driver.cuCtxGetCurrent || gw_driver.cuCtxGetCurrent(&ctx) != 0 || ctx != gw_pool.ctx)
        return -1;
    struct gw_pair *p = take_pair();
    if (!p) {
        gw_add_relaxed(&lacking, 1);
        return -1;
    }
    p->calibrates = calibrates(s, class);
    if (!afford(gw_now_ns(), cost_of(p, spacer ? spacer_ns : 0))) {
        gw_store_release(&p->state, GW_PAIR_FREE);
        return -1;
    }
    uint64_t apart = APART_NS + random_word(gw_self) % APART_MORE_NS;
    gw_store_relaxed(&next_sample, now + gw_ticks_of(apart));
    if (!p->calibrates)
        gw_store_relaxed(&s->taken, s->taken + 1);
    if (class == GWT_SAMPLE_H2D || class == GWT_SAMPLE_D2H || class == GWT_SAMPLE_GRAPH)
        gw_sample_waits(class, p, s, spacer ? now + gw_ticks_of(spacer_ns) : until);
    if (!start(f, class, p, stream, arg, spacer, spacer_ns))
        p->reason = GWT_VOID_ERROR;
    return (int)(p - gw_pool.pairs);
}

/* The lock, then the in-flight count, then the gate: a capture that begins later waits for us
 * (gw_sample_wait), one that began earlier is seen here. */
int gw_sample_begin(struct gw_frame *f)
{
    struct gw_thread *t = gw_self;
    uint32_t zero = 0, arg = 0;
    unsigned class = class_of(f);
    rearm(t);
    if (!class || gw_is_busy(t) || !gw_load_relaxed(&gw_recording))
        return -1;
    /* Too soon after the last one: most candidates, while something new is looked for. Launches
     * of graphs are counted in any case. */
    if (class != GWT_SAMPLE_GRAPH && gw_ticks() < gw_load_relaxed(&next_sample))
        return -1;
    gw_busy_begin();
    uint16_t stream = gw_stream_of(t, f);
    /* Only a function that is known: then it has run, and its module is loaded. Of shapes that
     * are new some, since there are programs in which no shape comes twice. */
    if (class == GWT_SAMPLE_KERNEL) {
        arg = gw_signature_cached(t, &f->shape);
        if (!arg && random_word(t) % 4 == 0 && gw_function_is_known(f->shape.func))
            arg = gw_signature_slow(t, f);
    } else if (class == GWT_SAMPLE_GRAPH)
        arg = gw_graph_id(f->shape.func, NULL);
    bool known = class != GWT_SAMPLE_KERNEL && class != GWT_SAMPLE_GRAPH ? true : arg != 0;
    struct gw_seen *s = known ? gw_seen_of(class, arg, f->value) : NULL;
    int index = -1;
    const struct gw_seen *function =
        class == GWT_SAMPLE_KERNEL ? gw_seen_of_function(f->shape.func) : NULL;
    bool first = s && class == GWT_SAMPLE_GRAPH && s->launches++ == 0;
    /* A collective without async_op runs on the stream that computes: its kernels are not timed,
     * the others there are, or a job that reduces its loss would not be timed at all. */
    bool beside = !gw_ahead.streams[stream].collectives || class == GWT_SAMPLE_KERNEL;
    if (s && !first && stream && beside &&
        !(class == GWT_SAMPLE_KERNEL && gw_signature_is_comm(arg)) && worth(t, s, function) &&
        gw_cas(&sampling, &zero, 1)) {
        gw_add_seq(&in_flight, 1);
        if (__atomic_load_n(&gw_odd, __ATOMIC_SEQ_CST) < GW_ODD_CAPTURE)
            index = begin_locked(f, s, class, stream, arg);
        if (index < 0) {
            gw_sub_seq(&in_flight, 1);
            gw_store_release(&sampling, 0);
        }
    }
    gw_busy_end(t);
    if (index >= 0) /* the record is about the program's call, not about ours before it */
        f->t0 = gw_top_t0 = gw_pool.pairs[index].t0 = gw_ticks(); /* f is the top frame */
    return index;
}

void gw_sample_end(int index, int status)
{
    struct gw_pair *p = &gw_pool.pairs[index];
    struct gw_thread *t = gw_self;
    uint64_t begun = now_sampling.begun_ns;
    gw_busy_begin();
    if (!p->calibrates && p->reason == GWT_VOID_NONE &&
        (record_event(p->after) != 0 || status != 0))
        p->reason = GWT_VOID_ERROR;
    uint64_t ended = gw_now_ns();
    if (!p->calibrates && p->reason == GWT_VOID_NONE) {
        bool late = judge(p);
        float took = (float)(ended - begun);
        /* Follows the worst quickly and forgets it slowly. */
        submit_ns = took > submit_ns ? submit_ns + (took - submit_ns) / 4 : submit_ns * 0.98f;
        if (late)
            submit_ns = submit_ns * 1.2f > 50000 ? 50000 : submit_ns * 1.2f;
    }
    gw_odd_set(GW_ODD_SAMPLING, false);
    gw_store_relaxed(&gw_busy_stream, NULL);
    const uint64_t device = cost_of(p, p->spacer_ns), host = gw_now_ns() - begun;
    /* Where the queue is full, each call of ours waits as long as a kernel lasts, which costs
     * nothing: the program's next call would have. */
    const uint64_t paid = host < SUBMIT_MOST_NS ? host : SUBMIT_MOST_NS;
    if (paid > device)
        gw_sampler_spent(paid - device);
    gw_count(GWT_C_SAMPLES, !p->calibrates); /* of the program's operations */
    gw_count(GWT_C_SAMPLER_GPU_NS, device);
    gw_count(GWT_C_SAMPLER_HOST_NS, host);
    /* Publishes the pair; partner: the timer's acquire load. */
    gw_store_release(&p->state, p->reason == GWT_VOID_NONE ? GW_PAIR_SUBMITTED : GW_PAIR_VOID);
    gw_sub_seq(&in_flight, 1); /* partner: gw_sample_wait() */
    gw_store_release(&sampling, 0);
    gw_busy_end(t);
}

/* Seen by every other submission while a sample is being submitted. */
void gw_sample_foreign(const void *stream)
{
    if (gw_load_relaxed(&gw_busy_stream) == (stream ? stream : (const void *)1))
        gw_store_relaxed(&foreign, 1);
}

void gw_sample_wait(void)
{
    unsigned i = 0;
    while (__atomic_load_n(&in_flight, __ATOMIC_SEQ_CST) && ++i < 1000000)
        gw_pause();
    if (i == 1000000) /* its call never returned, or blocks: no more samples, no more waiting */
        gw_store_relaxed(&gw_timing, 0);
}

static uint32_t offered;

void gw_pool_offer(void)
{
    CUcontext ctx = NULL;
    uint32_t no = 0;
    if (gw_load_relaxed(&offered) || gw_capturing() || !gw_driver.cuCtxGetCurrent ||
        gw_driver.cuCtxGetCurrent(&ctx) != 0 || !ctx || !gw_cas(&offered, &no, 1))
        return;
    gw_pool.device = gw_device;
    gw_store_release(&gw_pool.ctx, ctx); /* partner: the timer's look at it */
}

void gw_sampler_reset(void)
{
    gw_ahead_reset();
    gw_user_timing_reset();
    memset(&gw_pool, 0, sizeof gw_pool);
    sampling = in_flight = gw_graphs_ran = 0;
    gw_busy_stream = NULL;
    gw_odd_set(GW_ODD_SAMPLING, false);
    tokens_at = next_sample = 0;
    tokens_ns = lent_ns = TOKENS_NS;
    owed_ns = spent_ns = priced_at = 0;
    spent_per_s = 0;
    price_ns = 1000;
    calibrated = 0;
    offered = 0;
}
