/* From the tokens so far to a rule. */
#include "steps_internal.h"

#include <string.h>

/* The thread that drives is the one that submits most. */
static uint16_t driver_of(const struct gwa_steps *s)
{
    uint32_t counts[256] = {0}, most = 0;
    uint16_t driver = UINT16_MAX;
    for (size_t i = 0; i < s->tokens_count; i++) {
        uint16_t thread = s->tokens[i].thread;
        if (s->tokens[i].sym != GWA_BACKWARD && thread < 256 && ++counts[thread] > most) {
            most = counts[thread];
            driver = thread;
        }
    }
    return driver;
}

/* Whether something is chosen from scores, as each token of a text is. */
static bool chooses(const struct gwa_steps *s, const struct gwa_token *tokens, size_t count)
{
    static const char *const words[] = {"ArgMax", "argmax", "ultinomial",
                                        "TopK",   "topk",   "ampling"};
    struct gwa_symset *seen = calloc(1, sizeof(*seen));
    bool found = false;
    for (size_t i = count / 2; seen && i < count && !found; i++) {
        uint32_t sym = tokens[i].sym;
        if (GWA_SYM_KIND(sym) != GWA_SYM_LAUNCH || gwa_symset_has(seen, sym))
            continue;
        gwa_symset_add(seen, sym);
        const char *name = gwt_string(s->trace, GWA_SYM_ID(sym));
        for (size_t w = 0; name && w < sizeof(words) / sizeof(*words); w++)
            found |= strstr(name, words[w]) != NULL;
    }
    free(seen);
    return found;
}

static bool backward_goes_on(const struct gwa_token *tokens, size_t count)
{
    unsigned passes = 0;
    bool late = false;
    for (size_t i = 0; i < count; i++)
        if (tokens[i].sym == GWA_BACKWARD) {
            passes++;
            late = i >= count / 2;
        }
    return passes > 1 && late;
}

int gwa_steps_learn(struct gwa_steps *s, bool last, struct gwa_rule *out)
{
    uint16_t driver = driver_of(s);
    size_t count = 0;
    int rc = 0;
    *out = (struct gwa_rule){.kind = GWA_RULE_NONE};
    if (driver >= s->thread_indices)
        return 0;
    struct gwa_token *tokens = malloc((s->tokens_count + 1) * sizeof(*tokens));
    if (!tokens)
        return -ENOMEM;
    for (size_t i = 0; i < s->tokens_count; i++)
        if (s->tokens[i].thread == driver || s->tokens[i].sym == GWA_BACKWARD)
            if (s->tokens[i].sym != GWA_BACKWARD || !count || tokens[count - 1].sym != GWA_BACKWARD)
                tokens[count++] = s->tokens[i];
    bool most = last || s->attempt >= GWA_LEARN_MOST;
    rc = gwa_steps_learn_train(s, tokens, count, most, out);
    /* What recurs between two backward passes is a part of a step. */
    if (!rc && out->kind == GWA_RULE_NONE && (most || !backward_goes_on(tokens, count)))
        rc = gwa_steps_learn_loop(s, tokens, count, most, out);
    if (out->kind == GWA_RULE_LOOP)
        out->by_token = chooses(s, tokens, count);
    free(tokens);
    out->driver = s->thread_ids[driver];
    return rc;
}
