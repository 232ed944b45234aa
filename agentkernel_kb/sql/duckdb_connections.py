"""Connections to one DuckDB file that are locked from the start, and their interruption at a deadline."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agentkernel_kb.deadline import Deadline

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_LOCKED = {
    "enable_external_access": "false",
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_persistent_secrets": "false",
    "python_enable_replacements": "false",
    "python_scan_all_frames": "false",
    "temp_directory": "",  # What does not fit into memory fails; nothing is written beside the database.
    "lock_configuration": "true",
}
# A deadline may be brought forward, by a caller that gives up.
_SECONDS_BETWEEN_LOOKS = 0.25
_SECONDS_BETWEEN_INTERRUPTS = 0.05


class DuckDBConnections:
    """Hands out connections, each for one piece of work, all to one read-only instance of the engine.

    A connection keeps what was set up on it (temporary views, a schema in use) only until it is given back.

    Args:
        path: The database file; it is opened with the first connection.
        limits: The settings `memory_limit` and `threads`.
    """

    def __init__(self, path: Path, limits: Mapping[str, str]) -> None:
        self._path = path
        self._config: dict[str, str | bool | int | float | list[str]] = {**limits, **_LOCKED}
        self._instance: _Instance | None = None
        self._lock = threading.Lock()

    @contextmanager
    def connect(self) -> Generator[DuckDBPyConnection]:
        """Hand out a connection.

        Raises:
            duckdb.Error: The file cannot be opened, or the work on it failed.
        """
        import duckdb

        with self._lock:
            if self._instance is None:
                self._instance = _Instance(self._opened())
            instance = self._instance
            connection = instance.lend()
        try:
            yield connection
        except (duckdb.FatalException, duckdb.InternalException):
            self.dispose()  # The engine does not go on after these; the next connection starts it anew.
            raise
        finally:
            connection.close()
            with self._lock:
                instance.take_back()

    def _opened(self) -> DuckDBPyConnection:
        import duckdb

        try:
            return duckdb.connect(self._path, read_only=True, config=self._config)
        except duckdb.InternalException as error:  # Here it is the file that is at fault, and no statement.
            raise duckdb.ConnectionException(str(error)) from error

    def dispose(self) -> None:
        """Close the file as soon as no work on it runs any more. It is opened again when it is needed again."""
        with self._lock:
            instance, self._instance = self._instance, None
            if instance is not None:
                instance.retire()


class _Instance:
    """The engine on one file, which is closed when it is retired and nobody has a connection any more."""

    def __init__(self, root: DuckDBPyConnection) -> None:
        self._root = root
        self._lent = 0
        self._is_retired = False

    def lend(self) -> DuckDBPyConnection:
        connection = self._root.cursor()
        self._lent += 1
        return connection

    def take_back(self) -> None:
        self._lent -= 1
        self._close_if_unused()

    def retire(self) -> None:
        self._is_retired = True
        self._close_if_unused()

    def _close_if_unused(self) -> None:
        if self._is_retired and not self._lent:
            self._root.close()


@contextmanager
def interrupted_at(deadline: Deadline, connection: DuckDBPyConnection) -> Generator[None]:
    """Interrupt what `connection` does from the deadline on, until the block has ended.

    An interrupt only meets a statement that runs, so it is repeated.
    """
    ended = threading.Event()

    def interrupt() -> None:
        pause = min(deadline.left(), _SECONDS_BETWEEN_LOOKS)
        while not ended.wait(pause):
            pause = min(deadline.left(), _SECONDS_BETWEEN_LOOKS)
            if deadline.passed():
                connection.interrupt()
                pause = _SECONDS_BETWEEN_INTERRUPTS

    watch = threading.Thread(target=interrupt, name="duckdb-deadline", daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join()
