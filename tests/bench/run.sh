#!/bin/sh
# All benchmarks, or those whose name contains WORD: a table on stdout, and the same rows as
# JSON in $B/bench.json. Each program of tests/bench/bench_*.c and each script
# tests/bench/[0-9]*.{sh,py} prints rows (bench.h, bench.py).
#
#     tests/bench/run.sh [WORD]
set -eu
cd "$(dirname "$0")/../.."
: "${B:=$PWD/build}"
BENCH_ROWS=$B/bench.rows
export B BENCH_ROWS
: >"$BENCH_ROWS"

for bench in tests/bench/bench_*.c tests/bench/[0-9]*.sh tests/bench/[0-9]*.py; do
    [ -f "$bench" ] || continue
    name=${bench##*/}
    case $name in *"${1-}"*) ;; *) continue ;; esac
    echo "== $name"
    case $bench in
    *.c) "$B/bench/${name%.c}" ;;
    *.py) python3 "$bench" ;;
    *) sh "$bench" ;;
    esac
done

model=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
{
    printf '{"schema":1,"cpu":"%s","cores":%s,"rows":[\n' "$model" "$(nproc)"
    sed '$!s/$/,/' "$BENCH_ROWS"
    printf ']}\n'
} >"$B/bench.json"
echo "as JSON: $B/bench.json"
