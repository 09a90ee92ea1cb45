/* A program that uses the runtime API only: one launch, copy, memset, allocation and wait of
 * every kind, many times. Built against each version of the runtime.
 *
 *     rt13 [ROUNDS]
 */
#include "client.h"

#if SIM_CUDART >= 13000
#define CLIENT     "rt13"
#define LAUNCH_API "__cudaLaunchKernel"
#elif SIM_CUDART >= 12000
#define CLIENT     "rt12"
#define LAUNCH_API "cudaLaunchKernel"
#else
#define CLIENT     "rt11"
#define LAUNCH_API "cudaLaunchKernel"
#endif

static const char image_text[] =
    "SIMIMAGE\n"
    "kernel _Z3addPfPKfi us=2.1 params=8,8,4\n"
    "kernel _Z4gemmPfPKfS1_iii us=31 cv=0.02 modes=1,1,1,1,2.3 params=8,8,8,4,4,4\n"
    "kernel _Z6reducePfi us=4.4 params=8,4\n"
    "global _ZL5table 4096\n";
static struct fatbin_wrapper image = FATBIN(image_text);
static struct kernel kernels[] = {
    {.name = "_Z3addPfPKfi"}, {.name = "_Z4gemmPfPKfS1_iii"}, {.name = "_Z6reducePfi"}};
static char table;

#define ADD    (&kernels[0])
#define GEMM   (&kernels[1])
#define REDUCE (&kernels[2])
#define N      ((size_t)1 << 16)

static float *device, *other, *pinned, *pageable, *registered;
static cudaStream_t stream, side;

static void launches(void)
{
    int n = (int)N;
    void *add_args[] = {&device, &other, &n};
    void *gemm_args[] = {&device, &other, &other, &n, &n, &n};
    void *reduce_args[] = {&device, &n};
    dim3 grid = {64, 1, 1}, block = {256, 1, 1}, wide = {16, 16, 1};
    for (int i = 0; i < 5; i++)
        CHECK(launch(ADD, grid, block, add_args, 0, stream));
    CHECK(launch(ADD, grid, block, add_args, 1024, NULL));
    CHECK(launch(GEMM, wide, block, gemm_args, 32768, stream));
    note(7, "api:" LAUNCH_API);
    LAUNCHED_HOW_MANY(ADD, 6);
    LAUNCHED_HOW_MANY(GEMM, 1);

    cudaLaunchAttribute attr = {.id = cudaLaunchAttributeProgrammaticStreamSerialization,
                                .val.programmaticStreamSerializationAllowed = 1};
    cudaLaunchConfig_t config = {.gridDim = grid, .blockDim = block, .stream = stream};
    CHECK(cudaLaunchKernelExC(&config, &GEMM->stub, gemm_args));
    config.attrs = &attr;
    config.numAttrs = 1;
    CHECK(cudaLaunchKernelExC(&config, &GEMM->stub, gemm_args));
    note(2, "api:cudaLaunchKernelExC");
    LAUNCHED_HOW_MANY(GEMM, 2);

    CHECK(cudaLaunchCooperativeKernel(&REDUCE->stub, grid, block, reduce_args, 0, stream));
    note(1, "api:cudaLaunchCooperativeKernel");
    LAUNCHED_HOW_MANY(REDUCE, 1);

    /* a launch that fails: called, counted as failed, not executed */
    dim3 nothing = {0, 1, 1};
    CHECK_FAILS(launch(ADD, nothing, block, add_args, 0, stream), cudaErrorInvalidValue);
    CHECK_FAILS(cudaGetLastError(), cudaErrorInvalidValue);
    note(1, "api:" LAUNCH_API);
    note(1, "failed");
    note(11, "launches");
}

static void copies(void)
{
    size_t n = N * sizeof(float);
    CHECK(cudaMemcpy(device, pageable, n, cudaMemcpyHostToDevice));
    note_copy("H2D", true, n);
    CHECK(cudaMemcpy(pageable, device, n, cudaMemcpyDeviceToHost));
    note_copy("D2H", true, n);
    CHECK(cudaMemcpy(other, device, n, cudaMemcpyDeviceToDevice));
    note_copy("D2D", false, n);
    CHECK(cudaMemcpy(device, pinned, n, cudaMemcpyDefault));
    note_copy("H2D", false, n);
    CHECK(cudaMemcpyAsync(device, pinned, n, cudaMemcpyHostToDevice, stream));
    note_copy("H2D", false, n);
    CHECK(cudaMemcpyAsync(pinned, device, n, cudaMemcpyDeviceToHost, stream));
    note_copy("D2H", false, n);
    CHECK(cudaMemcpyAsync(registered, device, n, cudaMemcpyDefault, stream));
    note_copy("D2H", false, n);
    CHECK(cudaMemcpyAsync(other, device, n, cudaMemcpyDeviceToDevice, stream));
    note_copy("D2D", false, n);
    CHECK(cudaMemcpyAsync(device, pageable, 4096, cudaMemcpyHostToDevice, stream));
    note_copy("H2D", true, 4096);
    note(4, "api:cudaMemcpy");
    note(5, "api:cudaMemcpyAsync");

    CHECK(cudaMemcpy2D(device, 512, pageable, 256, 256, 16, cudaMemcpyHostToDevice));
    note_copy("H2D", true, 256 * 16);
    CHECK(cudaMemcpy2DAsync(pinned, 256, device, 512, 256, 16, cudaMemcpyDeviceToHost, stream));
    note_copy("D2H", false, 256 * 16);
    struct cudaMemcpy3DParms box = {.srcPtr = {pinned, 64, 64, 8},
                                    .dstPtr = {device, 64, 64, 8},
                                    .extent = {64, 8, 4},
                                    .kind = cudaMemcpyHostToDevice};
    CHECK(cudaMemcpy3D(&box));
    note_copy("H2D", false, 64 * 8 * 4);
    CHECK(cudaMemcpy3DAsync(&box, stream));
    note_copy("H2D", false, 64 * 8 * 4);

    float values[256];
    for (int i = 0; i < 256; i++)
        values[i] = (float)i;
    CHECK(cudaMemcpyToSymbol(&table, values, sizeof values, 0, cudaMemcpyHostToDevice));
    note_copy("H2D", true, sizeof values);
    memset(values, 0, sizeof values);
    CHECK(cudaMemcpyFromSymbol(values, &table, sizeof values, 0, cudaMemcpyDeviceToHost));
    note_copy("D2H", true, sizeof values);
    if (values[255] != 255.0f) {
        fprintf(stderr, CLIENT ": the symbol holds %g, not 255\n", (double)values[255]);
        exit(1);
    }

#if SIM_CUDART >= 12080
    void *dsts[3] = {device, other, pinned}, *srcs[3] = {pinned, device, other};
    size_t sizes[3] = {4096, 8192, 1024}, first = 0;
    struct {
        int order;
        struct cudaMemLocation src, dst;
        unsigned flags;
    } attr = {1, {cudaMemLocationTypeDevice, 0}, {cudaMemLocationTypeDevice, 0}, 0};
#if SIM_CUDART >= 13000
    cudaError_t batch =
        cudaMemcpyBatchAsync(dsts, srcs, sizes, 3, (void *)&attr, &first, 1, stream, NULL);
#else
    size_t fail_index;
    cudaError_t batch =
        cudaMemcpyBatchAsync(dsts, srcs, sizes, 3, (void *)&attr, &first, 1, &fail_index, stream);
#endif
    if (batch != cudaErrorNotSupported) { /* a driver of before 12.8 */
        CHECK(batch);
        note_copy("H2D", false, 4096);
        note_copy("D2D", false, 8192);
        note_copy("D2H", false, 1024);
    }
    cudaGetLastError();
    note(1, "api:cudaMemcpyBatchAsync");
#endif
    CHECK(cudaStreamSynchronize(stream));
    note(1, "api:cudaStreamSynchronize");
    note(1, "syncs");
}

static void memsets(void)
{
    CHECK(cudaMemset(device, 0, N));
    note_memset(N);
    CHECK(cudaMemsetAsync(device, 1, N, stream));
    note_memset(N);
    CHECK(cudaMemset2DAsync(device, 512, 2, 300, 10, stream));
    note_memset(3000);
}

static void allocations(void)
{
    void *a, *b, *c, *d;
    size_t pitch;
    CHECK(cudaMalloc(&a, 1 << 20));
    CHECK(cudaMallocPitch(&b, &pitch, 1000, 10));
    CHECK(cudaMallocAsync(&c, 1 << 16, stream));
    CHECK(cudaMallocHost(&d, 1 << 16));
    CHECK(cudaFreeAsync(c, stream));
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    CHECK(cudaFreeHost(d));
    note(4, "allocations");
    note(4, "frees");
    size_t available, total;
    CHECK(cudaMemGetInfo(&available, &total));
    CHECK_FAILS(cudaMalloc(&a, total * 2), cudaErrorMemoryAllocation);
    CHECK_FAILS(cudaGetLastError(), cudaErrorMemoryAllocation);
    note(1, "allocations");
}

static int called;

static void callback(void *user)
{
    ++*(int *)user;
}

static void waits(cudaEvent_t begin, cudaEvent_t end)
{
    int n = (int)N;
    void *args[] = {&device, &other, &n};
    dim3 grid = {64, 1, 1}, block = {256, 1, 1};
    CHECK(cudaEventRecord(begin, stream));
    CHECK(launch(ADD, grid, block, args, 0, stream));
    CHECK(cudaEventRecord(end, stream));
    CHECK(cudaStreamWaitEvent(side, end, 0));
    CHECK(launch(ADD, grid, block, args, 0, side));
    CHECK(cudaLaunchHostFunc(side, callback, &called));
    note(2, "api:" LAUNCH_API);
    note(2, "launches");
    LAUNCHED_HOW_MANY(ADD, 2);
    cudaError_t state = cudaEventQuery(end);
    if (state != cudaSuccess && state != cudaErrorNotReady)
        CHECK(state);
    CHECK(cudaEventSynchronize(end));
    float ms = -1;
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    if (ms <= 0.001f || ms > 100.0f) {
        fprintf(stderr, CLIENT ": %g ms between two events around a kernel\n", (double)ms);
        exit(1);
    }
    CHECK(cudaDeviceSynchronize());
    note(2, "syncs");
}

int main(int argc, char **argv)
{
    long rounds = argument(argc, argv, 1, 20);
    int devices = 0, version = 0;
    cudaEvent_t begin, end;

    void **handle = register_kernels(&image, kernels, 3);
    __cudaRegisterVar(handle, &table, "_ZL5table", "_ZL5table", 0, 4096, 0, 0);
    CHECK(cudaGetDeviceCount(&devices));
    CHECK(cudaRuntimeGetVersion(&version));
    CHECK(cudaSetDevice(0));
    CHECK(cudaMalloc((void **)&device, N * sizeof(float)));
    CHECK(cudaMalloc((void **)&other, N * sizeof(float)));
    CHECK(cudaHostAlloc((void **)&pinned, N * sizeof(float), 0));
    pageable = malloc(N * sizeof(float));
    registered = aligned_alloc(4096, N * sizeof(float));
    CHECK(cudaHostRegister(registered, N * sizeof(float), 0));
    note(4, "allocations");
    CHECK(cudaStreamCreateWithFlags(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cudaStreamCreateWithPriority(&side, 0, -1));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreateWithFlags(&end, 0));
    for (long i = 0; i < rounds; i++) {
        launches();
        copies();
        memsets();
        allocations();
        waits(begin, end);
        burn_us(20);
    }
    if (called != rounds) {
        fprintf(stderr, CLIENT ": %d host functions ran, not %ld\n", called, rounds);
        return 1;
    }
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaStreamDestroy(side));
    CHECK(cudaHostUnregister(registered));
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFree(other));
    CHECK(cudaFree(device));
    note(4, "frees");
    free(pageable);
    free(registered);
    printf("runtime %d\n", version);
    return finish(CLIENT);
}
