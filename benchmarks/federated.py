"""Prints what one question to five backends costs that take 50 ms each, and what it costs where one of them hangs.

`wall_ms` is the median of `search_kb("*", …)`; the slowest backend alone takes 50 ms. With one hung, a call lasts as long as
its deadline, and `answered` is how many of the other four backends' records stand in the answer.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

from agentkernel_kb import KnowledgeBuilder, Limits, Record, Resilience
from agentkernel_kb.testing import FakeKnowledgeBase

NAMES, SLEEP_S, DEADLINE_S, CALLS, HUNG_CALLS = ("one", "two", "three", "four", "five"), 0.05, 0.5, 40, 5


class Slow(FakeKnowledgeBase):
    """Answers after a while with a record of its own."""

    def search(self, query: str, limit: int = 3, **kwargs: Any) -> list[Record]:
        """Sleep."""
        time.sleep(SLEEP_S)
        return [{"text": f"{self.backend_name} knows", "metadata": {"id": self.backend_name}}]


class Hung(FakeKnowledgeBase):
    """Does not answer until it is released."""

    released = threading.Event()

    def search(self, query: str, limit: int = 3, **kwargs: Any) -> list[Record]:
        """Hang."""
        self.released.wait(60)
        return []


def measured(call: Callable[[], str], calls: int) -> tuple[float, int]:
    """Return median milliseconds and the fewest records in an answer."""
    call()
    walls: list[float] = []
    fewest = len(NAMES)
    for _ in range(calls):
        started = time.perf_counter()
        answer = call()
        walls.append((time.perf_counter() - started) * 1e3)
        fewest = min(fewest, answer.count(" knows"))
    return statistics.median(walls), fewest


def searches(hung: bool) -> tuple[Callable[[], str], Callable[[], str]]:
    """Return the call in its plain and its async form; the breaker is off, so that each call asks all."""
    backends = [Hung(name) if hung and name == "five" else Slow(name) for name in NAMES]
    limits = Limits(seconds=DEADLINE_S if hung else 30)
    builder = KnowledgeBuilder(backends, limits=limits, resilience=Resilience(failures=1_000))
    plain = next(tool for tool in builder.build() if tool.__name__ == "search_kb")
    coroutine = next(tool for tool in builder.build_async() if tool.__name__ == "search_kb")
    runner = asyncio.Runner()
    return lambda: plain("*", "who knows?", 9), lambda: runner.run(coroutine("*", "who knows?", 9))


def main() -> None:
    """Measure and print one JSON object."""
    figures: dict[str, object] = {"benchmark": "federated", "backends": len(NAMES), "sleep_ms": SLEEP_S * 1e3}
    for form, call in zip(("sync", "async"), searches(hung=False), strict=True):
        wall, answered = measured(call, CALLS)
        figures |= {f"{form}_wall_ms": round(wall, 1), f"{form}_answered": answered}
    figures["deadline_ms"] = DEADLINE_S * 1e3
    for form, call in zip(("sync", "async"), searches(hung=True), strict=True):
        wall, answered = measured(call, HUNG_CALLS)
        figures |= {f"{form}_one_hung_wall_ms": round(wall, 1), f"{form}_one_hung_answered": answered}
    Hung.released.set()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
