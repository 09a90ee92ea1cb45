#!/usr/bin/env bash
# A DataLoader with persistent workers, one of which is killed in the middle of its second epoch, bare and
# recorded at once: forked workers that only make samples (LD_PRELOAD), and spawned ones that make
# them on the device (`gpuwait run`). loader_killed_judge.py says what must hold.
#
#     tests/gpu/loader_killed.sh
#
# Exit 0 if all of it does. Results go to build/loader_killed; where OUT is set, packed there. Environment:
#   PYTHON    default python3
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@"
# shellcheck disable=SC1091  # beside this
. "$(dirname "$0")/lib.sh"

# loader WORKERS NAME REFEREE [RECORDER...]
loader() {
	local workers=$1 folder=$results/$1/$2 referee=$3
	shift 3
	GPUWAIT_REFEREE=$referee GPUWAIT_TRUTH_DIR=$folder job "$folder" 100 "$@" \
		"$python" "$here/loader_killed.py" "$folder" "$workers"
}

for workers in reading computing; do
	loader $workers bare 0 &
done
loader reading recorded 1 env "LD_PRELOAD=$library" "GPUWAIT_OUT=$results/reading/dump" &
loader computing recorded 1 "$GPUWAIT" run -o "$results/computing/dump" -- &
wait
for workers in reading computing; do
	"$python" "$here/loader_killed_judge.py" "$results/$workers" $workers || status=1
done
echo "# $SECONDS s"
pack reading computing
exit $status
