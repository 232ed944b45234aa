"""The baseline: routes a question by its words, without a model, and says so where none of the knowledge bases fits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.evaluation.calibration import threshold_of
from agentkernel_kb.evaluation.operations import operation_of
from agentkernel_kb.evaluation.ridge import Ridge
from agentkernel_kb.lexical.bm25 import BM25Index
from agentkernel_kb.lexical.spelling import Spelling
from agentkernel_kb.lexical.terms import Terms, grams
from agentkernel_kb.lexical.words import FUNCTION_WORDS
from agentkernel_kb.model import Operation

_MOST_CHARS = 4_000
_MOST_SCHEMA_CHARS = 20_000
_MOST_SENTENCES = 20
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_PAIR_WEIGHT = 0.5
_PIECE_WEIGHT = 0.5
_IN_DOUBT = 0.02
_FUNCTION_WORD_WEIGHT = 0.7
_FIELDS = {"name": 2.0, "about": 1.0, "schema": 0.5, "examples": 1.0}


@dataclass(frozen=True)
class Route:
    """One knowledge base as the router knows it.

    Attributes:
        name: Its name.
        about: Its description.
        examples: Questions that belong to it.
        schema: What its schema says: names of tables, columns, concepts.
        operations: What it declares.
    """

    name: str
    about: str = ""
    examples: Sequence[str] = ()
    schema: str = ""
    operations: frozenset[Operation] = field(default_factory=frozenset[Operation])


@dataclass(frozen=True)
class Decision:
    """Where a question belongs.

    Attributes:
        backend: The one that fits best; `None` where no word of the question is known.
        operation: What to ask it for; `None` where it declares nothing.
        scores: How well each fits, the best first, about 0 (not at all) to 1; ties by name.
        confident: The best one fits well enough. Where it is False, the router's answer is: none of these.
    """

    backend: str | None
    operation: Operation | None
    scores: Mapping[str, float]
    confident: bool

    @property
    def chosen(self) -> str | None:
        """The backend, or `None` for none of these."""
        return self.backend if self.confident else None


class LexicalRouter:
    """Routes by words: the mean of a BM25 score and of a linear classifier, misspelt words taken for the nearest known ones.

    BM25 ranks words and pairs of adjacent words over what is known of each route. The classifier is learnt from name,
    description, schema and each example of each route, and sees pieces of words too. What counts as none is
    calibrated on the examples themselves.

    Args:
        routes: The knowledge bases.
        language: Of the questions, as `agentkernel_kb.lexical.terms.Terms` takes it.
        threshold: Least score of an answer; by default it is calibrated on the examples where each of at least five routes has
            two; otherwise an answer has to share a telling word with the question.

    Raises:
        AKConfigError: Two routes share a name, or the language is not known.
        KnowledgeDependencyError: The extra `eval` is not installed.
    """

    def __init__(self, routes: Iterable[Route], *, language: str | None = "english", threshold: float | None = None) -> None:
        self.routes = {route.name: route for route in _distinct(routes)}
        terms = Terms(language)
        self._scorer = _Scorer(list(self.routes.values()), terms)
        calibrated = self._calibrated(terms) if threshold is None else threshold
        self.threshold = _IN_DOUBT if calibrated is None else calibrated
        self._in_doubt = calibrated is None

    def route(self, question: str) -> Decision:
        """Return where a question belongs; see `Decision`."""
        found = self._scorer.scores(question)
        scores = dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
        best = next(iter(scores), None)
        if best is None:
            return Decision(None, None, {}, confident=False)
        operation = operation_of(question, self.routes[best].operations)
        confident = scores[best] >= self.threshold and not (self._in_doubt and not self._scorer.share_telling(question, best))
        return Decision(best, operation, scores, confident)

    def _calibrated(self, terms: Terms) -> float | None:
        def scored(names: Sequence[str], questions: Sequence[str]) -> list[dict[str, float]]:
            scorer = _Scorer([self.routes[name] for name in names], terms)
            return [scorer.scores(question) for question in questions]

        return threshold_of({route.name: route.examples for route in self.routes.values()}, scored)


class _Scorer:
    """What was learnt of some routes."""

    def __init__(self, routes: Sequence[Route], terms: Terms) -> None:
        self._terms = terms
        texts = [
            text for route in routes for text in (route.name, route.about, route.schema[:_MOST_SCHEMA_CHARS], *route.examples)
        ]
        self._spelling = Spelling(Counter(word for text in texts for word in terms.words(text[:_MOST_SCHEMA_CHARS])))
        self._known = {terms.stem(word) for text in texts for word in terms.words(text[:_MOST_SCHEMA_CHARS])}
        self._words = BM25Index(weights=_FIELDS)
        for route in routes:
            self._words.add(route.name, self._fields(route))
        self._classifier = Ridge([(route.name, self._all(text)) for route in routes for text in _lessons(route)])

    def scores(self, question: str) -> dict[str, float]:
        """Return how well each route fits; nothing where the question shares no term with any."""
        words = [self._spelt(word) for word in self._terms.words(question[:_MOST_CHARS])]
        by_word = self._words.scores(self._weighted(words))
        features = self._features(words)
        by_example = self._classifier.scores(features)
        if not by_word and not any(by_example.values()):
            return {}
        return {name: (by_word.get(name, 0.0) + score) / 2 for name, score in by_example.items()}

    def share_telling(self, question: str, name: str) -> bool:
        """Tell whether a word of the question that is no function word stands in what is known of a route."""
        words = [self._spelt(word) for word in self._terms.words(question[:_MOST_CHARS]) if word not in FUNCTION_WORDS]
        return name in self._words.scores(self._terms.stem(word) for word in words)

    def _spelt(self, word: str) -> str:
        """Return a word as the texts spell it; one that they have in another form is spelt right."""
        return word if self._terms.stem(word) in self._known else self._spelling.meant(word)

    def _fields(self, route: Route) -> dict[str, Mapping[str, float]]:
        texts = {
            "name": [route.name],
            "about": [route.about],
            "schema": [route.schema[:_MOST_SCHEMA_CHARS]],
            "examples": list(route.examples),
        }
        return {name: _sum(self._plain(self._terms.words(text)) for text in of_field) for name, of_field in texts.items()}

    def _plain(self, words: Sequence[str]) -> dict[str, float]:
        """Return words and pairs with their frequencies."""
        stems = [self._terms.stem(word) for word in words]
        return {**_counted(stems), **{f"{a} {b}": 1.0 for a, b in pairwise(stems)}}

    def _weighted(self, words: Sequence[str]) -> dict[str, float]:
        """Return words and pairs with how much each counts in a question."""
        stems = [(self._terms.stem(word), word in FUNCTION_WORDS) for word in words]
        weights = {stem: _FUNCTION_WORD_WEIGHT if empty else 1.0 for stem, empty in stems}
        for (first, one), (second, other) in pairwise(stems):
            weights[f"{first} {second}"] = _PAIR_WEIGHT * (_FUNCTION_WORD_WEIGHT if one and other else 1.0)
        return weights

    def _all(self, text: str) -> dict[str, float]:
        return self._features(self._terms.words(text[:_MOST_CHARS]))

    def _features(self, words: Sequence[str]) -> dict[str, float]:
        """Return words, pairs and pieces of words with their weights, each kind under names of its own."""
        stems = [self._terms.stem(word) for word in words]
        features = _counted(stems)
        for first, second in pairwise(stems):
            features[f"{first} {second}"] = features.get(f"{first} {second}", 0.0) + _PAIR_WEIGHT
        for word in words:
            for piece in grams(word):
                features[f"\t{piece}"] = features.get(f"\t{piece}", 0.0) + _PIECE_WEIGHT
        return features


def _lessons(route: Route) -> list[str]:
    """Return the texts that stand for a route, one each: a description may hold several sentences, or examples of its own."""
    sentences = _SENTENCE_END.split(route.about[:_MOST_CHARS])[:_MOST_SENTENCES]
    return [text for text in (route.name, *sentences, route.schema, *route.examples) if text.strip()]


def _counted(words: Iterable[str]) -> dict[str, float]:
    return {word: float(count) for word, count in Counter(words).items()}


def _sum(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    whole: dict[str, float] = {}
    for part in parts:
        for term, count in part.items():
            whole[term] = whole.get(term, 0.0) + count
    return whole


def _distinct(routes: Iterable[Route]) -> list[Route]:
    listed = list(routes)
    doubled = [name for name, count in Counter(route.name for route in listed).items() if count > 1]
    if doubled:
        raise AKConfigError(f"Two routes are called '{doubled[0]}'. Give one of them another name.")
    return listed
