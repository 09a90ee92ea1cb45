"""Host cost of an intercepted call on a CUDA that does nothing (noop/calls.c): what it takes with
the preload less what it takes without, in runs that alternate, beside two bare clock reads of the
same run. The least of all bursts is what the code costs; the median is that on this machine with
whatever else it does. Then the same while operations are timed on the GPU, as they are by default
once a job has run for a second, and with GPUWAIT=0."""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

from bench import median, row

B = os.environ["B"]
ROUNDS, RUNS = int(os.environ.get("BENCH_ROUNDS", "96")), int(os.environ.get("BENCH_RUNS", "4"))


def run(threads, env):
    """name: (median, least, p99.9), in ns"""
    out = tempfile.mkdtemp()
    full = dict(os.environ, GPUWAIT_OUT=out, **env)
    full.pop("BENCH_ROWS", None)
    try:
        text = subprocess.run([B + "/noop/calls", str(threads), str(ROUNDS)], env=full,
                              stdout=subprocess.PIPE, check=True, text=True).stdout
        dropped = 0
        for dump in glob.glob(out + "/*.gwt"):
            info = json.loads(subprocess.run([B + "/gpuwait", "info", "--json", dump], text=True,
                                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
            dropped += sum(p["dropped"] for p in info["processes"])
    finally:
        shutil.rmtree(out)
    lines = (line.split() for line in text.splitlines())
    return {name: tuple(float(x) for x in rest) for name, *rest in lines}, dropped


def compare(threads, env, note):
    with_, without, dropped = [], [], 0
    for _ in range(RUNS):
        figures, lost = run(threads, dict(LD_PRELOAD=B + "/libgpuwait.so", **env))
        with_.append(figures)
        dropped += lost
        without.append(run(threads, {})[0])
    what = "%s, %d thread%s" % (note, threads, "s" * (threads > 1)) if note else \
        "%d thread%s" % (threads, "s" * (threads > 1))
    clocks = "two-clock-reads"
    least = {k: min(r[k][1] for r in with_) - min(r[k][1] for r in without) for k in with_[0]}
    floor = min(r[clocks][1] for r in with_)
    row("two clock reads, " + what, floor, "ns")
    for kind in with_[0]:
        if kind == clocks:
            continue
        row("%s, %s, least" % (kind, what), least[kind], "ns", least[kind] / floor,
            "two clock reads")
        medians = [(w[kind][0] - o[kind][0], w[clocks][0]) for w, o in zip(with_, without)]
        row("%s, %s, median" % (kind, what), median([m for m, _ in medians]), "ns",
            median([m / c for m, c in medians]), "two clock reads")
        if not env:
            row("%s, %s, p99.9 of single calls" % (kind, what),
                median([r[kind][2] for r in with_]), "ns")
    if dropped:
        print("%d events were dropped: the drain thread did not get the CPU that it needs for"
              " these figures to hold" % dropped, file=sys.stderr)


cores = len(os.sched_getaffinity(0))
for threads in [n for n in (1, 2, 4, 8, 16, 32) if n <= cores]:
    compare(threads, {}, "")
compare(1, {"NOOP_TIMES": "1"}, "timing on the GPU")
compare(1, {"GPUWAIT": "0"}, "GPUWAIT=0")
