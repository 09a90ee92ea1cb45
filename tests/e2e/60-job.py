#!/usr/bin/env python3
"""The report on a job of several ranks: dumps written by hand of training loops whose device times
follow from a few rules, so that who waited for whom, and why, is known exactly.

A submission takes 2.3 us to arrive; a stream pauses 0.7 us between operations and 1.4 us where one
waits for another; a collective ends so long after its last rank has come as its bytes take; a call
that waits for the device returns 4 us after the work."""
import json
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mkdump import DRIVER_LEVEL, EVENT, H2D, NCCL_LEVEL, NESTED, START, STREAM, Dump  # noqa: E402

build = os.path.abspath(os.environ.get("B", os.path.join(os.path.dirname(__file__), "..", "..", "build")))
FORWARD, BACKWARD, ADAM = "_Z7forwardPfi", "_Z8backwardPfi", "_Z4adamPfi"
ALL_REDUCE = "_Z40ncclDevKernel_AllReduce_Sum_bf16_RING_LL24ncclDevKernelArgsStorageILm4096EE"
SEND_RECV = "_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE"
US = {FORWARD: 200, BACKWARD: 300, ADAM: 100}
BYTES, UPLOAD = 25 << 20, 4 << 20
failed = 0


def check(what, good, *seen):
    global failed
    if good:
        print("ok - " + what)
    else:
        failed += 1
        print("not ok - " + what, *seen)


def near(what, got, wanted, within):
    check(what, got is not None and abs(got - wanted) <= within, "wanted %s, got %s" % (wanted, got))


class Rank:
    """One process; times are us of the common clock."""

    def __init__(self, number, ranks, host=0, offset=0.0, drift=0.0, slow=1.0, link=1.0, identity=77,
                 samples=True, off=1.0):
        self.number, self.offset, self.drift = number, offset, drift
        self.slow, self.link = slow, link
        self.host = 1000.0 + 7 * number
        self.compute = self.side = self.first = self.busy_from = 0.0
        self.wait = 0.0
        self.exposed = self.computed = 0.0
        self.events = 0
        d = self.d = Dump(pid=100 + number, boot=bytes([host + 1]) * 16, host="node%d" % host,
                          command="python train.py", **{"env.RANK": str(number),
                                                        "env.WORLD_SIZE": str(ranks)})
        d.device("NVIDIA H200")
        d.thread()
        self.s = d.stream("user", 1, nonblocking=1)
        self.c = d.stream("user", 2, nonblocking=1)
        d.define(9, 1, struct.pack("<QiiQ", 0x7000, ranks, number, identity))
        self.comms = 1
        for kind in (1, 3):
            d.put(struct.pack("<QIHHHHIQ", START, 20000, 0xFF00 + 37, kind, 0, 0, 50, 2700000), 9)
        if not samples:
            return
        for name, us in US.items():
            for _ in range(4):
                self.timed(1, us * slow * off, d.signature(name, (200, 1, 1)))
        for _ in range(4):
            self.timed(3, UPLOAD / 50e3 * link, size=UPLOAD)

    def timed(self, kind, us, arg=0, size=0):
        pair = int(us * 1000) + (2250 if kind == 1 else 2700)
        self.d.put(struct.pack("<QIHHHHIQ", START, pair, 0xFF00 + 36, kind | 0x10, 1, 0, arg, size), 9)

    def own(self, t):
        return t * (1 + self.drift) + self.offset

    def call(self, name, kind, us, **more):
        self.d.call(name, kind, self.own(self.host), us, **more)
        self.host += us + 1

    def launch(self, name):
        arrives = self.host + 5 + 2.3
        self.d.launch(self.own(self.host), 5, self.s, name)
        self.host += 5 + 3
        self.compute = max(self.compute + 0.7, arrives, self.wait) + US[name] * self.slow
        self.wait = 0.0
        self.computed += US[name] * self.slow

    def upload(self):
        arrives = self.host + 5 + 2.3
        self.d.copy(self.own(self.host), 5, H2D, UPLOAD, self.s)
        self.host += 8
        self.compute = max(self.compute + 1.4, arrives) + UPLOAD / 50e3 * self.link

    def sleeps(self, us):
        """Outside CUDA, off the CPU, as a section record says."""
        self.d.put(struct.pack("<QIHHHHIII", START + int(self.own(self.host - 1) * 1000), int((us + 1) * 1000),
                               0xFF00 + 38, 0, 2, 0, 20, 30, int(us)))
        self.host += us

    def come(self, comm=1, name="ncclAllReduce", kernel=ALL_REDUCE, size=BYTES, peer=-1, grouped=1):
        """The collective's kernel is submitted. When the stream comes to it."""
        self.events += 1
        self.call("cudaEventRecord", "EVENT_RECORD", 1, stream=self.s, value=self.events)
        self.call("cudaStreamWaitEvent", "STREAM_WAIT", 1, stream=self.c, value=self.events)
        arg = comm | (peer + 1) << 16
        if grouped > 1:
            self.call("ncclGroupStart", "NCCL_GROUP", 1, level=NCCL_LEVEL)
            for _ in range(grouped):
                self.call(name, "NCCL", 1, stream=self.c, arg=arg, value=size // grouped, level=NCCL_LEVEL)
        t = self.host
        self.d.launch(self.own(t + 1), 4, self.c, kernel, name="cuLaunchKernelEx", level=DRIVER_LEVEL,
                      flags=NESTED)
        if grouped > 1:
            self.call("ncclGroupEnd", "NCCL_GROUP", 6, level=NCCL_LEVEL)
        else:
            self.call(name, "NCCL", 6, stream=self.c, arg=arg, value=size, level=NCCL_LEVEL)
        return max(self.compute + 1.4, t + 5 + 2.3, self.side + 0.7 if self.side else 0)

    def ends(self, end):
        self.side = end

    def joins(self):
        """Computing waits for what was communicated."""
        self.events += 1
        self.call("cudaEventRecord", "EVENT_RECORD", 1, stream=self.c, value=self.events)
        self.call("cudaStreamWaitEvent", "STREAM_WAIT", 1, stream=self.s, value=self.events)
        self.exposed += max(0.0, self.side - self.compute)
        self.wait = self.side + 1.4

    def item(self):
        end = max(self.compute, self.wait)
        us = max(3.0, end + 4 - self.host)
        self.d.sync(self.own(self.host), us, self.s, STREAM)
        self.host += us + 20

    def marks(self):
        """An event at the end of what was submitted."""
        self.events += 1
        self.call("cudaEventRecord", "EVENT_RECORD", 1, stream=self.s, value=self.events)
        return self.events, max(self.compute, self.wait)

    def reaches(self, mark):
        event, end = mark
        us = max(3.0, end + 4 - self.host)
        self.d.sync(self.own(self.host), us, self.s, EVENT, value=event)
        self.host += us + 20

    def write(self, folder):
        self.d.count(SAMPLES=16)
        self.d.write("%s/%s-%d.gwt" % (folder, "node", self.d.pid))


def meet(ranks, us, **how):
    starts = [r.come(**how) for r in ranks]
    for r in ranks:
        r.ends(max(starts) + us)
    return starts


def train(ranks, steps, us=400.0, sleeper=None, sleep_us=0.0, every=1, grouped=1, reads=1, marks=False):
    waits = 0.0
    marked = [None] * len(ranks)
    for step in range(steps):
        for i, r in enumerate(ranks):
            if i == sleeper and step % every == 0:
                r.sleeps(sleep_us)
            r.upload()
            for _ in range(6):
                r.launch(FORWARD)
        for _ in range(2):
            for r in ranks:
                for _ in range(4):
                    r.launch(BACKWARD)
            starts = meet(ranks, us, grouped=grouped)
            waits += sum(max(starts) - s for s in starts)
        for i, r in enumerate(ranks):
            r.joins()
            r.launch(ADAM)
            if marks:  # reads what the step before left
                if marked[i]:
                    r.reaches(marked[i])
                marked[i] = r.marks()
            elif step % reads == reads - 1:
                r.item()
    return waits / 1e3 / len(ranks)


def report(ranks, *options):
    with tempfile.TemporaryDirectory() as folder:
        for r in ranks:
            r.write(folder)
        run = subprocess.run([build + "/gpuwait", "report", "--json", "--steps", "all", *options, folder],
                             capture_output=True, text=True)
        if run.returncode:
            print(run.stderr)
            sys.exit(1)
        return json.loads(run.stdout)


def late(j):
    return [(entry["rank"], entry["cause"]) for entry in j["job"]["late"]]


def exposed(what, j, ranks):
    """Within 1 point of wall time, on all of them."""
    got = {r["rank"]: r["exposed_comm_pct"] for r in j["job"]["ranks"]}
    wall = {r["rank"]: r["wall_s"] for r in j["job"]["ranks"]}
    off = max(abs(got[r.number] - 100 * r.exposed / 1e6 / wall[r.number]) for r in ranks)
    check(what + ": exposed communication", off < 1, off)


# ---- a rank that waits for its batches ----
ranks = [Rank(i, 4) for i in range(4)]
waits = train(ranks, 40, sleeper=2, sleep_us=3000)
j = report(ranks)
job = j["job"]
check("late loader: who", late(j) == [(2, "host")], late(j))
check("late loader: its class", job["late"][0]["class"] == "host_blocked", job["late"][0])
check("late loader: before what", job["late"][0]["before"] == "cudaMemcpyAsync", job["late"][0])
check("late loader: verdict", j["verdict"] == "comm-wait", j["verdict"])
check("late loader: evidence", j["findings"][0]["evidence"]["late_rank"] == 2, j["findings"][0])
exposed("late loader", j, ranks)
op, = job["ops"]
check("late loader: all matched", (op["op"], op["calls"], op["ranks"], job["unmatched"]) == ("AllReduce", 80, 4, 0), op)
near("late loader: transfers", op["transfer_ms"], 80 * 0.4, 1.0)
near("late loader: waits", op["wait_ms"], waits, 0.02 * waits)
near("late loader: bus bandwidth", op["bus_gb_per_s"], 2 * 3 / 4 * BYTES / 400e3, 3)
near("late loader: bytes", op["bytes"], 80 * BYTES, 1)
check("late loader: longest waits name it", {w["last_rank"] for w in job["longest_waits"][:10]} == {2})
check("late loader: caused", job["ranks"][2]["caused_pct"] > 30 and
      max(job["ranks"][i]["caused_pct"] for i in (0, 1, 3)) < 1, job["ranks"])
with tempfile.TemporaryDirectory() as t:
    for r in ranks:
        r.write(t)
    run = subprocess.run([build + "/gpuwait", "report", "--json", "--steps", "all", "-p", "1", t],
                         capture_output=True, text=True, check=True)
    alone = json.loads(run.stdout)
    check("one rank of it: that one", [p["rank"] for p in alone["processes"]] == [1])
    near("one rank of it: as in the job", alone["processes"][0]["devices"][0]["time"]["exposed_comm_pct"],
         job["ranks"][1]["exposed_comm_pct"], 1e-6)
    text = subprocess.run([build + "/gpuwait", "report", "--steps", "all", t], capture_output=True, text=True, check=True).stdout
    check("text: names it", "Rank 2 holds up the others" in text and "\n   2 *" in text, text)

# ---- now and then; and nobody ----
ranks = [Rank(i, 4) for i in range(4)]
train(ranks, 40, sleeper=1, sleep_us=12000, every=4)
j = report(ranks)
check("every fourth: who", late(j) == [(1, "host")], late(j))
exposed("every fourth", j, ranks)
ranks = [Rank(i, 4) for i in range(4)]
train(ranks, 40, sleeper=1, sleep_us=12000, every=4, reads=10)
j = report(ranks)
check("every fourth, its GPU behind: who", late(j) == [(1, "host")], late(j))
check("every fourth, its GPU behind: its class", j["job"]["late"][0]["class"] == "host_blocked", j["job"]["late"][0])
check("every fourth, its GPU behind: before what", j["job"]["late"][0]["before"] == "cudaMemcpyAsync", j["job"]["late"][0])
ranks = [Rank(i, 4) for i in range(4)]
train(ranks, 40)
j = report(ranks)
check("nobody: nobody", late(j) == [], late(j))
exposed("nobody", j, ranks)

# ---- a slow GPU, a slow link ----
ranks = [Rank(i, 4, slow=1.5 if i == 3 else 1.0) for i in range(4)]
train(ranks, 40)
j = report(ranks)
check("slow GPU: who", late(j) == [(3, "gpu")], late(j))
near("slow GPU: by how much", j["job"]["late"][0]["slower"], 1.5, 0.02)
exposed("slow GPU", j, ranks)
ranks = [Rank(i, 4, link=8.0 if i == 0 else 1.0) for i in range(4)]
train(ranks, 40)
j = report(ranks)
check("slow link: who", late(j) == [(0, "link")], late(j))
exposed("slow link", j, ranks)

# ---- GPUs that run faster or slower than when they were sampled, full, and seldom waited for ----
for off in (1.04, 0.99):
    for how in ({"reads": 40}, {"marks": True}):
        what = "sampled at %.2f of its time, %s" % (off, "marks" if "marks" in how else "reads")
        ranks = [Rank(i, 2, off=off) for i in range(2)]
        train(ranks, 120, us=20.0, **how)
        j = report(ranks)
        check(what + ": nobody", late(j) == [], late(j))
        exposed(what, j, ranks)
        for r, x in zip(ranks, j["job"]["ranks"]):
            near(what + ": computing", x["compute_pct"], r.computed / 1e4 / x["wall_s"], 4)

# ---- in groups ----
ranks = [Rank(i, 2) for i in range(2)]
train(ranks, 40, sleeper=1, sleep_us=3000, grouped=3)
j = report(ranks)
check("groups: one kernel each", j["job"]["ops"][0]["calls"] == 80 and not j["job"]["unmatched"], j["job"]["ops"])
check("groups: who", late(j) == [(1, "host")], late(j))
exposed("groups", j, ranks)

# ---- two hosts whose clocks differ, and drift ----
def over_hosts(**more):
    return [Rank(i, 4, host=i // 2, offset=-3.25e6 if i > 1 else 0.0, drift=5e-6 if i > 1 else 0.0, **more)
            for i in range(4)]


ranks = over_hosts()
train(ranks, 200, sleeper=2, sleep_us=3000)
j = report(ranks)
first, second = j["job"]["hosts"]
check("hosts: aligned", second["aligned"] and second["matches"] >= 200, second)
near("hosts: offset", second["offset_s"], -3.25, 20e-6)
near("hosts: drift", second["drift_ppm"], 5, 0.5)
check("hosts: who", late(j) == [(2, "host")], late(j))
exposed("hosts", j, ranks)
for r in ranks:  # without anything in common the clocks are not compared
    r.d.log = r.d.log.replace(struct.pack("<QiiQ", 0x7000, 4, r.number, 77),
                              struct.pack("<QiiQ", 0x7000, 4, r.number, 77 + r.number // 2))
j = report(ranks)
check("hosts without matches: said", not j["job"]["comparable"] and "clocks" in j["job"]["why_not"], j["job"]["why_not"])
check("hosts without matches: nobody is called late", late(j) == [], late(j))
check("hosts without matches: no offset", j["job"]["hosts"][1]["offset_s"] is None)

# ---- one of the ranks was not recorded: it may be the late one ----
ranks = [Rank(i, 4) for i in range(4)]
train(ranks, 40, sleeper=2, sleep_us=3000)
j = report(ranks[:2] + ranks[3:])
check("one is missing: said", not j["job"]["comparable"] and "not recorded" in j["job"]["why_not"], j["job"]["why_not"])
check("one is missing: nobody is called late", late(j) == [], late(j))
check("one is missing: three rows", [r["rank"] for r in j["job"]["ranks"]] == [0, 1, 3])

# ---- calls of one are missing: the numbers of the others are no partners' ----
ranks = [Rank(i, 2) for i in range(2)]
ranks[1].come(name="ncclBroadcast")
train(ranks, 40, sleeper=1, sleep_us=3000)
j = report(ranks)
check("calls do not match: said", not j["job"]["comparable"] and "missing" in j["job"]["why_not"], j["job"]["why_not"])
check("calls do not match: nobody is called late", late(j) == [], late(j))

# ---- two runs in one folder, and a helper that has a rank's environment ----
ranks = [Rank(i, 2) for i in range(2)]
train(ranks, 40, sleeper=0, sleep_us=3000)
old = [Rank(i, 2, identity=66) for i in range(2)]
train(old, 40)
for r in old:
    r.d.pid += 50
    r.d.started = START - 10**12
helper = Rank(1, 2, identity=0)
helper.d.pid = 999
helper.launch(FORWARD)
j = report(ranks + old + [helper])
check("two runs: the newest", sorted(p["pid"] for p in j["processes"]) == [100, 101], [p["pid"] for p in j["processes"]])
check("two runs: who", late(j) == [(0, "host")], late(j))

# ---- not timed ----
ranks = [Rank(i, 2, samples=False) for i in range(2)]
train(ranks, 40, sleeper=1, sleep_us=3000)
j = report(ranks)
check("not timed: said", not j["job"]["comparable"] and j["job"]["late"] == [], j["job"]["why_not"])
check("not timed: no figure", j["job"]["ops"][0]["wait_ms"] is None and j["job"]["wait_pct"] is None)

# ---- late because of another: pairs of ranks, then all ----
ranks = [Rank(i, 4) for i in range(4)]
for r in ranks:
    r.d.define(9, 2, struct.pack("<QiiQ", 0x8000, 2, r.number % 2, 500 + r.number // 2))
for step in range(60):
    ranks[0].sleeps(3000)
    for r in ranks:
        for _ in range(4):
            r.launch(FORWARD)
    for pair in (ranks[:2], ranks[2:]):
        meet(pair, 100.0, comm=2, size=1 << 20)
        for r in pair:
            r.joins()
    for r in ranks:
        for _ in range(2):
            r.launch(BACKWARD)
    meet(ranks, 400.0)
    for r in ranks:
        r.joins()
        r.launch(ADAM)
        r.item()
j = report(ranks)
check("late because of another: the other is named", late(j) == [(0, "host")], late(j))
exposed("late because of another", j, ranks)

# ---- messages ----
ranks = [Rank(i, 2) for i in range(2)]
for step in range(60):
    ranks[1].sleeps(2000)
    for r in ranks:
        for _ in range(4):
            r.launch(FORWARD)
    starts = [r.come(name="ncclSend" if r.number == step % 2 else "ncclRecv", kernel=SEND_RECV, peer=1 - r.number)
              for r in ranks]
    for r in ranks:
        r.ends(max(starts) + 250.0)
        r.joins()
        r.launch(ADAM)
        r.item()
j = report(ranks)
op, = j["job"]["ops"]
check("messages: matched", (op["op"], op["calls"], j["job"]["unmatched"]) == ("SendRecv", 60, 0), op)
check("messages: who", late(j) == [(1, "host")], late(j))
exposed("messages", j, ranks)

sys.exit(failed > 0)
