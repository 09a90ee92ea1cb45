/* A run held against a baseline. */
#ifndef GWA_GATE_H
#define GWA_GATE_H

#include "baseline.h"

enum gwa_outcome {
    GWA_GATE_PASSED,
    GWA_GATE_FAILED,
    GWA_GATE_UNUSABLE,     /* the baseline lacks a metric */
    GWA_GATE_INCONCLUSIVE, /* nothing can be said of this run against this baseline */
};

/* X(id, word) */
#define GWA_VERDICTS(X)                                                                            \
    X(OK, "ok")                                                                                    \
    X(REGRESSED, "REGRESSED")                                                                      \
    X(WON, "WIN")                                                                                  \
    X(UNKNOWN, "unknown") /* measured on one side only */                                          \
    X(NOT_MEASURED, "n/a")                                                                         \
    X(SKIPPED, "skipped")

enum gwa_verdict {
#define X(id, word) GWA_VERDICT_##id,
    GWA_VERDICTS(X)
#undef X
};

struct gwa_gate_options {
    bool times, accept_wins;
    bool allowed[GWA_KEY_COUNT]; /* keys that may differ */
    bool skipped[GWA_METRIC_COUNT];
};

struct gwa_gate_row {
    unsigned metric;
    char *process; /* NULL: all together */
    double base, now;
    double margin; /* in the direction in which it moved */
    uint8_t verdict;
    bool fails;
    unsigned line; /* of the baseline; 0: none */
};

struct gwa_gate_pattern {
    const char *pattern; /* the baseline's */
    bool required;       /* else forbidden */
    const char *kernel;  /* that matches, of the run; NULL: none does */
    bool fails;
};

struct gwa_gate {
    enum gwa_outcome outcome;
    struct gwa_gate_row *rows;
    size_t rows_count;
    struct gwa_gate_pattern *patterns;
    size_t patterns_count;
    struct gwa_change *kernels, *calls; /* what changed by name */
    size_t kernels_count, calls_count;
    char **reasons; /* of an outcome that is neither passed nor failed */
    size_t reasons_count;
    char **notes; /* what was let pass */
    size_t notes_count;
    size_t failed, regressed, won; /* rows and patterns */
};

/* post: 0 or -ENOMEM; *out borrows from both, to be freed by gwa_gate_free() before them. */
int gwa_gate(const struct gwa_run *run, const struct gwa_baseline *baseline,
             const struct gwa_gate_options *options, struct gwa_gate *out);
void gwa_gate_free(struct gwa_gate *g);

#endif
