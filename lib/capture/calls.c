/* The call table as data: names, kinds and the addresses of the wrappers. */
#include "gw.h"

/* The wrappers' prototypes are their own files' business; here only addresses count. */
#define DECLARE_GWT_LEVEL_RUNTIME(name)                                                            \
    extern void gw_##name##__11(void), gw_##name##__12(void), gw_##name##__13(void),               \
        gw_##name##__14(void);
#define DECLARE_GWT_LEVEL_DRIVER(name) extern void name(void);
#define DECLARE_GWT_LEVEL_NCCL(name)   extern void name(void);
#define GW_ROW(level, name, kind)      DECLARE_##level(name)
#include "calls_expand.h"
#undef GW_ROW

#define WRAPPERS_GWT_LEVEL_RUNTIME(name)                                                           \
    {                                                                                              \
        (void *)gw_##name##__11, (void *)gw_##name##__12, (void *)gw_##name##__13,                 \
            (void *)gw_##name##__14                                                                \
    }
#define WRAPPERS_GWT_LEVEL_DRIVER(name)                                                            \
    {                                                                                              \
        (void *)name                                                                               \
    }
#define WRAPPERS_GWT_LEVEL_NCCL(name)                                                              \
    {                                                                                              \
        (void *)name                                                                               \
    }

const struct gw_call gw_calls[GW_API_COUNT] = {
#define GW_ROW(level, name, kind)                                                                  \
    [GW_API_##name] = {#name, level, GWT_##kind, WRAPPERS_##level(name)},
#include "calls_expand.h"
#undef GW_ROW
};

void *gw_real[GW_API_COUNT];
void *gw_real_runtime[GW_NODES][GW_API_COUNT];
struct gw_helpers gw_driver;
