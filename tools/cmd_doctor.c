/* gpuwait doctor: can it work here, and if not, why. */
#include "commands.h"
#include "doctor.h"
#include "run_target.h"
#include "text.h"
#include "tool.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_OUTPUT };
static const struct option_row options[] = {
    [OPT_OUTPUT] = {'o', "output", "DIR", "the directory to record into (GPUWAIT_OUT)"}, {0}};

static bool failed;

void doctor_says(enum doctor_grade grade, const char *what, const char *format, ...)
{
    static const char *const grades[] = {"ok", "warn", "FAIL"};
    char raw[1024], *clean;
    va_list args;
    va_start(args, format);
    vsnprintf(raw, sizeof(raw), format, args);
    va_end(args);
    clean = text_clean(raw);
    printf("%-4s  %-10s  %s\n", grades[grade], what, clean);
    free(clean);
    failed |= grade == DOCTOR_FAIL;
}

static void check_command(const char *command)
{
    struct target t;
    const char *place = target_elsewhere(command);
    target_inspect(command, &t);
    if (!t.path)
        doctor_says(DOCTOR_FAIL, "command", "%s: not found in PATH", command);
    else if (t.why_not)
        doctor_says(DOCTOR_FAIL, "command", "%s", t.why_not);
    else if (!t.program)
        doctor_says(DOCTOR_WARN, "command", "%s: neither a program nor a script that names one",
                    t.path);
    else if (place)
        doctor_says(DOCTOR_WARN, "command", "%s starts its program %s: run gpuwait there", t.path,
                    place);
    else
        doctor_says(DOCTOR_OK, "command", "%s: dynamically linked, a preload works in it",
                    t.program);
    target_free(&t);
}

static int run(const struct command *self, int argc, char **argv)
{
    static void (*const checks[])(void) = {doctor_library, doctor_glibc,   doctor_driver,
                                           doctor_preload, doctor_options, doctor_clock,
                                           doctor_shm};
    const char *directory = getenv("GPUWAIT_OUT");
    for (int o; (o = option_next(self, argc, argv)) != OPTION_END;) {
        if (o == OPTION_HELP)
            return finish_output(TOOL_FINE);
        if (o < 0)
            return TOOL_USAGE;
        directory = optarg;
    }
    for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++)
        checks[i]();
    doctor_directory(directory && *directory ? directory : "gpuwait.trace");
    if (optind < argc)
        check_command(argv[optind]);
    return finish_output(failed ? TOOL_GATE : TOOL_FINE);
}

const struct command cmd_doctor = {
    .name = "doctor",
    .text = "check whether recording can work here, and say what to do if not",
    .run = run,
    .operands = "[COMMAND]",
    .options = options,
    .notes = "With COMMAND, that program is looked at as well; it is not run.\n"
             "exit status: 0 it can work, 1 something must be mended first, 2 usage.\n",
    .examples = "  gpuwait doctor\n"
                "  gpuwait doctor -o runs/today python\n",
    .operands_end = true,
    .usage_code = TOOL_USAGE,
};
