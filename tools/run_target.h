/* What a command is, before it is run: can a preload work in it? */
#ifndef RUN_TARGET_H
#define RUN_TARGET_H

struct target {
    char *path;    /* what would be executed; NULL: not found */
    char *program; /* the ELF program behind it: an interpreter, for scripts */
    char *why_not; /* why the preload cannot work in it; NULL: nothing known against it */
};

/* Looks, and fails at nothing. */
void target_inspect(const char *command, struct target *out);
void target_free(struct target *t);

/* Starts its program in another place, where our environment does not reach: a hint for the
 * person, by the command's name; NULL: not known to. */
const char *target_elsewhere(const char *command);

#endif
