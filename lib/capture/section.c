/* Host sections: a thread's time between the return of one recorded call and the entry of its
 * next, with what its CPU clock says of it.
 *
 * The clocks are read when a section of 1 ms or more ends. What they said at its start comes
 * from the thread's own last reading, made when a blocking call returned or the section before
 * ended, if that was at most 0.2 ms before; else from the watch (watch.c), which looks every 5 ms
 * for threads that have been outside for as long. Nothing here runs for a call after less. */
#include "call.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define WATCH_MS  5u
#define LOOKS     16u  /* at most, in one round of the watch: 0.1 ms of 5 */
#define COST_PART 256u /* own readings may take this part of a thread's time */

uint64_t gw_recording_switched;

/* By slot, in memory of the process's own that never goes: a thread may end at any time. */
static struct watch {
    uint64_t own; /* ticks of the thread's own last reading */
    uint8_t pad[56];
    /* The watch's, told under a sequence lock: odd while it changes. */
    uint32_t seq;
    uint64_t returned; /* which section: the one that began here */
    struct gw_clocks start;
    uint8_t pad2[16];
} watches[GWT_THREAD_SLOTS];
_Static_assert(sizeof(struct watch) == 128, "the watch and the thread write to lines of their own");

/* post: ticks of a millisecond; 0: it is too early to tell. */
static uint64_t millisecond(void)
{
    static uint64_t known;
    uint64_t ms = gw_load_relaxed(&known);
    if (gw_clock == GWT_CLOCK_MONOTONIC)
        return 1000000;
    if (gw_likely(ms))
        return ms;
    struct gwt_triple now;
    gw_clock_triple(&now);
    uint64_t ticks = now.ticks - gw_header->start.ticks;
    uint64_t ns = now.monotonic_ns - gw_header->start.monotonic_ns;
    if (ns < 1000000)
        return 0;
    ms = (uint64_t)((double)ticks * 1e6 / (double)ns);
    if (ns >= 100000000) /* to a millionth */
        gw_store_relaxed(&known, ms);
    return ms;
}

static uint64_t near(uint64_t ms)
{
    return ms / 5;
}

/* Of the calling thread, or of all: tid as gw_cpu_test() has it. */
static uint64_t cpu_ns(clockid_t clock, int tid)
{
    return gw_unlikely(gw_cpu_test) ? gw_cpu_test(tid) : gw_clock_ns(clock);
}

static void read_clocks(struct gw_thread *t, uint64_t ticks)
{
    uint64_t before = gw_ticks();
    struct rusage use;
    struct gw_clocks *c = &t->clocks;
    getrusage(RUSAGE_THREAD, &use);
    c->ticks = ticks;
    c->cpu_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID, 0);
    c->process_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID, -1);
    c->voluntary = (uint32_t)use.ru_nvcsw;
    c->involuntary = (uint32_t)use.ru_nivcsw;
    gw_store_relaxed(&watches[gw_ring_index(t->slot)].own, ticks);
    /* The process clock's cost grows with its threads: 0.3 us alone, 2 us among 200. */
    t->clocks_cost += (gw_ticks() - before) / 8 - t->clocks_cost / 8;
}

void gw_section_begins(struct gw_thread *t, uint64_t t1)
{
    int saved = errno;
    uint64_t ms = millisecond(), pause = t->clocks_cost * COST_PART;
    if (pause < near(ms))
        pause = near(ms);
    if (pause > ms) /* a reading was preempted */
        pause = ms;
    if (t1 - t->clocks.ticks >= pause)
        read_clocks(t, t1);
    errno = saved;
}

/* ---- the end of a section ---------------------------------------------------------------- */

/* post: what the watch saw of the section that began at `returned`. */
static bool watched(const struct gw_thread *t, uint64_t returned, struct gw_clocks *out)
{
    const struct watch *w = &watches[gw_ring_index(t->slot)];
    uint32_t seq = gw_load_acquire(&w->seq); /* partner: the release store in tell() */
    uint64_t whose = gw_load_relaxed(&w->returned);
    out->ticks = gw_load_relaxed(&w->start.ticks);
    out->cpu_ns = gw_load_relaxed(&w->start.cpu_ns);
    out->process_ns = gw_load_relaxed(&w->start.process_ns);
    out->voluntary = gw_load_relaxed(&w->start.voluntary);
    out->involuntary = gw_load_relaxed(&w->start.involuntary);
    gw_fence_acquire(); /* partner: the release fence in tell() */
    return !(seq & 1) && gw_load_relaxed(&w->seq) == seq && whose == returned && out->ticks;
}

static bool start_of(const struct gw_thread *t, uint64_t from, uint64_t ms, struct gw_clocks *out)
{
    *out = t->clocks;
    if (!out->ticks || out->ticks > from || from - out->ticks > near(ms))
        return watched(t, from, out);
    out->ticks = from;
    return true;
}

static uint16_t switches(uint32_t from, uint32_t to)
{
    return to - from < UINT16_MAX ? (uint16_t)(to - from) : UINT16_MAX;
}

static uint32_t microseconds(uint64_t from_ns, uint64_t to_ns)
{
    uint64_t us = to_ns > from_ns ? (to_ns - from_ns) / 1000 : 0;
    return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

static void measure(struct gwt_record_section *s, const struct gw_clocks *start,
                    const struct gw_clocks *end, uint64_t ms)
{
    if (start->ticks >= end->ticks || (end->ticks - start->ticks) / ms > UINT32_MAX / 1000)
        return; /* an hour and more is not measured */
    s->measured_us = (uint32_t)((end->ticks - start->ticks) * 1000 / ms);
    s->cpu_us = microseconds(start->cpu_ns, end->cpu_ns);
    if (s->cpu_us > s->measured_us)
        s->cpu_us = s->measured_us;
    s->process_cpu_us = microseconds(start->process_ns, end->process_ns);
    if (s->process_cpu_us < s->cpu_us) /* the two are not read in one moment */
        s->process_cpu_us = s->cpu_us;
    s->voluntary = switches(start->voluntary, end->voluntary);
    s->involuntary = switches(start->involuntary, end->involuntary);
}

static bool counts(uint64_t from, uint64_t to, uint64_t ms)
{
    return from && to > from && ms && to - from >= ms && gw_load_relaxed(&gw_recording) &&
           from > gw_load_relaxed(&gw_recording_switched);
}

static void push(struct gw_thread *t, uint64_t from, uint64_t to, struct gwt_record_section *s)
{
    struct gwt_record r;
    s->t0 = from;
    s->api = (uint16_t)(GWT_API_PSEUDO + GWT_SECTION);
    memcpy(&r, s, sizeof r);
    gw_set_duration(&r, to - from);
    gw_busy_begin();
    gw_push_spare(t, &r);
    gw_busy_end(t);
}

void gw_section_ends(struct gw_thread *t, struct gw_frame *f)
{
    uint64_t from = gw_load_relaxed(&t->slot->returned);
    /* Calls that leave no record, or seldom, delimit nothing. A thread without an id has no slot of
     * the ring file: it is the one that measures what a call costs (cost.c). */
    if (!from || !t->id || f->kind == GWT_POLL || f->kind == GWT_CONTEXT)
        return;
    int saved = errno;
    uint64_t ms = millisecond();
    if (counts(from, f->t0, ms)) {
        struct gwt_record_section s = {0};
        struct gw_clocks start;
        bool known = start_of(t, from, ms, &start);
        read_clocks(t, f->t0);
        if (known)
            measure(&s, &start, &t->clocks, ms);
        push(t, from, f->t0, &s);
        f->t0 = gw_top_t0 = gw_ticks(); /* what this took is not the call's */
    }
    errno = saved;
}

void gw_section_ended(struct gw_thread *t, uint64_t t0)
{
    uint64_t from = gw_load_relaxed(&t->slot->returned);
    struct gwt_record_section s = {0};
    if (counts(from, t0, millisecond()))
        push(t, from, t0, &s);
}

/* ---- the watch: its thread only --------------------------------------------------------- */

/* Context switches of another thread are told in text alone: 5 us, once a section. */
static bool read_switches(uint32_t tid, struct gw_clocks *c)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/self/task/%u/status", tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = 0;
    const char *v = strstr(text, "\nvoluntary_ctxt_switches:");
    const char *i = strstr(text, "\nnonvoluntary_ctxt_switches:");
    if (!v || !i)
        return false;
    c->voluntary = (uint32_t)strtoul(strchr(v, ':') + 1, NULL, 10);
    c->involuntary = (uint32_t)strtoul(strchr(i, ':') + 1, NULL, 10);
    return true;
}

/* post: c->ticks is 0 if the thread is gone or is not to be read. */
static void read_clocks_of(uint32_t tid, struct gw_clocks *c)
{
    /* What pthread_getcpuclockid() answers, but by kernel id: of a thread that has ended, the
     * clock fails to be read, where its pthread_t must not be touched. */
    clockid_t clock = (clockid_t)(~tid << 3 | 6);
    struct timespec ts;
    c->ticks = 0;
    if (!read_switches(tid, c) || clock_gettime(clock, &ts) != 0)
        return;
    c->cpu_ns = gw_unlikely(gw_cpu_test) ? gw_cpu_test((int)tid)
                                         : (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
    c->ticks = gw_ticks();
    c->process_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID, -1);
}

static void tell(struct watch *w, uint64_t returned, const struct gw_clocks *c)
{
    gw_store_relaxed(&w->seq, w->seq + 1);
    gw_fence_release(); /* partner: the acquire fence in watched() */
    gw_store_relaxed(&w->returned, returned);
    gw_store_relaxed(&w->start.ticks, c->ticks);
    gw_store_relaxed(&w->start.cpu_ns, c->cpu_ns);
    gw_store_relaxed(&w->start.process_ns, c->process_ns);
    gw_store_relaxed(&w->start.voluntary, c->voluntary);
    gw_store_relaxed(&w->start.involuntary, c->involuntary);
    gw_store_release(&w->seq, w->seq + 1); /* partner: the acquire load in watched() */
}

/* Names the section by where it began, so that it does not matter when it ends meanwhile, or when
 * the slot gets another thread. post: true if the thread's clocks had to be read. */
static bool watch(unsigned index, uint64_t now, uint64_t ms)
{
    const struct gwt_slot *s = gw_ring_slot(index);
    struct watch *w = &watches[index];
    struct gw_clocks c;
    uint64_t returned = gw_load_relaxed(&s->returned);
    if (!returned || returned == w->returned || gw_slot_inside(s) ||
        (int64_t)(now - returned) < (int64_t)(WATCH_MS * ms))
        return false;
    uint64_t own = gw_load_relaxed(&w->own);
    if (own && own <= returned && returned - own <= near(ms))
        return false;
    read_clocks_of(gw_load_relaxed(&s->tid), &c);
    tell(w, returned, &c);
    return true;
}

void gw_section_watch(void)
{
    uint64_t ms = millisecond(), now = gw_ticks();
    if (!ms || !gw_load_relaxed(&gw_recording))
        return;
    /* Hundreds of threads take turns. */
    static unsigned next;
    unsigned slots = gw_ring_slots_used(), looks = 0;
    for (unsigned n = 0; n < slots && looks < LOOKS; n++) {
        unsigned i = next < slots ? next : 0;
        /* Partner: the release stores of state in ring.c. */
        if (gw_load_acquire(&gw_ring_slot(i)->state) == GWT_SLOT_USED)
            looks += watch(i, now, ms);
        next = i + 1;
    }
}

void gw_sections_reset(void)
{
    memset(watches, 0, sizeof watches);
    gw_recording_switched = 0;
}
