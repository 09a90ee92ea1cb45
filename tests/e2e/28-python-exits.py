#!/usr/bin/env python3
"""Interpreters that end in every way while stacks are being taken: none hangs, crashes, or ends
with another status than it would have.

    EXITS=200 PYTHON=python3.13 tests/e2e/28-python-exits.py

Stacks are taken thousands of times a second, of whatever a thread is doing, so that the end of
each interpreter meets some. EXITS (default 24) starts in all, PYTHON (default python3) the
interpreter, WAYS (default all) which.
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
B = os.path.abspath(os.environ.get("B", "build"))

# What each program starts with. `work` burns Python and waits in calls for some milliseconds.
BEGINNING = """
import atexit, ctypes, os, random, signal, sys, threading, time
cuda, runtime = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libcudart.so.13")
buffer = ctypes.create_string_buffer(1 << 20)
def call():
    pointer = ctypes.c_void_p()
    assert runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(1 << 20)) == 0
    runtime.cudaMemcpy(pointer, buffer, ctypes.c_size_t(1 << 20), 1)
    assert runtime.cudaFree(pointer) == 0
def work(ms=None):
    end = time.monotonic() + (random.uniform(0, 120) if ms is None else ms) / 1e3
    while time.monotonic() < end:
        call()
        if random.random() < .3:
            time.sleep(.001)
        sum(range(2000))
def forever():
    while True:
        work(5)
def thread(f, daemon):
    t = threading.Thread(target=f, daemon=daemon)
    t.start()
    return t
"""

# name: (program, status)
WAYS = {
    "end": ("work()", 0),
    "exit": ("work(); sys.exit(3)", 3),
    "exit in a thread": ("thread(lambda: (work(), sys.exit(3)), False); work()", 0),
    "_exit": ("work(); os._exit(4)", 4),
    "_exit beside threads": ("[thread(forever, True) for _ in range(3)]; work(); os._exit(4)", 4),
    "exception": ("work(); raise KeyError", 1),
    "daemon threads": ("[thread(forever, True) for _ in range(3)]; work()", 0),
    "threads": ("[thread(work, False) for _ in range(3)]", 0),
    "only threads": ("[thread(lambda: (time.sleep(.05), work()), False) for _ in range(3)]", 0),
    "atexit": ("atexit.register(work); work(); atexit.register(work)", 0),
    "first call at exit": ("atexit.register(work)", 0),
    "cleared": ("work(); atexit._clear()", 0),
    "finaliser": ("class C:\n    def __del__(self): call()\nc = C(); sys.keep = C(); work()", 0),
    "killed": ("thread(forever, True); work(); os.kill(os.getpid(), signal.SIGTERM)", -15),
    "libc": ("work(); ctypes.CDLL(None).exit(5)", 5),
    "libc, with the GIL": ("work(); ctypes.PyDLL(None).exit(5)", 5),
    "fork": (
        "work()\nfor i in range(4):\n    if os.fork() == 0: sys.exit(i)\n    work(10)\n"
        "print([os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(4)], file=sys.stderr)",
        0,
    ),
    "fork, calls in the child": (
        "for i in range(4):\n    if os.fork() == 0:\n        work(); sys.exit(i)\n"
        "assert sorted(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(4)) == [0, 1, 2, 3]\n"
        "work()",
        0,
    ),
    "fork beside threads": (
        "[thread(forever, True) for _ in range(2)]; work()\nfor i in range(4):\n"
        "    if os.fork() == 0: os._exit(0)\n    work(10)\n"
        "assert all(os.wait()[1] == 0 for _ in range(4))",
        0,
    ),
    "C forks without the GIL": (
        "libc = ctypes.CDLL(None); work()\nfor i in range(24):\n    if libc.fork() == 0: os._exit(0)\n"
        "    work(2)\nassert all(os.wait()[1] == 0 for _ in range(24))",
        0,
    ),
    "fork at exit": (
        "@atexit.register\ndef f():\n    work()\n    child = os.fork()\n    if child == 0: return\n"
        "    assert os.waitpid(child, 0)[1] == 0\nwork()",
        0,
    ),
    "workers": (
        "import multiprocessing as m\nwith m.get_context('fork').Pool(2) as p:\n"
        "    p.map(work, [20] * 4)\n    work()",
        0,
    ),
    "fork in a handler": (
        "def f(*_):\n    child = os.fork()\n    if child == 0: os._exit(0)\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
        "signal.signal(signal.SIGPROF, f); signal.setitimer(signal.ITIMER_PROF, .004, .004)\n"
        "work(80); signal.setitimer(signal.ITIMER_PROF, 0)",
        0,
    ),
    "interpreters": (
        "try: import _interpreters as s\nexcept ImportError: import _xxsubinterpreters as s\n"
        "run = getattr(s, 'exec', None) or s.run_string\nthread(forever, True)\n"
        "for i in range(8):\n    x = s.create(); work(5)\n"
        "    run(x, 'sum(range(20000))'); s.destroy(x)",
        0,
    ),
    "subprocess": ("import subprocess; work(); subprocess.check_call(['true']); work()", 0),
}


def run(python, name, directory):
    program, status = WAYS[name]
    env = dict(
        os.environ,
        GPUWAIT_OUT=directory,
        GPUWAIT_TEST_STACKS="3000",
        LD_LIBRARY_PATH=B + "/sim",
        LD_PRELOAD=B + "/libgpuwait.so",
    )
    try:
        p = subprocess.run(
            [python, "-W", "ignore", "-c", BEGINNING + program],
            env=env, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as e:
        return "hangs", (e.stderr or b"").decode()
    return "" if p.returncode == status else "status %d, not %d" % (p.returncode, status), p.stderr


def stacks(directory):
    """Stacks taken, of every process that has left a recording."""
    taken = 0
    for name in os.listdir(directory) if os.path.isdir(directory) else []:
        if name.endswith(".gwt"):
            info = subprocess.run([B + "/gpuwait", "info", os.path.join(directory, name)],
                                  capture_output=True, text=True).stdout
            taken += sum(int(line.split()[0].replace(",", "")) for line in info.splitlines()
                         if line.endswith("Python stacks taken"))
    return taken


def main():
    exits, python = int(os.environ.get("EXITS", "0")), os.environ.get("PYTHON", sys.executable)
    ways = os.environ["WAYS"].split(",") if "WAYS" in os.environ else list(WAYS)
    exits = exits or len(ways)
    bad = taken = 0
    for i in range(exits):
        name = ways[i % len(ways)]
        with tempfile.TemporaryDirectory() as directory:
            wrong, err = run(python, name, directory)
            taken += stacks(directory)
        if wrong:
            bad += 1
            print("not ok - %s: %s\n%s" % (name, wrong, err))
        elif i < len(ways):
            print("ok - " + name)
    if taken < exits:
        print("not ok - %d stacks in %d starts: too few to say anything" % (taken, exits))
        bad += 1
    print("%d starts, %d stacks, %d bad" % (exits, taken, bad))
    return bad > 0


sys.exit(main())
