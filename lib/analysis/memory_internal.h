/* What memory.c rests on: bytes live by address, and whether a series grows. */
#ifndef GWA_MEMORY_INTERNAL_H
#define GWA_MEMORY_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- bytes by address ---- */

struct gwa_live_block {
    uint32_t address; /* GWT_ADDR; 0: free place */
    uint64_t bytes;
};

struct gwa_live {
    struct gwa_live_block *blocks; /* open addressing */
    size_t room, count;            /* room: 0 or a power of two */
    uint64_t bytes;
};

/* post: 0, -ENOMEM, or -ERANGE where more blocks are live than are believed. An address that
 *       is live already was freed unseen: its new size counts. */
int gwa_live_add(struct gwa_live *l, uint32_t address, uint64_t bytes);
void gwa_live_remove(struct gwa_live *l, uint32_t address);
void gwa_live_free(struct gwa_live *l);

/* ---- trend ---- */

struct gwa_trend_point {
    double x, y;
};

struct gwa_trend {
    double median; /* of y */
    double slope;  /* y per x: the median over all pairs (Theil and Sen); 0: no growth beyond
                      scatter; NaN: too few points */
};

/* pre:  ordered by x. post: 0 or -ENOMEM. `points` is changed. */
int gwa_trend(struct gwa_trend_point *points, size_t count, struct gwa_trend *out);

#endif
