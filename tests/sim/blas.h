/* A library that brings its own, statically linked runtime and asks the driver directly for the
 * rest, as cuBLAS does: its launches pass no entry point of the shared runtime. */
#ifndef BLAS_H
#define BLAS_H

struct blas;

struct blas *blas_create(void);
void blas_destroy(struct blas *blas);
void blas_set_stream(struct blas *blas, void *stream);
/* One product, by shape: a driver-level launch, for the thin ones two kernels, the second
 * through the library's own runtime. post: 0, or a status */
int blas_gemm(struct blas *blas, int m, int n, int k);
/* The kernels that blas_gemm() runs for a shape: names[0], and names[1] or NULL. */
void blas_kernels(int m, int n, int k, const char *names[2]);

#endif
