/* What belongs to a recording, at one moment: ring first, then the sizes of the dump's files,
 * then the definition log. ring.c says why in this order. */
#include "reader_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CUT_TRIES 100

static int read_ring(struct gwt_trace *t)
{
    size_t stem = strlen(t->path);
    char *beside;
    int rc = -ENOENT;

    if (t->header.ring_path[0])
        rc = gwt_ring_read(&t->ring, t->header.ring_path, &t->header);
    if (!rc || rc == -ENOMEM)
        return rc;
    /* moved together, or the path was too long for the header */
    if (stem >= 4 && !strcmp(t->path + stem - 4, ".gwt"))
        stem -= 4;
    if (asprintf(&beside, "%.*s.ring", (int)stem, t->path) < 0)
        return -ENOMEM;
    rc = gwt_ring_read(&t->ring, beside, &t->header);
    free(beside);
    return rc == -ENOMEM ? rc : 0;
}

struct look {
    uint64_t size[FILES];
    ino_t opened[FILES], named[FILES];
};

static struct look look_at(const struct gwt_trace *t, char *const names[FILES])
{
    struct look look = {0};

    for (int i = 0; i < FILES; i++) {
        struct stat st;

        if (t->fd[i] >= 0 && !fstat(t->fd[i], &st)) {
            look.size[i] = (uint64_t)st.st_size;
            look.opened[i] = st.st_ino;
        }
        if (i != FILE_HEAD && !lstat(names[i], &st))
            look.named[i] = st.st_ino;
    }
    return look;
}

/* The writer fills one file at a time, and tail segments are replaced by new files. Sizes
 * are one moment's if nothing moved between two looks at all of them; else they might lack
 * the end of one segment and have the next. */
static int fix_sizes(struct gwt_trace *t)
{
    char *names[FILES] = {0};
    struct look a = {0}, b;
    int rc = 0;

    if (asprintf(&names[FILE_TAIL0], "%s.tail0", t->path) < 0 ||
        asprintf(&names[FILE_TAIL1], "%s.tail1", t->path) < 0) {
        rc = -ENOMEM;
        goto out;
    }
    for (int tries = 0; tries < CUT_TRIES; tries++) {
        for (int i = FILE_TAIL0; i < FILES; i++) {
            if (t->fd[i] >= 0)
                close(t->fd[i]);
            t->fd[i] = open(names[i], O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        }
        a = look_at(t, names);
        b = look_at(t, names);
        if (!memcmp(&a, &b, sizeof(a)) &&
            !memcmp(&a.opened[FILE_TAIL0], &a.named[FILE_TAIL0], 2 * sizeof(a.named[0])))
            break;
    }
    memcpy(t->size, a.size, sizeof(t->size));
out:
    free(names[FILE_TAIL0]);
    free(names[FILE_TAIL1]);
    return rc;
}

/* A segment left behind by some other recording of that name is none of ours. */
static void check_tails(struct gwt_trace *t)
{
    for (int i = FILE_TAIL0; i < FILES; i++) {
        struct gwt_file_header h;
        struct stat st;

        if (t->fd[i] < 0)
            continue;
        if (!fstat(t->fd[i], &st) && S_ISREG(st.st_mode) &&
            !gwt_read_at(t->fd[i], 0, &h, sizeof(h))) {
            h.ring_path[sizeof(h.ring_path) - 1] = 0;
            if (!memcmp(&h, &t->header, sizeof(h)))
                continue;
        }
        close(t->fd[i]);
        t->fd[i] = -1;
        t->size[i] = 0;
    }
}

int gwt_snapshot(struct gwt_trace *t)
{
    int rc = read_ring(t);

    if (!rc)
        rc = fix_sizes(t);
    if (!rc && t->ring.fd >= 0)
        rc = gwt_ring_read_log(&t->ring);
    if (!rc)
        check_tails(t);
    return rc;
}
