/* A loop without backward passes: what recurs, and at which level.
 *
 * Symbols, and runs of 2, 4, 8 and 16 of them, that recur at even distances mark levels: the
 * layers of a network, its forward passes, the calls that make many of them. Distances are in
 * kernels, those of a replayed graph included. A step is the smallest level in which the host
 * takes part, by a copy or a blocking call, or which launches the same graph in each turn; where
 * there is none, the largest. A level whose longer turns are the usual one plus something
 * fetched from the host is a part of the next (layers that read a number each), and so is one
 * that fetches again and again and reads nothing (layers whose weights are on the host).
 */
#include "steps_loop.h"

#include <string.h>

#define SIZES_VARY   32u /* turns, if no two need be the same */
#define UNSEEN_LEAST 8u  /* tokens of a step that the host takes no part in */

static bool works(const struct loops *l, const struct level *level)
{
    return l->worked[level->usual + level->period] > l->worked[level->usual];
}

static int by_period(const void *a, const void *b)
{
    const struct level *x = a, *y = b;
    if (x->period != y->period)
        return x->period < y->period ? -1 : 1;
    return x->turns > y->turns ? -1 : x->turns < y->turns;
}

/* Whether longer turns of `inner` begin as its usual one does, and go on. */
static bool only_extended(const struct loops *l, const struct level *inner)
{
    const uint32_t *where = gwa_level_turns(l, inner);
    size_t p = inner->period;
    uint64_t usual = gwa_poly_between(l->hashes[inner->usual], l->hashes[inner->usual + p], p);
    uint32_t longer = 0, extended = 0;
    for (uint32_t i = 0; i < inner->turns; i++) {
        if (where[i + 1] - where[i] <= p)
            continue;
        longer++;
        extended += gwa_poly_between(l->hashes[where[i]], l->hashes[where[i] + p], p) == usual;
    }
    return longer && extended * 10 >= longer * 9;
}

/* Turns that differ from one to the next, or take turns in being different, are parts of a
 * longer one; so are those of a few submissions, where much longer ones are all the same. */
static bool changes(const struct level *inner, const struct level *outer)
{
    bool take_turns = inner->kin < 0.95 && inner->same < 0.7 && inner->equal < 0.8 &&
                      outer->same > inner->same + 0.25 && outer->kin > inner->kin + 0.03;
    bool tiny = inner->weight < UNSEEN_LEAST && outer->weight > 8 * inner->weight &&
                outer->same >= 0.9 && outer->same > inner->same + 0.1;
    return take_turns || tiny || (inner->kin < 0.75 && inner->kin + 0.15 < outer->kin);
}

static bool part_of(const struct loops *l, const struct level *inner, const struct level *outer)
{
    uint32_t n = outer->turns ? inner->turns / outer->turns : 0;
    return n >= 2 && n <= 128 && outer->turns >= TURNS_LEAST && outer->fetches && !inner->fetches &&
           outer->same >= inner->same && only_extended(l, inner);
}

static bool is_fetch(const struct loops *l, size_t i)
{
    return l->fetched[i + 1] > l->fetched[i];
}

#define PLACES_LEAST 3u /* a batch comes in one, a table or a mask perhaps in another */

/* Whether a turn fetches in several places, with work between them, and gives nothing back. */
static bool only_fetches(const struct loops *l, const struct level *v)
{
    unsigned places = 0;
    for (size_t i = v->usual; i < v->usual + v->period; i++) {
        if (!is_fetch(l, i) && l->host[i + 1] > l->host[i])
            return false;
        places += is_fetch(l, i) && !(i > v->usual && is_fetch(l, i - 1));
    }
    return places >= PLACES_LEAST;
}

/* Layers that bring their weights, where each step brings others too. */
static bool brings_weights(const struct loops *l, const struct level *inner,
                           const struct level *outer)
{
    uint32_t n = outer->turns ? inner->turns / outer->turns : 0, others = 0;
    if (n < 2 || n > 128 || outer->turns < TURNS_LEAST || outer->same < inner->same ||
        !outer->fetches || !only_fetches(l, inner))
        return false;
    const uint32_t *where = gwa_level_turns(l, inner);
    uint32_t usual = l->fetched[inner->usual + inner->period] - l->fetched[inner->usual];
    for (uint32_t i = 0; i < inner->turns; i++)
        others += where[i + 1] - where[i] != inner->period &&
                  l->fetched[where[i + 1]] - l->fetched[where[i]] != usual;
    return others * 10 >= outer->turns * 9;
}

/* As large, as often, and more evenly. */
static bool instead(const struct level *had, const struct level *v)
{
    return v->even > had->even + 0.1 && v->turns >= had->turns &&
           v->weight >= had->weight - had->weight / 4 && v->weight <= had->weight + had->weight / 3;
}

/* Among so many symbols some few recur evenly in any program. */
static bool by_chance(const struct level *v)
{
    return v->turns < SIZES_VARY && v->same < 0.3;
}

/* NULL: none is believed. */
static const struct level *choose(struct loops *l)
{
    const struct level *best = NULL;
    uint64_t widest = 0;
    for (unsigned i = 0; i < l->levels_count; i++)
        gwa_level_judge(l, &l->levels[i]);
    qsort(l->levels, l->levels_count, sizeof(*l->levels), by_period);
    for (unsigned i = 0; i < l->levels_count; i++)
        if (works(l, &l->levels[i]) && l->levels[i].span > widest)
            widest = l->levels[i].span;
    for (unsigned i = 0; i < l->levels_count; i++) {
        const struct level *v = &l->levels[i];
        bool seen = v->host || v->replays, had = best && (best->host || best->replays);
        if (!works(l, v) || v->span * 2 < widest || by_chance(v))
            continue;
        if (seen && (!had || changes(best, v) || part_of(l, best, v) || instead(best, v) ||
                     brings_weights(l, best, v)))
            best = v;
        else if (!seen && v->weight >= UNSEEN_LEAST && v->same >= 0.7 && !had)
            best = v;
    }
    return best;
}

/* ---- where a turn begins, and how it is known ---------------------------------------------- */

/* Whether the run of symbols that begins there does so once in each turn. */
static bool once(const struct loops *l, const struct level *v, unsigned length, size_t at)
{
    uint32_t id = l->ids[length][at];
    struct level other;
    if (id == NO_ID)
        return false;
    uint32_t turns = l->start[length][id + 1] - l->start[length][id] - 1;
    return (turns <= 4 * v->turns || gwa_alike(v->turns, turns)) &&
           gwa_level_measure(l, length, id, &other) && gwa_alike(v->turns, other.turns) &&
           other.turns >= v->turns;
}

static bool once_any(const struct loops *l, const struct level *v, size_t at)
{
    bool is = false;
    for (unsigned k = 0; k < LENGTHS && !is; k++)
        is = once(l, v, k, at);
    return is;
}

/* Offset in a usual turn: at a copy to the device, else after the host has waited or read,
 * else anywhere, but where turns vary, at what happens once in each; there where the host had most
 * to do before. */
static size_t beginning(struct loops *l, const struct level *v)
{
    size_t best = 0, from = v->usual;
    int64_t most = -1;
    for (size_t i = 0; i < v->period; i++) {
        size_t before = i ? from + i - 1 : from + v->period - 1;
        bool here = !v->host || (v->fetches ? is_fetch(l, from + i) && !is_fetch(l, before)
                                            : l->host[before + 1] > l->host[before]);
        if (!here ||
            (!(v->same >= 0.9 || (v->host && v->equal >= 0.5)) && !once_any(l, v, from + i)))
            continue;
        int64_t gap = gwa_gap_before(l, v, i);
        if (gap > most) {
            most = gap;
            best = i;
        }
    }
    return best;
}

/* The first run of symbols from there on that occurs once in each turn. */
static void mark(const struct loops *l, const struct level *v, size_t offset, struct gwa_rule *out)
{
    for (size_t j = 0; j < v->period && j < GWA_STEPS_RING / 2; j++)
        for (unsigned k = 0; k < LENGTHS; k++) {
            size_t at = v->usual + (offset + j) % v->period;
            if (!once(l, v, k, at))
                continue;
            out->back = (uint32_t)j;
            out->skip = v->first ? gwa_level_turns(l, v)[0] : 0;
            out->marker_count = 1u << k;
            for (unsigned i = 0; i < out->marker_count; i++)
                out->marker[i] = l->tokens[at + i].sym;
            out->kind = GWA_RULE_LOOP;
            return;
        }
}

/* ---- the rule ----------------------------------------------------------------------------------
 */

static struct gwa_sketch sketch_of(const struct loops *l, const struct level *v, uint32_t every)
{
    struct gwa_sketch out = {.weight = (uint32_t)v->weight * every};
    memset(out.least, 0xff, sizeof(out.least));
    for (size_t i = v->usual; i < v->usual + v->period && i + 1 < l->count; i++) {
        uint64_t pair = gwa_mix((uint64_t)l->tokens[i].sym << 32 | l->tokens[i + 1].sym);
        for (unsigned k = 0; k < GWA_SKETCH; k++) {
            uint32_t hash = (uint32_t)gwa_mix(pair + k * GWA_POLY);
            if (hash < out.least[k])
                out.least[k] = hash;
        }
    }
    return out;
}

#define KERNELS_LEAST 8u /* of an optimizer; one parameter's are fewer */

/* An optimizer runs once a step: its kernels are close to one another but for one hole. */
static bool has_optimizer(const struct gwa_steps *s, struct loops *l, const struct level *v)
{
    uint32_t n = 0, holes = 0, known = 0;
    uint64_t *at = l->scratch;
    bool is = false;
    for (uint32_t i = 0; i < v->period; i++) {
        uint32_t sym = l->tokens[v->usual + i].sym;
        is = sym == known ? is : gwa_steps_is_optimizer(s, sym);
        known = sym;
        if (is)
            at[n++] = i;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t next = i + 1 < n ? at[i + 1] : at[0] + v->period;
        holes += (next - at[i]) * n > (uint64_t)2 * v->period;
    }
    return n >= KERNELS_LEAST && holes == 1;
}

#define ALIKE_LEAST 32u /* turns */

/* Something recurs within a turn and nothing beyond, often: it is more than one part of a step,
 * and no two turns differ as parts of one would. */
static bool holds_another(const struct loops *l, const struct level *v)
{
    bool is = false;
    for (unsigned i = 0; i < l->levels_count; i++) {
        const struct level *w = &l->levels[i];
        is |= (w->turns + 1) / 2 >= v->turns && w->period <= v->period / 2 && w->span * 2 > v->span;
    }
    return is && v->turns >= ALIKE_LEAST && v->same >= 0.98;
}

/* How sure a level is a step, by what the host does in it, else by what is launched. */
static double trust(const struct gwa_steps *s, struct loops *l, const struct level *v, bool parts,
                    bool split)
{
    if (v->host)
        return 0.9;
    if (v->replays)
        return 0.7;
    if (has_optimizer(s, l, v) || parts || (!split && holds_another(l, v)))
        return 0.6;
    return 0.45;
}

int gwa_steps_learn_loop(const struct gwa_steps *s, const struct gwa_token *tokens, size_t count,
                         bool last, struct gwa_rule *out)
{
    struct loops l = {.tokens = tokens, .count = count};
    if (count < TURNS_LEAST)
        return 0;
    int rc = gwa_loops_prepare(&l);
    if (!rc) {
        gwa_levels_find(&l);
        const struct level *v = choose(&l);
        double doubt = 1;
        if (v && (last ||
                  (v->turns >= 16 && v->span * 2 > l.weights[count] && (v->host || v->replays)))) {
            uint32_t first = 0;
            size_t offset = 0;
            out->every = gwa_shape_cycle(&l, v);
            bool parts = out->every > 1;
            bool gaps = !parts && gwa_gap_cycle(&l, v, &out->every, &offset, &first);
            mark(&l, v, gaps ? offset : beginning(&l, v), out);
            if (gaps)
                out->skip = first + out->back + out->marker_count - 1;
            out->sketch = sketch_of(&l, v, out->every);
            out->length = v->period * out->every;
            out->weight = (uint32_t)v->weight * out->every;
            bool split = out->every == 1 && gwa_split(&l, v, out);
            if (v->turns < SIZES_VARY && v->same < 0.7 && v->kin < 0.9)
                doubt = 0.5;
            out->confidence = (float)(doubt * trust(s, &l, v, parts, split) *
                                      (v->even > v->same ? v->even : v->same));
        }
    }
    gwa_loops_free(&l);
    return rc;
}
