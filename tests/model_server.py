"""A server of chat completions on loopback, as the OpenAI SDK calls one: its answers are scripted, what it is asked is kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, Any]]
Reply = Callable[[dict[str, Any]], Answer]


@contextmanager
def model_server(reply: Reply) -> Generator[tuple[str, list[dict[str, Any]]]]:
    """Serve what `reply` says to the body of each request; give the address, and the requests with their path and key."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append({"path": self.path, "key": self.headers["Authorization"], **body})
            status, answer = reply(body)
            payload = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def completion(message: dict[str, Any]) -> Answer:
    """Answer with one message of the assistant."""
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": None, **message}}
    return 200, {"id": "c1", "object": "chat.completion", "created": 0, "model": "tiny", "choices": [choice]}


def calling(*calls: tuple[str, dict[str, Any]]) -> Answer:
    """Answer with calls of tools, each a name and its arguments."""
    functions = [{"name": name, "arguments": json.dumps(arguments)} for name, arguments in calls]
    listed = [{"id": f"call_{number}", "type": "function", "function": each} for number, each in enumerate(functions, 1)]
    return completion({"tool_calls": listed})


def told(body: dict[str, Any]) -> str | None:
    """Return what the tool answered that was called last; `None` where the user has the word."""
    last = body["messages"][-1]
    return last["content"] if last["role"] == "tool" else None
