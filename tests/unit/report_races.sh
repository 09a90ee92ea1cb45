#!/bin/sh
# The stages of a report, on threads of their own, touch nothing at once: DRD sees every access of
# one over a recording of 90,000 events, and its output is that of a run without.
set -eu
command -v valgrind >/dev/null || {
    echo "no valgrind here"
    exit 77
}
case $(ldd "$GPUWAIT") in *libasan* | *libtsan* | *libubsan*)
    echo "built with a sanitizer, which valgrind cannot run"
    exit 77
    ;;
esac
[ "$(nproc)" -gt 1 ] || {
    echo "one CPU: no threads"
    exit 77
}
out=$(mktemp -d "${TMPDIR:-/tmp}/races.XXXXXX")
trap 'rm -rf "$out"' EXIT
dump=tests/fixtures/scenarios/r01-c.gwt

"$GPUWAIT" report --json "$dump" >"$out/plain"
valgrind --quiet --error-exitcode=9 --tool=drd --check-stack-var=no \
    "$GPUWAIT" report --json "$dump" >"$out/watched" 2>"$out/errors" || {
    cat "$out/errors"
    exit 1
}
cmp "$out/plain" "$out/watched"
