"""A linear classifier learnt from a few examples of each label: ridge regression in its dual form.

Hoerl and Kennard, "Ridge Regression: Biased Estimation for Nonorthogonal Problems" (1970); in the dual, only the likeness of
each two examples is needed, so that the number of features costs nothing. Features weigh by the square root of their rarity.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from agentkernel_kb.errors import KnowledgeDependencyError

Features = Mapping[str, float]

MOST_EXAMPLES = 3_000
"""Examples to learn from: memory grows with their square, time with their cube."""


class Ridge:
    """Scores labels by how much a text is like their examples and unlike those of the others.

    Args:
        examples: Label and features of each; those behind the first `MOST_EXAMPLES` are left aside.
        penalty: How little single examples are trusted, above 0.

    Raises:
        KnowledgeDependencyError: The extra `eval` is not installed.
    """

    def __init__(self, examples: Sequence[tuple[str, Features]], penalty: float = 2.0) -> None:
        try:
            import numpy
        except ImportError as error:
            raise KnowledgeDependencyError("eval", "The baseline router") from error
        self._numpy: Any = numpy
        taken = examples[:MOST_EXAMPLES]
        self.labels = list(dict.fromkeys(label for label, _ in taken))
        self._count = len(taken)
        having: dict[str, int] = {}
        for _, features in taken:
            for feature in features:
                having[feature] = having.get(feature, 0) + 1
        self._rarities = {feature: self._rarity(count) for feature, count in having.items()}
        self._unknown = self._rarity(0)
        self._postings: dict[str, tuple[Any, Any]] = {}
        self._learn(taken, penalty)

    def scores(self, features: Features) -> dict[str, float]:
        """Return a score for each label: about 1 for a text like its examples, about 0 for one like those of others or none."""
        if not self._count:
            return {}
        scores: list[float] = (self._likeness(self._unit(features)) @ self._weights).tolist()
        return {label: round(score, 9) for label, score in zip(self.labels, scores, strict=True)}

    def _learn(self, examples: Sequence[tuple[str, Features]], penalty: float) -> None:
        units = [self._unit(features) for _, features in examples]
        postings: dict[str, list[tuple[int, float]]] = {}
        for number, unit in enumerate(units):
            for feature, weight in unit.items():
                postings.setdefault(feature, []).append((number, weight))
        numpy = self._numpy
        self._postings = {
            feature: (numpy.array([number for number, _ in having]), numpy.array([weight for _, weight in having]))
            for feature, having in postings.items()
        }
        place = {label: column for column, label in enumerate(self.labels)}
        target = numpy.zeros((self._count, len(place)))
        for row, (label, _) in enumerate(examples):
            target[row, place[label]] = 1.0
        alike = numpy.array([self._likeness(unit) for unit in units]).reshape(self._count, self._count)
        self._weights: Any = numpy.linalg.solve(alike + penalty * numpy.eye(self._count), target)

    def _likeness(self, unit: Features) -> Any:
        """Return the cosine between a text and each example."""
        alike = self._numpy.zeros(self._count)
        for feature, weight in unit.items():
            if feature in self._postings:
                numbers, weights = self._postings[feature]
                alike[numbers] += weight * weights
        return alike

    def _unit(self, features: Features) -> dict[str, float]:
        weighted = {
            feature: math.log1p(count) * self._rarities.get(feature, self._unknown) for feature, count in features.items()
        }
        length = math.sqrt(math.fsum(weight * weight for weight in weighted.values())) or 1.0
        return {feature: weight / length for feature, weight in weighted.items()}

    def _rarity(self, having: int) -> float:
        return math.sqrt(math.log(1 + (self._count - having + 0.5) / (having + 0.5)))
