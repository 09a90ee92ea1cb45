#include "doctor.h"
#include "run_preload.h"
#include "text.h"
#include "tool.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

extern char **environ;

static bool read_line(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "re");
    bool got = f && fgets(out, (int)size, f);
    if (f)
        fclose(f);
    if (got)
        out[strcspn(out, "\n")] = 0;
    return got;
}

/* ---- the library ------------------------------------------------------------------ */

/* What the loader says when it preloads the library into this very program. Malloc'ed. */
static char *loader_complaint(const char *library)
{
    char text[512] = "";
    int out[2];
    struct preload preload;
    if (!preload_make(&preload, library))
        return xstrdup("it cannot be named in LD_PRELOAD");
    if (pipe2(out, O_CLOEXEC)) {
        preload_done(&preload);
        return NULL;
    }
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, STDOUT_FILENO);
        dup2(out[1], STDERR_FILENO);
        setenv("LD_PRELOAD", preload.value, 1);
        execl("/proc/self/exe", "gpuwait", "--version", (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    size_t used = 0;
    for (ssize_t n; used < sizeof(text) - 1 &&
                    (n = read(out[0], text + used, sizeof(text) - 1 - used)) != 0;) {
        if (n > 0)
            used += (size_t)n;
        else if (errno != EINTR)
            break;
    }
    close(out[0]);
    int status = -1;
    if (pid > 0)
        waitpid(pid, &status, 0);
    preload_done(&preload);
    text[used] = 0;
    text[strcspn(text, "\n")] = 0;
    if (*text)
        return xstrdup(text);
    return status ? xprintf("a program with it ends with status %d", status) : NULL;
}

void doctor_library(void)
{
    char *library = preload_find(), *trouble;
    if (!library) {
        doctor_says(DOCTOR_FAIL, "library", "libgpuwait.so is missing: build or install it");
        return;
    }
    if ((trouble = loader_complaint(library)))
        doctor_says(DOCTOR_FAIL, "library", "%s: %s", library, trouble);
    else
        doctor_says(DOCTOR_OK, "library", "%s", library);
    free(trouble);
    free(library);
}

void doctor_glibc(void)
{
    const char *version = gnu_get_libc_version();
    unsigned major = 0, minor = 0;
    sscanf(version, "%u.%u", &major, &minor);
    if (major > 2 || (major == 2 && minor >= 28))
        doctor_says(DOCTOR_OK, "glibc", "%s", version);
    else
        doctor_says(DOCTOR_FAIL, "glibc", "%s; 2.28 or later is needed", version);
}

/* ---- the GPU ------------------------------------------------------------------------ */

void doctor_driver(void)
{
    char version[128] = "version unknown";
    read_line("/sys/module/nvidia/version", version, sizeof(version));
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!driver) {
        doctor_says(DOCTOR_FAIL, "driver",
                    "%s; install the NVIDIA driver or, in a "
                    "container, pass the GPU to it",
                    dlerror());
        return;
    }
    dlclose(driver);
    if (access("/dev/nvidiactl", F_OK) == 0)
        doctor_says(DOCTOR_OK, "driver", "libcuda.so.1 and /dev/nvidiactl, %s", version);
    else if (access("/dev/dxg", F_OK) == 0)
        doctor_says(DOCTOR_WARN, "driver",
                    "WSL: host calls are recorded, GPU times are bounds only");
    else
        doctor_says(DOCTOR_WARN, "driver",
                    "libcuda.so.1 loads, but there is no /dev/nvidiactl: "
                    "CUDA will find no device");
}

void doctor_preload(void)
{
    const char *list = getenv("LD_PRELOAD");
    if (!list || !*list)
        doctor_says(DOCTOR_OK, "preloads", "no other library in LD_PRELOAD");
    else
        doctor_says(DOCTOR_WARN, "preloads",
                    "LD_PRELOAD holds %s; gpuwait comes after it. If the "
                    "job misbehaves, try without the other",
                    list);
}

void doctor_options(void)
{
    static const char *const known[] = {
#define ENV(name, value, takes, text) #name,
#include "trace/env.def"
#undef ENV
    };
    size_t set = 0, strange = 0;
    for (char **e = environ; *e; e++) {
        size_t n = strcspn(*e, "="), i = 0;
        if (strncmp(*e, "GPUWAIT", 7))
            continue;
        while (i < sizeof(known) / sizeof(*known) &&
               (strlen(known[i]) != n || strncmp(known[i], *e, n)))
            i++;
        if (i == sizeof(known) / sizeof(*known)) {
            doctor_says(DOCTOR_WARN, "options", "%.*s is set, which nothing reads", (int)n, *e);
            strange++;
        } else if (!strcmp(*e, "GPUWAIT=0")) {
            doctor_says(DOCTOR_FAIL, "options", "GPUWAIT=0 switches recording off: unset it");
            strange++;
        } else {
            set++;
        }
    }
    if (!strange)
        doctor_says(DOCTOR_OK, "options", "%zu GPUWAIT_* variables set", set);
}

/* ---- the machine ---------------------------------------------------------------------- */

static bool invariant_tsc(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
#else
    return false;
#endif
}

void doctor_clock(void)
{
    char source[64] = "unknown";
    read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
              sizeof(source));
    if (invariant_tsc() && !strcmp(source, "tsc"))
        doctor_says(DOCTOR_OK, "clock", "invariant TSC");
    else
        doctor_says(DOCTOR_WARN, "clock",
                    "clock source %s%s: CLOCK_MONOTONIC is used, which costs "
                    "each call a little more",
                    source, invariant_tsc() ? "" : ", no invariant TSC");
}

#define SHM_LEAST (64u << 20)

void doctor_shm(void)
{
    struct statfs fs;
    char room[TEXT_NUMBER];
    if (statfs("/dev/shm", &fs)) {
        doctor_says(DOCTOR_WARN, "/dev/shm", "%s: ring files go beside the recording",
                    strerror(errno));
        return;
    }
    uint64_t bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    text_bytes(room, bytes);
    if (bytes < SHM_LEAST)
        doctor_says(DOCTOR_WARN, "/dev/shm",
                    "only %s free: ring files go beside the recording; in a "
                    "container raise --shm-size",
                    room);
    else
        doctor_says(DOCTOR_OK, "/dev/shm", "%s free", room);
}

/* ---- the output ------------------------------------------------------------------------- */

static const char *remote_name(const struct statfs *fs)
{
    switch ((unsigned long)fs->f_type) {
    case NFS_SUPER_MAGIC:
        return "NFS";
    case 0x0bd00bd0:
        return "Lustre";
    case 0x65735546: /* FUSE_SUPER_MAGIC of newer headers */
        return "FUSE";
    case V9FS_MAGIC:
        return "9p";
    case 0xff534d42:
    case 0xfe534d42:
        return "CIFS";
    case 0x47504653:
        return "GPFS";
    case 0x19830326:
        return "BeeGFS";
    default:
        return NULL;
    }
}

/* The directory, or the nearest one above it that exists. Malloc'ed. */
static char *existing(const char *path)
{
    char *at = xstrdup(*path ? path : ".");
    struct stat st;
    while (stat(at, &st) && errno == ENOENT) {
        char *slash = strrchr(at, '/');
        if (!slash)
            strcpy(at, ".");
        else
            slash[slash == at] = 0;
    }
    return at;
}

void doctor_directory(const char *path)
{
    char *at = existing(path), *probe = NULL;
    char room[TEXT_NUMBER];
    struct statfs fs;
    struct stat st;
    if (stat(at, &st) == 0 && !S_ISDIR(st.st_mode)) {
        doctor_says(DOCTOR_FAIL, "output", "%s is not a directory: give -o DIRECTORY", at);
        goto out;
    }
    probe = xprintf("%s/.gpuwait-XXXXXX", at);
    int fd = mkostemp(probe, O_CLOEXEC);
    if (fd < 0) {
        doctor_says(DOCTOR_FAIL, "output", "cannot write into %s: %s; give -o DIRECTORY", at,
                    strerror(errno));
        goto out;
    }
    unlink(probe);
    if (fstatfs(fd, &fs)) {
        doctor_says(DOCTOR_WARN, "output", "%s: free space unknown", at);
    } else {
        const char *remote = remote_name(&fs);
        text_bytes(room, (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize);
        if (remote)
            doctor_says(DOCTOR_WARN, "output", "%s is on %s: the ring goes to /dev/shm; %s free",
                        path, remote, room);
        else if (fs.f_blocks && fs.f_bavail * 20 < fs.f_blocks)
            doctor_says(DOCTOR_WARN, "output",
                        "%s: %s free, less than 5 %%: the recording will stop "
                        "early (GPUWAIT_MIN_FREE)",
                        path, room);
        else
            doctor_says(DOCTOR_OK, "output", "%s: writable, %s free", path, room);
    }
    close(fd);
out:
    free(probe);
    free(at);
}
