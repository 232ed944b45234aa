"""A proxy on loopback in front of a real server: it delays requests, loses answers, and goes away."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

_CHUNK = 1 << 16


class Proxy:
    """Relays bytes both ways.

    Args:
        port: Where the server listens.
        delay_s: Seconds by which each chunk of a request is held back.

    Attributes:
        url: Its address.
        answers_to_lose: How many of the next successful answers to drop, connection and all.
    """

    def __init__(self, port: int, *, delay_s: float = 0.0) -> None:
        self._target, self._delay_s = ("127.0.0.1", port), delay_s
        self.answers_to_lose = 0
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Go away, with all connections."""
        for each in (self._listening, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection(self._target)
                for each in (near, far):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._open += [near, far]
                threading.Thread(target=self._relay, args=(near, far, self._delay_s), daemon=True).start()
                threading.Thread(target=self._relay, args=(far, near, None), daemon=True).start()

    def _relay(self, source: socket.socket, sink: socket.socket, delay_s: float | None) -> None:
        with suppress(OSError):
            while chunk := source.recv(_CHUNK):
                if delay_s:
                    time.sleep(delay_s)
                if delay_s is None and self.answers_to_lose and b"HTTP/1.1 200" in chunk:
                    self.answers_to_lose -= 1
                    break
                sink.sendall(chunk)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxied(port: int, *, delay_s: float = 0.0) -> Generator[Proxy]:
    """Put a proxy in front of a server, and take it away in the end."""
    proxy = Proxy(port, delay_s=delay_s)
    try:
        yield proxy
    finally:
        proxy.close()
