"""The values of managed knowledge: what is read, what is indexed, what is found, what is reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, cast

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag.content import Content, TextBlock, as_content, content_from, digest


def _metadata() -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Document:
    """A source's text before it is cut into chunks.

    Attributes:
        text: The text.
        source: Where it is from: a path, an address, or the application's own name for it. Indexing a document replaces what
            was indexed of the same source before.
        metadata: What else is known about it, as JSON values.
        id: Identifier; derived from source and text where none is given, so that the same document always has the same.
        media_type: IANA media type of the text.

    Raises:
        AKConfigError: A value is of the wrong type.
    """

    text: str
    source: str | None = None
    metadata: dict[str, Any] = field(default_factory=_metadata)
    id: str = ""
    media_type: str = "text/plain"

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise AKConfigError(f"Document.text must be a string, not {type(self.text).__name__}.")
        _check_text("Document.source", self.source)
        _check_text("Document.id", self.id)
        _own_metadata(self, "Document")
        object.__setattr__(self, "id", self.id or self._derived())

    @property
    def is_named(self) -> bool:
        """Whether its identifier was given, so that another document may have the same."""
        return self.id != self._derived()

    def _derived(self) -> str:
        return digest("document", self.source or "", self.text)

    def to_dict(self) -> dict[str, Any]:
        """Return the document as plain values."""
        return dict(vars(self), metadata=dict(self.metadata))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the document that `to_dict()` made a mapping of."""
        return cls(
            text=data["text"],
            source=data.get("source"),
            metadata=dict(data.get("metadata") or {}),
            id=data.get("id") or "",
            media_type=data.get("media_type") or "text/plain",
        )


@dataclass(frozen=True)
class Section:
    """A part of a source with natural borders, such as a page, a slide or what stands under a heading.

    Attributes:
        content: Its text or data; a plain string becomes a `TextBlock`.
        source: Where it is from.
        metadata: What is known about it, such as `{"page": 1}`.
    """

    content: Content
    source: str = ""
    metadata: dict[str, Any] = field(default_factory=_metadata)

    def __post_init__(self) -> None:
        object.__setattr__(self, "content", as_content(self.content, "Section.content"))
        _check_text("Section.source", self.source)
        _own_metadata(self, "Section")

    @property
    def text(self) -> str:
        """The text; `""` of a data block."""
        return self.content.text if isinstance(self.content, TextBlock) else ""

    def to_dict(self) -> dict[str, Any]:
        """Return the section as plain values."""
        return {"content": self.content.to_dict(), "source": self.source, "metadata": dict(self.metadata)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the section that `to_dict()` made a mapping of."""
        content = content_from(data["content"], "Section.content")
        return cls(content=content, source=data.get("source") or "", metadata=dict(data.get("metadata") or {}))


@dataclass(frozen=True)
class SearchHit:
    """A passage that was found.

    Attributes:
        text: The passage.
        score: How relevant it is; from the local stores in [0, 1]. `None` where the retriever does not say.
        source: Where it is from.
        metadata: What is known about it.
        document_id: Identifier of its document.
        chunk_id: Identifier of the passage.
        rank: Its place, from 1.
    """

    text: str
    score: float | None = None
    source: str | None = None
    metadata: dict[str, Any] = field(default_factory=_metadata)
    document_id: str | None = None
    chunk_id: str | None = None
    rank: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise AKConfigError(f"SearchHit.text must be a string, not {type(self.text).__name__}.")
        _own_metadata(self, "SearchHit")

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as plain values."""
        return dict(vars(self), metadata=dict(self.metadata))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the hit that `to_dict()` made a mapping of."""
        return cls(**_known(cls, data))


@dataclass(frozen=True)
class Citation:
    """A numbered reference to a passage.

    Attributes:
        number: Its number in the answer, from 1, over all sources.
        source: Where the passage is from.
        excerpt: The passage.
        score: How relevant it is.
        document_id: Identifier of its document.
        chunk_id: Identifier of the passage.
        metadata: What is known about it, such as a page.
    """

    number: int
    source: str | None
    excerpt: str
    score: float | None = None
    document_id: str | None = None
    chunk_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=_metadata)

    def __post_init__(self) -> None:
        _own_metadata(self, "Citation")

    @property
    def label(self) -> str:
        """What stands in the answer's text, such as `[1]`."""
        return f"[{self.number}]"

    @classmethod
    def from_hit(cls, hit: SearchHit, number: int) -> Self:
        """Return the reference to a hit."""
        return cls(number, hit.source, hit.text, hit.score, hit.document_id, hit.chunk_id, dict(hit.metadata))

    def to_dict(self) -> dict[str, Any]:
        """Return the citation as plain values, with its label."""
        return dict(vars(self), metadata=dict(self.metadata), label=self.label)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the citation that `to_dict()` made a mapping of."""
        return cls(**_known(cls, data))


@dataclass(frozen=True)
class RAGAnswer:
    """An answer together with what it rests on. `str(answer)` is its text.

    Attributes:
        text: The answer.
        citations: References, numbered over all sources.
        hits: The passages that were given to the model.
        query: What was asked.
    """

    text: str
    citations: list[Citation] = field(default_factory=list[Citation])
    hits: list[SearchHit] = field(default_factory=list[SearchHit])
    query: str | None = None

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values."""
        return {
            "text": self.text,
            "citations": [citation.to_dict() for citation in self.citations],
            "hits": [hit.to_dict() for hit in self.hits],
            "query": self.query,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the answer that `to_dict()` made a mapping of."""
        return cls(
            text=data["text"],
            citations=[Citation.from_dict(each) for each in data.get("citations") or ()],
            hits=[SearchHit.from_dict(each) for each in data.get("hits") or ()],
            query=data.get("query"),
        )


MOST_LEFT_OUT = 1_000
"""How many sources a report names that were left out on purpose."""


@dataclass(frozen=True)
class Failure:
    """A source that was not indexed. What was indexed of one that failed is still there.

    Attributes:
        source: Which.
        reason: Why, in words.
    """

    source: str
    reason: str


@dataclass(frozen=True)
class IndexReport:
    """What indexing did. What was skipped, unchanged or failed is in none of the other counts.

    Attributes:
        documents: Documents that were indexed.
        chunks: Chunks that these have.
        added: Chunks that were written.
        deleted: Chunks that were removed, because their source changed or is gone.
        skipped: Sources that were left out on purpose, such as binary files.
        unchanged: Sources that are as they were, and were not read again.
        sources: Sources that were indexed, in order, each once.
        failed: Sources that could not be.
        left_out: The first 1,000 of what was skipped, each with the reason.
    """

    documents: int = 0
    chunks: int = 0
    added: int = 0
    deleted: int = 0
    skipped: int = 0
    unchanged: int = 0
    sources: list[str] = field(default_factory=list[str])
    failed: list[Failure] = field(default_factory=list[Failure])
    left_out: list[Failure] = field(default_factory=list[Failure])

    def __add__(self, other: IndexReport) -> IndexReport:
        """Return both reports as one."""
        return IndexReport(
            documents=self.documents + other.documents,
            chunks=self.chunks + other.chunks,
            added=self.added + other.added,
            deleted=self.deleted + other.deleted,
            skipped=self.skipped + other.skipped,
            unchanged=self.unchanged + other.unchanged,
            sources=list(dict.fromkeys([*self.sources, *other.sources])),
            failed=[*self.failed, *other.failed],
            left_out=[*self.left_out, *other.left_out][:MOST_LEFT_OUT],
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        named = {"failed": self.failed, "left_out": self.left_out}
        plain = {name: [dict(vars(each)) for each in failures] for name, failures in named.items()}
        return {**vars(self), "sources": list(self.sources), **plain}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the report that `to_dict()` made a mapping of."""
        named: dict[str, Any] = {name: [Failure(**each) for each in data.get(name) or ()] for name in ("failed", "left_out")}
        return cls(**{**_known(cls, data), **named})


@dataclass(frozen=True)
class DocumentSummary:
    """One document of a corpus.

    Attributes:
        document_id: Its identifier.
        source: Where it is from.
        chunk_count: How many chunks it has.
        metadata: The metadata of its first chunk.
    """

    document_id: str
    source: str
    chunk_count: int
    metadata: dict[str, Any] = field(default_factory=_metadata)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain values."""
        return dict(vars(self), metadata=dict(self.metadata))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the summary that `to_dict()` made a mapping of."""
        return cls(**_known(cls, data))


def fill_ranks(hits: Iterable[SearchHit]) -> list[SearchHit]:
    """Return the hits with their ranks, from 1, in the order given."""
    return [SearchHit(**dict(vars(hit), rank=rank)) for rank, hit in enumerate(hits, 1)]


def sources_of(documents: Sequence[Document]) -> list[str]:
    """Return the sources of documents, in order, each once; documents without one are left out."""
    return list(dict.fromkeys(document.source for document in documents if document.source))


def _known(kind: type[Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return those fields of `data` that a value has, so that a newer version's file can be read."""
    return {name: data[name] for name in kind.__dataclass_fields__ if name in data}


def _check_text(subject: str, value: object) -> None:
    if value is not None and not isinstance(value, str):
        raise AKConfigError(f"{subject} must be a string, not {type(value).__name__}.")


def _own_metadata(value: object, kind: str) -> None:
    """Give a value metadata of its own, so that its maker's mapping can change."""
    metadata: object = getattr(value, "metadata", None)
    if not isinstance(metadata, Mapping):
        raise AKConfigError(f"{kind}.metadata must be a mapping, not {type(metadata).__name__}.")
    object.__setattr__(value, "metadata", dict(cast("Mapping[str, Any]", metadata)))
