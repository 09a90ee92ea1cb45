/* How steps are found, in pieces.
 *
 * steps_tokens.c turns submissions into tokens, steps_learn.c, steps_train.c, steps_loop.c,
 * steps_levels.c and steps_runs.c learn a rule from the first of them, steps_match.c applies it to
 * all, steps_kinds.c tells warm-up from steady steps, steps_place.c is the second pass,
 * steps_summary.c the figures.
 *
 * A token is one submission of the thread that drives the loop: a kernel's name, a graph, a
 * copy's direction; shapes are left out, so that a loop is the same loop whatever its sizes.
 * All that autograd's threads submit in one go is a single token, a backward pass.
 */
#ifndef GWA_STEPS_INTERNAL_H
#define GWA_STEPS_INTERNAL_H

#include "grow.h"
#include "steps.h"

/* What a symbol is of, in its low three bits. */
enum gwa_sym {
    GWA_SYM_LAUNCH = 1, /* name id above, or */
    GWA_SYM_UNNAMED,    /* signature id */
    GWA_SYM_GRAPH,
    GWA_SYM_COPY, /* direction, memory, bytes if they are few */
    GWA_SYM_MEMSET,
    GWA_SYM_NCCL,
    GWA_SYM_BACKWARD
};
#define GWA_SYM(kind, id)       (((uint32_t)(id) << 3) | (kind))
#define GWA_SYM_KIND(sym)       ((sym)&7u)
#define GWA_SYM_ID(sym)         ((sym) >> 3)
#define GWA_COPY_DIRECTION(sym) (GWA_SYM_ID(sym) & 0x7fu)
#define GWA_BACKWARD            GWA_SYM(GWA_SYM_BACKWARD, 0)

static inline bool gwa_sym_works(uint32_t sym) /* not a copy or memset */
{
    unsigned kind = GWA_SYM_KIND(sym);
    return kind <= GWA_SYM_GRAPH || kind == GWA_SYM_NCCL;
}

struct gwa_token {
    int64_t t0;
    int64_t end; /* return; of a backward pass, that of its last submission */
    uint32_t sym;
    uint32_t shape;  /* signature of a launch, kernels of a graph */
    uint16_t thread; /* index of the submitting thread, 0xffff: beyond */
    uint8_t waits;   /* a blocking call follows before the next token, or it is one */
};

/* Kernels that a token submits, and at least 1: a replay is as much work as what was captured. */
static inline uint32_t gwa_token_weight(const struct gwa_token *t)
{
    return GWA_SYM_KIND(t->sym) == GWA_SYM_GRAPH && t->shape ? t->shape : 1;
}

/* How many tokens a rule can look back. */
#define GWA_STEPS_RING  65536u
#define GWA_MARKER_MAX  16u
#define GWA_LEARN_FIRST 8192u /* tokens */
#define GWA_LEARN_MOST  131072u
#define GWA_TAIL_MAX    8u
#define GWA_FIRST_MAX   4u
#define GWA_LOADS_MOST  65536u /* module loads; beyond, the loop has long begun */

/* A small set of symbols. */
#define GWA_SET_SIZE 4096u
struct gwa_symset {
    uint32_t slots[GWA_SET_SIZE]; /* 0: empty */
    unsigned count;
};
bool gwa_symset_has(const struct gwa_symset *set, uint32_t sym);
void gwa_symset_add(struct gwa_symset *set, uint32_t sym);

enum gwa_rule_kind { GWA_RULE_NONE, GWA_RULE_TRAIN, GWA_RULE_LOOP };

/* What a usual step holds: the least of its runs of two symbols under so many hashes. As many of
 * them are the same as the steps share runs. */
#define GWA_SKETCH 16u
struct gwa_sketch {
    uint32_t least[GWA_SKETCH];
    uint32_t weight; /* of the step; 0: not known */
};

/* How the beginning of a step is known when it comes. */
struct gwa_rule {
    enum gwa_rule_kind kind;
    uint32_t driver;  /* thread id */
    uint32_t length;  /* tokens of a usual step */
    uint32_t weight;  /* and theirs */
    float confidence; /* 0 .. 1 */
    bool by_token;
    struct gwa_sketch sketch; /* of a GWA_RULE_LOOP */
    /* GWA_RULE_LOOP: these symbols in a row; the step began `back` tokens before the first, or
     * begins `ahead` of them after it */
    uint32_t marker[GWA_MARKER_MAX];
    unsigned marker_count;
    uint32_t back, ahead;
    uint32_t skip;  /* tokens before the loop begins */
    uint32_t every; /* so many of them are one step */
    /* GWA_RULE_TRAIN: between two backward passes, after the last symbol of `end`. */
    struct gwa_symset end;
    uint32_t tail[GWA_TAIL_MAX]; /* follow it in a usual step, but occur in forward passes too */
    unsigned tail_count;
    uint32_t first[GWA_FIRST_MAX]; /* what a forward pass begins with */
    unsigned first_count;
    bool optimizer;   /* `end` holds kernels: passes without one are micro-batches */
    uint32_t offset;  /* without: tokens after the backward pass */
    uint32_t forward; /* tokens of a usual forward pass */
};

/* One step as the first pass sees it; fields as in struct gwa_step. */
struct gwa_found {
    int64_t from, to;
    int64_t backward_end;
    uint64_t hash;   /* of the driving thread's symbols, in order */
    uint32_t weight; /* and of its tokens */
    uint16_t backwards;
    uint8_t kind;
    uint8_t loop; /* which loop it belongs to */
};

/* What the second pass counts of one step: X(type, field), fields of struct gwa_step_summary. */
#define GWA_STEP_COUNTS(X)                                                                         \
    X(uint32_t, launches)                                                                          \
    X(uint32_t, graph_launches)                                                                    \
    X(uint32_t, kernels)                                                                           \
    X(uint32_t, syncs)                                                                             \
    X(uint32_t, copies)                                                                            \
    X(uint32_t, blocking_copies)                                                                   \
    X(uint64_t, h2d_bytes)                                                                         \
    X(uint64_t, d2h_bytes)                                                                         \
    X(uint64_t, pageable_bytes)                                                                    \
    X(uint64_t, collective_bytes)                                                                  \
    X(uint32_t, allocations)                                                                       \
    X(uint32_t, host_allocations)                                                                  \
    X(uint32_t, frees)                                                                             \
    X(uint32_t, collectives)                                                                       \
    X(uint32_t, captures)                                                                          \
    X(uint32_t, module_loads)                                                                      \
    X(uint32_t, small_reads)

/* There may be many steps: no byte that is not needed. */
struct gwa_step_row {
#define X(type, field) type field;
    GWA_STEP_COUNTS(X)
#undef X
    uint32_t names, shapes, sizes; /* order of names; names with shapes; copies with bytes */
    uint32_t launched[GWA_PHASE_COUNT - 1]; /* kernels and graphs, of phases but OTHER */
    uint32_t recompute_launches, segments, collective_batches;
};
_Static_assert(GWA_PHASE_OTHER == 0 && sizeof(struct gwa_step_row) == 120, "packed");

/* Apart from the row, which another thread writes. */
struct gwa_step_time {
    float gpu_ns[GWA_PHASE_COUNT];
    float recompute_ns;
};

/* What came before a token: how many, their hash, a polynomial, and their weight. */
struct gwa_before {
    uint64_t index, hash, weight;
};

struct gwa_mark {
    int64_t t0;
    struct gwa_before before;
    uint32_t sym;
};

struct gwa_matcher {
    struct gwa_rule rule;
    uint8_t loop;
    uint64_t index;        /* of the next token */
    uint64_t hash, weight; /* of all before */
    struct gwa_mark *ring; /* the last tokens, by index */
    bool open, pending;    /* a step is; the next token begins one */
    uint32_t turn;         /* markers so far, of `every` */
    struct gwa_before from;
    int64_t usual_end; /* entry of the token after `length` ones; INT64_MAX: not yet */
    int64_t last;      /* return of the last event of the loop */
    /* since the last backward pass */
    bool after_backward, optimizer_ran, at_end, optimizer_open, work_over;
    uint64_t run_index, begin_index;
    unsigned tail;
    bool begun;          /* what a forward pass begins with was seen */
    uint64_t over_index; /* where the optimizer was done */
    int64_t over_at;
    uint32_t backwards_without; /* passes since a step began */
    uint32_t most_backwards;
};

/* Per thread. */
struct gwa_steps_thread {
    bool known, autograd;
    uint16_t index;
    /* second pass: the step that it was last in, and what it did there, in order */
    uint32_t step;
    uint64_t names, shapes, sizes;
};

struct gwa_recompute; /* steps_place.c */
struct gwa_lengths;   /* too */

struct gwa_steps {
    struct gwt_trace *trace;
    const char *range, *kernel;
    uint32_t *syms; /* by signature id, 0: not looked up */
    size_t syms_count;
    struct gwa_steps_thread *threads;
    size_t threads_count;
    uint32_t thread_ids[256]; /* by index */
    unsigned thread_indices;
    /* first pass */
    struct gwa_token *tokens; /* not yet understood, or since the step began */
    size_t tokens_count, tokens_room;
    size_t attempt; /* tokens at which to try to learn */
    uint64_t skip;  /* tokens to pass over: nothing recurred so far */
    uint64_t skipped;
    uint64_t seen; /* weight of all tokens */
    bool in_backward;
    int64_t *loads; /* when modules were loaded, in time order but for ties among threads */
    size_t loads_count, loads_room;
    struct gwa_matcher match;
    struct gwa_loop {
        float confidence;
        bool by_token;
        struct gwa_sketch sketch;
    } loops[UINT8_MAX + 1];  /* of the rules, by loop */
    struct gwa_found *found; /* until the list is made */
    size_t found_count, found_room;
    /* overrides */
    unsigned depth;
    uint8_t *wanted; /* by name id: 1 no, 2 yes */
    size_t wanted_count;
    /* the result */
    struct gwa_step *list;
    size_t count, warm, steady, unusual;
    float confidence;
    bool by_token;
    const char *found_by;
    /* second pass */
    struct gwa_step_row *rows;
    struct gwa_recompute *recompute;
    struct gwa_step_time *times;
    struct gwa_lengths *lengths;
    uint32_t *graph_kernels; /* by graph id, + 1 */
    size_t graph_kernels_count;
    size_t cursor;
};

/* steps_tokens.c: post: 0 and out->sym 0 where e is none, or -ENOMEM. */
int gwa_steps_token(struct gwa_steps *s, const struct gwt_event *e, struct gwa_token *out);
int gwa_steps_launch_sym(struct gwa_steps *s, uint32_t signature, uint32_t *out);
/* Kernels that one launch of a graph runs; 0: not known. */
int gwa_steps_graph_kernels(struct gwa_steps *s, uint32_t id, uint32_t *out);
/* post: 0 and *out, NULL for an id that is not believed, or -ENOMEM. */
int gwa_steps_thread(struct gwa_steps *s, uint32_t id, struct gwa_steps_thread **out);

/* Learning, from the tokens of one thread and backward passes. `last`: no more will come.
 * post: 0 and out->kind, NONE where nothing was recognised, or -ENOMEM. */
int gwa_steps_learn(struct gwa_steps *s, bool last, struct gwa_rule *out);
int gwa_steps_learn_train(const struct gwa_steps *s, const struct gwa_token *tokens, size_t count,
                          bool last, struct gwa_rule *out);
int gwa_steps_learn_loop(const struct gwa_steps *s, const struct gwa_token *tokens, size_t count,
                         bool last, struct gwa_rule *out);
bool gwa_steps_is_optimizer(const struct gwa_steps *s, uint32_t sym); /* by its name */

/* steps_match.c */
int gwa_match_new(struct gwa_matcher *m);
void gwa_match_free(struct gwa_matcher *m);
void gwa_match_begin(struct gwa_matcher *m, const struct gwa_rule *rule);
int gwa_match_token(struct gwa_steps *s, const struct gwa_token *t);
/* The loop is over: its last step ends. */
void gwa_match_end(struct gwa_steps *s);
/* A step begins at the token that comes after `at`. */
int gwa_steps_begin(struct gwa_steps *s, int64_t t, struct gwa_before at);
static inline struct gwa_before gwa_match_now(const struct gwa_matcher *m)
{
    return (struct gwa_before){.index = m->index, .hash = m->hash, .weight = m->weight};
}

/* steps_kinds.c: from `found` to `list`. */
int gwa_steps_kinds(struct gwa_steps *s);

/* After the last event of the second pass. */
void gwa_steps_place_end(struct gwa_steps *s);
void gwa_steps_place_free(struct gwa_steps *s);

/* Polynomial hashes of symbol sequences. */
#define GWA_POLY 0x9e3779b97f4a7c15u
static inline uint64_t gwa_mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}
static inline uint64_t gwa_poly_add(uint64_t hash, uint64_t sym)
{
    return hash * GWA_POLY + gwa_mix(sym + 1);
}
static inline uint64_t gwa_poly_power(uint64_t n)
{
    uint64_t out = 1, base = GWA_POLY;
    for (; n; n >>= 1, base *= base)
        if (n & 1)
            out *= base;
    return out;
}
/* Of the symbols after the first `n` ones' hash `before`, up to `after`; `length` of them. */
static inline uint64_t gwa_poly_between(uint64_t before, uint64_t after, uint64_t length)
{
    return after - before * gwa_poly_power(length);
}

#endif
