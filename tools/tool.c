#include "tool.h"
#include "text.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OPTIONS_MAX 32

void say(const char *format, ...)
{
    char raw[4096], *clean;
    va_list args;
    va_start(args, format);
    vsnprintf(raw, sizeof(raw), format, args);
    va_end(args);
    clean = text_clean(raw);
    fflush(stdout);
    fprintf(stderr, "gpuwait: %s\n", clean);
    free(clean);
}

void *xalloc(size_t size)
{
    void *p = calloc(1, size ? size : 1);
    if (!p) {
        fputs("gpuwait: out of memory\n", stderr);
        exit(TOOL_USAGE);
    }
    return p;
}

char *xstrdup(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(xalloc(size), text, size);
}

char *xprintf(const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *text = xalloc((size_t)(n < 0 ? 0 : n) + 1);
    vsnprintf(text, (size_t)(n < 0 ? 0 : n) + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}

int finish_output(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    say("cannot write the output: %s", strerror(errno));
    return TOOL_USAGE;
}

/* ---- options --------------------------------------------------------------- */

static size_t rows_of(const struct command *c)
{
    size_t n = 0;
    while (c->options && (c->options[n].letter || c->options[n].name))
        n++;
    return n < OPTIONS_MAX ? n : OPTIONS_MAX;
}

int option_next(const struct command *c, int argc, char **argv)
{
    struct option longs[OPTIONS_MAX + 2] = {{0}};
    char shorts[2 * OPTIONS_MAX + 8] = "";
    size_t n = rows_of(c), s = 0;
    if (c->operands_end)
        shorts[s++] = '+';
    shorts[s++] = ':';
    shorts[s++] = 'h';
    for (size_t i = 0; i < n; i++) {
        const struct option_row *row = &c->options[i];
        longs[i] = (struct option){.name = row->name,
                                   .has_arg = row->value ? required_argument : no_argument,
                                   .val = 256 + (int)i};
        if (!row->letter)
            continue;
        shorts[s++] = (char)row->letter;
        if (row->value)
            shorts[s++] = ':';
    }
    longs[n] = (struct option){.name = "help", .val = 'h'};

    opterr = 0;
    int got = getopt_long(argc, argv, shorts, longs, NULL);
    const char *given = optind > 0 && optind <= argc ? argv[optind - 1] : "";
    if (got == -1)
        return OPTION_END;
    if (got == 'h') {
        option_help(c);
        return OPTION_HELP;
    }
    if (got >= 256)
        return got - 256;
    for (size_t i = 0; i < n && got != ':' && got != '?'; i++)
        if (c->options[i].letter == got)
            return (int)i;
    if (got == ':')
        say("%s: %s needs a value; see gpuwait %s --help", c->name, given, c->name);
    else if (optopt && optopt < 256 && strncmp(given, "--", 2))
        say("%s: unknown option -%c; see gpuwait %s --help", c->name, optopt, c->name);
    else
        say("%s: unknown, ambiguous or malformed option %s; see gpuwait %s --help", c->name, given,
            c->name);
    return OPTION_BAD;
}

static void wrap(const char *text, int indent)
{
    int width = 79, at = indent;
    while (*text) {
        int word = (int)strcspn(text, " ");
        if (at > indent && at + 1 + word > width) {
            printf("\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            putchar(' ');
            at++;
        }
        printf("%.*s", word, text);
        at += word;
        text += word;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static void help_row(int letter, const char *name, const char *value, const char *text)
{
    char left[64], form[4] = "   ";
    if (letter)
        snprintf(form, sizeof(form), "-%c,", letter);
    snprintf(left, sizeof(left), "  %s --%s%s%s", form, name, value ? " " : "", value ? value : "");
    if (strlen(left) > 24)
        printf("%s\n%25s", left, "");
    else
        printf("%-24s ", left);
    wrap(text, 25);
}

void option_help(const struct command *c)
{
    printf("usage: gpuwait %s [options]%s%s\n\n", c->name, c->operands[0] ? " " : "", c->operands);
    printf("%s\n\noptions:\n", c->text);
    for (size_t i = 0; i < rows_of(c); i++) {
        const struct option_row *row = &c->options[i];
        help_row(row->letter, row->name, row->value, row->text);
    }
    help_row('h', "help", NULL, "print this");
    for (const char *note = c->notes; note && *note;) {
        char *paragraph = xprintf("%.*s", (int)strcspn(note, "\n"), note);
        putchar('\n');
        wrap(paragraph, 0);
        note += strlen(paragraph);
        note += *note == '\n';
        free(paragraph);
    }
    printf("\nexamples:\n%s", c->examples);
}
