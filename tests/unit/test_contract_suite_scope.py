"""The shipped suite on backends that declare `filters` and do not keep to a row scope: the right tests fail (A21, X6)."""

from __future__ import annotations

import pytest
from wrong_backends import Outcome, outcome_of

WRONG_BACKENDS = """
for record in RECORDS:
    record["metadata"] |= {"team": "sales", "floor": 2}


class Scoped(Contract):
    declares = {"search", "filters"}
    row_scope = {"team": "sales", "floor": 2}
    other_scope = {"team": "support", "floor": 2}


class TestKeepsToIt(Scoped):
    declares = {"search", "query", "fetch", "browse", "write", "ids", "filters"}


class TestTakesNone(Scoped):
    class backend_class(FakeKnowledgeBase):
        def search(self, query, limit=3, **kwargs):
            return super().search(query, limit)


class TestForgetsIt(Scoped):
    class backend_class(FakeKnowledgeBase):
        def search(self, query, limit=3, *, filters=None, **kwargs):
            return super().search(query, limit, **kwargs)


class TestKeepsToAPart(Scoped):
    class backend_class(FakeKnowledgeBase):
        def search(self, query, limit=3, *, filters=None, **kwargs):
            return super().search(query, limit, filters=dict(list((filters or {}).items())[:1]), **kwargs)


class TestForgetsItInFetch(Scoped):
    declares = {"search", "fetch", "filters"}

    class backend_class(FakeKnowledgeBase):
        def fetch(self, ids, *, filters=None, **kwargs):
            return super().fetch(ids, **kwargs)


class TestForgetsItInTheTwin(Scoped):
    class backend_class(FakeKnowledgeBase):
        async def asearch(self, query, limit=3, *, filters=None, **kwargs):
            return super().search(query, limit, **kwargs)


class TestReadsPatterns(Scoped):
    class backend_class(FakeKnowledgeBase):
        def search(self, query, limit=3, *, filters=None, **kwargs):
            plain = {key: value for key, value in (filters or {}).items() if value not in ("%", "*")}
            return super().search(query, limit, filters=plain, **kwargs)


class TestStoresOutside(Scoped):
    declares = {"search", "write", "ids", "filters"}

    class backend_class(FakeKnowledgeBase):
        def add(self, records, *, filters=None, **kwargs):
            return super().add(records, **kwargs)


class TestBelievesTheRecord(Scoped):
    declares = {"search", "write", "ids", "filters"}

    class backend_class(FakeKnowledgeBase):
        def add(self, records, *, filters=None, **kwargs):
            return super().add([{**one, "metadata": {**(filters or {}), **one["metadata"]}} for one in records], **kwargs)


class TestTakesOver(Scoped):
    declares = {"search", "write", "ids", "filters"}

    class backend_class(FakeKnowledgeBase):
        def add(self, records, *, filters=None, **kwargs):
            own = [{**one, "metadata": {**one["metadata"], **(filters or {}), "id": one["text"]}} for one in records]
            return super().add(own, **kwargs)
"""

READS, TWINS = "test_reads_keep_to_the_scope", "test_async_reads_keep_to_the_scope"
AGENT, VALUES = "test_an_agent_sees_what_is_its_own", "test_a_value_is_never_read_as_syntax"
WRITES, TWO = "test_what_is_written_gets_the_scope", "test_the_same_record_of_two_scopes_is_two"
ALL_FAIL: dict[str, set[str]] = {
    "TestKeepsToIt": set(),
    "TestTakesNone": {"test_some_operation_keeps_to_a_scope", "test_declaration_is_what_is_implemented"},
    "TestForgetsIt": {READS, AGENT, VALUES},
    "TestKeepsToAPart": {READS},
    "TestForgetsItInFetch": {READS, AGENT, VALUES},
    "TestForgetsItInTheTwin": {TWINS},
    "TestReadsPatterns": {VALUES},
    "TestStoresOutside": {WRITES, TWO},
    "TestBelievesTheRecord": {WRITES, TWO},
    "TestTakesOver": {TWO},
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return outcome_of(WRONG_BACKENDS, tmp_path_factory.mktemp("suite"))


@pytest.mark.parametrize("subject", ALL_FAIL)
def test_a_backend_that_keeps_to_no_scope_fails_the_right_tests(subject: str, outcome: Outcome) -> None:
    assert set(outcome.failed.get(subject, {})) == ALL_FAIL[subject]
