/* Which of the steps count: the loop that ran longest, without its warm-up. */
#include "analysis.h"
#include "steps_internal.h"

#include <math.h>
#include <string.h>

static int by_int64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* ---- the loop ------------------------------------------------------------------------------- */

struct loop_size {
    double ns;
    size_t steps;
    bool trains;
};

#define WARM_UPS 12u /* eager steps that precede the replays of a captured one */

/* Training, unless it was but the warm-up of another loop, or far less than that. */
static unsigned main_loop(const struct loop_size loops[UINT8_MAX + 1])
{
    struct loop_size train = {0};
    unsigned best = 0, first = 0;
    for (unsigned i = 0; i <= UINT8_MAX; i++) {
        if (loops[i].trains) {
            first = train.steps ? first : i;
            train.ns += loops[i].ns;
            train.steps += loops[i].steps;
        } else if (loops[best].trains || loops[i].ns > loops[best].ns) {
            best = i;
        }
    }
    if (!train.steps)
        return best;
    bool only_warm = train.steps <= WARM_UPS && loops[best].steps > train.steps;
    return !loops[best].trains && (only_warm || loops[best].ns > 2 * train.ns) ? best : first;
}

/* One that was interrupted, and found again. */
static bool same_loop(const struct gwa_sketch *a, const struct gwa_sketch *b)
{
    unsigned same = 0;
    uint32_t apart = a->weight > b->weight ? a->weight - b->weight : b->weight - a->weight;
    if (!a->weight || !b->weight || apart > a->weight / 10)
        return false;
    for (unsigned k = 0; k < GWA_SKETCH; k++)
        same += a->least[k] == b->least[k];
    return same * 4 >= GWA_SKETCH * 3;
}

/* Each becomes the first that is the same. */
static void join_loops(struct gwa_steps *s)
{
    uint8_t same[UINT8_MAX + 1];
    for (unsigned i = 0; i <= UINT8_MAX; i++) {
        unsigned j = 0;
        while (j < i && !same_loop(&s->loops[j].sketch, &s->loops[i].sketch))
            j++;
        same[i] = (uint8_t)j;
    }
    for (size_t i = 0; i < s->found_count; i++)
        s->found[i].loop = same[s->found[i].loop];
}

/* Steps of other loops become one piece of other work each time. */
static void keep_one_loop(struct gwa_steps *s)
{
    struct loop_size loops[UINT8_MAX + 1] = {{0}};
    for (size_t i = 0; i < s->found_count; i++) {
        const struct gwa_found *f = &s->found[i];
        struct loop_size *l = &loops[f->loop];
        l->ns += (double)(f->to - f->from);
        l->steps += f->kind != GWA_STEP_OTHER;
        l->trains |= f->backwards > 0;
    }
    unsigned best = main_loop(loops);
    s->confidence = s->loops[best].confidence;
    s->by_token = s->loops[best].by_token;
    size_t n = 0;
    for (size_t i = 0; i < s->found_count; i++) {
        struct gwa_found *f = &s->found[i];
        bool mine = f->loop == best || (loops[best].trains && loops[f->loop].trains);
        if (!mine)
            f->kind = GWA_STEP_OTHER;
        if (!mine && n && s->found[n - 1].kind == GWA_STEP_OTHER) {
            s->found[n - 1].to = f->to;
            continue;
        }
        s->found[n++] = *f;
    }
    s->found_count = n;
}

/* A piece far smaller than a step is no step, but the end of the one before: a call of generate()
 * ends with a token's half, for instance. One that follows no step is none either. */
static void join_pieces(struct gwa_steps *s, uint32_t weight)
{
    size_t n = 0;
    for (size_t i = 0; i < s->found_count; i++) {
        struct gwa_found *f = &s->found[i];
        struct gwa_found *before = n ? &s->found[n - 1] : NULL;
        bool piece = f->kind != GWA_STEP_OTHER && f->weight < weight / 3;
        if (piece && before && before->kind != GWA_STEP_OTHER && before->to == f->from) {
            before->to = f->to;
            before->weight += f->weight;
            before->hash = gwa_mix(before->hash + gwa_mix(f->hash));
            before->backwards += f->backwards;
            if (f->backward_end > before->backward_end)
                before->backward_end = f->backward_end;
            continue;
        }
        if (piece)
            f->kind = GWA_STEP_OTHER;
        s->found[n++] = *f;
    }
    s->found_count = n;
}

/* ---- warm-up and unusual ones -----------------------------------------------------------------
 */

struct usual {
    int64_t ns;
    uint32_t weight; /* median */
    uint64_t hash;   /* the most frequent */
    double share;    /* of steps with that hash */
    bool backwards;
};

static int find_usual(const struct gwa_steps *s, struct usual *out)
{
    size_t n = 0;
    int64_t *a = malloc((s->found_count + 1) * sizeof(*a));
    if (!a)
        return -ENOMEM;
    for (size_t i = 0; i < s->found_count; i++)
        if (s->found[i].kind != GWA_STEP_OTHER)
            a[n++] = s->found[i].to - s->found[i].from;
    qsort(a, n, sizeof(*a), by_int64);
    out->ns = n ? a[n / 2] : 0;
    out->backwards = s->found_count && s->found[s->found_count / 2].backwards;
    n = 0;
    for (size_t i = 0; i < s->found_count; i++)
        if (s->found[i].kind != GWA_STEP_OTHER)
            a[n++] = s->found[i].weight;
    qsort(a, n, sizeof(*a), by_int64);
    out->weight = n ? (uint32_t)a[n / 2] : 0;
    n = 0;
    for (size_t i = 0; i < s->found_count; i++)
        if (s->found[i].kind != GWA_STEP_OTHER)
            a[n++] = (int64_t)s->found[i].hash;
    qsort(a, n, sizeof(*a), by_int64);
    size_t most = 0;
    for (size_t i = 0, same = 0; i < n; i++) {
        same = i && a[i] == a[i - 1] ? same + 1 : 1;
        if (same > most) {
            most = same;
            out->hash = (uint64_t)a[i];
        }
    }
    out->share = n ? (double)most / (double)n : 0;
    free(a);
    return 0;
}

static bool even(const struct gwa_found *f, const struct usual *u)
{
    if (f->to - f->from > u->ns + u->ns / 2)
        return false;
    return u->share < 0.8 || f->hash == u->hash;
}

/* Of the first `most` steps, those up to the last that took long because code was made or loaded
 * for its first use: generation, for instance, may need new kernels for each length of a text,
 * until that length has occurred. */
static size_t first_uses(const struct gwa_steps *s, const struct usual *u, size_t most)
{
    size_t warm = 0, load = 0;
    for (size_t i = 0; i < most && i < s->found_count; i++) {
        const struct gwa_found *f = &s->found[i];
        while (load < s->loads_count && s->loads[load] < f->from)
            load++;
        if (f->kind != GWA_STEP_OTHER && load < s->loads_count && s->loads[load] < f->to &&
            !even(f, u))
            warm = i + 1;
    }
    return warm;
}

/* Steps at the beginning until three in a row are even; at most a third of all. */
static size_t warm_up(const struct gwa_steps *s, const struct usual *u)
{
    size_t most = s->found_count / 3 + 1, warm = 0, row = 0;
    for (size_t i = 0; i < s->found_count && row < 3 && warm <= most; i++) {
        if (s->found[i].kind == GWA_STEP_OTHER)
            continue;
        if (even(&s->found[i], u)) {
            row++;
        } else {
            row = 0;
            warm = i + 1;
        }
    }
    if (warm <= most)
        return warm;
    /* It never runs evenly: only what is uneven before the first even one. */
    for (warm = 0; warm < most && !even(&s->found[warm], u); warm++)
        continue;
    return warm;
}

/* More work than the others: saving, logging, evaluation. Only longer: that is for the times. */
static bool unusual(const struct gwa_found *f, const struct usual *u)
{
    if (u->share >= 0.5)
        return f->hash != u->hash && f->weight > u->weight;
    return f->weight > u->weight + u->weight / 2;
}

/* Steps of about the usual size are what makes the division believable. */
#define FEW 32u /* steps: there must be little else in the recording */

static float confidence(const struct gwa_steps *s, const struct usual *u)
{
    size_t n = 0, near = 0;
    uint64_t covered = 0;
    for (size_t i = 0; i < s->found_count; i++) {
        const struct gwa_found *f = &s->found[i];
        if (f->kind == GWA_STEP_OTHER)
            continue;
        n++;
        covered += f->weight;
        near += f->hash == u->hash || fabs((double)f->weight - u->weight) <= 0.15 * u->weight + 2;
    }
    if (s->range || s->kernel)
        return 1;
    float c = s->confidence;
    if (n && near * 10 < n * 9)
        c *= (float)near / (float)n;
    if (n < FEW && !u->backwards && covered * 2 < s->seen)
        c *= 2 * (float)covered / (float)s->seen;
    return n < 4 ? c * 0.6f : c;
}

int gwa_steps_kinds(struct gwa_steps *s)
{
    struct usual u = {0};
    join_loops(s);
    keep_one_loop(s);
    int rc = find_usual(s, &u);
    if (!rc && !s->range && !s->kernel) {
        join_pieces(s, u.weight);
        rc = find_usual(s, &u);
    }
    if (rc)
        return rc;
    size_t warm = warm_up(s, &u), used = first_uses(s, &u, s->found_count / 3 + 1);
    if (warm < used)
        warm = used;
    s->list = malloc((s->found_count + 1) * sizeof(*s->list));
    if (!s->list)
        return -ENOMEM;
    for (size_t i = 0; i < s->found_count; i++) {
        struct gwa_found *f = &s->found[i];
        if (f->kind != GWA_STEP_OTHER)
            f->kind = i < warm         ? GWA_STEP_WARMUP
                      : unusual(f, &u) ? GWA_STEP_UNUSUAL
                                       : GWA_STEP_STEADY;
        s->list[i] = (struct gwa_step){.from = f->from,
                                       .to = f->to,
                                       .backward_end = f->backward_end,
                                       .backwards = f->backwards,
                                       .kind = f->kind};
        s->warm += f->kind == GWA_STEP_WARMUP;
        s->steady += f->kind == GWA_STEP_STEADY;
        s->unusual += f->kind == GWA_STEP_UNUSUAL;
    }
    s->count = s->found_count;
    s->confidence = confidence(s, &u);
    free(s->found);
    s->found = NULL;
    s->found_count = s->found_room = 0;
    return 0;
}
