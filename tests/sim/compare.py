#!/usr/bin/env python3
"""Hold a report against the simulation's truth: compare.py TRUTH.json REPORT.json

Prints each difference, exits with 1 if there is one. What a report calls incomplete (edited
executable graphs, copies it could not read) may differ in the figures that this touches, and is
named."""
import json
import subprocess
import sys


def demangle(counts):
    names = list(counts)
    out = subprocess.run(["c++filt"], input="\n".join(names), text=True, check=True,
                         stdout=subprocess.PIPE).stdout.split("\n")
    total = {}
    for name, shown in zip(names, out):
        total[shown] = total.get(shown, 0) + counts[name]
    return total


def main():
    truth = json.load(open(sys.argv[1]))
    report = json.load(open(sys.argv[2]))["processes"][0]
    complete = report["quality"]["complete"]
    wrong = []

    def same(what, wanted, got, excused=False):
        if wanted != got and excused and not complete:
            print(f"incomplete, hence different: {what}: truth {wanted}, report {got}")
        elif wanted != got:
            wrong.append(f"{what}: truth {wanted}, report {got}")

    kernels = {}
    copies = {}
    memsets = 0
    peak = 0
    for device in report["devices"]:
        for kernel in device["kernels"]:
            kernels[kernel["name"]] = kernels.get(kernel["name"], 0) + kernel["calls"]
        for direction, figures in (device["copies"] or {}).items():
            if figures and figures["calls"]:
                have = copies.setdefault(direction, {"calls": 0, "bytes": 0})
                have["calls"] += figures["calls"]
                have["bytes"] += figures["bytes"]
        memsets += (device["memsets"] or {"calls": 0})["calls"]
        peak = max(peak, device["memory"]["peak_allocated_bytes"] or 0)

    wanted = demangle(truth["kernels"])
    for name in sorted(set(wanted) | set(kernels)):
        same(f"kernel {name}", wanted.get(name, 0), kernels.get(name, 0), excused=True)
    for direction in sorted(set(truth["copies"]) | set(copies)):
        figures = truth["copies"].get(direction)
        same(f"copies {direction}", figures and {k: figures[k] for k in ("calls", "bytes")},
             copies.get(direction), excused=True)
    same("memsets", truth["memset_calls"], memsets, excused=True)
    for ours, theirs in (("ran", "calls"), ("captured", "captured"), ("failed", "failed"),
                         ("graph_launches", "graph_launches"), ("by_api", "by_api")):
        same(f"launches {theirs}", truth["launches"][ours], report["launches"][theirs])
    same("handles asked for their name as what they are not", 0, truth["wrong_kind"])
    same("syncs", truth["syncs"]["calls"] - truth["syncs"]["failed"], report["syncs"]["calls"])
    same("allocations", truth["allocations"]["calls"] - truth["allocations"]["failed"],
         report["allocations"]["calls"])
    same("collectives", sorted((n["op"], n["calls"], n["bytes"]) for n in truth["nccl"]),
         sorted((n["op"], n["calls"], n["bytes"]) for n in report["nccl"] or []))
    same("peak allocated bytes", truth["peak_allocated_bytes"], peak)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


sys.exit(main())
