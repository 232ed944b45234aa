"""Chunk: the passage that is indexed. Mutable, because chunkers number their chunks when all are cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag.content import Content, DataBlock, TextBlock, as_content, content_digest, content_from, digest


class Chunk:
    """A bounded passage of a document, or a data block that is passed on whole.

    Args:
        content: Its text or data; a plain string becomes a `TextBlock`.
        source: Where it is from.
        metadata: What is known about it.
        document_id: Identifier of its document.
        chunk_index: Its place in the document, from 0.
        total_chunks: How many chunks the document has.
        id: Identifier; derived from document, place and content where none is given.
        text: Another spelling of `content`.
        index: Another spelling of `chunk_index`.

    Raises:
        AKConfigError: A value is of the wrong type, is missing, or is given in both spellings and differs.
    """

    __slots__ = ("_content", "_id", "chunk_index", "document_id", "metadata", "source", "total_chunks")

    def __init__(
        self,
        content: Content | str | None = None,
        document_id: str = "",
        chunk_index: int | None = None,
        source: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        id: str | None = None,
        *,
        total_chunks: int = 0,
        text: Content | str | None = None,
        index: int | None = None,
    ) -> None:
        self._content = as_content(_one_of("content", content, "text", text), "Chunk.content")
        self.source = source
        self.metadata: dict[str, Any] = dict(metadata or {})
        self.document_id = document_id
        self.chunk_index: int = (
            0 if chunk_index is None and index is None else _one_of("chunk_index", chunk_index, "index", index)
        )
        self.total_chunks = total_chunks
        self._id = id

    @property
    def content(self) -> Content:
        """The text or data."""
        return self._content

    @content.setter
    def content(self, value: Content | str) -> None:
        self._content = as_content(value, "Chunk.content")

    @property
    def text(self) -> str:
        """The text; `""` of a data block."""
        return self._content.text if isinstance(self._content, TextBlock) else ""

    @text.setter
    def text(self, value: str) -> None:
        self.content = value

    @property
    def index(self) -> int:
        """Another spelling of `chunk_index`."""
        return self.chunk_index

    @index.setter
    def index(self, value: int) -> None:
        self.chunk_index = value

    @property
    def id(self) -> str:
        """Identifier: what it was given, or what follows from its document, place and content as they are now."""
        return self._id or digest("chunk", self.document_id, str(self.chunk_index), content_digest(self._content))

    @id.setter
    def id(self, value: str | None) -> None:
        self._id = value

    @property
    def is_named(self) -> bool:
        """Whether its identifier was given, and does not follow from what it is."""
        return bool(self._id)

    @property
    def is_data(self) -> bool:
        """Whether the content is no text."""
        return isinstance(self._content, DataBlock)

    def to_dict(self) -> dict[str, Any]:
        """Return the chunk as plain values."""
        return {
            "content": self._content.to_dict(),
            "source": self.source,
            "metadata": dict(self.metadata),
            "document_id": self.document_id,
            "chunk_index": self.chunk_index,
            "total_chunks": self.total_chunks,
            "id": self.id,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the chunk that `to_dict()` made a mapping of; `text` and `index` are understood too."""
        return cls(
            content=content_from(data["content"] if "content" in data else data["text"], "Chunk.content"),
            source=data.get("source"),
            metadata=data.get("metadata"),
            document_id=data.get("document_id") or "",
            chunk_index=data.get("chunk_index", data.get("index", 0)),
            total_chunks=data.get("total_chunks", 0),
            id=data.get("id"),
        )

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, Chunk) else NotImplemented

    __hash__ = None  # type: ignore[assignment] # It is mutable.

    def __repr__(self) -> str:
        shown = self.text[:60] if not self.is_data else self._content
        return f"Chunk({shown!r}, source={self.source!r}, document_id={self.document_id!r}, chunk_index={self.chunk_index})"


@dataclass(frozen=True, slots=True)
class VectorRecord:
    """A chunk with its vector, as a store takes it.

    Attributes:
        chunk: The passage.
        embedding: Its vector; numbers, all of one store of one length. Empty where the store holds words only.
    """

    chunk: Chunk
    embedding: Sequence[float]

    @property
    def vector(self) -> Sequence[float]:
        """Another spelling of `embedding`."""
        return self.embedding

    @property
    def document_id(self) -> str:
        """Identifier of the chunk's document."""
        return self.chunk.document_id


@dataclass(frozen=True, slots=True)
class VectorSearchResult:
    """A chunk that was found, as seed 003's handle returns it.

    Attributes:
        score: How near it is.
        document_id: Identifier of its document.
        chunk: The passage.
    """

    score: float
    document_id: str
    chunk: Chunk


def origin_of(source: str | None, document_id: str) -> str:
    """Return what a chunk is of, as the ledger names it: its source, or its document where it has no source."""
    return source or f"document:{document_id}"


def _one_of(name: str, value: Any, alias: str, other: Any) -> Any:
    if value is None and other is None:
        raise AKConfigError(f"Chunk needs {name} (or {alias}).")
    if value is not None and other is not None and value != other:
        raise AKConfigError(f"Chunk was given {name} and {alias}, which are the same, with different values.")
    return other if value is None else value
