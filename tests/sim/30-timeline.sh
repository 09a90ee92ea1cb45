#!/bin/sh
# The reported timeline of programs made up from numbers against the simulator's own. Twice as far
# off as `make sim-timeline` asks for is too far; that takes 200 programs and more.
# shellcheck source=tests/sim/lib.sh
. "$(dirname "$0")/lib.sh"
unset SIM_DEVICES

check "busy time and gaps of twenty programs" \
    python3 "$here/timeline.py" --seeds 1:20 --ms 3000 --busy 1 --band 2 --share 90
tail -n 1 "$work/out"
[ "$failures" = 0 ] || cat "$work/out"
check_fails "one that lies outside is noticed" \
    python3 "$here/timeline.py" --seeds 1:1 --ms 500 --busy 0 --band 0
finish
