/* A training loop, by its backward passes.
 *
 * Between two of them the driving thread runs the optimizer, whatever ends a step, and the
 * next forward pass. Where one ends and the other begins is told by, in this order: kernels
 * that are known as an optimizer's; passes without an optimizer, which are a forward pass and
 * no more; the very first forward pass, before which no optimizer ran; copies.
 */
#include "steps_internal.h"

#include <string.h>

#define RUNS_MAX 256u

/* The tokens between two backward passes. */
struct run {
    size_t from, to; /* half open */
    uint64_t hash;
    size_t optimizer; /* one past its last optimizer kernel; 0: has none */
};

struct runs {
    const struct gwa_steps *steps;
    const struct gwa_token *tokens;
    struct run first; /* before the first backward pass */
    struct run list[RUNS_MAX];
    unsigned count;
};

static const char *const optimizer_words[] = {
    "multi_tensor_apply",
    "MultiTensor",
    "Foreach",
    "Adam",
    "adam",
    "ptimizer",
    "addcdiv",
    "addcmul",
    "Lion",
    "SGD",
    "Adagrad",
    "rmsprop",
};

bool gwa_steps_is_optimizer(const struct gwa_steps *s, uint32_t sym)
{
    if (GWA_SYM_KIND(sym) != GWA_SYM_LAUNCH)
        return false;
    const char *name = gwt_string(s->trace, GWA_SYM_ID(sym));
    if (!name)
        return false;
    for (size_t i = 0; i < sizeof(optimizer_words) / sizeof(*optimizer_words); i++)
        if (strstr(name, optimizer_words[i]))
            return true;
    return false;
}

/* The names of a recording are few: each is looked at once. */
struct known {
    struct gwa_symset seen, optimizers;
};

static bool optimizer_sym(const struct gwa_steps *s, struct known *k, uint32_t sym)
{
    if (!gwa_symset_has(&k->seen, sym)) {
        gwa_symset_add(&k->seen, sym);
        if (gwa_steps_is_optimizer(s, sym))
            gwa_symset_add(&k->optimizers, sym);
    }
    return gwa_symset_has(&k->optimizers, sym);
}

static void find_runs(struct runs *r, size_t count, struct known *known)
{
    size_t from = 0;
    bool first = true;
    for (size_t i = 0; i < count && r->count < RUNS_MAX; i++) {
        if (r->tokens[i].sym != GWA_BACKWARD)
            continue;
        struct run run = {.from = from, .to = i};
        for (size_t j = from; j < i; j++) {
            run.hash = gwa_poly_add(run.hash, r->tokens[j].sym);
            if (!first && optimizer_sym(r->steps, known, r->tokens[j].sym))
                run.optimizer = j + 1;
        }
        if (first)
            r->first = run;
        else
            r->list[r->count++] = run;
        first = false;
        from = i + 1;
    }
}

static size_t length(const struct run *r)
{
    return r->to - r->from;
}

static size_t common_end(const struct runs *r, const struct run *a, const struct run *b)
{
    size_t most = length(a) < length(b) ? length(a) : length(b), n = 0;
    while (n < most && r->tokens[a->to - 1 - n].sym == r->tokens[b->to - 1 - n].sym)
        n++;
    return n;
}

/* The most frequent of those with, or without, an optimizer; of equals the latest. */
static const struct run *usual(const struct runs *r, bool optimizer, bool any, unsigned *times)
{
    const struct run *best = NULL;
    unsigned most = 0;
    for (unsigned i = 0; i < r->count; i++) {
        unsigned n = 0;
        if (!any && !r->list[i].optimizer == optimizer)
            continue;
        for (unsigned j = 0; j < r->count; j++)
            n += r->list[j].hash == r->list[i].hash && length(&r->list[j]) == length(&r->list[i]);
        if (n >= most) {
            most = n;
            best = &r->list[i];
        }
    }
    if (times)
        *times = most;
    return best;
}

/* Without names: a frequent pass that is all forward, as the first one's end shows. */
static const struct run *forward_only(const struct runs *r, const struct run *whole)
{
    for (unsigned i = 0; i < r->count; i++) {
        const struct run *a = &r->list[i];
        size_t n = length(a);
        if (!n || n >= length(whole) || a->optimizer)
            continue;
        if (common_end(r, a, &r->first) == n && common_end(r, a, whole) == n)
            return a;
    }
    return NULL;
}

static unsigned direction_of(uint32_t sym)
{
    return GWA_SYM_KIND(sym) == GWA_SYM_COPY ? GWA_COPY_DIRECTION(sym) : 0;
}

/* The first copy to the device, else what follows a copy to the host, near the beginning. */
static size_t by_copies(const struct runs *r, size_t from, size_t to)
{
    size_t near = from + (to - from) / 4 + 1, after = from;
    for (size_t i = from; i < to && i < near; i++) {
        unsigned direction = direction_of(r->tokens[i].sym);
        if (direction == GWT_H2D)
            return i;
        if (direction == GWT_D2H && i + 1 < to)
            after = i + 1;
    }
    return after;
}

/* A step that ends with a copy to the host, or one that begins with a copy to the device. */
static bool copies_meet(const struct runs *r, const struct run *run, size_t at)
{
    if (at <= run->from || at >= run->to)
        return false;
    unsigned before = direction_of(r->tokens[at - 1].sym), here = direction_of(r->tokens[at].sym);
    return before == GWT_D2H || (here == GWT_H2D && before != GWT_H2D);
}

/* Where in `run` the next step begins. */
static size_t boundary(const struct runs *r, const struct run *run, const struct run *forward,
                       bool *sure)
{
    size_t least = run->optimizer ? run->optimizer : run->from;
    *sure = true;
    if (forward) {
        size_t n = common_end(r, run, forward);
        if (n * 10 >= length(forward) * 9 && run->to - n >= least)
            return run->to - n;
    }
    size_t n = common_end(r, run, &r->first);
    size_t at = run->to - n;
    bool whole = n == length(&r->first) || copies_meet(r, run, at);
    if (at >= least && at > run->from && (n * 2 >= run->to - least || (whole && n > 2)))
        return at;
    at = by_copies(r, least, run->to);
    *sure = run->optimizer != 0 || at > least;
    return at;
}

/* What ends a step and is no part of a forward pass. */
static bool end_symbols(const struct runs *r, const struct run *run, size_t begin,
                        struct gwa_symset *out)
{
    struct gwa_symset *forward = calloc(1, sizeof(*forward));
    bool works = false;
    if (!forward)
        return false;
    for (size_t i = begin; i < run->to; i++)
        gwa_symset_add(forward, r->tokens[i].sym);
    for (size_t i = run->from; i < begin; i++) {
        uint32_t sym = r->tokens[i].sym;
        if (gwa_symset_has(forward, sym))
            continue;
        gwa_symset_add(out, sym);
        works |= gwa_sym_works(sym);
    }
    free(forward);
    return works;
}

static bool train_rule(struct runs *r, struct known *known, struct gwa_rule *out)
{
    unsigned with = 0, times = 0;
    for (unsigned i = 0; i < r->count; i++)
        with += r->list[i].optimizer != 0;
    const struct run *run = usual(r, true, with == 0, &times);
    if (!run || !length(run))
        return false;
    const struct run *forward = NULL;
    if (with && with < r->count)
        forward = usual(r, false, false, NULL);
    else if (!with && (forward = forward_only(r, run)) == NULL && r->count > 2) {
        /* the usual one may itself be a micro-batch: then a longer one ends with it */
        for (unsigned i = 0; i < r->count && !forward; i++)
            if (length(&r->list[i]) > length(run) &&
                (forward = forward_only(r, &r->list[i])) != NULL)
                run = &r->list[i];
    }
    bool sure;
    size_t begin = boundary(r, run, forward, &sure);
    out->optimizer = end_symbols(r, run, begin, &out->end);
    for (size_t i = begin; i > run->from && out->tail_count < GWA_TAIL_MAX; i--) {
        if (gwa_symset_has(&out->end, r->tokens[i - 1].sym))
            break;
        out->tail_count++;
    }
    if (begin - out->tail_count == run->from)
        out->tail_count = 0;
    for (unsigned i = 0; i < out->tail_count; i++)
        out->tail[i] = r->tokens[begin - out->tail_count + i].sym;
    for (size_t i = run->from; i < begin; i++) /* known ones count, wherever they occur */
        if (optimizer_sym(r->steps, known, r->tokens[i].sym)) {
            gwa_symset_add(&out->end, r->tokens[i].sym);
            out->optimizer = true;
        }
    for (size_t i = begin; i < run->to && out->first_count < GWA_FIRST_MAX; i++)
        out->first[out->first_count++] = r->tokens[i].sym;
    out->offset = (uint32_t)(begin - run->from);
    out->forward = (uint32_t)(run->to - begin);
    out->length = (uint32_t)length(run) + 1;
    out->kind = GWA_RULE_TRAIN;
    out->confidence = sure && out->optimizer ? 0.95f : out->optimizer ? 0.8f : 0.6f;
    return true;
}

int gwa_steps_learn_train(const struct gwa_steps *s, const struct gwa_token *tokens, size_t count,
                          bool last, struct gwa_rule *out)
{
    struct runs *r = calloc(1, sizeof(*r));
    struct known *known = calloc(1, sizeof(*known));
    if (r && known) {
        *r = (struct runs){.steps = s, .tokens = tokens};
        find_runs(r, count, known);
        if (r->count >= (last ? 1u : 7u))
            train_rule(r, known, out);
    }
    bool failed = !r || !known;
    free(r);
    free(known);
    return failed ? -ENOMEM : 0;
}
