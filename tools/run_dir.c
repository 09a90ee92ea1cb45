#include "run_dir.h"
#include "tool.h"

#include <gpuwait/format.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK ".lock"

/* ---- what is in it ------------------------------------------------------------- */

/* Opens a regular file of our own that begins with `magic`. -1: it is not that. */
static int open_own(int dir, const char *name, const char magic[8], void *header, size_t size)
{
    struct stat st;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        pread(fd, header, size, 0) != (ssize_t)size || memcmp(header, magic, 8)) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && !strcmp(text + n - m, end);
}

static bool is_dump(int dir, const char *name, struct gwt_file_header *header)
{
    /* a dump's further segments are NAME.gwt.tail0 and .tail1 */
    if (!ends_with(name, ".gwt") && !ends_with(name, ".gwt.tail0") &&
        !ends_with(name, ".gwt.tail1"))
        return false;
    int fd = open_own(dir, name, GWT_MAGIC, header, sizeof(*header));
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool is_ring(int dir, const char *name, struct gwt_ring_header *header)
{
    if (!ends_with(name, ".ring"))
        return false;
    int fd = open_own(dir, name, GWT_RING_MAGIC, header, sizeof(*header));
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool same_boot(const uint8_t boot[16])
{
    char text[64] = "";
    uint8_t now[16] = {0};
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!f)
        return true; /* not known: rather alive than overwritten */
    bool got = fgets(text, sizeof(text), f) != NULL;
    fclose(f);
    unsigned n = 0;
    for (const char *c = text; got && *c && n < 32; c++) {
        const char *digits = "0123456789abcdef", *d = strchr(digits, *c | 0x20);
        if (*c == '-' || *c == '\n' || !d)
            continue;
        now[n / 2] = (uint8_t)(now[n / 2] << 4 | (d - digits));
        n++;
    }
    return !memcmp(now, boot, 16);
}

static bool alive(uint32_t pid, uint64_t start, const uint8_t boot[16])
{
    char path[64], text[1024] = "";
    if (!same_boot(boot))
        return false;
    snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool got = fgets(text, sizeof(text), f) != NULL;
    fclose(f);
    /* field 22, counted from the end of the name, which may hold anything */
    char *p = got ? strrchr(text, ')') : NULL;
    if (!p || (p[1] && p[2] == 'Z'))
        return false;
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    return p && strtoull(p, NULL, 10) == start;
}

/* Calls `f` for each name in the directory; stops when it returns false. */
static void each_name(int dir, bool (*f)(int dir, const char *name, void *arg), void *arg)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *e; (e = readdir(d));)
        if (!f(dir, e->d_name, arg))
            break;
    closedir(d);
}

static bool find_alive(int dir, const char *name, void *found)
{
    struct gwt_file_header h;
    struct gwt_ring_header r;
    if (is_dump(dir, name, &h))
        *(bool *)found = alive(h.pid, h.process_start, h.boot_id);
    else if (is_ring(dir, name, &r))
        *(bool *)found = alive(r.pid, r.process_start, r.boot_id);
    return !*(bool *)found;
}

/* ---- moving an old recording away ------------------------------------------------------ */

typedef char ring_path[sizeof(((struct gwt_file_header *)0)->ring_path) + 1];

/* The ring file that a dump names, wherever it lies: only if it is what it claims to be, and that
 * of a process that is no more. post: a descriptor, or -1. */
static int open_orphan(const struct gwt_file_header *dump, ring_path path)
{
    struct gwt_ring_header ring;
    snprintf(path, sizeof(ring_path), "%.*s", (int)sizeof(dump->ring_path), dump->ring_path);
    int fd = path[0] == '/' ? open_own(AT_FDCWD, path, GWT_RING_MAGIC, &ring, sizeof(ring)) : -1;
    if (fd < 0)
        return -1;
    if (ring.pid == dump->pid && ring.process_start == dump->process_start &&
        !memcmp(ring.boot_id, dump->boot_id, 16) &&
        !alive(ring.pid, ring.process_start, ring.boot_id))
        return fd;
    close(fd);
    return -1;
}

static void remove_ring(const struct gwt_file_header *dump)
{
    ring_path path;
    int fd = open_orphan(dump, path);
    if (fd < 0)
        return;
    close(fd);
    unlink(path);
}

static bool remove_own(int dir, const char *name, void *arg)
{
    struct gwt_file_header h;
    struct gwt_ring_header r;
    (void)arg;
    if (is_dump(dir, name, &h)) {
        if (ends_with(name, ".gwt"))
            remove_ring(&h);
        unlinkat(dir, name, 0);
    } else if (is_ring(dir, name, &r)) {
        unlinkat(dir, name, 0);
    }
    return true;
}

struct move {
    const char *dir, *old_path;
    int old; /* -1: not made yet */
    bool failed;
};

/* Made only when there is something to move; what an older run left in it goes. */
static bool open_old(struct move *m)
{
    if (mkdir(m->old_path, 0777) && errno != EEXIST) {
        say("cannot make %s for the recording in %s: %s", m->old_path, m->dir, strerror(errno));
        return false;
    }
    m->old = open(m->old_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (m->old < 0) {
        say("cannot move the recording in %s to %s: %s; move it away or give -o", m->dir,
            m->old_path, strerror(errno));
        return false;
    }
    each_name(m->old, remove_own, NULL);
    return true;
}

static bool move_one(int dir, const char *name, void *arg)
{
    struct move *m = arg;
    struct gwt_file_header h;
    struct gwt_ring_header r;
    if (!is_dump(dir, name, &h) && !is_ring(dir, name, &r))
        return true;
    if (m->old < 0 && !open_old(m)) {
        m->failed = true;
        return false;
    }
    if (renameat(dir, name, m->old, name)) {
        say("cannot move %s/%s to %s: %s", m->dir, name, m->old_path, strerror(errno));
        m->failed = true;
    }
    return !m->failed;
}

static bool move_away(int dir, const char *path)
{
    char *old = xprintf("%s.old", path);
    struct move m = {.dir = path, .old_path = old, .old = -1};
    each_name(dir, move_one, &m);
    if (m.old >= 0)
        close(m.old);
    free(old);
    return !m.failed;
}

/* ---- what the dead left elsewhere ------------------------------------------------------------ */

/* Most of a ring file was never written. */
static int copy_sparse(int from, int to)
{
    static char block[65536];
    const off_t size = lseek(from, 0, SEEK_END);
    ssize_t n = 0, put;
    for (off_t at = 0; at < size && (n = pread(from, block, sizeof(block), at)) > 0; at += n) {
        if (!block[0] && !memcmp(block, block + 1, (size_t)n - 1))
            continue;
        if ((put = pwrite(to, block, (size_t)n, at)) != n)
            return put < 0 ? -errno : -ENOSPC;
    }
    return size < 0 || n < 0 || ftruncate(to, size) ? -errno : 0;
}

/* post: 0: the ring lies beside its dump, where readers look too, and nowhere else. */
static int bring(int ring, const char *path, int dir, const char *name)
{
    char *part = xprintf("%s.part", name);
    int fd = openat(dir, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int rc = fd < 0 ? -errno : copy_sparse(ring, fd);
    if (!rc && renameat(dir, part, dir, name))
        rc = -errno;
    if (!rc)
        unlink(path);
    else if (fd >= 0)
        unlinkat(dir, part, 0);
    if (fd >= 0)
        close(fd);
    free(part);
    return rc;
}

struct gather {
    const struct run_dir *dir;
    size_t found; /* of this run */
};

static bool gather_one(int dir, const char *name, void *arg)
{
    struct gather *g = arg;
    struct gwt_file_header h;
    struct gwt_ring_header ring;
    ring_path path;
    if (!ends_with(name, ".gwt") || !is_dump(dir, name, &h))
        return true;
    char *beside = xprintf("%.*s.ring", (int)strlen(name) - 4, name);
    bool found = is_ring(dir, beside, &ring);
    if (found) {
        found = !alive(ring.pid, ring.process_start, ring.boot_id);
    } else {
        int fd = open_orphan(&h, path), rc;
        found = fd >= 0;
        if (found && (rc = bring(fd, path, dir, beside)))
            say("cannot move %s into %s: %s", path, g->dir->path, strerror(-rc));
        if (found)
            close(fd);
    }
    g->found += found && !run_dir_had(g->dir, name);
    free(beside);
    return true;
}

size_t run_dir_gather(const struct run_dir *d)
{
    struct gather g = {.dir = d};
    int dir = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return 0;
    each_name(dir, gather_one, &g);
    close(dir);
    return g.found;
}

/* ---- whose it is --------------------------------------------------------------------------- */

static const char *set(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* Names the job of which this process is one task among several; NULL: it is none. Tasks start
 * at any time, and must not move away what another has begun. */
static char *job_key(void)
{
    static const struct {
        const char *rank, *needs, *size, *id[3];
    } kinds[] = {
        /* A batch script has a rank as well; only steps have a step id. */
        {"SLURM_PROCID",
         "SLURM_STEP_ID",
         "SLURM_STEP_NUM_TASKS",
         {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
        {"OMPI_COMM_WORLD_RANK", NULL, "OMPI_COMM_WORLD_SIZE", {"PMIX_NAMESPACE"}},
        {"PMI_RANK", NULL, "PMI_SIZE", {"PMI_JOBID"}},
        {"RANK", NULL, "WORLD_SIZE", {"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"}},
        {"LOCAL_RANK",
         NULL,
         "LOCAL_WORLD_SIZE",
         {"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"}},
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        const char *size = set(kinds[i].size), *id[3];
        if (!set(kinds[i].rank) || (kinds[i].needs && !set(kinds[i].needs)) ||
            (size && !strcmp(size, "1")))
            continue;
        for (int k = 0; k < 3; k++)
            id[k] = kinds[i].id[k] && set(kinds[i].id[k]) ? set(kinds[i].id[k]) : "";
        return xprintf("%s %.80s %.80s %.80s", kinds[i].rank, id[0], id[1], id[2]);
    }
    return NULL;
}

static bool lock_as(int fd, short type, bool wait)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET};
    int rc;
    while ((rc = fcntl(fd, wait ? F_SETLKW : F_SETLK, &l)) && errno == EINTR)
        ;
    return rc == 0;
}

/* pre:  the lock is ours alone, or there are no locks here. */
static bool settle(struct run_dir *d, int dir, const char *key)
{
    char stored[512] = "";
    bool live = false;
    if (d->lock >= 0 && pread(d->lock, stored, sizeof(stored) - 1, 0) < 0)
        stored[0] = 0;
    each_name(dir, find_alive, &live);
    d->joined = live || (key && !strcmp(stored, key));
    run_dir_gather(d);
    if (!d->joined && !move_away(dir, d->path))
        return false;
    if (d->lock >= 0 &&
        (ftruncate(d->lock, 0) || (key && pwrite(d->lock, key, strlen(key), 0) < 0)))
        say("cannot note the job in %s/" LOCK ": %s", d->path, strerror(errno));
    return true;
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool make_all(char *path, bool *created)
{
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        int rc = mkdir(path, 0777);
        *slash = '/';
        if (rc && errno != EEXIST && errno != EROFS && errno != EACCES)
            return false;
    }
    *created = mkdir(path, 0777) == 0;
    return *created || errno == EEXIST;
}

struct names {
    char **list;
    size_t count;
};

static bool note_name(int dir, const char *name, void *arg)
{
    struct names *n = arg;
    (void)dir;
    if (!ends_with(name, ".gwt"))
        return true;
    char **grown = xalloc((n->count + 2) * sizeof(*grown));
    if (n->count)
        memcpy(grown, n->list, n->count * sizeof(*grown));
    free(n->list);
    n->list = grown;
    n->list[n->count++] = xstrdup(name);
    return true;
}

bool run_dir_open(const char *dir, struct run_dir *out)
{
    char *given = xstrdup(dir), *key = NULL;
    struct names names = {0};
    bool ok = false;
    int fd = -1;
    *out = (struct run_dir){.lock = -1};
    for (size_t n = strlen(given); n > 1 && given[n - 1] == '/'; n--)
        given[n - 1] = 0;
    if (!*given || !make_all(given, &out->created) || !(out->path = realpath(given, NULL)) ||
        (fd = open(out->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        say("cannot use \"%s\" as the output directory: %s", dir,
            strerror(*given ? errno : ENOENT));
        goto out;
    }
    out->lock = openat(fd, LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (out->lock < 0 || access(out->path, W_OK | X_OK)) {
        say("cannot write into %s: %s; give -o DIRECTORY", out->path, strerror(errno));
        goto out;
    }
    key = job_key();
    if (lock_as(out->lock, F_WRLCK, false)) {
        ok = settle(out, fd, key);
        lock_as(out->lock, F_RDLCK, false); /* cannot fail: it is ours alone */
    } else if (errno == EAGAIN || errno == EACCES) {
        out->joined = true;
        ok = lock_as(out->lock, F_RDLCK, true);
    } else { /* no locks on this file system: what is alive tells */
        close(out->lock);
        out->lock = -1;
        ok = settle(out, fd, key);
    }
    each_name(fd, note_name, &names);
    out->before = names.list ? names.list : xalloc(sizeof(*out->before));
out:
    if (fd >= 0)
        close(fd);
    free(key);
    free(given);
    return ok;
}

bool run_dir_had(const struct run_dir *d, const char *path)
{
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    for (size_t i = 0; d->before && d->before[i]; i++)
        if (!strcmp(d->before[i], base))
            return true;
    return false;
}

static bool anything(int dir, const char *name, void *found)
{
    (void)dir;
    if (strcmp(name, ".") && strcmp(name, "..") && strcmp(name, LOCK))
        *(bool *)found = true;
    return !*(bool *)found;
}

void run_dir_close(struct run_dir *d)
{
    bool used = false;
    int fd = d->path && d->created ? open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        each_name(fd, anything, &used);
        /* alone: nobody else holds it or waits to record into it */
        if (!used && d->lock >= 0 && lock_as(d->lock, F_WRLCK, false)) {
            unlinkat(fd, LOCK, 0);
            rmdir(d->path);
        }
        close(fd);
    }
    if (d->lock >= 0)
        close(d->lock);
    for (size_t i = 0; d->before && d->before[i]; i++)
        free(d->before[i]);
    free(d->before);
    free(d->path);
}
