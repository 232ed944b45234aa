"""Which knowledge base a question belongs to, by the words that they share."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping

from agentkernel_kb.lexical import FUNCTION_WORDS, variants, words_of

_JOINTS = re.compile(r"[_\W]+|(?<=[a-z])(?=[A-Z])")


def ranked(question: str, documents: Mapping[str, str]) -> list[tuple[str, float]]:
    """Return the documents that share words with the question, the best first.

    A word counts for more the fewer documents have it, and as often as it stands in one, with less and less for each.

    Args:
        question: In plain words; those of English that say little do not count.
        documents: Name to text; the words of the name count too.

    Returns:
        Name and score above zero; ties in the order given. Empty where no word is shared.
    """
    counted = {name: Counter(_terms(f"{name} {text}")) for name, text in documents.items()}
    asked = {frozenset(variants(word)) for word in _terms(question)}
    scores = {name: sum(_weight(word, name, counted) for word in asked) for name in documents}
    return sorted(((name, score) for name, score in scores.items() if score), key=lambda item: -item[1])


def _terms(text: str) -> list[str]:
    """Return the words of a text, those that an identifier is joined of as well."""
    spaced = " ".join(_JOINTS.split(text))
    return [word for word in words_of(spaced) if word not in FUNCTION_WORDS]


def _weight(word: frozenset[str], name: str, counted: Mapping[str, Counter[str]]) -> float:
    frequency = sum(counted[name][form] for form in word)
    if not frequency:
        return 0.0
    having = sum(any(form in counts for form in word) for counts in counted.values())
    return (1 + math.log(frequency)) * math.log(1 + len(counted) / having)
