"""Prints what 200 async calls at once cost against a backend that sleeps 100 ms, alone and beside a backend that hangs.

`stall` is the longest time for which the event loop did not get to run a task that wakes every millisecond. `blocking` is a
backend with plain methods only, served by its own threads; `native` one with a coroutine.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

from agentkernel_kb import KnowledgeBase, KnowledgeBuilder, KnowledgeCapabilities, Limits, Record

CALLS, SLEEP_S, ROUNDS = 200, 0.1, 5


class Blocking(KnowledgeBase):
    """Takes its time in a plain method."""

    def __init__(self, name: str) -> None:
        super().__init__(KnowledgeCapabilities(search=True))
        self._name = name

    @property
    def backend_name(self) -> str:
        """The name."""
        return self._name

    def connect(self, **kwargs: Any) -> None:
        """There is nothing to connect to."""

    def get_description(self) -> str:
        """Return the description."""
        return f"{self._name} takes its time"

    def search(self, query: str, limit: int = 3, **kwargs: Any) -> list[Record]:
        """Sleep."""
        time.sleep(SLEEP_S)
        return [{"text": query, "metadata": {}}]


class Native(Blocking):
    """Takes its time in a coroutine."""

    async def asearch(self, query: str, limit: int = 3, **kwargs: Any) -> list[Record]:
        """Sleep without blocking."""
        await asyncio.sleep(SLEEP_S)
        return [{"text": query, "metadata": {}}]


class Hung(Blocking):
    """Does not answer until it is released."""

    def __init__(self) -> None:
        super().__init__("hung")
        self.released = threading.Event()

    def search(self, query: str, limit: int = 3, **kwargs: Any) -> list[Record]:
        """Hang."""
        self.released.wait(60)
        return []


async def largest_stall(stop: asyncio.Event) -> float:
    """Return the longest delay of a task that wakes every millisecond, in milliseconds."""
    worst = 0.0
    while not stop.is_set():
        started = time.perf_counter()
        await asyncio.sleep(0.001)
        worst = max(worst, (time.perf_counter() - started - 0.001) * 1e3)
    return worst


async def measure(backend: KnowledgeBase, hung: Hung | None) -> tuple[float, float]:
    """Return wall milliseconds of all calls and the largest stall."""
    backends = [backend] if hung is None else [backend, hung]
    search = {tool.__name__: tool for tool in KnowledgeBuilder(backends, limits=Limits(seconds=30)).build_async()}["search_kb"]
    behind = [asyncio.create_task(search("hung", "x")) for _ in range(CALLS)] if hung else []
    await asyncio.sleep(0.05)
    stop = asyncio.Event()
    watch = asyncio.create_task(largest_stall(stop))
    started = time.perf_counter()
    answers = await asyncio.gather(*(search(backend.backend_name, f"question {number}") for number in range(CALLS)))
    wall = (time.perf_counter() - started) * 1e3
    stop.set()
    stall = await watch
    if hung:
        hung.released.set()
    await asyncio.gather(*behind)
    if not all(answer.startswith("- question") for answer in answers):
        raise RuntimeError("a call failed")
    return wall, stall


def main() -> None:
    """Measure and print one JSON object: the median wall time and the median of the rounds' largest stalls."""
    figures: dict[str, object] = {"benchmark": "concurrency", "calls": CALLS, "sleep_ms": SLEEP_S * 1e3}
    for name, kind in (("blocking", Blocking), ("native", Native)):
        for beside in ("alone", "beside_hung"):
            rounds = [asyncio.run(measure(kind(name), Hung() if beside == "beside_hung" else None)) for _ in range(ROUNDS)]
            walls, stalls = (sorted(values) for values in zip(*rounds, strict=True))
            figures[f"{name}_{beside}_wall_ms"] = round(walls[ROUNDS // 2])
            figures[f"{name}_{beside}_stall_ms"] = round(stalls[ROUNDS // 2], 1)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
