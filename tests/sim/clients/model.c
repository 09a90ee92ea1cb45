/* The simulated device against what is known of real ones: each check says what and why. Runs in
 * virtual time, whatever the environment says.
 *
 *     model
 */
#define CLIENT_NO_RUNTIME
#include "client.h"
#include "driver.h"

static const char image[] = "SIMIMAGE\n"
                            "kernel null us=0 cv=0\n"
                            "kernel wide us=500 cv=0\n" /* as many blocks as the device holds */
                            "kernel thin us=500 cv=0\n"
                            "kernel spin us=100 cv=0\n"
                            "kernel moody us=10 cv=0 modes=1,1,3\n";
static CUfunction null_kernel, wide, thin, spin, moody;
static CUstream a, b, blocking;
static CUdeviceptr memory;
static void *pinned;
static uint64_t (*now)(void);
static int failures;

/* value within [low, high] */
static void expect(const char *what, double value, double low, double high)
{
    bool good = value >= low && value <= high;
    printf("%-64s %10.2f  [%g, %g]%s\n", what, value, low, high, good ? "" : "  FAILED");
    failures += !good;
}

static void run(CUfunction f, unsigned blocks, CUstream stream)
{
    CHECK(CU(cuLaunchKernel)(f, blocks, 1, 1, 256, 1, 1, 0, stream, NULL, NULL));
}

static void settle(void)
{
    CHECK(CU(cuCtxSynchronize)());
}

/* Device time of what `body` puts between two events on `stream`, behind work that lets the host
 * get ahead. */
#define PAIR(stream, body)                                                                         \
    ({                                                                                             \
        CUevent from, to;                                                                          \
        float ms;                                                                                  \
        CHECK(CU(cuEventCreate)(&from, 0));                                                        \
        CHECK(CU(cuEventCreate)(&to, 0));                                                          \
        run(spin, 1, stream);                                                                      \
        CHECK(CU(cuEventRecord)(from, stream));                                                    \
        body;                                                                                      \
        CHECK(CU(cuEventRecord)(to, stream));                                                      \
        CHECK(CU(cuEventSynchronize)(to));                                                         \
        CHECK(CU(cuEventElapsedTime)(&ms, from, to));                                              \
        CHECK(CU(cuEventDestroy_v2)(from));                                                        \
        CHECK(CU(cuEventDestroy_v2)(to));                                                          \
        (double)ms * 1e3;                                                                          \
    })

static void events(void)
{
    double empty = 0, with_null = 0, with_spin = 0;
    for (int i = 0; i < 50; i++) {
        empty += PAIR(a, (void)0) / 50;
        with_null += PAIR(a, run(null_kernel, 1, a)) / 50;
        with_spin += PAIR(a, run(spin, 1, a)) / 50;
    }
    expect("empty pair of timing events, us", empty, 1.1, 1.5);
    expect("pair around a null kernel, us", with_null, 2.4, 3.1);
    /* 2.7 to 2.9 behind a spacer; behind a program's own kernel up to 0.6 more than that */
    expect("pair around a 100 us kernel, less 100 us", with_spin - 100, 2.6, 3.6);
    uint64_t t = now();
    CUevent e;
    CHECK(CU(cuEventCreate)(&e, 0));
    CHECK(CU(cuEventRecord)(e, a));
    run(null_kernel, 1, a);
    CHECK(CU(cuEventDestroy_v2)(e));
    settle();
    expect("a kernel on an idle stream, host time until done, us", (double)(now() - t) / 1e3, 6,
           30);
}

static void queue(void)
{
    double longest_before = 0, call = 0;
    settle();
    for (int i = 0; i < 1200; i++) {
        uint64_t t = now();
        run(spin, 1, a);
        call = (double)(now() - t) / 1e3;
        if (i > 10 && i < 1000 && call > longest_before)
            longest_before = call;
    }
    expect("longest of the first 1000 launches, us", longest_before, 2, 60);
    expect("launch into a full queue of 100 us kernels, us", call, 70, 140);
    settle();
}

static double together(CUfunction f, unsigned blocks)
{
    settle();
    uint64_t t = now();
    for (int i = 0; i < 20; i++) {
        run(f, blocks, a);
        run(f, blocks, b);
    }
    settle();
    return (double)(now() - t) / 1e6;
}

static void streams(void)
{
    expect("2 x 20 kernels of 0.5 ms that fill the device, ms", together(wide, 132 * 8), 19.5,
           20.7);
    expect("2 x 20 kernels of 0.5 ms of one block, ms", together(thin, 1), 9.9, 10.4);

    settle();
    CUevent e;
    CHECK(CU(cuEventCreate)(&e, CU_EVENT_DISABLE_TIMING));
    run(thin, 1, a);
    CHECK(CU(cuEventRecord)(e, a));
    CHECK(CU(cuStreamWaitEvent)(b, e, 0));
    run(null_kernel, 1, b);
    CHECK_FAILS(CU(cuStreamQuery)(b), 600);
    CHECK(CU(cuStreamSynchronize)(a));
    uint64_t t = now();
    CHECK(CU(cuStreamSynchronize)(b));
    expect("after the awaited event the waiting stream ends within, us", (double)(now() - t) / 1e3,
           0, 15);
    CHECK(CU(cuEventDestroy_v2)(e));
}

/* The default stream waits for blocking streams and they for it; not so the others. */
static void default_stream(void)
{
    settle();
    run(thin, 1, blocking);
    run(thin, 1, a);
    run(null_kernel, 1, NULL);
    run(null_kernel, 1, b);
    CHECK(CU(cuStreamSynchronize)(b));
    CHECK_FAILS(CU(cuStreamQuery)(a), 600);
    uint64_t t = now();
    CHECK(CU(cuStreamSynchronize)(NULL));
    expect("default stream behind a blocking stream's 500 us, us", (double)(now() - t) / 1e3, 300,
           560);
    run(thin, 1, NULL);
    run(null_kernel, 1, blocking);
    t = now();
    CHECK(CU(cuStreamSynchronize)(blocking));
    expect("and a blocking stream behind the default stream's, us", (double)(now() - t) / 1e3, 480,
           530);
    settle();
}

static void copies(void)
{
    settle();
    double bytes = 16 << 20, t;
    t = PAIR(a, CHECK(CU(cuMemcpyHtoDAsync_v2)(memory, pinned, (size_t)bytes, a)));
    expect("16 MiB pinned to the device, GB/s", bytes / t / 1e3, 50, 57);
    t = PAIR(a, CHECK(CU(cuMemcpyDtoHAsync_v2)(pinned, memory, (size_t)bytes, a)));
    expect("and back, GB/s", bytes / t / 1e3, 50, 57);
    t = PAIR(a, CHECK(CU(cuMemcpyHtoDAsync_v2)(memory, pinned, 4096, a)));
    expect("pair around 4 KiB, us", t, 6, 10);

    /* both directions and a kernel at once */
    settle();
    uint64_t begin = now();
    CHECK(CU(cuMemcpyHtoDAsync_v2)(memory, pinned, (size_t)bytes, a));
    CHECK(CU(cuMemcpyDtoHAsync_v2)(pinned, memory, (size_t)bytes, b));
    run(thin, 1, blocking);
    settle();
    expect("copies both ways and a 500 us kernel at once, us", (double)(now() - begin) / 1e3, 490,
           540);

    char *pageable = calloc(1, (size_t)bytes);
    begin = now();
    CHECK(CU(cuMemcpyHtoDAsync_v2)(memory, pageable, (size_t)bytes, a));
    expect("16 MiB pageable: the asynchronous call lasts, us", (double)(now() - begin) / 1e3, 1100,
           1500);
    run(thin, 1, a);
    begin = now();
    CHECK(CU(cuMemcpyDtoHAsync_v2)(pageable, memory, 4, a));
    expect("4 pageable bytes behind a 500 us kernel: the call lasts, us",
           (double)(now() - begin) / 1e3, 480, 540);
    begin = now();
    CHECK(CU(cuMemcpyDtoDAsync_v2)(memory, memory + (16 << 20), 1 << 20, a));
    CHECK(CU(cuMemcpyDtoD_v2)(memory, memory + (16 << 20), 1 << 20));
    expect("copies within the device do not block: two calls, us", (double)(now() - begin) / 1e3, 4,
           60);
    free(pageable);
    settle();
}

static void positions(void)
{
    double t[6];
    for (int i = 0; i < 6; i++)
        t[i] = PAIR(a, run(moody, 1, a));
    expect("third launch of a kernel whose every third is longer, ratio", t[2] / t[1], 2, 3);
    expect("fourth against second, ratio", t[3] / t[1], 0.9, 1.1);
}

static void graphs(void)
{
    CUgraph graph;
    CUgraphExec exec;
    CHECK(CU(cuStreamBeginCapture_v2)(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    for (int i = 0; i < 16; i++)
        run(spin, 1, a);
    CHECK(CU(cuStreamEndCapture)(a, &graph));
    CHECK(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
    CHECK(CU(cuGraphLaunch)(exec, a));
    settle();
    double t = PAIR(a, CHECK(CU(cuGraphLaunch)(exec, a)));
    expect("graph of 16 kernels of 100 us, us", t, 1600, 1640);
    CHECK(CU(cuGraphExecDestroy)(exec));
    CHECK(CU(cuGraphDestroy)(graph));
}

int main(void)
{
    CUcontext context;
    CUmodule module;
    setenv("SIM_CLOCK", "virtual", 1);
    setenv("SIM_LATE", "0", 1);
    CHECK(CU(cuInit)(0));
    now = (uint64_t(*)(void))driver_symbol("sim_now_ns");
    CHECK(CU(cuDevicePrimaryCtxRetain)(&context, 0));
    CHECK(CU(cuCtxSetCurrent)(context));
    CHECK(CU(cuModuleLoadData)(&module, image));
    CHECK(CU(cuModuleGetFunction)(&null_kernel, module, "null"));
    CHECK(CU(cuModuleGetFunction)(&wide, module, "wide"));
    CHECK(CU(cuModuleGetFunction)(&thin, module, "thin"));
    CHECK(CU(cuModuleGetFunction)(&spin, module, "spin"));
    CHECK(CU(cuModuleGetFunction)(&moody, module, "moody"));
    CHECK(CU(cuStreamCreate)(&a, CU_STREAM_NON_BLOCKING));
    CHECK(CU(cuStreamCreate)(&b, CU_STREAM_NON_BLOCKING));
    CHECK(CU(cuStreamCreate)(&blocking, 0));
    CHECK(CU(cuMemAlloc_v2)(&memory, 64 << 20));
    CHECK(CU(cuMemHostAlloc)(&pinned, 64 << 20, 0));
    /* first launches load lazily */
    CUfunction all[] = {null_kernel, wide, thin, spin};
    for (int i = 0; i < 4; i++)
        run(all[i], 1, a);
    settle();
    events();
    queue();
    streams();
    default_stream();
    copies();
    positions();
    graphs();
    printf("model: %s\n", failures ? "FAILED" : "ok");
    return failures != 0;
}
