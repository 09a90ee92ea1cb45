/* A job for a long time: launches at a rate on threads that stay, threads that come and go, and
 * forked children that do not use the device. Prints how many launches it made.
 *
 *     soak [SECONDS [LAUNCHES_A_SECOND]]
 */
#include "client.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 2

static const char image_text[] = "SIMIMAGE\nkernel _Z4workPfi us=2.2 cv=0.1 params=8,4\n";
static struct fatbin_wrapper image = FATBIN(image_text);
static struct kernel kernels[] = {{.name = "_Z4workPfi"}};
static float *device;
static uint64_t end_ns, made;
static long rate;

static void launches(cudaStream_t stream, long n)
{
    int i = 0;
    void *args[] = {&device, &i};
    dim3 grid = {8, 1, 1}, block = {64, 1, 1};
    for (; i < n; i++)
        CHECK(launch(&kernels[0], grid, block, args, 0, stream));
    __atomic_fetch_add(&made, (uint64_t)n, __ATOMIC_RELAXED);
}

/* Its share of the rate, in bursts of a millisecond; late ones are made up for. */
static void *steady(void *arg)
{
    cudaStream_t stream;
    uint64_t begun = now_ns(), now;
    long done = 0;
    (void)arg;
    CHECK(cudaSetDevice(0));
    CHECK(cudaStreamCreateWithFlags(&stream, CU_STREAM_NON_BLOCKING));
    while ((now = now_ns()) < end_ns) {
        long due = (long)((double)(now - begun) * 1e-9 * (double)rate / THREADS);
        if (due > done + 5000)
            due = done + 5000;
        launches(stream, due - done);
        done = due;
        CHECK(cudaStreamSynchronize(stream));
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    CHECK(cudaStreamDestroy(stream));
    return NULL;
}

static void *passing(void *arg)
{
    (void)arg;
    CHECK(cudaSetDevice(0));
    launches(NULL, 10);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS], t;
    end_ns = now_ns() + (uint64_t)argument(argc, argv, 1, 5) * 1000000000u;
    rate = argument(argc, argv, 2, 100000);
    register_kernels(&image, kernels, 1);
    CHECK(cudaSetDevice(0));
    CHECK(cudaMalloc((void **)&device, 4096));
    CHECK(__cudaGetKernel((cudaKernel_t *)&kernels[0].handle, &kernels[0].stub));
    /* A range that is over: the truth of all that follows would take memory without end. */
    ((void (*)(void))sim_symbol("sim_range_begin"))();
    ((void (*)(void))sim_symbol("sim_range_end"))();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, steady, NULL);
    for (long i = 0; now_ns() < end_ns; i++) {
        pthread_create(&t, NULL, passing, NULL);
        pthread_join(t, NULL);
        if (i % 10 == 0) {
            pid_t pid = fork();
            if (pid == 0)
                _exit(0);
            waitpid(pid, NULL, 0);
        }
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%ju launches\n", (uintmax_t)made);
    return 0;
}
