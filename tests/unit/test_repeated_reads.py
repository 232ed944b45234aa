"""Reads that nobody heard are tried again, within bounds; nothing else is (X7)."""

import asyncio
import re
import subprocess
import sys
from typing import Any

import pytest
from asked import SYNC_AND_ASYNC, UNREACHABLE, Asked, Lines, failing, serving

from agentkernel_kb import KnowledgeBuilder, Record
from agentkernel_kb.errors import (
    AKConfigError,
    KnowledgeBackendError,
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.router.resilience import Resilience
from agentkernel_kb.testing import FakeKnowledgeBase


@SYNC_AND_ASYNC
def test_a_read_that_nobody_heard_is_tried_again(is_async):
    with serving(drops=2) as server:
        ask = Asked(Lines(server.port), is_async=is_async)
        assert ask("search_kb", "lines", "hello") == "- HELLO (source: N/A)"
        assert server.connections == 3
    assert ask.outcomes == [("ok", 3)]


@SYNC_AND_ASYNC
def test_tries_are_bounded(is_async):
    with serving(drops=99) as server:
        ask = Asked(Lines(server.port), is_async=is_async, attempts=4)
        answer = ask("search_kb", "lines", "hello")
        assert server.connections == 4
    assert answer == "Backend 'lines' can't be reached. Try again later, or use another backend."
    assert ask.outcomes == [("unavailable", 4)]


@SYNC_AND_ASYNC
@pytest.mark.parametrize(("tool", "argument"), [("fetch_kb", "1"), ("browse_kb", "p"), ("search_kb", "x"), ("read_kb", "x")])
def test_every_read_is_tried_again(tool, argument, is_async):
    operation = "query" if tool == "read_kb" else tool.removesuffix("_kb")
    backend = FakeKnowledgeBase("b", fetch=True, browse=True, query_language="text").on(operation, failing(1))
    ask = Asked(backend, is_async=is_async)
    assert ask(tool, "b", argument).endswith("back (source: N/A)")
    assert ask.outcomes == [("ok", 2)]


@SYNC_AND_ASYNC
def test_an_async_driver_is_tried_again_too(is_async):
    operate = failing(2)

    class Native(FakeKnowledgeBase):
        async def asearch(self, query, limit=3, **kwargs) -> list[Record]:
            return operate()

        def search(self, query, limit=3, **kwargs) -> list[Record]:
            return operate()

    ask = Asked(Native("b"), is_async=is_async)
    assert ask("search_kb", "b", "x") == "- back (source: N/A)"
    assert ask.outcomes == [("ok", 3)]


@SYNC_AND_ASYNC
def test_a_write_is_never_repeated(is_async):
    backend = FakeKnowledgeBase("b", writable=True).on("write", failing(1))
    ask = Asked(backend, is_async=is_async)
    assert "can't be reached" in ask("write_kb", "b", "text")
    assert len(backend.calls) == 1
    assert ask.outcomes == [("unavailable", 1)]


@SYNC_AND_ASYNC
@pytest.mark.parametrize(
    "error",
    [
        KnowledgeConnectionError("wrong password", state="unauthorized"),
        KnowledgeConnectionError("no such database", state="missing"),
        KnowledgeConnectionError("expired", state="untrusted"),
        KnowledgeTimeoutError("slow"),
        KnowledgeQueryError("no such column"),
        KnowledgeGuardError("it deletes"),
        KnowledgeBackendError("broken"),
        KnowledgeError("broken"),
        RuntimeError("broken"),
    ],
    ids=lambda error: getattr(error, "state", type(error).__name__),
)
def test_what_would_fail_again_is_not_repeated(error, is_async):
    backend = FakeKnowledgeBase("b").on("search", failing(1, error))
    ask = Asked(backend, is_async=is_async)
    assert "back" not in ask("search_kb", "b", "x").split()
    assert len(backend.calls) == 1


@SYNC_AND_ASYNC
def test_tries_end_with_the_deadline(is_async):
    backend = FakeKnowledgeBase("b").on("search", failing(1_000))
    ask = Asked(backend, is_async=is_async, seconds=1.5, attempts=1_000, wait_seconds=0.2, max_wait_seconds=0.2)
    ask("search_kb", "b", "x")
    (event,) = ask.events
    assert event.outcome in ("unavailable", "timeout")  # The latter where the machine is so busy that a try took too long.
    assert 1 < event.attempts < 1_000


def test_a_single_try_may_be_asked_for():
    backend = FakeKnowledgeBase("b").on("search", failing(1))
    ask = Asked(backend, attempts=1)
    assert "can't be reached" in ask("search_kb", "b", "x")
    assert ask.outcomes == [("unavailable", 1)]


def test_a_failure_of_another_kind_ends_the_tries():
    errors = [KnowledgeQueryError("no such column"), UNREACHABLE]

    def operate(*args: Any, **kwargs: Any) -> list[Record]:
        raise errors.pop()

    ask = Asked(FakeKnowledgeBase("b").on("search", operate))
    assert "no such column" in ask("search_kb", "b", "x")
    assert ask.outcomes == [("rejected", 2)]


async def test_a_call_that_is_cancelled_while_it_waits_for_its_next_try_ends():
    backend = FakeKnowledgeBase("b").on("search", failing(1_000))
    ask = Asked(backend, attempts=1_000, wait_seconds=10, max_wait_seconds=10)
    task = asyncio.create_task(ask.builder.build_async()[4]("b", "x"))
    while not backend.calls:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ask.events[0].outcome == "cancelled"


async def test_waiting_for_the_next_try_holds_up_nobody():
    down = FakeKnowledgeBase("down").on("search", failing(1_000))
    ask = Asked(
        down, FakeKnowledgeBase("up", [{"text": "hello", "metadata": {}}]), wait_seconds=20, max_wait_seconds=20, seconds=60
    )
    search_kb = ask.builder.build_async()[4]
    waiting = asyncio.create_task(search_kb("down", "x"))
    while not down.calls:
        await asyncio.sleep(0.01)
    assert await search_kb("up", "hello") == "- hello (source: N/A)"
    assert not waiting.done()
    waiting.cancel()


def test_the_retry_library_is_not_loaded_before_there_is_a_failure():
    code = (
        "import sys; from agentkernel_kb import KnowledgeBuilder; from agentkernel_kb.testing import FakeKnowledgeBase\n"
        "KnowledgeBuilder([FakeKnowledgeBase('b')]).build()[1]('b', 'x'); assert 'tenacity' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# The settings.


def test_the_settings_are_a_frozen_value():
    policy = Resilience()
    assert (policy.attempts, policy.failures, policy.stale_seconds) == (3, 3, 0.0)
    with pytest.raises(AttributeError):
        policy.attempts = 5  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("faulty", "says"),
    [
        ({"attempts": 0}, "Resilience.attempts must be a whole number, at least 1, not 0"),
        ({"attempts": 2.5}, "Resilience.attempts"),
        ({"attempts": True}, "Resilience.attempts"),
        ({"failures": -1}, "Resilience.failures"),
        ({"failures": "3"}, "Resilience.failures"),
        ({"stale_entries": 0}, "Resilience.stale_entries"),
        ({"stale_characters": None}, "Resilience.stale_characters"),
        ({"wait_seconds": -1}, "Resilience.wait_seconds must be a number of seconds, not -1"),
        ({"open_seconds": float("nan")}, "Resilience.open_seconds"),
        ({"max_open_seconds": float("inf")}, "Resilience.max_open_seconds"),
        ({"stale_seconds": "60"}, "Resilience.stale_seconds"),
        ({"open_seconds": 0}, "Resilience.open_seconds must be more than 0"),
        ({"wait_seconds": 5}, "Resilience.wait_seconds must not be more than max_wait_seconds"),
        ({"open_seconds": 90}, "Resilience.open_seconds must not be more than max_open_seconds"),
    ],
    ids=str,
)
def test_a_faulty_setting_is_an_error_that_names_it(faulty, says):
    with pytest.raises(AKConfigError, match=re.escape(says)):
        Resilience(**faulty)


def test_the_router_takes_nothing_else_for_settings():
    with pytest.raises(AKConfigError, match="resilience must be Resilience"):
        KnowledgeBuilder([], resilience={"attempts": 3})  # pyright: ignore[reportArgumentType]
