"""A corpus made anew beside the one that is searched: written, verified, switched to, and then the old one deleted (X19)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from agentkernel_kb.errors import (
    AKConfigError,
    KnowledgeBackendError,
    KnowledgeStateError,
    UnsupportedKnowledgeOperationError,
)
from agentkernel_kb.rag.chunk import Chunk, VectorRecord, origin_of
from agentkernel_kb.rag.content import content_digest
from agentkernel_kb.rag.coverage import covered
from agentkernel_kb.rag.entry import doubted
from agentkernel_kb.rag.fingerprint import CHUNKING, different, fingerprint_of, model_of
from agentkernel_kb.rag.ingest import Indexer
from agentkernel_kb.rag.runs import Progress, Run
from agentkernel_kb.rag.stores.generational import GenerationalStore, State
from agentkernel_kb.rag.values import DocumentSummary, IndexReport

_TURNS = 8
_PART = 512
_CARRIED = "\x1fcarried"
"""No scope has this name: what is carried over touches no notes."""


async def reindexed(
    indexer: Indexer,
    sources: Sequence[Any] | None,
    *,
    metadata: Mapping[str, Any] | None,
    progress: Progress | None,
    delete_missing: bool = True,
) -> IndexReport:
    """Make the corpus of an indexer anew; see `Knowledge.reindex`. A store without generations is written over in place.

    Without `delete_missing`, what is not among the sources stays, as it was cut.
    """
    if isinstance(indexer.store, GenerationalStore):
        return await Reindexing(indexer, indexer.store, metadata, progress, delete_missing=delete_missing).run(sources)
    if sources is None:
        raise UnsupportedKnowledgeOperationError("This store cannot read its passages back: give reindex the sources.")
    run = await indexer.run(sources, metadata=metadata, delete_missing=delete_missing, progress=progress, is_anew=True)
    return run.report()


class Reindexing:
    """One corpus that is made anew.

    Args:
        indexer: What indexes into the corpus.
        store: The corpus.
        metadata: Metadata for all sources.
        progress: Told after each batch.
        delete_missing: What is not among the sources is not to be in the new corpus.
    """

    def __init__(
        self,
        indexer: Indexer,
        store: GenerationalStore,
        metadata: Mapping[str, Any] | None,
        progress: Progress | None,
        *,
        delete_missing: bool,
    ) -> None:
        self._indexer, self._store = indexer, store
        self._embedding, self._scope = indexer.embedding, indexer.scope
        self._metadata, self._progress = metadata, progress
        self._is_same_model = self._is_same_chunking = False
        self._deletes_missing, self._has_sources = delete_missing, False
        self._staying: set[str] = set()

    async def run(self, sources: Sequence[Any] | None) -> IndexReport:
        """Make it of sources, or of its own passages, and return what was done."""
        await self._store.make()
        mine, noted = await fingerprint_of(self._embedding, self._indexer.chunking), await self._store.fingerprint()
        self._has_sources = sources is not None
        self._is_same_model = model_of(noted) == model_of(mine)
        self._is_same_chunking = noted.get(CHUNKING, mine[CHUNKING]) == mine[CHUNKING]
        if sources is None and not self._is_same_chunking:
            raise AKConfigError(f"{different(noted, mine)} Passages are cut from the sources, which have to be given.")
        generation = await self._store.begin_generation(mine)
        try:
            return await self._made(generation, sources)
        finally:
            if callable(close := getattr(generation, "close", None)):
                await cast("Any", close)()

    async def _made(self, generation: GenerationalStore, sources: Sequence[Any] | None) -> IndexReport:
        run = await self._indexed(generation, sources)
        for _ in range(_TURNS):  # Whoever writes to the old one meanwhile must not lose it.
            mine = await self._store.state()
            expected = sum(run.expected.values()) + await self._carry(generation, run)
            await self._copy_notes(generation)
            its = await self._verified(generation, run, expected)
            if await self._store.switch_to(generation, mine=mine, its=its):
                return run.report()
        raise KnowledgeStateError("The corpus is written to all the time, so nothing was switched over: reindex again later.")

    async def _indexed(self, generation: GenerationalStore, sources: Sequence[Any] | None) -> Run:
        if sources is None:
            return Run({}, {}, self._progress)
        known = await self._indexer.ledger.read(self._scope)
        run = await self._indexer.on(generation).run(
            sources,
            metadata=self._metadata,
            delete_missing=True,
            progress=self._progress,
            made_before=self._indexer.ledger if self._is_same_model else None,
            before=await self._indexer.places(known) if self._deletes_missing else frozenset[str](),
        )
        known = await self._indexer.ledger.read(self._scope)
        names, documents = await self._indexer.missing(run, known)
        absent = {*names, *(origin_of(None, document) for document in documents)}
        held = {origin_of(*each) for each in await self._indexer.ledger.held(self._scope)}
        self._staying = held - (absent if self._deletes_missing else set[str]()) - run.expected.keys()
        return run

    async def _carry(self, generation: GenerationalStore, run: Run) -> int:
        """Bring what was not indexed anew in step with the old corpus, and return how many chunks that is."""
        carried = 0
        listed = await self._store.list_documents()
        async for there, staying in self._parts(generation, listed):
            made = {chunk.id for chunk in there if self._is_made(chunk, run)}
            staying = [chunk for chunk in staying if chunk.id not in made]
            held = {chunk.id: chunk for chunk in there}
            new = [chunk for chunk in staying if held.get(chunk.id) != chunk]  # Other metadata leave the id as it is.
            await self._write(generation, new, run)
            await self._drop(generation, {chunk.id for chunk in there} - made - {chunk.id for chunk in staying})
            carried += len(staying)
        documents = {each.document_id for each in listed}
        others = [each.document_id for each in await generation.list_documents() if each.document_id not in documents]
        left = await generation.chunks(document_ids=others)
        await self._drop(generation, {chunk.id for chunk in left if not self._is_made(chunk, run)})
        return carried

    async def _parts(
        self, generation: GenerationalStore, listed: Iterable[DocumentSummary]
    ) -> AsyncGenerator[tuple[list[Chunk], list[Chunk]]]:
        """Yield what the new corpus has of some documents, and what of the old one is to stay of them."""
        for part in _parted(listed):
            old = await self._store.chunks(document_ids=part)
            staying = [chunk for chunk in old if self._stays(chunk)]
            yield await generation.chunks(document_ids=part, ids=[chunk.id for chunk in staying]), staying

    async def _write(self, generation: GenerationalStore, chunks: Sequence[Chunk], run: Run) -> None:
        if not chunks:
            return
        vectors = await self._vectors(chunks)
        records = [VectorRecord(chunk, vector) for chunk, vector in zip(chunks, vectors, strict=True)]
        await generation.replace_noted(records, scope=_CARRIED, noted={})
        own = [chunk for chunk in chunks if self._is_in_scope(chunk)]
        run.count(documents=len({chunk.document_id for chunk in own}), chunks=len(own), added=len(own))
        run.tell()

    async def _vectors(self, chunks: Sequence[Chunk]) -> list[Sequence[float]]:
        documents = sorted({chunk.document_id for chunk in chunks})
        known = await self._store.vectors(document_ids=documents, sources=[]) if self._is_same_model else {}
        found = [known.get(content_digest(chunk.content)) for chunk in chunks]
        made = iter(await self._embedding.chunks([chunk for chunk, vector in zip(chunks, found, strict=True) if not vector]))
        return [vector or next(made) for vector in found]

    async def _drop(self, generation: GenerationalStore, ids: set[str]) -> None:
        if ids:
            await generation.delete(ids=sorted(ids))

    async def _copy_notes(self, generation: GenerationalStore) -> None:
        """Copy the notes of what was carried over; where it would be cut otherwise now, as ones that are not believed."""
        notes: list[tuple[str, str, str]] = await self._store.every_note()
        mine = {self._scope.name, *covered(self._scope, notes).inner}
        by_scope: dict[str, dict[str, str]] = {}
        for scope, origin, text in notes:
            if scope not in mine or not self._has_sources or origin in self._staying:
                by_scope.setdefault(scope, {})[origin] = text if self._is_same_chunking else doubted(text)
        for scope, noted in by_scope.items():
            await generation.replace_noted([], scope=scope, noted=noted)

    async def _verified(self, generation: GenerationalStore, run: Run, expected: int) -> State:
        """Check that a generation holds what was made, and return its state.

        Raises:
            KnowledgeBackendError: It does not.
        """
        state = await generation.state()
        held = await generation.held(self._scope.filter)
        wrong = [origin for origin, chunks in run.expected.items() if held.get(origin, 0) != chunks]
        faults = await generation.faults()
        count = await generation.count()
        if wrong or faults or count != expected:
            what = "; ".join(faults) or (f"of {len(wrong)} sources" if wrong else f"{count} chunks in place of {expected}")
            raise KnowledgeBackendError(f"The corpus that was made anew is not whole ({what}), and the old one stays.")
        return state

    def _is_in_scope(self, chunk: Chunk) -> bool:
        where = self._scope.filter
        return where.matches(chunk.metadata, chunk_id=chunk.id, document_id=chunk.document_id, source=chunk.source)

    def _is_made(self, chunk: Chunk, run: Run) -> bool:
        """Tell whether a chunk of the new corpus was indexed anew."""
        return self._is_in_scope(chunk) and origin_of(chunk.source, chunk.document_id) in run.expected

    def _stays(self, chunk: Chunk) -> bool:
        """Tell whether a chunk of the old corpus is carried over: that of another scope, or of what could not be read."""
        if not self._has_sources or not self._is_in_scope(chunk):
            return True
        return origin_of(chunk.source, chunk.document_id) in self._staying


def _parted(listed: Iterable[DocumentSummary]) -> Iterator[list[str]]:
    """Yield the documents in parts of about so many chunks."""
    part, size = list[str](), 0
    for each in listed:
        part.append(each.document_id)
        size += each.chunk_count
        if size >= _PART:
            yield part
            part, size = [], 0
    if part:
        yield part
