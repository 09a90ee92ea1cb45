/* What the host's calls alone prove about a device: whether it can have work.
 *
 * A call that waits proves that what was submitted before it is done. A device is empty
 * when nothing that was submitted is left unproven; from the return of the wait that
 * proved the last of it, to the entry of the next submission, the device was idle. Work
 * may have ended earlier, so the sum is a lower bound; wherever order is in doubt (calls
 * of several threads that overlap, events not seen recorded, unknown streams) the device
 * counts as busy.
 *
 * Events arrive in order of return, so a submission that entered earlier may still turn
 * up: the newest idle spans are kept and trimmed by it.
 */
#ifndef GWA_IDLE_H
#define GWA_IDLE_H

#include "ranges.h"

struct gwa_idle;

struct gwa_idle *gwa_idle_new(const struct gwt_trace *trace, const struct gwa_ranges *ranges);
void gwa_idle_free(struct gwa_idle *idle);

/* Every event of the trace, in or out of the range. post: 0 or -ENOMEM. */
int gwa_idle_event(struct gwa_idle *idle, const struct gwt_event *e);

/* Whether the device may have work, seen from the events so far. */
bool gwa_idle_pending(const struct gwa_idle *idle, unsigned device);

/* Nanoseconds of proven idle inside the range and inside [first, last). */
int64_t gwa_idle_proven(struct gwa_idle *idle, unsigned device, int64_t first, int64_t last);

#endif
