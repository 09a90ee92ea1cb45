#!/usr/bin/env python3
"""Run the scenarios under the preload, report on each, and compare with what is known.

    run.py [--only r01,r06-big,...] [--half twins] [--scale 0.5|2] [--seconds 5] [--jobs 1|2] [--bare]
    run.py --judge FOLDER [--only ...] [--scale ...]

With --judge nothing runs: the dumps of earlier runs, FOLDER/RUN/trace beside RUN.truth.json, are
reported on again, so that rules can be replayed on all of them.

A row per run. A positive is ok if its first finding is the expected one and the others that are
expected are there too; a twin is ok if it does not name the positive's verdict (or, where it may
stay, with at most half of its time per step). LIBGPUWAIT and GPUWAIT name the preload and the command,
PYTHON the interpreter. Everything goes to build/scenario-results, and packed to $OUT. With
--jobs 2 one scenario imports its packages or is reported on while another has the GPU.
Exit 0 if at least 18 of the 20 groups of scripts are right both ways, 1 if not.
"""

import argparse
import json
import os
import queue
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", "..", ".."))
BUILD = os.environ.get("B", os.path.join(ROOT, "build"))
LIBRARY = os.path.abspath(os.environ.get("LIBGPUWAIT", os.path.join(BUILD, "libgpuwait.so")))
COMMAND = os.path.abspath(os.environ.get("GPUWAIT", os.path.join(BUILD, "gpuwait")))
RUN_LIMIT_S, REPORT_LIMIT_S, FIRST_LIMIT_S = 60, 60, 200
# Big libraries are read from disk once, not within the first run's time.
FIRST = "import torch, transformers, peft, accelerate, tokenizers; from transformers import LlamaForCausalLM, Trainer; torch.zeros(1, device=%r)"
PART_BYTES, PARTS = 15 << 20, 4  # of packed dumps
GROUPS_NEEDED = 18

# Script and variants; each has a twin, but r12 has one for all of its variants, as has r19, the
# merged adapters of r18 are there for their launches alone, and whatif for the bound of a gain.
SUITE = [
    ("r01", "abc"), ("r02", "a"), ("r04", "a"), ("r05", "a"), ("r06", ["a", "big"]), ("r07", "a"), ("r08", "a"), ("r10", "a"),
    ("r11", "a"), ("r12", "abc"), ("r13", "a"), ("r14", "a"), ("r16", "a"), ("r17", "a"), ("r18", ["a", "b", "merged"]),
    ("r19", "ab"), ("r21", "a"), ("r23", "ab"), ("r24", "a"), ("qlora", "a"), ("whatif", "ab"),
]
NO_TWIN = {("whatif", "a"), ("whatif", "b"), ("r12", "b"), ("r12", "c"), ("r18", "merged"), ("r19", "b")}


class Case:
    def __init__(self, script, variant, fixed, scale):
        self.script, self.variant, self.fixed, self.scale = script, variant, fixed, scale
        self.positive = script + ("" if variant == "a" else "-" + variant)
        self.label = self.positive + ("-fixed" if fixed else "") + ("" if scale == 1 else "-x%g" % scale)
        self.row = {"run": self.label}


def cases(options):
    wanted = [w for w in options.only.split(",") if w]
    made = []
    for script, variants in SUITE:
        for variant in variants:
            for fixed in (False, True):
                if fixed and (script, variant) in NO_TWIN:
                    continue
                case = Case(script, variant, fixed, options.scale)
                if options.half and fixed != (options.half == "twins"):
                    continue
                if not wanted or {script, case.positive, case.label} & set(wanted):
                    made.append(case)
    return made


# ---- one run -----------------------------------------------------------------------


def execute(arguments, seconds, env, folder, tag):
    """Output to TAG.out and TAG.err; the reason why it failed, or None."""
    with open(os.path.join(folder, tag + ".out"), "wb") as out, open(os.path.join(folder, tag + ".err"), "wb") as err:
        try:
            child = subprocess.Popen(arguments, stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=env, cwd=folder, start_new_session=True)
        except OSError as error:
            return "%s: %s" % (tag, error)
        try:
            code = child.wait(seconds)
        except subprocess.TimeoutExpired:
            code = "no end within %d s" % seconds
        try:
            os.killpg(child.pid, signal.SIGKILL)  # loader workers too
        except ProcessLookupError:
            pass
        child.wait()
    if code == 0:
        return None
    with open(os.path.join(folder, tag + ".err"), encoding="utf-8", errors="replace") as f:
        last = [line.strip() for line in f if line.strip()][-1:]
    return "%s: %s %s" % (tag, "exit %d" % code if isinstance(code, int) else code, " ".join(last)[:160])


def load(path):
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def run_case(case, options, results):
    folder = os.path.join(results, case.label)
    os.makedirs(folder)
    env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "GPUWAIT")}
    env.update(
        GPUWAIT_TRUTH_DIR=folder, GPUWAIT_OUT=os.path.join(folder, "trace"), PYTHONDONTWRITEBYTECODE="1",
        GPUWAIT_SCENARIO_LOCK=os.path.join(results, "turn"), TORCHINDUCTOR_CACHE_DIR=os.path.join(folder, "inductor"),
    )
    if not options.bare:
        env["LD_PRELOAD"] = LIBRARY
    arguments = [os.environ.get("PYTHON", "python3"), os.path.join(HERE, case.script + ".py"), "--variant", case.variant]
    arguments += ["--scale", str(case.scale), "--seconds", str(options.seconds), "--device", options.device] + ["--fixed"] * case.fixed
    begun = time.monotonic()
    failed = execute(arguments, RUN_LIMIT_S * options.jobs, env, folder, "run")
    shutil.rmtree(os.path.join(folder, "inductor"), ignore_errors=True)
    case.row["wall_s"] = round(time.monotonic() - begun, 1)
    truth = load(os.path.join(folder, case.label + ".truth.json"))
    if failed or not truth:
        case.row["reason"] = failed or "no truth file"
        return
    case.row.update(from_truth(truth))
    if options.bare:
        return
    report_on(case, folder, folder, truth, env)


def report_on(case, recording, folder, truth, env):
    """The recording below RECORDING; what the command writes goes to FOLDER."""
    trace, reports = os.path.join(recording, "trace"), {}
    for tag, extra in (("report", ["--json", "--range", "loop"]), ("whole", ["--json"]), ("text", []), ("info", ["--json"])):
        verb = "info" if tag == "info" else "report"
        problem = execute([COMMAND, verb, *extra, trace], REPORT_LIMIT_S, env, folder, tag)
        reports[tag] = load(os.path.join(folder, tag + ".out"))
        if problem and tag in ("report", "info"):
            case.row["reason"] = problem
    if reports["report"]:
        case.row.update(from_report(reports["report"], truth))
    whole = main_process(reports["whole"])
    case.row["whole_verdict"] = whole.get("verdict")


def judge_again(case, options, results):
    recording = os.path.join(options.judge, case.label)
    truth = load(os.path.join(recording, case.label + ".truth.json"))
    if not truth or not os.path.isdir(os.path.join(recording, "trace")):
        case.row["reason"] = "no recording, or no truth file"
        return
    folder = os.path.join(results, case.label)
    os.makedirs(folder)
    case.row.update(from_truth(truth))
    report_on(case, recording, folder, truth, {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "GPUWAIT")})


# ---- figures -----------------------------------------------------------------------


def from_truth(truth):
    per_step = truth.get("per_step") or {}
    gpu_us, kernels = per_step.get("gpu_us"), per_step.get("kernels")
    step_ms = truth["step_ms"]["mean"]
    row = {
        "expected": (truth["expected_findings"] or ["-"])[0], "all_expected": truth["expected_findings"],
        "forbidden": truth["forbidden_findings"], "may_keep": truth["may_keep_half"], "guilty": truth["guilty"],
        "steps_true": truth["steps"]["loop"], "step_ms": step_ms, "kernels_true": statistics.median(kernels) if kernels else None,
        "kernels_list": kernels, "peak_true": truth.get("peak_allocated_bytes"), "retries_true": truth.get("num_alloc_retries"),
        "growth_true": truth.get("growth_bytes_per_step"), "gain_true": truth.get("graphed_gain_pct"),
    }
    # Beside the profiler the kernels are the same, so their time over the loop's step bounds busy.
    row["gpu_ms"] = round(statistics.median(gpu_us) / 1e3, 3) if gpu_us else None
    return row


def main_process(report):
    processes = (report or {}).get("processes") or [{}]
    return max(processes, key=lambda p: ((p.get("launches") or {}).get("kernels") or 0))


def from_report(report, truth):
    process = main_process(report)
    device = (process.get("devices") or [{}])[0]
    findings = process.get("findings") or report.get("findings") or []
    steps = process.get("steps") or {}
    time_ = device.get("time") or {}
    memory = device.get("memory") or {}
    idle = time_.get("idle_pct")
    first = findings[0] if findings else {}
    return {
        "busy": None if idle is None else round(100 - idle, 1), "verdict": process.get("verdict") or report.get("verdict"),
        "share": first.get("share_pct"), "bounds": {w.get("id"): w.get("bound_pct") for w in process.get("what_if") or []},
        "where": first.get("where"), "wheres": {f.get("id"): f.get("where") for f in findings}, "ids": [f.get("id") for f in findings], "shares": {f.get("id"): f.get("share_pct") for f in findings},
        "steps": steps.get("all"), "confidence": steps.get("confidence"), "kernels": steps.get("kernels"),
        "growth": memory.get("growth_bytes_per_step"), "peak": memory.get("peak_allocated_bytes"), "retries": memory.get("alloc_retries"),
        "idle": time_.get("idle"), "complete": (process.get("quality") or {}).get("complete"),
        "peak_ok": "peak_allocated_bytes" in truth and memory.get("peak_allocated_bytes") == truth["peak_allocated_bytes"],
    }


def lost_ms(row, name):
    """What a finding takes of each step: shares of steps of unlike length do not compare."""
    share = (row.get("shares") or {}).get(name)
    return None if share is None else share * row["step_ms"] / 100


def typical(counts):
    """What may be the median of steps like these: of two kinds that take turns either is."""
    pairs = counts[: len(counts) // 2 * 2] or counts
    return {statistics.median_low(pairs), statistics.median_high(pairs)}


def judge(made):
    """ok of each row; a twin is compared with its positive."""
    rows = {c.label: c.row for c in made}
    for case in made:
        row = case.row
        if "verdict" not in row:
            row["ok"] = None
            continue
        ids = row["ids"]
        if row["all_expected"]:
            row["ok"] = row["verdict"] == row["all_expected"][0] and set(row["all_expected"]) <= set(ids)
        else:
            row["ok"] = True
        for name in row["forbidden"]:
            if name not in ids:
                continue
            mine, theirs = lost_ms(row, name), lost_ms(rows.get(case.label.replace("-fixed", ""), {}), name)
            if row["may_keep"] and mine is not None and theirs and mine <= theirs / 2:
                continue
            row["ok"] = False
            row["reason"] = "names %s (%s %%)" % (name, row["shares"][name])
        if row["guilty"]:
            row["line_ok"] = any(g in str(row["wheres"].get(e)) for g in row["guilty"] for e in row["all_expected"] or [row["verdict"]])
            if not row["line_ok"]:
                row.setdefault("reason", "line %s, guilty %s" % (row["where"], " ".join(row["guilty"])))
        if row["gain_true"]:
            bound = row["bounds"].get("graph-replay")
            row["gain_ok"] = bound is not None and row["gain_true"] <= bound <= 2 * row["gain_true"]
        if row["growth_true"]:
            row["growth_ok"] = row["growth"] is not None and abs(row["growth"] / row["growth_true"] - 1) <= 0.1
        row["steps_ok"] = row["steps"] is not None and abs(row["steps"] - row["steps_true"]) <= 1
        true = row["kernels_list"]
        row["kernels_ok"] = None if not true else row["kernels"] is not None and round(row["kernels"]) in typical(true)


COLUMNS = (
    ("run", "%-18s"), ("busy", "%5s"), ("step_ms", "%8s"), ("gpu_ms", "%8s"), ("expected", "%-15s"), ("verdict", "%-18s"), ("share", "%6s"),
    ("steps", "%6s"), ("steps_true", "%6s"), ("kernels", "%8s"), ("kernels_true", "%8s"), ("wall_s", "%6s"), ("ok", "%-5s"), ("reason", "%s"),
)
HEADS = {"steps_true": "true", "kernels_true": "CUPTI", "kernels": "k/step", "wall_s": "wall", "reason": "", "share": "share%", "busy": "busy%"}


def line(row):
    cells = []
    for key, form in COLUMNS:
        value = row.get(key)
        if isinstance(value, float):
            value = "%.4g" % value
        cells.append(form % ({True: "yes", False: "NO"}[value] if isinstance(value, bool) else "" if value is None else value))
    return " ".join(cells).rstrip()


def summary(made):
    groups = {}
    for case in made:
        if case.script != "whatif":  # judged by its bound
            groups.setdefault(case.script, []).append(case.row)
    right = [name for name, rows in groups.items() if all(r.get("ok") for r in rows)]
    yield "%d of %d scripts right both ways; not: %s" % (len(right), len(groups), " ".join(sorted(set(groups) - set(right))) or "none")
    for key, text in (("steps_ok", "step counts"), ("kernels_ok", "kernels per step"), ("peak_ok", "peaks"), ("line_ok", "guilty lines"), ("growth_ok", "growth"),
                      ("gain_ok", "bounds of a graph's gain")):
        had = [c for c in made if c.row.get(key) is not None]
        wrong = [c.label for c in had if not c.row[key]]
        yield "%s right: %d of %d%s" % (text, len(had) - len(wrong), len(had), "; not: " + " ".join(wrong) if wrong else "")
    failed = [c.label for c in made if c.row.get("ok") is None]
    if failed:
        yield "no result: " + " ".join(failed)


# ---- packing -----------------------------------------------------------------------


def pack(results, out):
    """results.tar.xz without dumps; the dumps in parts of whole runs, the smallest first."""
    os.makedirs(out, exist_ok=True)

    def members(dumps):
        for base, _, names in sorted(os.walk(results)):
            for name in sorted(names):
                if name.endswith(".gwt") == dumps and not name.endswith(".ring") and name != "turn":
                    yield os.path.join(base, name)

    with tarfile.open(os.path.join(out, "results.tar.xz"), "w:xz") as tar:
        for path in members(False):
            tar.add(path, os.path.relpath(path, results))
    part, used, tar, left = 0, PART_BYTES, None, []
    for path in sorted(members(True), key=os.path.getsize):
        size = os.path.getsize(path) + 1024
        if used + size > PART_BYTES:
            if tar:
                tar.close()
                tar = None
            if part == PARTS or size > PART_BYTES:
                left.append(os.path.relpath(path, results))
                continue
            tar, used, part = tarfile.open(os.path.join(out, "dumps-%d.tar" % part), "w"), 0, part + 1
        tar.add(path, os.path.relpath(path, results))
        used += size
    if tar:
        tar.close()
    if left:
        print("dumps left out:", *left)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="scripts (r06), variants (r06-big) or runs (r06-big-fixed), with commas between")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each loop")
    parser.add_argument("--jobs", type=int, choices=(1, 2), default=1)
    parser.add_argument("--half", choices=("positives", "twins"), help="only the scripts with the fault, or without it")
    parser.add_argument("--limit", type=float, default=540.0, help="start no run after so many seconds")
    parser.add_argument("--judge", metavar="FOLDER", help="run nothing; report again on the recordings there")
    parser.add_argument("--bare", action="store_true", help="without the preload: the scripts alone")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options = parser.parse_args()
    results = os.path.join(BUILD, "scenario-judged" if options.judge else "scenario-results")
    shutil.rmtree(results, ignore_errors=True)
    os.makedirs(results)
    made = cases(options)
    if not made:
        parser.error("--only names nothing: " + options.only)
    if options.judge:
        made = [c for c in made if os.path.isdir(os.path.join(options.judge, c.label))]
        if not made:
            parser.error("no recordings in " + options.judge)
    begun, waiting, told = time.monotonic(), queue.Queue(), threading.Lock()
    env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "GPUWAIT")}
    if not options.judge:
        problem = execute([os.environ.get("PYTHON", "python3"), "-c", FIRST % options.device], FIRST_LIMIT_S, env, results, "first")
        print(problem or "libraries read after %d s" % (time.monotonic() - begun))
    for case in made:
        waiting.put(case)
    print(line({key: HEADS.get(key, key) for key, _ in COLUMNS}), flush=True)

    def work():
        while True:
            try:
                case = waiting.get_nowait()
            except queue.Empty:
                return
            if time.monotonic() - begun > options.limit:
                case.row["reason"] = "not run: out of time"
                continue
            try:
                (judge_again if options.judge else run_case)(case, options, results)
            except Exception as error:  # one run's trouble is one row's  pylint: disable=broad-except
                case.row["reason"] = "runner: %r" % error
            with told:
                print(line(case.row), flush=True)

    workers = [threading.Thread(target=work) for _ in range(options.jobs)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    judge(made)
    table = [line({key: HEADS.get(key, key) for key, _ in COLUMNS})] + [line(c.row) for c in made] + list(summary(made))
    table.append("%d runs in %d s" % (len(made), time.monotonic() - begun))
    print("", *table, sep="\n")
    with open(os.path.join(results, "table.txt"), "w", encoding="utf-8") as f:
        f.write("\n".join(table) + "\n")
    with open(os.path.join(results, "rows.json"), "w", encoding="utf-8") as f:
        json.dump([c.row for c in made], f, indent=1)
    if not options.judge:
        pack(results, os.environ.get("OUT", os.path.join(BUILD, "scenario-pack")))
    if options.bare:
        return 0
    scripts = {c.script for c in made if c.script != "whatif"}
    right = scripts - {c.script for c in made if not c.row.get("ok")}
    return int(len(right) < min(GROUPS_NEEDED, len(scripts)))


if __name__ == "__main__":
    sys.exit(main())
