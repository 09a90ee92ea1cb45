/* Which line of the program a Python stack shows. */
#include "attribute_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parts of a file name that mean a library, not the program. */
static const char *const library_parts[] = {"/site-packages/", "/dist-packages/", "/torch/"};

/* ".../lib/python3.11/...", ".../lib64/python3/..." */
static bool in_standard_library(const char *file)
{
    for (const char *at = file; (at = strstr(at, "/python")); at++) {
        const char *p = at + strlen("/python");
        bool after_lib = (at - file >= 4 && !strncmp(at - 4, "/lib", 4)) ||
                         (at - file >= 6 && !strncmp(at - 6, "/lib64", 6));
        while (*p == '.' || (*p >= '0' && *p <= '9') || *p == 't')
            p++;
        if (after_lib && *p == '/')
            return true;
    }
    return false;
}

static bool is_library(const char *file)
{
    if (file[0] == '<') /* <frozen importlib._bootstrap>, <string> */
        return true;
    for (size_t i = 0; i < sizeof(library_parts) / sizeof(*library_parts); i++)
        if (strstr(file, library_parts[i]))
            return true;
    return in_standard_library(file);
}

bool gwa_own_frame(const struct gwt_trace *trace, uint32_t stack, struct gwt_stack_frame *out)
{
    struct gwt_stack_info info;
    if (!stack || !gwt_stack(trace, stack, &info) || !info.count)
        return false;
    for (size_t i = 0; i < info.count; i++) {
        const char *file = gwt_string(trace, info.frames[i].file);
        if (file && !is_library(file)) {
            *out = info.frames[i];
            return true;
        }
    }
    *out = info.frames[0];
    return true;
}

bool gwa_calls(const struct gwt_trace *trace, uint32_t stack, uint32_t file, uint32_t line)
{
    struct gwt_stack_info info;
    if (!stack || !gwt_stack(trace, stack, &info))
        return false;
    for (size_t i = 1; i < info.count; i++)
        if (info.frames[i].file == file && info.frames[i].line == line)
            return true;
    return false;
}

char *gwa_python_line(const struct gwt_trace *trace, uint32_t stack)
{
    struct gwt_stack_frame frame;
    char *line;
    if (!gwa_own_frame(trace, stack, &frame))
        return NULL;
    const char *file = gwt_string(trace, frame.file);
    const char *function = gwt_string(trace, frame.function);
    if (!file)
        return NULL;
    const char *slash = strrchr(file, '/');
    int n = asprintf(&line, "%s:%u%s%s", slash && slash[1] ? slash + 1 : file, frame.line,
                     function ? " " : "", function ? function : "");
    return n < 0 ? NULL : line;
}
