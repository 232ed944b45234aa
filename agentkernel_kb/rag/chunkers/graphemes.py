"""Where a text may be cut without breaking what a reader sees as one character.

Source: the extended grapheme clusters of Unicode Standard Annex 29, as far as a cut needs them.
"""

from __future__ import annotations

import unicodedata

_JOINER = "\u200d"
_EXTENDING = frozenset(("Mn", "Me", "Mc"))
_MOST_BACK = 256


def is_boundary(text: str, place: int) -> bool:
    """Tell whether a cut between `text[place - 1]` and `text[place]` leaves every cluster whole."""
    if place <= 0 or place >= len(text):
        return True
    before, after = text[place - 1], text[place]
    if after.isascii():
        return not (before == "\r" and after == "\n")
    if before in ("\r", "\n") or before == " ":
        return not _extends(after)
    if _extends(after) or before == _JOINER:
        return False
    if _is_flag(before) and _is_flag(after):
        return _flags_before(text, place) % 2 == 0
    return not (_is_jamo(after) and _is_hangul(before))


def cut_before(text: str, place: int, floor: int) -> int:
    """Return the last boundary at or before `place` and after `floor`; without one the next after `place`, if there is any.

    A cluster longer than 256 code points, which no script has, is cut where it stands.
    """
    for step in range(place, max(floor, place - _MOST_BACK), -1):
        if is_boundary(text, step):
            return step
    for step in range(place + 1, min(len(text), place + _MOST_BACK) + 1):
        if is_boundary(text, step):
            return step
    return place


def _extends(character: str) -> bool:
    if character.isascii():
        return False
    code = ord(character)
    return (
        unicodedata.category(character) in _EXTENDING
        or character in (_JOINER, "\u200c", "\u0e33", "\u0eb3")  # The last two: am of Thai and Lao.
        or 0x1F3FB <= code <= 0x1F3FF  # Skin tones.
        or 0xE0020 <= code <= 0xE007F  # Tags, of which the flags of regions are made.
        or 0xFF9E <= code <= 0xFF9F  # Voicing marks of narrow kana.
    )


def _is_flag(character: str) -> bool:
    return 0x1F1E6 <= ord(character) <= 0x1F1FF


def _flags_before(text: str, place: int) -> int:
    count = 0
    while count < place and _is_flag(text[place - 1 - count]) and count < _MOST_BACK:
        count += 1
    return count


def _is_jamo(character: str) -> bool:
    """Tell whether a character is a vowel or a final consonant of a hangul syllable that is written in parts."""
    code = ord(character)
    return 0x1160 <= code <= 0x11FF or 0xD7B0 <= code <= 0xD7FB


def _is_hangul(character: str) -> bool:
    code = ord(character)
    return 0x1100 <= code <= 0x11FF or 0xAC00 <= code <= 0xD7FB
