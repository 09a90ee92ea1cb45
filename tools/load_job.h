/* From TRACE to a job: the ranks of one program, compared with each other. */
#ifndef LOAD_JOB_H
#define LOAD_JOB_H

#include "load.h"

#include "analysis/job.h"

#include <pthread.h>

struct load_job {
    struct load_source *sources; /* by rank: index of the rank in the job */
    size_t count;
    long number; /* only what load_chosen() chooses is analysed, as part of the job; -1: all */
    struct gwa_options options;
    /* Each rank's report, in any order, by one thread at a time. */
    void (*each)(size_t index, const struct gwa_process *p, void *arg);
    void *arg;
    struct gwa_job *job;
    /* between threads */
    pthread_mutex_t lock;
    size_t next, done, units;
    int failed; /* of any: a negative errno */
    struct progress progress;
};

/* Several ranks of one program: with ranks in their environment, or with a communicator that two
 * of them share. */
bool load_is_job(const struct load_source *list, size_t count);
/* Puts the ranks of one job first, in their order: of several runs the newest, which is said, and
 * without helpers that share a rank's environment. post: how many. */
size_t load_ranks(const char *path, struct load_source *list, size_t count);

/* post: exit code, with everything said that went wrong; fine: *out, which lives until
 * load_job_free() and says something of the job if all were analysed. */
int load_job(struct load_job *l, const struct gwa_job_result **out);
void load_job_free(struct load_job *l);

#endif
