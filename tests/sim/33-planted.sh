#!/bin/sh
# Idle time by what the host did: it adds up in random programs and in a training job, and where a
# client leaves the device idle for known reasons, each class is as large as what was planted.
# shellcheck source=tests/sim/lib.sh
. "$(dirname "$0")/lib.sh"
judge=$B/tests/unit/test_attribute_traces
[ -x "$judge" ] || { echo "$judge is not built"; exit 1; }

# recorded CLIENT ARGUMENT...: it runs under the preload
recorded() {
    rm -rf "$work/dump"
    program=$sim/clients/$1
    shift
    env GPUWAIT_GPU_TIMING=2 GPUWAIT_OUT="$work/dump" LD_PRELOAD="$B/libgpuwait.so" "$program" "$@"
}
adds_up() { "$judge" "$work"/dump/*.gwt; }

export SIM_CLOCK=virtual SIM_PACE=2 GPUWAIT_TEST_CLOCK=1
for c in "demo_qlora 40" "random 3 4000" "random 17 4000" "random 28 4000"; do
    # shellcheck disable=SC2086  # a client and its arguments
    check "$c runs" recorded $c
    check "$c: classes add up to idle" adds_up
done

check "planted runs" recorded planted 60
grep -v : "$work/out" >"$work/planted"
check "what was planted is found" env PLANTED="$work/planted" "$judge" "$work"/dump/*.gwt
cat "$work/out"
# the judge sees the difference
sed 's/^dispatch .*/dispatch 250/' "$work/planted" >"$work/wrong"
check_fails "what was not is not" env PLANTED="$work/wrong" "$judge" "$work"/dump/*.gwt
unset SIM_CLOCK SIM_PACE GPUWAIT_TEST_CLOCK

# In real time, by the clocks of the thread; roughly, since what else is preempted on a busy machine
# adds to what was not on the CPU.
if [ -f "$here/../../lib/capture/section.c" ]; then
    check "planted runs in real time" recorded planted 30
    grep '^host_cpu' "$work/out" >"$work/cpu"
    grep '^host_blocked' "$work/out" >"$work/blocked"
    check "so much was on the CPU" env PERCENT=40 PLANTED="$work/cpu" "$judge" "$work"/dump/*.gwt
    cat "$work/out"
    check "and so much was not" env PERCENT=40 OR_MORE=1 PLANTED="$work/blocked" "$judge" "$work"/dump/*.gwt
    cat "$work/out"
fi
finish
