/* Expands the call table to GW_ROW(level, name), once per exported symbol that is wrapped. */
#define RT(ret, name, params, args, kind, before, after)     GW_ROW(GWT_LEVEL_RUNTIME, name, kind)
#define RT_ANY(ret, name, params, args, kind, before, after) GW_ROW(GWT_LEVEL_RUNTIME, name, kind)
#define RT_PTSZ(ret, name, params, args, kind, before, after)                                      \
    GW_ROW(GWT_LEVEL_RUNTIME, name, kind) GW_ROW(GWT_LEVEL_RUNTIME, name##_ptsz, kind)
#define RT_ANY_PTSZ(ret, name, params, args, kind, before, after)                                  \
    GW_ROW(GWT_LEVEL_RUNTIME, name, kind) GW_ROW(GWT_LEVEL_RUNTIME, name##_ptsz, kind)
#define RT_PTDS(ret, name, params, args, kind, before, after)                                      \
    GW_ROW(GWT_LEVEL_RUNTIME, name, kind) GW_ROW(GWT_LEVEL_RUNTIME, name##_ptds, kind)
#define DR(ret, name, params, args, kind, before, after) GW_ROW(GWT_LEVEL_DRIVER, name, kind)
#define DR_PTSZ(ret, name, params, args, kind, before, after)                                      \
    GW_ROW(GWT_LEVEL_DRIVER, name, kind) GW_ROW(GWT_LEVEL_DRIVER, name##_ptsz, kind)
#define DR_PTDS(ret, name, params, args, kind, before, after)                                      \
    GW_ROW(GWT_LEVEL_DRIVER, name, kind) GW_ROW(GWT_LEVEL_DRIVER, name##_ptds, kind)
#define NC(ret, name, params, args, kind, before, after) GW_ROW(GWT_LEVEL_NCCL, name, kind)
#include "calls.def"
