"""What tests of a router over backends that are not there share: a router that is asked, and a backend behind a real socket."""

import asyncio
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

from agentkernel_kb import KnowledgeBase, KnowledgeBuilder, KnowledgeCapabilities, Record
from agentkernel_kb.errors import KnowledgeConnectionError
from agentkernel_kb.router.events import ToolEvent
from agentkernel_kb.router.limits import Limits
from agentkernel_kb.router.resilience import Resilience

QUICK: dict[str, Any] = {"wait_seconds": 0.001, "max_wait_seconds": 0.002}
UNREACHABLE = KnowledgeConnectionError("Nobody answers at graph:7687.")
SYNC_AND_ASYNC = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


class Asked:
    """A router, its events, and its tools called in one way."""

    def __init__(self, *backends: KnowledgeBase, is_async: bool = False, seconds: float = 30.0, **policy: Any) -> None:
        self.events: list[ToolEvent] = []
        self.builder = KnowledgeBuilder(
            backends,
            limits=Limits(seconds=seconds),
            resilience=Resilience(**(QUICK | policy)),
            on_event=self.events.append,
        )
        self._is_async = is_async
        built = self.builder.build_async() if is_async else self.builder.build()
        self._tools: dict[str, Callable[..., Any]] = {tool.__name__: tool for tool in built}

    def __call__(self, tool: str, *args: Any, **kwargs: Any) -> str:
        answer = self._tools[tool](*args, **kwargs)
        return asyncio.run(answer) if self._is_async else answer

    @property
    def outcomes(self) -> list[tuple[str, int]]:
        return [(event.outcome, event.attempts) for event in self.events]


class Lines(KnowledgeBase):
    """A backend behind a socket: sends what is asked for, and gives the line that comes back."""

    def __init__(self, port: int, name: str = "lines") -> None:
        super().__init__(KnowledgeCapabilities(search=True), name)
        self._port = port

    @property
    def backend_name(self) -> str:
        return self._given_name

    def connect(self, **kwargs: Any) -> None:
        pass

    def get_description(self) -> str:
        return f"{self.backend_name} answers in lines."

    def search(self, query: str, limit: int = 3, *, timeout: float = 30.0, **kwargs: Any) -> list[Record]:
        with socket.create_connection(("127.0.0.1", self._port), timeout=timeout) as connection:
            connection.sendall(f"{query}\n".encode())
            with connection.makefile() as answer:
                line = answer.readline()
        if not line:
            raise ConnectionResetError("secret-canary")
        return [{"text": line.strip(), "metadata": {}}]


class LineServer:
    """Answers each connection with what it asks, in capitals; `drops` is how many it drops before it does."""

    def __init__(self, port: int = 0, drops: int = 0) -> None:
        self._socket = socket.create_server(("127.0.0.1", port))
        self.port: int = self._socket.getsockname()[1]
        self.drops = drops
        self.connections = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, connection.makefile("rw") as stream:
                self.connections += 1
                asked = stream.readline()
                if self.connections > self.drops:
                    stream.write(asked.upper())
                    stream.flush()

    def close(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)):  # Closing alone would leave the thread in accept().
            self._socket.close()


@contextmanager
def serving(port: int = 0, drops: int = 0) -> Generator[LineServer]:
    server = LineServer(port, drops)
    try:
        yield server
    finally:
        server.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def failing(times: int, error: Exception = UNREACHABLE) -> Callable[..., list[Record]]:
    """Return an operation that fails so many times, and then works."""
    left = [error] * times

    def operate(*args: Any, **kwargs: Any) -> list[Record]:
        if left:
            raise left.pop()
        return [{"text": "back", "metadata": {}}]

    return operate
