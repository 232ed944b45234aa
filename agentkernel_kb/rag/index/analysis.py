"""How texts and questions become terms: words folded and stemmed, identifiers taken apart, scripts without spaces in pairs.

Stemming and the nearest spelling of unknown words need the extra `rag`; without it plurals are folded and words are taken as
they are. An index remembers which of the two it was built with.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from agentkernel_kb.embed.words import normalise
from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.lexical import FUNCTION_WORDS, words_of
from agentkernel_kb.rag.index.terms import TermIndex

Stem = Callable[[str], str]

_VERSION = 1
_CACHED_STEMS = 65_536
_LONGEST = 64
# Each a part of a name in camel case: `HTTPServerError2` is HTTP, Server, Error2.
_HUMP = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*")
_CAMEL = re.compile(r"\b[A-Za-z]*[a-z][A-Z][A-Za-z0-9]*\b|\b[A-Z]{2,}[a-z][A-Za-z0-9]*\b")
# Scripts that one language's stemmer is meant for; all other letters go to the stemmer of the index's language.
_SCRIPTS = (
    ("russian", re.compile(r"[\u0400-\u04ff]")),
    ("greek", re.compile(r"[\u0370-\u03ff]")),
    ("arabic", re.compile(r"[\u0600-\u06ff]")),
    ("armenian", re.compile(r"[\u0530-\u058f]")),
    ("hindi", re.compile(r"[\u0900-\u097f]")),
    ("tamil", re.compile(r"[\u0b80-\u0bff]")),
)

FEEDBACK_FROM = 1_000
"""Chunks that an index has at least before a question is widened by its best hits: below that these are too often wrong."""

_FEEDBACK_CHUNKS, _FEEDBACK_TERMS, _FEEDBACK_SHARE = 5, 20, 0.5
_SPELLED_SHARE, _SPELLED_LIKENESS, _SPELLED_FROM = 0.7, 78.0, 4


class Analysis:
    """Texts to terms.

    Args:
        language: Whose stemmer words of Latin letters go to, as Snowball calls it: `english`, `german`, ….
        stemming: Stem words; where it is not said, if `snowballstemmer` is installed.

    Raises:
        AKConfigError: There is no stemmer for the language, or none is installed though it is asked for.
    """

    def __init__(self, language: str = "english", *, stemming: bool | None = None) -> None:
        self.language = language
        self.stemming = _is_installed() if stemming is None else stemming
        self._stem = _stemmer(language) if self.stemming else normalise
        self._stop = FUNCTION_WORDS if language == "english" else frozenset[str]()

    @property
    def name(self) -> str:
        """What terms are comparable under."""
        return f"{f'snowball-{self.language}' if self.stemming else 'plural'}-v{_VERSION}"

    def counts(self, text: str, heading: str = "") -> Counter[str]:
        """Return how often a text has each term; those of its title or headings count once more."""
        terms = Counter(self._terms(text))
        if heading:
            terms.update(self._terms(heading))
        return terms

    def question(self, text: str, index: TermIndex) -> dict[str, float]:
        """Return the terms of a question with their weights; for one that the index does not know, what it may be meant for."""
        terms = Counter(self._terms(text))
        weights: dict[str, float] = {}
        for term, count in terms.items():
            near = [] if index.knows(term) else nearest_terms(term, index)
            share = count * (_SPELLED_SHARE / len(near) if near else 1.0)
            for meant in near or [term]:
                weights[meant] = weights.get(meant, 0.0) + share
        return weights

    def _terms(self, text: str) -> Iterable[str]:
        """Yield the terms of a text; words that say little only where it has no others."""
        words = [*words_of(text), *_humps(text)]
        telling = [word for word in words if word not in self._stop] or words
        return (self._stem(word[:_LONGEST]) for word in telling)

    def __repr__(self) -> str:
        return f"Analysis(language={self.language!r}, stemming={self.stemming})"


def widened(index: TermIndex, weights: Mapping[str, float], best: Sequence[int]) -> Mapping[str, float]:
    """Widen a question by the telling terms of its best chunks; in a small index leave it as it is.

    Source: relevance models (Lavrenko and Croft, 2001) with the question kept, the chunks by their rank.
    """
    if len(index) < FEEDBACK_FROM or not best or not weights:
        return weights
    found: defaultdict[str, float] = defaultdict(float)
    for rank, slot in enumerate(best[:_FEEDBACK_CHUNKS], 1):
        share = 1 / (rank * (index.length_of(slot) or 1))
        for term in index.terms_of(slot):
            found[term] += share * index.count_of(term, slot) * index.rarity(term)
    telling = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:_FEEDBACK_TERMS]
    total, asked = sum(weight for _, weight in telling), sum(weights.values())
    if not total or not asked:
        return weights
    wider = {term: (1 - _FEEDBACK_SHARE) * weight / asked for term, weight in weights.items()}
    for term, weight in telling:
        wider[term] = wider.get(term, 0.0) + _FEEDBACK_SHARE * weight / total
    return wider


def nearest_terms(term: str, index: TermIndex, most: int = 2) -> list[str]:
    """Return the terms of an index that a misspelled one may be meant for; none for short ones and for numbers."""
    if len(term) < _SPELLED_FROM or any(character.isdigit() for character in term):
        return []
    try:
        from rapidfuzz import process
        from rapidfuzz.distance import OSA, JaroWinkler
    except ImportError:
        return []
    near = process.extract(
        term, list(index.vocabulary()), scorer=JaroWinkler.normalized_similarity, limit=20, score_cutoff=_SPELLED_LIKENESS / 100
    )
    allowed = 1 if len(term) < 6 else 2
    close = sorted((OSA.distance(term, other), other) for other, _, _ in near if OSA.distance(term, other) <= allowed)
    return [other for distance, other in close if distance == close[0][0]][:most]


def _humps(text: str) -> list[str]:
    """Return the parts of names in camel case, folded; the names themselves are words of the text already."""
    if text.islower():
        return []
    return [part.lower() for name in _CAMEL.findall(text) for part in _HUMP.findall(name) if len(part) < len(name)]


def _is_installed() -> bool:
    try:
        import snowballstemmer  # pyright: ignore[reportUnusedImport] - only whether it is there is asked
    except ImportError:
        return False
    return snowballstemmer is not None


@lru_cache(maxsize=8)
def _stemmer(language: str) -> Stem:
    """Return a stemmer, which remembers what it stemmed: a corpus has few words, often."""
    try:
        import snowballstemmer
    except ImportError:
        raise AKConfigError("Stemming needs the extra 'rag': pip install 'agentkernel-kb[rag]'") from None
    known, made = snowballstemmer.algorithms(), cast("Callable[[str], Any]", snowballstemmer.stemmer)
    if language not in known:
        raise AKConfigError(f"There is no stemmer for {language!r}. Languages: {', '.join(sorted(known))}.")
    stemmers: dict[str, Any] = {language: made(language)}
    scripts = [(name, script) for name, script in _SCRIPTS if name in known]

    @lru_cache(maxsize=_CACHED_STEMS)
    def stem(word: str) -> str:
        if word.isascii():
            return str(stemmers[language].stemWord(word))
        name = next((name for name, script in scripts if script.search(word)), language)
        if name not in stemmers:
            stemmers[name] = made(name)
        return str(stemmers[name].stemWord(word))

    return stem
