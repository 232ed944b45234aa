"""How a text becomes terms that are counted: names taken apart, words stemmed, pieces of words that survive a misspelling."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from agentkernel_kb.errors import AKConfigError, KnowledgeDependencyError
from agentkernel_kb.lexical.text import words_of
from agentkernel_kb.near import nearest

GRAM_LENGTHS = (3, 4, 5)
"""Characters of the pieces of a word."""

_JOINTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_+")
_APOSTROPHE = re.compile(r"(?<=\w)['’](?=\w)")
_MOST_CACHED = 100_000
_LONGEST_STEMMED = 64
_LONGEST_IN_PIECES = 64


class Terms:
    """Turns texts of one language into terms, always the same for the same text and language.

    Args:
        language: The Snowball algorithm for its words (https://snowballstem.org/algorithms): `english`, `german`, …; `None` for
            words as they stand, which needs no further library.

    Raises:
        AKConfigError: There is no such algorithm.
        KnowledgeDependencyError: The extra `eval`, which brings the algorithms, is not installed.
    """

    def __init__(self, language: str | None = "english") -> None:
        self.language = language
        self._stemmed: dict[str, str] = {}
        self._algorithm: Callable[[str], str] = _algorithm(language)

    def words(self, text: str) -> list[str]:
        """Return the folded words of a text in order; `orderId` and `order_id` are two words, `don't` is one."""
        return words_of(split_names(_APOSTROPHE.sub("", text)))

    def stem(self, word: str) -> str:
        """Return what a folded word has in common with its other forms."""
        stemmed = self._stemmed.get(word)
        if stemmed is None:
            stemmed = self._algorithm(word) if len(word) <= _LONGEST_STEMMED else word
            if len(self._stemmed) < _MOST_CACHED:
                self._stemmed[word] = stemmed
        return stemmed

    def stems(self, text: str) -> list[str]:
        """Return the stems of the words of a text, in order."""
        return [self.stem(word) for word in self.words(text)]


def split_names(text: str) -> str:
    """Return a text in which the words of joined names stand apart: `orderId`, `HTTPServer`, `order_id`."""
    return _JOINTS.sub(" ", text)


def grams(word: str) -> list[str]:
    """Return the overlapping pieces of a word, its ends marked by a blank: most of them survive one wrong letter.

    Their lengths are `GRAM_LENGTHS`. A word without any, such as `a`, is its own piece.
    """
    marked = f" {word[:_LONGEST_IN_PIECES]} "
    pieces = [marked[start : start + length] for length in GRAM_LENGTHS for start in range(len(marked) - length + 1)]
    return pieces or [marked]


def _algorithm(language: str | None) -> Callable[[str], str]:
    if language is None:
        return str
    try:
        import snowballstemmer
    except ImportError as error:
        raise KnowledgeDependencyError("eval", "Stemming") from error
    library: Any = snowballstemmer
    known: list[str] = sorted(library.algorithms())
    if language not in known:
        near = nearest(language, known)
        raise AKConfigError(
            f"Nothing stems '{language}'.{f' Did you mean {near!r}?' if near else ''} Known: {', '.join(known)}."
        )
    return library.stemmer(language).stemWord
