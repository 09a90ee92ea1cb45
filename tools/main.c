/* gpuwait: how long the GPU waited, for what, and what to change. */
#include "commands.h"
#include "tool.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

/* In the order in which a person meets them. */
static const struct command *const commands[] = {&cmd_run,  &cmd_report, &cmd_check,
                                                 &cmd_diff, &cmd_info,   &cmd_doctor};
#define COMMANDS (sizeof(commands) / sizeof(*commands))

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

static void usage(FILE *out)
{
    fputs("usage: gpuwait COMMAND [options] ...\n\n"
          "gpuwait says how long the GPU waited, for what, and what to change.\n\ncommands:\n",
          out);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-8s %s\n", commands[i]->name, commands[i]->text);
    fputs(
        "\ngpuwait COMMAND --help tells the options of a command, gpuwait --version the version.\n"
        "\nexamples:\n"
        "  gpuwait run -- python train.py\n"
        "  gpuwait report\n"
        "  gpuwait check --baseline ci/train.json\n",
        out);
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    if (argc < 2) {
        usage(stderr);
        return TOOL_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
        (!strcmp(argv[1], "help") && argc == 2)) {
        usage(stdout);
        return finish_output(TOOL_FINE);
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
        puts("gpuwait " GPUWAIT_VERSION);
        return finish_output(TOOL_FINE);
    }
    bool help = !strcmp(argv[1], "help");
    const struct command *c = find(argv[help ? 2 : 1]);
    if (!c) {
        say("no command \"%s\"; gpuwait --help lists them", argv[help ? 2 : 1]);
        return TOOL_USAGE;
    }
    if (c->prepare)
        c->prepare();
    if (help) {
        option_help(c);
        return finish_output(TOOL_FINE);
    }
    return c->run(c, argc - 1, argv + 1);
}
