/* Sums of events left out. */
#include "aggregate.h"

#include <string.h>

static uint32_t column(struct gwt_table *t, uint16_t api)
{
    for (uint32_t a = 0; a < t->apis; a++)
        if (t->api[a] == api)
            return a;
    if (t->apis == GWT_TABLE_APIS)
        return 0;
    t->api[t->apis] = api;
    memset(t->cells[t->apis], 0, t->slots * sizeof(t->cells[0][0]));
    return t->apis++;
}

void gwt_table_clear(struct gwt_table *t, uint32_t slots)
{
    t->base = 0;
    t->span = 1;
    t->events = 0;
    t->slots = slots;
    t->apis = 0;
    column(t, 0);
}

static void add(struct gwt_cell *to, const struct gwt_cell *from)
{
    to->calls += from->calls;
    to->ticks += from->ticks;
    to->bytes += from->bytes;
    to->failed += from->failed;
}

/* Slot i takes what two slots held: those that lie in [base + i * 2 span, + 2 span). */
void gwt_table_coarsen(struct gwt_table *t)
{
    uint64_t base = t->base - t->base % (2 * t->span);
    uint32_t shift = base != t->base;

    for (uint32_t a = 0; a < t->apis; a++) {
        struct gwt_cell *cells = t->cells[a];

        for (uint32_t i = 0; i < t->slots; i++) {
            struct gwt_cell cell = cells[i];

            cells[i] = (struct gwt_cell){0};
            add(&cells[(i + shift) / 2], &cell); /* never above i, so not yet to be read */
        }
    }
    t->base = base;
    t->span *= 2;
}

struct gwt_cell *gwt_table_cell(struct gwt_table *t, uint64_t second, uint16_t api)
{
    if (!t->events)
        t->base = second - second % t->span;
    /* Another thread's older frame, drained later: a slight error of the second, no loss. */
    if (second < t->base)
        second = t->base;
    while ((second - t->base) / t->span >= t->slots)
        gwt_table_coarsen(t);
    return &t->cells[column(t, api)][(second - t->base) / t->span];
}

void gwt_table_merge(struct gwt_table *into, const struct gwt_table *from)
{
    while (into->span < from->span)
        gwt_table_coarsen(into);
    for (uint32_t i = 0; i < from->slots; i++) {
        for (uint32_t a = 0; a < from->apis; a++) {
            const struct gwt_cell *cell = &from->cells[a][i];

            if (!cell->calls)
                continue;
            add(gwt_table_cell(into, from->base + i * from->span, from->api[a]), cell);
            into->events += cell->calls;
        }
    }
}

uint32_t gwt_table_rows(const struct gwt_table *t, struct gwt_aggregate *rows, uint32_t room)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < t->slots; i++) {
        for (uint32_t a = 0; a < t->apis; a++) {
            const struct gwt_cell *cell = &t->cells[a][i];

            if (!cell->calls || n == room)
                continue;
            rows[n++] = (struct gwt_aggregate){
                .second = t->base + i * t->span,
                .calls = cell->calls,
                .ticks = cell->ticks,
                .bytes = cell->bytes,
                .api = t->api[a],
                .span = t->span > UINT16_MAX ? UINT16_MAX : (uint16_t)t->span,
                .failed = cell->failed,
            };
        }
    }
    return n;
}
