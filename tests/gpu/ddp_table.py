#!/usr/bin/env python3
"""Reports over several ranks beside CUPTI's figures: ddp_table.py FOLDER [MODE...]

FOLDER/MODE has dump/, and RANK/MODE.truth.json of each rank (ddp.py). For each rank of the range:
kernels executed per name, which must be equal; exposed communication and busy, ours and CUPTI's,
which must be within 2 points; and how long it waited in collectives for others to come, by the
referees of all ranks together. For each job its verdict on the range, beside the one expected, and
which rank is late. Exit 1 if anything is amiss. GPUWAIT: the tool.
"""

import json
import os
import subprocess
import sys

import compare

POINTS = 2.0
EXCESS_LEAST = 5.0  # of wall time exposed, below which reducing too often costs next to nothing
# mode: verdict that must come first, or None; verdicts that no twin may have; late rank, its cause
EXPECTED = {
    "ddp": (None, ("comm-wait", "comm-excess"), None, None),
    "accumulate": ("comm-excess", (), None, None),
    "no_sync": (None, ("comm-excess", "comm-wait"), None, None),
    "fsdp2": (None, ("comm-wait",), None, None),
    "slow_loader": ("comm-wait", (), "last", "host"),
    "loader": (None, ("comm-wait",), None, None),
    "late": ("comm-wait", (), "last", "host"),
    "punctual": (None, ("comm-wait",), None, None),
}
amiss = []


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def report(folder, *options):
    command = [os.environ["GPUWAIT"], "report", "--json", *options, folder]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise ValueError("%s: exit %d: %s" % (" ".join(command[1:]), run.returncode, run.stderr.strip()))
    return json.loads(run.stdout)


def waits(truths):
    """Per rank, the share of its range that its collectives waited for the last rank, in %."""
    rows = [t.get("collectives", []) for t in truths]
    if len({len(r) for r in rows}) != 1 or not rows[0]:
        return [None] * len(truths)
    last = [max(r[i][0] for r in rows) for i in range(len(rows[0]))]
    return [
        100.0 * sum(max(0, at - row[0]) for row, at in zip(r, last)) / (t["span_ms"] * 1e6)
        for r, t in zip(rows, truths)
    ]


def figure(value):
    return "n/a" if value is None else "%.2f" % value


def judge_rank(mode, rank, truth, process, wait):
    lines, _, _ = compare.match_kernels(
        truth["kernels"], {k["name"]: k["calls"] for d in process["devices"] for k in d["kernels"]}
    )
    for line in lines:
        amiss.append("%s rank %d: %s" % (mode, rank, line))
    if process["quality"]["dropped"]:
        amiss.append("%s rank %d: dropped %s" % (mode, rank, process["quality"]["dropped"]))
    time = process["devices"][0]["time"]
    pairs = [(truth["time"]["exposed_comm_pct"], time["exposed_comm_pct"])]
    pairs.append((truth["busy_pct"], None if time["idle_pct"] is None else 100 - time["idle_pct"]))
    for what, (theirs, ours) in zip(("exposed communication", "busy"), pairs):
        if ours is None or abs(ours - theirs) > POINTS:
            amiss.append("%s rank %d: %s: CUPTI %s %%, ours %s" % (mode, rank, what, figure(theirs), figure(ours)))
    print("%-12s %4d  %6d %-6s %7s %7s   %7s %7s   %7s" % (
        mode, rank, sum(truth["kernels"].values()), "equal" if not lines else "NOT", *map(figure, pairs[0]),
        *map(figure, pairs[1]), figure(wait)))


def judge_job(mode, truths, job):
    first, never, who, cause = EXPECTED[mode]
    ranks = len(truths)
    cost = sum(t["time"]["exposed_comm_pct"] for t in truths) / ranks
    if first == "comm-excess" and cost < EXCESS_LEAST:
        amiss.append("%s: only %.2f %% of communication is exposed: the recording has no excess to find" % (mode, cost))
        first, never = None, ("comm-excess",)
    found = [f["id"] for f in job["findings"]]
    late = [(entry["rank"], entry["cause"]) for entry in job["late"]]
    wanted = [] if who is None else [(ranks - 1, cause)]
    ok = bool(found) and (first is None or found[0] == first) and not set(found[:1]) & set(never) and late[:1] == wanted
    print("%-12s  job: %s; late: %s  expected: %s, %s  %s" % (
        mode, ", ".join(found) or "nothing",
        ", ".join("rank %s (%s)" % row for row in late) or "none",
        first or "not " + " nor ".join(never), "rank %d (%s)" % wanted[0] if wanted else "none late", "ok" if ok else "NOT OK"))
    if not ok:
        amiss.append("%s: verdict %s, late %s" % (mode, found[:1], late))


def judge(folder, mode):
    ranks = sorted(int(name) for name in os.listdir(folder) if name.isdigit())
    truths = [load(os.path.join(folder, str(r), mode + ".truth.json")) for r in ranks]
    dump = os.path.join(folder, "dump")
    ranged = report(dump, "--steps", "all", "--range", mode)
    by_rank = {p["rank"]: p for p in ranged["processes"]}
    for rank, truth, wait in zip(ranks, truths, waits(truths)):
        judge_rank(mode, rank, truth, by_rank[rank], wait)
    judge_job(mode, truths, report(dump, "--range", mode)["job"])


def main():
    folder, modes = sys.argv[1], sys.argv[2:] or list(EXPECTED)
    print("%-12s %4s  %13s %15s   %15s   %7s" % ("MODE", "RANK", "KERNELS", "EXPOSED COMM %", "BUSY %", "WAIT %"))
    print("%-12s %4s  %13s %7s %7s   %7s %7s   %7s" % ("", "", "", "CUPTI", "ours", "CUPTI", "ours", "CUPTI"))
    for mode in modes:
        try:
            judge(os.path.join(folder, mode), mode)
        except (OSError, ValueError, KeyError, IndexError, TypeError, ZeroDivisionError) as error:
            print("%-12s failed: %s %s" % (mode, type(error).__name__, error))
            amiss.append(mode + ": failed")
    print("all within bounds" if not amiss else "AMISS:\n  " + "\n  ".join(amiss))
    return bool(amiss)


if __name__ == "__main__":
    sys.exit(main())
