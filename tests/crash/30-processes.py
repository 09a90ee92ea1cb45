#!/usr/bin/env python3
"""Processes and threads that come and go in every way, and what a process may be short of: each
process that launches has a recording of its own with each of its launches once, recorded or
counted as dropped; output and exit code are what they are without the library.
"""

import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
B = os.path.abspath(os.environ.get("B", os.path.join(HERE, "..", "..", "build")))
PROGRAM, LIBRARY = B + "/crash/processes", B + "/libgpuwait.so"

bad = 0


def check(name, good, why=""):
    global bad
    bad += not good
    print("%s - %s%s" % ("ok" if good else "not ok", name, "" if good else ": %s" % (why,)))


def made(text):
    """Launches by process as the program says them, sorted: ids mean nothing after exec or in another namespace."""
    return sorted(int(line.split()[2]) for line in text.splitlines())


def counts(trace):
    """post: per dump: launches, and those that were dropped or are missing and counted"""
    found = []
    for name in sorted(os.listdir(trace)) if os.path.isdir(trace) else []:
        if not name.endswith(".gwt"):
            continue
        p = subprocess.run([B + "/crash/count", os.path.join(trace, name)], capture_output=True, text=True)
        assert p.returncode == 0, p.stderr
        words = p.stdout.split()
        at = words.index("launches")
        says = dict(zip(words[:at:2], map(int, words[1:at:2])))
        assert not says["repeated"] and not says["bad"], p.stdout
        found.append((sum(map(int, words[at + 1 :])), says["dropped"] + says["missing"]))
    return found


def run(way, trace, preload=LIBRARY, **environment):
    env = dict(os.environ, GPUWAIT_OUT=trace, GPUWAIT_RING="dump", **environment)
    env.pop("GPUWAIT", None)
    if preload:
        env["LD_PRELOAD"] = preload
    return subprocess.run([PROGRAM] + way.split(), env=env, capture_output=True, text=True, timeout=60)


def exactly(way, processes, said="", lost=False, **environment):
    """Each of `processes` has its recording; nothing is missing unless `lost`, and that is counted."""
    with tempfile.TemporaryDirectory() as folder:
        p = run(way, folder + "/t", **environment)
        if p.returncode == 77:
            print("# %s: not allowed here" % way)
            return
        time.sleep(0.2 if way == "daemon" else 0)
        found = counts(folder + "/t")
        left = [f for f in os.listdir(folder + "/t") if f.endswith(".ring")] if found else []
        want = made(p.stdout)
        check(way + ": exit code", p.returncode == 0, (p.returncode, p.stderr))
        check(way + ": what is said", re.fullmatch(said, p.stderr.strip()), p.stderr)
        check(way + ": recordings", len(found) == processes, (found, want))
        if lost:
            check(way + ": lost is counted", processes == 0 or sum(f[0] + f[1] for f in found) >= sum(want), (found, want))
        else:
            check(way + ": each launch once", sorted(f[0] for f in found) == want and not any(f[1] for f in found),
                  (found, want))
        # who was replaced by exec() or ended by _exit() leaves its ring; so do events that cannot be written
        check(way + ": rings left", len(left) == (way in ("exec", "_Fork", "clone") or "recording stops" in said), left)


def directory_size(way, limit, **environment):
    with tempfile.TemporaryDirectory() as folder:
        p = run(way, folder + "/t", **environment)
        size = sum(os.path.getsize(folder + "/t/" + f) for f in os.listdir(folder + "/t"))
        found = counts(folder + "/t")
        check(way + ": exit code", p.returncode == 0 and not p.stderr, p.stderr)
        check("%s: %d bytes on disk" % (way, size), 0 < size <= limit, size)
        check(way + ": slots are used again", found and found[0][0] == made(p.stdout)[0], (found, p.stdout))


def small_disk(folder):
    """A tmpfs of 8 MiB, where that is allowed."""
    return subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", folder], capture_output=True).returncode == 0


def full_disk():
    with tempfile.TemporaryDirectory() as folder:
        if not small_disk(folder):
            print("# a full disk: not allowed here")
            return
        try:
            for filler, way in ((8 << 20, "plain 1000"), (1 << 20, "plain 1000"), (0, "crowd 64")):
                with open(folder + "/filler", "wb") as f:
                    try:
                        f.write(bytes(filler))
                        f.flush()
                    except OSError:
                        pass
                p = run(way, folder + "/t", GPUWAIT_MIN_FREE="0")
                what = "%d of 8 MiB taken, %s" % (filler >> 20, way)
                check(what + ": exit code", p.returncode == 0 and made(p.stdout), p.stderr)
                lines = p.stderr.splitlines()
                check(what + ": each said once", len(lines) == len({line[:20] for line in lines}) <= 2, p.stderr)
                check(what + ": by whom", all(line.startswith("gpuwait: ") for line in lines), p.stderr)
                found = counts(folder + "/t")
                check(what + ": said or counted", "nothing is recorded" in p.stderr or sum(sum(f) for f in found) >= made(p.stdout)[0],
                      (found, p.stdout, p.stderr))
                subprocess.run(["rm", "-rf", folder + "/t", folder + "/filler"], check=True)
        finally:
            subprocess.run(["umount", folder], check=True)


def main():
    for way, processes in (
        ("plain", 1), ("before", 2), ("after 3", 4), ("workers 4", 1), ("_Fork", 2), ("clone", 2), ("namespace 3", 4),
        ("vfork", 2), ("spawn", 2), ("exec", 2), ("together 8", 8), ("daemon", 2), ("cancelled 6", 1),
    ):
        exactly(way, processes)
    exactly("threads 64", 1, LD_BIND_NOW="1")
    exactly("crowd 128", 1)
    # 2,000 threads, never more than 8 at once: 8 rings of 2 MiB, some more for slots not yet free
    directory_size("threads 2000", 24 << 20)
    with tempfile.TemporaryDirectory() as folder:
        p = run("exit-beside", folder + "/t")
        check("exit beside threads: exit code", p.returncode == 0 and not p.stderr, p.stderr)
        check("exit beside threads: recorded", sum(f[0] for f in counts(folder + "/t")) > 0)

    exactly("few-files 3", 0, "gpuwait: cannot make a ring file for .*; nothing is recorded", lost=True)
    exactly("few-files 6", 1)
    exactly("small-files 100000", 0, "gpuwait: cannot make a ring file for .*: File too large; nothing is recorded", lost=True)
    exactly("small-files 6000000", 1, "gpuwait: no ring for a thread: File too large; its calls are counted, not recorded", lost=True)
    exactly("little-memory 4", 0, "gpuwait: cannot make a ring file for .*; nothing is recorded", lost=True)
    exactly("little-memory 30", 1, "(gpuwait: no ring for a thread: .*; its calls are counted, not recorded)?", lost=True)
    # a file of the program's own has the number of each of ours that it closed: not a byte is written into it
    exactly("closes-all", 1, "gpuwait: cannot write .*: Bad file descriptor; the job goes on, recording stops", lost=True)
    full_disk()
    return bad > 0


sys.exit(main())
