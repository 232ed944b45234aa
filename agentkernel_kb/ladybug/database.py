"""One open Ladybug database: opened so that nobody else can harm it, and closed once nobody uses it any more."""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agentkernel_kb.errors import AKConfigError, KnowledgeConnectionError, KnowledgeDependencyError, KnowledgeStateError
from agentkernel_kb.ladybug import owners

if TYPE_CHECKING:
    from ladybug import Connection, Database

IN_MEMORY = ":memory:"
CLOSING_SECONDS = 5.0
_HOLDER = re.compile(r"Lock is held by PID (\d+)")


class GraphDatabase:
    """A database in a file or in memory.

    Args:
        path: The file, made if it is missing and not `read_only`, or `:memory:`.
        name: Name of the backend, for messages.
        read_only: Open it so that the engine itself refuses to write.
        max_memory_bytes: Most memory for the engine's pages and intermediate results.
        threads: Most threads per query, 0 for one per core.
        is_claimed: The file has been taken for this one already, by another process.

    Raises:
        AKConfigError: The path cannot be a database, or a database in memory was to be read-only.
        KnowledgeConnectionError: Somebody else has it open, or it cannot be read.
        KnowledgeDependencyError: The extra `ladybug` is missing.
    """

    def __init__(
        self,
        path: str | Path,
        name: str,
        *,
        read_only: bool,
        max_memory_bytes: int,
        threads: int,
        is_claimed: bool = False,
    ) -> None:
        self.path = checked_path(path, name, read_only=read_only)
        self.read_only = read_only
        self._name = name
        self._max_memory_bytes = max_memory_bytes
        self._threads = threads
        self._state = threading.Condition()
        self._uses = 0
        self._closing = self._closed = False
        self._connections: list[Connection] = []
        database_class = _database_class()
        self._release = _nothing if is_claimed else self._claim()
        self._database: Database | None = self._open(database_class)

    def _claim(self) -> Callable[[], object]:
        """Take the file, and return what gives it back; whoever drops this object without closing it gives it back too."""
        if self.path is None:
            return _nothing
        owners.claim(self.path, self._name, read_only=self.read_only)
        return weakref.finalize(self, owners.release, self.path, read_only=self.read_only)

    def _open(self, database_class: type[Database]) -> Database:
        try:
            database = database_class(
                IN_MEMORY if self.path is None else str(self.path),
                buffer_pool_size=self._max_memory_bytes,
                max_num_threads=self._threads,
                read_only=self.read_only,
            )
        except Exception as error:  # The engine raises RuntimeError for everything, its binding other types too.
            self._release()
            raise self._unopened(error) from error
        try:
            if self.path is not None:
                owners.confirm(self.path)
        except KnowledgeConnectionError:
            database.close()
            self._release()
            raise
        return database

    def _unopened(self, error: Exception) -> KnowledgeConnectionError:
        text = str(error)
        if holder := _HOLDER.search(text):
            return KnowledgeConnectionError(
                f"The graph {self.path} is open in another process ({holder[1]}). Close it there, or ask that process."
            )
        if "not a valid" in text:
            return KnowledgeConnectionError(f"{self.path} is not a Ladybug database.", state="missing")
        if self.read_only and ("shadow" in text or "checkpoint" in text.lower()):
            return KnowledgeConnectionError(f"The graph {self.path} was not closed properly. Open it once without read_only.")
        return KnowledgeConnectionError(f"The graph {self.path} cannot be opened: {text.splitlines()[0][:300] if text else ''}")

    @contextmanager
    def use(self) -> Generator[Database]:
        """Keep the database open meanwhile.

        Raises:
            KnowledgeStateError: It is closed.
        """
        with self._state:
            if self._closing or self._database is None:
                raise KnowledgeStateError(f"LadybugManager '{self._name}' is closed.")
            self._uses += 1
            database = self._database
        try:
            yield database
        finally:
            with self._state:
                self._uses -= 1
            self._close_if_unused()

    def connect(self, database: Database) -> Connection:
        """Return a new connection to the database that `use` gave; it is closed together with the database."""
        from ladybug import Connection

        connection = Connection(database)
        with self._state:
            self._connections.append(connection)
        return connection

    def close(self) -> None:
        """Let nobody in any more, wait a few seconds for those who are in, and close; who stays longer closes it in the end."""
        with self._state:
            self._closing = True
        self._close_if_unused()
        with self._state:
            self._state.wait_for(lambda: self._closed, timeout=CLOSING_SECONDS)

    def _close_if_unused(self) -> None:
        with self._state:
            if not self._closing or self._uses or self._database is None:
                return
            database, self._database = self._database, None
            connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()
        database.close()
        self._release()
        with self._state:
            self._closed = True
            self._state.notify_all()


def checked_path(path: str | Path, name: str, *, read_only: bool) -> Path | None:
    """Return where a database is or may be made, `None` for one in memory.

    Raises:
        AKConfigError: The path cannot be a database, or a database in memory was to be read-only.
        KnowledgeConnectionError: There is nothing to read.
    """
    if str(path) == IN_MEMORY:
        if read_only:
            raise AKConfigError(f"The graph of '{name}' is in memory and would stay empty if it were read-only.")
        return None
    place = Path(path).absolute()
    if place.is_dir():
        raise AKConfigError(f"The graph of '{name}' is a file, and {place} is a folder.")
    if not place.exists():
        if read_only:
            raise KnowledgeConnectionError(f"There is no graph at {place}.", state="missing")
        if not place.parent.is_dir():
            raise AKConfigError(f"The graph of '{name}' cannot be made: there is no folder {place.parent}.")
    return place


def _nothing() -> None:
    """Give nothing back."""


def _database_class() -> type[Database]:
    try:
        from ladybug import Database
    except ImportError as error:
        raise KnowledgeDependencyError("ladybug", "LadybugManager") from error
    return Database
