#!/bin/sh
# A call that never returned: named in the report of a killed job and of one that hangs.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shells inside
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
cat >make.py <<'END'
import os, sys, time
import mkdump
pid = int(sys.argv[1])
start, boot = 0, bytes(16)
if pid < 4000000:  # a living one
    start = int(open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[19])
    boot = bytes.fromhex(open("/proc/sys/kernel/random/boot_id").read().strip().replace("-", ""))
    mkdump.START = time.monotonic_ns() - 10_000_000_000
d = mkdump.training(pid, ring=os.path.abspath(sys.argv[2] + ".ring"), process_start=start, boot=boot)
d.api("cudaStreamSynchronize", "SYNC")
# inside for 3 s as of the last event, or 9 s ago
d.launch(5_000_000, 4, d.stream("legacy"), thread=2)
d.write(sys.argv[2] + ".gwt", end=False)
d.write_ring(sys.argv[2] + ".ring", [(1, pid, "cudaStreamSynchronize", 2_000_000 if not start else 1_000_000),
                                     (2, pid + 1, "cudaMemcpyAsync", 4_900_000)])
END
python3 make.py 4000001 dead
runs "killed" 0 "$gpuwait" report dead.gwt
has "the call is named" "$out" "^STUCK: thread 4000001 (python) was inside cudaStreamSynchronize for 3.0 s$"
has "the other thread's, too" "$out" "^STUCK: thread 4000002 (pt_autograd_0) was inside cudaMemcpyAsync for 0.1 s$"
is "no warning: nothing is missing" "" "$(cat "$err")"
runs "killed --json" 0 "$gpuwait" report --json dead.gwt
is "the longest" cudaStreamSynchronize "$(json "$out" 'j["processes"][0]["quality"]["stuck_in"]')"
is "complete up to there" True "$(json "$out" 'j["processes"][0]["quality"]["complete"]')"
runs "info" 0 "$gpuwait" info dead.gwt
has "the state" "$out" "^  state  *its process ended without closing it$"
has "the call" "$out" "4000001 .*inside cudaStreamSynchronize when last seen"

sleep 100 &
sleeper=$!
python3 make.py $sleeper live
runs "alive" 0 "$gpuwait" report live.gwt
has "said to be running" "$out" "^process $sleeper on node7, still running"
has "hangs" "$out" "^STUCK: thread $sleeper (python) is inside cudaStreamSynchronize for [0-9.]* s$"
runs "info of it" 0 "$gpuwait" info live.gwt
has "the state" "$out" "^  state  *still being written$"
kill $sleeper
wait $sleeper 2>/dev/null

# a clean end: what an open slot holds is stale
python3 -c '
import mkdump
d = mkdump.training()
d.write("ended.gwt")'
runs "ended" 0 "$gpuwait" report --json ended.gwt
is "nothing is stuck" None "$(json "$out" 'j["processes"][0]["quality"]["stuck_in"]')"
finish
