"""Cuts one text into windows that overlap: the one loop of all chunkers, linear in the length of the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag.chunkers.graphemes import cut_before, is_boundary

Window = tuple[int, int]
"""Where a chunk begins in its text, and where it ends."""

Reach = Callable[[str, int], int]
"""Returns how far a window may reach that begins at a place of a text."""

# A sentence ends with its mark and the quotes and brackets after it; ideographic marks need no blank.
_SENTENCE = re.compile(r"(?:[.!?…]+[\"'”’»)\]]*(?=\s)|[。！？｡؟।])\s*")
_BLANK = re.compile(r"\s")
_NOT_BLANK = re.compile(r"\S")
_LAST_NOT_BLANK = re.compile(r"\S(?=\s*\Z)")
_PARTS = ("\n\n", "\n")


def windows(text: str, reach: Reach, back: Reach) -> Iterator[Window]:
    """Yield the windows of a text in order, without the blanks at their ends; none of a blank text.

    A window ends, in its last half, after the last paragraph, else line, sentence or word that it holds whole, and else at the
    last boundary between characters as a reader sees them.

    Args:
        text: What to cut.
        reach: How far a window may reach that begins at a place; beyond that place.
        back: Where the next window begins at the earliest, given where one ended; not before the beginning of that one.
    """
    start = _skipped(text, 0)
    while start < len(text):
        limit = reach(text, start)
        end = len(text) if limit >= len(text) else _cut(text, start, limit)
        stripped = _stripped(text, start, end)
        yield start, stripped
        if end >= len(text) or _skipped(text, end) >= len(text):
            return
        start = _next_start(text, start, end, back(text, end))


def check_sizes(subject: str, size_name: str, size: object, overlap_name: str, overlap: object) -> None:
    """Check the sizes of a chunker.

    Raises:
        AKConfigError: One is no whole number or out of range, or the overlap is not below the size.
    """
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise AKConfigError(f"{subject}: {size_name} must be a whole number of at least 1, not {size!r}.")
    if not isinstance(overlap, int) or isinstance(overlap, bool) or not 0 <= overlap < size:
        raise AKConfigError(
            f"{subject}: {overlap_name} must be a whole number from 0 to below {size_name} ({size}), not {overlap!r}."
        )


def _cut(text: str, start: int, limit: int) -> int:
    middle = start + (limit - start) // 2
    for part in _PARTS:
        place = text.rfind(part, middle, limit)
        if place >= 0:
            return place + len(part)
    sentence = max((match.end() for match in _SENTENCE.finditer(text, middle, limit)), default=-1)
    if sentence > middle:
        return _whole(text, sentence, start)
    word = _last_blank(text, middle, limit)
    return word if word > middle else cut_before(text, limit, start)


def _whole(text: str, place: int, start: int) -> int:
    return place if is_boundary(text, place) else cut_before(text, place, start)


def _last_blank(text: str, start: int, end: int) -> int:
    """Return the place after the last blank, or -1; a text without one is looked through only once."""
    place = text.rfind(" ", start, end)
    if place >= 0:
        return place + 1
    return max((match.end() for match in _BLANK.finditer(text, start, end)), default=-1)


def _next_start(text: str, start: int, end: int, earliest: int) -> int:
    """Return where the next window begins: at a word within the overlap, and in any case an eighth further on."""
    place = max(earliest, start + max(1, (end - start) // 8))
    if place >= end:
        return _skipped(text, end)
    blank = _BLANK.search(text, place - 1, end)
    begins = _skipped(text, blank.end()) if blank else place
    if begins >= end:
        return _skipped(text, end)
    return begins if is_boundary(text, begins) else _boundary_after(text, begins, end)


def _boundary_after(text: str, place: int, end: int) -> int:
    while place < end and not is_boundary(text, place):
        place += 1
    return _skipped(text, place)


def _skipped(text: str, place: int) -> int:
    match = _NOT_BLANK.search(text, place)
    return match.start() if match else len(text)


def _stripped(text: str, start: int, end: int) -> int:
    return start + len(text[start:end].rstrip())
