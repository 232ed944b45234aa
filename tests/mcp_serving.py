"""What tests of MCP share: agents served by a real uvicorn or by a process over stdio, and the official client."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.serve.mcp import HTTPSettings, ServedAgent
from agentkernel_kb.serve.mcp.http import make_config

PROGRAM = Path(__file__).parent / "mcp_stdio_program.py"
STDIO = StdioServerParameters(command=sys.executable, args=[str(PROGRAM)], env=dict(os.environ))
FIRST_TOKEN, SECOND_TOKEN = "first-agents-token-1", "second-agents-token-2"
JSON_HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
_STARTED_WITHIN_S = 30.0


@contextmanager
def serving(
    agents: ServedAgent | KnowledgeBuilder | Iterable[ServedAgent], settings: HTTPSettings | None = None
) -> Generator[str]:
    """Serve agents as `run_http` does, in a thread, and give the address of the endpoint."""
    settings = settings or HTTPSettings()
    server = uvicorn.Server(make_config(agents, settings))
    listening = socket.create_server(("127.0.0.1", 0), backlog=512)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        _wait_for(server, thread)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}{settings.path}"
    finally:
        server.should_exit = True
        thread.join(_STARTED_WITHIN_S)
        listening.close()


def _wait_for(server: uvicorn.Server, thread: threading.Thread) -> None:
    end = time.monotonic() + _STARTED_WITHIN_S
    while not server.started:
        assert thread.is_alive(), "The server ended."
        assert time.monotonic() < end, "The server did not start."
        time.sleep(0.01)


@asynccontextmanager
async def connected(url: str, token: str | None = None, *, mode: str = "auto", **options: Any) -> AsyncGenerator[Client]:
    """Connect the official client."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, **options) as client,
    ):
        yield client


def initialize(request_id: Any = 1) -> dict[str, Any]:
    """Return the frame that opens a session in the older form of the protocol."""
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return {"jsonrpc": "2.0", "id": request_id, "method": "initialize", "params": params}


def tool_call(name: str, arguments: Any, request_id: Any = 2) -> dict[str, Any]:
    """Return the frame of a tool call."""
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


async def session_of(http: httpx2.AsyncClient, url: str) -> dict[str, str]:
    """Open a session by hand, and return the headers of its requests."""
    opened = await http.post(url, json=initialize(), headers=JSON_HEADERS)
    assert opened.status_code == 200, opened.text
    headers = {**JSON_HEADERS, "mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
    ready = await http.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
    assert ready.status_code == 202
    return headers
