"""Rows as bench.h prints them, and figures of noisy runs."""
import json
import os
import statistics


def row(name, value, unit, ratio=None, of=None):
    print("%-46s %12.2f %-14s" % (name, value, unit)
          + ("" if of is None else " %8.2f x %s" % (ratio, of)), flush=True)
    path = os.environ.get("BENCH_ROWS")
    if path:
        line = {"name": name, "value": float("%.6g" % value), "unit": unit}
        if of is not None:
            line.update(ratio=float("%.6g" % ratio), of=of)
        with open(path, "a") as f:
            f.write(json.dumps(line, separators=(",", ":")) + "\n")


def median(values):
    return statistics.median(values)


def interval(values):
    """Of the median, 95 %, by order statistics."""
    v = sorted(values)
    half = 0.98 * len(v) ** 0.5
    return v[max(0, int(len(v) / 2 - half))], v[min(len(v) - 1, int(len(v) / 2 + half))]
