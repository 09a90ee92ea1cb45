/* What the files of the simulated CUDA runtime share. Built once per version (SIM_CUDART =
 * 11080, 12080, 13000), and once more as a static library that reports to nobody, as the
 * copies inside cuBLAS and NCCL do (SIM_CUDART_STATIC). */
#ifndef SIM_CUDART_H
#define SIM_CUDART_H

#include "abi.h"
#include "sim.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef SIM_CUDART_STATIC
#define RT_EXPORT __attribute__((visibility("hidden")))
#else
#define RT_EXPORT __attribute__((visibility("default")))
#endif

/* Prototypes of the driver's entry points, as the table has them; nothing is linked. */
#define DR(ret, name, params, args, kind, before, after)      typedef ret fn_##name params;
#define DR_PTSZ(ret, name, params, args, kind, before, after) typedef ret fn_##name params;
#define DR_PTDS(ret, name, params, args, kind, before, after) typedef ret fn_##name params;
#include "driver_extra.def"
#include "capture/calls.def"

/* Bodies of the runtime's entry points. */
#define RT(ret, name, params, args, kind, before, after)          ret rt_##name params;
#define RT_PTSZ(ret, name, params, args, kind, before, after)     ret rt_##name params;
#define RT_PTDS(ret, name, params, args, kind, before, after)     ret rt_##name params;
#define RT_ANY(ret, name, params, args, kind, before, after)      ret rt_##name params;
#define RT_ANY_PTSZ(ret, name, params, args, kind, before, after) ret rt_##name params;
#define RT_VOID(ret, name, params, args, kind, before, after)     ret rt_##name params;
#include "cudart_extra.def"
#include "capture/calls.def"

enum rt_request {
#define REQUEST(name, version, flags) REQ_##name##_##version##_##flags,
#include "requests.def"
#undef REQUEST
    REQ_COUNT
};

extern void *rt_driver[REQ_COUNT];
int rt_lacking(void);               /* stands in for what the driver lacks */
extern __thread bool rt_per_thread; /* the entry point called was a _ptsz or _ptds one */
extern __thread int rt_last_error;

/* D(exported symbol, base name, version): the driver's function, to be called. DT picks
 * between the default-stream flavours by the entry point called. */
#define D(symbol, base, version) ((fn_##symbol *)rt_driver[REQ_##base##_##version##_0])
#define DT(symbol, base, version, version_pt)                                                      \
    ((fn_##symbol *)(rt_per_thread ? rt_driver[REQ_##base##_##version_pt##_2]                      \
                                   : rt_driver[REQ_##base##_##version##_0]))

/* Makes sure of the driver, and of a context current to this thread. post: 0 or an error */
int rt_init(void);
int rt_context(void);
int rt_current_device(void);

int rt_entry_point(const char *symbol, void **pfn, unsigned version, uint64_t flags, int *status);

/* registered functions and variables */
void *rt_kernel_of(const void *host); /* CUkernel (or CUfunction up to 11), NULL: not registered */
int rt_symbol_of(const void *host, CUdeviceptr *ptr, size_t *size);

extern const struct sim_hooks *rt_hooks;

#endif
