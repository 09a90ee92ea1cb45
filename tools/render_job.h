/* How a job of many ranks looks. Nothing here computes. */
#ifndef RENDER_JOB_H
#define RENDER_JOB_H

#include "render.h"

#include "analysis/job.h"

/* Verdict, ranks, communication, clocks. */
void render_job(const struct page *page, const struct gwa_job_result *job);

/* What matters, after a run: the verdict and what to do, each through `line`. */
void render_job_short(const struct gwa_job_result *job, void (*line)(const char *text));

/* What report --json prints: the processes, which it steals, and "job", whose findings are those
 * of the whole. */
json_t *render_job_report(json_t *processes, const struct gwa_job_result *job);

/* One line for each rank, one object each. post: 0, or -1 where it could not be written. */
int render_job_lines(const struct gwa_job_result *job, FILE *out);

#endif
