# Sourced by the shell tests of this folder: the library, the program that most of them run, and how many
# launches were recorded.
# shellcheck shell=sh disable=SC1091,SC2034,SC2154  # used by those who source it; from e2e/lib.sh
. "$(dirname "$0")/../e2e/lib.sh"
cd "$work" || exit 1
lib=$B/libgpuwait.so
program=$B/crash/processes

# count [DUMP...]: default those in t
count() {
    [ $# -gt 0 ] || set -- t/*.gwt
    "$B/crash/count" "$@" 2>&1 | sed 's/.* launches//; s/ //g'
}
