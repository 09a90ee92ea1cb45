#!/bin/sh
# What is incomplete is said first, warned about on stderr, and no error by itself.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shells inside
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
python3 -c '
from mkdump import training
import struct
d = training()
d.call(None, "LOST", 300, 500, value=77, thread=2)
d.count(DROPPED=77)
d.write("dropped.gwt")
whole = training().bytes()
open("whole.gwt", "wb").write(whole)
open("cut.gwt", "wb").write(whole[:len(whole) - 700])
holes = training()
holes.count(HOLES=5)
holes.write("holes.gwt")
gone = training(ring="/nonexistent/x.ring")
gone.write("gone.gwt", end=False)
full = training()
full.count(WRITE_ERRNO=28)
full.write("full.gwt")
damaged = bytearray(whole)
at = whole.index(struct.pack("<IHH", 0x46545747, 2, 0)) + 64 + 40  # inside an event frame
damaged[at] ^= 0xff
open("damaged.gwt", "wb").write(damaged)
'
runs "whole" 0 "$gpuwait" report whole.gwt
is "no warning" "" "$(cat "$err")"
hasnt "no word of it" "$out" INCOMPLETE

said() { # FILE PATTERN
    runs "$1" 0 "$gpuwait" report "$1.gwt"
    has "$1: warned" "$err" "^gpuwait: $1.gwt: incomplete: .*$2"
    has "$1: at the top" "$out" "^INCOMPLETE: .*$2"
    case $(head -n 1 "$out") in
    INCOMPLETE*) ok "$1: first of all" ;;
    *) not_ok "$1: first of all" ;;
    esac
    runs "$1 --json" 0 "$gpuwait" report --json "$1.gwt"
    is "$1: not complete" False "$(json "$out" 'j["processes"][0]["quality"]["complete"]')"
    runs "info $1" 0 "$gpuwait" info "$1.gwt"
    has "$1: info says it" "$out" "INCOMPLETE .*$2"
}
said dropped '77 events dropped'
runs "dropped" 0 "$gpuwait" report --json dropped.gwt
is "dropped in JSON" 77 "$(json "$out" 'j["processes"][0]["quality"]["dropped"]')"
said cut 'cut short'
said holes '5 launches'
said gone 'ring file is gone'
said full 'No space left on device'
said damaged 'damaged frame'
runs "damaged: idle is not proven" 0 "$gpuwait" report --json damaged.gwt
is "damaged: null" None "$(json "$out" 'j["processes"][0]["devices"][0]["time"]["provable_idle_pct"]')"
finish
