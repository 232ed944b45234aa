"""Distances worked out one by one: for the records of a filter that Chroma's index, walked by neighbours, does not reach."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import mul

from agentkernel_kb.chroma.records import Distance


def distances(vector: Sequence[float], others: Iterable[Sequence[float]], space: Distance) -> list[float]:
    """Return Chroma's distance of `vector` to each of the others: 1 - cosine, the square of it, or 1 - the product."""
    if space == "l2":
        return [math.fsum((a - b) ** 2 for a, b in zip(vector, other, strict=True)) for other in others]
    products = [(math.fsum(map(mul, vector, other)), math.hypot(*other)) for other in others]
    if space == "ip":
        return [1.0 - product for product, _ in products]
    own = math.hypot(*vector)
    return [1.0 - product / (own * length or 1.0) for product, length in products]
