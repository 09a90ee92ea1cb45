/* Makes system calls of libgpuwait.so fail, one kind at a time, and nobody else's: preloaded
 * before it, told by GPUWAIT_TEST_FAIL what to do. So a program shows how it fares when the
 * library's n-th open() finds no descriptor, or its thread dies in the middle of a write().
 *
 *     pwrite:3       the third call fails with the error of the table below
 *     pwrite:3+      so does every later one
 *     pwrite:3=122   with that error; 3+=122 likewise
 *     pwrite:3half   half of the bytes, then the caller stops for good
 *     pwrite:3short  half of the bytes, and success
 *     pwrite:3stop   the caller stops for good, before it
 *     pwrite:3after  after it
 *     pwrite:3slow   it takes 0.4 s
 *
 * GPUWAIT_TEST_FAIL_LOG names a file that holds the number of calls of each row, 32 bits each, in
 * the table's order. Of syscall() the rows are those numbers that the library uses. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* CALL(type, name, parameters, arguments, what failure returns, errno)
 * A negative errno: the function returns the error instead of setting it. */
#define CALLS(CALL)                                                                                \
    CALL(int, access, (const char *p, int m), (p, m), -1, EACCES)                                  \
    CALL(void *, calloc, (size_t n, size_t s), (n, s), NULL, ENOMEM)                               \
    CALL(int, close, (int fd), (fd), -1, EIO)                                                      \
    CALL(int, fallocate, (int fd, int m, off_t o, off_t n), (fd, m, o, n), -1, ENOSPC)             \
    CALL(int, fstatvfs, (int fd, struct statvfs *s), (fd, s), -1, EIO)                             \
    CALL(int, ftruncate, (int fd, off_t n), (fd, n), -1, EIO)                                      \
    CALL(char *, getcwd, (char *p, size_t n), (p, n), NULL, ENOENT)                                \
    CALL(int, gethostname, (char *p, size_t n), (p, n), -1, EFAULT)                                \
    CALL(ssize_t, getrandom, (void *p, size_t n, unsigned f), (p, n, f), -1, ENOSYS)               \
    CALL(int, getrlimit, (__rlimit_resource_t w, struct rlimit * r), (w, r), -1, EINVAL)           \
    CALL(int, getrusage, (int w, struct rusage *r), (w, r), -1, EINVAL)                            \
    CALL(int, madvise, (void *p, size_t n, int a), (p, n, a), -1, EINVAL)                          \
    CALL(void *, malloc, (size_t n), (n), NULL, ENOMEM)                                            \
    CALL(int, mkdir, (const char *p, mode_t m), (p, m), -1, EACCES)                                \
    CALL(void *, mmap, (void *p, size_t n, int r, int f, int fd, off_t o), (p, n, r, f, fd, o),    \
         MAP_FAILED, ENOMEM)                                                                       \
    CALL(int, munmap, (void *p, size_t n), (p, n), -1, EINVAL)                                     \
    CALL(int, nanosleep, (const struct timespec *t, struct timespec *r), (t, r), -1, EINTR)        \
    CALL(int, pthread_create,                                                                      \
         (pthread_t * t, const pthread_attr_t *a, void *(*f)(void *), void *p), (t, a, f, p),      \
         EAGAIN, -EAGAIN)                                                                          \
    CALL(int, pthread_key_create, (pthread_key_t * k, void (*f)(void *)), (k, f), EAGAIN, -EAGAIN) \
    CALL(int, pthread_setname_np, (pthread_t t, const char *n), (t, n), ERANGE, -ERANGE)           \
    CALL(int, pthread_setspecific, (pthread_key_t k, const void *p), (k, p), ENOMEM, -ENOMEM)      \
    CALL(ssize_t, readlink, (const char *p, char *o, size_t n), (p, o, n), -1, EACCES)             \
    CALL(char *, realpath, (const char *p, char *o), (p, o), NULL, EACCES)                         \
    CALL(int, setenv, (const char *n, const char *v, int o), (n, v, o), -1, ENOMEM)                \
    CALL(int, statfs, (const char *p, struct statfs *s), (p, s), -1, EACCES)                       \
    CALL(char *, strdup, (const char *s), (s), NULL, ENOMEM)                                       \
    CALL(long, sysconf, (int n), (n), -1, EINVAL)                                                  \
    CALL(int, unlink, (const char *p), (p), -1, EACCES)                                            \
    CALL(int, unlinkat, (int d, const char *p, int f), (d, p, f), -1, EACCES)

#define CLOSE_RANGE 436 /* older headers lack it */

/* Made by hand below. */
#define OTHERS(ROW)                                                                                \
    ROW(pwrite)                                                                                    \
    ROW(read)                                                                                      \
    ROW(write)                                                                                     \
    ROW(clock_gettime)                                                                             \
    ROW(fcntl)                                                                                     \
    ROW(open) ROW(openat) ROW(prctl) ROW(fstat) ROW(newfstatat) ROW(futex) ROW(close_range)

enum row {
#define CALL(type, name, ...) ROW_##name,
    CALLS(CALL)
#undef CALL
#define ROW(name) ROW_##name,
        OTHERS(ROW)
#undef ROW
            ROWS
};

static const char *const names[] = {
#define CALL(type, name, ...) #name,
    CALLS(CALL)
#undef CALL
#define ROW(name) #name,
        OTHERS(ROW)
#undef ROW
};

static bool prepared;
static uintptr_t from, to; /* where libgpuwait.so is mapped */
static unsigned none[ROWS], *calls = none;

static struct {
    enum row row;
    unsigned nth;
    bool later_too;
    int error; /* 0: the table's */
    enum { FAIL, HALF, SHORT, AFTER, SLOW, STOP } how;
} plan = {.row = ROWS};

static int find(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size, (void)data;
    const char *base = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    if (!base || strcmp(base, "/libgpuwait.so") != 0)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        if (!from)
            from = start;
        to = start + info->dlpi_phdr[i].p_memsz;
    }
    return 1;
}

static void read_plan(const char *text)
{
    char *colon = strchr(text, ':'), *end;
    for (unsigned i = 0; colon && i < ROWS; i++)
        if (strlen(names[i]) == (size_t)(colon - text) &&
            !strncmp(text, names[i], strlen(names[i])))
            plan.row = (enum row)i;
    if (plan.row == ROWS)
        _exit(99); /* a test that would test nothing */
    plan.nth = (unsigned)strtoul(colon + 1, &end, 10);
    if (*end == '+') {
        plan.later_too = true;
        end++;
    }
    if (*end == '=')
        plan.error = atoi(end + 1);
    else
        plan.how = !strcmp(end, "half")    ? HALF
                   : !strcmp(end, "short") ? SHORT
                   : !strcmp(end, "after") ? AFTER
                   : !strcmp(end, "slow")  ? SLOW
                   : *end                  ? STOP
                                           : FAIL;
}

static void share_calls(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *p = fd < 0 || ftruncate(fd, sizeof none) != 0
                  ? MAP_FAILED
                  : mmap(NULL, sizeof none, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        _exit(99);
    calls = p;
    close(fd);
}

/* At the first call: the library's own constructor makes some. */
static void prepare(void)
{
    prepared = true;
    const char *text = getenv("GPUWAIT_TEST_FAIL");
    const char *log = getenv("GPUWAIT_TEST_FAIL_LOG");
    dl_iterate_phdr(find, NULL);
    if (log)
        share_calls(log);
    if (text && *text)
        read_plan(text);
}

static void stop_for_good(void)
{
    for (;;)
        pause();
}

/* What is stopped is the thread that writes, and not the watch, which sleeps by the same call. */
static bool is_watch(void)
{
    char name[16] = "";
    return pthread_getname_np(pthread_self(), name, sizeof name) == 0 &&
           strcmp(name, "gpuwait-watch") == 0;
}

/* Whether this call is to fail. */
static bool hit(enum row row, const void *caller)
{
    uintptr_t at = (uintptr_t)caller;
    if (!prepared)
        prepare();
    if (at < from || at >= to)
        return false;
    if (plan.how == STOP && row == plan.row && is_watch())
        return false;
    unsigned n = __atomic_add_fetch(&calls[row], 1, __ATOMIC_RELAXED);
    if (row != plan.row || n < plan.nth || (n > plan.nth && !plan.later_too))
        return false;
    if (plan.how == STOP)
        stop_for_good();
    if (plan.how == SLOW)
        usleep(400000);
    return plan.how != SLOW;
}

/* Before the loader is done, dlsym() itself may ask for memory. */
static void *real(const char *name)
{
    void *p = dlvsym(RTLD_NEXT, name, "GLIBC_2.2.5");
    return p ? p : dlsym(RTLD_NEXT, name);
}

#define REAL(name)                                                                                 \
    ({                                                                                             \
        static __typeof__(&name) real_;                                                            \
        if (!real_)                                                                                \
            real_ = (__typeof__(&name))real(#name);                                                \
        real_;                                                                                     \
    })

static int error_or(int usual)
{
    return plan.error ? plan.error : usual;
}

#define CALL(type, name, params, args, value, number)                                              \
    type name params                                                                               \
    {                                                                                              \
        if (!hit(ROW_##name, __builtin_return_address(0)))                                         \
            return REAL(name) args;                                                                \
        if ((number) < 0)                                                                          \
            return (type)(intptr_t)error_or(-(number));                                            \
        errno = error_or(number);                                                                  \
        return value;                                                                              \
    }
CALLS(CALL)
#undef CALL

/* Transfers that may be cut short. */
#define TRANSFER(name, params, args, number)                                                       \
    ssize_t name params                                                                            \
    {                                                                                              \
        if (hit(ROW_##name, __builtin_return_address(0))) {                                        \
            if (plan.how == FAIL) {                                                                \
                errno = error_or(number);                                                          \
                return -1;                                                                         \
            }                                                                                      \
            if (plan.how != AFTER)                                                                 \
                n /= 2;                                                                            \
            ssize_t done = REAL(name) args;                                                        \
            if (plan.how != SHORT)                                                                 \
                stop_for_good();                                                                   \
            return done;                                                                           \
        }                                                                                          \
        return REAL(name) args;                                                                    \
    }
TRANSFER(pwrite, (int fd, const void *p, size_t n, off_t o), (fd, p, n, o), ENOSPC)
TRANSFER(write, (int fd, const void *p, size_t n), (fd, p, n), EIO)
TRANSFER(read, (int fd, void *p, size_t n), (fd, p, n), EIO)

/* The vDSO answers for the other clocks. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    bool asks_kernel = clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID;
    if (asks_kernel && hit(ROW_clock_gettime, __builtin_return_address(0))) {
        errno = error_or(EINVAL);
        return -1;
    }
    return REAL(clock_gettime)(clock, t);
}

/* ---- with arguments that may be absent ---------------------------------------- */

#define ARGUMENT(type, last)                                                                       \
    ({                                                                                             \
        va_list list_;                                                                             \
        va_start(list_, last);                                                                     \
        type value_ = va_arg(list_, type);                                                         \
        va_end(list_);                                                                             \
        value_;                                                                                    \
    })

int open(const char *path, int flags, ...)
{
    if (hit(ROW_open, __builtin_return_address(0))) {
        errno = error_or(EMFILE);
        return -1;
    }
    return REAL(open)(path, flags, ARGUMENT(unsigned, flags));
}

int openat(int dir, const char *path, int flags, ...)
{
    if (hit(ROW_openat, __builtin_return_address(0))) {
        errno = error_or(EMFILE);
        return -1;
    }
    return REAL(openat)(dir, path, flags, ARGUMENT(unsigned, flags));
}

int fcntl(int fd, int command, ...)
{
    if (hit(ROW_fcntl, __builtin_return_address(0))) {
        errno = error_or(EMFILE);
        return -1;
    }
    return REAL(fcntl)(fd, command, ARGUMENT(long, command));
}

int prctl(int option, ...)
{
    unsigned long a[4];
    va_list list;
    if (hit(ROW_prctl, __builtin_return_address(0))) {
        errno = error_or(EINVAL);
        return -1;
    }
    va_start(list, option);
    for (int i = 0; i < 4; i++)
        a[i] = va_arg(list, unsigned long);
    va_end(list);
    return REAL(prctl)(option, a[0], a[1], a[2], a[3]);
}

long syscall(long number, ...)
{
    long a[6];
    va_list list;
    enum row row = number == SYS_fstat        ? ROW_fstat
                   : number == SYS_newfstatat ? ROW_newfstatat
                   : number == SYS_futex      ? ROW_futex
                   : number == CLOSE_RANGE    ? ROW_close_range
                                              : ROWS;
    if (row != ROWS && hit(row, __builtin_return_address(0))) {
        errno = error_or(row == ROW_futex || row == ROW_close_range ? ENOSYS : EBADF);
        return -1;
    }
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
