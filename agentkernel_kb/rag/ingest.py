"""Indexing: sources are read, cut, embedded and stored batch by batch; each source changes in one step or not at all.

What is noted about a source is stored together with its chunks: whoever goes on after a crash does nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentkernel_kb.errors import (
    AKConfigError,
    KnowledgeConnectionError,
    KnowledgeDependencyError,
    KnowledgeError,
    KnowledgeStateError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.rag.chunk import VectorRecord
from agentkernel_kb.rag.content import digest
from agentkernel_kb.rag.embedding import Embedding
from agentkernel_kb.rag.ledger import Entry, Ledger, ledger_of, missing
from agentkernel_kb.rag.loading.items import SourceItem, name_of
from agentkernel_kb.rag.protocols import Loader, Splitter, VectorStore
from agentkernel_kb.rag.scope import Scope
from agentkernel_kb.rag.units import DocumentGroup, Unit, content_of, grouped, items_of, origin, plain, unit_of
from agentkernel_kb.rag.values import Failure, IndexReport
from agentkernel_kb.rag.where import parse_where

_BATCH_CHUNKS = 512
_NO_USE_TRYING = (KnowledgeConnectionError, KnowledgeTimeoutError)
_ENDS_ALL = (KnowledgeStateError, KnowledgeDependencyError)
Progress = Callable[[IndexReport], object]


@dataclass(slots=True)
class _Run:
    """One call of `index` under way.

    Attributes:
        metadata: Metadata for all sources.
        known: What the ledger says.
        progress: Told after each batch.
        report: What was done so far.
        batch: What was read and is not stored yet.
        seen: Origins that there are, whatever became of them.
        renoted: New notes about origins whose content did not change.
    """

    metadata: Mapping[str, Any]
    known: Mapping[str, Entry]
    progress: Progress | None
    report: IndexReport = field(default_factory=IndexReport)
    batch: list[Unit] = field(default_factory=list[Unit])
    seen: set[str] = field(default_factory=set[str])
    renoted: dict[str, Entry] = field(default_factory=dict[str, Entry])

    @property
    def stamp(self) -> str:
        """Digest of the metadata."""
        return digest(plain(self.metadata))

    @property
    def is_full(self) -> bool:
        """Whether the batch is worth storing."""
        return sum(1 + len(unit.chunks) for unit in self.batch) >= _BATCH_CHUNKS

    def tell(self) -> None:
        """Tell whoever wants to know what was done so far."""
        if self.progress is not None:
            self.progress(self.report)


class Indexer:
    """Indexes into one store.

    Args:
        loader: What reads sources.
        splitter: What cuts documents.
        embedding: What makes vectors.
        store: Where chunks go.
        scope: What all of them are bound to.
    """

    def __init__(self, loader: Loader, splitter: Splitter, embedding: Embedding, store: VectorStore, scope: Scope) -> None:
        for what, kind, wanted in ((loader, Loader, "load"), (splitter, Splitter, "split")):
            if not isinstance(what, kind):
                raise AKConfigError(f"A {kind.__name__.lower()} has {wanted}(…); {type(what).__name__} has not.")
        if scope and not getattr(store, "deletes_chunks", True):
            raise AKConfigError("This store cannot hold several scopes: use rag.KnowledgeBase with metadata_filter=…")
        self._loader, self._splitter, self._embedding, self._scope = loader, splitter, embedding, scope
        self._ledger: Ledger = ledger_of(store)

    @property
    def chunking(self) -> str:
        """What the chunker is known by."""
        return str(getattr(self._splitter, "fingerprint", type(self._splitter).__name__))

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
            KnowledgeStateError: The store is closed.
            KnowledgeDependencyError: A library is missing.
        """
        run = _Run(dict(metadata or {}), await self._ledger.read(self._scope), progress)
        for source in grouped(sources):
            await self._gather(run, source)
        await self._store(run)
        if delete_missing:
            run.report += await self._delete_missing(run)
        run.tell()
        return run.report

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
        return await self._ledger.delete(self._scope.refined(where), ids=ids, document_ids=document_ids, sources=sources)

    async def _gather(self, run: _Run, source: Any) -> None:
        """Read what stands in a source, and store whenever there is enough of it."""
        try:
            async for item in items_of(self._loader, source, run.metadata):
                if item.source in run.seen:
                    continue
                run.seen.add(item.source)
                await self._read(run, item)
                if run.is_full:
                    await self._store(run)
                    run.tell()
        except _ENDS_ALL:
            raise
        except Exception as error:  # noqa: BLE001 - one source's loader may raise anything; the others are indexed
            name = source.name if isinstance(source, DocumentGroup) else name_of(source)
            run.seen.add(name)
            run.report += IndexReport(failed=[Failure(name, _reason(error))])

    async def _read(self, run: _Run, item: SourceItem) -> None:
        """Read and cut an item into the batch, or report that it is skipped, unchanged or faulty."""
        if item.skipped:
            run.report += IndexReport(skipped=1)
            return
        noted = run.known.get(item.source)
        if item.version is not None and noted and (noted.version, noted.metadata) == (item.version, run.stamp):
            run.report += IndexReport(unchanged=1)
            return
        try:
            await self._cut(run, item)
        except _ENDS_ALL:
            raise
        except Exception as error:  # noqa: BLE001 - a parser may raise anything on one bad source; the others are indexed
            run.report += IndexReport(failed=[Failure(item.source, _reason(error))])

    async def _cut(self, run: _Run, item: SourceItem) -> None:
        documents = await item.load()
        name = origin(item, documents)
        run.seen.add(name)
        noted = run.known.get(name)
        if noted is not None and noted.content == content_of(documents):
            run.report += IndexReport(unchanged=1)
            if (noted.version, noted.metadata) != (item.version, run.stamp):
                run.renoted[name] = replace(noted, version=item.version, metadata=run.stamp)
            return
        run.batch.append(unit_of(item, documents, run.stamp, self._splitter, self._scope))

    async def _store(self, run: _Run) -> None:
        """Embed and store what was read."""
        batch, renoted = run.batch, run.renoted
        run.batch, run.renoted = [], {}
        if renoted:
            await self._ledger.replace([], document_ids=[], sources=[], scope=self._scope, noted=renoted)
        run.report += await self._stored_or_failed(batch)

    async def _stored_or_failed(self, batch: Sequence[Unit]) -> IndexReport:
        """Store units; if that fails as a whole, one by one, so that one bad source costs only itself."""
        if not batch:
            return IndexReport()
        try:
            return await self._stored(batch)
        except _ENDS_ALL:
            raise
        except Exception as error:  # noqa: BLE001 - an embedder or a store of the application may raise anything
            if len(batch) == 1 or isinstance(error, _NO_USE_TRYING):
                return IndexReport(failed=[Failure(unit.name, _reason(error)) for unit in batch])
        report = IndexReport()
        for unit in batch:
            report += await self._stored_or_failed([unit])
        return report

    async def _stored(self, batch: Sequence[Unit]) -> IndexReport:
        chunks = [chunk for unit in batch for chunk in unit.chunks]
        vectors = await self._embedding.chunks(chunks)
        records = [VectorRecord(chunk, vector) for chunk, vector in zip(chunks, vectors, strict=True)]
        written, deleted = await self._ledger.replace(
            records,
            document_ids=[name for unit in batch for name in unit.document_ids],
            sources=[name for unit in batch for name in unit.sources],
            scope=self._scope,
            noted={unit.origin: unit.entry for unit in batch},
        )
        return IndexReport(
            documents=sum(unit.documents for unit in batch),
            chunks=len(chunks),
            added=written,
            deleted=deleted,
            sources=[unit.name for unit in batch],
        )

    async def _delete_missing(self, run: _Run) -> IndexReport:
        """Delete what is indexed and was not seen, but for what stands under a source that could not be read."""
        failed = [failure.source for failure in run.report.failed]
        sources, documents = missing(await self._ledger.held(self._scope), run.seen, failed)
        deleted = 0
        if sources:
            deleted += await self._ledger.delete(self._scope.filter, sources=sources)
        if documents:
            deleted += await self._ledger.delete(self._scope.filter, document_ids=documents)
        return IndexReport(deleted=deleted)


def _reason(error: Exception) -> str:
    """Return why a source failed: our own words, and of a foreign error its kind, for its text may hold anything."""
    return str(error) if isinstance(error, KnowledgeError | FileNotFoundError) else type(error).__name__
