"""What a job must show whose DataLoader lost a worker: loader_killed_judge.py FOLDER reading|computing (loader_killed.sh)

Output, exception and exit code as without the recorder. The main process's recording is whole: kernels,
copies and peak are its referee's. Workers that made no CUDA call have none; of those that did each has
its own, readable, the killed one's too, with each launch that it noted; the other is ended from outside,
perhaps within one more. A line for each check; exit 1 if one fails.
"""

import glob
import json
import os
import sys

import compare
import judge
from judge import check

WORKERS, ADDITIONS, KILLED_AT = 2, 4, 28  # of loader_killed.py


def exception(folder, run):
    """Its name: in which words the exception says it depends on where it came."""
    text = judge.text_of("%s/%s.err" % (folder, run))
    last = [line for line in text.splitlines() if "Error: " in line][-1:]
    return last[0].split(":")[0] if last and "DataLoader worker" in last[0] else text


def by_referee(folder, main):
    within = judge.processes(folder, "--range", "loader_killed", "--process", str(main))
    truth = json.loads(judge.text_of(folder + "/recorded/loader_killed.truth.json"))
    wrong, result = compare.compare(truth, {"schema": 1, "processes": within})
    kernels = sum(truth["kernels"].values())
    check("main process: its referee's (%d kernels, %d copies)" % (kernels, result["copies"]), kernels > 10 and not wrong, wrong)


def main():
    folder, mode = sys.argv[1:]
    lines = judge.same_as_bare(folder, "1")
    check("a worker was killed", "worker killed: RuntimeError True" in lines, lines)
    ends = [exception(folder, run) for run in ("bare", "recorded")]
    check("exception", ends == ["RuntimeError"] * 2, ends)
    noted = {int(os.path.basename(path).split(".")[0]): judge.noted(path) for path in glob.glob(folder + "/recorded/*.launches")}
    check("workers that computed", len(noted) == (WORKERS if mode == "computing" else 0), noted)
    recorded = {p["pid"]: p for p in judge.processes(folder)}
    check("a recording for each that used CUDA", len(recorded) == 1 + len(noted) and noted.keys() < recorded.keys(), (list(recorded), noted))
    killed = int(judge.text_of(folder + "/recorded/killed"))
    check("the killed one", mode == "reading" or noted.get(killed) == KILLED_AT * ADDITIONS, (killed, noted))
    for pid, process in recorded.items():
        made, calls, quality = noted.get(pid), process["launches"]["calls"], process["quality"]
        more = made is not None and pid != killed
        check("process %d: nothing lost" % pid, quality["dropped"] == 0 and quality["holes"] <= more, quality)
        check("process %d: %s launches" % (pid, made), made is None or 0 < made <= calls <= made + more, calls)
    rest = recorded.keys() - noted.keys()
    if len(rest) == 1:
        by_referee(folder, *rest)
    said = [line for line in judge.text_of(folder + "/recorded.err").splitlines() if line.startswith("gpuwait:")]
    check("said", bool(said) == (mode == "computing"), said)  # by run, at the end
    return judge.bad > 0


if __name__ == "__main__":
    sys.exit(main())
