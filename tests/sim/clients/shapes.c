/* One kernel in many launch shapes, in turn, as the layers of a network make them.
 *
 *     shapes [SHAPES [MILLISECONDS]]
 */
#include "client.h"

static const char image_text[] = "SIMIMAGE\nkernel _Z4workPf us=3 cv=0.05 params=8\n";
static struct fatbin_wrapper image = FATBIN(image_text);
static struct kernel kernels[] = {{.name = "_Z4workPf"}};

int main(int argc, char **argv)
{
    long shapes = argument(argc, argv, 1, 150), ms = argument(argc, argv, 2, 1500);
    uint64_t launches = 0, syncs = 0;
    float *device;
    void *args[] = {&device};
    cudaStream_t stream;
    register_kernels(&image, kernels, 1);
    CHECK(cudaMalloc((void **)&device, 4096));
    CHECK(cudaStreamCreateWithFlags(&stream, CU_STREAM_NON_BLOCKING));
    for (uint64_t end = now_ns() + (uint64_t)ms * 1000000; now_ns() < end;) {
        for (long i = 0; i < shapes; i++) {
            dim3 grid = {(unsigned)(1 + i % 40), (unsigned)(1 + i / 40), 1}, block = {128, 1, 1};
            CHECK(launch(&kernels[0], grid, block, args, 0, stream));
            launches++;
        }
        CHECK(cudaStreamSynchronize(stream));
        syncs++;
    }
    note(launches, "kernel:_Z4workPf");
    note(launches, "launches");
    note(syncs, "syncs");
    return finish("shapes");
}
