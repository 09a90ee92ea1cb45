#!/usr/bin/env bash
# check on a real GPU: six repeats of six jobs, of which the first is the baseline and five must
# pass; and seven changes, each of which must fail and be named.
#
#     tests/gpu/gate.sh
#
# Exit 0 if all is so. Counts do not depend on what else runs, so several jobs run at a time; host
# time per launch does, so it is left out of the verdict and its spread is printed. Results go to
# build/gpu-gate, the table and all recordings to $OUT/gate.tar.xz where OUT is set. Environment:
#   GPUWAIT_TEST_JOBS     jobs at once (default 8)
#   GPUWAIT_GATE_OPTIONS  more options for check, such as --step-range step
#   PYTHON                default python3
# make passes B and GPUWAIT, the folder and the command.
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@"
set -u

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "${B:-$root/build}" && pwd) || exit 2
gpuwait=${GPUWAIT:-$build/gpuwait}
python=${PYTHON:-python3}
results=$root/build/gpu-gate
at_once=${GPUWAIT_TEST_JOBS:-8}
repeats=6
jobs="compiled lora generate infer dataloader graph eager"
judged="eager compiled graph lora generate dataloader"
# CHANGE:JOB:a metric that must have regressed
changes="item:eager:syncs unmerged:infer:kernels foreach:eager:kernels break:compiled:kernels
unpinned:dataloader:pageable_bytes empty:eager:allocation_calls two:eager:kernels"
read -ra more <<<"${GPUWAIT_GATE_OPTIONS:-}"
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=${OMP_NUM_THREADS:-2}
unset LD_PRELOAD GPUWAIT GPUWAIT_OUT GITHUB_STEP_SUMMARY

rm -rf "$results"
mkdir -p "$results/runs" || exit 2
results=$(cd "$results" && pwd)

# ---- recording --------------------------------------------------------------------------------
record() { # NAME JOB [CHANGE]
	local name=$1
	shift
	TORCHINDUCTOR_CACHE_DIR=$results/inductor-$1 timeout 120 "$gpuwait" run --no-report \
		-o "$results/runs/$name" -- "$python" "$here/gate_jobs.py" "$@" >"$results/$name.log" 2>&1 ||
		echo "$name: exit $?" >>"$results/broken"
}
wait_for_room() {
	while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do wait -n; done
}
for ((i = 1; i <= repeats; i++)); do
	for job in $jobs; do
		[ "$job" != infer ] || [ $i -eq 1 ] || continue
		wait_for_room
		record "$job.$i" "$job" &
	done
done
for row in $changes; do
	IFS=: read -r change job _ <<<"$row"
	wait_for_room
	record "$job.$change" "$job" "$change" &
done
wait
if [ -s "$results/broken" ]; then
	cat "$results/broken"
	while IFS=: read -r name _; do tail -n 5 "$results/$name.log"; done <"$results/broken"
fi

# ---- judging -------------------------------------------------------------------------------------
check() { # NAME JOB: counts alone
	"$gpuwait" check "$results/runs/$1" --baseline "$results/$2.json" --label "$2" \
		--skip host_us_per_launch "${more[@]}" --json >"$results/$1.check" 2>"$results/$1.err"
}
# The job's metrics, as far as they tell: smallest to largest over the repeats.
spread() {
	"$python" - "$@" <<'END'
import json, sys
lists = {}
for path in sys.argv[1:]:
    try:
        rows = json.load(open(path))["metrics"]
    except (OSError, ValueError):
        continue
    for m in rows:
        if not m["process"] and m["now"]:
            lists.setdefault(m["metric"], []).append(m["now"])
print(", ".join("%s %g" % (k, v[0]) if min(v) == max(v) else "%s %.4g..%.4g" % (k, min(v), max(v))
                for k, v in lists.items()))
END
}
failed=0
table() { printf '%-11s %-10s %-7s %s\n' "$@" | tee -a "$results/table"; }
table JOB CHANGE VERDICT WHAT
for job in $jobs; do
	"$gpuwait" check "$results/runs/$job.1" --baseline "$results/$job.json" --label "$job" "${more[@]}" \
		--update >"$results/$job.update" 2>&1 ||
		{ table "$job" - FAIL "no baseline: $(tail -n 1 "$results/$job.update")"; failed=1; continue; }
	case " $judged " in *" $job "*) ;; *) continue ;; esac
	passed=0
	for ((i = 2; i <= repeats; i++)); do
		if check "$job.$i" "$job"; then
			passed=$((passed + 1))
		else
			table "$job" "repeat $i" - "exit $?: $("$python" -c '
import json, sys
try:
    j = json.load(open(sys.argv[1]))
    print(", ".join(["%s %g -> %g" % (m["metric"], m["baseline"], m["now"]) for m in j["metrics"] if m["fails"]] + j["reasons"]))
except ValueError:
    print(open(sys.argv[1][:-5] + "err").read().strip())' "$results/$job.$i.check")"
		fi
	done
	verdict=ok
	[ $passed -eq $((repeats - 1)) ] || { verdict=FAIL failed=1; }
	table "$job" - $verdict "$passed of $((repeats - 1)) pass; $(spread "$results/$job."[2-9].check)"
done
for row in $changes; do
	IFS=: read -r change job metric <<<"$row"
	check "$job.$change" "$job"
	code=$?
	said=$("$python" - "$results/$job.$change.check" "$metric" <<'END'
import json, sys
try:
    j = json.load(open(sys.argv[1]))
except ValueError:
    sys.exit("no output")
bad = [m for m in j["metrics"] if m["verdict"] == "REGRESSED" and not m["process"]]
names = j["kernels"] + j["calls"]
line = ", ".join("%s %g -> %g" % (m["metric"], m["baseline"], m["now"]) for m in bad)
print("%s; %s" % (line or "nothing", "; ".join("%s %g -> %g" % (n["name"][:50], n["baseline"], n["now"])
                                                for n in names[:2]) or "no name"))
sys.exit(sys.argv[2] not in [m["metric"] for m in bad] or not (names or sys.argv[2].endswith("bytes")))
END
	)
	named=$?
	verdict=ok
	if [ $code -ne 1 ] || [ $named -ne 0 ]; then verdict=FAIL failed=1; fi
	table "$job" "$change" $verdict "exit $code: $said"
done
[ ! -s "$results/broken" ] || failed=1
if [ -n "${OUT:-}" ]; then
	tar -C "$results" -cJf "$OUT/gate.tar.xz" --exclude 'inductor-*' . || failed=1
fi
exit $failed
