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

from agentkernel_kb.errors import KnowledgeBackendError

T = TypeVar("T")
_Job = Callable[[], None]


class _Crew:
    """The threads of one process, and what they share."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self.threads = 0
        self.idle = 0

    def work(self, jobs: SimpleQueue[_Job | None]) -> None:
        while (job := jobs.get()) is not None:
            job()
            del job  # An idle worker keeps nobody's arguments alive.
            with self.lock:
                if jobs is self.jobs:
                    self.idle += 1

    def dismiss(self) -> None:
        """Let the threads end once they have done what is queued; what comes later starts others."""
        with self.lock:
            for _ in range(self.threads):
                self.jobs.put(None)
            self.jobs, self.threads, self.idle = SimpleQueue(), 0, 0


class WorkerPool:
    """Runs functions in at most `max_workers` daemon threads, started when they are needed.

    Args:
        max_workers: Most threads at a time; further calls wait in a queue.
        name: Prefix of the threads' names.
    """

    def __init__(self, max_workers: int, name: str) -> None:
        self._max_workers = max_workers
        self._name = name
        # By process, because neither threads nor a lock that one of them held survive a fork.
        self._crews: dict[int, _Crew] = {}

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run `function` in a worker, with the caller's context variables.

        Returns:
            The future of its result; cancelling it while it waits in the queue means that it never runs.

        Raises:
            KnowledgeBackendError: There is no thread, and the system gives none. The function will not run.
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
            if crew.idle:
                crew.idle -= 1
            elif crew.threads < self._max_workers:
                self._start_thread(crew)
            crew.jobs.put(job)

    def _start_thread(self, crew: _Crew) -> None:
        name = f"{self._name}-{crew.threads + 1}"
        try:
            threading.Thread(target=crew.work, args=(crew.jobs,), name=name, daemon=True).start()
        except RuntimeError as error:  # The system's limit; those that run will do.
            if not crew.threads:
                raise KnowledgeBackendError(f"no thread can be started for {self._name}") from error
        else:
            crew.threads += 1

    def release(self) -> None:
        """End the threads once they have done what they have; a later call starts others. May be called at any time."""
        self._crew().dismiss()


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
