#!/bin/sh
# Steps of loops of every shape (tests/sim/clients/loops.c, which says how many it made and what
# each launches) are found, and what interrupts them is told from them. All is recorded by the
# simulator's clock: most of these loops are over in a millisecond, in which a busy machine can
# make any step an uneven one.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shells inside
. "$(dirname "$0")/lib.sh"
loops=$B/sim/clients/loops
[ -x "$loops" ] || { echo "the simulator is not built"; exit 77; }
cd "$work" || exit 1
export SIM_CLOCK=virtual GPUWAIT_TEST_CLOCK=1
export LD_LIBRARY_PATH="$B/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
cat >check.py <<'END'
import json, re, sys
p, = json.load(open("report.json"))["processes"]
s = p["steps"]
steps, launches = map(int, re.search(r"(\d+) steps, (\d+) launches", open("said").read()).groups())
wanted = dict(a.split("=") for a in sys.argv[1:])
if wanted.pop("found", "yes") == "no":
    assert not s["count"] or s["confidence"] < 0.5, s
    sys.exit()
found = s[wanted.pop("number", "all")]
assert abs(found - steps) <= 1, ("steps", found, steps)
# nothing tells such a step from a part of one, so it is found, but not relied on
sure = wanted.pop("sure", "yes") == "yes"
assert (s["confidence"] >= 0.5) == sure, s["confidence"]
if wanted.pop("even", "yes") == "yes":
    assert s["launches"] == launches, ("launches", s["launches"], launches)
for key, value in wanted.items():
    got = s
    for part in key.split("."):
        got = got[part]
    assert got == json.loads(value), (key, got, value)
END
# loop KIND WANTED...
loop() {
    kind=$1
    shift
    runs "$kind: recorded" 0 "$gpuwait" run --no-report -o t -- "$loops" "$kind" "${steps-60}"
    cp "$out" said
    runs "$kind: reported" 0 "$gpuwait" report --json t
    cp "$out" report.json
    runs "$kind: steps" 0 python3 check.py "$@"
}
loop train identical=true micro_batches=1 recompute_pct=0
loop checkpoint identical=true recompute_segments=6
loop plain micro_batches=1
loop read_each micro_batches=1
loop accumulate micro_batches=4
loop accumulate_plain micro_batches=3
loop log unusual.period=5 identical=true
loop save unusual.period=10 identical=true
loop evaluate identical=true
loop shapes identical=false
loop infer identical=true micro_batches=null
loop experts even=no identical=false
# what loads its weights looks like its layers: that is warm-up
loop picked number=count small_reads=6
loop generate by_token=true
loop replay 'found_by="graph launches"' graph_launches=1
loop replay_twice 'found_by="graph launches"' graph_launches=2
# a forward pass of 32 kernels is replayed
loop replay_texts even=no kernels=32 graph_launches=1
loop replay_lengths even=no kernels=33 identical=false
loop replay_layers graph_launches=6 kernels=36
# so many calls that few steps must do
steps=12 loop update_each identical=true
loop only_layers sure=no identical=true
loop alternate sure=no even=no micro_batches=null
loop anything found=no

# asked for by name
runs "accumulate again" 0 "$gpuwait" run --no-report -o t -- "$loops" accumulate 30
cp "$out" said
runs "by range" 0 "$gpuwait" report --json --step-range step t
cp "$out" report.json
runs "by range: steps" 0 python3 check.py 'found_by="range"' confidence=1 micro_batches=4
runs "by kernel" 0 "$gpuwait" report --json --step-kernel loss t
cp "$out" report.json
runs "by kernel: as many as there are, on any thread" 0 python3 -c 'import json
s = json.load(open("report.json"))["processes"][0]["steps"]
assert (s["all"], s["found_by"]) == (240, "kernel"), s'
runs "no such steps" 2 "$gpuwait" report --steps 40:50 t
finish
