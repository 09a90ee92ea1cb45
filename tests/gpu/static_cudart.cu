/* nvcc -cudart static: nothing of this program is visible to hooks of the shared runtime.
 * Streams, pinned copies, memsets, a captured graph that is replayed, updated and replayed. */
#include "range.h"

namespace
{

template <typename T, unsigned N> __global__ void scale(T *data, T factor)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < N)
        data[i] *= factor;
}

__global__ void add(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        out[i] += in[i];
}

} // namespace

enum { N = 1 << 14 };

static void capture(cudaStream_t stream, float *a, float *b, unsigned blocks, cudaGraph_t *graph)
{
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemsetAsync(b, 0, N * sizeof *b, stream));
    add<<<blocks, 256, 0, stream>>>(b, a, N);
    add<<<blocks, 256, 0, stream>>>(b, a, N);
    CHECK(cudaMemcpyAsync(a, b, N * sizeof *a, cudaMemcpyDeviceToDevice, stream));
    CHECK(cudaStreamEndCapture(stream, graph));
}

static void work(float *host, float *a, float *b, cudaStream_t one, cudaStream_t two)
{
    cudaGraph_t first, second;
    cudaGraphExec_t exec;
    cudaGraphExecUpdateResultInfo info;
    cudaEvent_t ready;

    CHECK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    CHECK(cudaMemcpyAsync(a, host, N * sizeof *a, cudaMemcpyHostToDevice, one));
    CHECK(cudaMemsetAsync(b, 0, N * sizeof *b, two));
    scale<float, N><<<N / 256, 256, 0, one>>>(a, 0.5f);
    scale<float, N / 2><<<N / 512, 256, 0, one>>>(a, 3.0f);
    CHECK(cudaEventRecord(ready, one));
    CHECK(cudaStreamWaitEvent(two, ready, 0));
    for (int i = 0; i < 7; i++)
        add<<<N / 128, 128, 0, two>>>(b, a, N);
    scale<int, 256><<<1, 256, 0, two>>>((int *)b, 1);
    CHECK(cudaStreamSynchronize(two));

    capture(one, a, b, N / 256, &first);
    CHECK(cudaGraphInstantiate(&exec, first, 0));
    for (int i = 0; i < 3; i++)
        CHECK(cudaGraphLaunch(exec, one));
    capture(one, a, b, N / 512, &second);
    CHECK(cudaGraphExecUpdate(exec, second, &info));
    CHECK(cudaGraphLaunch(exec, one));
    CHECK(cudaMemcpyAsync(host, a, N / 2 * sizeof *a, cudaMemcpyDeviceToHost, one));
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(first));
    CHECK(cudaGraphDestroy(second));
    CHECK(cudaEventDestroy(ready));
}

int main(void)
{
    float *host, *a, *b;
    cudaStream_t one, two;

    CHECK(cudaMallocHost(&host, N * sizeof *host));
    CHECK(cudaMalloc(&a, N * sizeof *a));
    CHECK(cudaMalloc(&b, N * sizeof *b));
    CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    for (int i = 0; i < N; i++)
        host[i] = (float)(i % 97);
    work(host, a, b, one, two);
    range_begin("static_cudart");
    work(host, a, b, one, two);
    work(host, a, b, one, two);
    range_end();
    CHECK(cudaGetLastError());
    printf("a %016llx\nb %016llx\n", (unsigned long long)device_hash(a, N * sizeof *a),
           (unsigned long long)device_hash(b, N * sizeof *b));
    return 0;
}
