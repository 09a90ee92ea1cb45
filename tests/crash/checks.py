"""What tests of this folder share: a line for each thing that is checked, and what crash/count says."""

import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
B = os.path.abspath(os.environ.get("B", os.path.join(HERE, "..", "..", "build")))
bad = 0


def check(name, good, why=""):
    global bad
    bad += not good
    print("%s - %s%s" % ("ok" if good else "not ok", name, "" if good else ": %s" % (why,)))


def failed():
    return bad > 0


def counts_in(text):
    """post: launches by thread; what else is told of the recording"""
    words = text.split()
    at = words.index("launches")
    return list(map(int, words[at + 1 :])), dict(zip(words[:at:2], map(int, words[1:at:2])))


def count(dump):
    """post: launches; what else is told of the recording"""
    p = subprocess.run([B + "/crash/count", dump], capture_output=True, text=True)
    assert p.returncode == 0, p.stderr
    launches, says = counts_in(p.stdout)
    return sum(launches), says
