/* gpuwait/trace.h: read what libgpuwait.so recorded.
 *
 * One struct gwt_trace is one process's recording: a .gwt file and, while the job
 * runs or after it was killed, its .ring file. Opening takes a snapshot, so that a
 * live job reads the same way as a finished one.
 *
 *     struct gwt_error error;
 *     struct gwt_trace *trace;
 *     struct gwt_event event;
 *     struct gwt_signature_info kernel;
 *
 *     if (gwt_open("gpuwait.trace/node7-4242-1f2e.gwt", &trace, &error))
 *         errx(2, "%s", error.text);
 *     while (gwt_next(trace, &event))
 *         if (event.kind == GWT_LAUNCH && gwt_signature(trace, event.arg, &kernel))
 *             printf("%lld ns %s\n", (long long)event.t0_ns, kernel.name ? kernel.name : "?");
 *     gwt_close(trace);
 *
 * Link with -lgpuwait-trace -lzstd. tests/unit/example.c is a whole program.
 *
 * Errors: functions return 0 or a negative errno; where a struct gwt_error is
 * passed it then holds one line that says what, where and what to do.
 *   -EBADMSG     not a dump, or damaged beyond its header
 *   -EPROTO      a dump of a newer major version
 *   -ENODATA     a directory without a dump (a dump without an event opens: its coverage says 0)
 * Every byte of the files is untrusted: a damaged part is skipped, counted in
 * struct gwt_coverage, and never trusted.
 * Ownership: pointers returned by accessors belong to the trace and live until
 * gwt_close(). Strings are NUL-terminated and hold arbitrary bytes otherwise: escape
 * them before printing to a terminal.
 * Threads: one at a time may read events or rewind; meanwhile others may ask for definitions.
 */
#ifndef GPUWAIT_TRACE_H
#define GPUWAIT_TRACE_H

#include <gpuwait/format.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gwt_trace;

struct gwt_error {
    char text[512];
};

/* How much of the recording is here. What a damaged frame costs is known once it is read: the
 * figures are final when gwt_next() has returned 0. */
struct gwt_coverage {
    bool ended;          /* the process closed its dump */
    bool ring;           /* a ring file was read: the job runs or was killed */
    bool alive;          /* the process is running now (same boot, pid and start time) */
    bool torn;           /* the last frame was cut short, and nobody is writing it now */
    bool ring_missing;   /* not ended, and the ring file named in the dump could not be read */
    uint64_t events;     /* events readable */
    uint64_t from_ring;  /* of those, found in the ring only */
    uint64_t missing;    /* sequence numbers that neither frames, ring nor sums hold */
    uint64_t bad_frames; /* frames, definitions, ring slots skipped: bad check, size or content */
    uint64_t bad_bytes;  /* bytes skipped while looking for the next frame */
    uint64_t dropped;    /* events that the recorder says it dropped (LOST records, counters) */
    uint64_t aggregated; /* events kept as per-second sums only */
    uint64_t dump_bytes; /* size of the .gwt file (with its tail segments) */
    int64_t seen_ns;     /* not ended: when its recorder last said that it lives; 0: unknown */
};

/* One event, clocks converted. Which fields mean what depends on kind: see format.h. */
struct gwt_event {
    int64_t t0_ns; /* CLOCK_MONOTONIC of the recording host, at entry */
    int64_t t1_ns; /* at return; = t0_ns where there is no call (ALLOCATOR, SAMPLE, ranges ...) */
    uint32_t thread;
    uint16_t api;
    uint16_t flags;
    uint16_t stream;
    uint16_t status;
    uint8_t kind;   /* enum gwt_kind */
    uint8_t level;  /* enum gwt_level */
    uint8_t device; /* CUDA ordinal; 0xff: unknown */
    uint8_t spare;
    uint32_t arg;
    uint64_t value;
    uint64_t seq; /* within its thread */
    /* ALLOCATOR; of a SECTION gwt_section_of() reads them */
    int64_t size;
    uint64_t allocated;
    uint64_t reserved;
    /* SAMPLE: ns between the two events, the class's constant included (0: void).
     * CONSTANT: standard deviation of the measurements in ps. Else 0. */
    uint32_t raw;
};

/* What the clocks say of a SECTION: of its last `measured_ns`. */
struct gwt_section {
    int64_t measured_ns, cpu_ns, process_cpu_ns;
    unsigned voluntary, involuntary; /* context switches; 0xffff: that many or more */
};
/* pre: e is a SECTION. */
static inline struct gwt_section gwt_section_of(const struct gwt_event *e)
{
    return (struct gwt_section){.measured_ns = (int64_t)e->allocated,
                                .cpu_ns = (int64_t)e->value,
                                .process_cpu_ns = e->size,
                                .voluntary = e->arg & 0xffff,
                                .involuntary = e->arg >> 16};
}

/* pre:  path names a .gwt file.
 * post: 0 and *out to be freed by gwt_close(), or negative and *out = NULL. */
int gwt_open(const char *path, struct gwt_trace **out, struct gwt_error *error);
void gwt_close(struct gwt_trace *trace);

/* pre:  path names a .gwt file or a directory.
 * post: 0 and a NULL-terminated list, sorted by name, to be freed by gwt_list_free(). */
int gwt_list(const char *path, char ***out, struct gwt_error *error);
void gwt_list_free(char **list);

/* Next event of all threads, by time of return (calls nested in another come first).
 * post: 1 and *event, or 0 at the end. Damage never ends the iteration early. */
int gwt_next(struct gwt_trace *trace, struct gwt_event *event);
/* Many at once, which costs less.
 * post: how many were read into `events`; fewer than `room`: there are no more. */
size_t gwt_read(struct gwt_trace *trace, struct gwt_event *events, size_t room);
void gwt_rewind(struct gwt_trace *trace);

const struct gwt_coverage *gwt_coverage(const struct gwt_trace *trace);
const struct gwt_file_header *gwt_header(const struct gwt_trace *trace);
uint64_t gwt_counter(const struct gwt_trace *trace, enum gwt_counter counter);

/* ---- definitions: NULL or 0 where the id is unknown ---------------------- */

struct gwt_signature_info {
    const char *name; /* mangled, as the driver gives it; NULL: unknown */
    uint32_t name_id;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared;
};

struct gwt_thread_info {
    uint32_t id;
    uint32_t tid;
    uint64_t pthread;
    const char *name;
    /* the call that it is, or was when killed, inside: NULL if none or ended cleanly */
    const char *open_api;
    int64_t open_since_ns;
};

struct gwt_graph_info {
    const struct gwt_def_graph *graph;
    const struct gwt_graph_item *items;
};

struct gwt_stack_info {
    const struct gwt_stack_frame *frames; /* innermost first; texts by gwt_string() */
    size_t count;
};

const char *gwt_fact(const struct gwt_trace *trace, const char *key);
/* index from 0; post: false past the last */
bool gwt_fact_at(const struct gwt_trace *trace, size_t index, const char **key, const char **value);
const char *gwt_string(const struct gwt_trace *trace, uint32_t id);
const char *gwt_api_name(const struct gwt_trace *trace, uint16_t api);
const char *gwt_kind_name(enum gwt_kind kind); /* as in GWT_KINDS: "LAUNCH" */
bool gwt_signature(const struct gwt_trace *trace, uint32_t id, struct gwt_signature_info *out);
const struct gwt_def_stream *gwt_stream(const struct gwt_trace *trace, uint16_t id);
bool gwt_graph(const struct gwt_trace *trace, uint32_t id, struct gwt_graph_info *out);
const struct gwt_def_device *gwt_device(const struct gwt_trace *trace, unsigned ordinal,
                                        const char **name);
const struct gwt_def_comm *gwt_comm(const struct gwt_trace *trace, uint32_t id);
bool gwt_stack(const struct gwt_trace *trace, uint32_t id, struct gwt_stack_info *out);
bool gwt_thread_at(const struct gwt_trace *trace, size_t index, struct gwt_thread_info *out);
bool gwt_thread(const struct gwt_trace *trace, uint32_t id, struct gwt_thread_info *out);

/* Per-second sums of what GPUWAIT_MAX left out; index from 0. */
const struct gwt_aggregate *gwt_aggregate_at(const struct gwt_trace *trace, size_t index);

#ifdef __cplusplus
}
#endif
#endif
