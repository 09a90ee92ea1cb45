/* Where libgpuwait.so is, and how LD_PRELOAD names it. */
#ifndef RUN_PRELOAD_H
#define RUN_PRELOAD_H

#include <stdbool.h>

/* Beside the executable, or where `make install` put it. Malloc'ed absolute path, or NULL after
 * a message. */
char *preload_find(void);

struct preload {
    char *value;     /* for LD_PRELOAD: what it held, then ours */
    char *directory; /* a temporary one with a link in it; NULL: none was needed */
};

/* LD_PRELOAD is split at spaces and colons and expands '$': a path with these goes through a
 * link. post: false after a message. */
bool preload_make(struct preload *out, const char *library);
void preload_done(struct preload *p);

#endif
