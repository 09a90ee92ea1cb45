/* The environment, read once by the constructor. The rows are lib/trace/env.def's. */
#include "gw.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
#define ENV(name, value, takes, text) OPTION_##name,
#include "../trace/env.def"
#undef ENV
    OPTIONS
};

static const struct {
    const char *name;
    const char *value;
} rows[OPTIONS] = {
#define ENV(name, value, takes, text) {#name, value},
#include "../trace/env.def"
#undef ENV
};

struct gw_options gw_options;

static const char *value_of(unsigned option)
{
    const char *v = getenv(rows[option].name);
    return v && *v ? v : rows[option].value;
}

/* One line, one write(): nothing of stdio's, which the program may be in the middle of. */
void gw_say(const char *format, ...)
{
    char line[1024] = "gpuwait: ";
    int saved = errno;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line + 9, sizeof line - 10, format, args);
    va_end(args);
    if (n > 0) {
        size_t size = strlen(line);
        line[size++] = '\n';
        if (write(STDERR_FILENO, line, size) < 0)
            errno = saved;
    }
    errno = saved;
}

static uint64_t size_of(unsigned option, bool *bad)
{
    char *end;
    const char *v = value_of(option);
    uint64_t n = strtoull(v, &end, 10);
    const char *unit = "KMGT", *u = *end ? strchr(unit, *end >= 'a' ? *end - 32 : *end) : NULL;
    *bad = *v == '-' || end == v ||
           (*end && (!u || (end[1] && strcmp(end + 1, "iB") && strcmp(end + 1, "B"))));
    if (u)
        n <<= 10 * (unsigned)(u - unit + 1);
    return n;
}

void gw_options_read(void)
{
    bool bad;
    gw_options.off = strcmp(value_of(OPTION_GPUWAIT), "0") == 0;
    if (gw_options.off)
        return;
    const char *out = value_of(OPTION_GPUWAIT_OUT);
    if (out[0] == '/' || !getcwd(gw_options.out, sizeof gw_options.out - 300)) {
        strncpy(gw_options.out, out, sizeof gw_options.out - 1);
    } else { /* the program may change directory before its first CUDA call */
        size_t n = strlen(gw_options.out);
        snprintf(gw_options.out + n, sizeof gw_options.out - n, "/%s", out);
    }
    gw_options.max_bytes = size_of(OPTION_GPUWAIT_MAX, &bad);
    if (bad || gw_options.max_bytes < 1u << 20) {
        gw_say("GPUWAIT_MAX=%s is not a size of at least 1M (K, M, G, T): 2G is used",
               value_of(OPTION_GPUWAIT_MAX));
        gw_options.max_bytes = 2ull << 30;
    }
    const char *text = value_of(OPTION_GPUWAIT_MIN_FREE);
    char *end;
    gw_options.min_free_pct = (unsigned)strtoul(text, &end, 10);
    if (end == text || gw_options.min_free_pct > 99) {
        gw_say("GPUWAIT_MIN_FREE=%s is not a percentage below 100: 5 is used", text);
        gw_options.min_free_pct = 5;
    }
    gw_options.block_when_full = strcmp(value_of(OPTION_GPUWAIT_FULL), "block") == 0;
    if (!gw_options.block_when_full && strcmp(value_of(OPTION_GPUWAIT_FULL), "drop") != 0)
        gw_say("GPUWAIT_FULL=%s is neither drop nor block: drop is used",
               value_of(OPTION_GPUWAIT_FULL));
    text = value_of(OPTION_GPUWAIT_CMDLINE);
    gw_options.cmdline = strcmp(text, "off") != 0;
    if (gw_options.cmdline && strcmp(text, "redacted") != 0)
        gw_say("GPUWAIT_CMDLINE=%s is neither redacted nor off: redacted is used", text);
    gw_options.stacks = strcmp(value_of(OPTION_GPUWAIT_STACKS), "off") != 0;
    if (gw_options.stacks && strcmp(value_of(OPTION_GPUWAIT_STACKS), "on") != 0)
        gw_say("GPUWAIT_STACKS=%s is neither on nor off: on is used",
               value_of(OPTION_GPUWAIT_STACKS));
    const char *timing = value_of(OPTION_GPUWAIT_GPU_TIMING);
    gw_options.timing_pct = 0.5;
    if (strcmp(timing, "off") == 0 || strcmp(timing, "0") == 0) {
        gw_options.timing_pct = 0;
    } else if (strcmp(timing, "auto") != 0) {
        double pct = strtod(timing, &end);
        if (end == timing || (*end && strcmp(end, "%") != 0) || !(pct > 0 && pct <= 20))
            gw_say("GPUWAIT_GPU_TIMING=%s is none of auto, off, 0.01 to 20 (percent): auto is used",
                   timing);
        else
            gw_options.timing_pct = pct;
    }
    text = value_of(OPTION_GPUWAIT_RING);
    if (*text != '/' && strcmp(text, "auto") != 0 && strcmp(text, "dump") != 0 &&
        strcmp(text, "shm") != 0) {
        gw_say("GPUWAIT_RING=%s is none of auto, dump, shm, /...: auto is used", text);
        text = rows[OPTION_GPUWAIT_RING].value;
    }
    strncpy(gw_options.ring, text, sizeof gw_options.ring - 1);
}
