#!/bin/sh
# What a process has of its own is as it was: signal handlers and masks, descriptors that its children
# inherit, libraries. And it may start from anywhere, by anything, and fork at any time.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shell inside
. "$(dirname "$0")/lib.sh"
export LD_LIBRARY_PATH="$B/noop"
made() { awk '{ n += $3 } END { print n }' "$1"; }

# Launches, then says what the process has.
cat >has.py <<'END'
import ctypes, os, sys, threading, time
class Dim(ctypes.Structure):
    _fields_ = [(c, ctypes.c_uint) for c in "xyz"]
status = lambda: [l for l in open("/proc/self/status") if l.startswith(("SigBlk", "SigIgn", "SigCgt", "Umask"))]
beside = threading.Thread(target=str)  # a process with threads catches two signals of glibc's own
beside.start(), beside.join()
libraries = lambda: sorted({l.split()[-1].split("/")[-1] for l in open("/proc/self/maps") if "libcu" in l})
print(*libraries())
rt, one = ctypes.CDLL("libcudart.so.13"), Dim(1, 1, 1)
rt.cudaLaunchKernel.argtypes = [ctypes.c_void_p, Dim, Dim, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
for _ in range(100):
    assert rt.cudaLaunchKernel(0x1000, one, one, None, 0, None) == 0
time.sleep(0.3)
print(*status(), *libraries(), os.getcwd(), os.getpriority(os.PRIO_PROCESS, 0))
print(*sorted(k for k in os.environ if k not in ("LD_PRELOAD", "NVTX_INJECTION64_PATH") and "GPUWAIT" not in k))
sys.stdout.flush()
os.execlp("ls", "ls", "/proc/self/fd")
END
python3 has.py >bare 2>&1 </dev/null
env GPUWAIT_OUT="$work/t" GPUWAIT_RING=dump LD_PRELOAD="$lib" python3 has.py >recorded 2>&1 </dev/null
is "nothing of CUDA is loaded by it" "" "$(head -n 1 recorded)"
same "signals, libraries, environment, descriptors of what follows" bare recorded
is "recorded meanwhile" 100 "$(count t/*.gwt)"
rm -rf t

# fork() while threads are inside calls, and the library's own at work: the children end, and record
# theirs.
runs "fork beside threads" 0 env GPUWAIT_OUT="$work/t" GPUWAIT_RING=dump LD_PRELOAD="$lib" "$program" fork-beside 40
is "fork beside threads: recordings" 41 "$(find t -name '*.gwt' | wc -l)"
# (of what was dropped not all need be launches)
is "fork beside threads: each launch, or dropped" yes "$(for dump in t/*.gwt; do "$B/crash/count" "$dump"; done |
    awk -v made="$(made "$out")" '{ at = 0; for (i = 1; i <= NF; i++) { if (at) n += $i; if ($i == "launches") at = 1 }
        lost += $2 + $4; bad += $10 + $12 }
        END { print (n <= made && n + lost >= made && !bad ? "yes" : n " of " made ", " lost " lost, " bad " bad") }')"
rm -rf t

# Its parent is killed: a worker goes on, and so does its recording.
runs "a parent that is killed" 137 env GPUWAIT_OUT="$work/t" GPUWAIT_RING=dump LD_PRELOAD="$lib" \
    sh -c '"$0" orphan >said & wait $!' "$program"
for _ in $(seq 500); do
    [ "$(wc -l <said)" -lt 2 ] || break
    sleep 0.02
done
is "a parent that is killed: both said" 2 "$(wc -l <said)"
sleep 0.5
is "a parent that is killed: recorded" "$(awk '{ print $3 }' said | sort -n | tr '\n' ' ')" \
    "$(for dump in t/*.gwt; do count "$dump"; done | sort -n | tr '\n' ' ')"
rm -rf t

# What cannot be recorded, and cannot be said either.
(cd /proc && env LD_PRELOAD="$lib" "$program" plain 100 2>&-) >"$out" </dev/null
is "no standard error: exit code, output" "0 made" "$? $(cut -d ' ' -f 1 "$out")"
(cd /proc && env GPUWAIT_TEST_FAIL=write:1+ LD_PRELOAD="$B/crash/libfail.so:$lib" "$program" plain 100) >"$out" 2>"$err"
is "a standard error that takes nothing: exit code, nothing said" "0 " "$? $(cat "$err")"

# From a directory that takes no files, into another.
(cd /proc && env GPUWAIT_OUT="$work/t" LD_PRELOAD="$lib" "$program" plain 100) >"$out" 2>"$err"
is "started where no file can be: exit code, nothing said" "0 " "$? $(cat "$err")"
is "started where no file can be: recorded" 100 "$(count t/*.gwt)"
rm -rf t
(cd /proc && "$gpuwait" run -- "$program" plain 100) >"$out" 2>"$err"
is "run there, into a directory there" 125 $?
(cd /proc && "$gpuwait" run -o "$work/t" --no-report -- "$program" plain 100) >"$out" 2>"$err"
is "run there, into another: exit code, nothing said" "0 " "$? $(cat "$err")"
is "run there, into another: recorded" 100 "$(count t/*.gwt)"
rm -rf t

# By a program without a loader, which hands its environment on.
cat >launcher.c <<'END'
#include <unistd.h>
int main(int argc, char **argv)
{
    return argc > 1 ? execv(argv[1], argv + 1) : 2;
}
END
if "${CC:-cc}" -static -o launcher launcher.c 2>"$err"; then
    "$gpuwait" run -o "$work/t" --no-report -- ./launcher "$program" plain 100 >"$out" 2>"$err"
    is "by a static launcher: exit code" 0 $?
    is "by a static launcher: recorded" 100 "$(count t/*.gwt)"
else
    echo "# no static libc here"
fi
finish
