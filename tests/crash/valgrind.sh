#!/bin/sh
# valgrind's memcheck over the unit programs, over what the tool says of recordings, and over the
# recorder in programs whose threads and processes come and go: no access and no value that is wrong,
# no memory lost. `make valgrind` builds what this runs; it takes about ten minutes.
# shellcheck disable=SC1091,SC2154  # from lib.sh
. "$(dirname "$0")/../e2e/lib.sh"
valgrind --version >/dev/null 2>&1 || { echo "valgrind is not installed here" && exit 1; }
if nm -D "$gpuwait" | grep -q '__[at]san_init'; then
    echo "$B is built with a sanitizer, which does not run under valgrind"
    exit 1
fi
lib=$B/libgpuwait.so
fixtures=$here/../fixtures

# memcheck NAME CODE COMMAND...: it exits with CODE, and valgrind, which would with 66, says nothing.
# Its threads take turns, or one that waits for another may wait long.
with= # more environment
memcheck() {
    _what=$1 _wanted=$2
    shift 2
    # shellcheck disable=SC2086  # words
    runs "$_what" "$_wanted" env $with valgrind --quiet --fair-sched=yes --error-exitcode=66 --leak-check=full \
        --show-leak-kinds=definite --errors-for-leak-kinds=definite --num-callers=30 \
        --suppressions="$here/valgrind.supp" --log-file="$work/valgrind.%p" "$@"
    is "$_what: nothing found" "" "$(cat "$work"/valgrind.*)"
    rm -f "$work"/valgrind.*
}

cd "$here/../.." || exit 1
for test in "$B/tests/unit/"test_*; do
    case $test in */test_analysis_bounds) continue ;; esac # measures memory
    memcheck "$(basename "$test")" 0 "$test"
done

for name in eager_mlp generate graph nccl; do
    dump=$fixtures/$name.gwt
    memcheck "report $name" 0 "$gpuwait" report --all "$dump"
    memcheck "report $name as JSON" 0 "$gpuwait" report --json "$dump"
    memcheck "info $name" 0 "$gpuwait" info "$dump"
    memcheck "events of $name" 0 "$gpuwait" info --events --json "$dump"
done
memcheck "report a range" 0 "$gpuwait" report --steps all --range graph "$fixtures/graph.gwt"
memcheck "diff" 0 "$gpuwait" diff "$fixtures/eager_mlp.gwt" "$fixtures/generate.gwt"
memcheck "diff as JSON" 0 "$gpuwait" diff --json "$fixtures/eager_mlp.gwt" "$fixtures/graph.gwt"
memcheck "report a job" 0 "$gpuwait" report "$fixtures/ranks/late/dump"
memcheck "its summaries" 0 "$gpuwait" report --summaries "$fixtures/ranks/late/dump"
steps=$fixtures/starved.gwt other=$fixtures/prefetch.gwt
memcheck "check --update" 0 "$gpuwait" check --update --label job --baseline "$work/base.json" "$steps"
memcheck "check" 0 "$gpuwait" check --label job --baseline "$work/base.json" --junit "$work/junit" --github "$steps"
memcheck "check another's" 3 "$gpuwait" check --label other --baseline "$work/base.json" "$other"
memcheck "doctor" "$("$gpuwait" doctor sh >/dev/null 2>&1; echo $?)" "$gpuwait" doctor sh
memcheck "usage" 2 "$gpuwait" report --nonsense
head -c -100 "$steps" >"$work/cut.gwt"
memcheck "report what is cut short" 0 "$gpuwait" report "$work/cut.gwt"

cd "$work" || exit 1
recorded() { # NAME DUMPS COMMAND...: under the preload, as is valgrind itself, which uses no CUDA
    _name=$1 _dumps=$2
    shift 2
    rm -rf t
    with="LD_PRELOAD=$lib GPUWAIT_OUT=t ${more-}"
    memcheck "$_name" 0 "$@"
    is "$_name: recorded" "$_dumps" "$(find t -name '*.gwt' | wc -l)"
}
for way in "plain 10000 1" "threads 16 1" "crowd 16 1" "flood 3000 1" "before 1 2" "after 2 3" \
    "workers 2 1" "together 3 3" "cancelled 4 1" "fork-beside 3 4" "exec 1 2"; do
    # shellcheck disable=SC2086  # words
    set -- $way
    recorded "$1" "$3" "$B/crash/processes" "$1" "$2"
done
with="LD_PRELOAD=$lib GPUWAIT_OUT=t2"
memcheck "exit-beside" 0 "$B/crash/processes" exit-beside # which may end before anything is recorded
more=GPUWAIT_MAX=1M
recorded "more than the bound holds" 1 "$B/noop/victim" counts 2 40000
more=
recorded "ranges" 1 "$B/crash/nvtx"
# the whole of the simulated GPU, with samples: minutes, most of them its own end
more="SIM_CLOCK=virtual LD_LIBRARY_PATH=$B/sim"
recorded "a simulated GPU" 1 "$B/sim/clients/threads" 4 100
finish
