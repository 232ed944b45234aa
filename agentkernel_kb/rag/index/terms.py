"""The words of all chunks: which chunk has which how often, from either side."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping

from agentkernel_kb.rag.index.arrays import Arithmetic, Scores

K1, B = 1.2, 0.75
"""The usual constants of BM25: how soon more of one word adds nothing, and how much longer chunks are held back.

Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009).
"""

_MOST_COUNTED = 65_535


class TermIndex:
    """Postings by term, and the terms of each slot.

    A slot that is dropped stays in the postings until the index is built anew; whoever ranks leaves it out.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._terms: list[str] = []
        self._slots: list[array[int]] = []
        self._counts: list[array[int]] = []
        self._live: list[int] = []
        self._forward: list[array[int]] = []
        self._lengths: array[int] = array("I")
        self._total = 0
        self._alive = 0
        self._norms: array[float] | None = None

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, counts: Mapping[str, int]) -> None:
        """Add the terms of the next slot."""
        slot = len(self._lengths)
        numbers = array("I")
        length = 0
        for term, count in counts.items():
            number = self._numbers.get(term)
            if number is None:
                number = self._new(term)
            counted = min(count, _MOST_COUNTED)
            self._slots[number].append(slot)
            self._counts[number].append(counted)
            self._live[number] += 1
            numbers.append(number)
            length += counted
        self._forward.append(numbers)
        self._lengths.append(length)
        self._total += length
        self._alive += 1
        self._norms = None

    def drop(self, slot: int) -> None:
        """Take a slot out of what is counted."""
        for number in self._forward[slot]:
            self._live[number] -= 1
        self._total -= self._lengths[slot]
        self._alive -= 1
        self._norms = None

    def terms_of(self, slot: int) -> list[str]:
        """Return the terms of a slot, each once, in the order of their first appearance."""
        return [self._terms[number] for number in self._forward[slot]]

    def count_of(self, term: str, slot: int) -> int:
        """Return how often a slot has a term."""
        from bisect import bisect_left

        number = self._numbers.get(term)
        if number is None:
            return 0
        place = bisect_left(self._slots[number], slot)
        found = place < len(self._slots[number]) and self._slots[number][place] == slot
        return self._counts[number][place] if found else 0

    def length_of(self, slot: int) -> int:
        """Return how many terms a slot has, repeated ones included."""
        return self._lengths[slot]

    def vocabulary(self) -> Iterable[str]:
        """Return the terms that some chunk has."""
        return (term for term, number in self._numbers.items() if self._live[number])

    def knows(self, term: str) -> bool:
        """Tell whether some chunk has a term."""
        number = self._numbers.get(term)
        return number is not None and self._live[number] > 0

    def rarity(self, term: str) -> float:
        """Return how much a term says: `ln(1 + (N - n + ½) / (n + ½))` for n of N chunks; never below 0."""
        number = self._numbers.get(term)
        having = 0 if number is None else self._live[number]
        return math.log1p((self._alive - having + 0.5) / (having + 0.5))

    def scores(self, weights: Mapping[str, float], use: Arithmetic) -> Scores:
        """Return BM25 of each slot over the most that these terms can give, so in [0, 1].

        Args:
            weights: The terms of a query, each with its weight.
            use: The arithmetic.
        """
        scores = use.zeros(len(self._lengths))
        norms = self._norm()
        most = 0.0
        for term, weight in weights.items():
            share = weight * self.rarity(term)
            most += share
            if (number := self._numbers.get(term)) is not None and self._live[number]:
                use.add_term(scores, self._slots[number], self._counts[number], norms, share)
        return use.divided(scores, most) if most > 0 else scores

    def _norm(self) -> array[float]:
        """Return for each slot what stands beside the count below the fraction line of BM25."""
        if self._norms is None:
            usual = (self._total / self._alive) if self._alive and self._total else 1.0
            self._norms = array("f", (K1 * (1 - B + B * length / usual) for length in self._lengths))
        return self._norms

    def _new(self, term: str) -> int:
        number = len(self._terms)
        self._numbers[term] = number
        self._terms.append(term)
        self._slots.append(array("I"))
        self._counts.append(array("H"))
        self._live.append(0)
        return number
