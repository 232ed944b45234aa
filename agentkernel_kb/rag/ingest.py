"""Indexing: sources are read, cut, embedded and stored batch by batch; each source changes in one step or not at all.

What is noted about a source is stored together with its chunks: whoever goes on after a crash does nothing twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from agentkernel_kb.errors import AKConfigError, KnowledgeError
from agentkernel_kb.rag.chunk import Chunk, VectorRecord
from agentkernel_kb.rag.chunkers.base import numbered
from agentkernel_kb.rag.content import digest
from agentkernel_kb.rag.embedding import Embedding
from agentkernel_kb.rag.ledger import Ledger, ledger_of
from agentkernel_kb.rag.loading.items import SourceItem, items_of, name_of
from agentkernel_kb.rag.protocols import Loader, Splitter, VectorStore
from agentkernel_kb.rag.scope import Scope, as_mapping
from agentkernel_kb.rag.values import Document, Failure, IndexReport
from agentkernel_kb.rag.where import parse_where

_BATCH_CHUNKS = 512
Progress = Callable[[IndexReport], object]


@dataclass(slots=True)
class _Unit:
    """A source that was read and cut.

    Attributes:
        source: What it is called.
        entry: What is noted about it once it is stored.
        documents: How many documents it has.
        chunks: Its chunks, in order.
        by_id: It has no source, so that its documents are replaced by their ids.
    """

    source: str
    entry: str
    documents: int
    chunks: list[Chunk]
    by_id: bool
    document_ids: list[str] = field(default_factory=list[str])


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
        self._loader, self._splitter, self._embedding, self._store, self._scope = loader, splitter, embedding, store, scope
        self._ledger: Ledger = ledger_of(store)

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
            AKConfigError: The corpus was made with another model or chunker.
        """
        await self._check_fingerprint()
        known = await self._ledger.read(self._scope.name)
        report, batch, seen = IndexReport(), list[_Unit](), set[str]()
        for source in sources:
            try:
                async for item in items_of(self._loader, source, metadata):
                    seen.add(item.source)
                    found = await self._read(item, known, metadata)
                    if isinstance(found, IndexReport):
                        report += found
                        continue
                    batch.append(found)
                    if sum(len(unit.chunks) for unit in batch) >= _BATCH_CHUNKS:
                        report, batch = report + await self._store_batch(batch), []
                        _tell(progress, report)
            except Exception as error:  # noqa: BLE001 - one source's loader may raise anything; the others are indexed
                seen.add(name_of(source))
                report += IndexReport(failed=[Failure(name_of(source), _reason(error))])
        report += await self._store_batch(batch)
        if delete_missing:
            report += await self._delete_missing(seen, [failure.source for failure in report.failed])
        _tell(progress, report)
        return report

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
        condition = as_mapping(self._scope.refined(where))
        return await self._store.delete(ids=ids, document_ids=document_ids, sources=sources, where=condition or None)

    async def _check_fingerprint(self) -> None:
        """Compare model and chunker with those that the corpus was made with, or note them."""
        read, note = getattr(self._store, "fingerprint", None), getattr(self._store, "note_fingerprint", None)
        if not callable(read) or not callable(note):
            return
        chunking = getattr(self._splitter, "fingerprint", type(self._splitter).__name__)
        mine = {**await self._embedding.fingerprint(), "chunking": chunking}
        noted: dict[str, Any] = await cast("Any", read)()
        if not noted:
            await cast("Any", note)(mine)
        elif noted != mine:
            raise AKConfigError(
                f"The corpus was made with {_shown(noted)}, and this is {_shown(mine)}: use those, or index anew in another "
                "namespace."
            )

    async def _read(
        self, item: SourceItem, known: Mapping[str, str], metadata: Mapping[str, Any] | None
    ) -> _Unit | IndexReport:
        """Read and cut a source, or report that it is skipped, unchanged or faulty."""
        if item.skipped:
            return IndexReport(skipped=1)
        noted: dict[str, Any] = json.loads(known.get(item.source, "{}"))
        stamp = digest(json.dumps(dict(metadata or {}), sort_keys=True, default=repr))
        if item.version is not None and (noted.get("version"), noted.get("metadata")) == (item.version, stamp):
            return IndexReport(unchanged=1)
        try:
            documents = await item.load()
            content = digest(
                *(text for document in documents for text in (document.id, document.text, _json(document.metadata)))
            )
            if noted.get("content") == content:
                return IndexReport(unchanged=1)
            return self._cut(item, documents, _json({"version": item.version, "metadata": stamp, "content": content}))
        except Exception as error:  # noqa: BLE001 - a parser may raise anything on one bad source; the others are indexed
            return IndexReport(failed=[Failure(item.source, _reason(error))])

    def _cut(self, item: SourceItem, documents: Sequence[Document], entry: str) -> _Unit:
        chunks: list[Chunk] = []
        for document in documents:
            chunks += numbered(list(self._splitter.split([document])))
        by_id = any(document.source is None for document in documents)
        bound = [self._scope.bind(chunk) for chunk in chunks]
        return _Unit(item.source, entry, len(documents), bound, by_id, [document.id for document in documents])

    async def _store_batch(self, batch: Sequence[_Unit]) -> IndexReport:
        """Embed and store sources; if that fails as a whole, one by one, so that one bad source costs only itself."""
        if not batch:
            return IndexReport()
        try:
            return await self._stored(batch)
        except KnowledgeError as error:
            if len(batch) == 1:
                return IndexReport(failed=[Failure(batch[0].source, _reason(error))])
        report = IndexReport()
        for unit in batch:
            report += await self._store_batch([unit])
        return report

    async def _stored(self, batch: Sequence[_Unit]) -> IndexReport:
        chunks = [chunk for unit in batch for chunk in unit.chunks]
        vectors = await self._embedding.documents([chunk.text for chunk in chunks])
        records = [VectorRecord(chunk, vector) for chunk, vector in zip(chunks, vectors, strict=True)]
        written, deleted = await self._ledger.replace(
            records,
            document_ids=[name for unit in batch if unit.by_id for name in unit.document_ids],
            sources=[unit.source for unit in batch if not unit.by_id],
            scope=self._scope,
            noted={unit.source: unit.entry for unit in batch},
        )
        return IndexReport(
            documents=sum(unit.documents for unit in batch),
            chunks=len(chunks),
            added=written,
            deleted=deleted,
            sources=[unit.source for unit in batch],
        )

    async def _delete_missing(self, seen: set[str], failed: Sequence[str]) -> IndexReport:
        """Delete the sources that are indexed and were not seen, but for those under a source that could not be read."""
        indexed = await self._ledger.sources(self._scope)
        under = tuple(f"{name.rstrip('/')}/" for name in failed)
        missing = [source for source in indexed if source not in seen and not source.startswith(under)]
        if not missing:
            return IndexReport()
        return IndexReport(deleted=await self.delete(ids=None, document_ids=None, where=None, sources=missing))


def _tell(progress: Progress | None, report: IndexReport) -> None:
    if progress is not None:
        progress(report)


def _reason(error: Exception) -> str:
    """Return why a source failed: our own words, and of a foreign error its kind, for its text may hold anything."""
    return str(error) if isinstance(error, KnowledgeError | FileNotFoundError) else type(error).__name__


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


def _shown(fingerprint: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in fingerprint.items())
