"""Runs statements on one open database, in the thread that asks for it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import KnowledgeError, KnowledgeTimeoutError
from agentkernel_kb.ladybug.catalogue import Catalogue, read_catalogue
from agentkernel_kb.ladybug.database import GraphDatabase
from agentkernel_kb.ladybug.failures import rejected
from agentkernel_kb.ladybug.parser import check_single

if TYPE_CHECKING:
    from ladybug import Connection

T = TypeVar("T")

MAX_PAGE_BYTES = 16_000_000


class Fetched(NamedTuple):
    """Rows of one statement: the columns' names, the rows, and whether the statement has more of them."""

    columns: list[str]
    rows: list[list[Any]]
    more: bool


class Job:
    """A running piece of work, which can be interrupted from outside as long as it has the connection."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: Connection | None = None

    @contextmanager
    def on(self, connection: Connection) -> Generator[None]:
        """Let the work have the connection."""
        self._connection = connection
        try:
            yield
        finally:
            with self._lock:
                self._connection = None

    def interrupt(self) -> None:
        """Ask the engine to stop, where it works for this."""
        with self._lock:
            if self._connection is not None:
                self._connection.interrupt()


class Session:
    """Reads from and writes to one database; a connection is kept for each thread that does so at once.

    Args:
        database: The database.
    """

    def __init__(self, database: GraphDatabase) -> None:
        self._database = database
        self._idle: list[Connection] = []
        self._jobs: set[Job] = set()
        self._lock = threading.Lock()
        self._writing = threading.Lock()

    def fetch(self, statement: str, most: int, deadline: Deadline, job: Job) -> Fetched:
        """Return at most `most` rows of one statement, which the engine itself keeps from writing.

        Raises:
            KnowledgeTimeoutError: They were not there in time; the engine stops.
            KnowledgeQueryError: The engine rejected the statement.
        """
        return self._run(self._reading, lambda connection: self._fetch(connection, deadline, statement, most), deadline, job)

    def catalogue(self, most: int, deadline: Deadline, job: Job) -> Catalogue:
        """Return what the graph says about itself, at most `most` of its tables in full.

        Raises:
            KnowledgeError: What the failure of the engine means.
        """
        return self._run(self._reading, lambda connection: read_catalogue(connection, deadline, most), deadline, job)

    def write(self, statement: str, parameters: dict[str, Any], deadline: Deadline, job: Job) -> None:
        """Run one statement in a transaction of its own.

        Raises:
            KnowledgeTimeoutError: It was not done in time, and has no effect.
            KnowledgeQueryError: The engine rejected it.
        """
        self._run(self._writing_one, lambda connection: self._execute(connection, statement, parameters).close(), deadline, job)

    def _run(
        self,
        manner: Callable[[Connection, Deadline, Callable[[Connection], T]], T],
        work: Callable[[Connection], T],
        deadline: Deadline,
        job: Job,
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
    def _connection(self, job: Job) -> Generator[Connection]:
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

    def _reading(self, connection: Connection, _: Deadline, work: Callable[[Connection], T]) -> T:
        connection.execute("BEGIN TRANSACTION READ ONLY")
        try:
            return work(connection)
        finally:
            # A statement that failed, or that ended the transaction itself, has left nothing to roll back.
            with contextlib.suppress(RuntimeError):
                connection.execute("ROLLBACK")

    def _writing_one(self, connection: Connection, deadline: Deadline, work: Callable[[Connection], T]) -> T:
        if not self._writing.acquire(timeout=deadline.left()):
            raise KnowledgeTimeoutError(f"Another write held the graph for {deadline.seconds:g} s.")
        try:
            return work(connection)
        finally:
            self._writing.release()

    def _execute(self, connection: Connection, statement: str, parameters: dict[str, Any]) -> Any:
        """Run one statement and return its result.

        With parameters it has to be prepared, which holds up all threads of the process while it is planned; without them the
        engine lets other threads run.
        """
        from ladybug import PreparedStatement

        if not self._database.read_only:  # Where a second one could write.
            check_single(statement)
        if not parameters:
            return connection.execute(statement)
        prepared = PreparedStatement(connection, statement, parameters)
        if not prepared.is_success():
            raise RuntimeError(prepared.get_error_message())
        return connection.execute(prepared, parameters)

    def _fetch(self, connection: Connection, deadline: Deadline, statement: str, most: int) -> Fetched:
        with self._execute(connection, statement, {}) as result:
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

    def interrupt(self) -> None:
        """Ask the engine to stop whatever runs."""
        with self._lock:
            running = list(self._jobs)
        for job in running:
            job.interrupt()

    def close(self) -> None:
        """Interrupt what runs and close the database; what cannot be interrupted closes it in the end. May be called twice."""
        self.interrupt()
        self._database.close()
        with self._lock:
            self._idle.clear()
