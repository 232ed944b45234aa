"""How a text becomes terms that are counted: names taken apart, words stemmed, pieces of words that survive a misspelling."""

from __future__ import annotations

import re

from agentkernel_kb.lexical.stems import stems_of
from agentkernel_kb.lexical.text import words_of

GRAM_LENGTHS = (3, 4, 5)
"""Characters of the pieces of a word."""

_LONGEST_IN_PIECES = 64
# A capital or an underscore before which a joined name is taken apart.
_JOINT = re.compile(r"[A-Z_](?:(?<=_)|(?<=[a-z0-9][A-Z])|(?<=[A-Z]{2})(?=[a-z]))")
_NAME = re.compile("[A-Za-z0-9]+")
# What English writes behind an apostrophe belongs to the word before; what Romance languages write before one does not.
_APOSTROPHE = re.compile(r"['’](?<=\w['’])(?=(?:s|t|re|ve|ll|d|m)\b)", re.IGNORECASE)


class Terms:
    """Turns texts of one language into terms, always the same for the same text and language.

    Args:
        language: The Snowball algorithm for its words (https://snowballstem.org/algorithms): `english`, `german`, …; `None` for
            words as they stand, which needs no further library. Words of scripts that one language is written in, such as
            Cyrillic and Greek, go to the stemmer of that language.
        extra: The extra that is said to be missing where the library is.

    Raises:
        AKConfigError: There is no such algorithm.
        KnowledgeDependencyError: The library of the algorithms, which the extras `eval` and `rag` bring, is not installed.
    """

    def __init__(self, language: str | None = "english", *, extra: str = "eval") -> None:
        self.language = language
        self._stems = stems_of(language, extra)

    def words(self, text: str, *, names: bool = False) -> list[str]:
        """Return the words of a text in order, folded as far as a stemmer wants it; `orderId` is two words, `don't` is one.

        Args:
            text: The text.
            names: Add each joined name as one word, `orderid`, at the end, for whoever writes it so.
        """
        if "'" in text or "’" in text:
            text = _APOSTROPHE.sub("", text)
        words = words_of(split_names(text), plain=self.language is None)
        return words + _joined(text) if names else words

    def stem(self, word: str) -> str:
        """Return what one of `words` has in common with its other forms, folded."""
        return self._stems[word]

    def stems(self, text: str) -> list[str]:
        """Return the stems of the words of a text, in order."""
        return list(map(self._stems.__getitem__, self.words(text)))


def split_names(text: str) -> str:
    """Return a text in which the words of joined names stand apart: `orderId`, `HTTPServer`, `order_id`."""
    return _JOINT.sub(r" \g<0>", text)


def grams(word: str) -> list[str]:
    """Return the overlapping pieces of a word, its ends marked by a blank: most of them survive one wrong letter.

    Their lengths are `GRAM_LENGTHS`. A word without any, such as `a`, is its own piece.
    """
    marked = f" {word[:_LONGEST_IN_PIECES]} "
    pieces = [marked[start : start + length] for length in GRAM_LENGTHS for start in range(len(marked) - length + 1)]
    return pieces or [marked]


def _joined(text: str) -> list[str]:
    """Return the joined names of a text, each as one folded word."""
    if _JOINT.search(text) is None:
        return []
    return [name.lower() for name in _NAME.findall(text) if _JOINT.search(name)]
