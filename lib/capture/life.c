/* Birth, forks and death of the recording inside a process.
 *
 * Inert until a call needs a context: no file, no thread. Then one start; afterwards
 * either active or, for good, off. A forked child is inert again. */
#include "gw.h"
#include "python.h"
#include "sampler.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

uint32_t gw_state = GW_INERT;
uint32_t gw_recording = 1;
char gw_dump_path[4096];
pid_t gw_pid;

static uint32_t dead; /* always 0 */
uint32_t *gw_alive = &dead;

static pthread_key_t thread_key;
static bool key_made;
static uint32_t starter; /* tid of the thread inside start_locked() */
static bool inherited;   /* the tables still hold what the parent knew */

/* ---- undisturbed ----------------------------------------------------------------------- */

/* What makes files and rings must not be left half-way: neither by a signal handler, whose own
 * calls would wait for it, nor because the thread is cancelled. */
struct undisturbed {
    sigset_t signals;
    int cancel;
};

static void undisturbed_begin(struct undisturbed *u)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &u->signals);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &u->cancel);
}

static void undisturbed_end(const struct undisturbed *u)
{
    pthread_setcancelstate(u->cancel, NULL);
    pthread_sigmask(SIG_SETMASK, &u->signals, NULL);
}

/* ---- start --------------------------------------------------------------------------- */

static void make_path(void)
{
    char host[65] = "host";
    uint32_t random = 0;
    gethostname(host, sizeof host - 1);
    for (char *c = host; *c; c++)
        if (*c == '/' || *c < ' ' || *c > '~')
            *c = '_';
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
        random = (uint32_t)gw_clock_ns(CLOCK_REALTIME);
    int n = snprintf(gw_dump_path, sizeof gw_dump_path, "%.3800s/%s-%d-%08x.gwt", gw_options.out,
                     host, (int)getpid(), random);
    (void)n;
}

/* The directory and those above it, as `mkdir -p`. Apart, so that its buffer is gone when the files
 * are made: the thread may have little stack. */
static __attribute__((noinline)) int make_directory(const char *path)
{
    char part[PATH_MAX];
    snprintf(part, sizeof part, "%s", path);
    for (char *c = part + 1; *c; c++) {
        if (*c != '/')
            continue;
        *c = 0;
        mkdir(part, 0777);
        *c = '/';
    }
    return mkdir(part, 0777) == 0 || errno == EEXIST ? 0 : -errno;
}

/* post: whole pages, or NULL and errno. */
static void *wiped_on_fork(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    /* Kernels before 4.14 lack it: then only fork() itself is noticed. */
    madvise(p, size, MADV_WIPEONFORK);
    return p;
}

static int make_alive_page(void)
{
    uint32_t *p = wiped_on_fork((size_t)sysconf(_SC_PAGESIZE));
    if (!p)
        return -errno;
    gw_store_release(&gw_alive, p);
    return 0;
}

static void define_calls(void)
{
    gw_lock();
    for (unsigned api = 1; api < GW_API_COUNT; api++) {
        struct gwt_def_api d = {.kind = gw_calls[api].kind, .level = gw_calls[api].level};
        if (d.kind != GWT_NAME)
            gw_define(GWT_DEF_API, api, &d, sizeof d, gw_calls[api].name,
                      strlen(gw_calls[api].name));
    }
    gw_unlock();
}

static void close_thread(void *p)
{
    struct gw_thread *t = p;
    gw_self = gw_local.idle = NULL;
    if (gw_load_acquire(&gw_state) == GW_ACTIVE && gw_is_alive())
        gw_ring_thread_close(t);
    munmap(t, sizeof *t);
}

/* Large tables: cleared only in a child that uses CUDA itself, not in each DataLoader worker. */
static void forget_inherited(void)
{
    gw_names_reset();
    gw_streams_reset();
    gw_graphs_reset();
    gw_comms_reset();
    gw_sampler_reset();
    gw_sections_reset();
    gw_stacks_reset();
    inherited = false;
}

static int start_locked(void)
{
    struct gwt_file_header file = {.pid = (uint32_t)getpid()};
    if (inherited)
        forget_inherited();
    gw_clock_init();
    file.clock = gw_clock;
    gw_process_start(&file.process_start);
    gw_boot_id(file.boot_id);
    gw_clock_triple(&file.start);
    make_path();
    int r = make_directory(gw_options.out);
    if (r < 0) {
        gw_say("cannot make directory %s: %s; nothing is recorded", gw_options.out, strerror(-r));
        return r;
    }
    if ((r = gw_ring_create(gw_dump_path, &file, file.ring_path)) < 0) {
        gw_say("cannot make a ring file for %s: %s; nothing is recorded", gw_dump_path,
               strerror(-r));
        return r;
    }
    if (!key_made && (r = -pthread_key_create(&thread_key, close_thread)) < 0)
        goto undo;
    key_made = true;
    if ((r = make_alive_page()) < 0)
        goto undo;
    define_calls();
    gw_facts();
    if ((r = gw_drain_start(&file)) < 0)
        goto undo;
    return 0;
undo:
    gw_say("cannot record into %s: %s; nothing is recorded", gw_dump_path, strerror(-r));
    gw_ring_unlink();
    return r;
}

static bool start(void)
{
    uint32_t inert = GW_INERT;
    if (!gw_cas(&gw_state, &inert, GW_STARTING)) {
        /* Another thread is at it; its calls and ours are worth the few milliseconds. Bounded,
         * since it may need the loader's lock and this thread may hold that. */
        uint64_t deadline = gw_clock_ns(CLOCK_MONOTONIC) + 100000000u;
        while (gw_load_acquire(&gw_state) == GW_STARTING &&
               gw_load_relaxed(&starter) != (uint32_t)gettid() &&
               gw_clock_ns(CLOCK_MONOTONIC) < deadline)
            sched_yield();
        return gw_load_acquire(&gw_state) == GW_ACTIVE;
    }
    int saved = errno;
    gw_store_relaxed(&starter, (uint32_t)gettid());
    gw_pid = getpid();
    int r = start_locked();
    gw_store_relaxed(&starter, 0);
    if (r == 0)
        gw_store_release(gw_alive, 1);
    gw_store_release(&gw_state, r == 0 ? GW_ACTIVE : GW_OFF);
    if (r == 0) {
        struct gw_thread *t = gw_thread_get();
        if (t)
            gw_nvtx_replay(t);
        gw_timer_start();
        gw_stacks_start();
    }
    errno = saved;
    return r == 0;
}

bool gw_start(void)
{
    struct undisturbed u;
    undisturbed_begin(&u);
    bool started = start();
    undisturbed_end(&u);
    return started;
}

struct gw_thread *gw_thread_get(void)
{
    if (gw_self || gw_load_acquire(&gw_state) != GW_ACTIVE || gw_ring_full() || gw_local.busy)
        return gw_self;
    struct undisturbed u;
    int saved = errno;
    undisturbed_begin(&u);
    struct gw_thread *t = wiped_on_fork(sizeof *t);
    if (!t) {
        gw_ring_no_room(errno);
    } else {
        madvise(t, sizeof *t, MADV_WIPEONFORK); /* as make_alive_page() */
        if (gw_ring_thread(t) == 0) {
            pthread_setspecific(thread_key, t);
            gw_self = t;
        } else {
            munmap(t, sizeof *t);
        }
    }
    undisturbed_end(&u);
    errno = saved;
    return gw_self;
}

/* ---- fork ------------------------------------------------------------------------------- */

/* In the child. Only its own words are touched: the mappings are the parent's, and another
 * thread of the parent may have held any lock. */
void gw_after_fork(void)
{
    gw_lock_reset();
    gw_resolve_reset();
    gw_alive = &dead;
    gw_self = gw_local.idle = NULL;
    gw_top = NULL;
    gw_timing = 0;
    gw_recording = 1;
    gw_odd = 0;
    gw_ring_forget();
    gw_drain_forget();
    gw_timer_forget();
    gw_python_forget();
    gw_define_reset();
    gw_memory_reset();
    gw_nvtx_reset();
    inherited = true;
    if (key_made)
        pthread_setspecific(thread_key, NULL);
    gw_store_release(&gw_state, GW_INERT);
}

static void in_child(void)
{
    /* Another thread of the parent's may have held these at the fork. */
    gw_lock_reset();
    gw_resolve_reset();
    if (gw_state == GW_ACTIVE || gw_state == GW_STARTING)
        gw_after_fork();
}

/* ---- load and unload ----------------------------------------------------------------------- */

/* NVTX asks this variable which library to hand its ranges to, possibly before any CUDA call.
 * A profiler that set it first keeps it. */
static void offer_nvtx(void)
{
    Dl_info info;
    char path[PATH_MAX];
    if (!getenv("NVTX_INJECTION64_PATH") && dladdr((void *)offer_nvtx, &info) && info.dli_fname &&
        realpath(info.dli_fname, path))
        setenv("NVTX_INJECTION64_PATH", path, 0);
}

/* What pthread_atfork() calls, named so that musl, which lacks it, does not end the program. */
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *)
    __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

__attribute__((constructor)) static void load(void)
{
    int saved = errno;
    gw_resolve_init();
    gw_options_read();
    gw_options.off |= !__register_atfork; /* this is not glibc */
    if (gw_options.off) {
        gw_state = GW_OFF;
    } else {
        __register_atfork(gw_python_fork_begins, gw_python_fork_ended, in_child, __dso_handle);
        offer_nvtx();
    }
    errno = saved;
}

/* Not run after _exit or a signal, so nothing depends on it: it spares the reader the ring. */
__attribute__((destructor)) static void unload(void)
{
    bool was_active = gw_load_acquire(&gw_state) == GW_ACTIVE && gw_is_alive();
    if (gw_load_acquire(&gw_state) != GW_ACTIVE || !was_active)
        return;
    gw_timer_stop();
    gw_python_stop();
    gw_facts_libraries(true);
    gw_store_release(&gw_state, GW_OFF);
    gw_store_release(gw_alive, 0);
    gw_odd_set(GW_ODD_OVER, true);
    gw_drain_stop();
}
