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

/* The whole report of a process. `process`: its number among several, from 1; 0: the only one. */
void render_report(const struct page *page, const struct gwa_process *p, const char *range);

/* At most `lines` lines that say what matters, each through `line`. */
void render_short(const struct gwa_process *p, void (*line)(const char *text));

/* "3 events dropped because a ring was full"; malloc'ed. */
char *render_flaw(const struct gwa_flaw *flaw);

/* One element of "processes". */
json_t *render_json(const struct gwa_process *p);

/* The object that --json prints, around the elements; steals `processes`. */
json_t *render_json_root(json_t *processes);
/* post: exit code. Prints and frees. */
int render_json_print(json_t *root);
/* post: 0, or -1 where it could not be written. */
int render_json_write(const json_t *j, FILE *out, bool one_line);
json_t *render_string(const char *text); /* null for NULL */
json_t *render_number(double v);         /* null for NaN */

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
