#!/bin/sh
# diff: two recordings of one job differ in nothing, and what was changed is told.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shells inside
. "$(dirname "$0")/lib.sh"
[ -x "$B/sim/clients/gated" ] || { echo "the simulator is not built"; exit 77; }
cd "$work" || exit 1

rec() {
    _dir=$1
    shift
    env LD_LIBRARY_PATH="$B/sim" SIM_CLOCK=virtual "$gpuwait" run --no-report -o "$_dir" -- \
        "$B/sim/clients/gated" "$@" >"$out" 2>"$err"
}
value() { json "$out" "[(m['base'], m['new'], m['noise']) for m in j['metrics'] if m['metric'] == '$1'][0]"; }
names() { json "$out" "sorted((k['name'].split('(')[0], k['base'], k['new']) for k in j['$1'])"; }

rec one
rec two
rec kernel kernel
rec sync sync
runs "the same job" 0 "$gpuwait" diff --json one two
is "launches" "(75.0, 75.0, 'same')" "$(value launch_calls)"
is "no kernel" "[]" "$(names kernels)"
is "no call" "[]" "$(names calls)"
is "no key" "[]" "$(json "$out" 'j["different_keys"]')"
runs "a kernel replaced by two" 0 "$gpuwait" diff --json one kernel
is "launches" "(75.0, 91.0, 'beyond')" "$(value launch_calls)"
is "kernels" "[('bias', 0.0, 16.0), ('fused_bias', 16.0, 0.0), ('gelu', 0.0, 16.0)]" "$(names kernels)"
runs "one of them" 0 "$gpuwait" diff --json --limit 1 --sort name one kernel
is "by name" "[('bias', 0.0, 16.0)]" "$(names kernels)"
runs "as text" 0 "$gpuwait" diff one kernel
has "counts" "$out" '^  launch_calls  *75  *91  *+16  *+21.3 %'
has "a new kernel" "$out" '^  new  *0  *16 .* gelu('
has "a kernel that is gone" "$out" '^  gone  *16  *0 .* fused_bias('
is "counts come before times" "launch_calls host_us_per_launch" \
    "$(awk '$1 == "launch_calls" || $1 == "host_us_per_launch" {print $1}' "$out" | xargs)"
is "fits 80 columns" "" "$(awk 'length > 80' "$out")"
runs "a wait more" 0 "$gpuwait" diff --json one sync
is "is a call" "[('cudaMemcpyAsync', 5.0, 6.0), ('cudaStreamSynchronize', 1.0, 2.0)]" "$(names calls)"
rec killed killed
runs "a killed run is compared" 0 "$gpuwait" diff one killed
has "and said to be one" "$out" 'note: killed: process [0-9]* did not end by itself'
mkdir nothing
runs "nothing recorded" 3 "$gpuwait" diff one nothing
runs "no such recording" 2 "$gpuwait" diff nowhere one
runs "one only" 2 "$gpuwait" diff one
runs "three" 2 "$gpuwait" diff one two one
for o in "--sort size" "--limit 0" "--limit x" "--steps 3" "--step-range a --step-kernel b"; do
    # shellcheck disable=SC2086
    runs "$o" 2 "$gpuwait" diff $o one two
done
finish
