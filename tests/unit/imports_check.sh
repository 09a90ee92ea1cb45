#!/bin/sh
# Every CUDA and NCCL name that a PyTorch release imports (imports/torch-*.txt), and every one
# that the libraries of this machine's toolkit export, is a row of the call table or on the
# reviewed list of names that do no work (imports/not-work.txt).
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 2
: "${CC:=cc}" "${CUDA_HOME:=/usr/local/cuda}"
lists=tests/unit/imports
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0
fail() {
    echo "imports_check: $*"
    failed=1
}

"$CC" -E -P -I. -xc tests/unit/call_names.def | tr ' ' '\n' | sed -n 's/^@//p' | sort -u >"$tmp/table"
[ "$(wc -l <"$tmp/table")" -gt 500 ] || fail "could not read the call table"
grep -v '^#' $lists/not-work.txt | tr -s ' ' '\n' | sed '/^$/d' | sort >"$tmp/not-work"
for name in $(uniq -d "$tmp/not-work"); do fail "$name is twice in not-work.txt"; done
for name in $(comm -12 "$tmp/table" "$tmp/not-work"); do
    fail "$name is in the call table and in not-work.txt"
done

# names on stdin that are in neither; a twin of a name that does no work does none
unknown() {
    sort -u | comm -23 - "$tmp/table" | sed 's/_pt[sd][sz]$//' | sort -u |
        comm -23 - "$tmp/not-work"
}
[ "$(printf 'cudaMalloc\ncudaMallocTwice\ncudaStreamIsCapturing_ptsz\n' | unknown)" = cudaMallocTwice ] ||
    fail "does not find a name that is in neither list"

releases=0
for list in "$lists"/torch-*.txt; do
    grep -v '^#' "$list" >"$tmp/imports"
    sort -uc "$tmp/imports" || fail "$list is not sorted"
    [ "$(comm -12 "$tmp/imports" "$tmp/table" | wc -l)" -gt 20 ] || fail "$list has hardly a call"
    for name in $(unknown <"$tmp/imports"); do
        fail "$name, which ${list##*/} imports, is in neither list"
    done
    releases=$((releases + 1))
done
[ $releases -gt 0 ] || fail "no lists of imports"

for lib in "$CUDA_HOME"/lib*/libcudart.so "$CUDA_HOME"/lib*/stubs/libcuda.so \
    "$CUDA_HOME"/targets/*/lib/libcudart.so "$CUDA_HOME"/lib*/libnccl.so; do
    [ -f "$lib" ] && nm -D --defined-only "$lib" | awk '{ sub(/@.*/, "", $3); print $3 }'
done | grep -E '^(_*cuda[A-Z]|cu[A-Z]|nccl[A-Z])' | sort -u >"$tmp/exports"
for name in $(unknown <"$tmp/exports"); do
    fail "$name, which a library under CUDA_HOME exports, is in neither list"
done

[ $failed = 0 ] && echo "imports of $releases releases of PyTorch, $(wc -l <"$tmp/exports") exports of a toolkit: all known"
exit $failed
