#!/usr/bin/env python3
"""What a recording stands on, changed while it goes on: its ring file removed, the wall clock set, its
process id given to another process. The job does what it does without the library, and of what was
recorded nothing is lost."""

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "sim"))
from events import events  # noqa: E402

from checks import B, check, count, failed

PROGRAM, LIBRARY = B + "/crash/processes", B + "/libgpuwait.so"
LAUNCHES_AT_ONCE = 1000  # of `processes stays`


def start(folder, *way, preload=LIBRARY, ring="dump", before=(), **environment):
    env = dict(os.environ, GPUWAIT_OUT=folder + "/t", GPUWAIT_RING=ring, LD_PRELOAD=preload, **environment)
    env.pop("GPUWAIT", None)
    env["LD_LIBRARY_PATH"] = B + "/noop"
    return subprocess.Popen(list(before) + [PROGRAM] + list(way), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def dumps(folder):
    return sorted(folder + "/t/" + f for f in os.listdir(folder + "/t") if f.endswith(".gwt"))


def until(what, seconds=20):
    end = time.time() + seconds
    while not what() and time.time() < end:
        time.sleep(0.02)
    return what()


# ---- the ring file ---------------------------------------------------------------------------


def ring_of(folder, ring):
    """post: paths"""
    if not os.path.isdir(folder + "/t") or not dumps(folder):
        return []
    stem = os.path.basename(dumps(folder)[0])[:-4]
    path = "/dev/shm/gpuwait-%s.ring" % stem if ring == "shm" else "%s/t/%s.ring" % (folder, stem)
    return [path] if os.path.exists(path) else []


def remove_ring(ring, killed):
    name = "ring in %s removed%s" % ("/dev/shm" if ring == "shm" else "the folder", ", then killed" if killed else "")
    with tempfile.TemporaryDirectory() as folder:
        job = start(folder, "steady", "60000" if killed else "2500", ring=ring)
        drained = until(lambda: ring_of(folder, ring) and count(dumps(folder)[0])[0]) and until(
            lambda: os.path.getsize(dumps(folder)[0]) > 8192)
        check(name + ": there was one, and it was drained", drained)
        os.unlink(ring_of(folder, ring)[0])
        # from now on only what is in the dump can be told
        before, _ = count(dumps(folder)[0])
        if killed:
            time.sleep(2.2)
            job.send_signal(signal.SIGKILL)
        out, err = job.communicate(timeout=60)
        launches, says = count(dumps(folder)[0])
        check(name + ": exit code", job.returncode == (-signal.SIGKILL if killed else 0), job.returncode)
        check(name + ": one line says so", re.fullmatch(r"gpuwait: the ring file of .* was removed: .*\n", err), err)
        check(name + ": nothing twice or damaged", not says["repeated"] and not says["bad"], says)
        if killed:
            check(name + ": what had been drained is there, and what was later", launches > before > 0, (launches, before))
        else:
            made = int(out.split()[2])
            check(name + ": each launch once", launches == made and not says["dropped"] + says["missing"], (launches, made, says))


# ---- the wall clock ------------------------------------------------------------------------------


def set_clock(clock, before=()):
    with tempfile.TemporaryDirectory() as folder:
        begun = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        job = start(folder, "steady", "1500", before=before, preload=B + "/crash/libclocks.so:" + LIBRARY, CLOCKS_READ=folder + "/read")
        out, err = job.communicate(timeout=60)
        ended = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if before and not out:
            print("# %s: not allowed here: %s" % (clock, err))
            return
        name = "wall clock set, %s" % clock
        check(name + ": exit code, nothing said", job.returncode == 0 and not err, (job.returncode, err))
        check(name + ": it was read while wrong", int(open(folder + "/read").read()) > 0)
        launches, says = count(dumps(folder)[0])
        check(name + ": each launch once", launches == int(out.split()[2]) and not any(says.values()), (launches, out, says))
        with open(folder + "/events", "w") as f:
            subprocess.run([B + "/gpuwait", "info", "--events", "--json", folder + "/t"], stdout=f, check=True)
        seen = [e for e in events(folder + "/events") if e["kind"] == "LAUNCH"]
        check(name + ": in order", all(a["t0_ns"] <= b["t0_ns"] for a, b in zip(seen, seen[1:])))
        check(name + ": all within the job", all(begun <= e["t0_ns"] <= e["t1_ns"] <= ended for e in seen))
        # bursts that are 10 ms apart at least: what the program slept is in the span
        bursts = launches // 120
        check(name + ": no time is missing", seen[-1]["t1_ns"] - seen[0]["t0_ns"] >= (bursts - 1) * 10_000_000, bursts)
        report = subprocess.run([B + "/gpuwait", "report", "--json", folder + "/t"], capture_output=True, text=True)
        check(name + ": clock", json.loads(report.stdout)["processes"][0]["clock"] == clock, report.stderr)


# ---- the process id ------------------------------------------------------------------------------


def own_ids():
    """In a child that is process 1 of ids of its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x20000000 | 0x20000):  # CLONE_NEWPID | CLONE_NEWNS
        os._exit(77)
    pid = os.fork()
    if pid:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    if subprocess.run(["mount", "-t", "proc", "proc", "/proc"], capture_output=True).returncode:
        os._exit(77)


def as_process(pid, folder, *way):
    """post: the process, running, or None"""
    try:
        with open("/proc/sys/kernel/ns_last_pid", "w") as f:
            f.write(str(pid - 1))
    except OSError:
        return None
    return start(folder, *way)


def said(job):
    return int(job.stdout.readline().split()[2])


def same_id():
    """post: exit code"""
    with tempfile.TemporaryDirectory() as folder:
        first = as_process(500, folder, "stays")
        if not first or first.pid != 500:
            return 77
        said(first)
        first.kill()
        first.wait()
        time.sleep(2 / os.sysconf("SC_CLK_TCK"))  # what the kernel tells when a process began is in these
        second = as_process(500, folder, "stays")
        check("one id twice: it was given again", second and second.pid == 500)
        said(second)
        info = json.loads(subprocess.run([B + "/gpuwait", "info", "--json", folder + "/t"], capture_output=True, text=True).stdout)
        text = subprocess.run([B + "/gpuwait", "info", folder + "/t"], capture_output=True, text=True).stdout
        check("one id twice: two names", len(set(dumps(folder))) == 2, dumps(folder))
        check("one id twice: both are read", [p["pid"] for p in info["processes"]] == [500, 500], info)
        check("one id twice: only one of them is alive", text.count("still being written") == 1, text)
        second.kill()
        second.wait()
        for dump in dumps(folder):
            launches, says = count(dump)
            check("one id twice: each launch once", launches == LAUNCHES_AT_ONCE and not any(says.values()), (launches, says))
        return failed()


def reused_id():
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            own_ids()
            code = same_id()
        finally:
            sys.stdout.flush()
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code == 77:
        print("# one id twice: not allowed here")
    else:
        check("one id twice", code == 0, code)


def main():
    with ThreadPoolExecutor() as pool:  # they sleep most of the time
        list(pool.map(remove_ring, ("dump", "shm", "dump"), (False, False, True)))
    set_clock("tsc" if open("/sys/devices/system/clocksource/clocksource0/current_clocksource").read() == "tsc\n" else "monotonic")
    set_clock("monotonic", ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys && exec "$@"', "sh"))
    reused_id()
    return failed()


sys.exit(main())
