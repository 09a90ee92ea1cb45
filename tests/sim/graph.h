/* Graphs and captures: the structures behind CUgraph, CUgraphNode and CUgraphExec. */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "abi.h"
#include "core.h"

struct sim_node {
    uint32_t magic;
    unsigned type; /* CUgraphNodeType */
    struct sim_graph *graph;
    struct sim_node **after; /* what it depends on */
    unsigned nafter, after_room;
    const struct sim_node *origin; /* the node that this one was cloned from */
    bool enabled;
    struct sim_launch kernel; /* args: a copy, see blob */
    unsigned char *blob;
    struct sim_copy copy;
    CUDA_MEMCPY3D copy_params; /* as given or made up, for the getter */
    CUDA_MEMSET_NODE_PARAMS memset;
    CUDA_HOST_NODE_PARAMS host;
    struct sim_graph *child;
    struct sim_event *event;
    unsigned seen; /* by the walk of that number */
};

struct sim_graph {
    uint32_t magic;
    unsigned nnodes, room;
    struct sim_node **nodes;
    bool owned; /* by a capture or a parent node: not destroyed on its own */
};

struct sim_exec {
    uint32_t magic;
    struct sim_graph *graph; /* a clone of what was instantiated */
    uint64_t flags;
    struct sim_op *last; /* launches of one executable graph do not overlap */
    bool uploaded;
};

/* pre: locked, all of them */
struct sim_graph *sim_graph_new(void);
void sim_graph_free(struct sim_graph *graph);
struct sim_graph *sim_graph_clone(const struct sim_graph *graph);
struct sim_node *sim_node_new(struct sim_graph *graph, unsigned type);
void sim_node_after(struct sim_node *node, struct sim_node *before);
void sim_node_free(struct sim_node *node);
/* Copies the launch, arguments included as far as their sizes are known. */
void sim_node_set_kernel(struct sim_node *node, const struct sim_launch *launch);
void sim_node_set_copy(struct sim_node *node, const struct sim_copy *copy);
void sim_node_set_host(struct sim_node *node, CUhostFn func, void *user);

struct sim_graph *sim_graph_of(const void *handle); /* NULL: invalid; the others likewise */
struct sim_node *sim_node_of(const void *handle);
/* The copy in `graph` of another graph's node. */
struct sim_node *sim_node_clone_in(const struct sim_graph *graph, const struct sim_node *original);
/* An executable graph's own node, of this type (~0: of any). */
struct sim_node *sim_exec_node(CUgraphExec exec, CUgraphNode gnode, unsigned type, int *status);

/* copy.c */
struct sim_copy sim_copy_from_3d(const CUDA_MEMCPY3D *p);
struct sim_op *sim_memset_node_op(unsigned device, const CUDA_MEMSET_NODE_PARAMS *p);

/* launch.c */
struct sim_op *sim_host_op(unsigned device, void (*func)(void *), void *user);

#endif
