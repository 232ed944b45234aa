"""The arithmetic of ranking over all chunks at once: with numpy where it is installed, with plain loops where it is not.

Both do the same, in the same order and in double precision, so that they rank alike; they differ in time. Only `cosines` is an
estimate, in single precision where numpy makes it, which whoever ranks replaces for the best by `exact`.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from operator import mul
from typing import Any, Protocol, TypeAlias

Scores = Any
"""One number for each slot: a list of floats, or an array of numpy."""

Slots = Any
"""Slots in rising order: a list of whole numbers, or an array of numpy."""

Values = Any
"""One number for each of some slots, in their order."""

Vectors: TypeAlias = "memoryview[float]"
"""The vectors of all slots, one after the other, in single precision."""

MARGIN = 1e-5
"""What an estimate may be wrong by."""

_ROUNDED = 6
_BLOCK = 2_048
_UNIT = 1e-12  # How near to 1 a length is taken for it: far below what single precision tells apart.


@dataclass(frozen=True, slots=True)
class Selected:
    """The slots that a search may find.

    Attributes:
        mask: For each slot 1 or 0.
        slots: Those of 1.
    """

    mask: bytes | bytearray
    slots: Slots


class Arithmetic(Protocol):
    """What ranking computes."""

    name: str

    def zeros(self, length: int) -> Scores:
        """Return a score of 0 for each slot."""
        ...

    def slots(self, mask: bytes | bytearray) -> Slots:
        """Return the slots of a mask."""
        ...

    def total(self, lengths: array[int], selected: Selected) -> int:
        """Return the sum of the lengths of some slots."""
        ...

    def within(self, slots: array[int], selected: Selected) -> int:
        """Return how many slots are among those that are selected."""
        ...

    def norms(self, lengths: array[int], fixed: float, by_length: float) -> Scores:
        """Return for each slot a fixed number and one times its length."""
        ...

    def add_term(self, scores: Scores, slots: array[int], counts: array[int], norms: Scores, weight: float) -> None:
        """Add a term's share to the slots that have it: `weight · count / (count + norm)`."""
        ...

    def times(self, scores: Scores, factor: float) -> Scores:
        """Return each score times a number."""
        ...

    def taken(self, scores: Scores, slots: Slots) -> Values:
        """Return the scores of some slots."""
        ...

    def cosines(self, vectors: Vectors, query: array[float], slots: Slots) -> Values:
        """Return about the product of the vector of some slots with a query's, at least 0; all are of length 1, or zero."""
        ...

    def exact(self, vectors: Vectors, query: array[float], slots: Sequence[int]) -> list[float]:
        """Return the product of the vector of some slots with a query's, at least 0, rounded to six digits."""
        ...

    def plus(self, first: Values, second: Values, share: float) -> Values:
        """Return the first numbers and the second ones times a share."""
        ...

    def reaching(self, slots: Slots, values: Values, slack: float, most: int) -> tuple[Slots, Values]:
        """Leave out the slots that would not be among the best, `most` of them, though they alone had `slack` more."""
        ...

    def best(self, slots: Slots, values: Values, floor: float, most: int) -> list[tuple[int, float]]:
        """Return the slots of which the best are, with their values: above 0 and not below `floor`, each by the margin.

        They are in no order, and more than `most` where several are as good as the last one, but for the margin.
        """
        ...


class PlainArithmetic:
    """The arithmetic with the standard library only."""

    name = "plain"

    def zeros(self, length: int) -> Scores:
        """Return a score of 0 for each slot."""
        return [0.0] * length

    def slots(self, mask: bytes | bytearray) -> Slots:
        """Return the slots of a mask."""
        return list(compress(range(len(mask)), mask))

    def total(self, lengths: array[int], selected: Selected) -> int:
        """Return the sum of the lengths of some slots."""
        return sum(map(lengths.__getitem__, selected.slots))

    def within(self, slots: array[int], selected: Selected) -> int:
        """Return how many slots are among those that are selected."""
        return sum(map(selected.mask.__getitem__, slots))

    def norms(self, lengths: array[int], fixed: float, by_length: float) -> Scores:
        """Return for each slot a fixed number and one times its length."""
        return [fixed + by_length * length for length in lengths]

    def add_term(self, scores: Scores, slots: array[int], counts: array[int], norms: Scores, weight: float) -> None:
        """Add a term's share to the slots that have it."""
        for slot, count in zip(slots, counts, strict=True):
            scores[slot] += weight * count / (count + norms[slot])

    def times(self, scores: Scores, factor: float) -> Scores:
        """Return each score times a number."""
        return [score * factor for score in scores]

    def taken(self, scores: Scores, slots: Slots) -> Values:
        """Return the scores of some slots."""
        return list[float](map(scores.__getitem__, slots))

    def cosines(self, vectors: Vectors, query: array[float], slots: Slots) -> Values:
        """Return the product of the vector of some slots with a query's."""
        size = len(query)
        return [max(0.0, math.fsum(map(mul, vectors[slot * size : slot * size + size], query))) for slot in slots]

    def exact(self, vectors: Vectors, query: array[float], slots: Sequence[int]) -> list[float]:
        """Return the product of the vector of some slots with a query's, at least 0, rounded to six digits."""
        return [round(value, _ROUNDED) for value in self.cosines(vectors, query, slots)]

    def plus(self, first: Values, second: Values, share: float) -> Values:
        """Return the first numbers and the second ones times a share."""
        return [one + other * share for one, other in zip(first, second, strict=True)]

    def reaching(self, slots: Slots, values: Values, slack: float, most: int) -> tuple[Slots, Values]:
        """Leave out the slots that would not be among the best though they alone had `slack` more."""
        if len(slots) <= most:
            return slots, values
        least = heapq.nlargest(most, values)[-1] - slack - MARGIN
        kept = [value >= least for value in values]
        return list[int](compress(slots, kept)), list[float](compress(values, kept))

    def best(self, slots: Slots, values: Values, floor: float, most: int) -> list[tuple[int, float]]:
        """Return the slots of which the best are, with their values."""
        found = [(slot, value) for slot, value in zip(slots, values, strict=True) if value > 0 and value >= floor - MARGIN]
        if len(found) <= most:
            return found
        least = heapq.nlargest(most, (value for _, value in found))[-1] - MARGIN
        return [(slot, value) for slot, value in found if value >= least]


class NumpyArithmetic:
    """The arithmetic with numpy, over the same buffers without a copy."""

    name = "numpy"

    def __init__(self) -> None:
        import numpy

        self._np: Any = numpy

    def zeros(self, length: int) -> Scores:
        """Return a score of 0 for each slot."""
        return self._np.zeros(length)

    def slots(self, mask: bytes | bytearray) -> Slots:
        """Return the slots of a mask."""
        return self._np.flatnonzero(self._np.frombuffer(mask, dtype=self._np.uint8))

    def total(self, lengths: array[int], selected: Selected) -> int:
        """Return the sum of the lengths of some slots."""
        return int(self._np.frombuffer(lengths, dtype=self._np.uint32)[selected.slots].sum(dtype=self._np.uint64))

    def within(self, slots: array[int], selected: Selected) -> int:
        """Return how many slots are among those that are selected."""
        np = self._np
        return int(np.count_nonzero(np.frombuffer(selected.mask, dtype=np.uint8)[np.frombuffer(slots, dtype=np.uint32)]))

    def norms(self, lengths: array[int], fixed: float, by_length: float) -> Scores:
        """Return for each slot a fixed number and one times its length."""
        return fixed + by_length * self._np.frombuffer(lengths, dtype=self._np.uint32)

    def add_term(self, scores: Scores, slots: array[int], counts: array[int], norms: Scores, weight: float) -> None:
        """Add a term's share to the slots that have it."""
        np = self._np
        places, count = np.frombuffer(slots, dtype=np.uint32), np.frombuffer(counts, dtype=np.uint16)
        scores[places] += weight * count / (count + norms[places])

    def times(self, scores: Scores, factor: float) -> Scores:
        """Return each score times a number."""
        return scores * factor

    def taken(self, scores: Scores, slots: Slots) -> Values:
        """Return the scores of some slots."""
        return scores if len(slots) == len(scores) else scores[slots]

    def cosines(self, vectors: Vectors, query: array[float], slots: Slots) -> Values:
        """Return about the product of the vector of some slots with a query's."""
        matrix, asked = self._matrix(vectors, query), self._np.frombuffer(query, dtype=self._np.float32)
        every = len(slots) * 4 > len(matrix)  # A pass over all of them is quicker than a copy of many.
        # Reading memory takes the time: the threads of `matrix @ asked` gain nothing, and wait for each other if others work.
        found = self._np.einsum("ij,j->i", matrix if every else matrix[slots], asked)
        return self._np.maximum(self.taken(found, slots) if every else found, 0)

    def exact(self, vectors: Vectors, query: array[float], slots: Sequence[int]) -> list[float]:
        """Return the product of the vector of some slots with a query's, at least 0, rounded to six digits."""
        np, matrix = self._np, self._matrix(vectors, query)
        asked, found = np.frombuffer(query, dtype=np.float32).astype(np.float64), list[float]()
        for start in range(0, len(slots), _BLOCK):
            # Row by row, in an order that does not depend on where a row stands: equal vectors give equal numbers.
            products = (matrix[list(slots[start : start + _BLOCK])].astype(np.float64) * asked).sum(axis=1)
            found += np.maximum(np.round(products, _ROUNDED), 0.0).tolist()
        return found

    def plus(self, first: Values, second: Values, share: float) -> Values:
        """Return the first numbers and the second ones times a share."""
        return first + second * share

    def reaching(self, slots: Slots, values: Values, slack: float, most: int) -> tuple[Slots, Values]:
        """Leave out the slots that would not be among the best though they alone had `slack` more."""
        if len(slots) <= most:
            return slots, values
        kept = self._np.flatnonzero(values >= self._last(values, most) - slack - MARGIN)
        return slots[kept], values[kept]

    def best(self, slots: Slots, values: Values, floor: float, most: int) -> list[tuple[int, float]]:
        """Return the slots of which the best are, with their values."""
        kept = self._np.flatnonzero((values > 0) & (values >= floor - MARGIN))
        slots, values = slots[kept], values[kept]
        if len(slots) > most:
            kept = self._np.flatnonzero(values >= self._last(values, most) - MARGIN)
            slots, values = slots[kept], values[kept]
        return list(zip(slots.tolist(), values.tolist(), strict=True))

    def _last(self, values: Values, most: int) -> float:
        """Return the least of the best."""
        return float(self._np.partition(values, len(values) - most)[len(values) - most])

    def _matrix(self, vectors: Vectors, query: array[float]) -> Any:
        return self._np.frombuffer(vectors, dtype=self._np.float32).reshape(-1, len(query))


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
    length = math.hypot(*values)
    if not length or abs(length - 1) < _UNIT:
        return array("f", values)
    return array("f", [value / length for value in values])
