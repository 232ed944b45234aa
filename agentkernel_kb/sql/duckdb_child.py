"""DuckDB in a process of its own: what it is asked for by `agentkernel_kb.sql.duckdb_isolated`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import KnowledgeBackendError
from agentkernel_kb.sql.duckdb import DuckDBLock, FileURL
from agentkernel_kb.sql.reader import Reader

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

T = TypeVar("T")


def open_engine(options: Mapping[str, Any]) -> DuckDBEngine:
    """Make the engine ready; the file is opened with the first statement, so that a failure is that statement's."""
    import duckdb  # noqa: F401  # pyright: ignore[reportUnusedImport] - now, as memory is measured from here on

    return DuckDBEngine(options)


class _ChildLock(DuckDBLock):
    """The same lock, which leaves it to the parent to say when time is out: the child needs no thread that watches."""

    running: DuckDBPyConnection | None = None

    @contextmanager
    def reading(self, connection: DuckDBPyConnection, deadline: Deadline, *, whole: bool) -> Generator[None]:
        self.running = connection
        try:
            yield
        finally:
            self.running = None


class _ChildReader(Reader):
    """The same reader, in the one thread that there is to wait."""

    def run(self, work: Callable[[Any], T], deadline: Deadline, *, whole: bool = False) -> T:
        return self._run(work, deadline, whole)


class DuckDBEngine:
    """Reads from one file.

    Args:
        options: The arguments of `DuckDBLock`, by name.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._lock = _ChildLock(
            FileURL(options["path"], options["limits"]),
            tables=options["tables"],
            max_value_bytes=options["max_value_bytes"],
            asked_by=options["asked_by"],
        )
        self._reader = _ChildReader(self._lock, options["name"])

    def answer(self, request: list[Any], seconds: float) -> object:
        """Read rows or the catalogue.

        Raises:
            KnowledgeError: What the failure of the engine means.
        """
        match request:
            case ["fetch", statement, most]:
                columns, rows, more = self._reader.fetch(statement, most, seconds)
                return [columns, list(map(list, rows)), more]
            case ["catalogue", only, most]:
                return asdict(self._reader.catalogue(only=only, most=most, seconds=seconds))
            case _:
                raise KnowledgeBackendError("The engine was asked for something that it does not know.")

    def interrupt(self) -> None:
        """Ask the engine to stop what runs."""
        import duckdb

        if (running := self._lock.running) is not None:
            with suppress(duckdb.Error):
                running.interrupt()

    def close(self) -> None:
        """Close the file."""
        self._reader.close()
