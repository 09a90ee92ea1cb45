#!/bin/sh
# The simulation by itself: each client did what the truth says, in both clocks.
# shellcheck source=tests/sim/lib.sh
. "$(dirname "$0")/lib.sh"

for c in $clients; do
    check "$c, virtual time" env SIM_CLOCK=virtual "$sim/clients/$c"
done
for c in rt13 graphs cublas_like threads; do # short ones
    check "$c, real time" env SIM_CLOCK=real "$sim/clients/$c"
done
check "the device is what is known of real ones" "$sim/clients/model"

for seed in 4 22 31; do
    for i in 1 2; do
        SIM_CLOCK=virtual SIM_TRUTH=$work/$i.json "$sim/clients/random" $seed 300 >/dev/null
        grep -v '"pid"' "$work/$i.json" >"$work/$i.txt"
    done
    check "random $seed twice: the same run" cmp "$work/1.txt" "$work/2.txt"
done

check_fails "the third allocation fails when asked to" \
    env SIM_FAIL=cuMemAlloc_v2:3 "$sim/clients/rt13" 1
check_fails "no device" env SIM_DEVICES=0 "$sim/clients/rt13" 1
check "runtime 12 on a driver of 12.2" \
    env LD_LIBRARY_PATH="$sim/old" SIM_DRIVER_VERSION=12020 "$sim/clients/rt12" 2
check_fails "runtime 13 on a driver of 12.2" \
    env LD_LIBRARY_PATH="$sim/old" SIM_DRIVER_VERSION=12020 "$sim/clients/rt13" 2
check "without a driver" "$sim/clients/nodriver"
mv "$work/out" "$work/got"
check_fails "which finds none" grep found "$work/got"
finish
