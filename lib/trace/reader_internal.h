/* The reader's parts, in the order of gwt_open(): reader.c (interface, coverage), snapshot.c
 * and ring.c (what is there at one moment), index.c (one pass over all frames) with frames.c
 * (finding them in a damaged file), defs.c (tables from the definition log) and clock.c; then
 * merge.c (gwt_read).
 *
 * Everything read is untrusted. Memory stays within a small multiple of the input: event
 * frames are decoded a few at a time (merge.c), and all other frames share one budget. */
#ifndef GW_TRACE_READER_INTERNAL_H
#define GW_TRACE_READER_INTERNAL_H

#include "codec.h"

#include <gpuwait/trace.h>

#include <stdarg.h>
#include <sys/types.h>

#define GWT_ID_MAX (1u << 24)

/* ---- error text --------------------------------------------------------------------------- */

/* post: code, for `return gwt_fail(...)`. */
int gwt_fail(struct gwt_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- clock.c ------------------------------------------------------------------------------ */

struct stretch {         /* in which one line holds */
    uint64_t from, span; /* [from, from + span) */
    uint64_t base_ticks; /* one of its ends, at */
    int64_t base_ns;
    double slope;
    bool near; /* no time of it is further than GWT_FAR_NS from that */
};

struct clock {
    bool ticks_are_ns;
    struct gwt_triple *triples; /* in order, ticks strictly so */
    size_t count, room;
    double per_tick;   /* ns, over all triples: outside of them, and for the ends of the run */
    struct stretch at; /* of the latest conversion */
};

int gwt_clock_add(struct clock *c, const struct gwt_triple *triples, size_t count);
/* Once, after the last gwt_clock_add(). hz: ticks per second if the triples do not say. */
void gwt_clock_ready(struct clock *c, uint32_t clock, double hz);
void gwt_clock_seek(struct clock *c, uint64_t ticks);
void gwt_clock_free(struct clock *c);

#define GWT_FAR_NS ((int64_t)1 << 60)

/* A line from the triple before to the triple after. Nonsense gives nonsense, but defined.
 * at: a copy of c->at, post: still so. */
static inline int64_t gwt_clock_ns_at(struct clock *c, struct stretch *at, uint64_t ticks)
{
    double ns;

    if (__builtin_expect(ticks - at->from >= at->span, 0)) {
        gwt_clock_seek(c, ticks);
        *at = c->at;
    }
    ns = (double)(int64_t)(ticks - at->base_ticks) * at->slope;
    if (__builtin_expect(at->near, 1))
        return at->base_ns + (int64_t)ns;
    if (!(ns > -(double)GWT_FAR_NS))
        ns = -(double)GWT_FAR_NS;
    if (ns > (double)GWT_FAR_NS)
        ns = (double)GWT_FAR_NS;
    return at->base_ns + (int64_t)ns;
}

static inline int64_t gwt_clock_ns(struct clock *c, uint64_t ticks)
{
    struct stretch at = c->at;

    return gwt_clock_ns_at(c, &at, ticks);
}

/* ---- frames.c ----------------------------------------------------------------------------- */

#define GWT_WINDOW (64u * 1024)

struct scan {
    int fd;
    uint64_t size;   /* of the file when the snapshot was taken: later bytes are not looked at */
    uint64_t at;     /* where the next frame should be */
    uint64_t resync; /* where to look for one if it is not there */
    uint64_t bad_frames, bad_bytes;
    bool torn;
    uint64_t window_at;
    size_t window_size;
    uint8_t window[GWT_WINDOW];
};

/* pre:  the file's header is `header_size` bytes long. */
void gwt_scan_start(struct scan *s, int fd, uint64_t size, uint64_t header_size);
/* post: 1, *frame sound (sizes, counts, codec fit its type) and *offset of its payload; or 0. */
int gwt_scan_next(struct scan *s, struct gwt_frame *frame, uint64_t *offset);
/* pre:  raw has frame->raw_size bytes, not an EVENTS frame.
 * post: 0 or -EBADMSG, -ENOMEM. */
int gwt_frame_bytes(int fd, uint64_t offset, const struct gwt_frame *frame, void *raw);
/* post: 0 or -EBADMSG (the file is shorter than that), -errno. */
int gwt_read_at(int fd, uint64_t offset, void *out, size_t size);

/* ---- defs.c
 * -------------------------------------------------------------------------------------- */

struct def { /* payload follows, then a NUL */
    uint32_t size;
    uint32_t id;
    uint8_t bytes[];
};

struct arena_block;

struct defs {
    struct arena_block *blocks;
    struct def **table; /* open addressing; room is a power of two, 0 at first */
    uint64_t *keys;     /* type and id of each */
    size_t count, room;
    struct {
        const char *key, *value;
    } * facts;
    size_t facts_count;
    uint64_t bad; /* entries that make no sense */
    /* what every event needs, without a look-up */
    uint8_t kind[65536], level[65536], device[65536];
};

void gwt_defs_start(struct defs *d);
void gwt_defs_free(struct defs *d);
/* Entries in [bytes, bytes + size). post: bytes used; the rest is part of an entry; or -ENOMEM. */
long gwt_defs_parse(struct defs *d, const uint8_t *bytes, size_t size);
const struct def *gwt_def(const struct defs *d, enum gwt_def_type type, uint32_t id);
/* The ids of all definitions of a type, unordered: *cursor is 0 at first. post: 0 past the last */
uint32_t gwt_defs_next(const struct defs *d, enum gwt_def_type type, size_t *cursor);

/* ---- ring.c
 * ---------------------------------------------------------------------------------------- */

struct ring_slot {
    uint32_t thread;
    uint64_t first; /* sequence number of its first record here */
    size_t at;      /* in records */
    uint32_t count;
    uint64_t open_t0;
    uint16_t open_api;
};

struct ring {
    int fd; /* -1: none */
    uint64_t size;
    struct gwt_ring_header header;
    bool now_valid;
    struct gwt_record *records;
    size_t records_count, records_room;
    struct ring_slot *slots;
    size_t slots_count;
    uint8_t *log; /* copy of the definition log's window: positions [log_from, log_to) */
    uint64_t log_from, log_to;
    uint64_t log_sound; /* before this one bytes may have been overwritten while copying */
    uint64_t log_tail;
    uint64_t lost; /* by the slots' counts */
    uint64_t bad;  /* slots that make no sense */
};

/* Before the dump's frames are looked at.
 * post: 0 and r->fd >= 0 if the ring is there and belongs to `dump`; -errno if not; -ENOMEM. */
int gwt_ring_read(struct ring *r, const char *path, const struct gwt_file_header *dump);
/* After. post: 0 or -ENOMEM; r->log is NULL if it cannot be read. */
int gwt_ring_read_log(struct ring *r);
void gwt_ring_free(struct ring *r);

/* ---- the trace
 * ------------------------------------------------------------------------------------------ */

enum { FILE_HEAD, FILE_TAIL0, FILE_TAIL1, FILES, FILE_RING = FILES };

struct source { /* of events: a frame, or what a ring holds of one thread */
    uint64_t first;
    uint64_t offset; /* of the payload in its file, or of the first record in the ring's copy */
    uint64_t t_first;
    uint32_t thread;
    uint32_t count;
    uint32_t stored;
    uint32_t payload_check;
    uint8_t codec;
    uint8_t file;
    bool bad;
};

struct cursor { /* of one thread that has events */
    uint32_t thread;
    uint32_t sources_from, sources_to;
    uint32_t source;   /* the one being read; = sources_to: none is left */
    uint32_t pos, len; /* in records */
    const struct gwt_record *records;
    struct gwt_record *owned; /* records, if they are the cursor's own */
    uint32_t owned_count, owned_room;
    uint64_t seq; /* of records[pos], or the least that may come next */
    uint64_t key; /* latest return so far */
};

struct heap_node {
    uint64_t key;
    uint32_t cursor;
};

struct gwt_trace {
    char *path;
    struct gwt_file_header header;
    int fd[FILES];
    uint64_t size[FILES];
    struct ring ring;
    struct gwt_coverage coverage;
    uint64_t counters[GWT_COUNTER_SLOTS];
    struct clock clock;
    struct defs defs;
    struct gwt_aggregate *aggregates;
    size_t aggregates_count;
    uint32_t *threads; /* ids, ascending */
    size_t threads_count;

    struct source *sources; /* by thread, then sequence number */
    size_t sources_count, sources_room;
    uint64_t gaps; /* sequence numbers that no source holds */

    /* merge.c */
    struct cursor *cursors;
    size_t cursors_count;
    struct heap_node *heap;
    size_t heap_count;
    uint64_t limit; /* the least key of the others: up to it no look at the heap is due */
    uint64_t held;  /* records in the cursors' own memory */
    void *stored;   /* one frame, */
    struct gwt_decoder *decoder;
    struct gwt_record *decoded; /* and its records, where they are sliced */
    size_t decoded_count;
    struct gwt_record *spare; /* what a cursor left */
    uint32_t spare_room;
    struct clock at; /* the clock, with a place of its own in the run */
    uint64_t lost_seen;
};

/* snapshot.c. post: 0 or -ENOMEM; what could not be read is absent. */
int gwt_snapshot(struct gwt_trace *t);
/* index.c: sources (unsorted), definitions, clock, counters, aggregates. post: 0 or -ENOMEM. */
int gwt_index(struct gwt_trace *t);
/* `array` is the address of a pointer. post: `count` more elements fit, or -ENOMEM. */
int gwt_reserve(void *array, size_t *room, size_t have, size_t count, size_t each);
/* Counts what a thread's sources hold into t->coverage and t->gaps, times `sign`. */
void gwt_account(struct gwt_trace *t, const struct cursor *c, int sign);
/* Coverage that follows from the others. */
void gwt_account_done(struct gwt_trace *t);
int gwt_merge_start(struct gwt_trace *t);
void gwt_merge_free(struct gwt_trace *t);

#endif
