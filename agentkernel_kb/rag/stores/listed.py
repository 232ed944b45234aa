"""What the local stores have in common where they are read: one index in memory, under one lock, and what it lists."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from agentkernel_kb.rag.chunk import Chunk, origin_of
from agentkernel_kb.rag.index.index import ChunkIndex
from agentkernel_kb.rag.stores.arguments import names_of
from agentkernel_kb.rag.values import DocumentSummary
from agentkernel_kb.rag.where import EVERYTHING, Filter, parse_where

T = TypeVar("T")


class ListedStore(ABC):
    """A store that tells what it holds."""

    def __init__(self) -> None:
        self._index = ChunkIndex()
        self._lock = threading.RLock()

    @property
    def dimensions(self) -> int | None:
        """Length of the vectors that it holds; `None` before the first."""
        return self._index.dimensions

    async def list_sources(self) -> list[str]:
        """Return the sources of what it holds, each once, sorted."""

        def listed() -> list[str]:
            table = self._index.table
            return sorted({source for slot in table.slots() if (source := table.sources[slot])})

        return await self._read(listed)

    async def list_documents(self, where: Mapping[str, Any] | Filter | None = None) -> list[DocumentSummary]:
        """Return the documents that have a chunk which meets `where`, by source and id, with the number of such chunks."""
        condition = where if isinstance(where, Filter) else parse_where(where)

        def listed() -> list[DocumentSummary]:
            table = self._index.table
            counts: Counter[str] = Counter()
            first: dict[str, int] = {}
            for slot, taken in enumerate(self._index.mask(condition)):
                if taken:
                    counts[table.document_ids[slot]] += 1
                    first.setdefault(table.document_ids[slot], slot)
            summaries = (
                DocumentSummary(document, table.sources[slot] or "", counts[document], table.metadata(slot))
                for document, slot in first.items()
            )
            return sorted(summaries, key=lambda each: (each.source, each.document_id))

        return await self._read(listed)

    async def held(self, where: Filter = EVERYTHING) -> dict[str, int]:
        """Return how many chunks there are of each source, and of each document without one, that meet a filter."""

        def counted() -> dict[str, int]:
            table, mask = self._index.table, self._index.mask(where)
            slots = (slot for slot, taken in enumerate(mask) if taken)
            return dict(Counter(origin_of(table.sources[slot], table.document_ids[slot]) for slot in slots))

        return await self._read(counted)

    async def owners(self, ids: Iterable[str]) -> dict[str, str]:
        """Return of which source each chunk of these ids is, or of which document where that has none."""

        def found() -> dict[str, str]:
            table = self._index.table
            slots = self._named(frozenset(ids), frozenset(), frozenset())
            return {table.ids[slot]: origin_of(table.sources[slot], table.document_ids[slot]) for slot in slots}

        return await self._read(found)

    async def count(self, where: Mapping[str, Any] | Filter | None = None) -> int:
        """Return how many chunks meet `where`."""
        condition = where if isinstance(where, Filter) else parse_where(where)

        def counted() -> int:
            table = self._index.table
            return self._index.mask(condition).count(1) if condition else table.count

        return await self._read(counted)

    async def chunks(
        self,
        *,
        ids: Sequence[str] | None = None,
        document_ids: Sequence[str] | None = None,
        where: Mapping[str, Any] | Filter | None = None,
    ) -> list[Chunk]:
        """Return the chunks that `ids` or `document_ids` name and that meet `where`, by document and place."""
        named = (names_of("ids", ids) or frozenset(), names_of("document_ids", document_ids) or frozenset())
        condition = where if isinstance(where, Filter) else parse_where(where)

        def found() -> list[Chunk]:
            table = self._index.table
            slots = [slot for slot in self._named(*named, frozenset()) if table.meets(slot, condition)]
            return sorted(self._chunks(slots), key=lambda chunk: (chunk.document_id, chunk.chunk_index, chunk.id))

        return await self._read(found)

    @abstractmethod
    def _refresh(self) -> None:
        """Bring the index up to what is stored, where somebody else may have changed that."""

    @abstractmethod
    def _chunks(self, slots: Sequence[int]) -> list[Chunk]:
        """Return the chunks of slots, in order."""

    async def _run(self, work: Callable[[], T]) -> T:
        """Run something under the lock in a thread, so that the event loop is not blocked."""

        def locked() -> T:
            with self._lock:
                return work()

        return await asyncio.to_thread(locked)

    async def _read(self, work: Callable[[], T]) -> T:
        """Run something that reads, on the index as it is stored now."""

        def current() -> T:
            with self._reading():
                self._refresh()
                return work()

        return await self._run(current)

    def _reading(self) -> AbstractContextManager[object]:
        """Return what a read happens in: what is stored does not change under it."""
        return nullcontext()

    def _named(self, ids: frozenset[str], documents: frozenset[str], sources: frozenset[str]) -> list[int]:
        """Return the slots of chunks that one of the sets names, in order."""
        table = self._index.table
        found = {slot for name in ids if (slot := table.slot_of(name)) is not None}
        for document in documents:
            found.update(table.of_document(document))
        for source in sources:
            found.update(table.of_source(source))
        return sorted(found)
