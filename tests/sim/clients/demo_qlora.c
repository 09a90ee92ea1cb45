/* A training job in the shape of QLoRA on a small GPU: 4-bit weights dequantised before every
 * product, LoRA beside them, gradient checkpointing with its recompute in backward, an 8-bit
 * optimizer, a tokenizer in the loop, pageable copies, one .item() per step. Launches come the
 * way they do in PyTorch: element-wise kernels through the runtime, products through a BLAS
 * that goes to the driver itself, backward on a thread named pt_autograd_0.
 *
 *     demo_qlora [STEPS [LAYERS]]
 */
#include "client.h"

#include "../blas.h"
#include "../c10_cuda.h"
#include "nvtx.h"

#include <pthread.h>
#include <sys/prctl.h>

#define HIDDEN 2048
#define TOKENS 512
#define RANK   16

#define KERNELS(X)                                                                                 \
    X(DEQUANTIZE, "us=4.6 cv=0.03",                                                                \
      "_Z20kDequantizeBlockwiseI13__nv_bfloat16Li512ELi64ELi8ELi2EEvPfPhS1_PT_ii")                 \
    X(ADD, "us=1.5 cv=0.06",                                                                       \
      "_ZN2at6native29vectorized_elementwise_kernelILi8ENS0_15CUDAFunctor_addIN3c108BFloat16EEESt" \
      "5arrayIPcLm3EEEEviT0_T1_")                                                                  \
    X(ADD_F32, "us=1.8 cv=0.06",                                                                   \
      "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3"   \
      "EEEEviT0_T1_")                                                                              \
    X(MUL, "us=1.7 cv=0.05",                                                                       \
      "_ZN2at6native29vectorized_elementwise_kernelILi8ENS0_13BinaryFunctorIN3c108BFloat16ES4_S4_" \
      "NS0_15binary_internal10MulFunctorIfEEEESt5arrayIPcLm3EEEEviT0_T1_")                         \
    X(SCALE, "us=1.6 cv=0.05",                                                                     \
      "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13AUnaryFunctorIfffNS0_15binary_"      \
      "internal10MulFunctorIfEEEESt5arrayIPcLm2EEEEviT0_T1_")                                      \
    X(CAST, "us=2.4 cv=0.05",                                                                      \
      "_ZN2at6native27unrolled_elementwise_kernelINS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EELi4E"   \
      "23TrivialOffsetCalculatorILi2EjES7_ILi1EjENS0_6memory12LoadWithCastILi2EEENSA_"             \
      "13StoreWithCastILi1EEEEEviT_T0_T2_T3_T4_T5_")                                               \
    X(MEAN, "us=3.9 cv=0.04",                                                                      \
      "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_7MeanOpsIffffEEjfLi4ELi4EEEEEvT1" \
      "_")                                                                                         \
    X(ROTARY, "us=1.9 cv=0.05",                                                                    \
      "_ZN2at6native12_GLOBAL__N_117rotary_emb_kernelIN3c108BFloat16EEEvPT_PKfS8_iii")             \
    X(ATTENTION, "us=14 cv=0.03",                                                                  \
      "_ZN5flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsILi128ELi128ELi64ELi4ELb0ELb0EN7"      \
      "cutlass10bfloat16_tEELb0ELb1ELb0ELb0ELb0ELb1ELb0ELb0EEEvNS_16Flash_fwd_paramsE")            \
    X(ATTENTION_BACKWARD, "us=33 cv=0.03",                                                         \
      "_ZN5flash44flash_bwd_dq_dk_dv_loop_seqk_parallel_kernelI23Flash_bwd_kernel_traitsILi128E"   \
      "Li64ELi128ELi8ELi2ELi4ELi2ELb0ELb0EN7cutlass10bfloat16_tEELb0ELb1ELb0ELb0ELb1ELb1ELb0EEEv"  \
      "NS_16Flash_bwd_paramsE")                                                                    \
    X(GATHER, "us=2.8 cv=0.04",                                                                    \
      "_ZN2at6native12_GLOBAL__N_124vectorized_gather_kernelILi16ElEEvPcS3_PT0_illllb")            \
    X(SOFTMAX, "us=22 cv=0.03",                                                                    \
      "_ZN2at6native12_GLOBAL__N_120softmax_warp_forwardIfffLi11ELb1ELb0EEEvPT0_PKT_iiiPKbib")     \
    X(SOFTMAX_BACKWARD, "us=26 cv=0.03",                                                           \
      "_ZN2at6native12_GLOBAL__N_121softmax_warp_backwardIfffLi11ELb1ELb0EEEvPT0_PKT_S7_iiiPKb")   \
    X(NLL_LOSS, "us=3.1 cv=0.03",                                                                  \
      "_ZN2at6native38nll_loss_forward_reduce_cuda_kernel_2dIffliEEvPT_S3_PKS2_PKT1_S5_bllll")     \
    X(OPTIMIZER, "us=3.3 cv=0.05",                                                                 \
      "_Z35kOptimizerStatic8bit2StateBlockwiseI13__nv_bfloat16Li3ELi256ELi1EEvPT_S2_PhS3_fffffif"  \
      "PfS4_S4_S4_ffbi")

#include "kernels.h"

static struct blas *blas;
static int *staging; /* pinned, where .item() reads to */
static void *weights, *loss_on_device, *workspace;
static int layers;

/* What the interpreter and the dispatcher spend before an operator reaches the device. */
#define DISPATCH_US 5.0

static void op(int kernel, unsigned blocks)
{
    int n = 0;
    void *args[] = {&workspace, &weights, &n};
    dim3 grid = {blocks, 1, 1}, block = {256, 1, 1};
    burn_us(DISPATCH_US);
    CHECK(launch(&kernels[kernel], grid, block, args, 0, NULL));
    LAUNCHED_HOW_MANY(&kernels[kernel], 1);
    note(1, "launches");
}

static void gemm(int m, int n, int k)
{
    const char *names[2];
    burn_us(DISPATCH_US * 1.4);
    CHECK(blas_gemm(blas, m, n, k));
    blas_kernels(m, n, k, names);
    for (int i = 0; i < 2 && names[i]; i++) {
        note(1, "kernel:%s", names[i]);
        note(1, "launches");
    }
}

/* A 4-bit linear layer with its LoRA: dequantise, product, two thin products, scale, add. */
static void linear(int out)
{
    op(DEQUANTIZE, 512);
    gemm(out, TOKENS, HIDDEN);
    gemm(TOKENS, RANK, HIDDEN);
    gemm(TOKENS, RANK, RANK);
    op(SCALE, 64);
    op(ADD, 128);
}

static void norm(void)
{
    op(MUL, 128);
    op(MEAN, 32);
    op(ADD_F32, 4);
    op(CAST, 128);
}

static void layer_forward(void)
{
    norm();
    for (int i = 0; i < 3; i++)
        linear(HIDDEN);
    op(ROTARY, 64);
    op(ROTARY, 64);
    op(ATTENTION, 128);
    linear(HIDDEN);
    op(ADD, 128);
    norm();
    linear(HIDDEN * 4);
    linear(HIDDEN * 4);
    op(MUL, 256);
    linear(HIDDEN);
    op(ADD, 128);
}

static void linear_backward(int out)
{
    op(DEQUANTIZE, 512);
    gemm(out, TOKENS, HIDDEN);
    gemm(TOKENS, RANK, RANK);
    gemm(TOKENS, RANK, HIDDEN);
    op(ADD, 128);
}

static void layer_backward(void)
{
    linear_backward(HIDDEN);
    op(MUL, 256);
    linear_backward(HIDDEN * 4);
    linear_backward(HIDDEN * 4);
    norm();
    linear_backward(HIDDEN);
    op(ATTENTION_BACKWARD, 128);
    op(ROTARY, 64);
    for (int i = 0; i < 3; i++)
        linear_backward(HIDDEN);
    norm();
    op(ADD, 128);
}

/* ---- the autograd thread: the main thread waits while it works --------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static enum { STARTING, IDLE, BACKWARD, DONE, QUIT } phase;
static void **checkpoints;

static void backward(void)
{
    op(SOFTMAX_BACKWARD, 512);
    for (int i = layers - 1; i >= 0; i--) {
        void *activations = c10_cuda_allocate((size_t)TOKENS * HIDDEN * 34, NULL);
        layer_forward(); /* again: only the layer's input was kept */
        layer_backward();
        c10_cuda_free(activations);
        c10_cuda_free(checkpoints[i]);
    }
}

static void *autograd(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    CHECK(cudaSetDevice(0));
    prctl(PR_SET_NAME, "pt_autograd_0"); /* after the start, as PyTorch does */
    phase = IDLE;
    pthread_cond_broadcast(&cond);
    for (;;) {
        while (phase != BACKWARD && phase != QUIT)
            pthread_cond_wait(&cond, &lock);
        if (phase == QUIT)
            break;
        pthread_mutex_unlock(&lock);
        backward();
        pthread_mutex_lock(&lock);
        phase = DONE;
        pthread_cond_broadcast(&cond);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void run_backward(void)
{
    pthread_mutex_lock(&lock);
    phase = BACKWARD;
    pthread_cond_broadcast(&cond);
    while (phase != DONE)
        pthread_cond_wait(&cond, &lock);
    phase = IDLE;
    pthread_mutex_unlock(&lock);
}

/* ---- the training loop ------------------------------------------------------------------------
 */

/* input_ids, attention_mask, labels: ordinary memory, copied one by one. */
static void next_batch(long step, void *batch[3])
{
    static char text[3][TOKENS * 8 * 8];
    sleep_us(step % 4 == 0 ? 14000 : 6000); /* the shard comes from disk */
    burn_us(38000);                         /* tokenise and collate */
    for (int i = 0; i < 3; i++) {
        batch[i] = c10_cuda_allocate(sizeof text[i], NULL);
        CHECK(cudaMemcpyAsync(batch[i], text[i], sizeof text[i], cudaMemcpyHostToDevice, NULL));
        CHECK(cudaStreamSynchronize(NULL));
        note_copy("H2D", true, sizeof text[i]);
        note(1, "syncs");
    }
}

static double item(void)
{
    CHECK(cudaMemcpyAsync(staging, loss_on_device, 4, cudaMemcpyDeviceToHost, NULL));
    CHECK(cudaStreamSynchronize(NULL));
    note_copy("D2H", false, 4);
    note(1, "syncs");
    return (double)*staging / 1000.0;
}

static void forward(void)
{
    op(GATHER, 256);
    for (int i = 0; i < layers; i++) {
        checkpoints[i] = c10_cuda_allocate((size_t)TOKENS * HIDDEN * 2, NULL);
        layer_forward();
    }
    norm();
    gemm(HIDDEN * 4, TOKENS, HIDDEN);
    op(CAST, 1024);
    op(SOFTMAX, 512);
    op(NLL_LOSS, 1);
}

static void optimizer(void)
{
    CHECK(cudaMemsetAsync(loss_on_device, 0, 4, NULL));
    note_memset(4);
    for (int i = 0; i < layers * 14; i++) { /* two LoRA matrices a linear layer */
        burn_us(DISPATCH_US);
        op(OPTIMIZER, 16);
    }
}

int main(int argc, char **argv)
{
    long steps = argument(argc, argv, 1, 40);
    layers = (int)argument(argc, argv, 2, 16);
    pthread_t thread;

    register_kernels(&image, kernels, sizeof kernels / sizeof *kernels);
    CHECK(cudaSetDevice(0));
    CHECK(cudaHostAlloc((void **)&staging, 4096, 0));
    weights = c10_cuda_allocate((size_t)layers * HIDDEN * HIDDEN * 7, NULL);
    loss_on_device = c10_cuda_allocate(4, NULL);
    workspace = c10_cuda_allocate(32 << 20, NULL);
    checkpoints = calloc((size_t)layers, sizeof *checkpoints);
    blas = blas_create();
    if (!blas || !weights || !workspace || !checkpoints)
        return 1;
    pthread_create(&thread, NULL, autograd, NULL);
    pthread_mutex_lock(&lock);
    while (phase == STARTING) /* one thread at a time: the same run every time */
        pthread_cond_wait(&cond, &lock);
    pthread_mutex_unlock(&lock);

    for (long step = 0; step < steps; step++) {
        void *batch[3];
        char range[32];
        snprintf(range, sizeof range, "step %ld", step);
        nvtx_push(range);
        next_batch(step, batch);
        nvtx_push("forward");
        forward();
        nvtx_pop();
        nvtx_push("backward");
        run_backward();
        nvtx_pop();
        nvtx_push("optimizer");
        optimizer();
        nvtx_pop();
        for (int i = 0; i < 3; i++)
            c10_cuda_free(batch[i]);
        double loss = item() + 2.4 - 0.02 * (double)step;
        if (step % 5 == 0 || step == steps - 1)
            printf("step %ld loss %.4f\n", step, loss);
        nvtx_pop();
    }

    pthread_mutex_lock(&lock);
    phase = QUIT;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    blas_destroy(blas);
    note(c10_cuda_max_allocated(), "peak_allocated_bytes");
    return finish("demo_qlora");
}
