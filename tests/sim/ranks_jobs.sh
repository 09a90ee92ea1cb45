#!/bin/sh
# Jobs of RANKS processes over hosts whose clocks differ by up to 10 s, each with one planted fault or
# none, recorded and judged: ranks_jobs.sh RANKS STEPS [FAULT...]
#
# Without FAULT all of ranks.py's. KEEP is a folder for the recordings, which are else removed.
# shellcheck source=tests/sim/lib.sh
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }
n=$1 steps=$2
shift 2
[ $# -gt 0 ] || set -- none data data4 gc gpu link excess hidden exposed
export GPUWAIT="$B/gpuwait"
hosts=$(((n + 7) / 8))
[ $hosts -gt 1 ] || hosts=2

recorded() { # FAULT
    env SIM_CLOCK=virtual GPUWAIT_TEST_CLOCK=1 GPUWAIT_OUT="$job/dump" \
        LD_PRELOAD="$B/libgpuwait.so $sim/libhost_sim.so" "$sim/clients/ranks" -n "$n" -s "$steps" \
        -f "$1" -r 1 -H $hosts -o 10 -t "$job/truth"
}

judged() { # FAULT
    python3 "$here/ranks.py" "$job" "$1" 1 10
}

for f; do
    job=${KEEP:-$work}/$n.$f
    rm -rf "$job"
    mkdir -p "$job/truth"
    check "$n ranks, $f" recorded "$f"
    check "$n ranks, $f: judged" judged "$f"
    sed 's/^/  /' "$work/out"
    [ -n "${KEEP-}" ] || rm -rf "$job"
done
finish
