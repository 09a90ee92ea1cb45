"""Writes small dumps by hand, from format.h alone: none of the project's code is used.

    from mkdump import Dump
    d = Dump(pid=42)
    s = d.stream("legacy")
    d.launch(t=0, dur=5, stream=s, kernel="_Z3addPf", grid=(8, 1, 1))
    d.write("dir/host-42.gwt")

Times are microseconds since the dump's start.
"""

import struct

KINDS = {name: number for number, name in enumerate(
    "NONE LAUNCH GRAPH_LAUNCH HOST_FUNC COPY MEMSET PREFETCH ALLOC FREE HOST_ALLOC HOST_FREE SYNC "
    "EVENT_RECORD STREAM_WAIT STREAM_OP POLL CAPTURE INSTANTIATE GRAPH_UPDATE GRAPH_DESTROY "
    "MODULE_LOAD MODULE_UNLOAD STREAM CONTEXT NAME NCCL NCCL_GROUP NCCL_COMM ALLOCATOR RANGE_PUSH "
    "RANGE_POP RANGE_START RANGE_END MARK LOST RECORDING SAMPLE CONSTANT".split())}
COUNTERS = {name: number for number, name in enumerate(
    "LOOKUPS_WRAPPED LOOKUPS_PASSED LOOKUPS_UNKNOWN EXPORT_TABLES HOLES UNWALKED_GRAPHS POLLS "
    "DROPPED NO_RING NESTED_SIGNAL UNNAMED SIGNATURES_CAPPED DEFINITIONS_LOST DRAIN_CPU_NS "
    "SETUP_NS FRAMES BYTES_WRITTEN WRITE_ERRNO EVENTS_AGGREGATED THREADS CALL_NS_X1000 "
    "UNDECODED SAMPLES SAMPLES_VOID SAMPLER_GPU_NS SAMPLER_HOST_NS".split())}
CAPTURED, HOLE, DRIVER, BLOCKING, PAGEABLE, NESTED = 0x2, 0x4, 0x8, 0x10, 0x80, 0x100
H2D, D2H, D2D = 1, 2, 3
DEVICE, STREAM, EVENT = 1, 2, 3  # scopes of a wait
RUNTIME, DRIVER_LEVEL, NCCL_LEVEL = 1, 2, 3
START = 1_000_000_000_000  # ns: where the monotonic clock stands at the dump's start

CRC_TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    CRC_TABLE.append(byte)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


assert crc32c(b"123456789") == 0xE3069283  # the standard check value


class Dump:
    def __init__(self, pid=42, ring="", boot=bytes(16), process_start=0, version=(1, 0), **facts):
        self.pid, self.ring, self.boot, self.version = pid, ring, boot, version
        self.process_start = process_start
        self.started = START  # by the wall clock
        self.log = b""
        self.ids = {}
        self.events = {}
        self.counters = [0] * 64
        self.seconds = 0
        for key, value in facts.items():
            self.fact(key, value)

    # ---- definitions ----

    def define(self, kind, ident, payload):
        self.log += struct.pack("<HHIII", kind, 0, len(payload), ident, 0) + payload
        self.log += bytes(-len(self.log) % 8)

    def once(self, table, key, kind, payload):
        ids = self.ids.setdefault(table, {})
        if key not in ids:
            ids[key] = len(ids) + 1
            self.define(kind, ids[key], payload(ids[key]) if callable(payload) else payload)
        return ids[key]

    def fact(self, key, value):
        self.define(1, 0, key.encode() + b"\0" + (value if isinstance(value, bytes) else value.encode()))

    def api(self, name, kind, level=RUNTIME):
        return self.once("api", name, 2, struct.pack("<BBH", KINDS[kind], level, 0) + name.encode())

    def string(self, text):
        raw = text if isinstance(text, bytes) else text.encode()
        return self.once("string", raw, 3, raw)

    def signature(self, name, grid=(1, 1, 1), block=(32, 1, 1), shared=0):
        name = self.string(name) if name is not None else 0
        key = (name, grid, block, shared)
        return self.once("signature", key, 4, struct.pack("<8I", name, *grid, *block, shared))

    def stream(self, kind="user", handle=0, device=0, nonblocking=0, thread=0):
        number = {"user": 1, "legacy": 2, "per-thread": 3, "none": 4}[kind]
        key = (number, handle, device, thread)
        return self.once("stream", key, 5,
                         struct.pack("<QBBBBI", handle, number, device, nonblocking, 0, thread))

    def thread(self, name=b"python", tid=None, ident=1):
        raw = name if isinstance(name, bytes) else name.encode()
        self.define(6, ident, struct.pack("<IIQ", tid or self.pid, 0, 0) + raw)

    def graph(self, ident, items, exact=1):
        """items: (kind, direction, count, signature, bytes)"""
        payload = struct.pack("<QIB3x", 0xE0 + ident, len(items), exact)
        for kind, direction, count, signature, size in items:
            payload += struct.pack("<BBHIIIQ", KINDS[kind], direction, 0, count, signature, 0, size)
        self.define(7, ident, payload)

    def device(self, name="Test GPU", ordinal=0, sms=132, memory=150 << 30):
        self.define(8, ordinal + 1, struct.pack("<QIHBBHHHH", memory, sms, 0, 0x18, 0, 5, 16, 9, 0) +
                    name.encode())

    # ---- events ----

    def put(self, raw, thread=1):
        self.events.setdefault(thread, []).append(raw)

    def call(self, name, kind, t, dur=1, stream=0, flags=0, status=0, arg=0, value=0, level=RUNTIME,
             thread=1):
        api = self.api(name, kind, level) if name else 0xFF00 + KINDS[kind]
        self.put(struct.pack("<QIHHHHIQ", START + int(t * 1000), int(dur * 1000), api, flags, stream,
                             status, arg, value), thread)
        self.seconds = max(self.seconds, (t + dur) / 1e6)

    def launch(self, t, dur=5, stream=1, kernel="_Z3addPfi", grid=(200, 1, 1), **more):
        name = more.pop("name", "cudaLaunchKernel")
        self.call(name, "LAUNCH", t, dur, stream, arg=self.signature(kernel, grid), **more)

    def copy(self, t, dur, direction, size, stream=1, flags=0, **more):
        name = "cudaMemcpy" if flags & BLOCKING else "cudaMemcpyAsync"
        self.call(name, "COPY", t, dur, stream, flags | direction << 12, arg=1, value=size, **more)

    def sync(self, t, dur, stream=0, scope=DEVICE, **more):
        name = {DEVICE: "cudaDeviceSynchronize", STREAM: "cudaStreamSynchronize", EVENT: "cudaEventSynchronize"}[scope]
        self.call(name, "SYNC", t, dur, stream, scope << 12, **more)

    def push(self, t, text, thread=1):
        self.call(None, "RANGE_PUSH", t, 0, arg=self.string(text), thread=thread)

    def pop(self, t, thread=1):
        self.call(None, "RANGE_POP", t, 0, thread=thread)

    def allocator(self, t, size, allocated, reserved, device=0):
        self.put(struct.pack("<QIHHIiQ", START + int(t * 1000), reserved // 512, 0xFF00 + KINDS["ALLOCATOR"],
                             device, 0x1000, size // 512, allocated))

    def count(self, **counters):
        for name, value in counters.items():
            self.counters[COUNTERS[name]] = value

    # ---- bytes ----

    @staticmethod
    def frame(kind, payload, count=0, first=0, thread=0, t=(0, 0)):
        def header(check):
            return struct.pack("<IHHIIQIIQQIIQ", 0x46545747, kind, 0, thread, count, first, len(payload),
                               len(payload), *t, crc32c(payload), check, 0)
        return header(crc32c(header(0))) + payload

    def bytes(self, end=True):
        now = START + int(self.seconds * 1e9)
        out = struct.pack("<8sHHIQIIQ3Q16s256s", b"GPUWAIT\0", *self.version, 512, 0, self.pid, 2,
                          self.process_start, START, START, self.started, self.boot, self.ring.encode())
        out += bytes(512 - len(out))
        out += self.frame(1, self.log)
        for thread, records in self.events.items():
            first = struct.unpack_from("<Q", records[0])[0]
            out += self.frame(2, b"".join(records), len(records), 0, thread, (first, now))
        out += self.frame(3, struct.pack("<64Q", *self.counters), 64)
        out += self.frame(4, struct.pack("<3Q", now, now, now), 1)
        if end:
            out += self.frame(6, b"")
        return out

    def write(self, path, end=True):
        with open(path, "wb") as f:
            f.write(self.bytes(end))

    def write_ring(self, path, inside=()):
        """The ring file of a process that was killed with everything drained; inside: the calls
        that its threads were in, as (thread, tid, api name, t)."""
        slots, slot_size, log_size = 8, 512, 4096
        head = struct.pack("<8sHHIIIQ3QIIQQQ", b"GWTRING\0", 1, 0, 4096, self.pid, 2, self.process_start,
                           START, START, START, slots, slot_size, 4096, 4096 + slots * slot_size, log_size)
        head += bytes(344 - len(head)) + self.boot
        head += bytes(512 - len(head)) + struct.pack("<3QQ", START, START, START, 0)
        head += bytes(1024 - len(head)) + struct.pack("<Q", len(self.log))
        head += bytes(1152 - len(head)) + struct.pack("<Q", len(self.log))
        head += bytes(1280 - len(head)) + struct.pack("<64Q", *self.counters)
        out = head + bytes(4096 - len(head))
        rings = 4096 + slots * slot_size + log_size
        for i, (thread, tid, api, t) in enumerate(inside):
            count = len(self.events.get(thread, []))
            slot = struct.pack("<IIQII", 1, thread, rings + i * 64 * 32, 64, tid)
            slot += bytes(128 - len(slot)) + struct.pack("<QQ", count, 0)
            slot += bytes(256 - len(slot)) + struct.pack("<QH", START + int(t * 1000), self.ids["api"][api])
            slot += bytes(384 - len(slot)) + struct.pack("<Q", count)
            out += slot + bytes(slot_size - len(slot))
        out += bytes(rings + len(inside) * 64 * 32 - len(out))
        with open(path, "wb") as f:
            f.write(out)


def training(pid=42, steps=3, **facts):
    """A small training loop: per step an upload, 20 launches, a wait, and 2 ms without a call."""
    facts = {"host": "node7", "command": "python train.py", "gpuwait": "0.1.0",
             "version.driver": "580.159", "library.libcudart": "libcudart.so.13.0.96", **facts}
    d = Dump(pid, **facts)
    d.device("NVIDIA H200")
    d.thread("python", pid)
    d.thread("pt_autograd_0", pid + 1, 2)
    s = d.stream("legacy")
    t = 0
    for step in range(steps):
        d.push(t, "step")
        d.copy(t + 1, 100, H2D, 1 << 20, s, PAGEABLE)
        d.sync(t + 105, 5, s, STREAM)
        t += 120
        for i in range(20):
            backward = i >= 10
            d.launch(t, 4, s, "_ZN2at6native18elementwise_kernelILi128EEEvPfi" if i % 2 else "gemm_128x128",
                     (64, 1, 1) if i % 2 else (16, 16, 1), thread=2 if backward else 1,
                     **({"name": "cuLaunchKernelEx", "level": DRIVER_LEVEL} if i % 10 == 0 else {}))
            t += 8
        d.allocator(t, 512 * (step + 1), 113 << 20, 136 << 20)
        d.copy(t + 1, 5, D2H, 4, s)
        d.sync(t + 10, 40, s, STREAM)
        d.pop(t + 51)
        t += 2050
    d.count(LOOKUPS_WRAPPED=120, LOOKUPS_PASSED=500, POLLS=17, CALL_NS_X1000=60000, SETUP_NS=300000,
            DRAIN_CPU_NS=1000000)
    return d
