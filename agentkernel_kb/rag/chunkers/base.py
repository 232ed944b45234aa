"""What a chunker is: the base class of seed 003, and how chunks are made and numbered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from agentkernel_kb.rag.chunk import Chunk
from agentkernel_kb.rag.chunkers.windows import Window
from agentkernel_kb.rag.content import TextBlock
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
    """A chunker that cuts text by windows, of sections (seed 003) and of documents (seed 000) alike."""

    @abstractmethod
    def windows(self, text: str) -> Iterator[Window]:
        """Yield where each chunk of a text begins and ends, in order."""

    async def chunk(self, sections: list[Section]) -> list[Chunk]:
        """Return the chunks of the sections of one document, in order; blank sections have none."""
        return numbered([chunk for section in sections for chunk in self._of_section(section)])

    def split(self, documents: Iterable[Document]) -> list[Chunk]:
        """Return the chunks of documents, in order, numbered for each document; blank documents have none."""
        return [chunk for document in documents for chunk in self._of_document(document)]

    def _of_section(self, section: Section) -> Iterator[Chunk]:
        if not isinstance(section.content, TextBlock):
            yield Chunk(section.content, source=section.source, metadata=section.metadata)
            return
        text = section.content.text
        for start, end in self.windows(text):
            yield Chunk(text[start:end], source=section.source, metadata={**section.metadata, START: start, END: end})

    def _of_document(self, document: Document) -> list[Chunk]:
        text = document.text
        return numbered(
            [
                Chunk(text[start:end], document.id, None, document.source, {**document.metadata, START: start, END: end})
                for start, end in self.windows(text)
            ]
        )


def numbered(chunks: list[Chunk]) -> list[Chunk]:
    """Return the chunks of one document with their places and their number."""
    for index, chunk in enumerate(chunks):
        chunk.chunk_index, chunk.total_chunks = index, len(chunks)
    return chunks
