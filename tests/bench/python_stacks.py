#!/usr/bin/env python3
"""What a Python stack costs the program that it is taken of, and so what they cost at the most.

    tests/bench/python_stacks.py [SECONDS]      # B=build

Steps of Python for about 10 ms and one launch, on a CUDA that does nothing: the worst case, since each
stack takes the GIL from it, which it gives up after 5 ms (of shorter steps the stack would mostly be
another's by then, and is not kept). Of each stack the step that it was asked for in, and the next, are
compared with those before and after, where there was none: pairs some ms apart, in one process, so
that a machine that others use too widens the interval rather than move it. Stacks come somewhat more
often than the 10 a second that are the most, at random. By the wall clock, and in CPU time of the
thread.
"""
import bisect
import json
import os
import random
import shutil
import statistics
import subprocess
import sys

B = os.path.abspath(os.environ.get("B", "build"))
TRACE = os.path.join(B, "bench.trace")
PER_SECOND, MOST = 12, 10
AROUND = 2  # steps: the GIL is had within 5 ms
TRIM = 0.1  # of the pairs, at either end: a step in which the machine did something else
JOB = """
import array, ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
p = ctypes.c_void_p()
cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(4096))
def deep(n):
    if n:
        return deep(n - 1)
    total = 0
    for i in range(300000):
        total += i
marks, end = array.array("q"), time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    marks.append(time.monotonic_ns())
    marks.append(time.thread_time_ns())
    deep(20)
    cuda.cuLaunchKernel(None, 1, 1, 1, 1, 1, 1, 0, None, None, None)
with open(sys.argv[2], "wb") as f:
    marks.tofile(f)
"""


def record(seconds):
    """post: entry of each step and CPU time then, ns; when each stack was asked for; us held by one"""
    shutil.rmtree(TRACE, ignore_errors=True)
    marks = os.path.join(B, "bench.marks")
    env = dict(os.environ, LD_PRELOAD=B + "/libgpuwait.so", LD_LIBRARY_PATH=B + "/noop",
               GPUWAIT_TEST_STACKS=str(PER_SECOND), GPUWAIT_OUT=TRACE)
    subprocess.run([sys.executable, "-c", JOB, str(seconds), marks], env=env, check=True)
    events = subprocess.run([B + "/gpuwait", "info", "--events", "--json", TRACE], capture_output=True,
                            check=True, text=True).stdout
    asked, held = [], []
    for line in events.splitlines():
        if '"STACK"' in line:
            event = json.loads(line)
            asked.append(event["t0_ns"])
            held.append((event["t1_ns"] - event["t0_ns"]) / 1e3)
    with open(marks, "rb") as f:
        words = memoryview(f.read()).cast("q").tolist()
    os.remove(marks)
    shutil.rmtree(TRACE, ignore_errors=True)
    return words[0::2], words[1::2], asked, held


def pairs(clock, at):
    """By how much the steps of each stack took longer than those around them, us."""
    out = []
    for n, i in enumerate(at):
        first, last = i - 2 * AROUND, i + 3 * AROUND
        alone = (n == 0 or at[n - 1] + AROUND <= first) and (n + 1 == len(at) or at[n + 1] >= last)
        if not alone or first < 0 or last >= len(clock):
            continue
        def took(k):
            return clock[k + AROUND] - clock[k]
        out.append((took(i) - (took(i - 2 * AROUND) + took(i + 2 * AROUND)) / 2) / 1e3)
    return out


def mean(values):
    values = sorted(values)
    cut = int(len(values) * TRIM)
    return statistics.fmean(values[cut:len(values) - cut])


def interval(values):
    rng = random.Random(1)
    means = sorted(mean(rng.choices(values, k=len(values))) for _ in range(1000))
    return means[25], means[974]


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    wall, cpu, asked, held = record(seconds)
    at = [bisect.bisect_right(wall, t) - 1 for t in asked]
    step = statistics.median(b - a for a, b in zip(wall, wall[1:])) / 1e3
    print("steps of %.0f us; %d stacks of 21 frames; one holds the interpreter for %.0f us (median)"
          % (step, len(at), statistics.median(held)))
    for what, clock in (("wall", wall), ("CPU", cpu)):
        values = pairs(clock, at)
        if len(values) < 20:
            sys.exit("%d pairs: too few" % len(values))
        low, high = interval(values)
        print("%-4s %4d pairs: %.0f us a stack, 95 %% interval %.0f to %.0f; at %d a second %.3f %% of a core, at most %.3f"
              % (what, len(values), mean(values), low, high, MOST, mean(values) * MOST / 1e4, high * MOST / 1e4))


if __name__ == "__main__":
    main()
