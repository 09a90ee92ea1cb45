"""A job that keeps the simulated GPU waiting in known ways, each in a function of its own.

    python_job.py SECONDS [WAY...]

Each line that a stack should name ends in a comment that says so: `# line: WAY`.
"""
import ctypes
import queue
import sys
import threading
import time

cuda = ctypes.CDLL("libcuda.so.1")
runtime = ctypes.CDLL("libcudart.so.13")
held = ctypes.PyDLL(None)
IMAGE = b"SIMIMAGE\nkernel short us=400\nkernel long us=25000\n"


def check(status):
    if status:
        raise SystemExit("CUDA status %d" % status)


class Device:
    def __init__(self):
        context, module, self.side = (ctypes.c_void_p() for _ in range(3))
        check(cuda.cuInit(0))
        check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
        check(cuda.cuCtxSetCurrent(context))
        check(cuda.cuModuleLoadData(ctypes.byref(module), IMAGE))
        check(cuda.cuStreamCreate(ctypes.byref(self.side), 1))
        self.function = {}
        for name in (b"short", b"long"):
            f = self.function[name] = ctypes.c_void_p()
            check(cuda.cuModuleGetFunction(ctypes.byref(f), module, name))

    def launch(self, name, stream=None):
        check(cuda.cuLaunchKernel(self.function[name], 1, 1, 1, 1, 1, 1, 0, stream, None, None))


def burn(device):
    end, n = time.perf_counter() + 0.025, 0
    while time.perf_counter() < end:  # line: burn
        n += 1  # line: burn


def rest(device):
    time.sleep(0.025)  # line: rest


def hold(device):
    """As a tokenizer in C does that keeps the interpreter to itself, right before the next call."""
    held.usleep(25000)  # line: hold


items = queue.Queue()
wanted = threading.Event()


def produce():
    while True:
        wanted.wait()
        wanted.clear()
        time.sleep(0.025)
        items.put(1)


def wait(device):
    wanted.set()
    next_item()


def next_item():
    items.get()  # line: wait


def block(device):
    device.launch(b"long")
    check(cuda.cuStreamSynchronize(None))  # line: block


def read(device):
    for _ in range(25):
        device.launch(b"short")
        check(cuda.cuStreamSynchronize(None))  # line: read


def other(device):
    """The calls come from a thread without frames: what counts is where main waits for it."""
    libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
    device.launch(b"long", device.side)
    libc.pthread_create(ctypes.byref(thread), None, runtime.cudaStreamSynchronize, device.side)
    libc.pthread_join(thread, None)  # line: other


WAYS = {f.__name__: f for f in (burn, rest, hold, wait, block, read, other)}


def main():
    seconds, ways = float(sys.argv[1]), sys.argv[2:] or list(WAYS)
    device = Device()
    threading.Thread(target=produce, daemon=True).start()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for way in ways:
            device.launch(b"short")
            WAYS[way](device)


if __name__ == "__main__":
    main()
