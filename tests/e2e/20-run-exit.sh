#!/bin/sh
# run: the command's output, exit code and end by a signal are its own.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shells inside
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

runs "exit 0" 0 "$gpuwait" run -- true
is "no output" "" "$(cat "$out")"
has "says that there was no CUDA call" "$err" "^gpuwait: nothing was recorded: it made no CUDA call"
is "one line" 1 "$(wc -l <"$err")"
is "no directory is left" "" "$(left_over)"
runs "exit 7" 7 "$gpuwait" run -- sh -c 'exit 7'
has "says how it ended" "$err" "exit code 7 before its first CUDA call"
runs "exit 255" 255 "$gpuwait" run sh -c 'exit 255'
runs "--no-report" 0 "$gpuwait" run --no-report -- true
is "is silent" "" "$(cat "$err")"

runs "stdout and stderr" 3 "$gpuwait" run --no-report -- sh -c 'echo one; echo two >&2; exit 3'
is "stdout is the command's" one "$(cat "$out")"
is "stderr is the command's" two "$(cat "$err")"
echo "from stdin" >in
is "stdin is the command's" "from stdin" "$("$gpuwait" run --no-report -- cat <in)"
runs "arguments arrive whole" 0 "$gpuwait" run --no-report -- printf '%s|' -o 'a b' '' "c'd" --json
is "each of them" "-o|a b||c'd|--json|" "$(cat "$out")"

# programs of every sort
mkdir sub
cat >sub/script.sh <<'END'
#!/usr/bin/env sh
echo "script $1 in $(basename "$PWD")"
END
cat >sub/bare <<'END'
echo bare
END
chmod +x sub/script.sh sub/bare
runs "a relative path" 0 "$gpuwait" run --no-report -- sub/script.sh x
is "a script" "script x in $(basename "$work")" "$(cat "$out")"
runs "a script without #!" 0 "$gpuwait" run --no-report -- sub/bare
is "it ran" bare "$(cat "$out")"
runs "found in PATH" 0 env PATH="$work/sub:$PATH" "$gpuwait" run --no-report -- script.sh y
is "it ran" "script y in $(basename "$work")" "$(cat "$out")"
runs "python -m" 0 "$gpuwait" run --no-report -- python3 -m this
has "it ran" "$out" "Beautiful is better than ugly"
runs "a shell that changes directory" 0 "$gpuwait" run --no-report -o rel -- \
    sh -c 'cd / && echo "$GPUWAIT_OUT" && [ -d "$GPUWAIT_OUT" ]'
is "the output directory is absolute" "$(pwd -P)/rel" "$(cat "$out")"

# what cannot be started
runs "no such command" 127 "$gpuwait" run -- nosuchcommand
has "said" "$err" "^gpuwait: cannot run nosuchcommand: No such file or directory$"
runs "no such path" 127 "$gpuwait" run -- ./nosuch
echo text >plain
runs "not executable" 126 "$gpuwait" run -- ./plain
has "said" "$err" "^gpuwait: cannot run ./plain: Permission denied$"
runs "a directory" 126 "$gpuwait" run -- ./sub
is "no directory is left" "" "$(ls -d gpuwait.trace 2>/dev/null)"

# our own failures
echo x >file
runs "output is a file" 125 "$gpuwait" run -o file -- true
has "said" "$err" '^gpuwait: cannot use "file" as the output directory'
runs "output below a file" 125 "$gpuwait" run -o file/x -- true
runs "output is empty" 125 "$gpuwait" run -o '' -- true

# ends by a signal: so do we
for s in TERM KILL INT HUP SEGV; do
    runs "by SIG$s" 0 python3 -c '
import subprocess, sys, signal
rc = subprocess.run(sys.argv[2:]).returncode
sys.exit(rc != -getattr(signal, "SIG" + sys.argv[1]))' $s "$gpuwait" run -- sh -c "kill -$s \$\$"
    has "by SIG$s: said" "$err" "ended by signal [0-9]* before its first CUDA call"
done
finish
