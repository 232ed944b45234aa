"""Whether a corpus is what its notes say that it is (X19)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, cast

from agentkernel_kb.rag.fingerprint import different, fingerprint_of, noted_of
from agentkernel_kb.rag.ingest import Indexer


@dataclass(frozen=True)
class Difference:
    """A source that has more or fewer chunks than were noted when it was indexed.

    Attributes:
        source: Which.
        noted: How many were noted.
        held: How many there are.
    """

    source: str
    noted: int
    held: int


@dataclass(frozen=True)
class VerifyReport:
    """What `Knowledge.verify` found.

    Attributes:
        sources: Sources that are noted, documents without a source included.
        chunks: Chunks that there are of these.
        missing: Sources that are noted and have no chunk, though they had.
        unknown: Sources of which there are chunks, and no note: nothing tells whether they are whole.
        differing: Sources with another number of chunks than is noted.
        fingerprint: How the model or the chunker differ from those of the corpus, and what mends it; empty where they do not.
        unfinished: Chunks of a `reindex` that was cut off or goes on, which nobody sees.
        faults: What is wrong with the store itself, in words.
        repaired: The notes that were not true were taken back.
    """

    sources: int = 0
    chunks: int = 0
    missing: list[str] = field(default_factory=list[str])
    unknown: list[str] = field(default_factory=list[str])
    differing: list[Difference] = field(default_factory=list[Difference])
    fingerprint: str = ""
    unfinished: int = 0
    faults: list[str] = field(default_factory=list[str])
    repaired: bool = False

    @property
    def ok(self) -> bool:
        """Whether the corpus is what its notes say. What is unfinished is no fault of it."""
        return not (self.missing or self.unknown or self.differing or self.fingerprint or self.faults)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return dict(vars(self), differing=[dict(vars(each)) for each in self.differing])

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the report that `to_dict()` made a mapping of."""
        given = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        return cls(**dict(given, differing=[Difference(**each) for each in data.get("differing") or ()]))


async def verified(indexer: Indexer, *, repair: bool) -> VerifyReport:
    """Compare the notes of a corpus with its chunks, within the scope; with `repair`, take back what is not true."""
    noted, held = await indexer.ledger.compare(indexer.scope)
    differing = {origin for origin, chunks in noted.items() if chunks != held.get(origin, 0)}
    missing = {origin for origin in differing if not held.get(origin)}
    store = cast("Any", indexer.store)
    report = VerifyReport(
        sources=len(noted),
        chunks=sum(held.values()),
        missing=sorted(missing),
        unknown=sorted(held.keys() - noted.keys()),
        differing=[Difference(origin, noted[origin], held[origin]) for origin in sorted(differing - missing)],
        fingerprint=await _mismatch(indexer),
        unfinished=await store.unfinished() if hasattr(store, "unfinished") else 0,
        faults=await store.faults() if hasattr(store, "faults") else [],
        repaired=repair,
    )
    if repair:
        await indexer.ledger.forget(indexer.scope, differing)
        if hasattr(store, "discard_generations"):
            await store.discard_generations()
    return report


async def _mismatch(indexer: Indexer) -> str:
    noted = await noted_of(indexer.store)
    mine = await fingerprint_of(indexer.embedding, indexer.chunking)
    return different(noted, mine) if noted and noted != mine else ""
