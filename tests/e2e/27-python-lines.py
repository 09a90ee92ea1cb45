#!/usr/bin/env python3
"""Python stacks name the lines at which a job keeps the GPU waiting (python_job.py, whose marked
lines are the truth), are taken at a bounded rate, and not at all where they are off, where there
is no Python, or where the interpreter is of a kind that was not tested.

    PYTHON=python3.13 tests/e2e/27-python-lines.py
"""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
B = os.path.abspath(os.environ.get("B", "build"))
PYTHON = os.environ.get("PYTHON", sys.executable)
JOB = os.path.join(HERE, "python_job.py")
LIB = B + "/libgpuwait.so"
bad = 0


def check(name, good, what=""):
    global bad
    print("%s - %s%s" % ("ok" if good else "not ok", name, "" if good else ": %.2000s" % (what,)))
    bad += not good


def record(command, preload=LIB, **environment):
    """post: [(why, [(function, file, line), ...]), ...], the text of info, lines of events"""
    with tempfile.TemporaryDirectory() as trace:
        env = dict(os.environ, GPUWAIT_OUT=trace, LD_PRELOAD=preload, LD_LIBRARY_PATH=B + "/sim",
                   **environment)
        subprocess.run(command, env=env, check=True, timeout=60, stdout=subprocess.DEVNULL)
        show = [B + "/gpuwait", "info", trace]
        info = subprocess.run(show, capture_output=True, text=True, check=True).stdout
        events = subprocess.run(show + ["--events"], capture_output=True, text=True, check=True)
    stacks = []
    for line in events.stdout.splitlines():
        columns = line.split("\t")
        if columns[3] == "STACK":
            why, frames = re.match(r"thread \d+ (.*?): (.*)", columns[-1]).groups()
            frames = [re.match(r"(.*) \((.*):(\d+)\)$", f).groups() for f in frames.split(" < ")]
            stacks.append((why, [(f, file, int(n)) for f, file, n in frames]))
    return stacks, info, [line.split("\t") for line in events.stdout.splitlines()[1:]]


def instants(events):
    """Each stack of the main thread is of an instant at which that thread was in such a state, by
    its own calls; 10 us for the clocks. On a busy machine one in twenty may be late: who takes it
    is itself held up between the look at the calls and the one at the stack."""
    main = events[0][2]  # the first call is its
    calls = [(float(e[0]), float(e[0]) + float(e[1]) / 1e6) for e in events
             if e[2] == main and e[3] != "SECTION"]
    total, late = 0, []
    for e in events:
        if e[3] != "STACK" or not e[-1].startswith("thread 1 "):
            continue
        at = float(e[0])
        begun = max(c for c in calls if c[0] <= at + 1e-5)
        age = at - (begun[0] if begun[1] > at else begun[1]) + 1e-5
        good = (age > 0.005 and begun[1] < at + 1e-5 if "outside CUDA" in e[-1] else
                begun[1] > at - 1e-5 and (age < 0.00202 if "short" in e[-1] else age > 0.002))
        total += 1
        if not good:
            late.append((e, begun))
    check("instants as they say", total and len(late) <= max(1, total // 20), (total, late[:3]))


def count(info, what):
    found = [line for line in info.splitlines() if line.endswith("  " + what)]
    return int(found[0].split()[0].replace(",", "")) if found else 0


def fact(info):
    found = re.search(r"^  stacks +(.*)$", info, re.M)
    return found and found.group(1)


def lines():
    """The job's innermost frame of each stack is a marked line, of each way; but a thread that
    the system takes off its CPU between two of them is there all right, so nine in ten."""
    marked = {}
    for number, line in enumerate(open(JOB), 1):
        for way in re.findall(r"# line: (\w+)$", line):
            marked[number] = way
    whys = {"burn": "outside CUDA", "rest": "outside CUDA", "hold": "outside CUDA", "wait": "outside CUDA",
            "block": "inside a call", "read": "inside a short call",
            "other": "inside a call, of the main thread"}
    check("the job has its marks", set(marked.values()) == set(whys), marked)
    seen, stacks, other = set(), [], []
    for _ in range(4):  # what is seen is a matter of chance: then the rest alone
        part, info, events = record([PYTHON, JOB, "4"] + sorted(set(whys) - seen))
        instants(events)
        check("no more than 10 a second, after 10 at once", len(part) <= 10 + 10 * 4.5, len(part))
        check("none without a frame", count(info, "of those, without a frame") == 0, info)
        check("counted", count(info, "Python stacks taken") == len(part), info)
        check("held, and not for long", 0 < count(info, "time that the interpreter was held for "
              "them, ns") < len(part) * 10e6, info)
        stacks += part
        for why, frames in part:
            own = [f for f in frames if os.path.basename(f[1]) == os.path.basename(JOB)]
            way = marked.get(own[0][2]) if own else None
            if not way:
                other.append((why, frames))
            elif why == whys[way]:
                seen.add(way)
            check("the file's path", bool(own) and own[0][1] == JOB, frames)
            check("outermost is the module", frames[-1][0] == "<module>", frames)
        if seen == set(whys):
            break
    check("each way was seen, for its own reason", seen == set(whys), (seen, stacks))
    check("the lines are the marked ones", len(other) <= len(stacks) / 10, other)


def says(version):
    """post: what is said of an interpreter of that version: a program that has its name for it."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "version.so")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-x", "c", "-", "-o", path],
                       input='const char *Py_GetVersion(void) { return "%s"; }' % version,
                       text=True, check=True)
        stacks, info, _ = record([B + "/sim/clients/rt13"], preload=LIB + " " + path)
        check(version + ": none", not stacks and "gpuwait-stacks" not in info, info)
        return fact(info)


def none():
    stacks, info, _ = record([PYTHON, JOB, "1"], GPUWAIT_STACKS="off")
    check("GPUWAIT_STACKS=off: none", not stacks and not fact(info), stacks)
    check("GPUWAIT_STACKS=off: no thread", "gpuwait-stacks" not in info, info)
    stacks, info, _ = record([PYTHON, JOB, "1"], GPUWAIT_TEST_STACKS="1000")
    check("else there are some", stacks and fact(info) == "on" and "gpuwait-stacks" in info, info)
    stacks, info, _ = record([B + "/sim/clients/rt13"])
    check("no Python: none", not stacks and not fact(info), info)
    for version, reason in (
        ("3.14.0 free-threading build (main)", "not tested with free-threaded Python"),
        ("3.13.0 experimental free-threading build (main)", "not tested with free-threaded Python"),
        ("3.99.0 (main)", "not tested with this version of Python"),
        ("3.8.18 (main)", "not tested with this version of Python"),
        ("2.7.18 (main)", "not tested with this version of Python"),
        ("3.11.2 (main)", "this Python lacks functions of CPython's"),
    ):
        said = says(version)
        check(version, said == reason, said)


UNSEEN = """
import atexit, gc, sys, threading, time
sys.path.insert(0, sys.argv[1])
import python_job
main, seen, before = threading.get_ident(), [], atexit._ncallbacks()
def note(event, *_):
    if threading.get_ident() != main:
        seen.append(event)
sys.addaudithook(note)
gc.callbacks.append(note)
device, end = python_job.Device(), time.monotonic() + 1.5
while time.monotonic() < end:
    for way in (python_job.burn, python_job.rest, python_job.block):
        device.launch(b"short")
        way(device)
        for _ in range(300):
            loop = []
            loop.append(loop)
assert not seen, seen
assert threading.active_count() == 1, threading.enumerate()
assert gc.isenabled()
assert atexit._ncallbacks() - before == int(sys.argv[2]), atexit._ncallbacks()
"""


def unseen():
    """The program sees no code run, no garbage collected and no thread; one function at exit."""
    for stacks, functions in (("off", "0"), ("on", "1")):
        taken, info, _ = record([PYTHON, "-X", "dev", "-c", UNSEEN, HERE, functions],
                             GPUWAIT_STACKS=stacks, GPUWAIT_TEST_STACKS="1000")
        check("unseen, %s" % stacks, bool(taken) == (stacks == "on"), info)


lines()
none()
unseen()
sys.exit(bad > 0)
