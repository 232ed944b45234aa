"""The index of a corpus in memory, which both local stores rank with: words, vectors and filters over slots.

It holds no texts. It is not safe for two threads at once; a store guards it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag.index.arrays import Arithmetic, Scores, arithmetic, unit
from agentkernel_kb.rag.index.diversity import diverse
from agentkernel_kb.rag.index.table import ChunkTable, Metadata
from agentkernel_kb.rag.index.terms import TermIndex
from agentkernel_kb.rag.protocols import SearchMode
from agentkernel_kb.rag.where import Filter

Expansion = Callable[[TermIndex, Mapping[str, float], Sequence[int]], Mapping[str, float]]
"""Returns the weights of a query's terms and of others that the best slots for it suggest."""

_REBUILT_FROM = 1_000
_FEEDBACK = 10


@dataclass(frozen=True, slots=True)
class Asked:
    """A search.

    Attributes:
        k: Most hits.
        mode: How to rank.
        terms: The terms of the question, each with its weight.
        vector: The vector of the question; none where the mode does not need it.
        where: What hits have to meet.
        floor: The least score of a hit.
        vector_share: The share of the vectors' score in hybrid mode, in [0, 1]; the words have the rest.
        fetch_k: How many candidates diversity chooses from.
        mmr_lambda: Relevance against diversity, in [0, 1]; `None` for relevance alone.
        expansion: What widens the question's terms by those of its best chunks.
    """

    k: int
    mode: SearchMode
    terms: Mapping[str, float]
    vector: Sequence[float] | None
    where: Filter
    floor: float
    vector_share: float
    fetch_k: int | None = None
    mmr_lambda: float | None = None
    expansion: Expansion | None = None


class ChunkIndex:
    """Slots with their identity, words and vectors.

    Args:
        dimensions: Length of a vector, where it is known; else the first one's.
        use: The arithmetic; numpy's where it is installed.
    """

    def __init__(self, dimensions: int | None = None, use: Arithmetic | None = None) -> None:
        self.dimensions = dimensions
        self.table = ChunkTable()
        self.terms = TermIndex()
        self._vectors: array[float] = array("f")
        self._use = use or arithmetic()

    def check_vector(self, vector: Sequence[float]) -> None:
        """Check that a vector goes with those that are there.

        Raises:
            AKConfigError: It is of another length. The message names both.
        """
        if self.dimensions is not None and len(vector) and len(vector) != self.dimensions:
            raise AKConfigError(
                f"The index holds vectors of {self.dimensions} dimensions, and this one has {len(vector)}: "
                "use the embedder that the index was built with, or index anew."
            )

    def put(
        self,
        chunk_id: str,
        document_id: str,
        source: str | None,
        metadata: Metadata,
        counts: Mapping[str, int],
        vector: array[float],
    ) -> int:
        """Insert a chunk, in place of any of the same id, and return its slot. Its vector is one that `unit` returned.

        Raises:
            AKConfigError: Its vector is of another length than the others.
        """
        self.check_vector(vector)
        if self.dimensions is None and len(vector):
            self.dimensions = len(vector)
            self._vectors.extend([0.0] * (len(self.table) * self.dimensions))
        if (old := self.table.slot_of(chunk_id)) is not None:
            self.drop(old)
        slot = self.table.add(chunk_id, document_id, source, metadata)
        self.terms.add(counts)
        if self.dimensions is not None:
            self._vectors.extend(vector if len(vector) else array("f", bytes(4 * self.dimensions)))
        return slot

    def drop(self, slot: int) -> None:
        """Take a chunk out; its slot is not used again."""
        self.table.drop(slot)
        self.terms.drop(slot)

    def copy_to(self, other: ChunkIndex, slot: int) -> int:
        """Insert a chunk of this index into another and return its slot there."""
        table, terms = self.table, self.terms
        counts = {term: terms.count_of(term, slot) for term in terms.terms_of(slot)}
        vector = self.vector(slot) if self.dimensions else array("f")
        return other.put(table.ids[slot], table.document_ids[slot], table.sources[slot], table.held(slot), counts, vector)

    def is_sparse(self) -> bool:
        """Tell whether so many chunks are gone that the index is better built anew."""
        return len(self.table) > _REBUILT_FROM and self.table.count < len(self.table) * 4 // 5

    def mask(self, where: Filter) -> bytearray:
        """Return for each slot 1 where it is alive and meets the filter, else 0. The caller must not change it."""
        return self.table.mask(where, self._use)

    def search(self, asked: Asked) -> list[tuple[int, float]]:
        """Return slots with their scores in [0, 1], best first.

        Raises:
            AKConfigError: The question's vector is of another length than the others, or is missing.
        """
        mask = self.mask(asked.where)
        scores = self._scores(asked, mask)
        most = asked.k if asked.mmr_lambda is None else (asked.fetch_k or max(4 * asked.k, 20))
        found = self._use.best(scores, mask, asked.floor, most, self.table.ids.__getitem__)
        ranked = [(slot, min(1.0, float(scores[slot]))) for slot in found]
        if asked.mmr_lambda is None:
            return ranked
        return diverse(ranked, asked.k, asked.mmr_lambda, self._alike)

    def _scores(self, asked: Asked, mask: bytearray) -> Scores:
        if asked.mode == "vector":
            return self._by_vector(asked)
        words = self._by_words(asked, mask)
        if asked.mode == "keyword" or asked.vector_share == 0 or self.dimensions is None:
            return words
        return self._use.mixed(self._by_vector(asked), asked.vector_share, words, 1 - asked.vector_share)

    def _by_vector(self, asked: Asked) -> Scores:
        if asked.vector is None:
            raise AKConfigError(f"Searching in {asked.mode} mode needs the vector of the question.")
        if self.dimensions is None:
            return self._use.zeros(len(self.table))
        self.check_vector(asked.vector)
        return self._use.cosines(self._vectors, unit(asked.vector), len(self.table))

    def _by_words(self, asked: Asked, mask: bytearray) -> Scores:
        scores = self.terms.scores(asked.terms, self._use)
        if asked.expansion is None:
            return scores
        best = self._use.best(scores, mask, 0.0, _FEEDBACK, self.table.ids.__getitem__)
        wider = asked.expansion(self.terms, asked.terms, best)
        return scores if wider is asked.terms else self.terms.scores(wider, self._use)

    def _alike(self, first: int, second: int) -> float:
        """Return how alike two chunks are, in [0, 1]: by their vectors, or by the terms that they share."""
        if self.dimensions:
            one, other = self.vector(first), self.vector(second)
            return max(0.0, sum(map(float.__mul__, one, other)))
        mine, theirs = set(self.terms.terms_of(first)), set(self.terms.terms_of(second))
        return len(mine & theirs) / (len(mine | theirs) or 1)

    def vector(self, slot: int) -> array[float]:
        """Return the vector of a slot; zeros where it has none."""
        size = self.dimensions or 0
        return self._vectors[slot * size : (slot + 1) * size]
