"""What a chunker is: the base class of seed 003, and how chunks are made and numbered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag.chunk import Chunk
from agentkernel_kb.rag.chunkers.structure import Cut, Lines, packed, pieces_of, said_of
from agentkernel_kb.rag.chunkers.windows import Window
from agentkernel_kb.rag.content import TextBlock
from agentkernel_kb.rag.sync import in_own_loop
from agentkernel_kb.rag.values import Document, Section

START, END = "char_start", "char_end"
"""Metadata of a chunk: where it stands in the text that it was cut from, in characters, from 0; the end is beyond it."""


class ChunkerBase(ABC):
    """Cuts sections into chunks. Derive from it for a chunker of your own.

    A chunk never holds parts of two sections, data passes through whole, `chunk_index` runs from 0 without gaps over the
    result, and `total_chunks` is the same on every chunk.
    """

    @abstractmethod
    async def chunk(self, sections: list[Section]) -> list[Chunk]:
        """Return the chunks of the sections of one document, in order."""


class TextChunker(ChunkerBase):
    """A chunker that cuts text by windows, of sections (seed 003) and of documents (seed 000) alike.

    What the parser of a document's media type knows as one part, such as a function or what stands under a heading, is not cut
    where it fits; small parts are taken together. The chunk says the `headings` above all of it, and of code the `symbol` that
    it defines and its lines, `line_start` and `line_end`.
    """

    @property
    @abstractmethod
    def most_chars(self) -> int:
        """About how many characters a chunk has at most."""

    @abstractmethod
    def reach(self, text: str, start: int) -> int:
        """Return how far a chunk may reach that begins at a place of a text."""

    @abstractmethod
    def windows(self, text: str) -> Iterator[Window]:
        """Yield where each chunk of a text begins and ends, in order."""

    async def chunk(self, sections: list[Section]) -> list[Chunk]:
        """Return the chunks of the sections of one document, in order; blank sections have none."""
        return numbered([chunk for section in sections for chunk in self._of_section(section)])

    def split(self, documents: Iterable[Document]) -> list[Chunk]:
        """Return the chunks of documents, in order, numbered for each document; blank documents have none."""
        return [chunk for document in documents for chunk in numbered(list(self._of_document(document)))]

    def _of_section(self, section: Section) -> Iterator[Chunk]:
        if not isinstance(section.content, TextBlock):
            yield Chunk(section.content, source=section.source, metadata=section.metadata)
            return
        text = section.content.text
        for start, end in self.windows(text):
            yield Chunk(text[start:end], source=section.source, metadata={**section.metadata, START: start, END: end})

    def _of_document(self, document: Document) -> Iterator[Chunk]:
        text = document.text
        for start, end, said in self._places(document):
            metadata = {**document.metadata, **said, START: start, END: end}
            yield Chunk(text[start:end], document.id, None, document.source, metadata)

    def groups(self, document: Document) -> Iterable[Sequence[Cut]]:
        """Return the parts of a document that are cut each by itself; none for a text that is cut as one."""
        text = document.text
        return packed(pieces_of(document, self.most_chars), lambda first, last: last.end <= self.reach(text, first.start))

    def _places(self, document: Document) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """Yield where each chunk begins and ends, and what is known of that part of the document."""
        text = document.text
        lines = Lines(text)
        for group in list(self.groups(document)) or [[Cut(0, len(text))]]:
            said, begin = said_of(group), group[0].start
            for start, end in self.windows(text[begin : group[-1].end]):
                yield begin + start, begin + end, {**said, **lines.said(group, begin + start, begin + end)}


class SectionSplitter:
    """A chunker of sections (seed 003) as a splitter of documents (seed 000).

    The parts that the parser of a document's media type knows are its sections.

    Args:
        chunker: The chunker.
        most_chars: About how many characters a section has at most, where its parser can take it apart.

    Raises:
        AKConfigError: It is no chunker.
    """

    def __init__(self, chunker: ChunkerBase, most_chars: int = 1_000) -> None:
        if not isinstance(chunker, ChunkerBase):
            raise AKConfigError(f"A splitter has split(…), or derives from ChunkerBase; {type(chunker).__name__} does neither.")
        self._chunker, self._most_chars = chunker, most_chars

    @property
    def fingerprint(self) -> str:
        """What chunks of equal texts are equal under."""
        return str(getattr(self._chunker, "fingerprint", type(self._chunker).__name__))

    def split(self, documents: Iterable[Document]) -> list[Chunk]:
        """Return the chunks of documents, in order, numbered for each document."""
        return [chunk for document in documents for chunk in in_own_loop(self._of_document(document))]

    async def _of_document(self, document: Document) -> list[Chunk]:
        whole = [Cut(0, len(document.text))]
        sections = [
            Section(TextBlock(document.text[cut.start : cut.end]), document.source or "", {**document.metadata, **cut.metadata})
            for cut in pieces_of(document, self._most_chars) or whole
        ]
        chunks = await self._chunker.chunk(sections)
        for chunk in chunks:
            chunk.document_id, chunk.source = document.id, document.source
        return chunks


def numbered(chunks: list[Chunk]) -> list[Chunk]:
    """Return the chunks of one document with their places and their number."""
    for index, chunk in enumerate(chunks):
        chunk.chunk_index, chunk.total_chunks = index, len(chunks)
    return chunks
