#!/bin/sh
# The bound of idle time is one: never more than the simulated device was idle, in programs
# made up of streams, events, graphs, copies and waits of every kind.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shells inside
. "$(dirname "$0")/lib.sh"
random=$B/sim/clients/random
[ -x "$random" ] || { echo "the simulator is not built"; exit 77; }
cd "$work" || exit 1
export LD_LIBRARY_PATH="$B/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
cat >compare.py <<'END'
import json, sys
p, = json.load(open(sys.argv[1]))["processes"]
d, = p["devices"]
spans = sorted((int(row[3]), int(row[4])) for row in
               (line.split("\t") for line in open(sys.argv[2]).read().splitlines()[1:]))
reach, busy = 0, 0
for start, end in spans:
    busy += max(0, end - max(start, reach))
    reach = max(reach, end)
window = d["window"]
bound = d["time"]["provable_idle_pct"] * window["wall_s"] * 1e9 / 100
wall = (window["wall_s"] + (window["excluded_s"] or 0)) * 1e9
# the host's window is wider than the device's: work starts after its entry
assert wall >= spans[-1][1] - spans[0][0] - 50e3, (wall, spans[-1][1] - spans[0][0])
assert 0 <= bound <= wall - busy + 1000, (bound, wall - busy)
print("%.1f of %.1f ms idle proven" % (bound / 1e6, (wall - busy) / 1e6))
END
for seed in 1 2 4 7 10 13 16 19; do
    runs "seed $seed: recorded" 0 env SIM_TIMELINE="$work/timeline" SIM_SEED=$seed \
        "$gpuwait" run --no-report -o t -- "$random" $seed 200
    runs "seed $seed: reported" 0 "$gpuwait" report --json t
    cp "$out" report.json
    runs "seed $seed: a lower bound" 0 python3 compare.py report.json timeline
    sed 's/^/# /' "$out"
done
finish
