#!/bin/sh
# What the report makes of analysis results that render_sample.c makes up: word for word, within
# 80 columns, valid JSON in which nothing but what was measured is a number, and nothing in names
# that a terminal would obey. After a wanted change: sh tests/unit/render.sh --accept
set -u
: "${B:=build}"
here=$(cd "$(dirname "$0")" && pwd)
sample=$B/tests/unit/render_sample
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset COLUMNS
failed=0
fail() {
    echo "render: $*"
    failed=1
}

for form in full.text full.all full.json full.short unknown.text unknown.json bounds.text \
    two.text two.json two.short hostile.text hostile.json hostile.short; do
    "$sample" "${form%.*}" "${form#*.}" >"$tmp/$form" || fail "$form: exit $?"
    if [ "${1-}" = --accept ]; then cp "$tmp/$form" "$here/render/$form"; fi
    diff -u "$here/render/$form" "$tmp/$form" || fail "$form is not as wanted"
done
for width in 80 100 160; do
    for form in full unknown bounds two hostile; do
        COLUMNS=$width "$sample" $form text >"$tmp/$form.$width" || fail "$form at $width columns"
    done
done

python3 - "$tmp" <<'END' || failed=1
import json, math, os, sys
tmp, bad = sys.argv[1], []
text = {name: open(os.path.join(tmp, name), encoding="utf-8").read() for name in os.listdir(tmp)}

def constant(word):
    bad.append("JSON holds %s" % word)

for name, content in sorted(text.items()):
    form, kind = name.split(".", 1)
    if any(not c.isprintable() and c != "\n" for c in content):
        bad.append("%s: a control character" % name)
    if kind != "json":
        for word in content.replace("(", " ").replace(",", " ").split():
            if word.lower().strip("-+.:;%") in ("nan", "inf"):
                bad.append("%s: %s" % (name, word))
    width = {"text": 80}.get(kind) or (int(kind) if kind.isdigit() else None)
    for line in content.splitlines():
        if width and len(line) > width:
            bad.append("%s: %d columns: %s" % (name, len(line), line))
        if line != line.rstrip():
            bad.append("%s: white space at the end of %r" % (name, line))

full = json.loads(text["full.json"], parse_constant=constant)
unknown = json.loads(text["unknown.json"], parse_constant=constant)
hostile = json.loads(text["hostile.json"], parse_constant=constant)

def leaves(o, path=()):
    if isinstance(o, dict):
        for k, v in o.items():
            yield from leaves(v, path + (k,))
    elif isinstance(o, list):
        for v in o:
            yield from leaves(v, path)
    else:
        yield ".".join(path), o

def shape(o):
    return {path for path, _ in leaves(o)}

# the same names whether or not anything is known, but for what is an array or object or null
gone = {p for p in shape(full) - shape(unknown)
        if not any(p.startswith(q) for q in ("processes.devices.time.busy_interval_pct",
                                             "processes.devices.gaps.parts",
                                             "processes.devices.sites", "processes.devices.drains"))}
if gone:
    bad.append("names that come and go: %s" % sorted(gone))
for path, value in leaves(unknown):
    if isinstance(value, float):
        bad.append("%s is %r though nothing is known" % (path, value))

process, = full["processes"]
device, = process["devices"]
def is_(what, wanted, got):
    if wanted != got:
        bad.append("%s: wanted %r, got %r" % (what, wanted, got))
is_("verdict", ("mem-growth", "mem-growth", 423),
    (full["verdict"], process["verdict"], full["verdict_pid"]))
is_("findings of all are those of the one process", process["findings"], full["findings"])
is_("what if", {"host-gaps-removed": 41.2, "graph-replay": 20.1, "copies-overlapped": 1.2},
    {w["id"]: w["bound_pct"] for w in full["what_if"]})
is_("evidence", {"per_step_ms": 169.2, "cpu_share": 0.98, "next_copy": "H2D pageable"},
    process["findings"][1]["evidence"])
t = device["time"]
is_("idle classes as they were given, in one sum", round(t["idle_pct"], 6),
    round(sum(t["idle"].values()), 6))
is_("a gap's parts", {"host_blocked_ms": 1180.2, "copy_ms": 20.1, "launch_ms": 3.2},
    {k: v for k, v in device["gaps"][0]["parts"].items() if v})
is_("a site", ("host_cpu", "other", "step_edge", True, 1, "train.py:87 encode"),
    tuple(device["sites"][0][k] for k in ("class", "phase", "position", "before_h2d", "period", "python")))
is_("steps", (97, 406.1, 395.2, 1712.8, 4312, False, 28.3),
    (process["steps"]["count"], process["steps"]["median_ms"], process["steps"]["least"]["ms"],
     process["steps"]["most"]["ms"], process["steps"]["launches"], process["steps"]["identical"],
     process["steps"]["phases"]["forward_pct"]))
is_("a hostile name is all there", True, process["command"] != hostile["processes"][0]["command"]
    and hostile["processes"][0]["command"].startswith("\x1b[2J\x1b]0;title\x07\r\n\tx\x7f"))
is_("the short report's first line is the verdict", True,
    text["full.short"].startswith("process 423: mem-growth: Memory kept"))
is_("and it has five lines at most", True, len(text["full.short"].splitlines()) <= 5)
for line in bad:
    print("render:", line)
sys.exit(bool(bad))
END
exit $failed
