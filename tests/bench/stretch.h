/* A recording of as many events as asked for: a real one over and over, each time later, so that
 * the events stay those of a real job. */
#ifndef STRETCH_H
#define STRETCH_H

#include "trace/reader_internal.h"
#include "trace/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct stretch_part { /* records of one frame */
    uint32_t thread, count;
    struct gwt_record *records;
};

struct stretched {
    struct gwt_file_header header;
    struct stretch_part *parts;
    size_t count, room;
    uint64_t events;
    uint64_t first, last; /* ticks */
    struct gwt_triple from, to;
    uint64_t counters[GWT_COUNTER_SLOTS];
    struct {
        uint64_t at;
        uint8_t *bytes;
        size_t size;
    } log[256];
    size_t log_count;
};

static inline int stretch_part(struct stretched *s, int fd, uint64_t offset,
                               const struct gwt_frame *f)
{
    size_t size = (gwt_decoder_size(f->count) + 63) & ~(size_t)63;
    void *memory = aligned_alloc(64, size), *stored = malloc(f->stored_size);
    struct gwt_record *records = malloc(f->count * sizeof(*records));
    int rc = memory && stored && records ? 0 : -ENOMEM;

    if (!rc)
        rc = gwt_reserve(&s->parts, &s->room, s->count, 1, sizeof(*s->parts));
    if (!rc)
        rc = gwt_read_at(fd, offset, stored, f->stored_size);
    if (!rc && f->codec == GWT_CODEC_RAW)
        memcpy(records, stored, f->stored_size);
    else if (!rc)
        rc = gwt_decode_records(gwt_decoder_init(memory, size, f->count), stored, f->stored_size,
                                records, f->count);
    free(memory);
    free(stored);
    if (rc)
        return rc;
    s->parts[s->count++] = (struct stretch_part){f->thread, f->count, records};
    s->events += f->count;
    if (f->t_first < s->first)
        s->first = f->t_first;
    if (f->t_last > s->last)
        s->last = f->t_last;
    return 0;
}

static inline int stretch_frame(struct stretched *s, int fd, uint64_t offset,
                                const struct gwt_frame *f)
{
    uint8_t *raw;
    int rc;

    if (f->type == GWT_FRAME_EVENTS)
        return stretch_part(s, fd, offset, f);
    raw = malloc(f->raw_size + 1);
    rc = raw ? gwt_frame_bytes(fd, offset, f, raw) : -ENOMEM;
    if (!rc && f->type == GWT_FRAME_DEFINITIONS && s->log_count < 256) {
        s->log[s->log_count].at = f->first;
        s->log[s->log_count].size = f->raw_size;
        s->log[s->log_count++].bytes = raw;
        return 0;
    }
    if (!rc && f->type == GWT_FRAME_COUNTERS && f->raw_size <= sizeof(s->counters))
        memcpy(s->counters, raw, f->raw_size);
    if (!rc && f->type == GWT_FRAME_CLOCK && f->count)
        memcpy(&s->to, raw + (f->count - 1) * sizeof(s->to), sizeof(s->to));
    free(raw);
    return rc;
}

/* post: 0 and `s` holds the recording, to be freed either way; or negative. */
static inline int stretch_load(struct stretched *s, const char *path)
{
    struct scan *scan = malloc(sizeof(*scan));
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc = fd < 0 || !scan ? -EIO : 0;
    struct gwt_frame frame;
    uint64_t offset;
    struct stat st;

    memset(s, 0, sizeof(*s));
    s->first = UINT64_MAX;
    if (!rc)
        rc = fstat(fd, &st) ? -errno : gwt_read_at(fd, 0, &s->header, sizeof(s->header));
    if (!rc) {
        s->from = s->to = s->header.start;
        gwt_scan_start(scan, fd, (uint64_t)st.st_size, s->header.header_size);
        while (!rc && gwt_scan_next(scan, &frame, &offset))
            rc = stretch_frame(s, fd, offset, &frame);
    }
    free(scan);
    if (fd >= 0)
        close(fd);
    return rc || s->events ? rc : -ENODATA;
}

static inline void stretch_free(struct stretched *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->parts[i].records);
    for (size_t i = 0; i < s->log_count; i++)
        free(s->log[i].bytes);
    free(s->parts);
}

static inline int stretch_once(struct stretched *s, struct gwt_writer *w, uint64_t turn,
                               uint64_t *seq, uint64_t most, uint64_t *written)
{
    uint64_t period = s->last - s->first + 1000;
    double ns = s->to.ticks > s->from.ticks ? (double)(s->to.monotonic_ns - s->from.monotonic_ns) /
                                                  (double)(s->to.ticks - s->from.ticks)
                                            : 1;
    struct gwt_triple now = s->from;
    int rc = 0;

    for (size_t i = 0; i < s->count && *written < most && !rc; i++) {
        struct stretch_part *p = &s->parts[i];
        uint32_t count = p->count < most - *written ? p->count : (uint32_t)(most - *written);

        for (uint32_t k = 0; turn && k < p->count; k++)
            p->records[k].t0 += period;
        rc = gwt_write_events(w, p->thread, seq[p->thread], p->records, count);
        seq[p->thread] += count;
        *written += count;
    }
    now.ticks += period * (turn + 1);
    now.monotonic_ns += (uint64_t)((double)period * ns * (double)(turn + 1));
    now.realtime_ns += now.monotonic_ns - s->from.monotonic_ns;
    return rc ? rc : gwt_write_clock(w, &now, 1);
}

/* pre: thread ids are small, as recordings have them. post: 0 and `path` holds `events` events. */
static inline int stretch_write(struct stretched *s, const char *path, uint64_t events)
{
    struct gwt_writer_options options = {.path = path, .max_bytes = 1ull << 40};
    void *memory = aligned_alloc(64, (gwt_writer_size() + 63) & ~(size_t)63);
    uint64_t *seq, written = 0;
    uint32_t threads = 0;
    struct gwt_writer *w;
    int rc;

    for (size_t i = 0; i < s->count; i++)
        if (s->parts[i].thread > threads)
            threads = s->parts[i].thread;
    seq = calloc((size_t)threads + 1, sizeof(*seq));
    memset(s->header.ring_path, 0, sizeof(s->header.ring_path));
    rc = memory && seq ? gwt_writer_open(&w, memory, gwt_writer_size(), &options, &s->header)
                       : -ENOMEM;
    for (size_t i = 0; i < s->log_count && !rc; i++)
        rc = gwt_write_definitions(w, s->log[i].at, s->log[i].bytes, s->log[i].size);
    for (uint64_t turn = 0; written < events && !rc; turn++)
        rc = stretch_once(s, w, turn, seq, events, &written);
    if (!rc)
        rc = gwt_write_counters(w, s->counters);
    if (!rc)
        rc = gwt_writer_close(w);
    free(memory);
    free(seq);
    return rc;
}

#endif
