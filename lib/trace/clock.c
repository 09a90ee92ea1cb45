/* Ticks to CLOCK_MONOTONIC. */
#include "reader_internal.h"

#include <errno.h>
#include <stdlib.h>

int gwt_clock_add(struct clock *c, const struct gwt_triple *triples, size_t count)
{
    if (count > c->room - c->count) {
        size_t room = 2 * c->room + count;
        struct gwt_triple *grown = realloc(c->triples, room * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        c->triples = grown;
        c->room = room;
    }
    for (size_t i = 0; i < count; i++)
        c->triples[c->count++] = triples[i];
    return 0;
}

static int by_ticks(const void *a, const void *b)
{
    const struct gwt_triple *x = a, *y = b;

    if (x->ticks != y->ticks)
        return x->ticks < y->ticks ? -1 : 1;
    return x->monotonic_ns < y->monotonic_ns ? -1 : x->monotonic_ns > y->monotonic_ns;
}

void gwt_clock_ready(struct clock *c, uint32_t clock, double hz)
{
    size_t n = 0;

    c->ticks_are_ns = clock == GWT_CLOCK_MONOTONIC;
    if (c->count)
        qsort(c->triples, c->count, sizeof(*c->triples), by_ticks);
    for (size_t i = 0; i < c->count; i++) {
        if (c->triples[i].monotonic_ns > (uint64_t)GWT_FAR_NS)
            continue;
        if (n && (c->triples[i].ticks == c->triples[n - 1].ticks ||
                  c->triples[i].monotonic_ns < c->triples[n - 1].monotonic_ns))
            continue;
        c->triples[n++] = c->triples[i];
    }
    c->count = n;
    c->per_tick = hz >= 1e6 && hz <= 1e12 && !c->ticks_are_ns ? 1e9 / hz : 1;
    if (n > 1 && !c->ticks_are_ns)
        c->per_tick = (double)(c->triples[n - 1].monotonic_ns - c->triples[0].monotonic_ns) /
                      (double)(c->triples[n - 1].ticks - c->triples[0].ticks);
    gwt_clock_seek(c, n ? c->triples[0].ticks : 0);
}

static struct stretch stretch(uint64_t from, uint64_t to, uint64_t base_ticks, uint64_t base_ns,
                              double slope)
{
    return (struct stretch){.from = from,
                            .span = to - from,
                            .base_ticks = base_ticks,
                            .base_ns = (int64_t)base_ns,
                            .slope = slope,
                            .near = (double)(to - from) * slope < (double)GWT_FAR_NS / 2};
}

void gwt_clock_seek(struct clock *c, uint64_t ticks)
{
    const struct gwt_triple *a, *b;
    size_t low = 0, high = c->count;

    if (c->ticks_are_ns || !c->count) {
        /* short stretches: a double counts ns exactly up to 2^53 only */
        uint64_t length = (uint64_t)1 << 40, from = ticks & ~(length - 1);

        c->at = stretch(from, from + length, from, from < (uint64_t)GWT_FAR_NS ? from : GWT_FAR_NS,
                        c->per_tick);
        return;
    }
    while (low < high) { /* low: the first triple after ticks */
        size_t middle = low + (high - low) / 2;

        if (c->triples[middle].ticks <= ticks)
            low = middle + 1;
        else
            high = middle;
    }
    a = low ? &c->triples[low - 1] : NULL;
    b = low < c->count ? &c->triples[low] : NULL;
    if (a && b)
        c->at =
            stretch(a->ticks, b->ticks, a->ticks, a->monotonic_ns,
                    (double)(b->monotonic_ns - a->monotonic_ns) / (double)(b->ticks - a->ticks));
    else if (a)
        c->at = stretch(a->ticks, UINT64_MAX, a->ticks, a->monotonic_ns, c->per_tick);
    else
        c->at = stretch(0, b->ticks, b->ticks, b->monotonic_ns, c->per_tick);
}

void gwt_clock_free(struct clock *c)
{
    free(c->triples);
    c->triples = NULL;
}
