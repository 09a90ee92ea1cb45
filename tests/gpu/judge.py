"""What the judges of recorded jobs share: a line for each check, a job's outputs, its report.

A job's folder has bare.out, .err, .exit of it without the recorder, recorded.out ... with it, and
dump, the recording. GPUWAIT: the tool.
"""

import json
import os
import struct
import subprocess

bad = 0


def check(name, good, why=""):
    global bad
    bad += not good
    print("%s - %s%s" % ("ok" if good else "not ok", name, "" if good else ": %s" % (why,)))


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def noted(path):
    """What common.Noted left there."""
    with open(path, "rb") as f:
        return struct.unpack("<Q", f.read())[0]


def report(folder, *options):
    return subprocess.run([os.environ["GPUWAIT"], "report", *options, folder + "/dump"], capture_output=True, text=True)


def processes(folder, *options):
    got = report(folder, "--json", "--steps", "all", *options)
    check("report %s" % " ".join(options), got.returncode == 0, got.stderr)
    return json.loads(got.stdout)["processes"] if got.returncode == 0 else []


def same_as_bare(folder, wanted):
    """post: the lines of both outputs, sorted"""
    exits = [text_of("%s/%s.exit" % (folder, run)).strip() for run in ("bare", "recorded")]
    check("exit code", exits[0] == exits[1], exits)
    check("exit code is the job's", exits[1] == wanted, exits)
    lines = [sorted(text_of("%s/%s.out" % (folder, run)).splitlines()) for run in ("bare", "recorded")]
    check("output", lines[0] == lines[1], lines)
    return lines[1]
