"""A web server on loopback whose pages misbehave, and a listener that counts who connects to it."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_MOST_DRIPS = 200

Page = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Site:
    """A running server.

    Attributes:
        port: Where it listens on 127.0.0.1.
        requests: Path and headers of each request, in order.
    """

    port: int = 0
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def url(self, path: str = "/", host: str = "site.example") -> str:
        """Return the URL of a page under a name that only a test's resolver knows."""
        return f"http://{host}:{self.port}{path}"


def resolve(host: str, port: int) -> list[str]:
    """Return loopback for every name."""
    return ["127.0.0.1"]


def text(body: str | bytes, media_type: str = "text/plain; charset=utf-8", **headers: str) -> Page:
    """Return a page with a body."""
    content = body.encode() if isinstance(body, str) else body

    def respond(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        for name, value in {"Content-Type": media_type, "Content-Length": str(len(content)), **headers}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(content)

    return respond


def redirect(to: str, status: int = 302) -> Page:
    """Return a page that leads elsewhere."""

    def respond(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.send_header("Location", to)
        request.send_header("Content-Length", "0")
        request.end_headers()

    return respond


def compressed(content: bytes) -> Page:
    """Return a page that is compressed."""
    return text(gzip.compress(content), Content_Encoding="gzip")


def dripping(pause_s: float = 0.1) -> Page:
    """Return a page that goes on for twenty seconds and never stands still."""

    def respond(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/plain")
        request.end_headers()
        with suppress(OSError):
            for _ in range(_MOST_DRIPS):
                request.wfile.write(b".")
                request.wfile.flush()
                time.sleep(pause_s)

    return respond


def endless(request: BaseHTTPRequestHandler) -> None:
    """Send without end, as fast as it goes."""
    request.send_response(200)
    request.send_header("Content-Type", "text/plain")
    request.end_headers()
    with suppress(OSError):
        while True:
            request.wfile.write(b"x" * 65_536)


@contextmanager
def serving(pages: Mapping[str, Page]) -> Generator[Site]:
    """Serve pages by path until the block ends."""
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requests.append((self.path, dict(self.headers.items())))
            page = pages.get(self.path)
            if page is None:
                self.send_error(404)
            else:
                with suppress(ConnectionError):
                    page(self)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Listener:
    """A socket on loopback that takes connections and counts them.

    Attributes:
        port: Where it listens, on 127.0.0.1 and on ::1 where there is one.
        connections: How many came.
    """

    port: int
    connections: int = 0


@contextmanager
def listening() -> Generator[Listener]:
    """Listen until the block ends."""
    first = socket.create_server(("127.0.0.1", 0))
    listener = Listener(first.getsockname()[1])
    sockets = [first]
    with suppress(OSError):
        sockets.append(socket.create_server(("::1", listener.port), family=socket.AF_INET6))

    def count(each: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = each.accept()
                listener.connections += 1
                connection.close()

    threads = [threading.Thread(target=count, args=(each,), daemon=True) for each in sockets]
    for thread in threads:
        thread.start()
    try:
        yield listener
    finally:
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in threads:
            thread.join()
