#!/bin/sh
# Ranks in processes of their own: the same run every time, what is late in one is waited for in the
# others, and a rank that is gone is noticed.
# shellcheck source=tests/sim/lib.sh
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }
ranks=$sim/clients/ranks

for i in 1 2; do
    mkdir "$work/$i"
    check "three ranks, run $i" env SIM_CLOCK=virtual "$ranks" -n 3 -f data4 -r 2 -t "$work/$i"
    for r in 0 1 2; do
        sed 's/"pid": [0-9]*//; s/"communicator": [0-9]*//' "$work/$i/$r.json" >"$work/$i/$r.txt"
    done
done
check "the same twice" diff -x '*.json' "$work/1" "$work/2"
check "collectives end when they must" python3 "$here/collectives.py" "$work/1"
for f in gpu link excess; do
    mkdir "$work/$f"
    check "$f" env SIM_CLOCK=virtual "$ranks" -n 8 -s 10 -f $f -r 3 -t "$work/$f"
    check "$f: collectives end when they must" python3 "$here/collectives.py" "$work/$f"
done
mkdir "$work/mesh"
check "several communicators, groups and messages" \
    timeout 60 env SIM_CLOCK=virtual "$sim/clients/mesh" 6 20 "$work/mesh"
check "mesh: all end when they must" python3 "$here/collectives.py" "$work/mesh"
mkdir "$work/real"
check "in real time" env SIM_CLOCK=real "$ranks" -n 2 -s 10 -f data -r 1 -t "$work/real"
check "in real time: collectives end when they must" python3 "$here/collectives.py" "$work/real"
check_fails "a rank that is killed ends the others" \
    timeout 30 env SIM_CLOCK=virtual "$ranks" -n 4 -f dead -r 1
mv "$work/err" "$work/said"
check "they say why" grep -q "waits for rank 1, which is gone" "$work/said"
finish
