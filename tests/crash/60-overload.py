#!/usr/bin/env python3
"""More calls than the drain can take: recorded and dropped are what was made, to the call, with the
losses in their places and at the top of the report. With GPUWAIT_FULL=block none is dropped as long
as room comes within a second; where none comes, a thread waits no longer than that."""

import os
import subprocess
import sys
import tempfile
import time

from checks import B, check, count, failed


def run(folder, command, **environment):
    env = dict(os.environ, GPUWAIT_OUT=folder + "/t", LD_PRELOAD=B + "/libgpuwait.so", **environment)
    env.pop("GPUWAIT", None)
    if "GPUWAIT_TEST_FAIL" in environment:
        env["LD_PRELOAD"] = B + "/crash/libfail.so:" + env["LD_PRELOAD"]
    begun = time.monotonic()
    p = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, cwd=folder)
    took = time.monotonic() - begun
    dump = [f for f in os.listdir(folder + "/t") if f.endswith(".gwt")][0]
    return p, took, *count(folder + "/t/" + dump)


def flood(full, calls):
    """Threads that do nothing else, the drain held up at its second write for 0.4 s."""
    with tempfile.TemporaryDirectory() as folder:
        p, _, launches, says = run(folder, [B + "/crash/processes", "flood", str(calls)],
                                   GPUWAIT_FULL=full, GPUWAIT_TEST_FAIL="pwrite:4slow")
        made = int(p.stdout.split()[2])
        check(full + ": exit code, nothing said", p.returncode == 0 and not p.stderr, p.stderr)
        check(full + ": recorded + dropped = made", launches + says["dropped"] == made and not says["missing"], (made, launches, says))
        if full == "block":
            check("block: none dropped", says["dropped"] == 0, says)
            return
        check("drop: some were dropped", says["dropped"] > 0, says)
        report = subprocess.run([B + "/gpuwait", "report", folder + "/t"], capture_output=True, text=True)
        check("drop: at the top of the report", report.stdout.startswith("INCOMPLETE: ")
              and "{:,} events dropped".format(says["dropped"]) in report.stdout.splitlines()[0], report.stdout[:200])
        events = subprocess.run([B + "/gpuwait", "info", "--events", folder + "/t"], capture_output=True, text=True)
        lost = [line.split("\t") for line in events.stdout.splitlines() if "LOST" in line]
        check("drop: LOST records in each thread", len({line[2] for line in lost}) == 2, lost)
        check("drop: of all that were dropped", sum(int(line[-1].split()[0]) for line in lost) == says["dropped"], (lost, says))


def stuck():
    """A drain that never comes back: the thread waits a second for the first call without room."""
    with tempfile.TemporaryDirectory() as folder:
        calls = 65536 + 2
        p, took, launches, says = run(folder, [B + "/crash/processes", "plain", str(calls)],
                                      GPUWAIT_FULL="block", GPUWAIT_TEST_FAIL="pwrite:4stop", GPUWAIT_RING="dump")
        check("block, no room comes: exit code", p.returncode == 0, p.stderr)
        check("block, no room comes: recorded + dropped = made", launches + says["dropped"] == calls, (launches, says))
        # at most a second for each of the calls without room, 5 s at the end for the last frame
        check("block, no room comes: the wait ends", took < 30, took)


def main():
    flood("drop", 400000)
    flood("block", 400000)
    stuck()
    return failed()


sys.exit(main())
