#!/usr/bin/env python3
"""Each system call that the library makes fails, one at a time: the program's output and exit
code are what they are without the library, and what that did to the recording is said, in one
line by the library or at the top of the report.

    FAILURES=all tests/crash/20-failures.py     (make failures)

The default is every row of fail.c's table, failing always; `all`: each of its first calls and all
from there on, with other errors, and transfers cut short; what went well is not printed then.
PROGRAM (threads) is a client of the simulator whose recording is complete where nothing fails, or
`victim`: more events than the bound of disk space holds.
"""

import concurrent.futures
import errno
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
B = os.path.abspath(os.environ.get("B", os.path.join(HERE, "..", "..", "build")))
LIBRARY, SHIM = B + "/libgpuwait.so", B + "/crash/libfail.so"
PROGRAM = os.environ.get("PROGRAM", "threads")
# Of a training job ten steps of three layers: all of the calls that the whole of it makes.
COMMANDS = {"victim": "noop/victim counts 2 400000", "demo_qlora": "sim/clients/demo_qlora 10 3"}
COMMAND = (B + "/" + COMMANDS.get(PROGRAM, "sim/clients/" + PROGRAM)).split()
ALL = os.environ.get("FAILURES") == "all"
FIRST = 6  # of each row's calls are made to fail one by one, and the last

# Other errors than the table's, where the code tells them apart or the kernel gives them.
ERRORS = {
    "pwrite": ["EINTR", "EIO", "EFBIG", "EDQUOT"], "fallocate": ["EINTR", "EOPNOTSUPP", "ENOSYS", "EFBIG"],
    "open": ["EACCES", "ENOENT", "EINTR"], "openat": ["EEXIST", "ELOOP", "EROFS"], "futex": ["EINTR", "EPERM"],
    "mmap": ["EPERM", "EAGAIN"], "close_range": ["EPERM", "ENOMEM"], "nanosleep": ["ENOSYS"], "getrandom": ["EAGAIN"], "madvise": ["EPERM"],
}
# Imports that ask the kernel for nothing, or cannot fail.
HARMLESS = set(
    """__isoc23_sscanf __isoc23_strtol __isoc23_strtoul __isoc23_strtoull bcmp stpcpy
    __ctype_b_loc __ctype_tolower_loc __cxa_atexit __cxa_finalize __errno_location __isoc99_sscanf
    __register_atfork __stack_chk_fail dl_iterate_phdr dladdr dladdr1 dlclose dlerror dlinfo dlopen dlvsym free
    getenv getpid pthread_attr_destroy pthread_attr_init pthread_attr_setdetachstate
    pthread_attr_setstacksize pthread_self pthread_setcancelstate pthread_sigmask qsort sched_yield sigfillset snprintf strtod
    strtol strtoul strtoull vsnprintf memchr memcmp memcpy memmove memset strchr strcmp strcpy strcspn strlen
    strncat strncmp strncpy strnlen strrchr strstr strerror _ITM_deregisterTMCloneTable
    _ITM_registerTMCloneTable __gmon_start__ ZSTD_trace_compress_begin ZSTD_trace_compress_end
    ZSTD_trace_decompress_begin ZSTD_trace_decompress_end""".split()
)


def rows():
    """The shim's table; and what the library imports must all be in it or harmless."""
    text = open(os.path.join(HERE, "fail.c")).read()
    table = [n for n in re.findall(r"\bCALL\([^,()]+, (\w+)|\bROW\((\w+)\)", text)]
    table = [n for pair in table for n in pair if n and n != "name"]
    imports = subprocess.run(["nm", "-D", "--undefined-only", LIBRARY], capture_output=True, text=True, check=True)
    names = {line.split()[-1].split("@")[0] for line in imports.stdout.splitlines()}
    unknown = names - set(table) - HARMLESS - {"syscall"}
    assert len(names) > 40 and "pwrite" in names, names
    return table, unknown


def run(plan, folder):
    env = dict(os.environ, SIM_TRUTH="truth", GPUWAIT_OUT="trace", GPUWAIT_MAX="1M", GPUWAIT_FULL="block",
               LD_PRELOAD=SHIM + ":" + LIBRARY, GPUWAIT_TEST_FAIL=plan,
               GPUWAIT_TEST_FAIL_LOG=folder + "/log")
    env.pop("GPUWAIT", None)
    return subprocess.run(COMMAND, env=env, capture_output=True, text=True, timeout=60, cwd=folder)


def calls_of(folder):
    names, raw = rows()[0], open(folder + "/log", "rb").read()
    return {name: n for name, n in zip(names, struct.unpack("<%dI" % len(names), raw)) if n}


def made_in(folder):
    """Launch calls that the program made."""
    if PROGRAM == "victim":
        raw = open(folder + "/counts", "rb").read()
        return sum(struct.unpack_from("<Q", raw, 64 * i)[0] for i in range(2))
    return json.load(open(folder + "/truth"))["launches"]["calls"]


def report(folder):
    """post: (launches, with what the bound made sums of; incomplete otherwise), or None: there is no
    recording"""
    got = subprocess.run([B + "/gpuwait", "report", "--json", folder + "/trace"], capture_output=True, text=True)
    if got.returncode:
        return None
    process = json.loads(got.stdout)["processes"][0]
    sums = re.search(r"incomplete: ([\d,]+) events kept as per-second sums only, to stay within GPUWAIT_MAX$", got.stderr)
    n = int(sums.group(1).replace(",", "")) if sums else 0
    return process["launches"]["calls"] + n, "incomplete" in got.stderr and not sums


def judge(plan, expected):
    """post: (what is wrong or "", what happened)"""
    with tempfile.TemporaryDirectory() as folder:
        try:
            p = run(plan, folder)
        except subprocess.TimeoutExpired:
            return "hangs", ""
        made = made_in(folder)
        found = report(folder)
        row = plan.split(":")[0]
        hit = row in calls_of(folder) if os.path.exists(folder + "/log") else False
        for ring in os.listdir("/dev/shm"):
            pid = re.match(r"gpuwait-.*-(\d+)-\w+\.ring$", ring)
            if pid and os.path.exists(folder + "/trace") and any(
                    "-%s-" % pid.group(1) in f for f in os.listdir(folder + "/trace")):
                os.unlink("/dev/shm/" + ring)
    lines = p.stderr.splitlines()
    happened = "%s%s" % (found, " " + p.stderr.strip() if lines else "")
    if (p.returncode, p.stdout) != expected:
        return "exit %d, output %r" % (p.returncode, p.stdout), happened
    if len(lines) > 1 or any(not line.startswith("gpuwait: ") for line in lines):
        return "says more than one line", happened
    whole = found and (found[0] == made or PROGRAM == "victim" and found[0] >= made)
    if not whole and not lines and not (found and found[1]):
        return "says nothing though not all is recorded (%s launches made)" % made, happened
    return "" if hit else "never called", happened


def plans(names, calls):
    for name in names:
        if not ALL:
            yield "%s:1+" % name
            if name in ("pwrite", "fallocate"):  # a quota is met
                yield "%s:1+=%d" % (name, errno.EDQUOT)
            continue
        n = calls[name]
        for i in sorted(set(range(1, min(n, FIRST) + 1)) | {n}):
            yield "%s:%d" % (name, i)
            yield "%s:%d+" % (name, i)
            for error in ERRORS.get(name, []):
                yield "%s:%d=%d" % (name, i, getattr(errno, error))
            if name in ("pwrite", "read"):
                yield "%s:%dshort" % (name, i)
                yield "%s:%d+short" % (name, i)


def main():
    names, unknown = rows()
    bad = len(unknown)
    for name in sorted(unknown):
        print("not ok - %s is imported, and neither in fail.c's table nor harmless" % name)
    with tempfile.TemporaryDirectory() as folder:
        plain = subprocess.run(COMMAND, capture_output=True, text=True, cwd=folder)
    expected = plain.returncode, plain.stdout
    assert expected[0] == 0
    with tempfile.TemporaryDirectory() as folder:
        assert run("", folder).returncode == 0 and report(folder)[1] is False
        calls = calls_of(folder)
    asked = [n for n in names if n in calls]
    todo = list(plans(asked, calls))
    assert len(asked) > 25, asked
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for plan, (wrong, happened) in zip(todo, pool.map(lambda p: judge(p, expected), todo)):
            bad += wrong != ""
            if wrong or not ALL:
                print("%s - %s: %s%s" % ("not ok" if wrong else "ok", plan, wrong and wrong + "; ", happened))
    print("not called by this program: " + " ".join(n for n in names if n not in calls))
    print("%d plans, %d bad" % (len(todo), bad))
    return bad > 0


sys.exit(main())
