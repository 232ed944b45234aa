"""HeadingChunker: chunks that stay under one heading and carry the path of headings that leads there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from agentkernel_kb.rag.chunk import Chunk
from agentkernel_kb.rag.chunkers.base import END, START, ChunkerBase, numbered
from agentkernel_kb.rag.chunkers.windows import check_sizes, windows
from agentkernel_kb.rag.content import TextBlock
from agentkernel_kb.rag.values import Document, Section

HEADINGS = "headings"
"""Metadata of a chunk: the headings above it, the outermost first."""

MARKDOWN = ("text/markdown", "text/x-markdown")

# Fences and both kinds of headings (CommonMark 0.31, 4.2, 4.3 and 4.5); what stands in a fence is no heading.
_MARK = re.compile(
    r"^ {0,3}(?:(?P<fence>`{3,}|~{3,})|(?P<line>=+|-{2,})[ \t]*$"
    r"|(?P<level>#{1,6})(?:[ \t]+(?P<title>[^\n]*?))?(?:[ \t]+#+)?[ \t]*$)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Part:
    """What stands under one heading, up to the next.

    Attributes:
        path: The headings that lead here, the outermost first; empty before the first heading.
        start: Where it begins in the text, its own heading included.
        end: Where it ends.
    """

    path: tuple[str, ...]
    start: int
    end: int


class HeadingChunker(ChunkerBase):
    """Cuts Markdown at its headings, and what is longer under one heading as `RecursiveCharacterSplitter` does.

    Each chunk's metadata says under which `headings` it stands. Other texts are cut by size alone.

    Args:
        chunk_size: Most characters of a chunk, 1 or more.
        chunk_overlap: Most characters that a chunk repeats of the one before under the same heading, below `chunk_size`.

    Raises:
        AKConfigError: A size is out of range.
    """

    def __init__(self, chunk_size: int = 1000, chunk_overlap: int = 150) -> None:
        check_sizes("HeadingChunker", "chunk_size", chunk_size, "chunk_overlap", chunk_overlap)
        self.chunk_size, self.chunk_overlap = chunk_size, chunk_overlap

    @property
    def fingerprint(self) -> str:
        """What chunks of equal texts are equal under."""
        return f"headings-{self.chunk_size}-{self.chunk_overlap}-v1"

    async def chunk(self, sections: list[Section]) -> list[Chunk]:
        """Return the chunks of the sections of one document, in order; every text section is read as Markdown."""
        return numbered([chunk for section in sections for chunk in self._of_section(section)])

    def split(self, documents: Iterable[Document]) -> list[Chunk]:
        """Return the chunks of documents, in order, numbered for each document."""
        return [chunk for document in documents for chunk in self._of_document(document)]

    def _of_section(self, section: Section) -> Iterator[Chunk]:
        if isinstance(section.content, TextBlock):
            for text, metadata in self._pieces(section.content.text, section.metadata, parts(section.content.text)):
                yield Chunk(text, source=section.source, metadata=metadata)
        else:
            yield Chunk(section.content, source=section.source, metadata=section.metadata)

    def _of_document(self, document: Document) -> list[Chunk]:
        text = document.text
        cut = parts(text) if document.media_type in MARKDOWN else [Part((), 0, len(text))]
        pieces = self._pieces(text, document.metadata, cut)
        return numbered([Chunk(piece, document.id, None, document.source, metadata) for piece, metadata in pieces])

    def _pieces(self, text: str, metadata: dict[str, Any], cut: Iterable[Part]) -> Iterator[tuple[str, dict[str, Any]]]:
        for part in cut:
            held = text[part.start : part.end]
            path = {HEADINGS: list(part.path)} if part.path else {}
            for start, end in windows(held, lambda _, at: at + self.chunk_size, lambda _, at: at - self.chunk_overlap):
                place = {START: part.start + start, END: part.start + end}
                yield held[start:end], {**metadata, **path, **place}

    def __repr__(self) -> str:
        return f"HeadingChunker(chunk_size={self.chunk_size}, chunk_overlap={self.chunk_overlap})"


def parts(text: str) -> list[Part]:
    """Return the parts of a Markdown text, in order; a heading with nothing under it begins the part of the next one."""
    marks = list(_headings(text))
    places = [mark.start for mark in marks] + [len(text)]
    found = [Part((), 0, places[0])] if text[: places[0]].strip() else []
    path: list[_Heading] = []
    begun: int | None = None
    for mark, border in zip(marks, places[1:], strict=True):
        path = [*(above for above in path if above.level < mark.level), mark]
        begun = mark.start if begun is None else begun
        if text[mark.end : border].strip() or border == len(text):
            found.append(Part(tuple(each.title for each in path if each.title), begun, border))
            begun = None
    return found


@dataclass(frozen=True, slots=True)
class _Heading:
    start: int
    end: int
    level: int
    title: str


def _headings(text: str) -> Iterator[_Heading]:
    fence = ""
    for match in _MARK.finditer(text, _frontmatter_end(text)):
        if mark := match["fence"]:
            if not fence:
                fence = mark
            elif mark[0] == fence[0] and len(mark) >= len(fence) and not _rest_of_line(text, match.end()).strip():
                fence = ""
        elif fence:
            continue
        elif match["level"]:
            yield _Heading(match.start(), match.end(), len(match["level"]), (match["title"] or "").strip())
        elif title := _line_before(text, match.start()):
            yield _Heading(match.start() - len(title) - 1, match.end(), 1 if match["line"][0] == "=" else 2, title.strip())


def _frontmatter_end(text: str) -> int:
    """Return where the body begins: the lines of frontmatter are no headings."""
    if not text.startswith("---\n"):
        return 0
    end = text.find("\n---", 3)
    return end + 4 if end >= 0 else 0


def _line_before(text: str, place: int) -> str:
    """Return the line before a line, if it can be a heading: it is not blank, and begins no list, table or code."""
    begin = text.rfind("\n", 0, max(place - 1, 0)) + 1
    line = text[begin : max(place - 1, 0)]
    return "" if not line.strip() or line.startswith(("    ", "\t", "|", ">", "- ", "* ", "+ ")) or _MARK.match(line) else line


def _rest_of_line(text: str, place: int) -> str:
    end = text.find("\n", place)
    return text[place : end if end >= 0 else len(text)]
