/* A loop without backward passes: what recurs, and at which level.
 *
 * Symbols, and runs of 2, 4, 8 and 16 of them, that recur at even distances mark levels: the
 * layers of a network, its forward passes, the calls that make many of them. Distances are in
 * kernels, those of a replayed graph included. A step is the smallest level in which the host
 * takes part, by a copy or a blocking call, or which launches the same graph in each turn; where
 * there is none, the largest. A level whose longer turns are the usual one plus something
 * fetched from the host is a part of the next (layers that read a number each).
 */
#include "steps_loop.h"

#include <string.h>

#define SIZES_VARY   32u /* turns, if no two need be the same */
#define UNSEEN_LEAST 8u  /* tokens of a step that the host takes no part in */
#define WEIGHED      64u /* turns that are looked at for the gaps of a level */

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
        if (seen && (!had || changes(best, v) || part_of(l, best, v) || instead(best, v)))
            best = v;
        else if (!seen && v->weight >= UNSEEN_LEAST && v->same >= 0.7 && !had)
            best = v;
    }
    return best;
}

/* ---- where a turn begins, and how it is known ---------------------------------------------- */

static bool is_fetch(const struct loops *l, size_t i)
{
    return l->fetched[i + 1] > l->fetched[i];
}

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

static int64_t gap_before(struct loops *l, const struct level *v, size_t offset)
{
    const uint32_t *where = gwa_level_turns(l, v);
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->turns && n < WEIGHED; i++) {
        size_t at = where[i] + offset;
        if (where[i + 1] - where[i] == v->period && at)
            l->scratch[n++] = (uint64_t)(l->tokens[at].t0 - l->tokens[at - 1].t0);
    }
    if (!n)
        return 0;
    qsort(l->scratch, n, sizeof(*l->scratch), gwa_by_value);
    return (int64_t)l->scratch[n / 2];
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
        int64_t gap = gap_before(l, v, i);
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

/* ---- turns of several steps ------------------------------------------------------------------ */

#define RUNS_MOST 512u

/* A usual turn as runs of the same symbol: where each begins. */
struct symbols {
    uint32_t sym[RUNS_MOST], at[RUNS_MOST];
    uint32_t count;
};

static bool runs_of(const struct loops *l, const struct level *v, struct symbols *out)
{
    const struct gwa_token *tokens = l->tokens + v->usual;
    out->count = 0;
    for (uint32_t i = 0; i < v->period; i++) {
        if (tokens[i].sym == tokens[i ? i - 1 : v->period - 1].sym)
            continue;
        if (out->count == RUNS_MOST)
            return false;
        out->sym[out->count] = tokens[i].sym;
        out->at[out->count++] = i;
    }
    return true;
}

/* How many runs recur, over and over; 0: none. */
static uint32_t recurring(const struct symbols *r)
{
    for (uint32_t part = 2; part <= r->count / 2; part++) {
        bool is = r->count % part == 0;
        for (uint32_t i = part; i < r->count && is; i++)
            is = r->sym[i] == r->sym[i - part];
        if (is)
            return part;
    }
    return 0;
}

static bool once_in_part(const struct symbols *r, uint32_t part, uint32_t sym)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < part; i++)
        n += r->sym[i] == sym;
    return n == 1;
}

/* Turns whose parts are alike but for how often something is done in a row are that many steps.
 * One begins after what comes once in each, there where the host had most to do before. */
static void split(struct loops *l, const struct level *v, struct gwa_rule *out)
{
    struct symbols r;
    if (v->host || v->replays || v->same < 0.7 || !runs_of(l, v, &r))
        return;
    uint32_t part = recurring(&r), parts = part ? r.count / part : 0, best = part;
    int64_t most = -1;
    for (uint32_t i = 0; i < part; i++) {
        uint32_t before = i ? i - 1 : r.count - 1;
        int64_t gap = 0;
        bool single = true;
        for (uint32_t k = 0; k < parts; k++) {
            uint32_t end = r.at[i + k * part], from = r.at[(before + k * part) % r.count];
            single &= (end + v->period - from) % v->period == 1;
            gap += gap_before(l, v, end);
        }
        if (gap > most && single && once_in_part(&r, part, r.sym[before])) {
            most = gap;
            best = i;
        }
    }
    if (best == part)
        return;
    out->marker[0] = r.sym[best ? best - 1 : r.count - 1];
    out->marker_count = out->ahead = 1;
    out->back = 0;
    out->skip = gwa_level_turns(l, v)[0];
    out->length = v->period / parts;
    out->weight = (uint32_t)(v->weight / parts);
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

#define CYCLE_MAX 128u

/* Turns of the same kernels whose shapes recur only every so often are parts of a step, such
 * as layers that pick by their own masks. Not where each turn fetches its own data. */
static uint32_t shape_cycle(struct loops *l, const struct level *v)
{
    const uint32_t *where = gwa_level_turns(l, v);
    uint32_t differ = 0;
    if (v->fetches || v->turns < 6)
        return 1;
    for (uint32_t i = 0; i < v->turns; i++) {
        uint64_t hash = 0;
        for (uint32_t at = where[i]; at < where[i + 1]; at++)
            hash = gwa_poly_add(hash, l->tokens[at].shape);
        l->scratch[i] = hash;
        differ += i && hash != l->scratch[i - 1];
    }
    if (differ * 5 < v->turns)
        return 1;
    for (uint32_t q = 2; q <= CYCLE_MAX && 3 * q <= v->turns; q++) {
        uint32_t same = 0;
        for (uint32_t i = q; i < v->turns; i++)
            same += l->scratch[i] == l->scratch[i - q];
        if (same * 10 >= (v->turns - q) * 9)
            return q;
    }
    return 1;
}

int gwa_steps_learn_loop(const struct gwa_token *tokens, size_t count, bool last,
                         struct gwa_rule *out)
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
            mark(&l, v, beginning(&l, v), out);
            out->every = shape_cycle(&l, v);
            out->sketch = sketch_of(&l, v, out->every);
            out->length = v->period * out->every;
            out->weight = (uint32_t)v->weight * out->every;
            if (out->every == 1)
                split(&l, v, out);
            if (v->turns < SIZES_VARY && v->same < 0.7 && v->kin < 0.9)
                doubt = 0.5;
            out->confidence = (float)doubt * (float)((v->host      ? 0.9
                                                      : v->replays ? 0.7
                                                                   : 0.45) *
                                                     (v->even > v->same ? v->even : v->same));
        }
    }
    gwa_loops_free(&l);
    return rc;
}
