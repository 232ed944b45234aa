"""Runs one piece of work per connection, in a thread that a caller stops waiting for when time is out."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Generator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from agentkernel_kb.errors import KnowledgeError, KnowledgeTimeoutError
from agentkernel_kb.ladybug.database import GraphDatabase
from agentkernel_kb.ladybug.deadline import Deadline
from agentkernel_kb.ladybug.failures import rejected
from agentkernel_kb.ladybug.parser import check_single
from agentkernel_kb.workers import WorkerPool

if TYPE_CHECKING:
    from ladybug import Connection

T = TypeVar("T")

CONNECTIONS = 8
MAX_PAGE_BYTES = 16_000_000
_GRACE_SECONDS = 0.25


class Fetched(NamedTuple):
    """Rows of one statement: the columns' names, the rows, and whether the statement has more of them."""

    columns: list[str]
    rows: list[list[Any]]
    more: bool


class _Job:
    """A running piece of work, which can be interrupted from outside as long as it has the connection."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: Connection | None = None

    @contextmanager
    def on(self, connection: Connection) -> Generator[None]:
        self._connection = connection
        try:
            yield
        finally:
            with self._lock:
                self._connection = None

    def interrupt(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.interrupt()


class Runner:
    """Reads from and writes to one database.

    Args:
        database: The database.
        name: Name of the backend, for messages.
    """

    def __init__(self, database: GraphDatabase, name: str) -> None:
        self._database = database
        self._workers = WorkerPool(CONNECTIONS, f"ladybug-{name}")
        weakref.finalize(self, self._workers.release)
        self._idle: list[Connection] = []
        self._jobs: set[_Job] = set()
        self._lock = threading.Lock()
        self._writing = threading.Lock()

    def fetch(self, statement: str, most: int, seconds: float) -> Fetched:
        """Return at most `most` rows of one statement, which the engine itself keeps from writing.

        Raises:
            KnowledgeTimeoutError: They were not there in time; the engine stops.
            KnowledgeQueryError: The engine rejected the statement.
        """
        return self.read(lambda connection, deadline: _fetch(connection, deadline, statement, most), seconds)

    def read(self, work: Callable[[Connection, Deadline], T], seconds: float) -> T:
        """Return what `work` makes of a connection on which only reads are possible.

        Raises:
            KnowledgeError: What the failure of the engine means.
        """
        return self._run(self._reading, work, seconds)

    def write(self, statement: str, parameters: dict[str, Any], seconds: float) -> None:
        """Run one statement in a transaction of its own.

        Raises:
            KnowledgeTimeoutError: It was not done in time, and has no effect.
            KnowledgeQueryError: The engine rejected it.
        """
        self._run(self._writing_one, lambda connection, _: _execute(connection, statement, parameters).close(), seconds)

    def _run(
        self,
        manner: Callable[[Connection, Deadline, Callable[[Connection, Deadline], T]], T],
        work: Callable[[Connection, Deadline], T],
        seconds: float,
    ) -> T:
        deadline, job = Deadline(seconds), _Job()
        if deadline.passed():
            raise KnowledgeTimeoutError("There is no time left for this call.")
        future = self._workers.submit(self._work, manner, work, deadline, job)
        # The engine gives up by itself. Planning, and a few functions, know no time limit: such a thread is left behind.
        if self._is_done(future, deadline.left() + _GRACE_SECONDS):
            return future.result()
        job.interrupt()
        if self._is_done(future, _GRACE_SECONDS):
            return future.result()
        future.cancel()
        raise KnowledgeTimeoutError(f"The graph did not answer within {deadline.seconds:g} s.")

    def _is_done(self, future: Future[Any], seconds: float) -> bool:
        wait((future,), timeout=seconds)
        return future.done()

    def _work(
        self,
        manner: Callable[[Connection, Deadline, Callable[[Connection, Deadline], T]], T],
        work: Callable[[Connection, Deadline], T],
        deadline: Deadline,
        job: _Job,
    ) -> T:
        try:
            with self._connection(job) as connection:
                connection.set_query_timeout(max(1, int(deadline.left() * 1_000)))
                return manner(connection, deadline, work)
        except KnowledgeError:
            raise
        except Exception as error:  # noqa: BLE001 - the engine raises RuntimeError for everything, its binding other types too
            # Frames of the engine's package would keep the statement alive, and that the database, even after it is closed.
            cause = error.with_traceback(None)
            if deadline.passed():
                raise KnowledgeTimeoutError(f"The graph did not answer within {deadline.seconds:g} s.") from cause
            raise rejected(cause) from cause

    @contextmanager
    def _connection(self, job: _Job) -> Generator[Connection]:
        with self._database.use() as database:
            with self._lock:
                self._jobs.add(job)
                connection = self._idle.pop() if self._idle else None
            connection = connection or self._database.connect(database)
            try:
                with job.on(connection):
                    yield connection
            finally:
                with self._lock:
                    self._jobs.discard(job)
                    self._idle.append(connection)

    def _reading(self, connection: Connection, deadline: Deadline, work: Callable[[Connection, Deadline], T]) -> T:
        connection.execute("BEGIN TRANSACTION READ ONLY")
        try:
            return work(connection, deadline)
        finally:
            # A statement that failed, or that ended the transaction itself, has left nothing to roll back.
            with contextlib.suppress(RuntimeError):
                connection.execute("ROLLBACK")

    def _writing_one(self, connection: Connection, deadline: Deadline, work: Callable[[Connection, Deadline], T]) -> T:
        if not self._writing.acquire(timeout=deadline.left()):
            raise KnowledgeTimeoutError(f"Another write held the graph for {deadline.seconds:g} s.")
        try:
            return work(connection, deadline)
        finally:
            self._writing.release()

    def close(self) -> None:
        """Interrupt what runs and close the database; what cannot be interrupted closes it in the end. May be called twice."""
        self._workers.release()
        with self._lock:
            running = list(self._jobs)
        for job in running:
            job.interrupt()
        self._database.close()
        with self._lock:
            self._idle.clear()


def _execute(connection: Connection, statement: str, parameters: dict[str, Any]) -> Any:
    """Run one statement and return its result.

    With parameters it has to be prepared, which holds up all threads of the process while it is planned; without them the
    engine lets other threads run.
    """
    from ladybug import PreparedStatement

    check_single(statement)
    if not parameters:
        return connection.execute(statement)
    prepared = PreparedStatement(connection, statement, parameters)
    if not prepared.is_success():
        raise RuntimeError(prepared.get_error_message())
    return connection.execute(prepared, parameters)


def _fetch(connection: Connection, deadline: Deadline, statement: str, most: int) -> Fetched:
    with _execute(connection, statement, {}) as result:
        columns = [str(name) for name in result.get_column_names()]
        rows: list[list[Any]] = []
        bytes_left = MAX_PAGE_BYTES
        while result.has_next():
            if len(rows) == most or bytes_left <= 0:
                return Fetched(columns, rows, more=True)
            if deadline.passed():
                raise KnowledgeTimeoutError(f"The graph did not answer within {deadline.seconds:g} s.")
            row = result.get_next()
            rows.append(row)
            bytes_left -= sum(len(value) for value in row if isinstance(value, str | bytes))
        return Fetched(columns, rows, more=False)
