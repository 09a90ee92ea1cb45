/* gwt_read(): all threads' events by time of return.
 *
 * Each thread's sources are in order of sequence numbers, and within a thread records are in
 * order of return, so this is a k-way merge over a heap of threads. A frame is decoded when
 * its turn comes: until then its thread's place in the heap is a lower bound, the frame's
 * earliest entry. So only threads that run at the same time hold memory, and if those are
 * many, each holds but a slice of its frame, which is decoded again for the next slice.
 */
#include "reader_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HELD_MAX (2u * 1024 * 1024) /* records, 64 MiB; beyond that, slices: */
#define SLICE    512u /* at least; with few threads, their share of a quarter as much more */

static uint64_t return_of(const struct gwt_record *r)
{
    return r->t0 + gwt_record_ticks(r);
}

/* ---- the heap ----------------------------------------------------------------------------- */

static void sift(struct gwt_trace *t, size_t i)
{
    struct heap_node node = t->heap[i];

    for (;;) {
        size_t child = 2 * i + 1;

        if (child >= t->heap_count)
            break;
        if (child + 1 < t->heap_count && t->heap[child + 1].key < t->heap[child].key)
            child++;
        if (t->heap[child].key >= node.key)
            break;
        t->heap[i] = t->heap[child];
        i = child;
    }
    t->heap[i] = node;
}

/* The top's key has grown, or the top is new. */
static void settle(struct gwt_trace *t)
{
    sift(t, 0);
    t->limit = UINT64_MAX;
    for (size_t i = 1; i < 3 && i < t->heap_count; i++)
        if (t->heap[i].key < t->limit)
            t->limit = t->heap[i].key;
}

static void drop_top(struct gwt_trace *t)
{
    t->heap[0] = t->heap[--t->heap_count];
    if (t->heap_count)
        settle(t);
}

/* ---- sources ------------------------------------------------------------------------------ */

/* One buffer is kept: the next frame most likely fits. */
static void release(struct gwt_trace *t, struct cursor *c)
{
    if (c->owned) {
        t->held -= c->owned_count;
        if (c->owned_room > t->spare_room) {
            free(t->spare);
            t->spare = c->owned;
            t->spare_room = c->owned_room;
        } else {
            free(c->owned);
        }
    }
    c->owned = NULL;
    c->records = NULL;
    c->pos = c->len = 0;
}

/* post: room for `count` records of the cursor's own, or -ENOMEM. */
static int own(struct gwt_trace *t, struct cursor *c, uint32_t count)
{
    if (t->spare_room >= count) {
        c->owned = t->spare;
        c->owned_room = t->spare_room;
        t->spare = NULL;
        t->spare_room = 0;
    } else {
        c->owned = malloc(count * sizeof(*c->owned));
        c->owned_room = count;
        if (!c->owned)
            return -ENOMEM;
    }
    c->owned_count = count;
    t->held += count;
    return 0;
}

/* post: `to` holds the source's records; 0 or negative. */
static int decode(struct gwt_trace *t, const struct source *s, struct gwt_record *to)
{
    int fd = t->fd[s->file], rc;

    if (s->codec == GWT_CODEC_RAW) {
        rc = gwt_read_at(fd, s->offset, to, s->count * sizeof(*to));
        if (!rc && gwt_crc32c(to, s->count * sizeof(*to)) != s->payload_check)
            rc = -EBADMSG;
        return rc;
    }
    rc = gwt_read_at(fd, s->offset, t->stored, s->stored);
    return rc ? rc : gwt_decode_records(t->decoder, t->stored, s->stored, to, s->count);
}

/* post: c->owned holds `count` records of the source from `skip` on; 0 or negative. */
static int slice(struct gwt_trace *t, struct cursor *c, uint32_t skip, uint32_t count)
{
    const struct source *s = &t->sources[c->source];
    int rc;

    if (!t->decoded) {
        t->decoded = malloc(t->decoded_count * sizeof(*t->decoded));
        if (!t->decoded)
            return -ENOMEM;
    }
    rc = decode(t, s, t->decoded);
    if (!rc)
        rc = own(t, c, count);
    if (!rc)
        memcpy(c->owned, t->decoded + skip, count * sizeof(*c->owned));
    return rc;
}

/* post: c->records are those of the current source from c->seq on; or negative. */
static int load(struct gwt_trace *t, struct cursor *c)
{
    const struct source *s = &t->sources[c->source];
    uint32_t skip, count, share;
    int rc;

    if (c->seq < s->first)
        c->seq = s->first;
    skip = (uint32_t)(c->seq - s->first);
    count = s->count - skip;
    if (s->file == FILE_RING) {
        c->records = t->ring.records + s->offset + skip;
        c->len = count;
        return 0;
    }
    share = HELD_MAX / 4 / (uint32_t)t->cursors_count;
    if (share < SLICE)
        share = SLICE;
    if (count > share && t->held + s->count > HELD_MAX) {
        count = share;
        rc = slice(t, c, skip, count);
        skip = 0;
    } else {
        rc = own(t, c, s->count);
        if (!rc)
            rc = decode(t, s, c->owned);
    }
    if (rc) {
        release(t, c);
        return rc;
    }
    c->records = c->owned + skip;
    c->len = count;
    return 0;
}

/* Passes over sources that hold nothing new.
 * post: true: c->source does; its key is set to a lower bound. */
static bool find_source(struct gwt_trace *t, struct cursor *c)
{
    for (; c->source < c->sources_to; c->source++) {
        const struct source *s = &t->sources[c->source];

        if (s->bad || s->first + s->count <= c->seq)
            continue;
        if (s->t_first > c->key)
            c->key = s->t_first;
        return true;
    }
    return false;
}

static void mark_bad(struct gwt_trace *t, struct cursor *c)
{
    gwt_account(t, c, -1);
    t->sources[c->source].bad = true;
    gwt_account(t, c, 1);
    t->coverage.bad_frames++;
    gwt_account_done(t);
}

/* The top has no records at hand. post: it has, or another is on top, or none is left. */
static void refill(struct gwt_trace *t)
{
    struct cursor *c = &t->cursors[t->heap[0].cursor];

    release(t, c);
    if (!find_source(t, c)) {
        drop_top(t);
        return;
    }
    if (c->key > t->limit) { /* it is not due yet */
        t->heap[0].key = c->key;
        settle(t);
        return;
    }
    if (load(t, c)) {
        mark_bad(t, c);
        return;
    }
    if (return_of(&c->records[0]) > c->key)
        c->key = return_of(&c->records[0]);
    t->heap[0].key = c->key;
    if (c->key > t->limit)
        settle(t);
}

static void read_section(const struct gwt_record *r, struct gwt_event *e)
{
    struct gwt_record_section s;

    memcpy(&s, r, sizeof(s));
    e->stream = 0;
    e->status = 0;
    e->device = 0xff;
    e->arg = (uint32_t)s.involuntary << 16 | s.voluntary;
    e->value = (uint64_t)s.cpu_us * 1000;
    e->size = (int64_t)s.process_cpu_us * 1000;
    e->allocated = (uint64_t)s.measured_us * 1000;
}

static void read_allocator(const struct gwt_record *r, struct gwt_event *e)
{
    struct gwt_record_allocator a;

    memcpy(&a, r, sizeof(a));
    e->t1_ns = e->t0_ns;
    e->flags = 0;
    e->stream = 0;
    e->status = 0;
    e->device = (uint8_t)a.flags;
    e->arg = a.address;
    e->value = 0;
    e->size = (int64_t)a.size_512 * 512;
    e->allocated = a.allocated;
    e->reserved = (uint64_t)a.reserved_512 * 512;
    e->raw = 0;
}

/* Kinds that hold something else where a call has its arguments, or add to what was lost. */
static void read_pseudo(struct gwt_trace *t, const struct gwt_record *r, struct gwt_event *e)
{
    if (gwt_has_no_dur(r->api))
        e->raw = r->dur;
    if (e->kind == GWT_LOST) {
        t->lost_seen += r->value;
        gwt_account_done(t);
    } else if (e->kind == GWT_SECTION) {
        read_section(r, e);
    }
}

/* post: what a record says but for its thread and number. `end`: its return, in ticks; at: the
 * clock's */
static inline void convert(struct gwt_trace *t, struct stretch *at, const struct gwt_record *r,
                           uint64_t end, struct gwt_event *e)
{
    int64_t t0 = gwt_clock_ns_at(&t->at, at, r->t0), t1;
    uint16_t api = r->api, stream = r->stream;
    uint8_t kind = t->defs.kind[api];

    e->api = api;
    e->kind = kind;
    e->level = t->defs.level[api];
    e->spare = 0;
    e->t0_ns = t0;
    if (api == GWT_API_PSEUDO + GWT_ALLOCATOR) {
        read_allocator(r, e);
        return;
    }
    t1 = gwt_clock_ns_at(&t->at, at, end);
    e->t1_ns = t1 < t0 ? t0 : t1;
    e->flags = r->flags;
    e->stream = stream;
    e->status = r->status;
    e->device = t->defs.device[stream];
    e->arg = r->arg;
    e->value = r->value;
    e->size = 0;
    e->allocated = 0;
    e->reserved = 0;
    e->raw = 0;
    if (api >= GWT_API_PSEUDO || kind == GWT_LOST || kind == GWT_SECTION)
        read_pseudo(t, r, e);
}

/* Of the thread on top, which has records at hand, as many as come before all others'. */
static size_t run(struct gwt_trace *t, struct gwt_event *events, size_t room)
{
    struct cursor *c = &t->cursors[t->heap[0].cursor];
    const struct gwt_record *r = c->records + c->pos, *to = c->records + c->len;
    uint64_t limit = t->limit, key = c->key, seq = c->seq, end = return_of(r);
    struct stretch at = t->at.at;
    uint32_t thread = c->thread;
    struct gwt_event *e = events, *last = events + room;
    size_t n;

    do {
        e->thread = thread;
        e->seq = seq++;
        convert(t, &at, r, end, e);
        e++;
        if (++r == to)
            break;
        end = return_of(r);
        if (end > key)
            key = end;
    } while (e < last && key <= limit);
    n = (size_t)(e - events);
    c->pos += (uint32_t)n;
    c->seq = seq;
    if (key > c->key) {
        c->key = t->heap[0].key = key;
        if (key > limit)
            settle(t);
    }
    return n;
}

size_t gwt_read(struct gwt_trace *t, struct gwt_event *events, size_t room)
{
    size_t n = 0;

    while (n < room && t->heap_count) {
        const struct cursor *c = &t->cursors[t->heap[0].cursor];

        if (c->pos < c->len)
            n += run(t, events + n, room - n);
        else
            refill(t);
    }
    return n;
}

int gwt_next(struct gwt_trace *t, struct gwt_event *event)
{
    return gwt_read(t, event, 1) == 1;
}

/* ---- start and end ------------------------------------------------------------------------ */

void gwt_rewind(struct gwt_trace *t)
{
    t->heap_count = 0;
    t->lost_seen = 0;
    t->at = t->clock;
    for (size_t i = 0; i < t->cursors_count; i++) {
        struct cursor *c = &t->cursors[i];

        release(t, c);
        c->source = c->sources_from;
        c->seq = 0;
        c->key = 0;
        if (find_source(t, c))
            t->heap[t->heap_count++] = (struct heap_node){c->key, (uint32_t)i};
    }
    for (size_t i = t->heap_count / 2; i-- > 0;)
        sift(t, i);
    if (t->heap_count)
        settle(t);
}

int gwt_merge_start(struct gwt_trace *t)
{
    size_t n = 0, stored = 1, count = 0;

    for (size_t i = 0; i < t->sources_count; i++) {
        n += !i || t->sources[i].thread != t->sources[i - 1].thread;
        if (t->sources[i].stored > stored)
            stored = t->sources[i].stored;
        if (t->sources[i].file != FILE_RING && t->sources[i].count > count)
            count = t->sources[i].count;
    }
    t->cursors = calloc(n ? n : 1, sizeof(*t->cursors));
    t->heap = calloc(n ? n : 1, sizeof(*t->heap));
    t->stored = malloc(stored);
    if (!t->cursors || !t->heap || !t->stored)
        return -ENOMEM;
    if (count) {
        size_t size = (gwt_decoder_size((uint32_t)count) + 63) & ~(size_t)63;
        void *memory = aligned_alloc(64, size);

        if (!memory)
            return -ENOMEM;
        t->decoder = gwt_decoder_init(memory, size, (uint32_t)count);
        t->decoded_count = count;
        if (!t->decoder)
            return -ENOMEM;
    }
    for (size_t i = 0; i < t->sources_count; i++) {
        if (!i || t->sources[i].thread != t->sources[i - 1].thread) {
            struct cursor *c = &t->cursors[t->cursors_count++];

            c->thread = t->sources[i].thread;
            c->sources_from = (uint32_t)i;
        }
        t->cursors[t->cursors_count - 1].sources_to = (uint32_t)i + 1;
    }
    for (size_t i = 0; i < t->cursors_count; i++)
        gwt_account(t, &t->cursors[i], 1);
    gwt_rewind(t);
    gwt_account_done(t);
    return 0;
}

void gwt_merge_free(struct gwt_trace *t)
{
    for (size_t i = 0; i < t->cursors_count; i++)
        free(t->cursors[i].owned);
    free(t->cursors);
    free(t->heap);
    free(t->stored);
    free(t->decoder);
    free(t->decoded);
    free(t->spare);
}
