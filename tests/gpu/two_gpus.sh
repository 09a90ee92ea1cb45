#!/usr/bin/env bash
# Data-parallel jobs on the GPUs of one machine, one at a time, each recorded with CUPTI as referee in
# the same run; then what recording costs them.
#
#     tests/gpu/two_gpus.sh [MODE...]      default: all of ddp.py's, and the cost
#
# Exit 0 if all is as it should be. Results go to build/two_gpus; where OUT is set, the table and the
# recordings with their truth go there, a .tar.xz for each pair of modes. Environment:
#   GPUWAIT_TEST_RANKS    processes, each with a GPU of its own (default 2)
#   GPUWAIT_TEST_SECONDS  start no job after this long (default 300)
#   PYTHON                default python3
# make passes B, GPUWAIT and LIBGPUWAIT, the folder, the command and the preload.
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@"
# shellcheck disable=SC1091  # beside this
. "$(dirname "$0")/lib.sh"
ranks=${GPUWAIT_TEST_RANKS:-2}
seconds_in_all=${GPUWAIT_TEST_SECONDS:-300}
pairs="ddp:fsdp2 accumulate:no_sync slow_loader:loader late:punctual"
port=$((20000 + RANDOM % 20000))
failures=0

export MASTER_ADDR=127.0.0.1
mkdir -p "$results" || exit 2

bad() {
	echo "NOT OK: $*"
	failures=$((failures + 1))
}

# each FOLDER COMMAND...: one process a rank, recorded, output to FOLDER/RANK.out
each() {
	local folder=$1 r pids=() status=0
	shift
	port=$((port + 1))
	for ((r = 0; r < ranks; r++)); do
		RANK=$r LOCAL_RANK=$r WORLD_SIZE=$ranks LOCAL_WORLD_SIZE=$ranks MASTER_PORT=$port \
			GPUWAIT_OUT=$folder/dump LD_PRELOAD=$library timeout -k 5 60 "$python" "$@" \
			>"$folder/$r.out" 2>"$folder/$r.err" &
		pids+=($!)
	done
	for r in "${pids[@]}"; do wait "$r" || status=$?; done
	return "$status"
}

# launched FOLDER COMMAND...: the same through the tool and torchrun
launched() {
	local folder=$1
	shift
	timeout -k 5 90 "$GPUWAIT" run --no-report -o "$folder/dump" -- "$python" -m torch.distributed.run \
		--nproc-per-node "$ranks" --master-addr 127.0.0.1 --master-port $((++port)) "$@" \
		>"$folder/0.out" 2>"$folder/0.err"
}

job() { # MODE
	local mode=$1 begun=$SECONDS folder=$results/$1 status=0
	if [ "$SECONDS" -gt "$seconds_in_all" ]; then
		bad "$mode: not started, time is up"
		return
	fi
	mkdir -p "$folder"
	export GPUWAIT_TRUTH_DIR=$folder
	if [ "$mode" = ddp ]; then
		launched "$folder" "$here/ddp.py" "$mode" || status=$?
	else
		each "$folder" "$here/ddp.py" "$mode" || status=$?
	fi
	if [ $status != 0 ]; then
		bad "$mode: exit $status"
		tail -n 3 "$folder"/*.err
	fi
	echo "# $mode: $((SECONDS - begun)) s, $(cat "$folder"/*.out | tr '\n' ' ')"
}

modes=$*
[ -n "$modes" ] || modes=$(echo "$pairs" | tr : ' ')
for mode in $modes; do job "$mode"; done
# shellcheck disable=SC2086  # names
"$python" "$here/ddp_table.py" "$results" $modes 2>&1 | tee "$results/table.txt"
[ "${PIPESTATUS[0]}" = 0 ] || failures=$((failures + 1))

if [ $# = 0 ] && [ "$SECONDS" -le "$seconds_in_all" ]; then
	mkdir -p "$results/onoff"
	begun=$SECONDS
	each "$results/onoff" "$here/ddp_onoff.py" 15 || {
		bad "onoff: exit $?"
		tail -n 3 "$results"/onoff/*.err
	}
	tee -a "$results/table.txt" <"$results/onoff/0.out"
	echo "# onoff: $((SECONDS - begun)) s"
fi

if [ -n "${OUT:-}" ]; then
	cp "$results/table.txt" "$OUT/"
	for pair in $pairs; do
		folders=()
		for mode in ${pair/:/ }; do
			[ ! -d "$results/$mode" ] || folders+=("$mode")
		done
		[ ${#folders[@]} = 0 ] || tar -C "$results" -cJf "$OUT/${folders[0]}.tar.xz" "${folders[@]}" || failures=$((failures + 1))
	done
fi
exit $((failures != 0))
