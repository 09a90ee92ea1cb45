/* Several ranks in one process: collectives one by one and in groups, beside compute. Needs
 * SIM_DEVICES of at least RANKS.
 *
 *     nccl [RANKS [STEPS]]
 */
#include "client.h"

#define NC(ret, name, params, args, kind, before, after) ret name params;
#include "capture/calls.def"
ncclResult_t ncclCommCount(ncclComm_t comm, int *n);

static const char image_text[] = "SIMIMAGE\nkernel _Z8backwardPfi us=40 cv=0.1 params=8,4\n";
static struct fatbin_wrapper image = FATBIN(image_text);
static struct kernel kernels[] = {{.name = "_Z8backwardPfi"}};

#define ALL_REDUCE "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"
#define ALL_GATHER "_Z31ncclDevKernel_AllGather_RING_LL24ncclDevKernelArgsStorageILm4096EE"

int main(int argc, char **argv)
{
    int ranks = (int)argument(argc, argv, 1, 2), devices = 0, n = 1;
    long steps = argument(argc, argv, 2, 20);
    ncclComm_t comms[8];
    cudaStream_t compute[8], comm[8];
    cudaEvent_t ready[8];
    float *buffer[8];

    if (ranks < 2 || ranks > 8)
        return 2;
    register_kernels(&image, kernels, 1);
    CHECK(cudaGetDeviceCount(&devices));
    if (devices < ranks) {
        fprintf(stderr, "nccl: %d devices: set SIM_DEVICES\n", devices);
        return 2;
    }
    CHECK(cudaSetDevice(0));
    CHECK(ncclCommInitAll(comms, ranks, NULL));
    for (int r = 0; r < ranks; r++) {
        CHECK(cudaSetDevice(r));
        CHECK(cudaMalloc((void **)&buffer[r], 1 << 22));
        CHECK(cudaStreamCreateWithFlags(&compute[r], CU_STREAM_NON_BLOCKING));
        CHECK(cudaStreamCreateWithFlags(&comm[r], CU_STREAM_NON_BLOCKING));
        CHECK(cudaEventCreateWithFlags(&ready[r], CU_EVENT_DISABLE_TIMING));
    }
    for (long i = 0; i < steps; i++) {
        for (int bucket = 0; bucket < 3; bucket++) {
            size_t count = (size_t)64 << (10 + bucket);
            for (int r = 0; r < ranks; r++) {
                void *args[] = {&buffer[r], &n};
                dim3 grid = {64, 1, 1}, block = {256, 1, 1};
                CHECK(cudaSetDevice(r));
                burn_us(15);
                CHECK(launch(kernels, grid, block, args, 0, compute[r]));
                CHECK(cudaEventRecord(ready[r], compute[r]));
                CHECK(cudaStreamWaitEvent(comm[r], ready[r], 0));
                CHECK(ncclAllReduce(buffer[r], buffer[r], count, ncclFloat32, ncclSum, comms[r],
                                    comm[r]));
                note(1, "kernel:_Z8backwardPfi");
                note(1, "kernel:" ALL_REDUCE);
                note(1, "nccl:AllReduce.calls");
                note(count * 4, "nccl:AllReduce.bytes");
            }
        }
        /* a group: one kernel per communicator */
        CHECK(ncclGroupStart());
        for (int k = 0; k < 2; k++)
            for (int r = 0; r < ranks; r++) {
                CHECK(ncclAllGather(buffer[r], buffer[r], 1024, ncclBfloat16, comms[r], comm[r]));
                note(1, "nccl:AllGather.calls");
                note(2048, "nccl:AllGather.bytes");
            }
        CHECK(ncclGroupEnd());
        note((uint64_t)ranks, "kernel:" ALL_GATHER);
        for (int r = 0; r < ranks; r++) {
            CHECK(cudaSetDevice(r));
            CHECK(cudaStreamSynchronize(comm[r]));
            note(1, "syncs");
        }
    }
    for (int r = 0; r < ranks; r++) {
        CHECK(cudaSetDevice(r));
        CHECK(ncclCommDestroy(comms[r]));
        CHECK(cudaFree(buffer[r]));
    }
    return finish("nccl");
}
