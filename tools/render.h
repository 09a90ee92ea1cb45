/* How figures look. Nothing here computes one. */
#ifndef RENDER_H
#define RENDER_H

#include "analysis/analysis.h"

#include <jansson.h>
#include <stdio.h>

struct page {
    FILE *out;
    unsigned width;
    bool bold;
    bool all; /* nothing is cut or left out */
};

struct page page_stdout(bool all);

/* The whole report of a process, best things first. range: asked for; NULL: none. */
void render_report(const struct page *page, const struct gwa_process *p, const char *range);

/* At most `lines` lines that say what matters, the verdict first, each through `line`. */
void render_short(const struct gwa_process *p, size_t lines, void (*line)(const char *text));

/* "3 events dropped because a ring was full"; malloc'ed. */
char *render_flaw(const struct gwa_flaw *flaw);

/* One element of "processes". */
json_t *render_json(const struct gwa_process *p);

/* Which process speaks for all of them: the one with most GPU time, where it was measured, else
 * with most kernels; the first among equals. Begins as {0}. */
struct render_main {
    bool any;
    double busy_s;
    uint64_t kernels;
    size_t index; /* in "processes" */
};
void render_json_main(struct render_main *m, const struct gwa_process *p, size_t index);

/* What report --json prints: the elements, and the findings of the process that speaks for all;
 * steals `processes`. */
json_t *render_json_report(json_t *processes, const struct render_main *m);
/* The object that --json prints, around the elements; steals `processes`. */
json_t *render_json_root(json_t *processes);
/* post: exit code. Prints and frees. */
int render_json_print(json_t *root);
/* post: 0, or -1 where it could not be written. */
int render_json_write(const json_t *j, FILE *out, bool one_line);
json_t *render_string(const char *text); /* null for NULL */
json_t *render_number(double v);         /* null for NaN */

/* ---- words for what the analysis numbers; "unknown" past the end of a table ------------- */

const char *word_class(unsigned class);     /* "host-cpu" */
const char *word_class_key(unsigned class); /* "host_cpu" */
/* "GPU 3", "GPU ?" where it is not known which. */
#define WORD_GPU(index) word_gpu((char[WORD_GPU_SIZE]){0}, index)
#define WORD_GPU_SIZE   16
const char *word_gpu(char buffer[WORD_GPU_SIZE], int index);
const char *word_class_text(unsigned class); /* "outside CUDA for longer, on the CPU" */
const char *word_phase(unsigned phase);
const char *word_confidence(unsigned confidence);

/* ---- tables ------------------------------------------------------------------- */

struct column {
    const char *title;
    enum { LEFT, RIGHT } align;
    bool text; /* cut where the width does not do: the last column only */
};

/* Rows of cells as text. */
struct table;
struct table *table_new(const struct page *page, const struct column *columns, size_t count);
void table_row(struct table *t); /* begins one */
void table_cell(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Kernel names are shortened by what they say rather than cut. */
void table_kernel(struct table *t, const char *name);
void table_print(struct table *t); /* and frees it */

#endif
