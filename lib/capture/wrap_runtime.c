/* The wrappers of libcudart's exports: one for each version node, so that two cudarts in
 * one process each reach their own real function.
 *
 * A caller linked against libcudart.so.12 asks for cudaMalloc@libcudart.so.12. A preload
 * with one unversioned cudaMalloc would catch that as well as the caller of .so.13, and
 * could not tell them apart; so each version node has its own definition, bound by .symver
 * to the same node names that the real libraries have (exports.map declares them). */
#include "wrap.h"

/* Without a cudart that has the function: "driver insufficient", as without a driver. */
#define ABSENT_RUNTIME 35

#define NODE(ret, name, params, args, kind, before, after, pt, version, at)                        \
    __asm__(".symver gw_" #name "__" #version "," #name at);                                       \
    GW_WRAP(gw_##name##__##version, ret, name, params, args, kind, before, after,                  \
            GWT_LEVEL_RUNTIME, pt, version, gw_real_runtime[GW_NODE_##version][GW_API_##name],     \
            gw_resolve_runtime(GW_NODE_##version, GW_API_##name), ABSENT_RUNTIME)

#define RUNTIME(ret, name, params, args, kind, before, after, pt)                                  \
    NODE(ret, name, params, args, kind, before, after, pt, 11, "@libcudart.so.11.0")               \
    NODE(ret, name, params, args, kind, before, after, pt, 12, "@libcudart.so.12")                 \
    NODE(ret, name, params, args, kind, before, after, pt, 13, "@@libcudart.so.13")                \
    NODE(ret, name, params, args, kind, before, after, pt, 14, "@libcudart.so.14")

#define RT(ret, name, params, args, kind, before, after)                                           \
    RUNTIME(ret, name, params, args, kind, before, after, 0)
#define RT_ANY(ret, name, params, args, kind, before, after)                                       \
    RUNTIME(ret, name, params, args, kind, before, after, 0)
#define RT_PTSZ(ret, name, params, args, kind, before, after)                                      \
    RUNTIME(ret, name, params, args, kind, before, after, 0)                                       \
    RUNTIME(ret, name##_ptsz, params, args, kind, before, after, 1)
#define RT_ANY_PTSZ(ret, name, params, args, kind, before, after)                                  \
    RUNTIME(ret, name, params, args, kind, before, after, 0)                                       \
    RUNTIME(ret, name##_ptsz, params, args, kind, before, after, 1)
#define RT_PTDS(ret, name, params, args, kind, before, after)                                      \
    RUNTIME(ret, name, params, args, kind, before, after, 0)                                       \
    RUNTIME(ret, name##_ptds, params, args, kind, before, after, 1)

#include "calls.def"
