#!/usr/bin/env python3
"""What recording costs a job, and what torch.profiler costs it in the same run.

    overhead.py inside KIND [SECONDS]       under the preload
    overhead.py whole LIBGPUWAIT KIND [PAIRS]
    overhead.py steps KIND                  (what the second starts)

KIND: launch, lora_mlp, generate (bound by launches), mixed, gpu (bound by the device).

inside: blocks of steps in turn, in one process. First the recorder off, on without timing on the
device, and as it is by default; then, with the recorder off, torch.profiler off, watching the
device, and watching calls too. The profiler comes last, since what it has once set up stays.
whole: processes in turn, bare, with GPUWAIT=0 and recorded: the time of a step, and of the whole.
"""

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

import torch

import busy
from common import ratios, setup, until_sampled
from onoff import block, gpu_bound, launch_bound

KINDS = {
    "launch": launch_bound,
    "lora_mlp": lambda: busy.lora_mlp()[0],
    "generate": lambda: busy.generate()[0],
    "mixed": lambda: busy.llama_lora(4)[0],
    "gpu": gpu_bound,
}
BLOCK_S = 0.06  # a block has 20 steps, or fewer where those would last much longer


def start(kind):
    """A step, and how many make a block."""
    setup()
    torch.use_deterministic_algorithms(False)
    step = KINDS[kind]()
    until_sampled(step)
    one = statistics.median(block(step, 1) for _ in range(5)) / 1e3
    return step, max(2, min(20, round(BLOCK_S / one)))


def in_turn(states, seconds, measure):
    """The figures of each state, one of each in every round, in an order that changes."""
    figures = {state: [] for state in states}
    order, draw, end = list(states), random.Random(0), time.time() + seconds
    while time.time() < end or len(figures[order[0]]) < 10:
        draw.shuffle(order)
        for state in order:
            figures[state].append(measure(state))
    return figures


def tell(kind, figures, base):
    for state, ms in figures.items():
        if state != base:
            print("%-9s %-26s %9.4f ms/step, off %9.4f: %s" % (
                kind, state, statistics.median(ms), statistics.median(figures[base]), ratios(ms, figures[base])), flush=True)


def inside(kind, seconds):
    step, steps = start(kind)

    def recorded(state):
        torch.cuda.nvtx.mark("gpuwait.recording=%d" % (state != "off"))
        torch.cuda.nvtx.mark("gpuwait.timing=%d" % (state == "gpuwait"))
        return block(step, steps)

    tell(kind, in_turn(("off", "gpuwait", "gpuwait, calls only"), seconds, recorded), "off")
    torch.cuda.nvtx.mark("gpuwait.recording=0")
    torch.cuda.nvtx.mark("gpuwait.timing=0")
    activity = torch.profiler.ProfilerActivity
    watched = {"torch.profiler CUDA": [activity.CUDA], "torch.profiler CPU+CUDA": [activity.CPU, activity.CUDA]}

    def profiled(state):
        if state == "off":
            return block(step, steps)
        with torch.profiler.profile(activities=watched[state]):
            return block(step, steps)

    tell(kind, in_turn(("off", *watched), seconds / 2, profiled), "off")


def steps_alone(kind):
    step, steps = start(kind)
    print("ms", statistics.median(block(step, steps) for _ in range(40)))


def whole(library, kind, pairs):
    library = os.path.abspath(library)

    def run(state):
        with tempfile.TemporaryDirectory() as folder:
            env = dict(os.environ, GPUWAIT_OUT=folder)
            for name in ("LD_PRELOAD", "GPUWAIT"):
                env.pop(name, None)
            if state != "off":
                env["LD_PRELOAD"] = library
            if state == "GPUWAIT=0":
                env["GPUWAIT"] = "0"
            begun = time.perf_counter()
            out = subprocess.run([sys.executable, os.path.abspath(__file__), "steps", kind], env=env, check=True,
                                 stdout=subprocess.PIPE, text=True, timeout=120).stdout
            return float(out.split("ms ")[1]), time.perf_counter() - begun

    states = ("off", "GPUWAIT=0", "gpuwait")
    run("off")  # what later ones find in the caches
    order, draw, figures = list(states), random.Random(0), {state: [] for state in states}
    for _ in range(pairs):
        draw.shuffle(order)
        for state in order:
            figures[state].append(run(state))
    tell(kind + ", processes", {s: [ms for ms, _ in f] for s, f in figures.items()}, "off")
    for state in states:
        print("%-9s %-26s %9.2f s, start to end" % (kind, state, statistics.median(s for _, s in figures[state])))


def main():
    what, *rest = sys.argv[1:] or [""]
    if what == "inside" and rest and rest[0] in KINDS:
        return inside(rest[0], float(rest[1]) if len(rest) > 1 else 30)
    if what == "steps" and rest and rest[0] in KINDS:
        return steps_alone(rest[0])
    if what == "whole" and len(rest) > 1 and rest[1] in KINDS:
        return whole(rest[0], rest[1], int(rest[2]) if len(rest) > 2 else 10)
    sys.exit(__doc__)


if __name__ == "__main__":
    main()
