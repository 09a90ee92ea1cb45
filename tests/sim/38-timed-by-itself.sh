#!/bin/sh
# A program that times one iteration in many by events of its own: no sample lies between two of
# them, and all else is sampled, however often that is.
# shellcheck source=tests/sim/lib.sh
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }

cat >"$work/program.py" <<'PY'
import ctypes
from driver import check, cuda, kernel, launch, let_start

begin, middle, end = (ctypes.c_void_p() for _ in range(3))
ms = ctypes.c_float()
short = kernel(b"short", 20)
let_start(3)  # what writes the recording, what watches threads, what samples
for e in begin, middle, end:
    check(cuda.cuEventCreate(ctypes.byref(e), 0))
iteration, timed = 0, False
until = cuda.sim_now_ns() + 4 * 10**9
while cuda.sim_now_ns() < until:
    if timed:
        for start, stop in (begin, middle), (middle, end), (begin, end):
            check(cuda.cuEventElapsedTime(ctypes.byref(ms), start, stop))
    timed = iteration % 20 == 0  # ten times a second
    for n, event in (0, begin), (100, middle), (100, end):
        for _ in range(n):
            launch(short)
        if timed:
            check(cuda.cuEventRecord(event, None))
    check(cuda.cuCtxSynchronize())
    iteration += 1
PY
cat >"$work/judge.py" <<'PY'
import sys
from events import events

marks, samples = [], []
for e in events(sys.argv[1]):
    if e["kind"] == "EVENT_RECORD":
        stamped = e["detail"].endswith(" with a time stamp")
        marks.append(e["t0_ns"])
    elif e["kind"] == "SAMPLE":
        samples.append(e["t0_ns"])
assert samples and stamped, "the newest was made to measure"
intervals = list(zip(marks[::3], marks[2::3]))
# what the sampler saw before it knew any of these events may hold it off for a second
between = [(a[1], b[0]) for a, b in zip(intervals, intervals[1:]) if a[1] > samples[0] + 10**9]
assert len(between) > 6 and max(b - a for a, b in between) < 10**9, between
within = [t for t in samples if any(a <= t <= b for a, b in intervals)]
sampled = [p for p in between if any(p[0] < t < p[1] for t in samples)]
print("%d samples, %d in intervals, some in %d of %d times between two" % (
    len(samples), len(within), len(sampled), len(between)))
# the first interval of which the sampler knows is not known yet
sys.exit(bool(within) or len(sampled) < len(between) - 2)
PY
check "the program runs" env PYTHONPATH="$here" SIM_CLOCK=virtual GPUWAIT_TEST_CLOCK=1 \
    GPUWAIT_GPU_TIMING=20 GPUWAIT_OUT="$work/dump" GPUWAIT_STACKS=off LD_LIBRARY_PATH="$sim" \
    LD_PRELOAD="$B/libgpuwait.so" python3 "$work/program.py"
"$B/gpuwait" info --events --json "$work/dump" >"$work/events" 2>"$work/err"
check "samples lie outside of its own timing" env PYTHONPATH="$here" python3 "$work/judge.py" "$work/events"
cat "$work/out"

# One that times everything but its first second, by new events each time: what it timed itself was
# never sampled, and no verdict rests on what that is guessed to last.
cat >>"$work/program.py" <<'PY'
long = kernel(b"long", 400)
until = cuda.sim_now_ns() + 2 * 10**9
while cuda.sim_now_ns() < until:
    for e in begin, end:
        check(cuda.cuEventCreate(ctypes.byref(e), 0))
    check(cuda.cuEventRecord(begin, None))
    for _ in range(50):
        launch(long)
    check(cuda.cuEventRecord(end, None))
    check(cuda.cuCtxSynchronize())
    check(cuda.cuEventElapsedTime(ctypes.byref(ms), begin, end))
    for e in begin, end:
        check(cuda.cuEventDestroy(e))
PY
sed -i 's/+ 4 \* 10/+ 1 * 10/' "$work/program.py"
check "the program runs on" env PYTHONPATH="$here" SIM_CLOCK=virtual GPUWAIT_TEST_CLOCK=1 \
    GPUWAIT_OUT="$work/untimed" GPUWAIT_STACKS=off LD_LIBRARY_PATH="$sim" \
    LD_PRELOAD="$B/libgpuwait.so" python3 "$work/program.py"
"$B/gpuwait" report --json --steps all "$work/untimed" >"$work/untimed.json" 2>"$work/err"
check "nothing is concluded from guesses" python3 -c '
import json, sys
p = json.load(open(sys.argv[1]))["processes"][0]
d = p["devices"][0]
print(p["verdict"], d["time"]["busy_interval_pct"], d["time"]["compute_pct"], d["time"]["sampled_share_pct"])
assert p["verdict"] == "inconclusive", p["verdict"]
assert d["time"]["busy_interval_pct"][1] > 80, d["time"]' "$work/untimed.json"
cat "$work/out"
finish
