#!/usr/bin/env bash
# A job of four ranks that share one GPU, started by torchrun under `gpuwait run`: first to its end, with
# torch.profiler as referee on each rank, then with one rank killed midway; each beside the same
# without the recorder. torchrun_judge.py says what must hold.
#
#     tests/gpu/torchrun.sh
#
# Exit 0 if all of it does. Results go to build/torchrun; where OUT is set, packed there. Environment:
#   PYTHON    default python3
# make passes B, GPUWAIT and LIBGPUWAIT, the folder, the command and the preload.
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@"
set -u

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "${B:-$root/build}" && pwd) || exit 2
export GPUWAIT=${GPUWAIT:-$build/gpuwait}
results=$root/build/torchrun
python=${PYTHON:-python3}
port=$((20000 + RANDOM % 20000))
status=0

unset LD_PRELOAD GPUWAIT_OUT RANK LOCAL_RANK WORLD_SIZE
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} PYTHONUNBUFFERED=1
export GLOO_SOCKET_IFNAME=${GLOO_SOCKET_IFNAME:-lo}
rm -rf "$results"

# job MODE NAME REFEREE [RECORDER...]: in results/MODE/NAME, with NAME.out, NAME.err, NAME.exit beside
job() {
	local folder=$results/$1/$2 mode=$1 referee=$3
	shift 3
	mkdir -p "$folder" || exit 2
	GPUWAIT_REFEREE=$referee timeout -k 5 150 "$@" "$python" -m torch.distributed.run --nproc-per-node 4 \
		--master-addr 127.0.0.1 --master-port $((++port)) "$here/torchrun.py" "$folder" "$mode" \
		>"$folder.out" 2>"$folder.err" </dev/null
	echo $? >"$folder.exit"
}

for mode in end killed; do
	begun=$SECONDS
	job $mode bare 0
	referee=1
	[ $mode = end ] || referee=0
	job $mode recorded $referee "$GPUWAIT" run -o "$results/$mode/dump" --
	"$python" "$here/torchrun_judge.py" "$results/$mode" $mode || status=1
	echo "# $mode: $((SECONDS - begun)) s, exit $(cat "$results/$mode/bare.exit") bare, $(cat "$results/$mode/recorded.exit") recorded"
done
[ -z "${OUT:-}" ] || tar -C "$results" -cJf "$OUT/torchrun.tar.xz" end killed || status=1
exit $status
