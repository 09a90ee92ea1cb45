/* What programs of this folder share: kernels launched and counted, children, and the choice of a
 * way by its name. A process that launched says how many, "made PID N" on standard output. */
#ifndef LAUNCHES_H
#define LAUNCHES_H

#include "capture/cuda_abi.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t cudaStreamSynchronize(cudaStream_t);
static const char *self;
static atomic_ulong made;
static long number = 1;

static void launch(unsigned n)
{
    dim3 one = {1, 1, 1};
    for (unsigned i = 0; i < n; i++) {
        cudaLaunchKernel((const void *)(uintptr_t)(0x1000 + i % 64 * 16), one, one, NULL, 0, NULL);
        made++;
    }
}

static void say(void)
{
    char line[64];
    int n = snprintf(line, sizeof line, "made %d %lu\n", (int)getpid(), (unsigned long)made);
    if (write(STDOUT_FILENO, line, (size_t)n) != n)
        _exit(98);
}

/* In a child. */
static inline int child(unsigned launches, int status)
{
    made = 0;
    launch(launches);
    if (launches)
        say();
    return status;
}

static void wait_for(pid_t pid, int status)
{
    int got;
    if (pid < 0 || waitpid(pid, &got, 0) != pid || !WIFEXITED(got) || WEXITSTATUS(got) != status) {
        fprintf(stderr, "a child did not end with %d\n", status);
        exit(97);
    }
}

static void limit(int what, rlim_t n)
{
    struct rlimit r = {n, n};
    if (setrlimit(what, &r))
        exit(93);
}

struct way {
    const char *name;
    void (*run)(void);
    bool silent; /* says how many itself, or cannot */
};

/* argv: WAY [NUMBER]. ways: the last has no name. */
static int run_way(int argc, char **argv, const struct way *ways)
{
    self = argv[0];
    if (argc > 2)
        number = atol(argv[2]);
    for (; argc > 1 && ways->name; ways++) {
        if (strcmp(argv[1], ways->name) != 0)
            continue;
        ways->run();
        if (!ways->silent)
            say();
        return 0;
    }
    return 2;
}

#endif
