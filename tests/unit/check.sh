#!/bin/sh
# What check and diff make of comparisons that check_sample.c makes up: word for word; XML that is
# JUnit's; commands that are GitHub's; nothing in names that a terminal, an XML reader, GitHub or
# Markdown would obey. After a wanted change: sh tests/unit/check.sh --accept
set -u
: "${B:=build}"
here=$(cd "$(dirname "$0")" && pwd)
sample=$B/tests/unit/check_sample
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset COLUMNS
failed=0
fail() {
    echo "check: $*"
    failed=1
}

for case in pass fail unsure hostile; do
    for form in text all json junit github summary diff diff-json; do
        "$sample" $case $form >"$tmp/$case.$form" || fail "$case $form: exit $?"
        if [ "${1-}" = --accept ]; then cp "$tmp/$case.$form" "$here/check/$case.$form"; fi
        diff -u "$here/check/$case.$form" "$tmp/$case.$form" || fail "$case.$form is not as wanted"
    done
done
for width in 80 100 160; do
    for case in pass fail unsure hostile; do
        COLUMNS=$width "$sample" $case text >"$tmp/$case.$width" || fail "$case at $width columns"
        COLUMNS=$width "$sample" $case diff >"$tmp/$case-diff.$width" || fail "$case at $width columns"
    done
done

python3 - "$tmp" <<'END' || failed=1
import json, os, re, sys
import xml.etree.ElementTree as tree
tmp, bad = sys.argv[1], []
text = {name: open(os.path.join(tmp, name), encoding="utf-8").read() for name in os.listdir(tmp)}

def is_(what, wanted, got):
    if wanted != got:
        bad.append("%s: wanted %r, got %r" % (what, wanted, got))

def constant(word):
    bad.append("JSON holds %s" % word)

for name, content in sorted(text.items()):
    case, form = name.split(".", 1)
    if any(not c.isprintable() and c != "\n" for c in content):
        bad.append("%s: a control character" % name)
    width = {"text": 80, "diff": 80}.get(form) or (int(form) if form.isdigit() else None)
    for line in content.splitlines():
        if width and len(line) > width:
            bad.append("%s: %d columns: %s" % (name, len(line), line))
    if form.endswith("json"):
        json.loads(content, parse_constant=constant)
    else:
        for word in re.split(r"[\s(),|>]", content):
            if word.lower().strip("-+.:;%") in ("nan", "inf"):
                bad.append("%s: %s" % (name, word))

# JUnit, by the elements, attributes and order that its readers' schemas have in common
ATTRIBUTES = {
    "testsuites": (set(), set()),
    "testsuite": ({"name", "tests", "failures", "errors", "time", "timestamp", "hostname"},
                  {"skipped", "id", "package"}),
    "properties": (set(), set()), "property": ({"name", "value"}, set()),
    "testcase": ({"name", "classname", "time"}, set()),
    "failure": ({"message", "type"}, set()), "error": ({"message", "type"}, set()),
    "skipped": (set(), {"message"}), "system-out": (set(), set()), "system-err": (set(), set())}
CHILDREN = {
    "testsuites": "(testsuite )*",
    "testsuite": "(properties )?(testcase )*(system-out )?(system-err )?",
    "properties": "(property )*", "testcase": "((skipped |error |failure ))?"}

def valid(e, name):
    must, may = ATTRIBUTES.get(e.tag, (None, None))
    if must is None:
        return bad.append("%s: element %s" % (name, e.tag))
    if not must <= set(e.attrib) or set(e.attrib) - must - may:
        bad.append("%s: %s has attributes %s" % (name, e.tag, sorted(e.attrib)))
    children = "".join(c.tag + " " for c in e)
    if not re.fullmatch(CHILDREN.get(e.tag, ""), children):
        bad.append("%s: %s holds %s" % (name, e.tag, children))
    for c in e:
        valid(c, name)

for case in ("pass", "fail", "unsure", "hostile"):
    name = case + ".junit"
    root = tree.fromstring(text[name].encode())
    valid(root, name)
    suite, = root
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp")):
        bad.append("%s: timestamp %s" % (name, suite.get("timestamp")))
    for what, tag in (("tests", "testcase"), ("failures", "testcase/failure"),
                      ("errors", "testcase/error"), ("skipped", "testcase/skipped")):
        is_("%s: %s" % (name, what), len(suite.findall(tag)), int(suite.get(what)))
    cases = [c.get("name") for c in suite.findall("testcase")]
    is_("%s: no name twice" % name, len(cases), len(set(cases)))

# workflow commands: ::name key=value,...::data, with %, line ends, and in values : and , escaped
COMMAND = re.compile(r"::(error|warning|notice) file=([^:,]+)(,line=[1-9]\d*)?,title=([^:,]+)::(.+)")
for case in ("pass", "fail", "unsure", "hostile"):
    for line in text[case + ".github"].splitlines():
        m = COMMAND.fullmatch(line)
        if not m:
            bad.append("%s.github: %s" % (case, line))
        elif re.search("%(?!25|0D|0A|3A|2C)", line):
            bad.append("%s.github: a bare %%: %s" % (case, line))
is_("a pass has no annotation", "", text["pass.github"])

# one line of the summary's table has six cells, whatever the names hold
for case in ("pass", "fail", "hostile"):
    for line in text[case + ".summary"].splitlines():
        if line.startswith("|"):
            is_("%s.summary: %s" % (case, line), 7, line.count("|"))
        if re.search(r"<(?!br)|\]\(|`", line):
            bad.append("%s.summary: %s" % (case, line))

check = {case: json.loads(text[case + ".json"]) for case in ("pass", "fail", "unsure", "hostile")}
is_("outcomes", ["passed", "failed", "inconclusive", "failed"], [check[c]["outcome"] for c in check])
rows = {(m["metric"], m["process"]): m for m in check["fail"]["metrics"]}
is_("all processes together", (84, 85, 1, 0.5, "REGRESSED", True),
    tuple(rows["kernels", None][k] for k in ("baseline", "now", "delta", "margin", "verdict", "fails")))
is_("the rank that is to blame", ["rank 1"],
    sorted({m["process"] for m in check["fail"]["metrics"] if m["process"] and m["fails"]}))
is_("a win", "WIN", rows["d2h_bytes", None]["verdict"])
is_("kernels, the most changed first", [("add(float*, int)", 80, 40), ("void at", 0, 40), ("void relu<float>(float*)", 0, 1)],
    [(k["name"] if len(k["name"]) < 30 else k["name"][:7], k["baseline"], k["now"]) for k in check["fail"]["kernels"]])
is_("the line of Python", "jobs/train.py:101 train",
    [c["python"] for c in check["fail"]["calls"] if c["name"] == "cudaStreamSynchronize"][0])
is_("not measured", None, [m for m in check["unsure"]["metrics"] if m["metric"] == "host_us_per_launch"][0]["now"])
is_("why not", True, any("4 steady steps, and 10 are the least" in r for r in check["unsure"]["reasons"]))

diff = json.loads(text["fail.diff-json"])
is_("findings: rank 0 speaks, which is as it was", ["still", "still"], [f["change"] for f in diff["findings"]])
is_("counts come first", ["step", "time", "memory", "total"],
    list(dict.fromkeys(m["group"] for m in diff["metrics"] if not m["metric"].startswith("idle_"))))
for line in bad:
    print("check:", line)
sys.exit(bool(bad))
END
exit $failed
