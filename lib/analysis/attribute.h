/* Why the device was idle: each gap, by what the host was doing.
 *
 * From a gap's start to the entry of the call that submitted the operation which ends it, the
 * host's time is divided by class, on the thread that counts: the one that submitted to the
 * device last, until the thread that submits next makes its first call (forward on the main
 * thread, backward on autograd's: the parked thread is not the cause). From that entry to the
 * operation's start it is `launch`, or the class of the submitting call itself (a copy that
 * blocks, a launch that loads a module). Every nanosecond of idle is in exactly one class.
 *
 * Time outside CUDA of 1 ms or more is divided by the share of it that the thread was on the
 * CPU: a section that computed for 60 % and waited for 40 counts so in both classes. No
 * threshold decides, so the classes keep their meaning whatever the mixture, and what a faster
 * tokenizer or a faster disk can save is told apart. Where at least half of a
 * section was measured, its share holds for all of it; else that of what was measured of all
 * sections of the same place; where that is less than 1 ms, the time is `unknown`.
 *
 * A second tag says why the queue was empty: the host was never ahead, or a blocking call had
 * drained it: one that was entered before the device had finished and that returned after.
 * What was drained is what a sync costs: the time inside it is not, since then the device was
 * working.
 *
 * Memory is bounded: what the host did is kept only until the sweep has passed it.
 */
#ifndef GWA_ATTRIBUTE_H
#define GWA_ATTRIBUTE_H

#include "analysis.h"
#include "steps.h"
#include "sweep.h"

struct gwa_attribution;

struct gwa_attribution *gwa_attribution_new(const struct gwt_trace *trace);
void gwa_attribution_free(struct gwa_attribution *a);

/* Every event of the timeline's pass, after gwa_timeline_event() has seen it; place as of
 * gwa_steps_place(). post: 0 or -ENOMEM. */
int gwa_attribution_event(struct gwa_attribution *a, const struct gwt_event *e,
                          const struct gwa_place *place);

/* Idle inside a window, in order of time per device: gwa_on_idle of the sweep, which `a` is the
 * argument of. */
void gwa_attribution_gap(void *a, unsigned device, const struct gwa_idle_time *idle);

/* Much is held. The timeline is then to be settled and, for each device, said to be passed. */
bool gwa_attribution_full(const struct gwa_attribution *a);
/* Of the device nothing before `reach` is asked for any more, and from there to `now`, as far
 * as is known, it was idle. */
void gwa_attribution_passed(struct gwa_attribution *a, unsigned device, int64_t reach, int64_t now);
/* After all devices: forgets what all have passed. */
void gwa_attribution_trim(struct gwa_attribution *a);

/* After the last event and gap: fills d->time.idle and drained_pct, d->by_phase, what d->gaps
 * holds beside start and length, d->sites and d->drains. sums: of the device's windows.
 * post: 0 or -ENOMEM; free by gwa_attribution_release() either way. */
int gwa_attribution_finish(struct gwa_attribution *a, struct gwa_device *d, unsigned device,
                           const struct gwa_sums *sums);
void gwa_attribution_release(struct gwa_device *d);

#endif
