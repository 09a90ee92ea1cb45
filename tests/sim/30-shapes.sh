#!/bin/sh
# Every launch shape of a program with many is timed on the device, whatever else it shares a
# place in the table of shapes with.
# shellcheck source=tests/sim/lib.sh
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }

check "shapes runs" env SIM_CLOCK=virtual GPUWAIT_TEST_CLOCK=1 GPUWAIT_GPU_TIMING=20 \
    GPUWAIT_OUT="$work/dump" LD_PRELOAD="$B/libgpuwait.so" "$sim/clients/shapes" 150 800
"$B/gpuwait" info --events --json "$work/dump" >"$work/events" 2>"$work/err"
cat >"$work/count.py" <<'PY'
import sys
from events import events

launched, timed = {}, {}
for e in events(sys.argv[1]):
    if e["kind"] == "LAUNCH":
        launched[e["arg"]] = launched.get(e["arg"], 0) + 1
    elif e["kind"] == "SAMPLE":
        timed[e["arg"]] = timed.get(e["arg"], 0) + 1
never = [s for s in launched if not timed.get(s)]
print("%d shapes, %d launches, %d samples, never timed: %s" % (
    len(launched), sum(launched.values()), sum(timed.values()), never))
sys.exit(len(launched) != 150 or bool(never))
PY
check "each of 150 shapes was timed" env PYTHONPATH="$here" python3 "$work/count.py" "$work/events"
cat "$work/out"
finish
