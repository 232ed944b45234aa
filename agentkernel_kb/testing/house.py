"""House: what an adapter is tested with. Three backends that between them serve all seven tools, and their builder."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkernel_kb.knowledgebuilder import KnowledgeBuilder
from agentkernel_kb.model import Record, ToolDescription, describe
from agentkernel_kb.router.limits import Limits
from agentkernel_kb.testing.fake import FakeKnowledgeBase

Tool = Callable[..., Any]

LONGEST_WAIT_S = 20.0
"""How long a backend waits for what a test promises; only a failing test takes that long."""

CALLS: Mapping[str, Mapping[str, Any]] = {
    "get_schemas": {},
    "get_all_kb_descriptions": {},
    "read_kb": {"backend": "ledger", "query": "invoice"},
    "search_kb": {"backend": "handbook", "query": "refunds", "limit": 1},
    "fetch_kb": {"backend": "handbook", "ids": "rules/refunds,rules/returns"},
    "browse_kb": {"backend": "handbook", "path": "rules"},
    "write_kb": {"backend": "notes", "text": "Acme pays late."},
}
"""A sound call of each of the seven tools."""


@dataclass
class House:
    """The backends and their builder.

    Attributes:
        handbook: Searches, fetches and browses.
        ledger: Queries.
        notes: Searches and writes.
        builder: Routes between the three.
    """

    handbook: FakeKnowledgeBase
    ledger: FakeKnowledgeBase
    notes: FakeKnowledgeBase
    builder: KnowledgeBuilder

    def tools(self, *, is_async: bool) -> list[Tool]:
        """Return the router's tools, as plain or as coroutine functions."""
        return [*(self.builder.build_async() if is_async else self.builder.build())]

    def tool(self, name: str, *, is_async: bool = False) -> Tool:
        """Return one of them."""
        return next(tool for tool in self.tools(is_async=is_async) if described(tool).name == name)


def new_house() -> House:
    """Return new backends and their builder."""
    rules = [record("rules/refunds", "Refunds within 30 days."), record("rules/returns", "Returns come before refunds.")]
    handbook = FakeKnowledgeBase("handbook", rules, fetch=True, browse=True)
    ledger = FakeKnowledgeBase("ledger", [record("1", "invoice 17")], search=False, query_language="sql")
    notes = FakeKnowledgeBase("notes", writable=True)
    return House(
        handbook, ledger, notes, KnowledgeBuilder([handbook, ledger, notes], limits=Limits(seconds=2 * LONGEST_WAIT_S))
    )


def record(name: str, text: str) -> Record:
    """Return a record whose id and source are `name`."""
    return {"text": text, "metadata": {"id": name, "source": name}}


def described(tool: Tool) -> ToolDescription:
    """Return the description that a router's tool carries."""
    description = describe(tool)
    assert description is not None, f"{tool} carries no description"
    return description


@dataclass
class Held:
    """A search that answers once it is let go: `free` then, or `blocked` if that never came."""

    let_go: threading.Event = field(default_factory=threading.Event)

    def __call__(self, query: str, **_: Any) -> list[Record]:
        """Wait, and say how it ended."""
        return [record("1", "free" if self.let_go.wait(LONGEST_WAIT_S) else "blocked")]


@dataclass
class Meeting:
    """A search that answers once as many as `parties` calls of it run at one time."""

    parties: int

    def __post_init__(self) -> None:
        self._barrier = threading.Barrier(self.parties)

    def __call__(self, query: str, **_: Any) -> list[Record]:
        """Wait for the others, and repeat the query."""
        self._barrier.wait(LONGEST_WAIT_S)
        return [record("1", f"about {query}")]


def shout(word: str) -> str:
    """Return a word in capitals."""
    return word.upper()


async def ashout(word: str) -> str:
    """Return a word in capitals, as a coroutine function."""
    return word.upper()


def withheld(tool: Tool, *, is_async: bool) -> Tool:
    """Return a wrapper of `tool` that never calls it, as one that asks for approval and gets none."""

    @functools.wraps(tool)
    def refuse(**_: Any) -> str:
        return "Not approved."

    @functools.wraps(tool)
    async def arefuse(**_: Any) -> str:
        return "Not approved."

    return arefuse if is_async else refuse
