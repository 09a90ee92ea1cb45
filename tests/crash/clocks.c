/* Clock jumps for a program that this is loaded into: its wall clock is right for 0.2 s, then a day
 * behind, then a day ahead, and so on. At the end how often it was read while wrong is written into
 * the file that CLOCKS_READ names. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define STRETCH_NS 200000000
#define DAY        86400

static struct timespec begun;
static atomic_uint wrong;

static time_t off_by(void)
{
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    int64_t ns = (now.tv_sec - begun.tv_sec) * INT64_C(1000000000) + now.tv_nsec - begun.tv_nsec;
    if (!begun.tv_sec || ns < STRETCH_NS)
        return 0;
    wrong++;
    return ns / STRETCH_NS % 2 ? -DAY : DAY;
}

int clock_gettime(clockid_t id, struct timespec *out)
{
    int r = (int)syscall(SYS_clock_gettime, id, out);
    if (r == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        out->tv_sec += off_by();
    return r;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    int r = (int)syscall(SYS_gettimeofday, out, zone);
    if (r == 0)
        out->tv_sec += off_by();
    return r;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

__attribute__((constructor)) static void begin(void)
{
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &begun);
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("CLOCKS_READ");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    if (fd < 0)
        return;
    dprintf(fd, "%u\n", wrong);
    close(fd);
}
