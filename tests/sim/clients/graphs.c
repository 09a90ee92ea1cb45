/* Graphs: captured on one stream and across two, built by hand, with children, replayed,
 * updated, edited; and what a capture forbids.
 *
 *     graphs [REPLAYS]
 */
#include "client.h"

static const char image_text[] = "SIMIMAGE\n"
                                 "kernel _Z4nodePfi us=3 params=8,4\n"
                                 "kernel _Z4sidePfi us=7 params=8,4\n"
                                 "kernel _Z5otherPfi us=5 params=8,4\n";
static struct fatbin_wrapper image = FATBIN(image_text);
static struct kernel kernels[] = {
    {.name = "_Z4nodePfi"}, {.name = "_Z4sidePfi"}, {.name = "_Z5otherPfi"}};
#define NODE  (&kernels[0])
#define SIDE  (&kernels[1])
#define OTHER (&kernels[2])

static float *device, *pinned;
static cudaStream_t stream, side;
static cudaEvent_t fork_event, join_event;
static uint64_t captured;

static void submit(struct kernel *k, cudaStream_t s)
{
    int n = 7;
    void *args[] = {&device, &n};
    dim3 grid = {16, 1, 1}, block = {128, 1, 1};
    CHECK(launch(k, grid, block, args, 0, s));
    captured++;
}

/* Two branches that fork and join through events; a copy and a memset on the way. */
static cudaGraph_t capture(struct kernel *second)
{
    cudaGraph_t graph;
    int capturing = 0;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaStreamIsCapturing(stream, &capturing));
    CHECK(cudaMemcpyAsync(device, pinned, 2048, cudaMemcpyHostToDevice, stream));
    submit(NODE, stream);
    CHECK(cudaEventRecord(fork_event, stream));
    CHECK(cudaStreamWaitEvent(side, fork_event, 0));
    submit(SIDE, side);
    CHECK(cudaMemsetAsync(device + 1024, 0, 512, side));
    submit(second, stream);
    CHECK(cudaEventRecord(join_event, side));
    CHECK(cudaStreamWaitEvent(stream, join_event, 0));
    submit(NODE, stream);
    CHECK(cudaStreamEndCapture(stream, &graph));
    if (capturing != 1) {
        fprintf(stderr, "graphs: the stream did not capture\n");
        exit(1);
    }
    return graph;
}

static cudaGraphExec_t instantiate(cudaGraph_t graph)
{
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, NULL, NULL, NULL));
    return exec;
}

static void replay(cudaGraphExec_t exec, long n)
{
    for (long i = 0; i < n; i++) {
        burn_us(10);
        CHECK(cudaGraphLaunch(exec, stream));
    }
    CHECK(cudaStreamSynchronize(stream));
    note((uint64_t)n, "api:cudaGraphLaunch");
    note(1, "syncs");
}

static void replayed(uint64_t n, uint64_t nodes, uint64_t sides, uint64_t others, uint64_t copies)
{
    note(n * nodes, "kernel:_Z4nodePfi");
    note(n * sides, "kernel:_Z4sidePfi");
    note(n * others, "kernel:_Z5otherPfi");
    for (uint64_t i = 0; i < n * copies; i++) {
        note_copy("H2D", false, 2048);
        note_memset(512);
    }
}

static unsigned count_nodes(cudaGraph_t graph)
{
    size_t n = 0;
    CHECK(cudaGraphGetNodes(graph, NULL, &n));
    return (unsigned)n;
}

static cudaGraphNode_t find(cudaGraph_t graph, int type, unsigned nth)
{
    cudaGraphNode_t nodes[64];
    size_t n = 64;
    CHECK(cudaGraphGetNodes(graph, nodes, &n));
    for (size_t i = 0; i < n; i++) {
        int t;
        CHECK(cudaGraphNodeGetType(nodes[i], &t));
        if (t == type && nth-- == 0)
            return nodes[i];
    }
    exit(1);
}

static void captures(uint64_t n)
{
    cudaGraph_t graph = capture(NODE), changed = capture(OTHER);
    if (count_nodes(graph) != 6) {
        fprintf(stderr, "graphs: %u nodes captured, not 6\n", count_nodes(graph));
        exit(1);
    }
    cudaGraphExec_t exec = instantiate(graph);
    replay(exec, (long)n);
    replayed(n, 3, 1, 0, 1);

    /* the second graph's parameters in the first one's shape */
#if SIM_CUDART >= 12000
    struct CUgraphExecUpdateResultInfo_st info = {0};
    CHECK(cudaGraphExecUpdate(exec, changed, &info, NULL));
#else
    cudaGraphNode_t bad;
    int info;
    CHECK(cudaGraphExecUpdate(exec, changed, &bad, &info));
#endif
    replay(exec, (long)n);
    replayed(n, 2, 1, 1, 1);

    /* one node switched off, one given another kernel */
    int value = 1;
    void *args[] = {&device, &value};
    struct cudaKernelNodeParams params = {
        .func = &OTHER->stub, .gridDim = {1, 1, 1}, .blockDim = {32, 1, 1}, .kernelParams = args};
    CHECK(cudaGraphNodeSetEnabled(exec, find(graph, CU_GRAPH_NODE_TYPE_MEMCPY, 0), 0));
    CHECK(cudaGraphNodeSetEnabled(exec, find(graph, CU_GRAPH_NODE_TYPE_MEMSET, 0), 0));
    CHECK(
        cudaGraphExecKernelNodeSetParams(exec, find(graph, CU_GRAPH_NODE_TYPE_KERNEL, 0), &params));
    replay(exec, (long)n);
    replayed(n, 1, 1, 2, 0);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaGraphDestroy(changed));
}

/* By hand: a kernel, a child graph of two, a host function. */
static int called;

static void callback(void *user)
{
    ++*(int *)user;
}

static void by_hand(uint64_t n)
{
    cudaGraph_t graph, child;
    cudaGraphNode_t first, middle, inner, last;
    int value = 3;
    void *args[] = {&device, &value};
    struct cudaKernelNodeParams params = {
        .func = &NODE->stub, .gridDim = {4, 1, 1}, .blockDim = {64, 1, 1}, .kernelParams = args};
    struct cudaHostNodeParams host = {callback, &called};
    CHECK(cudaGraphCreate(&child, 0));
    params.func = &SIDE->stub;
    CHECK(cudaGraphAddKernelNode(&inner, child, NULL, 0, &params));
    CHECK(cudaGraphAddKernelNode(&inner, child, &inner, 1, &params));
    CHECK(cudaGraphCreate(&graph, 0));
    params.func = &NODE->stub;
    CHECK(cudaGraphAddKernelNode(&first, graph, NULL, 0, &params));
    CHECK(cudaGraphAddChildGraphNode(&middle, graph, &first, 1, child));
    CHECK(cudaGraphAddHostNode(&last, graph, &middle, 1, &host));
    CHECK(cudaGraphDestroy(child)); /* the node has a copy */
    cudaGraphExec_t exec = instantiate(graph);
    replay(exec, (long)n);
    replayed(n, 1, 2, 0, 0);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    if (called != (int)n) {
        fprintf(stderr, "graphs: %d host nodes ran, not %d\n", called, (int)n);
        exit(1);
    }
}

/* A graph launched into a capture becomes a child of the new graph. */
static void nested(uint64_t n)
{
    cudaGraph_t inner = capture(NODE), outer;
    cudaGraphExec_t exec = instantiate(inner), outer_exec;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    submit(OTHER, stream);
    CHECK(cudaGraphLaunch(exec, stream));
    note(1, "api:cudaGraphLaunch"); /* called, though it ran nothing */
    CHECK(cudaStreamEndCapture(stream, &outer));
    outer_exec = instantiate(outer);
    replay(outer_exec, (long)n);
    replayed(n, 3, 1, 1, 1);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphExecDestroy(outer_exec));
    CHECK(cudaGraphDestroy(inner));
    CHECK(cudaGraphDestroy(outer));
}

static void forbidden(void)
{
    cudaGraph_t graph = NULL;
    void *p;
    /* waiting for a capturing stream, and allocating during a global capture */
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    submit(NODE, stream);
    CHECK_FAILS(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    note(1, "syncs");
    CHECK_FAILS(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK_FAILS(cudaMalloc(&p, 4096), cudaErrorStreamCaptureUnsupported);
    CHECK_FAILS(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    /* a relaxed thread may */
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
    CHECK(cudaMalloc(&p, 4096));
    CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
    submit(NODE, stream);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaFree(p));
    /* a branch that never came back */
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaEventRecord(fork_event, stream));
    CHECK(cudaStreamWaitEvent(side, fork_event, 0));
    submit(SIDE, side);
    CHECK_FAILS(cudaStreamEndCapture(stream, &graph), 904);
    cudaGetLastError();
}

int main(int argc, char **argv)
{
    long n = argument(argc, argv, 1, 25);
    register_kernels(&image, kernels, 3);
    CHECK(cudaSetDevice(0));
    CHECK(cudaMalloc((void **)&device, 1 << 16));
    CHECK(cudaHostAlloc((void **)&pinned, 1 << 16, 0));
    CHECK(cudaStreamCreateWithFlags(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cudaStreamCreateWithFlags(&side, CU_STREAM_NON_BLOCKING));
    CHECK(cudaEventCreateWithFlags(&fork_event, CU_EVENT_DISABLE_TIMING));
    CHECK(cudaEventCreateWithFlags(&join_event, CU_EVENT_DISABLE_TIMING));
    captures((uint64_t)n);
    by_hand((uint64_t)n);
    nested((uint64_t)n);
    forbidden();
    submit(NODE, stream); /* an ordinary launch, after all that */
    captured--;
    note(1, "kernel:_Z4nodePfi");
    CHECK(cudaStreamSynchronize(stream));
    note(1, "syncs");
    note(captured, "captured");
    note(captured + 1, "launches");
    CHECK(cudaStreamDestroy(side));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFree(device));
    return finish("graphs");
}
