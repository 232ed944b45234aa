"""Runs statements on the server in threads that a caller stops waiting for, and repeats one whose connection broke."""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from functools import partial

from requests.adapters import HTTPAdapter

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import KnowledgeTimeoutError
from agentkernel_kb.starburst.asking import Asker
from agentkernel_kb.starburst.attempt import CLEANUP_SECONDS, Attempt, Fetched
from agentkernel_kb.starburst.failures import DroppedError
from agentkernel_kb.starburst.ready import ReadyTransactions
from agentkernel_kb.starburst.settings import Settings
from agentkernel_kb.starburst.transport import shared_connections
from agentkernel_kb.workers import WorkerPool

_STATEMENTS = 32
_CLEANERS = 4
_GRACE_SECONDS = 0.5
_LEAST_SECONDS = 0.1


class Server:
    """A server as one backend uses it.

    Args:
        settings: How it is reached.
        name: Name of the backend, for the threads.
        cores: As much processor time as so many cores have until the deadline is what a statement may use.
    """

    def __init__(self, settings: Settings, name: str, *, cores: int) -> None:
        self.settings = settings
        self._cores = cores
        # By process, these two: after a fork, both would speak on the same connections and in the same transactions.
        self._connections_by_process: dict[int, HTTPAdapter] = {}
        self._ready_by_process: dict[int, ReadyTransactions] = {}
        self._workers = WorkerPool(_STATEMENTS, f"starburst-{name}")
        self._cleaners = WorkerPool(_CLEANERS, f"starburst-end-{name}")
        self._cleaning: set[Future[None]] = set()
        weakref.finalize(self, _release, self._workers, self._cleaners, self._connections_by_process).atexit = False

    def fetch(self, statement: str, most: int, deadline: Deadline, asker: Asker, *, read_only: bool = True) -> Fetched:
        """Return at most `most` rows of `statement`, which is stopped on the server once nobody waits for it.

        Raises:
            KnowledgeTimeoutError: They were not there in time.
            KnowledgeError: What a failure means.
        """
        call = self._call(statement, most, deadline, asker, read_only)
        future = self._workers.submit(call.run)
        try:
            # A call gives up by itself; one that is held up, in the lookup of a name for instance, is left behind.
            wait((future,), timeout=deadline.left() + _GRACE_SECONDS)
            if future.done():
                return future.result()
        finally:
            if not future.done():
                future.cancel()
                call.abandon()
        raise _out_of_time(deadline)

    async def afetch(self, statement: str, most: int, deadline: Deadline, asker: Asker, *, read_only: bool = True) -> Fetched:
        """`fetch` without blocking the event loop; a call that is cancelled stops its query on the server."""
        call = self._call(statement, most, deadline, asker, read_only)
        future = asyncio.wrap_future(self._workers.submit(call.run))
        try:
            await asyncio.wait((future,), timeout=deadline.left() + _GRACE_SECONDS)
            if future.done():
                return future.result()
        finally:
            if not future.done():
                future.cancel()
                call.abandon()
        raise _out_of_time(deadline)

    def _call(self, statement: str, most: int, deadline: Deadline, asker: Asker, read_only: bool) -> _Call:
        if deadline.passed():
            raise KnowledgeTimeoutError("There is no time left for this call.")
        return _Call(self, statement, most, deadline, asker, read_only)

    def attempt(self, asker: Asker, deadline: Deadline, transaction: str | None = None) -> Attempt:
        """Return a new attempt, bounded on the server as well, perhaps in a transaction that was started for it."""
        return Attempt(self.settings, self._connections, asker, deadline, self._limits(deadline), transaction)

    @property
    def _connections(self) -> HTTPAdapter:
        pid = os.getpid()
        connections = self._connections_by_process.get(pid)
        return connections or self._connections_by_process.setdefault(pid, shared_connections())

    @property
    def _ready(self) -> ReadyTransactions:
        pid = os.getpid()
        ready = self._ready_by_process.get(pid)
        return ready or self._ready_by_process.setdefault(pid, ReadyTransactions(self.settings, self._connections))

    def ready_transaction(self, asker: Asker) -> str | None:
        """Return a transaction that only reads and was started for this asker ahead of the call, if there is one."""
        return self._ready.take(asker)

    def prepare(self, asker: Asker) -> None:
        """Start a transaction for the next call of an asker while nobody waits for that."""
        self._clean(partial(self._ready.prepare, asker))

    def _limits(self, deadline: Deadline) -> Mapping[str, str]:
        seconds = max(deadline.left(), _LEAST_SECONDS)
        return {
            "query_max_run_time": f"{seconds:.3f}s",
            "query_max_execution_time": f"{seconds:.3f}s",
            "query_max_planning_time": f"{seconds:.3f}s",
            # What plans joins does not hear that its query has ended; it looks at this time alone, three minutes by default.
            "iterative_optimizer_timeout": f"{seconds:.3f}s",
            "query_max_cpu_time": f"{seconds * self._cores:.3f}s",
        }

    def clean_up(self, attempt: Attempt) -> None:
        """End an attempt while nobody waits for that."""
        self._clean(attempt.finish)

    def stop(self, attempt: Attempt) -> None:
        """Stop an attempt whose own thread is still at it."""
        self._clean(attempt.cancel)

    def _clean(self, work: Callable[[], None]) -> None:
        future = self._cleaners.submit(work)
        self._cleaning.add(future)
        future.add_done_callback(self._cleaning.discard)

    def close(self) -> None:
        """End what is done with, within seconds, and close the connections. May be called twice.

        A statement that runs is left to end at its deadline.
        """
        ready = self._ready
        for asker, transaction in ready.close():
            self._clean(partial(ready.end, asker, transaction))
        wait(self._cleaning.copy(), timeout=CLEANUP_SECONDS)
        _release(self._workers, self._cleaners, self._connections_by_process)


class _Call:
    """One statement, tried again where its connection broke: it only reads."""

    def __init__(self, server: Server, statement: str, most: int, deadline: Deadline, asker: Asker, read_only: bool) -> None:
        self._server, self._statement, self._most = server, statement, most
        self._deadline, self._asker, self._read_only = deadline, asker, read_only
        self._current: Attempt | None = None

    def run(self) -> Fetched:
        if not self._read_only:
            return self._tried()
        fetched = self._tried(self._server.ready_transaction(self._asker))
        self._server.prepare(self._asker)
        return fetched

    def _tried(self, transaction: str | None = None) -> Fetched:
        # The server may have forgotten a transaction that was ready, as after a restart: then nothing of the statement ran.
        with contextlib.suppress(DroppedError):
            return self._once(transaction)
        return self._once()

    def _once(self, transaction: str | None = None) -> Fetched:
        attempt = self._server.attempt(self._asker, self._deadline, transaction)
        self._current = attempt
        try:
            return attempt.rows(self._statement, self._most, read_only=self._read_only)
        finally:
            self._server.clean_up(attempt)

    def abandon(self) -> None:
        self._deadline.end()
        if self._current is not None:
            self._server.stop(self._current)


def _out_of_time(deadline: Deadline) -> KnowledgeTimeoutError:
    return KnowledgeTimeoutError(f"The server did not answer within {deadline.seconds:g} s.")


def _release(workers: WorkerPool, cleaners: WorkerPool, connections: dict[int, HTTPAdapter]) -> None:
    workers.release()
    cleaners.release()
    if own := connections.get(os.getpid()):  # Those of the process before a fork are its own to close.
        own.close()
