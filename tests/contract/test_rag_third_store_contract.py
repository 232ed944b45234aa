"""A store written outside of the package, by subclassing the protocol, passes the shipped suite (P7, P12)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentkernel_kb.rag import Chunk, SearchHit, SearchMode, VectorRecord, VectorStore
from agentkernel_kb.rag.where import parse_where
from agentkernel_kb.testing import VectorStoreContract


class ShelfStore(VectorStore):
    """Chunks as plain values in a dictionary, each compared with every question."""

    def __init__(self) -> None:
        self.shelf: dict[str, tuple[dict[str, Any], list[float]]] = {}

    async def upsert(self, records: Sequence[VectorRecord]) -> int:
        lengths = {len(vector) for _, vector in self.shelf.values()} | {len(each.embedding) for each in records}
        if len(lengths) > 1:
            raise ValueError(f"vectors of different lengths: {sorted(lengths)}")
        new = {each.chunk.id: (each.chunk.to_dict(), list(each.embedding)) for each in records}
        try:
            new = {name: (json.loads(json.dumps(chunk, allow_nan=False)), vector) for name, (chunk, vector) in new.items()}
        except TypeError as error:
            raise ValueError("metadata is no JSON") from error
        self.shelf |= new
        return len(records)

    async def delete(
        self,
        *,
        ids: Sequence[str] | None = None,
        document_ids: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        sources: Sequence[str] | None = None,
    ) -> int:
        selectors = {"id": ids, "document_id": document_ids, "source": sources}
        if all(each is None for each in selectors.values()) and not where:
            raise ValueError("no criterion")
        for each in selectors.values():
            if isinstance(each, str) or not all(isinstance(name, str) for name in each or ()):
                raise ValueError("a list of names")
        given = {key: set(each) for key, each in selectors.items() if each is not None}
        gone = [
            chunk.id
            for chunk, _ in self._meeting(where)
            if not given or any(getattr(chunk, key) in names for key, names in given.items())
        ]
        for name in gone:
            del self.shelf[name]
        return len(gone)

    async def search(
        self,
        *,
        query_vector: Sequence[float] | None,
        query_text: str,
        k: int = 5,
        where: Mapping[str, Any] | None = None,
        mode: SearchMode = "vector",
        score_threshold: float | None = None,
        fetch_k: int | None = None,
        mmr_lambda: float | None = None,
    ) -> list[SearchHit]:
        if k < 1 or mode != "vector" or (score_threshold or 0) > 1 or (fetch_k and mmr_lambda is None) or not query_vector:
            raise ValueError("cannot be asked")
        scored = [(_cosine(query_vector, vector), chunk) for chunk, vector in self._meeting(where)]
        least = score_threshold or 0.0
        best = sorted(((score, chunk) for score, chunk in scored if score > 0 and score >= least - 1e-9), key=_first)
        hits = [SearchHit(c.text, min(s, 1.0), c.source, deepcopy(c.metadata), c.document_id, c.id) for s, c in best]
        vectors = {name: vector for name, (_, vector) in self.shelf.items()}
        chosen = hits[:k] if mmr_lambda is None else _unlike(hits, k, mmr_lambda, vectors)
        return [replace(hit, rank=rank) for rank, hit in enumerate(chosen, 1)]

    async def list_sources(self) -> list[str]:
        return sorted({chunk.source for chunk, _ in self._meeting(None) if chunk.source})

    def _meeting(self, where: Mapping[str, Any] | None) -> list[tuple[Chunk, list[float]]]:
        condition = parse_where(where)
        held = [(Chunk.from_dict(chunk), vector) for chunk, vector in self.shelf.values()]
        return [
            (chunk, vector)
            for chunk, vector in held
            if condition.matches(chunk.metadata, chunk_id=chunk.id, document_id=chunk.document_id, source=chunk.source)
        ]


def _first(scored: tuple[float, Chunk]) -> tuple[float, str]:
    return -round(scored[0], 6), scored[1].id


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    if len(one) != len(other):
        raise ValueError(f"vectors of {len(one)} and {len(other)}")
    norm = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / norm if norm else 0.0


def _unlike(hits: list[SearchHit], k: int, relevance: float, vectors: Mapping[str, list[float]]) -> list[SearchHit]:
    chosen: list[SearchHit] = []

    def worth(hit: SearchHit) -> float:
        near = [_cosine(vectors[hit.chunk_id or ""], vectors[other.chunk_id or ""]) for other in chosen]
        return relevance * (hit.score or 0.0) - (1 - relevance) * max(near, default=0.0)

    while hits and len(chosen) < k:
        chosen.append(max(hits, key=worth))
        hits.remove(chosen[-1])
    return chosen


class TestShelfStore(VectorStoreContract):
    declares = frozenset()

    def make_store(self, tmp_path: Path) -> VectorStore:
        return ShelfStore()
