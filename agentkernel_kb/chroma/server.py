"""A Chroma server: reached within a time, by one attempt at once, and asked within the time that each call has."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from agentkernel_kb.chroma.connection import Connection, new_settings
from agentkernel_kb.chroma.failures import translated
from agentkernel_kb.chroma.unpublished import http_sessions
from agentkernel_kb.errors import KnowledgeTimeoutError
from agentkernel_kb.workers import WorkerPool

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

CONNECT_SECONDS = 10.0
"""How long a server may take to answer the first time."""

REQUEST_SECONDS = 120.0
"""How long one request to a server may take, so that a server that hangs does not keep threads for ever."""

_DEADLINE: ContextVar[float | None] = ContextVar("agentkernel_kb_chroma_deadline", default=None)


@contextmanager
def within(seconds: float | None) -> Generator[None]:
    """Let no request that is made inside wait longer than `seconds` from now; `None` for as long as any request may."""
    if seconds is None:
        yield
        return
    token = _DEADLINE.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


class _Attempt:
    """The one attempt to connect that is under way, if there is one.

    The client of chromadb 1.5.9 has no time limit while it is constructed. An attempt that hangs is therefore waited for by all
    later callers too, each for its own time, instead of leaving a thread behind for each of them.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.future: Future[ClientAPI] | None = None


@dataclass(frozen=True)
class Server:
    """A Chroma server."""

    host: str
    port: int
    ssl: bool
    headers: Mapping[str, str] = field(repr=False)
    options: Mapping[str, str]
    _attempt: _Attempt = field(default_factory=_Attempt, repr=False, compare=False)

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        return f"{self.host}:{self.port}"

    def open(self, subject: str) -> Connection:
        """Connect to the server.

        Raises:
            KnowledgeConnectionError: It can't be reached, does not let this application in, has another certificate than one
                that holds, or does not know the tenant or database.
            KnowledgeTimeoutError: It does not answer within 10 seconds, or within what the call has left.
            KnowledgeBackendError: It refuses in another way.
        """
        future = self._under_way(subject)
        seconds = connect_seconds()
        try:
            with translated(subject, self.place, "connect"):
                client = future.result(seconds)
        except KnowledgeTimeoutError as error:
            if future.done():
                self._over(future)
                raise
            raise KnowledgeTimeoutError(
                f"Chroma at {self.place} did not answer '{subject}' within {seconds:.3g} seconds."
            ) from error
        except BaseException:
            self._over(future)
            raise
        self._over(future)
        return Connection(client, lambda: _close_http(client))

    def give_up(self) -> None:
        """Close what an attempt that is under way may still open."""
        with self._attempt.lock:
            future, self._attempt.future = self._attempt.future, None
        if future is not None:
            future.add_done_callback(_close_late)

    def _under_way(self, subject: str) -> Future[ClientAPI]:
        with self._attempt.lock:
            if self._attempt.future is None:
                pool = WorkerPool(1, f"kb-{subject}-connect")
                self._attempt.future = pool.submit(self._client)
                pool.release()
            return self._attempt.future

    def _over(self, future: Future[ClientAPI]) -> None:
        with self._attempt.lock:
            if self._attempt.future is future:
                self._attempt.future = None

    def _client(self) -> ClientAPI:
        import chromadb

        client = chromadb.HttpClient(
            self.host, self.port, ssl=self.ssl, headers=dict(self.headers), settings=new_settings(), **self.options
        )
        for session in http_sessions(client):
            session.timeout = (CONNECT_SECONDS, REQUEST_SECONDS, REQUEST_SECONDS, REQUEST_SECONDS)
            session.event_hooks = {"request": [_hurry]}
        return client


def connect_seconds() -> float:
    """Return how long this call waits for a server to be connected."""
    return min(CONNECT_SECONDS, _seconds_left())


def _hurry(request: Any) -> None:
    """Shorten the time limits of one request to what its call has left."""
    left = _seconds_left()
    if left == float("inf"):
        return
    if left <= 0:
        raise TimeoutError
    limits = cast("dict[str, float]", request.extensions["timeout"])
    request.extensions["timeout"] = {name: min(left, limit) for name, limit in limits.items()}


def _seconds_left() -> float:
    deadline = _DEADLINE.get()
    return float("inf") if deadline is None else max(0.0, deadline - time.monotonic())


def _close_http(client: ClientAPI) -> None:
    sessions = http_sessions(client)
    with suppress(Exception):
        cast("Any", client).close()
    for session in sessions:
        session.close()


def _close_late(future: Future[ClientAPI]) -> None:
    if future.exception() is None:
        _close_http(future.result())
