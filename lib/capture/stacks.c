/* When a Python stack is taken, of whom, and how it gets into the dump.
 *
 * At random instants, 20 a second, this file's thread looks at what the threads that use CUDA
 * are in the middle of. Instants of a Poisson process see each state as often as time is spent
 * in it, so what is sampled needs no choosing among sections, and nothing has to be polled:
 *
 *   outside CUDA for longer than 5 ms   -> GWT_STACK_OUTSIDE   (the thread that last used CUDA)
 *   inside a call for longer than 2 ms  -> GWT_STACK_INSIDE
 *   inside a shorter blocking call      -> GWT_STACK_RANDOM, one in 4
 *
 * Of what has lasted for more than a second, 1 in its age in seconds is taken. What remains is
 * thinned, at random, to 9 a second and to 0.3 % of the time with the interpreter held. So in
 * the middle term the stacks of a line are to the stacks of another as their times are, where
 * a RANDOM one counts 4 times and one of age a > 1 s counts a times. */
#include "gw.h"
#include "python.h"

#include <stdlib.h>
#include <unistd.h>

#define INSTANTS      20.0
#define INSTANTS_IDLE 2.0 /* nothing has been going on for IDLE_NS */
#define IDLE_NS       10e9
#define OUTSIDE_NS    5e6
#define INSIDE_NS     2e6
#define OLD_NS        1e9
#define RANDOM_PART   0.25
#define PER_SECOND    9.0   /* the thinning's aim */
#define MOST          10.0  /* a second, in the long run; as many may come at once */
#define HELD_PART     0.003 /* of the time */
#define HELD_AHEAD_NS 5e6
#define ENDED_NS      1e6 /* a call that returned so shortly ago is where its thread still is */
#define DOORSTEP_NS   2e5
#define KEPT_NS       1e6

/* ---- random instants --------------------------------------------- */

static uint64_t random_state;

/* post: in (0, 1) */
static double uniform(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return ((double)(random_state * 0x2545f4914f6cdd1du >> 12) + 0.5) / (double)(1ull << 52);
}

/* -ln(u) to 1e-4, without libm: halvings, then a series. */
static double minus_ln(double u)
{
    double halvings = 0;
    while (u < 0.70710678) {
        u *= 2;
        halvings++;
    }
    double x = (u - 1) / (u + 1), x2 = x * x;
    return halvings * 0.69314718 - 2 * x * (1 + x2 * (1 / 3.0 + x2 / 5));
}

static void nap(double ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / 1e9)};
    t.tv_nsec = (long)(ns - (double)t.tv_sec * 1e9);
    nanosleep(&t, NULL);
}

/* ---- what a thread is in the middle of --------------------------- */

struct moment {
    unsigned slot;
    uint32_t thread;
    bool inside;
    uint16_t api;   /* inside: of the call */
    uint64_t since; /* ticks: entry of the call, or return of the last one; 0: uses no CUDA */
};

static struct moment look(unsigned slot)
{
    const struct gwt_slot *s = gw_ring_slot(slot);
    struct moment m = {.slot = slot};
    if (gw_load_acquire(&s->state) != GWT_SLOT_USED) /* partner: gw_ring_thread() */
        return m;
    uint64_t open = gw_load_relaxed(&s->open_t0);
    m.thread = s->thread;
    m.api = s->open_api;
    m.since = gw_load_relaxed(&s->returned);
    /* A poll is no place to wait in: the section around it goes on. */
    m.inside = open > m.since && m.api < GW_API_COUNT && gw_calls[m.api].kind != GWT_POLL;
    if (m.inside)
        m.since = open;
    return m;
}

/* Still there, or just out of that call and in no other. */
static bool still(const struct moment *was, double ns_per_tick)
{
    struct moment is = look(was->slot);
    if (is.thread != was->thread)
        return false;
    if (is.inside == was->inside && is.since == was->since)
        return true;
    uint64_t open = gw_load_relaxed(&gw_ring_slot(was->slot)->open_t0);
    return was->inside && !is.inside && open == was->since &&
           (double)(gw_ticks() - is.since) * ns_per_tick < ENDED_NS;
}

/* ---- whom to sample ---------------------------------------------- */

struct choice {
    uint64_t at;     /* ticks */
    struct moment m; /* of the latest thread where nobody is to be sampled */
    unsigned why;    /* 0: nobody */
    double part;     /* of such moments that is to be taken */
    double age_ns;   /* of the youngest moment of all */
};

static bool blocks(uint16_t api)
{
    unsigned kind = gw_calls[api].kind;
    return kind == GWT_SYNC || kind == GWT_COPY || kind == GWT_ALLOC || kind == GWT_FREE ||
           kind == GWT_HOST_ALLOC || kind == GWT_HOST_FREE;
}

/* One of the threads that are held up inside CUDA and, outside, the one that used it last:
 * the others have handed over (forward to backward), or serve it. */
static struct choice choose(uint64_t now, double ns_per_tick)
{
    struct choice c = {.at = now, .age_ns = 1e18};
    struct moment latest = {0};
    unsigned eligible = 0;
    for (unsigned i = 0; i < gw_ring_slots_used(); i++) {
        struct moment m = look(i);
        if (!m.since)
            continue;
        double age = now > m.since ? (double)(now - m.since) * ns_per_tick : 0;
        if (m.since > latest.since) {
            latest = m;
            c.age_ns = age;
        }
        if (m.inside && age > INSIDE_NS && uniform() * ++eligible < 1) {
            c.m = m;
            c.why = GWT_STACK_INSIDE;
            c.part = age > OLD_NS ? OLD_NS / age : 1;
        }
    }
    if (!eligible)
        c.m = latest;
    if (!latest.since)
        return c;
    if (!latest.inside && c.age_ns > OUTSIDE_NS && uniform() * ++eligible < 1) {
        c.m = latest;
        c.why = GWT_STACK_OUTSIDE;
        c.part = c.age_ns > OLD_NS ? OLD_NS / c.age_ns : 1;
    } else if (!eligible && latest.inside && blocks(latest.api)) {
        c.why = GWT_STACK_RANDOM;
        c.part = RANDOM_PART;
    }
    return c;
}

/* ---- budget ------------------------------------------------------ */

static struct {
    double wanted;  /* stacks a second that the instants alone would give, of late */
    double tokens;  /* stacks that may still be taken */
    double held_ns; /* time that the interpreter may still be held */
} budget;

static bool affordable(double part, double instants, double elapsed_s)
{
    double weight = elapsed_s < 2 ? elapsed_s / 2 : 1;
    budget.wanted += (part * instants - budget.wanted) * weight;
    budget.tokens += elapsed_s * MOST;
    budget.held_ns += elapsed_s * 1e9 * HELD_PART;
    if (budget.tokens > MOST)
        budget.tokens = MOST;
    if (budget.held_ns > HELD_AHEAD_NS)
        budget.held_ns = HELD_AHEAD_NS;
    double thinned = budget.wanted > PER_SECOND ? part * PER_SECOND / budget.wanted : part;
    /* Seldom looks see what is old and still deserves as many stacks a second. */
    thinned *= INSTANTS / instants;
    return part > 0 && uniform() < thinned && budget.tokens >= 1 && budget.held_ns > 0;
}

/* ---- into the dump ----------------------------------------------- */

#define TEXTS  4096u
#define STACKS 8192u
struct known {
    uint64_t hash; /* 0: empty */
    uint32_t id;
};
static struct known texts[TEXTS], stacks[STACKS];
static uint32_t texts_used, stacks_used;
static struct gw_py_stack taken;

static uint64_t hash_of(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    uint64_t h = 0xcbf29ce484222325u ^ size;
    for (size_t i = 0; i < size; i++)
        h = (h ^ bytes[i]) * 0x100000001b3u;
    h ^= h >> 32;
    return h ? h : 1;
}

/* post: the entry of that hash, or the empty one for it; NULL: full. */
static struct known *known_of(struct known *table, uint32_t room, uint32_t used, uint64_t hash)
{
    for (uint32_t i = (uint32_t)hash;; i++) {
        struct known *k = &table[i & (room - 1)];
        if (k->hash == hash)
            return k;
        if (!k->hash)
            return used < room / 4 * 3 ? k : NULL;
    }
}

static uint32_t text_id(const char *text, size_t size)
{
    uint64_t hash = hash_of(text, size);
    struct known *k = size ? known_of(texts, TEXTS, texts_used, hash) : NULL;
    if (!k || k->hash)
        return k ? k->id : 0;
    gw_lock();
    uint32_t id = gw_string(text, size);
    gw_unlock();
    if (id) {
        *k = (struct known){hash, id};
        texts_used++;
    }
    return id;
}

/* post: 0: no room is left for it. */
static uint32_t stack_id(const struct gw_py_stack *s)
{
    static uint32_t last;
    struct gwt_stack_frame frames[GWT_STACK_FRAMES_MAX];
    struct gwt_def_stack fixed = {.frames = s->count};
    size_t size = s->count * sizeof frames[0];
    for (uint32_t i = 0; i < s->count; i++) {
        const struct gw_py_frame *f = &s->frames[i];
        frames[i] = (struct gwt_stack_frame){.file = text_id(f->file, f->file_size),
                                             .function = text_id(f->function, f->function_size),
                                             .line = f->line};
    }
    uint64_t hash = hash_of(frames, size);
    struct known *k = known_of(stacks, STACKS, stacks_used, hash);
    if (!k || k->hash)
        return k ? k->id : 0;
    if (!stacks_used)
        last = 0;
    gw_lock();
    bool defined = gw_define(GWT_DEF_STACK, last + 1, &fixed, sizeof fixed, frames, size);
    gw_unlock();
    if (!defined)
        return 0;
    *k = (struct known){hash, ++last};
    stacks_used++;
    return last;
}

static void push(const struct choice *c, uint64_t held)
{
    struct gw_thread *t = gw_thread_get();
    uint32_t id = taken.count ? stack_id(&taken) : 0;
    struct gwt_record r = {
        .t0 = c->at,
        .dur = held > UINT32_MAX ? UINT32_MAX : (uint32_t)held,
        .api = (uint16_t)(GWT_API_PSEUDO + GWT_STACK),
        .flags = (uint16_t)(c->why << GWT_F_SUB_SHIFT | (taken.of_main ? GWT_STACK_OF_MAIN : 0)),
        .arg = id,
        .value = c->m.thread};
    gw_count(GWT_C_STACKS, 1);
    if (!id)
        gw_count(GWT_C_STACKS_FAILED, 1);
    else if (t)
        gw_push(t, &r);
}

/* The stack that is being taken. */
static struct {
    struct choice c;
    double ns_per_tick;
    uint64_t asked, t0, t1;
    pthread_t by;
    bool good;
} shot;

static void take(void)
{
    shot.t0 = gw_ticks();
    shot.by = pthread_self();
    shot.good = still(&shot.c.m, shot.ns_per_tick);
    if (shot.good)
        gw_python_walk(gw_ring_pthread(shot.c.m.slot), &taken);
    shot.t1 = gw_ticks();
}

static void sample(const struct choice *c, double ns_per_tick)
{
    shot.c = *c;
    shot.ns_per_tick = ns_per_tick;
    shot.asked = gw_ticks();
    if (!gw_python_do(take))
        return;
    double held = (double)(shot.t1 - shot.t0) * ns_per_tick;
    budget.tokens--;
    budget.held_ns -= held;
    gw_count(GWT_C_STACKS_HELD_NS, (uint64_t)held);
    /* A thread that burned Python gives up the GIL at the doorstep of its next call, too: its
     * time went elsewhere. But one that kept it so long was in C code, and gives it up where that
     * returns to: a tokenizer, right before the copy of what it made. */
    bool kept = (double)(shot.t0 - shot.asked) * ns_per_tick > KEPT_NS;
    if (shot.good && !kept && c->why == GWT_STACK_OUTSIDE &&
        pthread_equal(shot.by, pthread_self())) {
        nap(DOORSTEP_NS);
        shot.good = still(&c->m, ns_per_tick);
    }
    if (shot.good)
        push(c, shot.t1 - shot.t0);
}

/* So many a second, of whatever a thread is in the middle of: for tests. 0: not so */
static double test_rate;

/* ---- the thread -------------------------------------------------- */

static void say_fact(const char *text)
{
    gw_lock();
    gw_define(GWT_DEF_FACT, 0, "stacks", sizeof "stacks", text, strlen(text));
    gw_unlock();
}

static void *run(void *arg)
{
    double instants = test_rate > 0 ? test_rate : INSTANTS;
    struct gwt_triple last = gw_header->start, now;
    bool failed;
    (void)arg;
    pthread_setname_np(pthread_self(), "gpuwait-stacks");
    for (;;) {
        nap(minus_ln(uniform()) / instants * 1e9);
        if (gw_load_acquire(&gw_state) != GW_ACTIVE)
            return NULL;
        if (gw_python_over(&failed)) {
            if (failed)
                say_fact("this Python is not as expected");
            return NULL;
        }
        gw_clock_triple(&now);
        uint64_t ns = now.monotonic_ns - gw_header->start.monotonic_ns;
        uint64_t ticks = now.ticks - gw_header->start.ticks;
        double ns_per_tick = ticks ? (double)ns / (double)ticks : 1;
        double elapsed_s = (double)(now.monotonic_ns - last.monotonic_ns) * 1e-9;
        struct choice c = choose(now.ticks, ns_per_tick);
        last = now;
        bool due = test_rate > 0 ? c.m.since != 0 : affordable(c.part, instants, elapsed_s);
        if (due && gw_load_relaxed(&gw_recording))
            sample(&c, ns_per_tick);
        instants = test_rate > 0 ? test_rate : c.age_ns > IDLE_NS ? INSTANTS_IDLE : INSTANTS;
    }
}

void gw_stacks_start(void)
{
    const char *why;
    if (!gw_options.stacks)
        return;
    bool found = gw_python_find(&why);
    if (why)
        say_fact(why);
    if (!found || !gw_python_introduce())
        return;
    say_fact("on");
    const char *test = getenv("GPUWAIT_TEST_STACKS");
    test_rate = test ? atof(test) : 0;
    random_state = (gw_ticks() ^ (uint64_t)getpid() << 32) | 1;
    budget.wanted = 0;
    budget.tokens = MOST;
    budget.held_ns = HELD_AHEAD_NS;
    gw_own_thread(run, 1024 * 1024);
}

void gw_stacks_reset(void)
{
    memset(texts, 0, sizeof texts);
    memset(stacks, 0, sizeof stacks);
    texts_used = stacks_used = 0;
}
