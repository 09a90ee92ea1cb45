// Exceptions that pass through calls into CUDA: thrown by functions that the runtime calls.
#include <cstdio>

struct dim3 {
    unsigned x, y, z;
};
extern "C" int cudaLaunchHostFunc(void *stream, void (*f)(void *), void *p);
extern "C" int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);

static void launch()
{
    cudaLaunchKernel(reinterpret_cast<const void *>(0x1000), {1, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr);
}

static void throws(void *p)
{
    launch(); // inside the call that does not return
    throw *static_cast<int *>(p);
}

static void quiet(void *)
{
}

// Frames of another function lie where the abandoned call was.
static void deeper(int n)
{
    volatile char room[256];
    room[0] = static_cast<char>(n);
    if (n)
        deeper(n - 1);
    else
        launch();
}

int main()
{
    int caught = 0;
    for (int i = 0; i < 1000; i++) {
        try {
            cudaLaunchHostFunc(nullptr, throws, &i);
        } catch (int thrown) {
            caught += thrown == i;
        }
        deeper(i % 8);
        cudaLaunchHostFunc(nullptr, quiet, nullptr);
    }
    std::printf("caught %d\n", caught);
}
