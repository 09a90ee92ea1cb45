/* A learnt rule, applied to one token after another. */
#include "steps_internal.h"

#include <string.h>

#define RING(index) ((index) % GWA_STEPS_RING)

int gwa_match_new(struct gwa_matcher *m)
{
    m->ring = malloc(GWA_STEPS_RING * sizeof(*m->ring));
    return m->ring ? 0 : -ENOMEM;
}

void gwa_match_free(struct gwa_matcher *m)
{
    free(m->ring);
    m->ring = NULL;
}

void gwa_match_begin(struct gwa_matcher *m, const struct gwa_rule *rule)
{
    m->rule = *rule;
    m->index = m->hash = m->weight = 0;
    m->turn = 0;
    m->open = m->pending = m->after_backward = false;
    m->usual_end = INT64_MAX;
    m->backwards_without = 0;
    m->most_backwards = 1;
    m->run_index = 0;
}

/* ---- steps ------------------------------------------------------------------------------ */

static void close_step(struct gwa_steps *s, int64_t t, struct gwa_before at)
{
    struct gwa_matcher *m = &s->match;
    if (!m->open)
        return;
    struct gwa_found *f = &s->found[s->found_count - 1];
    uint64_t weight = at.weight > m->from.weight ? at.weight - m->from.weight : 0;
    f->to = t > f->from ? t : f->from;
    f->weight = weight > UINT32_MAX ? UINT32_MAX : (uint32_t)weight;
    f->hash = gwa_poly_between(m->from.hash, at.hash,
                               at.index > m->from.index ? at.index - m->from.index : 0);
    m->open = false;
}

static int add_found(struct gwa_steps *s, int64_t from, uint8_t kind)
{
    if (s->found_count >= GWA_STEPS_MAX)
        return 0;
    int rc = gwa_reserve((void **)&s->found, &s->found_room, s->found_count, sizeof(*s->found));
    if (!rc)
        s->found[s->found_count++] = (struct gwa_found){.from = from,
                                                        .to = from,
                                                        .backward_end = INT64_MIN,
                                                        .kind = kind,
                                                        .loop = s->match.loop};
    return rc;
}

/* Only the newest tokens are not understood yet. */
static void forget(struct gwa_steps *s, uint64_t newest)
{
    if (newest >= s->tokens_count)
        return;
    memmove(s->tokens, s->tokens + s->tokens_count - newest, newest * sizeof(*s->tokens));
    s->tokens_count = newest;
}

int gwa_steps_begin(struct gwa_steps *s, int64_t t, struct gwa_before at)
{
    struct gwa_matcher *m = &s->match;
    if (s->found_count && t < s->found[s->found_count - 1].from)
        t = s->found[s->found_count - 1].from;
    close_step(s, t, at);
    if (s->found_count >= GWA_STEPS_MAX)
        return 0;
    int rc = add_found(s, t, GWA_STEP_STEADY);
    if (rc)
        return rc;
    m->open = true;
    m->from = at;
    m->usual_end = INT64_MAX;
    m->backwards_without = 0;
    /* What came before the step is understood. */
    forget(s, m->index - at.index + 1);
    return 0;
}

/* ---- a loop with backward passes -------------------------------------------------------- */

/* Work between the optimizer and the next step as large as half a forward pass is no step's:
 * an evaluation, most likely. */
static int leave_out(struct gwa_steps *s)
{
    struct gwa_matcher *m = &s->match;
    if (!m->open || !m->work_over || m->begin_index - m->over_index <= m->rule.forward / 2)
        return 0;
    close_step(s, m->over_at, m->ring[RING(m->over_index)].before);
    int rc = add_found(s, m->over_at, GWA_STEP_OTHER);
    m->open = rc == 0;
    m->from = m->ring[RING(m->over_index)].before;
    return rc;
}

static int begin_at(struct gwa_steps *s, uint64_t index)
{
    struct gwa_matcher *m = &s->match;
    if (m->index - index >= GWA_STEPS_RING)
        index = m->index - GWA_STEPS_RING + 1;
    const struct gwa_mark *mark = &m->ring[RING(index)];
    return gwa_steps_begin(s, mark->t0, mark->before);
}

/* A usual forward pass, if it is one, began so many tokens ago: other work came before. */
static uint64_t usual_begin(const struct gwa_matcher *m)
{
    const struct gwa_rule *r = &m->rule;
    uint64_t at = m->index - r->forward;
    if (m->index < r->forward || at < m->begin_index || r->forward >= GWA_STEPS_RING)
        return m->begin_index;
    for (unsigned i = 0; i < r->first_count; i++)
        if (m->ring[RING(at + i)].sym != r->first[i])
            return m->begin_index;
    return at;
}

static int backward(struct gwa_steps *s, const struct gwa_token *t)
{
    struct gwa_matcher *m = &s->match;
    const struct gwa_rule *r = &m->rule;
    int rc = 0;
    if (!m->open) {
        uint64_t run = m->index - m->run_index;
        rc = begin_at(s, run > r->forward ? m->index - r->forward : m->run_index);
    } else if (m->after_backward && (m->optimizer_ran || !r->optimizer)) {
        uint64_t begin = usual_begin(m);
        if (!r->optimizer)
            begin = m->run_index + r->offset;
        if (begin > m->index)
            begin = m->index;
        m->begin_index = begin;
        if (!(rc = leave_out(s)))
            rc = begin_at(s, begin);
    }
    if (rc || !m->open)
        return rc;
    struct gwa_found *f = &s->found[s->found_count - 1];
    f->backwards += f->backwards < UINT16_MAX;
    f->backward_end = t->end;
    if (++m->backwards_without > m->most_backwards && m->backwards_without <= 4096 &&
        (m->optimizer_ran || !r->optimizer))
        m->most_backwards = m->backwards_without;
    m->after_backward = true;
    m->optimizer_ran = m->optimizer_open = m->at_end = m->work_over = m->begun = false;
    m->run_index = m->begin_index = m->index + 1;
    return 0;
}

static void between_backwards(struct gwa_matcher *m, const struct gwa_token *t)
{
    const struct gwa_rule *r = &m->rule;
    bool end = gwa_symset_has(&r->end, t->sym);
    bool read = GWA_SYM_KIND(t->sym) == GWA_SYM_COPY && GWA_COPY_DIRECTION(t->sym) == GWT_D2H;
    bool tail =
        !end && m->at_end && (read || (m->tail < r->tail_count && t->sym == r->tail[m->tail]));
    if (end && gwa_sym_works(t->sym)) {
        m->optimizer_ran = m->optimizer_open = true;
        m->work_over = false;
        if (m->backwards_without > m->most_backwards)
            m->most_backwards = m->backwards_without;
    } else if (!end && !tail && m->optimizer_open) {
        m->optimizer_open = false;
        m->work_over = true;
        m->over_index = m->index;
        m->over_at = t->t0;
    }
    m->tail = tail ? m->tail + 1 : 0;
    m->at_end = end || tail;
    if (m->at_end) {
        m->begin_index = m->index + 1;
        m->begun = false;
    } else if (!m->begun && r->first_count && t->sym == r->first[0]) {
        m->begin_index = m->index;
        m->begun = true;
    }
}

/* ---- other loops ------------------------------------------------------------------------------
 */

static int marker(struct gwa_steps *s)
{
    struct gwa_matcher *m = &s->match;
    const struct gwa_rule *r = &m->rule;
    unsigned n = r->marker_count;
    if (m->index + 1 < n || m->index < r->skip)
        return 0;
    for (unsigned i = 1; i < n; i++)
        if (m->ring[RING(m->index - i)].sym != r->marker[n - 1 - i])
            return 0;
    if (m->turn++ % r->every)
        return 0;
    uint64_t first = m->index + 1 - n + r->ahead;
    uint64_t begin = first > r->back ? first - r->back : 0;
    if (m->open && begin <= m->from.index)
        return 0;
    m->pending = begin > m->index;
    return m->pending ? 0 : begin_at(s, begin);
}

/* ---- any token
 * ----------------------------------------------------------------------------------- */

int gwa_match_token(struct gwa_steps *s, const struct gwa_token *t)
{
    struct gwa_matcher *m = &s->match;
    const struct gwa_rule *r = &m->rule;
    int rc = 0;
    if (t->sym != GWA_BACKWARD &&
        (t->thread >= s->thread_indices || s->thread_ids[t->thread] != r->driver))
        return 0;
    /* another thread's work came between: still the same pass */
    if (t->sym == GWA_BACKWARD && m->index && m->ring[RING(m->index - 1)].sym == GWA_BACKWARD) {
        if (m->open)
            s->found[s->found_count - 1].backward_end = t->end;
        return 0;
    }
    m->ring[RING(m->index)] =
        (struct gwa_mark){.t0 = t->t0, .before = gwa_match_now(m), .sym = t->sym};
    if (m->open && m->index == m->from.index + r->length)
        m->usual_end = t->t0;
    if (m->pending) {
        m->pending = false;
        rc = begin_at(s, m->index);
    }
    if (rc)
        return rc;
    if (r->kind == GWA_RULE_LOOP) {
        if (t->sym == r->marker[r->marker_count - 1])
            rc = marker(s);
    } else if (t->sym == GWA_BACKWARD) {
        rc = backward(s, t);
    } else {
        between_backwards(m, t);
    }
    m->hash = gwa_poly_add(m->hash, t->sym);
    m->weight += gwa_token_weight(t);
    m->index++;
    return rc;
}

/* The last step ends with the optimizer, or when a usual step would. */
void gwa_match_end(struct gwa_steps *s)
{
    struct gwa_matcher *m = &s->match;
    int64_t end = m->last;
    struct gwa_before at = gwa_match_now(m);
    uint64_t index = m->index;
    bool learning = m->rule.kind == GWA_RULE_NONE && !s->range && !s->kernel;
    if (learning)
        return;
    if (m->open && m->rule.kind == GWA_RULE_TRAIN && m->optimizer_ran) {
        if (m->work_over && m->over_at < end)
            index = m->over_index;
    } else if (m->open && m->rule.kind == GWA_RULE_TRAIN && m->after_backward &&
               !m->rule.optimizer && m->index > m->run_index + m->rule.offset) {
        index = m->run_index + m->rule.offset;
    } else if (m->open && m->rule.kind == GWA_RULE_LOOP && m->usual_end < end &&
               m->index - m->from.index > 2 * (uint64_t)m->rule.length) {
        index = m->from.index + m->rule.length;
    }
    if (index < m->index && m->index - index < GWA_STEPS_RING) {
        end = m->ring[RING(index)].t0;
        at = m->ring[RING(index)].before;
    }
    close_step(s, end, at);
    forget(s, m->index - at.index);
    s->loops[m->loop] = (struct gwa_loop){
        .confidence = m->rule.confidence, .by_token = m->rule.by_token, .sketch = m->rule.sketch};
    m->loop += m->loop < UINT8_MAX;
    m->rule.kind = GWA_RULE_NONE;
}
