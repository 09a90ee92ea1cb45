/* A program to be killed. Each thread launches without end and, after each call has
 * returned, notes in a shared file how many it has made: what a reader must find.
 *
 *     victim FILE THREADS [CALLS]     FILE gets one 64-bit count per thread, 64 bytes apart;
 *                                     with CALLS, threads stop there and the process ends;
 *                                     a second word of 1 makes it leave by _exit(), of 2 take
 *                                     memory until somebody ends it
 */
#include "capture/cuda_abi.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);

static volatile uint64_t *counts;
static uint64_t calls = UINT64_MAX;

static void *work(void *p)
{
    uint64_t index = (uint64_t)(uintptr_t)p;
    dim3 grid = {(unsigned)index + 1, 1, 1}, block = {32, 1, 1};
    for (uint64_t n = 0; n < calls; n++) {
        cudaLaunchKernel((const void *)(uintptr_t)(0x1000 + n % 64 * 16), grid, block, NULL, 0,
                         NULL);
        counts[index * 8] = n + 1;
        if (counts[1] == 1)
            _exit(0);
        if (counts[1] == 2)
            memset(malloc(1 << 20), 1, 1 << 20);
        for (volatile int i = 0; i < 300; i++) /* what a real launch takes, roughly a tenth */
            ;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    unsigned threads = (unsigned)atoi(argv[2]);
    if (argc > 3)
        calls = strtoull(argv[3], NULL, 10);
    if (fd < 0 || ftruncate(fd, 4096) != 0 || threads < 1 || threads > 64)
        return 2;
    counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (counts == MAP_FAILED)
        return 2;
    pthread_t thread[64];
    for (unsigned i = 1; i < threads; i++)
        pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)i);
    work((void *)0);
    for (unsigned i = 1; i < threads; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
