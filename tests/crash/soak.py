#!/usr/bin/env python3
"""A job for SOAK_SECONDS (60) at SOAK_RATE (100,000) launches a second on the simulated GPU, with
threads that come and go, forks, and a bound of disk space that is met early. After a minute (or a
third of the time) its memory stays within 1 MiB either way, its descriptors and mappings do not
grow; the disk stays within its bound; at the end every launch is an event or in a sum. A line for
each tenth of the time says what was seen."""

import os
import re
import subprocess
import sys
import tempfile
import time

from checks import B, count

SECONDS = int(os.environ.get("SOAK_SECONDS", "60"))
RATE = int(os.environ.get("SOAK_RATE", "100000"))
# met early, and enough for what each thread's name takes
MAX = (16 if SECONDS >= 1800 else 8 if SECONDS >= 180 else 2) << 20


SEEN = "own KiB", "resident KiB", "descriptors", "mappings", "bytes on disk"


def look(pid, trace):
    """post: what SEEN says, resident including files; None: it has ended"""
    try:
        status = open("/proc/%d/status" % pid).read()
        fds = len(os.listdir("/proc/%d/fd" % pid))
        maps = open("/proc/%d/maps" % pid).read().count("\n")
    except OSError:
        return None
    own, rss = (re.search(key + r":\s*(\d+)", status) for key in ("RssAnon", "VmRSS"))
    if not own:
        return None
    size = 0
    for f in os.listdir(trace) if os.path.isdir(trace) else []:
        try:
            size += os.stat(os.path.join(trace, f)).st_size if not f.endswith(".ring") else 0
        except FileNotFoundError:  # a segment of the tail that went
            pass
    return int(own.group(1)), int(rss.group(1)), fds, maps, size


def tenths(seen):
    """least and most of each column, by tenths of the time"""
    for k in range(10):
        part = [s[1:] for s in seen if k <= s[0] * 10 / SECONDS < k + 1]
        if part:
            print("to %5.0f s: %s" % ((k + 1) * SECONDS / 10, ", ".join(
                "%s %d to %d" % (name, min(column), max(column)) for name, column in zip(SEEN, zip(*part)))))


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
        launches, says = count(os.path.join(trace, dump[0]))
        counted = launches + says["summed"]
    _, resident, fds, maps, disk = zip(*(s[1:] for s in late))
    print("%d s, %d launches (%d a second), %s" % (SECONDS, made, made / SECONDS, says))
    tenths(seen)
    wrong = []
    if child.returncode or err:
        wrong.append("exit %d, %s" % (child.returncode, err))
    if made < 0.95 * RATE * SECONDS:
        wrong.append("too few launches: %d a second" % (made / SECONDS))
    for name, column, grows in (("resident memory", resident, 2048),
                                # the two segments of the tail, and one for a moment, while a name is read
                                ("descriptors", fds, 3),
                                # a thread that begins while those that ended are not drained yet has
                                # a ring of its own: on a busy machine some come late
                                ("mappings", maps, 32)):
        if max(column) - min(column) > grows:
            wrong.append("%s: %d to %d" % (name, min(column), max(column)))
    if max(disk) > MAX:
        wrong.append("disk: %d of %d" % (max(disk), MAX))
    # of other calls some may have been dropped too
    if len(dump) != 1 or not counted <= made <= counted + says["dropped"] or says["missing"] or says["bad"] or says["repeated"]:
        wrong.append("%d launches made, %d recorded, summed or counted as dropped" % (made, counted))
    for what in wrong:
        print("not ok - " + what)
    return bool(wrong)


sys.exit(main())
