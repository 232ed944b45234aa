"""Maximal marginal relevance: each next hit is relevant and unlike those before it.

Source: Carbonell and Goldstein, The Use of MMR, Diversity-Based Reranking (1998).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


def diverse(
    ranked: Sequence[tuple[int, float]], k: int, mmr_lambda: float, alike: Callable[[int, int], float]
) -> list[tuple[int, float]]:
    """Choose hits one after the other.

    Args:
        ranked: The candidates with their scores, best first.
        k: How many to choose.
        mmr_lambda: 1 for relevance alone, 0 for diversity alone.
        alike: How alike two candidates are, in [0, 1].

    Returns:
        The chosen ones with their own scores, in the order in which they were chosen.
    """
    left = list(ranked)
    nearest = [0.0] * len(left)
    chosen: list[tuple[int, float]] = []
    while left and len(chosen) < k:
        gains = [mmr_lambda * score - (1 - mmr_lambda) * near for (_, score), near in zip(left, nearest, strict=True)]
        place = max(range(len(left)), key=lambda at: (gains[at], -at))
        taken = left.pop(place)
        nearest.pop(place)
        chosen.append(taken)
        nearest = [max(near, alike(slot, taken[0])) for (slot, _), near in zip(left, nearest, strict=True)]
    return chosen
