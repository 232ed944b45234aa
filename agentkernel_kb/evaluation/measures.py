"""Measures of a ranking, as pure functions.

nDCG is that of Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM Transactions on Information
Systems 20(4), 2002, with the discount log2(rank + 1) that evaluations commonly use, so that the second rank is discounted too;
gains are the grades as they are. Recall and precision at k are the usual ones (Manning, Raghavan and Schütze, "Introduction to
Information Retrieval", chapter 8). An id that a ranking names twice counts at its first place alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence


def ndcg(ranking: Sequence[str], grades: Mapping[str, float], k: int = 10) -> float:
    """Return the normalised discounted cumulated gain of the first `k` places, from 0 to 1.

    Args:
        ranking: Ids, the best first.
        grades: How relevant each id is; 0 and less, and an id that is not there: not at all.
        k: Places that count.

    Returns:
        1 for the best possible order; 0 where nothing relevant exists or is found.
    """
    best = _gain(sorted((grade for grade in grades.values() if grade > 0), reverse=True)[: max(k, 0)])
    return _gain(max(grades.get(each, 0.0), 0.0) for each in _distinct(ranking)[: max(k, 0)]) / best if best else 0.0


def recall(ranking: Sequence[str], relevant: Collection[str], k: int = 10) -> float:
    """Return which share of what is relevant stands on the first `k` places; 0 where nothing is."""
    wanted = set(relevant)
    return len(wanted.intersection(_distinct(ranking)[: max(k, 0)])) / len(wanted) if wanted else 0.0


def precision(ranking: Sequence[str], relevant: Collection[str], k: int = 10) -> float:
    """Return which share of the first `k` places is relevant; a place that is empty is not. 0 for no place."""
    return len(set(relevant).intersection(_distinct(ranking)[:k])) / k if k > 0 else 0.0


def reciprocal_rank(ranking: Sequence[str], relevant: Collection[str], k: int = 10) -> float:
    """Return one over the first of the first `k` places that is relevant; 0 where none is. Its mean is the MRR."""
    wanted = set(relevant)
    return next((1 / rank for rank, each in enumerate(_distinct(ranking)[: max(k, 0)], start=1) if each in wanted), 0.0)


def _gain(grades: Iterable[float]) -> float:
    return math.fsum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1))


def _distinct(ranking: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(ranking))
