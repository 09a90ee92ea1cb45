/* What the files of the simulated driver share. Seen by nothing outside libcuda.so.1. */
#ifndef SIM_CORE_H
#define SIM_CORE_H

#include "config.h"
#include "device.h"
#include "kinds.h"
#include "sim.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_EXPORT __attribute__((visibility("default")))

/* CUresult, as plain numbers; the runtime's are the same */
#define E_OK              0
#define E_VALUE           1
#define E_MEMORY          2
#define E_INIT            3
#define E_DEINIT          4
#define E_STUB            34
#define E_NO_DEVICE       100
#define E_DEVICE          101
#define E_IMAGE           200
#define E_CONTEXT         201
#define E_HANDLE          400
#define E_FOUND           500
#define E_NOT_READY       600
#define E_ADDRESS         700
#define E_REGISTERED      712
#define E_NOT_REGISTERED  713
#define E_NOT_PERMITTED   800
#define E_NOT_SUPPORTED   801
#define E_CAP_UNSUPPORTED 900
#define E_CAP_INVALIDATED 901
#define E_CAP_MERGE       902
#define E_CAP_UNMATCHED   903
#define E_CAP_UNJOINED    904
#define E_CAP_ISOLATION   905
#define E_CAP_IMPLICIT    906
#define E_CAP_EVENT       907
#define E_CAP_THREAD      908
#define E_GRAPH_UPDATE    910

enum {
    MAGIC_CTX = 0x43545831,
    MAGIC_STREAM = 0x53545231,
    MAGIC_EVENT = 0x45564e31,
    MAGIC_GRAPH = 0x47524831,
    MAGIC_NODE = 0x4e4f4431,
    MAGIC_EXEC = 0x45584331,
    MAGIC_MODULE = 0x4d4f4431,
    MAGIC_FUNC = 0x46554e31,
    MAGIC_POOL = 0x504f4f31,
    MAGIC_PHYS = 0x50485931
};

struct sim_capture;
struct sim_node;

struct sim_stream {
    uint32_t magic;
    uint32_t flags; /* 1: non-blocking */
    struct sim_ctx *ctx;
    struct sim_stream *next; /* of the context */
    struct sim_op *tail;     /* the last operation submitted */
    struct sim_lane lane;
    int priority;
    uint64_t id;
    /* while it takes part in a capture: what its next node comes after */
    struct sim_capture *capture;
    struct sim_node **ahead;
    unsigned nahead, ahead_room;
};

struct sim_ctx {
    uint32_t magic;
    unsigned device;
    bool primary;
    int refs;
    unsigned flags;
    struct sim_stream legacy;
    struct sim_stream *streams; /* created ones and the threads' default ones */
    struct sim_ctx *next;
};

struct sim_thread {
    struct sim_thread *next;
    int tid;
    struct sim_frame *top;
    struct sim_rng rng;
    uint64_t cpu_ns;
    int own;
    bool quiet;
    bool naps; /* has slept in virtual time: the clock stands while it is awake, see host.c */
    int nap;
    int64_t wake;
    struct sim_thread *next_napper;
    bool in_callback;
    uint64_t callback_ns;
    int64_t accounted; /* real time: up to here the cost of the call under way is spent */
    unsigned index;
    int capture_mode; /* CU_STREAM_CAPTURE_MODE_*, exchanged per thread; global at first */
    struct sim_ctx *stack[32];
    unsigned depth;
    struct {
        struct sim_ctx *ctx;
        struct sim_stream *stream;
    } defaults[8];
    struct sim_group *group; /* that the next launch belongs to */
    struct sim_meeting *meetings;
};

/* host.c: lock, clock, threads, calls */
void sim_lock(void);
void sim_unlock(void);
struct sim_thread *sim_thread(void);
bool sim_own_thread(void);    /* what this thread does now is a recorder's, not the program's */
void sim_own_call(void);      /* nor is the call that it is in */
void sim_captured_call(void); /* the call that it is in went into a graph */
int64_t sim_clock(void);
void sim_spend(uint64_t ns);        /* host time; not with the lock held */
void sim_spend_locked(uint64_t ns); /* the same with it held: it is let go meanwhile */
int sim_enter(struct sim_frame *frame, struct sim_api *api, int per_thread);
void sim_leave(struct sim_frame *frame, int status);
/* pre: locked. Blocks the host until op has started, or ended, then wakes late as hosts do. */
void sim_wait_started(struct sim_op *op);
void sim_wait_done(struct sim_op *op);
void sim_wait_until(int64_t t); /* lets time pass, and the device run, up to t */
int sim_ready(void);            /* 0, or why no call can work: not initialised, forked */
void *sim_grow(void *p, size_t bytes);
extern bool sim_initialised;
void sim_start(void); /* cuInit */

/* host_func.c */
void sim_host_func_start(struct sim_op *op);
void sim_host_func_done(struct sim_op *op, int64_t t); /* device.c */

/* Objects are never given back to malloc and the last one freed is the first one reused: a
 * stale handle meets another object, as it does with the real driver. */
struct sim_pool {
    size_t size;
    void *free_list;
};
void *sim_pool_get(struct sim_pool *pool); /* zeroed */
void sim_pool_put(struct sim_pool *pool, void *object);

/* Everything below: pre: locked. */

/* stream.c: contexts, streams, events. Results are CUresult values. */
struct sim_ctx *sim_ctx_current(void);
struct sim_ctx *sim_ctx_of(const void *handle); /* NULL: invalid */
struct sim_ctx *sim_ctx_primary(unsigned device);
struct sim_ctx *sim_ctx_new(unsigned device, unsigned flags);
void sim_ctx_free(struct sim_ctx *ctx);
struct sim_stream *sim_stream_new(struct sim_ctx *ctx, unsigned flags, int priority);
void sim_stream_destroy(struct sim_stream *stream);
/* post: the stream, or NULL and *status says why */
struct sim_stream *sim_stream_of(const void *handle, int *status);
/* Orders op behind what its stream and the default-stream rules demand and submits it, taking
 * over the caller's reference. Blocks while the stream's launch queue is full. */
void sim_submit(struct sim_stream *stream, struct sim_op *op);
void sim_follow(struct sim_stream *stream, struct sim_op *op); /* dependencies only */
void sim_sync_stream(struct sim_stream *stream);
void sim_sync_ctx(struct sim_ctx *ctx);
void sim_sync_device(unsigned device); /* all contexts */

struct sim_event {
    uint32_t magic;
    uint32_t flags; /* 1: blocking sync, 2: no timing, 4: interprocess */
    bool own;       /* a recorder's */
    struct sim_op *op;
    /* recorded while capturing: what a waiting stream comes after */
    uint64_t capture_id;
    struct sim_node **nodes;
    unsigned nnodes;
};

struct sim_event *sim_event_new(unsigned flags);
struct sim_event *sim_event_of(const void *handle); /* NULL: invalid */
void sim_event_free(struct sim_event *event);
int sim_event_record(struct sim_stream *stream, struct sim_event *event);
int sim_event_wait(struct sim_stream *stream, struct sim_event *event);

/* capture.c */
/* post: E_OK, or the error that a call unsafe in a capture gets; running captures that it
 * disturbs are invalidated */
int sim_capture_guard(void);
/* The operation on `stream` becomes a node; the node's dependencies are set. post: NULL if the
 * capture was invalidated. */
struct sim_node *sim_capture_node(struct sim_stream *stream, unsigned type);
int sim_capture_check(struct sim_stream *stream); /* may this stream be submitted to */
void sim_capture_event(struct sim_stream *stream, struct sim_event *event);
int sim_capture_wait(struct sim_stream *stream, struct sim_event *event);
void sim_capture_drop(struct sim_stream *stream); /* it is destroyed */
void sim_capture_disturb(uint64_t id);
int sim_capture_external(struct sim_stream *stream, struct sim_event *event, bool record);
int sim_capture_invalidate(struct sim_stream *stream, int status);

/* memory.c */
enum sim_memory { MEM_PAGEABLE, MEM_DEVICE, MEM_PINNED, MEM_REGISTERED, MEM_MANAGED };
struct sim_range {
    uintptr_t at;
    size_t size;
    uint8_t kind; /* enum sim_memory */
    uint8_t device;
    uint8_t arena;    /* 1: of the device address space */
    uint8_t reserved; /* 1: addresses without memory */
};
enum sim_memory sim_memory_kind(uintptr_t p, unsigned *device);
int sim_memory_alloc(unsigned device, size_t bytes, size_t align, bool managed, uintptr_t *out);
int sim_memory_free(uintptr_t p);

/* module.c */
struct sim_module;
struct sim_func {
    uint32_t magic;
    bool kernel; /* a CUkernel rather than a CUfunction */
    struct sim_module *module;
    struct sim_func *twin; /* the CUfunction of a CUkernel */
    char *text;            /* name */
    uint32_t name;         /* truth's id */
    bool own;
    uint64_t launches; /* executed: the position that its duration varies by */
    double us, block_ns, cv;
    double modes[16];
    unsigned nmodes;
    unsigned params[64];
    unsigned nparams;
    const struct sim_behaviour *behaviour; /* NULL: takes its time, does nothing */
    int max_shared;
    bool loaded; /* lazily, at the first launch */
    bool stamps; /* times itself */
};
struct sim_func *sim_func_of(const void *handle); /* CUfunction or CUkernel; NULL: invalid */
extern uint64_t sim_wrong_kind; /* names asked of a kernel as a function, or the other way */
double sim_func_ns(struct sim_func *f, const unsigned grid[3], const unsigned block[3],
                   double *demand);
/* Arguments that a kernel with a behaviour of its own needs, copied at the launch. */
void sim_func_prepare(struct sim_func *f, struct sim_op *op, void **args, void **extra);

/* copy.c */
struct sim_copy {
    uintptr_t dst, src; /* 0: not linear memory */
    size_t bytes;
    size_t width, height, depth; /* bytes, rows, slices: when pitched */
    size_t dst_pitch, src_pitch, dst_slice, src_slice;
    int direction; /* enum sim_direction, -1: by the pointers */
    bool blocking;
};
int sim_copy(const void *stream, const struct sim_copy *copy);
void sim_copy_resolve(const struct sim_copy *copy, enum sim_direction *direction, bool *pageable);
struct sim_op *sim_copy_op(unsigned device, const struct sim_copy *copy, bool staged);
struct sim_op *sim_memset_op(unsigned device, uintptr_t dst, uint64_t bytes);

/* launch.c */
struct sim_launch {
    struct sim_func *func;
    unsigned grid[3], block[3], shared;
    bool overlap, cooperative;
    void **args, **extra;
};
void sim_meet(struct sim_peers *peers, const char *op, int peer, bool sends, uint64_t bytes,
              uint64_t ns);
void sim_collective(uint64_t communicator, uint64_t sequence, unsigned ranks, uint64_t ns);
/* ns beyond the usual until a time stamp behind the recorder's kernel, or a graph, can be taken. */
double sim_drain_usual(void);
struct sim_op *sim_kernel_op(unsigned device, const struct sim_launch *launch);

#endif
