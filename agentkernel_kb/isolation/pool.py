"""A few children that run the same engine: each call has one to itself, and gives up in time whatever becomes of it."""

from __future__ import annotations

import os
import threading
import time
import weakref
from concurrent.futures import Future, wait
from typing import Any

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import KnowledgeError, KnowledgeStateError, KnowledgeTimeoutError
from agentkernel_kb.isolation.failures import ChildEndedError, NotBegunError
from agentkernel_kb.isolation.launch import Launch
from agentkernel_kb.isolation.process import Child
from agentkernel_kb.workers import WorkerPool

MOST_CHILDREN = 4
IDLE_SECONDS = 60.0
GRACE_SECONDS = 0.5
_SECONDS_BETWEEN_LOOKS = 0.25  # A deadline may be brought forward, by a caller that gives up.
_CLOSING_SECONDS = 5.0

_POOLS: weakref.WeakSet[ChildPool] = weakref.WeakSet()
_WATCHES_FORKS: list[bool] = []


class ChildPool:
    """Runs requests in children, which are started as they are needed.

    A call takes a child that is idle, starts one where all are busy, and waits where there are as many as there may be. At its
    deadline the child is asked to stop, and ended if it does not; the next call gets a new one. Of the children that are idle
    the last one stays. It may be used from many threads, and after a fork in both processes, of which the new one starts
    children of its own.

    Args:
        launch: What the children run.
        name: Name of the backend, for messages.
        most: Most children.
        idle_seconds: How long a child is idle before it ends.
        repeats: What a child had not begun when it ended is asked again of another, once. `False` leaves that to who asks.
    """

    def __init__(
        self,
        launch: Launch,
        name: str,
        *,
        most: int = MOST_CHILDREN,
        idle_seconds: float = IDLE_SECONDS,
        repeats: bool = True,
    ) -> None:
        self._name = name
        self._most = most
        # As many threads as children: what has a thread has a child.
        self._workers = WorkerPool(most, f"child-{name}")
        self._crew = _Crew(launch, name, most=most, idle_seconds=idle_seconds, repeats=repeats)
        self._finalizer = weakref.finalize(self, _dismiss, self._workers, self._crew)
        _watch_forks()
        _POOLS.add(self)

    def start(self, seconds: float) -> None:
        """Have one child ready.

        Raises:
            KnowledgeError: Its engine cannot be opened.
            KnowledgeTimeoutError: It was not open in time.
        """
        self._call(None, Deadline(seconds))

    def call(self, request: list[Any], deadline: Deadline) -> Any:
        """Return a child's answer to a request.

        Args:
            request: What the engine understands, of values that can be handed over.
            deadline: When it has to be over; it may be brought forward meanwhile.

        Raises:
            KnowledgeError: What the engine's failure means.
            ChildEndedError: The request ended the child.
            KnowledgeConnectionError: The child ended before it began; nothing was done.
            KnowledgeTimeoutError: There was no answer in time; what ran has been stopped.
            KnowledgeStateError: The pool is closed, or was meanwhile.
        """
        return self._call(request, deadline)

    def _call(self, request: list[Any] | None, deadline: Deadline) -> Any:
        if deadline.passed():
            raise KnowledgeTimeoutError("There is no time left for this call.")
        job = _Job()
        future = self._workers.submit(self._crew.run, request, deadline, job)
        try:
            while not (_is_done(future, min(deadline.left(), _SECONDS_BETWEEN_LOOKS)) or deadline.passed()):
                pass
        except BaseException:  # Whoever waited was interrupted; what runs is not to go on.
            deadline.end()
            self._stop(future, job)
            raise
        if future.done():
            return future.result()
        if self._stop(future, job):
            raise KnowledgeTimeoutError(f"All {self._most} processes of '{self._name}' were busy for {deadline.seconds:g} s.")
        raise KnowledgeTimeoutError(f"There was no answer within {deadline.seconds:g} s; the statement was stopped. Narrow it.")

    def _stop(self, future: Future[Any], job: _Job) -> bool:
        """Stop a call, and return whether it had not begun."""
        if future.cancel():
            return True
        if job.give_up() and not _is_done(future, GRACE_SECONDS):
            job.kill()
            _is_done(future, GRACE_SECONDS)
        return False

    def close(self) -> None:
        """End all children: those that are idle close their engines, those that are busy are ended. May be called twice."""
        self._finalizer()

    def forget(self) -> None:
        """Start anew in a process that was forked from the one that has the children."""
        self._crew.abandon()


class _Job:
    """One call, as seen by whoever waits for it: what runs it can be interrupted and ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: Child | None = None
        self.is_given_up = False

    def take(self, child: Child | None) -> bool:
        """Say which child runs it, `None` at its end; return whether it is still wanted."""
        with self._lock:
            self._child = child
            return not self.is_given_up

    def give_up(self) -> bool:
        """Ask what runs it to stop; return whether a child does."""
        with self._lock:
            self.is_given_up = True
            if self._child is not None:
                self._child.interrupt()
            return self._child is not None

    def kill(self) -> None:
        with self._lock:
            if self._child is not None:
                self._child.kill()


class _Crew:
    """The children of a pool. One that ended is replaced at once, so that the next call need not wait for all of a start."""

    def __init__(self, launch: Launch, name: str, *, most: int, idle_seconds: float, repeats: bool) -> None:
        self._launch = launch
        self._name = name
        self._repeats = repeats
        self._most = most
        self._idle_seconds = idle_seconds
        self._state = threading.Condition()
        self._idle: list[tuple[Child, float]] = []
        self._busy: set[Child] = set()
        self._coming = self._awaited = 0
        self._reaper: threading.Timer | None = None
        self._is_closed = False

    def run(self, request: list[Any] | None, deadline: Deadline, job: _Job) -> Any:
        """Run one call on a child of its own; a child that is only started takes as long as that takes."""
        try:
            return self._run_or_repeat(request, deadline, job)
        except (ChildEndedError, NotBegunError):
            if self._is_closed:
                raise self._closed() from None
            raise

    def _run_or_repeat(self, request: list[Any] | None, deadline: Deadline, job: _Job) -> Any:
        try:
            return self._run(request, deadline, job)
        except NotBegunError:  # It may have ended while it was idle, which is not to be the fault of whoever comes next.
            if not self._repeats or job.is_given_up:
                raise
        return self._run(request, deadline, job)

    def _run(self, request: list[Any] | None, deadline: Deadline, job: _Job) -> Any:
        child = self._taken()
        try:
            if request is not None and job.take(child):
                return child.ask(request, deadline.left())
            return None
        finally:
            job.take(None)
            self._give_back(child)

    def _closed(self) -> KnowledgeStateError:
        return KnowledgeStateError(f"'{self._name}' is closed.")

    def _taken(self) -> Child:
        child = self._free() or Child(self._launch)
        with self._state:
            if not self._is_closed:
                self._busy.add(child)
                return child
        child.end(_CLOSING_SECONDS)
        raise self._closed()

    def _free(self) -> Child | None:
        """Return a child that is idle, or will be soon, or `None` where the caller had better start one."""
        while True:
            with self._state:
                while not self._idle and self._awaited < self._coming and not self._is_closed:
                    self._awaited += 1
                    self._state.wait()
                    self._awaited -= 1
                if self._is_closed:
                    raise self._closed()
                if not self._idle:
                    return None
                child, _ = self._idle.pop()
            if child.is_alive:
                return child
            child.end(0)

    def _give_back(self, child: Child) -> None:
        with self._state:
            self._busy.discard(child)
            if child.is_alive and not child.is_worn and not self._is_closed:
                self._add_idle(child)
                return
            is_wanted = not self._is_closed and len(self._idle) + len(self._busy) + self._coming < self._most
            self._coming += is_wanted
        # Elsewhere: who called has an answer, and need not wait for the system to clear away what may be gigabytes.
        threading.Thread(target=self._replace, args=(child, is_wanted), name="child-start", daemon=True).start()

    def _replace(self, ended: Child, is_wanted: bool) -> None:
        ended.end(_CLOSING_SECONDS if self._is_closed else 0)
        if not is_wanted:
            return
        child = None
        try:
            child = Child(self._launch)
        except KnowledgeError:  # Whoever needs one will be told.
            pass
        finally:
            with self._state:
                self._coming -= 1
                if child is not None and not self._is_closed:
                    self._add_idle(child)
                    child = None
                self._state.notify_all()
        if child is not None:
            child.end(_CLOSING_SECONDS)

    def _add_idle(self, child: Child) -> None:
        """Keep a child for later, and see to it that there are not too many for long. The lock is held."""
        self._idle.append((child, time.monotonic()))
        self._see_to_idle()

    def _see_to_idle(self) -> None:
        if len(self._idle) > 1 and self._reaper is None:
            self._reaper = threading.Timer(self._idle_seconds, self._end_idle)
            self._reaper.daemon = True
            self._reaper.start()

    def _end_idle(self) -> None:
        before = time.monotonic() - self._idle_seconds
        with self._state:
            self._reaper = None
            # Those that were used last stand at the end, and the last of all stays.
            ended = [pair for pair in self._idle[:-1] if pair[1] <= before]
            self._idle = self._idle[len(ended) :]
            self._see_to_idle()
        for child, _ in ended:
            child.end(_CLOSING_SECONDS)

    def close(self) -> None:
        """Take no more calls and end all children."""
        with self._state:
            self._is_closed = True
            idle, self._idle = self._idle, []
            busy = list(self._busy)
            if self._reaper is not None:
                self._reaper.cancel()
            self._state.notify_all()
        for child in busy:
            child.kill()
        for child, _ in idle:
            child.end(_CLOSING_SECONDS)
        for child in busy:
            child.wait()

    def abandon(self) -> None:
        """Let go of the children of another process, whose threads may have held the lock."""
        children = [*(child for child, _ in self._idle), *self._busy]
        self._state = threading.Condition()
        self._idle, self._busy, self._reaper = [], set(), None
        self._coming = self._awaited = 0
        for child in children:
            child.abandon()


def _dismiss(workers: WorkerPool, crew: _Crew) -> None:
    workers.release()
    crew.close()


def _is_done(future: Future[Any], seconds: float) -> bool:
    wait((future,), timeout=seconds)
    return future.done()


def _watch_forks() -> None:
    """See to it that a forked process lets go of its parent's children, whose pipes it would hold open."""
    if not _WATCHES_FORKS and hasattr(os, "register_at_fork"):
        _WATCHES_FORKS.append(True)
        os.register_at_fork(after_in_child=_forget)


def _forget() -> None:
    for pool in list(_POOLS):
        pool.forget()
