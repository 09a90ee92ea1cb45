/* Entry and return of an intercepted call: the record path.
 *
 * No lock, allocation, system call or fence here. The common case is two clock reads
 * and one 32-byte store; everything else is out of line. */
#ifndef GW_CALL_H
#define GW_CALL_H

#include "gw.h"
#include "sampler.h"

#define GW_INLINE static inline __attribute__((always_inline))

/* post: the frame that decoding fills, or NULL: pass through. */
struct gw_frame *gw_enter(struct gw_frame *f, uint64_t word);
struct gw_frame *gw_enter_slow(struct gw_frame *f);
struct gw_frame *gw_enter_nested(struct gw_frame *f);
void gw_finish(struct gw_frame *f, uint64_t t1, int status);
/* post: status */
int gw_finish_launch(struct gw_frame *f, uint64_t t1, int status);
int gw_finish_short(struct gw_frame *own, uint64_t t1, int status);

/* api, kind and level of a frame as one word, which entry stores at once. */
#define GW_FRAME_WORD(api, kind, level)                                                            \
    ((uint64_t)(api) | (uint64_t)(kind) << 32 | (uint64_t)(level) << 40)
#define GW_FRAME_TAKEN (1ull << 56 | (uint64_t)GWT_F_DRIVER << 16)
_Static_assert(offsetof(struct gw_frame, kind) - offsetof(struct gw_frame, word) == 4, "word");
_Static_assert(offsetof(struct gw_frame, level) - offsetof(struct gw_frame, word) == 5, "word");
_Static_assert(offsetof(struct gw_frame, merged) - offsetof(struct gw_frame, word) == 6, "word");
_Static_assert(offsetof(struct gw_frame, taken) - offsetof(struct gw_frame, word) == 7, "word");
#define GW_FRAME_NO_STREAM (1ull << 8)
_Static_assert(offsetof(struct gw_frame, no_stream) - offsetof(struct gw_frame, word2) == 1, "");
_Static_assert(offsetof(struct gw_frame, arg) - offsetof(struct gw_frame, word2) == 4, "word2");

/* The lines of the ring that will be written next were last read by the drain thread, on another
 * core: ask for them some launches ahead. */
GW_INLINE void gw_prefetch_record(const struct gwt_record *r)
{
    __builtin_prefetch(r + 16, 1);
}

/* The driver's share of a runtime call, timed for one call in 64 chosen by the low bits of its
 * own entry time. */
GW_INLINE bool gw_share_sampled(const struct gw_frame *outer)
{
    return ((outer->t0 >> 4) & 63) == 0;
}

/* Ticks that are less than a millisecond on every machine, so that the entry of a call compares
 * with a constant: a counter runs at 0.6 GHz and more on x86, at 24 MHz and more on aarch64. */
#if defined(__aarch64__)
#define GW_SECTION_LEAST (1u << 14)
#else
#define GW_SECTION_LEAST (1u << 19)
#endif

static inline void gw_set_duration(struct gwt_record *r, uint64_t dur)
{
    if (gw_unlikely(dur > UINT32_MAX)) {
        r->flags |= GWT_F_LONG;
        dur >>= 10;
    }
    r->dur = dur > UINT32_MAX ? UINT32_MAX : (uint32_t)dur;
}

GW_INLINE void gw_frame_init(struct gw_frame *f, uint64_t word)
{
    f->outer = NULL;
    f->t0 = 0;
    f->word = word;
    f->word2 = GW_FRAME_NO_STREAM;
    f->stream = NULL;
    f->value = 0;
}

GW_INLINE uint64_t gw_returned(const struct gw_frame *own)
{
    return gw_likely(!own->merged) ? gw_ticks() : 0;
}

GW_INLINE void gw_leave(struct gw_frame *own, struct gw_frame *f, uint64_t t1, int status,
                        unsigned kind)
{
    if (own->merged) {
        if (kind == GWT_LAUNCH && gw_unlikely(own->t0))
            f->value = gw_ticks() - own->t0;
        return;
    }
    if (kind == GWT_LAUNCH)
        gw_finish_launch(own, t1, status);
    else
        gw_finish(own, t1, status);
}

/* ---- the thread's caches ---------------------------------------------------------------- */

/* Where a signature is looked for first; it may be in another way of the same set. What shapes of
 * one function differ in is mostly the grid; a function's address has 4 low bits that say nothing.
 */
GW_INLINE uint32_t gw_place(const struct gw_shape *s)
{
    uint32_t h = ((uint32_t)((uintptr_t)s->func >> 4) ^ (s->grid[0] + s->grid[1] * 8));
    return h * 0x9e3779b1u >> 22;
}
_Static_assert(GW_SIGNATURE_CACHE == 1u << (32 - 22), "gw_place()");

/* b is taken apart first: where both sides are fields of structures, compilers compare two
 * neighbours at once, which were just written one by one, and that waits for the cache. */
GW_INLINE bool gw_same_shape(const struct gw_shape *a, const struct gw_shape *b)
{
    const void *const func = b->func;
    const uint32_t gx = b->grid[0], gy = b->grid[1], gz = b->grid[2];
    const uint32_t bx = b->block[0], by = b->block[1], bz = b->block[2], shared = b->shared;
    return a->func == func && a->grid[0] == gx && a->grid[1] == gy && a->grid[2] == gz &&
           a->block[0] == bx && a->block[1] == by && a->block[2] == bz && a->shared == shared;
}

/* post: the signature's id, 0: ask the long way. */
GW_INLINE uint32_t gw_signature_hit(const struct gw_thread *t, const struct gw_shape *s)
{
    const struct gw_signature_entry *e = &t->signatures[gw_place(s)];
    return gw_likely(gw_same_shape(&e->shape, s)) ? e->id : 0;
}

/* ---- the short path of a launch ------------------------------------------------------------
 *
 * Launches are what a job makes by the million. One whose thread, clock, signature and stream
 * are known, on a stream that nobody captures or times, is opened, merged and closed by these
 * few instructions. Each says whether it did its part; where it did not, it changed nothing,
 * and the functions above do the whole. */

/* Entry of an outermost launch. probe: decoded, not entered; id: its signature if that is known.
 * Leaves the rest of the frame to gw_finish_short(). */
GW_INLINE bool gw_launch_opens(struct gw_thread *t, struct gw_frame *own, uint64_t word,
                               const struct gw_frame *probe, uint32_t id)
{
    if (gw_unlikely(gw_load_relaxed(&gw_odd)))
        return false;
    struct gwt_slot *slot = t->slot;
    if (gw_unlikely(!slot)) /* a child made by raw clone */
        return false;
    uint64_t t0 = gw_counter();
    if (gw_unlikely(t0 - gw_load_relaxed(&slot->returned) >= GW_SECTION_LEAST))
        return false;
    own->t0 = t0;
    own->word = word | (uint64_t)probe->flags << 16;
    own->word2 = probe->which | (uint64_t)(id ? t->stream.id : 0) << 16 | (uint64_t)id << 32;
    own->stream = probe->stream;
    gw_local.idle = NULL;
    gw_top = own;
    gw_top_t0 = t0;
    slot->open_api = (uint16_t)word;
    gw_store_relaxed(&slot->open_t0, t0);
    return true;
}

/* What a driver launch runs, if it is known. post: the signature's id; 0: it is not, or the launch
 * is a candidate for timing. */
GW_INLINE uint32_t gw_launch_known(struct gw_thread *t, const struct gw_frame *probe)
{
    if (gw_unlikely(gw_load_relaxed((uint64_t *)&gw_epochs) != *(uint64_t *)&t->epochs ||
                    t->stream.handle != probe->stream || t->stream.which != probe->which))
        return 0;
    uint32_t id = gw_signature_hit(t, &probe->shape);
    if (gw_unlikely(gw_load_relaxed(&gw_timing)) && --t->countdown < 0)
        return 0;
    return id;
}

/* Whether a driver launch is its runtime caller's: the common nesting. A caller's frame lies higher
 * on the stack, or it is not a caller (drop_unwound() in record.c). */
GW_INLINE bool gw_launch_merges(const struct gw_frame *o, const void *here)
{
    return gw_likely(o && o->word >> 32 == GW_FRAME_WORD(0, GWT_LAUNCH, GWT_LEVEL_RUNTIME) >> 32 &&
                     (uintptr_t)o > (uintptr_t)here && o->t0 == gw_top_t0 && !gw_share_sampled(o) &&
                     !gw_load_relaxed(&gw_odd));
}

#endif
