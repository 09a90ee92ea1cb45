/* Levels: runs of symbols that recur at even distances, and what their turns are like. */
#include "steps_loop.h"

/* The median of at most so many distances, evenly chosen. */
#define MEDIAN_OF 65u

/* Distances are mostly alike: few need to move. */
static void sort_few(uint64_t *list, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        uint64_t v = list[i];
        uint32_t j = i;
        for (; j && list[j - 1] > v; j--)
            list[j] = list[j - 1];
        list[j] = v;
    }
}

enum median { OF_TOKENS, OF_WEIGHTS, OF_MOST_WEIGHT /* half the weight is in longer turns */ };

static uint64_t median_distance(const struct loops *l, const uint32_t *where, uint32_t turns,
                                enum median which)
{
    uint64_t some[MEDIAN_OF], sum = 0, half = 0;
    uint32_t n = 0, i = 0;
    double stride = turns > MEDIAN_OF ? (double)turns / MEDIAN_OF : 1;
    for (double at = 0; n < MEDIAN_OF && at < turns; at += stride, n++) {
        uint32_t from = where[(uint32_t)at], to = where[(uint32_t)at + 1];
        some[n] = which == OF_TOKENS ? to - from : l->weights[to] - l->weights[from];
        sum += some[n];
    }
    sort_few(some, n);
    if (which != OF_MOST_WEIGHT)
        return some[n / 2];
    while (i + 1 < n && (half += some[i]) * 2 < sum)
        i++;
    return some[i];
}

static bool even_turn(const struct loops *l, const uint32_t *where, uint64_t weight)
{
    uint64_t w = l->weights[where[1]] - l->weights[where[0]];
    return w >= weight - weight / 4 && w <= weight + weight / 3;
}

/* post: false where its distances are not even. */
static bool evenly(const struct loops *l, const uint32_t *where, struct level *out)
{
    uint64_t all = 0;
    uint32_t even = 0;
    for (uint32_t i = 0; i < out->turns; i++) {
        bool is = even_turn(l, where + i, out->weight);
        even += is;
        all += is ? l->weights[where[i + 1]] - l->weights[where[i]] : 0;
    }
    out->span = l->weights[where[out->turns]] - l->weights[where[0]];
    out->even = (double)all / (double)out->span;
    if (even * 10 < out->turns * 7 || out->even < 0.6)
        return false;
    out->period = (uint32_t)median_distance(l, where, out->turns, OF_TOKENS);
    return true;
}

/* The stretch with the most even turns, of which seven in ten are. */
static void longest_even(const struct loops *l, const uint32_t *where, struct level *out)
{
    int64_t sum = 0, best = 0;
    uint32_t from = 0, turns = out->turns;
    out->turns = 0;
    for (uint32_t i = 0; i < turns; i++) {
        sum += even_turn(l, where + i, out->weight) ? 3 : -7;
        if (sum <= 0) {
            sum = 0;
            from = i + 1;
        } else if (sum > best) {
            best = sum;
            out->first = from;
            out->turns = i + 1 - from;
        }
    }
}

/* What is even as a whole; or, where the same happens elsewhere too, a stretch of turns of the
 * size that most work is in. */
bool gwa_level_measure(const struct loops *l, unsigned k, uint32_t id, struct level *out)
{
    const uint32_t *where = l->where[k] + l->start[k][id];
    uint32_t turns = l->start[k][id + 1] - l->start[k][id];
    if (turns <= TURNS_LEAST)
        return false;
    turns--;
    *out = (struct level){.length = k, .id = id, .turns = turns};
    out->weight = median_distance(l, where, turns, OF_WEIGHTS);
    if (evenly(l, where, out))
        return true;
    out->weight = median_distance(l, where, turns, OF_MOST_WEIGHT);
    longest_even(l, where, out);
    return out->turns >= TURNS_LEAST && evenly(l, where + out->first, out);
}

static void add_level(struct loops *l, const struct level *level)
{
    for (unsigned i = 0; i < l->levels_count; i++) {
        struct level *had = &l->levels[i];
        if (!gwa_alike(had->turns, level->turns) || !gwa_alike(had->period, level->period))
            continue;
        if (level->even > had->even + 0.02 ||
            (level->turns > had->turns && level->even >= had->even - 0.02))
            *had = *level;
        return;
    }
    if (l->levels_count < LEVELS_MAX)
        l->levels[l->levels_count++] = *level;
}

void gwa_levels_find(struct loops *l)
{
    for (unsigned k = 0; k < LENGTHS; k++)
        for (uint32_t id = 0; id < l->ids_count[k]; id++) {
            struct level level;
            if (gwa_level_measure(l, k, id, &level))
                add_level(l, &level);
        }
}

const uint32_t *gwa_level_turns(const struct loops *l, const struct level *level)
{
    return l->where[level->length] + l->start[level->length][level->id] + level->first;
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
    const uint32_t *where = gwa_level_turns(l, level);
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
    const uint32_t *where = gwa_level_turns(l, level);
    uint32_t n = 0;
    for (uint32_t i = 0; i < level->turns; i++)
        n += where[i + 1] - where[i] == level->period;
    return (double)n / level->turns;
}

static uint32_t first_graph(const struct loops *l, size_t from, size_t to)
{
    for (size_t i = from; i < to && l->replayed[to] > l->replayed[from]; i++)
        if (GWA_SYM_KIND(l->tokens[i].sym) == GWA_SYM_GRAPH)
            return l->tokens[i].sym;
    return 0;
}

/* Layers that are captured one by one are a graph each; the same graph again is the same work. */
static bool replays(const struct loops *l, const struct level *level)
{
    const uint32_t *where = gwa_level_turns(l, level);
    uint32_t same = 0, before = 0;
    for (uint32_t i = 0; i < level->turns; i++) {
        uint32_t sym = first_graph(l, where[i], where[i + 1]);
        same += sym && sym == before;
        before = sym;
    }
    return same * 2 > level->turns;
}

/* The most frequent turn, and how much of the whole it is. */
void gwa_level_judge(struct loops *l, struct level *level)
{
    const uint32_t *where = gwa_level_turns(l, level);
    uint64_t best = 0, *hashes = l->scratch;
    uint32_t most = 0;
    for (uint32_t i = 0; i < level->turns; i++)
        hashes[i] = turn_hash(l, where, i);
    qsort(hashes, level->turns, sizeof(*hashes), gwa_by_value);
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
        same += l->weights[where[i + 1]] - l->weights[where[i]];
        if (!found)
            level->usual = where[i];
        found = true;
        if (rare)
            continue;
        level->period = d;
        level->weight = l->weights[where[i + 1]] - l->weights[where[i]];
    }
    if (!found)
        level->usual = where[0];
    level->same = rare ? 0 : (double)same / (double)level->span;
    size_t end = level->usual + level->period;
    if (end > l->count)
        end = l->count;
    level->kin = kinship(l, level);
    level->equal = equal_turns(l, level);
    level->replays = replays(l, level);
    level->host = l->host[end] > l->host[level->usual];
    level->fetches = l->fetched[end] > l->fetched[level->usual];
}
