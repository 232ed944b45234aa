"""The MCP server over HTTP and connections that say nothing, say it slowly, or say it twice (X11)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import httpx2
import pytest
from mcp_serving import FIRST_TOKEN, JSON_HEADERS, SECOND_TOKEN, connected, initialize, serving, session_of, tool_call

from agentkernel_kb import KnowledgeBuilder, Record
from agentkernel_kb.serve.mcp import HTTPSettings, ServedAgent
from agentkernel_kb.testing import FakeKnowledgeBase
from agentkernel_kb.testing.house import CALLS, House, new_house

HURRIED = HTTPSettings(request_s=1.0)
HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\nContent-Type: application/json\r\n"
DRIP_S = 0.05


@pytest.fixture
def house() -> Iterator[House]:
    """Backends to serve."""
    house = new_house()
    with house.builder:
        yield house


async def heard(url: str, first: bytes = b"", *, drips: bool = False) -> bytes:
    """Send something, perhaps go on with a byte at a time, and return what is answered until the other side closes."""
    address = httpx2.URL(url)
    reader, writer = await asyncio.open_connection(address.host, address.port)
    dripping = asyncio.create_task(drip(writer)) if drips else None
    try:
        writer.write(first)
        return await asyncio.wait_for(reader.read(), 60)
    finally:
        if dripping:
            dripping.cancel()
        writer.close()


async def drip(writer: asyncio.StreamWriter) -> None:
    while not writer.is_closing():
        writer.write(b"x")
        await asyncio.sleep(DRIP_S)


async def test_a_connection_without_a_whole_request_is_closed_in_time(house: House) -> None:
    with serving(house.builder, HURRIED) as url:
        silent = heard(url)
        begun = [
            heard(url, drips=True),
            heard(url, b"POST /mcp HTT"),
            heard(url, HEAD + b"X-Long: ", drips=True),
            heard(url, HEAD + b"Content-Length: 1000\r\n\r\n{"),
            heard(url, HEAD + b"Content-Length: 100000\r\n\r\n", drips=True),
            heard(url, HEAD + b"Transfer-Encoding: chunked\r\n\r\n"),
        ]
        nothing, *answers = await asyncio.gather(silent, *begun)
    assert nothing == b""
    assert [answer.partition(b"\r\n")[0] for answer in answers] == [b"HTTP/1.1 408 Request Timeout"] * len(begun)
    assert house.handbook.calls == []


async def test_body_that_drips_without_a_token_is_closed_in_time(house: House) -> None:
    with serving(ServedAgent("one", house.builder, FIRST_TOKEN), HURRIED) as url:
        assert (await heard(url, HEAD + b"Content-Length: 100000\r\n\r\n", drips=True)).startswith(b"HTTP/1.1 401 ")


async def test_a_second_request_that_does_not_end_is_closed_in_time(house: House) -> None:
    body = json.dumps(initialize()).encode()
    whole = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with serving(house.builder, HURRIED) as url:
        answers = await heard(url, whole + HEAD, drips=True)
    assert answers.startswith(b"HTTP/1.1 ")
    assert b"HTTP/1.1 408 " in answers


async def test_silent_connections_make_room_for_others(house: House) -> None:
    with serving(house.builder, HTTPSettings(request_s=1.0, max_connections=10)) as url:
        address = httpx2.URL(url)
        silent = [await asyncio.open_connection(address.host, address.port) for _ in range(10)]
        assert await asyncio.wait_for(asyncio.gather(*(reader.read() for reader, _ in silent)), 60) == [b""] * 10
        async with connected(url) as client:
            assert not (await client.call_tool("search_kb", dict(CALLS["search_kb"]))).is_error
        for _, writer in silent:
            writer.close()


async def test_an_answer_may_take_longer_than_a_request() -> None:
    class Slow(FakeKnowledgeBase):
        async def asearch(self, query: str, limit: int = 3, **kwargs: object) -> list[Record]:
            await asyncio.sleep(3 * HURRIED.request_s)
            return [{"text": "Found.", "metadata": {}}]

    with KnowledgeBuilder([Slow("handbook")]) as builder, serving(builder, HURRIED) as url:
        async with httpx2.AsyncClient(timeout=60) as http:
            headers = await session_of(http, url)
            call = tool_call("search_kb", {"backend": "handbook", "query": "x"})
            assert "Found." in (await http.post(url, json=call, headers=headers)).text


@pytest.mark.parametrize("tokens", [[], [FIRST_TOKEN, SECOND_TOKEN]], ids=["open", "by-token"])
async def test_a_header_that_decides_something_may_stand_once(house: House, tokens: list[str]) -> None:
    once = {**JSON_HEADERS, "authorization": f"Bearer {FIRST_TOKEN}"}
    with serving(ServedAgent("one", house.builder, tokens)) as url:
        async with httpx2.AsyncClient(timeout=60) as http:
            for name in ("authorization", "origin", "content-type", "mcp-session-id", "mcp-protocol-version"):
                twice = [*once.items(), (name, once.get(name, "x")), (name.title(), f"Bearer {SECOND_TOKEN}")]
                refused = await http.post(url, json=initialize(), headers=twice)
                assert (refused.status_code, refused.text) == (400, f"The header {name} stands twice.")
            assert (await http.post(url, json=initialize(), headers=once)).status_code == 200


async def test_a_head_that_arrives_whole_is_bounded_too(house: House) -> None:
    with serving(house.builder) as url:
        async with httpx2.AsyncClient(timeout=60) as http:
            for size, status in ((50_000, 200), (70_000, 431)):
                headers = {**JSON_HEADERS, "x-long": "x" * size}
                assert (await http.post(url, json=initialize(), headers=headers)).status_code == status
