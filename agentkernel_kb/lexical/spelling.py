"""The word that somebody probably meant who wrote one that no text has."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from agentkernel_kb.errors import KnowledgeDependencyError
from agentkernel_kb.lexical.memo import Memo
from agentkernel_kb.lexical.words import FUNCTION_WORDS

_SHORTEST = 4
_SHORT = 6
_LONG = 8
_MOST_CACHED = 10_000


class Lexicon:
    """Known words, found by how typing goes wrong: a letter left out, added or changed, two swapped.

    One edit is taken for a mistake in words of four letters and more, two in words of eight and more. In words of less than six
    letters the first is taken to be right, for too many of them are one letter from another word; in longer ones the first two
    or the last two are. So a few words are compared, however many are known.

    Args:
        extra: The extra that is said to be missing where the library is.

    Raises:
        KnowledgeDependencyError: The library, which the extras `eval` and `rag` bring, is not installed.
    """

    def __init__(self, extra: str = "eval") -> None:
        try:
            from rapidfuzz import process
            from rapidfuzz.distance import OSA
        except ImportError as error:
            raise KnowledgeDependencyError(extra, "Spelling") from error
        self._extract, self._distance = process.extract, OSA.distance
        self._alike: dict[tuple[str, int], list[str]] = {}

    def add(self, word: str) -> None:
        """Learn a folded word; it must be new. One that is too short to be meant, or has more than letters, is left out."""
        if len(word) >= _SHORTEST - 1 and word.isalpha():
            for end in (word[0], word[:2], _last(word)):
                self._alike.setdefault((end, len(word)), []).append(word)

    def near(self, word: str) -> list[tuple[int, str]]:
        """Return the known words that a folded one may have been meant to be, each with its number of edits, in no order."""
        if len(word) < _SHORTEST or not word.isalpha():
            return []
        edits = 1 if len(word) < _LONG else 2
        candidates = list(self._candidates(word, edits))
        found = self._extract(word, candidates, scorer=self._distance, score_cutoff=edits, limit=None)
        return list({(int(distance), other) for other, distance, _ in found})

    def _candidates(self, word: str, edits: int) -> Iterator[str]:
        ends = (word[0],) if len(word) < _SHORT else (word[:2], _last(word))
        for length in range(len(word) - edits, len(word) + edits + 1):
            for end in ends:
                yield from self._alike.get((end, length), ())


class Spelling:
    """Finds the nearest known spelling, as `Lexicon` compares them.

    Args:
        known: Each known word, folded, and how often it stands in the texts.
        kept: Words that are never taken for mistakes; function words of English by default.

    Raises:
        KnowledgeDependencyError: The extra `eval` is not installed.
    """

    def __init__(self, known: Mapping[str, int], kept: Collection[str] = FUNCTION_WORDS) -> None:
        self._known, self._kept = dict(known), kept
        self._lexicon = Lexicon()
        for word in known:
            self._lexicon.add(word)
        self._found = Memo(self._nearest, _MOST_CACHED)

    def __contains__(self, word: object) -> bool:
        return word in self._known

    def meant(self, word: str) -> str:
        """Return the known word that a folded word was probably meant to be; the word itself where it is known or none is near.

        Of equally near words, the one with the same first letter, then the most frequent, then the first of the alphabet.
        """
        return word if word in self._known or word in self._kept else self._found[word]

    def _nearest(self, word: str) -> str:
        near = nearest_first(word, self._lexicon.near(word), self._known)
        return near[0][1] if near else word


def nearest_first(word: str, near: Collection[tuple[int, str]], counts: Mapping[str, int]) -> list[tuple[int, str]]:
    """Return words with their edits in the order in which they were probably meant.

    The fewest edits come first, then the same first letter, then the more frequent, then the first of the alphabet.
    """
    return sorted(near, key=lambda each: (each[0], each[1][0] != word[0], -counts[each[1]], each[1]))


def _last(word: str) -> str:
    """Return the last two letters of a word as they differ from the first two of another."""
    return f"-{word[-2:]}"
