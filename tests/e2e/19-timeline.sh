#!/bin/sh
# A recording with samples: GPU time, gaps, kernels and copies in JSON and text; without them
# the same names are null.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shells inside
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
cat >make.py <<'END'
import struct, sys
from mkdump import Dump, H2D, START

CLASS = {"kernel": 1, "h2d": 3}

def timed(d, kind, us, arg=0, size=0):
    """A sample; a pair adds 2.7 us, and kernels are counted 0.6 us longer than they see; what
    they have written takes 0.15."""
    pair = int(us * 1000) + (2250 if kind == "kernel" else 2700)
    d.put(struct.pack("<QIHHHHIQ", START, pair, 0xFF00 + 36, CLASS[kind] | 0x10, 1, 0, arg, size), 9)

d = Dump(host="node7", command="python train.py")
d.device("NVIDIA H200")
d.thread()
s = d.stream("legacy")
side = d.stream("user", handle=7, nonblocking=1)
for number in CLASS.values():
    d.put(struct.pack("<QIHHHHIQ", START, 20000, 0xFF00 + 37, number, 0, 0, 50, 2700000), 9)
if sys.argv[1] == "sampled":
    for us in (10, 10, 10):
        timed(d, "kernel", us, d.signature("_Z3addPfi", (200, 1, 1)))
    for us in (100, 100):
        timed(d, "h2d", us, size=1 << 20)
# a submission takes 2.3 us to arrive, a stream pauses 0.7 us between kernels
d.launch(0, 1, s)                           # 3.3 .. 13.3
d.launch(2, 1, s)                           # 14.0 .. 24.0
d.copy(20, 1, H2D, 1 << 20, side)           # 23.3 .. 123.3
d.launch(40, 1, s)                          # 43.3 .. 53.3, over the copy
d.launch(997, 1, s)                         # 1000.3 .. 1010.3
d.sync(999, 30, d.stream("none"))
d.write("%s.gwt" % sys.argv[1])
END
cat >check.py <<'END'
import json, sys
d = json.load(open(sys.argv[1]))["processes"][0]["devices"][0]
bad = 0

def is_(what, wanted, got):
    global bad
    if not (wanted == got or (isinstance(wanted, float) and abs(wanted - got) < 1e-3)):
        bad += 1
        print("%s: wanted %r, got %r" % (what, wanted, got))

wall = 1007.0
t = d["time"]
is_("method", "sampled", t["method"])
is_("wall", wall / 1e6, d["window"]["wall_s"])
is_("compute", 100 * 40 / wall, t["compute_pct"])
is_("communication", 0.0, t["exposed_comm_pct"])
is_("copies", 100 * (99.3 - 10) / wall, t["exposed_copy_pct"])
is_("idle", 100 * (0.7 + 877) / wall, t["idle_pct"])
low, high = t["busy_interval_pct"]
is_("busy is inside its interval", True, low < 100 - t["idle_pct"] < high)
is_("sampled share", 100.0, t["sampled_share_pct"])
is_("nvidia-smi", 100.0, t["nvidia_smi_pct"])
is_("residual is there", True, t["anchor_residual_pct"] >= 0)
# on the way: 0.7 behind the first kernel and 3.3 from the last launch's entry; else the host was
# outside CUDA from 41 to 997, of which the device was idle from 123.3 on
is_("idle in launches", 100 * (0.7 + 3.3) / wall, t["idle"].pop("launch_pct"))
is_("idle outside CUDA", 100 * (997 - 123.3) / wall, t["idle"].pop("dispatch_pct"))
is_("no other idle", {0.0}, set(t["idle"].values()))
is_("drained", 0.0, t["drained_pct"])
is_("queue", (2.3 + 11.0 + 2.3 + 2.3) / 4, d["queue_us"]["mean"])
is_("met idle", 50.0, d["met_idle_pct"])
is_("over 100 us", 100 * 877 / wall, d["gap_bands"]["over_100us_pct"])
is_("10 to 100 us", 0.0, d["gap_bands"]["10_to_100us_pct"])
is_("under 10 us", 100 * 0.7 / wall, d["gap_bands"]["under_10us_pct"])
is_("gaps", [(123.3e-6, 0.877), (13.3e-6, 0.0007)],
    [(round(g["start_s"], 9), round(g["ms"], 6)) for g in d["gaps"]])
is_("a gap's parts", {"start_s", "ms", "parts", "drained_by", "python"}, set(d["gaps"][0]))
k, = d["kernels"]
is_("kernel", ("add(float*, int)", 4), (k["name"], k["calls"]))
is_("mean", 10.0, k["mean_us"])
is_("total", 0.04, k["total_ms"])
is_("share of busy time", 100 * 40 / 129.3, k["busy_pct"])
c, = d["transfers"]
is_("busy", 0.1, c["busy_ms"])
is_("GB/s", (1 << 20) / 100e3, c["gb_per_s"])
is_("exposed", 89.3, c["exposed_pct"])
sys.exit(bad != 0)
END
python3 make.py sampled && python3 make.py bare
runs "report --json" 0 "$gpuwait" report --json sampled.gwt
cp "$out" report.json
runs "its figures" 0 python3 check.py report.json
runs "in a text report" 0 "$gpuwait" report sampled.gwt
has "busy time is split" "$out" "^   4\.0 %  computing"
has "and bounded" "$out" "^  87\.2 %  idle; busy is between "
has "of what" "$out" "^ 100\.0 %  of 1\.01 ms, first operation to last"
has "gaps by length" "$out" "^  idle in gaps over 100 us  *87\.1 %"
has "the longest gap" "$out" "^   877 us  0\.0001"
has "kernels by time" "$out" "^      4    10\.00      0\.04  30\.9 %    0 %  add"
has "copies by time" "$out" "^      1  1\.0 MiB  1\.0 MiB     0\.10  10\.49     89 % "
hasnt "no bound of idle beside it" "$out" "^GPU idle, lower bound"

runs "without samples" 0 "$gpuwait" report --json bare.gwt
is "only bounds" "['bounds', None, None, None, None, None]" "$(json "$out" '[
    [d["time"]["method"], d["time"]["idle_pct"], d["time"]["sampled_share_pct"], d["gaps"],
     d["queue_us"]["p50"], d["kernels"][0]["mean_us"]] for d in j["processes"][0]["devices"]][0]')"
runs "and so does the text" 0 "$gpuwait" report bare.gwt
has "a bound of idle" "$out" "^GPU idle, lower bound"
finish
