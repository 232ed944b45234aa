"""What was indexed of which source, kept with the chunks where the store can do so, else for as long as the process lives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Protocol, cast
from weakref import WeakKeyDictionary

from agentkernel_kb.errors import AKConfigError, UnsupportedKnowledgeOperationError
from agentkernel_kb.rag.chunk import VectorRecord, origin_of
from agentkernel_kb.rag.coverage import OWN, Coverage, covered
from agentkernel_kb.rag.entry import Entry
from agentkernel_kb.rag.protocols import VectorStore
from agentkernel_kb.rag.scope import Scope, as_mapping, is_whole

_NOTES = WeakKeyDictionary[VectorStore, dict[tuple[str, str], Entry]]()


class Ledger(Protocol):
    """Notes by origin, and the steps that change chunks and notes together."""

    def of_a_run(self) -> Ledger:
        """Return the ledger for one run: once it was read, it writes to no other generation of the corpus."""
        ...

    async def read(self, scope: Scope) -> dict[str, Entry]:
        """Return what is noted, by origin, where it is still true."""
        ...

    async def compare(self, scope: Scope) -> tuple[dict[str, int], dict[str, int]]:
        """Return how many chunks each origin has by its notes, and how many there are; of what this ledger can know of.

        The notes of a scope are its own, and those of the scopes within it: without a scope, all of them.
        """
        ...

    async def forget(self, scope: Scope, origins: Iterable[str]) -> None:
        """Take notes back, those of the scopes within too."""
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

    async def owners(self, ids: Iterable[str]) -> dict[str, str]:
        """Return of which origin each chunk of these ids is, as far as there is one and the ledger can know."""
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
        store: A store with `state()`, `notes(scope)`, `every_note()`, `other_scopes(name)`, `held(where)`, `vectors(…)`,
            `owners(ids)` and `replace_noted(…)`.
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
        entries = {
            origin: entry for origin, text in (await self._store.notes(scope.name)).items() if (entry := Entry.read(text))
        }
        doubted = [origin for origin, entry in entries.items() if entry.chunks != held.get(origin, 0)]
        if any(held.get(origin) for origin in doubted):  # Scopes within may have chunks of the same origin.
            whole = (await self._covered(scope)).chunks
            doubted = [origin for origin in doubted if whole.get(origin) != held.get(origin, 0)]
        return {origin: entry for origin, entry in entries.items() if origin not in set(doubted)}

    async def compare(self, scope: Scope) -> tuple[dict[str, int], dict[str, int]]:
        """Return how many chunks each origin has by its notes, and how many there are."""
        return (await self._covered(scope)).chunks, await self._store.held(scope.filter)

    async def forget(self, scope: Scope, origins: Iterable[str]) -> None:
        """Take notes back, those of the scopes within too."""
        names = list(origins)
        for name in [scope.name, *(await self._covered(scope)).inner]:
            await self._store.forget(name, names)

    async def replace(
        self,
        records: Sequence[VectorRecord],
        *,
        document_ids: Sequence[str],
        sources: Sequence[str],
        scope: Scope,
        noted: Mapping[str, Entry],
    ) -> tuple[int, int]:
        """Replace chunks and notes in one transaction; what scopes within noted of chunks that are gone goes then."""
        counts = await self._store.replace_noted(
            records,
            document_ids=document_ids,
            sources=sources,
            where=scope.filter,
            scope=scope.name,
            noted={origin: entry.written() for origin, entry in noted.items()},
            generation=self._generation,
        )
        if counts[1] and await self._has_inner(scope):
            await self._settle(scope, [*sources, *(origin_of(None, document) for document in document_ids)])
        return counts

    async def vectors(self, *, document_ids: Sequence[str], sources: Sequence[str]) -> dict[str, list[float]]:
        """Return the vectors that there are of documents and sources, by the digest of the content that each is of."""
        return await self._store.vectors(document_ids=document_ids, sources=sources)

    async def owners(self, ids: Iterable[str]) -> dict[str, str]:
        """Return of which origin each chunk of these ids is, as far as there is one."""
        names = sorted(ids)
        return await self._store.owners(names) if names else {}

    async def delete(self, scope: Scope, where: Mapping[str, Any] | None = None, **named: Sequence[str] | None) -> int:
        """Delete what is named, in scope and meets a filter; return how many chunks."""
        condition = scope.refined(where) or None
        if not await self._has_inner(scope):
            return await self._store.delete(**named, where=condition, scope=scope.name)
        before: dict[str, int] = await self._store.held(scope.filter)
        deleted = await self._store.delete(**named, where=condition, scope=OWN)
        left: dict[str, int] = await self._store.held(scope.filter)
        await self._settle(scope, [origin for origin, chunks in before.items() if left.get(origin, 0) != chunks])
        return deleted

    async def held(self, scope: Scope) -> list[tuple[str | None, str]]:
        """Return source and document of what there is within a scope."""
        return [(each.source or None, each.document_id) for each in await self._store.list_documents(scope.filter)]

    async def _covered(self, scope: Scope) -> Coverage:
        return covered(scope, await self._store.every_note())

    async def _has_inner(self, scope: Scope) -> bool:
        """Tell whether there are notes of scopes within; one of each scope is read for that."""
        return bool(covered(scope, await self._store.other_scopes(scope.name)).inner)

    async def _settle(self, scope: Scope, origins: Iterable[str]) -> None:
        """Take back what is noted of chunks that were deleted, in the scopes within too: nothing is missing there."""
        noted = await self._covered(scope)
        emptied = await noted.emptied(origins, await self._store.held(scope.filter), self._store.held)
        for name, gone in emptied.items():
            if gone:
                await self._store.forget(scope.name if name == OWN else name, gone)


class MemoryLedger:
    """Notes that are gone with the process: then sources are read again, and nothing else is lost.

    All that is opened on one store shares them, as it does the notes of a store that keeps some.

    Args:
        store: Any store.
    """

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self._notes = _notes_on(store)

    def of_a_run(self) -> Ledger:
        """Return itself: its notes are all that there is, and such a store has no generations."""
        return self

    async def read(self, scope: Scope) -> dict[str, Entry]:
        """Return what is noted, by origin."""
        return {origin: entry for (name, origin), entry in self._notes.items() if name == scope.name}

    async def compare(self, scope: Scope) -> tuple[dict[str, int], dict[str, int]]:
        """Return how many chunks each origin has by its note, and how many there are, of what this process indexed."""
        noted = self._covered(scope).chunks
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
        self._drop(scope, set(origins))

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
        records = [VectorRecord(each.chunk, list(each.embedding)) for each in records]  # Libraries ask for lists.
        replace = getattr(self._store, "replace", None)
        if callable(replace) and not scope:
            counts = await cast("Any", replace)(records, document_ids=document_ids, sources=sources)
        else:
            counts = await self._written_first(records, document_ids, sources, scope)
        self._drop(scope, {*sources, *(origin_of(None, document) for document in document_ids)})
        self._notes.update({(scope.name, origin): entry for origin, entry in noted.items()})
        return counts

    async def vectors(self, *, document_ids: Sequence[str], sources: Sequence[str]) -> dict[str, list[float]]:
        """Return nothing: a store's vectors cannot be read back by the protocol."""
        return {}

    async def owners(self, ids: Iterable[str]) -> dict[str, str]:
        """Return nothing: a store cannot be asked by the protocol whose chunk an id is."""
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
            self._drop(scope, set(sources))
        else:
            self._drop(scope, {origin for _, origin in self._notes})
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

    def _covered(self, scope: Scope) -> Coverage:
        return covered(scope, ((name, origin, entry) for (name, origin), entry in self._notes.items()))

    def _drop(self, scope: Scope, origins: set[str]) -> None:
        """Take notes of some origins back, those of the scopes within too."""
        names = {scope.name, *self._covered(scope).inner}
        for key in [key for key in self._notes if key[0] in names and key[1] in origins]:
            del self._notes[key]

    async def _written_first(
        self, records: Sequence[VectorRecord], document_ids: Sequence[str], sources: Sequence[str], scope: Scope
    ) -> tuple[int, int]:
        written = await self._store.upsert(records) if records else 0
        if not document_ids and not sources:
            return written, 0
        new = {"id": {"$nin": [record.chunk.id for record in records]}} if records else None
        where = as_mapping(scope.refined(new)) or None
        return written, await self._store.delete(document_ids=document_ids, sources=sources, where=where)


def _notes_on(store: VectorStore) -> dict[tuple[str, str], Entry]:
    """Return the notes on a store; a new mapping for one that cannot be referred to."""
    try:
        return _NOTES.setdefault(store, {})
    except TypeError:  # It has slots, or compares by value.
        return {}


def missing(held: Sequence[tuple[str | None, str]], seen: set[str], failed: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the sources, and the documents without one, that were not seen and do not stand under one that failed."""
    under = tuple(f"{PurePath(name).as_posix().rstrip('/')}/" for name in failed)
    gone = [
        (source, document)
        for source, document in held
        if origin_of(source, document) not in seen and not (source or "").startswith(under)
    ]
    return sorted({source for source, _ in gone if source}), [document for source, document in gone if not source]
