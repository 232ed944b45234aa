"""How well a question has to fit before a router answers: learnt from examples, without any other question.

Questions that belong nowhere are simulated: the examples of a fifth of the routes, asked while those routes are not known. They
are harder to tell than most questions of users, for those routes share a field with others; so the threshold is their median. A
cut between these and examples that belong somewhere would be too high: examples of one route are more alike than questions are.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

FOLDS = 5
_FEWEST_EXAMPLES = 2

Scored = Callable[[Sequence[str], Sequence[str]], Sequence[Mapping[str, float]]]


def threshold_of(examples: Mapping[str, Sequence[str]], scored: Scored) -> float | None:
    """Return the score from which an answer is to be given; `None` where fewer than five routes have two examples.

    Args:
        examples: The examples of each route.
        scored: Takes the names of routes that are known, and questions; returns the scores of each question.
    """
    rich = [name for name, known in examples.items() if len(known) >= _FEWEST_EXAMPLES]
    if len(rich) < FOLDS:
        return None
    best: list[float] = []
    for fold in range(FOLDS):
        away = rich[fold::FOLDS]
        known = [name for name in examples if name not in away]
        asked = [example for name in away for example in examples[name]]
        best += [max(scores.values(), default=0.0) for scores in scored(known, asked)]
    return round(statistics.median(best), 9)
