/* A caching allocator as PyTorch's: blocks out of segments that are kept, every change reported
 * through libc10. Look-alike of libc10_cuda.so; the functions' names are its own. */
#ifndef C10_CUDA_H
#define C10_CUDA_H

#include <stddef.h>

void *c10_cuda_allocate(size_t bytes, void *stream); /* NULL: out of memory even after a retry */
void c10_cuda_free(void *ptr);
void c10_cuda_empty_cache(void);
size_t c10_cuda_max_allocated(void);

#endif
