#include "device.h"

#include "config.h"
#include "core.h"
#include "peers.h"
#include "truth.h"

#include <stdlib.h>
#include <string.h>

/* What the device does, and when, in ns. Its own figures, in the range of what a data-centre
 * GPU shows; nothing that judges a recording may read them. */
#define START_LATENCY     3100.0 /* submission reaches an idle stream */
#define START_SPREAD      0.12
#define START_TAIL_CHANCE 0.004
#define START_TAIL        12000.0
#define GAP_KERNEL        720.0 /* end of a kernel to the start of the next in its stream */
#define GAP_GRAPH         480.0
#define GAP_GRAPH_FIRST   860.0  /* a launched graph's first node */
#define GAP_EVENT         860.0  /* from a time stamp to a copy behind another */
#define GAP_STAMP         610.0  /* and to a kernel */
#define GAP_ENGINE        1900.0 /* hand-over to another engine */
#define GAP_COPY          1700.0 /* between two copies of one direction: 1.6 to 2.9 */
/* From a time stamp of another engine to a copy: pairs around 4 KiB are 8.0 and 6.9 us apart,
 * copies of few bytes last 1.0 and 1.55, and what is left scatters widely. Behind copies of its own
 * direction a pair adds what it adds to a kernel. */
#define GAP_STAMP_H2D    5300.0
#define GAP_STAMP_D2H    3700.0
#define GAP_STAMP_SPREAD 0.26
#define COPY_DRAIN       300.0
#define GAP_STREAM       1400.0 /* a wait for another stream's event */
#define GAP_OVERLAP      90.0
#define GAP_SPREAD       0.10
#define STAMP            1280.0 /* a timing event: drain, barrier, stamp */
#define STAMP_SPREAD     0.02
#define MARK_EVENT       150.0
#define DRAIN_SPREAD     0.20
#define STAMP_QUANTUM    32
#define MAX_RUNNING      128u

struct engine {
    struct sim_op *head, *tail; /* ready, waiting for the engine */
    unsigned running;
};

struct device {
    struct engine engines[ENG_COUNT];
    struct sim_op *running[MAX_RUNNING]; /* on the compute engine */
    unsigned nrunning;
    int64_t updated; /* time up to which work has been taken off the running kernels */
    double rate;
};

struct timed {
    int64_t t;
    uint64_t seq;
    struct sim_op *op;
};

/* A hardware queue hands out its operations in the order in which they came: one that
 * cannot start yet holds up those behind it. */
struct queue {
    struct sim_op *head, *tail;
};

#define MAX_QUEUES 64u

static struct device devices[8];
static unsigned ndevices;
static struct timed *heap;
static size_t heap_size, heap_room;
static uint64_t heap_seq;
static struct queue queues[MAX_QUEUES];
static struct sim_op **polled; /* OP_WAIT_VALUE under way */
static size_t npolled, polled_room;
static uint64_t live; /* submitted and not done */
static int64_t now;
static bool finishing;
static struct sim_rng rng;

void sim_device_init(unsigned count)
{
    ndevices = count;
    sim_rng_seed(&rng, 0x6465766963650000u);
}

/* ---- time-ordered events --------------------------------------------------------- */

static bool earlier(const struct timed *a, const struct timed *b)
{
    return a->t != b->t ? a->t < b->t : a->seq < b->seq;
}

static void heap_push(int64_t t, struct sim_op *op)
{
    if (heap_size == heap_room) {
        heap_room = heap_room ? heap_room * 2 : 1024;
        heap = sim_grow(heap, heap_room * sizeof *heap);
    }
    size_t i = heap_size++;
    struct timed e = {t, heap_seq++, op};
    for (; i && earlier(&e, &heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = e;
}

static struct timed heap_pop(void)
{
    struct timed top = heap[0], last = heap[--heap_size];
    size_t i = 0, child;
    while ((child = 2 * i + 1) < heap_size) {
        if (child + 1 < heap_size && earlier(&heap[child + 1], &heap[child]))
            child++;
        if (!earlier(&heap[child], &last))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return top;
}

/* ---- operations -------------------------------------------------------------------- */

struct sim_op *sim_op_new(enum sim_op_type type, unsigned device)
{
    struct sim_op *op = calloc(1, sizeof *op);
    if (!op)
        abort();
    op->refs = 1;
    op->type = (uint8_t)type;
    op->device = (uint8_t)device;
    op->unmet = 1;
    return op;
}

struct sim_op *sim_op_ref(struct sim_op *op)
{
    if (op)
        op->refs++;
    return op;
}

void sim_op_unref(struct sim_op *op)
{
    if (!op || --op->refs)
        return;
    if (op->release)
        op->release(op->data);
    sim_meetings_free(&op->meetings);
    free(op->followers);
    free(op);
}

static int64_t jitter(double value, double spread)
{
    return (int64_t)sim_jitter(&rng, value, spread);
}

static bool on_copy_engine(const struct sim_op *op)
{
    return op->engine != ENG_NONE && op->engine != ENG_COMPUTE;
}

static int64_t gap_of(double g, double spread)
{
    return jitter(g * sim_cfg.gap / sim_cfg.speed, spread);
}

/* Of a time stamp: what it comes behind, which takes it. */
static uint8_t engine_behind(const struct sim_op *op)
{
    return op->type == OP_EVENT ? op->behind : op->engine;
}

static int64_t gap_from_stamp(const struct sim_op *stamp, const struct sim_op *copy)
{
    if (stamp->behind == copy->engine)
        return gap_of(GAP_EVENT, GAP_SPREAD);
    return gap_of(copy->engine == ENG_D2H ? GAP_STAMP_D2H : GAP_STAMP_H2D, GAP_STAMP_SPREAD);
}

/* From the end of `a` to the earliest start of `b`. */
static int64_t gap(const struct sim_op *a, const struct sim_op *b)
{
    double g = GAP_KERNEL;
    if (b->type == OP_MARK || b->type == OP_WAIT_VALUE || b->type == OP_WRITE_VALUE)
        return 0;
    if (b->type == OP_EVENT) { /* its own duration covers most of the drain of its own engine */
        if (on_copy_engine(a))
            return gap_of(b->timing ? COPY_DRAIN : GAP_ENGINE, GAP_SPREAD);
        return b->timing && a->drain > 0 ? jitter(a->drain / sim_cfg.speed, DRAIN_SPREAD) : 0;
    }
    if (a->type == OP_EVENT && a->timing && on_copy_engine(b))
        return gap_from_stamp(a, b);
    if (b->overlap && a->type == OP_KERNEL)
        g = GAP_OVERLAP;
    else if (a->type == OP_MARK ? !a->in_graph : a->stream != b->stream && !b->in_graph)
        g = GAP_STREAM; /* a mark stands for the end of another stream's work */
    else if (a->type == OP_EVENT && on_copy_engine(b))
        g = GAP_ENGINE;
    else if (a->type == OP_EVENT)
        g = a->timing ? GAP_STAMP : GAP_KERNEL / 2;
    else if (a->engine && b->engine && a->engine != b->engine)
        g = GAP_ENGINE;
    else if (on_copy_engine(a) && on_copy_engine(b))
        g = GAP_COPY;
    else if (a->in_graph && b->in_graph)
        g = a->type == OP_MARK ? GAP_GRAPH_FIRST : GAP_GRAPH;
    double cold = a->type == OP_EVENT && a->cold > 0 ? b->cold : 0;
    return gap_of(g, GAP_SPREAD) + (int64_t)(cold / sim_cfg.speed);
}

void sim_op_after(struct sim_op *op, const struct sim_op *before)
{
    if (!before || before == op)
        return;
    if (before->state == ST_DONE) {
        int64_t t = before->end + gap(before, op);
        if (t > op->ready) {
            op->ready = t;
            op->behind = engine_behind(before);
        }
        return;
    }
    struct sim_op *b = (struct sim_op *)before;
    if (b->nfollowers == b->follower_room) {
        b->follower_room = b->follower_room ? b->follower_room * 2 : 2;
        b->followers = sim_grow(b->followers, b->follower_room * sizeof *b->followers);
    }
    b->followers[b->nfollowers++] = op;
    op->unmet++;
}

static void met(struct sim_op *op)
{
    if (--op->unmet == 0) {
        if (op->ready < now)
            op->ready = now;
        heap_push(op->ready, op);
    }
}

void sim_op_submit(struct sim_op *op, int64_t t, struct sim_lane *lane)
{
    double latency = sim_jitter(&rng, START_LATENCY, START_SPREAD);
    if (sim_uniform(&rng) < START_TAIL_CHANCE * sim_cfg.variance)
        latency += START_TAIL * sim_uniform(&rng);
    /* the device is told at once; what takes long is that it begins */
    int64_t ready = t + (int64_t)(latency * sim_cfg.latency / sim_cfg.speed);
    if (ready > op->ready && op->type != OP_MARK)
        op->ready = ready;
    op->lane = lane;
    live++;
    sim_op_ref(op);
    if (lane) {
        lane->waiting++;
        if (sim_cfg.queues) {
            struct queue *q = &queues[lane->queue % MAX_QUEUES];
            if (q->tail)
                q->tail->queue_next = op;
            else
                q->head = op;
            q->tail = op;
        }
    }
    met(op);
}

/* ---- the compute engine: kernels that run together share it -------------------------- */

static void rates(struct device *d)
{
    double demand = 0;
    for (unsigned i = 0; i < d->nrunning; i++)
        demand += d->running[i]->demand;
    d->rate = demand > 1.0 ? 1.0 / demand : 1.0;
}

static void take_work(struct device *d, int64_t t)
{
    double done = (double)(t - d->updated) * d->rate;
    for (unsigned i = 0; i < d->nrunning; i++)
        d->running[i]->work -= done;
    d->updated = t;
}

static int64_t next_compute(const struct device *d, unsigned *which)
{
    int64_t best = SIM_NEVER;
    for (unsigned i = 0; i < d->nrunning; i++) {
        double left = d->running[i]->work;
        if (d->running[i]->group || d->running[i]->meetings)
            continue; /* waits for other ranks */
        int64_t t = d->updated + (left > 0 ? (int64_t)(left / d->rate + 0.999) : 0);
        if (t < best) {
            best = t;
            *which = i;
        }
    }
    return best;
}

/* ---- start and end ---------------------------------------------------------------------- */

static void finish(struct sim_op *op, int64_t t);
static void start(struct sim_op *op, int64_t t);

static void start_next(struct engine *e, int64_t t)
{
    struct sim_op *op = e->head;
    if (!op)
        return;
    e->head = op->queue_next;
    if (!e->head)
        e->tail = NULL;
    op->queue_next = NULL;
    start(op, t);
}

static bool poll_met(const struct sim_op *op)
{
    /* >=, as CU_STREAM_WAIT_VALUE_GEQ compares; equality and masks are covered by it here */
    uint32_t v = __atomic_load_n((const uint32_t *)op->data, __ATOMIC_ACQUIRE);
    return (int32_t)(v - (uint32_t)op->value) >= 0;
}

/* A device that is near its limit of power slows down now and then: each at times of its own. */
#define HEAT_NS 2000000000
static double heat(int64_t t)
{
    uint64_t at = (uint64_t)t + sim_hash(sim_cfg.seed, 7) % HEAT_NS;
    return at % HEAT_NS < HEAT_NS / 2 ? 1 + sim_cfg.heat : 1;
}

/* The ranks of a collective spin until all have come. */
static void start_member(struct sim_op *op, int64_t t)
{
    struct sim_group *g = op->group;
    if (finishing) { /* who has not come will not */
        op->work = g->ns;
        op->group = NULL;
        return;
    }
    op->work = 1e18;
    g->ops[g->started++] = op;
    if (g->started < g->ranks)
        return;
    for (unsigned i = 0; i < g->ranks; i++) {
        take_work(&devices[g->ops[i]->device], t);
        g->ops[i]->work = g->ns;
        g->ops[i]->group = NULL;
    }
    free(g);
}

/* ---- kernels that wait for other processes ------------------------------------------------- */

static struct sim_op *apart[MAX_RUNNING * 8]; /* running, and it is not known until when */
static unsigned napart;
static const struct sim_meeting *nearest; /* what holds up the device */

static void start_apart(struct sim_op *op, int64_t t)
{
    if (finishing) { /* who has not come will not */
        heap_push(t + op->meetings->ns, op);
        return;
    }
    for (struct sim_meeting *m = op->meetings; m; m = m->next)
        sim_meeting_start(m, t);
    apart[napart++] = op;
}

/* When it ends, or else a time before which it does not. */
static bool end_known(struct sim_op *op, int64_t *end, const struct sim_meeting **latest)
{
    bool known = true;
    *end = 0;
    for (struct sim_meeting *m = op->meetings; m; m = m->next) {
        int64_t t;
        bool met = sim_meeting_end(m, op->start, &t);
        known &= met;
        if (!met && t > *end)
            *latest = m;
        if (t > *end)
            *end = t;
    }
    return known;
}

/* post: the time up to which the device can be carried on */
static int64_t horizon(void)
{
    int64_t least = SIM_NEVER;
    for (unsigned i = 0; i < napart;) {
        const struct sim_meeting *latest = apart[i]->meetings;
        int64_t end;
        if (end_known(apart[i], &end, &latest)) {
            heap_push(end > now ? end : now, apart[i]);
            apart[i] = apart[--napart];
            continue;
        }
        if (end < least) {
            least = end;
            nearest = latest;
        }
        i++;
    }
    return least;
}

static void end_apart(struct sim_op *op)
{
    struct device *d = &devices[op->device];
    unsigned i = 0;
    take_work(d, now);
    while (d->running[i] != op)
        i++;
    d->running[i] = d->running[--d->nrunning];
    rates(d);
}

static void start(struct sim_op *op, int64_t t)
{
    struct device *d = &devices[op->device];
    op->state = ST_RUNNING;
    op->start = t;
    if (op->lane)
        op->lane->waiting--;
    d->engines[op->engine].running++;
    switch ((enum sim_op_type)op->type) {
    case OP_KERNEL:
        op->work *= heat(t);
        /* fall through */
    case OP_MEMSET:
        take_work(d, t);
        d->running[d->nrunning++] = op;
        rates(d);
        if (op->group)
            start_member(op, t);
        else if (op->meetings)
            start_apart(op, t);
        break;
    case OP_COPY:
        if (op->engine == ENG_COMPUTE) {
            take_work(d, t);
            d->running[d->nrunning++] = op;
            rates(d);
        } else {
            heap_push(t + (int64_t)op->work, op);
        }
        break;
    case OP_EVENT:
        heap_push(
            t + (op->timing ? jitter(STAMP / sim_cfg.speed, STAMP_SPREAD) : (int64_t)MARK_EVENT),
            op);
        break;
    case OP_HOST:
        if (finishing)
            finish(op, t + 5000);
        else
            sim_host_func_start(op); /* ends through sim_host_func_done() */
        break;
    case OP_WAIT_VALUE:
        if (finishing || poll_met(op)) {
            finish(op, t);
            break;
        }
        if (npolled == polled_room) {
            polled_room = polled_room ? polled_room * 2 : 16;
            polled = sim_grow(polled, polled_room * sizeof *polled);
        }
        polled[npolled++] = op;
        break;
    case OP_WRITE_VALUE:
    case OP_MARK:
        finish(op, t);
        break;
    }
}

static bool engine_free(const struct device *d, unsigned engine)
{
    if (engine == ENG_NONE)
        return true;
    if (engine == ENG_COMPUTE)
        return d->nrunning < MAX_RUNNING;
    return d->engines[engine].running == 0;
}

/* Its predecessors are done and its time has come. */
static void begin(struct sim_op *op, int64_t t)
{
    struct device *d = &devices[op->device];
    struct engine *e = &d->engines[op->engine];
    if (engine_free(d, op->engine) && (!e->head || op->engine == ENG_NONE)) {
        start(op, t);
        return;
    }
    if (e->tail)
        e->tail->queue_next = op;
    else
        e->head = op;
    e->tail = op;
}

static void reached(struct sim_op *op, int64_t t)
{
    op->state = ST_READY;
    if (!sim_cfg.queues || !op->lane) {
        begin(op, t);
        return;
    }
    /* only the head of a hardware queue may go, then whatever behind it was held up */
    struct queue *q = &queues[op->lane->queue % MAX_QUEUES];
    while (q->head && q->head->state == ST_READY) {
        struct sim_op *head = q->head;
        q->head = head->queue_next;
        if (!q->head)
            q->tail = NULL;
        head->queue_next = NULL;
        if (head->ready < t)
            head->ready = t;
        begin(head, t);
    }
}

static void finish(struct sim_op *op, int64_t t)
{
    struct device *d = &devices[op->device];
    op->state = ST_DONE;
    op->end = t;
    if (op->type == OP_EVENT && op->timing)
        op->value = (uint64_t)t / STAMP_QUANTUM * STAMP_QUANTUM;
    sim_truth_op(op);
    if (op->effect && !finishing)
        op->effect(op);
    live--;
    d->engines[op->engine].running--;
    for (unsigned i = 0; i < op->nfollowers; i++) {
        struct sim_op *f = op->followers[i];
        int64_t ready = t + gap(op, f);
        if (ready > f->ready) {
            f->ready = ready;
            f->behind = engine_behind(op);
            /* the last one decides: what others wrote has arrived by then */
            if (f->type == OP_EVENT && f->timing)
                f->cold = op->type == OP_KERNEL && op->drain > 0;
        }
        met(f);
    }
    op->nfollowers = 0;
    if (op->engine && engine_free(d, op->engine))
        start_next(&d->engines[op->engine], t);
    sim_op_unref(op);
}

void sim_host_func_done(struct sim_op *op, int64_t t)
{
    heap_push(t > now ? t : now, op);
}

static bool poll_values(void)
{
    bool any = false;
    for (size_t i = 0; i < npolled;) {
        struct sim_op *op = polled[i];
        if (!finishing && !poll_met(op)) {
            i++;
            continue;
        }
        polled[i] = polled[--npolled];
        heap_push(now, op);
        any = true;
    }
    return any;
}

static int64_t next_event(struct device **device, unsigned *which)
{
    int64_t t = SIM_NEVER;
    *device = NULL;
    for (unsigned i = 0; i < ndevices; i++) {
        unsigned w = 0;
        int64_t c = next_compute(&devices[i], &w);
        if (c < t) {
            t = c;
            *device = &devices[i];
            *which = w;
        }
    }
    if (heap_size && heap[0].t < t) {
        t = heap[0].t;
        *device = NULL;
    }
    return t;
}

int64_t sim_device_next(void)
{
    struct device *d;
    unsigned which;
    int64_t limit = horizon(), t = next_event(&d, &which);
    return t < limit ? t : limit;
}

bool sim_device_idle(void)
{
    return live == 0;
}

void sim_device_run(int64_t until)
{
    struct device *d;
    unsigned which = 0;
    if (npolled)
        poll_values();
    for (;;) {
        int64_t limit = horizon(), t = next_event(&d, &which);
        if (limit != SIM_NEVER && limit <= (t < until ? t : until)) {
            if (!sim_cfg.is_virtual || sim_thread()->quiet) {
                until = limit; /* later, then */
                break;
            }
            sim_peers_wait(nearest, limit);
            continue;
        }
        if (t > until || t == SIM_NEVER)
            break;
        if (t > now)
            now = t;
        if (d) {
            take_work(d, now);
            struct sim_op *op = d->running[which];
            d->running[which] = d->running[--d->nrunning];
            rates(d);
            finish(op, now);
        } else {
            struct sim_op *op = heap_pop().op;
            if (op->state == ST_RUNNING) {
                if (op->meetings)
                    end_apart(op);
                finish(op, now);
            } else {
                reached(op, now);
            }
        }
    }
    if (until != SIM_NEVER && until > now)
        now = until;
    sim_peers_clock(now);
}

void sim_device_finish(void)
{
    finishing = true;
    for (unsigned i = 0; i < ndevices; i++)
        for (unsigned k = 0; k < devices[i].nrunning; k++)
            if (devices[i].running[k]->group) {
                devices[i].running[k]->work = devices[i].running[k]->group->ns;
                devices[i].running[k]->group = NULL;
            }
    while (napart) {
        struct sim_op *op = apart[--napart];
        heap_push(now + op->meetings->ns, op);
    }
    poll_values();
    sim_device_run(SIM_NEVER);
    finishing = false;
}

/* ---- how long things take ------------------------------------------------------------------ */

double sim_copy_ns(enum sim_direction direction, bool pageable, uint64_t bytes)
{
    static const struct {
        double base, bytes_per_ns;
    } speed[DIR_COUNT] = {
        [DIR_H2D] = {1000, 55.0},  [DIR_D2H] = {1550, 55.0}, [DIR_D2D] = {1100, 1400.0},
        [DIR_P2P] = {2200, 150.0}, [DIR_H2H] = {900, 12.0},
    };
    double rate = speed[direction].bytes_per_ns;
    if (pageable && (direction == DIR_H2D || direction == DIR_D2H))
        rate = bytes > (64u << 20) ? 6.5 : 13.0;
    if (direction != DIR_D2D && direction != DIR_H2H)
        rate *= sim_cfg.link;
    return (speed[direction].base + (double)bytes / rate) / sim_cfg.speed;
}

double sim_memset_ns(uint64_t bytes)
{
    return (830.0 + (double)bytes / 1800.0) / sim_cfg.speed;
}
