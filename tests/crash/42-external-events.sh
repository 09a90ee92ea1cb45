#!/bin/sh
# Events that a graph records for who waits outside of it: operations, in the capture as at other times, and
# neither a wait nor an error of the capture's.
# shellcheck disable=SC1091,SC2154  # from lib.sh
. "$(dirname "$0")/lib.sh"
cat >external.py <<'END'
import ctypes
rt = ctypes.CDLL("libcudart.so.13")
P = ctypes.c_void_p
def call(name, *arguments):
    got = getattr(rt, name)(*arguments)
    assert got == 0, (name, got)
memory, stream, event, graph, executable = P(), P(), P(), P(), P()
call("cudaMalloc", ctypes.byref(memory), ctypes.c_size_t(64))
call("cudaStreamCreate", ctypes.byref(stream))
call("cudaEventCreate", ctypes.byref(event))
call("cudaStreamBeginCapture", stream, 0)
call("cudaMemsetAsync", memory, 0, ctypes.c_size_t(64), stream)
call("cudaEventRecordWithFlags", event, stream, 1)  # external
call("cudaStreamEndCapture", stream, ctypes.byref(graph))
call("cudaGraphInstantiate", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
for _ in range(10):
    call("cudaGraphLaunch", executable, stream)
    call("cudaEventSynchronize", event)
call("cudaStreamSynchronize", stream)
END
runs "a graph with an external event" 0 env LD_LIBRARY_PATH="$B/sim" python3 external.py
runs "the same, recorded" 0 env LD_LIBRARY_PATH="$B/sim" GPUWAIT_OUT="$work/t" LD_PRELOAD="$B/libgpuwait.so" python3 external.py
is "nothing said" "" "$(cat "$out" "$err")"
"$gpuwait" report --json t >report.json 2>"$err"
is "waits" "{'cudaEventSynchronize': 10, 'cudaStreamSynchronize': 1}" "$(json report.json \
    '{k: (v["calls"] if isinstance(v, dict) else v) for k, v in sorted(j["processes"][0]["syncs"]["by_api"].items())}')"
is "graph launches, complete" "10 True" "$(json report.json \
    '"%d %s" % (j["processes"][0]["launches"]["graph_launches"], j["processes"][0]["quality"]["complete"])')"
"$gpuwait" info --events t >events 2>"$err"
is "the event is recorded once, by the capture" 1 "$(grep -c cudaEventRecordWithFlags events)"
finish
