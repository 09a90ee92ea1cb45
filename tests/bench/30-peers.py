"""The same on other recorders, where they are installed: the entry and return of one call recorded
by uftrace, and by two tracepoints of LTTng-UST."""
import os
import shutil
import subprocess
import tempfile

from bench import row

B, CC = os.environ["B"], os.environ.get("CC", "cc")
HERE = os.path.dirname(os.path.abspath(__file__)) + "/peers"
work = tempfile.mkdtemp()


def run(*command, **env):
    return subprocess.run(command, env=dict(os.environ, **env), text=True, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout


def build(name, *flags):
    run(CC, "-O2", "-I" + HERE, HERE + "/traced.c", "-o", work + "/" + name, *flags)
    return work + "/" + name


def figures(text):
    median, least = (float(x) for x in
                     next(li for li in text.splitlines() if li.startswith("call ")).split()[1:])
    return median, least


def rows(name, text):
    median, least = figures(text)
    for what, value in (("least", least), ("median", median)):
        row("%s, 1 thread, %s" % (name, what), value, "ns", value / clocks, "two clock reads")


def lttng():
    program = build("lttng", "-DLTTNG", "-llttng-ust", "-ldl")
    # A daemon of its own, which has a home of its own unless it is root's.
    home = {"LTTNG_HOME": work, "HOME": work}
    daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], env=dict(os.environ, **home),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(50):
            try:
                run("lttng", "-n", "create", "bench", "--output=" + work + "/trace", **home)
                break
            except subprocess.CalledProcessError:
                subprocess.run(["sleep", "0.1"], check=True)
        run("lttng", "-n", "enable-channel", "-u", "--subbuf-size=1M", "--num-subbuf=8", "c", **home)
        run("lttng", "-n", "enable-event", "-u", "bench:call", "-c", "c", **home)
        run("lttng", "-n", "start", **home)
        text = run(program, **home)
        run("lttng", "-n", "destroy", **home)
    finally:
        daemon.terminate()
        daemon.wait()
    recorded = sum(os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk(work + "/trace")
                   for f in fs)
    if recorded < 1 << 20:
        raise RuntimeError("nothing was recorded")
    rows("LTTng-UST, two tracepoints", text)


def uftrace():
    program = build("uftrace", "-pg")
    text = run("uftrace", "record", "--no-pager", "-d", work + "/data", program)
    rows("uftrace, one call", text)


try:
    text = run(B + "/noop/calls", "1", "48")
    clocks = float(text.splitlines()[0].split()[2])
    for tool, measure in (("lttng-sessiond", lttng), ("uftrace", uftrace)):
        if not shutil.which(tool):
            print("%s is not installed: not measured" % tool)
            continue
        try:
            measure()
        except (subprocess.CalledProcessError, RuntimeError, StopIteration) as e:
            print("%s could not be measured: %s %s" % (tool, e, getattr(e, "stderr", "")))
finally:
    shutil.rmtree(work)
