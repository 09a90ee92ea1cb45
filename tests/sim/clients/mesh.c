/* Ranks in processes of their own that meet in all ways: in two communicators at once, made by
 * splitting one, in groups, and by messages.
 *
 *     mesh [RANKS [STEPS [DIR]]]      RANKS even; DIR gets the truth of each rank, as RANK.json
 */
#include "launcher.h"

ncclResult_t ncclCommCount(ncclComm_t comm, int *n);
ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank);

static const char image_text[] = "SIMIMAGE\nkernel short us=20 cv=0.1\nkernel long us=900 cv=0.1\n";
static struct fatbin_wrapper image = FATBIN(image_text);
enum { SHORT, LONG, KERNELS };
static struct kernel kernels[KERNELS] = {{.name = "short"}, {.name = "long"}};

static long ranks = 4, steps = 20, rank;
static const char *truth_dir;
static float *memory;
static cudaStream_t streams[2];
static ncclComm_t world, row, even;

static void run(int kernel, int stream)
{
    burn_us(10);
    CHECK(launch(&kernels[kernel], (dim3){32, 1, 1}, (dim3){128, 1, 1}, NULL, 0, streams[stream]));
    LAUNCHED_HOW_MANY(&kernels[kernel], 1);
}

/* Each rank of a pair comes early to one of two collectives, late to the other. */
static void crossed(void)
{
    run(LONG, rank % 2);
    run(SHORT, !(rank % 2));
    CHECK(ncclAllReduce(memory, memory, 1 << 18, ncclFloat32, ncclSum, row, streams[0]));
    CHECK(ncclReduceScatter(memory, memory, 1 << 16, ncclFloat32, ncclSum, world, streams[1]));
    note(1, "nccl:AllReduce.calls");
    note(1, "nccl:ReduceScatter.calls");
    for (int i = 0; i < 2; i++)
        CHECK(cudaStreamSynchronize(streams[i]));
}

/* To the next and from the one before, at once. */
static void around(void)
{
    int next = (int)((rank + 1) % ranks), before = (int)((rank + ranks - 1) % ranks);
    run(SHORT, 0);
    CHECK(ncclGroupStart());
    CHECK(ncclSend(memory, 1 << 20, ncclFloat32, next, world, streams[0]));
    CHECK(ncclRecv(memory, 1 << 20, ncclFloat32, before, world, streams[0]));
    CHECK(ncclGroupEnd());
    note(1, "nccl:Send.calls");
    note(1, "nccl:Recv.calls");
}

/* Three messages, sent one by one, received as a group. */
static void several(void)
{
    int other = (int)(rank ^ 1);
    for (int i = 0; rank % 2 == 0 && i < 3; i++)
        CHECK(ncclSend(memory, 1 << 16, ncclFloat32, other, world, streams[1]));
    if (rank % 2) {
        CHECK(ncclGroupStart());
        for (int i = 0; i < 3; i++)
            CHECK(ncclRecv(memory, 1 << 16, ncclFloat32, other, world, streams[1]));
        CHECK(ncclGroupEnd());
    }
    note(3, rank % 2 ? "nccl:Recv.calls" : "nccl:Send.calls");
}

static void grouped(void)
{
    CHECK(ncclGroupStart());
    for (int i = 0; i < 2; i++)
        CHECK(ncclAllGather(memory, memory, 1 << 14, ncclBfloat16, world, streams[0]));
    CHECK(ncclGroupEnd());
    note(2, "nccl:AllGather.calls");
    if (!even)
        return;
    CHECK(ncclBroadcast(memory, memory, 1 << 14, ncclFloat32, 0, even, streams[1]));
    note(1, "nccl:Broadcast.calls");
}

/* Rows of two, in which the later rank comes first; and one of the even ranks alone. */
static void split(void)
{
    int n, r;
    CHECK(ncclCommSplit(world, (int)rank / 2, -(int)rank, &row, NULL));
    CHECK(ncclCommCount(row, &n));
    CHECK(ncclCommUserRank(row, &r));
    CHECK(n != 2 || r != (rank % 2 ? 0 : 1));
    CHECK(ncclCommSplit(world, rank % 2 ? -1 : 0, (int)rank, &even, NULL));
    CHECK((even == NULL) != (rank % 2 == 1));
}

static int be_rank(void)
{
    register_kernels(&image, kernels, KERNELS);
    CHECK(cudaMalloc((void **)&memory, 8 << 20));
    for (int i = 0; i < 2; i++)
        CHECK(cudaStreamCreateWithFlags(&streams[i], CU_STREAM_NON_BLOCKING));
    CHECK(ncclCommInitRank(&world, (int)ranks, unique_id(rank), (int)rank));
    split();
    for (long i = 0; i < steps; i++) {
        crossed();
        around();
        several();
        grouped();
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(even && ncclCommDestroy(even));
    CHECK(ncclCommDestroy(row));
    CHECK(ncclCommDestroy(world));
    return finish("rank");
}

static void prepare(long r)
{
    set_variable("SIM_SEED", "%ld", r + 1);
    if (truth_dir)
        set_variable("SIM_TRUTH", "%s/%ld.json", truth_dir, r);
}

int main(int argc, char **argv)
{
    const char *given = getenv("RANK");
    ranks = argument(argc, argv, 1, ranks);
    steps = argument(argc, argv, 2, steps);
    truth_dir = argc > 3 ? argv[3] : NULL;
    if (ranks < 2 || ranks % 2)
        return 2;
    if (!given)
        return launch_ranks("mesh", argv, ranks, prepare);
    rank = atol(given);
    return be_rank();
}
