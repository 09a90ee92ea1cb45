#include "peers.h"

#include "config.h"
#include "core.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_RANKS  1024u
#define SLOTS      256u /* more collectives than can run at once in one process */
#define PAIR_SLOTS 64u
#define JITTER_NS  1200 /* the ranks of a collective do not end at the same moment */
#define SOON_NS    100000
#define LATE_NS    50000000
#define LOST_NS    1000000000 /* so often is looked whether the others are still there */

/* Cleared memory is a communicator that nobody has joined, so that the file needs no maker. A slot
 * serves every SLOTS-th meeting: `posted` goes on counting, and starts only get later. */
struct slot {
    uint32_t posted; /* also a futex */
    uint32_t unused;
    int64_t latest;
};

struct member {
    int64_t clock; /* it starts nothing before; INT64_MAX: it is gone */
    int64_t came;  /* when it joined */
    int32_t pid;
    int32_t color, key;
    uint32_t started; /* collectives */
    double link;
};

struct shared {
    uint32_t joined, asked, answered, broken; /* the first three are futexes */
    struct slot all[SLOTS];
    struct member member[];
    /* then [from][to][PAIR_SLOTS] slots */
};

struct sim_peers {
    struct sim_peers *next;
    struct shared *shared;
    struct slot *pairs;
    char id[SIM_ID];
    unsigned ranks, rank, splits;
    uint64_t number, collectives;
    uint64_t *sent, *received; /* by peer */
    int64_t told;
};

static struct sim_peers *joined; /* all that this process is in */
static bool progress_runs;

/* ---- shared words ---------------------------------------------------------------------------- */

static void wake_all(uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void sleep_on(uint32_t *word, uint32_t seen, int64_t ns)
{
    struct timespec ts = {ns / 1000000000, ns % 1000000000};
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &ts, NULL, 0);
}

static int64_t real_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Not locked. Adds 1 and waits for the sum. */
static int gather(uint32_t *word, uint32_t wanted)
{
    int64_t limit = real_ns() + sim_cfg.patience_ns;
    uint32_t have = __atomic_add_fetch(word, 1, __ATOMIC_SEQ_CST);
    wake_all(word);
    while ((int32_t)(have - wanted) < 0) {
        if (real_ns() > limit)
            return -ETIMEDOUT;
        sleep_on(word, have, LATE_NS);
        have = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    }
    return 0;
}

static int64_t clock_of(const struct member *m)
{
    return __atomic_load_n(&m->clock, __ATOMIC_SEQ_CST);
}

static void set_clock(struct member *m, int64_t t)
{
    __atomic_store_n(&m->clock, t, __ATOMIC_SEQ_CST);
}

/* ---- joining -----------------------------------------------------------------------------------
 */

static void path_of(const char *id, char *path, size_t size)
{
    snprintf(path, size, "/dev/shm/gpuwait-sim.%.*s", SIM_ID, id);
}

static struct shared *map(const char *path, unsigned ranks)
{
    size_t size = sizeof(struct shared) + ranks * sizeof(struct member) +
                  (size_t)ranks * ranks * PAIR_SLOTS * sizeof(struct slot);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    void *p = ftruncate(fd, (off_t)size)
                  ? MAP_FAILED
                  : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    close(fd);
    return p == MAP_FAILED ? NULL : p;
}

/* Where each process has one rank. post: false if all are in this one. */
static bool apart(const struct sim_peers *p, int *status)
{
    unsigned here = 0;
    for (unsigned i = 0; i < p->ranks; i++)
        here += p->shared->member[i].pid == getpid();
    *status = here > 1 && here < p->ranks ? -ENOTSUP : 0;
    return here == 1;
}

static int64_t last_to_come(const struct sim_peers *p)
{
    int64_t last = 0;
    for (unsigned i = 0; i < p->ranks; i++)
        if (p->shared->member[i].came > last)
            last = p->shared->member[i].came;
    return last;
}

/* In real time a device must get on while its program is elsewhere: others wait for it. */
static void *progress(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "sim-progress");
    for (;;) {
        struct timespec ts = {0, SOON_NS};
        nanosleep(&ts, NULL);
        sim_lock();
        sim_device_run(sim_clock());
        sim_unlock();
    }
    return NULL;
}

static void start_progress(void)
{
    pthread_t thread;
    if (sim_cfg.is_virtual || progress_runs)
        return;
    progress_runs = !pthread_create(&thread, NULL, progress, NULL);
    if (progress_runs)
        pthread_detach(thread);
}

int sim_peers_join(const char *id, unsigned ranks, unsigned rank, struct sim_peers **out)
{
    char path[64 + SIM_ID];
    int status;
    *out = NULL;
    if (!ranks || ranks > MAX_RANKS || rank >= ranks)
        return -EINVAL;
    path_of(id, path, sizeof path);
    struct sim_peers *p = calloc(1, sizeof *p);
    if (!p || !(p->shared = map(path, ranks)))
        abort();
    snprintf(p->id, sizeof p->id, "%.*s", SIM_ID - 1, id);
    p->number = sim_hash_text(p->id) >> 16;
    p->pairs = (struct slot *)&p->shared->member[ranks];
    p->ranks = ranks;
    p->rank = rank;
    struct member *me = &p->shared->member[rank];
    me->pid = getpid();
    me->link = sim_cfg.link;
    sim_lock();
    sim_device_run(sim_clock()); /* what others may wait for */
    me->came = sim_clock();
    set_clock(me, me->came);
    sim_unlock();
    status = gather(&p->shared->joined, ranks);
    unlink(path);
    if (!status && apart(p, &status)) {
        p->sent = calloc(2 * ranks, sizeof *p->sent);
        if (!p->sent)
            abort();
        p->received = p->sent + ranks;
        sim_lock();
        p->next = joined;
        joined = p;
        sim_wait_until(last_to_come(p));
        sim_unlock();
        start_progress();
        *out = p;
        return 0;
    }
    free(p); /* what is mapped stays: it costs nothing */
    return status;
}

static int by_key(const void *a, const void *b)
{
    const struct member *x = *(struct member *const *)a, *y = *(struct member *const *)b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x < y ? -1 : x > y;
}

int sim_peers_split(struct sim_peers *p, int color, int key, char id[SIM_ID], unsigned *ranks,
                    unsigned *rank)
{
    struct member *me = &p->shared->member[p->rank], *same[MAX_RANKS];
    uint32_t wanted = ++p->splits * p->ranks;
    me->color = color;
    me->key = key;
    int status = gather(&p->shared->asked, wanted);
    *ranks = *rank = 0;
    for (unsigned i = 0; i < p->ranks; i++)
        if (p->shared->member[i].color == color)
            same[(*ranks)++] = &p->shared->member[i];
    qsort(same, *ranks, sizeof *same, by_key);
    while (same[*rank] != me)
        ++*rank;
    snprintf(id, SIM_ID, "%.64s.%u.%d", p->id, p->splits, color);
    /* nobody asks again before all have read */
    return status ? status : gather(&p->shared->answered, wanted);
}

static void gone(struct sim_peers *p)
{
    set_clock(&p->shared->member[p->rank], INT64_MAX);
}

void sim_peers_leave(struct sim_peers *peers)
{
    sim_lock();
    struct sim_peers **p = &joined;
    while (*p && *p != peers)
        p = &(*p)->next;
    if (*p)
        *p = peers->next;
    gone(peers);
    sim_unlock(); /* kernels may still point to it */
}

void sim_peers_leave_all(void)
{
    for (struct sim_peers *p = joined; p; p = p->next)
        gone(p);
}

bool sim_peers_broken(const struct sim_peers *p)
{
    return __atomic_load_n(&p->shared->broken, __ATOMIC_SEQ_CST);
}

uint64_t sim_peers_number(const struct sim_peers *p)
{
    return p->number;
}

/* ---- meetings ----------------------------------------------------------------------------------
 */

void sim_meetings_free(struct sim_meeting **list)
{
    while (*list) {
        struct sim_meeting *m = *list;
        *list = m->next;
        free(m);
    }
}

/* A collective goes as slowly as the slowest link of all. */
static double link_of(const struct sim_meeting *m)
{
    const struct sim_peers *p = m->peers;
    double link = sim_cfg.link;
    for (unsigned i = 0; i < p->ranks; i++)
        if ((m->peer < 0 || i == (unsigned)m->peer) && p->shared->member[i].link < link)
            link = p->shared->member[i].link;
    return link;
}

void sim_meeting_number(struct sim_meeting *m)
{
    struct sim_peers *p = m->peers;
    struct slot *slots = p->shared->all;
    unsigned size = SLOTS, parties = p->ranks;
    if (m->peer < 0) {
        m->index = p->collectives++;
    } else {
        unsigned peer = (unsigned)m->peer;
        unsigned from = m->sends ? p->rank : peer, to = m->sends ? peer : p->rank;
        slots = p->pairs + ((size_t)from * p->ranks + to) * PAIR_SLOTS;
        size = PAIR_SLOTS;
        parties = 2;
        m->index = m->sends ? p->sent[peer]++ : p->received[peer]++;
    }
    m->slot = &slots[m->index % size];
    m->needed = (uint32_t)(m->index / size + 1) * parties;
    m->ns = (int64_t)((double)m->ns / link_of(m));
}

void sim_meeting_start(struct sim_meeting *m, int64_t t)
{
    struct slot *s = m->slot;
    struct member *me = &m->peers->shared->member[m->peers->rank];
    set_clock(me, t);
    int64_t latest = __atomic_load_n(&s->latest, __ATOMIC_SEQ_CST);
    while (t > latest && !__atomic_compare_exchange_n(&s->latest, &latest, t, false,
                                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
    if (m->peer < 0)
        __atomic_add_fetch(&me->started, 1, __ATOMIC_SEQ_CST);
    if (__atomic_add_fetch(&s->posted, 1, __ATOMIC_SEQ_CST) == m->needed)
        wake_all(&s->posted);
}

static bool may_be_missing(const struct sim_meeting *m, unsigned rank)
{
    const struct member *other = &m->peers->shared->member[rank];
    if (rank == m->peers->rank)
        return false;
    if (m->peer >= 0)
        return rank == (unsigned)m->peer;
    return (int32_t)(__atomic_load_n(&other->started, __ATOMIC_SEQ_CST) - (uint32_t)m->index) <= 0;
}

/* The earliest clock of those that are missing. */
static int64_t earliest(const struct sim_meeting *m)
{
    const struct sim_peers *p = m->peers;
    int64_t t = INT64_MAX;
    for (unsigned i = 0; i < p->ranks; i++)
        if (may_be_missing(m, i) && clock_of(&p->shared->member[i]) < t)
            t = clock_of(&p->shared->member[i]);
    return t;
}

bool sim_meeting_end(struct sim_meeting *m, int64_t start, int64_t *t)
{
    struct slot *s = m->slot;
    int64_t other = earliest(m); /* before the look at whether all have come */
    bool met = (int32_t)(__atomic_load_n(&s->posted, __ATOMIC_SEQ_CST) - m->needed) >= 0;
    int64_t latest = __atomic_load_n(&s->latest, __ATOMIC_SEQ_CST);
    if (!met && sim_peers_broken(m->peers))
        met = true;
    if (met) {
        m->latest = latest > start ? latest : start;
        *t = m->latest + m->ns + (int64_t)(sim_hash(m->index, m->peers->rank) % JITTER_NS);
        return true;
    }
    if (other > latest && other != INT64_MAX)
        latest = other;
    *t = (latest > start ? latest : start) + m->ns;
    return false;
}

void sim_peers_clock(int64_t t)
{
    for (struct sim_peers *p = joined; p; p = p->next) {
        if (t <= p->told)
            continue;
        p->told = t;
        set_clock(&p->shared->member[p->rank], t);
    }
}

/* Not locked. post: true if one that is waited for will never come. */
static bool lost(const struct sim_meeting *m)
{
    const struct sim_peers *p = m->peers;
    for (unsigned i = 0; i < p->ranks; i++) {
        const struct member *other = &p->shared->member[i];
        if (!may_be_missing(m, i))
            continue;
        if (clock_of(other) == INT64_MAX || (kill(other->pid, 0) && errno == ESRCH)) {
            fprintf(stderr, "sim: rank %u waits for rank %u, which is gone\n", p->rank, i);
            return true;
        }
    }
    return false;
}

static void give_up(const struct sim_meeting *m)
{
    struct slot *s = m->slot;
    if ((int32_t)(__atomic_load_n(&s->posted, __ATOMIC_SEQ_CST) - m->needed) >= 0)
        return; /* it came, then left */
    __atomic_store_n(&m->peers->shared->broken, 1, __ATOMIC_SEQ_CST);
}

void sim_peers_wait(const struct sim_meeting *m, int64_t until)
{
    static __thread const struct sim_meeting *last;
    static __thread int64_t since, pause, seen, looked;
    struct slot *s = m->slot;
    sim_peers_clock(until);
    int64_t others = earliest(m);
    if (m != last || others != seen) {
        last = m;
        seen = others;
        since = looked = real_ns();
        pause = SOON_NS;
    }
    uint32_t posted = __atomic_load_n(&s->posted, __ATOMIC_SEQ_CST);
    if ((int32_t)(posted - m->needed) >= 0)
        return;
    sim_unlock();
    sleep_on(&s->posted, posted, pause);
    if (pause < LATE_NS)
        pause *= 2;
    if (real_ns() - looked > LOST_NS) {
        looked = real_ns();
        if (lost(m) || looked - since > sim_cfg.patience_ns)
            give_up(m);
    }
    sim_lock();
}
