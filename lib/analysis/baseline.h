/* The baseline: a run's metrics in a file that is committed and merged.
 *
 * JSON, keys sorted, one metric or kernel a line:
 *
 *     {
 *      "calls": {"cudaStreamSynchronize": 1, ...},
 *      "forbid": [PATTERN, ...],
 *      "kernels": {NAME: calls per step, ...},
 *      "keys": {"script": "train.py", "sms": "132", ...},
 *      "metrics": {"syncs": {"value": 1, "abs": 0.5, "rel": 0}, ...},
 *      "processes": {"rank 0": {"syncs": 1, ...}, ...},
 *      "require": [PATTERN, ...],
 *      "schema": 1
 *     }
 */
#ifndef GWA_BASELINE_H
#define GWA_BASELINE_H

#include "compare.h"

#include <stdio.h>

#define GWA_BASELINE_SCHEMA 1
#define GWA_BASELINE_BYTES  (16u << 20) /* no larger file is read */

struct gwa_baseline_process {
    char *name;
    double values[GWA_METRIC_COUNT];
};

struct gwa_baseline {
    char *keys[GWA_KEY_COUNT]; /* NULL: not known then */
    bool has[GWA_METRIC_COUNT];
    double values[GWA_METRIC_COUNT]; /* NaN: not measured then */
    struct gwa_margins margins[GWA_METRIC_COUNT];
    unsigned lines[GWA_METRIC_COUNT]; /* of the file; 0: none */
    struct gwa_baseline_process *processes;
    size_t processes_count;
    struct gwa_names kernels, calls;
    char **require, **forbid;
    size_t require_count, forbid_count;
};

/* One with nothing in it but the usual margins. */
void gwa_baseline_begin(struct gwa_baseline *b);

/* Every byte is untrusted. name: for messages. post: 0, or -EBADMSG and error: one line with
 * name and position; -ENOMEM. *out to be freed by gwa_baseline_free() if 0. */
int gwa_baseline_parse(const char *text, size_t size, const char *name, struct gwa_baseline *out,
                       struct gwt_error *error);
/* post: as above; -ENOENT: no such file, other errno. */
int gwa_baseline_read(const char *path, struct gwa_baseline *out, struct gwt_error *error);
void gwa_baseline_free(struct gwa_baseline *b);

/* Takes from the run what moved beyond a third of its margins, what was not there, and the keys.
 * Margins and patterns stay. times: the metrics that are only gated with times, too.
 * post: how much changed, or -ENOMEM. */
int gwa_baseline_update(struct gwa_baseline *b, const struct gwa_run *run, bool times);
int gwa_baseline_pattern(char ***list, size_t *count, const char *pattern); /* unless it is there */

int gwa_baseline_write(const struct gwa_baseline *b, FILE *out); /* post: 0 or -EIO */
/* At once or not at all. post: 0 or a negative errno and error. */
int gwa_baseline_save(const struct gwa_baseline *b, const char *path, struct gwt_error *error);

/* "*" stands for anything; the pattern may begin and end anywhere in the name. */
bool gwa_pattern_matches(const char *pattern, const char *name);

/* Name of a process in the file: "rank 3". */
#define GWA_PROCESS_NAME 32
void gwa_process_name(const struct gwa_run_process *p, char out[GWA_PROCESS_NAME]);

#endif
