#!/bin/sh
# The man pages and README name what the program has: each option of --help, each variable
# of env.def, each key of the JSON.
set -u
: "${B:=build}" "${CC:=cc}" "${GPUWAIT:=$B/gpuwait}"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0
fail() {
    echo "docs: $*"
    failed=1
}

commands=$("$GPUWAIT" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
[ -n "$commands" ] || fail "gpuwait --help lists no command"
for c in $commands; do
    page=tools/man/gpuwait-$c.1
    [ -f "$page" ] || { fail "no $page" && continue; }
    grep -q "^\.It Cm $c\$" tools/man/gpuwait.1 || fail "gpuwait.1 does not name $c"
    "$GPUWAIT" "$c" --help | sed -n '/^options:/,/^$/p' |
        sed -n 's/^  \(-[a-zA-Z],\)\{0,1\} *--\([a-z-]*\).*/\2/p' | sort >"$tmp/help"
    sed -n 's/^\.It Fl \(. , \)\{0,1\}-\([a-z-]*\).*/\2/p' "$page" | sort >"$tmp/page"
    diff "$tmp/help" "$tmp/page" >"$tmp/diff" || fail "options of --help (<) and $page (>): $(cat "$tmp/diff")"
done

# -- variables, with defaults and README's words
cat >"$tmp/env.c" <<'EOF'
#define ENV(name, value, takes, text) @ #name value text
#include "lib/trace/env.def"
EOF
"$CC" -E -P -I. "$tmp/env.c" | sed -n 's/^@ //p' >"$tmp/env"
[ -s "$tmp/env" ] || fail "could not read env.def"
sed 's/^"\([^"]*\)" "\([^"]*\)" "\([^"]*\)"$/\1|\2|\3/' "$tmp/env" | while IFS='|' read -r name value text; do
    tr -d '`' <README.md | grep -qF "| $name | $value | $text |" || echo "README.md: | $name | $value | $text |"
    awk -v name="$name" -v value="$value" '
        $1 == ".It" && $2 == "Ev" { inside = $3 == name }
        inside && /^Default:/ { if (NF == 1) getline; sub(/^(Default:|\.Pa) /, ""); sub(/ ?\.$/, "")
                                found = $0 == value; exit }
        END { exit !found }' tools/man/libgpuwait.7 || echo "libgpuwait.7: $name, default $value"
done >"$tmp/missing"
[ -s "$tmp/missing" ] && fail "missing in $(cat "$tmp/missing")"

# -- JSON: every key of info, and of a report in which nothing is missing, but for names that
# are data
documented() { # JSON PAGE
    python3 - "$1" "$2" <<'EOF' || failed=1
import json, re, sys
data, page = json.load(open(sys.argv[1])), open(sys.argv[2]).read()
named = set()
for line in page.splitlines():
    if re.match(r"\.(It |No )?.*Va ", line):
        named.update(re.findall(r"[A-Za-z0-9_]+", line.split("Va ", 1)[1]))
missing = set()
def walk(o, data_keys):
    if isinstance(o, list):
        for x in o:
            walk(x, False)
    elif isinstance(o, dict):
        for k, v in o.items():
            if not data_keys and k not in named:
                missing.add(k)
            walk(v, k.endswith("by_api") or k in ("versions", "evidence", "parts"))
walk(data, False)
if missing:
    sys.exit("docs: %s does not document %s" % (sys.argv[2], ", ".join(sorted(missing))))
EOF
}
"$B/tests/unit/render_sample" full json >"$tmp/json" || fail "render_sample failed"
documented "$tmp/json" tools/man/gpuwait-report.1
"$B/tests/unit/check_sample" fail json >"$tmp/json" || fail "check_sample failed"
documented "$tmp/json" tools/man/gpuwait-check.1
"$B/tests/unit/check_sample" fail diff-json >"$tmp/json" || fail "check_sample failed"
documented "$tmp/json" tools/man/gpuwait-diff.1

# -- metrics: name and words of the table, with their margins for those that are gated
cat >"$tmp/metrics.c" <<'EOF2'
#include "analysis/compare.h"
#define X(id, key, group, unit, join, gated, worse, abs, rel, text, value) @ gated #key abs rel text
GWA_METRICS(X)
EOF2
"$CC" -E -P -D_GNU_SOURCE -Iinclude -Ilib "$tmp/metrics.c" | tr '@' '\n' | grep -a '^ *\(YES\|NO\|TIMES\) "' >"$tmp/metrics"
python3 - "$tmp/metrics" <<'EOF2' || failed=1
import re, sys
check, diff = open("tools/man/gpuwait-check.1").read(), open("tools/man/gpuwait-diff.1").read()
bad = []
rows = re.findall(r'(YES|NO|TIMES) "(\w+)" ([\d.]+) ([\d.]+) "([^"]*)"', open(sys.argv[1]).read())
if len(rows) < 40:
    bad.append("could not read the metrics: %d" % len(rows))
for gated, key, absolute, relative, text in rows:
    text = text[0].upper() + text[1:]
    if ".It Va %s\n%s" % (key, text) not in diff:
        bad.append("gpuwait-diff.1 does not have: %s, %s" % (key, text))
    m = re.search(r"\.It Va %s\n%s[^;\n]*; (.*)\.\n" % (key, re.escape(text)), check)
    if gated == "NO":
        continue
    if not m:
        bad.append("gpuwait-check.1 does not have: %s, %s" % (key, text))
        continue
    said = [float(n) for n in re.findall(r"[\d.]+", m.group(1))]
    if said != [n for n in (float(absolute), 100 * float(relative)) if n]:
        bad.append("gpuwait-check.1: margins of %s are %s and %s" % (key, absolute, relative))
for line in bad:
    print("docs:", line)
sys.exit(bool(bad))
EOF2
client=$B/sim/clients/rt13
if [ -x "$client" ]; then
    env -u GPUWAIT LD_LIBRARY_PATH="$B/sim" "$GPUWAIT" run --no-report -o "$tmp/trace" -- "$client" >/dev/null 2>&1
    for c in report info; do
        "$GPUWAIT" $c --json "$tmp/trace" >"$tmp/json" 2>/dev/null || fail "$c --json failed"
        documented "$tmp/json" tools/man/gpuwait-$c.1
    done
    env -u GPUWAIT LD_PRELOAD="$B/libgpuwait.so" LD_LIBRARY_PATH="$B/sim" GPUWAIT_OUT="$tmp/job" \
        SIM_CLOCK=virtual GPUWAIT_TEST_CLOCK=1 "$B/sim/clients/ranks" -n 2 -s 100 -f data -r 1 >/dev/null ||
        fail "ranks failed"
    "$GPUWAIT" report --json "$tmp/job" >"$tmp/json" || fail "report of a job failed"
    grep -q '"times_last"' "$tmp/json" || fail "no rank is late where one is"
    documented "$tmp/json" tools/man/gpuwait-report.1
else
    echo "docs: no simulator, JSON keys not checked"
fi

# -- what the host was doing, in the report's words
sed -n '/define GWA_IDLE_CLASSES/,/^$/s/^ *X([A-Z_]*, \([a-z_]*\), "\(.*\)").*/\1|\2/p' \
    lib/analysis/analysis.h >"$tmp/classes"
[ -s "$tmp/classes" ] || fail "could not read the idle classes"
while IFS='|' read -r key text; do
    grep -A 1 -x "\.It Va ${key}_pct" tools/man/gpuwait-report.1 | grep -qxF "$text" ||
        fail "gpuwait-report.1 does not say of ${key}_pct: $text"
done <"$tmp/classes"

if command -v mandoc >/dev/null; then
    for m in tools/man/*.[157]; do
        out=$(mandoc -Tlint -Wwarning "$m" 2>&1) || fail "$out"
    done
fi
exit $failed
