#!/usr/bin/env python3
"""A report's GPU time beside CUPTI's of the same operations: timing_table.py FOLDER NAME...

FOLDER holds NAME/ (the recording) or, for the ranges of one recording, copies/, and
NAME.truth.json. Prints a row for each and, below, what lies outside the bounds: busy 1.0 point,
bands 2, kernels 3 % or 0.3 us of every name with 1 % of GPU time (single-stream eager workloads),
graphs and copies 3 %.
"""

import json
import os
import subprocess
import sys

BANDS = ("over_100us_pct", "10_to_100us_pct", "under_10us_pct")
EAGER = ("lora_mlp", "llama_b1", "llama_b4", "llama_b16", "conv_net", "generate_tokens", "starved", "saturated", "host_gap")
beyond = []


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def report(folder, name, recording):
    run = subprocess.run(
        [os.environ["GPUWAIT"], "report", "--json", "--steps", "all", "--range", name, os.path.join(folder, recording)],
        capture_output=True, text=True, check=False,
    )
    if run.returncode:
        raise ValueError("report: exit %d: %s" % (run.returncode, run.stderr.strip()))
    return json.loads(run.stdout)["processes"][0]["devices"][0]


def kernels_off(name, truth, device):
    """How many of the names that matter, and which of them are off."""
    ours = {k["name"]: k["mean_us"] for k in device["kernels"]}
    total, matter, off = sum(truth["kernel_us"].values()), 0, 0
    for kernel, us in truth["kernel_us"].items():
        if us < 0.01 * total:
            continue
        matter += 1
        mean, got = us / truth["kernels"][kernel], ours.get(kernel)
        if got is None or abs(got - mean) > max(0.03 * mean, 0.3):
            off += 1
            beyond.append("%s: %s: CUPTI %.2f us, ours %s" % (
                name, kernel[:60], mean, "n/a" if got is None else "%.2f (%+.1f %%)" % (got, 100 * (got / mean - 1))))
    return matter, off


def graph_error(name, truth, device):
    launches = (truth.get("graphs") or {}).get("launches")
    if not launches or not device.get("graphs"):
        return "-"
    theirs = truth["graphs"]["us"] / launches
    ours = sum(g["total_ms"] for g in device["graphs"]) * 1e3 / sum(g["launches"] for g in device["graphs"])
    error = 100 * (ours / theirs - 1)
    if abs(error) > 3:
        beyond.append("%s: graph: CUPTI %.2f us, ours %.2f" % (name, theirs, ours))
    return "%+.1f" % error


def timeline_row(folder, name):
    truth = load(os.path.join(folder, name + ".truth.json"))
    device = report(folder, name, name)
    time = device["time"]
    busy, (low, high) = 100 - time["idle_pct"], time["busy_interval_pct"]
    bands = [device["gap_bands"][b] - truth["gap_bands"][b] for b in BANDS]
    inside = low <= truth["busy_pct"] <= high
    if abs(busy - truth["busy_pct"]) > 1:
        beyond.append("%s: busy %+.2f" % (name, busy - truth["busy_pct"]))
    if not inside or high - low > 3:
        beyond.append("%s: interval [%.2f, %.2f] for %.2f" % (name, low, high, truth["busy_pct"]))
    if max(map(abs, bands)) > 2:
        beyond.append("%s: bands %s" % (name, " ".join("%+.2f" % b for b in bands)))
    names = "%d/%d" % kernels_off(name, truth, device)[::-1] if name in EAGER else "-"
    print("%-16s %7.2f %7.2f %+6.2f  [%6.2f, %6.2f] %-3s %s  names off %-5s graph %s %%  %s, sampled %s %%, residual %s" % (
        name, truth["busy_pct"], busy, busy - truth["busy_pct"], low, high, "in" if inside else "OUT",
        " ".join("%+5.2f" % b for b in bands), names, graph_error(name, truth, device), time["method"],
        *("%.1f" % time[k] if time[k] is not None else "n/a" for k in ("sampled_share_pct", "anchor_residual_pct"))))


def copy_row(folder, name):
    truth = load(os.path.join(folder, name + ".truth.json"))
    direction = name.split("_")[0]
    device = report(folder, name, "copies")
    theirs = truth["copies"][direction]["bytes"] / truth["copy_us"][direction] / 1e3
    rows = [t for t in device["transfers"] if t["direction"] == direction and t["busy_ms"]]
    ours = sum(t["bytes"] for t in rows) / sum(t["busy_ms"] for t in rows) / 1e6
    if abs(ours / theirs - 1) > 0.03:
        beyond.append("%s: CUPTI %.2f GB/s, ours %.2f" % (name, theirs, ours))
    print("%-16s %8.2f GB/s %8.2f %+6.2f %%" % (name, theirs, ours, 100 * (ours / theirs - 1)))


def main():
    folder, names = sys.argv[1], sys.argv[2:]
    if not names:
        names = sorted(f[: -len(".truth.json")] for f in os.listdir(folder) if f.endswith(".truth.json"))
    for name in names:
        try:
            (copy_row if name.split("_")[0] in ("H2D", "D2H", "D2D") else timeline_row)(folder, name)
        except (OSError, ValueError, KeyError, IndexError, TypeError, ZeroDivisionError) as error:
            print("%-16s failed: %s %s" % (name, type(error).__name__, error))
            beyond.append(name + ": failed")
    print("within bounds" if not beyond else "BEYOND BOUNDS:\n  " + "\n  ".join(beyond))
    return bool(beyond)


if __name__ == "__main__":
    sys.exit(main())
