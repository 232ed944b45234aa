"""The place in a text that shows why it was found, found without any index."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from agentkernel_kb.lexical.text import PLAIN

LENGTH = 200
"""Characters of an excerpt."""

_LOOKED_AT = 200_000
_BEFORE = 60


def excerpt(text: str, needles: Sequence[str], *, length: int = LENGTH) -> str:
    """Return the stretch of `text`, on one line, around the place where most of `needles` stand near each other.

    Args:
        text: The text as its author wrote it.
        needles: Folded words.
        length: Characters of the excerpt, ellipses not counted.

    Returns:
        The excerpt with `…` where something is cut off; `""` where no needle is found.
    """
    looked_at = text[:_LOOKED_AT]
    folded = _fold_in_place(looked_at)
    places = sorted({place for needle in needles for place in _places(folded, needle)})
    if not places:
        return ""
    start = _word_start(looked_at, max(0, _densest(places, length) - _BEFORE))
    end = _word_end(looked_at, min(len(looked_at), start + length))
    line = " ".join(looked_at[start:end].split())
    return f"{'…' if start else ''}{line}{'…' if end < len(text.rstrip()) else ''}"


def _fold_in_place(text: str) -> str:
    """Return `text` folded so far as every character stays in its place."""
    if text.isascii():
        return text.lower()
    return "".join(map(_base, text))


def _base(character: str) -> str:
    if character.isascii():
        return character.lower()
    folded = unicodedata.normalize("NFKD", character).casefold().translate(PLAIN)
    return folded[0] if folded else character


def _places(folded: str, needle: str, most: int = 50) -> list[int]:
    """Return where a needle begins a word, or stands anywhere where it is of a script without spaces."""
    found: list[int] = []
    place = folded.find(needle)
    while place >= 0 and len(found) < most:
        if place == 0 or not (folded[place - 1].isalnum() and needle[0].isascii()):
            found.append(place)
        place = folded.find(needle, place + 1)
    return found


def _densest(places: Sequence[int], length: int) -> int:
    """Return the first of the places that have most others within one excerpt."""
    best, most, end = places[0], 0, 0
    for index, place in enumerate(places):
        while end < len(places) and places[end] < place + length - _BEFORE:
            end += 1
        if end - index > most:
            best, most = place, end - index
    return best


def _word_start(text: str, place: int) -> int:
    """Return the next beginning of a word at or after `place`, unless it is far."""
    if place == 0 or text[place - 1].isspace():
        return place
    for step in range(place, min(place + 20, len(text))):
        if text[step].isspace():
            return step + 1
    return place


def _word_end(text: str, place: int) -> int:
    if place >= len(text) or text[place].isspace():
        return place
    for step in range(place, max(place - 20, 0), -1):
        if text[step].isspace():
            return step
    return place
