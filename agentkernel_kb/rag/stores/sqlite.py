"""SQLiteVectorStore: corpora in one file, words and vectors together, for several processes."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from agentkernel_kb.errors import AKConfigError, KnowledgeStateError
from agentkernel_kb.rag.chunk import Chunk
from agentkernel_kb.rag.content import TextBlock, content_from
from agentkernel_kb.rag.index.analysis import Analysis
from agentkernel_kb.rag.index.index import ChunkIndex
from agentkernel_kb.rag.index.table import Metadata
from agentkernel_kb.rag.stores.generational import GenerationalStore, State
from agentkernel_kb.rag.stores.rows import SEMANTIC_SHARE, Notes, Row
from agentkernel_kb.rag.stores.sqlite_file import SQLiteFile, packed, packed_terms, unpacked, unpacked_terms
from agentkernel_kb.rag.stores.sqlite_generations import MARK, faults, names_of, next_name, prune, retire, switch, unfinished

_MOST_GONE = 10_000
_MOST_PARAMETERS = 500

_NEW_NAMESPACE = "INSERT OR IGNORE INTO namespaces (name, analysis) VALUES (?, ?)"
_STATE = "SELECT number, analysis, version, epoch FROM namespaces WHERE name = ?"
_CHANGED = "UPDATE namespaces SET version = version + 1, epoch = epoch + ? WHERE number = ?"
_GONE = "SELECT number, row FROM gone WHERE namespace = ? AND number > ? ORDER BY number"
_TERMS = "SELECT number, term FROM terms WHERE namespace = ? AND number > ?"
_CHUNKS = (
    "SELECT row, id, document_id, source, metadata, own, vector, terms FROM chunks WHERE namespace = ? AND row > ? ORDER BY row"
)
_CONTENTS = "SELECT row, id, document_id, source, chunk_index, total_chunks, kind, content FROM chunks WHERE row IN"
_NOTED = "SELECT scope, source, entry FROM ledger WHERE namespace = ?"
_NOTED_ELSEWHERE = "SELECT scope, source, entry FROM ledger WHERE namespace = ? AND scope <> ? GROUP BY scope"
_INSERTED = (
    "INSERT INTO chunks (row, namespace, id, document_id, source, chunk_index, total_chunks, metadata, own, kind, content,"
    " vector, terms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class SQLiteVectorStore(GenerationalStore):
    """Holds chunks in a file, and ranks all of a namespace exactly, with words and vectors in memory.

    Opening reads words and vectors, and no texts. Changes of other processes are seen by the next call. Several processes may
    write: one at a time, the others wait. Nothing is opened before the first call, and reading makes neither file nor corpus.

    Args:
        path: The file; the first change makes it where there is none.
        namespace: Name of the corpus in the file: corpora do not see each other.
        analysis: How texts become terms; a corpus has to be opened with the one that it was made with.
        vector_share: The vectors' share of a hybrid score, in [0, 1]; the words have the rest.

    Raises:
        AKConfigError: An argument is out of range.
    """

    def __init__(
        self,
        path: str | Path,
        namespace: str = "default",
        *,
        analysis: Analysis | None = None,
        vector_share: float = SEMANTIC_SHARE,
    ) -> None:
        super().__init__(analysis, vector_share)
        if not isinstance(path, str | Path) or not str(path):
            raise AKConfigError(f"SQLiteVectorStore: path must be the path of a file, not {path!r}.")
        if not isinstance(namespace, str) or not namespace or namespace.startswith(MARK) or packed(namespace) != namespace:
            raise AKConfigError(f"SQLiteVectorStore: namespace must be a name, not {namespace!r}.")
        self._file = SQLiteFile(Path(path))
        self._namespace = namespace
        self._number = 0
        self._forget()

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    @property
    def namespace(self) -> str:
        """Name of the corpus in the file."""
        return self._namespace

    @property
    def generation(self) -> int:
        """Number of the generation that was seen last: another one where the corpus was made anew. 0 before there is one."""
        return self._number

    async def fingerprint(self) -> dict[str, Any]:
        """Return what was noted with `note_fingerprint`: under which model and chunking the corpus was made."""

        def read() -> dict[str, Any]:
            found = self._file.connection().execute("SELECT fingerprint FROM namespaces WHERE number = ?", (self._number,))
            noted = found.fetchone()
            try:
                return json.loads(noted[0]) if noted else {}
            except ValueError as error:
                raise self._file.damaged() from error

        return await self._read(read)

    async def note_fingerprint(self, fingerprint: Mapping[str, Any]) -> None:
        """Note under which model and chunking the corpus is made. What is noted already stays."""

        def write() -> None:
            with self._transaction():
                self._refresh()
                noted = json.dumps(dict(fingerprint), sort_keys=True)
                statement = "UPDATE namespaces SET fingerprint = ? WHERE number = ? AND fingerprint = '{}'"
                self._file.connection().execute(statement, (noted, self._number))

        await self._run(write)

    async def namespaces(self) -> list[str]:
        """Return the names of the corpora in the file, sorted; none where there is no file."""
        return await self._read(lambda: names_of(self._file.connection()))

    async def make(self) -> None:
        """Make the namespace in the file, and the file, where there is none."""
        await self._run(self._ensure_namespace)

    async def begin_generation(self, fingerprint: Mapping[str, Any]) -> SQLiteVectorStore:
        """Return a store for the next generation: what was begun under the same fingerprint, else an empty one."""
        begun = self._next()
        try:
            noted = await begun.fingerprint()
            if (noted and noted != fingerprint) or begun._made_with != self._analysis.name:
                await begun.close()
                await self.discard_generations()
                begun = self._next()
            await begun.note_fingerprint(fingerprint)
        except BaseException:
            await begun.close()
            raise
        return begun

    async def switch_to(self, generation: GenerationalStore, *, mine: State, its: State) -> bool:
        """Hold what a generation holds, in one transaction. See `GenerationalStore.switch_to`."""

        def switched() -> bool:
            with self._file.writing() as connection:
                done = switch(connection, self._namespace, mine, its)
            prune(self._file)
            return done

        return await self._run(switched)

    async def unfinished(self) -> int:
        """Return how many chunks there are of a generation that was begun and not switched to."""
        return await self._read(lambda: unfinished(self._file.connection(), self._namespace))

    async def discard_generations(self) -> None:
        """Throw away what was begun and not switched to, and what is left of older generations."""

        def discarded() -> None:
            if not self._file.is_there():
                return
            with self._file.writing() as connection:
                retire(connection, next_name(self._namespace))
            prune(self._file)

        await self._run(discarded)

    async def faults(self) -> list[str]:
        """Return what is wrong with the file, in words."""
        return await self._read(lambda: faults(self._file.connection(), self._number))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the file. May be called twice."""
        await self._run(self._file.close)

    def __repr__(self) -> str:
        return f"SQLiteVectorStore({str(self.path)!r}, namespace={self._namespace!r})"

    @contextmanager
    def _transaction(self) -> Generator[None]:
        self._ensure_namespace()
        with self._file.writing():
            yield

    @contextmanager
    def _reading(self) -> Generator[None]:
        if not self._number and self._file.is_there():
            prune(self._file)
        with self._file.reading():
            yield

    def _ensure_namespace(self) -> None:
        """Make the namespace in the file, where there is none."""
        if self._number:
            return
        with self._file.writing() as connection:
            connection.execute(_NEW_NAMESPACE, (self._namespace, self._analysis.name))
            self._number = connection.execute(_STATE, (self._namespace,)).fetchone()[0]
        prune(self._file)

    def _next(self) -> SQLiteVectorStore:
        """Return a store on the next generation."""
        made = SQLiteVectorStore(self.path, self._namespace, analysis=self._analysis, vector_share=self._vector_share)
        made._namespace = next_name(self._namespace)
        return made

    def _refresh(self) -> None:
        """Read what was written since the last call: all of it, when the file was just opened."""
        connection = self._file.connection()
        found = connection.execute(_STATE, (self._namespace,)).fetchone()
        if found is None and self._number:  # A generation that was begun, and thrown away or switched to.
            raise KnowledgeStateError("The corpus was indexed anew meanwhile.")
        if found is None:  # Nobody has written anything.
            return
        number, self._made_with, version, epoch = found
        if (number, epoch) != (self._number, self._epoch):
            self._forget()
            self._number = number
        if version == self._version:
            return
        try:
            self._catch_up(connection)
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            self._forget()
            raise self._file.damaged() from error
        self._version, self._epoch = version, epoch
        if self._index.is_sparse():
            self._rebuild()

    def _catch_up(self, connection: sqlite3.Connection) -> None:
        """Read what is newer than the last number that was read of each table."""
        for number, row in connection.execute(_GONE, (self._number, self._last_gone)):
            self._last_gone = number
            slot = self._slot_of_row.pop(row, None)
            if slot is not None and self._index.table.alive[slot]:
                self._index.drop(slot)
        for number, term in connection.execute(_TERMS, (self._number, self._last_term)):
            self._note_term(term, number)
        for row, name, document, source, shared, own, vector, terms in connection.execute(
            _CHUNKS, (self._number, self._last_row)
        ):
            metadata, counts = Metadata(unpacked(shared), tuple(json.loads(own))), unpacked_terms(terms, self._terms)
            named = unpacked(name), unpacked(document), source and unpacked(source)
            self._note_row(row, self._index.put(*named, metadata, counts, array("f", vector)))

    def _keep(self, rows: Sequence[Row], gone: Sequence[str]) -> None:
        connection = self._file.connection()
        pruned = self._remove(connection, [*gone, *(row.id for row in rows)])
        self._new_terms = self._learned(connection, {term for row in rows for term in row.terms})
        first = _last(connection, "chunks") + 1
        self._new_rows = {row.id: first + place for place, row in enumerate(rows)}
        numbers = {**self._number_of, **self._new_terms} if self._new_terms else self._number_of
        connection.executemany(_INSERTED, (self._values(row, numbers) for row in rows))
        connection.execute(_CHANGED, (pruned, self._number))
        self._new_gone, self._new_epoch = _last(connection, "gone"), self._epoch + pruned

    def _note_sources(self, notes: Notes, touched: Iterable[str]) -> None:
        connection = self._file.connection()
        everywhere = notes.by_source is None
        stale = ((self._number, packed(source), everywhere, notes.scope) for source in sorted(touched))
        connection.executemany("DELETE FROM ledger WHERE namespace = ? AND source = ? AND (? OR scope = ?)", stale)
        entries = (
            (self._number, packed(source), notes.scope, packed(entry)) for source, entry in (notes.by_source or {}).items()
        )
        connection.executemany("INSERT OR REPLACE INTO ledger (namespace, source, scope, entry) VALUES (?, ?, ?, ?)", entries)

    def _noted(self, scope: str) -> dict[str, str]:
        statement = "SELECT source, entry FROM ledger WHERE namespace = ? AND scope = ?"
        found = self._file.connection().execute(statement, (self._number, scope))
        return {unpacked(source): unpacked(entry) for source, entry in found}

    def _changes(self) -> int:
        return self._version

    def _all_noted(self) -> list[tuple[str, str, str]]:
        return self._notes_of(_NOTED, self._number)

    def _noted_elsewhere(self, scope: str) -> list[tuple[str, str, str]]:
        return self._notes_of(_NOTED_ELSEWHERE, self._number, scope)

    def _notes_of(self, statement: str, *values: int | str) -> list[tuple[str, str, str]]:
        found = self._file.connection().execute(statement, values)
        return [(scope, unpacked(source), unpacked(entry)) for scope, source, entry in found]

    def _kept(self) -> None:
        self._version += 1
        self._epoch, self._last_gone = self._new_epoch, self._new_gone
        for term, number in self._new_terms.items():
            self._note_term(term, number)

    def _put(self, row: Row) -> int:
        slot = super()._put(row)
        self._note_row(self._new_rows[row.id], slot)
        return slot

    def _rebuild(self) -> None:
        self._old_rows, self._row_of_slot, self._slot_of_row = self._row_of_slot, [], {}
        super()._rebuild()

    def _moved(self, old: int, new: int) -> None:
        self._note_row(self._old_rows[old], new)

    def _chunks(self, slots: Sequence[int]) -> list[Chunk]:
        found: dict[int, Chunk] = {}
        wanted = {self._row_of_slot[slot]: slot for slot in slots}
        for part in _parts(list(wanted)):
            statement = f"{_CONTENTS} ({', '.join('?' * len(part))})"
            for row, name, document, source, index, total, kind, content in self._file.connection().execute(statement, part):
                block = (
                    TextBlock(content.decode("utf-8", "surrogatepass"))
                    if kind == "text"
                    else content_from(json.loads(content), unpacked(name))
                )
                named = unpacked(document), index, source and unpacked(source)
                metadata = self._index.table.metadata(wanted[row])
                found[wanted[row]] = Chunk(block, *named, metadata, unpacked(name), total_chunks=total)
        return [found[slot] for slot in slots]

    def _remove(self, connection: sqlite3.Connection, ids: Iterable[str]) -> bool:
        """Remove chunks, note for other processes that they are gone, and tell whether those notes became too many.

        Then they are thrown away, and other processes read the namespace anew.
        """
        slots = [slot for name in ids if (slot := self._index.table.slot_of(name)) is not None]
        rows = [self._row_of_slot[slot] for slot in slots]
        connection.executemany("DELETE FROM chunks WHERE row = ?", ((row,) for row in rows))
        connection.executemany("INSERT INTO gone (namespace, row) VALUES (?, ?)", ((self._number, row) for row in rows))
        (noted,) = connection.execute("SELECT count(*) FROM gone WHERE namespace = ?", (self._number,)).fetchone()
        if noted <= _MOST_GONE:
            return False
        connection.execute("DELETE FROM gone WHERE namespace = ?", (self._number,))
        return True

    def _learned(self, connection: sqlite3.Connection, terms: set[str]) -> dict[str, int]:
        """Store the terms that are new, and return their numbers."""
        new = sorted(terms - self._number_of.keys())
        connection.executemany("INSERT INTO terms (namespace, term) VALUES (?, ?)", ((self._number, term) for term in new))
        return {term: number for number, term in connection.execute(_TERMS, (self._number, self._last_term))} if new else {}

    def _values(self, row: Row, numbers: Mapping[str, int]) -> tuple[Any, ...]:
        chunk = row.chunk
        kind, content = ("text", chunk.text.encode("utf-8", "surrogatepass"))
        if chunk.is_data:
            kind, content = "data", json.dumps(chunk.content.to_dict()).encode()
        return (
            self._new_rows[row.id],
            self._number,
            packed(row.id),
            packed(chunk.document_id),
            packed(chunk.source),
            chunk.chunk_index,
            chunk.total_chunks,
            packed(row.metadata.shared),
            json.dumps(row.metadata.own),
            kind,
            content,
            row.vector.tobytes(),
            packed_terms(row.counts, numbers),
        )

    def _note_row(self, row: int, slot: int) -> None:
        self._row_of_slot.append(row)
        self._slot_of_row[row] = slot
        self._last_row = max(self._last_row, row)

    def _note_term(self, term: str, number: int) -> None:
        self._number_of[term], self._terms[number] = number, term
        self._last_term = max(self._last_term, number)

    def _forget(self) -> None:
        """Begin anew with an empty index, which the next `_refresh` fills."""
        self._version: int = 0
        self._epoch: int = 0
        self._last_row = self._last_gone = self._last_term = 0
        self._index = ChunkIndex()
        self._row_of_slot: list[int] = []
        self._slot_of_row: dict[int, int] = {}
        self._number_of: dict[str, int] = {}
        self._terms: dict[int, str] = {}
        self._new_terms: dict[str, int] = {}
        self._new_rows: dict[str, int] = {}
        self._new_gone = self._new_epoch = 0
        self._old_rows: list[int] = []


def _last(connection: sqlite3.Connection, table: str) -> int:
    """Return the last number that a table gave to a row."""
    found = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    return found[0] if found else 0


def _parts(rows: list[int]) -> Iterable[list[int]]:
    return (rows[start : start + _MOST_PARAMETERS] for start in range(0, len(rows), _MOST_PARAMETERS))
