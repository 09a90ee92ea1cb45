#!/usr/bin/env python3
"""What a program may do with its process: close and reuse its first descriptors, block all signals or get
them by the thousand, call from a handler, from a small stack, from ends of threads and of the process, fork
or exec beside threads, change its root, be short of memory and files. It does what it does without the library,
and each launch is recorded, or counted as dropped."""

import json
import os
import resource
import subprocess
import sys
import tempfile

from checks import B, LIBRARY, Ways, check, counts, failed, made

WAYS = Ways("habits")


def in_handler():
    """Calls that interrupt the library's own work are counted apart, by each level that they come by."""
    with tempfile.TemporaryDirectory() as folder:
        p = WAYS.run("in-handler", folder + "/t")
        check("in-handler: exit code, nothing said", p.returncode == 0 and not p.stderr, (p.returncode, p.stderr))
        info = subprocess.run([B + "/gpuwait", "info", folder + "/t"], capture_output=True, text=True).stdout
        number = lambda what: sum(int(line.split()[0].replace(",", "")) for line in info.splitlines() if line.endswith(what))
        report = subprocess.run([B + "/gpuwait", "report", "--json", folder + "/t"], capture_output=True, text=True).stdout
        found = json.loads(report)["processes"][0]["launches"]["calls"] + number("  events dropped because a ring was full")
        nested, all_made = number("  calls made by a signal handler inside a record"), made(p.stdout)[0]
        check("in-handler: recorded, dropped or counted", all_made - nested <= found <= all_made, (found, nested, all_made))


def odd_words():
    """Arguments and directories of any bytes, and by the megabyte."""
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder.encode(), b"t\xff\xfe \n\x1b[31m")
        words = [b"\xff\xfe", b"\x1b]0;title\x07", "\u202e".encode(), b""] + [b"x" * 100000] * 10
        env = dict(os.environb)
        env.update({b"GPUWAIT_OUT": trace, b"LD_PRELOAD": LIBRARY.encode(), b"\xff": b"\xfe", b"LONG": b"y" * 100000})
        p = subprocess.run([WAYS.program.encode(), b"plain", b"100"] + words, env=env, capture_output=True)
        check("odd words: exit code, nothing said", p.returncode == 0 and not p.stderr, p.stderr)
        report = subprocess.run([B.encode() + b"/gpuwait", b"report", b"--json", trace], capture_output=True)
        process = json.loads(report.stdout)["processes"][0]
        check("odd words: each launch", process["launches"]["calls"] == 100, process["launches"])
        check("odd words: the command", "habits plain 100" in process["command"], process["command"])
        text = subprocess.run([B.encode() + b"/gpuwait", b"report", trace], capture_output=True)
        check("odd words: no escapes", b"\x1b" not in text.stdout + text.stderr, text.stdout[:500])


def main():
    for way in ("lowest", "blocks-all", "small-stack 16", "keys 1200", "main-leaves", "fork-beside-ends 30", "undumpable", "locked",
                "cancelled-at-start"):
        WAYS.exactly(way, 1)
    for way in ("closed-stdio", "profiled"):
        WAYS.exactly(way, 1, lost=True)
    in_handler()
    for late in ({}, {"LATE": "1"}):  # calls of a library's destructor that come after all is written
        WAYS.exactly("late", 1, **late)
    # by a path that does not lead there any more
    WAYS.exactly("change-directory", 1, preload="./libgpuwait.so", cwd=B)
    WAYS.exactly("exit-beside-fork", 1)
    WAYS.exactly("exec-in-thread", 2, rings=1)
    WAYS.exactly("change-root 1000", 1, rings=1)
    WAYS.exactly("change-root 600000", 1, lost=True, rings=1, GPUWAIT_MAX="1M")
    WAYS.exactly("fewer-files", 1, "gpuwait: no ring for a thread: .*", lost=True)
    WAYS.exactly("little-data 100", 0, "gpuwait: cannot .*: Cannot allocate memory; nothing is recorded", lost=True)
    WAYS.exactly("little-data 30000", 1, lost=True)
    unlimited = lambda: resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY,) * 2)
    WAYS.exactly("plain 1000", 1, setup=unlimited)
    WAYS.exactly("few-threads", 0, "gpuwait: cannot .*: Resource temporarily unavailable; nothing is recorded", lost=True)
    WAYS.exactly("little-locked", 0, "gpuwait: cannot .*: Resource temporarily unavailable; nothing is recorded", lost=True)
    odd_words()
    return failed()


sys.exit(main())
