#!/bin/sh
# README's example session is what the report prints of that recording, in full: word for word, and
# its figures to 5 %. After a wanted change: sh tests/unit/readme.sh --accept
set -u
: "${B:=build}" "${GPUWAIT:=$B/gpuwait}"
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }
unset COLUMNS
recording=tests/fixtures/scenarios/qlora.gwt
"$GPUWAIT" report --range loop "$recording" >"${TMPDIR:-/tmp}/readme.$$" || exit 1
trap 'rm -f "${TMPDIR:-/tmp}/readme.$$"' EXIT
python3 - "${TMPDIR:-/tmp}/readme.$$" "${1-}" "$recording" <<'PY'
import difflib, re, sys

begin, end, rest = "$ gpuwait report --range loop %s\n" % sys.argv[3], "```\n", "\nGPU time\n"
readme = open("README.md", encoding="utf-8").read()
session = open(sys.argv[1], encoding="utf-8").read()
at = readme.index(begin) + len(begin)
first, second = session[:session.index(rest)], session[session.index(rest) + 1:]
# the tables are folded away: a second block, after its <summary>
middle = readme.index("</summary>\n\n```\n", at) + len("</summary>\n\n```\n")
had = [readme[at:readme.index(end, at)], readme[middle:readme.index(end, middle)]]
if sys.argv[2] == "--accept":
    readme = readme[:middle] + second + readme[middle + len(had[1]):]
    readme = readme[:at] + first + readme[at + len(had[0]):]
    open("README.md", "w", encoding="utf-8").write(readme)
    sys.exit(0)
number = re.compile(r"\d[\d,]*(?:\.\d+)?")


def near(a, b):
    a, b = (float(x.replace(",", "")) for x in (a, b))
    return abs(a - b) <= max(0.05 * max(a, b), 0.1)


def same(a, b):
    words = [" ".join(number.sub("#", text).split()) for text in (a, b)]
    return words[0] == words[1] and all(map(near, number.findall(a), number.findall(b)))


if same("".join(had), first + second):
    print("as printed")
    sys.exit(0)
difference = list(difflib.unified_diff("".join(had).splitlines(), (first + second).splitlines(), "README.md", "report", lineterm=""))
print("\n".join(difference))
sys.exit(1)
PY
