/* Runs of symbols in the tokens of a loop, numbered, and where each occurs. */
#ifndef GWA_STEPS_LOOP_H
#define GWA_STEPS_LOOP_H

#include "steps_internal.h"

#define LENGTHS    5u /* 1, 2, 4, 8, 16 */
#define LEVELS_MAX 48u
#define NO_ID      UINT32_MAX

struct level {
    unsigned length; /* log2 of the marker's symbols */
    uint32_t id;
    uint32_t turns;     /* occurrences less one */
    uint32_t period;    /* median distance, tokens */
    double even;        /* share of tokens in turns of about that length */
    double equal;       /* share of turns of the usual length */
    double kin;         /* how much of a turn the next one has too, in pairs of symbols */
    double same;        /* share in turns identical to the most frequent one */
    size_t span, usual; /* tokens from first to last; where a usual turn begins */
    bool host, fetches; /* the usual turn has a copy or a wait; a copy to the device */
};

struct loops {
    const struct gwa_token *tokens;
    size_t count;
    uint32_t *ids[LENGTHS];   /* of the run that begins at a token */
    uint32_t *start[LENGTHS]; /* by id: index into `where` of its first occurrence */
    uint32_t *where[LENGTHS]; /* positions, by id, in order */
    uint32_t ids_count[LENGTHS];
    uint64_t *hashes;                  /* of all before a token */
    uint32_t *host, *fetched, *worked; /* counts before a token */
    uint64_t *scratch;
    uint32_t *pairs; /* by id of a run of two: how many are left of a turn */
    struct level levels[LEVELS_MAX];
    unsigned levels_count;
};

/* pre: tokens and count are set, the rest is 0. post: 0 or -ENOMEM; gwa_loops_free() either way. */
int gwa_loops_prepare(struct loops *l);
void gwa_loops_free(struct loops *l);

#endif
