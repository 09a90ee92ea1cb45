"""What tests of this folder share: a line for each thing that is checked, what crash/count says, and
programs whose ways of launching are run under the library."""

import os
import re
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
B = os.path.abspath(os.environ.get("B", os.path.join(HERE, "..", "..", "build")))
LIBRARY = B + "/libgpuwait.so"
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


def made(text):
    """Launches by process as the program says them, sorted: ids mean nothing after exec or in another namespace."""
    return sorted(int(line.split()[2]) for line in text.splitlines())


def counts(trace):
    """post: per dump: launches, and those that were dropped or are missing and counted"""
    found = []
    for name in sorted(os.listdir(trace)) if os.path.isdir(trace) else []:
        if not name.endswith(".gwt"):
            continue
        launches, says = count(os.path.join(trace, name))
        assert not says["repeated"] and not says["bad"], says
        found.append((launches, says["dropped"] + says["missing"]))
    return found


class Ways:
    """A program of launches.h."""

    def __init__(self, name):
        self.program = B + "/crash/" + name

    def run(self, way, trace, preload=LIBRARY, cwd=None, setup=None, **environment):
        env = dict(os.environ, GPUWAIT_OUT=trace, GPUWAIT_RING="dump", **environment)
        env.pop("GPUWAIT", None)
        if preload:
            env["LD_PRELOAD"] = preload
        return subprocess.run([self.program] + way.split(), env=env, capture_output=True, text=True, timeout=60,
                              cwd=cwd or os.path.dirname(trace), preexec_fn=setup)

    def exactly(self, way, processes, said="", lost=False, rings=0, after=0, **how):
        """Each of `processes` has its recording; nothing is missing unless `lost`, and that is counted.
        `after` seconds the last of them has ended, too. `how`: as for run()."""
        with tempfile.TemporaryDirectory() as folder:
            p = self.run(way, folder + "/t", **how)
            if p.returncode == 77:
                print("# %s: not allowed here" % way)
                return
            time.sleep(after)
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
            check(way + ": rings left", len(left) == rings, left)
