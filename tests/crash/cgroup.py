"""A cgroup with a limit of memory, of version 2 or 1."""

import os
import time

ROOT = "/sys/fs/cgroup"


class Cgroup:
    """Raises OSError where none can be made."""

    def __init__(self, limit):
        version2 = os.path.exists(ROOT + "/cgroup.controllers")
        self.path = "%s/gpuwait-test-%d" % (ROOT if version2 else ROOT + "/memory", os.getpid())
        self.events = "memory.events" if version2 else "memory.oom_control"
        os.mkdir(self.path)
        try:
            self.write("memory.max" if version2 else "memory.limit_in_bytes", limit)
            if os.path.exists(self.path + "/memory.swap.max"):
                self.write("memory.swap.max", 0)
            self.kills()
        except OSError:
            self.remove()
            raise

    def write(self, name, value):
        with open("%s/%s" % (self.path, name), "w") as f:
            f.write("%d" % value)

    def enter(self):
        self.write("cgroup.procs", os.getpid())

    def kills(self):
        """Processes that the kernel has ended in it for want of memory."""
        words = open("%s/%s" % (self.path, self.events)).read().split()
        if "oom_kill" not in words:
            raise OSError("%s says nothing of kills" % self.events)
        return int(words[words.index("oom_kill") + 1])

    def remove(self):
        for _ in range(100):  # who was in it may not have gone quite
            try:
                return os.rmdir(self.path)
            except OSError:
                time.sleep(0.05)
