"""The MCP server over HTTP under clients that are broken, hostile, many or gone (X11)."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import httpx2
import pytest
from mcp_serving import JSON_HEADERS, connected, initialize, serving, session_of, tool_call

from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.serve.mcp import HTTPSettings
from agentkernel_kb.testing import FakeKnowledgeBase
from agentkernel_kb.testing.house import CALLS, House, new_house

SEARCH = tool_call("search_kb", dict(CALLS["search_kb"]))
MODERN = {**JSON_HEADERS, "mcp-protocol-version": "2026-07-28"}
MALFORMED = [
    b"",
    b"{",
    b"\xff\xfe",
    b"null",
    b"7",
    b'"text"',
    b"[]",
    json.dumps([SEARCH, SEARCH]).encode(),
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b'{"jsonrpc": "2.0"}',
    b'{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": 7}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "no/such"}',
    b'{"jsonrpc": "2.0", "id": {"a": 1}, "method": "tools/list"}',
    b'{"jsonrpc": "2.0", "id": null, "method": "tools/list"}',
    b'{"jsonrpc": "2.0", "id": ' + b"9" * 5_000 + b', "method": "tools/list"}',
    b'{"jsonrpc": "2.0", "id": "' + b"x" * 100_000 + b'", "method": "no/such"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": 7}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 7}}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search_kb", "arguments": [1]}}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": 7}}',
    b'{"jsonrpc": "2.0", "id": 1, "result": {}}',
    b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {"a": []}}}',
    b'{"jsonrpc": "2.0", "method": "no/such"}',
]


@pytest.fixture
def house() -> Iterator[House]:
    """Backends to serve."""
    house = new_house()
    with house.builder:
        yield house


@pytest.fixture
def url(house: House) -> Iterator[str]:
    """The house, served over HTTP."""
    with serving(house.builder) as address:
        yield address


async def works(url: str) -> bool:
    async with connected(url) as client:
        return not (await client.call_tool("search_kb", dict(CALLS["search_kb"]))).is_error


async def test_malformed_frames_are_answered_and_the_server_and_the_session_go_on(url: str) -> None:
    async with httpx2.AsyncClient(timeout=30) as http:
        headers = await session_of(http, url)
        for body in MALFORMED:
            for own in (headers, JSON_HEADERS, MODERN):
                answer = await http.post(url, content=body, headers=own)
                assert answer.status_code < 500, (body[:80], own, answer.text[:200])
        answer = await http.post(url, json=SEARCH, headers=headers)
    assert "Refunds within 30 days." in answer.text
    assert await works(url)


async def test_an_oversized_body_is_refused_whether_it_says_its_length_or_not(house: House) -> None:
    async def endless() -> AsyncGenerator[bytes]:
        for _ in range(100):
            yield b" " * 1_000

    with serving(house.builder, HTTPSettings(max_body_bytes=10_000)) as url:
        async with httpx2.AsyncClient(timeout=30) as http:
            said = await http.post(url, content=b" " * 10_001, headers=JSON_HEADERS)
            unsaid = await http.post(url, content=endless(), headers=JSON_HEADERS)
            modern = await http.post(url, content=b" " * 10_001, headers=MODERN)
        assert [answer.status_code for answer in (said, unsaid, modern)] == [413] * 3
        assert await works(url)


@pytest.mark.parametrize("start", [b"POST /", b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Long: "], ids=["line", "header"])
async def test_head_of_a_request_that_does_not_end_is_cut_off(url: str, start: bytes) -> None:
    with pytest.raises(OSError, match=r"reset|[Bb]roken"):
        await asyncio.to_thread(_send_without_end, url, start)
    assert await works(url)


def _send_without_end(url: str, start: bytes) -> None:
    """Send up to 16 MB; fails where the other side stops listening."""
    address = httpx2.URL(url)
    with socket.create_connection((address.host, address.port or 80), timeout=30) as connection:
        connection.sendall(start)
        for _ in range(256):
            connection.sendall(b"x" * 65_536)


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("host", "evil.example", 421),
        ("host", "127.0.0.1.evil.example:80", 421),
        ("host", "localhost@evil.example", 421),
        ("host", "localhost:80@evil.example", 421),
        ("host", "[::1]:80.evil.example", 421),
        ("origin", "http://evil.example", 403),
        ("origin", "https://127.0.0.1.evil.example", 403),
        ("origin", "http://localhost:80.evil.example", 403),
        ("origin", "null", 403),
    ],
)
@pytest.mark.parametrize("headers", [JSON_HEADERS, MODERN], ids=["legacy", "modern"])
async def test_another_host_or_origin_is_refused(
    url: str, house: House, headers: dict[str, str], name: str, value: str, status: int
) -> None:
    async with httpx2.AsyncClient(timeout=30) as http:
        for body in (initialize(), SEARCH):
            answer = await http.post(url, json=body, headers={**headers, name: value})
            assert answer.status_code == status
    assert house.handbook.calls == []


async def test_pages_from_where_the_deployment_says_may_ask(house: House) -> None:
    settings = HTTPSettings(allowed_hosts=["kb.example.com"], allowed_origins=["https://kb.example.com"])
    with serving(house.builder, settings) as url:
        async with httpx2.AsyncClient(timeout=30) as http:
            for own in ({"host": "kb.example.com"}, {"host": "kb.example.com:8443"}, {"origin": "https://kb.example.com"}):
                assert (await http.post(url, json=initialize(), headers={**JSON_HEADERS, **own})).status_code == 200


async def test_two_hundred_sessions_at_one_time_are_all_answered(url: str) -> None:
    limits = httpx2.Limits(max_connections=None)

    async def ask(http: httpx2.AsyncClient, number: int) -> bool:
        headers = await session_of(http, url)
        call = tool_call("search_kb", {"backend": "handbook", "query": f"refunds {number}"})
        return "Refunds within 30 days." in (await http.post(url, json=call, headers=headers)).text

    async with httpx2.AsyncClient(timeout=100, limits=limits) as http:
        assert await asyncio.gather(*(ask(http, number) for number in range(200))) == [True] * 200


async def test_sessions_are_bounded_and_make_room_when_they_end(house: House) -> None:
    with serving(house.builder, HTTPSettings(max_sessions=2)) as url:
        async with httpx2.AsyncClient(timeout=30) as http:
            headers = await session_of(http, url)
            await session_of(http, url)
            assert (await http.post(url, json=initialize(), headers=JSON_HEADERS)).status_code == 503
            assert (await http.delete(url, headers=headers)).status_code == 200
            await session_of(http, url)


async def test_an_idle_session_ends(house: House) -> None:
    with serving(house.builder, HTTPSettings(session_idle_s=0.2, max_sessions=1)) as url:
        async with httpx2.AsyncClient(timeout=30) as http:
            await http.post(url, json=initialize(), headers=JSON_HEADERS)
            while (await http.post(url, json=initialize(), headers=JSON_HEADERS)).status_code == 503:
                await asyncio.sleep(0.1)


@pytest.mark.parametrize("modern", [False, True], ids=["legacy", "modern"])
async def test_the_call_of_a_client_that_vanishes_is_cancelled(modern: bool) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    class Slow(FakeKnowledgeBase):
        async def asearch(self, query: str, limit: int = 3, **kwargs: Any) -> list[Any]:
            loop.call_soon_threadsafe(started.set)
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                loop.call_soon_threadsafe(cancelled.set)
                raise
            return []

    with KnowledgeBuilder([Slow("handbook")]) as builder, serving(builder) as url:
        async with connected(url, mode="auto" if modern else "legacy") as client:
            asking = asyncio.create_task(client.call_tool("search_kb", {"backend": "handbook", "query": "x"}))
            await asyncio.wait_for(started.wait(), 60)
            asking.cancel()
            await asyncio.wait_for(cancelled.wait(), 60)
        async with connected(url) as client:
            assert not (await client.call_tool("get_schemas")).is_error


async def test_a_connection_that_breaks_in_the_middle_of_a_call_cancels_it(house: House) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    class Slow(FakeKnowledgeBase):
        async def asearch(self, query: str, limit: int = 3, **kwargs: Any) -> list[Any]:
            loop.call_soon_threadsafe(started.set)
            try:
                await asyncio.sleep(600)
            finally:
                loop.call_soon_threadsafe(cancelled.set)
            return []

    with KnowledgeBuilder([Slow("handbook")]) as builder, serving(builder) as url:
        async with httpx2.AsyncClient(timeout=60) as http:
            headers = await session_of(http, url)
            asking = asyncio.create_task(http.post(url, json=SEARCH, headers=headers))
            await asyncio.wait_for(started.wait(), 60)
            asking.cancel()  # It closes the connection, and no notification of the protocol is sent.
            await asyncio.wait_for(cancelled.wait(), 60)
            again = await http.post(url, json=tool_call("get_schemas", {}, 9), headers=headers)
        assert again.status_code == 200


PROGRAM = """
import sys
from agentkernel_kb.serve.mcp import HTTPSettings, run_http
from agentkernel_kb.testing.house import new_house
with new_house().builder as builder:
    run_http(builder, HTTPSettings(port=int(sys.argv[1])))
"""


async def test_a_process_serves_until_it_is_told_to_end_and_prints_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-c", PROGRAM, str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            await _until_there(f"http://127.0.0.1:{port}/mcp", process)
            assert await works(f"http://127.0.0.1:{port}/mcp")
        finally:
            process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert out == ""
    assert "Traceback" not in err


async def _until_there(url: str, process: subprocess.Popen[str]) -> None:
    async with httpx2.AsyncClient() as http:
        while process.poll() is None:
            try:
                await http.get(url)
            except httpx2.ConnectError:
                await asyncio.sleep(0.1)
            else:
                return
