/* Runs of symbols in the tokens of a loop, numbered, and where each occurs. */
#ifndef GWA_STEPS_LOOP_H
#define GWA_STEPS_LOOP_H

#include "steps_internal.h"

#define TURNS_LEAST 4u
#define LENGTHS     5u /* 1, 2, 4, 8, 16 */
#define LEVELS_MAX  48u
#define NO_ID       UINT32_MAX

struct level {
    unsigned length; /* log2 of the marker's symbols */
    uint32_t id;
    uint32_t first;     /* occurrences before the loop */
    uint32_t turns;     /* occurrences less one */
    uint32_t period;    /* median distance, tokens */
    uint64_t weight;    /* and theirs */
    double even;        /* share of weight in turns of about that length */
    double equal;       /* share of turns of the usual length */
    double kin;         /* how much of a turn the next one has too, in pairs of symbols */
    double same;        /* share in turns identical to the most frequent one */
    uint64_t span;      /* weight of tokens from first to last */
    size_t usual;       /* where a usual turn begins */
    bool host, fetches; /* the usual turn has a copy or a wait; a copy to the device */
    bool replays;       /* most turns launch the graph that the one before did */
};

struct loops {
    const struct gwa_token *tokens;
    size_t count;
    uint32_t *ids[LENGTHS];   /* of the run that begins at a token */
    uint32_t *start[LENGTHS]; /* by id: index into `where` of its first occurrence */
    uint32_t *where[LENGTHS]; /* positions, by id, in order */
    uint32_t ids_count[LENGTHS];
    uint64_t *hashes, *weights; /* of all before a token */
    /* counts before a token */
    uint32_t *host, *fetched, *worked, *replayed;
    uint64_t *scratch;
    uint32_t *pairs; /* by id of a run of two: how many are left of a turn */
    struct level levels[LEVELS_MAX];
    unsigned levels_count;
};

/* pre: tokens and count are set, the rest is 0. post: 0 or -ENOMEM; gwa_loops_free() either way. */
int gwa_loops_prepare(struct loops *l);
void gwa_loops_free(struct loops *l);

/* Into l->levels; each is to be judged before more than its turns, period and weight are used. */
void gwa_levels_find(struct loops *l);
void gwa_level_judge(struct loops *l, struct level *level);
/* Of one run of symbols. post: false where its distances are not even. */
bool gwa_level_measure(const struct loops *l, unsigned k, uint32_t id, struct level *out);
/* Where its turns begin, and the last one ends. */
const uint32_t *gwa_level_turns(const struct loops *l, const struct level *level);

/* The median time from the entry of the call before to that of the token at `offset` of a turn. */
int64_t gwa_gap_before(struct loops *l, const struct level *v, size_t offset);
/* How many turns are one step, by what is launched; 1: cannot be told. */
uint32_t gwa_shape_cycle(struct loops *l, const struct level *v);
/* And by the host's time before them. post: false, or also where in a turn a step begins, and the
 * token that one does at. */
bool gwa_gap_cycle(struct loops *l, const struct level *v, uint32_t *every, size_t *offset,
                   uint32_t *begin);
/* Whether a turn falls into several steps: changes the rule if so. */
bool gwa_split(struct loops *l, const struct level *v, struct gwa_rule *out);

static inline bool gwa_alike(uint32_t a, uint32_t b)
{
    uint32_t d = a > b ? a - b : b - a;
    return d <= 2 || d * 20 <= a;
}

static inline int gwa_by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

#endif
