/* Starts the command and stands aside until it ends. */
#ifndef RUN_CHILD_H
#define RUN_CHILD_H

#include <sys/types.h>

struct child {
    pid_t pid;
    int error;  /* errno of executing it; 0: it started */
    int status; /* as wait() gives it */
};

/* pre:  the environment is the command's; path: the file to execute, NULL: search for argv[0].
 * post: 0 and *out, or -errno where it could not even be tried. Signals reach the command while
 *       it runs, and do what they did before afterwards. */
int child_run(const char *path, char **argv, struct child *out);

/* Ends as the command did: by the same signal, or its exit code is returned. */
int child_end_like(const struct child *c);

#endif
