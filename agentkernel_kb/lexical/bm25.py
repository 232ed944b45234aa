"""A small index in memory that ranks texts by the terms that they share with a query: BM25, with fields.

The formula is that of Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), sections 3.2 and
3.6 (fields are weighted before frequency saturates). The rarity of a term is ln(1 + (N - n + 0.5) / (n + 0.5)), which stays
above zero in an index of a few texts, where most terms stand in most of them.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

from agentkernel_kb.errors import AKConfigError

TermWeights = Mapping[str, float]


class Ranked(NamedTuple):
    """What was found.

    Attributes:
        id: Of the text.
        score: From 0 to below 1: how much of the weight of the query's terms the text has.
    """

    id: str
    score: float


class BM25Index:
    """Ranks texts, taken apart into terms by the caller. Memory grows with the terms of the texts, and nothing is read twice.

    Args:
        k1: How late more of the same term stops to count, at least 0.
        b: How much the length of a text counts, from 0 (not at all) to 1.
        weights: How much each field counts; 1 for one that is not named, nothing for a field of weight 0.

    Raises:
        AKConfigError: A setting is out of its range.
    """

    def __init__(self, *, k1: float = 1.2, b: float = 0.5, weights: Mapping[str, float] | None = None) -> None:
        if not (k1 >= 0 and 0 <= b <= 1 and all(weight >= 0 for weight in (weights or {}).values())):
            raise AKConfigError("BM25Index takes k1 ≥ 0, b from 0 to 1, and weights ≥ 0.")
        self._k1, self._b, self._weights = k1, b, dict(weights or {})
        self._numbers: dict[str, int] = {}
        self._ids: list[str] = []
        self._lengths: list[float] = []
        self._average: float | None = None
        self._postings: dict[str, list[tuple[int, float]]] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, identifier: object) -> bool:
        return identifier in self._numbers

    def add(self, identifier: str, fields: Mapping[str, Iterable[str] | TermWeights]) -> None:
        """Add a text.

        Args:
            identifier: Of the text.
            fields: The terms of each field, or each term with its frequency.

        Raises:
            AKConfigError: There is a text of that id.
        """
        if identifier in self._numbers:
            raise AKConfigError(f"The index has a text '{identifier}'.")
        number = self._numbers[identifier] = len(self._ids)
        frequencies = self._frequencies(fields)
        self._ids.append(identifier)
        self._lengths.append(math.fsum(frequencies.values()))
        self._average = None
        for term, frequency in frequencies.items():
            self._postings.setdefault(term, []).append((number, frequency))

    def rank(self, query: Iterable[str] | TermWeights, k: int = 10) -> list[Ranked]:
        """Return the `k` texts that have most of the query's terms, the best first, ties by id.

        Args:
            query: Terms, each counted once, or each term with how much it counts.
            k: Most to return; none for 0 and less.
        """
        found = self.scores(query)
        best = heapq.nsmallest(max(k, 0), found.items(), key=lambda item: (-item[1], item[0]))
        return [Ranked(identifier, score) for identifier, score in best]

    def scores(self, query: Iterable[str] | TermWeights) -> dict[str, float]:
        """Return the score of every text that has a term of the query; see `Ranked` for what it means."""
        wanted = cast("TermWeights", query) if isinstance(query, Mapping) else dict.fromkeys(query, 1.0)
        weights = {term: weight * self.rarity(term) for term, weight in wanted.items() if weight > 0}
        whole = math.fsum(weights.values())
        found: dict[int, float] = {}
        for term, weight in weights.items():
            for number, frequency in self._postings.get(term, ()):
                found[number] = found.get(number, 0.0) + weight * self._saturated(frequency, number)
        return {self._ids[number]: round(score / whole, 12) for number, score in found.items()}

    def rarity(self, term: str) -> float:
        """Return how much a term tells, above 0: the more, the fewer texts have it; the most, where none has."""
        return rarity(len(self._ids), len(self._postings.get(term, ())))

    def _frequencies(self, fields: Mapping[str, Iterable[str] | TermWeights]) -> dict[str, float]:
        frequencies: dict[str, float] = {}
        for field, terms in fields.items():
            weight = self._weights.get(field, 1.0)
            for term, count in (cast("TermWeights", terms) if isinstance(terms, Mapping) else Counter(terms)).items():
                if weight * count > 0:
                    frequencies[term] = frequencies.get(term, 0.0) + weight * count
        return frequencies

    def _saturated(self, frequency: float, number: int) -> float:
        if self._average is None:
            self._average = math.fsum(self._lengths) / len(self._lengths)
        return frequency / (frequency + self._k1 * (1 - self._b + self._b * self._lengths[number] / self._average))


def rarity(texts: int, having: int) -> float:
    """Return how much a term tells that so many of the texts have: `ln(1 + (N - n + ½) / (n + ½))`, which is above 0."""
    return math.log1p((texts - having + 0.5) / (having + 0.5))
