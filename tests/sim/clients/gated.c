/* A training job as a gate meets it: gradient accumulation over four micro-batches, one all-reduce
 * and one .item() a step; and the changes that a gate must notice, or must let pass.
 *
 *     gated [CHANGE [STEPS]]
 *
 * CHANGE is none, sync (one more .item()), kernel (a fused kernel becomes two), allreduce (one per
 * micro-batch), pageable (the batch is no longer pinned), empty (memory is given back in every
 * step), capture (a graph in every tenth step), win (no .item()), dear (fewer launches, each
 * dearer), killed (ends by SIGKILL half-way).
 */
#include "autograd.h"

#include <signal.h>
#include <unistd.h>

#define NC(ret, name, params, args, kind, before, after) ret name params;
#include "capture/calls.def"

#define KERNELS(X)                                                                                 \
    X(EMBED, "us=2", "_Z5embedPfPKfi")                                                             \
    X(FUSED, "us=3", "_Z10fused_biasPfPKfi")                                                       \
    X(BIAS, "us=2", "_Z4biasPfPKfi")                                                               \
    X(GELU, "us=2", "_Z4geluPfPKfi")                                                               \
    X(GEMM, "us=6", "_Z4gemmPfPKfS1_i")                                                            \
    X(LOSS, "us=3", "_Z4lossPfPKfi")                                                               \
    X(BACKWARD, "us=6", "_Z13gemm_backwardPfPKfS1_i")                                              \
    X(UPDATE, "us=4", "_Z25multi_tensor_apply_kernelILi4E4AdamEvPf")

#include "kernels.h"

#define LAYERS  4
#define MICRO   4
#define BATCH   65536
#define GRADS   ((size_t)1 << 16) /* floats */
#define STAGING ((size_t)1 << 20)

static const char *change = "none";
static float *memory;
static char *pinned, *pageable;
static ncclComm_t comm;
static double dispatch_us = 5;

static bool changed(const char *what)
{
    return !strcmp(change, what);
}

static void op(int kernel)
{
    int n = 0;
    void *args[] = {&memory, &memory, &n};
    burn_us(dispatch_us);
    CHECK(launch(&kernels[kernel], (dim3){64, 1, 1}, (dim3){128, 1, 1}, args, 0, NULL));
}

static void item(void)
{
    CHECK(cudaMemcpyAsync(pinned, memory, 4, cudaMemcpyDeviceToHost, NULL));
    CHECK(cudaStreamSynchronize(NULL));
}

static void all_reduce(void)
{
    CHECK(ncclAllReduce(memory, memory, GRADS, ncclFloat32, ncclSum, comm, NULL));
}

static void forward(void)
{
    CHECK(cudaMemcpyAsync(memory, changed("pageable") ? pageable : pinned, BATCH,
                          cudaMemcpyHostToDevice, NULL));
    op(EMBED);
    for (int i = 0; i < LAYERS; i++) {
        op(GEMM);
        if (changed("kernel")) {
            op(BIAS);
            op(GELU);
        } else if (!changed("dear") || i % 2) {
            op(FUSED);
        }
    }
    op(LOSS);
}

/* ---- backward, on its thread ------------------------------------------------------------- */

static bool last_micro_batch;

/* Gradients are reduced where they become ready. */
static void backward_pass(void)
{
    for (int i = 0; i < 2 * LAYERS; i++)
        op(BACKWARD);
    if (last_micro_batch || changed("allreduce"))
        all_reduce();
}

/* ---- a graph that is made again and again -----------------------------------------------------
 */

static void capture(void)
{
    static cudaStream_t stream;
    cudaGraph_t graph;
    int n = 0;
    void *args[] = {&memory, &memory, &n};
    if (!stream)
        CHECK(cudaStreamCreateWithFlags(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(launch(&kernels[GEMM], (dim3){64, 1, 1}, (dim3){128, 1, 1}, args, 0, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphDestroy(graph));
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void step(void)
{
    sleep_us(300);
    for (int i = 0; i < MICRO; i++) {
        forward();
        last_micro_batch = i == MICRO - 1;
        backward();
    }
    for (int i = 0; i < 3; i++)
        op(UPDATE);
    if (!changed("win"))
        item();
    if (changed("sync"))
        item();
    if (changed("empty")) {
        void *given;
        CHECK(cudaMalloc(&given, 1 << 20));
        CHECK(cudaFree(given));
    }
}

int main(int argc, char **argv)
{
    long steps = argument(argc, argv, 2, 40);
    change = argc > 1 ? argv[1] : change;
    dispatch_us = changed("dear") ? 10 : dispatch_us;
    register_kernels(&image, kernels, sizeof kernels / sizeof *kernels);
    CHECK(cudaSetDevice(0));
    CHECK(cudaMalloc((void **)&memory, STAGING));
    CHECK(cudaHostAlloc((void **)&pinned, STAGING, 0));
    pageable = calloc(1, STAGING);
    CHECK(ncclCommInitAll(&comm, 1, NULL));
    autograd_start();
    for (long i = 0; i < steps; i++) {
        if (changed("killed") && i == steps / 2)
            kill(getpid(), SIGKILL);
        step();
        if (changed("capture") && i % 10 == 9)
            capture();
    }
    autograd_stop();
    CHECK(cudaDeviceSynchronize());
    CHECK(ncclCommDestroy(comm));
    puts("gated: ok");
    return 0;
}
