#!/usr/bin/env python3
"""Paths into somebody's folders that recordings hold in compressed frames, where no grep sees them.

    lint_frames.py FILE...      prints a line for each
"""

import ctypes
import ctypes.util
import re
import struct
import sys

FRAME = struct.Struct("<IHHIIQIIQQIIQ")  # struct gwt_frame in gpuwait/format.h
MAGIC, ZSTD = 0x46545747, 1
SOMEBODYS = re.compile(rb"/(?:root|work|workspace|mnt|home/(?!u/|user/)[\w.-]+|tmp/(?!gpuwait-test)[\w.-]+)/[\x21-\x7e]+")
LARGEST = 4 << 20

zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
zstd.ZSTD_decompress.restype = ctypes.c_size_t
zstd.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]


def unpacked(data):
    """The payloads of its compressed frames, wherever they begin."""
    at = data.find(struct.pack("<I", MAGIC))
    while at >= 0 and at + FRAME.size <= len(data):
        frame = FRAME.unpack_from(data, at)
        codec, raw_size, stored = frame[2], frame[6], frame[7]
        if codec == ZSTD and 0 < raw_size <= LARGEST:
            out, packed = ctypes.create_string_buffer(raw_size), data[at + FRAME.size : at + FRAME.size + stored]
            if zstd.ZSTD_decompress(out, raw_size, packed, len(packed)) == raw_size:
                yield out.raw
        at = data.find(struct.pack("<I", MAGIC), at + 4)


def main():
    for name in sys.argv[1:]:
        with open(name, "rb") as f:
            data = f.read()
        for path in sorted({p for payload in unpacked(data) for p in SOMEBODYS.findall(payload)}):
            print("%s: %s" % (name, path.decode(errors="replace")))


main()
