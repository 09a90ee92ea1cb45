#!/usr/bin/env python3
"""Reduce a CUPTI activity trace to a truth file, the referee's side of a comparison.

Input: Chrome trace JSON, either exported by torch.profiler or written by
cupti_referee.c.  Only device rows are read (categories kernel, gpu_memcpy and
gpu_memset).  Nothing here, nor anything that it calls, opens a gpuwait dump.

    truth.py TRACE.json OUT.truth.json --range NAME --script SCRIPT
"""

import argparse
import ctypes
import functools
import glob
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys

OWN_KERNELS = "gpuwait_"  # launched by the recorder itself, never by the program
DIRECTIONS = {"HH": "H2H", "HD": "H2D", "DH": "D2H", "DD": "D2D"}
COPY_NAME = re.compile(r"Memcpy (\w)to(\w)")


@functools.lru_cache(maxsize=None)
def demangle(name):
    """Kineto leaves names of over 1024 characters mangled, cupti_referee.c leaves all."""
    if not name.startswith("_Z"):
        return name
    lib = ctypes.CDLL("libstdc++.so.6")
    lib.__cxa_demangle.restype = ctypes.c_void_p
    lib.__cxa_demangle.argtypes = [ctypes.c_char_p] + [ctypes.c_void_p] * 3
    text = lib.__cxa_demangle(name.encode(), None, None, None)
    if not text:  # it gives up on long names, as the tool of binutils does unless told
        tool = shutil.which("c++filt")
        if not tool:
            return name
        run = subprocess.run([tool, "-r", name], capture_output=True, text=True, check=False)
        return run.stdout.strip() or name
    result = ctypes.string_at(text).decode()
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free(text)
    return result


def direction(row_name):
    """'Memcpy HtoD (Pinned -> Device)' -> 'H2D'; arrays (A) and peers (P) are device memory."""
    found = COPY_NAME.match(row_name)
    if not found:
        return "unknown"  # no report has such copies: a mismatch
    ends = "".join("H" if end == "H" else "D" for end in found.groups())
    return DIRECTIONS[ends]


def gap_bands(spans):
    """Union of (start_us, end_us) over first start to last end: busy and gaps in % of it."""
    keys = ("busy_pct", "over_100us_pct", "10_to_100us_pct", "under_10us_pct")
    if not spans:
        return dict.fromkeys(keys)
    spans = sorted(spans)
    first, reach = spans[0]
    busy, sums = reach - first, dict.fromkeys(keys, 0.0)
    for start, end in spans[1:]:
        gap = start - reach
        if gap > 0:
            band = 1 if gap > 100 else 2 if gap >= 10 else 3
            sums[keys[band]] += gap
            busy += end - start
            reach = end
        elif end > reach:
            busy += end - reach
            reach = end
    sums["busy_pct"] = busy
    total = reach - first
    return {key: round(100.0 * us / total, 4) if total else None for key, us in sums.items()}


def additive(spans):
    """Shares of first start to last end, in %, by what has precedence: (start, end, class) with class
    0 compute, 1 communication, 2 copies; what is left is idle."""
    keys = ("compute_pct", "exposed_comm_pct", "exposed_copy_pct", "idle_pct")
    if not spans:
        return dict.fromkeys(keys)
    edges = sorted([(s, 1, c) for s, _, c in spans] + [(e, -1, c) for _, e, c in spans])
    on, sums, last = [0, 0, 0], [0.0] * 4, edges[0][0]
    for t, step, kind in edges:
        owner = next((c for c in range(3) if on[c]), 3)
        sums[owner] += t - last
        on[kind] += step
        last = t
    total = last - edges[0][0]
    return {key: round(100.0 * us / total, 4) if total else None for key, us in zip(keys, sums)}


def graph_launches(rows):
    """Operations of one graph launch share its correlation id: from the first one's start to
    the last one's end."""
    spans = {}
    for row in rows:
        correlation = row.get("args", {}).get("correlation")
        start, end = row["ts"], row["ts"] + row["dur"]
        first, last, n = spans.get(correlation, (start, end, 0))
        spans[correlation] = (min(first, start), max(last, end), n + 1)
    graphs = [span for correlation, span in spans.items() if correlation and span[2] > 1]
    total = sum(last - first for first, last, _ in graphs)
    return {"launches": len(graphs), "nodes": sum(n for _, _, n in graphs), "us": round(total, 3)}


def reduce_events(events, base_ns=0):
    kernels, kernel_us, copy_us, spans, devices, graphs = {}, {}, {}, [], set(), []
    classes, collectives = [], []
    copies = {d: {"calls": 0, "bytes": 0} for d in ("H2D", "D2H", "D2D")}
    memsets = own = 0
    for row in events:
        cat = row.get("cat")
        if cat not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        args = row.get("args", {})
        if cat == "kernel":
            name = demangle(row["name"])
            if name.startswith(OWN_KERNELS):
                own += 1
                continue
            kernels[name] = kernels.get(name, 0) + 1
            kernel_us[name] = kernel_us.get(name, 0.0) + row["dur"]
            if name.startswith("nccl"):
                start = base_ns + round(row["ts"] * 1e3)
                collectives.append([start, start + round(row["dur"] * 1e3), name])
        elif cat == "gpu_memcpy":
            total = copies.setdefault(direction(row["name"]), {"calls": 0, "bytes": 0})
            total["calls"] += args.get("copy_count", 1)
            total["bytes"] += args["bytes"]
            copy_us[direction(row["name"])] = copy_us.get(direction(row["name"]), 0.0) + row["dur"]
        else:
            memsets += 1
        graphs.append(row)
        devices.add(args.get("device", 0))
        spans.append((row["ts"], row["ts"] + row["dur"]))
        kind = 2 if cat != "kernel" else 1 if name.startswith("nccl") else 0
        classes.append((row["ts"], row["ts"] + row["dur"], kind))
    bands = gap_bands(spans)
    truth = {
        "kernels": dict(sorted(kernels.items())),
        "kernel_us": {name: round(us, 3) for name, us in sorted(kernel_us.items())},
        "copies": copies,
        "copy_us": {name: round(us, 3) for name, us in sorted(copy_us.items())},
        "graphs": graph_launches(graphs),
        "memset_calls": memsets,
        "span_ms": round((max(e for _, e in spans) - min(s for s, _ in spans)) / 1e3, 6)
        if spans
        else None,
        "busy_pct": bands.pop("busy_pct"),
        "gap_bands": bands,
        "time": additive(classes),
    }
    if collectives:
        truth["collectives"] = sorted(collectives)  # start and end, ns of the real-time clock
    return truth, {"devices": len(devices), "own_kernels_dropped": own}


def driver_version():
    try:
        with open("/sys/module/nvidia/version", encoding="utf-8") as f:
            return f.read().strip()
    except OSError:
        return None


def gpu_models():
    models = []
    for path in sorted(glob.glob("/proc/driver/nvidia/gpus/*/information")):
        with open(path, encoding="utf-8") as f:
            models += [line.split(":", 1)[1].strip() for line in f if line.startswith("Model:")]
    return ", ".join(models) or None


def seal(truth):
    """Hash over everything else, so that an edit of a figure no test reads yet shows too."""
    body = {key: value for key, value in truth.items() if key != "seal"}
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def since(trace, begin_ns):
    """Rows that began at that time of the real-time clock, or later."""
    base = trace["baseTimeNanoseconds"]
    return [row for row in trace["traceEvents"] if base + row.get("ts", 0) * 1000 >= begin_ns]


def write(trace_path, out_path, range_name, how, peak=None, extra=None, begin_ns=None):
    with open(trace_path, encoding="utf-8", errors="replace") as f:
        trace = json.load(f)
    events = trace["traceEvents"] if begin_ns is None else since(trace, begin_ns)
    truth, facts = reduce_events(events, trace.get("baseTimeNanoseconds", 0))
    if truth["span_ms"] is None:
        raise ValueError("the referee saw nothing in range " + range_name)
    truth["range"] = range_name
    truth["peak_allocated_bytes"] = peak
    truth.update(extra or {})
    truth["how"] = {
        "range": range_name,
        "gpu": gpu_models(),
        "driver": driver_version(),
        "machine": platform.machine(),
        "processes_at_once": int(os.environ.get("GPUWAIT_TEST_JOBS", "1")),
        **trace.get("how", {}),
        **how,
        **facts,
    }
    truth["seal"] = seal(truth)
    with open(out_path, "w", encoding="utf-8") as f:
        json.dump(truth, f, indent=1)
        f.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("out")
    parser.add_argument("--range", required=True)
    parser.add_argument("--script", required=True)
    opts = parser.parse_args()
    write(opts.trace, opts.out, opts.range, {"script": opts.script})


if __name__ == "__main__":
    sys.exit(main())
