"""Markdown, and reStructuredText: their text as it is, cut at headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from agentkernel_kb.rag.chunkers.headings import HEADINGS, parts
from agentkernel_kb.rag.parsers.base import Cut, Reading, TextFormatParser, reading

_TITLE = re.compile(r"^title[ \t]*:[ \t]*(\S[^\n]{0,500})$", re.MULTILINE)
_MOST_FRONT_CHARS = 131_072
_MOST_TITLE_CHARS = 300
# A line of one repeated mark, which underlines a title (reStructuredText, "Sections").
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*[ \t]*")


class MarkdownParser(TextFormatParser):
    """Reads Markdown: a section for what stands under each heading, whose metadata has the `headings` that lead there.

    The text stays as it is, front matter included; the title is that of the front matter, or else the first heading.
    """

    supported_media_types: ClassVar[list[str]] = ["text/markdown", "text/x-markdown"]
    extensions = (".md", ".markdown", ".mdown", ".mkd", ".mdx")

    def read(self, text: str) -> Reading:
        """Return the text, cut at its headings."""
        text = text.replace("\r\n", "\n")
        cuts = parts(text)
        return reading(text, "text/markdown", {"title": _front_title(text) or first_heading(cuts)}, cuts)


class RSTParser(TextFormatParser):
    """Reads reStructuredText: a section for what stands under each title; directives are left as they are, and none is run."""

    supported_media_types: ClassVar[list[str]] = ["text/x-rst", "text/prs.fallenstein.rst"]
    extensions = (".rst", ".rest")

    def read(self, text: str) -> Reading:
        """Return the text, cut at its titles."""
        text = text.replace("\r\n", "\n")
        cuts = list(_rst_cuts(text))
        return reading(text, "text/x-rst", {"title": first_heading(cuts)}, cuts)


def first_heading(cuts: list[Cut]) -> str:
    """Return the outermost heading of the first section that has one; `""` for none."""
    headings = next((cut.metadata[HEADINGS] for cut in cuts if cut.metadata.get(HEADINGS)), [""])
    return headings[0][:_MOST_TITLE_CHARS]


def _front_title(text: str) -> str:
    """Return the title that front matter states in one line; nothing else of it is believed."""
    if not text.startswith("---\n"):
        return ""
    end = text.find("\n---", 3, _MOST_FRONT_CHARS)
    found = _TITLE.search(text, 4, end) if end >= 0 else None
    if found is None:
        return ""
    title = found[1].strip()
    quoted = len(title) > 1 and title[0] == title[-1] and title[0] in "'\""
    return (title[1:-1] if quoted else "" if title[0] in "|>&*[{" else title)[:_MOST_TITLE_CHARS]


def _rst_cuts(text: str) -> Iterator[Cut]:
    """Yield what stands under each title; marks nest in the order in which they are first used.

    A title with nothing under it begins the part of the next one.
    """
    levels: list[str] = []
    path: list[str] = []
    start = body = 0
    for place, end, title, style in _rst_titles(text):
        if text[body:place].strip():
            yield Cut(start, place, {HEADINGS: list(path)} if path else {})
            start = place
        if style not in levels:
            levels.append(style)
        path = [*path[: levels.index(style)], title]
        body = end
    yield Cut(start, len(text), {HEADINGS: list(path)} if path else {})


def _rst_titles(text: str) -> Iterator[tuple[int, int, str, str]]:
    """Yield where each title begins and ends, its text, and how it is marked: `over` or `under`, and with which character."""
    place, lines, places = 0, text.split("\n"), list[int]()
    for line in lines:
        places.append(place)
        place += len(line) + 1
    for index in range(1, len(lines)):
        title, mark = lines[index - 1], lines[index]
        if not _ADORNMENT.fullmatch(mark) or not title.strip() or len(mark.rstrip()) < min(len(title.strip()), 4):
            continue
        over = index >= 2 and lines[index - 2].rstrip() == mark.rstrip()
        if _ADORNMENT.fullmatch(title) or (title[0].isspace() and not over):
            continue
        if not over and index >= 2 and lines[index - 2].strip():  # It ends a paragraph or a table.
            continue
        begin, end = places[index - 2 if over else index - 1], places[index] + len(mark)
        yield begin, end, title.strip(), f"{'over' if over else 'under'}{mark[0]}"
