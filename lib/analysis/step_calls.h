/* What steady steps hold by name: executed kernels, and calls by API. */
#ifndef GWA_STEP_CALLS_H
#define GWA_STEP_CALLS_H

#include "analysis.h"

struct gwa_step_calls;

struct gwa_step_calls *gwa_step_calls_new(void);
void gwa_step_calls_free(struct gwa_step_calls *s);

/* pre: e lies in a steady step. post: 0 or -ENOMEM. */
int gwa_step_calls_event(struct gwa_step_calls *s, const struct gwt_event *e);

/* post: p->step_kernels and p->step_calls, means over `steps`; 0 or -ENOMEM. */
int gwa_step_calls_finish(const struct gwa_step_calls *s, const struct gwt_trace *trace,
                          size_t steps, struct gwa_process *p);
void gwa_step_calls_release(struct gwa_process *p);

#endif
