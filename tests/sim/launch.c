/* Kernel launches and host functions. */
#include "driver.h"

#include "graph.h"
#include "peers.h"
#include "truth.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* What a kernel has written must have arrived before a time stamp is taken: by kernel, around what
 * it is for one that writes two words in the same stream. In a recorder's own stream that one was
 * stamped 0.4 us sooner to 0.5 us later than in the program's, by process, on an H200. */
#define DRAIN_LEAST 250u
#define DRAIN_MOST  550u
#define DRAIN_USUAL ((DRAIN_LEAST + DRAIN_MOST) / 2)
#define APART_LEAST 0u
#define APART_MOST  850u
/* Behind a time stamp that had to wait for another kernel's writes a kernel starts colder, by some
 * 0.6 us. */
#define COLD_LEAST 450u
#define COLD_MOST  750u

static double between(uint32_t name, uint64_t what, unsigned least, unsigned most)
{
    return least + (double)(sim_hash(sim_hash(name, what), sim_cfg.seed) % (most - least));
}

double sim_drain_usual(void)
{
    return sim_own_thread() ? between(0, 3, APART_LEAST, APART_MOST) : DRAIN_USUAL;
}

struct sim_op *sim_kernel_op(unsigned device, const struct sim_launch *l)
{
    struct sim_op *op = sim_op_new(OP_KERNEL, device);
    op->engine = ENG_COMPUTE;
    op->work = sim_func_ns(l->func, l->grid, l->block, &op->demand);
    op->name = l->func->name;
    op->own = l->func->own;
    if (!l->func->behaviour && l->func->us > 0) {
        op->drain = between(op->name, 1, DRAIN_LEAST, DRAIN_MOST);
        op->cold = between(op->name, 2, COLD_LEAST, COLD_MOST);
    } else if (l->func->stamps) {
        op->drain = sim_drain_usual();
        op->cold = (COLD_LEAST + COLD_MOST) / 2;
    }
    op->overlap = l->overlap;
    sim_func_prepare(l->func, op, l->args, l->extra);
    struct sim_thread *t = sim_thread();
    if (t->group) {
        op->group = t->group;
        t->group = NULL;
    }
    op->meetings = t->meetings;
    t->meetings = NULL;
    for (struct sim_meeting *m = op->meetings; m; m = m->next)
        sim_meeting_number(m);
    return op;
}

void sim_meet(struct sim_peers *peers, const char *op, int peer, bool sends, uint64_t bytes,
              uint64_t ns)
{
    struct sim_meeting **p = &sim_thread()->meetings;
    while (*p)
        p = &(*p)->next;
    *p = calloc(1, sizeof **p);
    if (!*p)
        abort();
    **p = (struct sim_meeting){.peers = peers,
                               .op = op,
                               .peer = peer,
                               .sends = sends,
                               .bytes = bytes,
                               .ns = (int64_t)((double)ns / sim_cfg.speed)};
}

static struct sim_group *groups; /* of which some rank has not launched yet */

void sim_collective(uint64_t communicator, uint64_t sequence, unsigned ranks, uint64_t ns)
{
    struct sim_group **p = &groups, *g;
    if (ranks > sizeof g->ops / sizeof *g->ops)
        return;
    sim_lock();
    while (*p && ((*p)->communicator != communicator || (*p)->sequence != sequence))
        p = &(*p)->next;
    g = *p;
    if (!g) {
        g = calloc(1, sizeof *g);
        if (!g)
            abort();
        *g = (struct sim_group){.communicator = communicator,
                                .sequence = sequence,
                                .ranks = ranks,
                                .ns = (double)ns / sim_cfg.speed,
                                .next = groups};
        groups = g;
        p = &groups;
    }
    if (++g->asked == ranks)
        *p = g->next;
    sim_thread()->group = g;
    sim_unlock();
}

static int launch(const void *stream, struct sim_launch *l, const void *func)
{
    int status;
    sim_lock();
    struct sim_stream *s = sim_stream_of(stream, &status);
    if (s && !(l->func = sim_func_of(func)))
        status = E_HANDLE;
    for (unsigned i = 0; !status && i < 3; i++)
        if (!l->grid[i] || !l->block[i])
            status = E_VALUE;
    if (!status && (uint64_t)l->block[0] * l->block[1] * l->block[2] > 1024)
        status = E_VALUE;
    if (!status)
        status = sim_capture_check(s);
    if (status) {
        sim_unlock();
        return status;
    }
    if (l->func->own)
        sim_own_call();
    if (s->capture) {
        /* ranks do not wait for each other in graphs */
        sim_thread()->group = NULL;
        sim_meetings_free(&sim_thread()->meetings);
        struct sim_node *node = sim_capture_node(s, CU_GRAPH_NODE_TYPE_KERNEL);
        if (node)
            sim_node_set_kernel(node, l);
        sim_captured_call();
        sim_unlock();
        return node ? E_OK : E_CAP_INVALIDATED;
    }
    if (!l->func->loaded) {
        l->func->loaded = true; /* lazily, now */
        sim_spend_locked((uint64_t)(35000.0 / sim_cfg.speed));
    }
    struct sim_op *op = sim_kernel_op(s->ctx->device, l);
    op->own |= sim_own_thread();
    if (!op->own)
        sim_truth_kernel(op->name);
    sim_op_ref(op);
    sim_submit(s, op);
    if (sim_cfg.blocking)
        sim_wait_done(op);
    sim_op_unref(op);
    sim_unlock();
    return E_OK;
}

CUresult sim_cuLaunchKernel(CUfunction func, unsigned int gx, unsigned int gy, unsigned int gz,
                            unsigned int bx, unsigned int by, unsigned int bz, unsigned int smem,
                            CUstream stream, void **args, void **extra)
{
    struct sim_launch l = {
        .grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared = smem, .args = args, .extra = extra};
    return launch(stream, &l, func);
}

CUresult sim_cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction func, void **args, void **extra)
{
    if (!c)
        return E_VALUE;
    struct sim_launch l = {.grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
                           .block = {c->blockDimX, c->blockDimY, c->blockDimZ},
                           .shared = c->sharedMemBytes,
                           .args = args,
                           .extra = extra};
    for (unsigned i = 0; i < c->numAttrs; i++) {
        if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            l.overlap = c->attrs[i].value.programmaticStreamSerializationAllowed;
        else if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            l.cooperative = c->attrs[i].value.cooperative;
    }
    return launch(c->hStream, &l, func);
}

CUresult sim_cuLaunchCooperativeKernel(CUfunction func, unsigned int gx, unsigned int gy,
                                       unsigned int gz, unsigned int bx, unsigned int by,
                                       unsigned int bz, unsigned int smem, CUstream stream,
                                       void **args)
{
    struct sim_launch l = {.grid = {gx, gy, gz},
                           .block = {bx, by, bz},
                           .shared = smem,
                           .args = args,
                           .cooperative = true};
    if ((uint64_t)gx * gy * gz > 132 * 32)
        return 720; /* too large to be resident at once */
    return launch(stream, &l, func);
}

CUresult sim_cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned int n,
                                                  unsigned int flags)
{
    (void)flags;
    for (unsigned i = 0; i < n; i++) {
        struct sim_launch l = {.grid = {list[i].gridDimX, list[i].gridDimY, list[i].gridDimZ},
                               .block = {list[i].blockDimX, list[i].blockDimY, list[i].blockDimZ},
                               .shared = list[i].sharedMemBytes,
                               .args = list[i].kernelParams,
                               .cooperative = true};
        int status = launch(list[i].hStream, &l, list[i].function);
        if (status)
            return status;
    }
    return E_OK;
}

CUresult sim_cuLaunchGridAsync(CUfunction func, int width, int height, CUstream stream)
{
    struct sim_launch l = {.grid = {(unsigned)width, (unsigned)height, 1}, .block = {1, 1, 1}};
    return launch(stream, &l, func);
}

CUresult sim_cuLaunchGrid(CUfunction func, int width, int height)
{
    return sim_cuLaunchGridAsync(func, width, height, NULL);
}

CUresult sim_cuLaunch(CUfunction func)
{
    return sim_cuLaunchGridAsync(func, 1, 1, NULL);
}

/* ---- host functions --------------------------------------------------------------------- */

struct host_call {
    CUhostFn func;
    CUstreamCallback callback;
    void *user;
    CUstream stream;
};

static void call_host(const struct host_call *c)
{
    if (c->callback)
        c->callback(c->stream, CUDA_SUCCESS, c->user);
    else
        c->func(c->user);
}

/* In real time a thread of the driver's runs them, one after the other. In virtual time
 * whoever carries the device forward does, and what the function spends is how long the
 * stream waits for it. */
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_cond = PTHREAD_COND_INITIALIZER;
static struct sim_op *queue[4096];
static unsigned queue_head, queue_tail;
static bool worker_runs;

static void *worker(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&queue_lock);
    for (;;) {
        while (queue_head == queue_tail)
            pthread_cond_wait(&queue_cond, &queue_lock);
        struct sim_op *op = queue[queue_head++ % 4096];
        pthread_mutex_unlock(&queue_lock);
        call_host(op->data);
        sim_lock();
        sim_host_func_done(op, sim_clock());
        sim_op_unref(op);
        sim_unlock();
        pthread_mutex_lock(&queue_lock);
    }
    return NULL;
}

void sim_host_func_start(struct sim_op *op)
{
    if (sim_cfg.is_virtual) {
        struct sim_thread *t = sim_thread();
        bool outer = t->in_callback;
        uint64_t outer_ns = t->callback_ns;
        t->in_callback = true;
        t->callback_ns = 0;
        int64_t start = op->start;
        sim_unlock();
        call_host(op->data);
        sim_lock();
        int64_t end = start + 4000 + (int64_t)t->callback_ns;
        t->in_callback = outer;
        t->callback_ns = outer_ns;
        sim_host_func_done(op, end);
        return;
    }
    sim_op_ref(op);
    pthread_mutex_lock(&queue_lock);
    if (!worker_runs) {
        pthread_t thread;
        worker_runs = !pthread_create(&thread, NULL, worker, NULL);
        if (worker_runs)
            pthread_detach(thread);
    }
    queue[queue_tail++ % 4096] = op;
    pthread_cond_signal(&queue_cond);
    pthread_mutex_unlock(&queue_lock);
}

struct sim_op *sim_host_op(unsigned device, void (*func)(void *), void *user)
{
    struct host_call *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    c->func = func;
    c->user = user;
    struct sim_op *op = sim_op_new(OP_HOST, device);
    op->data = c;
    op->release = free;
    return op;
}

static int host(CUstream stream, CUhostFn func, CUstreamCallback callback, void *user)
{
    int status;
    if (!func && !callback)
        return E_VALUE;
    sim_lock();
    struct sim_stream *s = sim_stream_of(stream, &status);
    if (s)
        status = sim_capture_check(s);
    if (!status && s->capture) {
        struct sim_node *node = sim_capture_node(s, CU_GRAPH_NODE_TYPE_HOST);
        if (callback)
            status = sim_capture_invalidate(s, E_CAP_UNSUPPORTED);
        else if (node)
            sim_node_set_host(node, func, user);
    } else if (!status) {
        struct sim_op *op = sim_host_op(s->ctx->device, func, user);
        struct host_call *c = op->data;
        c->callback = callback;
        c->stream = stream;
        sim_submit(s, op);
    }
    sim_unlock();
    return status;
}

CUresult sim_cuLaunchHostFunc(CUstream stream, CUhostFn func, void *user)
{
    return host(stream, func, NULL, user);
}

CUresult sim_cuLaunchHostFunc_v2(CUstream stream, CUhostFn func, void *user, unsigned int mode)
{
    (void)mode;
    return host(stream, func, NULL, user);
}

CUresult sim_cuStreamAddCallback(CUstream stream, CUstreamCallback func, void *user,
                                 unsigned int flags)
{
    (void)flags;
    return host(stream, NULL, func, user);
}
