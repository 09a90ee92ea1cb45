/* The time that NVTX ranges of one name cover, over all threads. */
#ifndef GWA_RANGES_H
#define GWA_RANGES_H

#include <gpuwait/trace.h>

struct gwa_interval {
    int64_t from, to; /* half open */
};

struct gwa_ranges {
    bool all;                  /* no range was asked for: everything is inside */
    struct gwa_interval *list; /* sorted, disjoint */
    size_t count, room;
    size_t hint; /* where the last look-up ended: events come nearly in order */
};

/* Passes over the trace once and rewinds it.
 * post: 0, or -ENOENT with `error` naming those there are, or -ENOMEM. Free either way. */
int gwa_ranges_find(struct gwa_ranges *ranges, struct gwt_trace *trace, const char *name,
                    int (*tick)(void *arg), void *tick_arg, struct gwt_error *error);
void gwa_ranges_free(struct gwa_ranges *ranges);

bool gwa_ranges_seek(struct gwa_ranges *ranges, int64_t t); /* for gwa_ranges_hold() */

static inline bool gwa_ranges_hold(struct gwa_ranges *r, int64_t t)
{
    if (r->all)
        return true;
    size_t i = r->hint;
    if (i < r->count && r->list[i].from <= t && (i + 1 == r->count || t < r->list[i + 1].from))
        return t < r->list[i].to;
    return gwa_ranges_seek(r, t);
}

/* How much of [from, to) is covered. */
int64_t gwa_ranges_overlap(const struct gwa_ranges *ranges, int64_t from, int64_t to);

#endif
