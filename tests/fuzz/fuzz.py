#!/usr/bin/env python3
"""Fuzzes every target, or those named, for FUZZ_SECONDS (60) with FUZZ_JOBS processes (as many as
there are processors); 0 seconds replays the corpus.

    B=build FUZZ_SECONDS=1800 FUZZ_JOBS=16 python3 tests/fuzz/fuzz.py [TARGET...]

With fewer processes than targets one after the other gets its FUZZ_SECONDS. Inputs that reach
something new go to $B/fuzz/corpus/TARGET, which later runs start from as well; the committed corpus
and the fixtures are only read. Those worth keeping are added to the former by

    build/fuzz/fuzz_TARGET -merge=1 -use_counters=0 tests/fuzz/corpus/TARGET tests/fixtures build/fuzz/corpus/TARGET

and, of analysis and job, are then made as small as recordings are by build/fuzz/pack.

What breaks a target is left in $B/fuzz/TARGET-*. Exit 1: there was such an input."""

import glob
import os
import re
import signal
import subprocess
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
FUZZ = os.path.join(os.path.abspath(os.environ.get("B") or os.path.join(ROOT, "build")), "fuzz")
SECONDS = int(os.environ.get("FUZZ_SECONDS") or 60)
JOBS = int(os.environ.get("FUZZ_JOBS") or len(os.sched_getaffinity(0)))
FINDINGS_MOST = 10  # of a target; then it is not started again
TICK = os.sysconf("SC_CLK_TCK")
# Its inputs reach thousands of features: what entropy each has takes longer than a run.
FLAGS = {"analysis": ["-entropic=0"], "job": ["-entropic=0"]}


class Process:
    """One fuzzer, and what its log says."""

    def __init__(self, target, seconds, log):
        self.log, self.read, self.runs = log, 0, 0
        limit = "-max_total_time=%d" % seconds if seconds else "-runs=0"
        command = [os.path.join(FUZZ, "fuzz_" + target.name), limit, "-print_final_stats=1",
                   "-artifact_prefix=%s/%s-" % (FUZZ, target.name)] + FLAGS.get(target.name, []) + target.corpus
        with open(log, "w") as out:
            self.child = subprocess.Popen(command, stdout=out, stderr=out, cwd=ROOT)
        self.code = None

    def cpu(self):
        try:
            fields = open("/proc/%d/stat" % self.child.pid).read().rsplit(")", 1)[1].split()
        except OSError:
            return 0
        return (int(fields[11]) + int(fields[12])) / TICK

    def coverage(self):
        """post: the edges that what was logged since the last call names"""
        with open(self.log, errors="replace") as f:
            f.seek(self.read)
            text = f.read()
            text = text[: text.rfind("\n") + 1]
        self.read += len(text.encode(errors="replace"))
        seen = re.findall(r"^#(\d+)\t(\w+) +cov: (\d+)", text, re.M)
        if seen:
            self.runs = int(seen[-1][0])
        return [(word, int(edges)) for _, word, edges in seen]

    def ended(self):
        """post: its seconds of processor time, once it has ended"""
        pid, status, usage = os.wait4(self.child.pid, os.WNOHANG)
        if not pid:
            return None
        self.code = self.child.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_utime + usage.ru_stime


class Target:
    def __init__(self, name):
        self.name, self.running, self.started = name, [], 0
        self.runs, self.spent, self.broken = 0, 0.0, []
        self.first, self.edges, self.at, self.at_cpu, self.end = None, 0, time.time(), 0.0, 0.0
        new = os.path.join(FUZZ, "corpus", name)
        os.makedirs(new, exist_ok=True)
        old = [os.path.join(ROOT, "tests/fuzz/corpus", name), os.path.join(ROOT, "tests/fixtures")]
        self.corpus = [new] + [d for d in old if os.path.isdir(d)]
        self.before = self.artifacts()

    def artifacts(self):
        return set(glob.glob(os.path.join(FUZZ, self.name + "-*")))

    def start(self, seconds):
        self.started += 1
        self.running.append(Process(self, seconds, os.path.join(FUZZ, "%s.%d.log" % (self.name, self.started))))

    def cpu(self):
        return self.spent + sum(p.cpu() for p in self.running)

    def follow(self, seconds_left):
        for p in list(self.running):
            spent = p.ended()
            for word, edges in p.coverage():
                if word == "INITED" and self.first is None:
                    self.first = edges
                if edges > self.edges:
                    self.edges, self.at, self.at_cpu = edges, time.time(), self.cpu()
            if spent is None:
                continue
            self.running.remove(p)
            self.end = time.time()
            self.spent += spent
            self.runs += p.runs
            if p.code:
                self.broken.append(p.log)
                if seconds_left > 1 and len(self.broken) < FINDINGS_MOST:
                    self.start(int(seconds_left))

    def row(self):
        return (self.name, self.runs, "%.0f" % self.spent, self.first, self.edges, "%.0f" % (self.end - self.at),
                "%.0f" % (self.spent - self.at_cpu), len(self.broken))


def together(targets, processes, seconds):
    """`processes` fuzzers, as many of each target as of another, or one more"""
    for i in range(processes):
        targets[i % len(targets)].start(seconds)
    begun = told = time.time()
    while any(t.running for t in targets):
        time.sleep(0.2)
        for t in targets:
            t.follow(begun + seconds - time.time())
        if seconds and time.time() - told >= max(60, seconds / 20):
            told = time.time()
            print("%6.0f s: %s" % (told - begun, ", ".join("%s %d edges" % (t.name, t.edges) for t in targets)), flush=True)


def main():
    sources = sorted(glob.glob(os.path.join(ROOT, "tests/fuzz/fuzz_*.c")))
    targets = [Target(name) for name in sys.argv[1:] or [os.path.basename(f)[5:-2] for f in sources]]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        at_once = targets and max(1, min(JOBS, len(targets)))
        for i in range(0, len(targets), at_once):
            part = targets[i : i + at_once]
            together(part, JOBS if SECONDS and at_once == len(targets) else len(part), SECONDS)
    finally:
        for t in targets:
            for p in t.running:
                p.child.kill()
    form = "%-10s %10s %8s %12s %10s %16s %13s %9s"
    print(form % ("target", "runs", "CPU s", "edges before", "after", "last new, s ago", "CPU s since", "findings"))
    for t in targets:
        print(form % t.row())
    for t in targets:
        for log in t.broken:
            print("not ok - %s: %s" % (t.name, log))
            sys.stdout.writelines(open(log, errors="replace").readlines()[-40:])
        for f in sorted(t.artifacts() - t.before):
            print(f)
    return any(t.broken for t in targets)


sys.exit(main())
