#!/usr/bin/env bash
# A job of four ranks that share one GPU, started by torchrun under `gpuwait run`: first to its end, with
# torch.profiler as referee on each rank, then with one rank killed midway; each beside the same
# without the recorder. torchrun_judge.py says what must hold.
#
#     tests/gpu/torchrun.sh
#
# Exit 0 if all of it does. Results go to build/torchrun; where OUT is set, packed there. Environment:
#   PYTHON    default python3
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@"
# shellcheck disable=SC1091  # beside this
. "$(dirname "$0")/lib.sh"
port=$((20000 + RANDOM % 20000))
export GLOO_SOCKET_IFNAME=${GLOO_SOCKET_IFNAME:-lo}

# ranks MODE NAME REFEREE [RECORDER...]
ranks() {
	local mode=$1 folder=$results/$1/$2 referee=$3
	shift 3
	GPUWAIT_REFEREE=$referee job "$folder" 150 "$@" "$python" -m torch.distributed.run --nproc-per-node 4 \
		--master-addr 127.0.0.1 --master-port $((++port)) "$here/torchrun.py" "$folder" "$mode"
}

for mode in end killed; do
	begun=$SECONDS
	ranks $mode bare 0
	referee=1
	[ $mode = end ] || referee=0
	ranks $mode recorded $referee "$GPUWAIT" run -o "$results/$mode/dump" --
	"$python" "$here/torchrun_judge.py" "$results/$mode" $mode || status=1
	echo "# $mode: $((SECONDS - begun)) s, exit $(cat "$results/$mode/bare.exit") bare, $(cat "$results/$mode/recorded.exit") recorded"
done
pack end killed
exit $status
