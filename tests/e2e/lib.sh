# Sourced by the scripts beside it: a scratch folder, and checks that say what they check.
# shellcheck shell=sh
set -u
here=$(cd "$(dirname "$0")" && pwd)
: "${B:=$here/../../build}"
B=$(cd "$B" && pwd) || exit 1
gpuwait=$B/gpuwait
unset GPUWAIT LD_PRELOAD COLUMNS GPUWAIT_OUT # the first is the preload's switch, too
export LC_ALL=C PYTHONPATH="$here" PYTHONDONTWRITEBYTECODE=1
[ -x "$gpuwait" ] || { echo "$gpuwait is not built"; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/gpuwait-e2e.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
out=$work/out err=$work/err
failures=0

ok() { echo "ok - $1"; }
not_ok() {
    echo "not ok - $1"
    failures=$((failures + 1))
}
# is NAME WANTED GOT
is() {
    if [ "$2" = "$3" ]; then ok "$1"; else
        not_ok "$1"
        printf '  wanted: %s\n  got:    %s\n' "$2" "$3"
    fi
}
# runs NAME CODE COMMAND...: output goes to $out and $err
runs() {
    _name=$1 _code=$2
    shift 2
    "$@" >"$out" 2>"$err" </dev/null
    _got=$?
    if [ "$_got" -eq "$_code" ]; then ok "$_name"; else
        not_ok "$_name: exit $_got, wanted $_code"
        sed 's/^/  | /' "$out" "$err"
    fi
}
# has NAME FILE PATTERN, hasnt likewise (basic regular expressions)
has() {
    if grep -q -e "$3" "$2"; then ok "$1"; else
        not_ok "$1: no line like $3"
        sed 's/^/  | /' "$2"
    fi
}
hasnt() {
    if grep -q -e "$3" "$2"; then
        not_ok "$1: a line like $3"
        sed 's/^/  | /' "$2"
    else ok "$1"; fi
}
# same NAME WANTED-FILE GOT-FILE
same() {
    if diff -u "$2" "$3" >"$work/diff"; then ok "$1"; else
        not_ok "$1"
        sed 's/^/  | /' "$work/diff"
    fi
}
# what a command left in the folder
left_over() { find . -mindepth 1 -maxdepth 1 ! -name out ! -name err; }
# json FILE EXPRESSION: a python expression over j
json() {
    python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"
}
finish() {
    [ "$failures" -eq 0 ] || exit 1
    exit 0
}
