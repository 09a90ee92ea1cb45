/* A loop without backward passes: what recurs, and at which level.
 *
 * Symbols, and runs of 2, 4, 8 and 16 of them, that recur at even distances mark levels: the
 * layers of a network, its forward passes, the calls that make many of them. A step is the
 * smallest level in which the host takes part, by a copy or a blocking call; where it takes
 * part in none, the largest. A level whose longer turns are the usual one plus something
 * fetched from the host is a part of the next (layers that read a number each).
 */
#include "steps_loop.h"

#define TURNS_LEAST  4u
#define SIZES_VARY   32u /* turns, if no two need be the same */
#define UNSEEN_LEAST 8u  /* tokens of a step that the host takes no part in */
#define WEIGHED      64u /* turns that are looked at for the gaps of a level */

/* ---- levels ---------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The median of at most so many distances, evenly chosen. */
#define MEDIAN_OF 65u

static uint32_t median_distance(const uint32_t *where, uint32_t turns)
{
    uint64_t some[MEDIAN_OF];
    uint32_t n = 0;
    double stride = turns > MEDIAN_OF ? (double)turns / MEDIAN_OF : 1;
    for (double at = 0; n < MEDIAN_OF && at < turns; at += stride, n++)
        some[n] = where[(uint32_t)at + 1] - where[(uint32_t)at];
    qsort(some, n, sizeof(*some), by_value);
    return (uint32_t)some[n / 2];
}

/* post: false where its distances are not even. */
static bool measure(const struct loops *l, unsigned k, uint32_t id, struct level *out)
{
    const uint32_t *where = l->where[k] + l->start[k][id];
    uint32_t turns = l->start[k][id + 1] - l->start[k][id];
    if (turns <= TURNS_LEAST)
        return false;
    turns--;
    uint32_t period = median_distance(where, turns), even = 0;
    uint64_t tokens = 0;
    for (uint32_t i = 0; i < turns; i++) {
        uint32_t d = where[i + 1] - where[i];
        bool is = d >= period - period / 4 && d <= period + period / 3;
        even += is;
        tokens += is ? d : 0;
    }
    size_t span = where[turns] - where[0];
    *out = (struct level){.length = k,
                          .id = id,
                          .turns = turns,
                          .period = period,
                          .even = (double)tokens / (double)span,
                          .span = span};
    return even * 10 >= turns * 7 && out->even >= 0.6;
}

static bool alike(uint32_t a, uint32_t b)
{
    uint32_t d = a > b ? a - b : b - a;
    return d <= 2 || d * 20 <= a;
}

static void add_level(struct loops *l, const struct level *level)
{
    for (unsigned i = 0; i < l->levels_count; i++) {
        struct level *had = &l->levels[i];
        if (!alike(had->turns, level->turns) || !alike(had->period, level->period))
            continue;
        if (level->even > had->even + 0.02)
            *had = *level;
        return;
    }
    if (l->levels_count < LEVELS_MAX)
        l->levels[l->levels_count++] = *level;
}

static void find_levels(struct loops *l)
{
    for (unsigned k = 0; k < LENGTHS; k++)
        for (uint32_t id = 0; id < l->ids_count[k]; id++) {
            struct level level;
            if (measure(l, k, id, &level))
                add_level(l, &level);
        }
}

static const uint32_t *turns_of(const struct loops *l, const struct level *level)
{
    return l->where[level->length] + l->start[level->length][level->id];
}

static uint64_t turn_hash(const struct loops *l, const uint32_t *where, uint32_t i)
{
    return gwa_poly_between(l->hashes[where[i]], l->hashes[where[i + 1]], where[i + 1] - where[i]);
}

#define COMPARED        16u
#define COMPARED_TOKENS 65536u

/* How alike two neighbours are, whatever the order. */
static double alike_turns(const struct loops *l, size_t a, size_t b, size_t end)
{
    const uint32_t *ids = l->ids[1];
    size_t both = 0, most = b - a > end - b ? b - a : end - b;
    for (size_t i = a; i < b; i++)
        if (ids[i] != NO_ID)
            l->pairs[ids[i]]++;
    for (size_t i = b; i < end; i++)
        if (ids[i] != NO_ID && l->pairs[ids[i]]) {
            l->pairs[ids[i]]--;
            both++;
        }
    for (size_t i = a; i < b; i++)
        if (ids[i] != NO_ID)
            l->pairs[ids[i]] = 0;
    return (double)both / (double)most;
}

static double kinship(const struct loops *l, const struct level *level)
{
    const uint32_t *where = turns_of(l, level);
    uint32_t n = COMPARED_TOKENS / level->period, done = 0;
    double sum = 0;
    n = n > COMPARED ? COMPARED : n < 2 ? 2 : n;
    uint32_t stride = level->turns / n ? level->turns / n : 1;
    for (uint32_t i = 0; i + 2 <= level->turns && done < n; i += stride, done++)
        sum += alike_turns(l, where[i], where[i + 1], where[i + 2]);
    return done ? sum / done : 0;
}

static double equal_turns(const struct loops *l, const struct level *level)
{
    const uint32_t *where = turns_of(l, level);
    uint32_t n = 0;
    for (uint32_t i = 0; i < level->turns; i++)
        n += where[i + 1] - where[i] == level->period;
    return (double)n / level->turns;
}

/* The most frequent turn, and how much of the whole it is. */
static void judge(struct loops *l, struct level *level)
{
    const uint32_t *where = turns_of(l, level);
    uint64_t best = 0, *hashes = l->scratch;
    uint32_t most = 0;
    for (uint32_t i = 0; i < level->turns; i++)
        hashes[i] = turn_hash(l, where, i);
    qsort(hashes, level->turns, sizeof(*hashes), by_value);
    for (uint32_t i = 0, n = 0; i < level->turns; i++) {
        n = i && hashes[i] == hashes[i - 1] ? n + 1 : 1;
        if (n > most) {
            most = n;
            best = hashes[i];
        }
    }
    /* Sizes that vary: no two are the same, so one of median length stands for all. */
    bool rare = most < 3;
    uint64_t same = 0;
    bool found = false;
    for (uint32_t i = 0; i < level->turns; i++) {
        uint32_t d = where[i + 1] - where[i];
        bool is = rare ? d == level->period : turn_hash(l, where, i) == best;
        if (!is)
            continue;
        same += d;
        if (!found)
            level->usual = where[i];
        found = true;
        if (!rare)
            level->period = d;
    }
    if (!found)
        level->usual = where[0];
    level->same = rare ? 0 : (double)same / (double)level->span;
    size_t end = level->usual + level->period;
    if (end > l->count)
        end = l->count;
    level->kin = kinship(l, level);
    level->equal = equal_turns(l, level);
    level->host = l->host[end] > l->host[level->usual];
    level->fetches = l->fetched[end] > l->fetched[level->usual];
}

static bool works(const struct loops *l, const struct level *level)
{
    return l->worked[level->usual + level->period] > l->worked[level->usual];
}

static int by_period(const void *a, const void *b)
{
    const struct level *x = a, *y = b;
    return x->period < y->period ? -1 : x->period > y->period;
}

/* Whether longer turns of `inner` begin as its usual one does, and go on. */
static bool only_extended(const struct loops *l, const struct level *inner)
{
    const uint32_t *where = turns_of(l, inner);
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
    bool tiny = inner->period < UNSEEN_LEAST && outer->period > 8 * inner->period &&
                outer->same >= 0.9 && outer->same > inner->same + 0.1;
    return take_turns || tiny || (inner->kin < 0.75 && inner->kin + 0.15 < outer->kin);
}

static bool part_of(const struct loops *l, const struct level *inner, const struct level *outer)
{
    uint32_t n = outer->turns ? inner->turns / outer->turns : 0;
    return n >= 2 && n <= 128 && outer->turns >= TURNS_LEAST && outer->fetches && !inner->fetches &&
           outer->same >= inner->same && only_extended(l, inner);
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
    size_t widest = 0;
    for (unsigned i = 0; i < l->levels_count; i++)
        judge(l, &l->levels[i]);
    qsort(l->levels, l->levels_count, sizeof(*l->levels), by_period);
    for (unsigned i = 0; i < l->levels_count; i++)
        if (works(l, &l->levels[i]) && l->levels[i].span > widest)
            widest = l->levels[i].span;
    for (unsigned i = 0; i < l->levels_count; i++) {
        const struct level *v = &l->levels[i];
        bool graph = v->period == 1 && GWA_SYM_KIND(l->tokens[v->usual].sym) == GWA_SYM_GRAPH;
        if (!works(l, v) || v->span * 2 < widest || by_chance(v))
            continue;
        if ((v->host || graph) && (!best || !best->host || changes(best, v) || part_of(l, best, v)))
            best = v;
        else if (!v->host && v->period >= UNSEEN_LEAST && v->same >= 0.7 && (!best || !best->host))
            best = v;
    }
    return best;
}

/* ---- where a turn begins, and how it is known ---------------------------------------------- */

static bool is_fetch(const struct loops *l, size_t i)
{
    return l->fetched[i + 1] > l->fetched[i];
}

static int64_t gap_before(struct loops *l, const struct level *v, size_t offset)
{
    const uint32_t *where = turns_of(l, v);
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->turns && n < WEIGHED; i++) {
        size_t at = where[i] + offset;
        if (where[i + 1] - where[i] == v->period && at)
            l->scratch[n++] = (uint64_t)(l->tokens[at].t0 - l->tokens[at - 1].t0);
    }
    if (!n)
        return 0;
    qsort(l->scratch, n, sizeof(*l->scratch), by_value);
    return (int64_t)l->scratch[n / 2];
}

/* Offset in a usual turn: at a copy to the device, else after the host has waited or read,
 * else anywhere; there where the host had most to do before. */
static size_t beginning(struct loops *l, const struct level *v)
{
    size_t best = 0, from = v->usual;
    int64_t most = -1;
    for (size_t i = 0; i < v->period; i++) {
        size_t before = i ? from + i - 1 : from + v->period - 1;
        bool here = !v->host || (v->fetches ? is_fetch(l, from + i) && !is_fetch(l, before)
                                            : l->host[before + 1] > l->host[before]);
        if (!here)
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
            uint32_t id = l->ids[k][at];
            struct level other;
            if (id == NO_ID || !measure(l, k, id, &other) || !alike(v->turns, other.turns))
                continue;
            out->back = (uint32_t)j;
            out->marker_count = 1u << k;
            for (unsigned i = 0; i < out->marker_count; i++)
                out->marker[i] = l->tokens[at + i].sym;
            out->kind = GWA_RULE_LOOP;
            return;
        }
}

#define CYCLE_MAX 128u

/* Turns of the same kernels whose shapes recur only every so often are parts of a step, such
 * as layers that pick by their own masks. Not where each turn fetches its own data. */
static uint32_t shape_cycle(struct loops *l, const struct level *v)
{
    const uint32_t *where = turns_of(l, v);
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
        find_levels(&l);
        const struct level *v = choose(&l);
        double doubt = 1;
        if (v && (last || (v->turns >= 16 && v->span * 2 > count))) {
            mark(&l, v, beginning(&l, v), out);
            out->every = shape_cycle(&l, v);
            out->length = v->period * out->every;
            if (v->turns < SIZES_VARY && v->same < 0.7 && v->kin < 0.9)
                doubt = 0.5;
            out->confidence = (float)doubt * (float)((v->host ? 0.9 : 0.45) *
                                                     (v->even > v->same ? v->even : v->same));
        }
    }
    gwa_loops_free(&l);
    return rc;
}
