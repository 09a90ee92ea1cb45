#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FD_LEAST 200

/* Out of the way of programs that count on the numbers of their own descriptors. */
static int high_fd(int fd)
{
    int high;

    if (fd < 0)
        return fd;
    high = fcntl(fd, F_DUPFD_CLOEXEC, FD_LEAST);
    if (high < 0) /* a low RLIMIT_NOFILE */
        return fd;
    close(fd);
    return high;
}

int gwt_file_adopt(int fd, struct gwt_file *out)
{
    struct stat st;

    fd = high_fd(fd);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st)) {
        int error = errno;

        close(fd);
        return -error;
    }
    *out = (struct gwt_file){.fd = fd, .dev = st.st_dev, .ino = st.st_ino};
    return 0;
}

bool gwt_file_is_ours(const struct gwt_file *f)
{
    struct stat st;

    return !fstat(f->fd, &st) && st.st_dev == f->dev && st.st_ino == f->ino;
}

void gwt_file_close(struct gwt_file *f)
{
    if (f->fd >= 0 && gwt_file_is_ours(f))
        close(f->fd);
    f->fd = -1;
    f->bytes = 0;
}
