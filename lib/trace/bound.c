/* Where events go, with max = GPUWAIT_MAX:
 *
 *   dump        the head of the recording, up to max / 2
 *   dump.tail0  then these two in turn, max / 8 each: the recent past. When one is full, the
 *   dump.tail1  other is evicted: its sums go to the dump as AGGREGATE rows, its file away
 *
 * The rest, max / 4, is for what the dump goes on to hold: definitions, counters, clock
 * triples, aggregates, END. Aggregates may use max / 8 of it; beyond half of that they wait
 * in memory until they have grown by an eighth, so that they stay within it for ever (and a
 * killed process may lose that last eighth of its sums: the reader then counts it as missing).
 * Definitions may use all of it but for what the last aggregates need, then they push the tail
 * out. Below the floor of free space
 * the same happens with short segments, whatever the head's size.
 *
 * Order matters to a process killed in between: aggregates are written before the segment
 * goes (and name its generation, so that a reader does not count both), and the caller's
 * ring keeps every event until it has been written here.
 */
#include "writer_internal.h"

#include <errno.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define SEGMENT_LEAST (6u * 1024)        /* a shorter one is not worth a file */
#define SEGMENT_LOW   (4u * 1024 * 1024) /* while disk space is low */
#define CHECK_BYTES   (1024u * 1024)     /* free space is looked at this often, or each second */

static uint64_t used(const struct gwt_writer *w)
{
    return w->head.bytes + w->segments[0].file.bytes + w->segments[1].file.bytes;
}

uint64_t gwt_room(const struct gwt_writer *w)
{
    uint64_t taken = used(w) + GWT_END_RESERVE;

    return taken < w->max_bytes ? w->max_bytes - taken : 0;
}

uint64_t gwt_last_carry(const struct gwt_writer *w)
{
    return w->max_bytes / 32;
}

uint64_t gwt_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * GWT_SECOND_NS + (uint64_t)t.tv_nsec;
}

void gwt_look_at_free_space(struct gwt_writer *w)
{
    uint64_t now, total, available;
    struct statvfs fs;

    if (!w->min_free_pct)
        return;
    now = gwt_now_ns();
    if (w->stats.bytes < w->check_bytes && now < w->check_ns)
        return;
    w->check_bytes = w->stats.bytes + CHECK_BYTES;
    w->check_ns = now + GWT_SECOND_NS;
    if (fstatvfs(w->head.fd, &fs) || !fs.f_blocks)
        return;
    total = (uint64_t)fs.f_blocks * fs.f_frsize;
    available = (uint64_t)fs.f_bavail * fs.f_frsize;
    w->low = available < total / 100 * w->min_free_pct;
    w->low_limit = available / 8 < SEGMENT_LOW ? available / 8 : SEGMENT_LOW;
}

/* ---- sums of what may have to go ---------------------------------------------------------- */

static bool value_is_bytes(uint8_t kind)
{
    switch (kind) {
    case GWT_COPY:
    case GWT_MEMSET:
    case GWT_PREFETCH:
    case GWT_ALLOC:
    case GWT_HOST_ALLOC:
    case GWT_NCCL:
        return true;
    default:
        return false;
    }
}

struct second { /* of CLOCK_MONOTONIC, as ticks [from, to) */
    uint64_t second, from, to;
};

/* By the line through the first and the latest triple. */
static struct second second_of(const struct gwt_writer *w, uint64_t ticks)
{
    const struct gwt_triple *a = &w->header.start, *b = &w->triple;
    struct second s = {0};
    double per_ns = 1, ns;

    if (w->header.clock == GWT_CLOCK_MONOTONIC) {
        s.second = ticks / GWT_SECOND_NS;
        s.from = s.second * GWT_SECOND_NS;
        s.to = s.from + GWT_SECOND_NS;
        return s;
    }
    if (b->monotonic_ns > a->monotonic_ns && b->ticks > a->ticks)
        per_ns = (double)(b->ticks - a->ticks) / (double)(b->monotonic_ns - a->monotonic_ns);
    ns = (double)b->monotonic_ns + (double)(int64_t)(ticks - b->ticks) / per_ns;
    if (!(ns > 0))
        return s;
    s.second = ns < 1e18 ? (uint64_t)ns / GWT_SECOND_NS : UINT32_MAX;
    ns -= (double)(s.second * GWT_SECOND_NS);
    s.from = ticks - (uint64_t)(ns * per_ns < (double)ticks ? ns * per_ns : 0);
    s.to = s.from + (uint64_t)((double)GWT_SECOND_NS * per_ns);
    return s;
}

static void sum_up(struct gwt_writer *w, struct gwt_table *sums, const struct gwt_record *records,
                   uint32_t count)
{
    struct second second = {0};

    for (uint32_t i = 0; i < count; i++) {
        const struct gwt_record *r = &records[i];
        struct gwt_cell *cell;

        if (r->t0 < second.from || r->t0 >= second.to)
            second = second_of(w, r->t0);
        cell = gwt_table_cell(sums, second.second, r->api);
        sums->events++;
        cell->calls++;
        /* What is no call has no status, and its length is not time inside calls. */
        if (r->api >= GWT_API_PSEUDO)
            continue;
        cell->ticks += gwt_record_ticks(r);
        cell->failed += r->status != 0;
        if (value_is_bytes(w->kinds[r->api]))
            cell->bytes += r->value;
    }
}

struct name {
    char text[NAME_MAX + 1];
};

static struct name segment_name(const struct gwt_writer *w, const struct segment *s)
{
    struct name name;

    snprintf(name.text, sizeof(name.text), "%.*s.tail%d", NAME_MAX - 6, w->name,
             (int)(s - w->segments));
    return name;
}

/* ---- segments ----------------------------------------------------------------------------- */

/* post: 1: the carry is in the dump and empty; 0: it did not fit; or -errno. */
static int write_carry(struct gwt_writer *w, bool last)
{
    uint32_t n = gwt_table_rows(w->carry, w->rows, GWT_ROWS);
    long payload = gwt_prepare(w, GWT_FRAME_AGGREGATE, w->rows, n * sizeof(*w->rows));
    uint64_t bytes = sizeof(*w->frame) + (uint64_t)payload, room = gwt_room(w);
    int rc;

    if (payload < 0)
        return (int)payload;
    if (!last &&
        (bytes + gwt_last_carry(w) > room || w->aggregate_bytes + bytes > w->max_bytes / 8))
        return 0;
    if (bytes > room)
        return 0;
    w->frame->count = n;
    w->frame->generation = w->carry_generation;
    rc = gwt_append_frame(w, &w->head, (size_t)payload);
    if (rc)
        return rc;
    w->aggregate_bytes += bytes;
    w->aggregate_events += w->carry->events;
    gwt_table_clear(w->carry, w->slots);
    return 1;
}

/* pre: `least` events make a frame worth its bytes while those are plenty.
 * post: 0; what was not worth it or did not fit waits for a later try. */
static int flush_carry(struct gwt_writer *w, uint64_t least)
{
    int rc;

    if (w->aggregate_bytes >= w->max_bytes / 16 && least < w->aggregate_events / 8)
        least = w->aggregate_events / 8;
    if (!w->carry->events || w->carry->events < least)
        return 0;
    rc = write_carry(w, false);
    return rc < 0 ? rc : 0;
}

/* At the end: coarser until it fits. */
void gwt_flush_last_carry(struct gwt_writer *w)
{
    for (uint32_t i = 0; w->carry->events && i < 2 * GWT_TABLE_SLOTS; i = 2 * i + 1) {
        if (write_carry(w, true))
            return;
        gwt_table_coarsen(w->carry);
    }
}

static int evict(struct gwt_writer *w, struct segment *s)
{
    int rc;

    w->stats.aggregated += s->sums->events;
    w->carry_generation = s->generation;
    gwt_table_merge(w->carry, s->sums);
    gwt_table_clear(s->sums, w->slots);
    rc = flush_carry(w, 0);
    if (rc)
        return rc; /* the file is better than nothing */
    gwt_file_close(&s->file);
    unlinkat(w->dir.fd, segment_name(w, s).text, 0);
    return 0;
}

/* A new file rather than a truncated one: a reader that has the old one open keeps it.
 * post: 1: w->current is empty; 0: there is no room for one; or -errno. */
static int rotate(struct gwt_writer *w)
{
    struct segment *s;
    int rc;

    if (w->generations)
        w->current ^= 1;
    s = &w->segments[w->current];
    if (s->file.fd >= 0) {
        rc = evict(w, s);
        if (rc)
            return rc;
    }
    if (gwt_room(w) < SEGMENT_LEAST)
        return 0;
    rc = gwt_file_create(w, segment_name(w, s).text, &s->file);
    if (rc)
        return gwt_writer_stop(w, -rc);
    s->generation = ++w->generations;
    rc = gwt_file_append(w, &s->file, &w->header, sizeof(w->header));
    return rc ? rc : 1;
}

int gwt_make_room(struct gwt_writer *w, uint64_t bytes)
{
    while (bytes > gwt_room(w)) {
        struct segment *older = &w->segments[w->current ^ 1];
        int rc;

        if (older->file.fd < 0)
            older = &w->segments[w->current];
        if (older->file.fd < 0)
            return 0;
        rc = evict(w, older);
        if (rc)
            return rc;
    }
    return 1;
}

/* There is no room for a tail: sums only. */
static long write_sums(struct gwt_writer *w, const struct gwt_record *records, uint32_t count)
{
    int rc;

    sum_up(w, w->carry, records, count);
    w->stats.aggregated += count;
    rc = flush_carry(w, GWT_FRAME_RECORDS_MAX);
    return rc ? rc : (long)count;
}

long gwt_write_tail(struct gwt_writer *w, uint32_t thread, uint64_t first,
                    const struct gwt_record *records, uint32_t count)
{
    uint64_t limit = w->max_bytes / 8;
    struct segment *s;
    uint64_t bytes;
    long payload;
    int rc;

    if (w->low && w->low_limit < limit)
        limit = w->low_limit;
    if (limit < SEGMENT_LEAST)
        return write_sums(w, records, count);
    /* some frames to a segment; few events take more than 16 bytes */
    if (count > limit / 32 + 1)
        count = (uint32_t)(limit / 32 + 1);
    do {
        payload = gwt_prepare_events(w, thread, first, records, count);
        if (payload < 0)
            return payload;
        bytes = sizeof(*w->frame) + (uint64_t)payload;
    } while (sizeof(w->header) + bytes > limit && (count /= 2));
    if (!count)
        return write_sums(w, records, 1);

    s = &w->segments[w->current];
    if (s->file.fd < 0 || s->file.bytes + bytes > limit || bytes > gwt_room(w)) {
        rc = rotate(w);
        if (rc > 0)
            rc = gwt_make_room(w, bytes);
        if (rc < 0)
            return rc;
        s = &w->segments[w->current];
        if (!rc || s->file.fd < 0)
            return write_sums(w, records, count);
        /* again: evicting wrote a frame of its own */
        payload = gwt_prepare_events(w, thread, first, records, count);
        if (payload < 0)
            return payload;
    }
    w->frame->generation = s->generation;
    rc = gwt_append_frame(w, &s->file, (size_t)payload);
    if (rc)
        return rc;
    sum_up(w, s->sums, records, count);
    return count;
}
