/* Sums per second and api of events that may have to be left out of the dump.
 *
 * A table covers `slots` spans of `span` seconds each. When time runs past its end,
 * neighbouring spans are folded and the span doubles, so a table of fixed size holds any
 * stretch of time, at the resolution that it can afford.
 * Drain thread: no allocation, no locks.
 */
#ifndef GW_TRACE_AGGREGATE_H
#define GW_TRACE_AGGREGATE_H

#include <gpuwait/format.h>

#define GWT_TABLE_SLOTS 1024u
#define GWT_TABLE_APIS  64u /* in a table; calls of further ones are filed under api 0 */

struct gwt_cell {
    uint64_t calls, ticks, bytes;
    uint32_t failed, spare;
};

struct gwt_table {
    uint64_t base; /* second at which slot 0 starts; a multiple of span */
    uint64_t span;
    uint64_t events; /* in all cells */
    uint32_t slots;  /* in use of GWT_TABLE_SLOTS: fewer for a small disk bound */
    uint32_t apis;   /* columns in use; column 0 is api 0 */
    uint16_t api[GWT_TABLE_APIS];
    /* by api, so that the pages of apis never seen are never touched */
    struct gwt_cell cells[GWT_TABLE_APIS][GWT_TABLE_SLOTS];
};

/* pre: 2 <= slots <= GWT_TABLE_SLOTS, even. */
void gwt_table_clear(struct gwt_table *t, uint32_t slots);

/* post: the cell to add to, valid until the next call. Call t->events up yourself. */
struct gwt_cell *gwt_table_cell(struct gwt_table *t, uint64_t second, uint16_t api);

void gwt_table_merge(struct gwt_table *into, const struct gwt_table *from);

/* Doubles the span. */
void gwt_table_coarsen(struct gwt_table *t);

/* Rows in order of time.
 * post: rows filled, at most `room`. */
uint32_t gwt_table_rows(const struct gwt_table *t, struct gwt_aggregate *rows, uint32_t room);

#endif
