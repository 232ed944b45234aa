"""The structural protocols of managed knowledge: whoever has the methods is one, no base class is needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from agentkernel_kb.rag.chunk import Chunk, VectorRecord
from agentkernel_kb.rag.values import Document, SearchHit

SearchMode = Literal["vector", "keyword", "hybrid"]
"""How a local store ranks: by vectors, by words (BM25), or by both."""


@runtime_checkable
class Loader(Protocol):
    """Reads sources."""

    async def load(self, source: Any, *, metadata: Mapping[str, Any] | None = None) -> list[Document]:
        """Return the documents of a source."""
        ...


@runtime_checkable
class Splitter(Protocol):
    """Cuts documents."""

    def split(self, documents: Iterable[Document]) -> list[Chunk]:
        """Return the chunks of documents, in order."""
        ...


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors."""

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text, in order."""
        ...

    async def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question."""
        ...


class PlainEmbedder(Protocol):
    """Turns texts into vectors without an event loop; it is called in a thread."""

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text, in order."""
        ...

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question."""
        ...


AnyEmbedder = Embedder | PlainEmbedder


@runtime_checkable
class VectorStore(Protocol):
    """Holds chunks with their vectors, and ranks them."""

    async def upsert(self, records: Sequence[VectorRecord]) -> int:
        """Insert records, or replace those of the same chunk id, and return how many."""
        ...

    async def delete(
        self,
        *,
        ids: Sequence[str] | None = None,
        document_ids: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        sources: Sequence[str] | None = None,
    ) -> int:
        """Delete the chunks that `ids`, `document_ids` or `sources` name and that meet `where`, and return how many.

        A selector that is given and empty names nothing; with `where` alone, all that meet it go.

        Raises:
            ValueError: No criterion is given.
        """
        ...

    async def search(
        self,
        *,
        query_vector: Sequence[float] | None,
        query_text: str,
        k: int = 5,
        where: Mapping[str, Any] | None = None,
        mode: SearchMode = "vector",
        score_threshold: float | None = None,
        fetch_k: int | None = None,
        mmr_lambda: float | None = None,
    ) -> list[SearchHit]:
        """Return at most `k` hits, best first."""
        ...

    async def list_sources(self) -> list[str]:
        """Return the sources of what it holds, each once, sorted."""
        ...


@runtime_checkable
class AtomicVectorStore(VectorStore, Protocol):
    """A store that can replace a source's chunks in one step."""

    async def replace(
        self,
        records: Sequence[VectorRecord],
        *,
        document_ids: Sequence[str] | None = None,
        sources: Sequence[str] | None = None,
    ) -> tuple[int, int]:
        """Write records and delete what else there is of these documents or sources, at once.

        Returns:
            How many were written, and how many were deleted.
        """
        ...


@runtime_checkable
class Retriever(Protocol):
    """Finds passages, however it does so."""

    async def retrieve(self, query: str, *, k: int = 5, where: Mapping[str, Any] | None = None) -> list[SearchHit]:
        """Return at most `k` hits, best first."""
        ...


@runtime_checkable
class Reranker(Protocol):
    """Puts hits into a better order."""

    async def rerank(self, query: str, hits: Sequence[SearchHit], *, k: int) -> list[SearchHit]:
        """Return at most `k` of the hits, best first."""
        ...
