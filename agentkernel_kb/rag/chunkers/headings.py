"""HeadingChunker: chunks that stay under one heading and carry the path of headings that leads there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agentkernel_kb.rag.chunk import Chunk
from agentkernel_kb.rag.chunkers.base import END, START
from agentkernel_kb.rag.chunkers.recursive import RecursiveCharacterSplitter
from agentkernel_kb.rag.chunkers.structure import HEADINGS, Cut, pieces_of
from agentkernel_kb.rag.content import TextBlock
from agentkernel_kb.rag.values import Document, Section

MARKDOWN = ("text/markdown", "text/x-markdown")

# Fences and both kinds of headings (CommonMark 0.31, 4.2, 4.3 and 4.5); what stands in a fence is no heading.
_MARK = re.compile(
    r"^ {0,3}(?:(?P<fence>`{3,}|~{3,})|(?P<line>=+|-{2,})[ \t]*$"
    r"|(?P<level>#{1,6})(?:[ \t]+(?P<title>[^\n]*?))?(?:[ \t]+#+)?[ \t]*$)",
    re.MULTILINE,
)


class HeadingChunker(RecursiveCharacterSplitter):
    """Cuts Markdown and reStructuredText at their headings, and what is longer under one as `RecursiveCharacterSplitter` does.

    Each chunk's metadata says under which `headings` it stands; no chunk holds parts of two. Other texts are cut as that
    splitter cuts them.

    Args:
        chunk_size: Most characters of a chunk, 1 or more.
        chunk_overlap: Most characters that a chunk repeats of the one before under the same heading, below `chunk_size`.

    Raises:
        AKConfigError: A size is out of range.
    """

    @property
    def fingerprint(self) -> str:
        """What chunks of equal texts are equal under."""
        return f"headings-{self.chunk_size}-{self.chunk_overlap}-v2"

    def groups(self, document: Document) -> Iterable[Sequence[Cut]]:
        """Return the parts of a document that are cut each by itself: what stands under each heading."""
        pieces = parts(document.text) if document.media_type in MARKDOWN else pieces_of(document, self.most_chars)
        if any(HEADINGS in piece.metadata for piece in pieces):
            return [[piece] for piece in pieces]
        return super().groups(document)

    def _of_section(self, section: Section) -> Iterator[Chunk]:
        """Yield the chunks of a section, which is read as Markdown."""
        if not isinstance(section.content, TextBlock):
            yield from super()._of_section(section)
            return
        text = section.content.text
        for part in parts(text):
            for start, end in self.windows(text[part.start : part.end]):
                place = {START: part.start + start, END: part.start + end}
                metadata = {**section.metadata, **part.metadata, **place}
                yield Chunk(text[place[START] : place[END]], source=section.source, metadata=metadata)


def parts(text: str) -> list[Cut]:
    """Return the parts of a Markdown text, in order; a heading with nothing under it begins the part of the next one."""
    marks = list(_headings(text))
    places = [mark.start for mark in marks] + [len(text)]
    found = [Cut(0, places[0])] if text[: places[0]].strip() else []
    path: list[_Heading] = []
    begun: int | None = None
    for mark, border in zip(marks, places[1:], strict=True):
        path = [*(above for above in path if above.level < mark.level), mark]
        begun = mark.start if begun is None else begun
        if text[mark.end : border].strip() or border == len(text):
            titles = [each.title for each in path if each.title]
            found.append(Cut(begun, border, {HEADINGS: titles} if titles else {}))
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
