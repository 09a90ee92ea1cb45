/* Leaves the device idle for known reasons in known amounts. Every kernel is short, so that the
 * device is done long before the host is; what the host's own clock says of each thing done is
 * how long the device was idle because of it. Prints "CLASS MS" a line, as the report names the
 * classes; `outside` is what is host_cpu and host_blocked by then, or unknown without a clock. In
 * real time it says how that divides, by the thread's own CPU clock.
 *
 *     planted [ROUNDS]
 */
#include "client.h"

#define KIB 1024u
#define MIB (1024 * KIB)

static const char image_text[] = "SIMIMAGE\nkernel short us=3\nkernel long us=100\n";
static struct fatbin_wrapper image = FATBIN(image_text);
enum { SHORT, LONG, KERNELS };
static struct kernel kernels[KERNELS] = {{.name = "short"}, {.name = "long"}};
static cudaStream_t stream;

static void run(int kernel)
{
    dim3 one = {1, 1, 1};
    CHECK(launch(&kernels[kernel], one, one, NULL, 0, stream));
}

enum class { OUTSIDE, DISPATCH, SYNC, ALLOC, LOAD, CLASSES };
static const char *const names[CLASSES] = {"outside", "dispatch", "sync", "alloc", "load"};
static uint64_t spent[CLASSES];

static uint64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t on_cpu; /* of what is outside */

/* On a busy machine a short section may become a long one. */
static void add(enum class class, uint64_t ns, uint64_t cpu)
{
    if (class == DISPATCH && ns >= 1000000)
        class = OUTSIDE;
    spent[class] += ns;
    if (class == OUTSIDE)
        on_cpu += cpu;
}

/* What the statement takes is of that class. */
#define SPEND(class, statement)                                                                    \
    do {                                                                                           \
        uint64_t since = now_ns(), cpu = cpu_ns();                                                 \
        statement;                                                                                 \
        cpu = cpu_ns() - cpu;                                                                      \
        add(class, now_ns() - since, cpu);                                                         \
    } while (0)

/* It has ended when the next thing is done. */
static void run_and_wait(void)
{
    run(SHORT);
    CHECK(cudaStreamSynchronize(stream));
}

static void one_round(CUresult (*load)(CUmodule *, const void *), CUresult (*unload)(CUmodule))
{
    CUmodule module;
    void *at;
    run_and_wait();
    SPEND(OUTSIDE, burn_us(20000));
    run_and_wait();
    SPEND(OUTSIDE, sleep_us(7000));
    for (int i = 0; i < 20; i++) {
        run_and_wait();
        SPEND(DISPATCH, burn_us(150));
    }
    run_and_wait();
    for (int i = 0; i < 10; i++) {
        SPEND(ALLOC, CHECK(cudaMalloc(&at, 8 * MIB)));
        SPEND(ALLOC, CHECK(cudaFree(at)));
    }
    run_and_wait();
    for (int i = 0; i < 1000; i++)
        SPEND(SYNC, CHECK(cudaDeviceSynchronize()));
    run_and_wait();
    for (int i = 0; i < 10; i++) {
        SPEND(LOAD, CHECK(load(&module, image_text)));
        SPEND(LOAD, CHECK(unload(module)));
    }
    for (int i = 0; i < 20; i++) /* the host waits for the device: nobody's fault */
        run(LONG);
    CHECK(cudaStreamSynchronize(stream));
}

int main(int argc, char **argv)
{
    void *at, *driver = dlopen("libcuda.so.1", RTLD_NOW); /* the clock comes with it */
    register_kernels(&image, kernels, KERNELS);
    CHECK(cudaStreamCreateWithFlags(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cudaMalloc(&at, MIB));
    CUresult (*load)(CUmodule *, const void *) =
        (CUresult(*)(CUmodule *, const void *))dlsym(driver, "cuModuleLoadData");
    CUresult (*unload)(CUmodule) = (CUresult(*)(CUmodule))dlsym(driver, "cuModuleUnload");
    for (int k = 0; k < KERNELS; k++) /* whatever is done at a first launch is done */
        run(k);
    CHECK(cudaDeviceSynchronize());
    for (long i = argument(argc, argv, 1, 20); i > 0; i--)
        one_round(load, unload);
    for (unsigned i = 0; i < CLASSES; i++)
        printf("%s %.3f\n", names[i], (double)spent[i] / 1e6);
    const char *clock = getenv("SIM_CLOCK");
    if (!clock || strcmp(clock, "virtual")) {
        printf("host_cpu %.3f\n", (double)on_cpu / 1e6);
        printf("host_blocked %.3f\n", (double)(spent[OUTSIDE] - on_cpu) / 1e6);
    }
    return finish("planted");
}
