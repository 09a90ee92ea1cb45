/* The bodies of the driver's entry points, declared from the call table: sim_cuX is what
 * cuX and its per-thread-default-stream twin do. A body with a wrong prototype does not
 * compile. */
#ifndef SIM_DRIVER_H
#define SIM_DRIVER_H

#include "abi.h"
#include "core.h"

#define DR(ret, name, params, args, kind, before, after)      ret sim_##name params;
#define DR_PTSZ(ret, name, params, args, kind, before, after) ret sim_##name params;
#define DR_PTDS(ret, name, params, args, kind, before, after) ret sim_##name params;
#include "driver_extra.def"
#include "capture/calls.def"

#endif
