/* One row a command: defined in its cmd_*.c, listed in main.c. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "tool.h"

extern const struct command cmd_run;
extern const struct command cmd_report;
extern const struct command cmd_check;
extern const struct command cmd_diff;
extern const struct command cmd_info;
extern const struct command cmd_doctor;

#endif
