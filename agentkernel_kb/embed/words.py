"""Text to weighted lexical features: normalised words, adjacent words, and character pairs where a script has no spaces."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

from agentkernel_kb.lexical.memo import Memo
from agentkernel_kb.lexical.text import UNSPACED, fold
from agentkernel_kb.lexical.words import FUNCTION_WORDS, singular

MAX_WORD_CHARS = 64
_MOST_WORDS = 65_536

PAIR_WEIGHT = 0.5
"""Weight of two adjacent words, times the weight of each, against 1 of a word."""

FUNCTION_WORD_WEIGHT = 0.2
"""Weight of a function word of English: it says little about what a text is about, but is all that some texts have."""

CHARACTER_WEIGHT = 0.5
"""Weight of a single character of a script without spaces; a pair of them weighs 1."""

# The vowel signs of Indic scripts belong to their word, though regular expressions do not count them as letters.
_LETTER = f"(?:[^\\W_{UNSPACED}]|[\u0900-\u0963\u0966-\u0dff])"
_TOKEN = re.compile(f"(?P<run>[{UNSPACED}]+)|(?P<word>{_LETTER}+(?:['’]{_LETTER}+)*(?:[+#]{{1,3}}(?!{_LETTER}))?)")
# The same on text that is folded and all ASCII, as most is.
_PLAIN_TOKEN = re.compile(r"[a-z0-9]+(?:'[a-z0-9]+)*(?:[+#]{1,3}(?![a-z0-9]))?")
# Letters of Thai, Lao, Burmese and Khmer, kana and the parts of hangul syllables: they stand for sounds rather than words.
_SOUND = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff]")


def features(text: str) -> dict[str, float]:
    """Return the features of `text` with their weights: words in the order of their first appearance, then pairs of words.

    A feature that occurs n times weighs √n times its own weight. Blank text has none; text without any word, such as `???`, is
    one feature as a whole.
    """
    words, pairs = counts_of(text)
    weights = {word: math.sqrt(count) * weight_of(word) for word, count in words.items()}
    return weights | {
        f"{first} {second}": math.sqrt(count) * PAIR_WEIGHT * weight_of(first) * weight_of(second)
        for (first, second), count in pairs.items()
    }


def counts_of(text: str) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """Return how often each single feature of `text` occurs, and each pair of adjacent words, by their first appearance."""
    counts, words = _words(text)
    return counts, Counter(pairwise(words))


def weight_of(feature: str) -> float:
    """Return how much a single feature weighs that occurs once."""
    if feature in FUNCTION_WORDS:
        return FUNCTION_WORD_WEIGHT
    return CHARACTER_WEIGHT if len(feature) == 1 and not feature.isascii() else 1.0


def finder(query: str) -> Callable[[str], bool]:
    """Return what tells whether a text has one of the telling words of `query`; blank text has none.

    A telling word is no function word of English and no single letter of a script without spaces, though a single ideograph or
    hangul syllable is one. A query without any telling word is told by all that it has.
    """
    words = _words(query)[0].keys()
    wanted = {word for word in words if not (word in FUNCTION_WORDS or _SOUND.fullmatch(word))} or words
    stems = [_without_apostrophes(word).removesuffix("y") for word in wanted]  # In "policies" there is no "policy".

    def finds(text: str) -> bool:
        folded = _without_apostrophes(" ".join(fold(text).split()))
        if folded and not any(stem in folded for stem in stems):
            return False  # Taking the text apart, which would say the same, takes many times as long.
        return not wanted.isdisjoint(_words(text)[0].keys())

    return finds


def normalise(word: str) -> str:
    """Return a folded word without its apostrophes and, where it is English enough, without its plural ending."""
    return singular(_without_apostrophes(word.replace("’", "'").removesuffix("'s"))[:MAX_WORD_CHARS])


_NORMALISED = Memo(normalise, _MOST_WORDS)


def _words(text: str) -> tuple[Counter[str], list[str]]:
    """Return how often each single feature occurs, and the words of scripts with spaces in their order."""
    folded = fold(text)
    counts: Counter[str] = Counter()
    words = _counted(folded, counts)
    counts.update(words)
    if not counts and (bare := " ".join(folded.split()) or text.strip()):
        counts[bare[:MAX_WORD_CHARS]] += 1
    return counts, words


def _counted(folded: str, counts: Counter[str]) -> list[str]:
    """Count the runs of scripts without spaces in a folded text, and return the words of the others in their order."""
    if folded.isascii():
        return list(map(_NORMALISED.__getitem__, _PLAIN_TOKEN.findall(folded)))
    words: list[str] = []
    for match in _TOKEN.finditer(folded):
        if run := match["run"]:
            counts.update(run)
            counts.update(first + second for first, second in pairwise(run))
        else:
            words.append(_NORMALISED[match["word"]])
    return words


def _without_apostrophes(text: str) -> str:
    return text.replace("’", "").replace("'", "")
