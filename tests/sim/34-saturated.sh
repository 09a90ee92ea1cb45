#!/bin/sh
# On a device that does not come to our measurements for long, the timer thread leaves the driver
# alone: the program's kernels go first on the one hardware queue, 0.3 s of them at any time.
# shellcheck source=tests/sim/lib.sh
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }

cat >"$work/saturated.py" <<'PY'
import ctypes, glob, time

cuda = ctypes.CDLL("libcuda.so.1")
context, module, function = (ctypes.c_void_p() for _ in range(3))
events = [ctypes.c_void_p() for _ in range(8)]


def check(status):
    assert status == 0, status


def wakes():
    for task in glob.glob("/proc/self/task/*"):
        if open(task + "/comm").read() == "gpuwait-timer\n":
            for line in open(task + "/status"):
                if line.startswith("voluntary_ctxt_switches:"):
                    return int(line.split()[1])


check(cuda.cuInit(0))
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(cuda.cuCtxSetCurrent(context))
check(cuda.cuModuleLoadData(ctypes.byref(module), b"SIMIMAGE\nkernel long us=40000\n"))
check(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"long"))
for e in events:
    check(cuda.cuEventCreate(ctypes.byref(e), 2))
begun, n = time.monotonic(), 0
while time.monotonic() < begun + 4:
    if n >= 8:
        check(cuda.cuEventSynchronize(events[n % 8]))
    check(cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None))
    check(cuda.cuEventRecord(events[n % 8], None))
    n += 1
# A harvest every 10 ms would be 100 a second, a look every 20 us thousands.
rate = wakes() / (time.monotonic() - begun)
assert 0 < rate < 1000, "%d wake-ups a second" % rate
PY
check "the timer waits in patience" env SIM_QUEUES=1 GPUWAIT_OUT="$work/dump" GPUWAIT_STACKS=off \
    LD_LIBRARY_PATH="$sim" LD_PRELOAD="$B/libgpuwait.so" python3 "$work/saturated.py"
finish
