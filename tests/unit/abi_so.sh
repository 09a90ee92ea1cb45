#!/bin/sh
# The preload enters any process of any machine from glibc 2.28 on: it needs only glibc's
# own libraries, asks for no newer symbol version, and exports only what it intercepts.
set -u
: "${LIBGPUWAIT:=${B:-build}/libgpuwait.so}" "${CC:=cc}"
newest=2.28
failed=0
fail() {
    echo "abi_so: $*"
    failed=1
}
command -v readelf >/dev/null || { echo "no readelf" && exit 77; }
[ -f "$LIBGPUWAIT" ] || { echo "abi_so: no $LIBGPUWAIT" && exit 1; }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# -- libraries
readelf -dW "$LIBGPUWAIT" >"$tmp/dynamic"
needed=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' "$tmp/dynamic")
for lib in $needed; do
    case $lib in
    libc.so.6 | libdl.so.2 | libpthread.so.0 | ld-linux-*.so.*) ;;
    *) fail "needs $lib, which is not glibc's" ;;
    esac
done
# before glibc 2.34 dlopen and pthread_create live there
for lib in libdl.so.2 libpthread.so.0 libc.so.6; do
    echo "$needed" | grep -qxF "$lib" || fail "does not name $lib as needed"
done
grep -q 'Library soname: \[libgpuwait.so\]' "$tmp/dynamic" || fail "soname is not libgpuwait.so"
grep -q TEXTREL "$tmp/dynamic" && fail "has text relocations"
grep -Eq 'RPATH|RUNPATH' "$tmp/dynamic" && fail "has a run path"
readelf -lW "$LIBGPUWAIT" | grep -q 'GNU_STACK.*RWE' && fail "asks for an executable stack"

# -- symbol versions (the section also names GLIBC_ABI_DT_RELR and its like)
versions=$(readelf -VW "$LIBGPUWAIT" | grep -o 'Name: GLIBC_[A-Z0-9._]*' | sed 's/Name: GLIBC_//' |
    sort -uV)
for v in $versions; do
    case $v in
    2.*) [ "$(printf '%s\n%s\n' "$v" $newest | sort -V | tail -n 1)" = $newest ] ||
        fail "asks for GLIBC_$v: $(readelf --dyn-syms -W "$LIBGPUWAIT" |
            sed -n "s/.* \([^ ]*@GLIBC_$v\).*/\1/p" | tr '\n' ' ')(add it to glibc_compat.h)" ;;
    *) fail "asks for GLIBC_$v" ;;
    esac
done

# -- exports: the rows of the call table, and the few entries of another kind
cat >"$tmp/names.h" <<'EOF'
#define RT(ret, name, ...) @name
#define RT_PTSZ(ret, name, ...) @name @name##_ptsz
#define RT_PTDS(ret, name, ...) @name @name##_ptds
#define RT_ANY RT
#define RT_ANY_PTSZ RT_PTSZ
#define DR RT
#define DR_PTSZ RT_PTSZ
#define DR_PTDS RT_PTDS
#define NC RT
#include "lib/capture/calls.def"
EOF
"$CC" -E -P -I. -xc "$tmp/names.h" | tr ' ' '\n' | sed -n 's/^@//p' | sort -u >"$tmp/table"
[ "$(wc -l <"$tmp/table")" -gt 100 ] || fail "could not read the call table"
nm -D --defined-only "$LIBGPUWAIT" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
    sort -u >"$tmp/exported"
for name in $(comm -13 "$tmp/table" "$tmp/exported"); do
    case $name in
    dlsym | cuGetProcAddress | cuGetProcAddress_v2 | cuGetExportTable) ;;
    InitializeInjectionNvtx2) ;;
    _ZN3c1027reportMemoryUsageToProfilerE*) ;;
    *) fail "exports $name, which is not in the call table" ;;
    esac
done
for name in $(comm -23 "$tmp/table" "$tmp/exported"); do
    fail "$name is in the call table and not exported"
done
for name in dlsym cuGetProcAddress cuGetProcAddress_v2 InitializeInjectionNvtx2; do
    grep -qxF $name "$tmp/exported" || fail "$name is not exported"
done

# -- the public dlsym is our own hook: used inside, it would record or recurse
readelf -rW "$LIBGPUWAIT" | grep -E ' dlsym( |@|$)' && fail "has a relocation against dlsym"
objdump -d --no-show-raw-insn "$LIBGPUWAIT" |
    grep -E '(call|jmp|bl|b)[a-z]* +.*<dlsym(@plt)?>' && fail "calls the public dlsym"

# -- it ends no process, prints by no stream, takes no signal, and loads nothing of a profiler's
nm -D --undefined-only "$LIBGPUWAIT" | sed 's/.* \([^ @]*\).*/\1/' >"$tmp/imported"
[ "$(wc -l <"$tmp/imported")" -gt 40 ] || fail "could not read its imports"
for name in exit _exit _Exit quick_exit abort __assert_fail kill raise tgkill pthread_kill signal sigaction \
    bsd_signal sigaltstack setitimer timer_create alarm printf __printf_chk puts putchar perror stdout stderr \
    fork vfork execve posix_spawn system popen __libc_dlsym _dl_sym; do
    ! grep -qxF $name "$tmp/imported" || fail "imports $name"
done
grep -qi 'libcupti\|libnvperf' "$LIBGPUWAIT" && fail "names CUPTI"
# where it is loaded late, as NVTX does, its thread-local words come out of some 1.6 KiB for all such
tls=$(readelf -lW "$LIBGPUWAIT" | awk '$1 == "TLS" { print $6 }')
[ $((tls)) -gt 0 ] && [ $((tls)) -le 1024 ] || fail "has $((tls)) bytes of thread-local data"

# -- it loads, every symbol bound at once, and does nothing
out=$(LD_BIND_NOW=1 LD_PRELOAD=$LIBGPUWAIT sh -c 'echo loaded' 2>&1)
[ "$out" = loaded ] || fail "sh under the preload said: $out"

[ $failed = 0 ] && echo "exports $(wc -l <"$tmp/exported") names, newest version GLIBC_$(echo "$versions" | tail -n 1)"
exit $failed
