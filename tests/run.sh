#!/bin/sh
# Runs what `make tests` built: every test is one program or script; 0 passes, 77 skips,
# anything else fails. Usage: tests/run.sh [WORD]   (only names that contain WORD)
# Environment: B (build folder), TEST_TIMEOUT (seconds per test), TEST_JOBS.
set -u
cd "$(dirname "$0")/.." || exit 2
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1

: "${B:=build}" "${TEST_TIMEOUT:=120}" "${TEST_JOBS:=2}"
B=$(cd "$B" && pwd) || exit 2
GPUWAIT=$B/gpuwait
LIBGPUWAIT=$B/libgpuwait.so
export B GPUWAIT LIBGPUWAIT TEST_TIMEOUT

# One test, called back through xargs: its verdict goes to $work/NAME.
if [ "${1-}" = --one ]; then
    work=$2 test=$3
    case $test in
    *.c) name=${test#tests/} name=${name%.c} command=$B/tests/$name ;;
    *.py) name=${test#tests/} command="python3 $test" ;;
    *) name=${test#tests/} command="sh $test" ;;
    esac
    # a script that asks for bash gets it
    case $(head -n 1 "$test") in '#!'*bash*) command="bash $test" ;; esac
    log=$work/$(printf %s "$name" | tr / _)
    TMPDIR=$(mktemp -d "$work/tmp.XXXXXX") || exit 1
    export TMPDIR
    start=$(date +%s%N)
    # shellcheck disable=SC2086  # command is words
    timeout -k 5 "$TEST_TIMEOUT" $command </dev/null >"$log.out" 2>&1
    rc=$?
    took=$((($(date +%s%N) - start) / 1000000))
    rm -rf "$TMPDIR"
    seconds=$(printf '%d.%03d' $((took / 1000)) $((took % 1000)))
    case $rc in
    0) verdict=ok why= ;;
    77) verdict=skip why=": $(tail -n 1 "$log.out")" ;;
    124 | 137) verdict=FAIL why=": stopped after $TEST_TIMEOUT s (exit $rc)" ;;
    *) verdict=FAIL why=": exit $rc" ;;
    esac
    echo "$verdict" >"$log.verdict"
    if [ $verdict = FAIL ]; then # in one write, so that parallel tests do not mix
        { printf '%-4s %s (%s s)%s\n' $verdict "$name" "$seconds" "$why" &&
            grep -vE '^(\[ RUN  |\[       OK|ok - )' "$log.out" | tail -n 60 | sed 's/^/     | /'; } >"$log.fail"
        cat "$log.fail"
    else # and what it left out here
        left=$(grep '^# ' "$log.out" | sed 's/^# /     | /')
        printf '%-4s %s (%s s)%s\n' $verdict "$name" "$seconds" "$why${left:+
$left}"
    fi
    exit 0
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/gpuwait-test.XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

list() {
    for t in tests/unit/test_*.c tests/unit/*.sh tests/unit/test_*.py \
        tests/sim/test_*.sh tests/sim/[0-9]*.sh tests/crash/[0-9]*.sh tests/crash/[0-9]*.py \
        tests/e2e/[0-9]*.sh tests/e2e/[0-9]*.py tests/gpu/test_*.py; do
        [ -f "$t" ] || continue
        case $t in *"${1-}"*) echo "$t" ;; esac
    done
}

list "${1-}" >"$work/list"
xargs -P "$TEST_JOBS" -I '{}' sh "$0" --one "$work" '{}' <"$work/list"

count() { cat "$work"/*.verdict 2>/dev/null | grep -cx "$1"; }
passed=$(count ok) failed=$(count FAIL) skipped=$(count skip)
ran=$((passed + failed + skipped)) wanted=$(wc -l <"$work/list")
if [ "$ran" -ne "$wanted" ]; then # never silently
    echo "tests/run.sh: $((wanted - ran)) of $wanted tests left no verdict" >&2
    failed=$((failed + wanted - ran))
fi
if [ "$failed" -gt 0 ]; then
    echo "failed:"
    cat "$work"/*.fail 2>/dev/null | sed -n 's/^FAIL /  /p'
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
