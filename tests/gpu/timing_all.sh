#!/bin/bash
# GPU time on a real GPU: a report's timeline, kernels, graphs and copies beside CUPTI's, in the
# same run; the same results with timing on and off; modes in which it must not time; captures
# and autotuners beside it.
#
#   timing_all.sh [WORKLOAD...]     default: all of busy.py's, and everything below
#
# LIBGPUWAIT, GPUWAIT: the preload and the tool. OUT: a folder for recordings and truth files.
set -u
cd "$(dirname "$0")" || exit 1
: "${LIBGPUWAIT:?}" "${GPUWAIT:?}" "${OUT:?}"
export GPUWAIT GPUWAIT_TRUTH_DIR=$OUT
mkdir -p "$OUT"
failures=0
note() { printf '%s\n' "$*"; }
bad() { note "NOT OK: $*"; failures=$((failures + 1)); }

# recorded NAME COMMAND...: under the preload, output to NAME.out
recorded() {
    local name=$1 begun=$SECONDS
    shift
    GPUWAIT_OUT=$OUT/$name LD_PRELOAD=$LIBGPUWAIT timeout 90 "$@" >"$OUT/$name.out" 2>"$OUT/$name.err" ||
        { bad "$name: exit $?"; tail -2 "$OUT/$name.err"; }
    note "# $name: $((SECONDS - begun)) s"
}

workloads=${*:-lora_mlp llama_b1 llama_b4 llama_b16 conv_net generate_tokens compiled graph_replay
    prefetch starved saturated host_gap}
for w in $workloads; do recorded "$w" python3 busy.py "$w"; done
[ $# = 0 ] && recorded copies python3 copies.py
python3 timing_table.py "$OUT" || failures=$((failures + 1))
[ $# != 0 ] && exit $((failures != 0))

# identical results
python3 identical.py >"$OUT/bare.txt" 2>/dev/null
recorded identical_on python3 identical.py
GPUWAIT_GPU_TIMING=off recorded identical_off python3 identical.py
if cmp -s "$OUT/bare.txt" "$OUT/identical_on.out" && cmp -s "$OUT/bare.txt" "$OUT/identical_off.out"; then
    note "losses: the same bits bare, timed and not timed: $(tail -1 "$OUT/bare.txt" | cut -c1-20)"
else
    bad "losses differ"
fi

# modes: no harm, and bounds
method() {
    "$GPUWAIT" report --json "$OUT/$1" 2>/dev/null | python3 -c '
import json, sys
p = json.load(sys.stdin)["processes"][0]
print([d["time"]["method"] for d in p["devices"]], p["quality"]["complete"])'
}
python3 two_streams.py >"$OUT/two_bare.txt" 2>/dev/null
for mode in CUDA_LAUNCH_BLOCKING=1 CUDA_DEVICE_MAX_CONNECTIONS=1 GPUWAIT_GPU_TIMING=off; do
    recorded "mode_$mode" env "$mode" python3 two_streams.py
    cmp -s "$OUT/two_bare.txt" "$OUT/mode_$mode.out" || bad "$mode: other output"
    note "$mode: method $(method "mode_$mode")"
done
sanitizer=$(command -v compute-sanitizer || find /usr/local -name compute-sanitizer -type f 2>/dev/null | head -1)
if [ -n "$sanitizer" ]; then
    GPUWAIT_OUT=$OUT/sanitizer timeout 120 "$sanitizer" --target-processes all \
        env "LD_PRELOAD=$LIBGPUWAIT" python3 two_streams.py >"$OUT/sanitizer.out" 2>&1
    note "compute-sanitizer: exit $?, $(grep -c 'Invalid\|Error' "$OUT/sanitizer.out") errors, $(tail -1 "$OUT/sanitizer.out"), method $(method sanitizer)"
else
    note "compute-sanitizer: not installed"
fi

# captures and autotuners beside it
GPUWAIT_GPU_TIMING=2 recorded stress python3 capture_stress.py 1000
note "captures: $(head -1 "$OUT/stress.out"); $("$GPUWAIT" info "$OUT/stress" | grep -i 'timed on')"
GPUWAIT_GPU_TIMING=2 recorded autotune python3 autotune.py
"$GPUWAIT" info --events --json "$OUT/autotune" >"$OUT/autotune.events" 2>/dev/null
PYTHONPATH=../sim python3 - "$OUT/autotune.events" "$OUT/autotune.out" <<'EOF2' || failures=$((failures + 1))
import re, sys
from events import events
marks, samples = [], []
for e in events(sys.argv[1]):
    if e["kind"] == "EVENT_RECORD":
        marks.append((e["t0_ns"], e["value"]))
    elif e["kind"] == "SAMPLE":
        samples.append(e["t0_ns"])
# Of the loop's own pair it is known which begins; of cuDNN's events not, so none may lie between any.
begin, end = map(int, re.search(r"^events (\d+) (\d+)", open(sys.argv[2]).read(), re.M).groups())
held = [(a, b) for (a, x), (b, y) in zip(marks, marks[1:]) if b - a < 10**9 and (x, y) != (end, begin)]
own = sum((x, y) == (begin, end) for (_, x), (_, y) in zip(marks, marks[1:]))
between = [t for t in samples if any(a < t < b for a, b in held)]
print("autotune: %d samples, %d event records, %d samples between two of them, %d intervals of its own" % (
    len(samples), len(marks), len(between), own))
sys.exit(bool(between) or not samples or own < 200)
EOF2

for i in 1 2 3 4 5; do timeout 90 python3 chosen.py >"$OUT/chosen.$i" 2>/dev/null; done
GPUWAIT_GPU_TIMING=2 recorded chosen python3 chosen.py
python3 chosen.py "$OUT/chosen.out" "$OUT"/chosen.[1-5] || failures=$((failures + 1))

# what it costs
for kind in launch gpu; do
    for what in timing recording; do
        recorded "onoff_${what}_$kind" python3 onoff.py "$what" "$kind"
        note "$(cat "$OUT/onoff_${what}_$kind.out")"
        [ $what = timing ] && "$GPUWAIT" info --json "$OUT/onoff_${what}_$kind" | python3 -c '
import json, sys
p = json.load(sys.stdin)["processes"][0]
print("  counted: samples %s voids %s own host %s ms own GPU %s ms" % tuple(p[k] for k in ("samples", "voids", "own_host_ms", "own_gpu_ms")))'
    done
done
[ $failures = 0 ] && note "timing: all within bounds"
exit $((failures != 0))
