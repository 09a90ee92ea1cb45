"""A program's way to the simulated driver, for those written in Python: a context is current once
this is imported."""
import ctypes

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


context = ctypes.c_void_p()
check(cuda.cuInit(0))
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(cuda.cuCtxSetCurrent(context))
