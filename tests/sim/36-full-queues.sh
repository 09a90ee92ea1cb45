#!/bin/sh
# Jobs of two ranks that wait for their devices so seldom that launch queues fill: nobody is late where
# none is, nor where devices slow down for a while, each at times of its own; one whose device is slower
# throughout is. What a call waits for room in a queue is not paid from what samples may cost: else
# each rank of this job has 200 samples instead of 650, and some kernels none.
# shellcheck source=tests/sim/lib.sh
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }

enough() { # DUMP...
    for dump; do
        "$B/gpuwait" info --json "$dump" | python3 -c 'import json, sys
samples = json.load(sys.stdin)["processes"][0]["samples"]
print(samples, "samples")
sys.exit(samples < 400)' || return 1
    done
}

check "jobs are judged" env KEEP="$work" sh "$here/ranks_jobs.sh" 2 1000 queue slower
cat "$work/out"
# Of how fast a device is in each second its samples in that second tell: some more seconds of it.
check "jobs are judged" env KEEP="$work" sh "$here/ranks_jobs.sh" 2 2000 heat
cat "$work/out"
check "samples of each rank" enough "$work"/2.queue/dump/*.gwt
cat "$work/out"
finish
