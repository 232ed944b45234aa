"""What was indexed of which source, kept with the chunks where the store can do so, else for as long as the process lives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from agentkernel_kb.errors import UnsupportedKnowledgeOperationError
from agentkernel_kb.rag.chunk import VectorRecord
from agentkernel_kb.rag.protocols import VectorStore
from agentkernel_kb.rag.scope import Scope, as_mapping


class Ledger(Protocol):
    """Notes by source, and the one step that changes chunks and notes together."""

    async def read(self, scope: str) -> dict[str, str]:
        """Return what is noted, by source."""
        ...

    async def replace(
        self,
        records: Sequence[VectorRecord],
        *,
        document_ids: Sequence[str],
        sources: Sequence[str],
        scope: Scope,
        noted: Mapping[str, str],
    ) -> tuple[int, int]:
        """Replace chunks within a scope and note what is given; return how many were written and how many deleted."""
        ...

    async def sources(self, scope: Scope) -> list[str]:
        """Return the sources that have chunks within a scope."""
        ...


def ledger_of(store: VectorStore) -> Ledger:
    """Return the ledger of a store: its own, or one in memory."""
    return StoredLedger(store) if callable(getattr(store, "replace_noted", None)) else MemoryLedger(store)


class StoredLedger:
    """The ledger of a store that keeps notes beside its chunks.

    Args:
        store: A store with `notes(scope)` and `replace_noted(…)`.
    """

    def __init__(self, store: Any) -> None:
        self._store = store

    async def read(self, scope: str) -> dict[str, str]:
        """Return what is noted, by source."""
        return await self._store.notes(scope)

    async def replace(
        self,
        records: Sequence[VectorRecord],
        *,
        document_ids: Sequence[str],
        sources: Sequence[str],
        scope: Scope,
        noted: Mapping[str, str],
    ) -> tuple[int, int]:
        """Replace chunks and notes in one transaction."""
        return await self._store.replace_noted(
            records, document_ids=document_ids, sources=sources, where=scope.filter, scope=scope.name, noted=noted
        )

    async def sources(self, scope: Scope) -> list[str]:
        """Return the sources that have chunks within a scope."""
        return await _sources(self._store, scope)


class MemoryLedger:
    """Notes that are gone with the process: then sources are read again, and nothing else is lost.

    Args:
        store: Any store.
    """

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self._notes: dict[tuple[str, str], str] = {}

    async def read(self, scope: str) -> dict[str, str]:
        """Return what is noted, by source."""
        return {source: entry for (name, source), entry in self._notes.items() if name == scope}

    async def replace(
        self,
        records: Sequence[VectorRecord],
        *,
        document_ids: Sequence[str],
        sources: Sequence[str],
        scope: Scope,
        noted: Mapping[str, str],
    ) -> tuple[int, int]:
        """Write new chunks first and delete the old ones then, so that a search never finds a source missing."""
        replace = getattr(self._store, "replace", None)
        if callable(replace) and not scope:
            counts = await cast("Any", replace)(records, document_ids=document_ids, sources=sources)
        else:
            written = await self._store.upsert(records)
            new = {"id": {"$nin": [record.chunk.id for record in records]}}
            where = as_mapping(scope.refined(new)) if records else (as_mapping(scope.filter) or None)
            named = bool(document_ids or sources)
            deleted = await self._store.delete(document_ids=document_ids, sources=sources, where=where) if named else 0
            counts = (written, deleted)
        self._notes.update({(scope.name, source): entry for source, entry in noted.items()})
        return counts

    async def sources(self, scope: Scope) -> list[str]:
        """Return the sources that have chunks within a scope."""
        return await _sources(self._store, scope)


async def _sources(store: Any, scope: Scope) -> list[str]:
    if not scope:
        return await store.list_sources()
    if not callable(getattr(store, "list_documents", None)):
        raise UnsupportedKnowledgeOperationError(
            "This store cannot list the sources of one scope, so none is deleted as missing."
        )
    return sorted({each.source for each in await store.list_documents(as_mapping(scope.filter)) if each.source})
