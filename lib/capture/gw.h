/* What the files of the preload share: state, threads, frames, and the small
 * contracts between them. Nothing here is seen outside libgpuwait.so. */
#ifndef GW_H
#define GW_H

#include "atomics.h"
#include "clock.h"
#include "cuda_abi.h"

#include <gpuwait/format.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/types.h>

/* Also the declarations: a reference that might bind elsewhere goes through the GOT. */
#pragma GCC visibility push(hidden)

#define GW_EXPORT __attribute__((visibility("default")))
#define GW_TLS    static __thread __attribute__((tls_model("initial-exec")))

/* ---- the calls -------------------------------------------------------------- */

/* Runtime rows have one wrapper and one real function for each of these: two
 * cudarts in a process must each reach their own. */
enum gw_node { GW_NODE_11, GW_NODE_12, GW_NODE_13, GW_NODE_14, GW_NODES };

enum gw_api {
    GW_API_NONE,
#define GW_ROW(level, name, kind) GW_API_##name,
#include "calls_expand.h"
#undef GW_ROW
    GW_API_COUNT
};

struct gw_call {
    const char *name;
    uint8_t level;           /* enum gwt_level */
    uint8_t kind;            /* enum gwt_kind */
    void *wrapper[GW_NODES]; /* driver and NCCL rows use [0] */
};

extern const struct gw_call gw_calls[GW_API_COUNT];
extern void *gw_real[GW_API_COUNT]; /* driver and NCCL */
extern void *gw_real_runtime[GW_NODES][GW_API_COUNT];

/* ---- helpers of the driver that are called and not wrapped -------------------- */

struct gw_helpers {
#define HELPER(ret, name, params) ret(*name) params;
#include "helpers.def"
#undef HELPER
};
extern struct gw_helpers gw_driver; /* each NULL where the driver lacks it */

/* ---- a call in flight ----------------------------------------------------------- */

/* Lives on the caller's stack from entry to return. Decoding fills it before the real
 * call; it becomes one record after it. Entry writes only the fields before `shape`: what
 * a launch runs is written by its decoding and read for launches alone. */
struct gw_frame {
    struct gw_frame *outer;
    uint64_t t0;
    union {
        struct {
            uint16_t api;
            uint16_t flags;
            uint8_t kind;
            uint8_t level;
            uint8_t merged; /* this driver call is part of its runtime caller's record */
            uint8_t taken;  /* a nested driver call has already merged into this one */
        };
        uint64_t word; /* which entry stores at once: GW_FRAME_WORD() */
    };
    union {
        struct {
            union {
                struct {
                    uint8_t per_thread; /* the null stream means the per-thread default stream */
                    uint8_t no_stream;
                };
                uint16_t which; /* both */
            };
            uint16_t stream_id; /* of a launch whose signature is known before it ... */
            uint32_t arg;       /* ... and that signature; else 0. Of other calls: by kind */
        };
        uint64_t word2; /* which entry stores at once */
    };
    const void *stream;
    uint64_t value;
    struct gw_shape {
        const void *func;
        uint32_t grid[3];
        uint32_t block[3];
        uint32_t shared;
    } shape;
};

/* ---- a thread that made a recorded call -------------------------------------------- */

/* Handles known by an earlier epoch may be another's by now: a module was unloaded, a stream
 * destroyed. Starts at 1 and 1. */
struct gw_epochs {
    uint32_t names, streams;
} __attribute__((aligned(8)));
extern struct gw_epochs gw_epochs;
#define gw_names_epoch   (gw_epochs.names)
#define gw_streams_epoch (gw_epochs.streams)

struct gw_signature_entry {
    struct gw_shape shape;
    uint32_t id;                /* 0: empty */
} __attribute__((aligned(64))); /* a hit reads one line */

/* What the kernel says of a thread at one moment. */
struct gw_clocks {
    uint64_t ticks; /* when; 0: never */
    uint64_t cpu_ns;
    uint64_t process_ns; /* CPU time of all threads */
    uint32_t voluntary;  /* context switches */
    uint32_t involuntary;
};

#define GW_STREAM_CACHE    8u
#define GW_SIGNATURE_CACHE 1024u
#define GW_SIGNATURE_WAYS  4u

/* In pages that fork() zeroes, like gw_alive. What every launch reads comes first. */
struct gw_thread {
    struct gwt_slot *slot;
    struct gwt_record *ring;
    uint64_t mask;
    uint64_t head;           /* = slot->head, without reading shared memory */
    uint64_t room;           /* the ring takes records below this one; lags behind slot->tail */
    int32_t countdown;       /* calls until the next candidate for timing */
    struct gw_epochs epochs; /* of the two caches */
    struct gw_stream_entry {
        const void *handle;
        uint16_t which; /* of the frame: what a null means; UINT16_MAX: nothing is known */
        uint8_t device;
        uint8_t spare;
        uint16_t id;
    } stream, streams[GW_STREAM_CACHE];   /* the last one, on gw_device; others */
    uint64_t lost, lost_first, lost_last; /* drops not yet told by a LOST record */
    uint32_t id;
    uint32_t random;
    struct gw_clocks clocks; /* the thread's own last reading */
    uint64_t clocks_cost;    /* ticks that one takes, on average */
    struct gw_signature_entry signatures[GW_SIGNATURE_CACHE];
};

/* ---- state ---------------------------------------------------------------------------- */

enum gw_state {
    GW_INERT,    /* nothing exists yet: no file, no thread */
    GW_STARTING, /* one thread is making them */
    GW_ACTIVE,
    GW_OFF, /* switched off, failed or finished: every call passes through */
};

extern uint32_t gw_state; /* enum gw_state */
/* What keeps launches off their short path, in one word: 0 almost always. */
extern uint32_t gw_odd;
enum {
    GW_ODD_CLOCK = 1,    /* ticks are not the counter's */
    GW_ODD_PAUSED = 2,   /* gw_recording is 0 */
    GW_ODD_SAMPLING = 4, /* a sample is being submitted: gw_busy_stream */
    GW_ODD_OVER = 8,     /* gw_alive went to 0 */
    GW_ODD_CAPTURE = 16, /* times the streams being captured: the gate */
};
/* Counted up before the real BeginCapture. Meanwhile we make no CUDA call but
 * cuStreamIsCapturing. */
static inline bool gw_capturing(void)
{
    return gw_load_relaxed(&gw_odd) >= GW_ODD_CAPTURE;
}
static inline void gw_odd_set(uint32_t what, bool on)
{
    if (on)
        __atomic_fetch_or(&gw_odd, what, __ATOMIC_RELEASE);
    else
        __atomic_fetch_and(&gw_odd, ~what, __ATOMIC_RELEASE);
}
/* 1 while active, in a page that fork() zeroes: a child made by raw clone sees 0
 * although no atfork handler ran. Points to a static 0 until the first start. */
extern uint32_t *gw_alive;
static inline uint32_t gw_is_alive(void)
{
    /* Partners: the release stores of gw_start(), before which all else was made. */
    return gw_load_acquire(gw_load_acquire(&gw_alive));
}
extern uint32_t gw_recording;             /* 0: switched off from inside the program */
extern uint64_t gw_recording_switched;    /* ticks: when it last was, on or off; 0: never */
extern struct gwt_ring_header *gw_header; /* the ring file's, or a private one until it exists */

static inline void gw_count(enum gwt_counter c, uint64_t n)
{
    /* Partner: the release store of gw_ring_create(). */
    gw_add_relaxed(&gw_load_acquire(&gw_header)->counters[c], n);
}

/* life.c */
bool gw_start(void);      /* post: true if active now */
void gw_after_fork(void); /* makes this process inert again; touches no inherited mapping */
struct gw_thread *gw_thread_get(void); /* this thread's, made at first use; NULL: none to be had */
extern __thread struct gw_local {
    struct gw_thread *self;
    struct gw_thread *idle; /* self, while outside of any call, with no record under way */
    struct gw_frame *top;
    uint64_t
        top_t0; /* top's own t0: a frame whose memory says otherwise was left without a return */
    uint32_t
        busy; /* works under way, a record or first-time ones: a signal handler must not nest */
    uint8_t device;
} gw_local __attribute__((tls_model("initial-exec")));
#define gw_self   (gw_local.self)
#define gw_top    (gw_local.top)
#define gw_top_t0 (gw_local.top_t0)
#define gw_device (gw_local.device)
static inline void gw_set_device(int device)
{
    gw_device = (uint8_t)device;
    if (gw_self)
        gw_self->stream.which = UINT16_MAX;
}
extern char gw_dump_path[4096];
extern pid_t gw_pid; /* of the process that started recording */

/* Around a record, or first-time work: a signal handler's calls meanwhile leave no record. */
static inline void gw_busy_begin(void)
{
    gw_local.busy++;
    gw_fence_signal();
    gw_local.idle = NULL;
    gw_fence_signal();
}
static inline void gw_busy_end(struct gw_thread *t)
{
    gw_fence_signal();
    if (--gw_local.busy == 0 && !gw_top)
        gw_local.idle = t;
}
/* The short path says it by its thread in place of a frame: gw_launch_closes(). */
static inline bool gw_is_busy(const struct gw_thread *t)
{
    return gw_local.busy || (const void *)gw_top == (const void *)t;
}

/* ring.c */
int gw_ring_create(const char *dump_path, const struct gwt_file_header *file, char ring_path[256]);
void gw_ring_unlink(void);
bool gw_ring_is_gone(void);
void gw_ring_forget(void); /* in a forked child */
int gw_ring_thread(struct gw_thread *t);
void gw_ring_no_room(int error); /* to be told once; threads may ask again a few times */
void gw_ring_tell_no_room(void);
bool gw_ring_full(void); /* it would find no slot: not worth asking at every call */
void gw_ring_thread_close(struct gw_thread *t);
void gw_ring_thread_named(struct gwt_slot *slot, uint32_t thread, const char *name);
struct gwt_slot *gw_ring_slot(unsigned index);
unsigned gw_ring_index(const struct gwt_slot *slot);
unsigned gw_ring_slots_used(void);
struct gwt_record *gw_ring_records(const struct gwt_slot *slot);
uint64_t gw_ring_pthread(unsigned index); /* pthread_self() of the slot's thread */
void gw_ring_slot_release(
    struct gwt_slot *slot); /* drain: a closed and drained slot is free again */

/* record.c */
void gw_push(struct gw_thread *t, const struct gwt_record *r);
void gw_push_spare(struct gw_thread *t, const struct gwt_record *r);
void gw_push_mark(enum gwt_kind kind, uint32_t arg, uint64_t value);
uint16_t gw_stream_of(struct gw_thread *t, const struct gw_frame *f);
uint32_t gw_signature_cached(struct gw_thread *t, const struct gw_shape *s); /* 0: not met before */

/* section.c: a thread's time between two calls. pre: t is the calling thread */
/* At the entry of an outermost call, GW_SECTION_LEAST or more after a return. */
void gw_section_ends(struct gw_thread *t, struct gw_frame *f);
/* A call that turned out to be one that delimits: its entry, at t0, was not measured. */
void gw_section_ended(struct gw_thread *t, uint64_t t0);
void gw_section_begins(struct gw_thread *t, uint64_t t1); /* a blocking call returned */
void gw_section_watch(void);                              /* the watch: every few ms */
void gw_sections_reset(void);                             /* in a forked child */

/* Whether the slot's thread is inside a call. Not ordered against anything: a hint. */
static inline bool gw_slot_inside(const struct gwt_slot *s)
{
    return gw_load_relaxed(&s->open_t0) > gw_load_relaxed(&s->returned);
}

/* define.c: the definition log. One lock, held for microseconds, first-time work only. */
void gw_lock(void);
void gw_unlock(void);
void gw_lock_reset(void);
/* pre: locked. post: false if the log has no room (counted). */
bool gw_define(enum gwt_def_type type, uint32_t id, const void *fixed, size_t fixed_size,
               const void *rest, size_t rest_size);
size_t gw_define_pending(uint64_t *first); /* bytes not yet in the dump */
void gw_define_copy(uint64_t first, void *out, size_t size);
void gw_define_drained(uint64_t first, size_t size);
void gw_define_reset(void);
uint32_t gw_string(const char *text, size_t size); /* pre: locked. post: id, 0 if no room */
uint32_t gw_string_reserve(void);                  /* pre: locked. an id whose text follows */
bool gw_string_set(uint32_t id, const char *text, size_t size); /* pre: locked */

/* names.c: function handles -> names -> signatures */
uint32_t gw_signature_slow(struct gw_thread *t, const struct gw_frame *f);
uint32_t gw_signature_of(const void *func, const uint32_t grid[3], const uint32_t block[3],
                         uint32_t shared); /* pre: locked */
void gw_names_pending(void);               /* learns the names that a capture had postponed */
void gw_names_invalidate(void);            /* a module went: handles may be reused */
void gw_names_hint(const void *handle, const char *name, bool kernel); /* kernel: a CUkernel */
void gw_names_alias(const void *func, const void *kernel);
void gw_names_reset(void);
bool gw_signature_is_comm(uint32_t id);        /* a kernel of NCCL's */
bool gw_function_is_known(const void *handle); /* it has been launched, or is in a graph */

/* streams.c: streams, contexts, devices */
uint16_t gw_stream_slow(struct gw_thread *t, const struct gw_frame *f);
void gw_stream_created(const void *stream, unsigned flags);
void gw_stream_gone(const void *stream);
bool gw_stream_captures(const void *stream, bool per_thread);
void gw_ctx_known(const void *ctx, int device);
void gw_ctx_created(const void *ctx, int device);
void gw_ctx_current(const void *ctx);
void gw_ctx_popped(void);
void gw_streams_reset(void);

/* memory.c: what kind of memory an address is in */
enum gw_memory { GW_MEM_PAGEABLE, GW_MEM_PINNED, GW_MEM_DEVICE, GW_MEM_MANAGED };
void gw_memory_add(const void *p, size_t size, enum gw_memory kind, unsigned device);
void gw_memory_remove(const void *p);
enum gw_memory gw_memory_kind(const void *p, unsigned *device);
void gw_memory_reset(void);

/* graphs.c */
void gw_graph_instantiated(const void *exec, const void *graph);
void gw_graph_touched(const void *exec);
void gw_graph_destroyed(const void *exec);
uint32_t gw_graph_id(const void *exec, uint16_t *flags);
void gw_graphs_reset(void);

/* resolve.c */
void gw_resolve_init(void);
void gw_resolve_reset(void); /* in a forked child */
bool gw_driver_ready(void);  /* libcuda is mapped and its rows are resolved */
void *gw_resolve(unsigned api);
void *gw_resolve_runtime(unsigned node, unsigned api);
void *gw_resolve_symbol(const char *library, const char *name); /* mapped libraries only */
bool gw_library_mapped(const char *soname);
void *gw_resolve_next(const char *name);    /* after us in the global scope */
void *gw_resolve_default(const char *name); /* anywhere in it */

/* musl.c */
void *gw_musl_dlsym(void); /* its own dlsym, which ours hides */

/* own_thread.c: threads of ours. post: 0, or -errno; detached, and no signal of the program's is
 * for it: SIGXFSZ, which a write may raise, least. stack: 0 for the usual one. */
int gw_own_thread(void *(*run)(void *), size_t stack);
void gw_own_nap(uint32_t *word, uint32_t value, long ns); /* less if woken, or not that value */
void gw_own_wake(uint32_t *word);
void gw_own_await(uint32_t *word, uint64_t ns); /* until it is not 0, or so long */

/* watch.c: by the drain, at its start and end */
void gw_watch_start(void);
void gw_watch_stop(void);       /* bounded wait for its last look */
uint64_t gw_watch_cpu_ns(void); /* that it has taken */

/* drain.c */
int gw_drain_start(const struct gwt_file_header *file);
void gw_drain_stop(void); /* bounded wait for the last frame */
void gw_drain_kick(void);
void gw_drain_forget(void); /* in a forked child */

/* stacks.c: samples of Python stacks */
void gw_stacks_start(void);
void gw_stacks_reset(void); /* in a forked child that starts */

/* cost.c */
uint64_t gw_measure_cost(void);

/* facts.c: process facts into the definition log */
void gw_facts(void);
void gw_facts_libraries(bool at_exit); /* versions of what is mapped by now */
int gw_process_start(uint64_t *ticks);
void gw_boot_id(uint8_t out[16]);

/* nvtx.c: ranges seen before the first CUDA call are kept and replayed at the start */
void gw_nvtx_replay(struct gw_thread *t);
void gw_nvtx_reset(void);

/* nccl.c */
uint32_t gw_comm_id(const void *comm);
/* id: NULL where the ranks did not meet by one. */
void gw_comm_created(const void *comm, int ranks, int rank, const ncclUniqueId *id);
void gw_comms_created(const void *const *made, int ranks);
/* made: NULL where this rank got none. */
void gw_comm_split(const void *parent, int color, const void *made);
void gw_comms_reset(void);

/* options.c: the environment, read once by the constructor */
struct gw_options {
    bool off;
    bool block_when_full;
    bool cmdline;
    uint64_t max_bytes;
    unsigned min_free_pct;
    bool stacks;       /* of Python */
    double timing_pct; /* of device time, for timing samples; 0: off */
    char out[4096];    /* absolute directory */
    char ring[256];    /* auto, dump, shm or a directory */
};
extern struct gw_options gw_options;
void gw_options_read(void);
void gw_say(const char *format, ...) __attribute__((format(printf, 1, 2))); /* one line on stderr */

#pragma GCC visibility pop
#endif
