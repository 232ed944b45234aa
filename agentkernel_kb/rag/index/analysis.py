"""How texts and questions become the terms of an index: words folded and stemmed, identifiers taken apart, whole ones too.

Stemming and the nearest spelling of unknown words need the extra `rag`; without it plurals are folded and words are taken as
they are. An index remembers which of the two it was built with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from importlib.util import find_spec

from agentkernel_kb.lexical import FUNCTION_WORDS
from agentkernel_kb.lexical.memo import Memo
from agentkernel_kb.lexical.terms import Terms
from agentkernel_kb.lexical.words import singular
from agentkernel_kb.rag.index.terms import Population

_VERSION = 4
_LONGEST = 64
_MOST_WORDS = 100_000
_MOST_ASKED, _MOST_SPELLED = 1_000, 8
_SPELLED_SHARE = 0.7


class Analysis:
    """Texts to terms.

    Args:
        language: Whose stemmer words of Latin letters go to, as Snowball calls it: `english`, `german`, ….
        stemming: Stem words; where it is not said, if `snowballstemmer` is installed.

    Raises:
        AKConfigError: There is no stemmer for the language.
        KnowledgeDependencyError: None is installed though stemming is asked for.
    """

    def __init__(self, language: str = "english", *, stemming: bool | None = None) -> None:
        self.language = language
        self.stemming = find_spec("snowballstemmer") is not None if stemming is None else stemming
        self._terms = Terms(language if self.stemming else None, extra="rag")
        self._stop = FUNCTION_WORDS if language == "english" else frozenset[str]()
        self._term_of = Memo(_cut(self._terms.stem if self.stemming else singular), _MOST_WORDS)

    @property
    def name(self) -> str:
        """What terms are comparable under."""
        return f"{f'snowball-{self.language}' if self.stemming else 'plural'}-v{_VERSION}"

    def counts(self, text: str, heading: str = "") -> Counter[str]:
        """Return how often a text has each term; those of its title or headings count once more."""
        terms = Counter(self.terms(text))
        if heading:
            terms.update(self.terms(heading))
        return terms

    def terms(self, text: str) -> Iterable[str]:
        """Return the terms of a text in order; words that say little only where it has no others."""
        words = self._terms.words(text, names=True)
        telling = [word for word in words if word not in self._stop] or words
        return map(self._term_of.__getitem__, telling)

    def question(self, text: str, held: Population) -> dict[str, float]:
        """Return the terms of a question with their weights; for an unknown one, what it may be meant for.

        Args:
            text: The question; its first 1,000 terms count, and the spelling of 8 is looked up.
            held: What may be found: a term that only others have is unknown, and is never meant.
        """
        weights: dict[str, float] = {}
        looked_up = 0
        for term, count in Counter(self.terms(text)).most_common(_MOST_ASKED):
            near: list[str] = []
            if looked_up < _MOST_SPELLED and not held.having(term):
                looked_up += 1
                near = held.nearest(term)
            share = count * (_SPELLED_SHARE / len(near) if near else 1.0)
            for meant in near or [term]:
                weights[meant] = weights.get(meant, 0.0) + share
        return weights

    def __repr__(self) -> str:
        return f"Analysis(language={self.language!r}, stemming={self.stemming})"


def _cut(stem: Callable[[str], str]) -> Callable[[str], str]:
    """Return what makes a term of a word, however long that is."""
    return lambda word: stem(word[:_LONGEST])
