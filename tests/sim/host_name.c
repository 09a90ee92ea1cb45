/* Preloaded beside a recorder: what it reads of the machine. SIM_HOST is its name, and its boot id
 * follows from it, so that the processes of one machine can stand for those of several. The
 * devices' links are where a machine that has them shows them. */
#include "config.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int gethostname(char *name, size_t size)
{
    const char *host = getenv("SIM_HOST");
    struct utsname real;
    if (!host) {
        uname(&real);
        host = real.nodename;
    }
    snprintf(name, size, "%s", host);
    return 0;
}

/* Of a file that holds it. */
static int file_of(const char *text)
{
    ssize_t n = (ssize_t)strlen(text);
    int fd = memfd_create("machine", MFD_CLOEXEC);
    if (fd < 0 || write(fd, text, (size_t)n) != n || lseek(fd, 0, SEEK_SET))
        abort();
    return fd;
}

static int boot_id(const char *host)
{
    char text[64];
    uint64_t a = sim_hash_text(host), b = sim_hash(a, 1);
    snprintf(text, sizeof text, "%08x-%04x-%04x-%04x-%012llx\n", (unsigned)(a >> 32),
             (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xffff), (unsigned)(b >> 48),
             (unsigned long long)b & 0xffffffffffffu);
    return file_of(text);
}

/* The bus ids that cuDeviceGetAttribute() gives. */
static const char *link_of(const char *path)
{
    unsigned device;
    int end = 0;
    if (sscanf(path, "/sys/bus/pci/devices/0000:4%1x:00.0/%n", &device, &end) != 1 || !end)
        return NULL;
    if (!strcmp(path + end, "current_link_speed"))
        return "32.0 GT/s PCIe\n";
    return strcmp(path + end, "current_link_width") ? NULL : "16\n";
}

EXPORT int open(const char *path, int flags, ...)
{
    const char *host = getenv("SIM_HOST");
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (host && !strcmp(path, "/proc/sys/kernel/random/boot_id"))
        return boot_id(host);
    const char *link = link_of(path);
    if (link)
        return file_of(link);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...) __attribute__((alias("open")));
