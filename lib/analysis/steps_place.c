/* The second pass: where each event belongs, and what each step holds.
 *
 * Recompute: a launch of a backward pass that, with the three before it, repeats four launches
 * in a row of the same step's forward pass, shapes included. */
#include "kinds.h"
#include "steps_internal.h"

#define GRAM          4u
#define SEEN_SLOTS    65536u /* a forward pass of more distinct runs of launches is cut there */
#define SEGMENT_LEAST 5u     /* launches; fewer in a row are alike by chance */
#define SEGMENT_GAP   3u     /* others in between: still the same segment */

struct seen {
    uint32_t step; /* + 1; 0: never */
    uint32_t hash;
};

/* The last launches of one kind, and the hash of them in order. */
struct last {
    uint64_t ring[GRAM]; /* signatures, mixed; 0 where there were not so many */
    uint64_t hash;
    uint32_t count;
};

struct gwa_recompute {
    struct seen slots[SEEN_SLOTS];
    uint32_t step, used;
    struct last forward, backward;
    unsigned waiting;                 /* launches that were not counted yet */
    uint32_t run, others;             /* launches of the segment; others since */
    bool in_backward, has_collective; /* of the backward pass that goes on */
};

/* Lengths of the last launches of backward passes. */
struct gwa_lengths {
    double ns[GRAM];
    unsigned next;
};

void gwa_steps_place_free(struct gwa_steps *s)
{
    free(s->recompute);
    free(s->times);
    free(s->lengths);
}

#define POLY_GRAM (GWA_POLY * GWA_POLY * GWA_POLY * GWA_POLY)
_Static_assert(GRAM == 4, "POLY_GRAM takes out what is GRAM old");

static void push(struct last *l, uint32_t signature)
{
    uint64_t *oldest = &l->ring[l->count++ % GRAM], mixed = gwa_mix((uint64_t)signature + 1);
    l->hash = l->hash * GWA_POLY + mixed - *oldest * POLY_GRAM;
    *oldest = mixed;
}

static void forget(struct last *l)
{
    if (l->count)
        *l = (struct last){0};
}

static uint32_t gram(const struct last *l)
{
    return (uint32_t)gwa_mix(l->hash);
}

static struct seen *slot_of(struct gwa_recompute *r, uint32_t hash)
{
    uint32_t i = hash % SEEN_SLOTS;
    while (r->slots[i].step == r->step + 1 && r->slots[i].hash != hash)
        i = (i + 1) % SEEN_SLOTS;
    return &r->slots[i];
}

static void new_step(struct gwa_recompute *r, uint32_t step)
{
    r->step = step;
    r->used = r->waiting = r->run = r->others = 0;
    r->in_backward = r->has_collective = false;
    forget(&r->forward);
    forget(&r->backward);
}

static void forward_launch(struct gwa_recompute *r, uint32_t signature)
{
    push(&r->forward, signature);
    forget(&r->backward);
    r->waiting = r->run = 0;
    if (r->forward.count < GRAM || r->used >= SEEN_SLOTS / 2)
        return;
    uint32_t hash = gram(&r->forward);
    struct seen *slot = slot_of(r, hash);
    r->used += slot->step != r->step + 1;
    *slot = (struct seen){.step = r->step + 1, .hash = hash};
}

/* post: launches that are found to repeat others by now, this one among them; 0: none. */
static uint8_t backward_launch(struct gwa_recompute *r, uint32_t signature,
                               struct gwa_step_row *row)
{
    push(&r->backward, signature);
    bool repeats = false;
    if (r->backward.count >= GRAM) {
        uint32_t hash = gram(&r->backward);
        repeats = slot_of(r, hash)->step == r->step + 1;
    }
    if (!repeats) {
        r->waiting++;
        if (++r->others > SEGMENT_GAP)
            r->run = 0;
        return 0;
    }
    /* With it, the launches before that made the four. */
    unsigned with = 1 + (r->waiting < GRAM - 1 ? r->waiting : GRAM - 1);
    uint32_t had = r->run;
    r->run += with;
    r->waiting = r->others = 0;
    if (had < SEGMENT_LEAST && r->run >= SEGMENT_LEAST)
        row->segments++;
    row->recompute_launches += with;
    return (uint8_t)with;
}

/* ---- which step ------------------------------------------------------------------------------ */

static bool inside(const struct gwa_step *step, int64_t t)
{
    return step->from <= t && t < step->to;
}

static uint32_t step_at(struct gwa_steps *s, int64_t t)
{
    size_t i = s->cursor;
    if (i < s->count && inside(&s->list[i], t))
        return (uint32_t)i;
    size_t low = 0, high = s->count;
    if (i < s->count && t >= s->list[i].to) {
        low = i + 1;
        if (low < s->count && inside(&s->list[low], t)) {
            s->cursor = low;
            return (uint32_t)low;
        }
    }
    while (low < high) { /* the last that begins at or before t */
        size_t middle = low + (high - low) / 2;
        if (s->list[middle].from <= t)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || !inside(&s->list[low - 1], t))
        return UINT32_MAX;
    s->cursor = low - 1;
    return (uint32_t)(low - 1);
}

static unsigned phase_of(const struct gwa_steps *s, uint32_t step,
                         const struct gwa_steps_thread *thread, int64_t t)
{
    const struct gwa_step *at = &s->list[step];
    if (at->kind == GWA_STEP_OTHER || !at->backwards)
        return GWA_PHASE_OTHER;
    if (thread->autograd)
        return GWA_PHASE_BACKWARD;
    return t < at->backward_end ? GWA_PHASE_FORWARD : GWA_PHASE_OPTIMIZER;
}

/* ---- counting ----------------------------------------------------------------------------------
 */

/* What each thread did, in order; summed up over the threads, which may interleave as they like. */
static void order(uint64_t *hash, uint64_t what)
{
    *hash = gwa_poly_add(*hash, what);
}

static void leave_step(struct gwa_steps *s, struct gwa_steps_thread *t)
{
    if (t->step < s->count) {
        struct gwa_step_row *r = &s->rows[t->step];
        r->names += (uint32_t)gwa_mix(t->names);
        r->shapes += (uint32_t)gwa_mix(t->shapes);
        r->sizes += (uint32_t)gwa_mix(t->sizes);
    }
    t->step = UINT32_MAX;
    t->names = t->shapes = t->sizes = 0;
}

void gwa_steps_place_end(struct gwa_steps *s)
{
    for (size_t i = 0; i < s->threads_count && s->rows; i++)
        leave_step(s, &s->threads[i]);
}

static void count_copy(struct gwa_step_row *r, const struct gwt_event *e,
                       struct gwa_steps_thread *t)
{
    unsigned direction = GWT_F_SUB(e->flags);
    if (!e->value && e->arg <= 1)
        return;
    r->copies += e->arg;
    if (direction == GWT_H2D)
        r->h2d_bytes += e->value;
    if (direction == GWT_D2H) {
        r->d2h_bytes += e->value;
        r->small_reads += e->value <= 8;
    }
    if (e->flags & GWT_F_PAGEABLE && (direction == GWT_H2D || direction == GWT_D2H))
        r->pageable_bytes += e->value;
    r->blocking_copies += gwa_waits_for_copy(e);
    order(&t->names, (uint64_t)direction << 32 | GWT_COPY);
    order(&t->sizes, e->value << 8 | direction);
}

static void count_launch(struct gwa_steps *s, struct gwa_step_row *r, const struct gwt_event *e,
                         struct gwa_steps_thread *t, struct gwa_place *out)
{
    uint32_t sym = e->arg < s->syms_count ? s->syms[e->arg] : 0;
    r->launches++;
    r->kernels++;
    order(&t->names, sym);
    order(&t->shapes, e->arg);
    if (out->phase == GWA_PHASE_BACKWARD)
        out->recompute = backward_launch(s->recompute, e->arg, r);
    else if (out->phase == GWA_PHASE_FORWARD)
        forward_launch(s->recompute, e->arg);
}

/* In how many backward passes autograd's threads issue collectives; what other threads do than the
 * one that drives the loop, copies for instance, is no end of a pass. */
static void count_batches(struct gwa_steps *s, struct gwa_step_row *row, const struct gwt_event *e,
                          const struct gwa_steps_thread *t)
{
    struct gwa_recompute *r = s->recompute;
    if (t->autograd && !r->in_backward) {
        r->in_backward = true;
        r->has_collective = false;
    } else if (!t->autograd && e->thread == s->match.rule.driver) {
        r->in_backward = false;
    }
    if (t->autograd && e->kind == GWT_NCCL && !r->has_collective) {
        r->has_collective = true;
        row->collective_batches++;
    }
}

static int count(struct gwa_steps *s, struct gwa_step_row *r, const struct gwt_event *e,
                 struct gwa_steps_thread *t, struct gwa_place *out)
{
    uint32_t kernels;
    int rc;
    switch (e->kind) {
    case GWT_LAUNCH:
        count_launch(s, r, e, t, out);
        break;
    case GWT_GRAPH_LAUNCH:
        if ((rc = gwa_steps_graph_kernels(s, e->arg, &kernels)))
            return rc;
        r->graph_launches++;
        r->kernels += kernels;
        order(&t->names, (uint64_t)e->arg << 32 | GWT_GRAPH_LAUNCH);
        break;
    case GWT_COPY:
        count_copy(r, e, t);
        break;
    case GWT_MEMSET:
        order(&t->names, (uint64_t)1 << 32 | GWT_MEMSET);
        order(&t->sizes, e->value << 8 | 0xff);
        break;
    case GWT_NCCL:
        r->collectives++;
        r->collective_bytes += e->value;
        order(&t->names, (uint64_t)e->api << 32 | GWT_NCCL);
        break;
    case GWT_SYNC:
        r->syncs++;
        break;
    case GWT_ALLOC:
        r->allocations++;
        break;
    case GWT_HOST_ALLOC:
        r->host_allocations++;
        break;
    case GWT_FREE:
        r->frees++;
        break;
    case GWT_CAPTURE:
        r->captures += (e->flags & GWT_F_CLOSING) != 0;
        break;
    case GWT_MODULE_LOAD:
        r->module_loads++;
        break;
    }
    return 0;
}

static int begin_pass(struct gwa_steps *s)
{
    s->rows = calloc(s->count, sizeof(*s->rows));
    s->times = calloc(s->count, sizeof(*s->times));
    s->recompute = calloc(1, sizeof(*s->recompute));
    s->lengths = calloc(1, sizeof(*s->lengths));
    if (!s->rows || !s->times || !s->recompute || !s->lengths)
        return -ENOMEM;
    new_step(s->recompute, UINT32_MAX - 1);
    return 0;
}

int gwa_steps_place(struct gwa_steps *s, const struct gwt_event *e, struct gwa_place *out)
{
    *out = (struct gwa_place){.step = UINT32_MAX, .phase = GWA_PHASE_OTHER};
    if (!s->count)
        return 0;
    int rc = 0;
    if (!s->rows && (rc = begin_pass(s)))
        return rc;
    out->step = step_at(s, e->t0_ns);
    if (out->step == UINT32_MAX)
        return 0;
    struct gwa_steps_thread *t;
    if (e->thread < s->threads_count && s->threads[e->thread].known)
        t = &s->threads[e->thread];
    else if ((rc = gwa_steps_thread(s, e->thread, &t)) || !t)
        return rc;
    if (t->step != out->step) {
        leave_step(s, t);
        t->step = out->step;
    }
    if (s->recompute->step != out->step)
        new_step(s->recompute, out->step);
    out->phase = (uint8_t)phase_of(s, out->step, t, e->t0_ns);
    if (e->kind == GWT_ALLOCATOR || (!gwa_executed(e) && e->kind != GWT_CAPTURE))
        return 0;
    struct gwa_step_row *r = &s->rows[out->step];
    if (e->kind == GWT_LAUNCH || e->kind == GWT_GRAPH_LAUNCH || e->kind == GWT_NCCL)
        count_batches(s, r, e, t);
    rc = count(s, r, e, t, out);
    if ((e->kind == GWT_LAUNCH || e->kind == GWT_GRAPH_LAUNCH) && out->phase != GWA_PHASE_OTHER)
        r->launched[out->phase - 1]++;
    return rc;
}

void gwa_steps_took(struct gwa_steps *s, const struct gwt_event *e, const struct gwa_place *place,
                    double gpu_ns)
{
    struct gwa_step_time *time = &s->times[place->step];
    struct gwa_lengths *l = s->lengths;
    double ns = gpu_ns > 0 ? gpu_ns : 0; /* NaN: nor can it be added up */
    if (ns > 0)
        time->gpu_ns[place->phase] += (float)ns;
    if (e->kind != GWT_LAUNCH || place->phase != GWA_PHASE_BACKWARD || !gwa_executed(e))
        return;
    l->ns[l->next++ % GRAM] = ns;
    double sum = 0;
    for (unsigned i = 1; i <= place->recompute; i++)
        sum += l->ns[(l->next - i) % GRAM];
    time->recompute_ns += (float)sum;
}
