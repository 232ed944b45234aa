"""A source as a stream of what stands in it, each of which can be left unread where it did not change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from agentkernel_kb.rag.values import Document


@dataclass(frozen=True, slots=True)
class SourceItem:
    """One file, page or text.

    Attributes:
        source: What it is called.
        load: Reads it, or raises why it cannot be read.
        version: What changes whenever it does, such as size and time; `None` where only reading it tells.
        skipped: It is left out on purpose, such as a file of a kind that is not read.
        reason: Why it is left out.
        identity: What is the same however it is spelled, such as the whole path of a file; `None` for what has none.
        is_text: The source is the text itself, and neither a path nor an address.
    """

    source: str
    load: Callable[[], Awaitable[list[Document]]]
    version: str | None = None
    skipped: bool = False
    reason: str = ""
    identity: str | None = None
    is_text: bool = False


@runtime_checkable
class StreamingLoader(Protocol):
    """A loader that tells what there is before it reads it."""

    def items(self, source: Any, *, metadata: Mapping[str, Any] | None = None) -> AsyncIterator[SourceItem]:
        """Yield what stands in a source, in a stable order."""
        ...


def name_of(source: Any) -> str:
    """Return what a source is called in a report: its path, address or name, or its kind."""
    if isinstance(source, Document):
        return source.source or source.id
    text = source if isinstance(source, str) else "" if isinstance(source, bytes) else str(source)
    return text if text and len(text) <= 300 and "\n" not in text else type(source).__name__


def given(document: Document, metadata: Mapping[str, Any] | None) -> SourceItem:
    """Return a document as an item, with more metadata."""
    made = document
    if metadata:
        merged = {**document.metadata, **metadata}
        made = Document(document.text, document.source, merged, document.id, document.media_type)
    return SourceItem(made.source or made.id, of_documents([made]))


def of_documents(documents: list[Document]) -> Callable[[], Awaitable[list[Document]]]:
    """Return what loads documents that are there already."""

    async def load() -> list[Document]:
        return documents

    return load
