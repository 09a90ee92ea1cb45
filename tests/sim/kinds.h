#ifndef SIM_KINDS_H
#define SIM_KINDS_H

/* What a call is, for the truth and for what it costs the host. The names are those of the
 * call table's KIND column; the figures are the simulation's own. */
#define SIM_KINDS(X)                                                                               \
    /*  kind        pre   post  ns of host time before and after the work of a driver call */      \
    X(NONE, 0, 0)                                                                                  \
    X(LAUNCH, 2700, 1100)                                                                          \
    X(GRAPH_LAUNCH, 4200, 1800)                                                                    \
    X(HOST_FUNC, 2500, 700)                                                                        \
    X(COPY, 2600, 1200)                                                                            \
    X(MEMSET, 2200, 900)                                                                           \
    X(PREFETCH, 3000, 1000)                                                                        \
    X(ALLOC, 2500, 1500)                                                                           \
    X(FREE, 2000, 1000)                                                                            \
    X(HOST_ALLOC, 60000, 20000)                                                                    \
    X(HOST_FREE, 40000, 10000)                                                                     \
    X(SYNC, 700, 300)                                                                              \
    X(EVENT_RECORD, 850, 500)                                                                      \
    X(STREAM_WAIT, 500, 250)                                                                       \
    X(STREAM_OP, 1200, 500)                                                                        \
    X(POLL, 1000, 600)                                                                             \
    X(CAPTURE, 1500, 800)                                                                          \
    X(INSTANTIATE, 15000, 5000)                                                                    \
    X(GRAPH_UPDATE, 1500, 500)                                                                     \
    X(GRAPH_DESTROY, 3000, 1000)                                                                   \
    X(MODULE_LOAD, 150000, 30000)                                                                  \
    X(MODULE_UNLOAD, 30000, 10000)                                                                 \
    X(STREAM, 8000, 2000)                                                                          \
    X(CONTEXT, 60, 30)                                                                             \
    X(NAME, 90, 40)                                                                                \
    X(NCCL, 1800, 900)                                                                             \
    X(NCCL_GROUP, 150, 80)                                                                         \
    X(NCCL_COMM, 200000, 100000)                                                                   \
    X(GETTER, 50, 30)

enum sim_kind {
#define X(name, pre, post) SIM_K_##name,
    SIM_KINDS(X)
#undef X
        SIM_K_COUNT
};

#endif
