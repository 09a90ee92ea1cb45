/* Threads of ours in somebody else's process. */
#include "gw.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static long futex(uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

int gw_own_thread(void *(*run)(void *), size_t stack)
{
    sigset_t all, before;
    pthread_t thread;
    pthread_attr_t attr;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (stack)
        pthread_attr_setstacksize(&attr, stack);
    int r = pthread_create(&thread, &attr, run, NULL);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -r;
}

void gw_own_nap(uint32_t *word, uint32_t value, long ns)
{
    const struct timespec nap = {.tv_nsec = ns};
    if (!gw_test_nap((uint64_t)ns))
        futex(word, FUTEX_WAIT, value, &nap);
}

void gw_own_wake(uint32_t *word)
{
    futex(word, FUTEX_WAKE, 1, NULL);
}

void gw_own_await(uint32_t *word, uint64_t ns)
{
    uint64_t deadline = gw_clock_ns(CLOCK_MONOTONIC) + ns;
    const struct timespec wait = {.tv_nsec = 100000000};
    /* Partner: the release store of whoever wakes us. */
    while (!gw_load_acquire(word) && gw_clock_ns(CLOCK_MONOTONIC) < deadline)
        futex(word, FUTEX_WAIT, 0, &wait);
}
