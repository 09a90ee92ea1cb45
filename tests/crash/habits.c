/* What programs may do with their process: descriptors, signals, stacks, limits, the order of ends.
 * As processes.c says "made PID N"; and ends with a code of its own where the library is in its
 * way.
 *
 *     habits WAY [NUMBER]
 */
#include "launches.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>

static void thread_of(void *(*f)(void *), void *p, size_t stack)
{
    pthread_t t;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    if ((stack && pthread_attr_setstacksize(&attr, stack)) || pthread_create(&t, &attr, f, p) ||
        pthread_join(t, NULL))
        exit(95);
}

static void *launches(void *p)
{
    (void)p;
    launch(200);
    return NULL;
}

/* ---- descriptors ------------------------------------------------------------------------- */

/* A daemon that closes the first three; the numbers are its own files' from then on. */
static void closed_stdio(void)
{
    int out = fcntl(STDOUT_FILENO, F_DUPFD, 100);
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    launch(1000);
    for (int fd = 0; fd < 3; fd++)
        if (open(".", O_RDWR | O_TMPFILE, 0600) != fd)
            exit(90);
    launch(200000);
    for (int i = 0; i < 16; i++)
        thread_of(launches, NULL, 0);
    for (int fd = 0; fd < 3; fd++) {
        struct stat st;
        if (fstat(fd, &st) || st.st_size)
            exit(91);
    }
    dup2(out, STDOUT_FILENO);
}

static uint32_t over;

/* Long enough from one call to the next that somebody may want to know what it did meanwhile. */
static void *now_and_then(void *p)
{
    (void)p;
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        launch(1);
        usleep(12000);
    }
    return NULL;
}

/* As daemons do: a file that is opened has the lowest number that the program left free. */
static void lowest(void)
{
    pthread_t threads[4];
    struct timespec now, begun;
    launch(1000);
    usleep(100000);
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, now_and_then, NULL))
            exit(95);
    clock_gettime(CLOCK_MONOTONIC, &begun);
    int usual = -1;
    do {
        int fd = open("/dev/null", O_RDONLY);
        if (usual < 0)
            usual = fd;
        if (fd != usual)
            exit(92);
        close(fd);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begun.tv_sec < 2);
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

/* ---- signals ------------------------------------------------------------------------------ */

/* All are blocked, in all of its threads: one that is sent stays pending. */
static void blocks_all(void)
{
    sigset_t all, now, pending;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &now);
    launch(1000);
    thread_of(launches, NULL, 0);
    kill(getpid(), SIGUSR1);
    usleep(100000);
    launch(1000);
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    sigpending(&pending);
    if (!sigismember(&now, SIGUSR2) || !sigismember(&now, SIGPROF) ||
        !sigismember(&pending, SIGUSR1))
        exit(90);
}

static void nothing(int s)
{
    (void)s;
}

static void launching(int s)
{
    int saved = errno;
    (void)s;
    launch(3);
    errno = saved;
}

static void every(int signal_number, int which, void (*handler)(int), long us)
{
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_ONSTACK}; /* no SA_RESTART */
    struct itimerval t = {{0, us}, {0, us}};
    stack_t own = {.ss_size = 65536, .ss_sp = malloc(65536)};
    if (sigaltstack(&own, NULL) || sigaction(signal_number, &a, NULL) || setitimer(which, &t, NULL))
        exit(92);
}

static void profiled(void)
{
    every(SIGPROF, ITIMER_PROF, nothing, 100);
    every(SIGALRM, ITIMER_REAL, nothing, 100);
    launch(200000);
    for (int i = 0; i < 30; i++)
        thread_of(launches, NULL, 0);
}

/* The handler comes in the middle of anything, the library's own work too. */
static void in_handler(void)
{
    every(SIGALRM, ITIMER_REAL, launching, 200);
    launch(1000000);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
}

/* ---- stacks, threads, the end --------------------------------------------------------------- */

/* The first call of all comes from a thread with so many KiB. */
static void small_stack(void)
{
    thread_of(launches, NULL, (size_t)number << 10);
}

static pthread_key_t key;

static void on_end(void *p)
{
    launch(10);
    if ((uintptr_t)p > 1) /* once more, after the other keys' */
        pthread_setspecific(key, (void *)((uintptr_t)p - 1));
}

static void *with_key(void *p)
{
    pthread_setspecific(key, p);
    launch(10);
    return NULL;
}

/* Threads whose ends make calls, in as many rounds as there may be, by the hundred. */
static void keys(void)
{
    pthread_key_create(&key, on_end);
    launch(1);
    for (long i = 0; i < number; i++)
        thread_of(with_key, (void *)(uintptr_t)(1 + i % 4), 65536);
}

static void *goes_on(void *p)
{
    pthread_join(*(pthread_t *)p, NULL);
    launch(1000);
    say();
    exit(0);
}

static void main_leaves(void)
{
    static pthread_t first;
    pthread_t t;
    first = pthread_self();
    launch(1000);
    if (pthread_create(&t, NULL, goes_on, &first))
        exit(95);
    pthread_exit(NULL);
}

/* Cancelled as soon as there is a place for it within the first call of all. */
static void *cancelled(void *p)
{
    launch(1);
    return p;
}

static void cancelled_at_start(void)
{
    for (int i = 0; i < 8; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, cancelled, NULL))
            exit(95);
        pthread_cancel(t);
        pthread_join(t, NULL);
    }
    launch(1000);
}

static bool is_late;

static void at_exit(void)
{
    launch(10);
}

/* After main(): in handlers of exit(), then in the program's own destructor, then in a library's,
 * when nothing is recorded any more. */
static void late(void)
{
    is_late = true;
    atexit(at_exit);
    launch(1000);
    atexit(at_exit);
}

__attribute__((destructor)) static void last_of_all(void)
{
    if (!is_late)
        return;
    launch(10);
    say();
}

/* ---- processes ------------------------------------------------------------------------------ */

static atomic_bool enough;

static void *comes_and_goes(void *p)
{
    while (!enough)
        thread_of(launches, p, 65536);
    return NULL;
}

/* A thread forks while others begin and end. */
static void fork_beside_ends(void)
{
    pthread_t t[2];
    launch(1); /* calls beside the start of the recording are another matter */
    for (int i = 0; i < 2; i++)
        if (pthread_create(&t[i], NULL, comes_and_goes, NULL))
            exit(95);
    for (long i = 0; i < number; i++) {
        pid_t pid = fork();
        if (pid == 0)
            exit(3);
        wait_for(pid, 3);
    }
    enough = true;
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
}

static void *forks_on(void *p)
{
    (void)p;
    for (;;) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(3); /* exit() may wait for a lock of the C library's that is nobody's here */
        if (pid > 0)
            waitpid(pid, NULL, 0);
    }
    return NULL;
}

/* The process ends while a thread forks. */
static void exit_beside_fork(void)
{
    pthread_t t;
    launch(1000);
    say();
    for (int i = 0; i < 2; i++)
        if (pthread_create(&t, NULL, forks_on, NULL))
            exit(95);
    usleep(20000);
    exit(0);
}

static void *execs(void *p)
{
    (void)p;
    execl(self, self, "plain", "500", (char *)NULL);
    _exit(96);
}

/* By a thread that is not the first, which then is the only one. */
static void exec_in_thread(void)
{
    launch(1000);
    say();
    thread_of(execs, NULL, 0);
}

static void plain(void)
{
    launch((unsigned)number);
}

static void change_directory(void)
{
    if (chdir("/"))
        exit(96);
    launch(1000);
}

/* Where it has no path to its files any more. */
static void change_root(void)
{
    launch(1000);
    thread_of(launches, NULL, 0);
    if (mkdir("empty", 0700) || chroot("empty") || chdir("/"))
        exit(77);
    for (int i = 0; i < 16; i++)
        thread_of(launches, NULL, 0);
    launch((unsigned)number);
}

/* ---- limits --------------------------------------------------------------------------------- */

static void undumpable(void)
{
    prctl(PR_SET_DUMPABLE, 0);
    launch(1000);
    thread_of(launches, NULL, 0);
}

/* From now on it is bound by limits, whoever it is. */
static void give_up(unsigned capability)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &head, data))
        exit(77);
    data[capability / 32].effective &= ~(1u << capability % 32);
    if (syscall(SYS_capset, &head, data))
        exit(77);
}

/* No thread more. */
static void few_threads(void)
{
    pthread_t t;
    if (getuid() == 0 && setresuid(65534, 0, 0))
        exit(77);
    give_up(CAP_SYS_ADMIN);
    give_up(CAP_SYS_RESOURCE);
    limit(RLIMIT_NPROC, 1);
    if (pthread_create(&t, NULL, launches, NULL) != EAGAIN)
        exit(77);
    launch(1000);
}

/* What it gets is to stay in memory, but not that much. */
static void little_locked(void)
{
    give_up(CAP_IPC_LOCK);
    limit(RLIMIT_MEMLOCK, 6 << 20);
    if (mlockall(MCL_FUTURE))
        exit(77);
    launch(1000);
}

static void locked(void)
{
    if (mlockall(MCL_CURRENT | MCL_FUTURE))
        exit(77);
    launch(1000);
    thread_of(launches, NULL, 0);
}

/* Of private memory so many KiB more. */
static void little_data(void)
{
    unsigned long data = 0;
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "VmData: %lu", &data);
    if (f)
        fclose(f);
    limit(RLIMIT_DATA, (data + (rlim_t)number) << 10);
    launch(1000);
    pthread_t t;
    for (int i = 0; i < 8; i++)
        if (pthread_create(&t, NULL, launches, NULL) == 0)
            pthread_join(t, NULL);
}

/* What it had is all that it may have from now on. */
static void fewer_files(void)
{
    launch(1000);
    limit(RLIMIT_NOFILE, 3);
    limit(RLIMIT_FSIZE, 4 << 20);
    launch(400000);
    for (int i = 0; i < 16; i++)
        thread_of(launches, NULL, 0);
}

static const struct way ways[] = {{"plain", plain, false},
                                  {"closed-stdio", closed_stdio, false},
                                  {"lowest", lowest, false},
                                  {"blocks-all", blocks_all, false},
                                  {"profiled", profiled, false},
                                  {"in-handler", in_handler, false},
                                  {"small-stack", small_stack, false},
                                  {"keys", keys, false},
                                  {"main-leaves", main_leaves, true},
                                  {"cancelled-at-start", cancelled_at_start, false},
                                  {"late", late, true},
                                  {"fork-beside-ends", fork_beside_ends, false},
                                  {"exit-beside-fork", exit_beside_fork, true},
                                  {"exec-in-thread", exec_in_thread, true},
                                  {"change-directory", change_directory, false},
                                  {"change-root", change_root, false},
                                  {"undumpable", undumpable, false},
                                  {"locked", locked, false},
                                  {"little-locked", little_locked, false},
                                  {"few-threads", few_threads, false},
                                  {"little-data", little_data, false},
                                  {"fewer-files", fewer_files, false},
                                  {0}};

int main(int argc, char **argv)
{
    return run_way(argc, argv, ways);
}
