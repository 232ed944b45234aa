"""Stores as seed 003 describes them: collections of documents, which are written and removed whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import deepcopy
from types import TracebackType
from typing import Any, ClassVar, Self

from agentkernel_kb.errors import AKConfigError, UnsupportedKnowledgeOperationError
from agentkernel_kb.rag.chunk import VectorRecord, VectorSearchResult
from agentkernel_kb.rag.protocols import SearchMode
from agentkernel_kb.rag.scope import only
from agentkernel_kb.rag.stores.arguments import check_records, check_search, names_of
from agentkernel_kb.rag.values import DocumentSummary, SearchHit, fill_ranks
from agentkernel_kb.rag.where import Filter, parse_where

_WIDER = 4


class VectorStoreBase(ABC):
    """A store of collections. Derive from it for a vector database of your own; enter it before it is used.

    `metadata_filter` holds values that a chunk's metadata has to have, all of them.
    """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        return None

    @abstractmethod
    async def create_collection(self, name: str, dimensions: int) -> None:
        """Make a collection for vectors of a length."""

    @abstractmethod
    async def delete_collection(self, name: str) -> None:
        """Remove a collection with all that it holds."""

    @abstractmethod
    async def has_collection(self, name: str) -> bool:
        """Tell whether there is a collection of that name."""

    @abstractmethod
    async def insert(self, collection: str, records: list[VectorRecord]) -> None:
        """Write records."""

    @abstractmethod
    async def delete(self, collection: str, document_id: str) -> None:
        """Remove every record of a document."""

    @abstractmethod
    async def search(
        self, collection: str, query_vector: list[float], top_k: int = 5, metadata_filter: dict[str, Any] | None = None
    ) -> list[VectorSearchResult]:
        """Return at most `top_k` records, nearest first."""

    @abstractmethod
    async def list_documents(self, collection: str, metadata_filter: dict[str, Any] | None = None) -> list[DocumentSummary]:
        """Return the documents of a collection."""


class CollectionStore:
    """One collection of a `VectorStoreBase` as a `VectorStore`. Documents are its unit: chunks are not changed one by one.

    Args:
        store: The store.
        collection: Name of the collection, which is made when it is first written.
    """

    deletes_chunks: ClassVar[bool] = False
    """Documents are replaced and deleted whole, whosever they are."""

    def __init__(self, store: VectorStoreBase, collection: str) -> None:
        self._store, self._collection = store, collection

    async def upsert(self, records: Sequence[VectorRecord]) -> int:
        """Write documents, in place of those of the same ids, and return how many records."""
        return (await self.replace(records))[0]

    async def replace(
        self,
        records: Sequence[VectorRecord],
        *,
        document_ids: Sequence[str] | None = None,
        sources: Sequence[str] | None = None,
    ) -> tuple[int, int]:
        """Write documents, and delete what else there is of these documents or sources; new ones are written first."""
        check_records(records)
        taken = [record for record in records if len(record.embedding)]
        new = {record.document_id for record in taken}
        named = {*(document_ids or ()), *new}
        old = [each for each in await self._listed() if each.document_id in named or each.source in set(sources or ())]
        for document in {each.document_id for each in old} & new:
            await self._store.delete(self._collection, document)
        if taken:
            if not await self._store.has_collection(self._collection):
                await self._store.create_collection(self._collection, len(taken[0].embedding))
            await self._store.insert(self._collection, taken)
        for document in {each.document_id for each in old} - new:
            await self._store.delete(self._collection, document)
        return len(taken), sum(each.chunk_count for each in old)

    async def delete(
        self,
        *,
        ids: Sequence[str] | None = None,
        document_ids: Sequence[str] | None = None,
        where: Mapping[str, Any] | Filter | None = None,
        sources: Sequence[str] | None = None,
    ) -> int:
        """Delete the documents that are named and meet `where`, and return how many chunks they had.

        Raises:
            AKConfigError: No criterion is given, or one is faulty.
            UnsupportedKnowledgeOperationError: Chunks are named.
        """
        condition = where if isinstance(where, Filter) else parse_where(where)
        names_of("ids", ids)
        documents, origins = names_of("document_ids", document_ids), names_of("sources", sources)
        if ids is not None or any(each.key in ("id", "chunk_id") for each in condition.conditions):
            raise UnsupportedKnowledgeOperationError("This store deletes whole documents and no single chunks.")
        if documents is None and origins is None and not condition:
            raise AKConfigError("delete() needs a criterion: document_ids, sources or where.")
        everything = documents is None and origins is None
        gone = [
            each
            for each in await self.list_documents(condition)
            if everything or each.document_id in (documents or ()) or each.source in (origins or ())
        ]
        for each in gone:
            await self._store.delete(self._collection, each.document_id)
        return sum(each.chunk_count for each in gone)

    async def search(
        self,
        *,
        query_vector: Sequence[float] | None,
        query_text: str = "",
        k: int = 5,
        where: Mapping[str, Any] | Filter | None = None,
        mode: SearchMode = "vector",
        score_threshold: float | None = None,
        fetch_k: int | None = None,
        mmr_lambda: float | None = None,
    ) -> list[SearchHit]:
        """Return at most `k` hits, nearest first.

        Raises:
            AKConfigError: An argument is out of range, or other than a search by vectors is asked for.
        """
        check_search(k, mode, score_threshold, fetch_k, mmr_lambda)
        if mode != "vector" or mmr_lambda is not None or query_vector is None:
            raise AKConfigError("This store searches by vectors alone, without mmr_lambda: make knowledge with mode='vector'.")
        condition = where if isinstance(where, Filter) else parse_where(where)
        found = await self.results(query_vector, k, condition)
        hits = [
            SearchHit(
                each.chunk.text, each.score, each.chunk.source, deepcopy(each.chunk.metadata), each.document_id, each.chunk.id
            )
            for each in sorted(found, key=lambda each: (-each.score, each.chunk.id))
        ]
        return fill_ranks(hit for hit in hits if score_threshold is None or (hit.score or 0.0) >= score_threshold)

    async def results(self, vector: Sequence[float], k: int, condition: Filter) -> list[VectorSearchResult]:
        """Return at most `k` results that meet a filter, whatever the store made of it."""
        if not await self._store.has_collection(self._collection):
            return []
        plain, rest = _taken_apart(condition)
        most = k * _WIDER if rest else k
        found = await self._store.search(self._collection, list(vector), most, plain or None)
        return [each for each in found if _meets(each, condition)][:k]

    async def list_sources(self) -> list[str]:
        """Return the sources of what it holds, each once, sorted."""
        return sorted({each.source for each in await self._listed() if each.source})

    async def list_documents(self, where: Mapping[str, Any] | Filter | None = None) -> list[DocumentSummary]:
        """Return the documents whose first chunk meets `where`."""
        condition = where if isinstance(where, Filter) else parse_where(where)
        plain, _ = _taken_apart(condition)
        listed = await self._listed(plain or None)
        return [
            each
            for each in listed
            if condition.matches(each.metadata, document_id=each.document_id, source=each.source or None)
        ]

    async def _listed(self, metadata_filter: dict[str, Any] | None = None) -> list[DocumentSummary]:
        if not await self._store.has_collection(self._collection):
            return []
        return await self._store.list_documents(self._collection, metadata_filter)

    def __repr__(self) -> str:
        return f"CollectionStore({type(self._store).__name__}, {self._collection!r})"


def _taken_apart(condition: Filter) -> tuple[dict[str, Any], bool]:
    """Return the values of metadata that a filter asks for, and whether it asks for more."""
    own = ("id", "chunk_id", "document_id", "source")
    equal = [each for each in condition.conditions if each.operator == "$eq" and each.key not in own and "." not in each.key]
    plain = {each.key: each.operand for each in reversed(equal)}
    return plain, len(plain) < len(condition.conditions)


def _meets(result: VectorSearchResult, condition: Filter) -> bool:
    chunk = result.chunk
    hit = SearchHit(chunk.text, None, chunk.source, chunk.metadata, result.document_id, chunk.id)
    return bool(only([hit], condition))
