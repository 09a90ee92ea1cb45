/* Data-parallel training, one process a rank, each with a device and, with SIM_CLOCK=virtual, a
 * clock of its own: forward, backward on its thread with the gradients reduced in buckets on a
 * second stream as they become ready, optimizer, and .item() every few steps.
 *
 *     ranks [-n RANKS] [-s STEPS] [-f FAULT] [-r RANK] [-H HOSTS] [-o SECONDS] [-t DIR]
 *
 * starts RANKS processes of itself, with RANK and WORLD_SIZE set as launchers set them, or is one
 * of them if RANK is set. FAULT is planted on rank RANK, or on all:
 *
 *     none
 *     data     it waits 15 ms for its batch in each step
 *     data4    it waits 60 ms for it in every fourth
 *     gc       it computes for 40 ms in the midst of forward in every third
 *     gpu      its device is slower
 *     link     its link to the others and to the host is slower
 *     excess   all: four micro-batches a step, each of which reduces all gradients
 *     hidden   all: gradients are so few that backward hides their reduction
 *     exposed  all: gradients are so many that it cannot
 *     queue    all: they read their loss so seldom that launch queues fill
 *     heat     the same, and devices slow down now and then, each at times of its own
 *     slower   the same, and its device is slower by 4 %
 *     dead     it is killed half-way
 *
 * Over HOSTS machines (see host_name.c), whose clocks differ by up to so many SECONDS. DIR gets the
 * truth of each rank, as RANK.json.
 */
#include "autograd.h"
#include "launcher.h"

#include <getopt.h>
#include <signal.h>

#define ALL_REDUCE "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"

#define KERNELS(X)                                                                                 \
    X(NORM, "us=9 cv=0.04",                                                                        \
      "_ZN2at6native12_GLOBAL__N_128vectorized_layer_norm_kernelIffEEviT0_PKT_S5_S5_PS2_S6_PS3_")  \
    X(GEMM, "us=58 cv=0.02", "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn")        \
    X(GELU, "us=11 cv=0.04",                                                                       \
      "_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_14GeluCUDAKernelImplERNS_"          \
      "18TensorIteratorBaseENS0_8GeluTypeEENKUlvE0_clEvENKUlvE_clEvEUlfE_St5arrayIPcLm2EEEEviT0_"  \
      "T1_")                                                                                       \
    X(LOSS, "us=6 cv=0.04",                                                                        \
      "_ZN2at6native38nll_loss_forward_reduce_cuda_kernel_2dIffliEEvPT_S3_PKS2_PKT1_S5_bllll")     \
    X(GEMM_NT, "us=61 cv=0.02", "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_nt")     \
    X(GELU_BACKWARD, "us=14 cv=0.04",                                                              \
      "_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_22GeluBackwardCUDAKernelImplERNS_"  \
      "18TensorIteratorBaseENS0_8GeluTypeEENKUlvE0_clEvENKUlvE_clEvEUlffE_St5arrayIPcLm3EEEEviT0_" \
      "T1_")                                                                                       \
    X(ADAM, "us=44 cv=0.03",                                                                       \
      "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_32FusedOptimizerTensorListMetad" \
      "ataILi4EEENS1_20FusedAdamMathFunctorIfLi4ELNS0_9ADAM_MODEE0ELb0EEEJEEEvT_T0_DpT1_")

#include "kernels.h"

#define LAYERS      12
#define BUCKETS     4
#define BATCH       ((size_t)6 << 20)
#define DISPATCH_US 8.0

static long rank_count = 2, steps = 20, faulty, hosts = 1;
static double offset_s;
static const char *fault = "none", *truth_dir;

static bool planted(const char *what)
{
    return !strcmp(fault, what);
}

/* ---- one rank ----------------------------------------------------------------------------------
 */

static long rank;
static float *memory;
static char *pinned;
static cudaStream_t compute, side;
static cudaEvent_t ready, reduced;
static ncclComm_t comm;
static bool reduces;

/* All of these do. */
static bool reads_seldom(void)
{
    return planted("queue") || planted("heat") || planted("slower");
}

static bool mine(const char *what)
{
    return rank == faulty && planted(what);
}

static void op(int kernel)
{
    int n = 0;
    void *args[] = {&memory, &memory, &n};
    burn_us(DISPATCH_US);
    CHECK(launch(&kernels[kernel], (dim3){264, 1, 1}, (dim3){256, 1, 1}, args, 0, compute));
    LAUNCHED_HOW_MANY(&kernels[kernel], 1);
}

static size_t bucket_bytes(void)
{
    if (planted("hidden"))
        return (size_t)256 << 10;
    return (size_t)(planted("exposed") ? 160 : planted("excess") ? 60 : 25) << 20;
}

static void reduce_bucket(void)
{
    CHECK(cudaEventRecord(ready, compute));
    CHECK(cudaStreamWaitEvent(side, ready, 0));
    CHECK(ncclAllReduce(memory, memory, bucket_bytes() / 4, ncclFloat32, ncclAvg, comm, side));
    note(1, "nccl:AllReduce.calls");
    if (rank_count > 1)
        note(1, "kernel:" ALL_REDUCE);
}

static void backward_pass(void)
{
    for (int i = 0; i < LAYERS; i++) {
        op(GEMM_NT);
        op(GEMM_NT);
        op(GELU_BACKWARD);
        op(GEMM_NT);
        op(GEMM_NT);
        op(NORM);
        if (reduces && (i + 1) % (LAYERS / BUCKETS) == 0)
            reduce_bucket();
    }
    if (reduces) {
        CHECK(cudaEventRecord(reduced, side));
        CHECK(cudaStreamWaitEvent(compute, reduced, 0));
    }
}

static void next_batch(long step)
{
    sleep_us(60);
    if (mine("data"))
        sleep_us(15000);
    if (mine("data4") && step % 4 == 3)
        sleep_us(60000);
    CHECK(cudaMemcpyAsync(memory, pinned, BATCH, cudaMemcpyHostToDevice, compute));
    note_copy("H2D", false, BATCH);
}

static void forward(long step)
{
    for (int i = 0; i < LAYERS; i++) {
        if (mine("gc") && step % 3 == 2 && i == LAYERS / 2)
            burn_us(40000);
        op(NORM);
        op(GEMM);
        op(GELU);
        op(GEMM);
    }
    op(LOSS);
}

static void train_step(long step)
{
    int micro = planted("excess") ? 4 : 1;
    for (int i = 0; i < micro; i++) {
        next_batch(step);
        forward(step);
        reduces = true;
        backward();
    }
    for (int i = 0; i < 4; i++)
        op(ADAM);
    if (step % (reads_seldom() ? 50 : 5) == 4) {
        CHECK(cudaMemcpyAsync(pinned, memory, 4, cudaMemcpyDeviceToHost, compute));
        CHECK(cudaStreamSynchronize(compute));
        note_copy("D2H", false, 4);
    }
}

static int be_rank(void)
{
    register_kernels(&image, kernels, KERNEL_COUNT);
    CHECK(cudaSetDevice(0));
    CHECK(cudaMalloc((void **)&memory, (size_t)256 << 20));
    CHECK(cudaHostAlloc((void **)&pinned, BATCH, 0));
    CHECK(cudaStreamCreateWithFlags(&compute, CU_STREAM_NON_BLOCKING));
    CHECK(cudaStreamCreateWithFlags(&side, CU_STREAM_NON_BLOCKING));
    CHECK(cudaEventCreateWithFlags(&ready, CU_EVENT_DISABLE_TIMING));
    CHECK(cudaEventCreateWithFlags(&reduced, CU_EVENT_DISABLE_TIMING));
    CHECK(ncclCommInitRank(&comm, (int)rank_count, unique_id(rank), (int)rank));
    autograd_start();
    for (long i = 0; i < steps; i++) {
        if (mine("dead") && i == steps / 2)
            kill(getpid(), SIGKILL);
        train_step(i);
    }
    autograd_stop();
    CHECK(cudaDeviceSynchronize());
    CHECK(ncclCommDestroy(comm));
    return finish("rank");
}

/* ---- the launcher ------------------------------------------------------------------------------
 */

static void prepare(long r)
{
    const char *seed = getenv("SIM_SEED");
    long on_host = (rank_count + hosts - 1) / hosts, host = r / on_host;
    set_variable("LOCAL_RANK", "%ld", r % on_host);
    set_variable("SIM_SEED", "%ld", (seed ? atol(seed) : 1) * 1000 + r);
    if (hosts > 1) {
        double part = 0.5 + 0.618034 * (double)host;
        set_variable("SIM_HOST", "node%ld", host);
        set_variable("SIM_CLOCK_OFFSET_NS", "%.0f", offset_s * 1e9 * (part - (double)(long)part));
    }
    if (truth_dir)
        set_variable("SIM_TRUTH", "%s/%ld.json", truth_dir, r);
    if (r == faulty && planted("gpu"))
        set_variable("SIM_DEVICE_SPEED", "0.6");
    if (planted("heat"))
        set_variable("SIM_HEAT", "0.08");
    if (r == faulty && planted("slower"))
        set_variable("SIM_DEVICE_SPEED", "0.96");
    if (r == faulty && planted("link"))
        set_variable("SIM_LINK_SPEED", "0.125");
}

int main(int argc, char **argv)
{
    for (int o; (o = getopt(argc, argv, "n:s:f:r:H:o:t:")) != -1;) {
        switch (o) {
        case 'n':
            rank_count = atol(optarg);
            break;
        case 's':
            steps = atol(optarg);
            break;
        case 'f':
            fault = optarg;
            break;
        case 'r':
            faulty = atol(optarg);
            break;
        case 'H':
            hosts = atol(optarg);
            break;
        case 'o':
            offset_s = atof(optarg);
            break;
        case 't':
            truth_dir = optarg;
            break;
        default:
            return 2;
        }
    }
    const char *given = getenv("RANK");
    if (rank_count < 1 || hosts < 1)
        return 2;
    if (!given)
        return launch_ranks("ranks", argv, rank_count, prepare);
    rank = atol(given);
    return be_rank();
}
