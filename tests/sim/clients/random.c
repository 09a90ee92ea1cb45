/* A program made up from a number: streams, events, the default stream, graphs, copies of every
 * kind, waits, host work, idle and saturated queues. Some seeds repeat one list of operations,
 * as training steps do, others never do the same twice.
 *
 *     random SEED [MILLISECONDS]
 */
#include "client.h"

#include <math.h>

#define MAX_STREAMS 5
#define MAX_KERNELS 12
#define MAX_GRAPHS  3
#define MAX_LIST    512

static uint64_t state;

static uint64_t next(void)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static unsigned below(unsigned n)
{
    return (unsigned)(next() % n);
}

static double unit(void)
{
    return (double)(next() >> 11) * 0x1p-53;
}

/* Between low and high, as often in one decade as in another. */
static double decades(double low, double high)
{
    return low * pow(high / low, unit());
}

enum action {
    LAUNCH,
    BURST,
    H2D,
    D2H,
    PAGEABLE_H2D,
    PAGEABLE_D2H,
    D2D,
    MEMSET,
    WAIT,
    SYNC_STREAM,
    SYNC_DEVICE,
    SYNC_EVENT,
    ITEM,
    GRAPH,
    BURN,
    SLEEP,
    ACTIONS
};

struct step {
    enum action action;
    unsigned stream, other, kernel, blocks, graph;
    size_t bytes;
    double us;
};

static struct kernel kernels[MAX_KERNELS];
static char names[MAX_KERNELS][32];
static unsigned nkernels, nstreams, ngraphs;
static cudaStream_t streams[MAX_STREAMS];
static cudaGraphExec_t graphs[MAX_GRAPHS];
static cudaEvent_t events[MAX_STREAMS];
static char *device, *pinned, *pageable;
#define BUFFER ((size_t)32 << 20)
static unsigned weights[ACTIONS];
static double dispatch_us, gap_low, gap_high;

static void make_kernels(void)
{
    static char text[8192] = "SIMIMAGE\n";
    static struct fatbin_wrapper image = FATBIN(text);
    size_t at = strlen(text);
    nkernels = 3 + below(MAX_KERNELS - 3);
    double high = decades(8, 400); /* some programs only have small ones */
    for (unsigned i = 0; i < nkernels; i++) {
        snprintf(names[i], sizeof names[i], "kernel_%u", i);
        kernels[i].name = names[i];
        at += (size_t)snprintf(text + at, sizeof text - at, "kernel %s us=%.2f cv=%.3f params=8,4",
                               names[i], decades(1, high), unit() * 0.1);
        if (below(3) == 0) /* one name, several durations: by position */
            at += (size_t)snprintf(text + at, sizeof text - at, " modes=1,1,1,%.2f,1,%.2f",
                                   1 + unit() * 2, 0.5 + unit());
        at += (size_t)snprintf(text + at, sizeof text - at, "\n");
    }
    register_kernels(&image, kernels, nkernels);
}

static void run_kernel(unsigned k, unsigned blocks, cudaStream_t stream)
{
    int n = 1;
    void *args[] = {&device, &n};
    dim3 grid = {blocks, 1, 1}, block = {128, 1, 1};
    CHECK(launch(&kernels[k], grid, block, args, 0, stream));
}

static void make_graphs(void)
{
    ngraphs = below(MAX_GRAPHS + 1);
    for (unsigned i = 0; i < ngraphs; i++) {
        cudaGraph_t graph;
        unsigned n = 2 + below(30);
        bool forked = nstreams > 2 && below(2);
        CHECK(cudaStreamBeginCapture(streams[1], cudaStreamCaptureModeThreadLocal));
        if (forked) {
            CHECK(cudaEventRecord(events[0], streams[1]));
            CHECK(cudaStreamWaitEvent(streams[2], events[0], 0));
        }
        for (unsigned k = 0; k < n; k++)
            run_kernel(below(nkernels), 1 + below(200), streams[forked && below(2) ? 2 : 1]);
        if (forked) {
            CHECK(cudaEventRecord(events[0], streams[2]));
            CHECK(cudaStreamWaitEvent(streams[1], events[0], 0));
        }
        CHECK(cudaStreamEndCapture(streams[1], &graph));
        CHECK(cudaGraphInstantiate(&graphs[i], graph, NULL, NULL, NULL));
        CHECK(cudaGraphDestroy(graph));
    }
}

/* What this program does much of and what not at all. */
static void make_character(void)
{
    static const unsigned usual[ACTIONS] = {
        [LAUNCH] = 60,      [BURST] = 3,        [H2D] = 3,         [D2H] = 2,
        [PAGEABLE_H2D] = 1, [PAGEABLE_D2H] = 1, [D2D] = 2,         [MEMSET] = 3,
        [WAIT] = 5,         [SYNC_STREAM] = 1,  [SYNC_DEVICE] = 1, [SYNC_EVENT] = 1,
        [ITEM] = 2,         [GRAPH] = 3,        [BURN] = 6,        [SLEEP] = 1};
    for (unsigned i = 0; i < ACTIONS; i++)
        weights[i] = i == LAUNCH ? usual[i] : usual[i] * below(3);
    if (!ngraphs)
        weights[GRAPH] = 0;
    if (nstreams < 2)
        weights[WAIT] = 0;
    dispatch_us = below(4) ? decades(0.5, 20) : 0;
    gap_low = decades(5, 100);
    gap_high = gap_low * decades(2, 60);
}

static struct step make_step(void)
{
    unsigned total = 0;
    struct step s = {0};
    for (unsigned i = 0; i < ACTIONS; i++)
        total += weights[i];
    unsigned pick = below(total);
    while (pick >= weights[s.action])
        pick -= weights[s.action++];
    s.stream = below(nstreams);
    s.other = nstreams > 1 ? (s.stream + 1 + below(nstreams - 1)) % nstreams : 0;
    s.kernel = below(nkernels);
    s.blocks = 1 + (unsigned)decades(1, 4000);
    s.graph = ngraphs ? below(ngraphs) : 0;
    s.bytes = (size_t)decades(4, s.action == H2D || s.action == D2H ? 16e6 : 2e6);
    s.us = decades(gap_low, gap_high);
    return s;
}

static void perform(const struct step *s)
{
    cudaStream_t stream = streams[s->stream];
    if (dispatch_us > 0)
        burn_us(dispatch_us);
    switch (s->action) {
    case LAUNCH:
        run_kernel(s->kernel, s->blocks, stream);
        break;
    case BURST:
        for (unsigned i = 0; i < 20 + s->blocks % 200; i++)
            run_kernel((s->kernel + i) % nkernels, s->blocks, stream);
        break;
    case H2D:
        CHECK(cudaMemcpyAsync(device, pinned, s->bytes, cudaMemcpyHostToDevice, stream));
        break;
    case D2H:
        CHECK(cudaMemcpyAsync(pinned, device, s->bytes, cudaMemcpyDeviceToHost, stream));
        break;
    case PAGEABLE_H2D:
        CHECK(cudaMemcpyAsync(device, pageable, s->bytes, cudaMemcpyHostToDevice, stream));
        break;
    case PAGEABLE_D2H:
        CHECK(cudaMemcpy(pageable, device, s->bytes, cudaMemcpyDeviceToHost));
        break;
    case D2D:
        CHECK(cudaMemcpyAsync(device, device + BUFFER / 2, s->bytes, cudaMemcpyDeviceToDevice,
                              stream));
        break;
    case MEMSET:
        CHECK(cudaMemsetAsync(device, 0, s->bytes, stream));
        break;
    case WAIT:
        CHECK(cudaEventRecord(events[s->other], streams[s->other]));
        CHECK(cudaStreamWaitEvent(stream, events[s->other], 0));
        break;
    case SYNC_STREAM:
        CHECK(cudaStreamSynchronize(stream));
        break;
    case SYNC_DEVICE:
        CHECK(cudaDeviceSynchronize());
        break;
    case SYNC_EVENT:
        CHECK(cudaEventRecord(events[s->stream], stream));
        CHECK(cudaEventSynchronize(events[s->stream]));
        break;
    case ITEM:
        CHECK(cudaMemcpyAsync(pinned, device, 4, cudaMemcpyDeviceToHost, stream));
        CHECK(cudaStreamSynchronize(stream));
        break;
    case GRAPH:
        CHECK(cudaGraphLaunch(graphs[s->graph], stream));
        break;
    case BURN:
        burn_us(s->us);
        break;
    case SLEEP:
        sleep_us(s->us * 3);
        break;
    case ACTIONS:
        break;
    }
}

int main(int argc, char **argv)
{
    uint64_t seed = (uint64_t)argument(argc, argv, 1, 1);
    double ms = (double)argument(argc, argv, 2, 2000);
    static struct step list[MAX_LIST];

    state = seed * 0x2545f4914f6cdd1du;
    nstreams = 1 + below(MAX_STREAMS);
    make_kernels();
    CHECK(cudaSetDevice(0));
    CHECK(cudaMalloc((void **)&device, BUFFER));
    CHECK(cudaHostAlloc((void **)&pinned, BUFFER, 0));
    pageable = calloc(1, BUFFER);
    for (unsigned i = 0; i < nstreams; i++) {
        /* the first is the default stream; of the others some are ordered with it */
        if (i)
            CHECK(cudaStreamCreateWithFlags(&streams[i], below(3) ? CU_STREAM_NON_BLOCKING : 0));
        CHECK(cudaEventCreateWithFlags(&events[i], below(3) ? CU_EVENT_DISABLE_TIMING : 0));
    }
    if (nstreams > 1)
        make_graphs();
    make_character();
    bool repeats = below(5) < 3;
    unsigned length = repeats ? 30 + below(MAX_LIST - 30) : 0;
    for (unsigned i = 0; i < length; i++)
        list[i] = make_step();

    uint64_t end = now_ns() + (uint64_t)(ms * 1e6);
    unsigned rounds = 0;
    while (now_ns() < end) {
        if (repeats) {
            rounds++;
            for (unsigned i = 0; i < length; i++)
                perform(&list[i]);
        } else {
            struct step s = make_step();
            perform(&s);
        }
    }
    CHECK(cudaDeviceSynchronize());
    /* what was measured ends here; no tidying up, as in many a script */
    printf("random %" PRIu64 ": %s\n", seed, repeats ? "steps" : "no steps");
    if (argc > 3) /* a recorder's own work takes virtual time: not the same with and without */
        printf("rounds %u\n", rounds);
    return 0;
}
