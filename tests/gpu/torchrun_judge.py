"""What a recorded job of torchrun's must show: torchrun_judge.py FOLDER end|killed (torchrun.sh)

Output and exit code as without the recorder; one recording for each rank, with its rank, and each
launch that the rank noted; none lost. A job that came to its end: each rank's kernels, copies and
peak are its referee's. One that was killed: at most the one launch more that was inside its call.
A line for each check; exit 1 if one fails.
"""

import glob
import json
import re
import sys

import compare
import judge
from judge import check

RANKS = 4


def ranks_of(folder, *options):
    """post: processes by rank"""
    return {p["rank"]: p for p in judge.processes(folder, *options)}


def noted(folder, rank):
    return judge.noted("%s/recorded/%d.launches" % (folder, rank))


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
    lines = judge.same_as_bare(folder, "0" if mode == "end" else "1")
    dumps = glob.glob(folder + "/dump/*.gwt")
    check("a recording for each rank", len(dumps) == RANKS, dumps)
    ranks = ranks_of(folder)
    check("ranks", sorted(ranks, key=str) == list(range(RANKS)), list(ranks))
    for rank, process in ranks.items():
        made, calls, quality = noted(folder, rank), process["launches"]["calls"], process["quality"]
        more = 0 if mode == "end" else 1
        check("rank %s: %d launches" % (rank, made), made <= calls <= made + more and made > 0, (made, calls))
        check("rank %s: nothing lost" % rank, quality["dropped"] == 0 and quality["holes"] <= more, quality)
    text = judge.report(folder).stdout
    check("a job of four", "job of 4 ranks on 1 host" in text, text)
    said = judge.text_of(folder + "/recorded.err")
    left = re.findall(r"^gpuwait: (\d+) process(?:es were| was) killed or left by _exit", said, re.M)
    check("run names where to read", "read them with: gpuwait report" in said, said)
    if mode == "end":
        check("nobody was cut off", not left, left)
        check("ranks said", sum(line.startswith("rank ") for line in lines) == RANKS, lines)
        by_referee(folder)
    else:
        check("who was cut off", len(left) == 1 and 1 <= int(left[0]) <= RANKS, (left, said))
        check("rank 1 was killed midway", noted(folder, 1) == 20 * 41 + 21, noted(folder, 1))
    return judge.bad > 0


if __name__ == "__main__":
    sys.exit(main())
