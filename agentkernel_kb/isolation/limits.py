"""What a child forbids itself: core dumps, more memory than it may have, and living on when nobody can stop it any more.

The operating system holds these, so that they also hold while native code keeps the interpreter's lock.
"""

from __future__ import annotations

import signal
import sys

try:
    import resource
except ImportError:  # Windows: a child is ended from outside there, and its memory is not bounded.
    resource = None

_WORN = 0.5


def forbid_core_dumps() -> None:
    """Let no crash write the memory, which holds data, to a file or to the system's collector of dumps."""
    if resource is not None:
        _limit(resource.RLIMIT_CORE, 0)
        # One byte: Linux hands dumps to a collector whatever the limit is, except for this one (fs/coredump.c).
        if sys.platform == "linux":
            _limit(resource.RLIMIT_CORE, 1)


def end_after(seconds: float) -> None:
    """End this process in so many seconds unless it is called again before; 0 takes it back. Nothing happens on Windows."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


class Memory:
    """The memory of this process from now on.

    Args:
        most_bytes: How many more bytes of data it may have than it has now. Linux alone keeps to it.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._before = _data_bytes()
        if self._before and resource is not None:
            # Not the whole address space: engines reserve terabytes of it, which cost nothing.
            _limit(resource.RLIMIT_DATA, self._before + most_bytes)

    def is_worn(self) -> bool:
        """Tell whether so much is kept that the next piece of work might lack it."""
        return bool(self._before) and _data_bytes() - self._before > _WORN * self._most


def _limit(which: int, most: int) -> None:
    if resource is None:
        return
    _, hard = resource.getrlimit(which)
    allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(which, (allowed, hard))


def _data_bytes() -> int:
    """Return how many bytes of data this process has on Linux, 0 elsewhere."""
    if resource is None or sys.platform != "linux":
        return 0
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - pathlib costs a child a tenth of its start
        return int(file.read().split()[5]) * resource.getpagesize()
