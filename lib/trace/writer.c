/* The dump writer: frames, and what goes into them. Where events go once the disk bound is
 * met is bound.c's business. */
#include "writer_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ALIGNED(n)        (((n) + 63) & ~(size_t)63)
#define MAX_BYTES_LEAST   (64u * 1024) /* less than this holds no recording */
#define DEFINITIONS_FRAME (1024u * 1024)

/* ---- files and frames --------------------------------------------------------------------- */

int gwt_writer_stop(struct gwt_writer *w, int error)
{
    if (!w->stats.stopped)
        w->stats.error = error;
    w->stats.stopped = 1;
    return -w->stats.error;
}

int gwt_file_create(struct gwt_writer *w, const char *name, struct gwt_file *out)
{
    if (!gwt_file_is_ours(&w->dir))
        return -EBADF;
    return gwt_file_adopt(
        openat(w->dir.fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), out);
}

int gwt_file_append(struct gwt_writer *w, struct gwt_file *f, const void *bytes, size_t size)
{
    const char *from = bytes;
    size_t done = 0;

    if (!gwt_file_is_ours(f))
        return gwt_writer_stop(w, EBADF);
    while (done < size) {
        ssize_t n = pwrite(f->fd, from + done, size - done, (off_t)(f->bytes + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            int error = n < 0 ? errno : EIO;

            /* If this fails too the reader skips the torn frame. */
            while (ftruncate(f->fd, (off_t)f->bytes) && errno == EINTR)
                ;
            return gwt_writer_stop(w, error);
        }
        done += (size_t)n;
    }
    f->bytes += size;
    w->stats.bytes += size;
    return 0;
}

/* pre: w->frame and `payload` bytes behind it are complete but for magic and checks. */
int gwt_append_frame(struct gwt_writer *w, struct gwt_file *f, size_t payload)
{
    struct gwt_frame *frame = w->frame;
    int rc;

    frame->magic = GWT_FRAME_MAGIC;
    frame->stored_size = (uint32_t)payload;
    frame->payload_check = frame->codec == GWT_CODEC_RAW ? gwt_crc32c(frame + 1, payload) : 0;
    frame->check = 0;
    frame->check = gwt_crc32c(frame, sizeof(*frame));
    rc = gwt_file_append(w, f, frame, sizeof(*frame) + payload);
    if (!rc)
        w->stats.frames++;
    return rc;
}

/* Puts bytes into w->frame, whose header's other fields are zero.
 * post: size of the payload, or -errno. */
long gwt_prepare(struct gwt_writer *w, enum gwt_frame_type type, const void *bytes, size_t size)
{
    long n = 0;

    *w->frame = (struct gwt_frame){
        .type = (uint16_t)type, .codec = GWT_CODEC_RAW, .raw_size = (uint32_t)size};
    if (size > sizeof(struct gwt_triple)) { /* zstd's own header outweighs it */
        n = gwt_encode_bytes(w->encoder, bytes, size, w->frame + 1, w->frame_room);
        if (n < 0)
            return n;
        if ((size_t)n < size) {
            w->frame->codec = GWT_CODEC_ZSTD;
            return n;
        }
    }
    if (size)
        memcpy(w->frame + 1, bytes, size);
    return (long)size;
}

/* ---- events ------------------------------------------------------------------------------- */

/* post: size of the payload in w->frame, or -errno. */
long gwt_prepare_events(struct gwt_writer *w, uint32_t thread, uint64_t first,
                        const struct gwt_record *records, uint32_t count)
{
    struct gwt_frame *frame = w->frame;
    size_t raw = count * sizeof(*records);
    long n = gwt_encode_records(w->encoder, records, count, frame + 1, w->frame_room);

    if (n < 0)
        return n;
    *frame = (struct gwt_frame){
        .type = GWT_FRAME_EVENTS,
        .codec = GWT_CODEC_COLUMNS_ZSTD,
        .thread = thread,
        .count = count,
        .first = first,
        .raw_size = (uint32_t)raw,
        .t_first = UINT64_MAX,
    };
    for (uint32_t i = 0; i < count; i++) {
        const struct gwt_record *r = &records[i];
        uint64_t end = r->t0 + gwt_record_ticks(r);

        if (r->t0 < frame->t_first)
            frame->t_first = r->t0;
        if (end > frame->t_last)
            frame->t_last = end;
    }
    if ((size_t)n >= raw) { /* a few records: column headers outweigh them */
        frame->codec = GWT_CODEC_RAW;
        memcpy(frame + 1, records, raw);
        n = (long)raw;
    }
    return n;
}

/* post: events taken, 0: the head is full, or -errno. */
static long write_head(struct gwt_writer *w, uint32_t thread, uint64_t first,
                       const struct gwt_record *records, uint32_t count)
{
    long payload;
    int rc;

    if (w->low || w->head_full)
        return 0;
    payload = gwt_prepare_events(w, thread, first, records, count);
    if (payload < 0)
        return payload;
    if (w->head.bytes + sizeof(*w->frame) + (uint64_t)payload > w->max_bytes / 2) {
        w->head_full = true;
        return 0;
    }
    rc = gwt_append_frame(w, &w->head, (size_t)payload);
    return rc ? rc : (long)count;
}

int gwt_write_events(struct gwt_writer *w, uint32_t thread, uint64_t first,
                     const struct gwt_record *records, uint32_t count)
{
    while (count) {
        uint32_t take = count < GWT_FRAME_RECORDS_MAX ? count : GWT_FRAME_RECORDS_MAX;
        long n;

        if (w->stats.stopped)
            return -w->stats.error;
        gwt_look_at_free_space(w);
        n = write_head(w, thread, first, records, take);
        if (!n)
            n = gwt_write_tail(w, thread, first, records, take);
        if (n < 0)
            return (int)n;
        first += (uint64_t)n;
        records += n;
        count -= (uint32_t)n;
    }
    return 0;
}

/* ---- definitions, counters, clock --------------------------------------------------------- */

/* post: 1: written; 0: no room for it beside what the last aggregates need, which only
 *       definitions take from the tail; or -errno. */
static int write_frame(struct gwt_writer *w, enum gwt_frame_type type, uint64_t first,
                       uint32_t count, const void *bytes, size_t size)
{
    uint64_t keep = gwt_last_carry(w);
    long payload;
    int rc;

    if (type == GWT_FRAME_DEFINITIONS) { /* before w->frame is filled: evicting uses it too */
        rc = gwt_make_room(w, sizeof(*w->frame) + size + keep);
        if (rc < 0)
            return rc;
    }
    payload = gwt_prepare(w, type, bytes, size);
    if (payload < 0)
        return (int)payload;
    if (sizeof(*w->frame) + (uint64_t)payload + keep > gwt_room(w))
        return 0;
    w->frame->first = first;
    w->frame->count = count;
    rc = gwt_append_frame(w, &w->head, (size_t)payload);
    return rc ? rc : 1;
}

/* Learns the kinds of apis on the way.
 * post: bytes that make whole entries and at most one frame; at least one entry. */
static size_t whole_entries(struct gwt_writer *w, const uint8_t *bytes, size_t size)
{
    size_t at = 0;

    while (size - at >= sizeof(struct gwt_def)) {
        struct gwt_def def;
        size_t length;

        memcpy(&def, bytes + at, sizeof(def));
        length = sizeof(def) + ((size_t)def.size + 7) / 8 * 8;
        if (length > size - at) /* the caller broke its promise: keep the bytes all the same */
            break;
        if (at && at + length > DEFINITIONS_FRAME)
            return at;
        if (def.type == GWT_DEF_API && def.id <= UINT16_MAX && def.size)
            w->kinds[def.id] = bytes[at + sizeof(def)];
        at += length;
    }
    return size;
}

int gwt_write_definitions(struct gwt_writer *w, uint64_t first, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;

    while (size) {
        size_t n;
        int rc;

        if (w->stats.stopped)
            return -w->stats.error;
        n = whole_entries(w, from, size);
        rc = write_frame(w, GWT_FRAME_DEFINITIONS, first, 0, from, n);
        if (rc < 0)
            return rc;
        if (!rc) { /* events that cannot be told apart are worth no disk */
            gwt_flush_last_carry(w);
            return gwt_writer_stop(w, EFBIG);
        }
        first += n;
        from += n;
        size -= n;
    }
    return 0;
}

/* Counters and triples come at every drain. Past the bound they would eat the room that is
 * left, so they are thinned to one a second, and to one a minute when that runs out. */
static uint64_t least_interval_ns(const struct gwt_writer *w)
{
    if (!w->generations && !w->head_full)
        return 0;
    return gwt_room(w) > w->max_bytes / 16 ? GWT_SECOND_NS : 60 * GWT_SECOND_NS;
}

int gwt_write_counters(struct gwt_writer *w, const uint64_t counters[GWT_COUNTER_SLOTS])
{
    uint64_t now = gwt_now_ns();
    int rc;

    memcpy(w->counters, counters, sizeof(w->counters));
    w->counters_pending = true;
    if (w->stats.stopped)
        return -w->stats.error;
    if (w->counters_ns && now - w->counters_ns < least_interval_ns(w))
        return 0;
    rc = write_frame(w, GWT_FRAME_COUNTERS, 0, GWT_COUNTER_SLOTS, w->counters, sizeof(w->counters));
    if (rc <= 0)
        return rc;
    w->counters_ns = now;
    w->counters_pending = false;
    return 0;
}

int gwt_write_clock(struct gwt_writer *w, const struct gwt_triple *triples, uint32_t count)
{
    uint64_t least;
    int rc;

    if (!count)
        return 0;
    if (count > GWT_FRAME_RAW_MAX / sizeof(*triples))
        return -EINVAL;
    w->triple = triples[count - 1];
    if (w->stats.stopped)
        return -w->stats.error;
    least = least_interval_ns(w);
    if (least) {
        if (w->triple.monotonic_ns - w->triple_written.monotonic_ns < least)
            return 0;
        triples = &w->triple;
        count = 1;
    }
    rc = write_frame(w, GWT_FRAME_CLOCK, 0, count, triples, count * sizeof(*triples));
    if (rc <= 0)
        return rc;
    w->triple_written = w->triple;
    return 0;
}

/* ---- open and close ----------------------------------------------------------------------- */

static size_t frame_room(void)
{
    return gwt_encode_bound(GWT_FRAME_RAW_MAX);
}

size_t gwt_writer_size(void)
{
    return ALIGNED(sizeof(struct gwt_writer)) + ALIGNED(gwt_encoder_size()) +
           3 * ALIGNED(sizeof(struct gwt_table)) +
           ALIGNED(GWT_ROWS * sizeof(struct gwt_aggregate)) +
           ALIGNED(sizeof(struct gwt_frame) + frame_room());
}

/* The pages of what is never used are never touched. */
static int lay_out(struct gwt_writer *w)
{
    uint8_t *at = (uint8_t *)w + ALIGNED(sizeof(*w));
    struct gwt_table **tables[] = {&w->segments[0].sums, &w->segments[1].sums, &w->carry};

    w->encoder = gwt_encoder_init(at, gwt_encoder_size());
    if (!w->encoder)
        return -EINVAL;
    at += ALIGNED(gwt_encoder_size());
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        *tables[i] = (struct gwt_table *)at;
        gwt_table_clear(*tables[i], w->slots);
        at += ALIGNED(sizeof(struct gwt_table));
    }
    w->rows = (struct gwt_aggregate *)at;
    at += ALIGNED(GWT_ROWS * sizeof(struct gwt_aggregate));
    w->frame = (struct gwt_frame *)at;
    w->frame_room = frame_room();
    return 0;
}

static int open_directory(struct gwt_writer *w, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char directory[PATH_MAX] = ".";
    size_t length = slash ? (size_t)(slash - path) : 0;

    if (!*name || strlen(name) > NAME_MAX - strlen(".tail0") || length >= sizeof(directory) - 1)
        return -ENAMETOOLONG;
    strcpy(w->name, name);
    if (slash) {
        memcpy(directory, path, length);
        strcpy(directory + length, length ? "" : "/");
    }
    return gwt_file_adopt(open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC), &w->dir);
}

int gwt_writer_open(struct gwt_writer **out, void *memory, size_t size,
                    const struct gwt_writer_options *options, const struct gwt_file_header *header)
{
    struct gwt_writer *w = memory;
    uint64_t slots = options->max_bytes / 8 / 8192;
    int rc;

    *out = NULL;
    if (size < gwt_writer_size() || (uintptr_t)memory % 64 ||
        options->max_bytes < MAX_BYTES_LEAST || options->min_free_pct > 100)
        return -EINVAL;
    memset(w, 0, sizeof(*w));
    w->dir.fd = w->head.fd = w->segments[0].file.fd = w->segments[1].file.fd = -1;
    w->max_bytes = options->max_bytes;
    w->min_free_pct = options->min_free_pct;
    w->slots = (uint32_t)(slots < 8 ? 8 : slots > GWT_TABLE_SLOTS ? GWT_TABLE_SLOTS : slots);
    w->header = *header;
    memcpy(w->header.magic, GWT_MAGIC, sizeof(w->header.magic));
    w->header.version_major = GWT_VERSION_MAJOR;
    w->header.version_minor = GWT_VERSION_MINOR;
    w->header.header_size = sizeof(w->header);
    w->triple = w->triple_written = w->header.start;

    rc = lay_out(w);
    if (!rc)
        rc = open_directory(w, options->path);
    if (!rc)
        rc = gwt_file_create(w, w->name, &w->head);
    if (!rc) {
        rc = gwt_file_append(w, &w->head, &w->header, sizeof(w->header));
        if (rc)
            unlinkat(w->dir.fd, w->name, 0);
    }
    if (rc) {
        gwt_writer_abandon(w);
        return rc;
    }
    *out = w;
    return 0;
}

void gwt_writer_abandon(struct gwt_writer *w)
{
    gwt_file_close(&w->head);
    gwt_file_close(&w->segments[0].file);
    gwt_file_close(&w->segments[1].file);
    gwt_file_close(&w->dir);
    gwt_writer_stop(w, EBADF);
}

/* What room() keeps a reserve for. */
static void write_last_frames(struct gwt_writer *w)
{
    long payload;

    if (w->counters_pending || w->stats.error) {
        if (w->stats.error && !w->counters[GWT_C_WRITE_ERRNO])
            w->counters[GWT_C_WRITE_ERRNO] = (uint64_t)w->stats.error;
        payload = gwt_prepare(w, GWT_FRAME_COUNTERS, w->counters, sizeof(w->counters));
        if (payload < 0)
            return;
        w->frame->count = GWT_COUNTER_SLOTS;
        if (gwt_append_frame(w, &w->head, (size_t)payload))
            return;
    }
    if (w->triple.ticks != w->triple_written.ticks) {
        payload = gwt_prepare(w, GWT_FRAME_CLOCK, &w->triple, sizeof(w->triple));
        w->frame->count = 1;
        if (payload < 0 || gwt_append_frame(w, &w->head, (size_t)payload))
            return;
    }
    payload = gwt_prepare(w, GWT_FRAME_END, NULL, 0);
    gwt_append_frame(w, &w->head, (size_t)payload);
}

int gwt_writer_close(struct gwt_writer *w)
{
    int error;

    /* Where writing failed there may be room for this now that the torn frame is cut off (or
     * the disk has space again), and then the dump itself says why it is short. */
    error = w->stats.error;
    w->stats.stopped = 0;
    gwt_flush_last_carry(w);
    if (w->carry->events) {
        w->counters[GWT_C_DROPPED] += w->carry->events;
        w->counters_pending = true;
    }
    w->stats.stopped = 0;
    write_last_frames(w);
    if (!error)
        error = w->stats.error;
    gwt_writer_abandon(w);
    w->stats.error = error;
    return -error;
}

void gwt_writer_stats(const struct gwt_writer *w, struct gwt_writer_stats *out)
{
    *out = w->stats;
}
