/* Dense ids for runs of 1, 2, 4, 8 and 16 symbols: each is a pair of the shorter ones. */
#include "steps_loop.h"

struct pair {
    uint64_t key;
    uint32_t next; /* id + 1; 0: none */
};

/* What is rare has no longer runs that are not. */
static bool rare(const struct loops *l, unsigned length, uint32_t id)
{
    return l->start[length][id + 1] - l->start[length][id] <= TURNS_LEAST;
}

static int number_runs(struct loops *l, unsigned length)
{
    size_t n = l->count, mask = 1;
    while (mask < 2 * n)
        mask *= 2;
    struct pair *table = calloc(mask, sizeof(*table));
    if (!table)
        return -ENOMEM;
    mask--;
    uint32_t next = 0, *out = l->ids[length];
    size_t half = length ? (size_t)1 << (length - 1) : 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t key = l->tokens[i].sym;
        if (length) {
            const uint32_t *shorter = l->ids[length - 1];
            if (i + half >= n || shorter[i] == NO_ID || shorter[i + half] == NO_ID ||
                (length > 1 &&
                 (rare(l, length - 1, shorter[i]) || rare(l, length - 1, shorter[i + half])))) {
                out[i] = NO_ID;
                continue;
            }
            key = (uint64_t)shorter[i] << 32 | shorter[i + half];
        }
        size_t at = (size_t)(gwa_mix(key * GWA_POLY) & mask);
        while (table[at].next && table[at].key != key)
            at = (at + 1) & mask;
        if (!table[at].next)
            table[at] = (struct pair){.key = key, .next = ++next};
        out[i] = table[at].next - 1;
    }
    free(table);
    l->ids_count[length] = next;
    return 0;
}

static int list_runs(struct loops *l, unsigned length)
{
    uint32_t ids = l->ids_count[length];
    uint32_t *start = l->start[length] = calloc((size_t)ids + 2, sizeof(*start));
    uint32_t *where = l->where[length];
    if (!start)
        return -ENOMEM;
    for (size_t i = 0; i < l->count; i++)
        if (l->ids[length][i] != NO_ID)
            start[l->ids[length][i] + 2]++;
    for (uint32_t i = 2; i < ids + 2; i++)
        start[i] += start[i - 1];
    for (size_t i = 0; i < l->count; i++)
        if (l->ids[length][i] != NO_ID)
            where[start[l->ids[length][i] + 1]++] = (uint32_t)i;
    return 0; /* start[id] .. start[id + 1] are now those of id */
}

int gwa_loops_prepare(struct loops *l)
{
    size_t n = l->count;
    int rc = 0;
    for (unsigned k = 0; k < LENGTHS; k++) {
        l->ids[k] = malloc(n * sizeof(*l->ids[k]));
        l->where[k] = malloc(n * sizeof(*l->where[k]));
        if (!l->ids[k] || !l->where[k])
            return -ENOMEM;
        if ((rc = number_runs(l, k)) || (rc = list_runs(l, k)))
            return rc;
    }
    l->hashes = malloc((n + 1) * sizeof(*l->hashes));
    l->host = calloc(n + 1, sizeof(*l->host));
    l->fetched = calloc(n + 1, sizeof(*l->fetched));
    l->worked = calloc(n + 1, sizeof(*l->worked));
    l->replayed = calloc(n + 1, sizeof(*l->replayed));
    l->weights = calloc(n + 1, sizeof(*l->weights));
    l->scratch = malloc(n * sizeof(*l->scratch));
    l->pairs = calloc((size_t)l->ids_count[1] + 1, sizeof(*l->pairs));
    if (!l->pairs || !l->hashes || !l->host || !l->fetched || !l->worked || !l->scratch ||
        !l->replayed || !l->weights)
        return -ENOMEM;
    l->hashes[0] = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t sym = l->tokens[i].sym;
        unsigned direction = GWA_SYM_KIND(sym) == GWA_SYM_COPY ? GWA_COPY_DIRECTION(sym) : 0;
        bool fetches = direction == GWT_H2D;
        l->hashes[i + 1] = gwa_poly_add(l->hashes[i], sym);
        l->fetched[i + 1] = l->fetched[i] + fetches;
        l->host[i + 1] = l->host[i] + (fetches || direction == GWT_D2H || l->tokens[i].waits);
        l->weights[i + 1] = l->weights[i] + gwa_token_weight(&l->tokens[i]);
        l->replayed[i + 1] = l->replayed[i] + (GWA_SYM_KIND(sym) == GWA_SYM_GRAPH);
        l->worked[i + 1] = l->worked[i] + gwa_sym_works(sym);
    }
    return 0;
}

void gwa_loops_free(struct loops *l)
{
    for (unsigned k = 0; k < LENGTHS; k++) {
        free(l->ids[k]);
        free(l->start[k]);
        free(l->where[k]);
    }
    free(l->hashes);
    free(l->host);
    free(l->fetched);
    free(l->worked);
    free(l->replayed);
    free(l->weights);
    free(l->scratch);
    free(l->pairs);
}
