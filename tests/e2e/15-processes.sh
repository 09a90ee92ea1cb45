#!/bin/sh
# A directory of several processes: order, choice, and damage to one of them.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shells inside
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
mkdir t
python3 -c '
from mkdump import training, Dump
for pid, rank in ((11, 2), (12, 0), (13, 1)):
    training(pid, **{"env.RANK": str(rank), "env.WORLD_SIZE": "3"}).write("t/host-%d.gwt" % pid)
Dump(14).write("t/host-14.gwt")  # a worker that made no call worth a record
open("t/notes.txt", "w").write("not ours")
'
pids='[p["pid"] for p in j["processes"]]'
runs "all" 0 "$gpuwait" report --json t
is "by rank" "[12, 13, 11]" "$(json "$out" "$pids")"
is "the first speaks for equals" 12 "$(json "$out" 'j["verdict_pid"]')"
runs "by process id" 0 "$gpuwait" report --json --process 13 t
is "that process" "[13]" "$(json "$out" "$pids")"
runs "by rank" 0 "$gpuwait" report --json --process 2 t
is "that rank" "[11]" "$(json "$out" "$pids")"
runs "text" 0 "$gpuwait" report t
has "one report on all" "$out" "^job of 3 ranks on 1 host"
has "nothing is made up" "$out" "nobody is called late: no kernel of"
is "a row for each" 3 "$(grep -cE '^ +[012] .* 1[123] node7?' "$out")"
runs "text of one" 0 "$gpuwait" report -p 2 t
has "the rank is said" "$out" "^process 11, rank 2, on node7"
is "that one only" 1 "$(grep -c '^GPU idle' "$out")"
runs "a line for each" 0 "$gpuwait" report --summaries t
is "in order" "0 1 2" "$(sed 's/.*"rank":\([0-9]*\).*/\1/' "$out" | tr '\n' ' ' | sed 's/ $//')"
runs "info of one" 0 "$gpuwait" info --json -p 12 t
is "that one" "[12]" "$(json "$out" "$pids")"

python3 -c '
from mkdump import training
d = training(15, **{"env.RANK": "3", "env.WORLD_SIZE": "4"})
d.launch(9000, 4, d.stream("legacy"))
d.write("t/host-15.gwt")
'
runs "one with more kernels" 0 "$gpuwait" report --json t
is "speaks for all" 15 "$(json "$out" 'j["verdict_pid"]')"
rm t/host-15.gwt

# one of them damaged: the others are reported, and it is said
printf 'garbage' | dd of=t/host-13.gwt bs=1 conv=notrunc 2>/dev/null
runs "one damaged" 0 "$gpuwait" report --json t
is "the others" "[12, 11]" "$(json "$out" "$pids")"
has "it is said" "$err" "^gpuwait: t/host-13.gwt"
runs "the damaged one alone" 2 "$gpuwait" report t/host-13.gwt
finish
