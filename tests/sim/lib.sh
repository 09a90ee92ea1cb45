# Sourced by the scripts beside it: where things are, a scratch folder, checks.
# shellcheck shell=sh disable=SC2034  # for who sources it
set -u
: "${B:=build}"
B=$(cd "$B" && pwd) || exit 1
sim=$B/sim
here=$(cd "$(dirname "$0")" && pwd)
unset GPUWAIT LD_PRELOAD LD_LIBRARY_PATH GPUWAIT_OUT SIM_CLOCK SIM_FAIL SIM_TRUTH
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1
[ -x "$sim/clients/rt13" ] || { echo "$sim is not built"; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/gpuwait-sim.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
failures=0

ok() { echo "ok - $1"; }
not_ok() {
    echo "not ok - $1"
    [ -s "$work/err" ] && sed 's/^/  | /' "$work/err"
    failures=$((failures + 1))
}
# check NAME COMMAND...: it exits with 0
check() {
    _name=$1
    shift
    if "$@" >"$work/out" 2>"$work/err" </dev/null; then ok "$_name"; else not_ok "$_name"; fi
}
# check_fails NAME COMMAND...: it does not
check_fails() {
    _name=$1
    shift
    if "$@" >"$work/out" 2>"$work/err" </dev/null; then not_ok "$_name"; else ok "$_name"; fi
}
finish() { [ "$failures" = 0 ]; }

# every client that checks itself, with the devices that one of them needs
clients="rt13 rt12 rt11 graphs graphs11 cublas_like triton_like ptsz two_cudarts local threads
    unload nccl demo_qlora"
export SIM_DEVICES=2
