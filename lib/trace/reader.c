/* The reader's interface: opening, coverage, threads. */
#include "reader_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int gwt_fail(struct gwt_error *error, int code, const char *format, ...)
{
    va_list args;

    if (error) {
        va_start(args, format);
        vsnprintf(error->text, sizeof(error->text), format, args);
        va_end(args);
    }
    return code;
}

int gwt_reserve(void *array, size_t *room, size_t have, size_t count, size_t each)
{
    void *old, *grown;
    size_t wanted = *room ? 2 * *room : 64;

    if (count <= *room - have)
        return 0;
    if (wanted < have + count)
        wanted = have + count;
    memcpy(&old, array, sizeof(old));
    grown = realloc(old, wanted * each);
    if (!grown)
        return -ENOMEM;
    memcpy(array, &grown, sizeof(grown));
    *room = wanted;
    return 0;
}

/* ---- the dump's header -------------------------------------------------------------------- */

static int open_dump(struct gwt_trace *t, struct gwt_error *error)
{
    struct stat st;
    int rc;

    t->fd[FILE_HEAD] = open(t->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (t->fd[FILE_HEAD] < 0 || fstat(t->fd[FILE_HEAD], &st)) {
        rc = -errno;
        return gwt_fail(error, rc, "%s: %s", t->path, strerror(-rc));
    }
    if (S_ISDIR(st.st_mode))
        return gwt_fail(error, -EISDIR, "%s: a directory, not a recording; name a .gwt file in it",
                        t->path);
    if (!S_ISREG(st.st_mode))
        return gwt_fail(error, -EBADMSG, "%s: not a regular file", t->path);
    if (!st.st_size)
        return gwt_fail(error, -EBADMSG, "%s: empty, so not a gpuwait recording", t->path);
    rc = gwt_read_at(t->fd[FILE_HEAD], 0, &t->header, sizeof(t->header));
    if (rc && rc != -EBADMSG)
        return gwt_fail(error, rc, "%s: %s", t->path, strerror(-rc));
    if (memcmp(t->header.magic, GWT_MAGIC, sizeof(t->header.magic)))
        return gwt_fail(error, -EBADMSG, "%s: not a gpuwait recording", t->path);
    if (rc)
        return gwt_fail(error, -EBADMSG,
                        "%s: cut short within its first %zu bytes: nothing in it "
                        "can be read",
                        t->path, sizeof(t->header));
    return 0;
}

static int check_header(struct gwt_trace *t, struct gwt_error *error)
{
    struct gwt_file_header *h = &t->header;

    if (h->header_size == __builtin_bswap32(sizeof(*h)))
        return gwt_fail(error, -EPROTO,
                        "%s: recorded on a big-endian machine, which this gpuwait "
                        "cannot read",
                        t->path);
    if (h->version_major > GWT_VERSION_MAJOR)
        return gwt_fail(error, -EPROTO,
                        "%s: format version %u.%u, but this gpuwait reads up to "
                        "%u.x: use the gpuwait that recorded it, or a newer one",
                        t->path, h->version_major, h->version_minor, GWT_VERSION_MAJOR);
    if (h->features >> 32)
        return gwt_fail(error, -EPROTO, "%s: needs a newer gpuwait (features %#llx)", t->path,
                        (unsigned long long)h->features);
    if (h->version_major < 1 || h->header_size < sizeof(*h) || h->header_size > 1u << 20)
        return gwt_fail(error, -EBADMSG, "%s: its header is damaged", t->path);
    h->ring_path[sizeof(h->ring_path) - 1] = 0;
    return 0;
}

/* ---- threads and coverage ----------------------------------------------------------------- */

static int by_thread(const void *a, const void *b)
{
    const struct source *x = a, *y = b;

    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    if (x->file != y->file) /* the ring last: from_ring counts what is nowhere else */
        return x->file < y->file ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static int collect_threads(struct gwt_trace *t)
{
    size_t room = 0, n = 0, cursor = 0;
    uint32_t id;

    for (size_t i = 0; i < t->sources_count; i++) {
        if (i && t->sources[i].thread == t->sources[i - 1].thread)
            continue;
        if (gwt_reserve(&t->threads, &room, n, 1, sizeof(*t->threads)))
            return -ENOMEM;
        t->threads[n++] = t->sources[i].thread;
    }
    for (size_t i = 0; i < t->ring.slots_count; i++) {
        if (gwt_reserve(&t->threads, &room, n, 1, sizeof(*t->threads)))
            return -ENOMEM;
        t->threads[n++] = t->ring.slots[i].thread;
    }
    while ((id = gwt_defs_next(&t->defs, GWT_DEF_THREAD, &cursor))) {
        if (gwt_reserve(&t->threads, &room, n, 1, sizeof(*t->threads)))
            return -ENOMEM;
        t->threads[n++] = id;
    }
    if (n)
        qsort(t->threads, n, sizeof(*t->threads), by_number);
    for (size_t i = 0; i < n; i++)
        if (!i || t->threads[i] != t->threads[t->threads_count - 1])
            t->threads[t->threads_count++] = t->threads[i];
    return 0;
}

static void add_to(uint64_t *sum, uint64_t n, int sign)
{
    if (sign < 0)
        *sum -= n;
    else
        *sum += n;
}

void gwt_account(struct gwt_trace *t, const struct cursor *c, int sign)
{
    uint64_t next = 0;

    for (uint32_t i = c->sources_from; i < c->sources_to; i++) {
        const struct source *s = &t->sources[i];
        uint64_t end = s->first + s->count, from = s->first > next ? s->first : next;

        if (s->bad || end <= next)
            continue;
        add_to(&t->gaps, from - next, sign);
        add_to(&t->coverage.events, end - from, sign);
        if (s->file == FILE_RING)
            add_to(&t->coverage.from_ring, end - from, sign);
        next = end;
    }
}

void gwt_account_done(struct gwt_trace *t)
{
    struct gwt_coverage *c = &t->coverage;
    uint64_t dropped = t->counters[GWT_C_DROPPED];

    c->missing = t->gaps > c->aggregated ? t->gaps - c->aggregated : 0;
    if (dropped < t->ring.lost)
        dropped = t->ring.lost;
    if (dropped < t->lost_seen)
        dropped = t->lost_seen;
    dropped += t->counters[GWT_C_NO_RING];
    if (c->dropped < dropped) /* a second pass begins to count again */
        c->dropped = dropped;
}

static bool read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    text[n] = 0;
    return true;
}

static bool same_boot(const uint8_t id[16])
{
    char text[64];
    size_t n = 0;

    if (!read_text("/proc/sys/kernel/random/boot_id", text, sizeof(text)))
        return false;
    for (const char *c = text; *c && *c != '\n'; c++) {
        unsigned digit;

        if (*c == '-')
            continue;
        digit = *c <= '9' ? (unsigned)(*c - '0') : (unsigned)((*c | 0x20) - 'a' + 10);
        if (n == 32 || digit > 15 || (n % 2 ? id[n / 2] & 15u : id[n / 2] >> 4) != digit)
            return false;
        n++;
    }
    return n == 32;
}

static bool alive(const struct gwt_file_header *h)
{
    char path[64], text[1024], *at;
    int field = 2;

    if (!same_boot(h->boot_id))
        return false;
    snprintf(path, sizeof(path), "/proc/%u/stat", h->pid);
    if (!read_text(path, text, sizeof(text)))
        return false;
    at = strrchr(text, ')'); /* the name before it may hold anything */
    if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X')
        return false;
    for (; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at && strtoull(at + 1, NULL, 10) == h->process_start;
}

/* ---- the interface ------------------------------------------------------------------------ */

static int read_all(struct gwt_trace *t)
{
    struct gwt_coverage *c = &t->coverage;
    int rc = gwt_snapshot(t);

    if (!rc)
        rc = gwt_index(t);
    if (rc)
        return rc;
    c->ring = t->ring.fd >= 0;
    c->alive = !c->ended && alive(&t->header);
    c->ring_missing = !c->ended && !c->ring && t->header.ring_path[0] != 0;
    if (c->alive) /* the frame that is just being written */
        c->torn = false;
    if (t->sources_count)
        qsort(t->sources, t->sources_count, sizeof(*t->sources), by_thread);
    rc = collect_threads(t);
    return rc ? rc : gwt_merge_start(t);
}

int gwt_open(const char *path, struct gwt_trace **out, struct gwt_error *error)
{
    struct gwt_trace *t = calloc(1, sizeof(*t));
    int rc;

    *out = NULL;
    if (t) {
        t->fd[FILE_HEAD] = t->fd[FILE_TAIL0] = t->fd[FILE_TAIL1] = t->ring.fd = -1;
        t->path = strdup(path);
    }
    if (!t || !t->path) {
        rc = gwt_fail(error, -ENOMEM, "%s: not enough memory to read it", path);
        goto out;
    }
    rc = open_dump(t, error);
    if (!rc)
        rc = check_header(t, error);
    if (rc)
        goto out;
    rc = read_all(t);
    if (rc) {
        gwt_fail(error, rc, "%s: not enough memory to read it", path);
        goto out;
    }
    *out = t;
    t = NULL;
out:
    gwt_close(t);
    return rc;
}

void gwt_close(struct gwt_trace *t)
{
    if (!t)
        return;
    gwt_merge_free(t);
    gwt_ring_free(&t->ring);
    gwt_defs_free(&t->defs);
    gwt_clock_free(&t->clock);
    for (int i = 0; i < FILES; i++)
        if (t->fd[i] >= 0)
            close(t->fd[i]);
    free(t->sources);
    free(t->threads);
    free(t->aggregates);
    free(t->path);
    free(t);
}

const struct gwt_coverage *gwt_coverage(const struct gwt_trace *t)
{
    return &t->coverage;
}

const struct gwt_file_header *gwt_header(const struct gwt_trace *t)
{
    return &t->header;
}

uint64_t gwt_counter(const struct gwt_trace *t, enum gwt_counter counter)
{
    return (unsigned)counter < GWT_COUNTER_SLOTS ? t->counters[counter] : 0;
}

const struct gwt_aggregate *gwt_aggregate_at(const struct gwt_trace *t, size_t index)
{
    return index < t->aggregates_count ? &t->aggregates[index] : NULL;
}

bool gwt_thread(const struct gwt_trace *t, uint32_t id, struct gwt_thread_info *out)
{
    const struct def *def = gwt_def(&t->defs, GWT_DEF_THREAD, id);

    if (!t->threads_count ||
        !bsearch(&id, t->threads, t->threads_count, sizeof(*t->threads), by_number))
        return false;
    *out = (struct gwt_thread_info){.id = id};
    if (def) {
        const struct gwt_def_thread *d = (const void *)def->bytes;

        out->tid = d->tid;
        out->pthread = d->pthread;
        out->name = (const char *)(d + 1);
    }
    for (size_t i = 0; i < t->ring.slots_count && !t->coverage.ended; i++) {
        const struct ring_slot *slot = &t->ring.slots[i];

        if (slot->thread == id && slot->open_t0) {
            struct clock clock = t->clock; /* its place in the run is not ours to move */

            out->open_api = gwt_api_name(t, slot->open_api);
            out->open_since_ns = gwt_clock_ns(&clock, slot->open_t0);
        }
    }
    return true;
}

bool gwt_thread_at(const struct gwt_trace *t, size_t index, struct gwt_thread_info *out)
{
    return index < t->threads_count && gwt_thread(t, t->threads[index], out);
}
