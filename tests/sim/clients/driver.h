/* For clients that go to the driver themselves: function types from the table, by exported name,
 * and a look-up through dlsym on a handle, which is all that they use. */
#ifndef CLIENT_DRIVER_H
#define CLIENT_DRIVER_H

#include "abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define DR(ret, name, params, args, kind, before, after)      typedef ret fn_##name params;
#define DR_PTSZ(ret, name, params, args, kind, before, after) typedef ret fn_##name params;
#define DR_PTDS(ret, name, params, args, kind, before, after) typedef ret fn_##name params;
#include "driver_extra.def"
#include "capture/calls.def"

static void *driver_library;

__attribute__((unused)) static void *driver_symbol(const char *name)
{
    if (!driver_library)
        driver_library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *p = driver_library ? dlsym(driver_library, name) : NULL;
    if (!p) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    return p;
}

/* CU(cuMemAlloc_v2)(&p, n) */
#define CU(name)                                                                                   \
    (*({                                                                                           \
        static fn_##name *found;                                                                   \
        if (!found)                                                                                \
            found = (fn_##name *)driver_symbol(#name);                                             \
        found;                                                                                     \
    }))

#endif
