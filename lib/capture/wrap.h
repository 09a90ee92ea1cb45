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
#define GW_WRAP(symbol, ret, name, params, args, kind_, before, after, level_, pt, version, real_, \
                resolve, absent)                                                                   \
    GW_EXPORT ret symbol params;                                                                   \
    GW_EXPORT ret symbol params                                                                    \
    {                                                                                              \
        enum { PT = pt, LEVEL = (int)level_, node = version };                                     \
        ret(*real) params = (ret(*) params)gw_load_relaxed(&(real_));                              \
        if (gw_unlikely(!real) && !(real = (ret(*) params)(resolve)))                              \
            return (ret)(absent);                                                                  \
        struct gw_frame own, *f = gw_enter(&own, GW_API_##name, GWT_##kind_, level_);              \
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

#endif
