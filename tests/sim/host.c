/* The host side: one lock, the clock, threads, what a call costs, and waiting. */
#include "core.h"
#include "peers.h"
#include "truth.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How long after the end of the awaited work a spinning host notices. */
#define WAKE            2600.0
#define WAKE_SPREAD     0.25
#define WAKE_LATE       0.008 /* chance that the scheduler had the thread elsewhere */
#define WAKE_LATE_MAX   120000.0
#define COST_SPREAD     0.09
#define COST_TAIL       0.002
#define COST_TAIL_MAX   25000.0
#define RUNTIME_PRE_NS  260
#define RUNTIME_POST_NS 160

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t virtual_now = 1000000000;
static int64_t real_start;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;
static __thread struct sim_thread *self;
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_thread *threads;
static uint64_t ended_ns; /* CPU time of threads that have ended */
static unsigned nthreads;
static bool forked;
bool sim_initialised;

static const struct {
    uint32_t pre, post;
} costs[SIM_K_COUNT] = {
#define X(name, pre, post) [SIM_K_##name] = {pre, post},
    SIM_KINDS(X)
#undef X
};

void sim_lock(void)
{
    pthread_mutex_lock(&lock);
}

void sim_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void *sim_grow(void *p, size_t bytes)
{
    p = realloc(p, bytes);
    if (!p)
        abort();
    return p;
}

void *sim_pool_get(struct sim_pool *pool)
{
    char *p = pool->free_list;
    if (!p) {
        /* a chunk, threaded so that addresses come out in ascending order */
        const size_t n = 64;
        p = calloc(n, pool->size);
        if (!p)
            abort();
        for (size_t i = n; i-- > 0;) {
            *(void **)(p + i * pool->size) = pool->free_list;
            pool->free_list = p + i * pool->size;
        }
    }
    pool->free_list = *(void **)p;
    memset(p, 0, pool->size);
    return p;
}

void sim_pool_put(struct sim_pool *pool, void *object)
{
    memset(object, 0, pool->size);
    *(void **)object = pool->free_list;
    pool->free_list = object;
}

/* ---- clock --------------------------------------------------------------------------- */

static int64_t real_now(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t sim_clock(void)
{
    if (sim_cfg.is_virtual)
        return __atomic_load_n(&virtual_now, __ATOMIC_SEQ_CST);
    return real_now(CLOCK_MONOTONIC);
}

static void real_sleep(int64_t ns)
{
    struct timespec ts = {ns / 1000000000, ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
        ;
}

/* SIM_PACE: real threads beside the simulation, such as a recorder's, get their share. */
static void pace(void)
{
    if (sim_cfg.pace <= 0)
        return;
    double real = (double)(real_now(CLOCK_MONOTONIC) - real_start);
    double lead = (double)(sim_clock() - 1000000000) / sim_cfg.pace - real;
    if (lead > 500000)
        real_sleep((int64_t)lead);
}

/* ---- naps: threads of a recorder's that sleep in virtual time ------------------------------
 *
 * While one that has napped before is awake, the clock stands: what it does happens at the time at
 * which it woke, as it would beside a real program, however seldom a busy machine lets it run.
 * Bounded in real time, both ways: it may need a lock that this thread holds, or the clock may
 * stop. */
#define NAP_REAL_NS  20000000
#define HAND_REAL_NS 500000000
#define STEP_NS      1000000

enum { NAP_NEVER, NAP_ASLEEP, NAP_AWAKE };

static pthread_mutex_t nap_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t nap_cond = PTHREAD_COND_INITIALIZER;
static struct sim_thread *nappers;
static int64_t next_look = INT64_MAX; /* when one of them is to wake; 0: one is awake */

static struct timespec real_in(int64_t ns)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    ns += ts.tv_nsec;
    return (struct timespec){ts.tv_sec + ns / 1000000000, ns % 1000000000};
}

/* pre: nap_lock is held, as below */
static void find_next_look(void)
{
    int64_t next = INT64_MAX;
    for (struct sim_thread *t = nappers; t; t = t->next_napper) {
        int64_t at = t->nap == NAP_AWAKE ? 0 : t->nap == NAP_ASLEEP ? t->wake : INT64_MAX;
        if (at < next)
            next = at;
    }
    __atomic_store_n(&next_look, next, __ATOMIC_SEQ_CST);
}

static void naps_changed(void)
{
    find_next_look();
    pthread_cond_broadcast(&nap_cond);
}

/* post: those in state `from` who are to wake by `now` are in state `to` */
static void turn(int from, int to, int64_t now)
{
    for (struct sim_thread *t = nappers; t; t = t->next_napper)
        if (t->nap == from && t->wake <= now)
            t->nap = to;
    naps_changed();
}

static void nap_until(struct sim_thread *t, int64_t wake)
{
    struct timespec limit = real_in(NAP_REAL_NS);
    pthread_mutex_lock(&nap_lock);
    if (!t->naps) {
        t->naps = true;
        t->next_napper = nappers;
        nappers = t;
    }
    t->wake = wake;
    t->nap = NAP_ASLEEP;
    naps_changed();
    while (t->nap == NAP_ASLEEP)
        if (pthread_cond_timedwait(&nap_cond, &nap_lock, &limit) == ETIMEDOUT)
            t->nap = NAP_AWAKE;
    find_next_look();
    pthread_mutex_unlock(&nap_lock);
}

static void napper_gone(struct sim_thread *t)
{
    struct sim_thread **at = &nappers;
    pthread_mutex_lock(&nap_lock);
    while (*at && *at != t)
        at = &(*at)->next_napper;
    if (*at)
        *at = t->next_napper;
    naps_changed();
    pthread_mutex_unlock(&nap_lock);
}

SIM_EXPORT unsigned sim_nappers(void)
{
    unsigned n = 0;
    pthread_mutex_lock(&nap_lock);
    for (const struct sim_thread *t = nappers; t; t = t->next_napper)
        n++;
    pthread_mutex_unlock(&nap_lock);
    return n;
}

static void hand_over(void)
{
    struct timespec limit = real_in(HAND_REAL_NS);
    pthread_mutex_lock(&nap_lock);
    turn(NAP_ASLEEP, NAP_AWAKE, sim_clock());
    while (!__atomic_load_n(&next_look, __ATOMIC_SEQ_CST))
        if (pthread_cond_timedwait(&nap_cond, &nap_lock, &limit) == ETIMEDOUT)
            turn(NAP_AWAKE, NAP_NEVER, INT64_MAX); /* until it naps again */
    pthread_mutex_unlock(&nap_lock);
}

/* pre: not locked, unless nobody naps */
static void advance_to(int64_t t)
{
    for (;;) {
        int64_t old = __atomic_load_n(&virtual_now, __ATOMIC_SEQ_CST);
        int64_t look = __atomic_load_n(&next_look, __ATOMIC_SEQ_CST);
        int64_t to = look < t ? look : t;
        while (to > old && !__atomic_compare_exchange_n(&virtual_now, &old, to, false,
                                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            ;
        if (look > t)
            break;
        hand_over();
    }
    pace();
}

static void spin_until(int64_t t)
{
    while (real_now(CLOCK_MONOTONIC) < t)
        ;
}

void sim_spend(uint64_t ns)
{
    struct sim_thread *t = sim_thread();
    if (t->in_callback) {
        t->callback_ns += ns;
    } else if (!sim_cfg.is_virtual) {
        /* inside a call, what the simulation itself takes counts towards the cost */
        if (!t->top)
            t->accounted = sim_clock();
        t->accounted += (int64_t)ns;
        spin_until(t->accounted);
    } else if (!t->quiet) {
        do { /* in steps, between which those wake who are to */
            uint64_t step = ns < STEP_NS ? ns : STEP_NS;
            __atomic_add_fetch(&t->cpu_ns, step, __ATOMIC_RELAXED);
            int64_t now = __atomic_add_fetch(&virtual_now, (int64_t)step, __ATOMIC_SEQ_CST);
            if (now >= __atomic_load_n(&next_look, __ATOMIC_SEQ_CST))
                hand_over();
            ns -= step;
        } while (ns);
        pace();
    }
}

void sim_spend_locked(uint64_t ns)
{
    sim_unlock();
    sim_spend(ns);
    sim_lock();
}

SIM_EXPORT uint64_t sim_now_ns(void)
{
    return (uint64_t)sim_clock();
}

SIM_EXPORT uint64_t sim_clock_ticks(void)
{
    return (uint64_t)(sim_clock() + sim_cfg.offset_ns);
}

SIM_EXPORT uint64_t sim_tsc(void)
{
    return (uint64_t)sim_clock();
}

SIM_EXPORT void sim_host_ns(uint64_t ns)
{
    sim_spend(ns);
}

SIM_EXPORT void sim_sleep_ns(uint64_t ns)
{
    struct sim_thread *t = sim_thread();
    if (!sim_cfg.is_virtual)
        real_sleep((int64_t)ns);
    else if (t->in_callback)
        t->callback_ns += ns;
    else if (t->quiet)
        nap_until(t, sim_clock() + (int64_t)ns);
    else
        advance_to(sim_clock() + (int64_t)ns);
}

SIM_EXPORT uint64_t sim_cpu_ns(int tid)
{
    uint64_t ns = 0;
    if (!sim_cfg.is_virtual)
        return (uint64_t)real_now(tid > 0   ? (clockid_t)(~(unsigned)tid << 3 | 6)
                                  : tid < 0 ? CLOCK_PROCESS_CPUTIME_ID
                                            : CLOCK_THREAD_CPUTIME_ID);
    if (!tid)
        return sim_thread()->cpu_ns;
    pthread_mutex_lock(&threads_lock);
    for (struct sim_thread *t = threads; t; t = t->next)
        if (tid < 0 || tid == t->tid)
            ns += __atomic_load_n(&t->cpu_ns, __ATOMIC_RELAXED);
    ns += tid < 0 ? ended_ns : 0;
    pthread_mutex_unlock(&threads_lock);
    return ns;
}

SIM_EXPORT void sim_own(int delta)
{
    sim_thread()->own += delta;
}

/* ---- process and threads ------------------------------------------------------------------ */

static void before_fork(void)
{
    sim_lock();
}

static void after_fork_parent(void)
{
    sim_unlock();
}

/* As with the real driver, a child of a process that used CUDA cannot use it. */
static void after_fork_child(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_mutex_init(&threads_lock, NULL);
    pthread_mutex_init(&nap_lock, NULL);
    pthread_cond_init(&nap_cond, NULL);
    nappers = NULL;
    next_look = INT64_MAX;
    forked = sim_initialised;
    sim_initialised = false;
    sim_truth_forget();
}

static void at_exit(void)
{
    if (forked)
        return;
    sim_truth_write();
    sim_peers_leave_all();
}

static void thread_gone(void *p)
{
    struct sim_thread **at = &threads;
    napper_gone(p);
    pthread_mutex_lock(&threads_lock);
    while (*at != p)
        at = &(*at)->next;
    *at = (*at)->next;
    ended_ns += ((struct sim_thread *)p)->cpu_ns;
    pthread_mutex_unlock(&threads_lock);
    free(p);
}

static void init_once(void)
{
    sim_config_read();
    real_start = real_now(CLOCK_MONOTONIC);
    sim_device_init(sim_cfg.devices ? sim_cfg.devices : 1);
    pthread_key_create(&thread_key, thread_gone);
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
    atexit(at_exit);
}

__attribute__((constructor)) static void loaded(void)
{
    pthread_once(&once, init_once);
}

struct sim_thread *sim_thread(void)
{
    if (self)
        return self;
    pthread_once(&once, init_once);
    struct sim_thread *t = calloc(1, sizeof *t);
    if (!t)
        abort();
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    t->quiet =
        sim_cfg.quiet && *sim_cfg.quiet && !strncmp(name, sim_cfg.quiet, strlen(sim_cfg.quiet));
    /* quiet threads come when they like: they must not shift the others' random numbers */
    t->index = t->quiet ? 1000 : __atomic_fetch_add(&nthreads, 1, __ATOMIC_RELAXED);
    sim_rng_seed(&t->rng, 0x686f7374u + t->index);
    t->tid = (int)syscall(SYS_gettid);
    pthread_mutex_lock(&threads_lock);
    t->next = threads;
    threads = t;
    pthread_mutex_unlock(&threads_lock);
    pthread_setspecific(thread_key, t);
    return self = t;
}

bool sim_own_thread(void)
{
    struct sim_thread *t = sim_thread();
    return t->own > 0 || t->quiet;
}

/* The innermost call only: a recorder makes its calls from inside the program's. */
void sim_own_call(void)
{
    struct sim_thread *t = sim_thread();
    if (t->top)
        t->top->own = 1;
}

/* The program's call is the outermost one of its kind. */
void sim_captured_call(void)
{
    struct sim_frame *top = sim_thread()->top;
    for (struct sim_frame *f = top; f; f = f->outer)
        if (f->api->kind == top->api->kind)
            f->captured = 1;
}

int sim_ready(void)
{
    return sim_initialised ? 0 : 3; /* CUDA_ERROR_NOT_INITIALIZED */
}

void sim_start(void)
{
    if (!forked)
        sim_initialised = true;
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* SIM_FAIL="cuMemAlloc_v2:3,cudaMalloc:1+=2": the 3rd entry fails; all from the 1st on do */
static void find_failure(struct sim_api *api)
{
    size_t n = strlen(api->name);
    api->fail_at = 0;
    for (const char *p = sim_cfg.fail; p; p = strchr(p, ',')) {
        p += *p == ',';
        if (strncmp(p, api->name, n) || p[n] != ':')
            continue;
        char *end;
        api->fail_at = (int32_t)strtol(p + n + 1, &end, 10);
        api->fail_onwards = *end == '+';
        end += *end == '+';
        api->fail_status = *end == '=' ? (int32_t)strtol(end + 1, NULL, 10) : 2;
        return;
    }
}

static uint64_t host_cost(struct sim_thread *t, uint32_t ns)
{
    double cost = sim_jitter(&t->rng, ns, COST_SPREAD);
    if (sim_uniform(&t->rng) < COST_TAIL * sim_cfg.variance)
        cost += COST_TAIL_MAX * sim_uniform(&t->rng);
    return (uint64_t)(cost / sim_cfg.speed);
}

int sim_enter(struct sim_frame *f, struct sim_api *api, int per_thread)
{
    struct sim_thread *t = sim_thread();
    if (!__atomic_load_n(&api->listed, __ATOMIC_ACQUIRE)) {
        sim_lock();
        if (!api->listed) {
            find_failure(api);
            if (!api->pre_ns && !api->post_ns && api->level == SIM_RUNTIME) {
                api->pre_ns = RUNTIME_PRE_NS;
                api->post_ns = RUNTIME_POST_NS;
            } else if (!api->pre_ns && !api->post_ns) {
                api->pre_ns = costs[api->kind].pre;
                api->post_ns = costs[api->kind].post;
            }
            sim_truth_list(api);
            __atomic_store_n(&api->listed, 1, __ATOMIC_RELEASE);
        }
        sim_unlock();
    }
    *f = (struct sim_frame){.outer = t->top,
                            .api = api,
                            .per_thread = (uint8_t)per_thread,
                            .counted = sim_truth_active() && !sim_own_thread()};
    for (struct sim_frame *o = f->outer; o; o = o->outer)
        if (o->api->kind == api->kind)
            f->counted = 0;
    t->top = f;
    t->accounted = sim_clock();
    f->t0 = (uint64_t)t->accounted;
    sim_spend(host_cost(t, api->pre_ns));
    uint64_t n = __atomic_add_fetch(&api->entries, 1, __ATOMIC_RELAXED);
    if (f->counted)
        __atomic_add_fetch(&api->calls, 1, __ATOMIC_RELAXED);
    if (api->fail_at > 0 &&
        (n == (uint64_t)api->fail_at || (api->fail_onwards && n > (uint64_t)api->fail_at)))
        f->status = api->fail_status;
    return f->status;
}

void sim_leave(struct sim_frame *f, int status)
{
    struct sim_thread *t = sim_thread();
    sim_spend(host_cost(t, f->api->post_ns));
    if (f->counted) {
        if (f->own)
            __atomic_sub_fetch(&f->api->calls, 1, __ATOMIC_RELAXED);
        else if (status && status != 600) /* not ready is no failure */
            __atomic_add_fetch(&f->api->failed, 1, __ATOMIC_RELAXED);
        else if (f->captured)
            __atomic_add_fetch(&f->api->captured, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&f->api->wait_ns, (uint64_t)sim_clock() - f->t0, __ATOMIC_RELAXED);
    }
    t->top = f->outer;
}

/* ---- waiting ------------------------------------------------------------------------------ */

static void wait_for(struct sim_op *op, enum sim_state state)
{
    struct sim_thread *t = sim_thread();
    sim_op_ref(op);
    for (;;) {
        sim_device_run(sim_clock());
        if (op->state >= state)
            break;
        int64_t next = sim_device_next();
        if (sim_cfg.is_virtual && next != SIM_NEVER && !t->quiet) {
            int64_t before = sim_clock();
            sim_unlock();
            advance_to(next);
            sim_lock();
            t->cpu_ns += (uint64_t)(sim_clock() - before);
            continue;
        }
        /* real time, or something outside the device must happen first */
        sim_unlock();
        if (sim_cfg.is_virtual) {
            real_sleep(20000);
        } else {
            int64_t now = sim_clock();
            int64_t until = next < now + 200000 ? next : now + 200000;
            if (until - now > 60000)
                real_sleep(until - now - 60000);
            else
                spin_until(until < now + 1000 ? now + 1000 : until);
        }
        sim_lock();
    }
    sim_op_unref(op);
    t->accounted = sim_clock();
}

void sim_wait_until(int64_t t)
{
    sim_unlock();
    if (!sim_cfg.is_virtual)
        spin_until(t);
    else if (!sim_thread()->quiet)
        advance_to(t);
    sim_lock();
    sim_thread()->accounted = sim_clock();
    sim_device_run(sim_clock());
}

void sim_wait_started(struct sim_op *op)
{
    wait_for(op, ST_RUNNING);
}

void sim_wait_done(struct sim_op *op)
{
    struct sim_thread *t = sim_thread();
    bool waited = op->state != ST_DONE;
    wait_for(op, ST_DONE);
    if (!waited)
        return;
    double wake = sim_jitter(&t->rng, WAKE, WAKE_SPREAD);
    if (sim_uniform(&t->rng) < WAKE_LATE * sim_cfg.late)
        wake += WAKE_LATE_MAX * sim_uniform(&t->rng);
    sim_spend_locked((uint64_t)(wake / sim_cfg.speed));
}

static const struct sim_hooks hooks = {
    .enter = sim_enter,
    .leave = sim_leave,
    .allocator = sim_truth_allocator,
    .nccl = sim_truth_nccl,
    .collective = sim_collective,
    .join = sim_peers_join,
    .split = sim_peers_split,
    .depart = sim_peers_leave,
    .broken = sim_peers_broken,
    .meet = sim_meet,
};

SIM_EXPORT const struct sim_hooks *sim_hooks(void)
{
    return &hooks;
}
