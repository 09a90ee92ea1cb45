/* cuGetProcAddress, and the entry points that only exist. This file knows names and
 * addresses, no prototypes. */
#include "core.h"

#include <string.h>

int sim_generic(const char *name);

/* Left to what driver.c defines, if it does. What it does not says that it is not supported,
 * so that no caller takes an unwritten result for one. */
#define SYMBOL(base, symbol, version, per_thread)                                                  \
    SIM_EXPORT __attribute__((weak)) int symbol(void)                                              \
    {                                                                                              \
        return sim_generic(#symbol);                                                               \
    }
#include "symbols.def"
#undef SYMBOL

int sim_generic(const char *name)
{
    (void)name;
    sim_spend(100);
    return sim_ready() ? sim_ready() : E_NOT_SUPPORTED;
}

static const struct symbol {
    const char *base, *name;
    int version;
    int per_thread;
    void *address;
} symbols[] = {
#define SYMBOL(base, symbol, version, per_thread)                                                  \
    {#base, #symbol, version, per_thread, (void *)symbol},
#include "symbols.def"
#undef SYMBOL
};

enum { FOUND = 0, NOT_FOUND = 1, TOO_OLD = 2 };

/* Of the symbols of a base name, the newest that the version asked for covers; the per-thread
 * flavour wins where it was asked for. */
static int look_up(const char *base, int version, uint64_t flags, void **pfn, int *status)
{
    const struct symbol *best = NULL;
    bool known = false;
    *pfn = NULL;
    if (version > sim_cfg.driver_version || flags > 2) {
        if (status)
            *status = NOT_FOUND;
        return E_VALUE;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        const struct symbol *s = &symbols[i];
        if (strcmp(s->base, base) || s->version > sim_cfg.driver_version)
            continue;
        known = true;
        if (s->version > version || (s->per_thread && flags != 2))
            continue;
        if (!best || s->per_thread > best->per_thread ||
            (s->per_thread == best->per_thread && s->version > best->version))
            best = s;
    }
    if (best)
        *pfn = best->address;
    if (status)
        *status = best ? FOUND : known ? TOO_OLD : NOT_FOUND;
    return E_OK;
}

int sim_look_up(const char *base, void **pfn, int version, uint64_t flags, int *status, bool v2)
{
    if (!base || !pfn)
        return E_VALUE;
    /* The runtime's probe. A stub library, which is only there to link against, answers 34. */
    if (!*base) {
        *pfn = NULL;
        if (status)
            *status = NOT_FOUND;
        return v2 ? E_OK : E_FOUND;
    }
    int result = look_up(base, version, flags, pfn, status);
    if (result == E_VALUE || *pfn)
        return result;
    return v2 ? E_OK : E_FOUND;
}
