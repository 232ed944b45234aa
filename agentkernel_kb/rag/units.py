"""Units of indexing: what changes in one step, which is all that stands in one file, page or document."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentkernel_kb.rag.chunk import Chunk, origin_of
from agentkernel_kb.rag.chunkers.base import numbered
from agentkernel_kb.rag.content import digest
from agentkernel_kb.rag.entry import Entry
from agentkernel_kb.rag.loading.items import SourceItem, StreamingLoader
from agentkernel_kb.rag.protocols import Loader, Splitter
from agentkernel_kb.rag.scope import Scope
from agentkernel_kb.rag.values import Document, sources_of


@dataclass(slots=True)
class Unit:
    """What was read and cut.

    Attributes:
        name: What it is called in a report.
        origin: What the ledger calls it.
        entry: What is noted about it once it is stored.
        documents: How many documents it has.
        chunks: Its chunks, in order.
        sources: The sources of which nothing else is to be left.
        document_ids: The documents without a source of which nothing else is to be left.
        given_ids: Identifiers of chunks that the splitter gave, and that other units may have too.
        vectors: The vectors of its chunks, once they are made.
    """

    name: str
    origin: str
    entry: Entry
    documents: int
    chunks: list[Chunk]
    sources: list[str]
    document_ids: list[str]
    given_ids: set[str]
    vectors: list[Sequence[float]] | None = None


def unit_of(
    item: SourceItem, documents: Sequence[Document], metadata: str, splitter: Splitter, scope: Scope, before: str
) -> Unit:
    """Cut the documents of an item and bind them to a scope.

    Args:
        item: What was read.
        documents: What stands in it.
        metadata: Digest of the metadata that they were read with.
        splitter: What cuts them.
        scope: What they are bound to.
        before: The name under which it was indexed before, which may be another spelling of its path.

    Raises:
        AKConfigError: A document is outside of the scope.
    """
    cut, given = list[Chunk](), list[Chunk]()
    for document in documents:
        parts = numbered(list(splitter.split([document])))
        given += [chunk for chunk in parts if chunk.is_named]
        cut += _told_apart(document, parts)
    bound = [scope.bind(chunk) for chunk in cut] if scope else cut
    chunks = list({chunk.id: chunk for chunk in bound}.values())  # Of two with one id a store keeps the last.
    sources = sources_of(documents) or ([] if documents else [item.source])
    return Unit(
        name=item.source,
        origin=origin(item, documents),
        entry=Entry(item.version, metadata, content_of(documents), len(chunks), item.identity, scope.written),
        documents=len(documents),
        chunks=chunks,
        sources=sources if before in (item.source, *sources) else [*sources, before],
        document_ids=[document.id for document in documents if not document.source],
        given_ids={chunk.id for chunk in given},
    )


def _told_apart(document: Document, chunks: list[Chunk]) -> list[Chunk]:
    """Return the chunks of a document under identifiers that no other source has, whatever the document is called."""
    if document.source and document.is_named:
        for chunk in chunks:
            chunk.id = chunk.id if chunk.is_named else digest("sourced", document.source, chunk.id)
    return chunks


def origin(item: SourceItem, documents: Sequence[Document]) -> str:
    """Return what the ledger calls an item: its source, or its document where that has none."""
    if not documents or documents[0].source:
        return item.source
    return origin_of(None, documents[0].id)


def content_of(documents: Iterable[Document]) -> str:
    """Return what changes whenever the documents do."""
    return digest(*(text for each in documents for text in (each.id, each.text, plain(each.metadata))))


def plain(value: Mapping[str, Any]) -> str:
    """Return a mapping as a text, the same for the same mapping."""
    return json.dumps(dict(value), sort_keys=True, default=repr)


async def items_of(loader: Loader, source: Any, metadata: Mapping[str, Any]) -> AsyncIterator[SourceItem]:
    """Yield what stands in a source; documents of one source are one item, since they replace it together."""
    if isinstance(source, DocumentGroup):
        yield source.item(metadata)
    elif isinstance(loader, StreamingLoader):
        async for item in loader.items(source, metadata=metadata or None):
            yield item
    else:
        for group in grouped(await loader.load(source, metadata=metadata or None)):
            yield group.item({})


@dataclass(frozen=True, slots=True)
class DocumentGroup:
    """Documents of one source, or one that has none.

    Attributes:
        documents: The documents.
    """

    documents: list[Document]

    @property
    def name(self) -> str:
        """Their source, or the identifier of the one document."""
        return self.documents[0].source or self.documents[0].id

    def item(self, metadata: Mapping[str, Any]) -> SourceItem:
        """Return them as an item, with metadata added."""
        made = [
            Document(each.text, each.source, {**each.metadata, **metadata}, each.id, each.media_type) if metadata else each
            for each in self.documents
        ]

        async def load() -> list[Document]:
            return made

        return SourceItem(self.name, load)


def grouped(sources: Iterable[Any]) -> Iterator[Any]:
    """Yield sources in order, the documents among them in groups."""
    groups: dict[str, list[Any]] = {}
    for place, source in enumerate(sources):
        name = origin_of(source.source, source.id) if isinstance(source, Document) else f"\0{place}"
        groups.setdefault(name, []).append(source)
    for group in groups.values():
        yield DocumentGroup(group) if isinstance(group[0], Document) else group[0]
