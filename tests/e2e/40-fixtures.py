#!/usr/bin/env python3
"""Recordings of real PyTorch jobs, replayed: every count and byte equals what CUPTI saw of
the same operations in the same run (NAME.truth.json), busy time and gaps come near it, and
changing any number of a truth file is noticed."""

import copy
import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "..", "fixtures")
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "..", "gpu"))

import compare  # noqa: E402

# What a report is compared with number by number; the rest of a truth file is under its seal.
COMPARED = ("kernels", "copies", "memset_calls", "peak_allocated_bytes", "nccl")


def report(path, name):
    run = subprocess.run(
        [os.environ["GPUWAIT"], "report", "--json", "--steps", "all", "--range", name, path],
        capture_output=True, text=True, check=False,
    )
    if run.returncode:
        sys.exit("%s: exit %d: %s" % (path, run.returncode, run.stderr))
    return json.loads(run.stdout)


def numbers(value, at=()):
    """Paths of all numbers below a value."""
    if isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        yield at
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from numbers(item, at + (key,))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from numbers(item, at + (index,))


def changed(truth, path):
    truth = copy.deepcopy(truth)
    inner = truth
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] += 1
    return truth


def check_time(truth, got):
    """Busy time and gaps against CUPTI's, where the recording has timing samples. CUPTI's busy
    share lies inside the stated interval in all. Jobs that ran for seconds, one at a time, with
    time for the sampler (busy.py) come within 1 point, and 2 points a band; the others are over
    in milliseconds and ran seven at once on one GPU."""
    device = got["processes"][0]["devices"][0]
    time = device["time"]
    if time["method"] != "sampled":
        return None, []
    busy = 100 - time["idle_pct"]
    low, high = time["busy_interval_pct"]
    lines = []
    timed = truth["how"]["script"] == "busy.py"
    if timed and abs(busy - truth["busy_pct"]) > 1:
        lines.append("busy: CUPTI %.2f, report %.2f" % (truth["busy_pct"], busy))
    if not low <= truth["busy_pct"] <= high:
        lines.append("busy: CUPTI %.2f, outside the stated %.2f to %.2f" % (truth["busy_pct"], low, high))
    for band, share in truth["gap_bands"].items():
        if timed and abs(device["gap_bands"][band] - share) > 2:
            lines.append("gaps %s: CUPTI %.2f, report %.2f" % (band, share, device["gap_bands"][band]))
    return busy - truth["busy_pct"], lines


def check(path):
    with open(path[: -len(".gwt")] + ".truth.json", encoding="utf-8") as f:
        truth = json.load(f)
    got = report(path, truth["range"])
    lines, result = compare.compare(truth, got)
    busy_error, time_lines = check_time(truth, got)
    lines += time_lines
    for line in lines:
        print("  %s: %s" % (os.path.basename(path), line))
    tried = unnoticed = 0
    unsealed = {key: truth[key] for key in truth if key != "seal"}
    for at in numbers(truth):
        if at[0] == "how":
            continue
        tried += 1
        subject = unsealed if at[0] in COMPARED else truth
        if not compare.compare(changed(subject, at), got)[0]:
            unnoticed += 1
            print("  %s: a changed %s goes unnoticed" % (os.path.basename(path), at))
    print(
        "%s %-14s %5d kernels, %3d names, %3d copies, %3d memsets; busy %s; %4d changed numbers noticed"
        % ("not ok" if lines or unnoticed else "ok    ", truth["range"], result["kernels"], result["names"],
           result["copies"], result["memsets"], "n/a" if busy_error is None else "%+.2f" % busy_error,
           tried - unnoticed)
    )
    return bool(lines or unnoticed)


def main():
    paths = sorted(p for p in glob.glob(os.path.join(FIXTURES, "*.gwt")) if os.path.exists(p[:-4] + ".truth.json"))
    if not paths:
        sys.exit("no fixtures found in " + FIXTURES)
    sys.exit(any([check(path) for path in paths]))


if __name__ == "__main__":
    main()
