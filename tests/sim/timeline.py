#!/usr/bin/env python3
"""The reported timeline of random simulated programs against the simulator's own.

    timeline.py [--seeds FIRST:LAST] [--ms N] [--clock virtual|real] [--double] [--jobs N] [--quiet]
                [--busy POINTS] [--band POINTS] [--share PERCENT]

For each seed a program made up from it runs under the preload; its report's busy share and
gap bands are held against the truth that the simulated device wrote. --double doubles the
device's latency, gaps and variance. Exit 0 if busy lies within 0.5 points and each band
within 1 point of the truth in 95 % of programs, and busy inside the printed interval in 95 %;
or as the options say.
"""

import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BANDS = ("over_100us", "10_to_100us", "under_10us")

parser = argparse.ArgumentParser()
parser.add_argument("--seeds", default="1:20")
parser.add_argument("--ms", type=int, default=4000)
parser.add_argument("--clock", default="virtual", choices=("virtual", "real"))
parser.add_argument("--double", action="store_true")
parser.add_argument("--jobs", type=int, default=2)
parser.add_argument("--quiet", action="store_true")
parser.add_argument("--busy", type=float, default=0.5)
parser.add_argument("--band", type=float, default=1.0)
parser.add_argument("--share", type=float, default=95.0)
opts = parser.parse_args()
build = os.path.abspath(os.environ.get("B", os.path.join(HERE, "..", "..", "build")))


def run(seed):
    folder = tempfile.mkdtemp()
    try:
        env = dict(
            os.environ, LD_PRELOAD=build + "/libgpuwait.so " + build + "/sim/libhost_sim.so", LD_LIBRARY_PATH=build + "/sim",
            GPUWAIT_OUT=folder + "/t", GPUWAIT_FULL="block", SIM_TRUTH=folder + "/truth.json", SIM_SEED=str(seed), SIM_CLOCK=opts.clock,
        )
        env.pop("GPUWAIT", None)
        if opts.clock == "virtual":
            env.update(GPUWAIT_TEST_CLOCK="1", SIM_PACE="6")
        if opts.double:
            env.update(SIM_LATENCY="2", SIM_GAP="2", SIM_VARIANCE="2")
        subprocess.run([build + "/sim/clients/random", str(seed), str(opts.ms)], env=env, check=True,
                       stdout=subprocess.DEVNULL, timeout=110)
        got = subprocess.run([build + "/gpuwait", "report", "--json", folder + "/t"], check=True,
                             capture_output=True, text=True).stdout
        with open(folder + "/truth.json", encoding="utf-8") as f:
            truth = json.load(f)
        device = json.loads(got)["processes"][0]["devices"][0]
        time = device["time"]
        busy = 100 - time["idle_pct"]
        low, high = time["busy_interval_pct"]
        bands = device["gap_bands"]
        return {
            "seed": seed, "truth": truth["busy_pct"], "busy": busy, "low": low, "high": high,
            "busy_error": busy - truth["busy_pct"],
            "bands": [bands[b + "_pct"] - truth["gap_bands"][b + "_pct"] for b in BANDS],
            "method": time["method"],
        }
    except (subprocess.SubprocessError, KeyError, TypeError, ValueError, IndexError) as error:
        return {"seed": seed, "error": "%s: %s" % (type(error).__name__, error)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def tell(r):
    """One line; what it is good for."""
    if "error" in r:
        print("seed %4d  %s" % (r["seed"], r["error"]), flush=True)
        return False, False, False
    good = (
        abs(r["busy_error"]) <= opts.busy,
        all(abs(b) <= opts.band for b in r["bands"]),
        r["low"] <= r["truth"] <= r["high"],
    )
    if not opts.quiet or not all(good):
        print(
            "seed %4d  truth %6.2f  busy %6.2f (%+5.2f) in [%6.2f, %6.2f]  bands %s  %s%s%s%s"
            % (r["seed"], r["truth"], r["busy"], r["busy_error"], r["low"], r["high"],
               " ".join("%+5.2f" % b for b in r["bands"]), r["method"], "" if good[0] else " BUSY",
               "" if good[1] else " BANDS", "" if good[2] else " OUTSIDE"), flush=True,
        )
    return good


first, last = (int(n) for n in opts.seeds.split(":"))
counts, widths, n = [0, 0, 0], [], 0
with concurrent.futures.ThreadPoolExecutor(opts.jobs) as pool:
    for row in pool.map(run, range(first, last + 1)):
        n += 1
        counts = [a + b for a, b in zip(counts, tell(row))]
        if "error" not in row:
            widths.append(row["high"] - row["low"])
print("%d programs: busy within %g points in %d, bands within %g in %d, inside the interval in %d; "
      "which is %.1f points wide (median)"
      % (n, opts.busy, counts[0], opts.band, counts[1], counts[2],
         sorted(widths)[len(widths) // 2] if widths else 0))
sys.exit(min(counts) < opts.share / 100 * n)
