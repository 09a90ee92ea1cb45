"""What the preload adds to the start and end of a process without CUDA, in triples that alternate:
without it, with it, and with GPUWAIT=0. Of the differences within a triple, the median and its
95 % interval."""
import os
import shutil
import tempfile
import time

from bench import interval, median, row

B = os.environ["B"]
TRIPLES = int(os.environ.get("BENCH_STARTS", "400"))
program = shutil.which("true")
out = tempfile.mkdtemp()


def start(env):
    full = dict(os.environ, GPUWAIT_OUT=out, **env)
    t0 = time.perf_counter_ns()
    pid = os.posix_spawn(program, [program], full)
    _, status = os.waitpid(pid, 0)
    took = time.perf_counter_ns() - t0
    assert status == 0
    return took / 1000


preload = {"LD_PRELOAD": B + "/libgpuwait.so"}
kinds = [{}, preload, dict(preload, GPUWAIT="0")]
times = [[], [], []]
for i in range(TRIPLES):
    for k in ((0, 1, 2), (2, 0, 1), (1, 2, 0))[i % 3]:
        times[k].append(start(kinds[k]))
assert not os.listdir(out)
os.rmdir(out)
plain = median(times[0])
row("process without CUDA: start to end", plain, "us")
for name, with_ in (("with the preload", times[1]), ("with the preload and GPUWAIT=0", times[2])):
    added = [w - p for w, p in zip(with_, times[0])]
    low, high = interval(added)
    row("%s, added [%.0f, %.0f]" % (name, low, high), median(added), "us", median(added) / plain,
        "that process")
