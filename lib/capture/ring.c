/* The ring file: header, thread slots, definition window, and one ring per thread.
 *
 * MAP_SHARED, so that whatever ends the process, what was stored is in the page cache.
 * Space is allocated before it is mapped: a store never meets a full disk. */
#include "gw.h"

#include "trace/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define SLOTS_OFFSET  sizeof(struct gwt_ring_header)
#define DEFLOG_OFFSET (SLOTS_OFFSET + GWT_THREAD_SLOTS * sizeof(struct gwt_slot))
#define RINGS_OFFSET  (DEFLOG_OFFSET + GWT_DEFLOG_SIZE)
#define RINGS_MAX     (48u << 20) /* of all rings together */
#define RECORDS_SPARE 8192        /* of a ring made while others wait for the drain */
#define FAILURES_MAX  8           /* to get room for a ring; then no thread asks again */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

_Static_assert(DEFLOG_OFFSET % 4096 == 0 && RINGS_OFFSET % 4096 == 0, "mappings are page-aligned");

/* Counts before the ring file exists; its counters start from these. */
static struct gwt_ring_header before;
struct gwt_ring_header *gw_header = &before;

static struct gwt_file ring = {.fd = -1};
static char ring_path_[PATH_MAX];
static uint64_t file_size;
static uint32_t slots_ever;
static uint32_t spares;
static uint32_t full; /* no slot is free, and none can be added */
static uint32_t failures;
static uint32_t refused; /* the errno of the first, until told */
static uint32_t last_thread;
static void *maps[GWT_THREAD_SLOTS];
static struct {
    uint64_t pthread;
    char name[16]; /* the kernel's limit */
} owners[GWT_THREAD_SLOTS];

/* ---- the file ------------------------------------------------------------------------- */

static int reserve(int fd, uint64_t offset, uint64_t size)
{
    static const char zeros[65536];
    struct rlimit limit;
    /* Beyond it a SIGXFSZ would come, which ends the program. */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        offset + size > limit.rlim_cur)
        return -EFBIG;
    for (int i = 0; i < 8; i++) /* a signal of the program's may interrupt it */
        if (fallocate(fd, 0, (off_t)offset, (off_t)size) == 0)
            return 0;
        else if (errno != EINTR)
            break;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return -errno;
    while (size) { /* a file system without it: write what a store would need */
        size_t n = size < sizeof zeros ? (size_t)size : sizeof zeros;
        ssize_t w = pwrite(fd, zeros, n, (off_t)offset);
        if (w <= 0)
            return w < 0 ? -errno : -EIO;
        offset += (uint64_t)w;
        size -= (uint64_t)w;
    }
    return 0;
}

/* Stores into a ring on a network file system would stall or, when the server goes, kill. */
static bool is_local(const char *directory)
{
    static const unsigned long local[] = {0xEF53 /* ext */,
                                          0x58465342 /* xfs */,
                                          0x9123683E /* btrfs */,
                                          0x01021994 /* tmpfs */,
                                          0x794c7630 /* overlay */,
                                          0xF2F52010 /* f2fs */,
                                          0x2FC12FC1 /* zfs */};
    struct statfs fs;
    if (statfs(directory, &fs) != 0)
        return false;
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++)
        if ((unsigned long)fs.f_type == local[i])
            return true;
    return false;
}

/* Containers often have a /dev/shm of 64 MiB that the job's own workers need. */
static bool shm_has_room(void)
{
    struct statfs fs;
    return statfs("/dev/shm", &fs) == 0 && (unsigned long)fs.f_type == 0x01021994 &&
           (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize >= (1ull << 30) &&
           access("/dev/shm", W_OK) == 0;
}

/* A disk under load stalled stores by 2.5 ms where tmpfs did by 0.03: memory first. */
static void choose_path(const char *dump_path)
{
    const char *base = strrchr(dump_path, '/');
    base = base ? base + 1 : dump_path;
    int stem = (int)strlen(base) - 4; /* without ".gwt" */
    int directory = (int)(base - dump_path);
    char dir[PATH_MAX];
    snprintf(dir, sizeof dir, "%.*s", directory ? directory : 1, directory ? dump_path : ".");
    bool shm = strcmp(gw_options.ring, "shm") == 0;
    if (strcmp(gw_options.ring, "auto") == 0)
        shm = shm_has_room() || !is_local(dir);
    if (shm)
        snprintf(ring_path_, sizeof ring_path_, "/dev/shm/gpuwait-%.*s.ring", stem, base);
    else if (gw_options.ring[0] == '/')
        snprintf(ring_path_, sizeof ring_path_, "%s/gpuwait-%.*s.ring", gw_options.ring, stem,
                 base);
    else
        snprintf(ring_path_, sizeof ring_path_, "%.*s%.*s.ring", directory, dump_path, stem, base);
}

static int create(void)
{
    int fd = open(ring_path_, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = gwt_file_adopt(fd, &ring);
    if (r == 0)
        r = reserve(ring.fd, 0, RINGS_OFFSET);
    if (r == 0) {
        void *p = mmap(NULL, RINGS_OFFSET, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, 0);
        if (p != MAP_FAILED) {
            gw_store_release(&gw_header, p); /* partner: gw_count() */
            file_size = RINGS_OFFSET;
            return 0;
        }
        r = -errno;
    }
    gwt_file_close(&ring);
    unlink(ring_path_);
    return r;
}

int gw_ring_create(const char *dump_path, const struct gwt_file_header *file, char ring_path[256])
{
    choose_path(dump_path);
    int r = create();
    if (r < 0 && strncmp(ring_path_, "/dev/shm/", 9) == 0 && strcmp(gw_options.ring, "auto") == 0) {
        strcpy(gw_options.ring, "dump");
        choose_path(dump_path);
        r = create();
    }
    if (r < 0)
        return r;
    struct gwt_ring_header *h = gw_header;
    memcpy(h->magic, GWT_RING_MAGIC, sizeof h->magic);
    h->version_major = GWT_VERSION_MAJOR;
    h->version_minor = GWT_VERSION_MINOR;
    h->header_size = sizeof *h;
    h->pid = file->pid;
    h->clock = file->clock;
    h->process_start = file->process_start;
    h->start = h->now = file->start;
    h->slots = GWT_THREAD_SLOTS;
    h->slot_size = sizeof(struct gwt_slot);
    h->slots_offset = SLOTS_OFFSET;
    h->deflog_offset = DEFLOG_OFFSET;
    h->deflog_size = GWT_DEFLOG_SIZE;
    memcpy(h->boot_id, file->boot_id, sizeof h->boot_id);
    if (strlen(dump_path) < sizeof h->dump_path)
        strcpy(h->dump_path, dump_path);
    for (unsigned i = 0; i < GWT_COUNTER_SLOTS; i++) /* other threads count already */
        gw_add_relaxed(&h->counters[i], gw_load_relaxed(&before.counters[i]));
    /* Too long for the header: the reader looks for the same name beside the dump. */
    if (strlen(ring_path_) < 256)
        strcpy(ring_path, ring_path_);
    return 0;
}

void gw_ring_unlink(void)
{
    if (ring_path_[0])
        unlink(ring_path_);
}

/* Somebody removed the file: whatever it holds that is in no dump yet, nobody will find. */
bool gw_ring_is_gone(void)
{
    struct stat st;
    return gwt_file_is_ours(&ring) && fstat(ring.fd, &st) == 0 && st.st_nlink == 0;
}

/* In a child: the mappings are the parent's and stay untouched. */
void gw_ring_forget(void)
{
    gwt_file_close(&ring);
    ring_path_[0] = 0;
    file_size = 0;
    slots_ever = spares = last_thread = full = failures = refused = 0;
    memset(maps, 0, sizeof maps);
    memset(&before, 0, sizeof before);
    gw_header = &before;
}

/* ---- slots ---------------------------------------------------------------------------------- */

struct gwt_slot *gw_ring_slot(unsigned index)
{
    return (struct gwt_slot *)((char *)gw_header + SLOTS_OFFSET) + index;
}

unsigned gw_ring_index(const struct gwt_slot *slot)
{
    return (unsigned)(slot - gw_ring_slot(0));
}

unsigned gw_ring_slots_used(void)
{
    return gw_load_acquire(&slots_ever); /* partner: the release store in add_slot() */
}

struct gwt_record *gw_ring_records(const struct gwt_slot *slot)
{
    return maps[gw_ring_index(slot)];
}

uint64_t gw_ring_pthread(unsigned index)
{
    return owners[index].pthread;
}

/* The first threads are the ones that train; threads by the hundred get little rings. */
static uint32_t records_for(uint32_t n)
{
    return n < 8 ? 65536 : n < 24 ? 16384 : 2048;
}

void gw_ring_no_room(int error)
{
    if (gw_add_relaxed(&failures, 1) == 0)
        gw_store_relaxed(&refused, (uint32_t)error);
}

void gw_ring_tell_no_room(void)
{
    uint32_t error = gw_exchange(&refused, 0);
    if (error)
        gw_say("no ring for a thread: %s; its calls are counted, not recorded",
               strerror((int)error));
}

/* pre:  locked. post: NULL: there is no room.
 * `spare`: more rings are wanted only until the drain has come to those of threads that ended. */
static struct gwt_slot *add_slot(bool spare)
{
    uint32_t n = slots_ever, records = records_for(spare ? n : n - spares);
    if (spare && records > RECORDS_SPARE)
        records = RECORDS_SPARE;
    uint64_t size = (uint64_t)records * sizeof(struct gwt_record);
    if (n == GWT_THREAD_SLOTS || file_size - RINGS_OFFSET + size > RINGS_MAX) {
        gw_store_relaxed(&failures, FAILURES_MAX); /* as many as there may be: nothing to be said */
        return NULL;
    }
    int r = gwt_file_is_ours(&ring) ? reserve(ring.fd, file_size, size) : -EBADF;
    if (r < 0) {
        gw_ring_no_room(-r);
        return NULL;
    }
    /* Faulted in now, so that no store of the record path waits for a page. */
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd,
                   (off_t)file_size);
    if (p == MAP_FAILED) {
        gw_ring_no_room(errno);
        return NULL;
    }
    struct gwt_slot *s = gw_ring_slot(n);
    maps[n] = p;
    s->ring_offset = file_size;
    s->ring_records = records;
    file_size += size;
    spares += spare;
    gw_store_release(&slots_ever, n + 1); /* partner: gw_ring_slots_used() */
    return s;
}

/* pre:  locked. */
static void name_owner(struct gwt_slot *s, const char *name)
{
    unsigned i = gw_ring_index(s);
    struct gwt_def_thread d = {.tid = s->tid, .pthread = owners[i].pthread};
    if (gw_define(GWT_DEF_THREAD, s->thread, &d, sizeof d, name, strlen(name)))
        memcpy(owners[i].name, name, strlen(name) + 1);
}

/* pre:  name has at most 15 characters. */
void gw_ring_thread_named(struct gwt_slot *s, uint32_t thread, const char *name)
{
    gw_lock();
    if (s->thread == thread && strcmp(owners[gw_ring_index(s)].name, name) != 0)
        name_owner(s, name);
    gw_unlock();
}

/* pre:  locked. post: the free one with the largest ring, or NULL; *closed: others soon will be. */
static struct gwt_slot *free_slot(bool *closed)
{
    struct gwt_slot *best = NULL;
    *closed = false;
    for (unsigned i = 0; i < slots_ever; i++) {
        struct gwt_slot *s = gw_ring_slot(i);
        uint32_t state = gw_load_acquire(&s->state); /* partner: slot_release */
        *closed |= state == GWT_SLOT_CLOSED;
        if (state == GWT_SLOT_FREE && (!best || s->ring_records > best->ring_records))
            best = s;
    }
    return best;
}

static bool is_spare(const struct gwt_slot *s)
{
    return s->ring_records == RECORDS_SPARE;
}

static size_t ring_size(const struct gwt_slot *s)
{
    return s->ring_records * sizeof(struct gwt_record);
}

bool gw_ring_full(void)
{
    return gw_load_relaxed(&full);
}

int gw_ring_thread(struct gw_thread *t)
{
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    gw_lock();
    bool closed;
    struct gwt_slot *s = free_slot(&closed);
    if (!s)
        s = add_slot(closed);
    else if (is_spare(s))
        madvise(gw_ring_records(s), ring_size(s), MADV_POPULATE_WRITE); /* as add_slot() does */
    if (!s && gw_load_relaxed(&failures) >= FAILURES_MAX) {
        gw_exchange(&full, 1); /* then a last look; partner: gw_ring_slot_release() */
        if ((s = free_slot(&closed)))
            gw_store_relaxed(&full, 0);
    }
    if (!s) {
        gw_unlock();
        return -ENOSPC;
    }
    t->id = ++last_thread;
    t->slot = s;
    t->ring = gw_ring_records(s);
    t->mask = s->ring_records - 1;
    t->room = s->ring_records;
    s->tail = s->lost = 0;
    /* The timer and the watch may still look at what was another thread's. */
    gw_store_relaxed(&s->head, 0);
    gw_store_relaxed(&s->open_t0, 0);
    gw_store_relaxed(&s->returned, 0);
    gw_store_relaxed(&s->tid, (uint32_t)gettid());
    gw_store_relaxed(&s->thread, t->id);
    gw_store_release(&s->state, GWT_SLOT_USED); /* partner: the drain's and the reader's load */
    owners[gw_ring_index(s)].pthread = (uint64_t)pthread_self();
    name_owner(s, name);
    gw_unlock();
    gw_count(GWT_C_THREADS, 1);
    return 0;
}

/* The thread is ending: its name is known for good. The drain frees the slot. */
void gw_ring_thread_close(struct gw_thread *t)
{
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    gw_ring_thread_named(t->slot, t->id, name);
    gw_store_release(&t->slot->state, GWT_SLOT_CLOSED);
}

void gw_ring_slot_release(struct gwt_slot *slot)
{
    if (is_spare(slot)) /* out of memory until it is needed again; in the file it stays */
        madvise(gw_ring_records(slot), ring_size(slot), MADV_DONTNEED);
    gw_store_release(&slot->state, GWT_SLOT_FREE); /* partner: the load in gw_ring_thread() */
    gw_exchange(&full, 0);                         /* partner: the exchange in gw_ring_thread() */
}
