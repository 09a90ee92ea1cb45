#!/usr/bin/env python3
"""What the preload costs a launch-bound loop: paired runs, off and on in turn.

    overhead.py LIBGPUWAIT [PAIRS]

Prints microseconds per launch of each run, the medians, and the median difference
within pairs.
"""

import os
import statistics
import subprocess
import sys
import tempfile

LAUNCHES = 20000
LOOP = """
import time, torch
x = torch.zeros(64, device="cuda")
for _ in range(2000): x.add_(1)
torch.cuda.synchronize()
best = None
for _ in range(5):
    start = time.perf_counter()
    for _ in range(%d): x.add_(1)
    torch.cuda.synchronize()
    took = time.perf_counter() - start
    best = took if best is None else min(best, took)
print(best)
""" % LAUNCHES


def run(library, folder):
    env = dict(os.environ, GPUWAIT_OUT=folder)
    env.pop("LD_PRELOAD", None)
    if library:
        env["LD_PRELOAD"] = library
    out = subprocess.run([sys.executable, "-c", LOOP], env=env, check=True, stdout=subprocess.PIPE, timeout=120)
    return float(out.stdout) / LAUNCHES * 1e6


def main():
    library = os.path.abspath(sys.argv[1])
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    off, on = [], []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(pairs):
            for with_it in ((False, True) if i % 2 == 0 else (True, False)):
                trace = os.path.join(folder, str(i))
                (on if with_it else off).append(run(library if with_it else None, trace))
    print("us per launch off:", " ".join("%.3f" % v for v in off))
    print("us per launch on: ", " ".join("%.3f" % v for v in on))
    difference = statistics.median(b - a for a, b in zip(off, on))
    print("medians %.3f and %.3f, median difference in pairs %.3f" % (statistics.median(off), statistics.median(on), difference))


if __name__ == "__main__":
    main()
