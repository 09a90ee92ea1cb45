#!/usr/bin/env python3
"""What must not grow unseen: instructions that a call costs, and an event when it is read and
reported; bytes that it takes.

    test_costs.py            compare with tests/bench/reference.json; fails beyond 3 %
    test_costs.py --renew    write what is measured now into it (make bench-renew)

Instructions are counted by callgrind around calls on a CUDA that does nothing, with the preload
less without it. They are the compiler's, so the reference has them by compiler and optimisation,
and a build that it does not know is skipped. Those of an event are what commands take for more
events of a real training, on one CPU, so that they are the same each time. Bytes are those of the
fixtures, written anew by the writer as it is; they depend on the version of zstd a little, which is
known likewise, and so is that of what reads them."""
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
B = os.path.abspath(os.environ.get("B", ROOT + "/build"))
REFERENCE = ROOT + "/tests/bench/reference.json"
MARGIN = 1.03
KINDS = ["launch-both-levels", "launch-driver", "copy-h2d", "event-record", "allocator-report"]
COMMANDS = ["info", "report"]
FIXTURES = ["llama_lora", "generate", "conv", "dataloader"]


def output(*command, before=None, **env):
    return subprocess.run(command, env=dict(os.environ, **env), check=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          preexec_fn=before).stdout


def compiler():
    """Of the preload as it lies there, and how it optimised."""
    text = output("readelf", "-p", ".comment", B + "/libgpuwait.so")
    found = re.search(r"clang version [\d.]+", text) or re.search(r"GCC: .*? ([\d.]+)$", text, re.M)
    with open(B + "/flags") as f:
        level = re.findall(r"-O\S*", f.read())
    name = found.group(0) if found.group(0).startswith("clang") else "GCC " + found.group(1)
    return "%s %s %s" % (name, level[-1] if level else "-O0", os.uname().machine)


def zstd():
    f = ctypes.CDLL("libzstd.so.1").ZSTD_versionString
    f.restype = ctypes.c_char_p
    return "zstd " + f().decode()


def collected(*command, options=(), **how):
    text = output("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *options,
                  *command, **how)
    return int(re.search(r"Collected : (\d+)", text).group(1))


def instructions(kind):
    """That the preload adds to one call. Of the difference between many calls and few, so that
    first-time work is left out."""
    few, many = 2000, 6000

    def of(calls, **env):
        with tempfile.TemporaryDirectory() as out:
            return collected(B + "/noop/calls", "count", kind, str(calls),
                             options=["--toggle-collect=count"], GPUWAIT_OUT=out, **env)

    with_ = {"LD_PRELOAD": B + "/libgpuwait.so"}
    return (of(many, **with_) - of(few, **with_)) / (many - few) - of(many) / many


def on_one_cpu():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def instructions_per_event(command):
    few, many = 50000, 200000

    def of(events):
        with tempfile.TemporaryDirectory() as out:
            dump = out + "/x.gwt"
            output(B + "/bench/stretch", ROOT + "/tests/fixtures/scenarios/qlora.gwt", str(events),
                   dump)
            return collected(B + "/gpuwait", command, dump, before=on_one_cpu)

    return (of(many) - of(few)) / (many - few)


def bytes_per_event(name):
    with tempfile.TemporaryDirectory() as out:
        dump = out + "/x.gwt"
        output(B + "/trim", "%s/tests/fixtures/%s.gwt" % (ROOT, name), name, dump)
        info = json.loads(output(B + "/gpuwait", "info", "--json", dump))
        return os.path.getsize(dump) / info["processes"][0]["events"]


def measure():
    if shutil.which("valgrind"):
        yield "instructions per call", compiler(), {k: instructions(k) for k in KINDS}
        yield ("instructions per event", compiler() + ", " + zstd(),
               {c: instructions_per_event(c) for c in COMMANDS})
    yield "bytes per event", zstd(), {f: bytes_per_event(f) for f in FIXTURES}


def renew():
    try:
        with open(REFERENCE) as f:
            reference = json.load(f)
    except FileNotFoundError:
        reference = {}
    for what, build, figures in measure():
        reference.setdefault(what, {})[build] = {k: round(v, 2) for k, v in figures.items()}
        print("%s, %s: %s" % (what, build, reference[what][build]))
    with open(REFERENCE, "w") as f:
        json.dump(reference, f, indent=1, sort_keys=True)
        f.write("\n")


def compare():
    with open(B + "/flags") as f:
        if "-fsanitize" in f.read():
            print("the preload is the same with a sanitizer: compared without")
            return 77
    with open(REFERENCE) as f:
        reference = json.load(f)
    failed, compared = 0, 0
    for what, build, figures in measure():
        known = reference.get(what, {}).get(build)
        if known is None:
            print("no reference of %s for %s: `make bench-renew` adds it" % (what, build))
            continue
        compared += 1
        for name, value in figures.items():
            bad = name not in known or value > known[name] * MARGIN
            failed += bad
            print("%s %s, %s: %.2f (reference %s)" % ("FAIL" if bad else "ok  ", what, name, value,
                                                     known.get(name)))
            if value < known.get(name, 0) / MARGIN:
                print("     cheaper than the reference by more than the margin: `make bench-renew`")
    if failed:
        print("if that is meant: make bench-renew")
        return 1
    if not compared:
        print("nothing to compare with for this compiler and zstd (and valgrind)")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(renew() if sys.argv[1:] == ["--renew"] else compare())
