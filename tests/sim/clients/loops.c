/* Loops of every shape, for those who look for steps: what a program does over and over, with
 * what interrupts it.
 *
 *     loops KIND [STEPS]
 *
 * Prints how many steps there were and how many kernels a usual one launches. Kinds of training
 * have forward passes and the optimizer on the main thread, and backward passes on a thread named
 * pt_autograd_0, as PyTorch does. NVTX ranges named "step" hold each step.
 */
#include "autograd.h"

#include "nvtx.h"

#define KERNELS(X)                                                                                 \
    X(EMBED, "us=2", "_Z5embedPfPKfi")                                                             \
    X(NORM, "us=2", "_Z4normPfPKfi")                                                               \
    X(GEMM, "us=6", "_Z4gemmPfPKfS1_i")                                                            \
    X(GEMM_TALL, "us=5", "_Z9gemm_tallPfPKfS1_i")                                                  \
    X(ACT, "us=2", "_Z3actPfPKfi")                                                                 \
    X(ADD, "us=2", "_Z3addPfPKfi")                                                                 \
    X(LOSS, "us=3", "_Z4lossPfPKfi")                                                               \
    X(NORM_BACKWARD, "us=3", "_Z13norm_backwardPfPKfi")                                            \
    X(GEMM_BACKWARD, "us=6", "_Z13gemm_backwardPfPKfS1_i")                                         \
    X(ACT_BACKWARD, "us=3", "_Z12act_backwardPfPKfi")                                              \
    X(FOREACH, "us=4", "_Z25multi_tensor_apply_kernelILi4E4AdamEvPf")                              \
    X(PLAIN_UPDATE, "us=2", "_Z6updatePfPKff")                                                     \
    X(ROUTE, "us=2", "_Z5routePiPKfi")                                                             \
    X(EXPERT, "us=4", "_Z6expertPfPKfi")                                                           \
    X(ARGMAX, "us=2", "_Z11ArgMaxKernelPlPKfi")

#include "kernels.h"

#define LAYERS     6
#define BATCH      65536
#define PARAMETERS 500

static void *device_memory;
static char *pinned;
static cudaStream_t stream; /* NULL: the default one */
static unsigned launched;
static unsigned rows = 32; /* of a batch: grids depend on it */
static uint64_t state = 88172645463325252u;

static unsigned below(unsigned n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state % n);
}

static void op(int kernel)
{
    int n = 0;
    void *args[] = {&device_memory, &device_memory, &n};
    burn_us(5);
    CHECK(launch(&kernels[kernel], (dim3){rows, 1, 1}, (dim3){128, 1, 1}, args, 0, stream));
    launched++;
}

static void read_number(unsigned bytes)
{
    CHECK(cudaMemcpyAsync(pinned, device_memory, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
}

static void fetch_batch(void)
{
    sleep_us(300);
    CHECK(cudaMemcpyAsync(device_memory, pinned, BATCH, cudaMemcpyHostToDevice, stream));
}

static void layer(void)
{
    op(NORM);
    op(rows > 40 ? GEMM_TALL : GEMM);
    op(ACT);
    op(rows > 40 ? GEMM_TALL : GEMM);
    op(ADD);
}

static void forward(void)
{
    op(EMBED);
    for (int i = 0; i < LAYERS; i++)
        layer();
    op(LOSS);
}

/* ---- backward, on its thread ------------------------------------------------------------- */

static bool recompute;

static void backward_pass(void)
{
    op(LOSS);
    for (int i = 0; i < LAYERS; i++) {
        if (recompute)
            layer();
        op(GEMM_BACKWARD);
        op(ACT_BACKWARD);
        op(GEMM_BACKWARD);
        op(NORM_BACKWARD);
    }
}

static void optimizer(void)
{
    for (int i = 0; i < 4; i++)
        op(FOREACH);
}

/* ---- the loops: each does step number i ---------------------------------------------------- */

static void train(unsigned i)
{
    (void)i;
    fetch_batch();
    forward();
    backward();
    optimizer();
    read_number(4);
}

static void train_checkpointed(unsigned i)
{
    recompute = true;
    train(i);
}

/* The optimizer's kernels are not known for what they are. */
static void train_plain(unsigned i)
{
    (void)i;
    fetch_batch();
    forward();
    backward();
    for (int k = 0; k < 12; k++)
        op(PLAIN_UPDATE);
}

/* Each gradient is looked at: most of a step's calls are these. */
static void train_and_read_each(unsigned i)
{
    (void)i;
    fetch_batch();
    forward();
    backward();
    for (int k = 0; k < PARAMETERS; k++) {
        op(NORM);
        read_number(4);
        op(ROUTE);
        read_number(1);
    }
    optimizer();
}

static void accumulate(unsigned i)
{
    (void)i;
    for (int k = 0; k < 4; k++) {
        fetch_batch();
        forward();
        backward();
    }
    optimizer();
}

static void accumulate_plain(unsigned i)
{
    (void)i;
    for (int k = 0; k < 3; k++) {
        fetch_batch();
        forward();
        backward();
    }
    for (int k = 0; k < 12; k++)
        op(PLAIN_UPDATE);
}

static void train_and_log(unsigned i)
{
    fetch_batch();
    forward();
    backward();
    optimizer();
    if (i % 5 == 4)
        read_number(4);
}

static void train_and_save(unsigned i)
{
    train(i);
    if (i % 10 != 9)
        return;
    for (int k = 0; k < 60; k++)
        CHECK(cudaMemcpy(pinned, device_memory, BATCH, cudaMemcpyDeviceToHost));
    sleep_us(3000);
}

static void train_and_evaluate(unsigned i)
{
    train(i);
    for (int k = 0; k < 6 && i % 10 == 9; k++) {
        fetch_batch();
        forward();
        read_number(4);
    }
}

/* Lengths vary: so do grids and, with them, which product runs. */
static void train_varied(unsigned i)
{
    rows = 16 + 8 * below(8);
    train(i);
}

static void infer(unsigned i)
{
    (void)i;
    fetch_batch();
    forward();
    read_number(4096);
}

/* Which experts run depends on what is read back, layer by layer. */
static void infer_experts(unsigned i)
{
    (void)i;
    fetch_batch();
    op(EMBED);
    for (int k = 0; k < LAYERS; k++) {
        op(NORM);
        op(ROUTE);
        read_number(4);
        for (unsigned n = 1 + below(3); n; n--)
            op(EXPERT);
        op(ADD);
    }
    op(LOSS);
    read_number(4096);
}

/* Layers alike but for their sizes, which are read back; nothing else tells where a pass begins. */
static void infer_picked(unsigned i)
{
    (void)i;
    for (int k = 0; k < LAYERS; k++) {
        op(ROUTE);
        read_number(4);
        rows = 32 + 8 * (unsigned)k;
        op(EXPERT);
        rows = 32;
        op(ADD);
    }
}

/* One token; every 20th begins a new text, whose first pass runs other kernels. */
static void generate(unsigned i)
{
    if (i % 20 == 0) {
        sleep_us(500);
        CHECK(cudaMemcpyAsync(device_memory, pinned, BATCH, cudaMemcpyHostToDevice, stream));
        rows = 64;
    } else {
        rows = 8;
    }
    forward();
    op(ARGMAX);
    read_number(1);
}

/* No backward pass, and the host takes no part: a few products, then every parameter by itself. */
static void update_each(unsigned i)
{
    (void)i;
    for (int k = 0; k < 16; k++)
        op(GEMM);
    for (int k = 0; k < PARAMETERS; k++) {
        op(NORM);
        op(ACT);
        op(ADD);
        op(PLAIN_UPDATE);
        op(PLAIN_UPDATE);
        op(FOREACH);
    }
}

/* Layers and nothing else: only the host's time between two steps tells where one begins. */
static void only_layers(unsigned i)
{
    (void)i;
    sleep_us(300);
    for (int k = 0; k < LAYERS; k++) {
        layer();
        op(ROUTE);
        op(EXPERT);
        op(LOSS);
    }
}

/* Every other step does the same on other sizes, less often. */
static void alternate(unsigned i)
{
    int times = i % 2 ? 2 : 3;
    for (int k = 0; k < times; k++)
        op(NORM);
    for (int k = 0; k < times; k++)
        op(ACT);
    op(GEMM);
}

/* ---- graphs ------------------------------------------------------------------------------------
 */

static cudaGraphExec_t captured, layers[LAYERS];

static void use_stream(void)
{
    CHECK(cudaStreamCreateWithFlags(&stream, CU_STREAM_NON_BLOCKING));
}

static cudaGraphExec_t captured_from(void (*work)(void))
{
    cudaGraph_t graph;
    cudaGraphExec_t out;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    work();
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&out, graph, NULL, NULL, NULL));
    return out;
}

static void capture_forward(void)
{
    use_stream();
    captured = captured_from(forward);
}

static void capture_layers(void)
{
    use_stream();
    for (int k = 0; k < LAYERS; k++)
        layers[k] = captured_from(layer);
}

static void capture(void)
{
    cudaGraph_t graph;
    train(0); /* eager: warm-up */
    train(1);
    train(2);
    CHECK(cudaStreamCreateWithFlags(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    forward();
    op(FOREACH);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&captured, graph, NULL, NULL, NULL));
}

static void replay(unsigned i)
{
    (void)i;
    fetch_batch();
    CHECK(cudaGraphLaunch(captured, stream));
    read_number(4);
}

static void replay_twice(unsigned i)
{
    (void)i;
    fetch_batch();
    CHECK(cudaGraphLaunch(captured, stream));
    CHECK(cudaGraphLaunch(captured, stream));
    read_number(4);
}

/* One token; every 20th begins a new text, whose prompt launches more than many tokens do. */
static void replay_texts(unsigned i)
{
    for (int k = 0; k < 8 && i % 20 == 0; k++)
        forward();
    CHECK(cudaGraphLaunch(captured, stream));
}

/* A new length every tenth step: as it is, then captured, then replayed. */
static void replay_lengths(unsigned i)
{
    rows = 32 + 8 * (i / 10);
    CHECK(cudaMemcpyAsync(device_memory, (char *)device_memory + BATCH, BATCH,
                          cudaMemcpyDeviceToDevice, stream));
    if (i % 10 == 0) {
        forward();
        return;
    }
    if (i % 10 == 1)
        captured = captured_from(forward);
    op(ADD);
    CHECK(cudaGraphLaunch(captured, stream));
}

/* Layers are a graph each, with a kernel of its own between two. */
static void replay_layers(unsigned i)
{
    (void)i;
    for (int k = 0; k < LAYERS; k++) {
        op(ROUTE);
        CHECK(cudaGraphLaunch(layers[k], stream));
    }
}

/* ---- no loop at all ---------------------------------------------------------------------------
 */

static void anything(unsigned i)
{
    (void)i;
    for (unsigned n = 1 + below(40); n; n--)
        op((int)below(sizeof kernels / sizeof *kernels));
    if (below(4) == 0)
        read_number(8);
}

static const struct loop {
    const char *kind;
    void (*prepare)(void);
    void (*step)(unsigned i);
} loops[] = {
    {"train", NULL, train},
    {"checkpoint", NULL, train_checkpointed},
    {"plain", NULL, train_plain},
    {"read_each", NULL, train_and_read_each},
    {"accumulate", NULL, accumulate},
    {"accumulate_plain", NULL, accumulate_plain},
    {"log", NULL, train_and_log},
    {"save", NULL, train_and_save},
    {"evaluate", NULL, train_and_evaluate},
    {"shapes", NULL, train_varied},
    {"infer", NULL, infer},
    {"experts", NULL, infer_experts},
    {"picked", NULL, infer_picked},
    {"generate", NULL, generate},
    {"update_each", NULL, update_each},
    {"only_layers", NULL, only_layers},
    {"alternate", NULL, alternate},
    {"replay", capture, replay},
    {"replay_twice", capture, replay_twice},
    {"replay_texts", capture_forward, replay_texts},
    {"replay_lengths", use_stream, replay_lengths},
    {"replay_layers", capture_layers, replay_layers},
    {"anything", NULL, anything},
};

static const struct loop *find(const char *kind)
{
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        if (!strcmp(loops[i].kind, kind))
            return &loops[i];
    return NULL;
}

/* What comes before a loop: memory, weights. */
static void begin(void)
{
    register_kernels(&image, kernels, sizeof kernels / sizeof *kernels);
    CHECK(cudaSetDevice(0));
    CHECK(cudaMalloc(&device_memory, 1 << 20));
    CHECK(cudaHostAlloc((void **)&pinned, 1 << 20, 0));
    for (int i = 0; i < 24; i++) {
        CHECK(cudaMemcpy(device_memory, pinned, BATCH, cudaMemcpyHostToDevice));
        op(ADD);
    }
}

int main(int argc, char **argv)
{
    const struct loop *loop = find(argc > 1 ? argv[1] : "train");
    unsigned steps = (unsigned)argument(argc, argv, 2, 60), usual = 0;
    if (!loop)
        return 2;
    begin();
    autograd_start();
    if (loop->prepare)
        loop->prepare();
    for (unsigned i = 0; i < steps; i++) {
        launched = 0;
        nvtx_push("step");
        loop->step(i);
        nvtx_pop();
        usual = i == steps / 2 ? launched : usual;
    }
    autograd_stop();
    CHECK(cudaDeviceSynchronize());
    printf("%u steps, %u launches\n", steps, usual);
    return finish("loops");
}
