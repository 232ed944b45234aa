"""What a store of vectors under test holds, and what a subclass of the suite gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentkernel_kb.rag.chunk import Chunk, VectorRecord
from agentkernel_kb.rag.protocols import VectorStore

EAST, NORTH, NORTHEAST, WEST = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.8, 0.6, 0.0), (-1.0, 0.0, 0.0)
"""Directions whose likeness is known: east and northeast 0.8, north and northeast 0.6, east and north 0, east and west -1."""


def record(name: str, text: str, vector: Sequence[float], source: str | None = None, **metadata: Any) -> VectorRecord:
    """Return a record whose document is its source, or its own name."""
    return VectorRecord(Chunk(text, source or name, 0, source, metadata, name), list(vector))


RECORDS = (
    record("east", "Refunds are paid within thirty days.", EAST, "policy.md", tenant="a", year=2024, tags=["money", 1]),
    record("north", "Trains are booked by the travel desk.", NORTH, "policy.md", tenant="a", year=2025, current=True),
    record(
        "northeast",
        "Refunds of train tickets take sixty days.",
        NORTHEAST,
        "travel.md",
        tenant="b",
        year=2026,
        by={"name": "Ann"},
    ),
    record("west", "Cats sleep all day.", WEST, None, tenant="b", year=2026, owner=None),
)
"""What every store under test is given first."""


class VectorStoreSamples(ABC):
    """What a subclass of the suite gives."""

    @abstractmethod
    def make_store(self, tmp_path: Path) -> VectorStore:
        """Return a new and empty store."""


async def found(store: VectorStore, **asked: Any) -> list[str]:
    """Return the chunk ids of a search, best first."""
    arguments: dict[str, Any] = {"query_vector": EAST, "query_text": "", "k": 10, **asked}
    return [hit.chunk_id or "" for hit in await store.search(**arguments)]
