"""Texts with a structure, such as code: what a chunk should hold whole, and what it says of the parts that it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentkernel_kb.rag.values import Document

HEADINGS = "headings"
"""Metadata of a chunk: the headings above it, the outermost first."""

_SYMBOL, _FIRST_LINE, _LAST_LINE = "symbol", "line_start", "line_end"
_WITHOUT = ("", "text/plain", "application/json")
_MOST_SYMBOLS = 10


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a section stands in the text of its file.

    Attributes:
        start: Its first character, from 0.
        end: The one beyond its last.
        metadata: What is known about it.
    """

    start: int
    end: int
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])


def pieces_of(document: Document, most: int) -> Sequence[Cut]:
    """Return the parts of a document's text that its parser knows of; none for a text without structure.

    Args:
        document: The document; its media type says how it is read.
        most: About how many characters a chunk has at most.
    """
    # The parsers of Markdown build on a chunker of this package, so that they are looked for only when one is needed.
    from agentkernel_kb.rag.parsers.base import TextFormatParser
    from agentkernel_kb.rag.parsers.registry import parser_for

    if document.media_type in _WITHOUT:
        return ()
    parser = parser_for(document.media_type)
    return parser.pieces(document.text, most) if isinstance(parser, TextFormatParser) else ()


def packed(pieces: Iterable[Cut], fit: Callable[[Cut, Cut], bool]) -> Iterator[Sequence[Cut]]:
    """Yield pieces in groups of neighbours whose first and last fit into one chunk; one that does not fit is alone."""
    group: list[Cut] = []
    for piece in pieces:
        if group and not fit(group[0], piece):
            yield group
            group = []
        group.append(piece)
    if group:
        yield group


def said_of(group: Sequence[Cut]) -> dict[str, Any]:
    """Return what holds of all pieces of a group, the headings above all of them, and what they define."""
    first, rest = group[0].metadata, [piece.metadata for piece in group[1:]]
    said = {key: value for key, value in first.items() if all(each.get(key) == value for each in rest)}
    headings = _common([piece.metadata.get(HEADINGS) or () for piece in group])
    symbols = list(dict.fromkeys(piece.metadata[_SYMBOL] for piece in group if piece.metadata.get(_SYMBOL)))
    if headings:
        said[HEADINGS] = headings
    if symbols:
        said[_SYMBOL] = ", ".join(symbols[:_MOST_SYMBOLS])
    return said


class Lines:
    """Numbers of lines of a text, for places that run forward.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        self._text, self._place, self._line = text, 0, 1

    def said(self, group: Sequence[Cut], start: int, end: int) -> dict[str, Any]:
        """Return the lines of a chunk, from 1, where its pieces say theirs."""
        if _FIRST_LINE not in group[0].metadata:
            return {}
        self._line += self._text.count("\n", self._place, start) if start >= self._place else 0
        self._place = start
        return {_FIRST_LINE: self._line, _LAST_LINE: self._line + self._text.count("\n", start, end)}


def _common(paths: Sequence[Sequence[str]]) -> list[str]:
    """Return what paths begin with, all of them."""
    common: list[str] = []
    for names in zip(*paths, strict=False):
        if len(set(names)) > 1:
            break
        common.append(names[0])
    return common
