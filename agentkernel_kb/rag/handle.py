"""KnowledgeBase: seed 003's handle on one collection. The contract of the router has that name too, and is another class."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, cast

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag.chunk import Chunk, VectorRecord, VectorSearchResult
from agentkernel_kb.rag.collections import CollectionStore, VectorStoreBase
from agentkernel_kb.rag.content import DataBlock, TextBlock
from agentkernel_kb.rag.embedding import Embedding
from agentkernel_kb.rag.ledger import StoredLedger
from agentkernel_kb.rag.protocols import AnyEmbedder
from agentkernel_kb.rag.scope import Scope
from agentkernel_kb.rag.stores.arguments import check_hits, check_share
from agentkernel_kb.rag.stores.indexed import IndexedStore
from agentkernel_kb.rag.values import DocumentSummary

_COLLECTION = "collection"

Query = str | TextBlock | DataBlock


class KnowledgeBase:
    """An embedding model, a store and a collection, bound together. It neither opens nor closes the store.

    Args:
        name: Its name.
        description: What it holds.
        embedding_model: What makes vectors; with `supports_multimodal = True` it is given data blocks too.
        vector_store: A `VectorStoreBase`, or one of the local stores, where the collection is noted in the metadata.
        collection: Name of the collection; it is made when it is first written.
        metadata_filter: Values that are stamped on each chunk and hold on every search and listing.

    Raises:
        AKConfigError: The store is neither.
    """

    def __init__(
        self,
        name: str,
        description: str,
        embedding_model: AnyEmbedder,
        vector_store: VectorStoreBase | IndexedStore,
        collection: str,
        metadata_filter: Mapping[str, Any] | None = None,
    ) -> None:
        self.name, self.description, self.collection = name, description, collection
        self._embedding = Embedding(embedding_model)
        bounds = dict(metadata_filter or {})
        self._store: CollectionStore | IndexedStore
        if isinstance(cast("object", vector_store), VectorStoreBase):
            self._store = CollectionStore(cast("VectorStoreBase", vector_store), collection)
        elif isinstance(vector_store, IndexedStore):
            self._store, bounds[_COLLECTION] = vector_store, collection
        else:
            raise AKConfigError(f"A vector_store is a VectorStoreBase or a local store, not {type(vector_store).__name__}.")
        self._scope = Scope(bounds)

    async def insert_document(
        self, chunks: Sequence[Chunk], document_id: str | None = None, document_metadata: Mapping[str, Any] | None = None
    ) -> str:
        """Embed and write chunks as one document, in place of one of the same id.

        Args:
            chunks: The chunks, which stay as they are.
            document_id: Identifier; a new one where none is given.
            document_metadata: Metadata of every chunk.

        Returns:
            The document's identifier.

        Raises:
            AKConfigError: A document outside of `metadata_filter` has that id.
        """
        name = document_id or uuid.uuid4().hex
        await self._check_own(name)
        extra = dict(document_metadata or {})
        bound = [self._scope.bind(_copy(chunk, name, extra)) for chunk in chunks]
        vectors = await self._embedding.chunks(bound)
        records = [VectorRecord(chunk, vector) for chunk, vector in zip(bound, vectors, strict=True)]
        if isinstance(self._store, CollectionStore):
            await self._store.replace(records, document_ids=[name])
        else:
            await StoredLedger(self._store).replace(records, document_ids=[name], sources=[], scope=self._scope, noted={})
        return name

    async def search(
        self, queries: Sequence[Query], top_k: int = 5, score_threshold: float | None = None
    ) -> list[VectorSearchResult]:
        """Return what is nearest to any of several questions, nearest first, each chunk once with its best score.

        Args:
            queries: Texts and data blocks; data is left out where the model takes texts only.
            top_k: Most results.
            score_threshold: The least score.
        """
        check_hits("top_k", top_k)
        check_share("score_threshold", score_threshold)
        asked = [query.text if isinstance(query, TextBlock) else query for query in queries]
        usable = [query for query in asked if (query.strip() if isinstance(query, str) else self._embedding.is_multimodal)]
        vectors = await self._embedding.queries(usable)
        answers = await asyncio.gather(*(self._nearest(vector, top_k) for vector in vectors))
        best: dict[tuple[str, int], VectorSearchResult] = {}
        for each in (result for results in answers for result in results):
            key = each.document_id, each.chunk.chunk_index
            if (score_threshold is None or each.score >= score_threshold) and (key not in best or each.score > best[key].score):
                best[key] = each
        return sorted(best.values(), key=lambda each: (-each.score, each.chunk.id))[:top_k]

    async def list_documents(self) -> list[DocumentSummary]:
        """Return the documents of this collection, within `metadata_filter`."""
        return await self._store.list_documents(self._scope.filter)

    async def delete_document(self, document_id: str) -> None:
        """Delete a document; one that is not there, or outside of `metadata_filter`, is left alone."""
        if isinstance(self._store, IndexedStore):
            await self._store.delete(document_ids=[document_id], where=self._scope.filter)
        elif document_id in {each.document_id for each in await self.list_documents()}:
            await self._check_own(document_id)
            await self._store.delete(document_ids=[document_id])

    async def _nearest(self, vector: Sequence[float], k: int) -> list[VectorSearchResult]:
        if isinstance(self._store, CollectionStore):
            return await self._store.results(vector, k, self._scope.filter)
        hits = await self._store.search(query_vector=vector, query_text="", k=k, where=self._scope.filter)
        chunks = {chunk.id: chunk for chunk in await self._store.chunks(ids=[hit.chunk_id or "" for hit in hits])}
        return [
            VectorSearchResult(hit.score or 0.0, hit.document_id or "", chunks[hit.chunk_id or ""])
            for hit in hits
            if hit.chunk_id in chunks
        ]

    async def _check_own(self, document_id: str) -> None:
        """Check that no chunk of a document is outside of the scope, where documents are removed whole."""
        if not isinstance(self._store, CollectionStore) or not self._scope:
            return
        everywhere, own = (
            sum(each.chunk_count for each in listed if each.document_id == document_id)
            for listed in (await self._store.list_documents(), await self.list_documents())
        )
        if everywhere != own:
            raise AKConfigError("This document_id cannot be used here: choose another one.")

    def __repr__(self) -> str:
        return f"KnowledgeBase(name={self.name!r}, collection={self.collection!r})"


def _copy(chunk: Chunk, document_id: str, metadata: Mapping[str, Any]) -> Chunk:
    return Chunk(
        chunk.content,
        document_id,
        chunk.chunk_index,
        chunk.source,
        {**chunk.metadata, **metadata},
        total_chunks=chunk.total_chunks,
    )
