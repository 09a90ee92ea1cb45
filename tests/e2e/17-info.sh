#!/bin/sh
# info: the object, the list of events, and the text.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shells inside
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
python3 -c '
from mkdump import training
d = training()
d.count(EXPORT_TABLES=2, HOLES=0, UNWALKED_GRAPHS=1, SAMPLES=30, SAMPLES_VOID=2, SAMPLER_GPU_NS=1500000)
d.write("a.gwt")
'
runs "info --json" 0 "$gpuwait" info --json a.gwt
is "schema" 1 "$(json "$out" 'j["schema"]')"
is "names" "[]" "$(json "$out" '[k for k in "pid events dump_bytes dropped lookups_wrapped lookups_passed export_tables holes unwalked_graphs samples voids own_host_ms own_gpu_ms versions".split() if k not in j["processes"][0]]')"
is "figures" "[42, 81, 0, 120, 500, 2, 0, 1]" "$(json "$out" '[j["processes"][0][k] for k in "pid events dropped lookups_wrapped lookups_passed export_tables holes unwalked_graphs".split()]')"
is "size" "$(wc -c <a.gwt)" "$(json "$out" 'j["processes"][0]["dump_bytes"]')"
# (81 events + 17 queries) x 60 ns + 0.3 ms + 1 ms
is "own cost" 1.30588 "$(json "$out" 'round(j["processes"][0]["own_host_ms"], 6)')"
is "sampling" "[30, 2, 1.5]" "$(json "$out" '[j["processes"][0][k] for k in ("samples", "voids", "own_gpu_ms")]')"
is "versions" "{'driver': '580.159', 'gpuwait': '0.1.0', 'libcudart': 'libcudart.so.13.0.96'}" \
    "$(json "$out" 'dict(sorted(j["processes"][0]["versions"].items()))')"

runs "info --events" 0 "$gpuwait" info --events a.gwt
is "one line an event" 81 "$(grep -vc '^#' "$out")"
is "ten fields" 10 "$(grep -v '^#' "$out" | awk -F '\t' '{ print NF }' | sort -u)"
has "a copy" "$out" "	COPY	cudaMemcpyAsync	0	1	0	pageable	H2D 1048576 bytes in 1$"
has "a launch" "$out" "	cuLaunchKernelEx	0	1	0		gemm_128x128 grid 16x16x1 block 32x1x1 shared 0$"
has "a range" "$out" "	RANGE_PUSH	.*	step$"
runs "info --events --json" 0 "$gpuwait" info --events --json a.gwt
is "one object a line" 81 "$(python3 -c '
import json, sys
print(sum(1 for line in open(sys.argv[1]) if json.loads(line)["kind"]))' "$out")"

runs "info" 0 "$gpuwait" info a.gwt
has "state" "$out" "^  state  *closed by its process$"
has "complete" "$out" "^  complete  *yes$"
has "a fact" "$out" "^  host  *node7$"
has "a counter with its text" "$out" "^  *120  symbol look-ups answered with a wrapper$"
has "the GPU" "$out" "NVIDIA H200, 132 SMs, 150.0 GiB, compute capability 9.0"
finish
