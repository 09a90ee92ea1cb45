#!/bin/sh
# What the report over RANKS recordings of about EVENTS each costs: ranks_scale.sh [RANKS [EVENTS]]
#
# Eight simulated ranks, one of which is late, are recorded; the rest are copies of these under other
# names, so that every collective has RANKS partners. Default: 256 ranks of a million events, which
# take some minutes and 1 GB of disk. KEEP is a folder for the recordings, which are else removed.
# shellcheck source=tests/sim/lib.sh
. "$(dirname "$0")/lib.sh"
n=${1:-256} events=${2:-1000000}
job=${KEEP:-$work}/scale
few=8 a_step=153 # events of a step

[ -x "$B/as_rank" ] || { echo "$B/as_rank is not built"; exit 1; }
if [ ! -d "$job/many" ]; then
    rm -rf "$job"
    mkdir -p "$job/many"
    env SIM_CLOCK=virtual GPUWAIT_TEST_CLOCK=1 GPUWAIT_FULL=block GPUWAIT_OUT="$job/few" \
        LD_PRELOAD="$B/libgpuwait.so" "$sim/clients/ranks" -n $few -s $((events / a_step)) \
        -f data4 -r 3 || exit 1
    r=0
    while [ "$r" -lt "$n" ]; do
        for one in "$job"/few/*.gwt; do
            "$B/as_rank" "$one" "$job/many/$r.gwt" "$r" "$n" "node$((r / few))" || exit 1
            r=$((r + 1))
        done
    done
fi
du -sh "$job/many"
check "the report" /usr/bin/time -v "$B/gpuwait" report --json "$job/many"
mv "$work/out" "$work/report.json"
sed -n 's/^[[:space:]]*\(Elapsed.*\|Maximum resident.*\|User time.*\|System time.*\)/\1/p' "$work/err"
python3 - "$work/report.json" <<'PY'
import json, sys
job = json.load(open(sys.argv[1]))["job"]
print("ranks %d, collectives %d, unmatched %d, verdict %s, late %d" % (
    len(job["ranks"]), job["collectives"], job["unmatched"], job["verdict"], len(job["late"])))
PY
finish
