/* A program that uses NVTX beside CUDA, and a consumer of its own for it:
 *
 *     nvtx [CONSUMER]     CONSUMER: the library that it names to NVTX itself, at its start
 *
 * As a library (-DCONSUMER) that consumer: "pushed N popped N marked N" on standard output when
 * the program ends.
 */
#ifdef CONSUMER
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef void (*callback)(void);
static unsigned pushed, popped, marked;

static int push(const char *text)
{
    (void)text;
    return (int)pushed++;
}

static int pop(void)
{
    return (int)popped++;
}

static void mark(const char *text)
{
    (void)text;
    marked++;
}

int InitializeInjectionNvtx2(const void *(*get_export)(uint32_t));
int InitializeInjectionNvtx2(const void *(*get_export)(uint32_t))
{
    const struct {
        size_t size;
        int (*table)(uint32_t, callback ***, uint32_t *);
    } *callbacks = get_export(1);
    callback **t;
    uint32_t n;
    if (!callbacks->table(1, &t, &n) || n < 12)
        return 0;
    *t[2] = (callback)mark;
    *t[9] = (callback)push;
    *t[11] = (callback)pop;
    return 1;
}

__attribute__((destructor)) static void end(void)
{
    printf("pushed %u popped %u marked %u\n", pushed, popped, marked);
}
#else
#include "capture/cuda_abi.h"
#include "sim/clients/nvtx.h"

cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);

int main(int argc, char **argv)
{
    dim3 one = {1, 1, 1};
    if (argc > 1)
        setenv("NVTX_INJECTION64_PATH", argv[1], 1);
    for (unsigned i = 0; i < 100; i++) {
        nvtx_push("step");
        if (cudaLaunchKernel((const void *)0x1000, one, one, NULL, 0, NULL))
            return 1;
        if (i % 10 == 0)
            nvtx_mark("ten");
        nvtx_pop();
    }
    return 0;
}
#endif
