/* A file that is held open in somebody else's process. */
#ifndef GWT_FILE_H
#define GWT_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct gwt_file {
    int fd; /* -1: none */
    dev_t dev;
    ino_t ino;
    uint64_t bytes;
};

/* fd: as open() returned it, errno with it.
 * post: 0, or -errno and nothing left open. */
int gwt_file_adopt(int fd, struct gwt_file *out);
/* The program may have closed our descriptor (some close all they do not know), and its
 * number may now be a file of the program's own: nothing may be done to that. */
bool gwt_file_is_ours(const struct gwt_file *f);
/* post: f->fd -1. */
void gwt_file_close(struct gwt_file *f);

#endif
