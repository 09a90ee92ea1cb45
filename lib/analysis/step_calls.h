/* What steady steps hold by name: executed kernels, and calls by API. */
#ifndef GWA_STEP_CALLS_H
#define GWA_STEP_CALLS_H

#include "analysis.h"

struct gwa_step_calls;

struct gwa_step_calls *gwa_step_calls_new(void);
void gwa_step_calls_free(struct gwa_step_calls *s);

/* pre: e lies in a step that counts. steady: in a steady one, not an unusual one.
 * post: 0 or -ENOMEM. */
int gwa_step_calls_event(struct gwa_step_calls *s, const struct gwt_event *e, bool steady);

/* pre: p->steps is there.
 * post: p->step_kernels and p->step_calls, means over the steady steps, and captures_mean of
 *       p->steps; 0 or -ENOMEM. */
int gwa_step_calls_finish(const struct gwa_step_calls *s, const struct gwt_trace *trace,
                          struct gwa_process *p);
void gwa_step_calls_release(struct gwa_process *p);

#endif
