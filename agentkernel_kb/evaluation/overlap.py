"""A lint of descriptions: which backends a reader cannot tell apart, by the words that their descriptions share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from agentkernel_kb.lexical.terms import Terms
from agentkernel_kb.lexical.words import FUNCTION_WORDS

ALIKE = 0.5
"""From which share of common words on two descriptions are named."""

_FEWEST_SHARED = 3
_MOST_SHOWN = 8


@dataclass(frozen=True)
class Overlap:
    """Two backends whose descriptions overlap.

    Attributes:
        backends: Both names.
        share: Which share of the telling words of the shorter description the other has too, from 0 to 1.
        shared: Those words, as they stand in the first, in order.
        own: For each backend, the telling words that the other does not have.
    """

    backends: tuple[str, str]
    share: float
    shared: tuple[str, ...]
    own: Mapping[str, tuple[str, ...]]

    @property
    def advice(self) -> str:
        """What to write, in a sentence or two."""
        first, second = self.backends
        shared = ", ".join(self.shared[:_MOST_SHOWN])
        bare = [name for name in self.backends if not self.own[name]]
        start = f"'{first}' and '{second}' are both described by: {shared}."
        if bare:
            names = " and ".join(f"'{name}'" for name in bare)
            return f"{start} Nothing tells {names} apart: write which questions only it answers, and which it does not."
        kept = "; ".join(f"'{name}': {', '.join(self.own[name][:_MOST_SHOWN])}" for name in self.backends)
        return f"{start} Say when to choose which: begin with what only it has ({kept}), and leave out what both share."

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        own = {name: list(words) for name, words in self.own.items()}
        values = {"backends": list(self.backends), "share": round(self.share, 4), "shared": list(self.shared)}
        return {**values, "own": own, "advice": self.advice}


def overlaps(descriptions: Mapping[str, str], *, language: str | None = "english", alike: float = ALIKE) -> list[Overlap]:
    """Return the pairs of backends whose descriptions share most of their telling words, the most alike first.

    Names of backends and function words do not count; forms of one word are one word.

    Args:
        descriptions: Name and description of each backend.
        language: Of the descriptions, as `agentkernel_kb.lexical.terms.Terms` takes it.
        alike: From which share on, from 0 to 1. At least three words have to be shared.
    """
    terms = Terms(language)
    names = {terms.stem(word) for name in descriptions for word in terms.words(name)}
    telling = {name: _telling(text, terms, names) for name, text in descriptions.items()}
    found = [_overlap(first, second, telling) for first, second in combinations(telling, 2)]
    named = [each for each in found if each.share >= alike and len(each.shared) >= _FEWEST_SHARED]
    return sorted(named, key=lambda each: (-each.share, each.backends))


def _telling(text: str, terms: Terms, names: set[str]) -> dict[str, str]:
    """Return each stem with the word that it first stands in."""
    found: dict[str, str] = {}
    for word in terms.words(text):
        stem = terms.stem(word)
        if word not in FUNCTION_WORDS and stem not in names:
            found.setdefault(stem, word)
    return found


def _overlap(first: str, second: str, telling: Mapping[str, Mapping[str, str]]) -> Overlap:
    one, other = telling[first], telling[second]
    shared = [stem for stem in one if stem in other]
    fewest = min(len(one), len(other))
    own = {
        first: tuple(word for stem, word in one.items() if stem not in other),
        second: tuple(word for stem, word in other.items() if stem not in one),
    }
    return Overlap((first, second), len(shared) / fewest if fewest else 0.0, tuple(one[stem] for stem in shared), own)
