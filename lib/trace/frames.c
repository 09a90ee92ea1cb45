/* Finding frames in a file that may be cut, overwritten or still growing.
 *
 * Frames follow one another. Where none is, one is looked for at every byte, by its magic
 * and the CRC of its header. The search begins right behind the last frame's header rather
 * than behind its payload: if bytes were lost in that payload, the next frame starts inside
 * of what should be it. A search never goes back behind a header it found, so all of them
 * together read the file at most twice. */
#include "reader_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int gwt_read_at(int fd, uint64_t offset, void *out, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t n = pread(fd, (char *)out + done, size - done, (off_t)(offset + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (!n)
            return -EBADMSG;
        done += (size_t)n;
    }
    return 0;
}

void gwt_scan_start(struct scan *s, int fd, uint64_t size, uint64_t header_size)
{
    memset(s, 0, offsetof(struct scan, window));
    s->fd = fd;
    s->size = size;
    s->at = s->resync = header_size;
}

/* pre:  size <= GWT_WINDOW.
 * post: `size` bytes at `offset`, or NULL. Reads ahead as far as `ahead`. */
static const uint8_t *peek(struct scan *s, uint64_t offset, size_t size, size_t ahead)
{
    if (offset > s->size || s->size - offset < size)
        return NULL;
    if (offset < s->window_at || offset + size > s->window_at + s->window_size) {
        if (ahead > s->size - offset)
            ahead = (size_t)(s->size - offset);
        s->window_at = offset;
        s->window_size = 0;
        if (gwt_read_at(s->fd, offset, s->window, ahead))
            return NULL;
        s->window_size = ahead;
    }
    return s->window + (offset - s->window_at);
}

static bool header_sound(const uint8_t *bytes, struct gwt_frame *frame)
{
    struct gwt_frame copy;

    memcpy(frame, bytes, sizeof(*frame));
    if (frame->magic != GWT_FRAME_MAGIC)
        return false;
    copy = *frame;
    copy.check = 0;
    return gwt_crc32c(&copy, sizeof(copy)) == frame->check;
}

/* A sound header may still ask for too much: whoever wrote it need not be us. */
static bool frame_sound(const struct gwt_frame *f)
{
    size_t each = 0;

    if (f->raw_size > GWT_FRAME_RAW_MAX || f->stored_size > gwt_encode_bound(f->raw_size) ||
        (f->codec == GWT_CODEC_RAW && f->stored_size != f->raw_size))
        return false;
    switch (f->type) {
    case GWT_FRAME_EVENTS:
        return f->count && f->count <= GWT_FRAME_RECORDS_MAX &&
               f->raw_size == f->count * sizeof(struct gwt_record) &&
               f->first <= UINT64_MAX - f->count &&
               (f->codec == GWT_CODEC_RAW || f->codec == GWT_CODEC_COLUMNS_ZSTD);
    case GWT_FRAME_DEFINITIONS:
        if (f->first > UINT64_MAX - f->raw_size)
            return false;
        break;
    case GWT_FRAME_COUNTERS:
        each = sizeof(uint64_t);
        break;
    case GWT_FRAME_CLOCK:
        each = sizeof(struct gwt_triple);
        break;
    case GWT_FRAME_AGGREGATE:
        each = sizeof(struct gwt_aggregate);
        break;
    case GWT_FRAME_END:
        break;
    default: /* of a later minor version: not ours to judge, nor to read */
        return true;
    }
    return (f->codec == GWT_CODEC_RAW || f->codec == GWT_CODEC_ZSTD) &&
           (!each || (uint64_t)f->count * each == f->raw_size);
}

/* post: offset of the next sound header at or behind s->resync, or s->size. */
static uint64_t search(struct scan *s)
{
    const uint32_t magic = GWT_FRAME_MAGIC;
    uint64_t at = s->resync;

    while (at <= s->size && s->size - at >= sizeof(struct gwt_frame)) {
        size_t ahead = s->size - at < GWT_WINDOW ? (size_t)(s->size - at) : GWT_WINDOW;
        const uint8_t *bytes = peek(s, at, ahead, GWT_WINDOW);
        size_t i = 0;

        if (!bytes)
            break;
        while (i + sizeof(struct gwt_frame) <= ahead) {
            const uint8_t *hit = memmem(bytes + i, ahead - i, &magic, sizeof(magic));
            struct gwt_frame frame;

            if (!hit) {
                i = ahead - (sizeof(magic) - 1);
                break;
            }
            i = (size_t)(hit - bytes);
            if (i + sizeof(frame) > ahead)
                break;
            if (header_sound(hit, &frame))
                return at + i;
            i++;
        }
        if (s->size - at == ahead)
            break;
        at += i;
    }
    return s->size;
}

int gwt_scan_next(struct scan *s, struct gwt_frame *frame, uint64_t *offset)
{
    while (s->at < s->size) {
        const uint8_t *bytes = peek(s, s->at, sizeof(*frame), 4096);
        uint64_t found, payload = s->at + sizeof(*frame);

        if (bytes && header_sound(bytes, frame)) {
            s->resync = payload;
            if (frame->stored_size <= s->size - payload) {
                s->at = payload + frame->stored_size;
                if (frame_sound(frame)) {
                    *offset = payload;
                    return 1;
                }
                s->bad_frames++;
                continue;
            }
        }

        /* No frame, or one that is longer than the file. */
        found = search(s);
        if (found == s->size) {
            /* What follows nothing was cut short; bytes that are no frame at all are damage. */
            if (!bytes || s->resync == payload)
                s->torn = true;
            else
                s->bad_bytes += s->size - s->at;
            s->at = s->size;
            return 0;
        }
        if (s->resync == payload && found >= payload)
            s->bad_frames++;
        else if (found > s->at)
            s->bad_bytes += found - s->at;
        s->at = found;
        s->resync = found;
    }
    return 0;
}

int gwt_frame_bytes(int fd, uint64_t offset, const struct gwt_frame *frame, void *raw)
{
    void *stored;
    int rc;

    if (frame->codec == GWT_CODEC_RAW) {
        rc = gwt_read_at(fd, offset, raw, frame->raw_size);
        if (rc)
            return rc == -ENOMEM ? rc : -EBADMSG;
        return gwt_crc32c(raw, frame->raw_size) == frame->payload_check ? 0 : -EBADMSG;
    }
    stored = malloc(frame->stored_size ? frame->stored_size : 1);
    if (!stored)
        return -ENOMEM;
    rc = gwt_read_at(fd, offset, stored, frame->stored_size);
    if (!rc)
        rc = gwt_decode_bytes(stored, frame->stored_size, raw, frame->raw_size);
    free(stored);
    return rc == -ENOMEM ? rc : rc ? -EBADMSG : 0;
}
