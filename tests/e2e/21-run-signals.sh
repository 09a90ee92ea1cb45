#!/bin/sh
# run: signals reach the command once, and it stops and goes on with us.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shells inside
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
cat >count.py <<'END'
import signal, sys, time
seen = []
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(s, lambda number, frame: seen.append(number))
print("ready", flush=True)
end = time.monotonic() + 20
while not seen and time.monotonic() < end:
    time.sleep(0.02)
time.sleep(0.3)  # a second one would come
print(*seen, flush=True)
sys.exit(40 + len(seen))
END
cat >drive.py <<'END'
import os, pty, signal, subprocess, sys, time
gpuwait, how = sys.argv[1:]
cmd = [gpuwait, "run", "--no-report", "--", sys.executable, "count.py"]

def state(pid):
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rsplit(")", 1)[1].split()[0]

def until(what):
    for _ in range(500):
        if what():
            return True
        time.sleep(0.02)
    return False

if how == "sent":  # by another process, to gpuwait alone
    for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        p = subprocess.Popen(cmd, stdout=subprocess.PIPE, text=True)
        assert p.stdout.readline() == "ready\n"
        p.send_signal(s)
        said, _ = p.communicate(timeout=30)
        assert (said.strip(), p.returncode) == (str(int(s)), 41), (s, said, p.returncode)
elif how == "terminal":  # Ctrl-C, to the whole foreground group
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(gpuwait, cmd)
    said = b""
    while b"ready" not in said:
        said += os.read(fd, 1000)
    os.write(fd, b"\x03")
    try:
        while True:
            more = os.read(fd, 1000)
            if not more:
                break
            said += more
    except OSError:
        pass
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == 41, (code, said)  # once, although the terminal sent it to both
elif how == "stop":  # a debugger stops the command alone
    p = subprocess.Popen(cmd, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert p.stdout.readline() == "ready\n"
    with open("/proc/%d/task/%d/children" % (p.pid, p.pid)) as f:
        child = int(f.read())
    os.kill(child, signal.SIGSTOP)
    assert until(lambda: state(child) == "T")
    time.sleep(0.2)
    assert state(p.pid) in "SR", state(p.pid)
    os.kill(child, signal.SIGCONT)
    p.send_signal(signal.SIGTERM)
    said, _ = p.communicate(timeout=30)
    assert p.returncode == 41, (said, p.returncode)
elif how == "suspend":  # Ctrl-Z and fg, as a shell sees them
    pid, fd = pty.fork()
    if pid == 0:  # the shell's part: a job in a group of its own, in the foreground
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        job = os.fork()
        if job == 0:
            os.setpgid(0, 0)
            os.tcsetpgrp(0, os.getpgrp())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            os.execv(gpuwait, cmd)
        while True:
            _, status = os.waitpid(job, os.WUNTRACED)
            if os.WIFSTOPPED(status):
                os.write(1, b"stopped\n")
                time.sleep(0.1)
                os.tcsetpgrp(0, job)
                os.killpg(job, signal.SIGCONT)
                continue
            os.write(1, b"ended %d\n" % os.waitstatus_to_exitcode(status))
            os._exit(0)
    said = b""

    def read_until(word):
        global said
        while word not in said:
            said += os.read(fd, 1000)

    read_until(b"ready")
    os.write(fd, b"\x1a")
    read_until(b"stopped")
    time.sleep(0.5)
    os.write(fd, b"\x03")
    read_until(b"ended")
    os.waitpid(pid, 0)
    assert b"ended 41" in said, said
    assert said.count(b"stopped") == 1, said
END
runs "a signal sent to us arrives once" 0 python3 drive.py "$gpuwait" sent
runs "Ctrl-C arrives once" 0 python3 drive.py "$gpuwait" terminal
runs "a debugger's stop is not passed around" 0 python3 drive.py "$gpuwait" stop
runs "Ctrl-Z stops both, fg continues both" 0 python3 drive.py "$gpuwait" suspend
runs "a parent that ignores SIGCHLD" 9 python3 -c '
import os, signal, subprocess, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])' "$gpuwait" run --no-report -- sh -c 'exit 9'
runs "ignored signals stay ignored" 0 sh -c 'trap "" HUP; exec "$0" run --no-report -- sh -c "kill -HUP \$\$; exit 0"' "$gpuwait"
finish
