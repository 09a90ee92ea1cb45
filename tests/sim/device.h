/* The virtual GPU: operations, what they wait for, and the exact times at which they run.
 *
 * A discrete-event simulation. The host side submits operations with their dependencies;
 * sim_device_run() carries it forward to a time. Everything here is called with
 * sim_lock() held, and no CUDA type is known here.
 */
#ifndef SIM_DEVICE_H
#define SIM_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_NEVER INT64_MAX

enum sim_op_type {
    OP_MARK, /* takes no time: joins, graph ends, stream-ordered allocation */
    OP_KERNEL,
    OP_COPY,
    OP_MEMSET,
    OP_EVENT,
    OP_HOST,
    OP_WAIT_VALUE,
    OP_WRITE_VALUE,
};

enum sim_engine { ENG_NONE, ENG_COMPUTE, ENG_H2D, ENG_D2H, ENG_PEER, ENG_COUNT };

enum sim_direction { DIR_H2D, DIR_D2H, DIR_D2D, DIR_P2P, DIR_H2H, DIR_COUNT };

enum sim_state { ST_PENDING, ST_READY, ST_RUNNING, ST_DONE };

/* Submission side of a stream: how much of it waits, and which hardware queue carries it. */
struct sim_lane {
    unsigned waiting; /* submitted and not started */
    unsigned queue;
};

/* Kernels of several devices that wait for each other. Freed when the last has started. */
struct sim_group {
    uint64_t communicator, sequence;
    unsigned ranks, asked, started;
    struct sim_op *ops[8];
    double ns; /* from the start of the last to the end of all */
    struct sim_group *next;
};

struct sim_op {
    int refs;
    uint8_t type, engine, state, device;
    uint8_t direction;
    uint8_t behind; /* the engine of what it waited for last */
    bool own;       /* left out of the truth */
    bool counted;   /* belongs to the range that the truth covers */
    bool timing;    /* OP_EVENT: takes a time stamp */
    bool
        overlap; /* launched with programmatic serialisation: starts right behind its predecessor */
    bool in_graph;
    bool pageable;
    unsigned unmet; /* predecessors not done, plus one until submitted */
    struct sim_op **followers;
    unsigned nfollowers, follower_room;
    struct sim_lane *lane;
    const void *stream; /* identity only */
    struct sim_group *group;
    struct sim_meeting *meetings; /* with other processes, which decide when it ends */
    struct sim_op *queue_next;
    int64_t ready, start, end;
    double work;   /* ns left at full rate */
    double demand; /* share of the device that it could fill */
    double drain;  /* ns from its end until a time stamp behind it can be taken, beyond the usual */
    double cold;   /* ns that it starts later behind a time stamp that followed a kernel; of an
                      event: that it is such a time stamp */
    uint64_t bytes;
    uint32_t name; /* truth's name id */
    /* runs when the operation ends; may be NULL */
    void (*effect)(struct sim_op *op);
    void (*release)(void *data);
    void *data;
    uint64_t value;
};

void sim_device_init(unsigned devices);

struct sim_op *sim_op_new(enum sim_op_type type, unsigned device);
struct sim_op *sim_op_ref(struct sim_op *op);
void sim_op_unref(struct sim_op *op);
/* `op` runs after `before`, which may be NULL or done. pre: op is not submitted */
void sim_op_after(struct sim_op *op, const struct sim_op *before);
/* pre: t is the host time now. Operations of one graph pass their launch's time. */
void sim_op_submit(struct sim_op *op, int64_t t, struct sim_lane *lane);

void sim_device_run(int64_t until);
/* When something happens next if nothing more is submitted; SIM_NEVER if nothing will. */
int64_t sim_device_next(void);
bool sim_device_idle(void);
/* Carries everything submitted to its end, without running host functions or moving data. */
void sim_device_finish(void);

/* base durations in ns; the one place that knows how fast the device is */
double sim_copy_ns(enum sim_direction direction, bool pageable, uint64_t bytes);
double sim_memset_ns(uint64_t bytes);

#endif
