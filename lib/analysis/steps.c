/* Steps: the first pass, and what holds the pieces together. */
#include "analysis.h"
#include "steps_internal.h"

#include <string.h>

struct gwa_steps *gwa_steps_new(const struct gwt_trace *trace, const char *range,
                                const char *kernel)
{
    struct gwa_steps *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->trace = (struct gwt_trace *)trace;
    s->range = range;
    s->kernel = kernel;
    s->attempt = GWA_LEARN_FIRST;
    s->match.last = INT64_MIN;
    s->found_by = range ? "range" : kernel ? "kernel" : "launches";
    if (gwa_match_new(&s->match)) {
        free(s);
        return NULL;
    }
    return s;
}

void gwa_steps_free(struct gwa_steps *s)
{
    if (!s)
        return;
    gwa_steps_place_free(s);
    gwa_match_free(&s->match);
    free(s->syms);
    free(s->threads);
    free(s->tokens);
    free(s->found);
    free(s->wanted);
    free(s->loads);
    free(s->list);
    free(s->graph_kernels);
    free(s->rows);
    free(s);
}

/* ---- asked for by name ---------------------------------------------------------------- */

enum { NOT_WANTED = 1, WANTED };

/* Whether a string is the range's name, or a kernel's that holds the text. */
static int wanted(struct gwa_steps *s, uint32_t id, bool *out)
{
    int rc = gwa_grow((void **)&s->wanted, &s->wanted_count, id, sizeof(*s->wanted));
    *out = false;
    if (rc)
        return rc == -ERANGE ? 0 : rc;
    if (!s->wanted[id]) {
        const char *text = gwt_string(s->trace, id);
        bool is = false;
        if (text && s->range) {
            is = !strcmp(text, s->range);
        } else if (text) {
            char *name = gwa_demangle(text);
            if (!name)
                return -ENOMEM;
            is = strstr(name, s->kernel) != NULL;
            free(name);
        }
        s->wanted[id] = is ? WANTED : NOT_WANTED;
    }
    *out = s->wanted[id] == WANTED;
    return 0;
}

static int wanted_kernel(struct gwa_steps *s, uint32_t signature, bool *out)
{
    uint32_t sym;
    int rc = gwa_steps_launch_sym(s, signature, &sym);
    if (rc || GWA_SYM_KIND(sym) != GWA_SYM_LAUNCH)
        return rc;
    return wanted(s, GWA_SYM_ID(sym), out);
}

static int asked(struct gwa_steps *s, const struct gwt_event *e, const struct gwa_token *token)
{
    struct gwa_matcher *m = &s->match;
    bool is = false;
    int rc = 0;
    if (s->range && (e->kind == GWT_RANGE_PUSH || e->kind == GWT_RANGE_START))
        rc = wanted(s, e->arg, &is);
    else if (s->kernel && token->sym && e->kind == GWT_LAUNCH)
        rc = wanted_kernel(s, e->arg, &is);
    if (!rc && is)
        rc = gwa_steps_begin(s, e->t0_ns, gwa_match_now(m));
    if (!rc && token->sym) {
        if (e->t1_ns > m->last)
            m->last = e->t1_ns;
        m->hash = gwa_poly_add(m->hash, token->sym);
        m->weight += gwa_token_weight(token);
        m->index++;
        if (token->sym == GWA_BACKWARD && m->open) {
            struct gwa_found *f = &s->found[s->found_count - 1];
            if (!s->in_backward)
                f->backwards++;
            f->backward_end = e->t1_ns;
        }
        s->in_backward = token->sym == GWA_BACKWARD;
    }
    return rc;
}

/* ---- found by themselves ----------------------------------------------------------------- */

/* post: there is a place behind the tokens that are kept. */
static int next_place(struct gwa_steps *s)
{
    return gwa_reserve((void **)&s->tokens, &s->tokens_room, s->tokens_count, sizeof(*s->tokens));
}

/* A token that was made in that place is not copied. */
static int keep(struct gwa_steps *s, const struct gwa_token *t)
{
    if (s->tokens_count >= GWA_LEARN_MOST)
        return 0;
    int rc = next_place(s);
    if (rc)
        return rc;
    if (t != &s->tokens[s->tokens_count])
        s->tokens[s->tokens_count] = *t;
    s->tokens_count++;
    return 0;
}

/* The rule no longer tells what comes: what came since is learnt from again. */
static bool lost(const struct gwa_steps *s, const struct gwa_token *t)
{
    const struct gwa_matcher *m = &s->match;
    size_t most = 8 * (size_t)(m->rule.kind == GWA_RULE_LOOP ? m->rule.weight : m->rule.length);
    if (m->rule.kind == GWA_RULE_TRAIN)
        return m->backwards_without > 4 * m->most_backwards + 4 ||
               m->index - m->run_index > (most > 1024 ? most : 1024);
    return t->sym == GWA_BACKWARD || s->tokens_count > (most > 1024 ? most : 1024);
}

static int follow(struct gwa_steps *s, const struct gwa_token *t)
{
    int rc = keep(s, t);
    if (rc || s->match.rule.kind == GWA_RULE_NONE)
        return rc;
    rc = gwa_match_token(s, t);
    if (!rc && lost(s, t))
        gwa_match_end(s);
    return rc;
}

/* When nothing recurs in so many, the next try comes after four times as many. */
static void give_up(struct gwa_steps *s)
{
    s->skip = s->skipped = s->skipped ? 4 * s->skipped : 4 * GWA_LEARN_MOST;
    s->tokens_count = 0;
    s->attempt = GWA_LEARN_FIRST;
}

/* Where a rule was learnt, the tokens that it was learnt from are told by it. */
static int learn(struct gwa_steps *s, bool last)
{
    struct gwa_rule rule;
    int rc = gwa_steps_learn(s, last, &rule);
    if (rc)
        return rc;
    if (rule.kind == GWA_RULE_NONE) {
        s->attempt *= 4;
        if (s->attempt > GWA_LEARN_MOST)
            give_up(s);
        return 0;
    }
    gwa_match_begin(&s->match, &rule);
    struct gwa_token *tokens = s->tokens;
    size_t count = s->tokens_count;
    s->tokens = NULL;
    s->tokens_count = s->tokens_room = 0;
    for (size_t i = 0; i < count && !rc; i++)
        rc = follow(s, &tokens[i]);
    free(tokens);
    for (s->attempt = GWA_LEARN_FIRST; s->attempt <= s->tokens_count;)
        s->attempt *= 4;
    if (s->attempt > GWA_LEARN_MOST)
        s->attempt = GWA_LEARN_MOST;
    return rc;
}

static int next_token(struct gwa_steps *s, const struct gwa_token *t)
{
    if (s->skip) {
        s->skip--;
        return 0;
    }
    int rc = follow(s, t);
    if (!rc && s->match.rule.kind == GWA_RULE_NONE && s->tokens_count >= s->attempt)
        rc = learn(s, false);
    return rc;
}

static void more_backward(struct gwa_steps *s, int64_t end)
{
    if (s->match.open)
        s->found[s->found_count - 1].backward_end = end;
    if (s->tokens_count && s->tokens[s->tokens_count - 1].sym == GWA_BACKWARD)
        s->tokens[s->tokens_count - 1].end = end;
}

static int module_loaded(struct gwa_steps *s, int64_t at)
{
    if (s->loads_count >= GWA_LOADS_MOST)
        return 0;
    int rc = gwa_reserve((void **)&s->loads, &s->loads_room, s->loads_count, sizeof(*s->loads));
    if (!rc)
        s->loads[s->loads_count++] = at;
    return rc;
}

int gwa_steps_event(struct gwa_steps *s, const struct gwt_event *e)
{
    int rc = next_place(s);
    if (rc)
        return rc;
    struct gwa_token *t = &s->tokens[s->tokens_count];
    rc = gwa_steps_token(s, e, t);
    if (!rc && e->kind == GWT_MODULE_LOAD)
        rc = module_loaded(s, e->t0_ns);
    if (rc)
        return rc;
    if (s->range || s->kernel)
        return asked(s, e, t);
    if (!t->sym) {
        if (e->kind == GWT_SYNC && s->tokens_count)
            s->tokens[s->tokens_count - 1].waits = 1;
        if (e->kind == GWT_SYNC && e->t1_ns > s->match.last)
            s->match.last = e->t1_ns;
        return 0;
    }
    if (e->t1_ns > s->match.last)
        s->match.last = e->t1_ns;
    if (t->sym == GWA_BACKWARD && s->in_backward) {
        more_backward(s, e->t1_ns);
        return 0;
    }
    s->in_backward = t->sym == GWA_BACKWARD;
    s->seen += gwa_token_weight(t);
    return next_token(s, t);
}

int gwa_steps_find(struct gwa_steps *s, size_t room)
{
    int rc = 0;
    gwa_match_end(s);
    /* What follows the last loop may hold another one, and that end too. */
    for (size_t left = SIZE_MAX; !rc && s->tokens_count && s->tokens_count < left;) {
        left = s->tokens_count;
        rc = learn(s, true);
        gwa_match_end(s);
    }
    if (s->found_count > room / GWA_STEP_BYTES)
        s->found_count = room / GWA_STEP_BYTES;
    free(s->tokens);
    s->tokens = NULL;
    s->tokens_count = s->tokens_room = 0;
    return rc ? rc : gwa_steps_kinds(s);
}

size_t gwa_steps_count(const struct gwa_steps *s)
{
    return s->count;
}

const struct gwa_step *gwa_steps_list(const struct gwa_steps *s)
{
    return s->list;
}

/* Below, the whole recording is the safer window. */
#define BELIEVED 0.5f

bool gwa_steps_steady(const struct gwa_steps *s, int64_t *from, int64_t *to)
{
    bool any = false;
    if (s->confidence < BELIEVED)
        return false;
    for (size_t i = 0; i < s->count; i++) {
        const struct gwa_step *step = &s->list[i];
        if (step->kind != GWA_STEP_STEADY && step->kind != GWA_STEP_UNUSUAL)
            continue;
        if (!any)
            *from = step->from;
        *to = step->to;
        any = true;
    }
    return any;
}
