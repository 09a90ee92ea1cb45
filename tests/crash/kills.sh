#!/bin/sh
# KILLS (1000) SIGKILLs, a fifth as many SIGSEGVs and a twentieth by the OOM killer at random
# moments, half of them on this folder's file system and half on tmpfs; then the same while the
# library's own thread is stopped, and while the disk is full.
set -u
here=$(cd "$(dirname "$0")" && pwd)
: "${KILLS:=1000}" "${B:=build}"
disk=$(mktemp -d "$B/kills.XXXXXX") || exit 1
memory=$(mktemp -d /dev/shm/gpuwait-kills.XXXXXX) || exit 1
trap 'rm -rf "$disk" "$memory"' EXIT
trap 'exit 1' INT TERM
rc=0 seed=100
for drain in runs sleep,before,half,after full; do
    for place in "$disk" "$memory"; do
        for signal in KILL SEGV OOM; do
            case $signal in
            KILL) n=$((KILLS / 2)) ;;
            SEGV) n=$((KILLS / 10)) ;;
            OOM) n=$((KILLS / 40)) ;;
            esac
            seed=$((seed + 1))
            python3 "$here/kill.py" --times $n --dir "$place" --ring dump --signal $signal \
                --drain $drain --seed $seed --longest 0.3 || [ $? = 77 ] || rc=1
        done
    done
done
exit $rc
