"""`agentkernel-kb eval --model` against a server of completions: its calls are judged, each question alone (X13)."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cli_world import make_world, run

QUESTIONS = """\
questions:
  - {question: "Are refunds granted?", backend: handbook, operation: search, contains: 30 days}
  - {question: "How many clients?", backend: sales, operation: query}
"""


def completion(body: dict[str, Any]) -> dict[str, Any]:
    """Search the handbook whatever the question is, then retell what it answers."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        message: dict[str, Any] = {"content": f"It says: {last['content']}"}
    else:
        call = {"name": "search_kb", "arguments": json.dumps({"backend": "handbook", "query": "refunds"})}
        message = {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": call}]}
    reason = "tool_calls" if "tool_calls" in message else "stop"
    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", **message}}
    return {"id": "c1", "object": "chat.completion", "created": 0, "model": "tiny", "choices": [choice]}


@contextmanager
def model_server() -> Generator[tuple[str, list[dict[str, Any]]]]:
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            payload = json.dumps(completion(requests[-1])).encode()
            self.send_response(200)
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


def test_what_a_model_calls_is_judged_and_no_question_knows_of_another(tmp_path: Path) -> None:
    folder = make_world(tmp_path)
    (folder / "questions.yaml").write_text(QUESTIONS, "utf-8")
    with model_server() as (address, requests):
        env = {"OPENAI_API_KEY": "not-a-real-key", "OPENAI_BASE_URL": address}
        done = run("eval", "questions.yaml", "--model", "tiny", "--json", folder=folder, env=env)
    assert done.code == 0, done.err
    assert done.json["accuracy"] == {"backend": 0.5, "operation": 0.5, "answer": 1.0}
    assert done.json["confusion"] == {"handbook": {"handbook": 1}, "sales": {"handbook": 1}}
    assert done.json["errors"] == 0
    assert "Are refunds granted?" not in json.dumps(requests[-1]["messages"])
