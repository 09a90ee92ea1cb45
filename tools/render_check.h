/* What check prints, in each of its forms. */
#ifndef RENDER_CHECK_H
#define RENDER_CHECK_H

#include "render.h"

#include "analysis/gate.h"

struct check_report {
    const struct gwa_run *run;
    const struct gwa_baseline *baseline;
    const struct gwa_gate *gate;
    const char *trace, *path; /* as given: the recording's, the baseline's */
};

void render_check(const struct page *page, const struct check_report *r);
json_t *render_check_json(const struct check_report *r);
void render_check_junit(FILE *out, const struct check_report *r, int64_t now_s);
/* Workflow commands, one a line; and the page for $GITHUB_STEP_SUMMARY. */
void render_check_github(FILE *out, const struct check_report *r);
void render_check_summary(FILE *out, const struct check_report *r);

/* "PASSED", "FAILED: 2 metrics regressed", "INCONCLUSIVE": malloc'ed. */
char *words_outcome(const struct gwa_gate *g);
const char *words_outcome_key(const struct gwa_gate *g);
const char *words_verdict(unsigned verdict);
/* "syncs", "syncs of rank 3": malloc'ed. */
char *words_metric(const struct gwa_gate_row *row);
/* A metric's value in its unit, into TEXT_NUMBER bytes; with a sign. */
char *words_value(char *out, double v, unsigned unit);
char *words_delta(char *out, double base, double now, unsigned unit);
/* "syncs: 1 -> 2 (+1, margin 0.5)": malloc'ed. */
char *words_row(const struct gwa_gate_row *row);
char *words_pattern(const struct gwa_gate_pattern *p);
/* "cudaStreamSynchronize: 1 -> 2 a step, at train.py:7": malloc'ed. */
char *words_change(const struct gwa_change *c);

#endif
