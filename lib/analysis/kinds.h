/* What the kinds of calls mean to the analysis, in one place. */
#ifndef GWA_KINDS_H
#define GWA_KINDS_H

#include <gpuwait/trace.h>

/* A call that failed, that a capturing stream took into a graph, or that never returned
 * executed nothing. */
static inline bool gwa_executed(const struct gwt_event *e)
{
    return e->status == 0 && !(e->flags & (GWT_F_CAPTURED | GWT_F_UNWOUND));
}

/* Kinds that put work on a device. */
static inline bool gwa_submits(unsigned kind)
{
    return kind == GWT_LAUNCH || kind == GWT_GRAPH_LAUNCH || kind == GWT_HOST_FUNC ||
           kind == GWT_COPY || kind == GWT_MEMSET || kind == GWT_PREFETCH ||
           kind == GWT_STREAM_OP || kind == GWT_NCCL;
}

/* Copies that hold the calling thread until they are done: the synchronous ones and, with
 * pageable memory, the asynchronous ones too. */
static inline bool gwa_waits_for_copy(const struct gwt_event *e)
{
    return e->kind == GWT_COPY && (e->flags & (GWT_F_BLOCKING | GWT_F_PAGEABLE)) &&
           GWT_F_SUB(e->flags) != GWT_D2D && GWT_F_SUB(e->flags) != GWT_P2P;
}

#endif
