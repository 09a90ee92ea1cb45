#!/usr/bin/env python3
"""Compare a referee's truth file with `gpuwait report --json --steps all --range NAME`, exactly.

    compare.py TRUTH.json REPORT.json [--result RESULT.json] [--allow-empty]

Kernels executed per name, copies and bytes per direction, memsets, PyTorch's peak,
NCCL calls where the truth has them; no holes, nothing dropped.  A line per mismatch,
then a verdict.  Exit 0 equal, 1 not equal, 2 unreadable input.

Names.  Both sides are demangled by the same code in two builds (libiberty's
cp-demangle here, libstdc++'s copy of it in Kineto and in truth.py), so they are
compared as they are first.  Names left over on both sides are normalised (see
normalise) and paired one to one.  Two names of one side that normalise to the same
text are never merged: they are reported as a collision, which is a mismatch.
"""

import argparse
import json
import re
import sys

import truth as truth_module

DIRECTIONS = ("H2D", "D2H", "D2D")
COLLECTIVES = {"allreduce", "allgather", "reducescatter", "broadcast", "reduce", "send", "recv", "alltoall", "gather", "scatter"}

INTEGER_CASTS = {
    "unsigned int": "u", "long": "l", "unsigned long": "ul",
    "long long": "ll", "unsigned long long": "ull", "int": "",
}


def rewrite_quoted(name, word, form):
    """LLVM's 'lambda0'(int) -> {lambda(int)#2}, 'unnamed' -> {unnamed type#1}."""
    out, at = [], 0
    for found in re.finditer(r"'%s(\d*)'" % word, name):
        if found.start() < at:
            continue
        number = int(found.group(1)) + 2 if found.group(1) else 1
        end, arguments = found.end(), ""
        if form == "lambda":
            depth, end = 0, found.end()
            while end < len(name):
                depth += {"(": 1, ")": -1}.get(name[end], 0)
                end += 1
                if depth == 0:
                    break
            arguments = rewrite_quoted(name[found.end():end], word, form)
        out += [name[at:found.start()], "{%s%s#%d}" % (form, arguments, number)]
        at = end
    return "".join(out) + name[at:]


def normalise(name):
    """One spelling for what demanglers write differently; nothing that tells kernels apart goes."""
    name = re.sub(r"( \[clone [^\]]*\])+$", "", name.strip())
    name = rewrite_quoted(name, "lambda", "lambda")
    name = rewrite_quoted(name, "unnamed", "unnamed type")
    name = re.sub(r"<unnamed>|\{anonymous\}|'anonymous namespace'", "(anonymous namespace)", name)
    name = re.sub(r"\(bool\)([01])\b", lambda m: ("false", "true")[int(m[1])], name)
    for cast, suffix in INTEGER_CASTS.items():
        name = re.sub(r"\(%s\)(-?\d+)\b" % cast, r"\g<1>" + suffix, name)
    name = re.sub(r"\b(\d+)([uUlL]+)\b", lambda m: m[1] + m[2].lower(), name)
    name = re.sub(r"\s+", " ", name)
    name = re.sub(r"\s*([<>,*&()])\s*", r"\1", name)
    return name


def match_kernels(want, got):
    """Mismatch lines, the number of names that needed normalising, and of collisions."""
    lines = []
    for name in sorted(want.keys() & got.keys()):
        if want[name] != got[name]:
            lines.append("kernel %s: referee %s, report %s" % (name, want[name], got[name]))
    keyed = []
    for side in (want.keys() - got.keys(), got.keys() - want.keys()):
        by_key = {}
        for name in sorted(side):
            by_key.setdefault(normalise(name), []).append(name)
        keyed.append(by_key)
    left, right = keyed
    # A leftover that normalises to a name already matched raw must not hide beside it.
    settled = {normalise(name) for name in want.keys() & got.keys()}
    normalised = collisions = 0
    for key in sorted(left.keys() | right.keys()):
        referee, report = left.get(key, []), right.get(key, [])
        if len(referee) > 1 or len(report) > 1 or key in settled:
            collisions += 1
            lines.append("names that normalise alike: referee %s, report %s" % (referee, report))
        elif not report:
            lines.append("kernel %s: referee %s, report none" % (referee[0], want[referee[0]]))
        elif not referee:
            lines.append("kernel %s: referee none, report %s" % (report[0], got[report[0]]))
        else:
            normalised += 1
            if want[referee[0]] != got[report[0]]:
                lines.append("kernel %s: referee %s, report %s" % (referee[0], want[referee[0]], got[report[0]]))
    return lines, normalised, collisions


def plain_op(op):
    op = re.sub(r"^nccl|_", "", op.lower() if op.startswith("nccl") else op).lower()
    op = re.sub(r"(intotensor|tensor)$", "", op)
    return "broadcast" if op == "bcast" else op


def nccl_totals(rows):
    totals = {}
    for row in rows:
        total = totals.setdefault(plain_op(row["op"]), [0, 0])
        total[0] += row["calls"]
        total[1] += row["bytes"]
    return {op: tuple(total) for op, total in totals.items() if op in COLLECTIVES}


def collect(report):
    """Sum a report over its processes and their devices."""
    total = {
        "kernels": {}, "copies": {d: {"calls": 0, "bytes": 0} for d in DIRECTIONS}, "memset_calls": 0,
        "peak": None, "holes": 0, "dropped": 0, "driver_only_pct": None, "nccl": [], "problems": [],
    }
    busiest = -1
    for process in report.get("processes", []):
        quality = process.get("quality", {})
        for key in ("holes", "dropped"):
            if quality.get(key) is None:
                total["problems"].append("quality.%s of process %s: not reported" % (key, process.get("pid")))
            else:
                total[key] += quality[key]
        kernels_here = 0
        for device in process.get("devices", []):
            for row in device.get("kernels") or []:
                total["kernels"][row["name"]] = total["kernels"].get(row["name"], 0) + row["calls"]
                kernels_here += row["calls"]
            for direction, row in (device.get("copies") or {}).items():
                sums = total["copies"].setdefault(direction, {"calls": 0, "bytes": 0})
                sums["calls"] += row["calls"]
                sums["bytes"] += row["bytes"]
            total["memset_calls"] += (device.get("memsets") or {}).get("calls", 0)
            peak = (device.get("memory") or {}).get("peak_allocated_bytes")
            if peak is not None:
                total["peak"] = max(total["peak"] or 0, peak)
        if kernels_here > busiest:
            busiest = kernels_here
            total["driver_only_pct"] = quality.get("driver_only_pct")
        total["nccl"] += process.get("nccl") or []
    return total


def compare(want, report, allow_empty=False):
    lines = []
    if "seal" in want and want["seal"] != truth_module.seal(want):
        lines.append("the truth file was changed after it was written (seal)")
    if report.get("schema") != 1:
        lines.append("report schema: want 1, got %r" % report.get("schema"))
    got = collect(report)
    lines += got["problems"]
    kernel_lines, normalised, collisions = match_kernels(want["kernels"], got["kernels"])
    lines += kernel_lines
    for direction in sorted(want["copies"].keys() | got["copies"].keys()):
        for key in ("calls", "bytes"):
            a = want["copies"].get(direction, {}).get(key, 0)
            b = got["copies"].get(direction, {}).get(key, 0)
            if a != b:
                lines.append("copies %s %s: referee %s, report %s" % (direction, key, a, b))
    if want["memset_calls"] != got["memset_calls"]:
        lines.append("memsets: referee %s, report %s" % (want["memset_calls"], got["memset_calls"]))
    peak_ok = want["peak_allocated_bytes"] == got["peak"]
    if not peak_ok:
        lines.append("peak allocated: PyTorch %s, report %s" % (want["peak_allocated_bytes"], got["peak"]))
    if "nccl" in want:
        asked, seen = nccl_totals(want["nccl"]), nccl_totals(got["nccl"])
        for op in sorted(asked.keys() | seen.keys()):
            if asked.get(op) != seen.get(op):
                lines.append("nccl %s (calls, bytes): script %s, report %s" % (op, asked.get(op), seen.get(op)))
    for key in ("holes", "dropped"):
        if got[key]:
            lines.append("%s: %s" % (key, got[key]))
    copy_calls = sum(row["calls"] for row in want["copies"].values())
    if not allow_empty and not want["kernels"] and not copy_calls:
        lines.append("the referee saw no device work")
    result = {
        "range": want.get("range"),
        "kernels": sum(want["kernels"].values()),
        "names": len(want["kernels"]),
        "names_normalised": normalised,
        "collisions": collisions,
        "mismatches": len(lines),
        "copies": copy_calls,
        "copy_bytes": sum(row["bytes"] for row in want["copies"].values()),
        "memsets": want["memset_calls"],
        "peak_ok": peak_ok if want["peak_allocated_bytes"] is not None else None,
        "holes": got["holes"],
        "dropped": got["dropped"],
        "driver_only_pct": got["driver_only_pct"],
    }
    return lines, result


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("truth")
    parser.add_argument("report")
    parser.add_argument("--result", help="write the verdict's figures here as JSON")
    parser.add_argument("--allow-empty", action="store_true", help="accept a truth without device work")
    opts = parser.parse_args(argv)
    try:
        with open(opts.truth, encoding="utf-8") as f:
            want = json.load(f)
        with open(opts.report, encoding="utf-8") as f:
            report = json.load(f)
        lines, result = compare(want, report, opts.allow_empty)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        print("compare: %s: %s" % (type(error).__name__, error), file=sys.stderr)
        return 2
    for line in lines:
        print("  " + line)
    print(
        "%s %s: %d kernels in %d names (%d normalised, %d collisions), %d copies of %d bytes, %d memsets, "
        "peak %s, holes %d, dropped %d, driver_only_pct %s"
        % (
            "FAIL" if lines else "PASS", result["range"], result["kernels"], result["names"],
            result["names_normalised"], result["collisions"], result["copies"], result["copy_bytes"],
            result["memsets"], want["peak_allocated_bytes"], result["holes"], result["dropped"],
            result["driver_only_pct"],
        )
    )
    if opts.result:
        with open(opts.result, "w", encoding="utf-8") as f:
            json.dump(result, f, indent=1)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
