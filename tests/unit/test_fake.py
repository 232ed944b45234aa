"""What the fake backend offers to tests of routers and adapters beyond the contract (A21)."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest

from agentkernel_kb import AKConfigError, KnowledgeGuardError, KnowledgeTimeoutError, Record
from agentkernel_kb.testing import FakeKnowledgeBase

RECORDS: list[Record] = [
    {"text": "red apples", "metadata": {"id": "fruit/apple"}},
    {"text": "red and green peppers", "metadata": {"id": "vegetable/pepper"}},
]


def test_calls_are_remembered() -> None:
    fake = FakeKnowledgeBase(records=RECORDS, fetch=True, browse=True, writable=True, query_language="text")
    fake.search("red", 1, timeout=2)
    fake.query("red")
    fake.fetch(["x"])
    fake.browse("fruit")
    fake.write([{"text": "new"}])
    assert fake.calls == [
        ("search", "red", {"limit": 1, "timeout": 2}),
        ("query", "red", {"limit": 3}),
        ("fetch", ["x"], {}),
        ("browse", "fruit", {"limit": 50}),
        ("write", [{"text": "new"}], {}),
    ]


def test_scores_count_words_in_common() -> None:
    found = FakeKnowledgeBase(records=RECORDS).search("green or red")
    assert [(hit["metadata"]["id"], hit["metadata"]["score"]) for hit in found] == [("vegetable/pepper", 2), ("fruit/apple", 1)]


def test_rows_are_returned_as_they_are() -> None:
    rows: list[Record] = [{"text": str(number)} for number in range(9)]
    assert FakeKnowledgeBase().on("search", rows).search("x", limit=1) is rows


def test_an_exception_is_raised() -> None:
    with pytest.raises(KnowledgeTimeoutError, match="too late"):
        FakeKnowledgeBase().on("search", KnowledgeTimeoutError("too late")).search("x")


def test_a_callable_answers() -> None:
    def answer(query: str, **kwargs: Any) -> list[Record]:
        return [{"text": f"{query} {kwargs}"}]

    assert FakeKnowledgeBase().on("search", answer).search("x", 2, more=1) == [{"text": "x {'limit': 2, 'more': 1}"}]


def test_a_delay_precedes_the_honest_answer() -> None:
    fake = FakeKnowledgeBase(records=RECORDS).on("search", 0.05)
    started = time.perf_counter()
    assert len(fake.search("red")) == 2
    assert time.perf_counter() - started >= 0.05


def test_a_delay_of_zero_is_no_delay() -> None:
    assert len(FakeKnowledgeBase(records=RECORDS).on("search", 0).search("red")) == 2


def test_only_operations_can_be_scripted() -> None:
    with pytest.raises(AKConfigError, match="Unknown operation 'read'"):
        FakeKnowledgeBase().on(cast("Any", "read"), [])


def test_a_guard_is_there_only_when_asked_for() -> None:
    guarded = FakeKnowledgeBase(query_language="sql", refused_words={"drop"})
    unguarded = FakeKnowledgeBase(query_language="sql")
    assert (guarded.schema()["guarded"], unguarded.schema()["guarded"]) == (True, False)
    unguarded.check_read("DROP it")
    with pytest.raises(KnowledgeGuardError) as caught:
        guarded.check_read("please DROP it")
    assert (caught.value.part, caught.value.position) == ("DROP", 7)


def test_a_schema_can_be_left_out() -> None:
    with pytest.raises(ValueError, match="has no schema"):
        FakeKnowledgeBase(derives_schema=False).schema()


def test_records_without_an_id_are_named_by_their_content() -> None:
    fake = FakeKnowledgeBase(writable=True)
    first, second, third = fake.add([{"text": "a"}, {"text": "a", "metadata": {"source": "s"}}, {"text": "a"}])
    assert first == third != second
    assert len(fake.held()) == 2
