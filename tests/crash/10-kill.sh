#!/bin/sh
# Every call that returned before the end is read back, once: whatever ends the process, and
# whatever the library's own thread was doing. `make kills` does it by the thousand.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/gpuwait-crash.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
kill_() { python3 "$here/kill.py" --dir "$scratch" --longest 0.4 "$@"; }
kill_ --times 8 --ring dump --seed 1
kill_ --times 6 --ring shm --seed 2
kill_ --times 4 --signal SEGV --seed 3
kill_ --times 2 --signal TERM --seed 9
kill_ --times 2 --signal ABRT --seed 10
kill_ --times 3 --signal EXIT --seed 4
kill_ --times 3 --signal GROUP --seed 5
kill_ --times 10 --drain sleep,before,half,after --seed 6
kill_ --times 4 --drain full --seed 11
kill_ --times 2 --drain late --longest 0.1 --seed 7
kill_ --times 2 --signal OOM --ring dump --seed 8 || [ $? = 77 ]
