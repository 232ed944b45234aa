"""A graph whose engine runs in this process: each call in a thread that a caller stops waiting for when time is out."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, Protocol, TypeVar

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import KnowledgeTimeoutError
from agentkernel_kb.ladybug.catalogue import Catalogue
from agentkernel_kb.ladybug.database import GraphDatabase
from agentkernel_kb.ladybug.session import Fetched, Job, Session
from agentkernel_kb.workers import WorkerPool

T = TypeVar("T")

CONNECTIONS = 8
_GRACE_SECONDS = 0.25
_SECONDS_BETWEEN_LOOKS = 0.25  # A deadline may be brought forward, by a caller that gives up.


class Graph(Protocol):
    """What runs statements for the manager, wherever the engine is."""

    def fetch(self, statement: str, most: int, until: float | Deadline) -> Fetched:
        """Return at most `most` rows of one statement, which the engine itself keeps from writing."""
        ...

    def catalogue(self, most: int, until: float | Deadline) -> Catalogue:
        """Return what the graph says about itself, at most `most` of its tables in full."""
        ...

    def write(self, statement: str, parameters: dict[str, Any], until: float | Deadline) -> None:
        """Run one statement in a transaction of its own."""
        ...

    def close(self) -> None:
        """Stop what runs and close the database. May be called twice."""
        ...


class Runner:
    """Reads from and writes to one database.

    Args:
        database: The database.
        name: Name of the backend, for messages.
    """

    def __init__(self, database: GraphDatabase, name: str) -> None:
        self._session = Session(database)
        self._workers = WorkerPool(CONNECTIONS, f"ladybug-{name}")
        weakref.finalize(self, self._workers.release)

    def fetch(self, statement: str, most: int, until: float | Deadline) -> Fetched:
        """Return at most `most` rows of one statement, which the engine itself keeps from writing.

        Raises:
            KnowledgeTimeoutError: They were not there in time; the engine stops.
            KnowledgeQueryError: The engine rejected the statement.
        """
        return self._run(lambda deadline, job: self._session.fetch(statement, most, deadline, job), until)

    def catalogue(self, most: int, until: float | Deadline) -> Catalogue:
        """Return what the graph says about itself, at most `most` of its tables in full.

        Raises:
            KnowledgeError: What the failure of the engine means.
        """
        return self._run(lambda deadline, job: self._session.catalogue(most, deadline, job), until)

    def write(self, statement: str, parameters: dict[str, Any], until: float | Deadline) -> None:
        """Run one statement in a transaction of its own.

        Raises:
            KnowledgeTimeoutError: It was not done in time, and has no effect.
            KnowledgeQueryError: The engine rejected it.
        """
        self._run(lambda deadline, job: self._session.write(statement, parameters, deadline, job), until)

    def _run(self, work: Callable[[Deadline, Job], T], until: float | Deadline) -> T:
        deadline, job = as_deadline(until), Job()
        if deadline.passed():
            raise KnowledgeTimeoutError("There is no time left for this call.")
        future = self._workers.submit(work, deadline, job)
        while not (self._is_done(future, min(deadline.left(), _SECONDS_BETWEEN_LOOKS)) or deadline.passed()):
            pass
        # The engine gives up by itself. Planning, and a few functions, know no time limit: such a thread is left behind.
        if self._is_done(future, _GRACE_SECONDS):
            return future.result()
        job.interrupt()
        if self._is_done(future, _GRACE_SECONDS):
            return future.result()
        future.cancel()
        raise KnowledgeTimeoutError(f"The graph did not answer within {deadline.seconds:g} s.")

    def _is_done(self, future: Future[Any], seconds: float) -> bool:
        wait((future,), timeout=seconds)
        return future.done()

    def close(self) -> None:
        """Interrupt what runs and close the database; what cannot be interrupted closes it in the end. May be called twice."""
        self._workers.release()
        self._session.close()


def as_deadline(until: float | Deadline) -> Deadline:
    """Return the deadline that is meant by seconds from now, or by a deadline."""
    return until if isinstance(until, Deadline) else Deadline(until)
