"""What was indexed of which source, kept with the chunks where the store can do so, else for as long as the process lives."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Protocol, cast

from agentkernel_kb.errors import AKConfigError, UnsupportedKnowledgeOperationError
from agentkernel_kb.rag.chunk import VectorRecord, origin_of
from agentkernel_kb.rag.protocols import VectorStore
from agentkernel_kb.rag.scope import Scope, as_mapping, is_whole


@dataclass(frozen=True, slots=True)
class Entry:
    """What is noted about an origin: a source, or a document that has none.

    Attributes:
        version: What its loader said of its state, such as size and time; `None` where only reading it tells.
        metadata: Digest of the metadata that it was indexed with.
        content: Digest of its documents.
        chunks: How many chunks it has.
        identity: What its loader calls it however it is spelled, such as the whole path of a file.
    """

    version: str | None
    metadata: str
    content: str
    chunks: int
    identity: str | None = None

    def written(self) -> str:
        """Return the entry as text."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def read(cls, text: str) -> Entry | None:
        """Return what `written` made a text of, `None` for any other text: then the source is read again."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError):
            return None


class Ledger(Protocol):
    """Notes by origin, and the steps that change chunks and notes together."""

    def of_a_run(self) -> Ledger:
        """Return the ledger for one run: once it was read, it writes to no other generation of the corpus."""
        ...

    async def read(self, scope: Scope) -> dict[str, Entry]:
        """Return what is noted, by origin, where it is still true."""
        ...

    async def compare(self, scope: Scope) -> tuple[dict[str, int], dict[str, int]]:
        """Return how many chunks each origin has by its note, and how many there are; of what this ledger can know of."""
        ...

    async def forget(self, scope: Scope, origins: Iterable[str]) -> None:
        """Take notes back."""
        ...

    async def replace(
        self,
        records: Sequence[VectorRecord],
        *,
        document_ids: Sequence[str],
        sources: Sequence[str],
        scope: Scope,
        noted: Mapping[str, Entry],
    ) -> tuple[int, int]:
        """Replace chunks within a scope and note what is given; return how many were written and how many deleted."""
        ...

    async def vectors(self, *, document_ids: Sequence[str], sources: Sequence[str]) -> dict[str, list[float]]:
        """Return the vectors that there are of documents and sources, by the digest of the content that each is of."""
        ...

    async def delete(self, scope: Scope, where: Mapping[str, Any] | None = None, **named: Sequence[str] | None) -> int:
        """Delete what is named, in scope and meets a filter; return how many chunks."""
        ...

    async def held(self, scope: Scope) -> list[tuple[str | None, str]]:
        """Return source and document of what there is within a scope."""
        ...


def ledger_of(store: VectorStore) -> Ledger:
    """Return the ledger of a store: its own, or one in memory."""
    return StoredLedger(store) if callable(getattr(store, "replace_noted", None)) else MemoryLedger(store)


class StoredLedger:
    """The ledger of a store that keeps notes beside its chunks.

    Args:
        store: A store with `state()`, `notes(scope)`, `held(where)`, `vectors(…)` and `replace_noted(…)`.
    """

    def __init__(self, store: Any) -> None:
        self._store = store
        self._generation: int | None = None

    def of_a_run(self) -> Ledger:
        """Return another one, whose generation no other run reads anew."""
        return StoredLedger(self._store)

    async def read(self, scope: Scope) -> dict[str, Entry]:
        """Return what is noted, by origin. Where chunks are gone by whatever way, the note is not true any more.

        From then on nothing is written to another generation of the corpus.
        """
        self._generation, _ = await self._store.state()
        held: dict[str, int] = await self._store.held(scope.filter)
        entries = await self._entries(scope)
        return {origin: entry for origin, entry in entries.items() if entry.chunks == held.get(origin, 0)}

    async def compare(self, scope: Scope) -> tuple[dict[str, int], dict[str, int]]:
        """Return how many chunks each origin has by its note, and how many there are."""
        noted = {origin: entry.chunks for origin, entry in (await self._entries(scope)).items()}
        return noted, await self._store.held(scope.filter)

    async def forget(self, scope: Scope, origins: Iterable[str]) -> None:
        """Take notes back."""
        await self._store.forget(scope.name, origins)

    async def replace(
        self,
        records: Sequence[VectorRecord],
        *,
        document_ids: Sequence[str],
        sources: Sequence[str],
        scope: Scope,
        noted: Mapping[str, Entry],
    ) -> tuple[int, int]:
        """Replace chunks and notes in one transaction."""
        return await self._store.replace_noted(
            records,
            document_ids=document_ids,
            sources=sources,
            where=scope.filter,
            scope=scope.name,
            noted={origin: entry.written() for origin, entry in noted.items()},
            generation=self._generation,
        )

    async def vectors(self, *, document_ids: Sequence[str], sources: Sequence[str]) -> dict[str, list[float]]:
        """Return the vectors that there are of documents and sources, by the digest of the content that each is of."""
        return await self._store.vectors(document_ids=document_ids, sources=sources)

    async def delete(self, scope: Scope, where: Mapping[str, Any] | None = None, **named: Sequence[str] | None) -> int:
        """Delete what is named, in scope and meets a filter; return how many chunks."""
        return await self._store.delete(**named, where=scope.refined(where) or None, scope=scope.name)

    async def held(self, scope: Scope) -> list[tuple[str | None, str]]:
        """Return source and document of what there is within a scope."""
        return [(each.source or None, each.document_id) for each in await self._store.list_documents(scope.filter)]

    async def _entries(self, scope: Scope) -> dict[str, Entry]:
        noted: dict[str, str] = await self._store.notes(scope.name)
        entries = ((origin, Entry.read(text)) for origin, text in noted.items())
        return {origin: entry for origin, entry in entries if entry is not None}


class MemoryLedger:
    """Notes that are gone with the process: then sources are read again, and nothing else is lost.

    Args:
        store: Any store.
    """

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self._notes: dict[tuple[str, str], Entry] = {}

    def of_a_run(self) -> Ledger:
        """Return itself: its notes are all that there is, and such a store has no generations."""
        return self

    async def read(self, scope: Scope) -> dict[str, Entry]:
        """Return what is noted, by origin."""
        return {origin: entry for (name, origin), entry in self._notes.items() if name == scope.name}

    async def compare(self, scope: Scope) -> tuple[dict[str, int], dict[str, int]]:
        """Return how many chunks each origin has by its note, and how many there are, of what this process indexed."""
        noted = {origin: entry.chunks for origin, entry in (await self.read(scope)).items()}
        listing = getattr(self._store, "list_documents", None)
        held: Counter[str] = Counter()
        if callable(listing):
            for each in await cast("Any", listing)(as_mapping(scope.filter) or None):
                held[origin_of(each.source or None, each.document_id)] += each.chunk_count
        else:  # Only whether there is something of a source can be known.
            there = set(await self._store.list_sources())
            held.update(
                {origin: chunks for origin, chunks in noted.items() if origin in there or origin.startswith("document:")}
            )
        return noted, {origin: held[origin] for origin in noted}

    async def forget(self, scope: Scope, origins: Iterable[str]) -> None:
        """Take notes back."""
        for origin in origins:
            self._notes.pop((scope.name, origin), None)

    async def replace(
        self,
        records: Sequence[VectorRecord],
        *,
        document_ids: Sequence[str],
        sources: Sequence[str],
        scope: Scope,
        noted: Mapping[str, Entry],
    ) -> tuple[int, int]:
        """Write new chunks first and delete the old ones then, so that a search never finds a source missing."""
        replace = getattr(self._store, "replace", None)
        if callable(replace) and not scope:
            counts = await cast("Any", replace)(records, document_ids=document_ids, sources=sources)
        else:
            counts = await self._written_first(records, document_ids, sources, scope)
        self._notes.update({(scope.name, origin): entry for origin, entry in noted.items()})
        return counts

    async def vectors(self, *, document_ids: Sequence[str], sources: Sequence[str]) -> dict[str, list[float]]:
        """Return nothing: a store's vectors cannot be read back by the protocol."""
        return {}

    async def delete(self, scope: Scope, where: Mapping[str, Any] | None = None, **named: Sequence[str] | None) -> int:
        """Delete what is named, in scope and meets a filter; return how many chunks.

        Raises:
            AKConfigError: The filter cannot be said in one mapping, which is all that this store takes.
        """
        condition = scope.refined(where)
        if not is_whole(condition):
            raise AKConfigError("This store cannot delete by several $contains of one key.")
        sources, others = named.get("sources"), [name for name, given in named.items() if given is not None]
        if sources is not None and others == ["sources"]:
            self._notes = {key: entry for key, entry in self._notes.items() if key[1] not in set(sources)}
        else:
            self._notes = {}
        return await self._store.delete(**named, where=as_mapping(condition) or None)

    async def held(self, scope: Scope) -> list[tuple[str | None, str]]:
        """Return source and document of what there is within a scope.

        Raises:
            UnsupportedKnowledgeOperationError: The store cannot list under a filter.
        """
        listing = getattr(self._store, "list_documents", None)
        if callable(listing):
            found = await cast("Any", listing)(as_mapping(scope.filter) or None)
            return [(each.source or None, each.document_id) for each in found]
        if scope:
            raise UnsupportedKnowledgeOperationError(
                "This store cannot list the sources of one scope, so none is deleted as missing."
            )
        return [(source, "") for source in await self._store.list_sources()]

    async def _written_first(
        self, records: Sequence[VectorRecord], document_ids: Sequence[str], sources: Sequence[str], scope: Scope
    ) -> tuple[int, int]:
        written = await self._store.upsert(records) if records else 0
        if not document_ids and not sources:
            return written, 0
        new = {"id": {"$nin": [record.chunk.id for record in records]}} if records else None
        where = as_mapping(scope.refined(new)) or None
        return written, await self._store.delete(document_ids=document_ids, sources=sources, where=where)


def missing(held: Sequence[tuple[str | None, str]], seen: set[str], failed: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the sources, and the documents without one, that were not seen and do not stand under one that failed."""
    under = tuple(f"{PurePath(name).as_posix().rstrip('/')}/" for name in failed)
    gone = [
        (source, document)
        for source, document in held
        if origin_of(source, document) not in seen and not (source or "").startswith(under)
    ]
    return sorted({source for source, _ in gone if source}), [document for source, document in gone if not source]
