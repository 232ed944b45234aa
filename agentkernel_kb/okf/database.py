"""The index as an SQLite database: opened or made, read by many, written by one, shared between processes."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Protocol

from agentkernel_kb.errors import KnowledgeBackendError, KnowledgeStateError
from agentkernel_kb.okf import schema

BUSY_S = 30.0
"""Seconds for which a write waits for another process's one."""

_READERS = 4
_READER_CACHE_KB = 2_048
_WRITER_CACHE_KB = 4_096
_TERMS_IN_MEMORY = 9 << 20
_MOST_PARTS = 256  # Of an index that is being made; they are merged once, at the end.
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# FTS5 reports a damaged index of its own, and a table that is gone, as plain errors.
_DAMAGED_WORDS = ("malformed", "fts5: corruption", "no such table", "no such column", "vtable constructor")
_NO_FTS5 = (
    "This Python's SQLite has no full-text search (FTS5), which the OKF backend needs. "
    "Use a Python from python.org, a Linux distribution or conda, whose SQLite has it."
)


class Database(Protocol):
    """Where an index is kept."""

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """Return a connection that sees one state of the index for as long as it is held."""
        ...

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """Return a connection in a transaction, which is kept if the block ends well and undone otherwise."""
        ...

    def staging(self) -> AbstractContextManager[sqlite3.Connection]:
        """Return a connection of one's own, in no transaction, whose temporary tables go with it."""
        ...

    def applying(self, connection: sqlite3.Connection) -> AbstractContextManager[None]:
        """Run a block as one transaction on a connection that `staging` gave."""
        ...

    def close(self) -> None:
        """Let go of it. May be called twice."""
        ...


def is_damage(error: BaseException) -> bool:
    """Tell whether an error means that the file is no sound database."""
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(code, int) and code & 0xFF in _DAMAGE:
        return True
    return isinstance(error, sqlite3.DatabaseError) and any(words in str(error) for words in _DAMAGED_WORDS)


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of an empty index.

    Raises:
        KnowledgeBackendError: This SQLite has no FTS5.
    """
    try:
        connection.executescript(schema.TABLES)
    except sqlite3.OperationalError as error:
        if "fts5" in str(error):
            raise KnowledgeBackendError(_NO_FTS5) from error
        raise
    connection.execute("INSERT INTO words(words, rank) VALUES ('hashsize', ?)", (_TERMS_IN_MEMORY,))
    connection.execute("INSERT INTO words(words, rank) VALUES ('automerge', 4)")


class _Connections:
    """Connections to one database by its URI, those for reading kept for the next call."""

    def __init__(self, uri: str, lock: AbstractContextManager[object] | None = None) -> None:
        self._uri = uri
        # A database in memory lets nobody read while somebody writes; one on disk does.
        self._lock: AbstractContextManager[object] = lock or nullcontext()
        self._guard = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        weakref.finalize(self, _close_all, self._idle)
        self._closed = False
        self._pid = os.getpid()
        self._abandoned: list[sqlite3.Connection] = []

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        with self._lock:
            connection = self._taken()
            try:
                connection.execute("BEGIN")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.close()
                raise
            self._give_back(connection)

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        with self.staging() as connection, self.applying(connection):
            yield connection

    @contextmanager
    def staging(self) -> Generator[sqlite3.Connection]:
        connection = self._opened(_WRITER_CACHE_KB)
        try:
            yield connection
        finally:
            connection.close()

    @contextmanager
    def applying(self, connection: sqlite3.Connection) -> Generator[None]:
        with self._lock:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        with self._guard:
            self._closed = True
            _close_all(self._idle)

    def _taken(self) -> sqlite3.Connection:
        with self._guard:
            if self._closed:
                raise KnowledgeStateError("The index is closed.")
            if self._pid != os.getpid():  # What was opened before a fork belongs to the parent.
                self._abandoned += self._idle
                self._idle.clear()
                self._pid = os.getpid()
            if self._idle:
                return self._idle.pop()
        return self._opened(_READER_CACHE_KB)

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._guard:
            if not self._closed and len(self._idle) < _READERS and self._pid == os.getpid():
                self._idle.append(connection)
                return
        connection.close()

    def _opened(self, cache_kb: int) -> sqlite3.Connection:
        return connect(self._uri, cache_kb)


def _close_all(connections: list[sqlite3.Connection]) -> None:
    while connections:
        connections.pop().close()


def connect(uri: str, cache_kb: int = _WRITER_CACHE_KB) -> sqlite3.Connection:
    """Open a database that is one of ours or empty, with bounded memory; durability is left to whoever can rebuild it."""
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA cache_size = -{cache_kb}")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA trusted_schema = OFF")
    except BaseException:
        connection.close()
        raise
    return connection


class MemoryDatabase(_Connections):
    """An index in memory, gone with the manager."""

    def __init__(self) -> None:
        super().__init__(f"file:/okf-{uuid.uuid4().hex}?vfs=memdb", threading.RLock())
        self._keeper = connect(self._uri, _READER_CACHE_KB)
        weakref.finalize(self, self._keeper.close)
        try:
            create_tables(self._keeper)
            self._keeper.executescript(schema.INDEXES)
        except BaseException:
            self._keeper.close()
            raise

    def close(self) -> None:
        """Forget everything. May be called twice."""
        super().close()
        self._keeper.close()

    def _opened(self, cache_kb: int) -> sqlite3.Connection:
        connection = super()._opened(cache_kb)
        try:
            connection.execute("PRAGMA temp_store = MEMORY")
        except BaseException:
            connection.close()
            raise
        return connection


class FileDatabase(_Connections):
    """An index in a file, which other processes may use at the same time.

    Args:
        path: The file. It exists and `is_sound`.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(_uri(path))
        self.path = path
        self._identity = _file_identity(path)

    def is_current(self) -> bool:
        """Tell whether the file is still the one that was opened; another process may have replaced a damaged one."""
        return _file_identity(self.path) == self._identity


def is_sound(path: Path) -> bool:
    """Tell whether there is an index of this version in a file, as far as can be told without reading all of it."""
    if not path.is_file():
        return False
    try:
        connection = connect(_uri(path))
        try:
            row = connection.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
            connection.execute("SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH 'every:x' LIMIT 1)").fetchone()
            return row == (schema.FORMAT,)
        finally:
            connection.close()
    except sqlite3.DatabaseError:
        return False


def make(path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """Make an index beside its place and move it there once it is whole, so that nobody ever sees half of one.

    Args:
        path: Where.
        fill: Puts the documents in, given a connection in a transaction.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    for left in path.parent.glob(f"{path.name}.new-*"):  # Of a process that was killed; who makes one holds the lock.
        left.unlink(missing_ok=True)
    draft = path.parent / f"{path.name}.new-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    connection = connect(_uri(draft))
    try:
        # A failure leaves only the draft, so nothing has to be undone and no journal is needed.
        connection.execute("PRAGMA journal_mode = OFF")
        create_tables(connection)
        connection.execute("INSERT INTO words(words, rank) VALUES ('automerge', 0)")
        connection.execute("INSERT INTO words(words, rank) VALUES ('crisismerge', ?)", (_MOST_PARTS,))
        connection.execute("BEGIN")
        fill(connection)
        connection.execute("COMMIT")
        connection.execute("INSERT INTO words(words) VALUES ('optimize')")
        connection.execute("INSERT INTO words(words, rank) VALUES ('automerge', 4)")
        connection.execute("INSERT INTO words(words, rank) VALUES ('crisismerge', 16)")
        connection.executescript(schema.INDEXES)
        connection.execute("INSERT INTO meta VALUES ('format', ?)", (schema.FORMAT,))
        connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
        remove(path)
        draft.replace(path)
    finally:
        connection.close()
        remove(draft)


def prune(folder: Path, days: float) -> None:
    """Remove indexes that nobody has opened for some days, such as those of bundles that are gone."""
    oldest = time.time() - days * 86_400
    for place in folder.glob("*.db"):
        with suppress(OSError):
            if place.stat().st_mtime < oldest:
                remove(place)
                place.with_name(f"{place.name}.lock").unlink(missing_ok=True)


def remove(path: Path) -> None:
    """Remove an index and what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextmanager
def locked(path: Path, *, wait_s: float) -> Generator[bool]:
    """Hold the one lock of an index, between threads and processes; it is free when its holder ends, however that happens.

    Args:
        path: The index.
        wait_s: Seconds to wait for it.

    Yields:
        Whether it is held; where it is not, somebody else is at work.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # SQLite's own lock on a database with nothing in it is one between processes, on every system.
    connection = sqlite3.connect(
        path.with_name(f"{path.name}.lock"), timeout=wait_s, isolation_level=None, check_same_thread=False
    )
    try:
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            yield False
            return
        yield True
    finally:
        connection.close()


@contextmanager
def held(path: Path, wait_s: float, error: Callable[[], Exception]) -> Generator[None]:
    """Hold the lock of an index; `error` gives what is raised where it can't be had in time."""
    with locked(path, wait_s=wait_s) as is_held:
        if not is_held:
            raise error()
        yield


def _uri(path: Path) -> str:
    return path.resolve().as_uri()


def _file_identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
