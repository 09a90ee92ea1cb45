#!/bin/sh
# Names come from the recorded program: nothing in them reaches the terminal as a control.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shells inside
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
mkdir t
python3 -c '
from mkdump import Dump
evil = b"\x1b[2J\x1b]0;title\x07 \xc2\x9b31m \xff\xfe \xe2\x80\xae rtl \r\n\t tab \x7f end"
d = Dump()
for key in ("host", "command", "version.driver"):
    d.fact(key, evil)
d.fact("version.\x1b[31m", "1")
d.device("GPU \x1b[31m")
d.thread(evil)
s = d.stream("legacy")
d.push(0, evil)
d.launch(10, 5, s, evil)
d.launch(20, 5, s, b"_Z" + evil)
d.launch(30, 5, s, evil, name="cuLaunch\x1b[0m")
d.call("ncclA\x9bll", "NCCL", 40, 5, s, value=8, level=3)
d.call("cudaSync\x1b[31m", "SYNC", 50, 5, s, 2 << 12)
d.pop(60)
d.write("t/a.gwt")
'
plain() { # NAME: $out and $err hold printable characters, tabs and line ends only
    is "$1: nothing but text" "" "$(python3 -c '
import sys
for name in sys.argv[1:]:
    raw = open(name, "rb").read()
    for i, c in enumerate(raw.decode("utf-8")):
        if not (c.isprintable() or c in "\n\t"):
            print(name, i, repr(c))
' "$out" "$err" 2>&1 | head -n 3)"
}
for locale in C C.UTF-8; do
    export LC_ALL=$locale
    runs "report ($locale)" 0 "$gpuwait" report t
    plain "report ($locale)"
    runs "report --all ($locale)" 0 "$gpuwait" report --all t
    plain "report --all ($locale)"
    has "shown as what it is ($locale)" "$out" 'x1b\[2J'
    runs "info ($locale)" 0 "$gpuwait" info t
    plain "info ($locale)"
    runs "info --events ($locale)" 0 "$gpuwait" info --events t
    plain "info --events ($locale)"
    is "one line an event ($locale)" 8 "$(wc -l <"$out")"
    runs "an evil range ($locale)" 2 "$gpuwait" report --range "$(printf 'a\033[31m')" t
    plain "an evil range ($locale)"
    runs "an evil file name ($locale)" 2 "$gpuwait" report "$(printf 'a\033[31m\n')"
    plain "an evil file name ($locale)"
done
for c in "report --json" "info --json" "info --events --json"; do
    # shellcheck disable=SC2086
    runs "$c" 0 "$gpuwait" $c t
    is "$c: ASCII" "" "$(LC_ALL=C grep -n '[^ -~]' "$out" | head -n 3)"
done
runs "report --json" 0 "$gpuwait" report --json t
is "the name is all there" "$(python3 -c 'print(ascii(b"\x1b[2J\x1b]0;title\x07 \xc2\x9b31m \xff\xfe \xe2\x80\xae rtl \r\n\t tab \x7f end".decode("utf-8", "replace")))')" \
    "$(json "$out" 'ascii(j["processes"][0]["command"])')"
finish
