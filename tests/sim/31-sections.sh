#!/bin/sh
# Host sections: what the clocks say of a thread's time between two calls is what the client did
# in it. It burns by its own CPU clock, so bounds hold on a busy machine too.
# shellcheck source=tests/sim/lib.sh
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }

check "sections runs" env GPUWAIT_GPU_TIMING=off GPUWAIT_OUT="$work/dump" \
    LD_PRELOAD="$B/libgpuwait.so" "$sim/clients/sections" 6
"$B/gpuwait" info --events --json "$work/dump" >"$work/events" 2>"$work/err"
cat >"$work/sections.py" <<'PY'
import json, re, sys

ROUNDS = 6
CLOCKS = re.compile(r"of the last (\d+) us: (\d+) on CPU, (\d+) in the process, "
                    r"switches (\d+) \+ (\d+)")
found, last, begun, bad = {}, None, False, []


def wrong(text, *args):
    bad.append(text % args)


for line in open(sys.argv[1]):
    e = json.loads(line)
    if e["kind"] == "LAUNCH" and last:
        clocks = CLOCKS.match(last["detail"]).groups()
        found.setdefault(e["detail"].split()[0], []).append(
            ((last["t1_ns"] - last["t0_ns"]) // 1000,) + tuple(map(int, clocks)))
    elif e["kind"] == "SYNC" and not begun:
        begun = True  # what came before warmed up
        found.clear()
    last = e if e["kind"] == "SECTION" else None

# What was burnt, us; what another thread burnt; whether the whole section is measured. A start that
# the thread's own reading supplies may come too late on a busy machine: one in three.
ways = {"burn": (20000, 0, True), "sleep": (0, 0, True), "sync_burn": (20000, 0, True),
        "sync_sleep": (0, 0, True), "other_burns": (0, 20000, True), "poll": (20000, 0, True),
        "late_burn": (50000, 0, False), "late_sleep": (0, 0, False)}
for name, (burnt, other, all_of_it) in ways.items():
    sections = found.get(name, [])
    whole = [s for s in sections if abs(s[1] - s[0]) <= 2]
    part = [s for s in sections if s[1] and s not in whole]
    if len(sections) != ROUNDS:
        wrong("%s: %d sections", name, len(sections))
    if len(whole if all_of_it else part) * 3 < ROUNDS * 2:
        wrong("%s: measured whole %d, in part %d of %d", name, len(whole), len(part), len(sections))
    for dur, measured, cpu, process, voluntary, involuntary in whole:
        if not burnt <= cpu <= burnt + 4000:
            wrong("%s: %d us on CPU, burnt %d", name, cpu, burnt)
        if not other <= process - cpu <= other + 15000: # the recorder's own threads are in it
            wrong("%s: %d us by others, which burnt %d", name, process - cpu, other)
        if not burnt and not voluntary:
            wrong("%s: no context switch", name)
    for dur, measured, cpu, _, _, _ in part:
        if measured > dur - 4900: # the watch looks after 5 ms
            wrong("%s: measured %d of %d us", name, measured, dur)
        # All the time off CPU may have passed in what was measured, or none of it.
        if cpu > burnt + 4000 or (burnt and cpu < measured - (dur - burnt) - 1000):
            wrong("%s: %d us on CPU of %d, burnt %d of %d", name, cpu, measured, burnt, dur)
print("\n".join(bad) or "%d sections" % sum(map(len, found.values())), file=sys.stderr)
sys.exit(bool(bad))
PY
check "each section says what was done in it" python3 "$work/sections.py" "$work/events"
finish
