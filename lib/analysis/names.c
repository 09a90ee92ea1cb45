/* Names that a person reads. */
#include "analysis.h"

#include <libiberty/demangle.h>

#include <stdlib.h>
#include <string.h>

/* The demangler recurses by the length of a name and, beyond 1024 characters, refuses to
 * unless told that it may. Kernels of template libraries need several thousand. */
#define NAME_MAX_RECURSE 8192

char *gwa_demangle(const char *mangled)
{
    char *name = NULL;
    if (mangled[0] == '_' && mangled[1] == 'Z') {
        int options = DMGL_PARAMS | DMGL_TYPES; /* __cxa_demangle's, hence CUPTI's spelling */
        if (strlen(mangled) <= NAME_MAX_RECURSE)
            options |= DMGL_NO_RECURSE_LIMIT;
        name = cplus_demangle_v3(mangled, options);
    }
    return name ? name : strdup(mangled);
}

const char *gwa_direction_name(unsigned direction)
{
    static const char *const names[GWT_DIR_COUNT] = {
        [GWT_DIR_UNKNOWN] = "unknown",
        [GWT_H2D] = "H2D",
        [GWT_D2H] = "D2H",
        [GWT_D2D] = "D2D",
        [GWT_P2P] = "P2P",
        [GWT_H2H] = "H2H",
    };
    return direction < GWT_DIR_COUNT ? names[direction] : "unknown";
}

const char *gwa_memory_name(unsigned memory)
{
    static const char *const names[GWA_MEM_COUNT] = {
        [GWA_MEM_DEVICE] = "device",
        [GWA_MEM_PINNED] = "pinned",
        [GWA_MEM_PAGEABLE] = "pageable",
        [GWA_MEM_GRAPH] = "graph",
    };
    return memory < GWA_MEM_COUNT ? names[memory] : "unknown";
}

const char *gwa_stream_type_name(unsigned type)
{
    static const char *const names[] = {
        [GWT_STREAM_USER] = "user",
        [GWT_STREAM_LEGACY] = "default",
        [GWT_STREAM_PER_THREAD] = "per-thread default",
        [GWT_STREAM_NONE] = "none",
    };
    return type && type < sizeof(names) / sizeof(*names) ? names[type] : "unknown";
}

const char *gwa_flaw_text(unsigned id)
{
    static const char *const texts[GWA_FLAW_COUNT] = {
#define X(id, text) [GWA_FLAW_##id] = text,
        GWA_FLAWS(X)
#undef X
    };
    return id < GWA_FLAW_COUNT ? texts[id] : "";
}
