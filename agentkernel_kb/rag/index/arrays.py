"""The arithmetic of ranking over all chunks at once: with numpy where it is installed, with plain loops where it is not.

Both do the same, in the same order; they differ in the last digits and in time. Scores are one number for each slot.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import mul
from typing import Any, Protocol

Scores = Any
"""One number for each slot: a list of floats, or an array of numpy."""


class Arithmetic(Protocol):
    """What ranking computes."""

    name: str

    def zeros(self, length: int) -> Scores:
        """Return a score of 0 for each slot."""
        ...

    def add_term(self, scores: Scores, slots: array[int], counts: array[int], norms: array[float], weight: float) -> None:
        """Add a term's share to the slots that have it: `weight · count / (count + norm)`."""
        ...

    def cosines(self, vectors: array[float], query: Sequence[float], length: int) -> Scores:
        """Return the product of each slot's vector with a query's; all of them are of length 1, or zero."""
        ...

    def mixed(self, first: Scores, share: float, second: Scores, other_share: float) -> Scores:
        """Return the sum of both, each times its share."""
        ...

    def divided(self, scores: Scores, by: float) -> Scores:
        """Return each score divided by a number."""
        ...

    def best(
        self, scores: Scores, mask: bytes | bytearray, floor: float, most: int, name_of: Callable[[int], str]
    ) -> list[int]:
        """Return the slots under the mask whose score is above 0 and at least `floor`, at most so many.

        The best come first, and of those with equal scores the one whose name comes first.
        """
        ...

    def taken(self, flags: Sequence[bool], places: array[int], alive: bytearray) -> bytearray:
        """Return for each slot the flag at its place, 0 where it is not alive."""
        ...


class PlainArithmetic:
    """The arithmetic with the standard library only."""

    name = "plain"

    def zeros(self, length: int) -> Scores:
        """Return a score of 0 for each slot."""
        return [0.0] * length

    def add_term(self, scores: Scores, slots: array[int], counts: array[int], norms: array[float], weight: float) -> None:
        """Add a term's share to the slots that have it."""
        for slot, count in zip(slots, counts, strict=True):
            scores[slot] += weight * count / (count + norms[slot])

    def cosines(self, vectors: array[float], query: Sequence[float], length: int) -> Scores:
        """Return the product of each slot's vector with a query's."""
        size = len(query)
        view, asked = memoryview(vectors), list(query)
        return [max(0.0, math.fsum(map(mul, view[at : at + size], asked))) for at in range(0, length * size, size)]

    def mixed(self, first: Scores, share: float, second: Scores, other_share: float) -> Scores:
        """Return the sum of both, each times its share."""
        return [a * share + b * other_share for a, b in zip(first, second, strict=True)]

    def divided(self, scores: Scores, by: float) -> Scores:
        """Return each score divided by a number."""
        return [score / by for score in scores]

    def best(
        self, scores: Scores, mask: bytes | bytearray, floor: float, most: int, name_of: Callable[[int], str]
    ) -> list[int]:
        """Return the best slots, at most so many."""
        import heapq

        found = (slot for slot, score in enumerate(scores) if mask[slot] and score > 0 and score >= floor)
        return heapq.nsmallest(most, found, key=lambda slot: (-scores[slot], name_of(slot)))

    def taken(self, flags: Sequence[bool], places: array[int], alive: bytearray) -> bytearray:
        """Return for each slot the flag at its place, 0 where it is not alive."""
        return bytearray(flag and flags[place] for place, flag in zip(places, alive, strict=True))


class NumpyArithmetic:
    """The arithmetic with numpy, over the same buffers without a copy."""

    name = "numpy"

    def __init__(self) -> None:
        import numpy

        self._np: Any = numpy

    def zeros(self, length: int) -> Scores:
        """Return a score of 0 for each slot."""
        return self._np.zeros(length, dtype=self._np.float32)

    def add_term(self, scores: Scores, slots: array[int], counts: array[int], norms: array[float], weight: float) -> None:
        """Add a term's share to the slots that have it."""
        np = self._np
        places = np.frombuffer(slots, dtype=np.uint32)
        count = np.frombuffer(counts, dtype=np.uint16).astype(np.float32)
        scores[places] += np.float32(weight) * count / (count + np.frombuffer(norms, dtype=np.float32)[places])

    def cosines(self, vectors: array[float], query: Sequence[float], length: int) -> Scores:
        """Return the product of each slot's vector with a query's."""
        np = self._np
        matrix = np.frombuffer(vectors, dtype=np.float32, count=length * len(query)).reshape(length, len(query))
        # The sum's last digits depend on where a vector stands: rounded, equal vectors tie.
        return np.maximum(np.round(matrix @ np.asarray(query, dtype=np.float32), 6), 0)

    def mixed(self, first: Scores, share: float, second: Scores, other_share: float) -> Scores:
        """Return the sum of both, each times its share."""
        return first * self._np.float32(share) + second * self._np.float32(other_share)

    def divided(self, scores: Scores, by: float) -> Scores:
        """Return each score divided by a number."""
        return scores / self._np.float32(by)

    def best(
        self, scores: Scores, mask: bytes | bytearray, floor: float, most: int, name_of: Callable[[int], str]
    ) -> list[int]:
        """Return the best slots, at most so many."""
        np = self._np
        held = (np.frombuffer(mask, dtype=np.uint8) != 0) & (scores > 0) & (scores >= np.float32(floor))
        slots = np.flatnonzero(held)
        if len(slots) > most:
            found = scores[slots]
            least = np.partition(found, len(found) - most)[len(found) - most]
            slots = slots[found >= least]  # Those that are as good as the last one too: names decide between them.
        return sorted(slots.tolist(), key=lambda slot: (-float(scores[slot]), name_of(slot)))[:most]

    def taken(self, flags: Sequence[bool], places: array[int], alive: bytearray) -> bytearray:
        """Return for each slot the flag at its place, 0 where it is not alive."""
        np = self._np
        chosen = np.asarray(flags, dtype=np.uint8)[np.frombuffer(places, dtype=np.uint32)]
        return bytearray((chosen & np.frombuffer(alive, dtype=np.uint8)).tobytes())


@lru_cache(maxsize=1)
def arithmetic() -> Arithmetic:
    """Return the arithmetic with numpy where it is installed, else the plain one."""
    try:
        return NumpyArithmetic()
    except ImportError:
        return PlainArithmetic()


def unit(vector: Iterable[float]) -> array[float]:
    """Return a vector of length 1 in the same direction, in single precision; zeros stay zeros."""
    values = list(vector)
    length = math.sqrt(math.fsum(value * value for value in values))
    return array("f", (value / length for value in values) if length else values)
