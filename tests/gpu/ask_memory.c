/* Does asking the driver for free memory hold up a thread that submits work?
 *
 *     cc -O2 -o ask_memory tests/gpu/ask_memory.c -ldl -lpthread && ./ask_memory
 *
 * One thread submits memsets of a byte, by turns alone and while another asks every millisecond,
 * a thousand times as often as the recorder does. Prints how long both kinds of calls took.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CALLS  20000
#define ROUNDS 10
#define ASKED  100000

static void *context;
static int (*set_current)(void *), (*get_info)(size_t *, size_t *), (*synchronize)(void);
static int (*submit)(uint64_t, unsigned char, size_t, void *);
static double calls[2][CALLS * ROUNDS], asked[ASKED];
static unsigned questions;
static int asking, over;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void check(int status, const char *what)
{
    if (!status)
        return;
    fprintf(stderr, "ask_memory: %s: %d\n", what, status);
    exit(1);
}

static void *asker(void *arg)
{
    size_t a, b;
    (void)arg;
    check(set_current(context), "cuCtxSetCurrent");
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
        usleep(1000);
        if (!__atomic_load_n(&asking, __ATOMIC_ACQUIRE) || questions == ASKED)
            continue;
        double begun = now_us();
        check(get_info(&a, &b), "cuMemGetInfo");
        asked[questions++] = now_us() - begun;
    }
    return NULL;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(const char *what, double *v, unsigned n)
{
    double sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += v[i];
    qsort(v, n, sizeof(*v), ascending);
    printf("%-22s %7u  mean %8.2f  p50 %8.2f  p99 %8.2f  p99.9 %8.2f  most %9.2f us\n", what, n,
           sum / n, v[n / 2], v[n * 99ull / 100], v[n * 999ull / 1000], v[n - 1]);
}

int main(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    uint64_t byte = 0;
    pthread_t thread;
    if (!driver) {
        fprintf(stderr, "ask_memory: %s\n", dlerror());
        return 1;
    }
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
    int (*retain)(void **, int) = (int (*)(void **, int))dlsym(driver, "cuDevicePrimaryCtxRetain");
    int (*allocate)(uint64_t *, size_t) =
        (int (*)(uint64_t *, size_t))dlsym(driver, "cuMemAlloc_v2");
    set_current = (int (*)(void *))dlsym(driver, "cuCtxSetCurrent");
    get_info = (int (*)(size_t *, size_t *))dlsym(driver, "cuMemGetInfo_v2");
    synchronize = (int (*)(void))dlsym(driver, "cuCtxSynchronize");
    submit = (int (*)(uint64_t, unsigned char, size_t, void *))dlsym(driver, "cuMemsetD8Async");
    check(init(0), "cuInit");
    check(retain(&context, 0), "cuDevicePrimaryCtxRetain");
    check(set_current(context), "cuCtxSetCurrent");
    check(allocate(&byte, 4096), "cuMemAlloc");
    check(pthread_create(&thread, NULL, asker, NULL), "pthread_create");
    for (unsigned round = 0; round < 2 * ROUNDS; round++) {
        double *v = &calls[round % 2][(size_t)(round / 2) * CALLS];
        __atomic_store_n(&asking, round % 2, __ATOMIC_RELEASE);
        for (unsigned i = 0; i < CALLS; i++) {
            double begun = now_us();
            check(submit(byte, 1, 1, NULL), "cuMemsetD8Async");
            v[i] = now_us() - begun;
            if (i % 100 == 99) /* a full queue is not what is looked for */
                check(synchronize(), "cuCtxSynchronize");
        }
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    print("submitting, alone", calls[0], CALLS * ROUNDS);
    print("submitting, asked", calls[1], CALLS * ROUNDS);
    if (questions)
        print("asking", asked, questions);
    return 0;
}
