"""A proxy on loopback in front of a Chroma server, as a deployment would have one: it demands a token, and may speak TLS."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import certificates

TOKEN_HEADER = "x-chroma-token"
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}


class Proxy(ThreadingHTTPServer):
    """Passes on what carries the token, and answers 401 to all else.

    Attributes:
        refused: How many requests it did not pass on.
    """

    daemon_threads = True

    def __init__(self, upstream_port: int, token: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream_port = upstream_port
        self.token = token
        self.refused = 0

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self.server_address[1]


class _Handler(BaseHTTPRequestHandler):
    server: Proxy  # pyright: ignore[reportIncompatibleVariableOverride] - it is served by no other
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get(TOKEN_HEADER) != self.server.token:
            self.server.refused += 1
            self._answer(401, {"content-type": "text/plain"}, b"no entry")
            return
        upstream = http.client.HTTPConnection("127.0.0.1", self.server.upstream_port, timeout=60)
        try:
            kept = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
            upstream.request(self.command, self.path, body, kept)
            response = upstream.getresponse()
            self._answer(response.status, dict(response.getheaders()), response.read())
        except OSError:
            self._answer(502, {}, b"nobody behind")
        finally:
            upstream.close()

    def do_POST(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@contextmanager
def proxy(upstream_port: int, token: str, certificate: Path | None = None) -> Generator[Proxy]:
    """Run a proxy until the block ends.

    Args:
        upstream_port: The Chroma server's port on loopback.
        token: What the header `x-chroma-token` has to be.
        certificate: A file with certificate and key, to speak TLS with.
    """
    running = Proxy(upstream_port, token)
    if certificate is not None:
        running.socket = certificates.served(certificate).wrap_socket(running.socket, server_side=True)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    try:
        yield running
    finally:
        running.shutdown()
        running.server_close()
        thread.join(10)
