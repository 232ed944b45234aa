"""A question to all backends, of which some do not answer, or are not for this agent, user or moment (X4, X5, X6, X7, X18)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from shelves import SEARCH, Answers, both_forms, hanging, record, search, shelf

from agentkernel_kb import (
    Access,
    KnowledgeBuilder,
    KnowledgeConnectionError,
    KnowledgePathError,
    KnowledgeTimeoutError,
    Limits,
    Record,
    Resilience,
    ToolEvent,
    acting_as,
)
from agentkernel_kb.model import Operation
from agentkernel_kb.testing import FakeKnowledgeBase

FETCH: frozenset[Operation] = frozenset(("fetch",))


@both_forms
def test_x5_a_hung_a_failing_and_an_empty_backend_among_five(form: Callable[..., Answers]) -> None:
    events: list[ToolEvent] = []
    with hanging(shelf("hung")) as hung:
        ask = form(
            shelf("alpha", record("a1", "One."), record("a2", "Both.")),
            hung,
            shelf("failing").on("search", KnowledgeConnectionError("nobody at 10.0.0.7")),
            shelf("empty"),
            shelf("beta", record("b2", "Both."), record("b1", "Two.")),
            limits=Limits(seconds=1),
            on_event=events.append,
        )
        started = time.monotonic()
        answer = ask("*", "x", 9)
        assert time.monotonic() - started < 15
    assert answer == (
        "No answer from 'hung' (not within 1 s), 'failing' (can't be reached).\n"
        "- [beta: b2] Both. (source: book) = [alpha: a2]\n"
        "- [alpha: a1] One. (source: book)\n"
        "- [beta: b1] Two. (source: book)"
    )
    assert {(event.backend, event.outcome, event.rows) for event in events[:-1]} == {
        ("alpha", "ok", 2),
        ("hung", "timeout", 0),
        ("failing", "unavailable", 0),
        ("empty", "empty", 0),
        ("beta", "ok", 2),
    }
    whole = events[-1]
    assert (whole.tool, whole.backend, whole.operation, whole.outcome, whole.rows) == ("search_kb", "*", "search", "partial", 3)
    assert whole.attempts == 5
    assert whole.characters == len(answer)


@both_forms
def test_x5_all_that_fail_are_told_with_their_reasons_and_it_is_not_an_empty_result(form: Callable[..., Answers]) -> None:
    events: list[ToolEvent] = []
    ask = form(
        shelf("one").on("search", KnowledgeTimeoutError("slow")),
        shelf("two").on("search", KnowledgeConnectionError("", state="unauthorized")),
        shelf("three").on("search", KnowledgePathError("no")),
        shelf("four").on("search", RuntimeError("secret")),
        on_event=events.append,
    )
    assert ask("*", "x") == (
        "No answer from 'one' (not within 30 s), 'two' (does not let this application in), 'three' (refused), 'four' (failed). "
        "This is not an empty result. Try again later, or ask one of them in another way."
    )
    assert events[-1].outcome == "error"


def test_x5_all_that_fail_alike_are_one_outcome() -> None:
    events: list[ToolEvent] = []
    down = KnowledgeConnectionError("x")
    search(shelf("one").on("search", down), shelf("two").on("search", down), on_event=events.append)("*", "x")
    assert [event.outcome for event in events] == ["unavailable"] * 3


def test_x5_nothing_found_where_one_is_silent_says_so() -> None:
    answer = search(shelf("one"), shelf("two").on("search", KnowledgeConnectionError("x")))("*", "x")
    assert answer == "No answer from 'two' (can't be reached).\nNo relevant knowledge found."


def test_x6_only_backends_that_the_agent_may_search_are_asked() -> None:
    backends = [shelf(name, record(name, f"{name}.")) for name in ("one", "two", "fetched", "hidden")]
    access = Access("Agent", {"one": SEARCH, "two": SEARCH, "fetched": FETCH})
    answer = search(*backends, access=access)("*", "x")
    assert ("one." in answer, "two." in answer) == (True, True)
    assert [len(backend.calls) for backend in backends] == [1, 1, 0, 0]


def test_x6_an_agent_that_may_not_fetch_is_shown_no_ids() -> None:
    may = SEARCH
    answer = search(shelf("one", record("i", "Lamp.")), shelf("two"), access=Access("Agent", {"one": may, "two": may}))(
        "*", "x"
    )  # type: ignore[dict-item]
    assert answer == "- [one] Lamp. (source: book)"


def test_x6_every_backend_is_held_to_its_own_scope() -> None:
    rows = [{"text": f"Lamp of {team}.", "metadata": {"id": team, "team": team}} for team in ("red", "blue")]
    backends = [FakeKnowledgeBase(name, rows, filters=True) for name in ("one", "two")]
    access = Access(
        "Agent",
        {"one": SEARCH, "two": SEARCH},
        {"one": {"team": "red"}, "two": {"team": "blue"}},
    )
    assert search(*backends, access=access)("*", "lamp", 9) == (
        "- [one] Lamp of red. (source: N/A)\n- [two] Lamp of blue. (source: N/A)"
    )


@both_forms
def test_x18_a_backend_that_acts_for_somebody_is_refused_alone(form: Callable[..., Answers]) -> None:
    backends = shelf("one", record("i", "Lamp.")), shelf("two", record("j", "Chair."), requires_identity=True)
    answer = form(*backends)("*", "x")
    assert answer.startswith("No answer from 'two' (refused: this call acts for nobody")
    assert "- [one: i]" in answer
    with acting_as("ada"):
        assert "- [two: j]" in form(*backends)("*", "x")
    assert [who and who.principal for who in backends[1].acted_for] == ["ada"]


def test_x7_a_backend_that_is_left_alone_is_named_and_not_asked() -> None:
    down = shelf("down").on("search", KnowledgeConnectionError("x"))
    ask = search(shelf("one", record("i", "Lamp.")), down, resilience=Resilience(attempts=1, failures=1))
    answers = [ask("*", "x") for _ in range(3)]
    assert answers == ["No answer from 'down' (can't be reached).\n- [one: i] Lamp. (source: book)"] * 3
    assert len(down.calls) == 1


def test_x7_a_read_that_nobody_heard_is_tried_again() -> None:
    failures = [KnowledgeConnectionError("x")]

    def shaky(*_: Any, **__: Any) -> list[Record]:
        if failures:
            raise failures.pop()
        return [record("i", "Lamp.")]

    events: list[ToolEvent] = []
    ask = search(
        shelf("one").on("search", shaky),
        shelf("two"),
        resilience=Resilience(wait_seconds=0, max_wait_seconds=0),
        on_event=events.append,
    )
    assert ask("*", "x") == "- [one: i] Lamp. (source: book)"
    assert sorted((event.backend, event.attempts) for event in events) == [("*", 3), ("one", 2), ("two", 1)]


def test_x7_an_old_answer_is_used_and_says_so() -> None:
    backend = FakeKnowledgeBase("one", [record("i", "Lamp.")], fetch=True)
    events: list[ToolEvent] = []
    policy = Resilience(attempts=1, stale_seconds=60)
    ask = search(backend, shelf("two", record("j", "Chair.")), resilience=policy, on_event=events.append)
    ask("*", "lamp")
    backend.down = KnowledgeConnectionError("x")
    answer = ask("*", "lamp")
    assert answer.startswith("Stale: backend 'one' can't be reached; this is what it answered at ")
    assert answer.endswith("- [one: i] Lamp. (source: book)\n- [two: j] Chair. (source: book)")
    assert events[-1].outcome == "stale"


async def test_x4_a_cancelled_call_cancels_every_search_and_tells_of_itself() -> None:
    cancelled: list[str] = []
    begun = asyncio.Event()

    class Waiting(FakeKnowledgeBase):
        async def asearch(self, query: str, limit: int = 3, **kwargs: Any) -> list[Record]:
            try:
                begun.set()
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                cancelled.append(self.backend_name)
                raise
            return []

    events: list[ToolEvent] = []
    builder = KnowledgeBuilder([Waiting("one"), Waiting("two")], on_event=events.append)
    tool = next(tool for tool in builder.build_async() if tool.__name__ == "search_kb")
    task = asyncio.create_task(tool("*", "x"))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    assert sorted(cancelled) == ["one", "two"]
    assert [(event.backend, event.outcome) for event in events] == [("*", "cancelled")]


def test_x4_hung_backends_hold_no_thread_of_the_others() -> None:
    with hanging(shelf("hung")) as hung:
        ask = search(
            hung, shelf("one", record("i", "Lamp.")), limits=Limits(seconds=0.3), resilience=Resilience(failures=10**6)
        )
        threads = [threading.Thread(target=ask, args=("*", "x")) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert "- [one: i] Lamp." in ask("*", "x")


def test_x5_a_closed_router_says_so() -> None:
    builder = KnowledgeBuilder([shelf("one"), shelf("two")])
    tool = next(tool for tool in builder.build() if tool.__name__ == "search_kb")
    tool("*", "x")
    builder.close()
    assert tool("*", "x") == "The knowledge bases are closed. No tool can reach them any more."


def test_x5_what_breaks_the_contract_fails_alone() -> None:
    answer = search(shelf("one", record("i", "Lamp.")), FakeKnowledgeBase("two").on("search", lambda *_, **__: "text"))(
        "*", "x"
    )
    assert answer == "No answer from 'two' (failed).\n- [one: i] Lamp. (source: book)"
