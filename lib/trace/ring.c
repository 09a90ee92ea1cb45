/* A snapshot of a ring file that may be changing underneath.
 *
 * Why nothing falls between ring and dump. The writing side, per thread:
 *
 *   producer  stores record n, then head = n + 1; only while head - tail < capacity
 *   drain     copies [tail, head), write()s it as frames, then stores tail = head
 *
 * The reader copies rings first and fixes the sizes of the dump's files afterwards. Take
 * a record n < head as it was when we read head. Either our copy of it is sound. Or it was
 * overwritten while we copied: then the producer was at n + capacity, so tail was beyond n,
 * so its frame was written before we look at the files. The same holds for a slot whose
 * thread ended and that was taken by another one: a slot is given away when it is drained.
 * So the copy may be given up at any time without losing an event, and what ring and files
 * hold together is every event up to some point of each thread: those up to the end of its
 * frames, or of our copy if that goes further. Both may hold the same one; its sequence
 * number tells.
 *
 * An overwrite shows in head and tail, read again after copying: the producer may be storing
 * record number `head` at this moment, which destroys record head - capacity. Later ones are
 * sound, and so is whatever was still not drained.
 *
 * Definitions are copied last, since events refer backwards to them, and the whole window,
 * not only what is not drained yet: the frames that we know of end anywhere in it. An
 * append overwrites only what is drained, hence what lies more than the window's size minus
 * the longest entry behind the head may be damaged.
 *
 * pread() rather than mmap(): a file that shrinks is an error and not a SIGBUS. An aligned
 * word is not formally atomic for pread(), hence all the range checks.
 */
#include "reader_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLOTS_MAX 65536u
#define LOG_MAX   (64u * 1024 * 1024)
#define LOG_ENTRY (256u * 1024) /* longer ones are rare and not being written right now */
#define TRIES     8

static bool power_of_two(uint64_t n)
{
    return n && !(n & (n - 1));
}

/* Of the untrusted path only a regular file is ever opened. */
static int open_regular(const char *path, uint64_t *size)
{
    struct stat st;
    int fd;

    if (lstat(path, &st))
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EBADMSG;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        close(fd);
        return -EBADMSG;
    }
    *size = (uint64_t)st.st_size;
    return fd;
}

/* The triple is guarded by a sequence lock. */
static int read_header(struct ring *r)
{
    struct gwt_ring_header again;
    int rc = gwt_read_at(r->fd, 0, &r->header, sizeof(r->header));

    for (int i = 0; !rc && !r->now_valid && i < TRIES; i++) {
        rc = gwt_read_at(r->fd, 0, &again, sizeof(again));
        r->now_valid = !rc && !(r->header.now_seq & 1) && again.now_seq == r->header.now_seq;
        r->header = again;
    }
    return rc;
}

static bool header_sound(const struct ring *r)
{
    const struct gwt_ring_header *h = &r->header;

    return !memcmp(h->magic, GWT_RING_MAGIC, sizeof(h->magic)) &&
           h->version_major == GWT_VERSION_MAJOR && h->slots <= SLOTS_MAX &&
           h->slot_size >= sizeof(struct gwt_slot) && h->slot_size <= 65536 &&
           h->slots_offset <= r->size &&
           (uint64_t)h->slots * h->slot_size <= r->size - h->slots_offset &&
           power_of_two(h->deflog_size) && h->deflog_size <= LOG_MAX &&
           h->deflog_offset <= r->size && h->deflog_size <= r->size - h->deflog_offset;
}

static bool belongs_to(const struct gwt_ring_header *h, const struct gwt_file_header *dump)
{
    return h->pid == dump->pid && h->process_start == dump->process_start &&
           !memcmp(h->boot_id, dump->boot_id, sizeof(h->boot_id));
}

/* ---- slots -------------------------------------------------------------------------------- */

static int read_slot(const struct ring *r, uint32_t index, struct gwt_slot *s)
{
    return gwt_read_at(r->fd, r->header.slots_offset + (uint64_t)index * r->header.slot_size, s,
                       sizeof(*s));
}

static bool slot_sound(struct ring *r, const struct gwt_slot *s)
{
    struct stat st;

    /* a thread's ring is appended to the file when the thread first makes a call */
    if (s->ring_offset >= r->size && !fstat(r->fd, &st))
        r->size = (uint64_t)st.st_size;
    return s->state <= GWT_SLOT_CLOSED && power_of_two(s->ring_records) &&
           s->ring_offset <= r->size &&
           s->ring_records <= (r->size - s->ring_offset) / sizeof(struct gwt_record);
}

/* post: 0, -ENOMEM, or -EBADMSG: more than the file can hold, so slots overlap. */
static int make_room(struct ring *r, size_t count)
{
    size_t room = r->records_room;
    struct gwt_record *grown;

    if (count > r->size / sizeof(*r->records) - r->records_count)
        return -EBADMSG;
    if (count <= room - r->records_count)
        return 0;
    room = 2 * room > r->records_count + count ? 2 * room : r->records_count + count;
    grown = realloc(r->records, room * sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    r->records = grown;
    r->records_room = room;
    return 0;
}

/* Records [from, to) behind those already there. */
static int copy_records(struct ring *r, const struct gwt_slot *s, uint64_t from, uint64_t to)
{
    struct gwt_record *out = r->records + r->records_count;

    while (from < to) {
        uint64_t at = from & (s->ring_records - 1), n = s->ring_records - at;
        int rc;

        if (n > to - from)
            n = to - from;
        rc = gwt_read_at(r->fd, s->ring_offset + at * sizeof(*out), out, n * sizeof(*out));
        if (rc)
            return rc;
        out += n;
        from += n;
    }
    return 0;
}

/* post: 1: *out is what the slot holds, its records are copied; 0: nothing, or nothing that
 * is not in the dump; or -errno. */
static int copy_slot(struct ring *r, uint32_t index, struct ring_slot *out)
{
    for (int i = 0; i < TRIES; i++) {
        struct gwt_slot before, after;
        uint64_t from, sound;
        int rc = read_slot(r, index, &before);

        if (rc || before.state == GWT_SLOT_FREE)
            return rc;
        if (!slot_sound(r, &before)) {
            r->bad++;
            return 0;
        }
        /* head was read before tail, which may have passed it since */
        if (before.tail > before.head)
            before.tail = before.head;
        from = before.head > before.ring_records ? before.head - before.ring_records : 0;
        if (before.tail < from) {
            r->bad++;
            return 0;
        }
        /* Once writing failed, drained is not written: take what is still there. */
        if (!r->header.counters[GWT_C_WRITE_ERRNO])
            from = before.tail;
        rc = make_room(r, before.head - from);
        if (!rc && from < before.head)
            rc = copy_records(r, &before, from, before.head);
        if (!rc)
            rc = read_slot(r, index, &after);
        if (rc)
            return rc;
        if (after.state == GWT_SLOT_FREE || after.thread != before.thread ||
            after.ring_offset != before.ring_offset || after.ring_records != before.ring_records ||
            after.head < before.head)
            continue;

        sound = after.head >= after.ring_records ? after.head + 1 - after.ring_records : 0;
        if (sound > after.tail) /* a full ring: nobody stores, and this is not in the dump */
            sound = after.tail;
        if (sound > before.head)
            sound = before.head;
        if (sound < from)
            sound = from;
        if (sound > from && sound < before.head)
            memmove(r->records + r->records_count, r->records + r->records_count + (sound - from),
                    (size_t)(before.head - sound) * sizeof(*r->records));
        *out = (struct ring_slot){
            .thread = before.thread,
            .first = sound,
            .at = r->records_count,
            .count = (uint32_t)(before.head - sound),
            .open_t0 =
                after.state == GWT_SLOT_USED && after.open_t0 > after.returned ? after.open_t0 : 0,
            .open_api = after.open_api,
        };
        r->records_count += out->count;
        r->lost += after.lost;
        return 1;
    }
    return 0;
}

static int copy_slots(struct ring *r)
{
    if (!r->header.slots)
        return 0;
    r->slots = calloc(r->header.slots, sizeof(*r->slots));
    if (!r->slots)
        return -ENOMEM;
    for (uint32_t i = 0; i < r->header.slots; i++) {
        int rc = copy_slot(r, i, &r->slots[r->slots_count]);

        if (rc == -ENOMEM)
            return rc;
        if (rc < 0)
            r->bad++;
        else
            r->slots_count += (size_t)rc;
    }
    return 0;
}

int gwt_ring_read(struct ring *r, const char *path, const struct gwt_file_header *dump)
{
    int rc;

    memset(r, 0, sizeof(*r));
    r->fd = open_regular(path, &r->size);
    if (r->fd < 0) {
        rc = r->fd;
        r->fd = -1;
        return rc;
    }
    rc = read_header(r);
    if (!rc && (!header_sound(r) || !belongs_to(&r->header, dump)))
        rc = -EBADMSG;
    if (!rc)
        rc = copy_slots(r);
    if (rc)
        gwt_ring_free(r);
    return rc;
}

int gwt_ring_read_log(struct ring *r)
{
    uint64_t size = r->header.deflog_size, at, before, after, sound = 0;

    if (gwt_read_at(r->fd, offsetof(struct gwt_ring_header, deflog_head), &before, 8))
        return 0;
    r->log = malloc(size);
    if (!r->log)
        return -ENOMEM;
    r->log_from = before > size ? before - size : 0;
    r->log_to = before;
    at = r->log_from & (size - 1);
    /* oldest first; the window's second half of them lies at its start */
    if (gwt_read_at(r->fd, r->header.deflog_offset + at, r->log, size - at) ||
        gwt_read_at(r->fd, r->header.deflog_offset, r->log + (size - at), at) ||
        gwt_read_at(r->fd, offsetof(struct gwt_ring_header, deflog_head), &after, 8) ||
        gwt_read_at(r->fd, offsetof(struct gwt_ring_header, deflog_tail), &r->log_tail, 8) ||
        after < before) {
        free(r->log);
        r->log = NULL;
        return 0;
    }
    if (after + LOG_ENTRY > size)
        sound = after + LOG_ENTRY - size;
    if (sound > r->log_tail)
        sound = r->log_tail;
    r->log_sound = sound > r->log_from ? sound : r->log_from;
    return 0;
}

void gwt_ring_free(struct ring *r)
{
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
    free(r->records);
    free(r->slots);
    free(r->log);
    r->records = NULL;
    r->slots = NULL;
    r->log = NULL;
}
