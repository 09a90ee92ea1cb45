/* A thread's time between CUDA calls, spent in known ways. The kernel launched at the end of each
 * section is named after how; burning is by the thread's own CPU clock, so that a busy machine
 * lengthens a section and not what was burnt in it.
 *
 *     sections [ROUNDS]
 */
#include "client.h"

#include <pthread.h>

#define MS 1000000ull

static const char image_text[] =
    "SIMIMAGE\nkernel begin us=3\nkernel burn us=3\nkernel sleep us=3\nkernel sync_burn us=3\n"
    "kernel sync_sleep us=3\nkernel other_burns us=3\nkernel poll us=3\nkernel late_burn us=3\n"
    "kernel late_sleep us=3\n";
static struct fatbin_wrapper image = FATBIN(image_text);
enum { BEGIN, BURN, SLEEP, SYNC_BURN, SYNC_SLEEP, OTHER, POLL, LATE_BURN, LATE_SLEEP, KERNELS };
static struct kernel kernels[KERNELS] = {
    {.name = "begin"},     {.name = "burn"},       {.name = "sleep"},
    {.name = "sync_burn"}, {.name = "sync_sleep"}, {.name = "other_burns"},
    {.name = "poll"},      {.name = "late_burn"},  {.name = "late_sleep"}};
static cudaStream_t stream;

static uint64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void burn(uint64_t ns)
{
    for (uint64_t end = cpu_ns() + ns; cpu_ns() < end;)
        ;
}

static void rest(uint64_t ns)
{
    struct timespec ts = {.tv_nsec = (long)ns};
    nanosleep(&ts, NULL);
}

static void *burner(void *arg)
{
    burn(20 * MS);
    return arg;
}

static void run(int kernel)
{
    dim3 one = {1, 1, 1};
    CHECK(launch(&kernels[kernel], one, one, NULL, 0, stream));
}

/* Long enough after the last look at the clocks that the next section has no start of its own. */
static void launches(void)
{
    for (uint64_t end = wall_ns() + MS; wall_ns() < end;)
        run(BEGIN);
}

int main(int argc, char **argv)
{
    pthread_t other;
    register_kernels(&image, kernels, KERNELS);
    CHECK(cudaStreamCreateWithFlags(&stream, CU_STREAM_NON_BLOCKING));
    for (int k = 0; k < KERNELS; k++) /* whatever is done at a first launch is done */
        run(k);
    launches();
    for (long i = argument(argc, argv, 1, 6); i > 0; i--) {
        CHECK(cudaStreamSynchronize(stream));
        run(BEGIN);
        burn(20 * MS);
        run(BURN);
        rest(20 * MS);
        run(SLEEP);

        CHECK(cudaStreamSynchronize(stream));
        burn(20 * MS);
        run(SYNC_BURN);
        CHECK(cudaStreamSynchronize(stream));
        rest(20 * MS);
        run(SYNC_SLEEP);

        CHECK(cudaStreamSynchronize(stream));
        pthread_create(&other, NULL, burner, NULL);
        pthread_join(other, NULL);
        run(OTHER);

        CHECK(cudaStreamSynchronize(stream));
        for (uint64_t end = cpu_ns() + 20 * MS; cpu_ns() < end;)
            CHECK(cudaStreamQuery(stream));
        run(POLL);

        launches();
        burn(50 * MS);
        run(LATE_BURN);
        launches();
        rest(50 * MS);
        run(LATE_SLEEP);
    }
    CHECK(cudaStreamSynchronize(stream));
    return finish("sections");
}
