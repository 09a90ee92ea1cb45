/* The protocol of ring, drain thread and reader, tried in every order.
 *
 * A model, not the code: capture/record.c and ring.c (a thread that records, another that takes
 * over its slot), capture/drain.c, and the two ways of reading, after a death and beside a living
 * process (trace/ring.c). Each thread's accesses go through a window out of which they are
 * performed in any order that neither a dependency nor an acquire or release forbids; memory is
 * one for all. That is what ARMv8 may do (and more than x86 does), compilers included.
 *
 * In every state that can be reached a death is assumed: what ring and frames then hold is each
 * event whose head was stored, once, and in order; a torn frame is no frame. A reader beside them
 * finds no hole, no wrong record, and nothing less than there was when it began.
 *
 * Each barrier is then left out, and steps swapped, which must be noticed. Two are not among them:
 * the acquire loads of tail in has_room() and of state in free_slot() order a load before stores
 * that depend on it, which C asks for and no processor does without.
 *
 * Not covered: more than one slot, the definition log, tail segments of the dump, sequence numbers
 * beyond a few, one round of the drain that begins while stores of the one before are not yet seen,
 * and file systems: what write() returned for is in the file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define ROOM   2u /* records in the ring */
#define WINDOW 12u
#define EVENTS 5u /* of one thread at most, LOST among them */
#define FRAMES 10u
#define TRIES  1u /* of the reader */

enum { FREE, USED, CLOSED };

/* Memory. A record is two words, so that it can be torn. */
enum place { STATE, THREAD, HEAD, TAIL, LOST, RECORDS, PLACES = RECORDS + 2 * ROOM, NOWHERE };

enum kind { LOAD, STORE, WRITE_HALF, WRITE, MUST_NOT };
enum {
    ACQUIRE = 1,
    RELEASE = 2,
    DATA = 4 /* nothing depends on it but a WRITE */,
    ALONE = 8,
    FENCE = 16 /* no store passes it */
};

struct op {
    uint8_t kind, place, flags;
    uint8_t value; /* of a LOAD: the variable or register it goes to, or what it is taken to be */
};

struct thread {
    uint8_t at;    /* step of its program */
    uint8_t waits; /* for an acquire load (LOADED) or all there is (ALL) before it goes on */
    uint8_t ops;
    uint8_t r[6];     /* variables */
    uint8_t data[12]; /* registers of DATA loads */
    struct op window[WINDOW];
};
enum { LOADED = 1, ALL };

struct frame {
    uint8_t thread, first, count, whole;
    uint8_t word[ROOM];
};

enum { FIRST, SECOND, DRAIN, READER, THREADS };

struct state {
    uint8_t memory[PLACES];
    uint8_t frames;
    struct frame file[FRAMES];
    uint8_t stored[3];            /* heads that the recording threads, 1 and 2, have stored */
    uint8_t event[3][EVENTS + 2]; /* what they stored, in order */
    uint8_t begun[3];             /* of `stored`, when the reader began */
    uint8_t taken;                /* of the file, by the reader */
    bool over;                    /* the reader has what it wanted */
    struct thread threads[THREADS];
};

/* Barriers that may be left out, and steps that may be swapped or left out. */
#define MUTATIONS(X)                                                                               \
    X(HEAD_RELEASE)                                                                                \
    X(TAIL_RELEASE)                                                                                \
    X(HEAD_ACQUIRE)                                                                                \
    X(STATE_ACQUIRE)                                                                               \
    X(USED_RELEASE)                                                                                \
    X(CLOSED_RELEASE)                                                                              \
    X(FREE_RELEASE)                                                                                \
    X(WRITE_BEFORE_TAIL)                                                                           \
    X(HEAD_FENCE)                                                                                  \
    X(RING_BEFORE_FILE)                                                                            \
    X(SECOND_LOOK)
enum mutation {
    NONE,
#define X(name) NO_##name,
    MUTATIONS(X)
#undef X
        MUTANTS
};

static enum mutation left_out;
static bool with_reader;
static unsigned calls[3]; /* of threads 1 and 2; 0: it does not come */
static unsigned guess_;   /* what a load that is not waited for is taken to be */
static bool guessed;      /* whether that was asked for */
static const char *wrong; /* the first violation found */

static uint8_t unless(enum mutation m, uint8_t flag)
{
    return left_out == m ? 0 : flag;
}

static void violated(const char *what)
{
    if (!wrong)
        wrong = what;
}

/* ---- the programs ------------------------------------------------------------- */

static void give(struct thread *t, unsigned kind, unsigned place, unsigned value, unsigned flags)
{
    t->window[t->ops++] =
        (struct op){(uint8_t)kind, (uint8_t)place, (uint8_t)flags, (uint8_t)value};
}

/* A load on which the program's way depends. An acquire load is waited for. Past any other a
 * processor may run ahead on a guess: every value is tried, and a wrong one is given up. */
static void load(struct thread *t, unsigned place, unsigned variable, unsigned flags)
{
    if (flags & ACQUIRE) {
        give(t, LOAD, place, variable, flags);
        t->waits = LOADED;
        return;
    }
    guessed = true;
    give(t, LOAD, place, guess_, flags);
    t->r[variable] = (uint8_t)guess_;
}

/* Variables of a recording thread. */
enum { N, MINE, SEEN, UNTOLD, LOSSES, TOOK };

static void put(struct state *s, struct thread *t, unsigned id, unsigned word)
{
    unsigned at = RECORDS + 2 * (t->r[MINE] % ROOM);
    s->event[id][t->r[MINE]] = (uint8_t)word;
    give(t, STORE, at, word, 0);
    give(t, STORE, at + 1, word, 0);
    /* CLOSED, the last store of all, needs one of both. */
    bool fence = left_out != NO_HEAD_FENCE && left_out != NO_CLOSED_RELEASE;
    give(t, STORE, HEAD, ++t->r[MINE], unless(NO_HEAD_RELEASE, RELEASE) | (fence ? FENCE : 0));
}

static bool has_room(const struct thread *t)
{
    return t->r[MINE] + (t->r[UNTOLD] ? 2u : 1u) - t->r[SEEN] <= ROOM;
}

/* The next step of thread `id`'s program. post: false: there is none */
static bool record(struct state *s, struct thread *t, unsigned id)
{
    enum { TAKE, TAKEN, CALL, LOOKED, END };
    switch (t->at) {
    case TAKE:
        t->at = id == 1 ? CALL : TAKEN;
        if (id == 2)
            load(t, STATE, TOOK, ACQUIRE);
        return true;
    case TAKEN:
        t->at = t->r[TOOK] == FREE ? CALL : TAKE;
        if (t->at == TAKE)
            return true;
        give(t, STORE, HEAD, 0, 0);
        give(t, STORE, TAIL, 0, 0);
        give(t, STORE, LOST, 0, 0);
        give(t, STORE, THREAD, id, 0);
        give(t, STORE, STATE, USED, unless(NO_USED_RELEASE, RELEASE));
        return true;
    case CALL:
        if (t->r[N] == calls[id]) {
            give(t, STORE, STATE, CLOSED, unless(NO_CLOSED_RELEASE, RELEASE));
            t->at = END;
            return true;
        }
        t->at = LOOKED;
        if (!has_room(t))
            load(t, TAIL, SEEN, ACQUIRE);
        return true;
    case LOOKED:
        t->at = CALL;
        t->r[N]++;
        if (!has_room(t)) {
            t->r[UNTOLD]++;
            give(t, STORE, LOST, ++t->r[LOSSES], 0);
            return true;
        }
        if (t->r[UNTOLD])
            put(s, t, id, id << 6 | 0x20 | t->r[UNTOLD]);
        t->r[UNTOLD] = 0;
        put(s, t, id, id << 6 | t->r[N]);
        return true;
    default:
        return false;
    }
}

/* Variables of the drain. */
enum { WAS, WHOSE, UPTO, FROM };

static void move(struct thread *t)
{
    unsigned n = (unsigned)t->r[UPTO] - t->r[FROM];
    unsigned what = (unsigned)(t->r[WHOSE] << 5 | t->r[FROM] << 2 | n);
    if (n > ROOM) {
        give(t, MUST_NOT, NOWHERE, 0, ALONE);
        return;
    }
    if (n && left_out == NO_WRITE_BEFORE_TAIL)
        give(t, STORE, TAIL, t->r[UPTO], RELEASE);
    for (unsigned i = 0; i < 2 * n; i++)
        give(t, LOAD, RECORDS + (2 * t->r[FROM] + i) % (2 * ROOM), i, DATA);
    if (n) {
        give(t, WRITE_HALF, NOWHERE, what, ALONE);
        give(t, WRITE, NOWHERE, what, ALONE);
    }
    if (n && left_out != NO_WRITE_BEFORE_TAIL)
        give(t, STORE, TAIL, t->r[UPTO], unless(NO_TAIL_RELEASE, RELEASE));
    if (t->r[WAS] == CLOSED)
        give(t, STORE, STATE, FREE, unless(NO_FREE_RELEASE, RELEASE));
}

static bool drain(struct thread *t)
{
    enum { LOOK, LOOKED, HEADED, TAILED, MOVE };
    switch (t->at) {
    case LOOK: /* it sleeps in between, so one round is over when the next begins */
        if (t->ops)
            return false;
        memset(t->r, 0, sizeof t->r);
        memset(t->data, 0, sizeof t->data);
        t->at = LOOKED;
        load(t, STATE, WAS, unless(NO_STATE_ACQUIRE, ACQUIRE));
        return true;
    case LOOKED:
        t->at = t->r[WAS] == FREE ? LOOK : HEADED;
        if (t->at == HEADED)
            load(t, THREAD, WHOSE, 0);
        return true;
    case HEADED:
        t->at = TAILED;
        load(t, HEAD, UPTO, unless(NO_HEAD_ACQUIRE, ACQUIRE));
        return true;
    case TAILED:
        t->at = MOVE;
        load(t, TAIL, FROM, 0);
        return true;
    default:
        t->at = LOOK;
        move(t);
        return true;
    }
}

/* ---- reading ------------------------------------------------------------------ */

/* post: events of thread `id` that the first `frames` frames hold */
static unsigned in_file(const struct state *s, unsigned frames, unsigned id)
{
    unsigned n = 0;
    for (unsigned i = 0; i < frames; i++) {
        const struct frame *f = &s->file[i];
        if (f->thread != id || !f->whole)
            continue;
        if (f->first != n)
            violated(f->first < n ? "an event is in two frames" : "frames have a hole");
        for (unsigned k = 0; k < f->count; k++)
            if (f->word[k] != s->event[id][f->first + k])
                violated("a frame has a wrong record");
        n = f->first + f->count;
    }
    return n;
}

/* The ring's records [from, to) are in `words` from its start on.
 * post: events of the thread that frames and ring hold */
static unsigned joined(const struct state *s, unsigned frames, unsigned id, unsigned from,
                       unsigned to, const uint8_t *words)
{
    unsigned n = in_file(s, frames, id);
    if (from < to && from > n)
        violated("events between the frames and the ring are missing");
    for (unsigned i = from; i < to; i++)
        for (unsigned half = 0; half < 2; half++)
            if (words[2 * (i % ROOM) + half] != s->event[id][i])
                violated("a record read from the ring is wrong");
    return from < to && to > n ? to : n;
}

/* A death here: what is found afterwards, by a reader who has all the time. */
static void die(const struct state *s)
{
    const uint8_t *m = s->memory;
    bool held = m[STATE] != FREE;
    for (unsigned id = 1; id <= 2; id++) {
        bool its = held && m[THREAD] == id;
        if (its && (m[TAIL] > m[HEAD] || m[HEAD] - m[TAIL] > (int)ROOM)) {
            violated("head and tail of a dead thread do not fit");
            return;
        }
        if (joined(s, s->frames, id, its ? m[TAIL] : 0, its ? m[HEAD] : 0, m + RECORDS) !=
            s->stored[id])
            violated("not all events that were stored are found");
    }
}

/* The reader's registers: the slot, twice, and the ring. What one pread() copies it copies upwards,
 * and one follows the other. */
enum { BEFORE = 0, AFTER = 4, COPY = 8 };
enum { TRIED, SOUND, TO, COPIED_IT };

static void look(struct thread *t, unsigned into)
{
    for (unsigned i = 0; i < 4; i++) /* STATE, THREAD, HEAD, TAIL */
        give(t, LOAD, STATE + i, into + i, DATA | ALONE);
    t->waits = ALL;
}

/* As copy_slot() in trace/ring.c, once the second look is taken. */
static bool settle_copy(struct thread *t)
{
    const uint8_t *before = t->data + BEFORE, *after = t->data + AFTER;
    unsigned sound;
    if (left_out == NO_SECOND_LOOK)
        after = before;
    if (after[STATE] == FREE || after[THREAD] != before[THREAD] || after[HEAD] < before[HEAD])
        return false;
    sound = after[HEAD] >= ROOM ? after[HEAD] + 1 - ROOM : 0;
    if (sound > after[TAIL])
        sound = after[TAIL];
    if (sound > before[HEAD])
        sound = before[HEAD];
    if (sound < before[TAIL])
        sound = before[TAIL];
    t->r[SOUND] = (uint8_t)sound;
    t->r[TO] = before[HEAD];
    return true;
}

static void finish_reading(const struct state *s, const struct thread *t)
{
    for (unsigned id = 1; id <= 2; id++) {
        bool its = t->r[SOUND] < t->r[TO] && t->data[BEFORE + THREAD] == id;
        unsigned n =
            joined(s, s->taken, id, its ? t->r[SOUND] : 0, its ? t->r[TO] : 0, t->data + COPY);
        if (n < s->begun[id])
            violated("a reader misses events that were there when it began");
    }
}

static bool read_live(struct state *s, struct thread *t)
{
    enum { BEGIN, LOOK, LOOKED, COPIED, FILES, END };
    uint8_t *before = t->data + BEFORE;
    switch (t->at) {
    case BEGIN:
        memcpy(s->begun, s->stored, sizeof s->begun);
        if (left_out == NO_RING_BEFORE_FILE)
            s->taken = s->frames;
        t->at = LOOK;
        return true;
    case LOOK:
        t->at = t->r[TRIED]++ < TRIES ? LOOKED : FILES;
        if (t->at == LOOKED)
            look(t, BEFORE);
        return true;
    case LOOKED:
        t->at = FILES;
        if (before[STATE] == FREE)
            return true;
        if (before[TAIL] > before[HEAD])
            before[TAIL] = before[HEAD];
        t->at = COPIED;
        if (before[HEAD] - before[TAIL] > (int)ROOM) {
            t->at = LOOK;
            return true;
        }
        for (unsigned i = 2 * before[TAIL]; i < 2u * before[HEAD]; i++)
            give(t, LOAD, RECORDS + i % (2 * ROOM), COPY + i % (2 * ROOM), DATA | ALONE);
        t->waits = ALL;
        return true;
    case COPIED:
        look(t, AFTER);
        t->at = FILES;
        t->r[COPIED_IT] = 1;
        return true;
    case FILES:
        if (t->r[COPIED_IT] && !settle_copy(t)) {
            t->r[COPIED_IT] = 0;
            t->at = LOOK;
            return true;
        }
        if (left_out != NO_RING_BEFORE_FILE)
            s->taken = s->frames;
        finish_reading(s, t);
        s->over = true;
        t->at = END;
        return true;
    default:
        return false;
    }
}

/* ---- performing --------------------------------------------------------------- */

static bool may_go(const struct thread *t, unsigned i)
{
    const struct op *b = &t->window[i];
    for (unsigned j = 0; j < i; j++) {
        const struct op *a = &t->window[j];
        bool decides = a->kind == LOAD && !(a->flags & DATA);
        if (a->place == b->place && a->place != NOWHERE)
            return false;
        if ((a->flags & ACQUIRE) || (b->flags & (RELEASE | ALONE)))
            return false;
        if ((a->flags & FENCE) && b->kind == STORE)
            return false;
        if (decides && b->kind == STORE) /* it is not made on a guess */
            return false;
        if (decides && a->place == TAIL && (b->flags & DATA)) /* it is the address */
            return false;
    }
    return true;
}

static void write_frame(struct state *s, const struct thread *t, unsigned what, bool half)
{
    struct frame *f = &s->file[half ? s->frames : s->frames - 1];
    if (half) {
        assert_true(++s->frames <= FRAMES);
        *f = (struct frame){(uint8_t)(what >> 5), what >> 2 & 7, what & 3, 0, {0}};
        return;
    }
    for (unsigned k = 0; k < f->count; k++)
        f->word[k] = t->data[2 * k] == t->data[2 * k + 1] ? t->data[2 * k] : 0xff;
    f->whole = 1;
}

/* post: false: a guess was wrong, this never happens */
static bool perform(struct state *s, unsigned who, unsigned i)
{
    struct thread *t = &s->threads[who];
    const struct op op = t->window[i];
    uint8_t *place = op.place == NOWHERE ? NULL : &s->memory[op.place];
    t->ops--;
    memmove(&t->window[i], &t->window[i + 1], (t->ops - i) * sizeof op);
    t->window[t->ops] = (struct op){0};
    switch (op.kind) {
    case LOAD:
        if (op.flags & DATA)
            t->data[op.value] = *place;
        else if (op.flags & ACQUIRE)
            t->r[op.value] = *place;
        else if (*place != op.value)
            return false;
        break;
    case STORE:
        *place = op.value;
        if (op.place == HEAD && op.value)
            s->stored[who + 1] = op.value;
        break;
    case MUST_NOT:
        violated("the drain finds a tail beyond the head");
        break;
    default:
        write_frame(s, t, op.value, op.kind == WRITE_HALF);
    }
    if (t->waits == LOADED ? op.flags & ACQUIRE : !t->ops)
        t->waits = 0;
    return true;
}

/* ---- every order -------------------------------------------------------------- */

static uint64_t slots; /* of `seen`, a power of two */
static uint64_t (*seen)[2];
static unsigned seen_count;

static struct state *stack;
static size_t depth, stack_room;

static uint64_t hash(const struct state *s, uint64_t h)
{
    uint64_t word[(sizeof *s + 7) / 8] = {0};
    memcpy(word, s, sizeof *s);
    for (size_t i = 0; i < sizeof word / sizeof *word; i++) {
        h = (h ^ word[i]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    return h;
}

/* By 128 bits of hash: two states of the same are as likely as a fault of the machine. */
static bool is_new(const struct state *s)
{
    uint64_t a = hash(s, 0xcbf29ce484222325u) | 1, b = hash(s, 0x9e3779b97f4a7c15u);
    for (uint64_t i = a * 0x9e3779b97f4a7c15u >> 32;; i++) {
        uint64_t *k = seen[i & (slots - 1)];
        if (k[0] == a && k[1] == b)
            return false;
        if (k[0])
            continue;
        assert_true(++seen_count < slots / 4 * 3);
        k[0] = a;
        k[1] = b;
        return true;
    }
}

static void visit(const struct state *s)
{
    if (!is_new(s))
        return;
    die(s);
    if (depth == stack_room) {
        stack_room = stack_room ? 2 * stack_room : 1024;
        stack = realloc(stack, stack_room * sizeof *stack);
        assert_non_null(stack);
    }
    stack[depth++] = *s;
}

static bool step(struct state *s, unsigned who)
{
    struct thread *t = &s->threads[who];
    if (t->waits || t->ops + 2 * ROOM + 4 > WINDOW)
        return false;
    switch (who) {
    case DRAIN:
        return drain(t);
    case READER:
        return with_reader && read_live(s, t);
    default:
        return calls[who + 1] && record(s, t, who + 1);
    }
}

/* Lets every thread but the reader, whose steps look at the file, run as far ahead as it can:
 * that is seen by nobody. */
static void run_ahead(const struct state *from, unsigned who)
{
    for (; who < READER; who++) {
        bool asked = true;
        struct state s;
        for (unsigned guess = 0; asked && guess <= EVENTS; guess++) {
            s = *from;
            guessed = false;
            guess_ = guess;
            if (!step(&s, who))
                break;
            asked = guessed;
            run_ahead(&s, who);
            if (!asked || guess == EVENTS)
                return;
        }
    }
    visit(from);
}

static unsigned explore(enum mutation m, bool reader, unsigned calls1, unsigned calls2)
{
    struct state begin;
    memset(&begin, 0, sizeof begin);
    begin.memory[STATE] = USED;
    begin.memory[THREAD] = 1;
    left_out = m;
    with_reader = reader;
    calls[1] = calls1;
    calls[2] = calls2;
    wrong = NULL;
    seen_count = 0;
    depth = 0;
    memset(seen, 0, slots * sizeof *seen);
    run_ahead(&begin, 0);
    while (depth && !wrong) {
        const struct state s = stack[--depth];
        struct state next;
        for (unsigned who = 0; who < THREADS; who++) {
            for (unsigned i = 0; i < s.threads[who].ops; i++) {
                if (!may_go(&s.threads[who], i))
                    continue;
                next = s;
                if (perform(&next, who, i))
                    run_ahead(&next, 0);
            }
        }
        next = s;
        if (step(&next, READER) && !next.over)
            run_ahead(&next, 0);
    }
    return seen_count;
}

/* ---- tests -------------------------------------------------------------------- */

static const char *const mutations[] = {"nothing",
#define X(name) #name,
                                        MUTATIONS(X)
#undef X
};

/* pre: nothing is left out */
static void holds(bool reader, unsigned calls1, unsigned calls2)
{
    unsigned n = explore(NONE, reader, calls1, calls2);
    print_message("%s, %u and %u calls: %u states\n", reader ? "a reader" : "deaths", calls1,
                  calls2, n);
    if (wrong)
        fail_msg("%s", wrong);
    assert_true(n > 1000);
}

static bool full; /* PROTOCOL=full: minutes instead of seconds */

static void nothing_is_lost_at_any_death(void **state)
{
    (void)state;
    holds(false, 3, 2);
    if (full)
        holds(false, 5, 3);
}

static void a_reader_beside_them_finds_no_hole(void **state)
{
    (void)state;
    holds(true, 3, 0);
    if (full) {
        holds(true, 4, 0);
        holds(true, 2, 1);
    }
}

static void every_barrier_is_needed(void **state)
{
    (void)state;
    for (unsigned m = NONE + 1; m < MUTANTS; m++) {
        bool reader = m >= NO_HEAD_FENCE;
        unsigned n = explore((enum mutation)m, reader, reader ? 3 : 4, reader ? 0 : 2);
        print_message("without %s: %s, after %u states\n", mutations[m],
                      wrong ? wrong : "nothing wrong", n);
        assert_non_null(wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_at_any_death),
        cmocka_unit_test(a_reader_beside_them_finds_no_hole),
        cmocka_unit_test(every_barrier_is_needed),
    };
    const char *how_much = getenv("PROTOCOL");
    full = how_much && !strcmp(how_much, "full");
    slots = full ? 1u << 26 : 1u << 22;
    seen = calloc(slots, sizeof *seen);
    return seen ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
