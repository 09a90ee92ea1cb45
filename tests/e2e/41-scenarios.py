#!/usr/bin/env python3
"""Recordings of known ailments on an H200 (tests/gpu/scenarios), cut to the beginning of their
loops: the first finding is the ailment, its cured twin does not name it, the guilty line of the
program is named, and there are as many steps as the loop made. Of loops whose beginning differs
from the rest (r10, r18: each new length loads code) there is no cut that shows it."""

import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "..", "fixtures", "scenarios")
bad = 0


def check(name, good, what):
    global bad
    if not good:
        print("not ok - %s: %s" % (name, what))
        bad += 1


def report(path):
    run = subprocess.run(
        [os.environ["GPUWAIT"], "report", "--json", "--range", "loop", path], capture_output=True, text=True, check=False
    )
    if run.returncode:
        sys.exit("%s: exit %d: %s" % (path, run.returncode, run.stderr))
    return json.loads(run.stdout)


def judge(name, truth, got):
    process = got["processes"][0]
    ids = [f["id"] for f in process["findings"]]
    shares = {f["id"]: f["share_pct"] for f in process["findings"]}
    expected, forbidden = truth.get("expected_findings"), truth.get("forbidden_findings") or []
    if expected:
        check(name, ids[:1] == expected[:1], "found %s, expected %s" % (ids, expected))
        check(name, set(expected) <= set(ids), "%s not among %s" % (set(expected) - set(ids), ids))
    allowed = set(ids) if truth.get("may_keep_half") else set()
    named = [f for f in forbidden if f in ids and f not in allowed]
    check(name, not named, "cured, and yet named: %s (%s)" % (named, shares))
    guilty = truth.get("guilty")
    if guilty and expected:
        where = [f.get("where") or "" for f in process["findings"] if f["id"] == expected[0]]
        check(name, where and any(g in where[0] for g in guilty), "blames %s, guilty is %s" % (where, guilty))
    for d in process["devices"]:
        time = d["time"]
        if time["idle_pct"] is None or time["idle"]["launch_pct"] is None:
            continue
        check(name, abs(sum(time["idle"].values()) - time["idle_pct"]) < 1e-6 * 100, "idle classes do not add up")
        parts = time["compute_pct"] + time["exposed_comm_pct"] + time["exposed_copy_pct"] + time["idle_pct"]
        check(name, abs(parts - 100) < 1e-6 * 100, "time does not add up: %r" % parts)
    steps, loop = process["steps"], (truth.get("steps") or {}).get("loop")
    if loop and steps and (steps.get("confidence") or 0) >= 0.5:
        check(name, abs(steps["all"] - loop) <= 1, "%d steps, the loop made %d" % (steps["all"], loop))


names = sorted(os.path.basename(p)[:-4] for p in glob.glob(os.path.join(FOLDER, "*.gwt")))
for name in names:
    with open(os.path.join(FOLDER, name + ".truth.json"), encoding="utf-8") as f:
        judge(name, json.load(f), report(os.path.join(FOLDER, name + ".gwt")))
print("%d recordings, %d amiss" % (len(names), bad))
sys.exit(bad > 0 or len(names) < 40)
