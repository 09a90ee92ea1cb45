#!/bin/sh
# What the commands say to wrong usage and unreadable input: one line, the documented code.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shells inside
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

one_line() { # NAME PATTERN: nothing on stdout, one line on stderr
    is "$1: nothing on stdout" "" "$(cat "$out")"
    is "$1: one line" 1 "$(wc -l <"$err")"
    has "$1: said" "$err" "^gpuwait: .*$2"
}

runs "no command" 2 "$gpuwait"
has "no command: usage on stderr" "$err" "^usage: gpuwait COMMAND"
runs "unknown command" 2 "$gpuwait" frobnicate
one_line "unknown command" 'frobnicate'
for c in check diff; do # not there yet, and not pretended to be
    runs "no $c yet" 2 "$gpuwait" $c
done
runs "--help" 0 "$gpuwait" --help
has "--help" "$out" "^  report "
runs "--version" 0 "$gpuwait" --version
has "--version" "$out" "^gpuwait [0-9]"

for c in run report info doctor; do
    runs "$c --help" 0 "$gpuwait" $c --help
    cp "$out" "$work/help"
    has "$c --help: usage" "$out" "^usage: gpuwait $c "
    has "$c --help: examples" "$out" "^examples:"
    has "$c --help: exit status" "$out" "exit status"
    is "$c --help: fits 80 columns" "" "$(awk 'length > 80' "$out")"
    runs "help $c" 0 "$gpuwait" help $c
    same "help $c is $c --help" "$work/help" "$out"
    code=2
    [ $c = run ] && code=125
    runs "$c: unknown option" $code "$gpuwait" $c --frobnicate
    one_line "$c: unknown option" '--frobnicate'
    runs "$c: unknown letter" $code "$gpuwait" $c -Z
    one_line "$c: unknown letter" '-Z'
done
runs "option without its value" 2 "$gpuwait" report --range
one_line "option without its value" '--range needs a value'
runs "run without a command" 125 "$gpuwait" run
one_line "run without a command" 'no command given'
for option in "max -5" "max 5x" "max 500K" "max 99999999T" "min-free -1" "min-free 100" \
    "full maybe" "cmdline x" "ring relative" "gpu-timing 30" "gpu-timing -1" "stacks yes"; do
    runs "run --$option" 125 "$gpuwait" run -o x "--${option% *}" "${option#* }" -- touch ran
    one_line "run --$option" "--${option% *} takes .*, not '${option#* }'"
done
is "and nothing ran" "" "$(ls -d x ran 2>/dev/null)"
for option in "max 2g" "max 1048576" "max 1MiB" "min-free 0" "full block" "cmdline off" \
    "ring $work" "gpu-timing 0.5%" "stacks off"; do
    runs "run --$option" 0 "$gpuwait" run -o y "--${option% *}" "${option#* }" -- true
done
runs "run -- without a command" 125 "$gpuwait" run -o x --
is "and no directory is made" "" "$(ls -d x 2>/dev/null)"

for steps in '' 5 5:5 7:3 a:b 1:2:3 -1:2 1:x 0:99999999999999999999 every; do
    runs "--steps '$steps'" 2 "$gpuwait" report --steps "$steps" t
    one_line "--steps '$steps'" '--steps takes A:B'
done
runs "steps by two things" 2 "$gpuwait" report --step-range step --step-kernel adam t
one_line "steps by two things" 'not both'

python3 -c '
from mkdump import training, Dump
import os
for d in ("empty", "good", "newer", "noevents", "foreign"):
    os.mkdir(d)
training().write("good/a.gwt")
d = training(); d.version = (2, 0); d.write("newer/a.gwt")
Dump().write("noevents/a.gwt")
open("foreign/readme.txt", "w").write("hello")
open("text.gwt", "w").write("this is not a recording, though its name says so\n" * 20)
open("zero.gwt", "w").close()
'
for c in report info; do
    runs "$c: default directory missing" 2 "$gpuwait" $c
    one_line "$c: default directory missing" 'gpuwait.trace: there is no such file'
    runs "$c: no such file" 2 "$gpuwait" $c nosuch
    one_line "$c: no such file" 'nosuch: there is no such file'
    runs "$c: not a recording" 2 "$gpuwait" $c text.gwt
    one_line "$c: not a recording" 'text.gwt'
    runs "$c: an empty file" 2 "$gpuwait" $c zero.gwt
    one_line "$c: an empty file" 'zero.gwt'
    runs "$c: a newer version" 2 "$gpuwait" $c newer
    one_line "$c: a newer version" 'newer'
    runs "$c: an empty directory" 3 "$gpuwait" $c empty
    one_line "$c: an empty directory" 'nothing was recorded'
    runs "$c: a directory of other things" 3 "$gpuwait" $c foreign
    one_line "$c: a directory of other things" 'nothing was recorded'
    runs "$c: no event in it" 3 "$gpuwait" $c noevents
    has "$c: no event in it: said" "$err" '^gpuwait: .*nothing was recorded'
    runs "$c: two traces" 2 "$gpuwait" $c good good
    one_line "$c: two traces" 'one TRACE'
    runs "$c: no such process" 2 "$gpuwait" $c --process 7 good
    one_line "$c: no such process" 'no process 7'
    runs "$c: a process that is no number" 2 "$gpuwait" $c --process abc good
    one_line "$c: a process that is no number" 'abc'
done
for steps in 1:3 0: :2 all; do
    runs "--steps $steps" 0 "$gpuwait" report --steps $steps good
done
runs "--step-kernel" 0 "$gpuwait" report --step-kernel gemm good
runs "--step-range" 0 "$gpuwait" report --step-range step good
runs "report: no such range" 2 "$gpuwait" report --range nosuch good
one_line "report: no such range" 'no NVTX range named "nosuch"; there are: "step"'
if [ -e /dev/full ]; then
    "$gpuwait" report good >/dev/full 2>"$err"
    is "a full disk is an error" 2 $?
    has "a full disk is said" "$err" "cannot write the output"
fi
finish
