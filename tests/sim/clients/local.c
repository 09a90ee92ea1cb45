/* A program without CUDA that dlopens a library with it, RTLD_LOCAL, as an interpreter does.
 *
 *     local [ROUNDS]
 */
#define CLIENT_NO_RUNTIME
#include "client.h"

int main(int argc, char **argv)
{
    long rounds = argument(argc, argv, 1, 40);
    void *library = dlopen("libpart_13.so", RTLD_NOW | RTLD_LOCAL);
    long (*part)(long) = library ? (long (*)(long))dlsym(library, "part_13") : NULL;
    if (!part) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    if (dlsym(RTLD_DEFAULT, "cudaMalloc")) /* the library is local: not to be seen from here */
        printf("cudaMalloc is global\n");
    if (part(rounds) != rounds)
        return 1;
    note((uint64_t)rounds, "kernel:_Z7part_13Pfi");
    note((uint64_t)rounds, "api:__cudaLaunchKernel");
    note((uint64_t)rounds, "copies.H2D.calls");
    return finish("local");
}
