"""Pseudo-relevance feedback: terms that the best chunks for a question have in common, and the question does not name.

Source: relevance models (Lavrenko and Croft, 2001), the chunks weighted by their rank.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from agentkernel_kb.rag.index.terms import Population, TermIndex

FEEDBACK_FROM = 1_000
"""Chunks that may be found at least before a question is widened by its best hits: below that these are too often wrong."""

FEEDBACK_CHUNKS = 5
"""How many of the best chunks are looked at."""

FEEDBACK_SHARE = 0.5
"""What the suggested terms weigh together, against the rest of 1 that the question's own keep."""

_MOST_TERMS = 20


def suggested(terms: TermIndex, held: Population, best: Sequence[int]) -> dict[str, float]:
    """Return the telling terms of a question's best chunks with their weights, which add up to `FEEDBACK_SHARE`.

    There are none where too few chunks may be found, or none was.
    """
    if held.count < FEEDBACK_FROM:
        return {}
    found: defaultdict[str, float] = defaultdict(float)
    for rank, slot in enumerate(best[:FEEDBACK_CHUNKS], 1):
        share = 1 / (rank * (terms.length_of(slot) or 1))
        for term, count in terms.counts_of(slot):
            found[term] += share * count * held.rarity(term)
    telling = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:_MOST_TERMS]
    total = sum(weight for _, weight in telling)
    return {term: FEEDBACK_SHARE * weight / total for term, weight in telling} if total else {}
