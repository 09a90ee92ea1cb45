#!/bin/sh
# Every call that returned before a SIGKILL or SIGSEGV is read back, once.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/gpuwait-crash.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
python3 "$here/kill.py" --times 15 --ring dump --dir "$scratch" --seed 1
python3 "$here/kill.py" --times 10 --ring shm --dir "$scratch" --seed 2
python3 "$here/kill.py" --times 8 --signal SEGV --dir "$scratch" --seed 3
