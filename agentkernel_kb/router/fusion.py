"""Several rankings made one, by reciprocal rank, each record once.

Source: Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods",
SIGIR 2009: a record's score is the sum of 1 / (60 + rank) over the rankings that hold it. Scores of different stores cannot be
compared; ranks can.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

RANK_CONSTANT = 60
"""How little the difference between high ranks counts: the value of the paper."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One record of one backend, as far as fusion and display need it.

    Attributes:
        backend: Name of the backend.
        id: What `fetch_kb` can be asked for, `""` for nothing.
        keys: What tells that two hits are one record: any that they have in common.
        line: The record as its backend renders it, without dash and id.
    """

    backend: str
    id: str
    keys: frozenset[str]
    line: str

    @property
    def label(self) -> str:
        """Where the record is: the backend, and the id to fetch it by."""
        return f"{self.backend}: {self.id}" if self.id else self.backend


@dataclass(frozen=True, slots=True)
class Fused:
    """One record of the fused ranking.

    Attributes:
        first: The best ranked of the hits that are this record.
        others: The further ones.
        score: Its reciprocal ranks, summed.
    """

    first: Hit
    others: tuple[Hit, ...]
    score: float


def keys_of(identity: str, source: str, text: str) -> frozenset[str]:
    """Return what tells that two hits are one record: the same text but for case, width and blanks, or the same id and source.

    A source that is the id says nothing of its own: two folders may both have a `readme.md`.
    """
    keys: set[str] = set()
    if normal := " ".join(unicodedata.normalize("NFKC", text).casefold().split()):
        keys.add(f"text {hashlib.sha256(normal.encode('utf-8', 'replace')).hexdigest()}")
    if identity and source and source != identity:
        keys.add(f"id {len(identity)} {identity} {source}")
    return frozenset(keys)


def fuse(rankings: Iterable[Sequence[Hit]]) -> list[Fused]:
    """Return the records of several rankings, best first, whatever the order of the rankings.

    Each backend counts once for a record, by its best rank there. Equal scores are ordered by the best rank, then by the name
    of the backend and the id.
    """
    ranked = [(rank, hit) for ranking in rankings for rank, hit in enumerate(ranking, 1)]
    fused = [_fused(cluster) for cluster in _clusters(ranked)]
    return [one for _, one in sorted(fused, key=lambda pair: pair[0])]


def _fused(cluster: list[tuple[int, Hit]]) -> tuple[tuple[object, ...], Fused]:
    cluster.sort(key=_order)
    best: dict[str, int] = {}
    for rank, hit in cluster:
        best.setdefault(hit.backend, rank)
    score = math.fsum(1 / (RANK_CONSTANT + rank) for rank in best.values())  # Exact, so that no order of adding counts.
    first, *others = (hit for _, hit in cluster)
    return (-score, *_order(cluster[0])), Fused(first, tuple(others), score)


def _order(ranked: tuple[int, Hit]) -> tuple[int, str, str, str]:
    rank, hit = ranked
    return rank, hit.backend, hit.id, hit.line


def _clusters(ranked: list[tuple[int, Hit]]) -> Iterable[list[tuple[int, Hit]]]:
    """Put hits together that have a key in common, directly or by way of others."""
    parents = list(range(len(ranked)))

    def root(index: int) -> int:
        while parents[index] != index:
            parents[index] = parents[parents[index]]
            index = parents[index]
        return index

    holder: dict[str, int] = {}
    for index, (_, hit) in enumerate(ranked):
        for key in hit.keys:
            parents[root(index)] = root(holder.setdefault(key, index))
    clusters: dict[int, list[tuple[int, Hit]]] = {}
    for index, pair in enumerate(ranked):
        clusters.setdefault(root(index), []).append(pair)
    return clusters.values()
