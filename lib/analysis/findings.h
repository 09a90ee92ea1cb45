/* From figures to findings: one table of rules (findings.def), each with its condition,
 * evidence, remedy and what it cannot know. */
#ifndef GWA_FINDINGS_H
#define GWA_FINDINGS_H

#include "analysis.h"

/* pre:  all else of `p` is final. post: p->findings in order, p->what_if; 0 or -ENOMEM. */
int gwa_find(const struct gwt_trace *trace, struct gwa_process *p);
void gwa_findings_free(struct gwa_process *p);

#endif
