#!/usr/bin/env python3
"""Kill a program at random moments; read back every call that had returned.

    kill.py [--times N] [--signal KILL|SEGV] [--ring auto|shm|dump] [--dir DIR] [--seed S]

The program counts, in shared memory, the calls that returned in each of its threads. A
recording must hold each of them once, and at most the one more that was inside its call.
"""

import argparse
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser()
parser.add_argument("--times", type=int, default=20)
parser.add_argument("--signal", default="KILL")
parser.add_argument("--ring", default="auto")
parser.add_argument("--dir", default=None)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--longest", type=float, default=0.6, help="seconds a program lives at most")
opts = parser.parse_args()

here = os.path.dirname(os.path.abspath(__file__))
build = os.path.abspath(os.environ.get("B", os.path.join(here, "..", "..", "build")))
number = getattr(signal, "SIG" + opts.signal)
rng = random.Random(opts.seed)
total = lost = extra = unreadable = 0

for run in range(opts.times):
    with tempfile.TemporaryDirectory(dir=opts.dir) as folder:
        counts_file = os.path.join(folder, "counts")
        trace = os.path.join(folder, "trace")
        env = dict(os.environ, LD_PRELOAD=build + "/libgpuwait.so", GPUWAIT_OUT=trace, GPUWAIT_RING=opts.ring)
        env.pop("GPUWAIT", None)
        child = subprocess.Popen(
            [build + "/noop/victim", counts_file, str(opts.threads)], env=env,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.time() + 20
        while True:  # until it is at work
            try:
                if struct.unpack("<Q", open(counts_file, "rb").read(8))[0]:
                    break
            except (OSError, struct.error):
                pass
            if time.time() > deadline:
                sys.exit("the program did not start")
        time.sleep(rng.random() * opts.longest)
        child.send_signal(number)
        child.wait()
        raw = open(counts_file, "rb").read()
        made = [struct.unpack_from("<Q", raw, 64 * i)[0] for i in range(opts.threads)]
        dump = [f for f in os.listdir(trace) if f.endswith(".gwt")]
        got = subprocess.run(
            [build + "/gpuwait", "report", "--json", os.path.join(trace, dump[0])],
            capture_output=True, text=True,
        )
        if got.returncode:
            unreadable += 1
            print("run %d: exit %d: %s" % (run, got.returncode, got.stderr.strip()))
            continue
        process = json.loads(got.stdout)["processes"][0]
        dropped = process["quality"]["dropped"]
        recorded = process["launches"]["calls"]
        want = sum(made)
        total += recorded
        if recorded + dropped < want:
            lost += want - recorded - dropped
            print("run %d: %d calls returned, %d recorded, %d dropped" % (run, want, recorded, dropped))
        if recorded + dropped > want + opts.threads:
            extra += recorded + dropped - want - opts.threads
            print("run %d: %d calls returned, %d recorded, %d dropped" % (run, want, recorded, dropped))
        for name in os.listdir("/dev/shm"):
            if dump[0][:-4] in name:
                os.unlink(os.path.join("/dev/shm", name))
print(
    "%d x SIG%s, ring %s: %d events, %d lost, %d duplicated, %d unreadable"
    % (opts.times, opts.signal, opts.ring, total, lost, extra, unreadable)
)
sys.exit(bool(lost or extra or unreadable))
