"""What a recorded job of torchrun's must show: torchrun_judge.py FOLDER end|killed (torchrun.sh)

Output and exit code as without the recorder; one recording for each rank, with its rank, and each
launch that the rank noted; none lost. A job that came to its end: each rank's kernels, copies and
peak are its referee's. One that was killed: at most the one launch more that was inside its call.
A line for each check; exit 1 if one fails. GPUWAIT: the tool.
"""

import glob
import json
import os
import re
import struct
import subprocess
import sys

import compare

RANKS = 4
bad = 0


def check(name, good, why=""):
    global bad
    bad += not good
    print("%s - %s%s" % ("ok" if good else "not ok", name, "" if good else ": %s" % (why,)))


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def report(folder, *options):
    return subprocess.run([os.environ["GPUWAIT"], "report", *options, folder + "/dump"], capture_output=True, text=True)


def ranks_of(folder, *options):
    """post: processes by rank"""
    got = report(folder, "--json", "--steps", "all", *options)
    check("report %s" % " ".join(options), got.returncode == 0, got.stderr)
    return {p["rank"]: p for p in json.loads(got.stdout)["processes"]} if got.returncode == 0 else {}


def noted(folder, rank):
    with open("%s/recorded/%d.launches" % (folder, rank), "rb") as f:
        return struct.unpack("<Q", f.read())[0]


def same_as_bare(folder):
    exits = [text_of("%s/%s.exit" % (folder, run)).strip() for run in ("bare", "recorded")]
    check("exit code", exits[0] == exits[1], exits)
    lines = [sorted(text_of("%s/%s.out" % (folder, run)).splitlines()) for run in ("bare", "recorded")]
    check("output", lines[0] == lines[1], lines)
    return exits[1], lines[1]


def by_referee(folder):
    within = ranks_of(folder, "--range", "torchrun")
    for rank in range(RANKS):
        with open("%s/recorded/%d/torchrun.truth.json" % (folder, rank), encoding="utf-8") as f:
            truth = json.load(f)
        wrong, result = compare.compare(truth, {"schema": 1, "processes": [within[rank]] if rank in within else []})
        kernels = sum(truth["kernels"].values())
        check("rank %d: its referee's (%d kernels, %d copies)" % (rank, kernels, result["copies"]), not wrong, wrong)
        check("rank %d: its referee saw what it noted" % rank, kernels == noted(folder, rank), (kernels, noted(folder, rank)))


def main():
    folder, mode = sys.argv[1:]
    code, lines = same_as_bare(folder)
    check("exit code is the job's", code == ("0" if mode == "end" else "1"), code)
    dumps = glob.glob(folder + "/dump/*.gwt")
    check("a recording for each rank", len(dumps) == RANKS, dumps)
    ranks = ranks_of(folder)
    check("ranks", sorted(ranks, key=str) == list(range(RANKS)), list(ranks))
    for rank, process in ranks.items():
        made, calls, quality = noted(folder, rank), process["launches"]["calls"], process["quality"]
        more = 0 if mode == "end" else 1
        check("rank %s: %d launches" % (rank, made), made <= calls <= made + more and made > 0, (made, calls))
        check("rank %s: nothing lost" % rank, quality["dropped"] == 0 and quality["holes"] <= more, quality)
    text = report(folder).stdout
    check("a job of four", "job of 4 ranks on 1 host" in text, text)
    said = text_of(folder + "/recorded.err")
    left = re.findall(r"^gpuwait: (\d+) process(?:es were| was) killed or left by _exit", said, re.M)
    check("run names where to read", "read them with: gpuwait report" in said, said)
    if mode == "end":
        check("nobody was cut off", not left, left)
        check("ranks said", sum(line.startswith("rank ") for line in lines) == RANKS, lines)
        by_referee(folder)
    else:
        check("who was cut off", len(left) == 1 and 1 <= int(left[0]) <= RANKS, (left, said))
        check("rank 1 was killed midway", noted(folder, 1) == 20 * 41 + 21, noted(folder, 1))
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
