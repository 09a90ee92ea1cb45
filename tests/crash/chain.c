/* One of several libraries that have a function of one name, and ask for the next one's. */
#include <dlfcn.h>
#include <stddef.h>

int probe(void);
int probe(void)
{
    int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "probe");
    return RANK + (next ? next() : 0);
}

/* Libraries of CUDA's family that are none of its API. */
void *cudnnCreate(void);
void *cudnnCreate(void)
{
    return dlsym(RTLD_DEFAULT, "cudnnCreate");
}

void *has_cuda(void);
void *has_cuda(void)
{
    void *p = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
    return p ? p : dlsym(RTLD_DEFAULT, "cudaMalloc");
}
