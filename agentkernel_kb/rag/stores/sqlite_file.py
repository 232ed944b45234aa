"""The file of `SQLiteVectorStore`: its tables, its connection, and rows as bytes."""

from __future__ import annotations

import os
import sqlite3
import weakref
from array import array
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError, KnowledgeStateError

FORMAT = 1
_BUSY_SECONDS = 30.0
_DAMAGED = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB))
_MEANINGS = {
    sqlite3.SQLITE_BUSY: f"somebody else was writing to it for more than {_BUSY_SECONDS:g} seconds",
    sqlite3.SQLITE_FULL: "there is no room for more",
    sqlite3.SQLITE_IOERR: "its file system failed",
    sqlite3.SQLITE_READONLY: "it may not be written to",
}
_OF_PARENTS: list[sqlite3.Connection] = []
"""Connections that a process was born with. They are never closed there, since that could drop its parent's file locks."""

_APPLICATION_ID = 0x4B42_5241  # "KBRA", so that another program's file is not taken for one of ours.

_TABLES = """
CREATE TABLE namespaces (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, analysis TEXT NOT NULL, dimensions INTEGER,
    fingerprint TEXT NOT NULL DEFAULT '{}', version INTEGER NOT NULL DEFAULT 0, epoch INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE chunks (
    row INTEGER PRIMARY KEY AUTOINCREMENT, namespace INTEGER NOT NULL, id TEXT NOT NULL, document_id TEXT NOT NULL, source TEXT,
    chunk_index INTEGER NOT NULL, total_chunks INTEGER NOT NULL, metadata TEXT NOT NULL, own TEXT NOT NULL,
    kind TEXT NOT NULL, content BLOB NOT NULL, vector BLOB NOT NULL, terms BLOB NOT NULL, UNIQUE (namespace, id)
);
CREATE TABLE terms (number INTEGER PRIMARY KEY AUTOINCREMENT, namespace INTEGER NOT NULL, term TEXT NOT NULL,
    UNIQUE (namespace, term));
CREATE TABLE gone (number INTEGER PRIMARY KEY AUTOINCREMENT, namespace INTEGER NOT NULL, row INTEGER NOT NULL);
CREATE INDEX gone_of ON gone (namespace, number);
CREATE TABLE ledger (
    namespace INTEGER NOT NULL, source TEXT NOT NULL, scope TEXT NOT NULL, entry TEXT NOT NULL,
    PRIMARY KEY (namespace, source, scope)
) WITHOUT ROWID;
"""


class SQLiteFile:
    """One connection to a file, opened at first use and again in a process that was forked.

    Args:
        path: The file; it is made where there is none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._closed = False

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._path

    def connection(self) -> sqlite3.Connection:
        """Return the connection.

        Raises:
            KnowledgeStateError: It was closed.
            AKConfigError: The file is no corpus, or one of a newer version.
            KnowledgeBackendError: It cannot be opened.
        """
        if self._closed:
            raise KnowledgeStateError(f"The store on {self._path.name} is closed.")
        if self._connection is not None and self._process != os.getpid():
            _close(self._connection, self._process)
            self._connection = None
        if self._connection is None:
            self._connection, self._process = self._opened(), os.getpid()
            weakref.finalize(self, _close, self._connection, self._process)  # Whoever forgets to close it leaks nothing.
        return self._connection

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """Hold the file's one write lock; commit when the block ends, and undo everything where it raises.

        Raises:
            KnowledgeBackendError: SQLite failed, as when the disk is full or another writer stayed for half a minute.
        """
        connection = self.connection()
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise self.failure(error) from error

    def is_there(self) -> bool:
        """Tell whether there is a file with something in it."""
        if self._connection is not None:
            return True
        try:
            return self._path.stat().st_size > 0
        except FileNotFoundError:
            return False
        except OSError:  # To open it will tell why.
            return True

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """Hold one state of the file, whatever others write meanwhile. Of a file that is not there it is an empty one.

        Raises:
            KnowledgeBackendError: SQLite failed.
        """
        if self._closed or self.is_there():
            with self._reading() as connection:
                yield connection
            return
        # Reading makes nothing: tables in memory stand for those that are not there.
        self._connection, self._process = self._prepared_in_memory(), os.getpid()
        try:
            yield self._connection
        finally:
            self._connection.close()
            self._connection = None

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        connection = self.connection()
        try:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise self.failure(error) from error

    def failure(self, error: sqlite3.Error) -> KnowledgeBackendError:
        """Return what to raise for an error of SQLite."""
        if _primary(error) in _DAMAGED:
            return self.damaged()
        meaning = _MEANINGS.get(_primary(error))
        why = f"{meaning} ({_name(error)})" if meaning else _name(error)
        return KnowledgeBackendError(f"The store on {self._path.name} failed: {why}.")

    def damaged(self) -> KnowledgeBackendError:
        """Return what to raise where it does not hold what was written to it."""
        return KnowledgeBackendError(f"The store on {self._path.name} is damaged: restore it, or index anew.")

    def close(self) -> None:
        """Close it. May be called twice."""
        self._closed = True
        if self._connection is not None:
            _close(self._connection, self._process)
        self._connection = None

    def _opened(self) -> sqlite3.Connection:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise KnowledgeBackendError(f"The file {self._path} cannot be opened: {type(error).__name__}.") from error
        try:
            self._prepared(connection)
        except BaseException as error:
            connection.close()
            if isinstance(error, sqlite3.Error) and _primary(error) == sqlite3.SQLITE_NOTADB:
                raise AKConfigError(f"{self._path} is no corpus of this library.") from error
            if isinstance(error, sqlite3.Error):
                raise self.failure(error) from error
            raise
        return connection

    def _prepared_in_memory(self) -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._make(connection)
        return connection

    def _prepared(self, connection: sqlite3.Connection) -> None:
        """Make the tables where there are none. Nothing is changed in a file that is none of ours."""
        if not self._is_ours(connection):
            self._make(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    def _is_ours(self, connection: sqlite3.Connection) -> bool:
        """Tell whether the tables are there; `False` for an empty file.

        Raises:
            AKConfigError: There are others.
        """
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if not tables:
            return False
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != _APPLICATION_ID:
            raise AKConfigError(f"{self._path} is a database of something else; give the corpus a file of its own.")
        if version > FORMAT:
            raise AKConfigError(f"{self._path} was written by a newer version of agentkernel-kb.")
        return True

    def _make(self, connection: sqlite3.Connection) -> None:
        """Make the tables under the write lock, unless another process was faster."""
        connection.execute("BEGIN IMMEDIATE")
        try:
            if not self._is_ours(connection):
                for statement in _TABLES.split(";\n"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def _close(connection: sqlite3.Connection, process: int) -> None:
    """Close a connection in the process that opened it. One of a parent is kept, as letting go of it would close it, too."""
    if process == os.getpid():
        connection.close()
    else:
        _OF_PARENTS.append(connection)


def _primary(error: sqlite3.Error) -> int:
    """Return SQLite's code of an error without what narrows it down; -1 for one that Python itself raised."""
    code: int = getattr(error, "sqlite_errorcode", -1)
    return code & 0xFF if code >= 0 else -1


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", type(error).__name__)


def packed(text: str | None) -> str | bytes | None:
    """Return a text as it is stored: as bytes where it has lone surrogates, as names of files may, and SQLite's texts not."""
    if text is None or text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def unpacked(stored: str | bytes) -> str:
    """Return the text that `packed` was given."""
    return stored.decode("utf-8", "surrogatepass") if isinstance(stored, bytes) else stored


def packed_terms(counts: Mapping[str, int], number_of: Mapping[str, int]) -> bytes:
    """Return how often a chunk has each term as bytes: the terms' numbers, then their counts."""
    numbers = array("I", map(number_of.__getitem__, counts))
    return numbers.tobytes() + array("H", [min(count, 65_535) for count in counts.values()]).tobytes()


def unpacked_terms(packed: bytes, terms: Mapping[int, str]) -> dict[str, int]:
    """Return what `packed_terms` made bytes of."""
    numbers, counts = array("I"), array("H")
    border = len(packed) // (numbers.itemsize + counts.itemsize) * numbers.itemsize
    numbers.frombytes(packed[:border])
    counts.frombytes(packed[border:])
    return {terms[number]: count for number, count in zip(numbers, counts, strict=True)}
