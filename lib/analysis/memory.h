/* Device memory over time: from the reports of PyTorch's caching allocator, else from the
 * program's own allocations. Figures of activations, growth and headroom rest on steps. */
#ifndef GWA_MEMORY_H
#define GWA_MEMORY_H

#include "analysis.h"
#include "steps.h"

#include <math.h>

struct gwa_memory_use;

/* What no one has counted yet; the peaks stay. */
static inline void gwa_memory_unknown(struct gwa_device_memory *m)
{
    m->baseline_bytes = m->activation_bytes = m->used_bytes = -1;
    m->capacity_bytes = m->headroom_bytes = -1;
    m->batch_multiplier = m->growth_bytes_per_step = m->steps_to_full = NAN;
    m->allocs_per_step = m->frees_per_step = NAN;
    m->host_allocs_per_step = m->alloc_ms_per_step = NAN;
}

struct gwa_memory_use *gwa_memory_new(const struct gwt_trace *trace);
void gwa_memory_free(struct gwa_memory_use *m);

/* Every event of the second pass. post: 0 or -ENOMEM. */
int gwa_memory_event(struct gwa_memory_use *m, const struct gwt_event *e,
                     const struct gwa_place *place);

/* After the last event: fills what d->memory has beyond the peaks of the range.
 * post: 0 or -ENOMEM. */
int gwa_memory_finish(struct gwa_memory_use *m, const struct gwa_steps *steps,
                      struct gwa_device *d);

#endif
