"""What of a text an index sees: case and accents folded, scripts without spaces cut into overlapping pairs."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Scripts that write words without spaces, or glue particles to them, as ranges of a regular expression: ideographs, kana,
hangul, Thai, Lao, Burmese and Khmer."""

# Accents of Latin, Greek and Cyrillic letters; й keeps its breve, which makes it a letter of its own.
_ACCENT = re.compile("(?<!и)[\u0300-\u036f]")
_RUN = re.compile(f"[{UNSPACED}]+")
# What stands between blanks and is not all ASCII; whatever is ASCII is folded by the index itself.
_FOREIGN = re.compile(r"[!-~]*[^\x00-\x7f]+[^\x00-\x20]*")
# Names of languages and the like, whose signs are no letters for any tokenizer.
_SIGNED = re.compile(r"(?<![\w+#])([A-Za-z])(\+\+|#)(?![\w+#])")
_SIGNS = {"++": "plusplus", "#": "sharp"}
# Letters that Unicode does not take apart. First those up to U+02AF whose names say what they are, such as LATIN SMALL LETTER L
# WITH STROKE; then those that have a name of their own, as passports write them (ICAO Doc 9303, part 3). That is what people
# type who do not have them.
_BASES = {
    "b": "ƀƃɓ", "c": "ƈȼɕ", "d": "đƌȡɖɗ", "e": "ɇ", "f": "ƒ", "g": "ǥɠ", "h": "ħɦ", "i": "ɨ", "j": "ɉʝ", "k": "ƙ",
    "l": "łƚȴɫɬɭ", "m": "ɱ", "n": "ƞȵɲɳ", "o": "ø", "p": "ƥ", "q": "ɋʠ", "r": "ɍɼɽɾ", "s": "ȿʂ", "t": "ŧƫƭȶʈ", "v": "ʋ",
    "y": "ƴɏ", "z": "ƶȥɀʐʑ",
}  # fmt: skip
_NAMED = {"æ": "ae", "ð": "d", "ı": "i", "ĸ": "q", "ŋ": "n", "œ": "oe", "þ": "th"}
PLAIN = str.maketrans({letter: base for base, letters in _BASES.items() for letter in letters} | _NAMED)
"""What stands for each letter that nothing takes apart, once case is folded."""

_CACHED_FOLDS = 4_096


def fold(text: str) -> str:
    """Return `text` with compatibility forms, case and accents folded: `Ｃａｆé Łódź` becomes `cafe lodz`."""
    return text.lower() if text.isascii() else without_accents(text).translate(PLAIN)


def without_accents(text: str) -> str:
    """Return `text` folded but for the letters that nothing takes apart, which stemmers tell from others."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFKC", _ACCENT.sub("", decomposed))


def index_text(text: str, *, plain: bool = True) -> str:
    """Return `text` as a full-text index is to read it, which splits it at whatever is no letter, mark or digit.

    Plain ASCII comes back as it is, for the index folds its case. Everything else is folded, and a run of a script without
    spaces becomes its overlapping pairs and its last character: `知識管理` is `知識 識管 管理 理`. So every part of a run is
    a phrase of pairs, and every single character the beginning of a term. `C++` and `C#` become words of their own.

    Args:
        text: The text.
        plain: Letters such as ł are folded too; not for a stemmer, see `without_accents`.
    """
    if _may_be_signed(text):
        text = _SIGNED.sub(_named, text)
    if text.isascii():
        return text
    return _FOREIGN.sub(_folded if plain else _without_accents, text)


def words_of(text: str, *, plain: bool = True) -> list[str]:
    """Return the terms of `text` in order, as the index holds them: folded, pairs for scripts without spaces.

    Letters, digits and the marks that belong to letters make words; everything else separates them. `plain` is that of
    `index_text`.
    """
    spaced = (fold if plain else without_accents)(index_text(text, plain=plain))
    if spaced.isascii():
        return re.findall("[a-z0-9]+", spaced)
    return _letters(spaced).split()


def is_unspaced(term: str) -> bool:
    """Tell whether a term is of a script without spaces."""
    return _RUN.fullmatch(term) is not None


def runs_of(text: str) -> list[str]:
    """Return the folded words of `text` in order, a run of a script without spaces whole."""
    folded = fold(_SIGNED.sub(_named, text))
    spaced = _RUN.sub(lambda match: f" {match[0]} ", folded)
    return _letters(spaced).split()


def pairs(run: str) -> list[str]:
    """Return the overlapping pairs of a run of a script without spaces; a single character is its own."""
    return [first + second for first, second in pairwise(run)] or [run]


def _may_be_signed(text: str) -> bool:
    """Tell cheaply whether there may be a name such as `C#`: most texts have none, and some thousands are read in a second."""
    if "++" in text:
        return True
    place = text.find("#", 1)
    while place > 0:
        if text[place - 1].isalpha():
            return True
        place = text.find("#", place + 1)
    return False


def _terms_of_run(run: str) -> list[str]:
    return [*pairs(run), run[-1]] if len(run) > 1 else [run]


def _named(match: re.Match[str]) -> str:
    return f"{match[1]}{_SIGNS[match[2]]}"


@lru_cache(maxsize=_CACHED_FOLDS)
def _folded_word(word: str, plain: bool) -> str:
    # What separates words is decided here, for the tables of an index may be older than those of Python.
    folded = fold(word) if plain else without_accents(word)
    return _RUN.sub(lambda match: f" {' '.join(_terms_of_run(match[0]))} ", _letters(folded))


def _folded(match: re.Match[str], *, plain: bool = True) -> str:
    fold_one = _folded_word if match.end() - match.start() <= 64 else _folded_word.__wrapped__
    return fold_one(match[0], plain)


def _without_accents(match: re.Match[str]) -> str:
    return _folded(match, plain=False)


def _letters(text: str) -> str:
    return "".join(character if _is_word(character) else " " for character in text)


def _is_word(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind[0] in "LN" or kind in ("Mn", "Mc", "Co")
