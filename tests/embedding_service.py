"""A service on loopback that embeds as OpenAI's does, with the lexical vectors, and refuses what it is told to refuse."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agentkernel_kb.embed import HashEmbedder


@dataclass
class Service:
    """A running service.

    Attributes:
        url: What a client takes as its base address.
        refusals: Status and `Retry-After` of the next answers, before calls succeed.
        calls: The bodies that it was sent, in order.
        at_once: Most calls that it had at once.
    """

    url: str = ""
    refusals: list[tuple[int, str | None]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    at_once: int = 0
    _running: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self) -> None:
        """Count a call that begins."""
        with self._lock:
            self._running += 1
            self.at_once = max(self.at_once, self._running)

    def leave(self) -> None:
        """Count a call that ends."""
        with self._lock:
            self._running -= 1


@contextmanager
def embedding_service() -> Generator[Service]:
    """Run a service until the block ends."""
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            service.enter()
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            service.calls.append(body)
            status, retry_after = service.refusals.pop(0) if service.refusals else (200, None)
            answer = json.dumps(
                _embedded(body) if status == 200 else {"error": {"message": "key sk-secret is over its rate"}}
            ).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            if retry_after is not None:
                self.send_header("Retry-After", retry_after)
            self.end_headers()
            service.leave()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    service.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _embedded(body: dict[str, Any]) -> dict[str, Any]:
    """Answer as the service does, in another order than asked: each vector says which text it is of."""
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    vectors = HashEmbedder(body.get("dimensions", 8))(texts)
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    return {"object": "list", "data": data[::-1], "model": body["model"], "usage": {"prompt_tokens": 1, "total_tokens": 1}}
