/* The simulated NCCL: nccl* are weak names of pnccl*, as in the real one, and its kernels go
 * through a runtime of its own, statically linked. Ranks are devices of one process, from one
 * thread (ncclCommInitAll) or from several (ncclCommInitRank), or processes (ncclCommInitRank with
 * the id of one of them). A collective's kernels run on every rank until the last of them has
 * arrived. */
#include "abi.h"
#include "sim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* One communicator: all its ranks, if they are of this process. */
struct clique {
    struct clique *next;
    char id[128];
    int ranks, left;
    uint64_t *sequence; /* of the collectives, by rank */
    uint64_t number;
};

struct ncclComm {
    struct clique *clique;
    struct sim_peers *peers; /* in other processes, one rank each */
    int ranks, rank, device;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct clique *cliques;
static uint64_t numbers;

/* a group: what the calls in it asked for, launched at its end */
struct request {
    ncclComm_t comm;
    cudaStream_t stream;
    enum kernel kernel;
    const char *op;
    int peer; /* of a message; -1: all ranks */
    uint64_t bytes;
    bool done;
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

/* How much goes over each rank's links for each byte that the caller names. */
static double traffic(const struct request *r)
{
    double ranks = r->comm->ranks;
    switch (r->kernel) {
    case ALL_REDUCE:
        return 2 * (ranks - 1) / ranks;
    case ALL_GATHER:
    case REDUCE_SCATTER:
        return ranks - 1;
    default:
        return 1;
    }
}

#define BASE_NS      8000.0
#define BYTES_PER_NS 150.0

/* From the arrival of the last rank: collectives one after the other, messages both ways at once.
 */
static uint64_t transfer_ns(const struct request *all, unsigned n)
{
    double together = 0, out = 0, in = 0;
    for (unsigned i = 0; i < n; i++) {
        double bytes = traffic(&all[i]) * (double)all[i].bytes;
        if (all[i].kernel != SEND_RECV)
            together += bytes;
        else if (!strcmp(all[i].op, "Send"))
            out += bytes;
        else
            in += bytes;
    }
    return (uint64_t)(BASE_NS + (together + (out > in ? out : in)) / BYTES_PER_NS);
}

/* What is asked of one communicator on one stream goes into one kernel. */
static ncclResult_t run(const struct request *all, unsigned n)
{
    const struct sim_hooks *hooks = sim_nccl_hooks();
    const struct request *r = &all[0];
    ncclComm_t comm = r->comm;
    int old = 0;
    void *argument = NULL, *args[] = {&argument};
    if (comm->ranks == 1)
        return ncclSuccess; /* in place on one rank: nothing to do */
    uint64_t ns = transfer_ns(all, n);
    cudaGetDevice(&old);
    if (old != comm->device)
        cudaSetDevice(comm->device);
    for (unsigned i = 0; comm->peers && i < n; i++)
        hooks->meet(comm->peers, all[i].op, all[i].peer, !strcmp(all[i].op, "Send"), all[i].bytes,
                    ns);
    if (hooks && !comm->peers)
        hooks->collective(comm->clique->number, comm->clique->sequence[comm->rank]++,
                          (unsigned)comm->ranks, ns);
    cudaLaunchConfig_t config = {.gridDim = {16, 1, 1},
                                 .blockDim = {544, 1, 1},
                                 .dynamicSmemBytes = 82 << 10,
                                 .stream = r->stream};
    cudaError_t status = cudaLaunchKernelExC(&config, &stubs[r->kernel], args);
    if (old != comm->device)
        cudaSetDevice(old);
    return status ? ncclUnhandledCudaError : ncclSuccess;
}

static ncclResult_t end_group(void)
{
    struct request all[MAX_GROUP];
    ncclResult_t result = ncclSuccess;
    for (unsigned i = 0; i < group_size; i++) {
        unsigned n = 0;
        for (unsigned j = i; j < group_size; j++)
            if (!group[j].done && group[j].comm == group[i].comm &&
                group[j].stream == group[i].stream) {
                group[j].done = j != i;
                all[n++] = group[j];
            }
        ncclResult_t one = n ? run(all, n) : ncclSuccess;
        if (one)
            result = one;
    }
    group_size = 0;
    return result;
}

static ncclResult_t ask(const char *op, enum kernel kernel, int peer, size_t n, ncclDataType_t type,
                        ncclComm_t comm, cudaStream_t stream)
{
    if (!comm || peer >= comm->ranks)
        return ncclInvalidArgument;
    if (comm->peers && sim_nccl_hooks()->broken(comm->peers))
        return ncclRemoteError;
    if (sim_nccl_hooks())
        sim_nccl_hooks()->nccl(op, n * type_size(type));
    if (group_size == MAX_GROUP)
        return ncclInternalError;
    group[group_size++] = (struct request){.comm = comm,
                                           .stream = stream,
                                           .kernel = kernel,
                                           .op = op,
                                           .peer = peer,
                                           .bytes = n * type_size(type)};
    return group_depth ? ncclSuccess : end_group();
}

ncclResult_t body_ncclAllReduce(const void *send, void *recv, size_t n, ncclDataType_t type,
                                ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return ask("AllReduce", ALL_REDUCE, -1, n, type, comm, stream);
}

ncclResult_t body_ncclReduce(const void *send, void *recv, size_t n, ncclDataType_t type,
                             ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    return ask("Reduce", REDUCE, -1, n, type, comm, stream);
}

ncclResult_t body_ncclReduceScatter(const void *send, void *recv, size_t n, ncclDataType_t type,
                                    ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return ask("ReduceScatter", REDUCE_SCATTER, -1, n, type, comm, stream);
}

ncclResult_t body_ncclBroadcast(const void *send, void *recv, size_t n, ncclDataType_t type,
                                int root, ncclComm_t comm, cudaStream_t stream)
{
    return ask("Broadcast", BROADCAST, -1, n, type, comm, stream);
}

ncclResult_t body_ncclBcast(void *buf, size_t n, ncclDataType_t type, int root, ncclComm_t comm,
                            cudaStream_t stream)
{
    return ask("Bcast", BROADCAST, -1, n, type, comm, stream);
}

ncclResult_t body_ncclAllGather(const void *send, void *recv, size_t n, ncclDataType_t type,
                                ncclComm_t comm, cudaStream_t stream)
{
    return ask("AllGather", ALL_GATHER, -1, n, type, comm, stream);
}

ncclResult_t body_ncclSend(const void *buf, size_t n, ncclDataType_t type, int peer,
                           ncclComm_t comm, cudaStream_t stream)
{
    return ask("Send", SEND_RECV, peer, n, type, comm, stream);
}

ncclResult_t body_ncclRecv(void *buf, size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                           cudaStream_t stream)
{
    return ask("Recv", SEND_RECV, peer, n, type, comm, stream);
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
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    pthread_mutex_lock(&lock);
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "%d-%llx-%llu", (int)getpid(),
             (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec,
             (unsigned long long)++numbers);
    pthread_mutex_unlock(&lock);
    return ncclSuccess;
}

static ncclComm_t member(struct clique *c, struct sim_peers *peers, int ranks, int rank, int device)
{
    ncclComm_t comm = calloc(1, sizeof *comm);
    if (!comm)
        abort();
    *comm = (struct ncclComm){c, peers, ranks, rank, device};
    return comm;
}

static struct clique *clique_new(int ranks)
{
    struct clique *c = calloc(1, sizeof *c);
    if (!c || !(c->sequence = calloc((size_t)ranks, sizeof *c->sequence)))
        abort();
    c->ranks = c->left = ranks;
    c->number = ++numbers;
    c->next = cliques;
    return cliques = c;
}

/* Of ranks in this process: the first who comes makes it. */
static struct clique *clique_of(const char *id, int ranks)
{
    pthread_mutex_lock(&lock);
    struct clique *c = cliques;
    while (c && strncmp(c->id, id, sizeof c->id))
        c = c->next;
    if (!c) {
        c = clique_new(ranks);
        memcpy(c->id, id, strnlen(id, sizeof c->id));
    }
    pthread_mutex_unlock(&lock);
    return c;
}

static ncclResult_t join(ncclComm_t *comm, int ranks, const char *id, int rank, int device)
{
    struct sim_peers *peers = NULL;
    const struct sim_hooks *hooks = sim_nccl_hooks();
    if (ranks > 1 && (!hooks || hooks->join(id, (unsigned)ranks, (unsigned)rank, &peers)))
        return ncclSystemError;
    *comm = member(peers ? NULL : clique_of(id, ranks), peers, ranks, rank, device);
    return ncclSuccess;
}

ncclResult_t body_ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
    int device = 0;
    if (!comm || ranks < 1 || rank < 0 || rank >= ranks)
        return ncclInvalidArgument;
    cudaGetDevice(&device);
    return join(comm, ranks, id.internal, rank, device);
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
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < n; i++)
        comms[i] = member(c, NULL, n, i, devs ? devs[i] : i);
    return ncclSuccess;
}

/* Every rank asks with a colour of its own choosing; in one process all ranks keep one clique. */
ncclResult_t body_ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made,
                                ncclConfig_t *config)
{
    if (comm->peers) {
        char id[128];
        unsigned ranks, rank;
        if (sim_nccl_hooks()->split(comm->peers, color, key, id, &ranks, &rank))
            return ncclSystemError;
        if (color >= 0)
            return join(made, (int)ranks, id, (int)rank, comm->device);
    }
    if (color < 0) {
        *made = NULL;
        return ncclSuccess;
    }
    pthread_mutex_lock(&lock);
    comm->clique->left++;
    pthread_mutex_unlock(&lock);
    *made = member(comm->clique, NULL, comm->ranks, comm->rank, comm->device);
    return ncclSuccess;
}

static void clique_leave(struct clique *c)
{
    pthread_mutex_lock(&lock);
    if (--c->left == 0) {
        struct clique **p = &cliques;
        while (*p != c)
            p = &(*p)->next;
        *p = c->next;
        free(c->sequence);
        free(c);
    }
    pthread_mutex_unlock(&lock);
}

ncclResult_t body_ncclCommDestroy(ncclComm_t comm)
{
    if (!comm)
        return ncclSuccess;
    if (comm->peers)
        sim_nccl_hooks()->depart(comm->peers);
    else
        clique_leave(comm->clique);
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
GETTER(ncclCommCount, (ncclComm_t comm, int *n), *n = comm->ranks)
GETTER(ncclCommUserRank, (ncclComm_t comm, int *rank), *rank = comm->rank)
GETTER(ncclCommCuDevice, (ncclComm_t comm, int *dev), *dev = comm->device)
GETTER(ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t *error),
       *error = comm->peers && sim_nccl_hooks()->broken(comm->peers) ? ncclRemoteError
                                                                     : ncclSuccess)

EXPORT const char *ncclGetErrorString(ncclResult_t result);
EXPORT const char *ncclGetErrorString(ncclResult_t result)
{
    return result ? "unhandled error" : "no error";
}
