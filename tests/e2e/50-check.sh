#!/bin/sh
# check: a training job on the simulated GPU passes against itself, and each change that was made to
# it fails, by name; what proves nothing never passes.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shells inside
. "$(dirname "$0")/lib.sh"
[ -x "$B/sim/clients/gated" ] || { echo "the simulator is not built"; exit 77; }
cd "$work" || exit 1
check=$gpuwait\ check
unset GITHUB_STEP_SUMMARY

# rec DIR [gated's arguments]
rec() {
    _dir=$1
    shift
    env LD_LIBRARY_PATH="$B/sim" SIM_CLOCK=${CLOCK:-virtual} "$gpuwait" run --no-report -o "$_dir" -- \
        "$B/sim/clients/gated" "$@" >"$out" 2>"$err"
}
# verdict METRIC: of the last check --json
verdict() { json "$out" "[m['verdict'] for m in j['metrics'] if m['metric'] == '$1' and not m['process']][0]"; }

rec one
runs "no baseline yet" 2 $check one -b base.json
has "says how to make one" "$err" 'base.json: there is no such baseline; --update makes it'
runs "--update makes it" 0 $check one -b base.json --update
# how long a launch takes the host is noise on a virtual clock: margins may be edited, and stay
sed -i 's/\("host_us_per_launch": .*\)"abs": 1,/\1"abs": 100,/' base.json
cp base.json first.json
is "its mode is that of other files" 644 "$(umask 022 && rm -f x.json && $check one -b x.json -u 2>/dev/null; stat -c %a x.json)"
is "nothing else is left" "" "$(find . -name 'base.json.*')"
rec two
runs "the same job again passes" 0 $check two -b base.json
has "it says so" "$out" '^two against base.json: PASSED'
is "fits 80 columns" "" "$(awk 'length > 80' "$out")"
runs "--update of the same" 0 $check two -b base.json --update
same "changes nothing" first.json base.json
runs "the default recording" 2 $check -b base.json
mv two gpuwait.trace
runs "is gpuwait.trace" 0 $check -b base.json
mv gpuwait.trace two

# fails NAME METRIC WORD-IN-THE-NAMES: the change NAME
fails() {
    rec "$1" "$1"
    runs "$1 fails" 1 $check "$1" -b base.json
    has "$1: $2 regressed" "$out" "^  $2 .*REGRESSED"
    has "$1: names $3" "$out" "$3"
    runs "$1 --json" 1 $check "$1" -b base.json --json
    is "$1: $2 in JSON" REGRESSED "$(verdict "$2")"
}
fails sync syncs '1  *2  *+1  cudaStreamSynchronize'
fails kernel kernels '16  *0  *-16  fused_bias('
has "both kernels that came are named" "$out" 'gelu('
fails allreduce collectives '1  *4  *+3  ncclAllReduce'
fails pageable pageable_bytes 'blocking_copies .*REGRESSED'
fails empty allocation_calls '0  *1  *+1  cudaMalloc'
rec capture capture
runs "a graph captured in every tenth step" 1 $check capture -b base.json
has "is a capture after warm-up" "$out" '^  captures  *0  *0.1.*REGRESSED'
runs "one metric may be left out" 0 $check empty -b base.json --skip allocation_calls
has "and is shown as that" "$out" 'allocation_calls .*skipped'

rec win win
runs "a win fails too" 1 $check win -b base.json
has "as a win" "$out" '^  syncs .*WIN'
runs "unless wins are accepted" 0 $check win -b base.json --accept-wins
runs "the baseline is renewed" 0 $check win -b base.json --update
runs "then it passes" 0 $check win -b base.json
runs "and the old is a regression" 1 $check two -b base.json
cp first.json base.json

# fewer launches, each dearer: in real time, which is what launches cost
CLOCK=real
rec cheap none
rec dear dear
unset CLOCK
$check cheap -b real.json --update 2>/dev/null
runs "fewer, dearer launches" 1 $check dear -b real.json --accept-wins
has "by the host's time for one" "$out" '^  host_us_per_launch .*REGRESSED'
has "though there are fewer" "$out" '^  launch_calls .*WIN'

# kernels by name add up to the kernels of a step: on several threads, in graphs, by the token
for kind in checkpoint replay generate; do
    env LD_LIBRARY_PATH="$B/sim" SIM_CLOCK=virtual "$gpuwait" run --no-report -o "$kind" -- \
        "$B/sim/clients/loops" $kind 60 >"$out" 2>"$err"
    runs "$kind" 0 $check "$kind" -b "$kind.json" --update
    is "$kind: the names' sum" "$(json "$kind.json" 'j["metrics"]["kernels"]["value"] > 5 and j["metrics"]["kernels"]["value"]')" \
        "$(json "$kind.json" 'round(sum(j["kernels"].values()))')"
done

# ranks: all together, and each against itself
ranks() { # DIR CHANGE-OF-RANK-0 CHANGE-OF-RANK-1
    mkdir "$1"
    for r in 0 1; do
        eval "_change=\$$((r + 2))"
        env RANK=$r LD_LIBRARY_PATH="$B/sim" SIM_CLOCK=virtual GPUWAIT_OUT="$1" \
            LD_PRELOAD="$B/libgpuwait.so" "$B/sim/clients/gated" "$_change" >/dev/null 2>&1
    done
}
ranks both none none
runs "two ranks" 0 $check both -b ranks.json --update
is "a step of both" 150 "$(json ranks.json 'j["metrics"]["kernels"]["value"]')"
is "and of each" "[75, 75]" "$(json ranks.json '[p["kernels"] for p in j["processes"].values()]')"
sed -i 's/\("host_us_per_launch": .*\)"abs": 1,/\1"abs": 100,/' ranks.json
runs "they pass" 0 $check both -b ranks.json
ranks uneven win sync
runs "one waits less, the other more" 1 $check uneven -b ranks.json
has "together nothing changed" "$out" '^  syncs  *2  *2  *0 .* ok$'
has "each did" "$out" '^    syncs  *1  *2  *+1 .* REGRESSED$'
runs "one of two ranks" 3 $check both -b ranks.json --process 1
tr '\n' ' ' <"$out" | tr -s ' ' >flat
has "is another number of processes" flat 'processes differs: 2 in the baseline, 1 now'

# ---- patterns -------------------------------------------------------------------------------
runs "a required kernel" 0 $check two -b base.json --require fused_bias
runs "that is missing" 1 $check kernel -b base.json --require 'fused*float'
has "is named" "$out" 'FAILED  required kernel "fused\*float": no step runs it'
runs "a forbidden kernel" 1 $check two -b base.json --forbid gemm_backward
has "is named, too" "$out" 'FAILED  forbidden kernel "gemm_backward": gemm_backward('
runs "patterns are kept" 0 $check two -b base.json --update --forbid double --require gemm
has "in the baseline" base.json '"double"'
runs "and obeyed" 0 $check two -b base.json
cp first.json base.json

# ---- never green ------------------------------------------------------------------------------
unsure() { # NAME PATTERN COMMAND...
    _what=$1 _pattern=$2
    shift 2
    runs "$_what: no conclusion" 3 "$@"
    cat "$err" >>"$out"
    has "$_what: says why" "$out" "$_pattern"
    runs "$_what: --update refuses" 3 "$@" --update
}
rec killed killed
unsure "killed" 'it was killed' $check killed -b base.json
mkdir cut && cat one/*.gwt | head -c -700 >cut/a.gwt
unsure "cut short" 'the recording is incomplete' $check cut -b base.json
rec short none 8
unsure "too short" 'steady steps, and 10 are the least' $check short -b base.json
runs "fewer are enough if one says so" 0 $check short -b base.json --min-steps 3
mkdir empty.d && python3 -c '
from mkdump import Dump, training
Dump().write("empty.d/a.gwt")
import os
os.mkdir("dropped.d"), os.mkdir("damaged.d")
d = training()
d.count(DROPPED=77)
d.write("dropped.d/a.gwt")
open("damaged.d/a.gwt", "wb").write(training().bytes()[:-700])
'
unsure "empty" 'nothing was recorded\|no kernel was launched' $check empty.d -b base.json
unsure "events dropped" '77 events dropped' $check dropped.d -b base.json
unsure "no steps" 'no steps were found\|steady steps\|doubtful' $check damaged.d -b base.json
mkdir nothing
unsure "no recording" 'nothing was recorded' $check nothing -b base.json
cp -r two part && cat one/*.gwt | head -c 100 >part/x.gwt
unsure "one of two is unreadable" 'could not be read' $check part -b base.json

# a baseline of something else
other() { # KEY SED
    sed "$2" first.json >other.json
    cmp -s first.json other.json && not_ok "$1: the baseline was changed"
    runs "another $1" 3 $check two -b other.json
    tr '\n' ' ' <"$out" | tr -s ' ' >flat
    has "another $1: says so" flat "$1 differs: "
    runs "another $1 may be allowed" 0 $check two -b other.json --allow-different "$1"
}
other sms 's/"sms": "132"/"sms": "108"/'
other cudart 's/"libcudart.so.13"/"libcudart.so.12"/'
other torch 's/"torch": null/"torch": "2.11.0"/'
other driver 's/"driver": null/"driver": "580.1"/'
other script 's/"script": "gated"/"script": "train.py"/'
runs "--label names a script" 0 $check two -b other.json --label train.py
runs "--update takes another machine's" 0 $check two -b other.json --update --label gated
same "whole" first.json other.json

# what PyTorch says of itself is a key
if command -v "${CC:-cc}" >/dev/null; then
    mkdir -p torch/lib
    printf '__all__ = ["__version__", "cuda"]\n__version__ = "2.11.0+cu130"\n' >torch/version.py
    "${CC:-cc}" -shared -x c /dev/null -o torch/lib/libtorch_cuda.so
    export LD_PRELOAD="$work/torch/lib/libtorch_cuda.so"
    rec torch.d none
    unset LD_PRELOAD
    runs "another PyTorch" 3 $check torch.d -b first.json
    has "is named" "$out" 'torch differs: unknown in the baseline, 2.11.0+cu130'
fi

# ---- unusable ------------------------------------------------------------------------------------
bad() { # NAME PATTERN; stdin: the file
    cat >bad.json
    runs "$1" 2 $check two -b bad.json
    has "$1: one line with its place" "$err" "^gpuwait: bad.json:$2"
    is "$1: no more than one" 1 "$(wc -l <"$err")"
    is "$1: nothing on stdout" "" "$(cat "$out")"
    cp bad.json kept.json
    runs "$1: --update refuses" 2 $check two -b bad.json --update
    same "$1: it is left alone" kept.json bad.json
}
head -c 900 first.json | bad "cut" '[0-9]*:[0-9]*: not a baseline: '
sed 's/"syncs": {"value": 1,/"syncs": {"value": "x",/' first.json | bad "no number" '[0-9]*: metrics.syncs: '
sed 's/"syncs"/"sinks"/' first.json | bad "unknown metric" '[0-9]*: metrics.sinks: there is no such metric'
printf '\033[2J{' | bad "a terminal's" '1:1: '
head -c 100000 /dev/urandom | bad "random bytes" '[0-9]*:[0-9]*: not a baseline'
grep -v '"syncs"' first.json | sed '/"pageable_bytes"/s/,$//' >less.json
runs "a metric is missing" 2 $check two -b less.json
has "it is named" "$out" 'the baseline has no syncs'
runs "times were not kept" 2 $check two -b first.json --times
runs "a directory" 2 $check two -b one
runs "no such trace" 2 $check nowhere -b base.json
runs "no baseline named" 2 $check two
for o in "--skip launches" "--allow-different colour" "--min-steps 1" "--require *" "--forbid=" "--colour" "two three"; do
    # shellcheck disable=SC2086
    runs "$o" 2 $check two -b base.json $o
done
runs "a baseline that cannot be written" 2 $check two -b nowhere/base.json -u

# ---- it merges ---------------------------------------------------------------------------------
# two branches change metrics that are neighbours
sed '/"kernels": {"value"/s/75/80/' first.json >ours.json
sed '/"launch_calls": {"value"/s/75/90/' first.json >theirs.json
if command -v git >/dev/null; then
    runs "neighbours merge" 0 git merge-file -p ours.json first.json theirs.json
    is "both changes are there" 2 "$(grep -c '"value": [89]0' "$out")"
fi

# ---- for machines ----------------------------------------------------------------------------------
export GITHUB_STEP_SUMMARY=$work/summary.md SOURCE_DATE_EPOCH=1764460800
echo before >summary.md
runs "--github" 1 $check sync -b base.json --github --junit junit.xml
line=$(grep -n '"syncs"' base.json | cut -d: -f1)
has "an annotation at the baseline's line" "$out" \
    "^::error file=base.json,line=$line,title=gpuwait%3A regression::syncs: 1 -> 2 (+1, margin 0.50)\$"
first=$(head -n 1 "$out")
word=${first#::stop-commands::}
is "text is no command" 1 "$(grep -c "^::$word::\$" "$out")"
has "the summary is added to" summary.md '^before$'
has "as a table" summary.md '^| syncs | 1 | 2 | +1 | 0.50 | \*\*REGRESSED\*\* |$'
has "a failure for JUnit" junit.xml '<failure type="regression" message="syncs: 1 -&gt; 2'
runs "--json is JSON alone" 1 $check sync -b base.json --github --json
is "and says why" failed "$(json "$out" 'j["outcome"]')"
has "annotations go elsewhere" "$err" '^::error file=base.json,line='
runs "JUnit of a killed run" 3 $check killed -b base.json --junit junit.xml
has "has an error" junit.xml '<error type="inconclusive" message="process [0-9]* did not end by itself'
runs "JUnit that cannot be written" 2 $check two -b base.json --junit nowhere/x.xml
finish
