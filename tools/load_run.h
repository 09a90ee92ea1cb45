/* A recording as one run, to be compared. */
#ifndef LOAD_RUN_H
#define LOAD_RUN_H

#include "analysis/compare.h"

struct load_run {
    const char *path;
    const char *process; /* NULL: all */
    const char *label;   /* instead of the script's name; NULL */
    size_t min_steps;    /* 0: the usual */
    bool quiet;          /* no progress on the terminal */
    struct gwa_options options;
};

/* post: exit code; everything that went wrong has been said. The run is to be freed. What was
 * not recorded, or could not be read in part, is a problem of the run. */
int load_run(const struct load_run *what, struct gwa_run *out);

#endif
