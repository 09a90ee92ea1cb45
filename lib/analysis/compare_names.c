/* Names with numbers: kernels and calls of a step. */
#include "compare.h"
#include "grow.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A name that goes into a baseline is one line that a person can read. */
#define NAME_LONGEST 252
#define NAME_CUT     240 /* and "...#" with the hash of all of it: as long as the longest */

static uint32_t hash_of(const char *s)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 16777619u;
    return h;
}

/* The same for the same name, whichever file it comes from; what was cut once stays as it is.
 * post: whether it was cut. */
static bool plain_name(const char *name, char out[NAME_LONGEST + 1])
{
    size_t n = 0;
    for (; name[n] && n < NAME_LONGEST; n++)
        out[n] = name[n] >= 0x20 && name[n] < 0x7f ? name[n] : '?';
    out[n] = 0;
    if (!name[n])
        return false;
    snprintf(out + NAME_CUT, NAME_LONGEST + 1 - NAME_CUT, "...#%08x", hash_of(name));
    return true;
}

const struct gwa_named *gwa_names_find(const struct gwa_names *n, const char *name)
{
    size_t low = 0, high = n->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(n->list[middle].name, name);
        if (!order)
            return &n->list[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static void free_named(struct gwa_named *named)
{
    free(named->name);
    free(named->full);
    free(named->where);
}

int gwa_names_add(struct gwa_names *n, const char *raw, double calls, double mean_us,
                  const char *where)
{
    char name[NAME_LONGEST + 1];
    if (gwa_reserve((void **)&n->list, &n->room, n->count, sizeof(*n->list)))
        return -ENOMEM;
    raw = raw ? raw : "(name unknown)";
    bool cut = plain_name(raw, name);
    struct gwa_named added = {.name = strdup(name),
                              .full = cut ? strdup(raw) : NULL,
                              .calls = calls,
                              .mean_us = mean_us,
                              .where = where ? strdup(where) : NULL};
    if (!added.name || (cut && !added.full) || (where && !added.where)) {
        free_named(&added);
        return -ENOMEM;
    }
    n->list[n->count++] = added;
    return 0;
}

static int by_own_name(const void *a, const void *b)
{
    return strcmp(((const struct gwa_named *)a)->name, ((const struct gwa_named *)b)->name);
}

static void unite(struct gwa_named *to, struct gwa_named *from)
{
    double us = to->mean_us * to->calls + from->mean_us * from->calls; /* NaN: one is not known */
    to->calls += from->calls;
    to->mean_us = to->calls > 0 ? us / to->calls : NAN;
    if (!to->where) {
        to->where = from->where;
        from->where = NULL;
    }
    free_named(from);
}

void gwa_names_sort(struct gwa_names *n)
{
    size_t used = 0;
    if (n->count)
        qsort(n->list, n->count, sizeof(*n->list), by_own_name);
    for (size_t i = 0; i < n->count; i++) {
        if (used && !strcmp(n->list[used - 1].name, n->list[i].name))
            unite(&n->list[used - 1], &n->list[i]);
        else
            n->list[used++] = n->list[i];
    }
    n->count = used;
}

void gwa_names_free(struct gwa_names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free_named(&n->list[i]);
    free(n->list);
    *n = (struct gwa_names){0};
}

/* ---- what differs ---------------------------------------------------------------------------- */

/* Calls are means over many steps: what is done in one of ten steps is no step's work. */
#define CALLS_MARGIN 0.1

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct gwa_change *)a)->name, ((const struct gwa_change *)b)->name);
}

static int larger_first(double x, double y)
{
    x = isnan(x) ? -1 : fabs(x);
    y = isnan(y) ? -1 : fabs(y);
    return x > y ? -1 : x < y;
}

static int by_calls(const void *a, const void *b)
{
    const struct gwa_change *x = a, *y = b;
    int order = larger_first(x->now - x->base, y->now - y->base);
    return order ? order : by_name(a, b);
}

static int by_effect(const void *a, const void *b)
{
    const struct gwa_change *x = a, *y = b;
    int order = larger_first(x->effect_ms, y->effect_ms);
    return order ? order : by_calls(a, b);
}

/* Calls times duration, of which what is not known is taken from the other side. */
static double effect(const struct gwa_named *base, const struct gwa_named *now)
{
    double base_us = base ? base->mean_us : NAN, now_us = now ? now->mean_us : NAN;
    double before = base ? base->calls : 0, after = now ? now->calls : 0;
    if (isnan(base_us))
        base_us = now_us;
    if (isnan(now_us))
        now_us = base_us;
    return (after * now_us - before * base_us) / 1e3;
}

static void add_change(struct gwa_change *out, size_t *n, const struct gwa_named *base,
                       const struct gwa_named *now)
{
    double before = base ? base->calls : 0, after = now ? now->calls : 0;
    if (fabs(after - before) <= CALLS_MARGIN)
        return;
    out[(*n)++] = (struct gwa_change){
        .name = now ? now->name : base->name,
        .where = now && now->where ? now->where
                 : base            ? base->where
                                   : NULL,
        .base = before,
        .now = after,
        .base_us = base ? base->mean_us : NAN,
        .now_us = now ? now->mean_us : NAN,
        .effect_ms = effect(base, now),
    };
}

int gwa_names_compare(const struct gwa_names *base, const struct gwa_names *now, enum gwa_sort sort,
                      struct gwa_change **out, size_t *count)
{
    static int (*const orders[])(const void *, const void *) = {
        [GWA_SORT_EFFECT] = by_effect, [GWA_SORT_CALLS] = by_calls, [GWA_SORT_NAME] = by_name};
    struct gwa_change *list = calloc(base->count + now->count + 1, sizeof(*list));
    size_t n = 0, b = 0, a = 0;
    if (!list)
        return -ENOMEM;
    while (b < base->count || a < now->count) {
        int order = b == base->count  ? 1
                    : a == now->count ? -1
                                      : strcmp(base->list[b].name, now->list[a].name);
        add_change(list, &n, order <= 0 ? &base->list[b] : NULL, order >= 0 ? &now->list[a] : NULL);
        b += order <= 0;
        a += order >= 0;
    }
    qsort(list, n, sizeof(*list), orders[sort]);
    *out = list;
    *count = n;
    return 0;
}
