#!/bin/sh
# report --range: what an NVTX range holds, in text and JSON.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shells inside
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
mkdir t two
python3 -c '
from mkdump import training, Dump
d = training()
s = d.stream("legacy")
for i in range(100):
    d.launch(8000 + 10 * i, 4, s, "warmup")  # outside of any step
d.push(10000, "odd name; with 100 %")
d.launch(10010, 4, s, "inside")
d.pop(10020)
d.write("t/a.gwt")
training(pid=1).write("two/a.gwt")
e = Dump(pid=2)
e.launch(0, 4, e.stream("legacy"))
e.write("two/b.gwt")
'
runs "--range step" 0 "$gpuwait" report --range step --json t
is "launches of three steps" 60 "$(json "$out" 'j["processes"][0]["launches"]["calls"]')"
is "queries are known for the whole only" None "$(json "$out" 'j["processes"][0]["other_calls"]["polls"]')"
runs "the whole" 0 "$gpuwait" report --json t
is "launches of everything" 161 "$(json "$out" 'j["processes"][0]["launches"]["calls"]')"
runs "a name with spaces" 0 "$gpuwait" report --range 'odd name; with 100 %' t
has "one kernel" "$out" "inside$"
hasnt "and no other" "$out" "warmup"
has "says what range" "$out" '^only NVTX range "odd name; with 100 %": 1 interval, 4.00 us from first to last$'
runs "no such range" 2 "$gpuwait" report --range steps t
has "lists those there are" "$err" '"step", "odd name; with 100 %"$'
is "and reports nothing" "" "$(cat "$out")"
# of two processes one has the range
runs "one process has it" 0 "$gpuwait" report --range step --json two
is "that one is reported" "[1]" "$(json "$out" '[p["pid"] for p in j["processes"]]')"
runs "the one that has not" 2 "$gpuwait" report --range step --process 2 two
has "says so" "$err" "the recording has no NVTX range at all"
finish
