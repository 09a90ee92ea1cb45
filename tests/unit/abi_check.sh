#!/bin/sh
# The call table and cuda_abi.h against the CUDA headers of this machine, where there are any
# (CUDA_HOME or /usr/local/cuda; NCCL's are optional): prototypes, sizes, offsets, values and
# names. Then the same checks on tables made wrong, which they must notice.
# ABI_CPPFLAGS: further flags for the headers, as -I for an NCCL elsewhere.
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 2
: "${CC:=cc}" "${CUDA_HOME:=/usr/local/cuda}" "${ABI_CPPFLAGS:=}"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0
fail() {
    echo "abi_check: $*"
    failed=1
}
[ -f "$CUDA_HOME/include/cuda_runtime_api.h" ] || { echo "no CUDA headers" && exit 77; }

compile() {
    "$CC" -std=gnu11 -Wall -Wextra -Werror -Wno-deprecated-declarations "$@"
}
# The internal switch makes the headers declare old ABIs and per-thread twins too.
# shellcheck disable=SC2086  # flags are words
compile_real() {
    compile -DGW_REAL_CUDA_HEADERS -D__CUDA_API_VERSION_INTERNAL "$@" \
        -isystem "$CUDA_HOME/include" $ABI_CPPFLAGS
}

printf '#include "lib/capture/cuda_abi.h"\n@cuda CUDA_VERSION\n@nccl NCCL_VERSION_CODE\n' >"$tmp/v.c"
compile_real -I. -E -P "$tmp/v.c" >"$tmp/headers" 2>"$tmp/log" ||
    { echo "the CUDA headers do not compile: $(head -n 1 "$tmp/log")" && exit 77; }
cuda=$(sed -n 's/^@cuda \([0-9]*\)$/\1/p' "$tmp/headers")
nccl=$(sed -n 's/^@nccl \([0-9]*\)$/\1/p' "$tmp/headers")
[ -n "$cuda" ] || { echo "no version in the CUDA headers" && exit 77; }

# -- the three checks, each on a tree; what they complain of goes to $tmp/log
prototypes() {
    compile_real -I"$1" -c -o "$tmp/real.o" tests/unit/abi_check.c >"$tmp/log" 2>&1
}
values() {
    compile -I"$1" -o "$tmp/facts" tests/unit/abi_check.c "$tmp/real.o" >"$tmp/log" 2>&1 &&
        "$tmp/facts" >"$tmp/log" 2>&1
}

cat >"$tmp/helper_names.def" <<'EOF'
#define HELPER(ret, name, ...) @name
#include "lib/capture/helpers.def"
EOF
grep -oE '[A-Za-z_][A-Za-z0-9_]*' "$tmp/headers" >"$tmp/declared"
: >"$tmp/exported"
for lib in "$CUDA_HOME"/lib*/libcudart.so* "$CUDA_HOME"/lib*/stubs/libcuda.so \
    "$CUDA_HOME"/targets/*/lib/libcudart.so* "$CUDA_HOME"/lib*/libnccl.so*; do
    [ -f "$lib" ] && nm -D --defined-only "$lib" 2>/dev/null |
        awk '{ sub(/@.*/, "", $3); print $3 }' >>"$tmp/exported"
done
names() {
    for list in tests/unit/call_names.def "$tmp/helper_names.def"; do
        "$CC" -E -P -I"$1" -xc "$list" | tr ' ' '\n' | sed -n 's/^@//p'
    done >"$tmp/table"
    sort "$tmp/table" | uniq -d | sed 's/$/ is there twice/' >"$tmp/log"
    awk -v cuda="$cuda" -v nccl="${nccl:-0}" '
        function number(version, is_nccl,    part) {
            if (version == "-" || version == "") return ""
            split(version, part, ".")
            return is_nccl ? part[1] * 10000 + part[2] * 100 : part[1] * 1000 + part[2] * 10
        }
        file == 1 { declared[$1] = 1; next }
        file == 2 { exported[$1] = 1; libraries[$1 ~ /^nccl/] = 1; next }
        file == 3 {
            if (NF && $1 != "#") { first[$1] = $2; last[$1] = $3; undeclared[$1] = $4 != "" }
            next
        }
        {
            base = $1
            sub(/_pt[sd][sz]$/, "", base)
            is_nccl = base ~ /^nccl/
            have = is_nccl ? int(nccl / 100) * 100 : cuda
            used[base] = 1
            if (is_nccl && !nccl) next
            from = number(first[base], is_nccl)
            to = number(last[base], is_nccl)
            if ((from != "" && have < from) || (to != "" && have > to)) absent++
            else if ($1 in declared) known++
            else if ($1 in exported || (undeclared[base] && !libraries[is_nccl])) seen++
            else print $1 " is neither declared nor exported"
        }
        END {
            for (name in first) if (!(name in used)) print name " is listed and no row"
            printf "%d rows declared, %d not (exported), %d of other versions\n", known, seen,
                absent >"/dev/stderr"
        }' file=1 "$tmp/declared" file=2 "$tmp/exported" file=3 tests/unit/abi_names.txt \
        file=4 "$tmp/table" >>"$tmp/log" 2>"$tmp/count"
    [ ! -s "$tmp/log" ]
}

# -- the table as it is
complain() {
    fail "$1:"
    sed 's/^/    /' "$tmp/log" | head -n 40
}
prototypes . || complain "prototypes differ from the headers"
if [ -f "$tmp/real.o" ]; then
    if values .; then facts=$(cat "$tmp/log"); else complain "cuda_abi.h differs from the headers"; fi
fi
names . || complain "names"
counts=$(cat "$tmp/count")
[ "$(wc -l <"$tmp/table")" -gt 500 ] || fail "could not read the call table"
[ $failed = 0 ] || exit 1

# -- tables made wrong: $1 which check, $2 the file, $3 where, $4 what, $5 what instead, $6 the
#    name that the complaint must have
wrong() {
    rm -rf "$tmp/tree" && mkdir -p "$tmp/tree/lib" && cp -r lib/capture "$tmp/tree/lib/"
    awk -v where="$3" -v what="$4" -v instead="$5" '
        $0 ~ where { here = 1 }
        here && sub(what, instead) { here = 0; done = 1 }
        { print }
        END { exit !done }' "lib/capture/$2" >"$tmp/tree/lib/capture/$2" ||
        { fail "nothing to make wrong at $3 in $2" && return; }
    if "$1" "$tmp/tree"; then
        fail "the check of $1 does not notice $5 for $4 at $3"
    elif ! grep -q "$6" "$tmp/log"; then
        complain "the check of $1 failed for another reason than $6"
    fi
}
wrong prototypes calls_runtime.def 'cudaMemcpyAsync,$' 'size_t n' 'int n' cudaMemcpyAsync_ptsz
wrong prototypes calls_runtime.def 'cudaMemset3D,$' 'int value' 'unsigned value' cudaMemset3D_ptds
wrong prototypes calls_driver.def 'cuLaunchKernel,$' 'unsigned int smem' 'size_t smem' cuLaunchKernel_ptsz
wrong prototypes calls_driver.def 'cuMemcpyHtoD,' CUdeviceptr_v1 CUdeviceptr cuMemcpyHtoD
wrong prototypes helpers.def cuDeviceTotalMem_v2 'size_t' 'unsigned' cuDeviceTotalMem_v2
[ -z "$nccl" ] || wrong prototypes calls_nccl.def 'ncclAllReduce,$' 'size_t n' 'int n' ncclAllReduce
prototypes . # its object file again
wrong values cuda_abi.h 'PCI_BUS_ID' '33' '34' PCI_BUS_ID
wrong values cuda_abi.h 'union CUlaunchAttributeValue_union' 'int flags;' 'long flags;' programmaticEvent
wrong names calls_runtime.def 'cudaMemsetAsync,' cudaMemsetAsync cudaMemsetAsink cudaMemsetAsink_ptsz
wrong names calls_driver.def 'cuMemFree_v2,' cuMemFree_v2 cuMemAlloc_v2 'cuMemAlloc_v2 is there twice'

[ $failed = 0 ] && echo "CUDA $cuda, NCCL ${nccl:-not there, unchecked}: $counts; $facts"
exit $failed
