/* The wrappers of libcuda's and libnccl's exports, stamped from the call table. */
#include "wrap.h"

/* Without libcuda: no device. With one that lacks the function: not supported. */
#define ABSENT_DRIVER (gw_library_mapped("libcuda.so.1") ? 801 : 100)
#define ABSENT_NCCL   2 /* ncclSystemError */

#define DRIVER(ret, name, params, args, kind, before, after, pt)                                   \
    GW_WRAP(name, ret, name, params, args, kind, before, after, GWT_LEVEL_DRIVER, pt, 0,           \
            gw_real[GW_API_##name], gw_resolve(GW_API_##name), ABSENT_DRIVER)

#define DR(ret, name, params, args, kind, before, after)                                           \
    DRIVER(ret, name, params, args, kind, before, after, 0)
#define DR_PTSZ(ret, name, params, args, kind, before, after)                                      \
    DRIVER(ret, name, params, args, kind, before, after, 0)                                        \
    DRIVER(ret, name##_ptsz, params, args, kind, before, after, 1)
#define DR_PTDS(ret, name, params, args, kind, before, after)                                      \
    DRIVER(ret, name, params, args, kind, before, after, 0)                                        \
    DRIVER(ret, name##_ptds, params, args, kind, before, after, 1)
#define NC(ret, name, params, args, kind, before, after)                                           \
    GW_WRAP(name, ret, name, params, args, kind, before, after, GWT_LEVEL_NCCL, 0, 0,              \
            gw_real[GW_API_##name], gw_resolve(GW_API_##name), ABSENT_NCCL)

#include "calls.def"
