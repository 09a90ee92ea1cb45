#!/bin/sh
# Memory that another process holds is no room for a larger batch: the driver is asked for what is
# free, and the report's headroom is of that.
# shellcheck source=tests/sim/lib.sh
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }

for ballast in 0 8 23; do
    check "runs beside $ballast GiB" env SIM_CLOCK=virtual GPUWAIT_TEST_CLOCK=1 SIM_MEMORY=24G SIM_BALLAST=${ballast}G \
        GPUWAIT_FULL=block GPUWAIT_OUT="$work/$ballast" LD_PRELOAD="$B/libgpuwait.so" "$sim/clients/demo_qlora" 40
    "$B/gpuwait" report --json "$work/$ballast" >"$work/$ballast.json"
done
cat >"$work/judge.py" <<'PY'
import json, sys

GIB = 2**30
for ballast in 0, 8, 23:
    with open("%s/%d.json" % (sys.argv[1], ballast)) as f:
        m = json.load(f)["processes"][0]["devices"][0]["memory"]
    assert m["headroom_without_others"] is False, m
    # less what the program and the recorder took outside of the pool, some MiB
    left = (24 - ballast) * GIB - m["capacity_bytes"]
    assert 0 <= left < 64 << 20, (ballast, m)
    room = m["capacity_bytes"] - m["peak_allocated_bytes"]
    assert m["headroom_bytes"] == room, (ballast, m)
    times = 1 + 0.9 * room / m["activation_bytes"]
    assert abs(m["batch_multiplier"] / times - 1) < 1e-6, (ballast, m)
PY
check "headroom is what the other process leaves" python3 "$work/judge.py" "$work"
finish
