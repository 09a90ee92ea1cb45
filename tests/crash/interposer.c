/* Another preload that has a dlsym() of its own, as naively as they come: it calls the next one
 * instead of jumping to it, so that RTLD_NEXT means what comes after itself. */
#include <dlfcn.h>
#include <stddef.h>

static unsigned long asked;

void *dlsym(void *handle, const char *name)
{
    static void *(*next)(void *, const char *);
    asked++;
    if (!next)
        next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    return next ? next(handle, name) : NULL;
}
