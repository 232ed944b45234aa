"""What MCP adds to a call: `search_kb` through streamable HTTP on loopback against the same call in process.

The server is a process of its own, as it would be; the client is the official one. Calls alternate between the ways, so that a
busy machine slows all of them alike. Prints one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
from mcp import Client

from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.serve.mcp import HTTPSettings, run_http
from agentkernel_kb.testing import FakeKnowledgeBase

WARM_UP, CALLS, AT_ONCE = 50, 1_000, 32
ARGUMENTS = {"backend": "handbook", "query": "refunds 7", "limit": 3}

Call = Callable[[], Awaitable[Any]]


def builder() -> KnowledgeBuilder:
    """Return a router over a hundred records in memory."""
    return KnowledgeBuilder([FakeKnowledgeBase("handbook", [{"text": f"Refunds {n} within 30 days."} for n in range(100)])])


async def timed(call: Call) -> float:
    """Return how many milliseconds a call takes."""
    started = time.perf_counter()
    await call()
    return (time.perf_counter() - started) * 1_000


async def alternating(ways: dict[str, Call]) -> dict[str, list[float]]:
    """Make calls in each way in turn, and return their times."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(WARM_UP + CALLS):
        for name, call in ways.items():
            taken = await timed(call)
            if number >= WARM_UP:
                times[name].append(taken)
    return times


async def at_once(call: Call) -> float:
    """Return how many calls a second are answered with many under way at one time."""

    async def some() -> None:
        for _ in range(CALLS // AT_ONCE):
            await call()

    started = time.perf_counter()
    await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    return CALLS // AT_ONCE * AT_ONCE / (time.perf_counter() - started)


def shown(times: list[float]) -> dict[str, float]:
    """Return what is told of a way, in milliseconds and calls a second of one client."""
    p95 = statistics.quantiles(times, n=20)[-1]
    return {
        "median_ms": round(statistics.median(times), 2),
        "p95_ms": round(p95, 2),
        "calls_per_s": round(1_000 / statistics.fmean(times)),
    }


async def measure(url: str) -> dict[str, Any]:
    """Measure all ways against a server that is there."""
    search = next(tool for tool in builder().build_async() if tool.__name__ == "search_kb")
    async with Client(url) as newest, Client(url, mode="legacy") as older:
        ways: dict[str, Call] = {
            "in_process": lambda: search(**ARGUMENTS),
            "http": lambda: newest.call_tool("search_kb", ARGUMENTS),
            "http_with_sessions": lambda: older.call_tool("search_kb", ARGUMENTS),
        }
        times = await alternating(ways)
        together = {name: round(await at_once(call)) for name, call in ways.items()}
    return {name: {**shown(times[name]), f"calls_per_s_{AT_ONCE}_at_once": together[name]} for name in ways}


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def wait_for(url: str) -> None:
    """Wait until a server answers."""
    for _ in range(600):
        try:
            httpx2.get(url)
        except httpx2.ConnectError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError("The server did not start.")


def main() -> None:
    """Start a server, measure, and print."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    server = subprocess.Popen([sys.executable, __file__, "--serve", str(port)])
    try:
        wait_for(url)
        print(json.dumps({"benchmark": "mcp_http", "calls": CALLS, **asyncio.run(measure(url))}))
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        run_http(builder(), HTTPSettings(port=int(sys.argv[2])))
    else:
        main()
