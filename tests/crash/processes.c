/* Processes and threads that come and go in every way, each launching kernels and saying how many:
 * "made PID N" on standard output, one line a process that launched.
 *
 *     processes WAY [NUMBER]
 */
#include "launches.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>

pid_t _Fork(void);

extern char **environ;

/* ---- ways of making a process --------------------------------------------------- */

static pid_t raw_clone(unsigned long flags)
{
    return (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
}

static void by_fork(bool first, unsigned in_child)
{
    if (first)
        launch(1000);
    for (long i = 0; i < number; i++) {
        pid_t pid = fork();
        if (pid == 0)
            exit(child(in_child, 3));
        wait_for(pid, 3);
    }
    launch(1000);
}

static void before(void)
{
    by_fork(false, 500);
}
static void after(void)
{
    by_fork(true, 500);
}
static void workers(void)
{
    by_fork(true, 0);
}

static void bare_fork(void)
{
    launch(1000);
    pid_t pid = _Fork();
    if (pid == 0)
        _exit(child(500, 3));
    wait_for(pid, 3);
    launch(1000);
}

static void bare_clone(void)
{
    launch(1000);
    pid_t pid = raw_clone(0);
    if (pid == 0)
        _exit(child(500, 3));
    wait_for(pid, 3);
    launch(1000);
}

/* Each child is process 1 of its own namespace, in one directory with the others. */
static void namespace(void)
{
    launch(1000);
    for (long i = 0; i < number; i++) {
        pid_t pid = raw_clone(0x20000000 /* CLONE_NEWPID */);
        if (pid < 0)
            exit(77);
        if (pid == 0)
            exit(child(500, 3));
        wait_for(pid, 3);
    }
}

static void by_vfork(void)
{
    launch(1000);
    pid_t pid = vfork();
    if (pid == 0) {
        execl(self, self, "plain", "500", (char *)NULL);
        _exit(96);
    }
    wait_for(pid, 0);
    launch(1000);
}

static void spawn(void)
{
    pid_t pid;
    launch(1000);
    if (posix_spawn(&pid, self, NULL, NULL, (char *[]){(char *)self, "plain", "500", NULL},
                    environ))
        exit(96);
    wait_for(pid, 0);
    launch(1000);
}

/* Two dumps of one process id: what it recorded before is there, though nothing closed it. */
static void exec(void)
{
    launch(1000);
    say();
    execl(self, self, "plain", "500", (char *)NULL);
    _exit(96);
}

static void together(void)
{
    pid_t pids[64];
    for (long i = 0; i < number && i < 64; i++)
        if ((pids[i] = fork()) == 0)
            exit(child(2000, 3));
    for (long i = 0; i < number && i < 64; i++)
        wait_for(pids[i], 3);
}

static void daemon_of_it(void)
{
    launch(1000);
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        if (fork() == 0)
            exit(child(500, 0));
        _exit(3);
    }
    wait_for(pid, 3);
    usleep(300000);
}

static void plain(void)
{
    launch((unsigned)number);
}

/* ---- threads -------------------------------------------------------------------------- */

static pthread_barrier_t barrier;

static void *short_lived(void *p)
{
    (void)p;
    launch(20);
    return NULL;
}

/* One after another, eight at a time. */
static void threads(void)
{
    pthread_t t[8];
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 65536);
    launch(1); /* calls beside the start of the recording are another matter */
    for (long i = 0; i < number; i += 8) {
        for (int k = 0; k < 8; k++)
            if (pthread_create(&t[k], &attr, short_lived, NULL))
                exit(95);
        for (int k = 0; k < 8; k++)
            pthread_join(t[k], NULL);
    }
}

static void *at_once(void *p)
{
    (void)p;
    pthread_barrier_wait(&barrier);
    launch(300);
    return NULL;
}

static void crowd(void)
{
    pthread_t t[1024];
    if (number > 1024)
        exit(2);
    launch(1); /* calls beside the start of the recording are another matter */
    pthread_barrier_init(&barrier, NULL, (unsigned)number);
    for (long i = 0; i < number; i++)
        if (pthread_create(&t[i], NULL, at_once, NULL))
            exit(95);
    for (long i = 0; i < number; i++)
        pthread_join(t[i], NULL);
}

static atomic_int inside;

static void *waits(void *p)
{
    launch(100);
    inside++;
    cudaStreamSynchronize(p); /* never returns */
    return NULL;
}

/* The real function never returns: the thread is unwound from inside it, through the wrapper. */
static void cancelled(void)
{
    for (long i = 0; i < number; i++) {
        pthread_t t;
        void *result;
        inside = 0;
        if (pthread_create(&t, NULL, waits, (void *)(uintptr_t)(i % 2 ? 0x77 : 0x78)))
            exit(95);
        while (!inside)
            usleep(100);
        usleep(1000);
        if (i % 2)
            pthread_cancel(t);
        pthread_join(t, &result);
        if (result != (i % 2 ? PTHREAD_CANCELED : (void *)0x78))
            exit(94);
        launch(100);
    }
}

static void *flooding(void *p)
{
    (void)p;
    launch((unsigned)number);
    usleep(600000); /* then there is room again, for what is to be told first */
    launch(10);
    return NULL;
}

static void flood(void)
{
    pthread_t t[2];
    launch(1);
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, flooding, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
}

static void *launches_on(void *p)
{
    (void)p;
    for (;;)
        launch(10);
    return NULL;
}

/* fork() while others are inside calls: each child launches and ends. */
static atomic_bool enough;

static void *launches_until(void *p)
{
    (void)p;
    while (!enough)
        launch(10);
    return NULL;
}

static void fork_beside(void)
{
    pthread_t t[4];
    launch(1); /* calls beside the start of the recording are another matter */
    for (int i = 0; i < 4; i++)
        if (pthread_create(&t[i], NULL, launches_until, NULL))
            exit(95);
    by_fork(false, 50);
    enough = true;
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
}

/* The parent is killed; its child goes on. */
static void orphan(void)
{
    pid_t parent = getpid();
    launch(1000);
    say();
    pid_t pid = fork();
    if (pid < 0)
        exit(96);
    if (pid == 0) {
        kill(parent, SIGKILL);
        usleep(100000);
        exit(child(500, 0));
    }
    pause();
}

/* exit() while other threads are inside calls: they are not waited for. */
static void exit_beside(void)
{
    pthread_t t;
    for (int i = 0; i < 4; i++)
        pthread_create(&t, NULL, launches_on, NULL);
    usleep(50000);
    exit(0);
}

/* ---- what the process is short of ---------------------------------------------------------- */

static void few_files(void)
{
    limit(RLIMIT_NOFILE, (rlim_t)number);
    launch(1000);
}

static void small_files(void) /* SIGXFSZ ends who writes beyond */
{
    limit(RLIMIT_FSIZE, (rlim_t)number);
    launch(400000);
}

static void little_memory(void) /* so many MiB above what it has */
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%lu", &pages) != 1)
        exit(92);
    fclose(f);
    limit(RLIMIT_AS, pages * 4096 + ((rlim_t)number << 20));
    launch(1000);
    threads();
}

/* Programs do that between fork() and exec(), and some at any time. */
static void closes_all(void)
{
    launch(1000);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    int own = open(".", O_RDWR | O_TMPFILE, 0600);
    for (int i = 0; i < 16; i++) /* its numbers are those of files that were not its own */
        dup(own);
    launch(200000);
    number = 16;
    threads(); /* that need rings */
    struct stat st;
    if (own != 3 || fstat(own, &st) || st.st_size)
        exit(91);
}

/* Launches for so many milliseconds, in bursts, each by a thread of its own, too. */
static void steady(void)
{
    number = number < 10 ? 1 : number / 10;
    for (long i = number; i > 0; i--) {
        pthread_t t;
        launch(100);
        usleep(10000);
        if (pthread_create(&t, NULL, short_lived, NULL))
            exit(95);
        pthread_join(t, NULL);
    }
}

static void hangs(void)
{
    launch(1000);
    say();
    cudaStreamSynchronize((cudaStream_t)0x77); /* never returns */
}

/* Until it is killed. */
static void stays(void)
{
    launch(1000);
    say();
    for (;;)
        pause();
}

static const struct way ways[] = {{"plain", plain, false},
                                  {"before", before, false},
                                  {"after", after, false},
                                  {"workers", workers, false},
                                  {"_Fork", bare_fork, false},
                                  {"clone", bare_clone, false},
                                  {"namespace", namespace, false},
                                  {"vfork", by_vfork, false},
                                  {"spawn", spawn, false},
                                  {"exec", exec, true},
                                  {"together", together, true},
                                  {"daemon", daemon_of_it, false},
                                  {"threads", threads, false},
                                  {"crowd", crowd, false},
                                  {"flood", flood, false},
                                  {"cancelled", cancelled, false},
                                  {"fork-beside", fork_beside, false},
                                  {"orphan", orphan, true},
                                  {"exit-beside", exit_beside, true},
                                  {"few-files", few_files, false},
                                  {"small-files", small_files, false},
                                  {"little-memory", little_memory, false},
                                  {"closes-all", closes_all, false},
                                  {"steady", steady, false},
                                  {"hangs", hangs, true},
                                  {"stays", stays, true},
                                  {0}};

int main(int argc, char **argv)
{
    return run_way(argc, argv, ways);
}
