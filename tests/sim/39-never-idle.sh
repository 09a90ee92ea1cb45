#!/bin/sh
# Copies that end sooner than they are believed to, in long rows: the stream is taken for a busy
# one, which has no spacer, and what is timed there comes late. That shows that it is idle, or
# nothing would ever be learnt of such copies.
# shellcheck source=tests/sim/lib.sh
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }

cat >"$work/program.py" <<'PY'
import ctypes
from driver import check, cuda, kernel, launch, let_start

to, source = ctypes.c_uint64(), ctypes.c_uint64()
for p in to, source:
    check(cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(1 << 17)))
launch(kernel(b"short", 2))
let_start(3)  # what writes the recording, what watches threads, what samples
until = cuda.sim_now_ns() + 1200000000
while cuda.sim_now_ns() < until:
    for bits in range(10, 18):
        for _ in range(1000):
            check(cuda.cuMemcpyDtoDAsync_v2(to, source, ctypes.c_size_t(1 << bits), None))
    check(cuda.cuCtxSynchronize())
PY
check "the program runs" env PYTHONPATH="$here" SIM_CLOCK=virtual GPUWAIT_TEST_CLOCK=1 \
    GPUWAIT_OUT="$work/dump" GPUWAIT_STACKS=off LD_LIBRARY_PATH="$sim" LD_PRELOAD="$B/libgpuwait.so" python3 "$work/program.py"
"$B/gpuwait" info --json "$work/dump" >"$work/info" 2>"$work/err"
check "hardly any sample is void" python3 -c '
import json, sys
p = json.load(open(sys.argv[1]))["processes"][0]
print("%d samples, %d void" % (p["samples"], p["voids"]))
sys.exit(p["samples"] < 100 or p["voids"] > p["samples"] / 10)' "$work/info"
cat "$work/out"
finish
