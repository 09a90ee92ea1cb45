/* Modules that come and go, as an autotuner's do: a function's handle is the one that another
 * function, of another name, had before.
 *
 *     unload [ROUNDS]
 */
#define CLIENT_NO_RUNTIME
#include "client.h"
#include "driver.h"

int main(int argc, char **argv)
{
    long rounds = argument(argc, argv, 1, 50);
    CUcontext context;
    CUfunction previous = NULL;
    CUkernel previous_kernel = NULL;
    long reused = 0;

    CHECK(CU(cuInit)(0));
    CHECK(CU(cuDevicePrimaryCtxRetain)(&context, 0));
    CHECK(CU(cuCtxSetCurrent)(context));
    for (long i = 0; i < rounds; i++) {
        char image[256], name[64];
        CUfunction func;
        snprintf(name, sizeof name, "candidate_%ld", i % 7);
        snprintf(image, sizeof image, "SIMIMAGE\nkernel %s us=%ld params=8\n", name, i % 7 + 1);
        CUdeviceptr p = 0;
        void *args[] = {&p};
        if (i % 2) {
            CUmodule module;
            CHECK(CU(cuModuleLoadData)(&module, image));
            CHECK(CU(cuModuleGetFunction)(&func, module, name));
            reused += func == previous;
            previous = func;
            for (int k = 0; k < 3; k++)
                CHECK(CU(cuLaunchKernel)(func, 4, 1, 1, 64, 1, 1, 0, NULL, args, NULL));
            CHECK(CU(cuModuleUnload)(module));
        } else {
            CUlibrary library;
            CUkernel kernel;
            CHECK(CU(cuLibraryLoadData)(&library, image, NULL, NULL, 0, NULL, NULL, 0));
            CHECK(CU(cuLibraryGetKernel)(&kernel, library, name));
            reused += kernel == previous_kernel;
            previous_kernel = kernel;
            /* the kernel's handle itself, then the function that it stands for */
            CHECK(CU(cuLaunchKernel)((CUfunction)(void *)kernel, 4, 1, 1, 64, 1, 1, 0, NULL, args,
                                     NULL));
            CHECK(CU(cuKernelGetFunction)(&func, kernel));
            for (int k = 0; k < 2; k++)
                CHECK(CU(cuLaunchKernel)(func, 4, 1, 1, 64, 1, 1, 0, NULL, args, NULL));
            CHECK(CU(cuLibraryUnload)(library));
        }
        note(3, "kernel:%s", name);
    }
    note((uint64_t)rounds * 3, "api:cuLaunchKernel");
    if (reused < rounds / 2 - 1) {
        fprintf(stderr, "unload: only %ld handles were used again\n", reused);
        return 1;
    }
    return finish("unload");
}
