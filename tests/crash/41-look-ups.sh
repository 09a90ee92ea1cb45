#!/bin/sh
# What is found by name is what is found without the library: the next function of a name, names like CUDA's,
# drivers that are old or look themselves up; calls of zeros come back with the driver's answer; and it
# does not matter how often the library is named, or that a child is started without it.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shells inside
. "$(dirname "$0")/lib.sh"

# odd FILE LAUNCHES: with the recorder
odd() {
    rm -rf t
    runs "look-ups, an old driver, $2 launches" 0 env GPUWAIT_OUT="$work/t" LD_PRELOAD="$lib" "$B/crash/odd/odd" "$B/crash/odd" "$2"
    cp "$out" "$1"
    is "look-ups, $2 launches: nothing said" "" "$(cat "$err")"
    is "look-ups, $2 launches: recorded" $((2 * $2)) "$(count)"
}
runs "look-ups without the library" 0 "$B/crash/odd/odd" "$B/crash/odd" 1000
cp "$out" bare
odd few 1000
odd many 2000
calls() { sed -n 's/ calls$//p' "$1"; }
# five calls of each round; what the recorder asks by itself does not grow with them
is "calls that the driver gets beyond the program's" "$(($(calls many) - $(calls few)))" $((5 * 2 * 1000))
is "no more than a few of them" 1 "$(($(calls few) - $(calls bare) <= 8))"
is "memory that is allocated in calls" "0 allocations" "$(grep allocations few)"

for status in 1 700; do
    rm -rf t
    runs "calls of zeros that fail with $status" 0 env NULLS=$status GPUWAIT_OUT="$work/t" LD_PRELOAD="$lib" \
        "$B/crash/nulls/nulls" $status
    has "calls of zeros that fail with $status: all" "$out" "^ok [5-9][0-9][0-9]$"
done

# Named twice: the same file, a copy, by a path that is relative.
mkdir copy
cp "$lib" copy/
for names in "$lib:$lib" "$lib $work/copy/libgpuwait.so" "./copy/libgpuwait.so:$lib"; do
    rm -rf t
    runs "named $names" 0 env GPUWAIT_OUT="$work/t" LD_PRELOAD="$names" "$program" threads 80
    is "named $names: output" made "$(cut -d ' ' -f 1 "$out")"
    is "named $names: nothing said" "" "$(cat "$err")"
    is "named $names: recorded once" 1601 "$(count)"
done

rm -rf t

# Children that are started without it, but with the rest of the environment: nothing is recorded or said
# by them, whatever they load.
for child in "$program plain 100" "$B/crash/nvtx"; do
    # shellcheck disable=SC2086  # words
    runs "without the preload: $child" 0 "$gpuwait" run -o t -- env -u LD_PRELOAD $child
    is "without the preload: $child: said" 1 "$(grep -c '^gpuwait: nothing was recorded' "$err")"
    is "without the preload: $child: files" "" "$(ls -d t 2>/dev/null)"
done
finish
