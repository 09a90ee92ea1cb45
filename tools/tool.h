/* What the commands share: exit codes, options, messages, memory. */
#ifndef TOOL_H
#define TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TOOL_FINE = 0,
    TOOL_GATE = 1,         /* check: the gate failed; doctor: it cannot work here */
    TOOL_USAGE = 2,        /* usage, unreadable input */
    TOOL_NOTHING = 3,      /* nothing recorded */
    TOOL_RUN_FAILED = 125, /* run: its own usage errors and failures */
    TOOL_RUN_CANNOT = 126, /* run: the command cannot be executed */
    TOOL_RUN_MISSING = 127 /* run: there is no such command */
};

/* One option: getopt's tables, --help and the manual derive from these rows. */
struct option_row {
    int letter; /* of the short form; 0: long only. NAME and VALUE 0 end the table */
    const char *name;
    const char *value; /* what the argument is called; NULL: it takes none */
    const char *text;
};

struct command {
    const char *name;
    const char *text; /* one line */
    int (*run)(const struct command *self, int argc, char **argv);
    void (*prepare)(void); /* before the options are looked at; NULL: nothing to do */
    const char *operands;  /* as in the usage line */
    const struct option_row *options;
    const char *notes;    /* below the options, one paragraph a line; NULL: none */
    const char *examples; /* one a line */
    bool operands_end;    /* the first operand ends the options */
    int usage_code;       /* exit code of a usage error */
};

/* Next option given. post: its index in the table, or
 *   OPTION_END (optind is the first operand), OPTION_BAD (said already), OPTION_HELP (printed) */
enum { OPTION_END = -1, OPTION_BAD = -2, OPTION_HELP = -3 };
int option_next(const struct command *c, int argc, char **argv);
void option_help(const struct command *c);

/* One line on stderr, "gpuwait: " before it, with no control characters in it. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Memory, or a message and exit: for the tools only, never in lib/. */
void *xalloc(size_t size);
char *xstrdup(const char *text);
char *xprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Flushes stdout. post: `code`, or TOOL_USAGE after a message if not all could be written. */
int finish_output(int code);

#endif
