/* The entry points of the simulated NCCL: cost, counting and injected failures around the body;
 * and a body that only succeeds for those that have no other. */
#include "abi.h"
#include "kinds.h"
#include "sim.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define EXPORT __attribute__((visibility("default")))

const struct sim_hooks *sim_nccl_hooks(void);

#define NC(ret, base, params, args, what, before, after)                                           \
    __attribute__((weak)) ret body_##base params                                                   \
    {                                                                                              \
        return ncclSuccess;                                                                        \
    }                                                                                              \
    EXPORT ret p##base params;                                                                     \
    EXPORT ret p##base params                                                                      \
    {                                                                                              \
        static struct sim_api sim_a = {.name = #base, .level = SIM_NCCL, .kind = SIM_K_##what};    \
        struct sim_frame sim_f;                                                                    \
        const struct sim_hooks *sim_h = sim_nccl_hooks();                                          \
        int sim_s = sim_h ? sim_h->enter(&sim_f, &sim_a, 0) : 0;                                   \
        ret sim_r = sim_s ? (ret)sim_s : body_##base args;                                         \
        if (sim_h)                                                                                 \
            sim_h->leave(&sim_f, (int)sim_r);                                                      \
        return sim_r;                                                                              \
    }                                                                                              \
    EXPORT ret base params __attribute__((weak, alias("p" #base)));
#include "capture/calls.def"
