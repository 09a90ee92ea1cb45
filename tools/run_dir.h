/* The directory that a run records into. */
#ifndef RUN_DIR_H
#define RUN_DIR_H

#include <stdbool.h>
#include <stddef.h>

struct run_dir {
    char *path;    /* absolute */
    int lock;      /* holds DIR/.lock while the run lasts; -1: the file system has no locks */
    bool created;  /* by us */
    bool joined;   /* others of the same job, or still alive, record into it */
    char **before; /* the dumps that were in it, NULL-terminated */
};

/* Makes the directory ours: an earlier recording in it moves to DIR.old, whose own earlier one
 * goes away. Unless something in it is alive, or it belongs to the job of which we are a task:
 * then we join. post: false after a message. */
bool run_dir_open(const char *dir, struct run_dir *out);

/* Moves into it the ring files that processes left elsewhere which ended without closing their
 * recordings, with what is in no dump. post: how many of this run's ended so. */
size_t run_dir_gather(const struct run_dir *d);

/* Lets go, and removes the directory if we made it and nothing was recorded. */
void run_dir_close(struct run_dir *d);

/* Whether the dump at this path was there before. */
bool run_dir_had(const struct run_dir *d, const char *path);

#endif
