/* What a launch's record holds, as an LTTng-UST tracepoint. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "bench_tracepoint.h"

#if !defined(BENCH_TRACEPOINT_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_TRACEPOINT_H

#include <lttng/tracepoint.h>

/* clang-format off */
LTTNG_UST_TRACEPOINT_EVENT(bench, call,
    LTTNG_UST_TP_ARGS(void *, func, unsigned, grid, unsigned, block, int, status),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(unsigned long, func, (unsigned long)func)
              lttng_ust_field_integer(unsigned, grid, grid)
              lttng_ust_field_integer(unsigned, block, block)
              lttng_ust_field_integer(int, status, status)))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
