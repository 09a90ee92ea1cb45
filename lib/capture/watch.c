/* The watch: what is learned of the program's threads from outside, every 5 ms.
 *
 * The kernel tells a thread's name and context switches in files only, and to open one takes the
 * lowest free descriptor for a moment: a program that has just closed its standard input and opens
 * another file for it would find it taken. So this thread has descriptors of its own, and none of
 * the program's. */
#include "gw.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range /* Linux 5.9; the same number everywhere */
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2u
#endif

#define WAKE_NS      5000000L
#define LOOK_NS      1000000000ull
#define LOOKS        10 /* at a new thread's name, one a second: it is set late */
#define LIBRARIES_NS 3000000000ull
#define LAST_NS      1000000000ull /* the last round may take so long */

static uint32_t running, stop_word, done_word;
static uint64_t cpu_ns;

static struct {
    uint32_t thread; /* whose this slot was when last looked at */
    uint32_t looks;
    uint64_t looked_ns;
} seen[GWT_THREAD_SLOTS];

static void learn_name(struct gwt_slot *s, uint32_t thread)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%u/comm", gw_load_relaxed(&s->tid));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = read(fd, name, sizeof name - 1);
    close(fd);
    if (n <= 0)
        return;
    if (name[n - 1] == '\n')
        n--;
    name[n] = 0;
    gw_ring_thread_named(s, thread, name);
}

static void learn_names(uint64_t now, bool last)
{
    for (unsigned i = 0; i < gw_ring_slots_used(); i++) {
        struct gwt_slot *s = gw_ring_slot(i);
        /* Partner: the release stores of state in ring.c. */
        if (gw_load_acquire(&s->state) != GWT_SLOT_USED)
            continue;
        uint32_t thread = gw_load_relaxed(&s->thread);
        if (seen[i].thread != thread) {
            seen[i].thread = thread;
            seen[i].looks = 0;
            seen[i].looked_ns = now; /* it came with a name */
        }
        if (seen[i].looks >= LOOKS || (now - seen[i].looked_ns < LOOK_NS && !last))
            continue;
        learn_name(s, thread);
        seen[i].looks++;
        seen[i].looked_ns = now;
    }
}

/* The system may be older, or a sandbox may not want it: then a file is opened as anybody opens
 * it, and the recording says so. */
static void leave_descriptors(void)
{
    static const char key[] = "descriptors";
    if (syscall(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE) == 0)
        return;
    char text[96];
    int n = snprintf(text, sizeof text, "now and then one of the program's is taken: %s",
                     strerror(errno));
    gw_lock();
    gw_define(GWT_DEF_FACT, 0, key, sizeof key, text, (size_t)n);
    gw_unlock();
}

static void *run(void *arg)
{
    (void)arg;
    pthread_setname_np(pthread_self(), "gpuwait-watch");
    leave_descriptors();
    uint64_t started = gw_clock_ns(CLOCK_MONOTONIC);
    bool told_libraries = false;
    while (!gw_load_acquire(&stop_word)) { /* partner: gw_watch_stop() */
        uint64_t now = gw_clock_ns(CLOCK_MONOTONIC);
        gw_section_watch();
        learn_names(now, false);
        if (!told_libraries && now - started >= LIBRARIES_NS) {
            gw_facts_libraries(false);
            told_libraries = true;
        }
        gw_store_relaxed(&cpu_ns, gw_clock_ns(CLOCK_THREAD_CPUTIME_ID));
        gw_own_nap(&stop_word, 0, WAKE_NS);
    }
    learn_names(gw_clock_ns(CLOCK_MONOTONIC), true);
    gw_store_release(&done_word, 1); /* partner: gw_own_await() */
    gw_own_wake(&done_word);
    return NULL;
}

void gw_watch_start(void)
{
    stop_word = done_word = 0;
    cpu_ns = 0;
    memset(seen, 0, sizeof seen);
    int r = gw_own_thread(run, 256 * 1024);
    running = r == 0;
    if (r < 0)
        gw_say("no thread to watch the program's threads: %s; what they do between calls is not "
               "recorded",
               strerror(-r));
}

/* At exit, when threads may be gone without a trace: the wait is bounded. */
void gw_watch_stop(void)
{
    if (!running)
        return;
    gw_store_release(&stop_word, 1); /* partner: run() */
    gw_own_wake(&stop_word);
    gw_own_await(&done_word, LAST_NS);
}

uint64_t gw_watch_cpu_ns(void)
{
    return gw_load_relaxed(&cpu_ns);
}
