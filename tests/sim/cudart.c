/* Every entry point of the simulated runtime that has a prototype: start-up, cost, counting and
 * injected failures around the body; and a body that only succeeds for those without one. */
#include "cudart.h"
#include "kinds.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#ifndef SIM_CUDART_STATIC
#define ENTER(kind, pt) (rt_hooks ? rt_hooks->enter(&sim_f, &sim_a, pt) : 0)
#define LEAVE(status)   (rt_hooks ? rt_hooks->leave(&sim_f, status) : (void)0)
#else
#define ENTER(kind, pt) ((void)sim_f, (void)sim_a, 0)
#define LEAVE(status)   ((void)0)
#endif

/* The context comes with the first call that needs one. */
static inline int begin(int kind)
{
    return kind == SIM_K_GETTER || kind == SIM_K_CONTEXT || kind == SIM_K_NAME ? rt_init()
                                                                               : rt_context();
}

#define ENTRY(ret, symbol, base, params, args, what, pt)                                           \
    RT_EXPORT ret symbol params;                                                                   \
    RT_EXPORT ret symbol params                                                                    \
    {                                                                                              \
        static struct sim_api sim_a = {                                                            \
            .name = #symbol, .level = SIM_RUNTIME, .kind = SIM_K_##what};                          \
        struct sim_frame sim_f = {0};                                                              \
        bool sim_old = rt_per_thread;                                                              \
        int sim_s = rt_init();                                                                     \
        rt_per_thread = pt;                                                                        \
        if (!sim_s) {                                                                              \
            sim_s = ENTER(what, pt);                                                               \
            if (!sim_s)                                                                            \
                sim_s = begin(SIM_K_##what);                                                       \
            if (!sim_s)                                                                            \
                sim_s = (int)rt_##base args;                                                       \
            LEAVE(sim_s);                                                                          \
        }                                                                                          \
        rt_per_thread = sim_old;                                                                   \
        if (sim_s && sim_s != 600)                                                                 \
            rt_last_error = sim_s;                                                                 \
        return (ret)sim_s;                                                                         \
    }

/* overridden by the bodies elsewhere */
#define BODY(ret, name, params)                                                                    \
    __attribute__((weak)) ret rt_##name params                                                     \
    {                                                                                              \
        return (ret)0;                                                                             \
    }

#define RT(ret, name, params, args, kind, before, after)                                           \
    BODY(ret, name, params)                                                                        \
    ENTRY(ret, name, name, params, args, kind, 0)
#define RT_PTSZ(ret, name, params, args, kind, before, after)                                      \
    RT(ret, name, params, args, kind, before, after)                                               \
    ENTRY(ret, name##_ptsz, name, params, args, kind, 1)
#define RT_PTDS(ret, name, params, args, kind, before, after)                                      \
    RT(ret, name, params, args, kind, before, after)                                               \
    ENTRY(ret, name##_ptds, name, params, args, kind, 1)
#define RT_ANY      RT
#define RT_ANY_PTSZ RT_PTSZ
#define RT_VOID(ret, name, params, args, kind, before, after)                                      \
    RT_EXPORT ret name params;                                                                     \
    RT_EXPORT ret name params                                                                      \
    {                                                                                              \
        rt_##name args;                                                                            \
    }

#include "cudart_extra.def"
/* the table undefines these at its end: calls.def comes last */
#include "capture/calls.def"
