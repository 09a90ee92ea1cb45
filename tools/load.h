/* From TRACE, a dump or a directory of them, to open recordings. */
#ifndef LOAD_H
#define LOAD_H

#include <gpuwait/trace.h>

#define LOAD_DEFAULT "gpuwait.trace"

/* Reports the trace; the path is for messages. post: a negative errno or 0. -ENODATA means
 * that there was nothing to say about this one; others have been said. */
typedef int (*load_each)(struct gwt_trace *trace, const char *path, void *arg);

/* Calls `each` for every process in TRACE, by rank, then by name. `process`: only the one with
 * this process id or, where there is none, this rank; NULL: all.
 * post: exit code, fine where one could be read; everything that went wrong has been said.
 *       *unread: how many could not, unless that is NULL. */
int load_traces(const char *path, const char *process, load_each each, void *arg, size_t *unread);

/* The recordings in TRACE. */
struct load_source {
    char *path;
    uint32_t pid;
    int rank;          /* -1: none */
    int error;         /* of opening it: said already */
    uint64_t identity; /* of a communicator that it has; 0: none */
    uint64_t events;
    uint64_t started_ns; /* wall clock */
};
/* As load_traces(), but only lists them. post: exit code; fine: *list, to be freed by
 * load_list_free(), of those that `process` means. */
int load_list(const char *path, struct load_source **list, size_t *count);
void load_list_free(struct load_source *list, size_t count);
/* Which of the list `process` means: its number is a process id first, else a rank; NULL: all.
 * post: false after a message. */
bool load_number(const char *process, long *number);
bool load_chosen(const struct load_source *list, size_t count, size_t index, long number);

/* A reader's progress, on a terminal and after a second only. */
struct progress {
    int64_t started_ns;
    int shown; /* percent; -1: nothing is on the line */
};
void progress_begin(struct progress *p);
int progress_show(void *progress, uint64_t done, uint64_t total);
void progress_end(struct progress *p);

#endif
