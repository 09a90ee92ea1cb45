/* A client's kernels from its list, KERNELS(X) of X(id, timing, mangled name): their ids, the image
 * that the simulation reads, and what the runtime is told of them. */
#include "client.h"

enum {
#define X(id, timing, name) id,
    KERNELS(X)
#undef X
        KERNEL_COUNT
};

static const char image_text[] = "SIMIMAGE\n"
#define X(id, timing, name) "kernel " name " " timing " params=8,8,4\n"
    KERNELS(X)
#undef X
    ;
static struct fatbin_wrapper image = FATBIN(image_text);
static struct kernel kernels[] = {
#define X(id, timing, kernel_name) [id] = {.name = kernel_name},
    KERNELS(X)
#undef X
};
