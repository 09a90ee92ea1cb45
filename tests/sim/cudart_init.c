/* How the runtime finds the driver, which is the point of the whole library: as the real one
 * does, call for call. And what the compiler's start-up code registers with it. */
#include "cudart.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

void *rt_driver[REQ_COUNT];
__thread bool rt_per_thread;
__thread int rt_last_error;
const struct sim_hooks *rt_hooks;

typedef CUresult get_v1(const char *, void **, int, cuuint64_t);
typedef CUresult get_v2(const char *, void **, int, cuuint64_t, int *);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int state; /* 0: not tried, 1: ready, < 0: minus the error */
static get_v2 *resolver;
static get_v1 *resolver_v1;
static __thread int device;
static __thread int bound; /* 1 + device whose context was made current by us */
static void *contexts[8];

static const struct {
    const char *name;
    int version, flags;
} requests[REQ_COUNT] = {
#define REQUEST(name, version, flags) {#name, version, flags},
#include "requests.def"
#undef REQUEST
};

static int ask(const char *name, void **pfn, int version, uint64_t flags, int *status)
{
    *pfn = NULL;
    if (resolver)
        return (int)resolver(name, pfn, version, flags, status);
    int result = (int)resolver_v1(name, pfn, version, flags);
    if (status)
        *status = *pfn ? 0 : 1;
    return result;
}

int rt_lacking(void)
{
    return 801; /* not supported */
}

static int start(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        return 35; /* insufficient driver: there is none */
#ifndef SIM_CUDART_STATIC
    /* the only thing that the real runtime does not ask for */
    const struct sim_hooks *(*hooks)(void) =
        (const struct sim_hooks *(*)(void))dlsym(driver, "sim_hooks");
    rt_hooks = hooks ? hooks() : NULL;
#endif
#if SIM_CUDART >= 12000
    resolver = (get_v2 *)dlsym(driver, "cuGetProcAddress_v2");
    if (!resolver)
        return 35;
    void *p = NULL;
    if (resolver("", &p, 0, 0, NULL) == CUDA_ERROR_STUB_LIBRARY)
        return 34;
#else
    resolver_v1 = (get_v1 *)dlsym(driver, "cuGetProcAddress");
    if (!resolver_v1)
        return 35;
#endif
    for (int i = 0; i < REQ_COUNT; i++) {
        if (requests[i].version > SIM_CUDART)
            continue;
        ask(requests[i].name, &rt_driver[i], requests[i].version, (uint64_t)requests[i].flags,
            NULL);
        /* from here on through what the driver gave for itself */
        if (i == REQ_cuGetProcAddress_12000_0 && rt_driver[i] && resolver)
            resolver = (get_v2 *)rt_driver[i];
    }
    int version = 0;
    if (!rt_driver[REQ_cuInit_2000_0])
        return 35;
    /* what this driver lacks says so when called */
    for (int i = 0; i < REQ_COUNT; i++)
        if (!rt_driver[i])
            rt_driver[i] = (void *)rt_lacking;
    D(cuDriverGetVersion, cuDriverGetVersion, 2020)(&version);
    if (version / 1000 < SIM_CUDART / 1000)
        return 35; /* minor versions may differ, major ones not */
    return (int)D(cuInit, cuInit, 2000)(0);
}

int rt_init(void)
{
    int s = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
    if (s == 1)
        return 0;
    pthread_mutex_lock(&lock);
    if (!state) {
        int error = start();
        __atomic_store_n(&state, error ? -error : 1, __ATOMIC_RELEASE);
    }
    s = state;
    pthread_mutex_unlock(&lock);
    return s == 1 ? 0 : -s;
}

int rt_context(void)
{
    int status = rt_init();
    CUcontext ctx = NULL;
    if (status)
        return status;
    if (bound == device + 1)
        return 0;
    if (!bound) {
        /* a context that the program made current itself is used as it is */
        D(cuCtxGetCurrent, cuCtxGetCurrent, 4000)(&ctx);
        if (ctx && !device) {
            bound = 1;
            return 0;
        }
    }
    pthread_mutex_lock(&lock);
    if (!contexts[device])
        status = (int)D(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000)(&ctx, device);
    if (!status && !contexts[device])
        contexts[device] = ctx;
    ctx = contexts[device];
    pthread_mutex_unlock(&lock);
    if (!status)
        status = (int)D(cuCtxSetCurrent, cuCtxSetCurrent, 4000)(ctx);
    if (!status)
        bound = device + 1;
    return status;
}

int rt_current_device(void)
{
    return device;
}

cudaError_t rt_cudaSetDevice(int dev)
{
    int n = 0;
    int status = (int)D(cuDeviceGetCount, cuDeviceGetCount, 2000)(&n);
    if (status)
        return (cudaError_t)status;
    if (dev < 0 || dev >= n)
        return cudaErrorInvalidDevice;
    device = dev;
    /* since 12 this is where the context is made */
    return SIM_CUDART >= 12000 ? (cudaError_t)rt_context() : cudaSuccess;
}

int rt_entry_point(const char *symbol, void **pfn, unsigned version, uint64_t flags, int *status)
{
    if (rt_per_thread && !(flags & 3))
        flags |= 2;
    return ask(symbol, pfn, (int)version, flags, status);
}

/* ---- what the compiler registers ------------------------------------------------------- */

struct image {
    struct image *next;
    const void *fatbin;
    void *loaded[8]; /* by device; a library serves all of them */
};

struct entry {
    const void *host;
    struct image *image;
    char *name;
    size_t size;
    bool variable;
    void *kernel[8];
    CUdeviceptr at[8];
};

static struct image *images;
static struct entry *entries;
static size_t nentries, entry_room;
static pthread_rwlock_t registry = PTHREAD_RWLOCK_INITIALIZER;

RT_EXPORT void **__cudaRegisterFatBinary(void *fatbin);
RT_EXPORT void **__cudaRegisterFatBinary(void *fatbin)
{
    struct image *im = calloc(1, sizeof *im);
    if (!im)
        abort();
    im->fatbin = fatbin;
    pthread_rwlock_wrlock(&registry);
    im->next = images;
    images = im;
    pthread_rwlock_unlock(&registry);
    return (void **)im;
}

RT_EXPORT void __cudaRegisterFatBinaryEnd(void **handle);
RT_EXPORT void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

RT_EXPORT char __cudaInitModule(void **handle);
RT_EXPORT char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

RT_EXPORT void __cudaUnregisterFatBinary(void **handle);
RT_EXPORT void __cudaUnregisterFatBinary(void **handle)
{
    pthread_rwlock_wrlock(&registry);
    size_t kept = 0;
    for (size_t i = 0; i < nentries; i++) {
        if (entries[i].image == (struct image *)handle)
            free(entries[i].name);
        else
            entries[kept++] = entries[i];
    }
    nentries = kept;
    pthread_rwlock_unlock(&registry);
}

static void add(void **image, const void *host, const char *name, size_t size, bool variable)
{
    pthread_rwlock_wrlock(&registry);
    if (nentries == entry_room) {
        entry_room = entry_room ? entry_room * 2 : 64;
        entries = realloc(entries, entry_room * sizeof *entries);
        if (!entries)
            abort();
    }
    /* sorted by host address */
    size_t i = nentries++;
    for (; i && (uintptr_t)entries[i - 1].host > (uintptr_t)host; i--)
        entries[i] = entries[i - 1];
    entries[i] = (struct entry){.host = host,
                                .image = (struct image *)image,
                                .name = strdup(name),
                                .size = size,
                                .variable = variable};
    pthread_rwlock_unlock(&registry);
}

void rt___cudaRegisterFunction(void **image, const char *host, char *dev, const char *name,
                               int thread_limit, void *tid, void *bid, dim3 *block, dim3 *grid,
                               int *warp_size)
{
    (void)dev, (void)thread_limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp_size;
    add(image, host, name, 0, false);
}

RT_EXPORT void __cudaRegisterVar(void **image, char *host, char *dev, const char *name, int ext,
                                 size_t size, int constant, int global);
RT_EXPORT void __cudaRegisterVar(void **image, char *host, char *dev, const char *name, int ext,
                                 size_t size, int constant, int global)
{
    (void)dev, (void)ext, (void)constant, (void)global;
    add(image, host, name, size, true);
}

static struct entry *entry_of(const void *host)
{
    size_t low = 0, high = nentries;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if ((uintptr_t)entries[mid].host < (uintptr_t)host)
            low = mid + 1;
        else
            high = mid;
    }
    return low < nentries && entries[low].host == host ? &entries[low] : NULL;
}

/* Lazily, at the first use of anything in the image. */
static void *load(struct image *im, int slot)
{
    if (!im->loaded[slot]) {
#if SIM_CUDART >= 12000
        CUlibrary lib = NULL;
        D(cuLibraryLoadData, cuLibraryLoadData, 12000)
        (&lib, im->fatbin, NULL, NULL, 0, NULL, NULL, 0);
        im->loaded[slot] = lib;
#else
        CUmodule mod = NULL;
        D(cuModuleLoadFatBinary, cuModuleLoadFatBinary, 2000)(&mod, im->fatbin);
        im->loaded[slot] = mod;
#endif
    }
    return im->loaded[slot];
}

void *rt_kernel_of(const void *host)
{
    /* libraries are the process's, modules the context's */
    int slot = SIM_CUDART >= 12000 ? 0 : device;
    pthread_rwlock_rdlock(&registry);
    struct entry *e = entry_of(host);
    void *kernel = e ? e->kernel[slot] : NULL;
    pthread_rwlock_unlock(&registry);
    if (!e || e->variable || kernel)
        return kernel;
    pthread_rwlock_wrlock(&registry);
    e = entry_of(host);
    void *image = e ? load(e->image, slot) : NULL;
    if (image && !e->kernel[slot]) {
#if SIM_CUDART >= 12000
        CUkernel k = NULL;
        D(cuLibraryGetKernel, cuLibraryGetKernel, 12000)(&k, image, e->name);
        e->kernel[slot] = k;
#else
        CUfunction f = NULL;
        D(cuModuleGetFunction, cuModuleGetFunction, 2000)(&f, image, e->name);
        e->kernel[slot] = f;
#endif
    }
    kernel = e ? e->kernel[slot] : NULL;
    pthread_rwlock_unlock(&registry);
    return kernel;
}

int rt_symbol_of(const void *host, CUdeviceptr *ptr, size_t *size)
{
    int slot = SIM_CUDART >= 12000 ? 0 : device, status = 13; /* invalid symbol */
    pthread_rwlock_wrlock(&registry);
    struct entry *e = entry_of(host);
    void *image = e && e->variable ? load(e->image, slot) : NULL;
    if (image && !e->at[slot]) {
#if SIM_CUDART >= 12000
        D(cuLibraryGetGlobal, cuLibraryGetGlobal, 12000)(&e->at[slot], NULL, image, e->name);
#else
        D(cuModuleGetGlobal_v2, cuModuleGetGlobal, 3020)(&e->at[slot], NULL, image, e->name);
#endif
    }
    if (image && e->at[slot]) {
        *ptr = e->at[slot];
        if (size)
            *size = e->size;
        status = 0;
    }
    pthread_rwlock_unlock(&registry);
    return status;
}

/* ---- <<<>>> ------------------------------------------------------------------------------ */

static __thread struct {
    dim3 grid, block;
    size_t shared;
    void *stream;
} pushed[16];
static __thread unsigned npushed;

RT_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream);
RT_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream)
{
    if (npushed == 16)
        return 1;
    pushed[npushed].grid = grid;
    pushed[npushed].block = block;
    pushed[npushed].shared = shared;
    pushed[npushed++].stream = stream;
    return 0;
}

RT_EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                                 void *stream);
RT_EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                                 void *stream)
{
    if (!npushed)
        return (cudaError_t)52; /* missing configuration */
    npushed--;
    *grid = pushed[npushed].grid;
    *block = pushed[npushed].block;
    *shared = pushed[npushed].shared;
    *(void **)stream = pushed[npushed].stream;
    return cudaSuccess;
}

cudaError_t rt___cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    *kernel = rt_kernel_of(host);
    return *kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

cudaError_t rt_cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    return rt___cudaGetKernel(kernel, host);
}

cudaError_t rt_cudaGetFuncBySymbol(cudaFunction_t *func, const void *host)
{
    int status = rt_context();
    if (status)
        return (cudaError_t)status;
    void *kernel = rt_kernel_of(host);
    if (!kernel)
        return cudaErrorInvalidDeviceFunction;
#if SIM_CUDART >= 12000
    return (cudaError_t)D(cuKernelGetFunction, cuKernelGetFunction, 12000)(func, kernel);
#else
    *func = kernel;
    return cudaSuccess;
#endif
}
