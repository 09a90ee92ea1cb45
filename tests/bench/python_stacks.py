#!/usr/bin/env python3
"""What a Python stack costs the program that it is taken of, and so what they cost at the most.

    tests/bench/python_stacks.py [ROUNDS [SECONDS]]      # B=build

Steps of Python for some 20 ms and one launch, on a CUDA that does nothing: the worst case, since
each stack takes the GIL from it. At 10 stacks a second, the most that are taken, the cost would
drown in noise, so they are taken as often as they can be, in turn with none at all; the difference
between the median steps, divided by the stacks in one, is what one stack costs: by the wall clock,
which wants an idle machine, and in CPU time of the thread.
"""
import os
import re
import shutil
import statistics
import subprocess
import sys

B = os.path.abspath(os.environ.get("B", "build"))
TRACE = os.path.join(B, "bench.trace")
JOB = """
import ctypes, statistics, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
p = ctypes.c_void_p()
cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(4096))
def deep(n):
    if n:
        return deep(n - 1)
    total = 0
    for i in range(300000):
        total += i
wall, cpu, end = [], [], time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    start, begun = time.monotonic(), time.thread_time()
    deep(20)
    cuda.cuLaunchKernel(None, 1, 1, 1, 1, 1, 1, 0, None, None, None)
    wall.append(time.monotonic() - start)
    cpu.append(time.thread_time() - begun)
print(statistics.median(wall), statistics.median(cpu), len(wall))
"""


def run(stacks, seconds):
    """post: median step in us, by the wall clock and in CPU time; stacks per step; us held by one"""
    shutil.rmtree(TRACE, ignore_errors=True)
    env = dict(os.environ, LD_PRELOAD=B + "/libgpuwait.so", LD_LIBRARY_PATH=B + "/noop",
               GPUWAIT_STACKS=stacks, GPUWAIT_TEST_STACKS="5000", GPUWAIT_OUT=TRACE)
    out = subprocess.run([sys.executable, "-c", JOB, str(seconds)], env=env, check=True,
                         capture_output=True, text=True).stdout.split()
    info = subprocess.run([B + "/gpuwait", "info", TRACE], capture_output=True, text=True).stdout
    counts = [int(re.search(r"([\d,]+)  " + what, info).group(1).replace(",", ""))
              for what in ("Python stacks taken", "time that the interpreter was held")]
    shutil.rmtree(TRACE, ignore_errors=True)
    return (float(out[0]) * 1e6, float(out[1]) * 1e6, counts[0] / int(out[2]),
            counts[1] / max(counts[0], 1) / 1e3)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 3
    costs, held, without = ([], []), [], []
    for _ in range(rounds):
        off, on = run("off", seconds), run("on", seconds)
        without.append(off[0])
        for i in (0, 1):
            costs[i].append((on[i] - off[i]) / on[2])
        held.append(on[3])
    print("step %.0f us, %.1f stacks of 21 frames in each; one holds the interpreter for %.0f us"
          % (statistics.median(without), on[2], statistics.median(held)))
    for what, cost in zip(("wall", "CPU"), costs):
        c = statistics.median(cost)
        print("one costs %.0f us of %s time (median of %d; %.0f to %.0f): at 10 a second %.2f %%"
              % (c, what, rounds, min(cost), max(cost), c * 10 / 1e4))


main()
