/* What the client programs share: the runtime's prototypes, kernels as a compiler would
 * register them, the simulation's clock, and a list of what the client did, which is held
 * against the simulation's truth at the end. On real CUDA the clock is the real one and
 * nothing is held against anything. */
#ifndef CLIENT_H
#define CLIENT_H

#include "abi.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- prototypes, from the table ------------------------------------------------------- */

#ifndef CLIENT_NO_RUNTIME
#define RT(ret, name, params, args, kind, before, after) ret name params;
#define RT_ANY                                           RT
#define RT_VOID                                          RT
#define RT_PTSZ(ret, name, params, args, kind, before, after)                                      \
    ret name params;                                                                               \
    ret name##_ptsz params;
#define RT_PTDS(ret, name, params, args, kind, before, after)                                      \
    ret name params;                                                                               \
    ret name##_ptds params;
#define RT_ANY_PTSZ RT_PTSZ
#include "cudart_extra.def"
#include "capture/calls.def"
void **__cudaRegisterFatBinary(void *fatbin);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterVar(void **image, char *host, char *dev, const char *name, int ext, size_t size,
                       int constant, int global);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDriverGetVersion(int *version);
const char *cudaGetErrorString(cudaError_t status);
#endif

/* ---- checks ------------------------------------------------------------------------------- */

/* A call that must succeed. */
#define CHECK(call)                                                                                \
    do {                                                                                           \
        int check_status = (int)(call);                                                            \
        if (check_status) {                                                                        \
            fprintf(stderr, "%s:%d: %s: status %d\n", __FILE__, __LINE__, #call, check_status);    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* A call that must fail in one way. */
#define CHECK_FAILS(call, wanted)                                                                  \
    do {                                                                                           \
        int check_status = (int)(call);                                                            \
        if (check_status != (wanted)) {                                                            \
            fprintf(stderr, "%s:%d: %s: status %d, not %d\n", __FILE__, __LINE__, #call,           \
                    check_status, (int)(wanted));                                                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static struct {
    char key[512];
    uint64_t count;
} did[512];
static unsigned ndid;

/* Notes that the client did `n` more of what the truth calls `key`. */
__attribute__((format(printf, 2, 3), unused)) static void note(uint64_t n, const char *format, ...)
{
    char key[512];
    va_list args;
    va_start(args, format);
    vsnprintf(key, sizeof key, format, args);
    va_end(args);
    for (unsigned i = 0; i < ndid; i++)
        if (!strcmp(did[i].key, key)) {
            did[i].count += n;
            return;
        }
    if (ndid == sizeof did / sizeof *did)
        exit(1);
    strcpy(did[ndid].key, key);
    did[ndid++].count = n;
}

__attribute__((unused)) static void note_copy(const char *direction, bool pageable, uint64_t bytes)
{
    note(1, "copies.%s.calls", direction);
    note(bytes, "copies.%s.bytes", direction);
    note(pageable, "copies.%s.pageable_calls", direction);
    note(pageable ? bytes : 0, "copies.%s.pageable_bytes", direction);
}

__attribute__((unused)) static void note_memset(uint64_t bytes)
{
    note(1, "memset_calls");
    note(bytes, "memset_bytes");
}

/* ---- the simulation, if it is one ------------------------------------------------------------ */

static void *sim_symbol(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return driver ? dlsym(driver, name) : NULL;
}

/* Looked up until it is there: the driver comes with the first CUDA call. */
#define SIM_SYMBOL(type, name)                                                                     \
    ({                                                                                             \
        static type *found;                                                                        \
        type *f = __atomic_load_n(&found, __ATOMIC_RELAXED);                                       \
        if (!f)                                                                                    \
            __atomic_store_n(&found, f = (type *)sim_symbol(name), __ATOMIC_RELAXED);              \
        f;                                                                                         \
    })
typedef void spend_time(uint64_t ns);

__attribute__((unused)) static uint64_t wall_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The simulation's clock, or that of the wall. */
__attribute__((unused)) static uint64_t now_ns(void)
{
    typedef uint64_t clock_of(void);
    clock_of *now = SIM_SYMBOL(clock_of, "sim_now_ns");
    return now ? now() : wall_ns();
}

/* Burns CPU, as Python or a tokenizer does. */
__attribute__((unused)) static void burn_us(double us)
{
    spend_time *spend = SIM_SYMBOL(spend_time, "sim_host_ns");
    uint64_t ns = (uint64_t)(us * 1e3);
    if (spend) {
        spend(ns);
        return;
    }
    for (uint64_t end = wall_ns() + ns; wall_ns() < end;)
        ;
}

/* Waits off the CPU, as for a data queue. */
__attribute__((unused)) static void sleep_us(double us)
{
    spend_time *pause_ = SIM_SYMBOL(spend_time, "sim_sleep_ns");
    uint64_t ns = (uint64_t)(us * 1e3);
    struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    if (pause_)
        pause_(ns);
    else
        nanosleep(&ts, NULL);
}

/* post: 0 if the truth says what the client noted */
__attribute__((unused)) static int finish(const char *client)
{
    uint64_t (*get)(const char *) = (uint64_t(*)(const char *))sim_symbol("sim_truth_get");
    int bad = 0;
    for (unsigned i = 0; get && i < ndid; i++) {
        uint64_t truth = get(did[i].key);
        if (truth == did[i].count)
            continue;
        fprintf(stderr, "%s: %s: truth %" PRIu64 ", client %" PRIu64 "\n", client, did[i].key,
                truth, did[i].count);
        bad = 1;
    }
    printf("%s: %s\n", client, bad ? "FAILED" : "ok");
    return bad;
}

/* `argv[index]` as a number. */
__attribute__((unused)) static long argument(int argc, char **argv, int index, long fallback)
{
    return argc > index ? strtol(argv[index], NULL, 0) : fallback;
}

/* ---- kernels ------------------------------------------------------------------------------------
 */

/* The image that a compiler would put into the program, as the simulation reads it. */
struct fatbin_wrapper {
    uint32_t magic, version;
    const void *data;
    void *filename;
};

#define FATBIN(text)                                                                               \
    {                                                                                              \
        0x466243b1, 1, text, NULL                                                                  \
    }

#ifndef CLIENT_NO_RUNTIME
/* A kernel of the program: the stub's address stands for it at the host. */
struct kernel {
    const char *name; /* mangled */
    char stub;
    void *handle; /* of __cudaGetKernel */
};

__attribute__((unused)) static void **register_kernels(struct fatbin_wrapper *image,
                                                       struct kernel *kernels, unsigned n)
{
    void **handle = __cudaRegisterFatBinary(image);
    for (unsigned i = 0; i < n; i++)
        __cudaRegisterFunction(handle, &kernels[i].stub, (char *)kernels[i].name, kernels[i].name,
                               -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFatBinaryEnd(handle);
    return handle;
}

#define LAUNCHED_HOW_MANY(kernel, n) note(n, "kernel:%s", (kernel)->name)

/* <<<>>> as the compiler of this runtime's version translates it. */
__attribute__((unused)) static cudaError_t launch(struct kernel *k, dim3 grid, dim3 block,
                                                  void **args, size_t shared, cudaStream_t stream)
{
    if (__cudaPushCallConfiguration(grid, block, shared, stream))
        return cudaErrorUnknown;
    CHECK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
#if defined(SIM_CUDART) && SIM_CUDART >= 13000
    if (!k->handle && __cudaGetKernel((cudaKernel_t *)&k->handle, &k->stub))
        k->handle = &k->stub;
    return __cudaLaunchKernel(k->handle, grid, block, args, shared, stream);
#else
    return cudaLaunchKernel(&k->stub, grid, block, args, shared, stream);
#endif
}
#endif

#endif
