"""How each call ended is told to what serves it, and to nobody else (X9, X11)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.router.events import heard
from agentkernel_kb.testing import FakeKnowledgeBase


def search(is_async: bool) -> Callable[..., Any]:
    builder = KnowledgeBuilder([FakeKnowledgeBase("handbook", [{"text": "Refunds."}]), FakeKnowledgeBase("notes")])
    tools = builder.build_async() if is_async else builder.build()
    return next(tool for tool in tools if tool.__name__ == "search_kb")


def test_calls_inside_the_block_are_heard_in_their_order_and_others_are_not() -> None:
    ask = search(is_async=False)
    ask("handbook", "refunds")
    with heard() as events:
        ask("handbook", "refunds")
        ask("nowhere", "refunds")
    ask("handbook", "refunds")
    assert [(event.outcome, event.rows) for event in events] == [("ok", 1), ("unknown_backend", 0)]


def test_the_last_that_is_heard_of_a_call_is_the_call_itself() -> None:
    with heard() as events:
        search(is_async=False)("*", "refunds")
    assert (events[-1].backend, events[-1].outcome, events[-1].rows) == ("*", "ok", 1)


async def test_tasks_at_one_time_hear_their_own_calls_only() -> None:
    ask = search(is_async=True)

    async def outcome_of(backend: str) -> list[str]:
        with heard() as events:
            await asyncio.sleep(0)
            await ask(backend, "refunds")
        return [event.outcome for event in events]

    names = ["handbook", "nowhere", "notes"] * 5
    assert await asyncio.gather(*map(outcome_of, names)) == [["ok"], ["unknown_backend"], ["empty"]] * 5
