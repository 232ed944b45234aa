"""Batches to vectors to chunks in a store, where one bad source costs only itself."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from agentkernel_kb.errors import (
    KnowledgeConnectionError,
    KnowledgeDependencyError,
    KnowledgeStateError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.rag.chunk import Chunk, VectorRecord
from agentkernel_kb.rag.content import content_digest
from agentkernel_kb.rag.embedding import Embedding
from agentkernel_kb.rag.ledger import Ledger
from agentkernel_kb.rag.pipeline import divided
from agentkernel_kb.rag.runs import Batch, Run
from agentkernel_kb.rag.scope import Scope
from agentkernel_kb.rag.units import Unit

ENDS_ALL = (KnowledgeStateError, KnowledgeDependencyError)
"""What ends a run, since it is no fault of a source."""

_TEXTS_A_CALL = 512

_NO_USE_TRYING = (KnowledgeConnectionError, KnowledgeTimeoutError)


class Keeper:
    """Embeds and stores what one run reads.

    Args:
        run: The run.
        embedding: What makes vectors.
        ledger: Where chunks and notes go.
        scope: What they are bound to.
        made_before: Where vectors of the same model may be, besides the ledger.
    """

    def __init__(self, run: Run, embedding: Embedding, ledger: Ledger, scope: Scope, made_before: Ledger | None = None) -> None:
        self._run, self._embedding, self._ledger, self._scope = run, embedding, ledger, scope
        self._made_before = [ledger] if made_before is None else [ledger, made_before]
        self._gone: KnowledgeConnectionError | None = None

    async def embed(self, batch: Batch) -> None:
        """Give the units of a batch their vectors; those of content that did not change are taken from what is stored."""
        await divided(batch.units, self._embed, self._fail, self._is_hopeless)
        batch.units = [unit for unit in batch.units if unit.vectors is not None]

    async def store(self, batch: Batch) -> None:
        """Store a batch, and tell about it."""

        async def replace(units: Sequence[Unit]) -> None:
            await self._store(units, batch)

        self._run.settle_again(batch)
        await divided(batch.units, replace, self._fail, self._is_hopeless)
        if batch.renoted:
            await self._store([], batch)
        self._run.tell()

    async def _embed(self, units: Sequence[Unit]) -> None:
        if self._gone is not None:
            raise self._gone
        chunks = [chunk for unit in units for chunk in unit.chunks]
        known = await self._known(units)
        digests = [content_digest(chunk.content) for chunk in chunks] if known else []
        new = [chunk for chunk, name in zip(chunks, digests, strict=True) if name not in known] if known else chunks
        made = iter(await self._made(new))
        vectors = iter([known.get(name) or next(made) for name in digests] if known else made)
        for unit in units:
            unit.vectors = [next(vectors) for _ in unit.chunks]

    async def _made(self, chunks: Sequence[Chunk]) -> list[array[float]]:
        """Return new vectors. Of a long source only a part is held as objects, which take four times as much."""
        made: list[array[float]] = []
        for start in range(0, len(chunks), _TEXTS_A_CALL):
            made += [array("d", vector) for vector in await self._embedding.chunks(chunks[start : start + _TEXTS_A_CALL])]
        return made

    async def _known(self, units: Sequence[Unit]) -> dict[str, Sequence[float]]:
        """Return the vectors that there are of what was indexed of these units before, by the digest of the content."""
        sources = [name for unit in units for name in unit.sources]
        documents = [name for unit in units for name in unit.document_ids]
        known: dict[str, Sequence[float]] = {}
        for ledger in self._made_before:
            known |= await ledger.vectors(document_ids=documents, sources=sources)
        return known

    async def _store(self, units: Sequence[Unit], batch: Batch) -> None:
        records = [
            VectorRecord(chunk, vector) for unit in units for chunk, vector in zip(unit.chunks, unit.vectors or (), strict=True)
        ]
        written, deleted = await self._ledger.replace(
            records,
            document_ids=[name for unit in units for name in unit.document_ids],
            sources=[name for unit in units for name in unit.sources],
            scope=self._scope,
            noted={**batch.renoted, **{unit.origin: unit.entry for unit in units}},
        )
        batch.renoted = {}
        self._run.store(units, written, deleted)

    def _is_hopeless(self, error: Exception) -> bool:
        if isinstance(error, ENDS_ALL):
            raise error
        if isinstance(error, KnowledgeConnectionError):  # Nobody there is asked again for each batch.
            self._gone = error
        return isinstance(error, _NO_USE_TRYING)

    def _fail(self, unit: Unit, error: Exception) -> None:
        self._run.fail_unit(unit, error)
