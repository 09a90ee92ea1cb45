/* Graphs made by hand: nodes, edges, getters, parameters of nodes and of executable graphs. */
#include "driver.h"
#include "graph.h"

#include <string.h>

/* ---- parameters -------------------------------------------------------------------------------
 */

static int set_kernel(struct sim_node *n, const CUDA_KERNEL_NODE_PARAMS_v1 *p, const void *kern)
{
    struct sim_launch l = {.func = sim_func_of(p->func ? (const void *)p->func : kern),
                           .grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
                           .block = {p->blockDimX, p->blockDimY, p->blockDimZ},
                           .shared = p->sharedMemBytes,
                           .args = p->kernelParams};
    if (!l.func)
        return E_VALUE;
    sim_node_set_kernel(n, &l);
    return E_OK;
}

static int set_copy(struct sim_node *n, const CUDA_MEMCPY3D *p)
{
    struct sim_copy c = sim_copy_from_3d(p);
    sim_node_set_copy(n, &c);
    n->copy_params = *p;
    return E_OK;
}

static int set_params(struct sim_node *n, const CUgraphNodeParams *p)
{
    if (p->type != n->type)
        return E_VALUE;
    switch (n->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return set_kernel(n, (const CUDA_KERNEL_NODE_PARAMS_v1 *)&p->kernel, p->kernel.kern);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return set_copy(n, &p->copy.copy);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        n->memset = p->memset;
        return E_OK;
    case CU_GRAPH_NODE_TYPE_HOST:
        n->host = p->host;
        return E_OK;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        if (!sim_graph_of(p->graph.graph))
            return E_VALUE;
        if (n->child)
            sim_graph_free(n->child);
        n->child = sim_graph_clone(sim_graph_of(p->graph.graph));
        return E_OK;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        n->event = sim_event_of(p->event.event);
        return n->event ? E_OK : E_VALUE;
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return E_OK;
    default:
        return E_NOT_SUPPORTED;
    }
}

#define EXEC_SET(type, statement)                                                                  \
    int status;                                                                                    \
    sim_lock();                                                                                    \
    struct sim_node *n = sim_exec_node(exec, gnode, type, &status);                                \
    if (n)                                                                                         \
        statement;                                                                                 \
    sim_unlock();                                                                                  \
    return status

CUresult sim_cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode gnode,
                                            const CUDA_KERNEL_NODE_PARAMS_v1 *parms)
{
    EXEC_SET(CU_GRAPH_NODE_TYPE_KERNEL, status = set_kernel(n, parms, NULL));
}

CUresult sim_cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode gnode,
                                               const CUDA_KERNEL_NODE_PARAMS_v2 *parms)
{
    EXEC_SET(CU_GRAPH_NODE_TYPE_KERNEL,
             status = set_kernel(n, (const CUDA_KERNEL_NODE_PARAMS_v1 *)parms, parms->kern));
}

CUresult sim_cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode gnode,
                                            const CUDA_MEMCPY3D *parms, CUcontext ctx)
{
    (void)ctx;
    EXEC_SET(CU_GRAPH_NODE_TYPE_MEMCPY, status = set_copy(n, parms));
}

CUresult sim_cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode gnode,
                                            const CUDA_MEMSET_NODE_PARAMS *parms, CUcontext ctx)
{
    (void)ctx;
    EXEC_SET(CU_GRAPH_NODE_TYPE_MEMSET, n->memset = *parms);
}

CUresult sim_cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode gnode,
                                          const CUDA_HOST_NODE_PARAMS *parms)
{
    EXEC_SET(CU_GRAPH_NODE_TYPE_HOST, n->host = *parms);
}

CUresult sim_cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode gnode, CUgraph child)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {child}};
    EXEC_SET(CU_GRAPH_NODE_TYPE_GRAPH, status = set_params(n, &p));
}

CUresult sim_cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode gnode, CUevent event)
{
    EXEC_SET(CU_GRAPH_NODE_TYPE_EVENT_RECORD, n->event = sim_event_of(event));
}

CUresult sim_cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode gnode, CUevent event)
{
    EXEC_SET(CU_GRAPH_NODE_TYPE_WAIT_EVENT, n->event = sim_event_of(event));
}

CUresult sim_cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode gnode, CUgraphNodeParams *parms)
{
    EXEC_SET(~0u, status = set_params(n, parms));
}

/* ---- graphs by hand -----------------------------------------------------------------------------
 */

CUresult sim_cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    (void)flags;
    sim_lock();
    *graph = (CUgraph)(void *)sim_graph_new();
    sim_unlock();
    return E_OK;
}

CUresult sim_cuGraphDestroy(CUgraph graph)
{
    sim_lock();
    struct sim_graph *g = sim_graph_of(graph);
    if (g)
        sim_graph_free(g);
    sim_unlock();
    return g ? E_OK : E_VALUE;
}

CUresult sim_cuGraphClone(CUgraph *clone, CUgraph graph)
{
    sim_lock();
    struct sim_graph *g = sim_graph_of(graph);
    if (g)
        *clone = (CUgraph)(void *)sim_graph_clone(g);
    sim_unlock();
    return g ? E_OK : E_VALUE;
}

CUresult sim_cuGraphNodeFindInClone(CUgraphNode *gnode, CUgraphNode original, CUgraph clone)
{
    struct sim_graph *g = sim_graph_of(clone);
    struct sim_node *n = g ? sim_node_clone_in(g, (struct sim_node *)(void *)original) : NULL;
    *gnode = (CUgraphNode)(void *)n;
    return n ? E_OK : E_VALUE;
}

/* Lists: with a null array the number, else as many as fit. */
static int list_nodes(struct sim_node **nodes, unsigned n, CUgraphNode *out, size_t *count)
{
    for (size_t i = 0; out && i < *count; i++)
        out[i] = i < n ? (CUgraphNode)(void *)nodes[i] : NULL;
    if (!out || *count > n)
        *count = n;
    return E_OK;
}

CUresult sim_cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    struct sim_graph *g = sim_graph_of(graph);
    return g && count ? list_nodes(g->nodes, g->nnodes, nodes, count) : E_VALUE;
}

CUresult sim_cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    struct sim_graph *g = sim_graph_of(graph);
    if (!g || !count)
        return E_VALUE;
    size_t n = 0, room = nodes ? *count : 0;
    for (unsigned i = 0; i < g->nnodes; i++) {
        if (g->nodes[i]->nafter)
            continue;
        if (n < room)
            nodes[n] = (CUgraphNode)(void *)g->nodes[i];
        n++;
    }
    *count = nodes && n > room ? room : n;
    return E_OK;
}

CUresult sim_cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
    struct sim_graph *g = sim_graph_of(graph);
    if (!g || !count)
        return E_VALUE;
    size_t n = 0, room = from && to ? *count : 0;
    for (unsigned i = 0; i < g->nnodes; i++)
        for (unsigned j = 0; j < g->nodes[i]->nafter; j++, n++)
            if (n < room) {
                from[n] = (CUgraphNode)(void *)g->nodes[i]->after[j];
                to[n] = (CUgraphNode)(void *)g->nodes[i];
            }
    *count = from && n > room ? room : n;
    return E_OK;
}

CUresult sim_cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
                                CUgraphEdgeData *data, size_t *count)
{
    CUresult status = sim_cuGraphGetEdges(graph, from, to, count);
    if (!status && data)
        memset(data, 0, *count * sizeof *data);
    return status;
}

CUresult sim_cuGraphNodeGetDependencies(CUgraphNode gnode, CUgraphNode *deps, size_t *count)
{
    struct sim_node *n = sim_node_of(gnode);
    return n && count ? list_nodes(n->after, n->nafter, deps, count) : E_VALUE;
}

CUresult sim_cuGraphNodeGetDependencies_v2(CUgraphNode gnode, CUgraphNode *deps,
                                           CUgraphEdgeData *data, size_t *count)
{
    CUresult status = sim_cuGraphNodeGetDependencies(gnode, deps, count);
    if (!status && data)
        memset(data, 0, *count * sizeof *data);
    return status;
}

CUresult sim_cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                    size_t n)
{
    if (!sim_graph_of(graph))
        return E_VALUE;
    sim_lock();
    for (size_t i = 0; i < n; i++)
        if (sim_node_of(from[i]) && sim_node_of(to[i]))
            sim_node_after(sim_node_of(to[i]), sim_node_of(from[i]));
    sim_unlock();
    return E_OK;
}

CUresult sim_cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from,
                                       const CUgraphNode *to, const CUgraphEdgeData *data, size_t n)
{
    (void)data;
    return sim_cuGraphAddDependencies(graph, from, to, n);
}

CUresult sim_cuGraphDestroyNode(CUgraphNode gnode)
{
    struct sim_node *n = sim_node_of(gnode);
    if (!n)
        return E_VALUE;
    sim_lock();
    struct sim_graph *g = n->graph;
    unsigned kept = 0;
    for (unsigned i = 0; i < g->nnodes; i++) {
        struct sim_node *o = g->nodes[i];
        unsigned k = 0;
        for (unsigned j = 0; j < o->nafter; j++)
            if (o->after[j] != n)
                o->after[k++] = o->after[j];
        o->nafter = k;
        if (o != n)
            g->nodes[kept++] = o;
    }
    g->nnodes = kept;
    sim_node_free(n);
    sim_unlock();
    return E_OK;
}

CUresult sim_cuGraphNodeGetType(CUgraphNode gnode, CUgraphNodeType *type)
{
    struct sim_node *n = sim_node_of(gnode);
    if (n)
        *type = (CUgraphNodeType)n->type;
    return n ? E_OK : E_VALUE;
}

static struct sim_node *add(CUgraph graph, unsigned type, const CUgraphNode *deps, size_t ndeps)
{
    struct sim_graph *g = sim_graph_of(graph);
    for (size_t i = 0; g && i < ndeps; i++)
        if (!sim_node_of(deps[i]) || sim_node_of(deps[i])->graph != g)
            return NULL;
    if (!g)
        return NULL;
    struct sim_node *n = sim_node_new(g, type);
    for (size_t i = 0; i < ndeps; i++)
        sim_node_after(n, sim_node_of(deps[i]));
    return n;
}

#define ADD(kind, statement)                                                                       \
    int status = E_VALUE;                                                                          \
    sim_lock();                                                                                    \
    struct sim_node *node = add(graph, CU_GRAPH_NODE_TYPE_##kind, deps, n);                        \
    if (node) {                                                                                    \
        status = E_OK;                                                                             \
        statement;                                                                                 \
        *gnode = (CUgraphNode)(void *)node;                                                        \
    }                                                                                              \
    sim_unlock();                                                                                  \
    return status

CUresult sim_cuGraphAddKernelNode(CUgraphNode *gnode, CUgraph graph, const CUgraphNode *deps,
                                  size_t n, const CUDA_KERNEL_NODE_PARAMS_v1 *parms)
{
    ADD(KERNEL, status = set_kernel(node, parms, NULL));
}

CUresult sim_cuGraphAddKernelNode_v2(CUgraphNode *gnode, CUgraph graph, const CUgraphNode *deps,
                                     size_t n, const CUDA_KERNEL_NODE_PARAMS_v2 *parms)
{
    ADD(KERNEL, status = set_kernel(node, (const CUDA_KERNEL_NODE_PARAMS_v1 *)parms, parms->kern));
}

CUresult sim_cuGraphAddMemcpyNode(CUgraphNode *gnode, CUgraph graph, const CUgraphNode *deps,
                                  size_t n, const CUDA_MEMCPY3D *parms, CUcontext ctx)
{
    (void)ctx;
    ADD(MEMCPY, status = set_copy(node, parms));
}

CUresult sim_cuGraphAddMemsetNode(CUgraphNode *gnode, CUgraph graph, const CUgraphNode *deps,
                                  size_t n, const CUDA_MEMSET_NODE_PARAMS *parms, CUcontext ctx)
{
    (void)ctx;
    ADD(MEMSET, node->memset = *parms);
}

CUresult sim_cuGraphAddHostNode(CUgraphNode *gnode, CUgraph graph, const CUgraphNode *deps,
                                size_t n, const CUDA_HOST_NODE_PARAMS *parms)
{
    ADD(HOST, node->host = *parms);
}

CUresult sim_cuGraphAddChildGraphNode(CUgraphNode *gnode, CUgraph graph, const CUgraphNode *deps,
                                      size_t n, CUgraph child)
{
    if (!sim_graph_of(child))
        return E_VALUE;
    ADD(GRAPH, node->child = sim_graph_clone(sim_graph_of(child)));
}

CUresult sim_cuGraphAddEmptyNode(CUgraphNode *gnode, CUgraph graph, const CUgraphNode *deps,
                                 size_t n)
{
    ADD(EMPTY, (void)0);
}

CUresult sim_cuGraphAddNode_v2(CUgraphNode *gnode, CUgraph graph, const CUgraphNode *deps,
                               const CUgraphEdgeData *data, size_t n, CUgraphNodeParams *parms)
{
    int status = E_VALUE;
    (void)data;
    sim_lock();
    struct sim_node *node = add(graph, parms->type, deps, n);
    if (node) {
        status = set_params(node, parms);
        *gnode = (CUgraphNode)(void *)node;
    }
    sim_unlock();
    return status;
}

CUresult sim_cuGraphAddNode(CUgraphNode *gnode, CUgraph graph, const CUgraphNode *deps, size_t n,
                            CUgraphNodeParams *parms)
{
    return sim_cuGraphAddNode_v2(gnode, graph, deps, NULL, n, parms);
}

CUresult sim_cuGraphKernelNodeGetParams_v2(CUgraphNode gnode, CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
    struct sim_node *n = sim_node_of(gnode);
    if (!n || n->type != CU_GRAPH_NODE_TYPE_KERNEL)
        return E_VALUE;
    const struct sim_launch *l = &n->kernel;
    *p = (CUDA_KERNEL_NODE_PARAMS_v2){.gridDimX = l->grid[0],
                                      .gridDimY = l->grid[1],
                                      .gridDimZ = l->grid[2],
                                      .blockDimX = l->block[0],
                                      .blockDimY = l->block[1],
                                      .blockDimZ = l->block[2],
                                      .sharedMemBytes = l->shared,
                                      .kernelParams = l->args};
    if (l->func->kernel)
        p->kern = (CUkernel)(void *)l->func;
    else
        p->func = (CUfunction)(void *)l->func;
    return E_OK;
}

CUresult sim_cuGraphKernelNodeGetParams(CUgraphNode gnode, CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    CUDA_KERNEL_NODE_PARAMS_v2 q;
    CUresult status = sim_cuGraphKernelNodeGetParams_v2(gnode, &q);
    if (status)
        return status;
    memcpy(p, &q, sizeof *p);
    return q.kern ? sim_cuKernelGetFunction(&p->func, q.kern) : E_OK;
}

CUresult sim_cuGraphKernelNodeSetParams_v2(CUgraphNode gnode, const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
    struct sim_node *n = sim_node_of(gnode);
    if (!n || n->type != CU_GRAPH_NODE_TYPE_KERNEL)
        return E_VALUE;
    return set_kernel(n, (const CUDA_KERNEL_NODE_PARAMS_v1 *)p, p->kern);
}

CUresult sim_cuGraphKernelNodeSetParams(CUgraphNode gnode, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    struct sim_node *n = sim_node_of(gnode);
    if (!n || n->type != CU_GRAPH_NODE_TYPE_KERNEL)
        return E_VALUE;
    return set_kernel(n, p, NULL);
}

CUresult sim_cuGraphMemcpyNodeGetParams(CUgraphNode gnode, CUDA_MEMCPY3D *p)
{
    struct sim_node *n = sim_node_of(gnode);
    if (!n || n->type != CU_GRAPH_NODE_TYPE_MEMCPY)
        return E_VALUE;
    *p = n->copy_params;
    return E_OK;
}

CUresult sim_cuGraphMemcpyNodeSetParams(CUgraphNode gnode, const CUDA_MEMCPY3D *p)
{
    struct sim_node *n = sim_node_of(gnode);
    return n && n->type == CU_GRAPH_NODE_TYPE_MEMCPY ? set_copy(n, p) : E_VALUE;
}

CUresult sim_cuGraphMemsetNodeGetParams(CUgraphNode gnode, CUDA_MEMSET_NODE_PARAMS *p)
{
    struct sim_node *n = sim_node_of(gnode);
    if (!n || n->type != CU_GRAPH_NODE_TYPE_MEMSET)
        return E_VALUE;
    *p = n->memset;
    return E_OK;
}

CUresult sim_cuGraphMemsetNodeSetParams(CUgraphNode gnode, const CUDA_MEMSET_NODE_PARAMS *p)
{
    struct sim_node *n = sim_node_of(gnode);
    if (!n || n->type != CU_GRAPH_NODE_TYPE_MEMSET)
        return E_VALUE;
    n->memset = *p;
    return E_OK;
}

CUresult sim_cuGraphHostNodeGetParams(CUgraphNode gnode, CUDA_HOST_NODE_PARAMS *p)
{
    struct sim_node *n = sim_node_of(gnode);
    if (!n || n->type != CU_GRAPH_NODE_TYPE_HOST)
        return E_VALUE;
    *p = n->host;
    return E_OK;
}

CUresult sim_cuGraphChildGraphNodeGetGraph(CUgraphNode gnode, CUgraph *graph)
{
    struct sim_node *n = sim_node_of(gnode);
    if (!n || n->type != CU_GRAPH_NODE_TYPE_GRAPH)
        return E_VALUE;
    *graph = (CUgraph)(void *)n->child;
    return E_OK;
}
