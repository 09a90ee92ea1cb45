/* Graphs: what a node holds, copies of graphs, executable graphs and their launches. */
#include "graph.h"

#include "driver.h"
#include "truth.h"

#include <stdlib.h>
#include <string.h>

static struct sim_pool graph_pool = {.size = sizeof(struct sim_graph)};
static struct sim_pool node_pool = {.size = sizeof(struct sim_node)};
static struct sim_pool exec_pool = {.size = sizeof(struct sim_exec)};

struct sim_graph *sim_graph_of(const void *handle)
{
    struct sim_graph *g = (struct sim_graph *)handle;
    return g && g->magic == MAGIC_GRAPH ? g : NULL;
}

struct sim_node *sim_node_of(const void *handle)
{
    struct sim_node *n = (struct sim_node *)handle;
    return n && n->magic == MAGIC_NODE ? n : NULL;
}

static struct sim_exec *exec_of(const void *handle)
{
    struct sim_exec *e = (struct sim_exec *)handle;
    return e && e->magic == MAGIC_EXEC ? e : NULL;
}

/* ---- nodes ---------------------------------------------------------------------------- */

struct sim_graph *sim_graph_new(void)
{
    struct sim_graph *g = sim_pool_get(&graph_pool);
    g->magic = MAGIC_GRAPH;
    return g;
}

struct sim_node *sim_node_new(struct sim_graph *g, unsigned type)
{
    struct sim_node *n = sim_pool_get(&node_pool);
    n->magic = MAGIC_NODE;
    n->type = type;
    n->graph = g;
    n->enabled = true;
    if (g->nnodes == g->room) {
        g->room = g->room ? g->room * 2 : 16;
        g->nodes = sim_grow(g->nodes, g->room * sizeof(struct sim_node *));
    }
    return g->nodes[g->nnodes++] = n;
}

void sim_node_after(struct sim_node *node, struct sim_node *before)
{
    if (node->nafter == node->after_room) {
        node->after_room = node->after_room ? node->after_room * 2 : 2;
        node->after = sim_grow(node->after, node->after_room * sizeof(struct sim_node *));
    }
    node->after[node->nafter++] = before;
}

void sim_node_free(struct sim_node *n)
{
    free(n->after);
    free(n->blob);
    if (n->child)
        sim_graph_free(n->child);
    sim_pool_put(&node_pool, n);
}

void sim_graph_free(struct sim_graph *g)
{
    for (unsigned i = g->nnodes; i-- > 0;)
        sim_node_free(g->nodes[i]);
    free(g->nodes);
    sim_pool_put(&graph_pool, g);
}

void sim_node_set_kernel(struct sim_node *n, const struct sim_launch *l)
{
    const struct sim_func *f = l->func;
    size_t bytes = f->nparams * sizeof(void *), at = bytes;
    unsigned char *old = n->blob;
    n->kernel = *l;
    n->kernel.args = NULL;
    n->kernel.extra = NULL;
    n->blob = NULL;
    if (l->args && f->nparams) {
        for (unsigned i = 0; i < f->nparams; i++)
            bytes += (f->params[i] + 15) / 16 * 16;
        n->blob = sim_grow(NULL, bytes + 16);
        n->kernel.args = (void **)(void *)n->blob;
        at = (at + 15) / 16 * 16;
        for (unsigned i = 0; i < f->nparams; i++) {
            memcpy(n->blob + at, l->args[i], f->params[i]);
            n->kernel.args[i] = n->blob + at;
            at += (f->params[i] + 15) / 16 * 16;
        }
    }
    free(old);
}

void sim_node_set_copy(struct sim_node *n, const struct sim_copy *c)
{
    static const struct {
        CUmemorytype src, dst;
    } types[DIR_COUNT] = {
        [DIR_H2D] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE},
        [DIR_D2H] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST},
        [DIR_D2D] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE},
        [DIR_P2P] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE},
        [DIR_H2H] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST},
    };
    enum sim_direction d;
    bool pageable;
    sim_copy_resolve(c, &d, &pageable);
    CUDA_MEMCPY3D *p = &n->copy_params;
    n->copy = *c;
    n->copy.blocking = false;
    memset(p, 0, sizeof *p);
    p->srcMemoryType = types[d].src;
    p->dstMemoryType = types[d].dst;
    p->srcHost = types[d].src == CU_MEMORYTYPE_HOST ? (void *)c->src : NULL;
    p->srcDevice = types[d].src == CU_MEMORYTYPE_DEVICE ? c->src : 0;
    p->dstHost = types[d].dst == CU_MEMORYTYPE_HOST ? (void *)c->dst : NULL;
    p->dstDevice = types[d].dst == CU_MEMORYTYPE_DEVICE ? c->dst : 0;
    p->WidthInBytes = c->height ? c->width : c->bytes;
    p->Height = c->height ? c->height : 1;
    p->Depth = c->height ? c->depth : 1;
    p->srcPitch = c->src_pitch ? c->src_pitch : p->WidthInBytes;
    p->dstPitch = c->dst_pitch ? c->dst_pitch : p->WidthInBytes;
    p->srcHeight = p->dstHeight = p->Height;
}

void sim_node_set_host(struct sim_node *n, CUhostFn func, void *user)
{
    n->host.fn = func;
    n->host.userData = user;
}

static void copy_contents(struct sim_node *to, const struct sim_node *from)
{
    if (from->type == CU_GRAPH_NODE_TYPE_KERNEL)
        sim_node_set_kernel(to, &from->kernel);
    to->copy = from->copy;
    to->copy_params = from->copy_params;
    to->memset = from->memset;
    to->host = from->host;
    to->event = from->event;
    to->enabled = from->enabled;
    struct sim_graph *old = to->child;
    to->child = from->child ? sim_graph_clone(from->child) : NULL;
    if (old)
        sim_graph_free(old);
}

struct sim_node *sim_node_clone_in(const struct sim_graph *g, const struct sim_node *original)
{
    for (unsigned i = 0; i < g->nnodes; i++)
        if (g->nodes[i]->origin == original)
            return g->nodes[i];
    return NULL;
}

struct sim_graph *sim_graph_clone(const struct sim_graph *g)
{
    struct sim_graph *c = sim_graph_new();
    for (unsigned i = 0; i < g->nnodes; i++) {
        struct sim_node *n = sim_node_new(c, g->nodes[i]->type);
        n->origin = g->nodes[i];
        copy_contents(n, g->nodes[i]);
    }
    for (unsigned i = 0; i < g->nnodes; i++)
        for (unsigned j = 0; j < g->nodes[i]->nafter; j++) {
            const struct sim_node *before = g->nodes[i]->after[j];
            /* mostly the one just before */
            struct sim_node *b =
                i && g->nodes[i - 1] == before ? c->nodes[i - 1] : sim_node_clone_in(c, before);
            if (b)
                sim_node_after(c->nodes[i], b);
        }
    return c;
}

/* ---- launch ------------------------------------------------------------------------------ */

static struct sim_op *node_op(struct sim_node *n, struct sim_stream *s)
{
    unsigned device = s->ctx->device;
    bool own = sim_own_thread();
    enum sim_direction direction;
    bool pageable;
    struct sim_op *op;
    if (!n->enabled)
        return sim_op_new(OP_MARK, device);
    switch (n->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        if (n->kernel.func->magic != MAGIC_FUNC)
            return sim_op_new(OP_MARK, device); /* its module is gone */
        op = sim_kernel_op(device, &n->kernel);
        if (!op->own && !own)
            sim_truth_kernel(op->name);
        return op;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        sim_copy_resolve(&n->copy, &direction, &pageable);
        if (!own)
            sim_truth_copy(direction, pageable, n->copy.bytes);
        return sim_copy_op(device, &n->copy, false);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        if (!own)
            sim_truth_memset(n->memset.width * n->memset.height * n->memset.elementSize);
        return sim_memset_node_op(device, &n->memset);
    case CU_GRAPH_NODE_TYPE_HOST:
        return sim_host_op(device, n->host.fn, n->host.userData);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        op = sim_op_new(OP_EVENT, device);
        if (n->event && n->event->magic == MAGIC_EVENT) {
            op->timing = !(n->event->flags & 2);
            sim_op_unref(n->event->op);
            n->event->op = sim_op_ref(op);
            n->event->capture_id = 0;
        }
        return op;
    default:
        op = sim_op_new(OP_MARK, device);
        if (n->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT && n->event && n->event->magic == MAGIC_EVENT)
            sim_op_after(op, n->event->op);
        return op;
    }
}

/* Submits the nodes of g between two marks. pre: `first` is submitted or will be.
 * post: the operation after which all of it is done, not submitted. */
static struct sim_op *expand(struct sim_graph *g, struct sim_stream *s, struct sim_op *first,
                             int64_t t)
{
    struct sim_op **ops = sim_grow(NULL, (g->nnodes + 1) * sizeof *ops); /* where it begins */
    struct sim_op **ends = sim_grow(NULL, (g->nnodes + 1) * sizeof *ends);
    bool *leaf = sim_grow(NULL, g->nnodes + 1);
    struct sim_op *last = sim_op_new(OP_MARK, s->ctx->device);
    last->in_graph = true;
    last->stream = s;
    last->drain = sim_drain_usual();
    memset(leaf, 1, g->nnodes + 1);
    for (unsigned i = 0; i < g->nnodes; i++) {
        struct sim_node *n = g->nodes[i];
        bool child = n->type == CU_GRAPH_NODE_TYPE_GRAPH && n->child && n->enabled;
        ops[i] = child ? sim_op_new(OP_MARK, s->ctx->device) : node_op(n, s);
        ops[i]->in_graph = true;
        ops[i]->stream = s;
        ops[i]->counted = sim_truth_active();
        ops[i]->own |= sim_own_thread();
        ends[i] = child ? expand(n->child, s, ops[i], t) : ops[i];
    }
    for (unsigned i = 0; i < g->nnodes; i++) {
        struct sim_node *n = g->nodes[i];
        if (!n->nafter)
            sim_op_after(ops[i], first);
        for (unsigned j = 0; j < n->nafter; j++)
            for (unsigned k = 0; k < g->nnodes; k++) {
                /* usually an earlier neighbour: look there first */
                unsigned at = (i + g->nnodes - 1 - k) % g->nnodes;
                if (g->nodes[at] != n->after[j])
                    continue;
                sim_op_after(ops[i], ends[at]);
                leaf[at] = false;
                break;
            }
    }
    for (unsigned i = 0; i < g->nnodes; i++)
        if (leaf[i])
            sim_op_after(last, ends[i]);
    if (!g->nnodes)
        sim_op_after(last, first);
    for (unsigned i = 0; i < g->nnodes; i++) {
        sim_op_submit(ops[i], t, NULL);
        if (ends[i] != ops[i]) {
            sim_op_submit(ends[i], t, NULL);
            sim_op_unref(ends[i]);
        }
        sim_op_unref(ops[i]);
    }
    free(ops);
    free(ends);
    free(leaf);
    return last;
}

static unsigned total_nodes(const struct sim_graph *g)
{
    unsigned n = g->nnodes;
    for (unsigned i = 0; i < g->nnodes; i++)
        if (g->nodes[i]->child)
            n += total_nodes(g->nodes[i]->child);
    return n;
}

CUresult sim_cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    int status;
    sim_lock();
    struct sim_stream *s = sim_stream_of(stream, &status);
    struct sim_exec *e = exec_of(exec);
    if (!status && !e)
        status = E_HANDLE;
    if (!status)
        status = sim_capture_check(s);
    if (status) {
        sim_unlock();
        return status;
    }
    if (s->capture) {
        struct sim_node *n = sim_capture_node(s, CU_GRAPH_NODE_TYPE_GRAPH);
        sim_captured_call();
        if (n)
            n->child = sim_graph_clone(e->graph);
        sim_unlock();
        return n ? E_OK : E_CAP_INVALIDATED;
    }
    unsigned nodes = total_nodes(e->graph);
    sim_spend_locked(
        (uint64_t)((nodes * 40.0 + (e->uploaded ? 0 : 8000 + nodes * 150.0)) / sim_cfg.speed));
    e->uploaded = true;
    struct sim_op *first = sim_op_new(OP_MARK, s->ctx->device);
    first->in_graph = true;
    sim_op_after(first, e->last);
    sim_op_ref(first);
    sim_submit(s, first);
    struct sim_op *last = expand(e->graph, s, first, sim_clock());
    sim_op_unref(first);
    sim_op_unref(e->last);
    e->last = sim_op_ref(last);
    sim_submit(s, last);
    if (sim_cfg.blocking)
        sim_wait_done(e->last);
    sim_unlock();
    return E_OK;
}

CUresult sim_cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    (void)stream;
    struct sim_exec *e = exec_of(exec);
    if (e)
        e->uploaded = true;
    return e ? E_OK : E_HANDLE;
}

/* ---- executable graphs --------------------------------------------------------------------- */

static int instantiate(CUgraphExec *out, CUgraph graph, uint64_t flags)
{
    sim_lock();
    struct sim_graph *g = sim_graph_of(graph);
    int status = sim_ready();
    if (!status && (!g || !out))
        status = E_VALUE;
    if (!status) {
        struct sim_exec *e = sim_pool_get(&exec_pool);
        e->magic = MAGIC_EXEC;
        e->graph = sim_graph_clone(g);
        e->flags = flags;
        *out = (CUgraphExec)(void *)e;
        unsigned n = total_nodes(g);
        sim_spend_locked((uint64_t)(n * 900.0 / sim_cfg.speed));
    }
    sim_unlock();
    return status;
}

CUresult sim_cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
                                char *log, size_t log_size)
{
    if (error_node)
        *error_node = NULL;
    if (log && log_size)
        *log = 0;
    return instantiate(exec, graph, 0);
}

CUresult sim_cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
                                   char *log, size_t log_size)
{
    return sim_cuGraphInstantiate(exec, graph, error_node, log, log_size);
}

CUresult sim_cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    return instantiate(exec, graph, flags);
}

CUresult sim_cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                          CUDA_GRAPH_INSTANTIATE_PARAMS *parms)
{
    parms->result_out = 0;
    parms->hErrNode_out = NULL;
    return instantiate(exec, graph, parms->flags);
}

CUresult sim_cuGraphExecDestroy(CUgraphExec exec)
{
    sim_lock();
    struct sim_exec *e = exec_of(exec);
    if (e) {
        sim_op_unref(e->last);
        sim_graph_free(e->graph);
        sim_pool_put(&exec_pool, e);
    }
    sim_unlock();
    return e ? E_OK : E_HANDLE;
}

CUresult sim_cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags)
{
    struct sim_exec *e = exec_of(exec);
    if (e)
        *flags = e->flags;
    return e ? E_OK : E_HANDLE;
}

static bool same_shape(const struct sim_graph *a, const struct sim_graph *b)
{
    if (a->nnodes != b->nnodes)
        return false;
    for (unsigned i = 0; i < a->nnodes; i++) {
        const struct sim_node *x = a->nodes[i], *y = b->nodes[i];
        if (x->type != y->type || x->nafter != y->nafter ||
            (x->child && y->child && !same_shape(x->child, y->child)))
            return false;
    }
    return true;
}

static int update(CUgraphExec exec, CUgraph graph)
{
    sim_lock();
    struct sim_exec *e = exec_of(exec);
    struct sim_graph *g = sim_graph_of(graph);
    int status = !e || !g ? E_VALUE : same_shape(e->graph, g) ? E_OK : E_GRAPH_UPDATE;
    for (unsigned i = 0; !status && i < g->nnodes; i++)
        copy_contents(e->graph->nodes[i], g->nodes[i]);
    if (!status)
        e->uploaded = false;
    sim_unlock();
    return status;
}

CUresult sim_cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error_node,
                               CUgraphExecUpdateResult *result)
{
    CUresult status = update(exec, graph);
    if (error_node)
        *error_node = NULL;
    if (result)
        *result = (CUgraphExecUpdateResult)(status ? 2 : 0); /* topology changed */
    return status;
}

CUresult sim_cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph,
                                  CUgraphExecUpdateResultInfo *result)
{
    CUresult status = update(exec, graph);
    if (result)
        *result = (CUgraphExecUpdateResultInfo){.result = status ? 2 : 0};
    return status;
}

struct sim_node *sim_exec_node(CUgraphExec exec, CUgraphNode gnode, unsigned type, int *status)
{
    struct sim_exec *e = exec_of(exec);
    struct sim_node *n = e ? sim_node_clone_in(e->graph, (struct sim_node *)(void *)gnode) : NULL;
    *status = n && (type == ~0u || n->type == type) ? E_OK : E_VALUE;
    return *status ? NULL : n;
}

CUresult sim_cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode gnode, unsigned int enabled)
{
    int status;
    sim_lock();
    struct sim_node *n = sim_exec_node(exec, gnode, ~0u, &status);
    if (n && n->type > CU_GRAPH_NODE_TYPE_MEMSET)
        status = E_VALUE; /* only kernels, copies and memsets can be switched off */
    else if (n)
        n->enabled = enabled != 0;
    sim_unlock();
    return status;
}

CUresult sim_cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode gnode, unsigned int *enabled)
{
    int status;
    sim_lock();
    struct sim_node *n = sim_exec_node(exec, gnode, ~0u, &status);
    if (n)
        *enabled = n->enabled;
    sim_unlock();
    return status;
}
