#!/usr/bin/env python3
"""Print run_all.sh's table from its folder of results; exit 1 if anything is amiss."""

import json
import os
import sys

COLUMNS = (
    "workload", "mode", "kernels", "names", "norm", "mismatch", "copies", "memsets", "peak",
    "holes", "dropped", "driver%", "bare=", "stdout=", "exit",
)


def read(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read().strip()
    except OSError:
        return ""


def row(folder, name):
    status = dict(line.split("=", 1) for line in read(os.path.join(folder, name, "status")).splitlines() if "=" in line)
    try:
        found = json.loads(read(os.path.join(folder, name, "result.json")))
    except ValueError:
        found = {}

    def figure(key):
        value = found.get(key)
        return "-" if value is None else "%.1f" % value if isinstance(value, float) else str(value)

    peak = {True: "ok", False: "NO", None: "n/a"}[found.get("peak_ok")] if found else "-"
    cells = [
        name, status.get("mode", "-"), figure("kernels"), figure("names"), figure("names_normalised"),
        figure("mismatches"), figure("copies"), figure("memsets"), peak, figure("holes"), figure("dropped"),
        figure("driver_only_pct"), status.get("bare_same", "-"), status.get("stdout_same", "-"), status.get("exits", "-"),
    ]
    good = status.get("bare_same") == status.get("stdout_same") == "yes" and found.get("mismatches") == 0
    if status.get("skipped"):
        return cells[:1] + ["skipped: " + status["skipped"]], True
    return cells, good


def main(folder, names):
    rows = [row(folder, name) for name in names]
    full = [cells for cells, _ in rows if len(cells) > 2]
    widths = [max(len(cells[i]) for cells in full + [list(COLUMNS)]) for i in range(len(COLUMNS))]
    for cells in [list(COLUMNS)] + [cells for cells, _ in rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip())
    bad = [cells[0] for cells, good in rows if not good]
    print("all equal" if not bad else "NOT EQUAL: " + " ".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
