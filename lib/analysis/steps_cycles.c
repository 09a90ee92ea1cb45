/* Turns of a level that are a part of a step each, or several steps. */
#include "steps_loop.h"

#include <string.h>

#define WEIGHED 64u /* turns that are looked at for the gaps of a level */

int64_t gwa_gap_before(struct loops *l, const struct level *v, size_t offset)
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

/* ---- parts of a step ---------------------------------------------------------------------------
 */

#define CYCLE_MAX 128u

/* Turns of the same kernels whose shapes recur only every so often are parts of a step, such
 * as layers that pick by their own masks. Not where each turn fetches its own data. */
uint32_t gwa_shape_cycle(struct loops *l, const struct level *v)
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

/* The host's time before the token at `offset` of each turn, and its median. */
static int64_t gaps_at(const struct loops *l, const struct level *v, size_t offset)
{
    const uint32_t *where = gwa_level_turns(l, v);
    uint64_t *gaps = l->scratch, *sorted = gaps + v->turns;
    for (uint32_t i = 0; i < v->turns; i++) {
        size_t at = where[i] + offset;
        int64_t gap = at && at < l->count ? l->tokens[at].t0 - l->tokens[at - 1].end : 0;
        gaps[i] = gap > 0 ? (uint64_t)gap : 0;
    }
    memcpy(sorted, gaps, v->turns * sizeof(*gaps));
    qsort(sorted, v->turns, sizeof(*sorted), gwa_by_value);
    return (int64_t)sorted[v->turns / 2];
}

/* The distance of most neighbours among the turns before which the host took long. */
static uint32_t usual_distance(const uint64_t *gaps, uint32_t turns, uint64_t limit)
{
    uint32_t times[CYCLE_MAX + 1] = {0}, best = 0, before = 0;
    bool any = false;
    for (uint32_t i = 0; i < turns; i++) {
        if (gaps[i] <= limit)
            continue;
        if (any && i - before <= CYCLE_MAX && ++times[i - before] > times[best])
            best = i - before;
        any = true;
        before = i;
    }
    return best;
}

/* Something else may come at regular times too, but hardly so often at the same place. */
#define CYCLES_LEAST 16u
#define SHORT_NS     1000u /* no gap to speak of */

/* Which turn of a cycle is nearly always the one with the long gap, and hardly any other is. */
static bool one_in_cycle(const uint64_t *gaps, uint32_t turns, uint64_t limit, uint32_t every,
                         uint32_t *first)
{
    uint32_t cycles = turns / every, rest = 0, best = 0, times[CYCLE_MAX] = {0};
    for (uint32_t i = 0; i < cycles * every; i++)
        times[i % every] += gaps[i] > limit;
    for (uint32_t i = 1; i < every; i++)
        best = times[i] > times[best] ? i : best;
    for (uint32_t i = 0; i < every; i++)
        rest += i == best ? 0 : times[i];
    *first = best;
    return cycles >= CYCLES_LEAST && times[best] * 10 >= cycles * 9 &&
           rest * 10 <= cycles * (every - 1);
}

/* Turns that are the same in everything, but before every so many the host takes at least twice
 * as long: what a step has around its layers. Which is a cycle's first, and where it begins. */
bool gwa_gap_cycle(struct loops *l, const struct level *v, uint32_t *every, size_t *offset,
                   uint32_t *begin)
{
    double most = 0;
    if (v->host || v->replays || v->same < 0.9 || v->period < 2)
        return false;
    for (size_t i = 0; i < v->period; i++) {
        uint64_t usual = (uint64_t)gaps_at(l, v, i), limit = 2 * usual + SHORT_NS, sum = 0;
        uint32_t q = usual_distance(l->scratch, v->turns, limit), first;
        if (q < 2 || !one_in_cycle(l->scratch, v->turns, limit, q, &first))
            continue;
        for (uint32_t k = first; k < v->turns; k += q)
            sum += l->scratch[k] < 10 * limit ? l->scratch[k] : 10 * limit;
        double ratio = (double)sum / ((double)(v->turns / q) * (double)limit);
        if (ratio <= most)
            continue;
        most = ratio;
        *every = q;
        *offset = i;
        *begin = gwa_level_turns(l, v)[first] + (uint32_t)i;
    }
    return most > 0;
}

/* ---- several steps ------------------------------------------------------------------------------
 */

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
bool gwa_split(struct loops *l, const struct level *v, struct gwa_rule *out)
{
    struct symbols r;
    if (v->host || v->replays || v->same < 0.7 || !runs_of(l, v, &r))
        return false;
    uint32_t part = recurring(&r), parts = part ? r.count / part : 0, best = part;
    double most = -1;
    for (uint32_t i = 0; i < part; i++) {
        uint32_t before = i ? i - 1 : r.count - 1;
        double gap = 0;
        bool single = true;
        for (uint32_t k = 0; k < parts; k++) {
            uint32_t end = r.at[i + k * part], from = r.at[(before + k * part) % r.count];
            single &= (end + v->period - from) % v->period == 1;
            gap += (double)gwa_gap_before(l, v, end);
        }
        if (gap > most && single && once_in_part(&r, part, r.sym[before])) {
            most = gap;
            best = i;
        }
    }
    if (best == part)
        return false;
    out->marker[0] = r.sym[best ? best - 1 : r.count - 1];
    out->marker_count = out->ahead = 1;
    out->back = 0;
    out->skip = gwa_level_turns(l, v)[0];
    out->length = v->period / parts;
    out->weight = (uint32_t)(v->weight / parts);
    return true;
}
