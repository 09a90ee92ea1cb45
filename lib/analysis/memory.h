/* Device memory over time: from the reports of PyTorch's caching allocator, else from the
 * program's own allocations. Figures of activations, growth and headroom rest on steps. */
#ifndef GWA_MEMORY_H
#define GWA_MEMORY_H

#include "analysis.h"
#include "steps.h"

struct gwa_memory_use;

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
