"""What the local stores have in common: one index in memory that is changed and searched, whatever keeps the chunks."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, TypeVar

from agentkernel_kb.errors import AKConfigError, KnowledgeStateError
from agentkernel_kb.rag.chunk import VectorRecord, origin_of
from agentkernel_kb.rag.index.analysis import Analysis
from agentkernel_kb.rag.index.arrays import unit
from agentkernel_kb.rag.index.index import Asked, ChunkIndex
from agentkernel_kb.rag.index.table import Metadata
from agentkernel_kb.rag.protocols import SearchMode
from agentkernel_kb.rag.stores.arguments import MODES, check_records, check_search, check_share, names_of
from agentkernel_kb.rag.stores.listed import ListedStore
from agentkernel_kb.rag.stores.rows import Notes, Row, heading_of
from agentkernel_kb.rag.values import SearchHit
from agentkernel_kb.rag.where import EVERYTHING, Filter, parse_where

T = TypeVar("T")


class IndexedStore(ListedStore):
    """A store that ranks with an index in memory.

    Args:
        analysis: How texts become terms.
        vector_share: The vectors' share of a hybrid score, in [0, 1]; the words have the rest.
    """

    takes_filters: ClassVar[bool] = True
    """Every `where` may be a parsed `Filter` too, which says more than a mapping can."""

    modes: ClassVar[tuple[SearchMode, ...]] = MODES
    """How it can rank."""

    def __init__(self, analysis: Analysis | None, vector_share: float) -> None:
        super().__init__()
        check_share("vector_share", vector_share)
        self._analysis = analysis or Analysis()
        self._made_with = self._analysis.name
        self._vector_share = vector_share

    @property
    @abstractmethod
    def generation(self) -> int:
        """Number of the generation that was seen last: another one where the corpus was made anew."""

    async def upsert(self, records: Sequence[VectorRecord]) -> int:
        """Insert records, or replace those of the same chunk id, and return how many.

        Raises:
            AKConfigError: A vector is of another length than those that are there. Then nothing is changed.
        """
        return (await self.replace(records))[0]

    async def replace(
        self,
        records: Sequence[VectorRecord],
        *,
        document_ids: Sequence[str] | None = None,
        sources: Sequence[str] | None = None,
    ) -> tuple[int, int]:
        """Write records and delete what else there is of these documents or sources, in one step for whoever searches.

        Returns:
            How many were written, and how many were deleted.

        Raises:
            AKConfigError: As for `upsert`.
        """
        return await self.replace_noted(records, document_ids=document_ids, sources=sources)

    async def replace_noted(
        self,
        records: Sequence[VectorRecord],
        *,
        document_ids: Sequence[str] | None = None,
        sources: Sequence[str] | None = None,
        where: Filter = EVERYTHING,
        scope: str = "",
        noted: Mapping[str, str] | None = None,
        generation: int | None = None,
    ) -> tuple[int, int]:
        """`replace` within a filter, and note something about sources in the same step.

        Args:
            records: What to write.
            document_ids: Documents of which nothing else is to be left.
            sources: Sources of which nothing else is to be left.
            where: What is deleted meets this.
            scope: Name of the scope that the notes are of.
            noted: Notes by source. Those of other sources that are changed here are thrown away.
            generation: The generation that this is meant for, as `state` told; `None` for any.

        Raises:
            AKConfigError: As for `upsert`.
            KnowledgeStateError: There is another generation by now.
        """
        documents, origins = names_of("document_ids", document_ids), names_of("sources", sources)

        def gone() -> list[int]:
            slots = self._named(frozenset(), documents or frozenset(), origins or frozenset())
            return [slot for slot in slots if self._index.table.meets(slot, where)]

        rows = await asyncio.to_thread(self._rows, records)
        return await self._run(lambda: self._change(rows, gone, Notes(scope, noted, generation)))

    async def notes(self, scope: str = "") -> dict[str, str]:
        """Return what is noted about sources in a scope."""
        return await self._read(lambda: self._noted(scope))

    async def delete(
        self,
        *,
        ids: Sequence[str] | None = None,
        document_ids: Sequence[str] | None = None,
        where: Mapping[str, Any] | Filter | None = None,
        sources: Sequence[str] | None = None,
        scope: str = "",
    ) -> int:
        """Delete the chunks that `ids`, `document_ids` or `sources` name and that meet `where`, and return how many.

        What is noted of their sources in `scope` goes with them.

        Raises:
            AKConfigError: No criterion is given, or one is faulty.
        """
        named = [names_of("ids", ids), names_of("document_ids", document_ids), names_of("sources", sources)]
        condition = where if isinstance(where, Filter) else parse_where(where)
        if all(each is None for each in named) and not condition:
            raise AKConfigError("delete() needs a criterion: ids, document_ids, sources or where.")

        def gone() -> list[int]:
            table = self._index.table
            everywhere = all(each is None for each in named)
            slots = table.slots() if everywhere else self._named(*(each or frozenset() for each in named))
            return [slot for slot in slots if table.meets(slot, condition)]

        return (await self._run(lambda: self._change([], gone, Notes(scope, {}))))[1]

    async def search(
        self,
        *,
        query_vector: Sequence[float] | None,
        query_text: str,
        k: int = 5,
        where: Mapping[str, Any] | Filter | None = None,
        mode: SearchMode = "vector",
        score_threshold: float | None = None,
        fetch_k: int | None = None,
        mmr_lambda: float | None = None,
    ) -> list[SearchHit]:
        """Return at most `k` hits with scores in [0, 1], best first, ties by chunk id; what has nothing in common is none.

        Raises:
            AKConfigError: An argument is out of range, or the vector is missing or of another length than those stored.
        """
        check_search(k, mode, score_threshold, fetch_k, mmr_lambda)
        condition = where if isinstance(where, Filter) else parse_where(where)

        def find() -> list[SearchHit]:
            if mode != "vector":
                self.check_analysis()
            return self._hits(
                self._index.search(
                    Asked(
                        k=k,
                        mode=mode,
                        terms=lambda held: self._analysis.question(query_text, held),
                        vector=query_vector,
                        where=condition,
                        floor=score_threshold or 0.0,
                        vector_share=self._vector_share,
                        fetch_k=fetch_k,
                        mmr_lambda=mmr_lambda,
                    )
                )
            )

        return await self._read(find)

    @abstractmethod
    async def make(self) -> None:
        """Make the corpus where there is none, so that it has a generation."""

    @abstractmethod
    async def fingerprint(self) -> dict[str, Any]:
        """Return what was noted with `note_fingerprint`: under which model and chunking the corpus was made."""

    @abstractmethod
    async def note_fingerprint(self, fingerprint: Mapping[str, Any]) -> None:
        """Note under which model and chunking the corpus is made. What is noted already stays."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[object]:
        """Return what a change happens in: all of it, or nothing where the block raises."""

    @abstractmethod
    def _keep(self, rows: Sequence[Row], gone: Sequence[str]) -> None:
        """Store rows, in place of those of the same ids, and remove those of other ids."""

    @abstractmethod
    def _note_sources(self, notes: Notes, touched: Iterable[str]) -> None:
        """Throw away what is noted about touched sources, and note what is given."""

    @abstractmethod
    def _noted(self, scope: str) -> dict[str, str]:
        """Return what is noted in a scope."""

    @abstractmethod
    def _kept(self) -> None:
        """Note that what `_keep` stored is durable, before the index follows."""

    def _rows(self, records: Sequence[VectorRecord]) -> list[Row]:
        """Return the records as rows; of two with one id the last counts."""
        check_records(records)
        rows = {record.chunk.id: record for record in records}
        return [self._row(name, record) for name, record in rows.items()]

    def _row(self, name: str, record: VectorRecord) -> Row:
        chunk = record.chunk
        counts = self._analysis.counts(chunk.text, heading_of(chunk))
        tallies = array("I", counts.values())
        return Row(name, chunk, Metadata.of(chunk.metadata), tuple(counts), tallies, unit(record.embedding))

    def _change(self, rows: Sequence[Row], gone: Callable[[], Iterable[int]], notes: Notes | None = None) -> tuple[int, int]:
        """Store rows and remove what `gone` returns of the rest, and do the same to the index once that is durable."""
        with self._transaction():
            self._refresh()
            self._check_generation(notes)
            for row in rows[:1]:
                self.check_analysis()
                self._index.check_vector(row.vector)
            written = {row.id for row in rows}
            dropped = [slot for slot in gone() if self._index.table.ids[slot] not in written]
            self._keep(rows, [self._index.table.ids[slot] for slot in dropped])
            self._note_sources(notes or Notes(), self._touched(rows, dropped))
        self._kept()
        for slot in dropped:
            self._index.drop(slot)
        for row in rows:
            self._put(row)
        if self._index.is_sparse():
            self._rebuild()
        return len(rows), len(dropped)

    def _check_generation(self, notes: Notes | None) -> None:
        if notes is not None and notes.generation not in (None, self.generation):
            raise KnowledgeStateError("The corpus was indexed anew meanwhile, and nothing more is written to what it was.")

    def check_analysis(self) -> None:
        """Raise `AKConfigError` where what was last read of the corpus has terms that this store does not make."""
        if self._made_with != self._analysis.name:
            raise AKConfigError(
                f"The corpus was indexed with the analysis '{self._made_with}', and this store has '{self._analysis.name}': "
                "open it with the same language and extras, or make it anew with reindex()."
            )

    def _touched(self, rows: Iterable[Row], dropped: Iterable[int]) -> set[str]:
        """Return the origins that a change concerns, those of passages in whose place others are written among them."""
        table = self._index.table
        written = {origin_of(row.chunk.source, row.chunk.document_id) for row in rows}
        replaced = (slot for row in rows if (slot := table.slot_of(row.id)) is not None)
        return written | {origin_of(table.sources[slot], table.document_ids[slot]) for slot in (*dropped, *replaced)}

    def _put(self, row: Row) -> int:
        chunk = row.chunk
        return self._index.put(row.id, chunk.document_id, chunk.source, row.metadata, row.counts, row.vector)

    def _rebuild(self) -> None:
        """Build the index anew without the slots of what is gone."""
        old, self._index = self._index, ChunkIndex(self._index.dimensions)
        for slot in old.table.slots():
            self._moved(slot, old.copy_to(self._index, slot))

    @abstractmethod
    def _moved(self, old: int, new: int) -> None:
        """Note that a chunk has another slot now."""

    def _hits(self, found: Sequence[tuple[int, float]]) -> list[SearchHit]:
        chunks = self._chunks([slot for slot, _ in found])
        return [
            SearchHit(chunk.text, score, chunk.source, chunk.metadata, chunk.document_id, chunk.id, rank)
            for rank, (chunk, (_, score)) in enumerate(zip(chunks, found, strict=True), 1)
        ]
