#!/usr/bin/env python3
"""A job for SOAK_SECONDS (60) at 100,000 launches a second on the simulated GPU, with threads that
come and go, forks, and a bound of disk space that is met early. After a minute (or a third of the
time) its memory grows by no more than 1 MiB, its descriptors and mappings not at all; the disk stays
within its bound; at the end every launch is an event or in a sum."""

import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
B = os.path.abspath(os.environ.get("B", os.path.join(HERE, "..", "..", "build")))
SECONDS = int(os.environ.get("SOAK_SECONDS", "60"))
RATE = int(os.environ.get("SOAK_RATE", "100000"))
MAX = (8 if SECONDS >= 180 else 2) << 20  # met before it is looked at whether anything grows


def look(pid, trace):
    """post: resident KiB that are its own, descriptors, bytes on disk; None: it has ended"""
    try:
        status = open("/proc/%d/status" % pid).read()
        fds = len(os.listdir("/proc/%d/fd" % pid))
    except OSError:
        return None
    found = re.search(r"RssAnon:\s*(\d+)", status)
    if not found:
        return None
    size = 0
    for f in os.listdir(trace) if os.path.isdir(trace) else []:
        try:
            size += os.stat(os.path.join(trace, f)).st_size if not f.endswith(".ring") else 0
        except FileNotFoundError:  # a segment of the tail that went
            pass
    return int(found.group(1)), fds, size


def main():
    with tempfile.TemporaryDirectory() as folder:
        trace = folder + "/t"
        env = dict(os.environ, LD_PRELOAD=B + "/libgpuwait.so", GPUWAIT_OUT=trace, GPUWAIT_MAX=str(MAX), GPUWAIT_RING="dump")
        child = subprocess.Popen([B + "/sim/clients/soak", str(SECONDS), str(RATE)], env=env, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        begun, seen = time.time(), []
        settled = min(60, SECONDS / 3)
        while child.poll() is None:
            now = look(child.pid, trace)
            if now and time.time() - begun < SECONDS - 0.5:
                seen.append((time.time() - begun,) + now)
            time.sleep(1)
        out, err = child.communicate()
        late = [s for s in seen if s[0] >= settled]
        made = int(out.split()[0])
        dump = [f for f in os.listdir(trace) if f.endswith(".gwt")]
        words = subprocess.run([B + "/crash/count", os.path.join(trace, dump[0])], capture_output=True, text=True, check=True).stdout.split()
        at = words.index("launches")
        says = dict(zip(words[:at:2], map(int, words[1:at:2])))
        counted = sum(map(int, words[at + 1 :])) + says["summed"] + says["dropped"]
    rss, fds, disk = ([s[i] for s in late] for i in (1, 2, 3))
    print("%d s, %d launches (%d a second), %s" % (SECONDS, made, made / SECONDS, says))
    print("own memory %d to %d KiB after %d s, descriptors %d to %d, disk at most %d of %d bytes" % (
        min(rss), max(rss), settled, min(fds), max(fds), max(disk), MAX))
    wrong = []
    if child.returncode or err:
        wrong.append("exit %d, %s" % (child.returncode, err))
    if max(rss) - min(rss) > 1024:
        wrong.append("memory: " + " ".join(map(str, rss[:: max(1, len(rss) // 40)])))
    # the two segments of the tail, and one for a moment, while a name is read
    if max(fds) > min(fds) + 3:
        wrong.append("descriptors: " + " ".join(map(str, fds)))
    if max(disk) > MAX:
        wrong.append("disk: %d" % max(disk))
    if len(dump) != 1 or counted != made or says["missing"] or says["bad"] or says["repeated"]:
        wrong.append("%d launches made, %d recorded, summed or counted as dropped" % (made, counted))
    for what in wrong:
        print("not ok - " + what)
    return bool(wrong)


sys.exit(main())
