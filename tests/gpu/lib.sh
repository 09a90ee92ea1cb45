# Sourced by the scripts beside it that run jobs and judge them: where build, tool, library and Python are,
# and an environment that is the same for all. make passes B, GPUWAIT and LIBGPUWAIT.
# shellcheck shell=bash disable=SC2034  # used by those who source it
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "${B:-$root/build}" && pwd) || exit 2
export GPUWAIT=${GPUWAIT:-$build/gpuwait}
library=${LIBGPUWAIT:-$build/libgpuwait.so}
python=${PYTHON:-python3}
results=$root/build/$(basename "$0" .sh)
status=0

unset LD_PRELOAD GPUWAIT_OUT RANK LOCAL_RANK WORLD_SIZE
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} PYTHONUNBUFFERED=1
rm -rf "$results"

# job FOLDER SECONDS COMMAND...: what it says to FOLDER.out and .err, how it ends to FOLDER.exit
job() {
	local folder=$1 seconds=$2
	shift 2
	mkdir -p "$folder" || exit 2
	timeout -k 5 "$seconds" "$@" >"$folder.out" 2>"$folder.err" </dev/null
	echo $? >"$folder.exit"
}

# at the end: the folders of results, packed for who asked for them
pack() {
	[ -z "${OUT:-}" ] || tar -C "$results" -cJf "$OUT/$(basename "$results").tar.xz" "$@" || status=1
}
