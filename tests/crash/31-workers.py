#!/usr/bin/env python3
"""Python's ways of making workers, as data loaders use them: forked, forked by a server, or
spawned; kept over epochs, one killed in between and replaced, another terminated at the end. Each
process that launches has a recording with each of its launches once; the others leave nothing."""

import os
import subprocess
import sys
import tempfile

from checks import B, check, count, failed

JOB = r"""
import ctypes, multiprocessing, os, signal, sys

class Dim(ctypes.Structure):
    _fields_ = [(c, ctypes.c_uint) for c in "xyz"]

made = 0

def launch(n):
    global made
    if n:
        rt, one = ctypes.CDLL("libcudart.so.13"), Dim(1, 1, 1)
        rt.cudaLaunchKernel.argtypes = [ctypes.c_void_p, Dim, Dim, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
        for _ in range(n):
            assert rt.cudaLaunchKernel(0x1000, one, one, None, 0, None) == 0
    made += n

def work(pipe):
    global made
    made = 0  # a forked one has its parent's
    for n in iter(pipe.recv, None):
        launch(n)
        pipe.send((os.getpid(), made))

class Worker:
    def __init__(self, context):
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

def main():
    how, before, each = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    context = multiprocessing.get_context(how)
    total = {}
    launch(before)
    workers = [Worker(context) for _ in range(3)]
    for epoch in range(3):
        for step in range(4):
            for w in workers:
                w.pipe.send(each)
            for w in workers:
                pid, n = w.pipe.recv()
                total[pid] = n
        if epoch == 0:
            os.kill(workers[0].process.pid, signal.SIGKILL)
            workers[0].process.join()
            assert workers[0].process.exitcode == -signal.SIGKILL
            workers[0] = Worker(context)
    for w in workers[:2]:
        w.pipe.send(None)
        w.process.join()
        assert w.process.exitcode == 0, w.process.exitcode
    workers[2].process.terminate()
    workers[2].process.join()
    launch(100)
    total[os.getpid()] = made
    for pid, n in total.items():
        print("made", pid, n)

if __name__ == "__main__":
    main()
"""


def recorded(trace):
    """post: launches by process, as the dumps' names say it"""
    found = {}
    for name in os.listdir(trace):
        if name.endswith(".gwt"):
            launches, says = count(os.path.join(trace, name))
            assert not any(says.values()), says
            found[int(name.split("-")[-2])] = launches
    return found


def main():
    for how, before, each, processes in (
        ("fork", 50, 0, 1),  # workers that only read: CUDA forbids more after a fork
        ("fork", 0, 20, 5),
        ("forkserver", 50, 20, 5),
        ("forkserver", 50, 0, 1),
        ("spawn", 50, 20, 5),
    ):
        what = "%s, %d before, %d each" % (how, before, each)
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/job.py", "w") as f:
                f.write(JOB)
            env = dict(os.environ, GPUWAIT_OUT=folder + "/t", GPUWAIT_RING="dump", LD_PRELOAD=B + "/libgpuwait.so",
                       LD_LIBRARY_PATH=B + "/noop")
            env.pop("GPUWAIT", None)
            p = subprocess.run([sys.executable, folder + "/job.py", how, str(before), str(each)], env=env,
                               capture_output=True, text=True, timeout=100)
            made = {int(pid): int(n) for _, pid, n in map(str.split, p.stdout.splitlines()) if int(n)}
            check(what + ": exit code, nothing said", p.returncode == 0 and not p.stderr, (p.returncode, p.stderr))
            check(what + ": processes", len(made) == processes, made)
            check(what + ": each launch once", recorded(folder + "/t") == made, (recorded(folder + "/t"), made))
    return failed()


sys.exit(main())
