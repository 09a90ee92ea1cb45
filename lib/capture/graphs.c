/* Executable graphs: what one launch of each runs.
 *
 * Nodes are walked once, at instantiation (children too); a launch then only carries an
 * id. The walk reads the source graph, which the program may destroy right after. */
#include "gw.h"

#include <string.h>
#include <sys/mman.h>

#define EXECS     (1u << 13)
#define ITEMS     8192u /* distinct signatures, copies, memsets in one graph */
#define MAX_DEPTH 16

struct exec {
    const void *handle;
    uint32_t id;
    uint8_t touched; /* edited since: its counts may differ */
    uint8_t gone;
};

static struct exec execs[EXECS];
static uint32_t execs_used, last_id;

struct walk {
    struct gwt_graph_item items[ITEMS];
    uint32_t used;
    bool exact;
};

/* ---- the walk ------------------------------------------------------------------------ */

static void count(struct walk *w, const struct gwt_graph_item *item)
{
    for (uint32_t i = 0; i < w->used; i++) {
        struct gwt_graph_item *k = &w->items[i];
        if (k->kind == item->kind && k->direction == item->direction &&
            k->signature == item->signature) {
            k->count++;
            k->bytes += item->bytes;
            return;
        }
    }
    if (w->used == ITEMS) {
        w->exact = false;
        return;
    }
    w->items[w->used] = *item;
    w->items[w->used++].count = 1;
}

static bool kernel(struct walk *w, CUgraphNode node)
{
    CUDA_KERNEL_NODE_PARAMS_v2 p = {0};
    if (gw_driver.cuGraphKernelNodeGetParams_v2) {
        if (gw_driver.cuGraphKernelNodeGetParams_v2(node, &p) != 0)
            return false;
    } else { /* drivers before 12.0 know the shorter struct, which v2 begins with */
        if (!gw_driver.cuGraphKernelNodeGetParams ||
            gw_driver.cuGraphKernelNodeGetParams(node, (CUDA_KERNEL_NODE_PARAMS_v1 *)&p) != 0)
            return false;
        p.kern = NULL;
    }
    const uint32_t grid[3] = {p.gridDimX, p.gridDimY, p.gridDimZ};
    const uint32_t block[3] = {p.blockDimX, p.blockDimY, p.blockDimZ};
    gw_lock();
    uint32_t signature = gw_signature_of(p.func ? (const void *)p.func : (const void *)p.kern, grid,
                                         block, p.sharedMemBytes);
    gw_unlock();
    count(w, &(struct gwt_graph_item){.kind = GWT_LAUNCH, .signature = signature});
    return true;
}

static bool device_side(CUmemorytype type, const void *host, CUdeviceptr device)
{
    const void *p = type == CU_MEMORYTYPE_HOST ? host : (const void *)(uintptr_t)device;
    if (type == CU_MEMORYTYPE_UNIFIED || type == 0)
        return gw_memory_kind(p, NULL) == GW_MEM_DEVICE ||
               gw_memory_kind(p, NULL) == GW_MEM_MANAGED;
    return type != CU_MEMORYTYPE_HOST;
}

static bool copy(struct walk *w, CUgraphNode node)
{
    CUDA_MEMCPY3D p = {0};
    if (!gw_driver.cuGraphMemcpyNodeGetParams ||
        gw_driver.cuGraphMemcpyNodeGetParams(node, &p) != 0)
        return false;
    bool to = device_side(p.dstMemoryType, p.dstHost, p.dstDevice);
    bool from = device_side(p.srcMemoryType, p.srcHost, p.srcDevice);
    uint64_t height = p.Height ? p.Height : 1, depth = p.Depth ? p.Depth : 1;
    count(w, &(struct gwt_graph_item){.kind = GWT_COPY,
                                      .direction = to ? (from ? GWT_D2D : GWT_H2D)
                                                      : (from ? GWT_D2H : GWT_H2H),
                                      .bytes = (uint64_t)p.WidthInBytes * height * depth});
    return true;
}

static bool set(struct walk *w, CUgraphNode node)
{
    CUDA_MEMSET_NODE_PARAMS p = {0};
    if (!gw_driver.cuGraphMemsetNodeGetParams ||
        gw_driver.cuGraphMemsetNodeGetParams(node, &p) != 0)
        return false;
    count(w, &(struct gwt_graph_item){.kind = GWT_MEMSET,
                                      .bytes = (uint64_t)p.elementSize * p.width *
                                               (p.height ? p.height : 1)});
    return true;
}

static bool walk(struct walk *w, CUgraph graph, int depth)
{
    size_t n = 0;
    bool ok = true;
    if (depth > MAX_DEPTH || !gw_driver.cuGraphGetNodes || !gw_driver.cuGraphNodeGetType ||
        gw_driver.cuGraphGetNodes(graph, NULL, &n) != 0)
        return false;
    if (!n)
        return true;
    size_t size = n * sizeof(CUgraphNode);
    CUgraphNode *nodes =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (nodes == MAP_FAILED)
        return false;
    if (gw_driver.cuGraphGetNodes(graph, nodes, &n) != 0)
        ok = false;
    for (size_t i = 0; ok && i < n; i++) {
        CUgraphNodeType type;
        CUgraph child;
        if (gw_driver.cuGraphNodeGetType(nodes[i], &type) != 0) {
            ok = false;
            break;
        }
        switch ((int)type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            ok = kernel(w, nodes[i]);
            break;
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            ok = copy(w, nodes[i]);
            break;
        case CU_GRAPH_NODE_TYPE_MEMSET:
            ok = set(w, nodes[i]);
            break;
        case CU_GRAPH_NODE_TYPE_HOST:
            count(w, &(struct gwt_graph_item){.kind = GWT_HOST_FUNC});
            break;
        case CU_GRAPH_NODE_TYPE_GRAPH:
            ok = gw_driver.cuGraphChildGraphNodeGetGraph &&
                 gw_driver.cuGraphChildGraphNodeGetGraph(nodes[i], &child) == 0 &&
                 walk(w, child, depth + 1);
            break;
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            w->exact = false; /* how often its body runs is decided on the device */
            break;
        default:
            break; /* empty, event, semaphore and memory nodes run nothing on the device */
        }
    }
    munmap(nodes, size);
    return ok;
}

/* ---- executable graphs ---------------------------------------------------------------- */

static struct exec *slot(const void *handle, bool add)
{
    uint32_t i = (uint32_t)(((uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15u) >> 40);
    for (uint32_t n = 0; n < EXECS; n++, i++) {
        struct exec *e = &execs[i & (EXECS - 1)];
        if (e->handle == handle)
            return e;
        if (!e->handle) {
            if (!add || execs_used >= EXECS / 4 * 3)
                return NULL;
            execs_used++;
            e->handle = handle;
            return e;
        }
    }
    return NULL;
}

void gw_graph_instantiated(const void *exec, const void *graph)
{
    if (!exec || gw_load_acquire(&gw_state) != GW_ACTIVE)
        return;
    uint64_t t0 = gw_clock_ns(CLOCK_MONOTONIC);
    struct walk *w =
        mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool walked = false;
    if (w != MAP_FAILED) {
        w->exact = true;
        walked = graph && walk(w, (CUgraph)graph, 0);
    }
    struct gwt_def_graph d = {.exec = (uint64_t)(uintptr_t)exec,
                              .items = walked ? w->used : 0,
                              .exact = walked && w->exact};
    if (!d.exact)
        gw_count(GWT_C_UNWALKED_GRAPHS, 1);
    gw_lock();
    struct exec *e = slot(exec, true);
    if (e && gw_define(GWT_DEF_GRAPH, last_id + 1, &d, sizeof d, walked ? w->items : NULL,
                       d.items * sizeof(struct gwt_graph_item))) {
        e->touched = e->gone = 0;
        gw_store_release(&e->id, ++last_id); /* partner: gw_graph_id() */
    }
    gw_unlock();
    if (w != MAP_FAILED)
        munmap(w, sizeof *w);
    gw_count(GWT_C_SETUP_NS, gw_clock_ns(CLOCK_MONOTONIC) - t0);
}

void gw_graph_touched(const void *exec)
{
    gw_lock();
    struct exec *e = slot(exec, false);
    if (e)
        e->touched = 1;
    gw_unlock();
}

/* The entry stays, so that probing past it still works; the handle may come back. */
void gw_graph_destroyed(const void *exec)
{
    gw_lock();
    struct exec *e = slot(exec, false);
    if (e)
        e->id = 0, e->gone = 1;
    gw_unlock();
}

/* No lock: an entry's handle never changes, its id only by a new instantiation. */
uint32_t gw_graph_id(const void *exec, uint16_t *flags)
{
    struct exec *e = exec ? slot(exec, false) : NULL;
    if (!e)
        return 0;
    if (flags && e->touched)
        *flags |= GWT_F_APPROX;
    return gw_load_acquire(&e->id);
}

void gw_graphs_reset(void)
{
    memset(execs, 0, sizeof execs);
    execs_used = last_id = 0;
}
