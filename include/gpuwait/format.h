/* gpuwait/format.h: the bytes of a dump (.gwt) and of a ring file (.ring).
 *
 * Contract between libgpuwait.so, which writes both while the job runs, and the
 * reader, which may meet them after a clean end, after SIGKILL, or live. All
 * integers are little-endian and fixed-width; every offset is asserted below.
 * A dump of version 1.x stays readable by every later reader.
 *
 *   dump  = header, frames                    append-only
 *   ring  = header, thread slots, definition log, per-thread rings   MAP_SHARED
 *
 * Events travel ring -> frame -> write(), and only then does the drain thread
 * advance the ring's tail, so an event is in the ring, in a frame, or in both
 * (same thread id and sequence number), never in neither.
 * Variable-length facts (names, signatures, threads ...) are definitions: an
 * append-only byte log, of which the ring holds the newest part and the dump
 * every byte that was drained.
 */
#ifndef GPUWAIT_FORMAT_H
#define GPUWAIT_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define GWT_VERSION_MAJOR 1 /* a reader refuses a higher one */
#define GWT_VERSION_MINOR 0 /* a reader ignores what it does not know */

/* ---- calls ------------------------------------------------------------- */

/* What a call does. Numbers are part of the format: append only. */
#define GWT_KINDS(X)                                                                               \
    X(NONE, 0)         /* never recorded */                                                        \
    X(LAUNCH, 1)       /* kernel launch: arg = signature id, value = driver's share, see below */  \
    X(GRAPH_LAUNCH, 2) /* arg = graph id */                                                        \
    X(HOST_FUNC, 3)    /* host function or callback put into a stream */                           \
    X(COPY, 4)         /* value = bytes, arg = number of copies, flags: direction, memory */       \
    X(MEMSET, 5)       /* value = bytes */                                                         \
    X(PREFETCH, 6)     /* value = bytes; managed memory migration */                               \
    X(ALLOC, 7)        /* device memory incl. pools and VMM: value = bytes, arg = GWT_ADDR(p) */   \
    X(FREE, 8)         /* arg = GWT_ADDR(p) */                                                     \
    X(HOST_ALLOC, 9)   /* pinned host memory, registration: as ALLOC */                            \
    X(HOST_FREE, 10)                                                                               \
    X(SYNC, 11)         /* blocking call; flags: scope; value = event handle when SCOPE_EVENT */   \
    X(EVENT_RECORD, 12) /* value = event handle */                                                 \
    X(STREAM_WAIT, 13)  /* stream waits for event: value = event handle */                         \
    X(STREAM_OP, 14)    /* wait/write value, semaphores, graph upload */                           \
    X(POLL, 15)         /* query of event or stream: counted (GWT_C_POLLS), not recorded */        \
    X(CAPTURE, 16)      /* begin or end of a stream capture */                                     \
    X(INSTANTIATE, 17)  /* arg = graph id */                                                       \
    X(GRAPH_UPDATE, 18) /* arg = new graph id */                                                   \
    X(GRAPH_DESTROY, 19)                                                                           \
    X(MODULE_LOAD, 20)                                                                             \
    X(MODULE_UNLOAD, 21)                                                                           \
    X(STREAM, 22) /* create or destroy */                                                          \
    X(CONTEXT, 23)                                                                                 \
    X(NAME, 24) /* hooked for its result only, never recorded */                                   \
    X(NCCL, 25) /* collective or send/recv: value = bytes, arg: GWT_COMM, GWT_COMM_PEER */         \
    X(NCCL_GROUP, 26)                                                                              \
    X(NCCL_COMM, 27)   /* communicator created, split, destroyed: arg = communicator id */         \
    X(ALLOCATOR, 28)   /* report of PyTorch's caching allocator: struct gwt_record_allocator */    \
    X(RANGE_PUSH, 29)  /* NVTX range opened: arg = string id; t only */                            \
    X(RANGE_POP, 30)   /* innermost range of this thread closed; t only */                         \
    X(RANGE_START, 31) /* start/end range: arg = string id, value = range id */                    \
    X(RANGE_END, 32)   /* value = range id */                                                      \
    X(MARK, 33)        /* NVTX mark: arg = string id */                                            \
    X(LOST, 34)        /* ring was full: value = events dropped between t0 and t0 + dur */         \
    X(RECORDING, 35)   /* recording switched from inside the program: value = 0 or 1 */            \
    X(SAMPLE, 36)      /* one operation timed on the device: struct gwt_record_sample */           \
    X(CONSTANT, 37)    /* measured in the run with kernels of our own: flags = sample class, value \
                          = picoseconds that an event pair adds to what it encloses; or flags =    \
                          enum gwt_constant; arg = measurements, dur = standard deviation, ps */   \
    X(SECTION, 38)     /* a thread's time between two calls, of 1 ms or more: struct               \
                          gwt_record_section */                                                    \
    X(STACK, 39)       /* where a thread's Python code was at t0: arg = stack id, value = thread   \
                          id, flags: enum gwt_stack_why, dur: the interpreter was held so long */  \
    X(FREE_MEMORY, 40) /* of a device, asked of the driver now and then: value = bytes, arg =      \
                          ordinal, dur: the answer took so long */

enum gwt_kind {
#define X(name, number) GWT_##name = number,
    GWT_KINDS(X)
#undef X
        GWT_KIND_COUNT = 41
};

/* Level at which a call was intercepted. */
enum gwt_level {
    GWT_LEVEL_NONE = 0,    /* not a call: allocator report, range, LOST */
    GWT_LEVEL_RUNTIME = 1, /* libcudart export */
    GWT_LEVEL_DRIVER = 2,  /* libcuda export */
    GWT_LEVEL_NCCL = 3,
};

/* ---- one event: 32 bytes, the same in the ring and, column-wise, in frames -- */

struct gwt_record {
    uint64_t t0;     /* clock ticks at entry */
    uint32_t dur;    /* ticks from entry to return; with GWT_F_LONG in units of 1024 ticks */
    uint16_t api;    /* id of a GWT_DEF_API definition, or GWT_API_PSEUDO + kind where no call is */
    uint16_t flags;  /* GWT_F_* */
    uint16_t stream; /* id of a GWT_DEF_STREAM definition: it names the device too; 0: unknown */
    uint16_t status; /* CUresult, cudaError_t or ncclResult_t; 0: success */
    uint32_t arg;    /* by kind */
    uint64_t value;  /* by kind; LAUNCH: ticks inside the driver's own call when sampled, else 0 */
};

/* A GWT_ALLOCATOR record: the totals that PyTorch's caching allocator reports.
 * Block and segment sizes there are multiples of 512 bytes. */
struct gwt_record_allocator {
    uint64_t t0;
    uint32_t reserved_512; /* total reserved on the device, in units of 512 bytes */
    uint16_t api;          /* GWT_API_PSEUDO + GWT_ALLOCATOR */
    uint16_t flags;        /* low byte: device ordinal */
    uint32_t address;      /* GWT_ADDR of the block */
    int32_t size_512;      /* size of the block, negative when freed, in units of 512 bytes */
    uint64_t allocated;    /* total allocated on the device, bytes */
};

/* A GWT_SAMPLE record: an event before and an event after one operation of the program. */
struct gwt_record_sample {
    uint64_t t0;      /* entry of the call that submitted the operation: that event's own t0 */
    uint32_t pair_ns; /* between the two events, the class's constant included */
    uint16_t api;     /* GWT_API_PSEUDO + GWT_SAMPLE */
    uint16_t flags;   /* enum gwt_sample_class | GWT_SAMPLE_* | enum gwt_sample_void << 8 */
    uint16_t stream;
    uint16_t spare;
    uint32_t arg;   /* signature or graph id */
    uint64_t value; /* bytes, for copies and memsets; else ns that its spacer lasts */
};

enum gwt_sample_class {
    GWT_SAMPLE_KERNEL = 1,
    GWT_SAMPLE_GRAPH = 2,
    GWT_SAMPLE_H2D = 3, /* pinned, asynchronous */
    GWT_SAMPLE_D2H = 4,
    GWT_SAMPLE_D2D = 5,
    GWT_SAMPLE_MEMSET = 6,
    GWT_SAMPLE_CLASS_COUNT = 7
};
#define GWT_SAMPLE_CLASS(flags) ((flags)&0xfu)
/* Of a CONSTANT, beside the sample classes: picoseconds from a kernel's last stamp of its own to
 * the first of the next one ... */
enum gwt_constant {
    GWT_CONSTANT_GAP = 8,  /* ... in a stream */
    GWT_CONSTANT_NODES = 9 /* ... in a graph, where the one waits for the other */
};
/* Of a CONSTANT of kernels: taken in a stream of the program's, in the place of a sample. */
#define GWT_CONSTANT_AMONG 0x40u
#define GWT_SAMPLE_PDL     0x20u /* measured alone, without the overlap that it may have */
#define GWT_SAMPLE_SPACER  0x10u /* behind a spacer kernel on an idle stream; else a busy one */

/* Why a sample says nothing: pair_ns is then 0. */
enum gwt_sample_void {
    GWT_VOID_NONE = 0,
    GWT_VOID_LATE = 1,    /* the device reached the first event before the second was submitted */
    GWT_VOID_FOREIGN = 2, /* another thread submitted to the stream meanwhile */
    GWT_VOID_ERROR = 3,   /* an event or a launch of ours failed */
    GWT_VOID_VALUE = 4,   /* not a plausible time */
};

/* A GWT_SECTION record: from the return of a thread's call to the entry of its next, when that
 * is 1 ms or more. Only calls that are recorded delimit, and only outermost ones; so polls and
 * short context switches are part of a section (a thread that polls in a loop burns CPU in it),
 * and none spans a time at which recording was off.
 * The clocks and context switches are of its last `measured_us`: all of it, to 0.2 ms, where a
 * blocking call or another section ended shortly before it; less where a watch that looks every
 * few ms supplied the start; 0 where neither did (or it lasted for over an hour). A thread that
 * slept already when the watch looked need not have switched since.
 * The process's CPU time is exact to the scheduler's tick (1 to 4 ms) per other thread. */
struct gwt_record_section {
    uint64_t t0;
    uint32_t dur; /* ticks; with GWT_F_LONG in units of 1024 */
    uint16_t api; /* GWT_API_PSEUDO + GWT_SECTION */
    uint16_t flags;
    uint16_t voluntary; /* context switches of the thread; 0xffff: that many or more */
    uint16_t involuntary;
    uint32_t cpu_us;         /* of the thread, at most measured_us */
    uint32_t process_cpu_us; /* of all threads of the process; 2^32 - 1: that much or more */
    uint32_t measured_us;
};

/* Why a Python stack was taken. All are taken at instants of one Poisson process, hence in
 * proportion to time; a RANDOM one stands for 4 times as much as another, one taken a > 1 s
 * after its section or call began for a times as much. A section is seen from 5 ms of age on, a
 * call from 2 ms. The record's t0 is the instant; the stack is read up to some ms later, but while
 * the thread is in the same section or call, or just out of the call. */
enum gwt_stack_why {
    GWT_STACK_OUTSIDE = 1, /* no CUDA call for longer than usual */
    GWT_STACK_INSIDE = 2,  /* inside one call for longer than usual */
    GWT_STACK_RANDOM = 3,  /* at random, of the blocking calls that are short */
};
#define GWT_STACK_WHY(flags) GWT_F_SUB(flags)
/* The thread runs no Python (autograd's, for instance): the main thread's stack instead. */
#define GWT_STACK_OF_MAIN 0x10u

#define GWT_API_PSEUDO 0xff00u
#define GWT_ADDR(p)                                                                                \
    ((uint32_t)((uint64_t)(uintptr_t)(p) >> 9)) /* device blocks are 512-aligned                   \
                                                 */

/* flags */
#define GWT_F_LONG 0x0001u /* dur is in units of 1024 ticks */
#define GWT_F_CAPTURED                                                                             \
    0x0002u /* submitted to a capturing stream: recorded into a graph, not run                     \
             */
#define GWT_F_HOLE                                                                                 \
    0x0004u /* runtime call that should have made a driver call, and none was seen                 \
             */
#define GWT_F_DRIVER   0x0008u /* runtime call whose nested driver call was seen */
#define GWT_F_BLOCKING 0x0010u /* the call returns when the operation is done */
#define GWT_F_COOP     0x0020u /* cooperative launch */
#define GWT_F_PDL      0x0040u /* programmatic dependent launch: may overlap its predecessor */
#define GWT_F_PAGEABLE 0x0080u /* the host side of the copy is neither pinned nor registered */
#define GWT_F_NESTED   0x0100u /* made inside another recorded call */
#define GWT_F_APPROX   0x0200u /* the graph was edited after instantiation: counts may differ */
#define GWT_F_CLOSING  0x0400u /* the closing half of a pair: capture end, destroy */
#define GWT_F_UNWOUND  0x0800u /* the call never returned: an exception or cancellation left it */
/* COPY: enum gwt_direction; SYNC: enum gwt_scope; LAUNCH, GRAPH_LAUNCH, MEMSET: enum gwt_timed;
 * EVENT_RECORD: enum gwt_stamp */
#define GWT_F_SUB_SHIFT  12
#define GWT_F_SUB(flags) ((unsigned)(flags) >> GWT_F_SUB_SHIFT)

enum gwt_direction {
    GWT_DIR_UNKNOWN = 0,
    GWT_H2D = 1,
    GWT_D2H = 2,
    GWT_D2D = 3,
    GWT_P2P = 4, /* between devices */
    GWT_H2H = 5,
    GWT_DIR_COUNT = 6
};

/* It stands between two events of the recorder's, which takes the device time: a SAMPLE tells. */
enum gwt_timed { GWT_NOT_TIMED = 0, GWT_TIMED = 1, GWT_TIMED_BEHIND_SPACER = 2 };

/* Whether the event was created to take a time stamp, which holds up what follows it. 0 too
 * while timing is off, and in dumps that do not tell. */
enum gwt_stamp { GWT_NO_STAMP = 0, GWT_STAMP = 1 };

enum gwt_scope { GWT_SCOPE_DEVICE = 1, GWT_SCOPE_STREAM = 2, GWT_SCOPE_EVENT = 3 };

/* ---- definitions --------------------------------------------------------- */

/* The log is a sequence of entries, each 8-aligned: this header, then `size`
 * bytes of payload (a struct gwt_def_*, then its variable part). Ids start at 1
 * and are never reused within a dump; a later entry with the same type and id
 * replaces the earlier (a thread's name becomes known late). */
struct gwt_def {
    uint16_t type; /* GWT_DEF_* */
    uint16_t spare;
    uint32_t size; /* of the payload, without padding */
    uint32_t id;
    uint32_t spare2;
};

enum gwt_def_type {
    GWT_DEF_FACT = 1,      /* id 0; "key\0value" (value not terminated): see gpuwait-format(5) */
    GWT_DEF_API = 2,       /* struct gwt_def_api, name */
    GWT_DEF_STRING = 3,    /* bytes: kernel name (mangled), range name, mark, file, function */
    GWT_DEF_SIGNATURE = 4, /* struct gwt_def_signature */
    GWT_DEF_STREAM = 5,    /* struct gwt_def_stream */
    GWT_DEF_THREAD = 6,    /* struct gwt_def_thread, name */
    GWT_DEF_GRAPH = 7,     /* struct gwt_def_graph, struct gwt_graph_item x items */
    GWT_DEF_DEVICE = 8,    /* struct gwt_def_device, name; id = ordinal + 1 */
    GWT_DEF_COMM = 9,      /* struct gwt_def_comm */
    GWT_DEF_STACK = 10,    /* struct gwt_def_stack, struct gwt_stack_frame x frames */
};

struct gwt_def_api {
    uint8_t kind;  /* enum gwt_kind */
    uint8_t level; /* enum gwt_level */
    uint16_t spare;
};

struct gwt_def_signature {
    uint32_t name;    /* string id; 0: the name could not be learnt */
    uint32_t grid[3]; /* all 0 in the fallback signature of a function: launch shapes differ */
    uint32_t block[3];
    uint32_t shared; /* dynamic shared memory, bytes */
};

enum gwt_stream_type {
    GWT_STREAM_USER = 1,
    GWT_STREAM_LEGACY = 2,     /* the legacy default stream */
    GWT_STREAM_PER_THREAD = 3, /* per-thread default stream: `thread` says whose */
    GWT_STREAM_NONE = 4        /* no stream: stands for the device in calls that take none */
};

struct gwt_def_stream {
    uint64_t handle;
    uint8_t type; /* enum gwt_stream_type */
    uint8_t device;
    uint8_t nonblocking; /* created with the non-blocking flag; 0xff: creation was not seen */
    uint8_t spare;
    uint32_t thread; /* thread id, for GWT_STREAM_PER_THREAD */
};

struct gwt_def_thread {
    uint32_t tid; /* kernel thread id */
    uint32_t spare;
    uint64_t pthread; /* pthread_self(), which Python's thread idents are */
};

/* What one launch of an executable graph runs. */
struct gwt_def_graph {
    uint64_t exec; /* handle; a handle may be reused, its graph id is not */
    uint32_t items;
    uint8_t
        exact; /* 0: it holds conditional nodes or could not be walked: counts are lower bounds */
    uint8_t spare[3];
};

struct gwt_graph_item {
    uint8_t kind;      /* GWT_LAUNCH, GWT_COPY, GWT_MEMSET, GWT_HOST_FUNC */
    uint8_t direction; /* enum gwt_direction, for GWT_COPY */
    uint16_t spare;
    uint32_t count;
    uint32_t signature; /* for GWT_LAUNCH */
    uint32_t spare2;
    uint64_t bytes; /* of all `count` together */
};

struct gwt_def_device {
    uint64_t memory_bytes;
    uint32_t sms;
    uint16_t pci_domain;
    uint8_t pci_bus;
    uint8_t pci_device;
    uint16_t pcie_gen; /* current link, from sysfs; 0: unknown */
    uint16_t pcie_width;
    uint16_t cc_major; /* compute capability */
    uint16_t cc_minor;
};

struct gwt_def_comm {
    uint64_t handle;
    int32_t ranks; /* below 1: unknown */
    int32_t rank;  /* -1: unknown */
    /* The same on all its ranks, and no other communicator's: from the unique id, or from its
     * parent's identity, how many that had made before and the colour. 0 (and absent in the
     * first dumps): unknown. */
    uint64_t identity;
};

/* Of the argument of an NCCL event: the communicator's id, and of a send or receive the other
 * rank's number; -1: a collective, or not known. */
#define GWT_COMM_MAX       0xffffu
#define GWT_COMM(arg)      ((arg)&GWT_COMM_MAX)
#define GWT_COMM_PEER(arg) ((int)((arg) >> 16) - 1)

/* A Python stack, innermost frame first. */
#define GWT_STACK_FRAMES_MAX 64u
struct gwt_def_stack {
    uint32_t frames;
    uint32_t spare;
};

struct gwt_stack_frame {
    uint32_t file;     /* string id */
    uint32_t function; /* string id */
    uint32_t line;
    uint32_t spare;
};

/* ---- counters: process-wide, in the ring header and in GWT_FRAME_COUNTERS -- */

#define GWT_COUNTERS(X)                                                                            \
    X(LOOKUPS_WRAPPED, 0, "symbol look-ups answered with a wrapper")                               \
    X(LOOKUPS_PASSED, 1, "CUDA symbol look-ups passed through")                                    \
    X(LOOKUPS_UNKNOWN, 2, "look-ups of a tabled name that gave an unknown address")                \
    X(EXPORT_TABLES, 3, "driver export tables asked for")                                          \
    X(HOLES, 4, "runtime launches without a driver launch")                                        \
    X(UNWALKED_GRAPHS, 5, "executable graphs whose nodes are not known")                           \
    X(POLLS, 6, "event and stream queries")                                                        \
    X(DROPPED, 7, "events dropped because a ring was full")                                        \
    X(NO_RING, 8, "events of threads that got no ring")                                            \
    X(NESTED_SIGNAL, 9, "calls made by a signal handler inside a record")                          \
    X(UNNAMED, 10, "functions whose name could not be learnt")                                     \
    X(SIGNATURES_CAPPED, 11, "launches filed under their function because the table was full")     \
    X(DEFINITIONS_LOST, 12, "definitions that found no room")                                      \
    X(DRAIN_CPU_NS, 13, "CPU time of the drain and the watch, ns")                                 \
    X(SETUP_NS, 14, "time spent inside calls on first-time work, ns")                              \
    X(FRAMES, 15, "frames written")                                                                \
    X(BYTES_WRITTEN, 16, "bytes written to the dump")                                              \
    X(WRITE_ERRNO, 17, "errno of the first failed write; 0: none")                                 \
    X(EVENTS_AGGREGATED, 18, "events kept as per-second sums only")                                \
    X(THREADS, 19, "threads that made a recorded call")                                            \
    X(CALL_NS_X1000, 20, "own cost of one recorded call as measured at start, ns x 1000")          \
    X(UNDECODED, 21, "calls whose operation could not be read from their arguments")               \
    X(SAMPLES, 22, "operations timed on the device")                                               \
    X(SAMPLES_VOID, 23, "of those, without a valid time")                                          \
    X(SAMPLER_GPU_NS, 24, "device time that timing cost, ns")                                      \
    X(SAMPLER_HOST_NS, 25, "time that timing cost inside calls, ns")                               \
    X(STACKS, 26, "Python stacks taken")                                                           \
    X(STACKS_FAILED, 27, "of those, without a frame")                                              \
    X(STACKS_HELD_NS, 28, "time that the interpreter was held for them, ns")

enum gwt_counter {
#define X(name, number, text) GWT_C_##name = number,
    GWT_COUNTERS(X)
#undef X
        GWT_COUNTER_SLOTS = 64
};

/* ---- clock ---------------------------------------------------------------- */

enum gwt_clock { GWT_CLOCK_TSC = 1, GWT_CLOCK_MONOTONIC = 2 /* ticks are ns */ };

struct gwt_triple { /* three clocks read together; conversion is linear between triples */
    uint64_t ticks;
    uint64_t monotonic_ns;
    uint64_t realtime_ns;
};

/* ---- dump file -------------------------------------------------------------- */

#define GWT_MAGIC       "GPUWAIT" /* 8 bytes with its NUL */
#define GWT_FRAME_MAGIC 0x46545747u

struct gwt_file_header { /* 512 bytes, written once at creation */
    char magic[8];
    uint16_t version_major;
    uint16_t version_minor;
    uint32_t header_size; /* frames start here */
    uint64_t features; /* reserved, 0; a reader refuses bits of the upper half it does not know */
    uint32_t pid;
    uint32_t clock;         /* enum gwt_clock */
    uint64_t process_start; /* /proc/self/stat field 22, clock ticks since boot */
    struct gwt_triple start;
    uint8_t boot_id[16];
    char ring_path[256]; /* absolute, NUL-terminated; "" : no ring */
    uint8_t spare[512 - 336];
};

enum gwt_frame_type {
    GWT_FRAME_DEFINITIONS = 1, /* raw bytes [first, first + raw_size) of the definition log */
    GWT_FRAME_EVENTS = 2,      /* `count` records of one thread from sequence number `first` */
    GWT_FRAME_COUNTERS = 3,    /* u64 x GWT_COUNTER_SLOTS: the latest replaces the earlier */
    GWT_FRAME_CLOCK = 4,       /* struct gwt_triple x count */
    GWT_FRAME_AGGREGATE = 5,   /* struct gwt_aggregate x count: what the disk bound left out */
    GWT_FRAME_END = 6,         /* clean end: nothing follows, the ring is gone */
};

/* Tail segments, `<dump>.tail0` and `<dump>.tail1`, exist once the disk bound was met: the
 * dump's header again, then EVENTS frames. They are replaced in turn; an AGGREGATE frame in
 * the dump holds the sums of what a replaced one held. */

enum gwt_codec { GWT_CODEC_RAW = 0, GWT_CODEC_ZSTD = 1, GWT_CODEC_COLUMNS_ZSTD = 2 };

/* Payload of `stored_size` bytes follows. `check` is CRC-32C of the header with
 * check = 0; the payload is a zstd frame with its own content checksum, or for
 * GWT_CODEC_RAW is covered by `payload_check`. */
struct gwt_frame { /* 64 bytes */
    uint32_t magic;
    uint16_t type;  /* enum gwt_frame_type */
    uint16_t codec; /* enum gwt_codec */
    uint32_t thread;
    uint32_t count;
    uint64_t first;
    uint32_t raw_size;
    uint32_t stored_size;
    uint64_t t_first; /* ticks: smallest t0 in the frame */
    uint64_t t_last;  /* ticks: greatest return */
    uint32_t payload_check;
    uint32_t check;
    /* In a tail segment: its number, from 1. In an AGGREGATE frame: every segment up to this
     * one was evicted, so its events count no longer if the segment is still there. Else 0. */
    uint64_t generation;
};

#define GWT_FRAME_RECORDS_MAX 65536u             /* in one EVENTS frame */
#define GWT_FRAME_RAW_MAX     (4u * 1024 * 1024) /* raw_size bound of any frame */

/* Calls of one api in one second, kept where GPUWAIT_MAX left the events out. In a long
 * run whose bound is small, a row covers more than one second. Records that are no calls
 * (GWT_API_PSEUDO + kind) are only numbered. */
struct gwt_aggregate {
    uint64_t second; /* CLOCK_MONOTONIC, at the start of what the row covers */
    uint64_t calls;
    uint64_t ticks; /* sum of durations */
    uint64_t bytes;
    uint16_t api;  /* 0: calls of all the apis for which no row was left */
    uint16_t span; /* seconds */
    uint32_t failed;
};

/* ---- ring file ---------------------------------------------------------------- */

#define GWT_RING_MAGIC   "GWTRING"
#define GWT_THREAD_SLOTS 1024u
#define GWT_DEFLOG_SIZE                                                                            \
    (4u * 1024 * 1024) /* power of two; a window on the log, position modulo size */

enum gwt_slot_state {
    GWT_SLOT_FREE = 0,
    GWT_SLOT_USED = 1,
    GWT_SLOT_CLOSED = 2, /* its thread ended; free again once drained */
};

/* One thread's ring. Producer-written and drain-written words lie on separate
 * 128-byte lines, since adjacent-line prefetch makes pairs of 64 share. */
struct gwt_slot { /* 512 bytes */
    /* written when the slot is taken, before state becomes USED */
    uint32_t state;        /* enum gwt_slot_state */
    uint32_t thread;       /* thread id: unique in the process, never reused */
    uint64_t ring_offset;  /* of its records in the ring file */
    uint32_t ring_records; /* capacity, a power of two */
    uint32_t tid;
    uint8_t pad0[128 - 24];
    /* producer's line */
    uint64_t head; /* records ever published; record n is at n modulo capacity */
    uint64_t lost; /* records dropped, ever */
    uint8_t pad1[128 - 16];
    /* producer's line: the call that the thread is inside if open_t0 > returned */
    uint64_t open_t0;
    uint16_t open_api;
    uint16_t open_spare[3];
    uint64_t returned; /* ticks: return of its last recorded call; 0: none, or not known */
    uint8_t pad2[128 - 24];
    /* drain's line */
    uint64_t tail; /* records that are in the dump */
    uint8_t pad3[128 - 8];
};

struct gwt_ring_header { /* 4096 bytes; then slots; then the definition log; then rings */
    char magic[8];
    uint16_t version_major;
    uint16_t version_minor;
    uint32_t header_size;
    uint32_t pid;
    uint32_t clock;
    uint64_t process_start;
    struct gwt_triple start;
    uint32_t slots;
    uint32_t slot_size;
    uint64_t slots_offset;
    uint64_t deflog_offset;
    uint64_t deflog_size;
    char dump_path[256];
    uint8_t boot_id[16];
    uint8_t pad0[512 - 360];
    struct gwt_triple
        now; /* renewed by the drain thread; `now_seq` odd while it is being written */
    uint64_t now_seq;
    uint8_t pad1[512 - 32];
    uint64_t deflog_head; /* bytes ever appended; published after the bytes themselves */
    uint8_t pad2[128 - 8];
    uint64_t deflog_tail; /* bytes that are in the dump */
    uint8_t pad3[128 - 8];
    uint64_t counters[GWT_COUNTER_SLOTS];
    uint8_t pad4[4096 - 1792];
};

_Static_assert(sizeof(struct gwt_record) == 32, "record");
_Static_assert(offsetof(struct gwt_record, api) == 12, "record.api");
_Static_assert(offsetof(struct gwt_record, stream) == 16, "record.stream");
_Static_assert(offsetof(struct gwt_record, arg) == 20, "record.arg");
_Static_assert(offsetof(struct gwt_record, value) == 24, "record.value");
_Static_assert(sizeof(struct gwt_record_allocator) == 32, "allocator record");
_Static_assert(offsetof(struct gwt_record_allocator, api) == offsetof(struct gwt_record, api),
               "both records name their kind in the same place");
_Static_assert(offsetof(struct gwt_record_allocator, address) == 16, "allocator.address");
_Static_assert(offsetof(struct gwt_record_allocator, allocated) == 24, "allocator.allocated");
_Static_assert(sizeof(struct gwt_record_sample) == 32, "sample record");
_Static_assert(offsetof(struct gwt_record_sample, api) == offsetof(struct gwt_record, api),
               "all records name their kind in the same place");
_Static_assert(offsetof(struct gwt_record_sample, stream) == 16, "sample.stream");
_Static_assert(sizeof(struct gwt_record_section) == 32, "section record");
_Static_assert(offsetof(struct gwt_record_section, api) == offsetof(struct gwt_record, api),
               "all records name their kind in the same place");
_Static_assert(offsetof(struct gwt_record_section, cpu_us) == 20, "section.cpu_us");
_Static_assert(offsetof(struct gwt_record_section, process_cpu_us) == 24, "section.process_cpu_us");
_Static_assert(sizeof(struct gwt_def) == 16, "def");
_Static_assert(sizeof(struct gwt_def_api) == 4, "def_api");
_Static_assert(sizeof(struct gwt_def_signature) == 32, "def_signature");
_Static_assert(sizeof(struct gwt_def_stream) == 16, "def_stream");
_Static_assert(sizeof(struct gwt_def_thread) == 16, "def_thread");
_Static_assert(sizeof(struct gwt_def_graph) == 16, "def_graph");
_Static_assert(sizeof(struct gwt_graph_item) == 24, "graph_item");
_Static_assert(sizeof(struct gwt_def_device) == 24, "def_device");
_Static_assert(sizeof(struct gwt_def_comm) == 24, "def_comm");
_Static_assert(offsetof(struct gwt_def_comm, identity) == 16, "def_comm.identity");
_Static_assert(sizeof(struct gwt_def_stack) == 8, "def_stack");
_Static_assert(sizeof(struct gwt_stack_frame) == 16, "stack_frame");
_Static_assert(sizeof(struct gwt_triple) == 24, "triple");
_Static_assert(sizeof(struct gwt_file_header) == 512, "file header");
_Static_assert(offsetof(struct gwt_file_header, start) == 40, "file header.start");
_Static_assert(offsetof(struct gwt_file_header, ring_path) == 80, "file header.ring_path");
_Static_assert(sizeof(struct gwt_frame) == 64, "frame");
_Static_assert(offsetof(struct gwt_frame, first) == 16, "frame.first");
_Static_assert(offsetof(struct gwt_frame, t_first) == 32, "frame.t_first");
_Static_assert(offsetof(struct gwt_frame, check) == 52, "frame.check");
_Static_assert(sizeof(struct gwt_aggregate) == 40, "aggregate");
_Static_assert(sizeof(struct gwt_slot) == 512, "slot");
_Static_assert(offsetof(struct gwt_slot, head) == 128, "slot.head");
_Static_assert(offsetof(struct gwt_slot, open_t0) == 256, "slot.open_t0");
_Static_assert(offsetof(struct gwt_slot, returned) == 272, "slot.returned");
_Static_assert(offsetof(struct gwt_slot, tail) == 384, "slot.tail");
_Static_assert(sizeof(struct gwt_ring_header) == 4096, "ring header");
_Static_assert(offsetof(struct gwt_ring_header, now) == 512, "ring header.now");
_Static_assert(offsetof(struct gwt_ring_header, deflog_head) == 1024, "ring header.deflog_head");
_Static_assert(offsetof(struct gwt_ring_header, deflog_tail) == 1152, "ring header.deflog_tail");
_Static_assert(offsetof(struct gwt_ring_header, counters) == 1280, "ring header.counters");

#endif
