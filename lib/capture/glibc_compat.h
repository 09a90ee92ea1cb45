/* Lets the preload, built on a new glibc, load on glibc 2.28. Forced into every C
 * file of it with -include; no other part of gpuwait uses this.
 *
 * Why: glibc 2.34 merged libpthread and libdl into libc and gave their functions a
 * new version, which a program linked there then demands. The old versions are the
 * same code and stay for good, so each reference is bound to its old one. They live
 * in libdl.so.2 and libpthread.so.0 before 2.34, hence both are in NEEDED.
 * A .symver line for a function that a file does not call leaves no trace.
 * tests/unit/abi_so.sh fails when a function is missing here.
 */
#ifndef GW_GLIBC_COMPAT_H
#define GW_GLIBC_COMPAT_H

#include <features.h>

/* glibc 2.38 and later would rename strtol and sscanf to __isoc23_*. */
#ifdef __GLIBC_USE_C2X_STRTOL
#undef __GLIBC_USE_C2X_STRTOL
#define __GLIBC_USE_C2X_STRTOL 0
#endif
#ifdef __GLIBC_USE_C23_STRTOL
#undef __GLIBC_USE_C23_STRTOL
#define __GLIBC_USE_C23_STRTOL 0
#endif

#include <sys/stat.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Name, and its version on x86-64. dlsym is absent: the preload defines its own.
 * aarch64 began with 2.17, which all of these have there. */
#define GW_OLD_SYMBOLS(X)                                                                          \
    X(dladdr, "2.2.5")                                                                             \
    X(dladdr1, "2.3.3")                                                                            \
    X(dlclose, "2.2.5")                                                                            \
    X(dlerror, "2.2.5")                                                                            \
    X(dlinfo, "2.3.3")                                                                             \
    X(dlopen, "2.2.5")                                                                             \
    X(dlvsym, "2.2.5")                                                                             \
    X(pthread_attr_getguardsize, "2.2.5")                                                          \
    X(pthread_attr_getstack, "2.2.5")                                                              \
    X(pthread_attr_getstacksize, "2.2.5")                                                          \
    X(pthread_attr_setguardsize, "2.2.5")                                                          \
    X(pthread_attr_setstacksize, "2.2.5")                                                          \
    X(pthread_cancel, "2.2.5")                                                                     \
    X(pthread_condattr_setclock, "2.3.3")                                                          \
    X(pthread_create, "2.2.5")                                                                     \
    X(pthread_detach, "2.2.5")                                                                     \
    X(pthread_getaffinity_np, "2.3.4")                                                             \
    X(pthread_getattr_np, "2.2.5")                                                                 \
    X(pthread_getcpuclockid, "2.2.5")                                                              \
    X(pthread_getname_np, "2.12")                                                                  \
    X(pthread_getspecific, "2.2.5")                                                                \
    X(pthread_join, "2.2.5")                                                                       \
    X(pthread_key_create, "2.2.5")                                                                 \
    X(pthread_key_delete, "2.2.5")                                                                 \
    X(pthread_kill, "2.2.5")                                                                       \
    X(pthread_mutex_timedlock, "2.2.5")                                                            \
    X(pthread_mutex_trylock, "2.2.5")                                                              \
    X(pthread_mutexattr_destroy, "2.2.5")                                                          \
    X(pthread_mutexattr_init, "2.2.5")                                                             \
    X(pthread_mutexattr_settype, "2.2.5")                                                          \
    X(pthread_once, "2.2.5")                                                                       \
    X(pthread_rwlock_destroy, "2.2.5")                                                             \
    X(pthread_rwlock_init, "2.2.5")                                                                \
    X(pthread_rwlock_rdlock, "2.2.5")                                                              \
    X(pthread_rwlock_tryrdlock, "2.2.5")                                                           \
    X(pthread_rwlock_trywrlock, "2.2.5")                                                           \
    X(pthread_rwlock_unlock, "2.2.5")                                                              \
    X(pthread_rwlock_wrlock, "2.2.5")                                                              \
    X(pthread_setaffinity_np, "2.3.4")                                                             \
    X(pthread_setname_np, "2.12")                                                                  \
    X(pthread_setspecific, "2.2.5")                                                                \
    X(pthread_sigmask, "2.2.5")                                                                    \
    X(pthread_testcancel, "2.2.5")                                                                 \
    X(pthread_timedjoin_np, "2.3.3")                                                               \
    X(pthread_tryjoin_np, "2.3.3")                                                                 \
    X(sem_destroy, "2.2.5")                                                                        \
    X(sem_getvalue, "2.2.5")                                                                       \
    X(sem_init, "2.2.5")                                                                           \
    X(sem_post, "2.2.5")                                                                           \
    X(sem_timedwait, "2.2.5")                                                                      \
    X(sem_trywait, "2.2.5")                                                                        \
    X(sem_wait, "2.2.5")

#if defined(__x86_64__)
#define X(name, version) __asm__(".symver " #name "," #name "@GLIBC_" version);
#elif defined(__aarch64__)
#define X(name, version) __asm__(".symver " #name "," #name "@GLIBC_2.17");
#else
#error "gpuwait's preload knows the glibc symbol versions of x86-64 and aarch64 only"
#endif
GW_OLD_SYMBOLS(X)
#undef X

/* What musl lacks. Its loader takes a preload that was meant for others, and ends the program over
 * a missing symbol; where these are NULL, the preload does nothing. */
#pragma weak dladdr1
#pragma weak dlvsym

/* Functions that glibc 2.28 does not have under these names: straight to the kernel,
 * whose struct stat is glibc's on both machines. They set errno as usual. */
static inline int gw_fstatat(int dir, const char *path, struct stat *st, int flags)
{
    return (int)syscall(SYS_newfstatat, dir, path, st, flags);
}

static inline int gw_stat(const char *path, struct stat *st)
{
    return gw_fstatat(AT_FDCWD, path, st, 0);
}

static inline int gw_lstat(const char *path, struct stat *st)
{
    return gw_fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

static inline int gw_fstat(int fd, struct stat *st)
{
    return (int)syscall(SYS_fstat, fd, st);
}

static inline pid_t gw_gettid(void)
{
    return (pid_t)syscall(SYS_gettid);
}

static inline int gw_tgkill(pid_t tgid, pid_t tid, int signal_number)
{
    return (int)syscall(SYS_tgkill, tgid, tid, signal_number);
}

#define stat(path, st)                   gw_stat(path, st)
#define lstat(path, st)                  gw_lstat(path, st)
#define fstat(fd, st)                    gw_fstat(fd, st)
#define fstatat(dir, path, st, flags)    gw_fstatat(dir, path, st, flags)
#define gettid()                         gw_gettid()
#define tgkill(tgid, tid, signal_number) gw_tgkill(tgid, tid, signal_number)

#endif
