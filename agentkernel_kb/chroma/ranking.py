"""Which of the hits of an index are a search's result: what is too unlike is left out, and equal scores are cut by id."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDEST = 1_000
"""How many hits are looked at for a smaller limit, when hits are left out or tie at the limit."""

_SECOND_LOOK = 64
_GROWTH = 8


@dataclass(frozen=True)
class Hit:
    """A stored record and how alike it is to the query, the greater the more; `text` is `None` where none is stored."""

    id: str
    text: str | None
    metadata: Mapping[str, Any] | None
    score: float


def best(
    look: Callable[[int], list[Hit]],
    limit: int,
    min_score: float | None,
    related: Callable[[Sequence[str]], Sequence[bool]] | None,
) -> list[Hit]:
    """Return at most `limit` hits, best first, equal scores in the order of their ids.

    Looks further than `limit` only while that can change the result: while too few are left, or others may tie with the last.

    Args:
        look: Returns as many of the nearest records as it is asked for, fewer only where there are no more.
        limit: At least 1.
        min_score: Lowest score that is good enough, `None` for any.
        related: Tells for texts whether they have anything in common with the query, `None` where nobody can tell.
    """
    asked = limit + 1
    while True:
        hits = sorted(look(asked), key=lambda hit: (-hit.score, hit.id))
        kept = _related([hit for hit in hits if min_score is None or hit.score >= min_score], related)
        if len(hits) < asked or asked >= WIDEST or _is_settled(hits[-1].score, kept, limit, min_score):
            return kept[:limit]
        asked = min(max(asked * _GROWTH, _SECOND_LOOK), WIDEST)


def _is_settled(lowest: float, kept: Sequence[Hit], limit: int, min_score: float | None) -> bool:
    if min_score is not None and lowest < min_score:
        return True
    return len(kept) >= limit and lowest < kept[limit - 1].score


def _related(hits: list[Hit], related: Callable[[Sequence[str]], Sequence[bool]] | None) -> list[Hit]:
    if related is None:
        return hits
    answers = related([hit.text or "" for hit in hits])
    return [hit for hit, answer in zip(hits, answers, strict=True) if answer or hit.text is None]
