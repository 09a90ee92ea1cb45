#!/usr/bin/env python3
"""What run.py of the scenarios makes of reports: rows right and wrong, by hand."""

import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("run", os.path.join(HERE, "scenarios", "run.py"))
run = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run)
failed = 0


def truth(expected=(), forbidden=(), may_keep=False, step_ms=10.0, guilty=()):
    return {
        "expected_findings": list(expected), "forbidden_findings": list(forbidden), "may_keep_half": may_keep, "guilty": list(guilty),
        "steps": {"loop": 100}, "step_ms": {"mean": step_ms}, "per_step": {"kernels": [7, 7, 8], "gpu_us": [4000.0, 5000.0, 6000.0]},
    }


def report(findings, all_steps=100, kernels=7.0, where=None):
    found = [{"id": i, "share_pct": share, "where": where} for i, share in findings]
    return {
        "processes": [{
            "launches": {"kernels": 700}, "verdict": findings[0][0], "findings": found,
            "steps": {"count": 90, "all": all_steps, "kernels": kernels, "confidence": 0.9},
            "devices": [{"time": {"idle_pct": 40.0}}],
        }]
    }


def row(made, fixed, known, told):
    case = run.Case("r99", "a", fixed, 1)
    case.row.update(run.from_truth(known))
    case.row.update(run.from_report(told, known))
    made.append(case)
    return case.row


def wants(what, wanted, got):
    global failed
    if wanted != got:
        failed += 1
        print("not ok - %s: wanted %r, got %r" % (what, wanted, got))


def judged(positive, twin=None, known=None, known_twin=None):
    """ok of the positive and of the twin."""
    made = []
    row(made, False, known or truth(["sync-storm"]), positive)
    if twin:
        row(made, True, known_twin or truth(forbidden=["sync-storm"]), twin)
    run.judge(made)
    return [c.row["ok"] for c in made]


wants("the verdict is the expected one", [True], judged(report([("sync-storm", 20.0), ("launch-bound", 30.0)])))
wants("it must be the first", [False], judged(report([("launch-bound", 30.0), ("sync-storm", 20.0)])))
both = truth(["gpu-bound", "recompute"])
wants("the others must be there", [False], judged(report([("gpu-bound", None)]), known=both))
wants("in whatever place", [True], judged(report([("gpu-bound", None), ("x", 1.0), ("recompute", 19.0)]), known=both))
wants("a twin without it", [True, True], judged(report([("sync-storm", 20.0)]), report([("healthy", None)])))
wants("a twin that names it", [True, False], judged(report([("sync-storm", 20.0)]), report([("sync-storm", 0.5)])))
# 20 % of 10 ms are 2 ms a step, half of them 1 ms: 11 % of 8 ms, but not of 10 ms
for step_ms, ok in ((8.0, True), (10.0, False)):
    kept = truth(forbidden=["sync-storm"], may_keep=True, step_ms=step_ms)
    wants("half of its time in steps of %g ms" % step_ms, [True, ok],
          judged(report([("sync-storm", 20.0)]), report([("sync-storm", 11.0)]), known_twin=kept))
alone = []
row(alone, False, truth(["input-cpu"], guilty=["r99.py:12"]), report([("input-cpu", 50.0)], 99, 8.0, "r99.py:13 step"))
run.judge(alone)
got = alone[0].row
wants("counts and line", (True, True, False, False), (got["ok"], got["steps_ok"], got["kernels_ok"], got["line_ok"]))
wants("steps of one kind", {7}, run.typical([7, 7, 8]))
wants("two kinds that take turns", {5, 7}, run.typical([5, 7, 5, 7, 5]))
wants("one step", {5}, run.typical([5]))
wants("busy, and the referee's GPU time of a step", (60.0, 5.0), (got["busy"], got["gpu_ms"]))
print("%s: %d wrong" % ("FAIL" if failed else "PASS", failed))
sys.exit(failed > 0)
