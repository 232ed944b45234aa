"""Old answers in place of none (X7): off by default, labelled, within bounds, and never shown to anybody else (X18)."""

import re
from typing import Any

import pytest
from asked import SYNC_AND_ASYNC, UNREACHABLE, Asked

from agentkernel_kb.errors import KnowledgeConnectionError, KnowledgeQueryError, KnowledgeTimeoutError
from agentkernel_kb.router.answer import Answer
from agentkernel_kb.router.plan import Plan, register
from agentkernel_kb.router.stale import StaleAnswers
from agentkernel_kb.testing import FakeKnowledgeBase

STALE = r"Stale: backend 'b' can't be reached; this is what it answered at \d\d:\d\d:\d\d UTC, \d+ s ago\."


def new_backend() -> FakeKnowledgeBase:
    records = [{"text": "hello", "metadata": {"id": "1"}}, {"text": "hello again", "metadata": {"id": "2"}}]
    return FakeKnowledgeBase("b", records, fetch=True, browse=True, query_language="text", writable=True)


@SYNC_AND_ASYNC
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("search_kb", ["hello"]), ("read_kb", ["hello"]), ("fetch_kb", ["1,2"]), ("browse_kb", []), ("search_kb", ["nobody"])],
    ids=str,
)
def test_the_last_answer_to_the_same_read_is_given_with_its_time(tool, arguments, is_async):
    backend = new_backend()
    ask = Asked(backend, is_async=is_async, stale_seconds=600)
    fresh = ask(tool, "b", *arguments)
    backend.down = UNREACHABLE
    label, _, text = ask(tool, "b", *arguments).partition("\n")
    assert re.fullmatch(STALE, label)
    assert text == fresh
    assert ask.outcomes[1] == ("stale", 3)
    assert ask.events[1].rows == ask.events[0].rows


def test_nothing_is_kept_unless_it_is_asked_for():
    backend = new_backend()
    ask = Asked(backend)
    ask("search_kb", "b", "hello")
    backend.down = UNREACHABLE
    assert ask("search_kb", "b", "hello").startswith("Backend 'b' can't be reached.")


def test_it_is_given_too_while_the_backend_is_left_alone_and_where_it_hangs():
    backend = new_backend()
    ask = Asked(backend, stale_seconds=600)
    ask("search_kb", "b", "hello")
    backend.down = KnowledgeTimeoutError("slow")
    answers = [ask("search_kb", "b", "hello") for _ in range(5)]
    assert all(answer.startswith("Stale: backend 'b' does not answer; ") for answer in answers)
    assert ask.outcomes[1:] == [("stale", 1)] * 3 + [("stale", 0)] * 2


@pytest.mark.parametrize("state", ["unauthorized", "missing", "untrusted"])
def test_who_is_not_let_in_any_more_is_not_shown_what_they_once_were(state):
    backend = new_backend()
    ask = Asked(backend, stale_seconds=600)
    ask("search_kb", "b", "hello")
    backend.down = KnowledgeConnectionError("No.", state=state)
    assert not any("hello" in ask("search_kb", "b", "hello") for _ in range(5))


def test_a_failure_of_the_statement_is_told_and_not_covered_up():
    backend = new_backend()
    ask = Asked(backend, stale_seconds=600)
    ask("search_kb", "b", "hello")
    backend.down = KnowledgeQueryError("no such index")
    assert "no such index" in ask("search_kb", "b", "hello")


@pytest.mark.parametrize(
    "other", [("search_kb", "hello", 1), ("search_kb", "hello you"), ("read_kb", "hello"), ("fetch_kb", "1")], ids=str
)
def test_another_call_is_another_answer(other):
    backend = new_backend()
    ask = Asked(backend, stale_seconds=600)
    ask("search_kb", "b", "hello")
    backend.down = UNREACHABLE
    assert ask(other[0], "b", *other[1:]).startswith("Backend 'b' can't be reached.")


def test_a_write_is_never_answered_with_an_old_answer():
    backend = new_backend()
    ask = Asked(backend, stale_seconds=600)
    ask("write_kb", "b", "text")
    backend.down = UNREACHABLE
    assert ask("write_kb", "b", "text").startswith("Backend 'b' can't be reached.")


@pytest.mark.parametrize(
    "other",
    [
        None,
        {"principal": "bob"},
        {"principal": "alice", "tenant": "globex"},
        {"principal": "alice"},
        {"principal": "alice", "tenant": "acme", "roles": ["auditor"]},
    ],
    ids=str,
)
def test_what_one_was_answered_nobody_else_is_shown(other: dict[str, Any] | None):
    backend = new_backend()
    ask = Asked(backend, stale_seconds=600, failures=100)
    with ask.builder.acting_as("alice", tenant="acme"):
        ask("search_kb", "b", "hello")
    backend.down = UNREACHABLE
    if other is None:
        answer = ask("search_kb", "b", "hello")
    else:
        with ask.builder.acting_as(**other):
            answer = ask("search_kb", "b", "hello")
    assert answer.startswith("Backend 'b' can't be reached.")
    with ask.builder.acting_as("alice", tenant="acme"):
        assert ask("search_kb", "b", "hello").startswith("Stale: ")


def test_who_acts_for_nobody_is_refused_and_not_given_an_old_answer():
    backend = FakeKnowledgeBase("b", [{"text": "hello", "metadata": {}}], requires_identity=True)
    ask = Asked(backend, stale_seconds=600)
    with ask.builder.acting_as("alice"):
        ask("search_kb", "b", "hello")
    backend.down = UNREACHABLE
    assert ask("search_kb", "b", "hello").startswith("Refused: ")


def test_closing_forgets_everything():
    ask = Asked(new_backend(), stale_seconds=600)
    ask("search_kb", "b", "hello")
    ask.builder.close()
    assert ask("search_kb", "b", "hello").startswith("The knowledge bases are closed.")


# The store of answers by itself, where time can be told.


class Store:
    def __init__(self, *, seconds: float = 60, entries: int = 10, characters: int = 1_000) -> None:
        self.seconds = 0.0
        self.kept = StaleAnswers(seconds, entries, characters, clock=lambda: self.seconds)
        self._target = register(FakeKnowledgeBase("b"), "b")

    def keep(self, query: str, text: str = "answer", longest: int = 20_000) -> None:
        self.kept.keep(self._plan(query), Answer(text, "ok", 1), longest)

    def find(self, query: str) -> bool:
        return self.kept.find(self._plan(query), "is away") is not None

    def _plan(self, query: str) -> Plan:
        return Plan(self._target, "search", self._target.ways["search"], (query, 3), 3, "limit", (), 0.0)


def test_an_answer_that_is_too_old_is_none():
    store = Store(seconds=60)
    store.keep("a")
    store.seconds = 60
    assert store.find("a")
    store.seconds = 60.5
    assert not store.find("a")
    store.seconds = 0
    assert not store.find("a")


def test_a_new_answer_takes_the_place_of_the_old_one():
    store = Store(seconds=60, characters=50)
    for second in range(100):
        store.seconds = second
        store.keep("a", "twenty characters...")
    store.seconds = 150
    assert store.find("a")


def test_the_answer_used_longest_ago_makes_room():
    store = Store(entries=2)
    store.keep("a")
    store.keep("b")
    assert store.find("a")
    store.keep("c")
    assert [store.find(query) for query in "abc"] == [True, False, True]


def test_questions_and_answers_together_are_bounded_in_characters():
    store = Store(characters=100)
    store.keep("a", "x" * 60)
    store.keep("b", "y" * 60)
    assert [store.find(query) for query in "ab"] == [False, True]
    store.keep("q" * 99, "z" * 60)
    assert not store.find("q" * 99)
    assert store.find("b")


def test_an_answer_without_room_for_its_label_is_not_kept_and_the_older_one_is_gone():
    store = Store()
    store.keep("a", "short", longest=300)
    store.keep("a", "x" * 100, longest=300)
    assert not store.find("a")
