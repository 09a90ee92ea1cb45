#!/usr/bin/env bash
# Run the GPU workloads bare, under the preload, and under the preload with a
# referee in the same process; compare exactly.
#
#     tests/gpu/run_all.sh [WORKLOAD...]
#
# Exit 0 if everything is equal.  Results go to build/gpu-results, and packed to $OUT
# (default build) as results.tar.xz and dumps.tar.xz.  Environment:
#   GPUWAIT_TEST_CUDART12  folder with libcudart.so.12; without it two_cudarts is skipped
#   GPUWAIT_TEST_JOBS      workloads at once (default 8; 1 where times matter)
#   GPUWAIT_TEST_SECONDS   stop starting runs after this long (default 450)
#   GPUWAIT_TEST_ARCH      nvcc's -arch (default native)
#   NVCC, PYTHON           default nvcc (or /usr/local/cuda/bin/nvcc), python3
# make passes B, GPUWAIT and LIBGPUWAIT, the folder, the command and the preload.
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@"
set +o posix
set -u

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "${B:-$root/build}" && pwd) || exit 2
gpuwait=${GPUWAIT:-$build/gpuwait}
library=${LIBGPUWAIT:-$build/libgpuwait.so}
results=$root/build/gpu-results
programs=$root/build/gpu
out=${OUT:-$root/build}
python=${PYTHON:-python3}
jobs_at_once=${GPUWAIT_TEST_JOBS:-8}
seconds_in_all=${GPUWAIT_TEST_SECONDS:-450}
seconds_a_run=90
cache=$(mktemp -d)

export GPUWAIT_TEST_JOBS=$jobs_at_once PYTHONDONTWRITEBYTECODE=1
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-4}
unset LD_PRELOAD GPUWAIT

# The slowest first; each with how it gets the preload.
modes="compile:run llama_lora:preload generate:run dataloader:preload nccl:run fft_linalg:preload
graph:run conv:preload eager_mlp:run static_cudart:preload ptds:run legacy_launch:preload two_cudarts:run"
cuda_programs="static_cudart ptds legacy_launch two_cudarts"

is_program() {
	case " $cuda_programs " in *" $1 "*) return 0 ;; esac
	return 1
}

mode_of() {
	local pair
	for pair in $modes; do
		[ "${pair%%:*}" = "$1" ] && echo "${pair#*:}"
	done
}

names=$*
if [ -z "$names" ]; then
	for pair in $modes; do names="$names ${pair%%:*}"; done
fi
for name in $names; do
	[ -n "$(mode_of "$name")" ] || { echo "run_all.sh: no workload '$name'" >&2; exit 2; }
done

# ---- the CUDA programs ------------------------------------------------------

first_with() { # FILE DIR... : the first DIR that has FILE (a glob)
	local file=$1 dir
	shift
	for dir in "$@"; do
		compgen -G "$dir/$file" >/dev/null && { echo "$dir"; return 0; }
	done
	return 1
}

build_programs() {
	local nvcc cuda site headers runtime dir include lib link flags legacy old tag
	nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
	cuda=$(cd "$(dirname "$(readlink -f "$nvcc")")/.." && pwd)
	site=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
	mkdir -p "$programs/lib"
	headers=$(first_with cuda_runtime.h "$cuda/include" "$cuda/targets/x86_64-linux/include" "$site"/nvidia/cu*/include)
	runtime=$(first_with 'libcudart.so.1[1-9]*' "$cuda/lib64" "$cuda/targets/x86_64-linux/lib" "$cuda/lib" "$site"/nvidia/cu*/lib)
	flags=(-O1 -std=c++17 "-arch=${GPUWAIT_TEST_ARCH:-native}" -Xcompiler -Wall,-Wextra "-I$here")
	if [ ! -e "$headers/nvtx3/nvToolsExt.h" ]; then
		dir=$(first_with nvtx3/nvToolsExt.h "$site"/nvidia/cu*/include "$site"/nvidia/nvtx/include) && flags+=(-isystem "$dir")
	fi
	# Wheels have libcudart.so.13 but no libcudart.so to link with.
	[ -e "$runtime/libcudart.so" ] || ln -sf "$(compgen -G "$runtime/libcudart.so.*" | sort | tail -1)" "$programs/lib/libcudart.so"
	link=("-L$programs/lib" "-L$runtime" -Xlinker "-rpath=$runtime")
	# nvcc passes -D to its own passes only; the host compiler's last one needs it too.
	legacy=(-D__NV_LEGACY_LAUNCH -Xcompiler -D__NV_LEGACY_LAUNCH)

	for tag in "$cuda/extras/CUPTI/include:$cuda/extras/CUPTI/lib64" "$headers:$runtime" \
		"$site/nvidia/cu13/include:$site/nvidia/cu13/lib" "$site/nvidia/cuda_cupti/include:$site/nvidia/cuda_cupti/lib"; do
		include=${tag%%:*} lib=${tag#*:}
		[ -e "$include/cupti.h" ] && compgen -G "$lib/libcupti.so*" >/dev/null && break
	done
	set -x
	(
		"${CC:-gcc}" -std=gnu11 -O1 -Wall -Wextra -fPIC -shared -isystem "$include" -isystem "$headers" \
			"$here/cupti_referee.c" -o "$programs/libcupti_referee.so" \
			"$(compgen -G "$lib/libcupti.so*" | sort | tail -1)" "-Wl,-rpath,$lib" -lpthread
	) &
	"$nvcc" "${flags[@]}" -cudart static "$here/static_cudart.cu" -o "$programs/static_cudart" &
	"$nvcc" "${flags[@]}" -cudart shared "${link[@]}" --default-stream per-thread "$here/ptds.cu" -o "$programs/ptds" &
	"$nvcc" "${flags[@]}" -cudart shared "${link[@]}" "${legacy[@]}" "$here/legacy_launch.cu" -o "$programs/legacy_launch" &
	"$nvcc" "${flags[@]}" -cudart shared "${link[@]}" "$here/two_cudarts.cu" -o "$programs/two_cudarts" &
	old=$(find "${GPUWAIT_TEST_CUDART12:-/nonexistent}" -name 'libcudart.so.12*' 2>/dev/null | sort | head -1)
	if [ -n "$old" ]; then
		old=$(readlink -f "$old")
		dir=$programs/lib/cudart12
		mkdir -p "$dir" && cp "$old" "$dir/libcudart.so.12"
		"$nvcc" "${flags[@]}" -cudart none -no-compress "${legacy[@]}" -Xcompiler -fPIC -shared "$here/two_cudarts_old.cu" \
			-o "$programs/libtwo_cudarts_old.so" "-L$dir" -l:libcudart.so.12 -Xlinker "-rpath=$dir" &
	fi
	wait
	set +x
}

# ---- one workload -----------------------------------------------------------

run() { # TAG MODE REFEREE TRACE : run the command in cmd; output to TAG.out, TAG.err, TAG.exit
	local tag=$1 mode=$2 referee=$3 trace=$4 left status prefix=()
	left=$((seconds_in_all - SECONDS))
	[ "$left" -lt 5 ] && { echo "out of time" >"$tag.err"; : >"$tag.out"; echo late >"$tag.exit"; return; }
	[ "$left" -gt "$seconds_a_run" ] && left=$seconds_a_run
	case $mode in
	preload) prefix=(env "LD_PRELOAD=$library") ;;
	run) prefix=("$gpuwait" run --) ;;
	esac
	# Compiler caches of their own, so that one bare run and one preloaded run compile.
	TORCHINDUCTOR_CACHE_DIR=$cache/$mode/inductor TRITON_CACHE_DIR=$cache/$mode/triton \
		GPUWAIT_OUT=$trace GPUWAIT_REFEREE=$referee GPUWAIT_TRUTH_DIR=$PWD GPUWAIT_REFEREE_LIB=$programs/libcupti_referee.so \
		timeout -k 5 "$left" "${prefix[@]}" "${cmd[@]}" >"$tag.out" 2>"$tag.err" </dev/null
	status=$?
	echo $status >"$tag.exit"
}

same() { # TAG TAG : equal output and exit code
	cmp -s "$1.out" "$2.out" && cmp -s "$1.exit" "$2.exit"
}

workload() {
	local name=$1 mode dir=$results/$1 cmd
	mode=$(mode_of "$name")
	rm -rf "$dir"
	mkdir -p "$dir" && cd "$dir" || return
	echo "mode=$mode" >status
	if [ "$name" = two_cudarts ]; then
		cmd=("$programs/two_cudarts" "$programs/libtwo_cudarts_old.so")
		[ -n "${GPUWAIT_TEST_CUDART12:-}" ] || { echo "skipped=GPUWAIT_TEST_CUDART12 not set" >>status; return; }
	elif is_program "$name"; then
		cmd=("$programs/$name")
	else
		cmd=("$python" "$here/$name.py")
	fi

	run bare1 bare 0 none
	run bare2 bare 0 none
	run plain "$mode" 0 "$dir/trace_plain"
	run refereed "$mode" 1 "$dir/trace"
	{
		if [ "$(cat bare1.exit)" != 0 ] || [ ! -s bare1.out ]; then echo "bare_same=FAILED"
		elif same bare1 bare2; then echo "bare_same=yes"
		else echo "bare_same=NO"; fi
		if ! same bare1 plain; then echo "stdout_same=NO"
		elif ! same bare1 refereed; then echo "stdout_same=refereed:NO"
		else echo "stdout_same=yes"; fi
		echo "exits=$(cat bare1.exit)/$(cat bare2.exit)/$(cat plain.exit)/$(cat refereed.exit)"
	} >>status

	[ -e "$name.trace.json" ] && "$python" "$here/truth.py" "$name.trace.json" "$name.truth.json" --range "$name" --script "$name.cu" >compare.txt 2>&1
	timeout 60 "$gpuwait" report --json --steps all --range "$name" trace >report.json 2>report.err
	echo "report exit $?" >>report.err
	timeout 60 "$gpuwait" info --json trace >info.json 2>info.err
	timeout 60 "$gpuwait" report trace >report.txt 2>&1
	"$python" "$here/compare.py" "$name.truth.json" report.json --result result.json ${GPUWAIT_TEST_COMPARE:-} >>compare.txt 2>&1
}

# ---- all of them ------------------------------------------------------------

mkdir -p "$results" "$out"
for name in $names; do
	if is_program "$name"; then
		build_programs >"$results/build.log" 2>&1 &
		break
	fi
done
# Read the big libraries from disk once, not eight times at once.
timeout 200 "$python" -c 'import torch, transformers, peft; from transformers import LlamaForCausalLM' >"$results/machine.txt" 2>&1 &
wait
{
	uname -a
	"$python" -c 'import torch; print("torch", torch.__version__, "cuda", torch.version.cuda)'
	nvidia-smi
} >>"$results/machine.txt" 2>&1
echo "built and warm after $SECONDS s"

running=0
for name in $names; do
	if [ "$running" -ge "$jobs_at_once" ]; then
		wait -n
		running=$((running - 1))
	fi
	(workload "$name") &
	running=$((running + 1))
done
wait
rm -rf "$cache"

for name in $names; do
	dir=$results/$name
	if grep -qs '^ \|^FAIL\|^compare:\|Error' "$dir/compare.txt"; then
		echo "--- $name"
		head -12 "$dir/compare.txt"
	fi
	for tag in bare1 bare2 plain refereed; do
		if [ -e "$dir/$tag.exit" ] && [ "$(cat "$dir/$tag.exit")" != 0 ]; then
			echo "--- $name: $tag exited $(cat "$dir/$tag.exit")"
			tail -4 "$dir/$tag.err"
		fi
	done
done
grep -hE 'error|fatal' "$results/build.log" 2>/dev/null | head -5
"$python" "$here/summary.py" "$results" $names | tee "$results/summary.txt"
status=${PIPESTATUS[0]}

pack() { # ARCHIVE FIND-ARGUMENTS...
	local archive=$1
	shift
	(cd "$results" && find . -type f "$@" -print0 | sort -z | XZ_OPT="-6 -T0" tar --null -T - -cJf "$archive") && ls -l "$archive"
}
pack "$out/results.tar.xz" ! -name '*.gwt' ! -name '*.ring' ! -name '*.trace.json'
pack "$out/dumps.tar.xz" -path '*/trace/*' -name '*.gwt'
echo "done after $SECONDS s"
exit "$status"
