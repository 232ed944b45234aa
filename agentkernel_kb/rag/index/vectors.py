"""The vectors of an index, one after the other, in memory over which a search passes quickly."""

from __future__ import annotations

import mmap
import sys
from array import array
from contextlib import suppress

_BYTES = array("f").itemsize
_FIRST = 4_096
_LARGE = 2**22
_PIECE = 2**19


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
        """All of them, without a copy. Not to be kept: what is added later may move them."""
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
        start, end = self._length, self._length + count
        if end > len(self._memory):
            grown = _allocated(max(end, 2 * len(self._memory)))
            _move(self._memory, grown, start)
            self._memory = grown
        self._length = end
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


def _move(old: memoryview[float], new: memoryview[float], count: int) -> None:
    """Move numbers piece by piece, and give back each piece at once: so they take memory once, and not twice."""
    for start in range(0, count, _PIECE):
        end = min(start + _PIECE, count)
        new[start:end] = old[start:end]
        if isinstance(old.obj, mmap.mmap):
            old.obj.madvise(mmap.MADV_DONTNEED, start * _BYTES, (end - start) * _BYTES)
