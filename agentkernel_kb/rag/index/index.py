"""The index of a corpus in memory, which both local stores rank with: words, vectors and filters over slots.

It holds no texts. It is not safe for two threads at once; a store guards it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag.index.arrays import Arithmetic, Scores, Selected, Values, arithmetic, unit
from agentkernel_kb.rag.index.diversity import diverse
from agentkernel_kb.rag.index.feedback import FEEDBACK_CHUNKS, FEEDBACK_SHARE, suggested
from agentkernel_kb.rag.index.table import ChunkTable, Metadata
from agentkernel_kb.rag.index.terms import Population, TermIndex
from agentkernel_kb.rag.index.vectors import VectorBuffer
from agentkernel_kb.rag.protocols import SearchMode
from agentkernel_kb.rag.where import Filter

Question = Callable[[Population], Mapping[str, float]]
"""Returns the terms of a question with their weights, given what may be found."""

_REBUILT_FROM = 1_000
_MOST_SELECTIONS = 16


@dataclass(frozen=True, slots=True)
class Asked:
    """A search.

    Attributes:
        k: Most hits.
        mode: How to rank.
        terms: Returns the terms of the question; not called in vector mode.
        vector: The vector of the question; none where the mode does not need it.
        where: What hits have to meet.
        floor: The least score of a hit.
        vector_share: The share of the vectors' score in hybrid mode, in [0, 1]; the words have the rest.
        fetch_k: How many candidates diversity chooses from.
        mmr_lambda: Relevance against diversity, in [0, 1]; `None` for relevance alone.
    """

    k: int
    mode: SearchMode
    terms: Question
    vector: Sequence[float] | None
    where: Filter
    floor: float
    vector_share: float
    fetch_k: int | None = None
    mmr_lambda: float | None = None

    @property
    def candidates(self) -> int:
        """How many of the best are looked for: more than are wanted where diversity chooses among them."""
        return self.k if self.mmr_lambda is None else (self.fetch_k or max(4 * self.k, 20))


@dataclass(frozen=True, slots=True)
class _Selection:
    """The chunks that a search may find, and what is counted of them."""

    chunks: Selected
    held: Population


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
        self._vectors = VectorBuffer()
        self._use = use or arithmetic()
        self._selections: dict[str, _Selection] = {}

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
            self._vectors.extend_zeros(len(self.table) * self.dimensions)
        if (old := self.table.slot_of(chunk_id)) is not None:
            self.drop(old)
        slot = self.table.add(chunk_id, document_id, source, metadata)
        self.terms.add(counts)
        self._selections.clear()
        if len(vector):
            self._vectors.extend(vector)
        else:
            self._vectors.extend_zeros(self.dimensions or 0)
        return slot

    def drop(self, slot: int) -> None:
        """Take a chunk out; its slot is not used again."""
        self.table.drop(slot)
        self.terms.drop(slot)
        self._selections.clear()

    def copy_to(self, other: ChunkIndex, slot: int) -> int:
        """Insert a chunk of this index into another and return its slot there."""
        table, terms = self.table, self.terms
        counts = dict(terms.counts_of(slot))
        vector = self.vector(slot) if self.dimensions else array("f")
        return other.put(table.ids[slot], table.document_ids[slot], table.sources[slot], table.held(slot), counts, vector)

    def is_sparse(self) -> bool:
        """Tell whether so many chunks are gone that the index is better built anew."""
        return len(self.table) > _REBUILT_FROM and self.table.count < len(self.table) * 4 // 5

    def mask(self, where: Filter) -> bytes | bytearray:
        """Return for each slot 1 where it is alive and meets the filter, else 0. The caller must not change it."""
        return self.table.mask(where)

    def vector(self, slot: int) -> array[float]:
        """Return the vector of a slot; zeros where it has none."""
        size = self.dimensions or 0
        return self._vectors.part(slot * size, (slot + 1) * size)

    def search(self, asked: Asked) -> list[tuple[int, float]]:
        """Return slots with their scores in [0, 1], best first, of equal ones the one whose id comes first.

        What the filter leaves out has no share in the scores: neither in how rare a word is, nor in how long a usual chunk is,
        nor in what a misspelled word is taken for, nor in the terms that the best chunks suggest.

        Raises:
            AKConfigError: The question's vector is of another length than the others, or is missing.
        """
        by_vector = self._vector_share(asked)
        vector = self._asked_vector(asked) if by_vector else None
        if vector is None and asked.mode == "vector":
            return []
        found = self._found(asked, self._selection(asked.where), vector, by_vector)
        ids = self.table.ids
        ranked = sorted(found, key=lambda each: (-each[1], ids[each[0]]))[: asked.candidates]
        if asked.mmr_lambda is None:
            return ranked
        return diverse(ranked, asked.k, asked.mmr_lambda, self._alike)

    def _found(
        self, asked: Asked, selection: _Selection, vector: array[float] | None, by_vector: float
    ) -> list[tuple[int, float]]:
        """Return the best slots and their scores, in no order; more than are wanted where it is a close thing."""
        use, slots = self._use, selection.chunks.slots
        words: Scores = self._by_words(asked, selection) if by_vector < 1 else use.zeros(len(self.table))
        values: Values = use.times(use.taken(words, slots), 1 - by_vector)
        if vector is not None:
            if by_vector < 1:
                slots, values = use.reaching(slots, values, by_vector, asked.candidates)
            values = use.plus(values, use.cosines(self._vectors.numbers, vector, slots), by_vector)
        best = use.best(slots, values, asked.floor, asked.candidates)
        if vector is not None:
            best = self._exactly([slot for slot, _ in best], words, vector, by_vector)
        return [(slot, min(1.0, score)) for slot, score in best if score > 0 and score >= asked.floor]

    def _exactly(self, slots: Sequence[int], words: Scores, vector: array[float], by_vector: float) -> list[tuple[int, float]]:
        """Return slots with their scores, where `_found` has estimated them."""
        likeness = self._use.exact(self._vectors.numbers, vector, slots)
        scores = (float(words[slot]) * (1 - by_vector) + near * by_vector for slot, near in zip(slots, likeness, strict=True))
        return list(zip(slots, scores, strict=True))

    def _selection(self, where: Filter) -> _Selection:
        """Return what a search may find, as long as nothing is changed the same."""
        name = repr(where)
        selection = self._selections.get(name)
        if selection is None:
            if len(self._selections) >= _MOST_SELECTIONS:
                self._selections.clear()
            mask = bytes(self.mask(where))
            chunks = Selected(mask, self._use.slots(mask))
            held = Population(self.terms, self._use, chunks if where else None, len(chunks.slots))
            selection = self._selections[name] = _Selection(chunks, held)
        return selection

    def _vector_share(self, asked: Asked) -> float:
        """Return the share of the vectors in a score."""
        return {"vector": 1.0, "keyword": 0.0, "hybrid": asked.vector_share if self.dimensions is not None else 0.0}[asked.mode]

    def _asked_vector(self, asked: Asked) -> array[float] | None:
        """Return the question's vector; `None` where there are no others."""
        if asked.vector is None:
            raise AKConfigError(f"Searching in {asked.mode} mode needs the vector of the question.")
        if self.dimensions is None:
            return None
        self.check_vector(asked.vector)
        return unit(asked.vector)

    def _by_words(self, asked: Asked, selection: _Selection) -> Scores:
        """Return BM25 of each slot over the most that the question's terms can give, so in [0, 1]."""
        use, held, slots = self._use, selection.held, selection.chunks.slots
        weights = asked.terms(held)
        scores = use.zeros(len(self.table))
        most = held.add(scores, weights)
        best = use.best(slots, use.taken(scores, slots), 0.0, FEEDBACK_CHUNKS)
        ids = self.table.ids
        ordered = sorted(best, key=lambda each: (-each[1], ids[each[0]]))
        if extra := suggested(self.terms, held, [slot for slot, _ in ordered]):
            kept = (1 - FEEDBACK_SHARE) / sum(weights.values())
            scores = use.times(scores, kept)
            most = most * kept + held.add(scores, extra)
        return use.times(scores, 1 / most) if most else scores

    def _alike(self, first: int, second: int) -> float:
        """Return how alike two chunks are, in [0, 1]: by their vectors, or by the terms that they share."""
        if self.dimensions:
            one, other = self.vector(first), self.vector(second)
            return max(0.0, sum(map(float.__mul__, one, other)))
        mine, theirs = ({term for term, _ in self.terms.counts_of(slot)} for slot in (first, second))
        return len(mine & theirs) / (len(mine | theirs) or 1)
