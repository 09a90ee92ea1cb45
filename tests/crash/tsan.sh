#!/bin/sh
# ThreadSanitizer over the recorder in programs whose threads and processes come and go, over the
# simulated GPU's, and over the unit tests and reports that have threads. It sees accesses of the
# library's own code and of the program's; of fences it knows nothing, which test_protocol's model
# covers. `make tsan` builds what this runs.
# shellcheck disable=SC1091,SC2154  # from lib.sh
. "$(dirname "$0")/../e2e/lib.sh"
cd "$work" || exit 1
: "${TSAN:?the folder of what was built under ThreadSanitizer}"
lib=$B/crash/tsan/libgpuwait.so
TSAN_OPTIONS="exitcode=66 die_after_fork=0 ${TSAN_OPTIONS-}"
export TSAN_OPTIONS

clean() { # NAME COMMAND...: no report of the sanitizer's, exit code 0
    _what=$1
    shift
    runs "$_what" 0 "$@"
    is "$_what: nothing said" "" "$(grep -e Sanitizer "$out" "$err" | sort | uniq -c)"
}
for way in "plain 100000" "threads 64" "crowd 64" "flood 50000" "before" "after 3" "workers 3" \
    "together 4" "cancelled 4" "exit-beside"; do
    rm -rf t
    # shellcheck disable=SC2086  # words
    clean "$way" env GPUWAIT_OUT="$work/t" LD_PRELOAD="$lib" "$B/crash/tsan/processes" $way
    is "$way: recorded" 1 "$(($(find t -name '*.gwt' | wc -l) > 0))"
done
rm -rf t
clean "more than the bound holds" env GPUWAIT_OUT="$work/t" GPUWAIT_MAX=1M LD_PRELOAD="$lib" \
    "$B/crash/tsan/victim" counts 4 100000
tsan=$("${CC:-cc}" -print-file-name=libtsan.so)
[ -e "$tsan" ] || tsan=
for client in "soak 3 20000" threads demo_qlora; do
    rm -rf t
    [ -n "$tsan" ] || { echo "# no shared libtsan here: no $client"; continue; }
    # shellcheck disable=SC2086  # words
    clean "$client" env GPUWAIT_OUT="$work/t" LD_PRELOAD="$(realpath "$tsan"):$lib" \
        LD_LIBRARY_PATH="$B/sim" "$B/sim/clients/"$client
    is "$client: recorded" 1 "$(find t -name '*.gwt' | wc -l)"
done

cd "$here/../.." || exit 1
for test in "$TSAN/tests/unit/"test_*; do
    [ -x "$test" ] || continue
    nm -D --undefined-only "$test" | grep -q pthread_create || continue
    case $test in */test_reader) continue ;; esac # measures memory, of which the sanitizer has its own
    clean "$(basename "$test")" "$test"
done
for dump in tests/fixtures/scenarios/r01-c.gwt tests/fixtures/llama_lora.gwt; do
    clean "report $(basename $dump)" "$TSAN/gpuwait" report --json $dump
    clean "diff $(basename $dump)" "$TSAN/gpuwait" diff $dump $dump
done
clean "report of a job" "$TSAN/gpuwait" report --json tests/fixtures/ranks/late/dump
finish
