#!/usr/bin/env python3
"""Kill a program at random moments; read back every call that had returned.

    kill.py [--times N] [--signal KILL] [--ring auto|shm|dump] [--dir DIR] [--seed S] [--drain HOW]

The program counts, in shared memory, the calls that returned in each of its threads. A
recording must hold each of them once, and at most the one more that was inside its call.
--drain says what has happened to the library's own thread by then: it runs; it is stopped
while it sleeps (sleep), before or in the middle of or after a write, each at a random one; it is
late to start, so that a thread's calls are waited for no longer (late); the disk is full from a
random write on (full), so that of the calls after it the latest are there, and how many are not.
--signal is any signal's name, EXIT (the program leaves by _exit), GROUP (SIGKILL to its
process group, in which another one records) or OOM (it takes more memory than its cgroup has;
exit 77 where no cgroup can be made).
"""

import argparse
import glob
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

from cgroup import Cgroup
from checks import counts_in

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("B", os.path.join(HERE, "..", "..", "build")))

DRAIN = {
    "runs": lambda rng: None,
    "sleep": lambda rng: "futex:%dstop" % rng.randint(1, 60),
    "before": lambda rng: "pwrite:%dstop" % rng.randint(3, 25),
    "half": lambda rng: "pwrite:%dhalf" % rng.randint(3, 25),
    "after": lambda rng: "pwrite:%dafter" % rng.randint(3, 25),
    "full": lambda rng: "pwrite:%d+" % rng.randint(3, 12),
    "late": lambda rng: "fallocate:1slow",
}


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--signal", default="KILL")
    parser.add_argument("--ring", default="auto")
    parser.add_argument("--dir", default=None)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--longest", type=float, default=0.5, help="seconds a program lives at most")
    parser.add_argument("--drain", default="runs", help="comma-separated: " + ", ".join(DRAIN))
    return parser.parse_args()


def wait_until_at_work(counts_file, child):
    deadline = time.time() + 20
    while time.time() < deadline:
        try:
            if struct.unpack("<Q", open(counts_file, "rb").read(8))[0]:
                return
        except (OSError, struct.error):
            pass
        if child.poll() is not None:
            break
        time.sleep(0.001)
    sys.exit("the program did not start")


def end(child, how, counts_file):
    if how in ("EXIT", "OOM"):
        with open(counts_file, "r+b") as f:
            f.seek(8)
            f.write(b"\1" if how == "EXIT" else b"\2")
    elif how == "GROUP":
        os.killpg(child.pid, signal.SIGKILL)
    else:
        child.send_signal(getattr(signal, "SIG" + how))


def read_back(dump):
    """post: what `count` says, as a dictionary, and launches by thread; None: unreadable"""
    got = subprocess.run([BUILD + "/crash/count", dump], capture_output=True, text=True)
    if got.returncode:
        print("exit %d: %s" % (got.returncode, got.stderr.strip()))
        return None, None
    launches, says = counts_in(got.stdout)
    return says, launches


def one(opts, rng, folder, totals, cgroup):
    files = [os.path.join(folder, "counts")]
    trace = os.path.join(folder, "trace")
    how = rng.choice(opts.drain.split(","))
    plan, full = DRAIN[how](rng), how == "full"
    env = dict(os.environ, LD_PRELOAD=BUILD + "/libgpuwait.so", GPUWAIT_OUT=trace, GPUWAIT_RING=opts.ring)
    env.pop("GPUWAIT", None)
    if plan:
        env["LD_PRELOAD"] = BUILD + "/crash/libfail.so:" + env["LD_PRELOAD"]
        env["GPUWAIT_TEST_FAIL"] = plan
    if opts.signal == "GROUP":
        files.append(files[0] + "2")
    children = []
    for name in files:
        leader = children[0].pid if children else 0
        children.append(subprocess.Popen(
            [BUILD + "/noop/victim", name, str(opts.threads)], env=env, stderr=open(files[0] + ".said", "a"),
            preexec_fn=lambda: cgroup.enter() if cgroup else os.setpgid(0, leader)))
    for name, child in zip(files, children):
        wait_until_at_work(name, child)
    # a process that dies before it has a file has recorded nothing
    deadline = time.time() + 20
    while time.time() < deadline and sum(map(os.path.getsize, glob.glob(trace + "/*.gwt"))) == 0:
        time.sleep(0.001)
    while full and "recording stops" not in open(files[0] + ".said").read():
        if time.time() > deadline:
            sys.exit("the disk was not full")
        time.sleep(0.01)
    time.sleep(rng.random() * opts.longest + (1 if opts.drain == "late" else 0))
    end(children[0], opts.signal, files[0])
    ends = [child.wait() for child in children]
    if cgroup and ends != [-signal.SIGKILL]:
        sys.exit("the program was not killed: status %d" % ends[0])
    want = [[struct.unpack_from("<Q", open(n, "rb").read(), 64 * i)[0] for i in range(opts.threads)] for n in files]
    dumps = [os.path.join(trace, f) for f in os.listdir(trace) if f.endswith(".gwt")]
    found = [read_back(d) for d in dumps]
    for dump in dumps:
        for ring in glob.glob("/dev/shm/*" + os.path.basename(dump)[:-4] + "*"):
            os.unlink(ring)
    if len(dumps) != len(files) or (None, None) in found:
        totals["unreadable"] += 1
        return
    # which dump is whose is told by what is in it; one thread's missing calls may be another's dropped
    found.sort(key=lambda f: sum(f[1]))
    want.sort(key=sum)
    for made, (says, launches) in zip(want, found):
        launches += [0] * (opts.threads - len(launches))
        totals["events"] += sum(launches)
        totals["dropped"] += says["dropped"]
        unseen = sum(max(0, m - l) for m, l in zip(made, launches)) - says["dropped"]
        lost = max(0, unseen - says["missing"]) if full else max(0, unseen) + says["missing"]
        totals["unwritten"] += says["missing"]
        # one more may have been inside its call
        twice = says["repeated"] + sum(max(0, l - m - 1) for m, l in zip(made, launches))
        totals["lost"] += lost
        totals["duplicated"] += twice
        totals["unreadable"] += says["bad"] > 0 and plan is None
        if lost or twice:
            print("%s: calls returned %s, recorded %s, %s" % (plan, made, launches, says))


def main():
    opts = options()
    rng = random.Random(opts.seed)
    totals = dict.fromkeys(["events", "dropped", "unwritten", "lost", "duplicated", "unreadable"], 0)
    try:
        cgroup = Cgroup(128 << 20) if opts.signal == "OOM" else None
    except OSError as error:
        print("# no cgroup with a limit of memory can be made here: %s" % error)
        return 77
    try:
        for _ in range(opts.times):
            with tempfile.TemporaryDirectory(dir=opts.dir) as folder:
                one(opts, rng, folder, totals, cgroup)
        if cgroup and cgroup.kills() < opts.times:
            sys.exit("%d of %d ends were by the kernel's OOM killer" % (cgroup.kills(), opts.times))
    finally:
        if cgroup:
            cgroup.remove()
    place = subprocess.run(["stat", "-f", "-c", "%T", opts.dir or tempfile.gettempdir()], capture_output=True, text=True)
    print("%5d x %-5s dump on %s, ring %s, drain %s: %s" % (
        opts.times, opts.signal, place.stdout.strip(), opts.ring, opts.drain,
        ", ".join("%d %s" % (n, what) for what, n in totals.items())))
    return bool(totals["lost"] or totals["duplicated"] or totals["unreadable"])


sys.exit(main())
