/* A program whose only CUDA is a library with a runtime of its own inside, dlopened
 * RTLD_LOCAL: nothing of it passes a symbol that the program could see.
 *
 *     cublas_like [PRODUCTS]
 */
#define CLIENT_NO_RUNTIME
#include "client.h"

#include "../blas.h"

static void *library;

static void *need(const char *name)
{
    void *p = dlsym(library, name);
    if (!p) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    return p;
}

int main(int argc, char **argv)
{
    long products = argument(argc, argv, 1, 200);
    static const int shapes[][3] = {
        {512, 512, 512}, {4096, 512, 2048}, {512, 16, 2048}, {512, 16, 16}};
    library = dlopen("libblas_sim.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    struct blas *(*create)(void) = (struct blas * (*)(void)) need("blas_create");
    int (*gemm)(struct blas *, int, int, int) =
        (int (*)(struct blas *, int, int, int))need("blas_gemm");
    void (*kernels)(int, int, int, const char *[2]) =
        (void (*)(int, int, int, const char *[2]))need("blas_kernels");
    void (*destroy)(struct blas *) = (void (*)(struct blas *))need("blas_destroy");

    struct blas *blas = create();
    if (!blas) {
        fprintf(stderr, "no BLAS\n");
        return 1;
    }
    for (long i = 0; i < products; i++) {
        const int *s = shapes[i % 4];
        const char *names[2];
        burn_us(4);
        CHECK(gemm(blas, s[0], s[1], s[2]));
        kernels(s[0], s[1], s[2], names);
        for (int k = 0; k < 2 && names[k]; k++) {
            note(1, "kernel:%s", names[k]);
            note(1, "launches");
        }
    }
    destroy(blas);
    return finish("cublas_like");
}
