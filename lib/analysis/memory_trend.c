#include "memory_internal.h"
#include "order.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* ---- bytes by address ---------------------------------------------------------------- */

#define BLOCKS_MAX (3u << 18) /* three quarters of a power of two: as full as it may get */

static size_t place(const struct gwa_live *l, uint32_t address)
{
    size_t mask = l->room - 1, i = (address * UINT32_C(2654435761) >> 7) & mask;
    while (l->blocks[i].address && l->blocks[i].address != address)
        i = (i + 1) & mask;
    return i;
}

static int grow(struct gwa_live *l)
{
    struct gwa_live wider = {.room = l->room ? l->room * 2 : 1024};
    wider.blocks = calloc(wider.room, sizeof(*wider.blocks));
    if (!wider.blocks)
        return -ENOMEM;
    for (size_t i = 0; i < l->room; i++)
        if (l->blocks[i].address)
            wider.blocks[place(&wider, l->blocks[i].address)] = l->blocks[i];
    free(l->blocks);
    l->blocks = wider.blocks;
    l->room = wider.room;
    return 0;
}

int gwa_live_add(struct gwa_live *l, uint32_t address, uint64_t bytes)
{
    if (l->count >= BLOCKS_MAX)
        return -ERANGE;
    int rc = (l->count + 1) * 4 > l->room * 3 ? grow(l) : 0;
    if (rc)
        return rc;
    struct gwa_live_block *b = &l->blocks[place(l, address)];
    /* sizes come from a file: the sum must not wrap */
    if (bytes > INT64_MAX - (l->bytes - b->bytes))
        return -ERANGE;
    l->count += !b->address;
    l->bytes += bytes - b->bytes;
    *b = (struct gwa_live_block){.address = address, .bytes = bytes};
    return 0;
}

void gwa_live_remove(struct gwa_live *l, uint32_t address)
{
    if (!l->room || !address)
        return;
    size_t mask = l->room - 1, hole = place(l, address);
    if (!l->blocks[hole].address)
        return;
    l->bytes -= l->blocks[hole].bytes;
    l->count--;
    /* close the hole: what follows may have been put further than its own place because of it */
    l->blocks[hole] = (struct gwa_live_block){0};
    for (size_t i = (hole + 1) & mask; l->blocks[i].address; i = (i + 1) & mask) {
        struct gwa_live_block moved = l->blocks[i];
        l->blocks[i] = (struct gwa_live_block){0};
        l->blocks[place(l, moved.address)] = moved;
    }
}

void gwa_live_free(struct gwa_live *l)
{
    free(l->blocks);
}

/* ---- trend ------------------------------------------------------------------------------ */

#define POINTS_MAX 256u /* of which all pairs are compared */
/* Growth is what rises in so many of all pairs, in so many points: less than one series of random
 * numbers in 300 does (Kendall's tau of 0.6). One step up in the middle makes half of the pairs
 * rise, growth that ends in the middle three quarters. */
#define POINTS_MIN 12u
#define RISING     0.8

/* The median slope over all pairs, and how many of them rise. */
static double slope_of(const struct gwa_trend_point *p, size_t count, double *pairs, double *rising)
{
    size_t n = 0, up = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++) {
            if (!(p[j].x > p[i].x))
                continue;
            pairs[n++] = (p[j].y - p[i].y) / (p[j].x - p[i].x);
            up += p[j].y > p[i].y;
        }
    *rising = n ? (double)up / (double)n : 0;
    return n ? gwa_median(pairs, n) : 0;
}

int gwa_trend(struct gwa_trend_point *p, size_t count, struct gwa_trend *out)
{
    size_t n = count < POINTS_MAX ? count : POINTS_MAX;
    double rising, *scratch = malloc((n * n / 2 + n + 1) * sizeof(*scratch));
    if (!scratch)
        return -ENOMEM;
    *out = (struct gwa_trend){.median = NAN, .slope = NAN};
    for (size_t i = 0; i < n; i++) {
        p[i] = p[i * count / n];
        scratch[i] = p[i].y;
    }
    if (n)
        out->median = gwa_median(scratch, n);
    if (n >= POINTS_MIN) {
        out->slope = slope_of(p, n, scratch, &rising);
        if (!(out->slope > 0) || rising < RISING)
            out->slope = 0;
    }
    free(scratch);
    return 0;
}
