"""Runs one piece of work at a time per connection, in a thread that a caller stops waiting for when time is out."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Collection
from concurrent.futures import wait
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeVar, cast

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import KnowledgeError, KnowledgeTimeoutError
from agentkernel_kb.sql.catalogue import Catalogue, read_catalogue
from agentkernel_kb.sql.locks import Connections, EngineLock
from agentkernel_kb.workers import WorkerPool

T = TypeVar("T")

CONNECTIONS = 8
MAX_PAGE_BYTES = 16_000_000
_GRACE_SECONDS = 0.5


class Fetched(NamedTuple):
    """Rows of one statement: the columns' names, the rows, and whether the statement has more of them."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    more: bool


class Reader:
    """Reads from one database through its lock.

    Args:
        lock: How the database is opened.
        name: Name of the backend, for messages.
    """

    def __init__(self, lock: EngineLock, name: str) -> None:
        self._lock = lock
        self._engine = lock.make_engine(CONNECTIONS)
        self._workers = WorkerPool(CONNECTIONS, f"sql-{name}")
        weakref.finalize(self, _release, self._workers, self._engine).atexit = False  # At its end the process frees all.

    def fetch(self, statement: str, most: int, until: float | Deadline) -> Fetched:
        """Return at most `most` rows of `statement`, which is sent as it is and ended as soon as they are there.

        Args:
            statement: One statement.
            most: Most rows.
            until: When it has to be over: in so many seconds, or at a deadline that the caller may end early.

        Raises:
            KnowledgeTimeoutError: They were not there in time; the engine stops.
            KnowledgeQueryError: The database rejected the statement.
            KnowledgeGuardError: The database refused to do what the statement asks for.
            KnowledgeConnectionError: The database cannot be read.
        """
        deadline = until if isinstance(until, Deadline) else Deadline(until)
        return self.run(lambda connection: self._fetch(connection, statement, most), deadline)

    def _fetch(self, connection: Any, statement: str, most: int) -> Fetched:
        cursor = self._lock.rows(self._lock.driver(connection), statement, most)
        rows: list[tuple[Any, ...]] = []
        bytes_left = MAX_PAGE_BYTES
        try:
            columns = [str(column[0]) for column in cursor.description or ()]
            for row in cursor:
                if len(rows) == most or bytes_left <= 0:
                    return Fetched(columns, rows, more=True)
                rows.append(row)
                bytes_left -= sum(map(_weight, row))
            return Fetched(columns, rows, more=False)
        finally:
            cursor.close()

    def catalogue(self, *, only: Collection[str] | None, most: int, seconds: float) -> Catalogue:
        """Return what the database says about itself; `only` and `most` bound the tables.

        Raises:
            KnowledgeTimeoutError: It did not say so in time.
            KnowledgeConnectionError: The database cannot be read.
        """
        deadline = Deadline(seconds)

        def look(connection: Any) -> Catalogue:
            return read_catalogue(self._lock.tables(connection), deadline, only=only, most=most)

        return self.run(look, deadline, whole=True)

    def run(self, work: Callable[[Any], T], deadline: Deadline, *, whole: bool = False) -> T:
        """Return what `work` makes of a connection, which sees the `whole` catalogue if it has to.

        Raises:
            KnowledgeError: What the failure of the driver means.
            KnowledgeTimeoutError: It was not over at the deadline.
        """
        if deadline.passed():
            raise KnowledgeTimeoutError("There is no time left for this call.")
        future = self._workers.submit(self._run, work, deadline, whole)
        # The engine gives up by itself; a thread that is held up in a system call or in one long instruction is left behind.
        wait((future,), timeout=deadline.left() + _GRACE_SECONDS)
        if future.done():
            return future.result()
        future.cancel()
        raise KnowledgeTimeoutError(f"The database did not answer within {deadline.seconds:g} s.")

    def _held(self, connection: Any, deadline: Deadline, whole: bool) -> AbstractContextManager[None]:
        return self._lock.reading(self._lock.driver(connection), deadline, whole=whole)

    def _run(self, work: Callable[[Any], T], deadline: Deadline, whole: bool) -> T:
        try:
            with self._engine.connect() as connection, self._held(connection, deadline, whole):
                return work(connection)
        except KnowledgeError:
            raise
        except Exception as error:  # noqa: BLE001 - drivers and SQLAlchemy raise many types; each gets a meaning here
            cause = getattr(error, "orig", None) or error  # SQLAlchemy's own message quotes the statement.
            raise self._lock.translate(cause, deadline) from cause

    def close(self) -> None:
        """Close the connections; work that runs is left to end at its deadline. May be called twice."""
        _release(self._workers, self._engine)


def _release(workers: WorkerPool, engine: Connections) -> None:
    workers.release()
    engine.dispose()


def _weight(value: object) -> int:
    """Return about how many bytes of memory a value takes, those inside of it included."""
    if isinstance(value, dict):
        return sum(_weight(key) + _weight(inner) for key, inner in cast("dict[object, object]", value).items())
    if isinstance(value, list | tuple):
        return sum(map(_weight, cast("list[object]", value)))
    return sys.getsizeof(value)
