#!/usr/bin/env python3
"""A report takes less than 256 MiB of memory, whatever a recording under a mebibyte makes it
remember: half a million steps, as many kernels, streams, graphs, blocks, samples as fit, or all of
them at once (huge.c)."""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
B = os.path.abspath(os.environ.get("B", os.path.join(HERE, "..", "..", "build")))
LIMIT = 256  # MiB
# Events that fill a mebibyte, or, where millions fit, that fill what is remembered of them.
COUNTS = {
    "steps": 3100000, "ranges": 1000000, "nested": 1000000, "strings": 370000, "signatures": 250000, "streams": 400000,
    "graphs": 300000, "allocations": 6000000, "allocator": 1000000, "events": 1000000, "collectives": 420000,
    "copies": 1000000, "lost": 1000000, "samples": 500000, "stacks": 420000, "mixed": 2620000, "threads": 100000,
    "alongside": 3100000,
}


def report(dump):
    """post: exit code, MiB"""
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.execv(B + "/gpuwait", ["gpuwait", "report", "--json", dump])
    _, status, used = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), used.ru_maxrss / 1024


def main():
    libraries = subprocess.run(["ldd", B + "/gpuwait"], capture_output=True, text=True).stdout
    if "san.so" in libraries:
        print("built with a sanitizer, which has memory of its own")
        return 77
    kinds = subprocess.run([B + "/crash/huge"], capture_output=True, text=True, check=True).stdout.split()
    bad = set(kinds) ^ set(COUNTS)
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            dump = folder + "/x.gwt"
            subprocess.run([B + "/crash/huge", dump, kind, str(COUNTS[kind])], check=True)
            size = os.path.getsize(dump)
            code, mib = report(dump)
        good = code == 0 and size < 1 << 20 and mib < LIMIT
        if not good:
            bad.add(kind)
        print("%s - %s: %d events in %d bytes: exit %d, %d MiB" % ("ok" if good else "not ok", kind, COUNTS[kind], size, code, mib))
    return len(bad) > 0


sys.exit(main())
