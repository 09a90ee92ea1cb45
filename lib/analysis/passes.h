/* The two passes over all events. Each calls tick() every GWA_TICK events, which may end it.
 * Between them comes one over the first. post: 0, -ENOMEM or what tick() returned. */
#ifndef GWA_PASSES_H
#define GWA_PASSES_H

#include "tally.h"

#define GWA_TICK 0x100000u

/* Counts, and learns durations and, of what is asked for, steps. */
int gwa_pass_count(struct gwa_tally *t, int (*tick)(void *arg), void *tick_arg);
/* Places the first events in t->timeline, so that its model knows what they say. */
int gwa_pass_learn(struct gwa_tally *t);
/* Places events in steps and, with t->timeline, in time, and says why the device was idle. */
int gwa_pass_place(struct gwa_tally *t, int (*tick)(void *arg), void *tick_arg);

#endif
