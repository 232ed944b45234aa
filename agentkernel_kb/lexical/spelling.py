"""The word that somebody probably meant who wrote one that no text has."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agentkernel_kb.errors import KnowledgeDependencyError
from agentkernel_kb.lexical.words import FUNCTION_WORDS

_SHORTEST = 4
_SHORT = 6
_LONG = 8
_MOST_CACHED = 10_000


class Spelling:
    """Finds the nearest known spelling by how typing goes wrong: a letter left out, added or changed, two swapped.

    One edit is taken for a mistake in words of four letters and more, two in words of eight and more. In words of less than six
    letters, the first is taken to be right: too many of them are one letter from another word.

    Args:
        known: Each known word, folded, and how often it stands in the texts.
        kept: Words that are never taken for mistakes; function words of English by default.

    Raises:
        KnowledgeDependencyError: The extra `eval` is not installed.
    """

    def __init__(self, known: Mapping[str, int], kept: Collection[str] = FUNCTION_WORDS) -> None:
        try:
            from rapidfuzz.distance import OSA
        except ImportError as error:
            raise KnowledgeDependencyError("eval", "Spelling") from error
        self._distance = OSA.distance
        self._known, self._kept = dict(known), kept
        self._by_length: dict[int, list[str]] = {}
        for word in sorted(word for word in known if len(word) >= _SHORTEST - 1):
            self._by_length.setdefault(len(word), []).append(word)
        self._found: dict[str, str] = {}

    def __contains__(self, word: object) -> bool:
        return word in self._known

    def meant(self, word: str) -> str:
        """Return the known word that a folded word was probably meant to be; the word itself where it is known or none is near.

        Of equally near words, the one with the same first letter, then the most frequent, then the first of the alphabet.
        """
        if word in self._known or word in self._kept or len(word) < _SHORTEST or not word.isalpha():
            return word
        if word not in self._found:
            if len(self._found) >= _MOST_CACHED:
                self._found.clear()
            self._found[word] = self._nearest(word)
        return self._found[word]

    def _nearest(self, word: str) -> str:
        edits = 1 if len(word) < _LONG else 2
        lengths = range(len(word) - edits, len(word) + edits + 1)
        near = [
            (distance, other[0] != word[0], -self._known[other], other)
            for length in lengths
            for other in self._by_length.get(length, ())
            if (len(word) >= _SHORT or other[0] == word[0])
            and (distance := self._distance(word, other, score_cutoff=edits)) <= edits
        ]
        return min(near)[-1] if near else word
