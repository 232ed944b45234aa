"""The MCP server over stdio: frames and nothing else on stdout, whatever comes in on stdin (X11)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from mcp_serving import PROGRAM, initialize, tool_call

from agentkernel_kb.testing.house import CALLS

SEARCH = tool_call("search_kb", dict(CALLS["search_kb"]), "the last")
MALFORMED = [
    b"",
    b"not JSON",
    b"\xff\xfe\x00",
    b"null",
    b"[]",
    json.dumps([SEARCH]).encode(),
    b"[" * 100_000,
    b'{"jsonrpc": "2.0", "id": ' + b"9" * 5_000 + b', "method": "tools/list"}',
    b'{"jsonrpc": "2.0", "id": {"a": 1}, "method": "tools/list"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "no/such"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search_kb", "arguments": [1]}}',
    b'{"jsonrpc": "2.0", "id": 1, "result": {}}',
    b'"' + b"x" * 20_000_000 + b'"',
]


@contextmanager
def process(*arguments: str) -> Generator[subprocess.Popen[bytes]]:
    """Start the program, initialized by hand."""
    command = [sys.executable, str(PROGRAM), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        try:
            send(started, json.dumps(initialize()).encode())
            assert started.stdout is not None
            assert json.loads(started.stdout.readline())["result"]["serverInfo"]["name"] == "agentkernel-kb"
            send(started, b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
            yield started
        finally:
            started.kill()


def send(started: subprocess.Popen[bytes], line: bytes) -> None:
    assert started.stdin is not None
    started.stdin.write(line + b"\n")
    started.stdin.flush()


def ended(started: subprocess.Popen[bytes]) -> tuple[list[dict[str, Any]], str]:
    """Close stdin, and return every frame and all of stderr."""
    out, err = started.communicate(timeout=100)
    assert started.returncode == 0
    return [json.loads(line) for line in out.splitlines()], err.decode()


def answer_to(started: subprocess.Popen[bytes], request_id: Any) -> dict[str, Any]:
    assert started.stdout is not None
    for line in started.stdout:
        frame = json.loads(line)
        if frame.get("id") == request_id:
            return frame
    pytest.fail("The server ended.")


def test_malformed_frames_are_passed_over_and_the_server_goes_on() -> None:
    with process() as started:
        for line in MALFORMED:
            send(started, line)
        send(started, json.dumps(SEARCH).encode())
        assert "Refunds within 30 days." in answer_to(started, "the last")["result"]["content"][0]["text"]
        frames, _ = ended(started)
    assert all(frame["jsonrpc"] == "2.0" for frame in frames)


def test_stdout_carries_frames_only_whatever_a_backend_prints() -> None:
    with process("--chatter") as started:
        send(started, json.dumps(SEARCH).encode())
        assert answer_to(started, "the last")["result"]["structuredContent"]["outcome"] == "ok"
        frames, errors = ended(started)
    assert frames == []
    for printed in ("printed by a backend", "written by a backend", "printed by a child"):
        assert printed in errors


def test_the_process_ends_with_its_client_even_in_the_middle_of_a_call() -> None:
    with process("--slow") as started:
        send(started, json.dumps(SEARCH).encode())
        assert started.stderr is not None
        assert started.stderr.readline() == b"asked\n"
        frames, _ = ended(started)
    assert [frame for frame in frames if "result" in frame] == []
