#!/usr/bin/env python3
"""A job that hangs in a call is named with that call and for how long, while it hangs and when it has
been killed; of what it had recorded nothing is missing."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from checks import B, check, failed

LAUNCHES = 1000  # of `processes hangs`
HANGS_S = 3.0


def report(trace, *options):
    return subprocess.run([B + "/gpuwait", "report", *options, trace], capture_output=True, text=True).stdout


def stuck(text, verb):
    """post: (thread, call, seconds) of the only line about it, or None"""
    lines = [line for line in text.splitlines() if line.startswith("STUCK: ")]
    found = re.fullmatch(r"STUCK: thread (\d+) \(\w+\) %s inside (\w+) for ([\d.]+) s" % verb, "\n".join(lines))
    return found and (int(found[1]), found[2], float(found[3]))


def hang(ring):
    with tempfile.TemporaryDirectory() as folder:
        trace = folder + "/t"
        env = dict(os.environ, GPUWAIT_OUT=trace, GPUWAIT_RING=ring, LD_PRELOAD=B + "/libgpuwait.so")
        env.pop("GPUWAIT", None)
        begun = time.monotonic()
        job = subprocess.Popen([B + "/crash/processes", "hangs"], env=env, stdout=subprocess.PIPE, text=True)
        job.stdout.readline()
        called = time.monotonic()
        time.sleep(HANGS_S)
        least = time.monotonic() - called - 0.1
        text = report(trace)
        most = time.monotonic() - begun
        found = stuck(text, "is")
        check(ring + ", while it hangs: thread and call", found and found[:2] == (job.pid, "cudaStreamSynchronize"), text[:300])
        check(ring + ", while it hangs: for how long", found and least <= found[2] + 0.1 and found[2] <= most + 0.1, (found, least, most))
        job.send_signal(signal.SIGKILL)
        most = time.monotonic() - begun
        job.communicate()
        text = report(trace)
        found = stuck(text, "was")
        check(ring + ", killed: thread and call", found and found[:2] == (job.pid, "cudaStreamSynchronize"), text[:300])
        # up to the last that the recorder wrote, which is at most some seconds before
        check(ring + ", killed: for how long", found and 0.5 <= found[2] <= most + 0.1, (found, most))
        process = json.loads(report(trace, "--json"))["processes"][0]
        check(ring + ", killed: each launch", process["launches"]["calls"] == LAUNCHES and process["quality"]["complete"], process["launches"])
        check(ring + ", killed: in JSON", process["quality"]["stuck_in"] == "cudaStreamSynchronize", process["quality"])
        for left in os.listdir("/dev/shm"):
            if any(left == "gpuwait-%s.ring" % f[:-4] for f in os.listdir(trace)):
                os.unlink("/dev/shm/" + left)


def main():
    hang("dump")
    hang("shm")
    return failed()


sys.exit(main())
