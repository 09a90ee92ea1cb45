/* The simulated NCCL: nccl* are weak names of pnccl*, as in the real one, and its kernels go
 * through a runtime of its own, statically linked. Ranks are devices of one process: from one
 * thread (ncclCommInitAll) or from several (ncclCommInitRank). A collective's kernels run on
 * every rank until the last of them has arrived. */
#include "abi.h"
#include "sim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

const struct sim_hooks *sim_nccl_hooks(void);

#define EXPORT    __attribute__((visibility("default")))
#define MAX_RANKS 8
#define MAX_GROUP 64

/* the static runtime, hidden in this library */
cudaError_t cudaGetDevice(int *dev);
cudaError_t cudaSetDevice(int dev);
cudaError_t cudaMalloc(void **ptr, size_t n);
cudaError_t cudaFree(void *ptr);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args);
void **__cudaRegisterFatBinary(void *fatbin);
void __cudaRegisterFunction(void **image, const char *host, char *dev, const char *name,
                            int thread_limit, void *tid, void *bid, dim3 *block, dim3 *grid,
                            int *warp_size);

#define KERNELS(X)                                                                                 \
    X(ALL_REDUCE,                                                                                  \
      "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE")            \
    X(ALL_GATHER, "_Z31ncclDevKernel_AllGather_RING_LL24ncclDevKernelArgsStorageILm4096EE")        \
    X(REDUCE_SCATTER,                                                                              \
      "_Z43ncclDevKernel_ReduceScatter_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE")        \
    X(BROADCAST, "_Z31ncclDevKernel_Broadcast_RING_LL24ncclDevKernelArgsStorageILm4096EE")         \
    X(REDUCE, "_Z36ncclDevKernel_Reduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE")       \
    X(SEND_RECV, "_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE")

enum kernel {
#define X(id, name) id,
    KERNELS(X)
#undef X
        KERNEL_COUNT
};

static const char image_text[] = "SIMIMAGE\n"
#define X(id, name) "kernel " name " us=9 cv=0.04 params=8\n"
    KERNELS(X)
#undef X
    ;
static struct {
    uint32_t magic, version;
    const void *data;
    void *filename;
} wrapper = {0x466243b1, 1, image_text, NULL};
static char stubs[KERNEL_COUNT];

/* One communicator: all its ranks. */
struct clique {
    struct clique *next;
    char id[128];
    int ranks, joined, left;
    uint64_t *sequence; /* of the collectives, by rank */
    uint64_t number;
};

struct ncclComm {
    struct clique *clique;
    int rank, device;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static struct clique *cliques;
static uint64_t numbers;

/* a group: what the calls in it asked for, launched at its end */
struct request {
    ncclComm_t comm;
    cudaStream_t stream;
    enum kernel kernel;
    uint64_t bytes;
};
static __thread struct request group[MAX_GROUP];
static __thread unsigned group_size, group_depth;

const struct sim_hooks *sim_nccl_hooks(void)
{
    static const struct sim_hooks *found;
    if (!found) {
        void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        const struct sim_hooks *(*get)(void) =
            driver ? (const struct sim_hooks *(*)(void))dlsym(driver, "sim_hooks") : NULL;
        found = get ? get() : NULL;
    }
    return found;
}

__attribute__((constructor)) static void registered(void)
{
    static const char *const names[] = {
#define X(id, name) name,
        KERNELS(X)
#undef X
    };
    void **handle = __cudaRegisterFatBinary(&wrapper);
    for (int i = 0; i < KERNEL_COUNT; i++)
        __cudaRegisterFunction(handle, &stubs[i], (char *)names[i], names[i], -1, NULL, NULL, NULL,
                               NULL, NULL);
}

/* the bodies, declared from the table; nccl_entry.c calls them */
#define NC(ret, name, params, args, kind, before, after) ret body_##name params;
#include "capture/calls.def"

/* ---- work ------------------------------------------------------------------------------------ */

static size_t type_size(ncclDataType_t type)
{
    static const uint8_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return (unsigned)type < sizeof sizes ? sizes[type] : 1;
}

static ncclResult_t run(const struct request *r)
{
    struct clique *c = r->comm->clique;
    int old = 0;
    void *argument = NULL, *args[] = {&argument};
    if (c->ranks == 1)
        return ncclSuccess; /* in place on one rank: nothing to do */
    cudaGetDevice(&old);
    if (old != r->comm->device)
        cudaSetDevice(r->comm->device);
    if (sim_nccl_hooks())
        sim_nccl_hooks()->collective(c->number, c->sequence[r->comm->rank]++, (unsigned)c->ranks,
                                     8000 + r->bytes / 120);
    cudaLaunchConfig_t config = {.gridDim = {16, 1, 1},
                                 .blockDim = {544, 1, 1},
                                 .dynamicSmemBytes = 82 << 10,
                                 .stream = r->stream};
    cudaError_t status = cudaLaunchKernelExC(&config, &stubs[r->kernel], args);
    if (old != r->comm->device)
        cudaSetDevice(old);
    return status ? ncclUnhandledCudaError : ncclSuccess;
}

static ncclResult_t end_group(void)
{
    ncclResult_t result = ncclSuccess;
    /* what a group asks of one communicator on one stream goes into one kernel */
    for (unsigned i = 0; i < group_size; i++) {
        if (!group[i].comm)
            continue;
        for (unsigned j = i + 1; j < group_size; j++)
            if (group[j].comm == group[i].comm && group[j].stream == group[i].stream) {
                group[i].bytes += group[j].bytes;
                group[j].comm = NULL;
            }
        ncclResult_t one = run(&group[i]);
        if (one)
            result = one;
    }
    group_size = 0;
    return result;
}

static ncclResult_t ask(const char *op, enum kernel kernel, size_t n, ncclDataType_t type,
                        ncclComm_t comm, cudaStream_t stream)
{
    if (!comm)
        return ncclInvalidArgument;
    if (sim_nccl_hooks())
        sim_nccl_hooks()->nccl(op, n * type_size(type));
    if (group_size == MAX_GROUP)
        return ncclInternalError;
    group[group_size++] = (struct request){comm, stream, kernel, n * type_size(type)};
    return group_depth ? ncclSuccess : end_group();
}

ncclResult_t body_ncclAllReduce(const void *send, void *recv, size_t n, ncclDataType_t type,
                                ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return ask("AllReduce", ALL_REDUCE, n, type, comm, stream);
}

ncclResult_t body_ncclReduce(const void *send, void *recv, size_t n, ncclDataType_t type,
                             ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    return ask("Reduce", REDUCE, n, type, comm, stream);
}

ncclResult_t body_ncclReduceScatter(const void *send, void *recv, size_t n, ncclDataType_t type,
                                    ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return ask("ReduceScatter", REDUCE_SCATTER, n, type, comm, stream);
}

ncclResult_t body_ncclBroadcast(const void *send, void *recv, size_t n, ncclDataType_t type,
                                int root, ncclComm_t comm, cudaStream_t stream)
{
    return ask("Broadcast", BROADCAST, n, type, comm, stream);
}

ncclResult_t body_ncclBcast(void *buf, size_t n, ncclDataType_t type, int root, ncclComm_t comm,
                            cudaStream_t stream)
{
    return ask("Bcast", BROADCAST, n, type, comm, stream);
}

ncclResult_t body_ncclAllGather(const void *send, void *recv, size_t n, ncclDataType_t type,
                                ncclComm_t comm, cudaStream_t stream)
{
    return ask("AllGather", ALL_GATHER, n, type, comm, stream);
}

ncclResult_t body_ncclSend(const void *buf, size_t n, ncclDataType_t type, int peer,
                           ncclComm_t comm, cudaStream_t stream)
{
    return ask("Send", SEND_RECV, n, type, comm, stream);
}

ncclResult_t body_ncclRecv(void *buf, size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                           cudaStream_t stream)
{
    return ask("Recv", SEND_RECV, n, type, comm, stream);
}

ncclResult_t body_ncclGroupStart(void)
{
    group_depth++;
    return ncclSuccess;
}

ncclResult_t body_ncclGroupEnd(void)
{
    if (!group_depth)
        return ncclInvalidUsage;
    return --group_depth ? ncclSuccess : end_group();
}

/* ---- communicators ------------------------------------------------------------------------- */

ncclResult_t body_ncclGetUniqueId(ncclUniqueId *id)
{
    pthread_mutex_lock(&lock);
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "sim-%llu", (unsigned long long)++numbers);
    pthread_mutex_unlock(&lock);
    return ncclSuccess;
}

static ncclComm_t member(struct clique *c, int rank, int device)
{
    ncclComm_t comm = calloc(1, sizeof *comm);
    if (!comm)
        abort();
    comm->clique = c;
    comm->rank = rank;
    comm->device = device;
    return comm;
}

static struct clique *clique_new(int ranks)
{
    struct clique *c = calloc(1, sizeof *c);
    if (!c || !(c->sequence = calloc((size_t)ranks, sizeof *c->sequence)))
        abort();
    c->ranks = c->left = ranks;
    c->number = ++numbers;
    return c;
}

ncclResult_t body_ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
    int device = 0;
    if (!comm || ranks < 1 || ranks > MAX_RANKS || rank < 0 || rank >= ranks)
        return ncclInvalidArgument;
    cudaGetDevice(&device);
    pthread_mutex_lock(&lock);
    struct clique *c = cliques;
    while (c && memcmp(c->id, id.internal, sizeof c->id))
        c = c->next;
    if (!c) {
        c = clique_new(ranks);
        memcpy(c->id, id.internal, sizeof c->id);
        c->next = cliques;
        cliques = c;
    }
    c->joined++;
    pthread_cond_broadcast(&cond);
    while (c->joined < c->ranks)
        pthread_cond_wait(&cond, &lock);
    pthread_mutex_unlock(&lock);
    *comm = member(c, rank, device);
    return ncclSuccess;
}

ncclResult_t body_ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                         ncclConfig_t *config)
{
    return body_ncclCommInitRank(comm, ranks, id, rank);
}

ncclResult_t body_ncclCommInitAll(ncclComm_t *comms, int n, const int *devs)
{
    if (n < 1 || n > MAX_RANKS)
        return ncclInvalidArgument;
    pthread_mutex_lock(&lock);
    struct clique *c = clique_new(n);
    c->next = cliques;
    cliques = c;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < n; i++)
        comms[i] = member(c, i, devs ? devs[i] : i);
    return ncclSuccess;
}

/* Every rank asks with a colour of its own choosing; here all ranks keep one clique. */
ncclResult_t body_ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made,
                                ncclConfig_t *config)
{
    if (color < 0) {
        *made = NULL;
        return ncclSuccess;
    }
    pthread_mutex_lock(&lock);
    comm->clique->left++;
    pthread_mutex_unlock(&lock);
    *made = member(comm->clique, comm->rank, comm->device);
    return ncclSuccess;
}

ncclResult_t body_ncclCommDestroy(ncclComm_t comm)
{
    if (!comm)
        return ncclSuccess;
    pthread_mutex_lock(&lock);
    struct clique *c = comm->clique;
    if (--c->left == 0) {
        struct clique **p = &cliques;
        while (*p != c)
            p = &(*p)->next;
        *p = c->next;
        free(c->sequence);
        free(c);
    }
    pthread_mutex_unlock(&lock);
    free(comm);
    return ncclSuccess;
}

ncclResult_t body_ncclCommAbort(ncclComm_t comm)
{
    return body_ncclCommDestroy(comm);
}

ncclResult_t body_ncclMemAlloc(void **ptr, size_t n)
{
    return cudaMalloc(ptr, n) ? ncclUnhandledCudaError : ncclSuccess;
}

ncclResult_t body_ncclMemFree(void *ptr)
{
    return cudaFree(ptr) ? ncclUnhandledCudaError : ncclSuccess;
}

/* ---- getters --------------------------------------------------------------------------------- */

#define GETTER(name, params, statement)                                                            \
    EXPORT ncclResult_t p##name params;                                                            \
    EXPORT ncclResult_t p##name params                                                             \
    {                                                                                              \
        statement;                                                                                 \
        return ncclSuccess;                                                                        \
    }                                                                                              \
    EXPORT ncclResult_t name params __attribute__((weak, alias("p" #name)));

GETTER(ncclGetVersion, (int *version), *version = 22809)
GETTER(ncclCommCount, (ncclComm_t comm, int *n), *n = comm->clique->ranks)
GETTER(ncclCommUserRank, (ncclComm_t comm, int *rank), *rank = comm->rank)
GETTER(ncclCommCuDevice, (ncclComm_t comm, int *dev), *dev = comm->device)
GETTER(ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t *error), *error = ncclSuccess)

EXPORT const char *ncclGetErrorString(ncclResult_t result);
EXPORT const char *ncclGetErrorString(ncclResult_t result)
{
    return result ? "unhandled error" : "no error";
}
