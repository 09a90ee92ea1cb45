#!/bin/sh
# Under the preload, what uses no CUDA leaves no trace: no file, no output, no changed exit
# code; nor does asking whether there is a GPU. The first call that needs a context does.
. "$(dirname "$0")/lib.sh"
sim=$B/sim
lib=$B/libgpuwait.so
cd "$work" || exit 1

preloaded() { LD_PRELOAD=$lib LD_LIBRARY_PATH=$sim "$@"; }
left() { find . ! -name out ! -name err ! -path . | sort | tr '\n' ' '; }

LD_PRELOAD=$lib sh -c 'true; python3 -c pass' >"$out" 2>"$err"
is "sh and python: exit code" 0 $?
is "sh and python: output" "" "$(cat "$out" "$err")"
is "sh and python: files" "" "$(left)"

# A machine without CUDA still looks like one, but for weak references, which are resolved at
# start-up and cannot be hidden: they reach the family's answer of "no driver".
if [ -x "$sim/clients/nodriver" ] && ! ldconfig -p | grep -q 'libcuda\.so\.1'; then
    LD_PRELOAD=$lib "$sim/clients/nodriver" >"$out" 2>"$err"
    is "no driver" "default cuInit: absent
default cudaMalloc: absent
next cuInit: absent
libcuda: absent
weak cuMemAlloc_v2: status 100
weak cudaGetDevice: absent
weak ncclGroupStart: status 2" "$(cat "$out" "$err")"
    is "no driver: files" "" "$(left)"
fi

LD_PRELOAD=$lib LD_BIND_NOW=1 sh -c 'exit 7' >"$out" 2>"$err"
is "LD_BIND_NOW: exit code" 7 $?
is "LD_BIND_NOW: output" "" "$(cat "$out" "$err")"

# torch.cuda.is_available() counts the devices and creates no context.
count='import ctypes; n = ctypes.c_int(); rt = ctypes.CDLL("libcudart.so.13")
assert rt.cudaGetDeviceCount(ctypes.byref(n)) == 0; print(n.value)'
is "counting devices" 1 "$(preloaded python3 -c "$count")"
is "counting devices: files" "" "$(left)"

alloc='
p = ctypes.c_void_p(); assert rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(64)) == 0'
preloaded python3 -c "$count$alloc" >"$out" 2>"$err"
is "an allocation: output" 1 "$(cat "$out" "$err")"
is "an allocation: files" "./gpuwait.trace" "$(find . -name '*.trace')"
dump=$(basename gpuwait.trace/*.gwt .gwt)
is "an allocation: the ring is gone" "" "$(find gpuwait.trace /dev/shm -name "*$dump.ring" 2>/dev/null)"
is "an allocation: mode of the dump" 600 "$(stat -c %a gpuwait.trace/*.gwt)"
rm -rf gpuwait.trace

GPUWAIT=0 preloaded python3 -c "$count$alloc" >"$out" 2>"$err"
is "GPUWAIT=0: output" 1 "$(cat "$out" "$err")"
is "GPUWAIT=0: files" "" "$(left)"

# A forked child that does not use CUDA leaves nothing of its own; one that does, and before its
# parent (CUDA forbids it after), makes its own dump.
fork="import ctypes, os, sys
rt = ctypes.CDLL('libcudart.so.13')
p = ctypes.c_void_p()
def use():
    assert rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(64)) == 0
if sys.argv[1] == 'after':
    use()
pid = os.fork()
if pid == 0:
    if sys.argv[1] == 'before':
        use()
    sys.exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
if sys.argv[1] == 'before':
    use()"
# Its exit waits for none of the threads that only its parent has (the timer's 200 ms): then
# all would last that long, and on a busy machine some do.
quick="$fork
import time
lasted = []
for i in range(10):
    begun = time.time()
    pid = os.fork()
    if pid == 0:
        sys.exit(0)
    os.waitpid(pid, 0)
    lasted.append(time.time() - begun)
assert min(lasted) < 0.15, lasted"
preloaded python3 -c "$quick" after >"$out" 2>"$err"
is "children exit at once: output" "" "$(cat "$out" "$err")"
rm -rf gpuwait.trace
preloaded python3 -c "$fork" after >"$out" 2>"$err"
is "a child without CUDA: output" "" "$(cat "$out" "$err")"
is "a child without CUDA: dumps" 1 "$(find gpuwait.trace -name '*.gwt' | wc -l)"
rm -rf gpuwait.trace
preloaded python3 -c "$fork" before >"$out" 2>"$err"
is "a child with CUDA: output" "" "$(cat "$out" "$err")"
is "a child with CUDA: dumps" 2 "$(find gpuwait.trace -name '*.gwt' | wc -l)"
finish
