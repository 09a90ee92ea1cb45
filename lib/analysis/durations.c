#include "durations_internal.h"
#include "grow.h"
#include "kinds.h"

#define GROUPS_MAX (1u << 18)
#define ROOM       (48u << 20)

struct gwa_durations *gwa_durations_new(const struct gwt_trace *trace)
{
    struct gwa_durations *d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    d->trace = trace;
    d->room = ROOM;
    d->places = calloc(PLACES, sizeof(*d->places));
    d->early = calloc(EARLY, sizeof(*d->early));
    if (!d->places || !d->early) {
        gwa_durations_free(d);
        return NULL;
    }
    return d;
}

size_t gwa_durations_used(const struct gwa_durations *d)
{
    return ROOM - d->room;
}

void gwa_durations_free(struct gwa_durations *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->signatures_count; i++)
        free(d->signatures[i].draws);
    for (size_t i = 0; i < d->graphs_count; i++)
        free(d->graphs[i].draws);
    free(d->signatures);
    free(d->graphs);
    free(d->groups.slots);
    free(d->found);
    free(d->functions);
    free(d->kept);
    free(d->drift);
    free(d->streams);
    free(d->places);
    free(d->early);
    free(d);
}

uint64_t gwa_durations_samples(const struct gwa_durations *d)
{
    return d->samples;
}

/* ---- keys --------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

unsigned gwa_durations_bucket(uint64_t bytes)
{
    return bytes ? 63 - (unsigned)__builtin_clzll(bytes) : 0;
}

/* What an operation is to those that follow it. */
static uint32_t operation_of(const struct gwt_event *e)
{
    switch (e->kind) {
    case GWT_LAUNCH:
        return e->arg;
    case GWT_GRAPH_LAUNCH:
        return 0x40000000u | e->arg;
    case GWT_MEMSET:
        return 0x80000000u | gwa_durations_bucket(e->value);
    default:
        return 0xc0000000u | GWT_F_SUB(e->flags) << 8 | gwa_durations_bucket(e->value);
    }
}

/* Odd, hence with an inverse: what was added is taken out again exactly. */
#define FACTOR   0xd6e8feb86659fd93u
#define FACTOR_2 (FACTOR * FACTOR)
#define FACTOR_4 (FACTOR_2 * FACTOR_2)
#define FACTOR_8 (FACTOR_4 * FACTOR_4)
_Static_assert(GWA_CONTEXT == 8, "push() takes out what is FACTOR_8 old");

struct keys gwa_durations_keys(uint32_t op, const struct gwa_context *c)
{
    uint64_t h = mix(0x243f6a8885a308d3u, op);
    return (struct keys){{mix(h, c->last) | 1, (mix(h, c->hash) | 1) ^ 2}};
}

uint64_t gwa_durations_size_key(unsigned class, enum copy_place place, uint64_t bytes)
{
    return mix(mix(0x13198a2e03707344u, class * COPY_PLACES + place), bytes) | 1;
}

/* The same but for the size. */
static bool is_same_way(uint32_t op, uint32_t last)
{
    return op >> 31 && !((op ^ last) >> 8);
}

static void push(struct gwa_context *c, uint32_t op)
{
    uint32_t *oldest = &c->before[c->next++ % GWA_CONTEXT];
    c->hash = (c->hash + op) * FACTOR - *oldest * FACTOR_8 * FACTOR;
    *oldest = op;
    c->last = op;
}

/* ---- groups ------------------------------------------------------------------------- */

static struct group *slot_of(const struct groups *g, uint64_t key)
{
    size_t i = (size_t)(key >> 8) & (g->room - 1);
    while (g->slots[i].key && g->slots[i].key != key)
        i = (i + 1) & (g->room - 1);
    return &g->slots[i];
}

struct group *gwa_durations_group(const struct groups *g, uint64_t key)
{
    if (!g->room)
        return NULL;
    struct group *found = slot_of(g, key);
    return found->key ? found : NULL;
}

static int make_room(struct groups *g)
{
    struct groups bigger = {.count = g->count, .room = g->room ? g->room * 2 : 1024};
    bigger.slots = calloc(bigger.room, sizeof(*bigger.slots));
    if (!bigger.slots)
        return -ENOMEM;
    for (size_t i = 0; i < g->room; i++)
        if (g->slots[i].key)
            *slot_of(&bigger, g->slots[i].key) = g->slots[i];
    free(g->slots);
    *g = bigger;
    return 0;
}

/* Beyond GROUPS_MAX no new group is made: its samples count for their signature all the same. */
static int add_to_group(struct groups *g, uint64_t key, uint64_t parent, uint32_t owner,
                        uint8_t level, double pair_ns, bool busy)
{
    int rc;
    if (g->count * 2 >= g->room && g->room / 2 < GROUPS_MAX && (rc = make_room(g)))
        return rc;
    struct group *group = slot_of(g, key);
    if (!group->key) {
        if (g->count == GROUPS_MAX)
            return 0;
        g->count++;
        *group = (struct group){.key = key, .parent = parent, .owner = owner, .level = level};
    }
    stat_add(&group->pairs, pair_ns);
    group->busy += busy;
    return 0;
}

/* ---- draws --------------------------------------------------------------------------- */

int gwa_durations_add_draw(struct draws **draws, uint64_t n, uint32_t pair)
{
    if (!*draws && !(*draws = calloc(1, sizeof(**draws))))
        return -ENOMEM;
    uint64_t i = n <= DRAWS ? n - 1 : (mix(0xa4093822299f31d0u, n) >> 20) % n;
    if (i < DRAWS)
        (*draws)->of[i].pair = pair;
    return 0;
}

void gwa_durations_fit_draws(const struct gwa_durations *d, struct draws **draws, uint64_t n,
                             unsigned class)
{
    double ns[DRAWS], sum = 0;
    unsigned count = n < DRAWS ? (unsigned)n : DRAWS;
    if (!*draws || (*draws)->ratios)
        return;
    if (n < DRAWS_LEAST) {
        free(*draws);
        *draws = NULL;
        return;
    }
    for (unsigned i = 0; i < count; i++)
        sum += ns[i] = gwa_durations_ns(d, class, (*draws)->of[i].pair);
    for (unsigned i = 0; i < DRAWS; i++)
        (*draws)->of[i].ratio = (float)(ns[i % count] * count / sum);
    (*draws)->ratios = true;
}

/* By turns, so that many together last as long as expected: steps of the golden ratio come
 * close to every value equally often, also every so many steps. */
static double draw(const struct draws *draws, const struct gwa_context *c)
{
    return draws ? (double)draws->of[c->next * 2654435769u >> 28].ratio : 1;
}
_Static_assert(DRAWS == 1 << (32 - 28), "draw() takes the uppermost bits");

/* ---- kernels ------------------------------------------------------------------------ */

static size_t place_index(int64_t t0, uint16_t stream)
{
    return (size_t)(mix((uint64_t)t0, stream) >> 16) % PLACES;
}
_Static_assert(PLACES % EARLY == 0, "an index of the one, by the remainder, is one of the other");

/* Of an id that is not believed: that of no function in particular. */
static struct signature *new_signature(struct gwa_durations *d, uint32_t id, int *rc)
{
    if (id >= GWA_TIMED_MAX)
        id = 0;
    *rc = gwa_grow_within(&d->room, (void **)&d->signatures, &d->signatures_count, id,
                          sizeof(*d->signatures));
    if (*rc == -ERANGE)
        return new_signature(d, 0, rc);
    return *rc ? NULL : &d->signatures[id];
}

static inline struct signature *signature_of(struct gwa_durations *d, uint32_t id, int *rc)
{
    *rc = 0;
    return id < d->signatures_count && id < GWA_TIMED_MAX ? &d->signatures[id]
                                                          : new_signature(d, id, rc);
}

int gwa_durations_file(struct gwa_durations *d, uint32_t signature, const uint64_t key[2],
                       double pair_ns, bool busy)
{
    if (signature >= d->signatures_count)
        signature = 0;
    int rc = add_to_group(&d->groups, key[0], 0, signature, 1, pair_ns, busy);
    return rc ? rc : add_to_group(&d->groups, key[1], key[0], signature, 2, pair_ns, busy);
}

static struct keys keys_of(const struct place *p)
{
    return gwa_durations_keys(p->op, &(struct gwa_context){.last = p->last, .hash = p->hash});
}

static int keep(struct gwa_durations *d, uint32_t signature, const struct place *p, double pair_ns,
                bool busy)
{
    struct keys keys = keys_of(p);
    struct kept k = {.at = p->t0,
                     .key = {keys.key[0], keys.key[1]},
                     .signature = signature < d->signatures_count ? signature : 0,
                     .turn = p->turn,
                     .pair_ns = (uint32_t)pair_ns,
                     .busy = busy};
    int rc = gwa_durations_file(d, signature, keys.key, pair_ns, busy);
    return rc ? rc : gwa_durations_keep(d, &k);
}

static int copy_sample(struct gwa_durations *d, unsigned class, enum copy_place place,
                       uint64_t bytes, uint32_t pair_ns)
{
    struct bucket *b = &d->copies[class][place][gwa_durations_bucket(bytes)];
    stat_add(&b->pairs, pair_ns);
    b->bytes += ((double)bytes - b->bytes) / (double)b->pairs.n;
    uint64_t n = b->pairs.n, i = n <= KEPT ? n - 1 : (mix(0xa4093822299f31d0u, n) >> 20) % n;
    if (i < KEPT) {
        b->kept[i].pair = pair_ns;
        b->kept[i].bytes = (float)bytes;
    }
    return add_to_group(&d->groups, gwa_durations_size_key(class, place, bytes), 0,
                        class * COPY_PLACES + place, 0, pair_ns, false);
}

static int place_copy(struct gwa_durations *d, const struct early *s, uint32_t op, uint32_t last)
{
    enum copy_place place = !is_same_way(op, last) ? COPY_ELSEWHERE
                            : s->busy              ? COPY_IN_ROW
                                                   : COPY_SPACED;
    return copy_sample(d, s->class, place, s->bytes, s->pair_ns);
}

static struct early early_of(const struct gwt_event *e)
{
    return (struct early){.t0 = e->t0_ns,
                          .bytes = e->value,
                          .signature = e->arg,
                          .pair_ns = e->raw,
                          .stream = e->stream,
                          .class = (uint8_t)GWT_SAMPLE_CLASS(e->flags),
                          .busy = !(e->flags & GWT_SAMPLE_SPACER)};
}

/* Of a copy whose own record never came: it may have been anywhere. */
static int give_up_on(struct gwa_durations *d, size_t i)
{
    bool used = d->early_used[i];
    d->early_used[i] = false;
    return used && d->early[i].class != GWT_SAMPLE_KERNEL ? place_copy(d, &d->early[i], 0, 0) : 0;
}

static int wait_for_operation(struct gwa_durations *d, const struct gwt_event *e, size_t i)
{
    int rc = give_up_on(d, i % EARLY);
    d->early_used[i % EARLY] = true;
    d->early[i % EARLY] = early_of(e);
    return rc;
}

/* post: NULL or the sample that waited for this operation. */
static const struct early *waited(struct gwa_durations *d, const struct gwt_event *e, size_t i)
{
    const struct early *early = &d->early[i % EARLY];
    if (!d->early_used[i % EARLY] || early->t0 != e->t0_ns || early->stream != e->stream)
        return NULL;
    d->early_used[i % EARLY] = false;
    return early;
}

static struct gwa_context *context_of(struct gwa_durations *d, uint16_t stream)
{
    int rc = gwa_grow((void **)&d->streams, &d->streams_count, stream, sizeof(*d->streams));
    return rc ? NULL : &d->streams[stream];
}

static int follow(struct gwa_durations *d, const struct gwt_event *e)
{
    struct gwa_context *c = context_of(d, e->stream);
    if (!c)
        return -ENOMEM;
    push(c, operation_of(e));
    return 0;
}

static int launch(struct gwa_durations *d, const struct gwt_event *e)
{
    struct gwa_context *c = context_of(d, e->stream);
    int rc;
    if (!c)
        return -ENOMEM;
    struct signature *s = signature_of(d, e->arg, &rc);
    if (!s)
        return rc;
    s->launches++;
    if (!s->function && (rc = gwa_durations_find_function(d, s, e->arg)))
        return rc;
    const struct function *f = gwa_durations_turn(d, s);
    size_t i = place_index(e->t0_ns, e->stream);
    const struct early *early = waited(d, e, i);
    bool timed = early && early->class == GWT_SAMPLE_KERNEL && early->signature == e->arg;
    struct place own, *here = timed ? &own : &d->places[i];
    here->t0 = e->t0_ns;
    here->hash = c->hash;
    here->last = c->last;
    here->op = e->arg;
    here->turn = f ? f->turn : 0;
    here->stream = e->stream;
    here->used = true;
    push(c, e->arg);
    return timed ? keep(d, e->arg, here, early->pair_ns, early->busy) : 0;
}

/* A sample lies behind or before the launch that it timed: it is written by another thread. */
static int kernel_sample(struct gwa_durations *d, const struct gwt_event *e)
{
    bool busy = !(e->flags & GWT_SAMPLE_SPACER);
    int rc;
    struct signature *s = signature_of(d, e->arg, &rc);
    if (!s)
        return rc;
    stat_add(&s->pairs, e->raw);
    if (!busy)
        stat_add(&s->spaced, e->raw);
    if (!busy && e->value && e->value < 1000000)
        stat_add(&d->spacers, (double)e->value);
    if ((rc = gwa_durations_add_draw(&s->draws, s->pairs.n, e->raw)))
        return rc;
    size_t i = place_index(e->t0_ns, e->stream);
    const struct place *p = &d->places[i];
    if (p->used && p->t0 == e->t0_ns && p->stream == e->stream)
        return keep(d, e->arg, p, e->raw, busy);
    return wait_for_operation(d, e, i);
}

/* ---- graphs, copies ----------------------------------------------------------------- */

static struct graph *graph_of(struct gwa_durations *d, uint32_t id, int *rc)
{
    *rc = id < GWA_TIMED_MAX ? gwa_grow_within(&d->room, (void **)&d->graphs, &d->graphs_count, id,
                                               sizeof(*d->graphs))
                             : -ERANGE;
    return *rc ? NULL : &d->graphs[id];
}

static int graph_launch(struct gwa_durations *d, const struct gwt_event *e)
{
    int rc;
    struct graph *g = graph_of(d, e->arg, &rc);
    int followed = follow(d, e);
    if (followed)
        return followed;
    if (!g)
        return rc == -ERANGE ? 0 : rc;
    if (!g->launches)
        g->stream = e->stream;
    g->elsewhere |= g->stream != e->stream;
    g->launches++;
    gwa_durations_turn_graph(d, e->arg);
    return 0;
}

/* Or a memset. */
static int copy(struct gwa_durations *d, const struct gwt_event *e)
{
    struct gwa_context *c = context_of(d, e->stream);
    if (!c)
        return -ENOMEM;
    uint32_t op = operation_of(e), last = c->last;
    size_t i = place_index(e->t0_ns, e->stream);
    push(c, op);
    const struct early *early = waited(d, e, i);
    if (early && early->class != GWT_SAMPLE_KERNEL)
        return place_copy(d, early, op, last);
    d->places[i] =
        (struct place){.t0 = e->t0_ns, .last = last, .op = op, .stream = e->stream, .used = true};
    return 0;
}

static int sample_of_copy(struct gwa_durations *d, const struct gwt_event *e)
{
    size_t i = place_index(e->t0_ns, e->stream);
    const struct place *p = &d->places[i];
    struct early sample = early_of(e);
    if (p->used && p->t0 == e->t0_ns && p->stream == e->stream)
        return place_copy(d, &sample, p->op, p->last);
    return wait_for_operation(d, e, i);
}

static int sample(struct gwa_durations *d, const struct gwt_event *e)
{
    unsigned class = GWT_SAMPLE_CLASS(e->flags);
    int rc = 0;
    if (e->flags >> 8 || !e->raw)
        return 0;
    switch (class) {
    case GWT_SAMPLE_KERNEL:
        d->samples++;
        return kernel_sample(d, e);
    case GWT_SAMPLE_GRAPH: {
        struct graph *g = graph_of(d, e->arg, &rc);
        if (!g)
            return rc == -ERANGE ? 0 : rc;
        d->samples++;
        stat_add(&g->pairs, e->raw);
        return gwa_durations_add_draw(&g->draws, g->pairs.n, e->raw);
    }
    case GWT_SAMPLE_H2D:
    case GWT_SAMPLE_D2H:
    case GWT_SAMPLE_D2D:
    case GWT_SAMPLE_MEMSET:
        d->samples++;
        return sample_of_copy(d, e);
    default:
        return 0;
    }
}

int gwa_durations_event(struct gwa_durations *d, const struct gwt_event *e)
{
    switch (e->kind) {
    case GWT_SAMPLE:
        return sample(d, e);
    case GWT_CONSTANT:
        gwa_durations_constant(d, e);
        return 0;
    case GWT_LAUNCH:
        return gwa_executed(e) ? launch(d, e) : 0;
    case GWT_GRAPH_LAUNCH:
        return gwa_executed(e) ? graph_launch(d, e) : 0;
    case GWT_COPY:
    case GWT_MEMSET:
        return gwa_executed(e) ? copy(d, e) : 0;
    default:
        return 0;
    }
}

int gwa_durations_no_more(struct gwa_durations *d)
{
    int rc = 0;
    for (size_t i = 0; i < EARLY && !rc; i++)
        rc = give_up_on(d, i);
    return rc;
}

/* ---- answers ------------------------------------------------------------------------ */

const struct found *gwa_durations_found(const struct gwa_durations *d, uint64_t key)
{
    if (!d->found_room)
        return NULL;
    size_t i = (size_t)(key >> 8) & (d->found_room - 1);
    while (d->found[i].key && d->found[i].key != key)
        i = (i + 1) & (d->found_room - 1);
    return d->found[i].key ? &d->found[i] : NULL;
}

bool gwa_durations_is_comm(const struct gwa_durations *d, uint32_t signature)
{
    return signature < d->signatures_count && d->signatures[signature].comm;
}

struct gwa_duration gwa_durations_signature(const struct gwa_durations *d, uint32_t signature)
{
    if (signature >= d->signatures_count || !(d->signatures[signature].estimate.ns > 0))
        return d->unknown;
    return d->signatures[signature].estimate;
}

struct gwa_duration gwa_durations_graph(const struct gwa_durations *d, uint32_t graph)
{
    if (graph >= d->graphs_count || !(d->graphs[graph].estimate.ns > 0))
        return d->unknown;
    return d->graphs[graph].estimate;
}

/* In the place that it has in its stream; where that was not sampled, anywhere. */
static void in_place(const struct gwa_durations *d, const struct signature *s, uint32_t op,
                     const struct gwa_context *c, struct gwa_duration *out)
{
    struct keys k = gwa_durations_keys(op, c);
    const struct found *g = gwa_durations_found(d, k.key[s->level - 1]);
    if (!g && s->level == 2)
        g = gwa_durations_found(d, k.key[0]);
    out->ns = g ? g->ns : s->elsewhere;
    if (!g)
        out->place = s->apart;
}

static inline void of_launch(const struct gwa_durations *d, const struct gwt_event *e,
                             const struct gwa_context *c, struct gwa_duration *out)
{
    const struct signature *s = e->arg < d->signatures_count ? &d->signatures[e->arg] : NULL;
    const struct function *f = s && d->turning ? gwa_durations_turn(d, s) : NULL;
    if (!s || !(s->estimate.ns > 0)) {
        *out = d->unknown;
    } else {
        *out = s->estimate;
        if (s->level)
            in_place(d, s, e->arg, c, out);
        else
            out->ns *= draw(s->draws, c);
        if (f && f->period)
            out->ns *= (double)f->factor[f->turn % f->period];
        out->ns *= gwa_durations_drift(d, e->t0_ns);
    }
    out->comm = s && s->comm;
}

void gwa_durations_of(const struct gwa_durations *d, const struct gwt_event *e,
                      struct gwa_context *c, struct gwa_duration *out)
{
    if (e->kind == GWT_LAUNCH) {
        of_launch(d, e, c, out);
        push(c, e->arg);
        return;
    }
    switch (e->kind) {
    case GWT_GRAPH_LAUNCH:
        *out = gwa_durations_graph(d, e->arg);
        if (e->arg < d->graphs_count)
            out->ns *= draw(d->graphs[e->arg].draws, c);
        if (d->turning)
            gwa_durations_turn_graph(d, e->arg);
        break;
    case GWT_MEMSET:
        *out = gwa_durations_memset(d, e->value, is_same_way(operation_of(e), c->last));
        break;
    default:
        *out = gwa_durations_copy(d, GWT_F_SUB(e->flags), e->value, e->arg,
                                  is_same_way(operation_of(e), c->last));
        break;
    }
    push(c, operation_of(e));
}
