"""A bounded pool of daemon threads: where a backend's blocking calls run.

The standard executor keeps the interpreter alive until every thread has ended, and asyncio's default executor is shared by all:
one hung store would hold up the exit of the process or starve the others. Each backend has a pool of its own instead.
"""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

from agentkernel_kb.errors import KnowledgeBackendError, KnowledgeStateError

T = TypeVar("T")
_Job = Callable[[], None]


class _Crew:
    """The threads of one process, and what they share."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self.threads = 0
        self.idle = 0
        self.dismissed = False

    def work(self) -> None:
        while (job := self.jobs.get()) is not None:
            job()
            del job  # An idle worker keeps nobody's arguments alive.
            with self.lock:
                self.idle += 1


class WorkerPool:
    """Runs functions in at most `max_workers` daemon threads, started when they are needed.

    Args:
        max_workers: Most threads at a time; further calls wait in a queue.
        name: Prefix of the threads' names.
    """

    def __init__(self, max_workers: int, name: str) -> None:
        self._max_workers = max_workers
        self._name = name
        self._closed = False
        # By process, because neither threads nor a lock that one of them held survive a fork.
        self._crews: dict[int, _Crew] = {}

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run `function` in a worker, with the caller's context variables.

        Returns:
            The future of its result; cancelling it while it waits in the queue means that it never runs.

        Raises:
            KnowledgeStateError: The pool is closed.
        """
        future: Future[T] = Future()
        context = contextvars.copy_context()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = context.run(function, *args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - a worker hands every failure over to whoever waits for it
                future.set_exception(_as_exception(error))
            else:
                future.set_result(result)

        self._enqueue(self._crew(), job)
        return future

    def _crew(self) -> _Crew:
        pid = os.getpid()
        return self._crews.get(pid) or self._crews.setdefault(pid, _Crew())

    def _enqueue(self, crew: _Crew, job: _Job) -> None:
        with crew.lock:
            if self._closed:
                raise KnowledgeStateError(f"{self._name} is closed.")
            crew.jobs.put(job)
            if crew.idle:
                crew.idle -= 1
            elif crew.threads < self._max_workers:
                crew.threads += 1
                threading.Thread(target=crew.work, name=f"{self._name}-{crew.threads}", daemon=True).start()

    def shutdown(self) -> None:
        """End the idle threads and refuse further calls; what runs is left to finish. May be called twice."""
        crew = self._crew()
        with crew.lock:
            self._closed = True
            if not crew.dismissed:
                crew.dismissed = True
                for _ in range(crew.threads):
                    crew.jobs.put(None)


def _as_exception(error: BaseException) -> BaseException:
    """Make `error` one that a future and an event loop can carry.

    A `StopIteration` cannot be set on an asyncio future, and what is no `Exception` (a `SystemExit` of a worker, the panic of a
    native extension) would end the event loop that waits for it.
    """
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    wrapped = KnowledgeBackendError(f"{type(error).__name__} in a worker thread")
    wrapped.__cause__ = error
    return wrapped
