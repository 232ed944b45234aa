"""Shelves: backends whose search answers with given records, asked through `search_kb` in its plain and its async form."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

from agentkernel_kb import KnowledgeBuilder, Record, Resilience
from agentkernel_kb.model import Operation
from agentkernel_kb.testing import FakeKnowledgeBase

SEARCH: frozenset[Operation] = frozenset(("search",))
Answers = Callable[..., str]
NO_RETRY = Resilience(attempts=1)


def record(name: str, text: str, source: str = "book") -> Record:
    return {"text": text, "metadata": {"id": name, "source": source}}


def shelf(name: str, *rows: Record, **declared: Any) -> FakeKnowledgeBase:
    """Return a backend whose search answers with these rows, in this order."""
    options: dict[str, Any] = {"fetch": True, **declared}
    return FakeKnowledgeBase(name, **options).on("search", list(rows))


def _patient(options: dict[str, Any]) -> dict[str, Any]:
    return {"resilience": NO_RETRY, **options}


def search(*backends: FakeKnowledgeBase, **options: Any) -> Answers:
    builder = KnowledgeBuilder(backends, **_patient(options))
    return next(tool for tool in builder.build() if tool.__name__ == "search_kb")


def asearch(*backends: FakeKnowledgeBase, **options: Any) -> Answers:
    builder = KnowledgeBuilder(backends, **_patient(options))
    tool = next(tool for tool in builder.build_async() if tool.__name__ == "search_kb")
    return lambda *args, **kwargs: asyncio.run(tool(*args, **kwargs))


both_forms = pytest.mark.parametrize("form", [search, asearch])


@contextmanager
def hanging(backend: FakeKnowledgeBase) -> Generator[FakeKnowledgeBase]:
    """Let a backend's search hang until the block is left."""
    released = threading.Event()
    try:
        yield backend.on("search", lambda *_, **__: [record("late", str(released.wait(30)))])
    finally:
        released.set()
