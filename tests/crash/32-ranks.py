#!/usr/bin/env python3
"""A job of four ranks, started as torchrun starts it: each in a session of its own, told its rank
by the environment; when one fails the others get SIGTERM, and SIGKILL where that does not help.
Each rank has its recording, readable however it ended, with each call that had returned; the
report is of a job of four ranks. `run` says how many did not close theirs, and leaves nothing of
them outside of its directory.

    TORCHRUN=.../torchrun tests/crash/32-ranks.py     with PyTorch's own launcher instead
"""

import json
import os
import struct
import subprocess
import sys
import tempfile

from checks import B, check, count, failed

RANKS = 4

# What each rank runs: rank FOLDER [RANK-THAT-FAILS | _exit]
RANK = r"""
import ctypes, mmap, os, signal, struct, sys, time

class Dim(ctypes.Structure):
    _fields_ = [(c, ctypes.c_uint) for c in "xyz"]

rank, how = int(os.environ["RANK"]), sys.argv[2] if len(sys.argv) > 2 else ""
fails = int(how) if how.isdigit() else -1
if rank == 2:  # one that takes no hint
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
rt, one = ctypes.CDLL("libcudart.so.13"), Dim(1, 1, 1)
rt.cudaLaunchKernel.argtypes = [ctypes.c_void_p, Dim, Dim, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
path = os.path.join(sys.argv[1], "made.%d" % rank)
with open(path + ".new", "w+b") as f:
    f.truncate(8)
    made = mmap.mmap(f.fileno(), 8)
n = 0
while n < 500 or fails >= 0:
    assert rt.cudaLaunchKernel(0x1000, one, one, None, 0, None) == 0
    n += 1
    struct.pack_into("<Q", made, 0, n)
    if n == 200:
        os.rename(path + ".new", path)
    if n > 200:
        time.sleep(.001)
    everyone = all(os.path.exists(os.path.join(sys.argv[1], "made.%d" % i)) for i in range(4))
    if rank == fails and everyone:
        sys.exit(3)
if how == "_exit":
    os._exit(0)
"""

LAUNCHER = r"""
import os, signal, subprocess, sys, time
ranks = [subprocess.Popen([sys.executable] + sys.argv[1:], start_new_session=True,
                          env=dict(os.environ, RANK=str(r), LOCAL_RANK=str(r), WORLD_SIZE="4", LOCAL_WORLD_SIZE="4",
                                   MASTER_ADDR="localhost", MASTER_PORT="29500"))
         for r in range(4)]
while any(p.poll() is None for p in ranks) and not any(p.poll() for p in ranks):
    time.sleep(.02)
failed = any(p.poll() for p in ranks)
for s in (signal.SIGTERM, signal.SIGKILL):
    for p in ranks:
        if p.poll() is None:
            os.killpg(p.pid, s)
    end = time.monotonic() + 1
    while any(p.poll() is None for p in ranks) and time.monotonic() < end:
        time.sleep(.02)
print("ends", *(p.wait() for p in ranks))
sys.exit(failed)
"""


def job(folder, *arguments):
    for name, text in (("rank.py", RANK), ("launcher.py", LAUNCHER)):
        with open("%s/%s" % (folder, name), "w") as f:
            f.write(text)
    torchrun = os.environ.get("TORCHRUN")
    launcher = [torchrun, "--nproc-per-node", str(RANKS)] if torchrun else [sys.executable, folder + "/launcher.py"]
    env = dict(os.environ, LD_LIBRARY_PATH=B + "/noop")
    env.pop("GPUWAIT", None)
    return subprocess.run([B + "/gpuwait", "run", "-o", folder + "/t", "--"] + launcher
                          + [folder + "/rank.py", folder, *arguments], env=env, capture_output=True, text=True, timeout=100)


def launches(dump):
    made, says = count(dump)
    assert not says["bad"] and not says["repeated"] and not says["missing"], says
    return made + says["dropped"]


def judge(what, folder, p, cut_off):
    dumps = [folder + "/t/" + f for f in os.listdir(folder + "/t") if f.endswith(".gwt")]
    made = sorted(struct.unpack("<Q", open("%s/made.%d" % (folder, r), "rb").read())[0] for r in range(RANKS))
    found = sorted(map(launches, dumps))
    check(what + ": a recording for each rank", len(dumps) == RANKS, dumps)
    # one more may have been inside its call
    check(what + ": each call that returned", all(m <= f <= m + 1 for m, f in zip(made, found)), (made, found))
    report = subprocess.run([B + "/gpuwait", "report", "--json", folder + "/t"], capture_output=True, text=True)
    check(what + ": report", report.returncode == 0, report.stderr)
    ranks = [q["rank"] for q in json.loads(report.stdout)["processes"]]
    check(what + ": its ranks", ranks == list(range(RANKS)), ranks)
    text = subprocess.run([B + "/gpuwait", "report", folder + "/t"], capture_output=True, text=True)
    check(what + ": a job of four", "job of 4 ranks on 1 host" in text.stdout, text.stdout + text.stderr)
    check(what + ": said by run", "read them with: gpuwait report" in p.stderr, p.stderr)
    left = [line for line in p.stderr.splitlines() if "killed or left by _exit" in line]
    begins = "gpuwait: %d processes were killed or left by _exit: " % cut_off
    check(what + ": who did not close theirs", len(left) == (cut_off > 0) and all(line.startswith(begins) for line in left), p.stderr)
    stems = [os.path.basename(dump)[:-4] for dump in dumps]
    check(what + ": nothing left elsewhere", not any(s in f for s in stems for f in os.listdir("/dev/shm")), stems)
    rings = [f for f in os.listdir(folder + "/t") if f.endswith(".ring")]
    check(what + ": their rings beside them", len(rings) == cut_off, rings)


def main():
    own = "TORCHRUN" not in os.environ
    with tempfile.TemporaryDirectory() as folder:
        p = job(folder)
        check("all end well: exit code", p.returncode == 0, p)
        check("all end well: ends", not own or p.stdout == "ends 0 0 0 0\n", p.stdout)
        judge("all end well", folder, p, 0)
    with tempfile.TemporaryDirectory() as folder:
        p = job(folder, "1")
        check("one fails: exit code", p.returncode == 1, p)
        check("one fails: ends", not own or p.stdout == "ends -15 3 -9 -15\n", p.stdout)
        judge("one fails", folder, p, 3)
    with tempfile.TemporaryDirectory() as folder:
        p = job(folder, "_exit")
        check("all leave by _exit: exit code", p.returncode == 0, p)
        judge("all leave by _exit", folder, p, RANKS)
    return failed()


sys.exit(main())
