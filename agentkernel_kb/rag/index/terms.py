"""The words of all chunks: which chunk has which how often, from either side, and what is counted of them for a search."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping

from agentkernel_kb.errors import KnowledgeDependencyError
from agentkernel_kb.lexical.bm25 import rarity
from agentkernel_kb.lexical.spelling import Lexicon, nearest_first
from agentkernel_kb.rag.index.arrays import Arithmetic, Scores, Selected

K1, B = 1.2, 0.75
"""The usual constants of BM25: how soon more of one word adds nothing, and how much longer chunks are held back.

Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009).
"""

_MOST_COUNTED = 65_535
_MOST_MEANT = 2


class TermIndex:
    """Postings by term, and the terms of each slot.

    A slot that is dropped stays in the postings until the index is built anew; whoever ranks leaves it out.
    """

    def __init__(self) -> None:
        self.lengths: array[int] = array("I")
        self.total = 0
        self._numbers: dict[str, int] = {}
        self._terms: list[str] = []
        self._slots: list[array[int]] = []
        self._counts: list[array[int]] = []
        self._gone: Counter[int] = Counter()
        self._forward: list[array[int]] = []
        self._lexicon: Lexicon | None = None
        self._learnt = 0

    def __len__(self) -> int:
        return len(self.lengths)

    def add(self, counts: Mapping[str, int]) -> None:
        """Add the terms of the next slot."""
        slot = len(self.lengths)
        counted = counts.values()
        if max(counted, default=0) > _MOST_COUNTED:
            counted = [min(count, _MOST_COUNTED) for count in counted]
        known = self._numbers
        numbers = array("I", [known[term] if term in known else self._new(term) for term in counts])
        for number, count in zip(numbers, counted, strict=True):
            self._slots[number].append(slot)
            self._counts[number].append(count)
        self._forward.append(numbers)
        self.lengths.append(sum(counted))
        self.total += self.lengths[slot]

    def drop(self, slot: int) -> None:
        """Take a slot out of what is counted."""
        self._gone.update(self._forward[slot])
        self.total -= self.lengths[slot]

    def counts_of(self, slot: int) -> Iterator[tuple[str, int]]:
        """Yield the terms of a slot, each once, in the order of their first appearance, with how often it has each."""
        for number in self._forward[slot]:
            yield self._terms[number], self._counts[number][bisect_left(self._slots[number], slot)]

    def length_of(self, slot: int) -> int:
        """Return how many terms a slot has, repeated ones included."""
        return self.lengths[slot]

    def postings(self, term: str) -> tuple[array[int], array[int]] | None:
        """Return the slots that have or had a term, and how often each; `None` where there is no such term."""
        number = self._numbers.get(term)
        return None if number is None else (self._slots[number], self._counts[number])

    def alive(self, term: str) -> int:
        """Return how many slots have a term, those that are gone left out."""
        number = self._numbers.get(term)
        return 0 if number is None else len(self._slots[number]) - self._gone[number]

    def near(self, term: str) -> list[tuple[int, str]]:
        """Return the terms that a misspelled one may be meant for, those of slots that are gone included."""
        if self._lexicon is None:
            try:
                self._lexicon = Lexicon()
            except KnowledgeDependencyError:
                return []  # Words are taken as they are spelt.
        for number in range(self._learnt, len(self._terms)):
            self._lexicon.add(self._terms[number])
        self._learnt = len(self._terms)
        return self._lexicon.near(term)

    def _new(self, term: str) -> int:
        number = len(self._terms)
        self._numbers[term] = number
        self._terms.append(term)
        self._slots.append(array("I"))
        self._counts.append(array("H"))
        return number


class Population:
    """What is counted of the chunks that a search may find, and of no others: these have no share in its scores.

    It holds as long as nothing is added or dropped.

    Args:
        terms: The words of all chunks.
        use: The arithmetic.
        selected: The chunks; `None` for all that are alive.
        count: How many they are.
    """

    def __init__(self, terms: TermIndex, use: Arithmetic, selected: Selected | None, count: int) -> None:
        self._terms, self._use, self._selected = terms, use, selected
        self.count = count
        total = terms.total if selected is None else use.total(terms.lengths, selected)
        usual = total / count if count and total else 1.0
        self._norms: Scores = use.norms(terms.lengths, K1 * (1 - B), K1 * B / usual)
        self._having: dict[str, int] = {}

    def having(self, term: str) -> int:
        """Return how many of the chunks have a term."""
        if self._selected is None:
            return self._terms.alive(term)
        known = self._having.get(term)
        if known is None:
            found = self._terms.postings(term)
            known = self._having[term] = self._use.within(found[0], self._selected) if found else 0
        return known

    def rarity(self, term: str) -> float:
        """Return how much a term says, above 0."""
        return rarity(self.count, self.having(term))

    def nearest(self, term: str) -> list[str]:
        """Return the terms of the chunks that a misspelled one was probably meant for: the nearest, at most two."""
        near = [each for each in self._terms.near(term) if self.having(each[1])]
        counts = {other: self.having(other) for _, other in near}
        return [other for edits, other in nearest_first(term, near, counts)[:_MOST_MEANT] if edits == min(near)[0]]

    def add(self, scores: Scores, weights: Mapping[str, float]) -> float:
        """Add what BM25 gives each slot for weighted terms, and return the most that it can give for them."""
        most = 0.0
        for term, weight in weights.items():
            share = weight * self.rarity(term)
            most += share
            if (found := self._terms.postings(term)) is not None:
                self._use.add_term(scores, *found, self._norms, share)
        return most
