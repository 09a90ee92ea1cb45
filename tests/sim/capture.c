/* Stream capture: which calls it forbids, how other streams join it, and the nodes it makes. */
#include "driver.h"

#include "graph.h"

#include <stdlib.h>
#include <string.h>

struct sim_capture {
    struct sim_capture *next;
    uint64_t id;
    unsigned mode; /* CU_STREAM_CAPTURE_MODE_* */
    struct sim_thread *thread;
    struct sim_stream *origin;
    struct sim_graph *graph;
    bool into; /* the graph is the caller's */
    bool invalid;
    unsigned members; /* streams that take part */
};

static struct sim_capture *captures;
static uint64_t capture_ids = 1;

static void invalidate(struct sim_capture *c)
{
    c->invalid = true;
}

int sim_capture_guard(void)
{
    struct sim_thread *t = sim_thread();
    int status = E_OK;
    for (struct sim_capture *c = captures; c; c = c->next) {
        bool mine = c->thread == t && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
                    t->capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        bool others = c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                      t->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (!mine && !others)
            continue;
        invalidate(c);
        status = E_CAP_UNSUPPORTED;
    }
    return status;
}

int sim_capture_check(struct sim_stream *s)
{
    if (s->capture)
        return s->capture->invalid ? E_CAP_INVALIDATED : E_OK;
    if (s != &s->ctx->legacy)
        return E_OK;
    int status = E_OK;
    for (struct sim_stream *o = s->ctx->streams; o; o = o->next)
        if (o->capture && !(o->flags & 1)) {
            invalidate(o->capture);
            status = E_CAP_IMPLICIT;
        }
    return status;
}

int sim_capture_invalidate(struct sim_stream *s, int status)
{
    if (s->capture)
        invalidate(s->capture);
    return status;
}

/* ---- what comes next after what ------------------------------------------------------- */

static void ahead_add(struct sim_stream *s, struct sim_node *node)
{
    for (unsigned i = 0; i < s->nahead; i++)
        if (s->ahead[i] == node)
            return;
    if (s->nahead == s->ahead_room) {
        s->ahead_room = s->ahead_room ? s->ahead_room * 2 : 4;
        s->ahead = sim_grow(s->ahead, s->ahead_room * sizeof(struct sim_node *));
    }
    s->ahead[s->nahead++] = node;
}

static void join(struct sim_stream *s, struct sim_capture *c)
{
    s->capture = c;
    s->nahead = 0;
    c->members++;
}

static void leave(struct sim_stream *s)
{
    s->capture->members--;
    s->capture = NULL;
    s->nahead = 0;
}

struct sim_node *sim_capture_node(struct sim_stream *s, unsigned type)
{
    if (s->capture->invalid)
        return NULL;
    struct sim_node *node = sim_node_new(s->capture->graph, type);
    for (unsigned i = 0; i < s->nahead; i++)
        sim_node_after(node, s->ahead[i]);
    s->nahead = 0;
    ahead_add(s, node);
    return node;
}

void sim_capture_event(struct sim_stream *s, struct sim_event *e)
{
    sim_op_unref(e->op);
    e->op = NULL;
    e->capture_id = s->capture->id;
    e->nodes = sim_grow(e->nodes, (s->nahead + 1) * sizeof(struct sim_node *));
    for (unsigned i = 0; i < s->nahead; i++)
        e->nodes[i] = s->ahead[i];
    e->nnodes = s->nahead;
}

int sim_capture_wait(struct sim_stream *s, struct sim_event *e)
{
    if (s->capture && s->capture->invalid)
        return E_CAP_INVALIDATED;
    if (!e->capture_id) /* recorded outside: the graph would depend on what it does not hold */
        return e->op ? sim_capture_invalidate(s, E_CAP_ISOLATION) : E_OK;
    struct sim_capture *c = captures;
    while (c && c->id != e->capture_id)
        c = c->next;
    if (!c)
        return s->capture ? sim_capture_invalidate(s, E_CAP_ISOLATION) : E_CAP_EVENT;
    if (s->capture && s->capture != c) {
        invalidate(s->capture);
        invalidate(c);
        return E_CAP_MERGE;
    }
    if (!s->capture)
        join(s, c);
    for (unsigned i = 0; i < e->nnodes; i++)
        ahead_add(s, e->nodes[i]);
    return E_OK;
}

void sim_capture_disturb(uint64_t id)
{
    for (struct sim_capture *c = captures; c; c = c->next)
        if (c->id == id)
            invalidate(c);
}

/* An event whose record or wait is a node of its own, for streams outside the graph. */
int sim_capture_external(struct sim_stream *s, struct sim_event *e, bool record)
{
    struct sim_node *n = sim_capture_node(s, record ? CU_GRAPH_NODE_TYPE_EVENT_RECORD
                                                    : CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    if (!n)
        return E_CAP_INVALIDATED;
    n->event = e;
    return E_OK;
}

void sim_capture_drop(struct sim_stream *s)
{
    if (!s->capture)
        return;
    invalidate(s->capture);
    leave(s);
}

/* ---- calls --------------------------------------------------------------------------------- */

static int begin(CUstream stream, unsigned mode, struct sim_graph *into, const CUgraphNode *deps,
                 size_t ndeps)
{
    int status;
    sim_lock();
    struct sim_stream *s = sim_stream_of(stream, &status);
    if (s && s == &s->ctx->legacy)
        status = E_CAP_UNSUPPORTED;
    else if (s && s->capture)
        status = 401; /* illegal state */
    else if (s && mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        status = E_VALUE;
    if (!status) {
        struct sim_capture *c = calloc(1, sizeof *c);
        if (!c)
            abort();
        *c = (struct sim_capture){.next = captures,
                                  .id = capture_ids++,
                                  .mode = mode,
                                  .thread = sim_thread(),
                                  .origin = s,
                                  .into = into != NULL,
                                  .graph = into ? into : sim_graph_new()};
        captures = c;
        join(s, c);
        for (size_t i = 0; i < ndeps; i++)
            ahead_add(s, (struct sim_node *)(void *)deps[i]);
    }
    sim_unlock();
    return status;
}

CUresult sim_cuStreamBeginCapture(CUstream stream)
{
    return begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, NULL, NULL, 0);
}

CUresult sim_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    return begin(stream, mode, NULL, NULL, 0);
}

CUresult sim_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *deps,
                                         const CUgraphEdgeData *edges, size_t n,
                                         CUstreamCaptureMode mode)
{
    (void)edges;
    if (!graph)
        return E_VALUE;
    return begin(stream, mode, (struct sim_graph *)(void *)graph, deps, n);
}

static void mark(struct sim_node *n, unsigned generation)
{
    for (; n->seen != generation; n = n->after[0]) {
        n->seen = generation;
        for (unsigned i = 1; i < n->nafter; i++)
            mark(n->after[i], generation);
        if (!n->nafter)
            break;
    }
}

/* Is everything that the other stream added behind what the origin comes after? */
static bool joined(const struct sim_capture *c, const struct sim_stream *s)
{
    static unsigned generation;
    generation++;
    for (unsigned i = 0; i < c->origin->nahead; i++)
        mark(c->origin->ahead[i], generation);
    for (unsigned i = 0; i < s->nahead; i++)
        if (s->ahead[i]->seen != generation)
            return false;
    return true;
}

CUresult sim_cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    int status;
    if (!graph)
        return E_VALUE;
    *graph = NULL;
    sim_lock();
    struct sim_stream *s = sim_stream_of(stream, &status);
    struct sim_capture *c = s ? s->capture : NULL;
    if (s && !c)
        status = 401;
    else if (c && c->origin != s)
        status = E_CAP_UNMATCHED;
    else if (c && c->thread != sim_thread() && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED)
        status = E_CAP_THREAD;
    if (status) {
        if (c)
            invalidate(c);
        sim_unlock();
        return status;
    }
    if (c->invalid)
        status = E_CAP_INVALIDATED;
    struct sim_ctx *ctx = s->ctx;
    for (struct sim_stream *o = ctx->streams; o && c->members > 1; o = o->next) {
        if (o->capture != c || o == s)
            continue;
        if (!status && !joined(c, o))
            status = E_CAP_UNJOINED;
        leave(o);
    }
    leave(s);
    struct sim_capture **p = &captures;
    while (*p != c)
        p = &(*p)->next;
    *p = c->next;
    if (!status)
        *graph = (CUgraph)(void *)c->graph;
    else if (!c->into)
        sim_graph_free(c->graph);
    free(c);
    sim_unlock();
    return status;
}

static int info(CUstream stream, CUstreamCaptureStatus *state, cuuint64_t *id, CUgraph *graph,
                const CUgraphNode **deps, size_t *n)
{
    int status;
    sim_lock();
    struct sim_stream *s = sim_stream_of(stream, &status);
    if (s && s == &s->ctx->legacy)
        status = sim_capture_check(s);
    if (!status) {
        struct sim_capture *c = s->capture;
        *state = !c           ? CU_STREAM_CAPTURE_STATUS_NONE
                 : c->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                              : CU_STREAM_CAPTURE_STATUS_ACTIVE;
        if (c && id)
            *id = c->id;
        if (c && graph)
            *graph = (CUgraph)(void *)c->graph;
        if (c && deps)
            *deps = (const CUgraphNode *)(void *)s->ahead;
        if (c && n)
            *n = s->nahead;
    }
    sim_unlock();
    return status;
}

CUresult sim_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    return status ? info(stream, status, NULL, NULL, NULL, NULL) : E_VALUE;
}

CUresult sim_cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    return info(stream, status, id, NULL, NULL, NULL);
}

CUresult sim_cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status,
                                       cuuint64_t *id, CUgraph *graph, const CUgraphNode **deps,
                                       size_t *n)
{
    return info(stream, status, id, graph, deps, n);
}

CUresult sim_cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status,
                                       cuuint64_t *id, CUgraph *graph, const CUgraphNode **deps,
                                       const CUgraphEdgeData **edges, size_t *n)
{
    if (edges)
        *edges = NULL;
    return info(stream, status, id, graph, deps, n);
}

CUresult sim_cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *deps,
                                                  const CUgraphEdgeData *edges, size_t n,
                                                  unsigned int flags)
{
    int status;
    (void)edges;
    sim_lock();
    struct sim_stream *s = sim_stream_of(stream, &status);
    if (s && !s->capture)
        status = 401;
    if (!status && flags == 1) /* set, rather than add */
        s->nahead = 0;
    for (size_t i = 0; !status && i < n; i++)
        ahead_add(s, (struct sim_node *)(void *)deps[i]);
    sim_unlock();
    return status;
}

CUresult sim_cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *deps, size_t n,
                                               unsigned int flags)
{
    return sim_cuStreamUpdateCaptureDependencies_v2(stream, deps, NULL, n, flags);
}

CUresult sim_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    struct sim_thread *t = sim_thread();
    if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return E_VALUE;
    CUstreamCaptureMode old = (CUstreamCaptureMode)t->capture_mode;
    t->capture_mode = (int)*mode;
    *mode = old;
    return E_OK;
}
