"""The vectors of an index, one after the other, in memory over which a search passes quickly."""

from __future__ import annotations

import mmap
import sys
from array import array
from contextlib import suppress

_BYTES = array("f").itemsize
_FIRST = 4_096
_LARGE = 2**22


class VectorBuffer:
    """Numbers in single precision that only become more.

    Large buffers are kept in huge pages where the system has some: a search reads all of them, and of the usual small pages it
    would look up one for every two or three vectors, which takes as long again as reading them.
    """

    def __init__(self) -> None:
        self._memory = _allocated(0)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def numbers(self) -> memoryview[float]:
        """All of them, without a copy. Not to be kept: later ones are added elsewhere."""
        return self._memory[: self._length]

    def extend(self, vector: array[float]) -> None:
        """Add a vector."""
        start = self._reserve(len(vector))
        self._memory[start : self._length] = memoryview(vector)

    def extend_zeros(self, count: int) -> None:
        """Add so many zeros."""
        self._reserve(count)  # What was never written is zero.

    def part(self, start: int, end: int) -> array[float]:
        """Return a copy of the numbers from one place to before another."""
        copied = array("f")
        copied.frombytes(self._memory[start:end].cast("B"))
        return copied

    def _reserve(self, count: int) -> int:
        start, self._length = self._length, self._length + count
        if self._length > len(self._memory):
            grown = _allocated(max(self._length, 2 * len(self._memory)))
            grown[:start] = self._memory[:start]
            self._memory = grown
        return start


def _allocated(count: int) -> memoryview[float]:
    """Return memory for at least so many numbers, all zero."""
    size = max(count, _FIRST) * _BYTES
    if size < _LARGE or sys.platform != "linux":
        return memoryview(bytearray(size)).cast("f")
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # A kernel may have none.
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(memory).cast("f")
