#!/bin/sh
# Formatting, scripts, man pages, stray paths. A tool that is not installed is skipped
# and named; LINT_STRICT=1 (as CI sets) makes that an error.
set -u
cd "$(dirname "$0")/.." || exit 2
: "${LINT_STRICT:=0}"
failed=0
bad() {
    echo "lint: $*" >&2
    failed=1
}
have() {
    command -v "$1" >/dev/null 2>&1 && return 0
    if [ "$LINT_STRICT" = 1 ]; then bad "$1 is not installed"; else echo "lint: no $1, skipped" >&2; fi
    return 1
}
# tracked files and new ones, none that git ignores; without git: all
list=$(mktemp) && trap 'rm -f "$list"' EXIT
{ git ls-files -co --exclude-standard 2>/dev/null ||
    find . -type f -not -path './build*' -not -path './.git/*' | sed 's|^\./||'; } |
    while read -r f; do [ -f "$f" ] && echo "$f"; done | sort -u >"$list"
files() { grep -E "$1" "$list"; }
text_files() { grep -v '^tests/fixtures/' "$list"; }

# Only the version that .clang-format was written with: others format differently.
if have clang-format; then
    case $(clang-format --version) in
    *"version 14."*) files '\.[ch]$' | xargs clang-format --dry-run -Werror -ferror-limit=3 || bad "run clang-format -i" ;;
    *) echo "lint: clang-format is not version 14, skipped" >&2 ;;
    esac
fi
if have shellcheck; then files '\.sh$|^\.ci/run$' | xargs shellcheck -S warning -e SC2046,SC2054,SC2154 || bad "shellcheck"; fi
if have mandoc; then
    for m in $(files '^tools/man/.*\.[157]$'); do
        out=$(mandoc -Tlint -Wwarning "$m" 2>&1)
        [ -z "$out" ] || bad "$out"
    done
fi

# Each file must make sense on any machine: no path into somebody's folders. What grep prints decides:
# its status is lost where xargs runs it several times.
found() {
    [ -z "$1" ] || { printf '%s\n' "$1" && bad "$2 (above)"; }
}
found "$(text_files | xargs grep -nIoP "(?:^|[\s\"'=(:\`])(?<![+}] [\"'])(?<![}a-z][\"'])/[a-z][a-z0-9_.-]*/[A-Za-z0-9_.-]+" |
    grep -vE "[[:space:]\"'=(:\`]/(usr|etc|dev|proc|sys|tmp|var|lib|lib64|bin|sbin|opt|run|nonexistent|nowhere|nvidia)/")" \
    "a path that only some machine has"
found "$(grep -E '^tests/(fixtures|fuzz/corpus)/' "$list" | xargs python3 tests/lint_frames.py)" \
    "a path that only some machine has, in a recording"
found "$(text_files | xargs grep -nIE '[[:space:]]+$')" "white space at the end of a line"

[ $failed = 0 ] && echo "lint: clean"
exit $failed
