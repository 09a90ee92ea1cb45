/* One wrapper: the body that every row of the call table becomes. */
#ifndef GW_WRAP_H
#define GW_WRAP_H

#include "call.h"
#include "decode.h"
#include "sampler.h"

/* Operations that may be timed on the device, at the level where their arguments are known. */
#define GW_SAMPLED(kind, level)                                                                    \
    ((level) == GWT_LEVEL_DRIVER && (GWT_##kind == GWT_LAUNCH || GWT_##kind == GWT_GRAPH_LAUNCH || \
                                     GWT_##kind == GWT_COPY || GWT_##kind == GWT_MEMSET))

/* A communicator created without blocking answers ncclInProgress (7): accepted, not failed. */
#define GW_STATUS_OF(level, r) ((level) == GWT_LEVEL_NCCL && (int)(r) == 7 ? 0 : (int)(r))

/* symbol  the C name of the function; version  the CUDA major version of the caller's cudart
 * real_   lvalue that holds the real function; resolve  finds it; absent  answers without it */
#define GW_WRAP(symbol, ret, name, params, args, kind_, ...)                                       \
    GW_PICK(GW_SHORT_##kind_, GW_WRAP_ANY, )(symbol, ret, name, params, args, kind_, __VA_ARGS__)
#define GW_PICK(...)         GW_SECOND(__VA_ARGS__)
#define GW_SECOND(a, b, ...) b
#define GW_SHORT_LAUNCH      , GW_WRAP_LAUNCH

/* The real function in `real`; returns where there is none. */
#define GW_REAL(ret, params, real_, resolve, absent)                                               \
    ret(*real) params = (ret(*) params)gw_load_relaxed(&(real_));                                  \
    if (gw_unlikely(!real) && !(real = (ret(*) params)(resolve)))                                  \
    return (ret)(absent)

#define GW_WRAP_ANY(symbol, ret, name, params, args, kind_, before, after, level_, pt, version,    \
                    real_, resolve, absent)                                                        \
    GW_EXPORT ret symbol params;                                                                   \
    GW_EXPORT GW_LONG(symbol, ret, name, params, args, kind_, before, after, level_, pt, version,  \
                      real_, resolve, absent)

/* The whole of a call, whatever may be unusual about it. */
#define GW_LONG(symbol, ret, name, params, args, kind_, before, after, level_, pt, version, real_, \
                resolve, absent)                                                                   \
    ret symbol params                                                                              \
    {                                                                                              \
        enum { PT = pt, LEVEL = (int)level_, node = version };                                     \
        GW_REAL(ret, params, real_, resolve, absent);                                              \
        struct gw_frame own,                                                                       \
            *f = gw_enter(&own, GW_FRAME_WORD(GW_API_##name, GWT_##kind_, level_));                \
        if (gw_unlikely(!f))                                                                       \
            return real args;                                                                      \
        before;                                                                                    \
        int sample = GW_SAMPLED(kind_, level_) && gw_sample_due() ? gw_sample_begin(f) : -1;       \
        ret r = real args;                                                                         \
        if (GW_SAMPLED(kind_, level_) && gw_unlikely(sample >= 0))                                 \
            gw_sample_end(sample, (int)r);                                                         \
        uint64_t t1 = gw_returned(&own);                                                           \
        after;                                                                                     \
        gw_leave(&own, f, t1, GW_STATUS_OF(level_, r), GWT_##kind_);                               \
        return r;                                                                                  \
    }

/* A launch: the short path, and where that ends the long one, from the start. A row's `after` has
 * nothing to do here. LEVEL is none, since what decoding asks of the driver level was asked. */
#define GW_WRAP_LAUNCH(symbol, ret, name, params, args, kind_, before, after, level_, pt, version, \
                       real_, resolve, absent)                                                     \
    static __attribute__((noinline))                                                               \
    GW_LONG(symbol##_long, ret, name, params, args, kind_, before, after, level_, pt, version,     \
            real_, resolve, absent)                                                                \
        GW_LAUNCH_##level_(symbol, ret, name, params, args, before, pt, version, real_)

#define GW_LAUNCH_GWT_LEVEL_RUNTIME(symbol, ret, name, params, args, before, pt, version, real_)   \
    GW_EXPORT ret symbol params;                                                                   \
    GW_EXPORT GW_OUTERMOST(symbol, symbol##_long, ret, name, params, args, before,                 \
                           GWT_LEVEL_RUNTIME, pt, version, real_)

#define GW_LAUNCH_GWT_LEVEL_DRIVER(symbol, ret, name, params, args, before, pt, version, real_)    \
    static __attribute__((noinline))                                                               \
    GW_OUTERMOST(symbol##_outermost, symbol##_long, ret, name, params, args, before,               \
                 GWT_LEVEL_DRIVER, pt, version, real_)                                             \
                                                                                                   \
        GW_EXPORT ret symbol params;                                                               \
    GW_EXPORT ret symbol params                                                                    \
    {                                                                                              \
        enum { PT = pt, LEVEL = GWT_LEVEL_NONE, node = version };                                  \
        struct gw_frame probe, *f = &probe, *o = gw_top;                                           \
        struct gw_thread *t = gw_self;                                                             \
        char here;                                                                                 \
        if (!gw_launch_merges(o, &here) || !t || !gw_load_relaxed(&(real_)))                       \
            return symbol##_outermost args;                                                        \
        gw_frame_init(&probe, 0);                                                                  \
        before;                                                                                    \
        uint32_t id = gw_launch_known(t, &probe);                                                  \
        if (gw_unlikely(!id))                                                                      \
            return symbol##_long args;                                                             \
        o->word |= GW_FRAME_TAKEN | (uint64_t)probe.flags << 16;                                   \
        o->stream_id = t->stream.id;                                                               \
        o->arg = id;                                                                               \
        return ((ret(*) params)gw_load_relaxed(&(real_)))args;                                     \
    }

#define GW_OUTERMOST(symbol, long_, ret, name, params, args, before, level_, pt, version, real_)   \
    ret symbol params                                                                              \
    {                                                                                              \
        enum { PT = pt, LEVEL = GWT_LEVEL_NONE, node = version };                                  \
        struct gw_frame own, probe, *f = &probe;                                                   \
        struct gw_thread *t = gw_local.idle;                                                       \
        uint32_t id = 0;                                                                           \
        if (gw_unlikely(!t || !gw_load_relaxed(&(real_))))                                         \
            return long_ args;                                                                     \
        gw_frame_init(&probe, 0);                                                                  \
        before;                                                                                    \
        if (level_ == GWT_LEVEL_DRIVER && gw_unlikely(!(id = gw_launch_known(t, &probe))))         \
            return long_ args;                                                                     \
        if (gw_unlikely(!gw_launch_opens(                                                          \
                t, &own, GW_FRAME_WORD(GW_API_##name, GWT_LAUNCH, level_), &probe, id)))           \
            return long_ args;                                                                     \
        ret r = ((ret(*) params)gw_load_relaxed(&(real_)))args;                                    \
        return (ret)gw_finish_short(&own, gw_counter(), (int)r);                                   \
    }

#endif
