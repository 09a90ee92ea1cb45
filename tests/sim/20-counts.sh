#!/bin/sh
# Each client under the preload: it works as without, and the report counts what the truth
# counted.
# shellcheck source=tests/sim/lib.sh
. "$(dirname "$0")/lib.sh"
for tool in python3 c++filt; do
    command -v $tool >/dev/null 2>&1 || { echo "no $tool"; exit 77; }
done
if [ ! -x "$B/gpuwait" ] || [ ! -f "$B/libgpuwait.so" ]; then
    echo "gpuwait is not built"
    exit 1
fi

# with COMMAND...: under the preload, into a fresh directory
with() {
    rm -rf "$work/dump"
    env GPUWAIT_OUT="$work/dump" LD_PRELOAD="$B/libgpuwait.so" "$@"
}

for c in $clients "random 3 300" "random 28 300"; do
    # shellcheck disable=SC2086  # a client and its arguments
    set -- $c
    program=$sim/clients/$1
    shift
    SIM_CLOCK=virtual "$program" "$@" >"$work/bare" 2>&1
    export SIM_TRUTH="$work/truth.json" SIM_CLOCK=virtual
    check "$c runs" with "$program" "$@"
    unset SIM_TRUTH SIM_CLOCK
    mv "$work/out" "$work/got"
    check "$c: its output is the same" cmp "$work/bare" "$work/got"
    "$B/gpuwait" report --json "$work/dump" >"$work/report.json" 2>"$work/report.err"
    check "$c: report and truth agree" python3 "$here/compare.py" "$work/truth.json" \
        "$work/report.json"
done

"$sim/clients/resolver" >"$work/bare"
check "resolver runs" with "$sim/clients/resolver"
mv "$work/out" "$work/got"
check "resolver finds the same" cmp "$work/bare" "$work/got"
finish
