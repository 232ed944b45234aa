"""A backend that is not there is left alone, and heals by itself (X7)."""

import asyncio
import re
import socket
import threading
from typing import Any

import pytest
from asked import SYNC_AND_ASYNC, UNREACHABLE, Asked, Lines, failing, free_port, serving

from agentkernel_kb import Record
from agentkernel_kb.errors import (
    KnowledgeBackendError,
    KnowledgeConnectionError,
    KnowledgeQueryError,
    KnowledgeStateError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.testing import FakeKnowledgeBase


@SYNC_AND_ASYNC
def test_a_backend_that_is_not_there_is_left_alone_after_three_calls_and_the_sentence_says_since_when(is_async):
    backend = FakeKnowledgeBase("graph")
    backend.down = UNREACHABLE
    others = [FakeKnowledgeBase("handbook"), FakeKnowledgeBase("lake")]
    ask = Asked(backend, *others, is_async=is_async, attempts=2)
    for _ in range(3):
        assert ask("search_kb", "graph", "x").startswith("Backend 'graph' can't be reached. Nobody answers at graph:7687. Try")
    answer = ask("search_kb", "graph", "x")
    assert re.fullmatch(
        r"Backend 'graph' can't be reached \(3 failures since \d\d:\d\d UTC, next try \d\d:\d\d\)\. "
        r"Working: \['handbook', 'lake'\]\.",
        answer,
    )
    assert len(backend.calls) == 6
    assert ask.outcomes == [("unavailable", 2)] * 3 + [("unavailable", 0)]


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("unauthorized", "does not let this application in"),
        ("missing", "does not have what this application was told to open"),
        ("untrusted", "can't be trusted: its certificate does not hold"),
    ],
)
def test_a_wrong_login_is_not_tried_for_ever_which_could_lock_the_account(state, says):
    backend = FakeKnowledgeBase("b")
    backend.down = KnowledgeConnectionError("Why.", state=state)
    ask = Asked(backend)
    answers = [ask("search_kb", "b", "x") for _ in range(20)]
    assert answers[:3] == [f"Backend 'b' {says}. Why. Use another backend."] * 3
    assert answers[-1].startswith(f"Backend 'b' {says} (3 failures since ")
    assert len(backend.calls) == 3


def test_a_write_opens_the_breaker_and_is_stopped_by_it_too():
    backend = FakeKnowledgeBase("b", writable=True)
    backend.down = UNREACHABLE
    ask = Asked(backend)
    for _ in range(5):
        ask("write_kb", "b", "text")
    assert len(backend.calls) == 3


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (KnowledgeQueryError("no such column"), 10),
        (KnowledgeStateError("is closed"), 10),
        (KnowledgeBackendError("broken"), 10),
        (RuntimeError("broken"), 10),
        (UNREACHABLE, 3),
        (KnowledgeTimeoutError("slow"), 3),
        (ConnectionRefusedError(), 3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_counts_is_that_nobody_answers(error, calls):
    backend = FakeKnowledgeBase("b")
    backend.down = error
    ask = Asked(backend, attempts=1)
    for _ in range(10):
        ask("search_kb", "b", "x")
    assert len(backend.calls) == calls


@pytest.mark.parametrize(
    "answered", [[{"text": "x", "metadata": {}}], KnowledgeQueryError("no such column")], ids=["ok", "rejected"]
)
def test_only_failures_in_a_row_count(answered):
    backend = FakeKnowledgeBase("b")
    ask = Asked(backend, attempts=1)
    for _ in range(5):
        for behaviour in (UNREACHABLE, UNREACHABLE, answered):
            backend.on("search", behaviour)
            ask("search_kb", "b", "x")
    assert len(backend.calls) == 15


def test_a_backend_that_is_left_alone_heals_by_itself():
    backend = FakeKnowledgeBase("b", [{"text": "hello", "metadata": {}}])
    backend.down = UNREACHABLE
    ask = Asked(backend, failures=1, open_seconds=0.05, max_open_seconds=0.05)
    ask("search_kb", "b", "hello")
    backend.down = None
    while (answer := ask("search_kb", "b", "hello")) != "- hello (source: N/A)":
        assert "1 failure since" in answer
    assert len(backend.calls) == 2 + ask.events[0].attempts - 1
    assert ask.builder.health()["b"].breaker == "closed"


@SYNC_AND_ASYNC
def test_one_call_finds_out_while_the_others_are_answered_at_once(is_async):
    held = threading.Event()
    backend = FakeKnowledgeBase("b").on("search", failing(1))
    ask = Asked(backend, is_async=is_async, failures=1, attempts=1, open_seconds=0.01, max_open_seconds=0.01)
    ask("search_kb", "b", "x")
    reached = threading.Event()

    def hold(*args: Any, **kwargs: Any) -> list[Record]:
        reached.set()
        held.wait(30)
        return []

    backend.on("search", hold)
    found: list[str] = []

    def find_out() -> None:
        while not reached.is_set() and not found:
            answer = ask("search_kb", "b", "x")
            if reached.is_set():
                found.append(answer)

    threads = [threading.Thread(target=find_out)]
    threads[0].start()
    assert reached.wait(30)
    others = [ask("search_kb", "b", "x") for _ in range(5)]
    held.set()
    threads[0].join(30)
    assert {re.sub(r"\d\d:\d\d", "…", answer) for answer in others} == {
        "Backend 'b' can't be reached (1 failure since … UTC, a call is trying it now). Working: []."
    }
    assert found == ["No relevant knowledge found."]
    assert len(backend.calls) == 2


@SYNC_AND_ASYNC
def test_a_call_that_finds_out_is_not_repeated(is_async):
    backend = FakeKnowledgeBase("b")
    backend.down = UNREACHABLE
    ask = Asked(backend, is_async=is_async, failures=1, attempts=3, open_seconds=0.01, max_open_seconds=0.01)
    while [event.attempts for event in ask.events if event.attempts] != [3, 1, 1]:
        ask("search_kb", "b", "x")


async def test_a_call_that_finds_out_and_is_cancelled_leaves_the_way_to_the_next():
    backend = FakeKnowledgeBase("b").on("search", failing(1))
    ask = Asked(backend, failures=1, attempts=1, open_seconds=0.01, max_open_seconds=0.01)
    search_kb = ask.builder.build_async()[4]
    await search_kb("b", "x")
    await asyncio.sleep(0.02)
    release = threading.Event()
    backend.on("search", lambda *args, **kwargs: release.wait(30) and [])
    probe = asyncio.create_task(search_kb("b", "x"))
    while len(backend.calls) < 2:
        await asyncio.sleep(0.01)
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    release.set()
    assert await search_kb("b", "x") == "No relevant knowledge found."


def test_a_call_that_finds_out_and_is_refused_leaves_the_way_to_the_next():
    backend = FakeKnowledgeBase("b", search=False, query_language="text", refused_words={"delete"}).on("query", failing(1))
    ask = Asked(backend, failures=1, attempts=1, open_seconds=0.01, max_open_seconds=0.01)
    ask("read_kb", "b", "x")
    while not (answer := ask("read_kb", "b", "delete")).startswith("Refused"):
        assert "failure since" in answer
    assert ask("read_kb", "b", "x") == "- back (source: N/A)"


def test_backends_are_left_alone_each_by_itself():
    down, up = FakeKnowledgeBase("down"), FakeKnowledgeBase("up", [{"text": "hello", "metadata": {}}])
    down.down = UNREACHABLE
    ask = Asked(down, up, failures=1)
    ask("search_kb", "down", "x")
    assert "Working: ['up']" in ask("search_kb", "down", "x")
    assert ask("search_kb", "up", "hello") == "- hello (source: N/A)"


def test_a_server_that_was_killed_answers_again_once_it_is_back():
    port = free_port()
    ask = Asked(Lines(port), attempts=1, failures=2, open_seconds=0.05, max_open_seconds=0.1)
    assert "can't be reached." in ask("search_kb", "lines", "hello")
    assert "can't be reached." in ask("search_kb", "lines", "hello")
    assert "2 failures since" in ask("search_kb", "lines", "hello")
    with serving(port):
        while ask("search_kb", "lines", "hello") != "- HELLO (source: N/A)":
            assert len(ask.events) < 1_000_000
    assert "secret-canary" not in repr(ask.events)


def test_a_server_that_hangs_is_left_alone_instead_of_holding_a_thread_for_each_call():
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        ask = Asked(Lines(hanging.getsockname()[1]), seconds=0.1)
        answers = [ask("search_kb", "lines", "hello") for _ in range(10)]
    assert answers[:3] == ["Backend 'lines' did not answer within 0.1 s. Narrow it, or try again."] * 3
    assert all(answer.startswith("Backend 'lines' does not answer (3 failures since ") for answer in answers[3:])


def test_statements_that_take_too_long_do_not_take_a_store_away_that_answers_a_ping():
    pinged = threading.Event()

    class Slow(FakeKnowledgeBase):
        def ping(self, *, timeout: float | None = None) -> str:
            pinged.set()
            return "1"

    backend = Slow("b").on("search", KnowledgeTimeoutError("slow"))
    ask = Asked(backend, open_seconds=60)
    for _ in range(2):  # Each time that it would be left alone.
        pinged.clear()
        while not pinged.is_set():
            ask("search_kb", "b", "heavy")
    backend.on("search", [{"text": "light", "metadata": {}}])
    while ask("search_kb", "b", "x") != "- light (source: N/A)":
        assert len(ask.events) < 1_000_000


# Schemas and instructions of what is down.


@SYNC_AND_ASYNC
def test_the_schema_of_a_backend_that_is_down_is_its_error_and_the_others_are_shown(is_async):
    down = FakeKnowledgeBase("down")
    down.down = UNREACHABLE
    ask = Asked(down, FakeKnowledgeBase("up"), is_async=is_async)
    schemas = [ask("get_schemas") for _ in range(4)]
    for schema in schemas:
        assert '{"down": {"error": "Backend \'down\' can\'t be reached' in schema
        assert '"up": {"backend": "up", "records": 0' in schema
    assert "Nobody answers" in schemas[2]
    assert "3 failures since" in schemas[3]
    assert ask("search_kb", "down", "x").startswith("Backend 'down' can't be reached (3 failures since")


@SYNC_AND_ASYNC
def test_a_schema_does_not_keep_the_way_from_the_next_call(is_async):
    backend = FakeKnowledgeBase("b", [{"text": "hello", "metadata": {}}])
    backend.down = UNREACHABLE
    ask = Asked(backend, is_async=is_async, failures=1, attempts=1, open_seconds=0.01, max_open_seconds=0.01)
    ask("search_kb", "b", "hello")
    backend.down = None
    while '"error"' in ask("get_schemas"):
        assert len(ask.events) < 1_000_000
    assert ask("search_kb", "b", "hello") == "- hello (source: N/A)"


def test_a_schema_that_is_only_added_is_shown_though_the_backend_is_down():
    backend = FakeKnowledgeBase("b", derives_schema=False).add_schema({"usage": "Ask."})
    backend.down = UNREACHABLE
    ask = Asked(backend, failures=1)
    ask("search_kb", "b", "x")
    assert '"usage": "Ask."' in ask("get_schemas")


def test_instructions_and_descriptions_need_no_backend_that_is_there():
    backend = FakeKnowledgeBase("b")
    backend.down = UNREACHABLE
    ask = Asked(backend)
    assert "- b (fake): b holds records in memory. Use" in ask.builder.instructions()
    assert ask("get_all_kb_descriptions") == "- b: b holds records in memory."
