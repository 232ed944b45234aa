"""Indexing: sources are read, cut, embedded and stored batch by batch; each source changes in one step or not at all.

What is noted about a source is stored together with its chunks: whoever goes on after a crash does nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from typing import Any

from agentkernel_kb.errors import AKConfigError, UnsupportedKnowledgeOperationError
from agentkernel_kb.rag.chunk import origin_of
from agentkernel_kb.rag.embedding import Embedding
from agentkernel_kb.rag.entry import Entry
from agentkernel_kb.rag.fingerprint import check_indexing
from agentkernel_kb.rag.keeping import ENDS_ALL, Keeper
from agentkernel_kb.rag.ledger import Ledger, ledger_of, missing
from agentkernel_kb.rag.loading.items import SourceItem, name_of
from agentkernel_kb.rag.pipeline import pipelined
from agentkernel_kb.rag.protocols import Loader, Splitter, VectorStore
from agentkernel_kb.rag.runs import Batch, Progress, Run
from agentkernel_kb.rag.scope import Scope
from agentkernel_kb.rag.stores.indexed import IndexedStore
from agentkernel_kb.rag.units import DocumentGroup, Unit, content_of, grouped, items_of, origin, unit_of
from agentkernel_kb.rag.values import Document, IndexReport
from agentkernel_kb.rag.where import parse_where

_BATCH_SIZE = 512
_CUT_IN_A_THREAD_FROM = 50_000


class Indexer:
    """Indexes into one store.

    Args:
        loader: What reads sources.
        splitter: What cuts documents.
        embedding: What makes vectors.
        store: Where chunks go.
        scope: What all of them are bound to.

    Attributes:
        embedding: What makes vectors.
        store: Where chunks go.
        scope: What all of them are bound to.
        ledger: What was indexed of which source.
    """

    def __init__(self, loader: Loader, splitter: Splitter, embedding: Embedding, store: VectorStore, scope: Scope) -> None:
        for what, kind, wanted in ((loader, Loader, "load"), (splitter, Splitter, "split")):
            if not isinstance(what, kind):
                raise AKConfigError(f"A {kind.__name__.lower()} has {wanted}(…); {type(what).__name__} has not.")
        if scope and not getattr(store, "deletes_chunks", True):
            raise AKConfigError("This store cannot hold several scopes: use rag.KnowledgeBase with metadata_filter=…")
        self._loader, self._splitter = loader, splitter
        self.embedding, self.store, self.scope = embedding, store, scope
        self.ledger: Ledger = ledger_of(store)

    @property
    def chunking(self) -> str:
        """What the chunker is known by."""
        return str(getattr(self._splitter, "fingerprint", type(self._splitter).__name__))

    def on(self, store: VectorStore) -> Indexer:
        """Return the same indexer for another store."""
        return Indexer(self._loader, self._splitter, self.embedding, store, self.scope)

    async def index(
        self,
        sources: Iterable[Any],
        *,
        metadata: Mapping[str, Any] | None = None,
        delete_missing: bool = False,
        progress: Progress | None = None,
    ) -> IndexReport:
        """Index sources and report what was done; a source that fails is reported, and the others are indexed.

        Raises:
            AKConfigError: The corpus is made with another model or chunker.
            KnowledgeStateError: The store is closed, or the corpus was made anew meanwhile.
            KnowledgeDependencyError: A library is missing.
        """
        run = await self.run(sources, metadata=metadata, delete_missing=delete_missing, progress=progress)
        return run.report()

    async def run(
        self,
        sources: Iterable[Any],
        *,
        metadata: Mapping[str, Any] | None = None,
        delete_missing: bool = False,
        progress: Progress | None = None,
        is_anew: bool = False,
        made_before: Ledger | None = None,
        before: AbstractSet[str] | None = None,
    ) -> Run:
        """`index`, and return the whole run.

        Args:
            sources: What to index.
            metadata: Metadata for all of it.
            delete_missing: Delete what is indexed and not among the sources.
            progress: Told after each batch.
            is_anew: Do not believe what is noted: all of it is read and embedded.
            made_before: Where vectors of this model may be, besides the store.
            before: The `places` of what must not be lost where they are away; by default those of what is there.
        """
        if isinstance(self.store, IndexedStore):
            await self.store.make()
        ledger = self.ledger.of_a_run()
        known = await ledger.read(self.scope)
        await check_indexing(self.store, self.embedding, self.chunking)
        if isinstance(self.store, IndexedStore):
            self.store.check_analysis()
        kept = await self.places(known) if before is None else before
        run = Run(dict(metadata or {}), {} if is_anew else known, progress, kept, deletes=delete_missing)
        keeper = Keeper(run, self.embedding, ledger, self.scope, made_before)
        await pipelined(self._batches(run, sources), keeper.embed, keeper.store)
        if delete_missing:
            await self._delete_missing(run)
        run.tell()
        return run

    async def read(self, sources: Iterable[Any], *, delete_missing: bool = False) -> tuple[Run, dict[str, bool]]:
        """Read sources and store nothing.

        Args:
            sources: What is read.
            delete_missing: What is missing would be deleted.

        Returns:
            The run; and the sources that would be indexed, each with whether something was indexed of it before.
        """
        known, names = await self.ledger.read(self.scope), dict[str, bool]()
        run = Run({}, known, None, await self.places(known), deletes=delete_missing)
        async for batch in self._batches(run, sources):
            names.update((unit.name, unit.origin in run.known) for unit in batch.units)
        return run, names

    async def delete(
        self,
        *,
        ids: Sequence[str] | None,
        document_ids: Sequence[str] | None,
        where: Mapping[str, Any] | None,
        sources: Sequence[str] | None,
    ) -> int:
        """Delete what is named and in scope, and return how many chunks.

        Raises:
            AKConfigError: No criterion is given.
        """
        if ids is None and document_ids is None and sources is None and not parse_where(where):
            raise AKConfigError("delete() needs a criterion: ids, document_ids, sources or where.")
        return await self.ledger.delete(self.scope, where, ids=ids, document_ids=document_ids, sources=sources)

    async def _batches(self, run: Run, sources: Iterable[Any]) -> AsyncGenerator[Batch]:
        """Read what stands in the sources, batch by batch."""
        for source in grouped(sources):
            try:
                is_read = False
                async for item in items_of(self._loader, source, run.metadata):
                    is_read |= not item.skipped
                    if item.is_text:
                        run.check_is_path(source)
                    if run.takes(item):
                        await self._read(run, item)
                    if run.batch.size >= _BATCH_SIZE:
                        yield run.next_batch()
                if not is_read:
                    run.check_is_there(source)
            except ENDS_ALL:
                raise
            except Exception as error:  # noqa: BLE001 - one source's loader may raise anything; the others are indexed
                name = source.name if isinstance(source, DocumentGroup) else name_of(source)
                run.seen.add(name)
                run.fail(name, error)
        run.settle_claims()
        yield run.next_batch()

    async def _read(self, run: Run, item: SourceItem) -> None:
        """Read and cut an item into the batch, or report that it is skipped, unchanged or faulty."""
        name, noted = run.noted(item)
        run.seen |= {name, item.source}
        if item.skipped:
            run.skip(item)
        elif item.version is not None and noted and (noted.version, noted.metadata) == (item.version, run.stamp):
            run.expected[name] = noted.chunks
            run.count(unchanged=1)
        else:
            try:
                await self._cut(run, item, name)
            except ENDS_ALL:
                raise
            except Exception as error:  # noqa: BLE001 - a parser may raise anything on one bad source; the others are indexed
                run.fail(item.source, error)

    async def _cut(self, run: Run, item: SourceItem, before: str) -> None:
        documents = await item.load()
        name = origin(item, documents)
        run.seen.add(name)
        noted = run.known.get(name)
        if noted is not None and noted.content == content_of(documents):
            run.expected[name] = noted.chunks
            run.count(unchanged=1)
            if (noted.version, noted.metadata, noted.identity) != (item.version, run.stamp, item.identity):
                run.batch.renote(name, replace(noted, version=item.version, metadata=run.stamp, identity=item.identity))
            return
        arguments = (item, documents, run.stamp, self._splitter, self.scope, before)
        is_long = _length(documents) >= _CUT_IN_A_THREAD_FROM
        unit = await asyncio.to_thread(unit_of, *arguments) if is_long else unit_of(*arguments)
        run.check_ids(unit)
        run.cut.add(unit.origin)
        if others := await self._other_owners(unit):
            run.claims.append((unit, others))
        else:
            run.batch.add(unit)

    async def _other_owners(self, unit: Unit) -> dict[str, str]:
        """Return whose the identifiers that a unit's splitter gave are already, as far as they are another source's."""
        own = {unit.origin, *unit.sources, *(origin_of(None, name) for name in unit.document_ids)}
        owners = await self.ledger.owners(unit.given_ids)
        return {name: owner for name, owner in owners.items() if owner not in own}

    async def places(self, known: Mapping[str, Entry]) -> AbstractSet[str]:
        """Return names and whole paths of what is noted; where nothing is, as after a restart, the sources that there are.

        Of other scopes there is none among them. Where a store cannot tell those of one scope, nothing is deleted as missing.
        """
        if known:
            return {name for origin, entry in known.items() for name in (origin, entry.identity) if name}
        if not self.scope:
            return set(await self.store.list_sources())
        with suppress(UnsupportedKnowledgeOperationError):
            return {source for source, _ in await self.ledger.held(self.scope) if source}
        return set()

    async def missing(self, run: Run, known: Mapping[str, Entry]) -> tuple[list[str], list[str]]:
        """Return the sources, and the documents without one, that are indexed here and a run did not see.

        What stands under a source that could not be read is not among them.
        """
        failed = [failure.source for failure in run.failed]
        return missing(await self.ledger.held(self.scope), run.present(known), failed)

    async def _delete_missing(self, run: Run) -> None:
        sources, documents = await self.missing(run, run.known)
        if sources:
            run.count(deleted=await self.ledger.delete(self.scope, sources=sources))
        if documents:
            run.count(deleted=await self.ledger.delete(self.scope, document_ids=documents))


def _length(documents: Sequence[Document]) -> int:
    return sum(len(document.text) for document in documents)
