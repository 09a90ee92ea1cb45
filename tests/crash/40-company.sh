#!/bin/sh
# Beside other preloads, allocators and sanitizers, in sandboxes, without /proc: the program's
# output and exit code are its own, and all of its launches are recorded.
# shellcheck disable=SC1091,SC2154  # from lib.sh
. "$(dirname "$0")/lib.sh"

# whole NAME PRELOAD [COMMAND...]: 16,001 launches of 801 threads, each of them recorded
whole() {
    _name=$1 _preload=$2
    shift 2
    rm -rf t
    env GPUWAIT_OUT="$work/t" LD_PRELOAD="$_preload" "$@" "$program" threads 800 >"$out" 2>"$err"
    is "$_name: exit code" 0 $?
    is "$_name: output" "made" "$(cut -d ' ' -f 1 "$out")"
    is "$_name: nothing said" "" "$(cat "$err")"
    is "$_name: recorded" 16001 "$(count)"
}

find_library() { # NAME: as the loader or the compiler finds it
    ldconfig -p | sed -n "s|.*$1.* => ||p" | head -n 1
}
for name in libjemalloc.so libtcmalloc_minimal.so; do
    other=$(find_library $name)
    if [ -z "$other" ]; then
        echo "# no $name here"
        continue
    fi
    whole "$name first" "$other:$lib"
    whole "$name last" "$lib:$other"
done
other=$(realpath "$("${CC:-cc}" -print-file-name=libasan.so)" 2>/dev/null)
if [ -e "$other" ]; then
    whole "libasan first" "$other:$lib" env ASAN_OPTIONS=detect_leaks=0
else
    echo "# no libasan here"
fi
whole "bound at once" "$lib" env LD_BIND_NOW=1
whole "twice" "$lib:$lib"

# Another dlsym() behind ours: those who ask get the same functions. Before ours it keeps look-ups
# from us, and the program is none the worse.
other=$B/crash/libinterposer.so
for client in triton_like cublas_like two_cudarts; do
    rm -rf t
    runs "$client, another dlsym behind" 0 env SIM_TRUTH="$work/truth" GPUWAIT_OUT="$work/t" \
        LD_PRELOAD="$lib:$other" "$B/sim/clients/$client"
    "$gpuwait" report --json t >"$out" 2>"$err"
    is "$client, another dlsym behind: launches" "$(json truth 'j["launches"]["calls"]')" \
        "$(json "$out" 'j["processes"][0]["launches"]["calls"]')"
    runs "$client, another dlsym before" 0 env GPUWAIT_OUT="$work/t2" LD_PRELOAD="$other:$lib" \
        "$B/sim/clients/$client"
done

# One that wraps a launch itself and asks for the next: both see each launch where ours is named last,
# as `run` does.
other=$B/crash/libnext.so
whole "a wrapper of its own, before" "$other:$lib" env NEXT_COUNT="$work/before"
is "a wrapper of its own, before: its launches" 16001 "$(cat before)"
rm -rf t
runs "a wrapper of its own, under run" 0 env LD_PRELOAD="$other" NEXT_COUNT="$work/run" \
    "$gpuwait" run --no-report -o t -- "$program" threads 800
is "a wrapper of its own, under run: its launches" 16001 "$(cat run)"
is "a wrapper of its own, under run: recorded" 16001 "$(count)"

# A runtime that looks into itself first, as some plug-ins are loaded.
cat >deep.py <<'END'
import ctypes, os, sys
rt = ctypes.CDLL(sys.argv[1] + "/noop/libcudart.so.13", mode=os.RTLD_DEEPBIND | os.RTLD_NOW)
one = (ctypes.c_uint * 3)(1, 1, 1)
class Dim(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]
rt.cudaLaunchKernel.argtypes = [ctypes.c_void_p, Dim, Dim, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
for i in range(100):
    assert rt.cudaLaunchKernel(0x1000, Dim(1, 1, 1), Dim(1, 1, 1), None, 0, None) == 0
print("done")
END
rm -rf t
env GPUWAIT_OUT="$work/t" LD_LIBRARY_PATH="$B/noop" LD_PRELOAD="$lib" python3 deep.py "$B" >"$out" 2>"$err"
is "RTLD_DEEPBIND: exit code" 0 $?
is "RTLD_DEEPBIND: output" "done" "$(cat "$out" "$err")"
"$gpuwait" report --json t >"$out" 2>"$err"
is "RTLD_DEEPBIND: launches" 100 "$(json "$out" 'j["processes"][0]["launches"]["calls"]')"

# Exceptions through wrappers: what follows is recorded as if they had returned.
for cxx in c++ g++ clang++; do
    command -v $cxx >/dev/null && break
done
if $cxx -O1 -o throws "$here/throws.cc" -L"$B/noop" -Wl,--no-as-needed -l:libcuda.so.1 -l:libcudart.so.13 \
    -Wl,-rpath,"$B/noop" 2>"$err"; then
    rm -rf t
    runs "exceptions" 0 env GPUWAIT_OUT="$work/t" LD_PRELOAD="$lib" ./throws
    is "exceptions: output" "caught 1000" "$(cat "$out" "$err")"
    is "exceptions: launches" 2000 "$(count)"
    "$gpuwait" report --json t >"$out" 2>"$err"
    is "exceptions: in the report" "2000 0" "$(json "$out" \
        'j["processes"][0]["launches"]["calls"], j["processes"][0]["quality"]["holes"]' | tr -d '(,)')"
else
    echo "# no C++ compiler here: $(head -n 1 "$err")"
fi

# Another consumer of NVTX: whoever names one keeps it, before the start or in the program; ours has
# no ranges then. The launches are ours all the same.
ranges() { "$gpuwait" info --events t 2>/dev/null | grep -c RANGE_PUSH; }
nvtx() { # NAME RANGES WANTED-OUTPUT COMMAND...
    _what=$1 _ranges=$2 _wanted=$3
    shift 3
    rm -rf t
    runs "$_what" 0 env GPUWAIT_OUT="$work/t" LD_PRELOAD="$lib" "$@"
    is "$_what: what its consumer got" "$_wanted" "$(cat "$out" "$err")"
    is "$_what: launches" 100 "$(count)"
    is "$_what: our ranges" "$_ranges" "$(ranges)"
}
consumer=$B/crash/libnvtx.so told="pushed 100 popped 100 marked 10"
nvtx "no other consumer of NVTX" 100 "" "$B/crash/nvtx"
nvtx "a consumer of NVTX named before" 0 "$told" env NVTX_INJECTION64_PATH="$consumer" "$B/crash/nvtx"
nvtx "a consumer of NVTX named by the program" 0 "$told" "$B/crash/nvtx" "$consumer"

# Without one system call: as without us.
"$B/crash/sandbox" list >calls
while read -r call; do
    for error in 1 38; do # EPERM, ENOSYS
        rm -rf t
        "$B/crash/sandbox" "$call" $error "$program" threads 8 >"$out" 2>"$err" </dev/null
        wanted=$?
        [ $wanted != 77 ] || break 2
        "$B/crash/sandbox" "$call" $error /usr/bin/env GPUWAIT_OUT="$work/t" LD_PRELOAD="$lib" \
            "$program" threads 8 >"$out" 2>"$err" </dev/null
        is "without $call ($error): exit code" $wanted $?
        if [ $wanted = 0 ] && [ "$(count)" != 161 ]; then
            is "without $call ($error): one line" 1 "$(grep -c '^gpuwait: ' "$err")"
        fi
    done
done <calls

# Where nothing can be written, and where the kernel tells nothing.
(cd /proc && env LD_PRELOAD="$lib" "$program" threads 8) >"$out" 2>"$err"
is "a directory that takes no files: exit code" 0 $?
is "a directory that takes no files: said" "nothing is recorded" "$(sed 's/.*; //' "$err")"
bare() { # PLACE: with nothing in it
    # shellcheck disable=SC2016  # for the shell inside
    unshare -m sh -c 'mount -t tmpfs none "$0" && exec "$@"' "$1" env GPUWAIT_OUT="$work/t" \
        LD_PRELOAD="$lib" LD_LIBRARY_PATH="$B/noop" "$program" threads 8 >"$out" 2>"$err"
}
for place in /proc /sys /dev/shm; do
    rm -rf t
    if ! unshare -m mount -t tmpfs none $place 2>/dev/null; then
        echo "# cannot hide $place here"
        continue
    fi
    bare $place
    is "no $place: exit code" 0 $?
    is "no $place: nothing said" "" "$(cat "$err")"
    is "no $place: recorded" 161 "$(count)"
    [ $place != /sys ] || has "no clock source known: the system's is used" "$(
        "$gpuwait" info t >info 2>/dev/null
        echo info
    )" "clock  *monotonic"
done
finish
