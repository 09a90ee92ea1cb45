/* Why the device was idle: each gap, by what the host was doing.
 *
 * From a gap's start to the entry of the call that submitted the operation which ends it, the
 * host's time is divided by class, on the thread that counts: the one that touched the device
 * last, until another takes over (forward on the main thread, backward on autograd's: the
 * parked thread is not the cause). From that entry to the operation's start it is `launch`, or
 * the class of the submitting call itself (a copy that blocks, a launch that loads a module).
 * Every nanosecond of idle is in exactly one class.
 *
 * A second tag says why the queue was empty: the host was never ahead, or a blocking call had
 * drained it. What was drained is what a sync costs: the time inside it is not, since then
 * the device was working.
 *
 * Memory is bounded: host spans are kept only until the sweep has passed them.
 */
#ifndef GWA_ATTRIBUTE_H
#define GWA_ATTRIBUTE_H

#include "analysis.h"
#include "steps.h"
#include "sweep.h"

struct gwa_attribution;

struct gwa_attribution *gwa_attribution_new(const struct gwt_trace *trace);
void gwa_attribution_free(struct gwa_attribution *a);

/* Every event of the timeline's pass, before gwa_timeline_event() sees it; place as of
 * gwa_steps_place(). post: 0 or -ENOMEM. */
int gwa_attribution_event(struct gwa_attribution *a, const struct gwt_event *e,
                          const struct gwa_place *place);

/* One gap inside a window, in order of time per device: no operation ran on `device` in
 * [start, end), and `next` began at `end`. Called by the sweep. */
void gwa_attribution_gap(struct gwa_attribution *a, unsigned device, int64_t start, int64_t end,
                         const struct gwa_piece *next);

/* After the last event and gap: fills d->time.idle, d->idle_by_phase, d->gaps[].parts, d->sites
 * and d->drains. wall_ns: of the device's window. post: 0 or -ENOMEM. */
int gwa_attribution_finish(struct gwa_attribution *a, struct gwa_device *d, unsigned device,
                           double wall_ns);

#endif
