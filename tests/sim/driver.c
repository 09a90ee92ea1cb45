/* Every entry point of the simulated driver that has a prototype: cost, counting and injected
 * failures around the body; and a body that only succeeds for those that have no other. */
#include "driver.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define ENTRY(ret, symbol, base, params, args, what, pt)                                           \
    SIM_EXPORT ret symbol params;                                                                  \
    SIM_EXPORT ret symbol params                                                                   \
    {                                                                                              \
        static struct sim_api sim_a = {                                                            \
            .name = #symbol, .level = SIM_DRIVER, .kind = SIM_K_##what};                           \
        struct sim_frame sim_f;                                                                    \
        int sim_s = sim_enter(&sim_f, &sim_a, pt);                                                 \
        ret sim_r = sim_s ? (ret)sim_s : sim_##base args;                                          \
        sim_leave(&sim_f, (int)sim_r);                                                             \
        return sim_r;                                                                              \
    }

/* overridden by the bodies elsewhere */
#define BODY(ret, name, params)                                                                    \
    __attribute__((weak)) ret sim_##name params                                                    \
    {                                                                                              \
        return (ret)sim_ready();                                                                   \
    }

#define DR(ret, name, params, args, kind, before, after)                                           \
    BODY(ret, name, params)                                                                        \
    ENTRY(ret, name, name, params, args, kind, 0)
#define DR_PTSZ(ret, name, params, args, kind, before, after)                                      \
    DR(ret, name, params, args, kind, before, after)                                               \
    ENTRY(ret, name##_ptsz, name, params, args, kind, 1)
#define DR_PTDS(ret, name, params, args, kind, before, after)                                      \
    DR(ret, name, params, args, kind, before, after)                                               \
    ENTRY(ret, name##_ptds, name, params, args, kind, 1)

#include "driver_extra.def"
#include "capture/calls.def"
