"""A program's way to the simulated driver, for those written in Python: a context is current once
this is imported."""
import ctypes
import time

cuda = ctypes.CDLL("libcuda.so.1")
cuda.sim_now_ns.restype = ctypes.c_uint64


def check(status):
    assert status == 0, status


def kernel(name, us):
    """post: a function that lasts so long"""
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    check(cuda.cuModuleLoadData(ctypes.byref(module), b"SIMIMAGE\nkernel %s us=%d\n" % (name, us)))
    check(cuda.cuModuleGetFunction(ctypes.byref(function), module, name))
    return function


def launch(function):
    check(cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None))


def let_start(threads):
    """Waits, for ten seconds of real time at most, until so many threads of a recorder's sleep by the
    simulated clock: on a busy machine it can have passed before they come to that."""
    until = time.monotonic() + 10
    while cuda.sim_nappers() < threads and time.monotonic() < until:
        time.sleep(0.001)


context = ctypes.c_void_p()
check(cuda.cuInit(0))
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(cuda.cuCtxSetCurrent(context))
