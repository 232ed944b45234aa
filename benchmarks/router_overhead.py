"""Prints what the router adds to a call: median microseconds of `read_kb` on a search backend that does nothing.

All steps are on: a 1 kB query with placeholders, a semantic map of 10 and of 1,000 tokens, an event listener. `inline` is a
backend that takes `timeout=` and is called in the caller's thread; `pooled` is one that does not, and costs a change of
threads. `hop` is that change alone: nothing, run in another thread by the standard library's queue and lock.
"""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from agentkernel_kb import KnowledgeBase, KnowledgeBuilder, KnowledgeCapabilities, Record

CALLS, ROUNDS = 2_000, 7
QUERY = ("Which of the clients in <TOKEN_3> have renewed since the spring, and what does <TOKEN_7> say of them? " * 2).ljust(
    1_024, "x"
)


class Pooled(KnowledgeBase):
    """Finds nothing, at once; does not take a time-out."""

    def __init__(self) -> None:
        super().__init__(KnowledgeCapabilities(search=True))

    @property
    def backend_name(self) -> str:
        """The name."""
        return "idle"

    def connect(self, **kwargs: Any) -> None:
        """There is nothing to connect to."""

    def get_description(self) -> str:
        """Return the description."""
        return "idle finds nothing"

    def search(self, query: str, limit: int = 3, **kwargs: Any) -> list[Record]:
        """Find nothing."""
        return []


class Inline(Pooled):
    """Finds nothing, at once; takes a time-out."""

    def search(self, query: str, limit: int = 3, *, timeout: float = 30.0, **kwargs: Any) -> list[Record]:
        """Find nothing."""
        return []


def median_us(call: Callable[[], object]) -> float:
    """Return the median over the rounds of the mean time of a call, in microseconds."""
    rounds: list[float] = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for _ in range(CALLS):
            call()
        rounds.append((time.perf_counter() - started) / CALLS * 1e6)
    return statistics.median(rounds)


def thread_hop() -> Callable[[], object]:
    """Return one change to another thread and back, as cheap as the standard library has it."""
    jobs: SimpleQueue[threading.Lock] = SimpleQueue()

    def work() -> None:
        while True:
            jobs.get().release()

    def hop() -> None:
        done = threading.Lock()
        done.acquire()
        jobs.put(done)
        done.acquire(timeout=30)

    threading.Thread(target=work, daemon=True).start()
    return hop


def router(backend: KnowledgeBase, tokens: int) -> Callable[[], object]:
    """Return one call of `read_kb` through a router with that many placeholders."""
    semantic_map = {f"<TOKEN_{number}>": f"catalog.schema.table_{number}" for number in range(tokens)}
    read_kb = KnowledgeBuilder([backend], semantic_map, on_event=lambda _: None).build()[1]
    return lambda: read_kb("idle", QUERY)


def main() -> None:
    """Measure and print one JSON object."""
    figures = {
        f"{name}_{tokens}_tokens_us": round(median_us(router(backend, tokens)), 1)
        for name, backend in (("inline", Inline()), ("pooled", Pooled()))
        for tokens in (10, 1_000)
    }
    figures["hop_us"] = round(median_us(thread_hop()), 1)
    figures["inline_1000_over_10"] = round(figures["inline_1000_tokens_us"] / figures["inline_10_tokens_us"], 2)
    figures["pooled_1000_over_10"] = round(figures["pooled_1000_tokens_us"] / figures["pooled_10_tokens_us"], 2)
    print(json.dumps({"benchmark": "router_overhead", **figures}))


if __name__ == "__main__":
    main()
