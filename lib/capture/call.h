/* Entry and return of an intercepted call: the record path.
 *
 * No lock, allocation, system call or fence here. The common case is two clock reads
 * and one 32-byte store; everything else is out of line. */
#ifndef GW_CALL_H
#define GW_CALL_H

#include "gw.h"

#define GW_INLINE static inline __attribute__((always_inline))

/* post: the frame that decoding fills, or NULL: pass through. */
struct gw_frame *gw_enter_any(struct gw_frame *f, uint64_t word);
struct gw_frame *gw_enter_slow(struct gw_frame *f);
struct gw_frame *gw_enter_nested(struct gw_frame *f);
void gw_finish(struct gw_frame *f, uint64_t t1, int status);
void gw_finish_launch(struct gw_frame *f, uint64_t t1, int status);

/* api, kind and level of a frame as one word, which entry stores at once. */
#define GW_FRAME_WORD(api, kind, level)                                                            \
    ((uint64_t)(api) | (uint64_t)(kind) << 32 | (uint64_t)(level) << 40)
_Static_assert(offsetof(struct gw_frame, kind) - offsetof(struct gw_frame, api) == 4, "frame word");
_Static_assert(offsetof(struct gw_frame, level) - offsetof(struct gw_frame, api) == 5,
               "frame word");

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
    static const uint64_t no_stream = 1ull << 8;
    f->outer = NULL;
    f->t0 = 0;
    memcpy(&f->api, &word, 8);
    memcpy(&f->per_thread, &no_stream, 8);
    f->stream = NULL;
    f->value = 0;
}

GW_INLINE struct gw_frame *gw_enter_frame(struct gw_frame *f, uint64_t word)
{
    /* Of the word, not the frame: where it is a constant, so are these. */
    const uint8_t kind = (uint8_t)(word >> 32), level = (uint8_t)(word >> 40);
    gw_frame_init(f, word);
    struct gw_thread *t = gw_self;
    struct gw_frame *o = gw_top;
    if (gw_unlikely(!gw_load_relaxed(gw_alive) || !t || kind == GWT_NAME))
        return gw_enter_slow(f);
    if (gw_unlikely(t->busy))
        return gw_enter_nested(f);
    if (o) {
        /* The common nesting: a runtime call's own driver call. Its caller's frame lies
         * higher on the stack, or it is not a caller (drop_unwound() in record.c). */
        if (level == GWT_LEVEL_DRIVER && o->level == GWT_LEVEL_RUNTIME && o->kind == kind &&
            !o->taken && (uintptr_t)o > (uintptr_t)f && o->t0 == gw_top_t0 &&
            !gw_share_sampled(o)) {
            o->taken = 1;
            o->flags |= GWT_F_DRIVER;
            f->merged = 1;
            return o;
        }
        return gw_enter_nested(f);
    }
    gw_top = f;
    f->t0 = gw_top_t0 = gw_ticks();
    if (gw_unlikely(f->t0 - gw_load_relaxed(&t->slot->returned) >= GW_SECTION_LEAST))
        gw_section_ends(t, f);
    /* What a killed job was inside. Not ordered against anything: a reader takes it as a hint. */
    t->slot->open_api = (uint16_t)word;
    gw_store_relaxed(&t->slot->open_t0, f->t0);
    return f;
}

/* Launches are what a job makes by the million: their entry and return are inline. */
GW_INLINE struct gw_frame *gw_enter(struct gw_frame *f, unsigned api, unsigned kind, unsigned level)
{
    if (kind == GWT_LAUNCH)
        return gw_enter_frame(f, GW_FRAME_WORD(api, kind, level));
    return gw_enter_any(f, GW_FRAME_WORD(api, kind, level));
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

#endif
