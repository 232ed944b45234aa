"""The way to the server: one driver in an event loop of its own, which calls of any thread and any other loop share.

A driver belongs to the loop that it was made in. With a loop of its own it serves blocking callers and tasks alike, and every
deadline holds: what waits on the network is cancelled, which closes its connection, upon which the server ends the transaction.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import KnowledgeDependencyError, KnowledgeStateError, KnowledgeTimeoutError
from agentkernel_kb.neo4j.arguments import Target
from agentkernel_kb.neo4j.watch import RowTooLargeError, Watch

if TYPE_CHECKING:
    from neo4j import AsyncDriver

T = TypeVar("T")

IDLE_SECONDS = 5.0
"""A connection that nobody used for so long is tried before it is used: the server may have been started anew."""

_CLOSING_SECONDS = 2.0
_GRACE_SECONDS = 0.5


class _Room:
    """A loop in a thread, and the driver in it."""

    def __init__(self, name: str) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.driver: AsyncDriver | None = None
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()
        self.watch = Watch(self.loop, self.thread, f"{name}-watch")

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            while self._was_interrupted():
                pass
        finally:
            self.loop.close()

    def _was_interrupted(self) -> bool:
        """Run the loop until it is stopped, or an error that was meant for a row comes a moment too late and hits the loop."""
        try:
            self.loop.run_forever()
        except RowTooLargeError:
            return True
        return False

    def close(self) -> None:
        """Close the driver and end the thread; what still runs is cancelled."""
        if self.pid != os.getpid():
            return  # After a fork the connections belong to the parent, and nobody looks after this loop.
        self.watch.end()
        if self.loop.is_closed():
            return
        done = asyncio.run_coroutine_threadsafe(self._close(), self.loop)
        done.add_done_callback(lambda _: self.loop.call_soon_threadsafe(self.loop.stop))
        if threading.current_thread() is not self.thread:
            self.thread.join(_CLOSING_SECONDS + _GRACE_SECONDS)

    async def _close(self) -> None:
        running = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        if self.driver is not None:
            try:
                async with asyncio.timeout(_CLOSING_SECONDS):
                    await self.driver.close()
            except Exception:  # noqa: BLE001, S110 - a server that is gone need not be told good-bye
                pass


class Link:
    """Runs pieces of work on a driver.

    Args:
        target: The server.
        subject: Name of the backend, for messages.

    Raises:
        KnowledgeDependencyError: The extra `neo4j` is missing.
    """

    def __init__(self, target: Target, subject: str) -> None:
        try:
            import neo4j  # noqa: F401  # pyright: ignore[reportUnusedImport] - better missed now than at first use
        except ImportError as error:
            raise KnowledgeDependencyError("neo4j", "Neo4jManager") from error
        self._target, self._subject = target, subject
        self._lock = threading.Lock()
        self._closed = False
        self._room: _Room | None = None
        self._release: weakref.finalize[..., Any] | None = None

    def run(self, work: Callable[[AsyncDriver], Awaitable[T]], deadline: Deadline) -> T:
        """Return what `work` makes of the driver, to a caller that waits for it.

        Raises:
            KnowledgeTimeoutError: It was not done in time, and was cancelled.
            KnowledgeStateError: The backend is closed.
        """
        future = self._submit(work, deadline)
        try:
            return future.result(deadline.left() + _GRACE_SECONDS)
        except TimeoutError as error:
            if isinstance(error, KnowledgeTimeoutError):
                raise
            future.cancel()
            raise self._late(deadline) from None

    async def arun(self, work: Callable[[AsyncDriver], Awaitable[T]], deadline: Deadline) -> T:
        """`run` for a task of any event loop; cancelling that task cancels the work."""
        return await asyncio.wrap_future(self._submit(work, deadline))

    def _submit(self, work: Callable[[AsyncDriver], Awaitable[T]], deadline: Deadline) -> Future[T]:
        if deadline.passed():
            raise KnowledgeTimeoutError("There is no time left for this call.")
        room = self._open_room()
        return asyncio.run_coroutine_threadsafe(self._within(room, work, deadline), room.loop)

    async def _within(self, room: _Room, work: Callable[[AsyncDriver], Awaitable[T]], deadline: Deadline) -> T:
        try:
            with room.watch.call():
                async with asyncio.timeout(deadline.left()):
                    if room.driver is None:
                        room.driver = _make_driver(self._target)
                    return await work(room.driver)
        except TimeoutError as error:
            if isinstance(error, KnowledgeTimeoutError):
                raise
            raise self._late(deadline) from None
        except asyncio.CancelledError:
            if self._closed:
                raise KnowledgeStateError(f"Neo4jManager '{self._subject}' was closed while this call ran.") from None
            raise

    def _late(self, deadline: Deadline) -> KnowledgeTimeoutError:
        return KnowledgeTimeoutError(f"Neo4j at {self._target.place} did not answer within {deadline.seconds:g} s.")

    def _open_room(self) -> _Room:
        with self._lock:
            if self._closed:
                raise KnowledgeStateError(f"Neo4jManager '{self._subject}' is closed.")
            if self._room is None or self._room.pid != os.getpid():
                self._room = _Room(f"neo4j-{self._subject}")
                self._release = weakref.finalize(self, self._room.close)
            return self._room

    def close(self) -> None:
        """Cancel what runs and close all connections. May be called twice."""
        with self._lock:
            self._closed = True
            room, self._room = self._room, None
        if room is not None:
            room.close()


def _make_driver(target: Target) -> AsyncDriver:
    """Return a driver; nothing is connected yet."""
    from neo4j import AsyncGraphDatabase, TrustCustomCAs

    make = cast("Callable[..., AsyncDriver]", AsyncGraphDatabase.driver)  # pyright: ignore[reportUnknownMemberType] - untyped
    trust = {"encrypted": True, "trusted_certificates": TrustCustomCAs(*target.certificates)} if target.certificates else {}
    login = None if target.user is None or target.password is None else (target.user, target.password)
    return make(
        target.uri,
        auth=login,
        user_agent="agentkernel-kb",
        liveness_check_timeout=IDLE_SECONDS,
        notifications_min_severity="OFF",  # The driver would log them with the statement's text.
        telemetry_disabled=True,
        **trust,
    )
