/* A program that reaches an odd driver by dlopen(), between look-ups of every kind, and says what
 * is not as it should be.
 *
 *     odd FOLDER [LAUNCHES]     libcuda.so.1 and libchain3.so are in FOLDER. "N calls" that the
 *                               driver got, and "N allocations" of memory within the program's
 */
#include "capture/cuda_abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int probe(void);
void *cudnnCreate(void);

/* ---- allocations by the thread that launches --------------------------------------------- */

extern void *__libc_malloc(size_t n);
static __thread bool watched;
static unsigned long allocations;

void *malloc(size_t n)
{
    allocations += watched;
    return __libc_malloc(n);
}

/* ---- look-ups ----------------------------------------------------------------------------- */

static int bad;

static void check(const char *what, bool good)
{
    if (good)
        return;
    bad++;
    printf("%s\n", what);
}

static atomic_bool enough;
static char plug_in[4096];

/* Libraries come and go meanwhile. */
static void *loads(void *p)
{
    (void)p;
    while (!enough) {
        void *h = dlopen(plug_in, RTLD_NOW | RTLD_LOCAL);
        if (h)
            dlclose(h);
    }
    return NULL;
}

static void look_up(void)
{
    pthread_t t;
    if (pthread_create(&t, NULL, loads, NULL))
        exit(95);
    for (int i = 0; i < 1000 && !bad; i++) {
        check("the next one of a name", probe() == 320);
        check("a name like CUDA's", cudnnCreate() == dlsym(RTLD_DEFAULT, "cudnnCreate") &&
                                        cudnnCreate() == (void *)cudnnCreate);
        check("the next one of its own", !dlsym(RTLD_NEXT, "look_up"));
        check("a function of the C library", dlsym(RTLD_DEFAULT, "getenv") == (void *)getenv);
        check("no CUDA anywhere", !dlsym(RTLD_DEFAULT, "cuInit") && !dlsym(RTLD_NEXT, "cuInit"));
    }
    enough = true;
    pthread_join(t, NULL);
}

/* Who asks for CUDA can be unloaded all the same. */
static void unload(void)
{
    void *h = dlopen(plug_in, RTLD_NOW | RTLD_LOCAL);
    void *(*has_cuda)(void) = h ? (void *(*)(void))dlsym(h, "has_cuda") : NULL;
    check("a plug-in that finds no CUDA", has_cuda && !has_cuda());
    if (h)
        dlclose(h);
    check("a plug-in that is unloaded", !dlopen(plug_in, RTLD_NOW | RTLD_NOLOAD));
}

/* ---- the driver ------------------------------------------------------------------------------ */

static void use(const char *path, long launches)
{
    void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!h) {
        check(dlerror(), false);
        return;
    }
#define GET(ret, name, params) ret(*name) params = (ret(*) params)dlsym(h, #name)
    GET(unsigned long, odd_calls, (void));
    GET(CUresult, cuInit, (unsigned));
    GET(CUresult, cuLaunchKernel,
        (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
         void **, void **));
    GET(CUresult, cuMemAlloc_v2, (CUdeviceptr *, size_t));
    GET(CUresult, cuMemFree_v2, (CUdeviceptr));
    GET(CUresult, cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t));
    GET(CUresult, cuCtxSynchronize, (void));
    check("names that it lacks", !dlsym(h, "cuMemAllocAsync") && !dlsym(h, "cuNoSuchCall") &&
                                     !dlsym(h, "cuGetProcAddress") && !dlsym(h, "cudaMalloc"));
    check("what failed is told", dlerror() && !dlerror());
    check("twice the same", dlsym(h, "cuLaunchKernel") == (void *)cuLaunchKernel);
    check("what it finds of its own", cuInit(0) == 0);
    check("an error of its own", cuInit(1) == 1);
    CUdeviceptr p = 0;
    for (long i = 0; i < 2 * launches; i++) {
        static char from[64];
        if (i == launches) /* all has been met by then */
            watched = true;
        if (cuLaunchKernel((void *)(uintptr_t)(0x1000 + i % 16 * 16), 1, 1, 1, 1, 1, 1, 0, NULL,
                           NULL, NULL) ||
            cuMemAlloc_v2(&p, 64) || cuMemcpyHtoD_v2(p, from, 64) || cuMemFree_v2(p) ||
            cuCtxSynchronize())
            check("a call that failed", false);
    }
    watched = false;
    check("what a call gave", p == 0x7000000);
    printf("%lu calls\n%lu allocations\n", odd_calls(), allocations);
    dlclose(h);
    h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    check("the driver closed and opened again",
          h && dlsym(h, "cuCtxSynchronize") &&
              ((CUresult(*)(void))dlsym(h, "cuCtxSynchronize"))() == 0);
}

/* A world of its own, which has the driver once more. */
static void apart(const char *path)
{
    void *h = dlmopen(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL);
    CUresult (*sync)(void) = h ? (CUresult(*)(void))dlsym(h, "cuCtxSynchronize") : NULL;
    check("a namespace apart", sync && sync() == 0);
}

int main(int argc, char **argv)
{
    char driver[4096];
    if (argc < 2)
        return 2;
    snprintf(plug_in, sizeof plug_in, "%s/libchain3.so", argv[1]);
    snprintf(driver, sizeof driver, "%s/libcuda.so.1", argv[1]);
    look_up();
    unload();
    use(driver, argc > 2 ? atol(argv[2]) : 1000);
    apart(driver);
    return bad > 0;
}
