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

from checks import LIBRARY, Ways, check, counts, failed, made

WAYS = Ways("processes")
PROGRAM, run = WAYS.program, WAYS.run


def exactly(way, processes, said="", lost=False, **environment):
    # who was replaced by exec() or ended by _exit() leaves its ring; so do events that cannot be written
    WAYS.exactly(way, processes, said, lost, way in ("exec", "_Fork", "clone") or "recording stops" in said,
                 after=0.2 if way == "daemon" else 0, **environment)


def directory_size(way, limit, **environment):
    with tempfile.TemporaryDirectory() as folder:
        p = run(way, folder + "/t", **environment)
        size = sum(os.path.getsize(folder + "/t/" + f) for f in os.listdir(folder + "/t"))
        found = counts(folder + "/t")
        check(way + ": exit code", p.returncode == 0 and not p.stderr, p.stderr)
        check("%s: %d bytes on disk" % (way, size), 0 < size <= limit, size)
        check(way + ": slots are used again", found and found[0][0] == made(p.stdout)[0], (found, p.stdout))


def small_disk(folder, mib=8):
    """A tmpfs, where that is allowed."""
    return subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dm" % mib, "none", folder], capture_output=True).returncode == 0


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


def filled_meanwhile():
    """The tmpfs of dump and ring is filled while the job runs: what had been written stays."""
    with tempfile.TemporaryDirectory() as folder:
        if not small_disk(folder, 24):
            print("# a disk that fills up: not allowed here")
            return
        try:
            env = dict(os.environ, GPUWAIT_OUT=folder + "/t", GPUWAIT_RING="dump", GPUWAIT_MIN_FREE="0", LD_PRELOAD=LIBRARY)
            job = subprocess.Popen([PROGRAM, "steady", "3000"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            deadline = time.time() + 20
            while time.time() < deadline and not any(sum(f) for f in counts(folder + "/t")):
                time.sleep(0.05)
            before = counts(folder + "/t")
            try:
                with open(folder + "/filler", "wb", buffering=0) as f:
                    while True:
                        f.write(bytes(4096))
            except OSError:
                pass
            out, err = job.communicate(timeout=60)
            found = counts(folder + "/t")
            check("filled meanwhile: exit code", job.returncode == 0, (job.returncode, err))
            check("filled meanwhile: said at most once", re.fullmatch("(gpuwait: (cannot write|no ring for a thread).*\n)?", err), err)
            check("filled meanwhile: what there was stays", len(found) == 1 and found[0][0] >= before[0][0] > 0, (before, found))
            check("filled meanwhile: all is recorded or counted", sum(found[0]) >= made(out)[0], (found, out))
        finally:
            subprocess.run(["umount", folder], check=True)


def little_shared_memory():
    """No room in /dev/shm: the ring goes where the dump is, or the other way round."""
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, GPUWAIT_OUT=folder + "/t", GPUWAIT_RING="auto", LD_PRELOAD=LIBRARY)
        p = subprocess.run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=64k none /dev/shm || exit 77; exec "$@"',
                            "sh", PROGRAM, "threads", "64"], env=env, capture_output=True, text=True)
        if not p.stdout:
            print("# a full /dev/shm: not allowed here")
            return
        found = counts(folder + "/t")
        check("no room in /dev/shm: exit code, nothing said", p.returncode == 0 and not p.stderr, (p.returncode, p.stderr))
        check("no room in /dev/shm: each launch once", found == [(made(p.stdout)[0], 0)], (found, p.stdout))


def peak_memory(way):
    """post: MiB"""
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, GPUWAIT_OUT=folder + "/t", GPUWAIT_RING="dump", LD_PRELOAD=LIBRARY)
        job = subprocess.Popen([PROGRAM] + way.split(), env=env, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(job.pid, 0)
        job.returncode = status
        check(way + ": exit code", status == 0, status)
        return used.ru_maxrss / 1024


def bounded_memory():
    """However many threads there have been, and however late the drain: 1,024 slots, whose rings are of 64
    KiB once there are many."""
    few, many = peak_memory("threads 8"), peak_memory("threads 6000")
    check("memory of 6,000 threads one after another: %.1f MiB, of 8 %.1f" % (many, few), many - few < 64, (few, many))


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
    filled_meanwhile()
    little_shared_memory()
    bounded_memory()
    return failed()


sys.exit(main())
