/* One pass over all frames: where events are, and what everything else says. */
#include "reader_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What frames other than EVENTS may unfold to, all together: this and a multiple of the files'
 * size. Definitions compress about ten-fold. */
#define INFLATE_LEAST  (16u * 1024 * 1024)
#define INFLATE_FACTOR 16u

struct chunk { /* a DEFINITIONS frame */
    struct gwt_frame frame;
    uint64_t offset;
};

/* What the pass over all frames leaves behind for later. */
struct pass {
    struct scan scan;
    uint64_t inflate; /* bytes that may still be unfolded */
    uint64_t evicted; /* the latest generation that is in the aggregates */
    struct gwt_frame counters;
    uint64_t counters_offset;
    struct chunk *chunks;
    size_t chunks_count, chunks_room;
    size_t aggregates_room;
};

static int add_source(struct gwt_trace *t, const struct source *s)
{
    int rc = gwt_reserve(&t->sources, &t->sources_room, t->sources_count, 1, sizeof(*s));

    /* cursors index them with 32 bits */
    if (rc || t->sources_count == UINT32_MAX)
        return -ENOMEM;
    t->sources[t->sources_count++] = *s;
    return 0;
}

/* post: 0 and *raw to be freed; -EBADMSG (past the budget, too) or -ENOMEM. */
static int unfold(struct gwt_trace *t, struct pass *p, const struct gwt_frame *frame,
                  uint64_t offset, void **raw)
{
    int rc;

    *raw = NULL;
    if (frame->raw_size > p->inflate)
        return -EBADMSG;
    p->inflate -= frame->raw_size;
    *raw = malloc(frame->raw_size ? frame->raw_size : 1);
    if (!*raw)
        return -ENOMEM;
    rc = gwt_frame_bytes(t->fd[FILE_HEAD], offset, frame, *raw);
    if (rc) {
        free(*raw);
        *raw = NULL;
    }
    return rc;
}

static int take_aggregates(struct gwt_trace *t, struct pass *p, const struct gwt_frame *frame,
                           const struct gwt_aggregate *rows)
{
    int rc = gwt_reserve(&t->aggregates, &p->aggregates_room, t->aggregates_count, frame->count,
                         sizeof(*rows));

    if (rc)
        return rc;
    for (uint32_t i = 0; i < frame->count; i++) {
        t->aggregates[t->aggregates_count++] = rows[i];
        t->coverage.aggregated += rows[i].calls;
    }
    if (frame->generation > p->evicted)
        p->evicted = frame->generation;
    return 0;
}

static int take_head_frame(struct gwt_trace *t, struct pass *p, const struct gwt_frame *frame,
                           uint64_t offset)
{
    void *raw = NULL;
    int rc = 0;

    switch (frame->type) {
    case GWT_FRAME_DEFINITIONS:
        rc = gwt_reserve(&p->chunks, &p->chunks_room, p->chunks_count, 1, sizeof(*p->chunks));
        if (!rc)
            p->chunks[p->chunks_count++] = (struct chunk){*frame, offset};
        return rc;
    case GWT_FRAME_COUNTERS: /* only the last will be looked at */
        p->counters = *frame;
        p->counters_offset = offset;
        return 0;
    case GWT_FRAME_CLOCK:
    case GWT_FRAME_AGGREGATE:
        rc = unfold(t, p, frame, offset, &raw);
        if (!rc && frame->type == GWT_FRAME_CLOCK)
            rc = gwt_clock_add(&t->clock, raw, frame->count);
        else if (!rc)
            rc = take_aggregates(t, p, frame, raw);
        free(raw);
        if (rc == -EBADMSG) {
            t->coverage.bad_frames++;
            rc = 0;
        }
        return rc;
    case GWT_FRAME_END:
        t->coverage.ended = true;
        return 0;
    default:
        return 0;
    }
}

static int take_frames(struct gwt_trace *t, struct pass *p, uint8_t file)
{
    struct gwt_frame frame;
    uint64_t offset;
    int rc = 0;

    gwt_scan_start(&p->scan, t->fd[file], t->size[file], t->header.header_size);
    while (!rc && gwt_scan_next(&p->scan, &frame, &offset)) {
        struct source s = {
            .first = frame.first,
            .offset = offset,
            .t_first = frame.t_first,
            .thread = frame.thread,
            .count = frame.count,
            .stored = frame.stored_size,
            .payload_check = frame.payload_check,
            .codec = (uint8_t)frame.codec,
            .file = file,
        };

        if (frame.type != GWT_FRAME_EVENTS)
            rc = file == FILE_HEAD ? take_head_frame(t, p, &frame, offset) : 0;
        else if (file == FILE_HEAD || frame.generation > p->evicted)
            rc = add_source(t, &s);
    }
    t->coverage.bad_frames += p->scan.bad_frames;
    t->coverage.bad_bytes += p->scan.bad_bytes;
    t->coverage.torn |= p->scan.torn;
    return rc;
}

static int take_ring(struct gwt_trace *t)
{
    int rc = 0;

    for (size_t i = 0; i < t->ring.slots_count && !rc; i++) {
        const struct ring_slot *slot = &t->ring.slots[i];
        struct source s = {
            .first = slot->first,
            .offset = slot->at,
            .thread = slot->thread,
            .count = slot->count,
            .file = FILE_RING,
        };

        if (!slot->count || slot->first > UINT64_MAX - slot->count)
            continue;
        s.t_first = t->ring.records[slot->at].t0;
        rc = add_source(t, &s);
    }
    return rc;
}

/* ---- definitions -------------------------------------------------------------------------- */

static int by_first(const void *a, const void *b)
{
    const struct chunk *x = a, *y = b;

    if (x->frame.first != y->frame.first)
        return x->frame.first < y->frame.first ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

struct log { /* the part of it that was not parsed yet */
    uint8_t *bytes;
    size_t have, room;
    uint64_t at; /* position of the byte behind it */
};

/* Bytes [first, first + size) of the log. The drain thread writes whole entries, so that a
 * chunk starts with one: where bytes are missing, the next chunk is a place to go on from.
 * Between chunks without a gap an entry may straddle all the same. */
static int log_feed(struct gwt_trace *t, struct log *log, uint64_t first, const uint8_t *bytes,
                    size_t size)
{
    long used;

    if (!size || first + size <= log->at)
        return 0;
    if (first < log->at) {
        bytes += log->at - first;
        size -= (size_t)(log->at - first);
        first = log->at;
    }
    if (first > log->at)
        log->have = 0;
    if (gwt_reserve(&log->bytes, &log->room, log->have, size, 1))
        return -ENOMEM;
    memcpy(log->bytes + log->have, bytes, size);
    log->have += size;
    log->at = first + size;
    used = gwt_defs_parse(&t->defs, log->bytes, log->have);
    if (used < 0)
        return (int)used;
    log->have -= (size_t)used;
    memmove(log->bytes, log->bytes + used, log->have);
    return 0;
}

static int read_definitions(struct gwt_trace *t, struct pass *p)
{
    struct ring *r = &t->ring;
    struct log log = {0};
    int rc = 0;

    gwt_defs_start(&t->defs);
    if (p->chunks_count)
        qsort(p->chunks, p->chunks_count, sizeof(*p->chunks), by_first);
    for (size_t i = 0; i < p->chunks_count && !rc; i++) {
        const struct gwt_frame *frame = &p->chunks[i].frame;
        void *raw;

        rc = unfold(t, p, frame, p->chunks[i].offset, &raw);
        if (!rc)
            rc = log_feed(t, &log, frame->first, raw, frame->raw_size);
        free(raw);
        if (rc == -EBADMSG) {
            t->coverage.bad_frames++;
            rc = 0;
        }
    }
    if (!rc && r->log) {
        uint64_t from = log.at;

        if (from < r->log_sound) /* what lies between is lost: the tail is between entries */
            from = r->log_tail > r->log_sound ? r->log_tail : r->log_to;
        if (from >= r->log_from && from < r->log_to)
            rc = log_feed(t, &log, from, r->log + (from - r->log_from), (size_t)(r->log_to - from));
    }
    free(log.bytes);
    return rc;
}

/* ---- the rest ----------------------------------------------------------------------------- */

static void read_counters(struct gwt_trace *t, struct pass *p)
{
    void *raw = NULL;

    if (p->counters.type) {
        size_t n = p->counters.raw_size;

        if (unfold(t, p, &p->counters, p->counters_offset, &raw))
            t->coverage.bad_frames++;
        else
            memcpy(t->counters, raw, n < sizeof(t->counters) ? n : sizeof(t->counters));
        free(raw);
    }
    /* They only grow, and either may be the newer. */
    for (int i = 0; t->ring.fd >= 0 && i < GWT_COUNTER_SLOTS; i++)
        if (t->counters[i] < t->ring.header.counters[i])
            t->counters[i] = t->ring.header.counters[i];
}

static int read_clock(struct gwt_trace *t)
{
    const char *hz = gwt_fact(t, "tsc_hz");
    int rc = gwt_clock_add(&t->clock, &t->header.start, 1);

    if (!rc && t->ring.fd >= 0 && t->ring.now_valid) {
        rc = gwt_clock_add(&t->clock, &t->ring.header.now, 1);
        t->coverage.seen_ns = (int64_t)t->ring.header.now.monotonic_ns;
    }
    if (!rc)
        gwt_clock_ready(&t->clock, t->header.clock, hz ? strtod(hz, NULL) : 0);
    return rc;
}

int gwt_index(struct gwt_trace *t)
{
    struct pass *p = calloc(1, sizeof(*p));
    int rc = 0;

    if (!p)
        return -ENOMEM;
    for (int i = 0; i < FILES; i++)
        t->coverage.dump_bytes += t->size[i];
    p->inflate = INFLATE_LEAST + INFLATE_FACTOR * t->coverage.dump_bytes;
    for (uint8_t i = 0; i < FILES && !rc; i++) /* the head first: it says what was evicted */
        if (t->fd[i] >= 0)
            rc = take_frames(t, p, i);
    if (!rc)
        rc = take_ring(t);
    if (!rc)
        rc = read_definitions(t, p);
    if (!rc)
        read_counters(t, p);
    if (!rc)
        rc = read_clock(t);
    t->coverage.bad_frames += t->ring.bad + t->defs.bad;
    free(p->chunks);
    free(p);
    return rc;
}
