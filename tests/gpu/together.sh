#!/usr/bin/env bash
# together.py bare and under the preload, side by side: neither fails, and the rounds that both came to
# have the same bits.
#
#     tests/gpu/together.sh [SECONDS]      default 300
#
# Exit 0 if so. Environment: OUT for the recording (packed) and the outputs; PYTHON.
# make passes B, GPUWAIT and LIBGPUWAIT, the folder, the command and the preload.
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@"
set -u

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "${B:-$root/build}" && pwd) || exit 2
gpuwait=${GPUWAIT:-$build/gpuwait}
library=${LIBGPUWAIT:-$build/libgpuwait.so}
python=${PYTHON:-python3}
results=$root/build/together
seconds=${1:-300}
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=${OMP_NUM_THREADS:-2}
unset LD_PRELOAD GPUWAIT GPUWAIT_OUT
rm -rf "$results"
mkdir -p "$results/bare.cache" "$results/recorded.cache" || exit 2
cd "$here" || exit 2

TRITON_CACHE_DIR=$results/bare.cache "$python" together.py "$seconds" >"$results/bare.out" 2>"$results/bare.err" &
bare=$!
TRITON_CACHE_DIR=$results/recorded.cache GPUWAIT_OUT=$results/dump LD_PRELOAD=$library \
	"$python" together.py "$seconds" >"$results/recorded.out" 2>"$results/recorded.err"
recorded=$?
wait $bare
bare=$?
rounds=$(cat "$results"/bare.out "$results"/recorded.out | grep -c .)
in_both=$(join -1 2 -2 2 <(sort -k2,2 "$results/bare.out") <(sort -k2,2 "$results/recorded.out"))
both=$(grep -c . <<<"$in_both")
wrong=$(awk 'NF && $3 != $5' <<<"$in_both" | wc -l)
said=$(grep -c gpuwait "$results/recorded.err")
echo "together: exit $bare bare, $recorded recorded; $rounds rounds in all, $both in both, of which $wrong differ; $said lines by us"
tail -n 1 "$results/bare.err" "$results/recorded.err"
"$gpuwait" info "$results/dump" | grep -E "complete|events  |state|timed on|valid time|ring was full|writ"
[ -z "${OUT:-}" ] || tar -C "$results" -cJf "$OUT/together.tar.xz" dump bare.out bare.err recorded.out recorded.err
[ "$bare" = 0 ] && [ "$recorded" = 0 ] && [ "$both" -gt 10 ] && [ "$wrong" = 0 ] && [ "$said" = 0 ]
